//! Opens files and directories relative to an open directory, so that another process cannot redirect a path in between.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;

pub(crate) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a directory by its path. If the path is a symbolic link, its target is opened.
pub(crate) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    let flags = FOLDER.difference(OFlags::NOFOLLOW);
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

pub(crate) fn open_folder(at: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(at, name, FOLDER, Mode::empty())?)
}

pub(crate) fn open_file(at: impl AsFd, name: &str) -> io::Result<File> {
    // Only regular files are opened. The type is checked before opening, because opening some devices has side effects,
    // and again afterwards, because the file may have been replaced in between.
    regular(rustix::fs::statat(&at, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode as RawMode)?;
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::openat(at, name, flags, Mode::empty())?;
    regular(rustix::fs::fstat(&file)?.st_mode as RawMode)?;
    Ok(File::from(file))
}

/// Opens a regular file for writing. `more` contains additional flags, for example to create the file or to append to it.
pub(crate) fn open_to_write(
    at: impl AsFd,
    name: &str,
    more: OFlags,
    mode: Mode,
) -> io::Result<File> {
    let flags = OFlags::RDWR
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC
        // Without this flag, opening would block if an attacker put a named pipe under this name.
        | OFlags::NONBLOCK
        | OFlags::NOCTTY;
    let file = rustix::fs::openat(at, name, flags | more, mode)?;
    regular(rustix::fs::fstat(&file)?.st_mode as RawMode)?;
    Ok(File::from(file))
}

/// Returns the names in a directory, sorted. In a name that is not UTF-8, the invalid bytes are replaced. embody
/// creates only names in ASCII, so the changed name cannot match one of them.
pub(crate) fn names(folder: impl AsFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn regular(mode: RawMode) -> io::Result<()> {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Ok(()),
        FileType::Symlink => Err(Errno::LOOP.into()),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        )),
    }
}
