//! Reads the mails of the index again, from their mailboxes or from a temporary file.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use super::part::{CopyPart, PartDigests, Parts, of_mail};
use super::record::{CopyRecord, MailPlace, MailStorage};
use crate::engine::same::{Digest, identity, plain};
use crate::error::unpoisoned;
use crate::mailbox;
use crate::mime::{PartId, ScanLimits};
use crate::platform::{FileExt as _, OsStrExt as _};

/// Maximum number of mailboxes that are kept open. A mailbox that is open can still be read after the run has replaced its
/// file.
const MOST_OPEN: usize = 64;

/// Number of recently read mails that are kept in memory. One mail can lack parts that are in several others.
const MOST_RECENT: usize = 64;

/// Maximum total size in bytes of the mails in memory. The most recently read mail is always kept, even if it is larger.
const MOST_BYTES: usize = 64 << 20;

/// A mail that was read again, with its parts. Its plain form and the parts are computed when they are first needed.
#[derive(Default)]
pub(super) struct StoredMail {
    pub(super) bytes: Vec<u8>,
    parts: OnceLock<Parts>,
    plain: OnceLock<(Vec<u8>, Parts)>,
}

impl StoredMail {
    fn of(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            ..Self::default()
        }
    }

    /// Returns the approximate size of the mail in memory, in bytes.
    fn weight(&self) -> usize {
        let plain = self.plain.get().map_or(0, |(plain, _)| plain.len());
        self.bytes.len() + plain
    }

    /// Returns the part with this number, counted from 0. A text can be returned as it is, or with LF or CRLF line endings:
    /// `is_wanted` gets the digests of each of these forms, and the first form that it accepts is returned.
    pub(super) fn with_digest(
        &self,
        number: u32,
        limits: &ScanLimits,
        is_wanted: impl Fn(&PartDigests) -> bool,
    ) -> Option<CopyPart> {
        let parts = self.parts.get_or_init(|| Parts::of(&self.bytes, limits));
        parts.with_digest(&self.bytes, number, is_wanted)
    }

    /// Returns the part with this id and digest. The digest is that of the part's content in the plain form of the mail
    /// ([`plain`]): lines end with LF, and the quoting and the fields that mailboxes add are removed. Copies of a mail in
    /// different mailboxes therefore have equal digests.
    pub(super) fn part(&self, part: (PartId, Digest), limits: &ScanLimits) -> Option<CopyPart> {
        let parts = self.parts.get_or_init(|| Parts::of(&self.bytes, limits));
        let (plain, plain_parts) = self.plain.get_or_init(|| {
            let plain = plain(&self.bytes);
            let parts = Parts::of(&plain, limits);
            (plain, parts)
        });
        of_mail((&self.bytes, parts), (plain, plain_parts), part)
    }
}

/// Writes two temporary files: the names of the mailboxes, and the mails that cannot be read again from their mailboxes.
pub(super) struct MailsWriter {
    names: BufWriter<File>,
    names_end: u64,
    spool: BufWriter<File>,
    spool_end: u64,
    /// The mailbox of the last mail, and the position of its name in the file of names. Most mails are in the same mailbox as
    /// the mail before.
    last: Option<(PathBuf, u64)>,
    open: HashMap<u64, Arc<File>>,
}

impl MailsWriter {
    /// Creates the temporary files. They have no names, so the operating system deletes them when the process ends.
    pub(super) fn new() -> io::Result<Self> {
        let writer = || io::Result::Ok(BufWriter::with_capacity(1 << 16, tempfile::tempfile()?));
        Ok(Self {
            names: writer()?,
            names_end: 0,
            spool: writer()?,
            spool_end: 0,
            last: None,
            open: HashMap::new(),
        })
    }

    /// Writes the name of a mailbox, and returns its position in the file of names. If `has_several` is true, the mailbox
    /// contains several mails and is kept open, up to [`MOST_OPEN`] mailboxes.
    pub(super) fn name(&mut self, path: &Path, has_several: bool) -> io::Result<u64> {
        if let Some((last, position)) = &self.last
            && last == path
        {
            return Ok(*position);
        }
        let position = self.names_end;
        let bytes = path.as_os_str().as_bytes();
        self.names.write_all(&(bytes.len() as u32).to_be_bytes())?;
        self.names.write_all(bytes)?;
        self.names_end += 4 + bytes.len() as u64;
        self.last = Some((path.to_owned(), position));
        if has_several
            && self.open.len() < MOST_OPEN
            && let Ok(file) = File::open(path)
        {
            self.open.insert(position, Arc::new(file));
        }
        Ok(position)
    }

