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

mod mail;
mod message;
#[cfg(any(unix, windows))]
mod on_disk;
mod pst;

pub use self::mail::{ConvertedMail, OutlookError};
pub use self::message::{Msg, Tnef};
#[cfg(any(unix, windows))]
pub(crate) use self::on_disk::OnDisk;
pub use self::pst::{ItemFolder, Pst, PstItem};
pub use crate::engine::outlook::pst::RandomAccess;
pub use crate::engine::outlook::source::ItemFlags;

/// Converts a file that contains one message: a `.msg` or `.oft` file, or TNEF such as `winmail.dat`.
///
/// Returns `None` if the file has another format. The first four bytes identify TNEF. Office documents start like `.msg`
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
