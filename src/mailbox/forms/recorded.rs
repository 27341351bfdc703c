//! Recorded sessions: files to which a program wrote several messages with the lines of the protocol that delivered them, such
//! as the responses of a POP3 server, or a batch of Usenet news. A session with one message is read, because the lines before
//! its header are a prologue ([`Prologue`]). A session with several messages is refused: its lines are also allowed in the text
//! of a mail, so no reader can divide the file without doubt.
//!
//! Only lines of the protocol count. A mail that quotes a session in its text does not begin with such a line. In a file that
//! begins with one, a further message counts only after a line with a single dot, which ends a message in POP3, NNTP and SMTP.
//! If the file contains no such line, and in IMAP, the header of a mail must directly follow the line of the protocol.

use crate::mailbox::forms::emlx;
use crate::mailbox::forms::separator::{field, line_end};
use crate::mailbox::not_mail::NotMail;
use crate::prologue::{BYTE_ORDER_MARK, LONG_HEADER, MailFields, Prologue, is_smtp_command};
use crate::span::{front, is_from_line, rest_or_empty, split_while};

const DIVIDE: &str =
    "write each message to a file of its own first, without the lines of the protocol";

const NEWS_BATCH: NotMail = NotMail::Format(
    "a batch of Usenet news with several articles",
    "write each article to a file of its own first",
);

const ARTICLES: NotMail = NotMail::Format("several articles that a news reader saved", DIVIDE);
const POP3: NotMail = NotMail::Format("a recorded POP3 session", DIVIDE);
const IMAP: NotMail = NotMail::Format("a recorded IMAP session", DIVIDE);
const NNTP: NotMail = NotMail::Format("a recorded NNTP session", DIVIDE);
const SMTP: NotMail = NotMail::Format("a recorded SMTP session", DIVIDE);

/// Test of a line without its line ending.
type LineTest = fn(&[u8]) -> bool;

/// A protocol or program that writes several messages to one file.
struct SessionKind {
    refused: NotMail,
    /// Whether the line can be the first one of a session.
    begins: LineTest,
    /// Whether a message follows this line directly.
    announces: LineTest,
    /// Whether only the header of a mail after the line shows that a message follows.
    needs_header: bool,
    /// Whether a line with a single dot ends each message.
    has_dots: bool,
    /// First bytes after a message whose length the line before it contains. They show that the length is right.
    after_length: &'static [&'static [u8]],
}

const KINDS: [SessionKind; 6] = [
    SessionKind {
        refused: NEWS_BATCH,
        begins: is_rnews,
        announces: is_rnews,
        needs_header: false,
        has_dots: false,
        after_length: &[RNEWS],
    },
    SessionKind {
        refused: POP3,
        begins: |line| is_pop3_response(line) || has_command(line, &POP3_COMMANDS),
        announces: is_pop3_response,
        needs_header: true,
        has_dots: true,
        after_length: &[b".\r\n", b".\n"],
    },
    SessionKind {
        refused: IMAP,
        begins: |line| line.starts_with(b"* ") || has_tag(line),
        announces: is_fetch,
        needs_header: true,
        has_dots: false,
        after_length: &[b")", b" "],
    },
    SessionKind {
        refused: NNTP,
        begins: |line| {
            is_article_response(line)
                || has_code(line, &[b"200", b"201", b"211"])
                || has_command(line, &NNTP_COMMANDS)
        },
        announces: is_article_response,
        needs_header: true,
        has_dots: true,
        after_length: &[],
    },
    SessionKind {
        refused: ARTICLES,
        begins: is_saved_article,
        announces: is_saved_article,
        needs_header: true,
        has_dots: false,
        after_length: &[],
    },
    SessionKind {
        refused: SMTP,
        begins: |line| {
            is_smtp_command(line) || has_code(line, &[b"220"]) && !is_article_response(line)
        },
        announces: |line| {
            line.trim_ascii().eq_ignore_ascii_case(b"DATA")
                || has_code(line, &[b"354"])
                || has_command(line, &[b"BDAT"])
        },
        needs_header: true,
        has_dots: true,
        after_length: &[],
    },
];

/// First lines of programs that record what a server sends: telnet and `openssl s_client`.
const CONNECTIONS: [&[u8]; 3] = [b"Trying ", b"Connected to ", b"CONNECTED("];

