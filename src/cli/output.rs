//! Standard output, and whether there is one.

use std::fs::File;
use std::io;

use crate::error::Error;

/// Standard output as a file, so that every failed write is seen: the standard library takes a
/// closed descriptor for success.
#[cfg(unix)]
pub(super) fn open() -> Result<File, Error> {
    use std::os::fd::AsFd as _;

    let output = io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .map_err(write_error)?;
    if is_stand_in(&output) {
        return Err(write_error(io::Error::other("it is closed")));
    }
    Ok(File::from(output))
}

/// Whether the descriptor is what the standard library opened in place of a closed one: the null
/// device for reading *and* writing. `1<>/dev/null` and Python's `subprocess.DEVNULL` cannot be told
/// from it and are refused as well: that delays mail, where the other mistake would lose it.
#[cfg(unix)]
fn is_stand_in(output: &std::os::fd::OwnedFd) -> bool {
    use rustix::fs::{OFlags, fcntl_getfl, fstat, stat};

    let both_ways = fcntl_getfl(output).is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDWR);
    both_ways
        && match (fstat(output), stat("/dev/null")) {
            (Ok(output), Ok(null)) => {
                output.st_rdev == null.st_rdev && output.st_mode == null.st_mode
            }
            _ => false,
        }
}

#[cfg(not(unix))]
pub(super) fn open() -> Result<io::Stdout, Error> {
    Ok(io::stdout())
}

/// A failed write to standard output.
pub(super) fn write_error(source: io::Error) -> Error {
    Error::Write {
        what: "standard output".to_owned(),
        source,
    }
}
