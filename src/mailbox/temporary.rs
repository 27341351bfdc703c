//! Creates temporary files (`.embody-HOST-PID-SYSTEM-*`) next to the files that they will replace, and removes old
//! ones. Each run removes its temporary files at its end. If a run is killed, the next run removes the files that it
//! left, after checking that the process in their name no longer exists.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::Path;
use std::time::Duration;

use tempfile::{NamedTempFile, TempDir};

use crate::platform::disk::layout;
use crate::platform::{self, OsStrExt as _, host, is_gone};

pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn our_prefix() -> OsString {
    let host = host();
    let parts = [".embody-".as_ref(), host.as_os_str(), "-".as_ref()];
    parts.into_iter().collect()
}

fn prefix() -> OsString {
    let mut prefix = our_prefix();
    prefix.push(format!("{}-{}-", std::process::id(), our_system()));
    prefix
}

/// Returns a hash that identifies this system in the names of temporary files. The host name is not enough, because
/// several machines with the same host name may share a directory.
fn our_system() -> String {
    let mut hasher = DefaultHasher::new();
    system().hash(&mut hasher);
    format!("{:08x}", hasher.finish() & 0xffff_ffff)
}

/// Creates a temporary file that only its owner can read. Errors do not contain its name, so that the caller can name
/// the target.
pub(crate) fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(&prefix())
        .rand_bytes(8)
        .make_in(folder, |path| {
            let mut options = File::options();
            options.read(true).write(true).create_new(true);
            platform::private(&mut options).open(path)
        })
}

pub(crate) fn temporary_folder_in(folder: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix(&prefix())
        .rand_bytes(8)
        .tempdir_in(folder)
}

/// Suffix of the directory next to the output of a run that contains its journal and the responses that it received.
pub(crate) const OF_RUN: &str = ".embody-resume";

/// Returns whether a file or directory with this name is a temporary one of embody, which is no mail.
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b".embody-") || name.ends_with(OF_RUN.as_bytes())
}

/// Returns whether the name is that of a temporary file or directory next to a mailbox: `.embody-HOST-PID-SYSTEM-RANDOM`. A
/// similar name, such as `.embody-notes`, can be that of a file with mail.
pub(crate) fn is_next_to_mailbox(name: &OsStr) -> bool {
    let mut parts = name.as_bytes().rsplitn(4, |&byte| byte == b'-');
    let mut is = |holds: fn(&u8) -> bool| {
        parts
            .next()
            .is_some_and(|part| !part.is_empty() && part.iter().all(holds))
    };
    is(u8::is_ascii_alphanumeric)
        && is(u8::is_ascii_hexdigit)
        && is(u8::is_ascii_digit)
        && parts
            .next()
            .is_some_and(|start| start.starts_with(b".embody-"))
}

/// Returns whether the directory at `path` is a temporary one of embody, or the directory of a run that can be continued. A
/// directory with the name of the latter can contain mail, so it must also contain the tag of embody, or nothing.
pub(crate) fn is_own_directory(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let bytes = name.as_bytes();
    let is_of_run = || {
        layout::is_cache(path)
            || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
    };
    is_next_to_mailbox(name)
        || bytes.starts_with(b".embody-merge-")
        || bytes.ends_with(OF_RUN.as_bytes()) && is_of_run()
}

/// Returns the boot id and the pid namespace. They distinguish machines and containers with the same host name, and
/// within them a process id is unique. Returns `None` if the system does not provide them.
pub(crate) fn system() -> Option<String> {
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot()?, namespace.to_str()?))
}

/// Returns the boot id, which changes with each start of the system. Returns `None` if the system does not provide it.
pub(crate) fn boot() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(boot.trim().to_owned())
}

/// Returns the start time of a process, in ticks since the boot. A process id may be used again by a later process, and
/// the start time distinguishes the two.
pub(crate) fn started(pid: u32) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    field_of_stat(&stat, 22).map(str::to_owned)
}

