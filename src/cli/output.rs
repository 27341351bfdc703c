//! Standard output and standard input, and whether there are any.

use std::fs::File;
use std::io::{self, Write as _};

use crate::error::Error;
use crate::platform;

/// A file shows every failed write; the standard library takes a closed descriptor for success.
pub(super) fn open() -> Result<File, Error> {
    platform::stream(io::stdout()).map_err(write_error)
}

/// The standard library takes an input that is closed, or open for writing only, for an empty message.
pub(super) fn input() -> Result<File, Error> {
    platform::stream(io::stdin()).map_err(read_error)
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
