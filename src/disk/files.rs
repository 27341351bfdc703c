//! Files and folders, each opened in the folder around it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;

pub const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

pub fn open_folder(at: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(at, name, FOLDER, Mode::empty())?)
}

pub fn open_file(at: impl AsFd, name: &str) -> io::Result<File> {
    // Opening some devices does something.
    regular(rustix::fs::statat(&at, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode as RawMode)?;
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::openat(at, name, flags, Mode::empty())?;
    regular(rustix::fs::fstat(&file)?.st_mode as RawMode)?;
    Ok(File::from(file))
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
