//! Finds out whether an input for one message is something else: messages in another form, or no message at all.

use std::io::Read as _;

use crate::mailbox::compressed::{Decoder, MAGIC, Method};
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::recorded::refused_session;
use crate::mailbox::not_mail::NotMail;
use crate::mailbox::start::{is_known_file, kind_of_start};
use crate::span::front;

/// Number of bytes at the start of an input that show what the input is.
const LOOKED_AT: usize = 64 << 10;

/// Kind of an input that should be one message and contains messages in another form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OtherInput {
    Compressed(Method),
    Archive,
    /// A mailbox of Outlook.
    Pst,
    /// Mail in UTF-16, which is decoded only in mailboxes.
    Utf16,
    /// A format that contains mail or may contain mail, and that embody does not read.
    Unread(NotMail),
}

impl OtherInput {
    /// Returns the kind of an input by its first bytes. A message can begin with the few bytes of a magic number. So an input
    /// counts as compressed only if its start can be decompressed.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let start = front(bytes, LOOKED_AT);
        if let Some(method) = Method::of_start(front(start, MAGIC)) {
            let mut first = [0];
            let read = Decoder::new(method, bytes, u64::MAX).read(&mut first);
            return read.is_ok().then_some(Self::Compressed(method));
        }
        match kind_of_start(start) {
            Ok(StartKind::Archive) => Some(Self::Archive),
            Ok(StartKind::Pst) => Some(Self::Pst),
            Err(NotMail::UTF16) => Some(Self::Utf16),
            // Only lines of text show these formats. A sender can write such lines in a mail, which stays a message.
            Err(NotMail::MBOX_AFTER_TEXT | NotMail::MBOX_WITH_TABS) => None,
            Err(_) if refused_session(start).is_some() => None,
            Err(other @ NotMail::Format(..)) => Some(Self::Unread(other)),
            _ => None,
        }
    }
}

/// Returns what an input is that is certainly not a message: empty, a picture, or other binary data. Text without a header can be
/// a message.
pub(crate) fn no_message(bytes: &[u8]) -> Option<&'static str> {
    if bytes.is_empty() {
        return Some("empty");
    }
    let start = front(bytes, LOOKED_AT);
    let is_binary = matches!(
        kind_of_start(start),
        Err(NotMail::Binary | NotMail::Other(_) | NotMail::Beside(_))
    );
    (is_binary || is_known_file(start)).then_some("a picture, a document or other binary data")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_that_contains_messages_in_another_form_is_recognised_by_its_first_bytes() {
        let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";
        for (bytes, is) in [
            (&gzip[..], Some(OtherInput::Compressed(Method::Gzip))),
            (b"PK\x03\x04\x0a\0\0\0\0\0", Some(OtherInput::Archive)),
            (b"\x1f\x8b\x08 gzip", None),
            (b"", None),
            (b"Subject: x\n\nPK\x03\x04", None),
            (b"no mail at all", None),
            (b"\x89PNG\r\n\x1a\n", None),
        ] {
            assert_eq!(OtherInput::of(bytes), is, "{}", bytes.escape_ascii());
        }
        let rar = OtherInput::of(b"Rar!\x1a\x07\x01\0");
        assert!(matches!(rar, Some(OtherInput::Unread(_))), "{rar:?}");
    }

    #[test]
    fn empty_input_and_binary_data_are_no_messages_but_text_may_be_one() {
        for bytes in [&b""[..], b"\0\0\0", b"\x89PNG\r\n\x1a\n", b"%PDF-1.4\n"] {
            assert!(no_message(bytes).is_some(), "{}", bytes.escape_ascii());
        }
        for bytes in [
            &b"Subject: x\n\n\0"[..],
            b"no mail at all",
            b"\n\n",
            b"From a\nSubject: x\n\n",
        ] {
            assert_eq!(no_message(bytes), None, "{}", bytes.escape_ascii());
        }
    }
}
