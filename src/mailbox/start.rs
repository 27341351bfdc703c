//! Recognises the format of a file by its first bytes (docs/mailbox-internals.md, "What is mail").

use crate::mailbox::forms::archive::is_archive;
use crate::mailbox::forms::encoding::Encoding;
use crate::mailbox::forms::refused::refused;
use crate::mailbox::forms::separator::{from_line_length, name_length};
use crate::mailbox::forms::{emlx, mmdf, outlook};
use crate::mailbox::not_mail::NotMail;
use crate::prologue::{self, BYTE_ORDER_MARK, MailFields, Prologue};
use crate::span::{front, split_while};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// An mbox or an MMDF file. The reader distinguishes them by their separators.
    Mbox,
    /// A mailbox of Eudora. Never changed in place.
    Eudora,
    Maildir,
    Mh,
    Archive,
    Eml,
    /// A file with one message of Outlook (`.msg`, `.oft`, `winmail.dat`), which is converted to an internet message. Never
    /// changed in place.
    Msg,
    /// A mailbox of Outlook, which contains folders. Never changed in place.
    Pst,
}

impl Kind {
    pub(crate) fn is_folder(self) -> bool {
        matches!(self, Self::Maildir | Self::Mh)
    }
}

pub(crate) fn kind_of_start(start: &[u8]) -> Result<Kind, NotMail> {
    if start.is_empty() {
        return Ok(Kind::Mbox);
    }
    if let Some(read) = outlook::pst_of_start(start) {
        return read.map(|()| Kind::Pst);
    }
    if start.starts_with(b"SQLite format 3\0") {
        return Err(NotMail::DATABASE);
    }
    if start.starts_with(APPLE_DOUBLE) {
        return Err(NotMail::APPLE_DOUBLE);
    }
    if let Some(other) = refused(start) {
        return Err(other);
    }
    let behind = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    let (blanks, text) = split_while(behind, |octet| matches!(octet, b'\n' | b'\r'));
    if from_line_length(text).is_some() || mmdf::starts(start) {
        return Ok(Kind::Mbox);
    }
    if is_archive(start) {
        return Ok(Kind::Archive);
    }
    match Encoding::of_mail(start) {
        None => {}
        Some(Encoding::Utf16(_)) => return Err(NotMail::UTF16),
        Some(Encoding::Utf32) => return Err(NotMail::UTF32),
        Some(Encoding::Ebcdic) => return Err(NotMail::EBCDIC),
    }
    let (message, is_header) = match emlx::behind_count(start) {
        Some(header) => (header, starts_with_mail_header(header, false)),
        None => (start, starts_with_mail_header(text, !blanks.is_empty())),
    };
    let prologue = Prologue::of(message);
    if prologue.is_some_and(|it| it.has_separator_after_banner) {
        return Err(NotMail::MBOX_AFTER_TEXT);
    }
    if prologue::is_news_batch(start) {
        return Err(NotMail::NEWS_BATCH);
    }
    if is_header || prologue.is_some() {
        return Ok(Kind::Eml);
    }
    Err(if is_binary(start) {
        NotMail::Binary
    } else {
        NotMail::Text
    })
}

/// Returns whether the file contains binary data: the first lines contain neither a header field nor a separator, and
/// the bytes contain a NUL or more than 30 % control characters.
fn is_binary(start: &[u8]) -> bool {
    const LINES: usize = 32;
    let is_field = |line: &[u8]| {
        let (name, value) = line.split_at(name_length(line));
        !name.is_empty() && value.starts_with(b":")
    };
    let mut lines = start.split(|&byte| byte == b'\n').take(LINES);
    if lines.any(|line| line.starts_with(b"From ") || is_field(line)) {
        return false;
    }
    // Text in ISO-2022 encodings contains escape characters, so these do not count as binary data.
    let is_control = |&&byte: &&u8| {
        byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c' | b'\x1b')
    };
    start.contains(&0) || start.iter().filter(is_control).count() * 10 > start.len() * 3
}

/// First bytes of an AppleDouble file, in which macOS stores the attributes of a file on a file system without them.
const APPLE_DOUBLE: &[u8] = b"\0\x05\x16\x07";

/// Returns the number of bytes before the first message of an mbox: a byte order mark and empty lines. Returns `None`
/// if no `From ` line follows them.
pub(crate) fn before_first_message(start: &[u8]) -> Option<usize> {
    let text = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    let is_blank = |octet: &&u8| matches!(octet, b'\n' | b'\r');
    let blanks = text.iter().take_while(is_blank).count();
    let is_mbox = start.is_empty() || from_line_length(&text[blanks..]).is_some();
    is_mbox.then_some(start.len() - text.len() + blanks)
}

/// Returns whether the file starts with the header of a mail. If all lines are header fields, one field of
/// [`MailFields`] is enough. More is required if a line is not a field, or if empty lines precede the header
/// (`is_damaged`): two of these fields must occur, one of which is specific to mail, and the header fields must
/// outnumber the other lines.
pub(crate) fn starts_with_mail_header(start: &[u8], is_damaged: bool) -> bool {
    let (mut known, mut fields, mut others) = (MailFields::default(), 0_usize, 0_usize);
    let mut is_first = true;
    for whole in start.split_inclusive(|&octet| octet == b'\n') {
        let without_lf = whole.strip_suffix(b"\n").unwrap_or(whole);
        let is_cut = without_lf.len() == whole.len();
        // Several CRs belong to one line ending: files that were converted twice contain CR CR LF.
        let returns = without_lf.iter().rev().take_while(|&&octet| octet == b'\r');
        let line = front(without_lf, without_lf.len() - returns.count());
        if line.is_empty() {
            break;
        }
        let is_folded = line.starts_with(b" ") || line.starts_with(b"\t");
        let is_escaped = line.starts_with(b">From ");
        let (name, value) = line.split_at(name_length(line));
        if is_escaped || is_folded && !is_first {
            // A `>From ` line is a separator that a program quoted, and a folded line belongs to the field before it.
            // Neither counts.
        } else if !name.is_empty() && value.trim_ascii_start().starts_with(b":") {
            fields += 1;
            known.add(name);
        } else if is_first && line.iter().filter(|octet| octet.is_ascii_control()).count() > 1 {
            // Control characters in the first line show that the file is binary, for example a damaged archive. A mail
            // header further down may be the content of the archive, so the file does not count as a mail.
            return false;
        } else if !is_cut {
            others += 1;
        }
        is_first = false;
    }
    match others {
        0 if !is_damaged => known.is_any(),
        _ => known.are_of_mail_alone() && fields > others,
    }
}
