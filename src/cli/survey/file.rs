//! Where the page goes: beside, then in the place of an earlier page, and of nothing else.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use crate::error::Error;
use crate::mailbox::folder_of;

/// What the pages begin with: only what does may be replaced.
pub const BEGIN: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"generator\" content=\"embody inspect\">\n";

/// Writes a page beside and renames it over an earlier one. Another file of that name, a mailbox say, stays.
pub fn write_page(path: &Path, page: &str) -> Result<(), Error> {
    replace(path, page).map_err(Error::cannot_write(path.display()))
}

fn replace(path: &Path, page: &str) -> io::Result<()> {
    let refused = |why| Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    match fs::metadata(path) {
        // A pipe would be waited for.
        Ok(metadata) if !metadata.is_file() => return refused("it is no file"),
        Ok(_) => {
            let (file, mut begin) = (File::open(path)?, Vec::new());
            file.take(BEGIN.len() as u64).read_to_end(&mut begin)?;
            if begin != BEGIN.as_bytes() {
                return refused(
                    "it is there, and not a page of embody inspect: --html does not replace it",
                );
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut builder = tempfile::Builder::new();
    // Others may read it as any file that the user makes. An error of `tempfile_in`, or of writing to what it gives,
    // would name this file, and people know the page.
    let beside = builder
        .prefix(".embody-survey-")
        .make_in(folder_of(path), |path| {
            File::options().write(true).create_new(true).open(path)
        })?;
    beside.as_file().write_all(page.as_bytes())?;
    beside.as_file().sync_all()?;
    beside.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_page_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let mailbox = folder.path().join("box");
        fs::write(&mailbox, "From a@b\n\nx\n").expect("a file can be written");
        let error = write_page(&mailbox, BEGIN).expect_err("it is a mailbox");
        assert!(error.to_string().contains("box"), "{error}");
        assert_eq!(fs::read(&mailbox).expect("it is there"), b"From a@b\n\nx\n");
        let page = folder.path().join("page.html");
        for text in ["one", "two"] {
            let text = format!("{BEGIN}{text}");
            write_page(&page, &text).expect("a page may be replaced");
            assert_eq!(fs::read_to_string(&page).expect("it is there"), text);
        }
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 2);
    }
}
