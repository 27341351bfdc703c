//! Standard output and standard input, and whether there are any.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fstat, stat};

use crate::error::Error;

/// Standard output as a file, so that every failed write is seen: the standard library takes a
/// closed descriptor for success.
pub(super) fn open() -> Result<File, Error> {
    let output = io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .map_err(write_error)?;
    if is_stand_in(&output) {
        return Err(write_error(io::Error::other("it is closed")));
    }
    Ok(File::from(output))
}

/// Standard input as a file, for the same reason: the standard library takes one that is closed, or
/// open for writing only, for an empty message.
pub(super) fn input() -> Result<File, Error> {
    let input = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(read_error)?;
    if is_stand_in(&input) {
        return Err(read_error(io::Error::other("it is closed")));
    }
    Ok(File::from(input))
}

/// Whether the descriptor is what the standard library opened in place of a closed one: the null
/// device for reading *and* writing. `1<>/dev/null`, `0<>/dev/null` and Python's `subprocess.DEVNULL` cannot be told
/// from it and are refused as well: that delays mail, where the other mistake would lose it.
fn is_stand_in(descriptor: &OwnedFd) -> bool {
    let both_ways =
        fcntl_getfl(descriptor).is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDWR);
    both_ways
        && match (fstat(descriptor), stat("/dev/null")) {
            (Ok(found), Ok(null)) => found.st_rdev == null.st_rdev && found.st_mode == null.st_mode,
            _ => false,
        }
}

pub(super) fn print(text: &[u8]) -> Result<(), Error> {
    open()?.write_all(text).map_err(write_error)
}

pub(super) fn read_error(source: io::Error) -> Error {
    Error::cannot_read("standard input")(source)
}

pub(super) fn write_error(source: io::Error) -> Error {
    Error::cannot_write("standard output")(source)
}
