//! Mail that comes from, or goes to, an open file: standard input, which [`growing`](super::growing) makes a
//! file of, and standard output.
//!
//! What was written to an open file stays there when the run fails: only a status says that it is
//! not whole.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use memchr::memchr;

use super::convert::{Job, SAMPLE};
use super::failure::{cannot_read, cannot_write};
use super::find::{self, Kind, NotMail};
use super::growing::Growing;
use super::replace::{self, Identity};
use super::separator::{Next, next_separator};
use super::sink::{Bytes, Sink};
use super::temporary;
use super::window::{Pool, Section, Windows};
use super::{Effect, Format, Options, Progress, Stop, Summary, Transform};
use crate::error::Error;

/// Bytes looked at to tell what a stream is, and the window in which one is searched.
const WINDOW: usize = 1 << 20;

/// What mail is read from.
#[derive(Debug)]
pub(crate) enum Opened {
    /// A file with a name: it must still be there under it, as it was, at the end.
    File(File),
    /// What comes in a stream, is not all there yet, and can be read once.
    Growing(Arc<Growing>),
}

impl Opened {
    fn file(&self) -> &File {
        match self {
            Self::File(file) => file,
            Self::Growing(growing) => growing.file(),
        }
    }

    /// The file, once all of it is there.
    ///
    /// # Errors
    /// What went wrong with the stream.
    pub(crate) fn whole(&self) -> Result<&File, Error> {
        self.wait_for(u64::MAX)?;
        Ok(self.file())
    }

    /// Whether nothing is in it.
    ///
    /// # Errors
    /// What went wrong with the stream.
    pub(crate) fn is_empty(&self) -> Result<bool, Error> {
        self.wait_for(1)?;
        let metadata = self.file().metadata();
        Ok(metadata.is_ok_and(|data| data.len() == 0))
    }

    /// Waits for so many bytes, or the end.
    fn wait_for(&self, length: u64) -> Result<(), Error> {
        if let Self::Growing(growing) = self {
            growing.wait_for(length)?;
        }
        Ok(())
    }

    fn section(&self) -> Section<'_> {
        let growing = match self {
            Self::File(_) => None,
            Self::Growing(growing) => Some(&**growing),
        };
        Section {
            growing,
            ..Section::whole(self.file())
        }
    }
}

/// Where a stream goes.
#[derive(Debug)]
pub(crate) enum Output<'a> {
    /// Nowhere: only the reports count.
    Nowhere,
    /// A new file of this name.
    Path(&'a Path),
    /// An open file.
    Open(File),
}

/// Converts the mbox or message in `source`, which reports call `name`, to `output`.
///
/// # Errors
/// As [`convert_to`](super::convert_to).
#[allow(clippy::too_many_arguments)] // those of `convert_to`, and where from
pub(crate) fn convert_open(
    source: &Opened,
    name: &Path,
    output: Output<'_>,
    options: &Options,
    transform: &dyn Transform,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Summary, Error> {
    let kind = kind_of_open(source, name, options.format)?.map_err(|other| other.error(name))?;
    match kind {
        Kind::Mbox => source.wait_for(SAMPLE as u64)?,
        _ => source.wait_for(u64::MAX)?,
    }
    let opened = source;
    let source = opened.file();
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
            temporary::sweep(temporary::folder_of(path));
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
        job.mbox(
            opened.section(),
            quoting,
            &mut summary,
            &mut sink,
            &mut |_| {},
        )?;
        summary
    } else {
        let (summary, content, new) = job.message(source, &before)?;
        match content {
            Some(content) => sink.put(new.as_deref().unwrap_or(&content), Bytes::New)?,
            None => sink.put_start_of(source, before.length())?,
        }
        summary
    };
    if let Opened::File(_) = opened {
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
pub(crate) fn kind_of_open(
    source: &Opened,
    name: &Path,
    format: Format,
) -> Result<Result<Kind, NotMail>, Error> {
    source.wait_for(find::LOOKED_AT)?;
    let mut source = source.file();
    let mut start = Vec::new();
    source
        .seek(SeekFrom::Start(0))
        .and_then(|_| source.take(find::LOOKED_AT).read_to_end(&mut start))
        .and_then(|_| source.seek(SeekFrom::Start(0)))
        .map_err(cannot_read(name))?;
    Ok(find::kind_of(&start, format))
}

/// Where a second message starts in `bytes`, if they start like an mbox.
#[must_use]
pub(crate) fn second_message(bytes: &[u8]) -> Option<usize> {
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
pub(crate) fn has_second_message(file: &File) -> io::Result<bool> {
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