const POP3_COMMANDS: [&[u8]; 10] = [
    b"USER", b"PASS", b"APOP", b"AUTH", b"CAPA", b"STAT", b"LIST", b"UIDL", b"RETR", b"TOP",
];

const NNTP_COMMANDS: [&[u8]; 4] = [b"MODE", b"GROUP", b"ARTICLE", b"HEAD"];

/// Start of the line before each article in a batch of Usenet news (RFC 1036, section 4.3).
const RNEWS: &[u8] = b"#! rnews ";

/// Number of bytes of headers that are read for each byte of a file. Without this limit, many lines of the protocol in sequence,
/// each with a long header after it, would take quadratic time.
const WORK: usize = 4;

/// Returns false if the first line is a header field, and so begins no session. Nearly every mail begins with a field, so this
/// check must be fast.
pub(crate) fn may_begin_session(message: &[u8]) -> bool {
    let is_end = |byte: &&u8| matches!(byte, b':' | b' ' | b'\t' | b'\r' | b'\n');
    message.iter().find(is_end) != Some(&b':')
}

/// Number of bytes at the start of a file that show its format.
const LOOKED_AT: usize = 64 << 10;

/// Returns why a file is not read as one message: it is a recorded session with several messages, or with lines before its
/// message that are not a prologue. Returns `None` for a single message.
pub(crate) fn refused_session(file: &[u8]) -> Option<NotMail> {
    refused(file, false)
}

/// Does the same with the first 64 KiB of a file. If they do not show where the first message ends, the reader of the file
/// decides, because the text of this message can quote a session.
pub(crate) fn refused_session_of_start(start: &[u8]) -> Option<NotMail> {
    refused(start, start.len() >= LOOKED_AT)
}

fn refused(file: &[u8], is_cut: bool) -> Option<NotMail> {
    let content = emlx::behind_count(file).unwrap_or(file);
    let text = content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(content);
    let (_, text) = split_while(text, u8::is_ascii_whitespace);
    let first = front(text, line_end(front(text, LONGEST_LINE)).0);
    let is_connection = CONNECTIONS.iter().any(|start| first.starts_with(start));
    let mut kinds = KINDS
        .iter()
        .filter(|kind| is_connection || (kind.begins)(first));
    let before = content.len() - text.len();
    let first = Prologue::of(content).map(|prologue| prologue.length.saturating_sub(before));
    kinds.find_map(|kind| {
        kind.has_unread_messages((text, is_cut), first)
            .then_some(kind.refused)
    })
}

/// Maximum length of the first line of a session, in bytes.
const LONGEST_LINE: usize = 2048;

impl SessionKind {
    /// Returns whether a session contains another message than the one whose header is at `first`. It is `None` if no reader
    /// finds a header after the first lines of the session. If the session is cut, its first message may be, too.
    fn has_unread_messages(&self, (session, is_cut): (&[u8], bool), first: Option<usize>) -> bool {
        let has_dots = self.has_dots && (is_cut || has_dot_line(session));
        let mut work = session.len().saturating_mul(WORK);
        let (mut at, mut has_first, mut is_in_message) = (0, first.is_none(), false);
        while at < session.len() {
            let rest = rest_or_empty(session, at);
            let (end, next) = line_end(rest);
            let line = front(rest, end);
            if !has_first && first == Some(at) {
                (has_first, is_in_message) = (true, true);
            }
            at += next;
            if has_dots && line == b"." {
                is_in_message = false;
            }
            if !(self.announces)(line) || has_dots && is_in_message {
                continue;
            }
            let message = rest_or_empty(session, at);
            if !has_first && first == Some(at) {
                (has_first, is_in_message) = (true, true);
                at += self.length_of_message(line, (message, is_cut)).unwrap_or(0);
                continue;
            }
            // After the dot of another message, a field is enough: no text of a mail is at this place.
            let is_after_message = has_dots && has_first && first.is_some();
            let is_message = !self.needs_header
                || is_after_message && (starts_with_field(message) || is_retrieved(line, message))
                || starts_mail(message, &mut work);
            if is_message {
                return true;
            }
        }
        false
    }

