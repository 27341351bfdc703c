//! Mailboxes of Outlook.

use std::fmt;
#[cfg(any(unix, windows))]
use std::{fs::File, path::Path};

use super::mail::{ConvertedMail, OutlookError};
#[cfg(any(unix, windows))]
use super::on_disk::OnDisk;
use crate::engine::outlook::pst::{
    ItemKind, PstMailbox, PstTreeFolder, RandomAccess, SIGNATURE, TOO_LARGE, header, version,
};
use crate::engine::outlook::source;

/// Default of [`Pst::with_max_message`], in bytes.
const MAX_MESSAGE: u64 = 512 << 20;

/// An open Outlook mailbox: a `.pst` file, or an `.ost` file with the same layout (\[MS-PST\], versions 14, 15 and 23).
///
/// When a mailbox is opened, its index of nodes (\[MS-PST\] 2.2.2.7.7) and the tables of its folders (2.4.4.4, 2.4.4.5) are
/// read. Items are read on demand. The memory is a list of folders and item ids (a few bytes for each item), 2 MB of pages,
/// and the item that is being read. A `Pst` can be used by several threads.
///
/// The file is never changed. It must not change while it is open; Outlook itself locks the file while it is running.
pub struct Pst {
    mailbox: PstMailbox,
    max_message: u64,
}

impl Pst {
    /// Returns whether a file starts like an Outlook mailbox (`!BDN`, \[MS-PST\] 2.2.2.6). Four bytes are enough.
    /// Mailboxes of the version 36 begin in the same way, although they cannot be opened.
    pub fn is_pst(start: &[u8]) -> bool {
        start.starts_with(SIGNATURE)
    }

    /// Opens a file on disk.
    ///
    /// # Errors
    /// [`OutlookError::Read`] if the file cannot be opened. Otherwise as [`Pst::from_source`].
    #[cfg(any(unix, windows))]
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OutlookError> {
        let file = File::open(path).and_then(OnDisk::of);
        Self::from_source(file.map_err(OutlookError::Read)?)
    }

    /// Opens a file in memory.
    ///
    /// # Errors
    /// As [`Pst::from_source`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, OutlookError> {
        Self::from_source(bytes)
    }

    /// Opens a file that is read piece by piece, in pieces of at most 8 KiB.
    ///
    /// # Errors
    /// [`OutlookError::OtherFormat`] if the file is not an Outlook mailbox, [`OutlookError::Version`] if it is one of the
    /// version 36, [`OutlookError::Damaged`] if its header or its index cannot be read, and [`OutlookError::Read`] if
    /// `source` returns an error for the header.
    pub fn from_source(source: impl RandomAccess + 'static) -> Result<Self, OutlookError> {
        let start = header(&source).map_err(OutlookError::Read)?;
        if !Self::is_pst(&start) {
            let why = "the file is not an Outlook mailbox; choose a .pst file";
            return Err(OutlookError::OtherFormat(why.to_owned()));
        }
        if version(&start) == Some(36) {
            return Err(OutlookError::Version(36));
        }
        let mailbox = PstMailbox::open(Box::new(source)).map_err(OutlookError::Damaged)?;
        Ok(Self {
            mailbox,
            max_message: MAX_MESSAGE,
        })
    }

    /// Limits the size of one mail, and of the content of one item, to `bytes` (default 512 MiB). Larger items become
    /// [`PstItem::Unreadable`]. Whatever the limit is, an item can have at most twice as many bytes as the file.
    ///
    /// Items can share their content, so all mails of a small hostile file together can be much larger than the file. A
    /// program that stores them must also limit their sum.
    #[must_use]
    pub fn with_max_message(mut self, bytes: u64) -> Self {
        self.max_message = bytes;
        self
    }

    /// Returns the folders that contain items, in the order of their ids. Search folders are left out. Items whose folder is
    /// not in the file are in a last folder with the path `Orphan messages`.
    pub fn folders(&self) -> impl ExactSizeIterator<Item = ItemFolder<'_>> + '_ {
        let folders = self.mailbox.folders().iter();
        folders.map(|folder| ItemFolder { pst: self, folder })
    }

    /// Returns the number of items in all folders: the sum of [`ItemFolder::len`]. Items within an item, such as attached
    /// messages, are not counted.
    pub fn item_count(&self) -> usize {
        self.folders().map(|folder| folder.len()).sum()
    }

    /// Returns a sentence for each damage in the index of the file, or in its lists of folders and items. In a damaged file,
    /// folders and items can be missing from [`Pst::folders`].
    pub fn damage(&self) -> &[String] {
        self.mailbox.damage()
    }

    fn read(&self, folder: &PstTreeFolder, id: u32) -> PstItem {
        if let ItemKind::Other(name) = self.mailbox.kind(id) {
            return PstItem::NotMail(name);
        }
        let read = match self.mailbox.item(id, self.max_message) {
            Ok(read) => read,
            Err(unread) => {
                let subject = unread.subject.as_deref();
                return PstItem::Unreadable {
                    subject: subject.map(|it| source::subject(it).to_owned()),
                    why: unread.why,
                };
            }
        };
        let mail = source::mail(&read.item);
        if mail.content.len() as u64 > self.max_message {
            return PstItem::Unreadable {
                subject: mail.subject,
                why: TOO_LARGE.to_owned(),
            };
        }
        PstItem::Mail(ConvertedMail::of(mail, read.damage, folder.path.clone()))
    }
}

