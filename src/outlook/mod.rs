//! Reads files of Outlook and Exchange, and converts the items in them to mail.
//!
//! | type | files | specification |
//! |---|---|---|
//! | [`Msg`] | one message: `.msg`, and `.oft` for templates | [MS-OXMSG] in a compound file ([MS-CFB]) |
//! | [`Tnef`] | one message: `winmail.dat`, a part `application/ms-tnef` | [MS-OXTNEF] |
//! | [`Pst`] | a mailbox with folders: `.pst`, and `.ost` up to version 23 | [MS-PST] |
//!
//! Each of these types returns a [`ConvertedMail`]: a message as in RFC 5322 with its attachments, nested messages and
//! meetings as MIME parts, the flags and dates that Outlook stores outside of the message, and a sentence for everything
//! that the mail lacks. The same file always becomes the same bytes.
//!
//! The module needs the feature `outlook` and no other feature. Apart from [`Pst::open`], it does no I/O, and it never asks
//! for the time, so it also works on targets without an operating system, such as `wasm32-unknown-unknown`.
//!
//! # One message
//!
//! ```
//! // A winmail.dat with a subject and a text: attributes 0x8004 and 0x800c, each with its type, length and checksum.
//! let mut file = b"\x78\x9f\x3e\x22\x01\x00".to_vec();
//! for (id, text) in [(0x0001_8004_u32, "Minutes\0"), (0x0002_800c, "See you at noon.\0")] {
//!     file.push(1);
//!     file.extend(id.to_le_bytes());
//!     file.extend((text.len() as u32).to_le_bytes());
//!     file.extend(text.bytes());
//!     file.extend(text.bytes().map(u16::from).sum::<u16>().to_le_bytes());
//! }
//!
//! let mail = embody::outlook::convert(&file).expect("it is TNEF")?;
//! assert_eq!(mail.subject.as_deref(), Some("Minutes"));
//! assert!(mail.content.starts_with(b"Subject: Minutes\nMIME-Version: 1.0\n"));
//! assert!(mail.content.ends_with(b"\n\nSee you at noon.\n"));
//! assert!(mail.missing.is_empty() && mail.damage.is_empty());
//! # Ok::<(), embody::outlook::OutlookError>(())
//! ```
//!
//! # A mailbox
//!
//! A [`Pst`] lists its folders, and reads one item at a time, so that the memory does not depend on the size of the
//! mailbox. [`ItemFolder::items`] returns as many entries as [`ItemFolder::len`] announces: each one is a mail, an item of
//! another kind such as a contact, or an item that could not be read, with the reason. `examples/pst2eml.rs` writes all
//! mails of a mailbox to `.eml` files:
//!
//! ```no_run
//! use embody::outlook::{Pst, PstItem};
//!
//! let mailbox = Pst::open("archive.pst")?;
//! for folder in mailbox.folders() {
//!     for item in folder.items() {
//!         match item {
//!             PstItem::Mail(mail) => println!("{}: {} bytes", folder.path().join("/"), mail.content.len()),
//!             PstItem::Unreadable { why, .. } => eprintln!("not read: {why}"),
//!             _ => {}
//!         }
//!     }
//! }
//! # Ok::<(), embody::outlook::OutlookError>(())
//! ```
//!
//! # Damaged and hostile files
//!
//! Any input is accepted. Damaged files are read as far as possible, and [`ConvertedMail::damage`] and [`Pst::damage`] name
//! the damage. Lengths, counts and names in a file are untrusted: the memory for a message is limited by the size of its
//! file, at most 20 levels of attached messages are read, and no page, block or property is read in a cycle. The text of the
//! mail, its attachments and the names of folders are as untrusted as those of any other mail.
//!
//! Passwords of `.pst` files are not needed, because Outlook only compares them. Files that are encrypted as a whole
//! (Windows Information Protection) cannot be read.
//!
//! [MS-CFB]: https://learn.microsoft.com/openspecs/windows_protocols/ms-cfb
//! [MS-OXMSG]: https://learn.microsoft.com/openspecs/exchange_server_protocols/ms-oxmsg
//! [MS-OXTNEF]: https://learn.microsoft.com/openspecs/exchange_server_protocols/ms-oxtnef
//! [MS-PST]: https://learn.microsoft.com/openspecs/office_file_formats/ms-pst

