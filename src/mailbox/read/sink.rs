//! Where an mbox goes: to a new file, to a device, to the place of the old one, or nowhere.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::mailbox::Observer;
use crate::mailbox::compressed::Method;
use crate::mailbox::failure::cannot_write;
use crate::mailbox::find::Kind;
use crate::mailbox::place::delivery::Delivery;
use crate::mailbox::place::replace::{Beside, check_replaceable, device, start_of};

/// Where a result is to go.
#[cfg_attr(not(feature = "cli"), allow(dead_code))] // who names an open file
pub(crate) enum Output<'a> {
    /// Nowhere: only the reports count.
    Nowhere,
    /// A new file of this name.
    Path(&'a Path),
    /// The same, in a folder of results; a partial message that becomes whole gets the name of a whole one.
    InFolder(&'a Path),
    /// An open file.
    Open(File),
    /// Mailboxes of another form.
    Delivery(&'a mut Delivery),
}

/// Whether bytes of an mbox are the source's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bytes {
    Same,
    New,
}

/// Where an mbox goes.
pub(crate) enum Sink<'a> {
    Nowhere,
    /// A file that will appear.
    Beside(Beside),
    /// A device or pipe.
    Directly(PathBuf, BufWriter<File>),
    InPlace(InPlace<'a>),
    /// Mailboxes of another form, which take messages and no bytes.
    Delivery(&'a mut Delivery),
}

/// Nothing is written until something changed: most runs over a converted mailbox only read.
pub(crate) struct InPlace<'a> {
    /// The mail, uncompressed.
    source: Arc<File>,
    target: &'a Path,
    backup: Option<&'a OsStr>,
    /// Bytes of the source that were passed over while nothing was written.
    unchanged: u64,
    beside: Option<Beside>,
    /// How the result is compressed.
    method: Option<Method>,
}

impl<'a> Sink<'a> {
    /// For what is to take the place of `target`, whose mail is in `source`, compressed so.
    pub(crate) fn in_place(
        source: Arc<File>,
        method: Option<Method>,
        target: &'a Path,
        backup: Option<&'a OsStr>,
    ) -> Self {
        Self::InPlace(InPlace {
            source,
            method,
            target,
            backup,
            unchanged: 0,
            beside: None,
        })
    }

    /// What was written to take the source's place, if anything changed.
    pub(crate) fn into_beside(self) -> Option<Beside> {
        match self {
            Self::InPlace(place) => place.beside,
            _ => None,
        }
    }

    /// A new file of this name, compressed so.
    pub(crate) fn to(target: &Path, method: Option<Method>) -> Result<Self, Error> {
        Ok(match device(target)? {
            Some(device) => Self::Directly(target.into(), BufWriter::new(device)),
            None => Self::Beside(Beside::start(target, method)?),
        })
    }

    /// The file gets another name than it was to have.
    pub(crate) fn rename(&mut self, target: PathBuf) {
        if let Self::Beside(beside) = self {
            beside.target = target;
        }
    }

    pub(crate) fn put(&mut self, bytes: &[u8], kind: Bytes) -> Result<(), Error> {
        match self {
            Self::Nowhere | Self::Delivery(_) => Ok(()),
            Self::Beside(beside) => beside.write(bytes),
            Self::Directly(path, writer) => writer.write_all(bytes).map_err(cannot_write(path)),
            Self::InPlace(place) => {
                if place.beside.is_none() {
                    if kind == Bytes::Same {
                        place.unchanged += bytes.len() as u64;
                        return Ok(());
                    }
                    check_replaceable(place.target, place.backup)?;
                    let mut beside = Beside::start(place.target, place.method)?;
                    let write = &mut |bytes: &[u8]| beside.write(bytes);
                    start_of(&place.source, place.unchanged, place.target, write)?;
                    place.beside = Some(beside);
                }
                place
                    .beside
                    .as_mut()
                    .map_or(Ok(()), |beside| beside.write(bytes))
            }
        }
    }

    /// All is written: the file gets its name; it was made of `source`. A message's own file keeps its time, which says when
    /// it came; a mailbox is as old as it is.
    pub(crate) fn appear<S>(
        self,
        like: Option<&File>,
        kind: Kind,
        source: &Path,
        observer: &dyn Observer<S>,
    ) -> Result<(), Error> {
        match self {
            Self::Nowhere | Self::InPlace(_) | Self::Delivery(_) => Ok(()),
            Self::Directly(path, mut writer) => writer.flush().map_err(cannot_write(&path)),
            Self::Beside(beside) => {
                let finished = match like {
                    Some(like) if kind == Kind::Eml => beside.finished(like)?,
                    Some(like) => beside.finished_now(like)?,
                    None => beside.finished_as_new()?,
                };
                finished.appear_of(source, observer)
            }
        }
    }
}
