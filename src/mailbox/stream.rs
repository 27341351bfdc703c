//! Mail that comes from, or goes to, an open file: standard input, kept in a temporary file, and
//! standard output.
//!
//! What was written to an open file stays there when the run fails: only a status says that it is
//! not whole.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use memchr::memchr;

use super::convert::Job;
use super::find::{self, Kind, NotMail};
use super::replace::{self, Identity};
use super::separator::{Next, next_separator};
use super::sink::{Bytes, Sink};
use super::window::{Pool, Section, Windows};
use super::{
    Effect, Format, Options, Progress, Stop, Summary, Transform, cannot_read, cannot_write,
};
use crate::error::Error;

/// Bytes looked at to tell what a stream is, and the window in which one is searched.
const WINDOW: usize = 1 << 20;

/// Where a stream goes.
#[derive(Debug)]
pub enum Output<'a> {
    /// Nowhere: only the reports count.
    Nowhere,
    /// A new file of this name.
    Path(&'a Path),
    /// An open file.
    Open(File),
}

/// Converts the mbox or message in `source`, which reports call `name`, to `output`.
///
/// With `named` the file must still be there under its name, as it was, at the end.
///
/// # Errors
/// As [`convert_to`](super::convert_to).
#[allow(clippy::too_many_arguments)] // those of `convert_to`, and where from
pub fn convert_open(
    source: &File,
    name: &Path,
    named: bool,
    output: Output<'_>,
    options: &Options,
    transform: &dyn Transform,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Summary, Error> {
    let kind = kind_of_open(source, name, options.format)?.map_err(|other| other.error(name))?;
    let metadata = source.metadata().map_err(cannot_read(name))?;
    let before = Identity::of(&metadata);
    let job = Job {
        path: name,
        options,
        transform,
        progress,
        stop,
    };
    progress.begin(name);
    let mut sink = match (output, options.effect) {
        (_, Effect::DryRun) | (Output::Nowhere, _) => Sink::Nowhere,
        (Output::Path(path), _) => {
            replace::sweep(replace::folder_of(path));
            Sink::to(path)?
        }
        (Output::Open(file), _) => {
            let name_of_output = Path::new("standard output");
            let written = file.metadata().map_err(cannot_write(name_of_output))?;
            if written.is_file() && replace::is_same(&metadata, &written) {
                // It would be read as fast as it grows.
                return Err(Error::Usage(format!(
                    "{}: standard output is the same file; name a new one",
                    name.display()
                )));
            }
            Sink::Directly(name_of_output.into(), BufWriter::new(file))
        }
    };
    let summary = if kind == Kind::Mbox {
        let mut summary = Summary::default();
        let quoting = job.quoting(source)?;
        let whole = Section::whole(source);
        job.mbox(whole, quoting, &mut summary, &mut sink, &mut |_| {})?;
        summary
    } else {
        let (summary, content, new) = job.message(source, &before)?;
        match content {
            Some(content) => sink.put(new.as_deref().unwrap_or(&content), Bytes::New)?,
            None => sink.put_start_of(source, before.length())?,
        }
        summary
    };
    if named {
        before.check(name)?;
    }
    sink.appear(source)?;
    progress.done(&summary);
    Ok(summary)
}

/// What an open file is, seen from its start; it is read from its start afterwards.
///
/// # Errors
/// [`Error::Read`].
pub fn kind_of_open(
    mut source: &File,
    name: &Path,
    format: Format,
) -> Result<Result<Kind, NotMail>, Error> {
    let mut start = Vec::new();
    source
        .seek(SeekFrom::Start(0))
        .and_then(|_| source.take(find::LOOKED_AT).read_to_end(&mut start))
        .and_then(|_| source.seek(SeekFrom::Start(0)))
        .map_err(cannot_read(name))?;
    Ok(find::kind_of(&start, format))
}

/// Keeps what `reader` gives in a file without a name, until it ends or `stop` is requested.
///
/// # Errors
/// [`Error::Read`] about `name`; [`Error::Write`] if there is no room; [`Error::Interrupted`].
pub fn spooled(mut reader: impl io::Read, name: &Path, stop: &Stop) -> Result<File, Error> {
    let folder = std::env::temp_dir();
    let mut file = tempfile::tempfile_in(&folder).map_err(cannot_write(&folder))?;
    let mut buffer = vec![0; WINDOW >> 2];
    loop {
        stop.check()?;
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => file
                .write_all(buffer.get(..read).unwrap_or_default())
                .map_err(cannot_write(&folder))?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(cannot_read(name)(error)),
        }
    }
    file.seek(SeekFrom::Start(0))
        .map_err(cannot_write(&folder))?;
    Ok(file)
}

/// Where a second message starts in `bytes`, if they start like an mbox.
#[must_use]
pub fn second_message(bytes: &[u8]) -> Option<usize> {
    let blanks = bytes
        .iter()
        .take_while(|&&b| b == b'\n' || b == b'\r')
        .count();
    let first = bytes.get(blanks..)?;
    if !first.starts_with(b"From ") {
        return None;
    }
    let from = blanks + memchr(b'\n', first)?;
    match next_separator(bytes, from, true).0 {
        Next::At(second) => Some(second),
        Next::NotHere | Next::Unsure => None,
    }
}

/// Whether a file starts like an mbox and holds a second message.
///
/// # Errors
/// What reading it says.
pub fn has_second_message(file: &File) -> io::Result<bool> {
    let mut windows = Windows::new(file, Pool::default(), WINDOW, WINDOW);
    let mut messages = 0;
    while let Some(chunk) = windows.next_chunk()? {
        messages += chunk.frames.len() as u64 + chunk.oversized;
        if messages > 1 {
            return Ok(true);
        }
    }
    Ok(false)
}
