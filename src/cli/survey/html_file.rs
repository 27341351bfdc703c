//! Writes an HTML page to a file. A new page may replace an earlier page, but never a file with other content.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use super::sheet::BEGIN;
use crate::error::Error;
use crate::mailbox::folder_of;

/// Checks whether the page can be written, before a long run.
pub(crate) fn check_page(path: &Path) -> Result<(), Error> {
    check(path)
        .and_then(|()| temporary(path).map(drop))
        .map_err(Error::cannot_write(path.display()))
}

pub(crate) fn write_page(path: &Path, page: &str) -> Result<(), Error> {
    replace(path, page).map_err(Error::cannot_write(path.display()))
}

fn check(path: &Path) -> io::Result<()> {
    let refused = |why| Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    match fs::metadata(path) {
        // A named pipe is refused, because opening it would block until a program reads from it.
        Ok(metadata) if !metadata.is_file() => refused(
            "the page cannot be written here, because the path is not a regular file; name a new file",
        ),
        Ok(_) => {
            let (file, mut begin) = (File::open(path)?, Vec::new());
            file.take(BEGIN.len() as u64).read_to_end(&mut begin)?;
            if begin == BEGIN.as_bytes() {
                Ok(())
            } else {
                refused(
                    "the file exists and is not a page that embody wrote, so --html does not replace it; name a new file",
                )
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn replace(path: &Path, page: &str) -> io::Result<()> {
    check(path)?;
    let beside = temporary(path)?;
    beside.as_file().write_all(page.as_bytes())?;
    beside.as_file().sync_all()?;
    beside.persist(path)?;
    Ok(())
}

/// Creates a temporary file for the page, with the permissions of a new file of the user. We use `make_in`, because
/// errors of `tempfile_in` contain the random name of the temporary file, and the user needs the path of the page.
fn temporary(path: &Path) -> io::Result<tempfile::NamedTempFile<File>> {
    let new = |path: &Path| File::options().write(true).create_new(true).open(path);
    let mut builder = tempfile::Builder::new();
    builder
        .prefix(".embody-survey-")
        .make_in(folder_of(path), new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_file_is_overwritten_only_if_it_is_a_survey_page() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let mailbox = folder.path().join("box");
        fs::write(&mailbox, "From a@b\n\nx\n").expect("a file can be written");
        for done in [check_page(&mailbox), write_page(&mailbox, BEGIN)] {
            let error = done.expect_err("it is a mailbox");
            assert!(error.to_string().contains("box"), "{error}");
        }
        assert_eq!(fs::read(&mailbox).expect("it is there"), b"From a@b\n\nx\n");
        let page = folder.path().join("page.html");
        for text in ["one", "two"] {
            let text = format!("{BEGIN}{text}");
            check_page(&page).expect("a page may be replaced");
            write_page(&page, &text).expect("a page may be replaced");
            assert_eq!(fs::read_to_string(&page).expect("it is there"), text);
        }
        let nowhere = folder.path().join("none/page.html");
        check_page(&nowhere).expect_err("there is no such directory");
        let names = fs::read_dir(folder.path()).expect("it can be read").count();
        assert_eq!(names, 2, "something stays beside");
    }
}
