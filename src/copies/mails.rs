//! Mails that are read again from where they are.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::record::{Kept, Place, Record};
use crate::engine::same::{identity, plain};
use crate::error::unpoisoned;
use crate::mailbox;
use crate::platform::{FileExt as _, OsStrExt as _};

/// Mailboxes that stay open: their mails can be read also after the run has replaced them.
const MOST_OPEN: usize = 64;

/// Mails that were read last, and stay in memory. The parts of one mail are read one after the other.
const MOST_RECENT: usize = 4;

/// Bytes of these mails, apart from the last one.
const MOST_BYTES: usize = 64 << 20;

/// The names of mailboxes, and the mails that cannot be read again from them.
pub(super) struct Writer {
    names: BufWriter<File>,
    names_end: u64,
    spool: BufWriter<File>,
    spool_end: u64,
    /// The mailbox of the last mail, and the position of its name.
    last: Option<(PathBuf, u64)>,
    open: HashMap<u64, Arc<File>>,
}

impl Writer {
    /// The files have no names, and are gone with the process.
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

    /// Position of the name of a mailbox. `has_several` keeps a mailbox of several mails open.
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

    /// Writes a mail, and returns its position.
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

/// Reads mails by their places.
pub(super) struct Mails {
    names: File,
    spool: File,
    open: HashMap<u64, Arc<File>>,
    /// The last one is at the end.
    recent: Mutex<Vec<(Place, Arc<Vec<u8>>)>>,
}

impl Mails {
    /// The mailbox of a mail.
    pub(super) fn path(&self, place: &Place) -> io::Result<PathBuf> {
        let mut length = [0; 4];
        self.names.read_exact_at(&mut length, place.name)?;
        let mut name = vec![0; u32::from_be_bytes(length) as usize];
        self.names.read_exact_at(&mut name, place.name + 4)?;
        Ok(OsStr::from_bytes(&name).into())
    }

    /// Returns the mail, without quotation marks that its mailbox adds.
    ///
    /// # Errors
    /// The mail cannot be read, or there is another one in its place.
    pub(super) fn read(&self, record: &Record) -> io::Result<Arc<Vec<u8>>> {
        let place = &record.place;
        let known = |recent: &mut Vec<(Place, Arc<Vec<u8>>)>| {
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
        let mail = self.read_from(place)?;
        if identity(&plain(&mail)).to_bytes() != record.identity {
            return Err(io::Error::other("the mailbox was changed"));
        }
        let mail = Arc::new(mail);
        let mut recent = unpoisoned(self.recent.lock());
        recent.push((*place, Arc::clone(&mail)));
        let bytes = |recent: &[(Place, Arc<Vec<u8>>)]| -> usize {
            recent.iter().map(|(_, mail)| mail.len()).sum()
        };
        while recent.len() > MOST_RECENT || recent.len() > 1 && bytes(&recent) > MOST_BYTES {
            recent.remove(0);
        }
        Ok(mail)
    }

    fn read_from(&self, place: &Place) -> io::Result<Vec<u8>> {
        let length = usize::try_from(place.length).map_err(io::Error::other)?;
        match place.file {
            Kept::Spool => {
                let mut mail = vec![0; length];
                self.spool.read_exact_at(&mut mail, place.at)?;
                Ok(mail)
            }
            Kept::Mailbox(quoting) => {
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
