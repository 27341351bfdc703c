//! Files with one message.

use std::io::Cursor;

use super::mail::{ConvertedMail, OutlookError};
use crate::engine::outlook::properties::OutlookItem;
use crate::engine::outlook::{msg, source, tnef};

/// Maximum nesting depth of messages that are attached to other messages.
const DEEPEST: usize = 20;

/// A message file of Outlook: `.msg`, and `.oft` for templates (\[MS-OXMSG\]).
///
/// The file is a compound file (\[MS-CFB\]), like the documents of old Office programs. It contains a list of properties
/// (\[MS-OXMSG\] 2.4), a storage for each recipient and attachment (2.2.1, 2.2.2), and the names of properties (2.2.3).
#[derive(Debug)]
pub struct Msg {
    item: OutlookItem<'static>,
    damage: Vec<String>,
}

impl Msg {
    /// Returns whether `bytes` are a compound file with a message. Only the directory of an intact file is read; the time is
    /// linear in the length of a damaged one.
    pub fn is_msg(bytes: &[u8]) -> bool {
        bytes.starts_with(msg::SIGNATURE) && msg::is_message(Cursor::new(bytes))
    }

    /// Reads a file. Values of all properties together can have at most as many bytes as the file, and at most 100,000
    /// properties are read. Values that cannot be read are named in [`ConvertedMail::damage`].
    ///
    /// # Errors
    /// [`OutlookError::OtherFormat`] if the file does not start like a compound file. [`OutlookError::Damaged`] if its
    /// directory cannot be read, or if it contains no message.
    pub fn parse(bytes: &[u8]) -> Result<Self, OutlookError> {
        if !bytes.starts_with(msg::SIGNATURE) {
            let why = "the file does not begin like a .msg file; choose a file that Outlook saved as a message";
            return Err(OutlookError::OtherFormat(why.to_owned()));
        }
        let read = msg::read(bytes, DEEPEST).map_err(OutlookError::Damaged)?;
        Ok(Self {
            item: read.item,
            damage: read.damage,
        })
    }

    /// Converts the message to mail.
    pub fn mail(&self) -> ConvertedMail {
        let mail = source::mail(&self.item);
        ConvertedMail::of(mail, self.damage.clone(), Vec::new())
    }
}

/// A TNEF stream (\[MS-OXTNEF\]): the content of `winmail.dat`, and of a part with the type `application/ms-tnef`.
///
/// Outlook and Exchange send it within a mail that has a header of its own, so a stream often lacks its sender, recipients
/// and date. To replace `winmail.dat` within a mail, use an [`Engine`](crate::engine::Engine) that follows
/// [`Winmail`](crate::policy::Follow::Winmail).
#[derive(Debug)]
pub struct Tnef<'a> {
    item: OutlookItem<'a>,
    damage: Vec<String>,
}

impl<'a> Tnef<'a> {
    /// Returns whether `bytes` begin with the signature of TNEF, 78 9F 3E 22 (\[MS-OXTNEF\] 2.1).
    pub fn is_tnef(bytes: &[u8]) -> bool {
        bytes.starts_with(tnef::SIGNATURE)
    }

    /// Reads a stream: its attributes, and the MAPI properties of the message, its recipients and its attachments in some of
    /// them (\[MS-OXTNEF\] 2.1). At most 50,000 values are read. A wrong checksum, a missing end, and content that the reader
    /// does not use are named in [`ConvertedMail::damage`].
    ///
    /// # Errors
    /// [`OutlookError::OtherFormat`] if the signature is missing. [`OutlookError::Damaged`] if nothing can be read.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, OutlookError> {
        if !Self::is_tnef(bytes) {
            let why = "the file does not begin like a winmail.dat file; save the attachment winmail.dat of the mail again";
            return Err(OutlookError::OtherFormat(why.to_owned()));
        }
        let read = tnef::read_whole(bytes, DEEPEST).map_err(OutlookError::Damaged)?;
        Ok(Self {
            item: read.item,
            damage: read.damage,
        })
    }

    /// Converts the message to mail.
    pub fn mail(&self) -> ConvertedMail {
        let mail = source::mail(&self.item);
        ConvertedMail::of(mail, self.damage.clone(), Vec::new())
    }
}
