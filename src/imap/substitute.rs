//! Recognises the text that Microsoft Exchange sends in place of a message that it cannot convert.
//!
//! Exchange answers FETCH of such a message with OK and a short text ("Retrieval using the IMAP4 protocol failed for the
//! following message"), in the language of the server. A backup must not take this text for the message.

use crate::mime::encoded_words::decoded_words;
use crate::mime::{Header, header};

/// Maximum size of the text in bytes. It quotes the subject and the sender of the message.
pub(super) const LONGEST_SUBSTITUTE: usize = 16 << 10;
/// Report for a message for which the server sent an error text instead.
pub(super) const SUBSTITUTED: &str = "the server cannot convert the message, and sent a text about this error in place of the message (Microsoft Exchange: \"Retrieval using the IMAP4 protocol failed\")";
/// Start of the sender's name. A year, such as 2010, may follow.
const SENDER: &str = "microsoft exchange server";

/// Returns whether the content is the text of Exchange. `announced` is the size that the server announced for the message, or
/// 0.
///
/// The sender is Exchange without an address, and the header has no date and no Message-ID. Notices that Exchange sends as mail
/// have all three, and so does mail of people who quote the text. The subject names the protocol in every language. If it does
/// not, the text counts as a substitute only if the message has another size.
pub(super) fn is_substitute(content: &[u8], announced: u64) -> bool {
    if content.len() > LONGEST_SUBSTITUTE {
        return false;
    }
    let header = Header::of_message(content, LONGEST_SUBSTITUTE);
    let value = |name: &str| header.fields.value(content, name);
    let of_mail = [
        "Date",
        "Message-ID",
        "Received",
        "Resent-From",
        "In-Reply-To",
    ];
    if of_mail.iter().any(|name| value(name).is_some()) {
        return false;
    }
    let text = |name: &str| value(name).map(|it| decoded_words(&header::unfold(it)));
    let Some(sender) = text("From").filter(|sender| is_exchange(sender)) else {
        return false;
    };
    let is_text = text("Content-Type").is_none_or(|it| {
        let it = it.trim_start().to_ascii_lowercase();
        it.starts_with("text/plain")
    });
    let subject = text("Subject").unwrap_or_default().to_ascii_uppercase();
    let is_of_protocol = subject.contains("IMAP");
    let has_other_size = announced > 0 && announced != content.len() as u64;
    !sender.is_empty() && is_text && (is_of_protocol || has_other_size)
}

/// Returns whether the value of From is the name of the server with an optional year and without an address.
fn is_exchange(sender: &str) -> bool {
    let lower = sender.to_ascii_lowercase();
    let plain = lower.replace(['"', '<', '>'], " ");
    let Some(rest) = plain.trim().strip_prefix(SENDER) else {
        return false;
    };
    let rest = rest.trim();
    rest.is_empty() || rest.len() == 4 && rest.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBJECT: &str =
        "Subject: Retrieval using the IMAP4 protocol failed for the following\r\n message: 4\r\n";
    const GERMAN: &str = "Subject: =?utf-8?B?QmVpbSBBYnJ1ZmVuIG1pdCBkZW0gUHJvdG9rb2xsIElNQVA0?= der Nachricht: 17\r\n";

    fn text(from: &str, subject: &str, more: &str) -> Vec<u8> {
        format!(
            "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=\"us-ascii\"\r\nFrom: {from}\r\nTo: B <b@example.org>\r\n{subject}{more}Content-Transfer-Encoding: quoted-printable\r\n\r\nThe server couldn't retrieve the following message:\r\n\r\nSubject: \"Plan\"\r\n"
        )
        .into_bytes()
    }

    #[test]
    fn text_of_exchange_is_recognised_in_each_form() {
        for (from, subject, announced) in [
            ("Microsoft Exchange Server 2010", SUBJECT, 0),
            ("Microsoft Exchange Server", SUBJECT, 0),
            ("\"Microsoft Exchange Server 2007\"", SUBJECT, 9000),
            ("Microsoft Exchange Server 2016 <>", GERMAN, 0),
            ("=?us-ascii?Q?Microsoft_Exchange_Server_2013?=", GERMAN, 0),
            ("Microsoft Exchange Server 2010", "Subject: x: 4\r\n", 9000),
        ] {
            let text = text(from, subject, "");
            assert!(is_substitute(&text, announced), "{from} {subject}");
            let with_lf = String::from_utf8(text).unwrap().replace("\r\n", "\n");
            assert!(
                is_substitute(with_lf.as_bytes(), announced),
                "{from} {subject} LF"
            );
        }
    }

    #[test]
    fn mail_that_quotes_the_text_and_notices_of_exchange_are_mail() {
        let own = "Microsoft Exchange Server 2010";
        for (from, subject, more) in [
            (own, SUBJECT, "Date: Fri, 3 Jan 2020 10:00:00 +0100\r\n"),
            (own, SUBJECT, "Message-ID: <1@example.org>\r\n"),
            (own, SUBJECT, "Received: by mail.example.org\r\n"),
            (
                "Microsoft Exchange Server <exchange@example.org>",
                SUBJECT,
                "",
            ),
            ("Microsoft Exchange Server 2010 Team", SUBJECT, ""),
            ("exchange@example.org", SUBJECT, ""),
            ("Ann <ann@example.org>", SUBJECT, ""),
            (own, "Subject: your quota is full\r\n", ""),
        ] {
            assert!(
                !is_substitute(&text(from, subject, more), 0),
                "{from} {subject} {more}"
            );
        }
        let mut long = text(own, SUBJECT, "");
        long.resize(LONGEST_SUBSTITUTE + 1, b'x');
        assert!(!is_substitute(&long, 9000));
        let plain = String::from_utf8(text(own, SUBJECT, "")).unwrap();
        let multipart = plain.replace("text/plain", "multipart/mixed; boundary=b");
        assert!(!is_substitute(multipart.as_bytes(), 9000));
    }
}