impl fmt::Debug for Pst {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Pst");
        debug.field("folders", &self.mailbox.folders().len());
        debug.finish_non_exhaustive()
    }
}

/// A folder of a mailbox that contains items (\[MS-PST\] 2.4.4).
#[derive(Clone, Copy, Debug)]
pub struct ItemFolder<'p> {
    pst: &'p Pst,
    folder: &'p PstTreeFolder,
}

impl<'p> ItemFolder<'p> {
    /// Returns the name of the folder, after the names of the folders above it. The topmost folder, which Outlook shows with
    /// the name of the mailbox, is left out. The path is never empty. Its names are untrusted: they can contain slashes and
    /// control characters, and two folders can have the same path.
    pub fn path(&self) -> &'p [String] {
        &self.folder.path
    }

    /// Returns the number of items in the folder. Items that only the list of the folder names are counted too, although
    /// they cannot be read.
    pub fn len(&self) -> usize {
        self.folder.items.len()
    }

    /// Returns whether the folder contains no items. [`Pst::folders`] returns no such folder.
    pub fn is_empty(&self) -> bool {
        self.folder.items.is_empty()
    }

    /// Reads one item. `index` counts from 0. Returns `None` if `index` is not less than [`ItemFolder::len`].
    pub fn item(&self, index: usize) -> Option<PstItem> {
        let id = self.folder.items.get(index)?;
        Some(self.pst.read(self.folder, *id))
    }

    /// Reads the items one after the other. There are exactly [`ItemFolder::len`] of them. Each one is read when the iterator
    /// returns it.
    pub fn items(&self) -> impl ExactSizeIterator<Item = PstItem> + use<'p> {
        let Self { pst, folder } = *self;
        folder.items.iter().map(move |id| pst.read(folder, *id))
    }
}

/// One item of a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PstItem {
    /// A mail, a post, a meeting request, or a report about a mail.
    Mail(ConvertedMail),
    /// An item that is not mail. The text names its kind, such as `an Outlook contact`.
    NotMail(&'static str),
    /// A mail that cannot be read, or that exceeds the limit of [`Pst::with_max_message`].
    #[non_exhaustive]
    Unreadable {
        /// Subject, if that is known.
        subject: Option<String>,
        /// Reason, in lower case and without a full stop.
        why: String,
    },
}
