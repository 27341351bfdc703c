//! The stamp of a source: a digest that changes when a file of the source changes.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::mailbox::{folder_of, subfolders_of};
use crate::platform::{MetadataExt as _, OsStrExt as _};

/// Returns the [`stamp`] of each source. Returns `None` if one of them has none.
pub(super) fn stamps(sources: &[PathBuf], target: &Path) -> Option<Vec<String>> {
    let target = std::path::absolute(target).ok()?;
    let results = [subfolders_of(&target), target];
    let stamp = |source: &PathBuf| stamp(&std::path::absolute(source).ok()?, &results);
    sources.iter().map(stamp).collect()
}

/// Returns a digest of the names, sizes, times and inodes of all files in a source. Contents are not read. `results`
/// are skipped, because the result of the run can be inside a source. Returns `None` for a source that cannot be read
/// twice, such as a pipe.
fn stamp(source: &Path, results: &[PathBuf]) -> Option<String> {
    let mut digest = Sha256::new();
    let found = fs::metadata(source).ok()?;
    if found.is_file() {
        add(&mut digest, source, &found);
        // Some programs keep flags in a file next to the mailbox, such as `In.toc` next to `In.mbx`.
        for path in listed(folder_of(source), results)? {
            if path != source && path.file_stem() == source.file_stem() {
                add(&mut digest, &path, &fs::symlink_metadata(&path).ok()?);
            }
        }
    } else if found.is_dir() {
        let mut directories = vec![source.to_owned()];
        while let Some(directory) = directories.pop() {
            for path in listed(&directory, results)? {
                let found = fs::symlink_metadata(&path).ok()?;
                if found.is_dir() {
                    directories.push(path)
                } else {
                    add(&mut digest, &path, &found)
                }
            }
        }
    } else {
        return None;
    }
    Some(in_hex(&digest.finalize()))
}

/// Returns the entries of a directory in a fixed order, without the results and without temporary files of embody.
fn listed(directory: &Path, results: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).ok()? {
        let entry = entry.ok()?;
        if !entry.file_name().as_bytes().starts_with(b".embody-") {
            paths.push(entry.path());
        }
    }
    paths.retain(|path| !results.contains(path));
    paths.sort();
    Some(paths)
}

fn add(digest: &mut Sha256, path: &Path, found: &Metadata) {
    let name = path.as_os_str().as_bytes();
    digest.update((name.len() as u64).to_be_bytes());
    digest.update(name);
    let kind = (u64::from(found.is_file()) << 1) | u64::from(found.is_symlink());
    for number in [kind, found.len(), found.ino(), found.dev()] {
        digest.update(number.to_be_bytes());
    }
    for number in [
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
    ] {
        digest.update(number.to_be_bytes());
    }
}

fn in_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn stamp_changes_with_each_change_of_a_file_and_not_with_results_and_temporary_files() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let of = |source: &Path| stamp(source, &[at("mail/result"), at("In.new")]);
        fs::create_dir_all(at("mail/cur")).unwrap();
        fs::write(at("mail/cur/1"), "one").unwrap();
        fs::write(at("In.mbx"), "mail").unwrap();
        let stamps = || (of(&at("mail")).unwrap(), of(&at("In.mbx")).unwrap());
        let mut last = stamps();
        assert_eq!(stamps(), last);
        fs::create_dir(at("mail/.embody-merge-1")).unwrap();
        fs::write(at("mail/.embody-merge-1/spool"), "x").unwrap();
        fs::write(at("mail/result"), "x").unwrap();
        fs::write(at("In.new"), "x").unwrap();
        assert_eq!(stamps(), last);
        let mut assert_changed = |is_of_directory: bool, what: &str| {
            let now = stamps();
            assert_eq!(now.0 != last.0, is_of_directory, "{what}");
            assert_eq!(now.1 != last.1, !is_of_directory, "{what}");
            last = now;
        };
        fs::write(at("mail/cur/2"), "").unwrap();
        assert_changed(true, "new file");
        fs::rename(at("mail/cur/2"), at("mail/cur/3")).unwrap();
        assert_changed(true, "other name");
        fs::write(at("mail/cur/1"), "longer").unwrap();
        assert_changed(true, "other size");
        let file = fs::File::options().write(true).open(at("In.mbx")).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_changed(false, "other time");
        fs::write(at("new"), "mail").unwrap();
        let new = fs::File::options().write(true).open(at("new")).unwrap();
        new.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        fs::rename(at("new"), at("In.mbx")).unwrap();
        assert_changed(false, "other inode");
        fs::write(at("In.toc"), "flags").unwrap();
        assert_changed(false, "file next to the mailbox");
        fs::write(at("Out.toc"), "flags").unwrap();
        assert_eq!(stamps(), last);
    }

    #[cfg(unix)]
    #[test]
    fn source_that_can_be_read_only_once_has_no_stamp() {
        assert_eq!(stamp(Path::new("/dev/null"), &[]), None);
        assert_eq!(stamp(Path::new("/missing"), &[]), None);
    }
}