    /// Writes a mail to the temporary file, and returns its position.
    pub(super) fn spool(&mut self, mail: &[u8]) -> io::Result<u64> {
        let position = self.spool_end;
        self.spool.write_all(mail)?;
        self.spool_end += mail.len() as u64;
        Ok(position)
    }

    pub(super) fn finish(self) -> io::Result<Mails> {
        let finish = |writer: BufWriter<File>| writer.into_inner().map_err(|it| it.into_error());
        Ok(Mails {
            names: finish(self.names)?,
            spool: finish(self.spool)?,
            open: self.open,
            recent: Mutex::default(),
        })
    }
}

/// The mails of the index, which are read again when they are needed.
pub(super) struct Mails {
    names: File,
    spool: File,
    open: HashMap<u64, Arc<File>>,
    /// Mails that were read recently, the newest last.
    recent: Mutex<Vec<(MailPlace, Arc<StoredMail>)>>,
}

impl Mails {
    /// Returns the path of the mailbox that contains a mail.
    pub(super) fn path(&self, place: &MailPlace) -> io::Result<PathBuf> {
        let mut length = [0; 4];
        self.names.read_exact_at(&mut length, place.name)?;
        let mut name = vec![0; u32::from_be_bytes(length) as usize];
        self.names.read_exact_at(&mut name, place.name + 4)?;
        Ok(OsStr::from_bytes(&name).into())
    }

    /// Returns the mail, without the quoting (`>From `) that its mailbox adds.
    ///
    /// # Errors
    /// Returns an error if the mail cannot be read, or if its mailbox was changed so that it now contains other bytes in this
    /// place.
    pub(super) fn read(&self, record: &CopyRecord) -> io::Result<Arc<StoredMail>> {
        let place = &record.place;
        let known = |recent: &mut Vec<(MailPlace, Arc<StoredMail>)>| {
            let at = recent.iter().position(|(known, _)| known == place)?;
            let found = recent.remove(at);
            let mail = Arc::clone(&found.1);
            recent.push(found);
            Some(mail)
        };
        let mut recent = unpoisoned(self.recent.lock());
        if let Some(mail) = known(&mut recent) {
            return Ok(mail);
        }
        drop(recent);
        let bytes = self.read_from(place)?;
        if identity(&plain(&bytes)).to_bytes() != record.identity {
            return Err(io::Error::other("the mailbox was changed during the run"));
        }
        let mail = Arc::new(StoredMail::of(bytes));
        let mut recent = unpoisoned(self.recent.lock());
        recent.push((*place, Arc::clone(&mail)));
        let weight = |recent: &[(MailPlace, Arc<StoredMail>)]| -> usize {
            recent.iter().map(|(_, mail)| mail.weight()).sum()
        };
        while recent.len() > MOST_RECENT || recent.len() > 1 && weight(&recent) > MOST_BYTES {
            recent.remove(0);
        }
        Ok(mail)
    }

    fn read_from(&self, place: &MailPlace) -> io::Result<Vec<u8>> {
        let length = usize::try_from(place.length).map_err(io::Error::other)?;
        match place.file {
            MailStorage::Spool => {
                let mut mail = vec![0; length];
                self.spool.read_exact_at(&mut mail, place.at)?;
                Ok(mail)
            }
            MailStorage::Mailbox(quoting) => {
                let file = match self.open.get(&place.name) {
                    Some(file) => Arc::clone(file),
                    None => Arc::new(File::open(self.path(place)?)?),
                };
                let end = place.at.checked_add(place.length);
                if end.is_none_or(|end| file.metadata().is_ok_and(|it| it.len() < end)) {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let mut content = vec![0; length];
                file.read_exact_at(&mut content, place.at)?;
                Ok(mailbox::plain(&content, quoting).0.into_owned())
            }
        }
    }
}
