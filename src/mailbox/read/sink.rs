use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::mailbox::compressed::Method;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::place::delivery::Delivery;
use crate::mailbox::place::journal::{JournalRecord, ResultJournal};
use crate::mailbox::place::output_stream::OutputStream;
use crate::mailbox::place::replace::{AtomicWriter, check_replaceable, device, start_of};
use crate::mailbox::temporary::folder_of;
use crate::platform::NewFile;

#[cfg_attr(not(feature = "cli"), allow(dead_code))] // who names an open file
pub(crate) enum Output<'a> {
    Nowhere,
    Path(&'a Path),
    /// A file in a result directory. If the source is an incomplete message of Apple Mail (`N.partial.emlx`) and
    /// becomes complete, the file gets the name `N.emlx` instead.
    InFolder(&'a Path),
    Open(File),
    /// A mailbox of another format.
    Delivery(&'a mut Delivery),
}

pub(crate) enum Sink<'a> {
    Nowhere,
    Beside(AtomicWriter),
    Directly(OutputStream),
    /// A file that is replaced in place. The new file is created only when a message changes, because most runs over a
    /// converted mailbox change no message.
    InPlace {
        /// The uncompressed content of the file.
        source: Arc<File>,
        method: Option<Method>,
        target: &'a Path,
        backup: Option<&'a OsStr>,
        unchanged: u64,
    },
}

impl<'a> Sink<'a> {
    pub(crate) fn to(
        target: &Path,
        method: Option<Method>,
        journal: Option<&ResultJournal>,
    ) -> Result<Self, Error> {
        Ok(match device(target, journal)? {
            Some(device) => Self::Directly(OutputStream::of_device(target, device)),
            None => Self::Beside(AtomicWriter::start(folder_of(target), target, method)?),
        })
    }

    /// Copies unchanged bytes of the source. In place, they are only counted until a message changes.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let Self::InPlace { unchanged, .. } = self {
            *unchanged += bytes.len() as u64;
            return Ok(());
        }
        self.put(bytes)
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let Self::InPlace {
            source,
            method,
            target,
            backup,
            unchanged,
        } = self
        {
            check_replaceable(target, *backup)?;
            let mut beside = AtomicWriter::replacing(target, *method)?;
            start_of(source, *unchanged, target, &mut |bytes| beside.write(bytes))?;
            *self = Self::Beside(beside);
        }
        match self {
            Self::Nowhere | Self::InPlace { .. } => Ok(()),
            Self::Beside(beside) => beside.write(bytes),
            Self::Directly(stream) => stream.write(bytes),
        }
    }

    /// Renames the file to its final name. A file with a single message keeps the time of the source, which is the time
    /// of arrival. A mailbox gets the current time.
    pub(crate) fn appear(
        self,
        like: Option<&File>,
        kind: StartKind,
        record: Option<&JournalRecord<'_>>,
    ) -> Result<(), Error> {
        match self {
            Self::Nowhere | Self::InPlace { .. } => Ok(()),
            Self::Directly(stream) => stream.finish(),
            Self::Beside(beside) => {
                let finished = match like {
                    Some(like) if kind.is_message() => beside.finished(like, NewFile::Copy)?,
                    Some(like) => beside.finished_now(like)?,
                    None => beside.finished_as_new()?,
                };
                finished.appear_as(record, false)
            }
        }
    }
}
