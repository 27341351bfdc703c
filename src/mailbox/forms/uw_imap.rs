//! The first message of an mbox in which UW IMAP and Dovecot store the state of the mailbox: the UIDVALIDITY, the last UID and the
//! keywords. It is from `MAILER-DAEMON` and is not mail, but every program that does not know it shows it as mail.

use crate::mailbox::forms::mbox;
use crate::span::{Span, SpanLines, front};

/// Maximum length of the header of the message, in bytes.
const LONGEST: usize = 64 << 10;

const SUBJECT: &[u8] = b"FOLDER INTERNAL DATA";
const TEXT: &[u8] = b"This text is part of the internal format of your mail folder";

/// Maximum length of the text of the message, in bytes. That of UW IMAP has 300.
const LONGEST_TEXT: usize = 1 << 10;

/// Fields that the message never has, in lower case: it was not sent, and it is a single text.
const OF_MAIL: [&str; 7] = [
    "received",
    "return-path",
    "delivered-to",
    "to",
    "cc",
    "content-type",
    "content-disposition",
];

/// Returns true for the first message of an mbox if it contains the state of the mailbox. A bounce is also from `MAILER-DAEMON`,
/// and a program can add X-IMAPbase to any first message, so the subject or the text must be that of UW IMAP too. The message is
/// not converted, so mail that a sender made similar to it must not count: it has other fields, or a longer text.
pub(crate) fn is_internal(message: &[u8]) -> bool {
    let start = front(message, LONGEST);
    let has = |value: &[u8], words: &[u8]| memchr::memmem::find(value, words).is_some();
    let (mut is_of_server, mut has_state, mut is_told) = (false, false, false);
    let mut is_short = message.len() <= LONGEST_TEXT;
    for line in SpanLines::new(start, Span::new(0, start.len())) {
        let text = line.content.of(start);
        if text.is_empty() {
            let body = message.get(line.whole.end..).unwrap_or_default();
            is_told |= body.trim_ascii_start().starts_with(TEXT);
            is_short = body.len() <= LONGEST_TEXT;
            break;
        }
        let Some((name, value)) = mbox::field(text) else {
            continue;
        };
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if OF_MAIL.iter().any(|known| is(known)) {
            return false;
        }
        is_of_server |= is("From") && has(value.of(text), b"MAILER-DAEMON");
        has_state |= is("X-IMAP") || is("X-IMAPbase");
        is_told |= is("Subject") && has(value.of(text), SUBJECT);
    }
    is_of_server && has_state && is_told && is_short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_message_of_the_server_is_internal() {
        let mail = |from: &str, subject: &str, field: &str| {
            format!("Date: x\nFrom: {from}\nSubject: {subject}\n{field}\nStatus: RO\n\nText.\n")
        };
        let system = "Mail System Internal Data <MAILER-DAEMON@x.example>";
        let subject = "DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA";
        let real = mail(system, subject, "X-IMAP: 1234567890 0000000042 $Forwarded");
        assert!(is_internal(real.as_bytes()));
        assert!(is_internal(
            mail(system, subject, "X-IMAPbase: 1 2").as_bytes()
        ));
        let translated = mail(system, "x", "X-IMAP: 1 2");
        let text = "This text is part of the internal format of your mail folder, and is not";
        assert!(is_internal(translated.replace("Text.", text).as_bytes()));
        for mail in [
            mail(system, subject, "X-Other: 1"),
            mail(
                system,
                "Undelivered Mail Returned to Sender",
                "X-IMAPbase: 1 2",
            ),
            mail("anna@x.example", subject, "X-IMAP: 1 2"),
            translated.replace("Text.", &format!("> {text}")),
            format!("Received: from a by b\n{real}"),
            format!("To: b@x.example\n{real}"),
            format!("Content-Type: multipart/mixed; boundary=b\n{real}"),
            format!("{real}{}", "and a letter to you\n".repeat(60)),
        ] {
            assert!(!is_internal(mail.as_bytes()), "{mail}");
        }
    }
}
