//! Output that is written directly to a stream, instead of to a temporary file that is renamed when it is complete.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use crate::error::Error;
use crate::platform::Stream;

/// Name of an open output file in error messages. The caller opened the file, so its path is unknown.
pub(crate) const OPEN_OUTPUT: &str = "standard output";

/// Standard output, a device or a pipe. If the run fails, the bytes that were written stay.
pub(crate) struct OutputStream {
    /// Name of the stream in errors.
    name: String,
    writer: BufWriter<Stream>,
}

impl OutputStream {
    pub(crate) fn of_open(file: File) -> Self {
        Self::named(OPEN_OUTPUT.to_owned(), file)
    }

    pub(crate) fn of_device(path: &Path, device: File) -> Self {
        Self::named(path.display().to_string(), device)
    }

    fn named(name: String, file: File) -> Self {
        let writer = BufWriter::new(file.into());
        Self { name, writer }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.writer.write_all(bytes);
        written.map_err(Error::cannot_write(&self.name))
    }

    pub(crate) fn finish(mut self) -> Result<(), Error> {
        let flushed = self.writer.flush();
        flushed.map_err(Error::cannot_write(&self.name))
    }
}