/// Returns the field with this `number` (3 or greater) of /proc/PID/stat, as counted in proc_pid_stat(5).
pub(crate) fn field_of_stat(stat: &[u8], number: usize) -> Option<&str> {
    // The second field is the name of the program in parentheses. It may contain spaces and parentheses, so the fields
    // after it are counted from the last `)`.
    let behind = stat.rsplit(|&b| b == b')').next()?;
    let field = behind.split(|&b| b == b' ').nth(number.checked_sub(2)?)?;
    std::str::from_utf8(field).ok()
}

/// Removes temporary files of processes of this system that no longer exist, and files that were not changed for a day
/// (such as those from before a reboot).
pub(crate) fn sweep(folder: &Path) {
    sweep_as(folder, system().is_some());
}

/// Removes temporary files. `is_told_apart` is whether file names show which system created a file (on Linux with
/// /proc). If it is false, a process id that does not exist here may belong to another machine that shares the
/// directory, so only the age of a file counts.
fn sweep_as(folder: &Path, is_told_apart: bool) {
    const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);
    let (prefix, here) = (our_prefix(), our_system());
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.as_bytes().strip_prefix(prefix.as_bytes()) else {
            continue;
        };
        let mut fields = rest.split(|&b| b == b'-');
        let digits = fields.next().unwrap_or_default();
        let abandoned = if is_told_apart && fields.next() == Some(here.as_bytes()) {
            is_gone(digits)
        } else {
            let modified = entry.metadata().and_then(|found| found.modified());
            let age = modified.ok().and_then(|at| at.elapsed().ok());
            age.is_some_and(|age| age > ABANDONED)
        };
        if abandoned {
            // Best effort: a file that is left does no harm. The directory of another user is not removed. A link is
            // removed, but not its target.
            let _ = match entry.metadata() {
                Ok(found) if found.is_dir() && !platform::is_ours(&found) => Ok(()),
                Ok(found) if found.is_dir() => fs::remove_dir_all(entry.path()),
                _ => fs::remove_file(entry.path()),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_file_next_to_a_mailbox_is_told_from_other_files_by_its_name() {
        let made = temporary_in(std::env::temp_dir().as_path()).expect("a file");
        let name = made.path().file_name().expect("a name");
        assert!(is_next_to_mailbox(name), "{}", name.display());
        for (name, expected) in [
            (".embody-mail-2.example-77-00c0ffee-aB3xY9", true),
            (".embody--77-00c0ffee-aB3xY9", true),
            (".embody-notes", false),
            (".embody-host-x-00c0ffee-aB3xY9", false),
            (".embody-host-77-00c0ffee-", false),
            ("embody-host-77-00c0ffee-aB3xY9", false),
            ("x.embody-resume", false),
        ] {
            assert_eq!(is_next_to_mailbox(OsStr::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn temporary_folders_of_ended_runs_are_removed_without_following_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &OsStr| folder.path().join(name);
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let gone = child.id();
        child.wait().expect("it ends");
        let named = |process: u32| {
            let mut name = our_prefix();
            name.push(format!("{process}-{}-x", our_system()));
            name
        };
        fs::create_dir(at("kept".as_ref())).expect("a folder");
        fs::write(folder.path().join("kept/mail"), "mail").expect("a file");
        for process in [gone, std::process::id()] {
            let made = at(&named(process));
            fs::create_dir_all(made.join("Work/cur")).expect("folders");
            fs::write(made.join("Work/cur/1"), "mail").expect("a file");
            std::os::unix::fs::symlink("../kept", made.join("link")).expect("a link");
        }
        let mut others = named(gone);
        others.push("others");
        fs::create_dir(at(&others)).expect("a folder");
        let is_others = std::os::unix::fs::chown(at(&others), Some(1), None).is_ok();
        let ours = temporary_folder_in(folder.path()).expect("a folder");
        sweep_as(folder.path(), false);
        assert!(at(&named(gone)).exists());
        sweep(folder.path());
        assert!(!at(&named(gone)).exists());
        assert_eq!(at(&others).exists(), is_others);
        assert!(at(&named(std::process::id())).join("Work/cur/1").exists());
        assert!(ours.path().is_dir() && folder.path().join("kept/mail").exists());
    }
}
