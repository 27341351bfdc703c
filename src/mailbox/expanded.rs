//! Compressed mailboxes: decompressed on a thread of their own, into what [`growing`](super::growing) keeps.
//!
//! A compressed mbox is locked from before it is read until it is replaced, whatever the transform waits for: nobody
//! delivers into one.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::archive::{FromStart, Skipped};
use super::compressed::{Damage, Decoder, Limits, MAGIC, Method};
use super::failure::cannot_read;
use super::growing::Growing;
use super::{Options, Stop};
use crate::error::Error;

/// How a file is expanded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Expansion {
    pub(super) method: Method,
    pub(super) limits: Limits,
}

impl Expansion {
    pub(super) fn new(method: Method, options: &Options) -> Self {
        let limits = Self::limits(options);
        Self { method, limits }
    }

    pub(super) fn limits(options: &Options) -> Limits {
        Limits {
            expanded: options.max_expanded,
        }
    }

    fn decoder(self, file: &Arc<File>) -> Decoder<FromStart> {
        Decoder::new(self.method, FromStart(Arc::clone(file), 0), self.limits)
    }

    /// Hands over the first `length` bytes of what is in `file`.
    pub(super) fn start_of(
        self,
        file: &Arc<File>,
        length: u64,
        path: &Path,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut decoder = self.decoder(file);
        let mut buffer = vec![0; 256 << 10];
        let mut left = length;
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX);
            let wanted = wanted.min(buffer.len());
            let read = decoder
                .read(&mut buffer[..wanted])
                .map_err(cannot_read(path))?;
            if read == 0 {
                return Err(Error::Changed { path: path.into() });
            }
            take(&buffer[..read])?;
            left -= read as u64;
        }
        Ok(())
    }

    /// What is in `file`, unless it is more than `most` bytes.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn content(self, file: &Arc<File>, most: usize) -> io::Result<Content> {
        let mut content = Vec::new();
        let most = most as u64;
        let read = self.decoder(file).take(most + 1).read_to_end(&mut content);
        match read {
            Ok(_) if content.len() as u64 > most => Ok(Content::TooLarge),
            Ok(_) => Ok(Content::Whole(content)),
            Err(error) => error.downcast::<Damage>().map(Content::Damaged),
        }
    }
}

/// What came of decompressing one message.
pub(super) enum Content {
    Whole(Vec<u8>),
    TooLarge,
    Damaged(Damage),
}

/// How a file is compressed.
///
/// # Errors
/// The system's.
pub(super) fn method_of(file: &File) -> io::Result<Option<Method>> {
    let mut start = [0; MAGIC];
    let mut filled = 0;
    while filled < MAGIC {
        match file.read_at(&mut start[filled..], filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Method::of_start(&start[..filled]))
}

/// A compressed file, and what is in it as far as it is there. Its thread ends with it.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(super) file: Arc<File>,
    pub(super) growing: Arc<Growing>,
    /// Members of an archive that are no mail.
    pub(super) skipped: Skipped,
    filler: Option<JoinHandle<()>>,
}

impl Expanded {
    /// Starts.
    ///
    /// # Errors
    /// About the folder for temporary files.
    pub(super) fn start(
        file: Arc<File>,
        expansion: Expansion,
        name: &Path,
        stop: &Stop,
    ) -> Result<Self, Error> {
        let decoder = expansion.decoder(&file);
        Self::of(file, decoder, Skipped::default(), name, stop)
    }

    /// The same with what `reader` makes of the file.
    ///
    /// # Errors
    /// About the folder for temporary files.
    pub(super) fn of(
        file: Arc<File>,
        reader: impl Read + Send + 'static,
        skipped: Skipped,
        name: &Path,
        stop: &Stop,
    ) -> Result<Self, Error> {
        let growing = Arc::new(Growing::new(stop)?);
        let (filling, name) = (Arc::clone(&growing), name.to_owned());
        let filler = std::thread::spawn(move || filling.fill(Ok(reader), &name));
        Ok(Self {
            file,
            growing,
            skipped,
            filler: Some(filler),
        })
    }
}

impl Drop for Expanded {
    fn drop(&mut self) {
        self.growing.abandon();
        if let Some(filler) = self.filler.take() {
            // A panic there ended the stream for who reads it.
            let _ = filler.join();
        }
    }
}