mod message;
#[cfg(any(unix, windows))]
mod on_disk;
mod pst;

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::engine::outlook::source::Mail;

pub use self::message::{Msg, Tnef};
#[cfg(any(unix, windows))]
pub(crate) use self::on_disk::OnDisk;
pub use self::pst::{ItemFolder, Pst, PstItem};
pub use crate::engine::outlook::pst::RandomAccess;
pub use crate::engine::outlook::source::ItemFlags;

/// Maximum nesting depth of messages that are attached to other messages.
const DEEPEST: usize = 20;

/// Converts a file that contains one message: a `.msg` or `.oft` file, or TNEF such as `winmail.dat`.
///
/// Returns `None` if the file has another format. The first four bytes identify TNEF. Office documents begin like `.msg`
/// files, so a `.msg` file is identified by its table of contents ([`Msg::is_msg`]). A file with a damaged table may not be
/// recognised; if its name ends in `.msg`, try [`Msg::parse`].
///
/// # Errors
/// `Some(Err(..))` contains the reason why a message cannot be read ([`OutlookError::Damaged`]).
pub fn convert(bytes: &[u8]) -> Option<Result<ConvertedMail, OutlookError>> {
    if Tnef::is_tnef(bytes) {
        Some(Tnef::parse(bytes).map(|file| file.mail()))
    } else if Msg::is_msg(bytes) {
        Some(Msg::parse(bytes).map(|file| file.mail()))
    } else {
        None
    }
}

/// A mail that was made from an item of Outlook.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ConvertedMail {
    /// The message as in RFC 5322. All lines end with LF, also the last one.
    ///
    /// The header is the one with which the mail was delivered, if the item contains it. Otherwise From, To, Cc, Bcc, Date,
    /// Message-ID and Subject are made from properties, as far as the item has them. An address of Exchange that is no
    /// internet address becomes `IMCEAEX-...@exchange.invalid`.
    pub content: Vec<u8>,
    /// Name of the folder that contains the item, after the names of the folders above it. The names are untrusted, and can
    /// contain any characters. The list is empty for [`Msg`] and [`Tnef`].
    pub folder: Vec<String>,
    /// Flags of the item.
    pub flags: ItemFlags,
    /// Time of delivery or, if that is unknown, of submission. `None` if both are unknown.
    pub received: Option<SystemTime>,
    /// Time of submission by the sender.
    pub sent: Option<SystemTime>,
    /// Subject, without the characters by which Outlook marks a prefix such as `Re: `.
    pub subject: Option<String>,
    /// A sentence for each piece of content that the mail lacks, because mail has no place for it, or because the file only
    /// refers to it.
    pub missing: Vec<String>,
    /// A sentence for each fault of the file that affects this item. The mail contains everything else.
    pub damage: Vec<String>,
}

impl ConvertedMail {
    fn of(mail: Mail, damage: Vec<String>, folder: Vec<String>) -> Self {
        Self {
            content: mail.content,
            folder,
            flags: mail.flags,
            received: mail.received.and_then(time),
            sent: mail.sent.and_then(time),
            subject: mail.subject,
            missing: mail.missing,
            damage,
        }
    }

    /// Returns whether the mail contains everything in the item, and the file is intact.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.damage.is_empty()
    }
}

/// Converts seconds since 1970.
fn time(seconds: i64) -> Option<SystemTime> {
    let since = Duration::from_secs(u64::try_from(seconds).ok()?);
    UNIX_EPOCH.checked_add(since)
}

/// Reason why a file of Outlook cannot be read.
///
/// Messages are in lower case, have no full stop, and end with advice where there is some.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutlookError {
    /// The operating system could not open or read the file.
    #[error("the file cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The file is not of the format that was requested.
    #[error("{0}")]
    OtherFormat(String),
    /// The file is a mailbox of a version that is not read. Version 36 is that of `.ost` files of Outlook 2013 and later,
    /// whose layout \[MS-PST\] does not describe.
    #[error(
        "the file has the version {0} of Outlook 2013 and later, which embody does not read; export the mailbox to a .pst file in Outlook, and convert that file"
    )]
    Version(u16),
    /// The file is too damaged, or ends too early.
    #[error("{0}")]
    Damaged(String),
}
