//! Where an mbox goes: to a new file, to a device, to the place of the old one, or nowhere.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Stop;
use super::compressed::Method;
use super::expanded::Expansion;
use super::failure::cannot_write;
use super::replace::{Beside, check_replaceable, start_by, start_of};
use crate::error::Error;

/// Where a result is to go.
#[cfg_attr(not(feature = "cli"), allow(dead_code))] // who names an open file
#[derive(Debug)]
pub(crate) enum Output<'a> {
    /// Nowhere: only the reports count.
    Nowhere,
    /// A new file of this name.
    Path(&'a Path),
    /// An open file.
    Open(File),
}

/// Whether bytes of an mbox are the source's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bytes {
    Same,
    New,
}

/// Where an mbox goes.
pub(super) enum Sink<'a> {
    Nowhere,
    /// A file that will appear.
    Beside(Beside),
    /// A device or pipe.
    Directly(PathBuf, BufWriter<File>),
    InPlace(InPlace<'a>),
}

/// Nothing is written until something changed: most runs over a converted mailbox only read.
pub(super) struct InPlace<'a> {
    source: Arc<File>,
    target: &'a Path,
    backup: Option<&'a OsStr>,
    /// Bytes of the source that were passed over while nothing was written.
    unchanged: u64,
    beside: Option<Beside>,
    /// How the source is compressed.
    expansion: Option<Expansion>,
}

impl<'a> Sink<'a> {
    /// For what is to take the place of `source`, which has the name `target`.
    pub(super) fn in_place(
        source: Arc<File>,
        expansion: Option<Expansion>,
        target: &'a Path,
        backup: Option<&'a OsStr>,
    ) -> Self {
        Self::InPlace(InPlace {
            source,
            expansion,
            target,
            backup,
            unchanged: 0,
            beside: None,
        })
    }

    /// What was written to take the source's place, if anything changed.
    pub(super) fn into_beside(self) -> Option<Beside> {
        match self {
            Self::InPlace(place) => place.beside,
            _ => None,
        }
    }

    /// A new file of this name, compressed so.
    pub(super) fn to(target: &Path, method: Option<Method>) -> Result<Self, Error> {
        match fs::metadata(target) {
            Ok(found) if !found.is_file() && !found.is_dir() => {
                let device = File::options().write(true).open(target);
                let device = device.map_err(cannot_write(target))?;
                Ok(Self::Directly(target.into(), BufWriter::new(device)))
            }
            Ok(_) => Err(cannot_write(target)(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "it exists already; remove it or name another",
            ))),
            Err(_) => Ok(Self::Beside(Beside::start(target, method)?)),
        }
    }

    pub(super) fn put(&mut self, bytes: &[u8], kind: Bytes) -> Result<(), Error> {
        match self {
            Self::Nowhere => Ok(()),
            Self::Beside(beside) => beside.write(bytes),
            Self::Directly(path, writer) => writer.write_all(bytes).map_err(cannot_write(path)),
            Self::InPlace(place) => {
                if place.beside.is_none() {
                    if kind == Bytes::Same {
                        place.unchanged += bytes.len() as u64;
                        return Ok(());
                    }
                    check_replaceable(place.target, place.backup)?;
                    let method = place.expansion.map(|it| it.method);
                    let mut beside = Beside::start(place.target, method)?;
                    let (length, name) = (place.unchanged, place.target);
                    let write = &mut |bytes: &[u8]| beside.write(bytes);
                    match place.expansion {
                        None => start_of(&place.source, length, name, write)?,
                        Some(expansion) => {
                            let mut plain = expansion.decoder(&place.source, &Stop::default());
                            start_by(|into, _| plain.read(into), length, name, write)?;
                        }
                    }
                    place.beside = Some(beside);
                }
                place
                    .beside
                    .as_mut()
                    .map_or(Ok(()), |beside| beside.write(bytes))
            }
        }
    }

    /// Whether what was put can be taken back: not from a pipe, nor from among what is compressed.
    pub(super) fn goes_back(&self) -> bool {
        match self {
            Self::Nowhere => true,
            Self::Beside(beside) => beside.goes_back(),
            Self::Directly(..) => false,
            Self::InPlace(place) => place.expansion.is_none(),
        }
    }

    /// How many bytes stand before what is put next, in a sink that [goes back](Self::goes_back).
    pub(super) fn length(&self) -> Result<u64, Error> {
        match self {
            Self::Beside(beside) => beside.written(),
            Self::InPlace(place) => match &place.beside {
                Some(beside) => beside.written(),
                None => Ok(place.unchanged),
            },
            Self::Nowhere | Self::Directly(..) => Ok(0),
        }
    }

    /// Takes back what was put behind so many bytes, of which all was the source's own.
    pub(super) fn go_back(&mut self, length: u64) -> Result<(), Error> {
        match self {
            Self::Beside(beside) => beside.go_back(length),
            Self::InPlace(place) => match &mut place.beside {
                Some(beside) => beside.go_back(length),
                None => {
                    place.unchanged = length;
                    Ok(())
                }
            },
            Self::Nowhere | Self::Directly(..) => Ok(()),
        }
    }

    /// The first `length` bytes of the mailbox `name`, which is not looked into.
    pub(super) fn put_start_of(
        &mut self,
        source: &File,
        length: u64,
        name: &Path,
    ) -> Result<(), Error> {
        match self {
            Self::Nowhere | Self::InPlace(_) => Ok(()),
            Self::Beside(_) | Self::Directly(..) => {
                let put = &mut |bytes: &[u8]| self.put(bytes, Bytes::Same);
                start_of(source, length, name, put)
            }
        }
    }

    /// All is written: the file gets its name.
    pub(super) fn appear(self, like: &File) -> Result<(), Error> {
        match self {
            Self::Nowhere | Self::InPlace(_) => Ok(()),
            Self::Directly(path, mut writer) => writer.flush().map_err(cannot_write(&path)),
            Self::Beside(beside) => beside.finished(like)?.appear(),
        }
    }
}
