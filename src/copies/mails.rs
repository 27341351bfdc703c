//! Reads the mails of the index again, from their mailboxes or from a temporary file.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use super::part::{CopyPart, PartDigests, Parts, of_mail};
use super::record::{CopyRecord, MailPlace, MailStorage};
use crate::engine::same::{Digest, identity, plain};
use crate::error::unpoisoned;
use crate::mailbox;
use crate::mime::{PartId, ScanLimits};
use crate::platform::{FileExt as _, OsStrExt as _};
use crate::spool::{Spool, SpoolWriter};

/// Maximum number of mailboxes that are kept open. A mailbox that is open can still be read after the run has replaced its
/// file.
const MOST_OPEN: usize = 64;

/// Maximum number of mails in memory. The parts that one mail lacks can be in several other mails, so one mail is not enough.
const MOST_RECENT: usize = 64;

/// Maximum total size in bytes of the mails in memory. The most recently read mail is always kept, even if it is larger.
const MOST_BYTES: usize = 64 << 20;

/// A mail that was read again. Its plain form and its parts are computed on demand.
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

    /// Returns the part with this number, counted from 0. A text has several forms: as it is, and with LF or CRLF line
    /// endings. The first form whose digests `is_wanted` accepts is returned.
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
    names: SpoolWriter,
    mails: SpoolWriter,
    /// Mailbox of the previous mail, and the offset of its name in the file of names. Consecutive mails usually share a
    /// mailbox, so its name is written once.
    last: Option<(PathBuf, u64)>,
    open: HashMap<u64, Arc<File>>,
}

impl MailsWriter {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            names: SpoolWriter::temporary()?,
            mails: SpoolWriter::temporary()?,
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
        let position = self.names.push_block(path.as_os_str().as_bytes())?;
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
        self.mails.push(mail)
    }

    pub(super) fn finish(self) -> io::Result<Mails> {
        Ok(Mails {
            names: self.names.finish()?,
            mails: self.mails.finish()?,
            open: self.open,
            recent: Mutex::default(),
        })
    }
}

/// Index entries. The mails themselves are not kept in memory; they are read again on demand.
pub(super) struct Mails {
    names: Spool,
    mails: Spool,
    open: HashMap<u64, Arc<File>>,
    /// Mails that were read recently, the newest last.
    recent: Mutex<Vec<(MailPlace, Arc<StoredMail>)>>,
}

impl Mails {
    /// Returns the path of the mailbox that contains a mail.
    pub(super) fn path(&self, place: &MailPlace) -> io::Result<PathBuf> {
        Ok(OsStr::from_bytes(&self.names.block(place.name)?).into())
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
        match place.file {
            MailStorage::Spool => self.mails.read(place.at, place.length),
            MailStorage::Mailbox(quoting) => {
                let file = match self.open.get(&place.name) {
                    Some(file) => Arc::clone(file),
                    None => Arc::new(File::open(self.path(place)?)?),
                };
                let end = place.at.checked_add(place.length);
                if end.is_none_or(|end| file.metadata().is_ok_and(|it| it.len() < end)) {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let length = usize::try_from(place.length).map_err(io::Error::other)?;
                let mut content = vec![0; length];
                file.read_exact_at(&mut content, place.at)?;
                Ok(mailbox::plain(&content, quoting).0.into_owned())
            }
        }
    }
}