    /// Returns the length of a message that the line before it contains. Returns `None` if the length is wrong, for example
    /// because a program converted the line endings. If the message is cut, a length beyond its end is right.
    fn length_of_message(&self, line: &[u8], (message, is_cut): (&[u8], bool)) -> Option<usize> {
        let of_literal = line.strip_suffix(b"}").and_then(|start| {
            let number = start.iter().rposition(|&byte| byte == b'{')?;
            start.get(number + 1..)
        });
        let of_number = || line.split(|&byte| byte == b' ').find(|it| is_number(it));
        let digits = of_literal.or_else(of_number)?;
        let length: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
        if is_cut && length >= message.len() && !self.after_length.is_empty() {
            return Some(message.len());
        }
        let after = message.get(length..)?;
        let is_right = self
            .after_length
            .iter()
            .any(|start| after.starts_with(start));
        (is_right || after.is_empty()).then_some(length)
    }
}

/// Returns whether a response of POP3 contains the length of a message without a header: `+OK 120 octets`.
fn is_retrieved(line: &[u8], message: &[u8]) -> bool {
    let has_length = line.ends_with(b" octets") && line.split(|&byte| byte == b' ').any(is_number);
    has_length && !message.is_empty() && !message.starts_with(b"+OK")
}

fn has_dot_line(session: &[u8]) -> bool {
    let dots = [&b"\n.\n"[..], b"\n.\r", b"\r.\r"];
    let has_line = dots
        .iter()
        .any(|line| memchr::memmem::find(session, line).is_some());
    has_line || session.ends_with(b"\n.")
}

fn is_number(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}

fn is_rnews(line: &[u8]) -> bool {
    line.starts_with(RNEWS)
}

fn is_pop3_response(line: &[u8]) -> bool {
    line == b"+OK" || line.starts_with(b"+OK ")
}

/// Returns whether a line is the response to FETCH (RFC 3501) with a message: `* 12 FETCH (UID 7 BODY[] {1234}`.
fn is_fetch(line: &[u8]) -> bool {
    let mut words = line.split(|&byte| byte == b' ');
    words.next() == Some(b"*")
        && words.next().is_some_and(is_number)
        && words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case(b"FETCH"))
        && line.ends_with(b"}")
}

/// Returns whether a line is a command of an IMAP client: a tag and a word of the protocol.
fn has_tag(line: &[u8]) -> bool {
    const COMMANDS: [&[u8]; 7] = [
        b"LOGIN",
        b"SELECT",
        b"EXAMINE",
        b"FETCH",
        b"UID",
        b"CAPABILITY",
        b"AUTHENTICATE",
    ];
    let mut words = line.trim_ascii_end().split(|&byte| byte == b' ');
    let is_tag = words.next().is_some_and(|tag| {
        (1..=16).contains(&tag.len()) && tag.iter().all(u8::is_ascii_alphanumeric)
    });
    let command = words.next().unwrap_or_default();
    is_tag && COMMANDS.iter().any(|it| it.eq_ignore_ascii_case(command))
}

/// Returns whether a line is the response to ARTICLE or HEAD (RFC 3977): `220 3000234 <45223423@example.com>`.
fn is_article_response(line: &[u8]) -> bool {
    let mut words = line.trim_ascii_end().split(|&byte| byte == b' ');
    words
        .next()
        .is_some_and(|code| code == b"220" || code == b"221")
        && words.next().is_some_and(is_number)
}

/// Returns whether a line precedes an article that a news reader saved: `Article 7301 of comp.mail.mime:`.
fn is_saved_article(line: &[u8]) -> bool {
    let mut words = line.split(|&byte| byte == b' ');
    words.next() == Some(b"Article")
        && words.next().is_some_and(is_number)
        && words.next() == Some(b"of")
}

/// Returns whether a line is a response with one of these codes.
fn has_code(line: &[u8], codes: &[&[u8]]) -> bool {
    let (code, behind) = line.split_at(line.len().min(3));
    codes.contains(&code) && matches!(behind.first(), None | Some(b' ' | b'-'))
}

/// Returns whether the first word of a line is one of these commands.
fn has_command(line: &[u8], commands: &[&[u8]]) -> bool {
    let mut words = line.split(|byte| byte.is_ascii_whitespace());
    let first = words.next().unwrap_or_default();
    commands.iter().any(|it| it.eq_ignore_ascii_case(first))
}

fn starts_with_field(message: &[u8]) -> bool {
    let line = front(message, line_end(front(message, LONGEST_LINE)).0);
    field(line).is_some_and(|(name, value)| !name.is_empty() && !value.starts_with(b"//"))
}

