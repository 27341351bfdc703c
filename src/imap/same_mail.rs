//! Compares two messages by their headers, for messages whose content embody may have changed when it saved them.

use crate::mime::{Header, header};

/// Fields that identify a mail. Converting a message never changes them.
const FIELDS: [&str; 7] = [
    "Message-ID",
    "Date",
    "From",
    "To",
    "Subject",
    "Received",
    "Return-Path",
];
/// Maximum size in bytes of the header that is read.
const LONGEST_HEADER: usize = 1 << 20;

/// Returns whether two messages have the same sender, subject, date and other fields that identify a mail. Messages without any
/// of these fields are the same only if all bytes are equal.
pub(super) fn is_same_mail(one: &[u8], other: &[u8]) -> bool {
    one == other
        || identity(one)
            .zip(identity(other))
            .is_some_and(|(one, other)| one == other)
}

fn identity(message: &[u8]) -> Option<Vec<Option<Vec<u8>>>> {
    let header = Header::of_message(message, LONGEST_HEADER);
    let fields = FIELDS.map(|name| header.fields.value(message, name).map(header::unfold));
    fields.iter().any(Option::is_some).then(|| fields.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_is_the_same_if_its_identifying_fields_are() {
        let mail = b"Subject: a\r\nDate: x\r\nContent-Type: text/plain\r\n\r\nhello\r\n";
        for (other, is_same) in [
            (&mail[..], true),
            (
                b"Subject: a\r\nDate: x\r\nContent-Type: text/html\r\n\r\nchanged\r\n",
                true,
            ),
            (b"Subject:  a\nDate: x\n\nhello\n", true),
            (b"Subject: b\r\nDate: x\r\n\r\nhello\r\n", false),
            (
                b"Subject: a\r\nDate: x\r\nMessage-ID: <1@x>\r\n\r\nhello\r\n",
                false,
            ),
            (b"\r\nhello\r\n", false),
        ] {
            assert_eq!(
                is_same_mail(mail, other),
                is_same,
                "{}",
                other.escape_ascii()
            );
        }
        assert!(!is_same_mail(b"\r\nhello\r\n", b"\r\nHello\r\n"));
        assert!(is_same_mail(b"\r\nhello\r\n", b"\r\nhello\r\n"));
    }
}
