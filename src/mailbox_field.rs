//! Header fields that programs write when they store a message in a mailbox: flags, keywords, numbers of messages, and
//! lengths of the body. They are traces of the mailbox and not a part of the mail.
//!
//! Senders use some of these names, too: `Status: order shipped` is content. So a field is a trace only if its value has
//! the form that mailbox programs write. The value of a field that is folded includes the folded lines.

use std::borrow::Cow;

use crate::span::split_while;

/// Returns whether a value has the form that mailbox programs write.
type ValueForm = fn(&[u8]) -> bool;

/// The fields of mailboxes, in lower case, each with the form of its values.
const FIELDS: [(&[u8], ValueForm); 13] = [
    (b"status", |value| is_flags(value, b"RONUAFTD")),
    // The letters of UW IMAP, mutt and KMail.
    (b"x-status", |value| is_flags(value, b"RONUAFTDCGHIKPQSW")),
    (b"x-keywords", is_keywords),
    (b"x-mozilla-status", is_hexadecimal),
    (b"x-mozilla-status2", is_hexadecimal),
    (b"x-mozilla-keys", is_keywords),
    (b"x-uid", is_number),
    (b"x-uidl", is_unique_id),
    (b"x-imap", is_state_of_mailbox),
    (b"x-imapbase", is_state_of_mailbox),
    (b"x-evolution", is_evolution),
    (b"content-length", is_number),
    (b"lines", is_number),
];

/// Maximum length of a unique-id of POP3, in bytes. RFC 1939 allows 70, and some servers write more.
const LONGEST_UNIQUE_ID: usize = 128;

/// Returns whether a mailbox program wrote the header field with this name and value. `value` returns the value, which may be
/// folded. It is called only if the field has the name of a field of mailboxes.
pub(crate) fn is_of_mailbox<'v>(name: &[u8], value: impl FnOnce() -> Cow<'v, [u8]>) -> bool {
    let is_named = |row: &&(&[u8], ValueForm)| row.0.eq_ignore_ascii_case(name);
    let form = FIELDS.iter().find(is_named).map(|row| row.1);
    form.is_some_and(|has_form| {
        let value = value();
        let text = value.trim_ascii();
        // Some programs write the fields of a message without flags with an empty value.
        text.is_empty() || has_form(text)
    })
}

/// Returns whether the value consists of different letters, each of which stands for a flag. Programs also read the letters
/// of a folded value.
fn is_flags(value: &[u8], letters: &[u8]) -> bool {
    let is_flag = |(at, letter): (usize, &u8)| {
        letters.contains(letter) && value.get(..at).is_some_and(|it| !it.contains(letter))
    };
    let mut found = value.iter().enumerate();
    found.all(|it| it.1.is_ascii_whitespace() || is_flag(it))
}

/// Returns whether the value is a list of keywords. Programs store labels in these fields, whose names can contain any
/// printable characters.
fn is_keywords(value: &[u8]) -> bool {
    let is_allowed = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace();
    value.iter().all(is_allowed)
}

fn is_hexadecimal(value: &[u8]) -> bool {
    const DIGITS_OF_32_BITS: usize = 8;

    value.len() <= DIGITS_OF_32_BITS && value.iter().all(u8::is_ascii_hexdigit)
}

fn is_number(value: &[u8]) -> bool {
    value.iter().all(u8::is_ascii_digit)
}

/// Returns whether the value is a unique-id of POP3 (RFC 1939 section 7): printable characters without blanks.
fn is_unique_id(value: &[u8]) -> bool {
    value.len() <= LONGEST_UNIQUE_ID && value.iter().all(u8::is_ascii_graphic)
}

/// Returns whether the value is the state of a mailbox, as UW IMAP and Dovecot write it into the first message: the
/// UIDVALIDITY, the last UID, and the names of keywords.
fn is_state_of_mailbox(value: &[u8]) -> bool {
    let mut words = value
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let mut has_number = || words.next().is_some_and(is_number);
    has_number() && has_number() && is_keywords(value)
}

/// Returns whether the value is `UID-FLAGS` or `UID-FLAGS;TAGS`, with two hexadecimal numbers, as Evolution writes it.
fn is_evolution(value: &[u8]) -> bool {
    let (uid, after_uid) = split_while(value, u8::is_ascii_hexdigit);
    let Some(rest) = after_uid.strip_prefix(b"-") else {
        return false;
    };
    let (flags, tags) = split_while(rest, u8::is_ascii_hexdigit);
    let has_tags = tags.is_empty() || tags.starts_with(b";") && is_keywords(tags);
    is_hexadecimal(uid) && is_hexadecimal(flags) && has_tags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_trace(field: &str) -> bool {
        let (name, value) = field.split_once(':').unwrap();
        is_of_mailbox(name.as_bytes(), || value.as_bytes().into())
    }

    #[test]
    fn fields_that_programs_write_are_traces_of_a_mailbox() {
        for field in [
            "Status: RO",
            "status:O\r",
            "STATUS:",
            "Status: U",
            "Status: N ",
            "Status: R\n O",
            "X-Status: AFDT",
            "X-Status: RC",
            "X-Status: ",
            "X-Keywords: $Label1 work, NonJunk\n\tmore",
            "X-Keywords: gr\u{fc}n",
            "X-Mozilla-Status: 8001",
            "X-Mozilla-Status2: 00000000",
            "X-Mozilla-Keys:                                        ",
            "X-UID: 4702                 ",
            "X-UIDL: \"Q9\"!_8W!!^di!!)A3\"!",
            "X-IMAP: 1234567890 0000000012",
            "X-IMAPbase: 1234567890 0000000012 $Forwarded Junk",
            "X-Evolution: 0000000a-0010",
            "X-Evolution: 0000000a-0010;important",
            "Content-Length: 12",
            "Lines: 45",
        ] {
            assert!(is_trace(field), "{field}");
        }
    }

    #[test]
    fn fields_that_a_sender_writes_are_content() {
        for field in [
            "Status: anything",
            "Status: OPEN",
            "Status: 5.1.1",
            "Status: RR",
            "Status: RO (read)",
            "Status: RO\n and more",
            "Status: RO\rHello",
            "X-Status: done",
            "X-Keywords: a\0b",
            "X-Mozilla-Status: xxxx",
            "X-Mozilla-Status: 0001 0001",
            "X-Mozilla-Status: 000000001",
            "X-UID: esmfr-4710-6fa7afdb9514e11e374e301e549cafb3",
            "X-UIDL: two words",
            "X-IMAP: Dear all",
            "X-IMAPbase: 1",
            "X-Evolution: 0000000a",
            "Content-Length: short",
            "Lines: none",
            "Lines: 4 5",
            "Lines: -1",
            "Subject: RO",
            "Statuses: RO",
            "X-Embody: x",
        ] {
            assert!(!is_trace(field), "{field}");
        }
    }
}