/// Returns whether bytes start with the header of a mail: two fields of mail, one of which no other format has. If `work` is used
/// up, the line of the protocol alone decides, so that no mail is passed over.
pub(crate) fn starts_mail(bytes: &[u8], work: &mut usize) -> bool {
    let mut known = MailFields::default();
    let mut at = 0;
    loop {
        let rest = rest_or_empty(bytes, at);
        if rest.is_empty() && at >= LONG_HEADER {
            return true;
        }
        let (end, next) = line_end(rest);
        let line = front(rest, end);
        let Some(left) = work.checked_sub(next) else {
            return true;
        };
        *work = left;
        match field(line) {
            _ if at > 0 && matches!(line, [b' ' | b'\t', ..]) || is_from_line(line) => {}
            Some((name, _)) if !name.is_empty() => known.add(name),
            _ => return false,
        }
        if known.are_of_mail_alone() {
            return true;
        }
        at += next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "Received: x\nFrom: a@example.org\nSubject: s\n\n";
    const MAIL: &str = "Received: x\nFrom: a@example.org\nSubject: s\n\nbody\n";

    /// Returns a session with two messages for each protocol, with the name of the format.
    fn sessions() -> Vec<(String, &'static str)> {
        let repeated = |before: &str, after: &str| format!("{before}{MAIL}{after}").repeat(2);
        let n = MAIL.len();
        vec![
            (repeated(&format!("#! rnews {n}\n"), ""), "Usenet news"),
            (repeated("+OK 120 octets\n", ".\n"), "POP3"),
            (repeated("+OK\n", ""), "POP3"),
            (format!("+OK\n{MAIL}.\n+OK 7 octets\n\nbody\n.\n"), "POP3"),
            (
                format!(
                    "+OK ready\nUSER ann\n+OK\nPASS x\n+OK\nLIST\n+OK 2 messages\n1 120\n2 120\n.\n{}+OK bye\n",
                    repeated("RETR 1\n+OK 120 octets\n", ".\n")
                ),
                "POP3",
            ),
            (
                repeated(&format!("* 1 FETCH (BODY[] {{{n}}}\n"), ")\n"),
                "IMAP",
            ),
            (repeated("* 1 FETCH (BODY[] {7}\n", ")\n"), "IMAP"),
            (
                format!(
                    "* OK ready\na LOGIN ann x\na OK\n{}a OK done\n",
                    repeated(
                        "b FETCH 1 BODY[]\n* 1 FETCH (UID 3 RFC822 {9}\n",
                        ")\nb OK done\n"
                    )
                ),
                "IMAP",
            ),
            (repeated("220 7 <a@b> article\n", ".\n"), "NNTP"),
            (
                format!("200 ready\n{}", repeated("ARTICLE 7\n220 7 <a@b>\n", ".\n")),
                "NNTP",
            ),
            (repeated("Article 7 of comp.mail.mime:\n", "\n"), "articles"),
            (
                repeated("HELO x\nMAIL FROM:<a@b>\nRCPT TO:<c@d>\nDATA\n", ".\n"),
                "SMTP",
            ),
            (
                format!(
                    "220 mx ESMTP\nEHLO x\n250 ok\n{}QUIT\n221 bye\n",
                    repeated("MAIL FROM:<a@b>\n250 ok\nDATA\n354 go\n", ".\n250 queued\n")
                ),
                "SMTP",
            ),
        ]
    }

    fn name(file: &str) -> &'static str {
        refused_session(file.as_bytes()).map_or("", NotMail::name)
    }

    #[test]
    fn session_with_several_messages_is_refused_with_every_line_ending() {
        for (session, expected) in sessions() {
            for ending in ["\n", "\r\n", "\r"] {
                for before in ["", "\n", "\u{feff}"] {
                    let text = format!("{before}{session}").replace('\n', ending);
                    let found = name(&text);
                    assert!(found.contains(expected), "{found}: {text:?}");
                }
            }
        }
    }

    #[test]
    fn session_with_one_message_is_read_only_if_a_prologue_precedes_its_header() {
        let before = "HELO x\nMAIL FROM:<a@b>\nDATA\n";
        for (text, expected) in [
            (format!("+OK 120 octets\n{MAIL}.\n"), ""),
            (
                format!("+OK ready\n+OK\n+OK 120 octets\n{MAIL}.\n+OK bye\n"),
                "",
            ),
            (
                format!("* 1 FETCH (BODY[] {{{}}}\n{MAIL})\na OK\n", MAIL.len()),
                "",
            ),
            (format!("220 7 <a@b>\n{MAIL}.\n205 bye\n"), ""),
            (format!("Article 7 of comp.mail.mime:\n{MAIL}"), ""),
            (format!("{before}{MAIL}.\nQUIT\n"), ""),
            (format!("#! rnews 1\n{MAIL}"), ""),
            (
                format!("+OK ready\nUSER ann\n+OK\nRETR 1\n+OK 9\n{MAIL}.\n"),
                "POP3",
            ),
            (
                format!("Trying 192.0.2.1...\nConnected to x.\n+OK ready\nRETR 1\n+OK\n{MAIL}.\n"),
                "POP3",
            ),
            (
                format!("220 mx ESMTP\nHELO x\n250 ok\nDATA\n354 go\n{MAIL}.\n"),
                "SMTP",
            ),
            (
                format!("a LOGIN ann x\na OK\n* 1 FETCH (BODY[] {{9}}\n{MAIL})\n"),
                "IMAP",
            ),
        ] {
            assert!(name(&text).contains(expected), "{text}");
            assert_eq!(name(&text).is_empty(), expected.is_empty(), "{text}");
        }
    }

    #[test]
    fn mail_that_quotes_a_session_is_one_mail() {
        for (session, _) in sessions() {
            // Neither a mail, nor a text before such a session.
            for text in [
                format!("{HEADER}{session}"),
                format!("Dear all,\n\n{session}"),
                format!("From a@b Mon Jan  6 10:00:00 2020\n{HEADER}{session}"),
            ] {
                assert_eq!(name(&text), "", "{text}");
            }
            // A recorded mail whose text contains a session, which is quoted, indented, or after the lines of another one.
            for quote in ["> ", "    "] {
                let quoted: String = session.lines().map(|it| format!("{quote}{it}\n")).collect();
                let text = format!("+OK 120 octets\n{HEADER}{quoted}.\n");
                assert_eq!(name(&text), "", "{text}");
            }
        }
        let inner = format!("+OK\n{MAIL}+OK\n{MAIL}");
        assert_eq!(name(&format!("+OK 120 octets\n{HEADER}{inner}.\n")), "");
        let inner = format!("* 1 FETCH (BODY[] {{9}}\n{MAIL})\n");
        let whole = format!("{HEADER}{inner}");
        let text = format!("* 1 FETCH (BODY[] {{{}}}\n{whole})\n", whole.len());
        assert_eq!(name(&text), "");
        for text in [
            "+OK Pete, here\nDear all,\n",
            "+OK\n",
            "220 pages\nArticle 7 of the law\n",
            "MODE\nFrom: a\nTo: b\n\n",
            "",
        ] {
            assert_eq!(name(text), "", "{text}");
        }
    }

    #[test]
    fn long_message_that_quotes_a_session_is_not_refused_by_its_start() {
        let of_start = |file: &str| {
            let start = front(file.as_bytes(), LOOKED_AT);
            refused_session_of_start(start).map_or("", NotMail::name)
        };
        let rest = "long line\n".repeat(LOOKED_AT / 5);
        for (session, _) in sessions() {
            for whole in [
                format!("{HEADER}{session}{rest}"),
                format!("{HEADER}{rest}"),
            ] {
                let n = whole.len();
                for text in [
                    format!("+OK {n} octets\n{whole}.\n"),
                    format!("+OK\n{whole}.\n"),
                    format!("* 1 FETCH (BODY[] {{{n}}}\n{whole})\n"),
                    format!("220 7 <a@b>\n{whole}.\n"),
                    format!("HELO x\nMAIL FROM:<a@b>\nDATA\n{whole}.\n"),
                    format!("#! rnews {n}\n{whole}"),
                ] {
                    // Dots in the quoted session end the message in the protocols with dots, so they would be doubled.
                    let is_exact = !session.contains("\n.\n") || text.starts_with(['*', '#']);
                    if is_exact {
                        assert_eq!(of_start(&text), "", "{session}");
                        assert_eq!(name(&text), "", "{session}");
                    }
                }
            }
        }
        let short = format!("+OK\n{MAIL}.\n+OK\n{MAIL}{rest}.\n");
        assert_eq!(of_start(&short), "a recorded POP3 session");
    }

    #[test]
    fn many_lines_of_a_protocol_do_not_each_cost_a_whole_header() {
        let long = format!("+OK\n{MAIL}.\n{}", "+OK :a\n".repeat(200_000));
        assert_eq!(name(&long), "a recorded POP3 session");
    }
}
