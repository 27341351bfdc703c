//! Recognises the format of a file by its first bytes and its name (docs/mailbox-internals.md, "What is mail").

use std::path::Path;

use crate::mailbox::candidate::FormatCandidate;
use crate::mailbox::compressed::plain_suffix;
use crate::mailbox::encoding::UnicodeEncoding;
use crate::mailbox::forms::archive::is_archive;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::recorded::refused_session_of_start;
use crate::mailbox::forms::refused::refused;
use crate::mailbox::forms::separator::{field, from_line_length, line_end, name_length};
use crate::mailbox::forms::suffixes::SuffixClass;
use crate::mailbox::forms::{Format, emlx, eudora, mmdf, outlook};
use crate::mailbox::not_mail::NotMail;
use crate::prologue::{BYTE_ORDER_MARK, LONG_HEADER, MailFields, Prologue};
use crate::span::{Span, SpanLines, front, rest_or_empty, split_while};

/// The kind of a file, or the reason why the file is not read. `None` if the file does not have the format.
type StartVerdict = Option<Result<StartKind, NotMail>>;

/// The formats that the first bytes of a file show, in the order in which they are tried. Each function judges one format. The
/// formats with a magic number are before those that are recognised by a line of text.
const STARTS: [fn(&[u8]) -> StartVerdict; 12] = [
    // An empty file is an mbox without messages.
    |start| start.is_empty().then_some(Ok(StartKind::Mbox)),
    |start| Some(outlook::pst_of_start(start)?.map(|()| StartKind::Pst)),
    |start| is_refused(start.starts_with(SQLITE), NotMail::DATABASE),
    |start| is_refused(start.starts_with(APPLE_DOUBLE), NotMail::APPLE_DOUBLE),
    |start| refused(start).map(Err),
    |start| starts_mbox(start).then_some(Ok(StartKind::Mbox)),
    |start| is_archive(start).then_some(Ok(StartKind::Archive)),
    |start| {
        Some(Err(match UnicodeEncoding::of_mail(start)? {
            UnicodeEncoding::Utf16(_) => NotMail::UTF16,
            UnicodeEncoding::Utf32 => NotMail::UTF32,
            UnicodeEncoding::Ebcdic => NotMail::EBCDIC,
        }))
    },
    |start| {
        let prologue = Prologue::of(in_emlx(start))?;
        is_refused(
            prologue.has_separator_after_banner,
            NotMail::MBOX_AFTER_TEXT,
        )
    },
    |start| refused_session_of_start(start).map(Err),
    |start| is_refused(starts_mbox_with_tabs(start), NotMail::MBOX_WITH_TABS),
    |start| starts_message(start).then_some(Ok(StartKind::Eml)),
];

fn is_refused(is_it: bool, other: NotMail) -> StartVerdict {
    is_it.then_some(Err(other))
}

/// Returns whether the file starts with the first separator of an mbox or an MMDF mailbox.
fn starts_mbox(start: &[u8]) -> bool {
    let (_, text) = after_blanks(start);
    from_line_length(text).is_some() || mmdf::starts(start)
}

/// Returns whether the file starts with a line `From`, a tab and further words, and a header field follows. Python, Dovecot and
/// mutt recognise a separator only by a space at this place.
fn starts_mbox_with_tabs(start: &[u8]) -> bool {
    let (_, text) = after_blanks(start);
    let is_separator = text.starts_with(b"From\t") && field(text).is_none();
    is_separator && starts_with_mail_header(rest_or_empty(text, line_end(text).1), false)
}

/// Returns whether the file starts with the header of a mail, which other lines can precede.
fn starts_message(start: &[u8]) -> bool {
    let is_header = match emlx::behind_count(start) {
        Some(header) => starts_with_mail_header(header, false),
        None => {
            let (blanks, text) = after_blanks(start);
            starts_with_mail_header(text, !blanks.is_empty())
        }
    };
    is_header || Prologue::of(in_emlx(start)).is_some()
}

/// Returns the start of the message in an `.emlx` file. Any other file is the message itself.
fn in_emlx(start: &[u8]) -> &[u8] {
    emlx::behind_count(start).unwrap_or(start)
}

/// Returns the empty lines after a byte order mark, and the text after them.
fn after_blanks(start: &[u8]) -> (&[u8], &[u8]) {
    let text = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    split_while(text, |octet| matches!(octet, b'\n' | b'\r'))
}

/// Returns the kind of a file by its first bytes.
///
/// # Errors
/// Returns what the file is, if embody does not read it as mail.
pub(crate) fn kind_of_start(start: &[u8]) -> Result<StartKind, NotMail> {
    let verdict = STARTS.iter().find_map(|judge| judge(start));
    verdict.unwrap_or_else(|| {
        Err(if is_binary(start) {
            NotMail::Binary
        } else {
            NotMail::Text
        })
    })
}

/// Returns the kind of a source by its first bytes. `format` is the format that the user named.
///
/// # Errors
/// Returns what the source is, if embody does not read it as mail.
pub(crate) fn kind_of(
    start: &[u8],
    format: Format,
    candidate: FormatCandidate<'_>,
) -> Result<StartKind, NotMail> {
    if outlook::is_msg(start, format, candidate) {
        return Ok(StartKind::Msg);
    }
    // Only the Eudora mailbox in a plain file has an index and attachments next to it.
    let may_be_eudora = format == Format::Auto && candidate.is_plain_file();
    match kind_in_format(start, format)? {
        StartKind::Mbox if may_be_eudora && eudora::starts(start) => Ok(StartKind::Eudora),
        kind => Ok(kind),
    }
}

/// Returns the kind of a source, if it has the format that the user named.
fn kind_in_format(start: &[u8], format: Format) -> Result<StartKind, NotMail> {
    let kind = kind_of_start(start);
    let is_mmdf = mmdf::starts(start);
    match (format, kind) {
        (Format::Maildir, _) => Err(NotMail::OtherFormat(
            "the source is a file, but a Maildir is a directory",
        )),
        (Format::Mh, _) => Err(NotMail::OtherFormat(
            "the source is a file, but an MH folder is a directory",
        )),
        (Format::Mmdf, Ok(kind)) if kind != StartKind::Pst && !is_mmdf && !start.is_empty() => {
            Err(NotMail::OtherFormat(
                "the file is not an MMDF mailbox: the file does not start with a line of four Control-A characters",
            ))
        }
        (Format::Mbox | Format::Eml, _) if is_mmdf => Err(NotMail::ReadAs(
            "the file is an MMDF mailbox (with lines of four Control-A characters); to read the file, use ",
            " auto or mmdf",
        )),
        (Format::Mbox | Format::Eml | Format::Mmdf, Ok(StartKind::Pst)) => Err(NotMail::ReadAs(
            "the file is an Outlook mailbox; to read the file, use ",
            " auto",
        )),
        (Format::Mbox, Ok(StartKind::Eml)) => Err(NotMail::OtherFormat(
            "the file is not an mbox: the file starts with the header of a message, not with a \"From \" line",
        )),
        (Format::Eml, Ok(StartKind::Archive)) => Err(NotMail::ReadAs(
            "the file is an archive; to read the mboxes in the archive, use ",
            " auto or mbox",
        )),
        (Format::Eml, Ok(_) | Err(NotMail::Text)) => Ok(StartKind::Eml),
        (_, kind) => kind,
    }
}

/// Corrects the kind of a file by its name. A file named `.eml` or `.mht` is a message if `start`, its first bytes, show no
/// other format: otherwise a mail with one damaged byte in its header would be skipped. An AppleDouble file is a part of its
/// neighbour only if its name says which file that is.
pub(crate) fn as_named(
    kind: Result<StartKind, NotMail>,
    (path, start): (&Path, &[u8]),
    format: Format,
) -> Result<StartKind, NotMail> {
    if kind == Err(NotMail::APPLE_DOUBLE) && !is_named_apple_double(path) {
        return Err(NotMail::LONE_APPLE_DOUBLE);
    }
    let class = plain_suffix(path).and_then(SuffixClass::of);
    match (kind, format, class) {
        // After a crash of the system, a file can begin with NULs or consist of them.
        _ if start.starts_with(b"\0") => kind,
        (Err(NotMail::Text), Format::Auto, Some(SuffixClass::Message | SuffixClass::SavedPage))
        | (Err(NotMail::Binary), Format::Auto | Format::Eml, Some(SuffixClass::Message)) => {
            Ok(StartKind::Eml)
        }
        _ => kind,
    }
}

/// Returns whether the name is that of an AppleDouble file: `._NAME` next to NAME, or NAME in a directory of such files.
fn is_named_apple_double(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    name.as_encoded_bytes().starts_with(b"._") || folder == ".AppleDouble" || folder == "__MACOSX"
}

/// Returns whether bytes are the start of a picture, a document, a sound, a film or a program.
pub(crate) fn is_known_file(start: &[u8]) -> bool {
    const MAGICS: [&[u8]; 15] = [
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff",
        b"GIF87a",
        b"GIF89a",
        b"%PDF-",
        b"II*\0",
        b"MM\0*",
        b"OggS\0",
        b"fLaC\0",
        b"\x7fELF",
        b"\xca\xfe\xba\xbe",
        b"\0\0\x01\0",
        b"wOFF",
        b"\x30\x26\xb2\x75\x8e\x66",
        b"%!PS-Adobe-",
    ];
    let kind = start.get(8..12).unwrap_or_default();
    let is_riff = start.starts_with(b"RIFF") && [&b"WEBP"[..], b"WAVE", b"AVI "].contains(&kind);
    let is_film = start.get(4..8) == Some(b"ftyp");
    let is_sound = matches!(start, [b'I', b'D', b'3', 0..=4, ..]);
    let is_program = matches!(start, [b'M', b'Z', _, 0, ..]);
    is_riff || is_film || is_sound || is_program || MAGICS.iter().any(|it| start.starts_with(it))
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

/// First bytes of a database of SQLite.
const SQLITE: &[u8] = b"SQLite format 3\0";

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
/// outnumber the other lines. If all of `start` is a part of a long header, its first field decides.
pub(crate) fn starts_with_mail_header(start: &[u8], is_damaged: bool) -> bool {
    let (mut known, mut fields, mut others) = (MailFields::default(), 0_usize, 0_usize);
    let (mut is_first, mut is_whole) = (true, start.len() < LONG_HEADER);
    let mut is_long = false;
    for whole in SpanLines::new(start, Span::new(0, start.len())).map(|line| line.whole.of(start)) {
        let without_lf = whole.strip_suffix(b"\n").unwrap_or(whole);
        let is_cut = without_lf.len() == whole.len();
        // Several CRs belong to one line ending: files that were converted twice contain CR CR LF.
        let returns = without_lf.iter().rev().take_while(|&&octet| octet == b'\r');
        let line = front(without_lf, without_lf.len() - returns.count());
        if line.is_empty() {
            is_whole = true;
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
            is_long |= is_first && MailFields::begins_long_header(name);
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
        0 if is_long && !is_whole => true,
        0 if !is_damaged => known.is_any(),
        _ => known.are_of_mail_alone() && fields > others,
    }
}

/// Returns whether a text starts like the header of a mail, but has further lines in it: its first line is a field that is
/// specific to mail, and another field follows before the first empty line.
pub(crate) fn begins_like_header(start: &[u8]) -> bool {
    let mut lines = start.split(|&byte| byte == b'\n');
    let is_empty = |line: &&[u8]| !line.trim_ascii().is_empty();
    let field = |line: &[u8]| {
        let (name, value) = line.split_at(name_length(line));
        let value = value.trim_ascii_start().strip_prefix(b":")?;
        (!name.is_empty() && !value.trim_ascii().is_empty()).then(|| MailFields::is_of_mail(name))
    };
    let begins = lines.next().and_then(field) == Some(true);
    begins && lines.take_while(is_empty).any(|line| field(line).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_of_a_file_is_detected_from_its_first_bytes() {
        let kind_of = |start: &[u8]| kind_in_format(start, Format::Auto);
        assert_eq!(kind_of(b""), Ok(StartKind::Mbox));
        assert_eq!(kind_of(b"From a\nSubject: x\n\n"), Ok(StartKind::Mbox));
        assert_eq!(kind_of(b"\r\n\nFrom a\n"), Ok(StartKind::Mbox));
        let mmdf = b"\x01\x01\x01\x01\nFrom: a@b\n".as_slice();
        assert_eq!(kind_of(mmdf), Ok(StartKind::Mbox));
        assert_eq!(kind_in_format(mmdf, Format::Mmdf), Ok(StartKind::Mbox));
        for (start, format) in [
            (mmdf, Format::Mbox),
            (mmdf, Format::Eml),
            (b"From a\n\n", Format::Mmdf),
            (b"\x01\x01\x01\x01x\n", Format::Mmdf),
        ] {
            assert!(kind_in_format(start, format).is_err());
        }
        assert_eq!(kind_of(b"From: a@b\nSubject: x\n\n"), Ok(StartKind::Eml));
        assert_eq!(
            kind_of(b"From: a@b\nSubject: x\n\n\0\0"),
            Ok(StartKind::Eml)
        );
        assert_eq!(
            kind_of(b"Received: a\r\n\tb\r\n\r\nFrom "),
            Ok(StartKind::Eml)
        );
        assert_eq!(kind_of(b"Subject: no end"), Ok(StartKind::Eml));
        for damaged in [
            b"From: a@b\nSubject: x\n>From a@b Mon Jan  1 00:00:00 2024\nTo: c@d\n\n".as_slice(),
            b">From a@b Mon Jan  1 00:00:00 2024\nTo: c@d\n\n",
            b"\xef\xbb\xbfFrom: a@b\n\n",
            b"\n\r\nFrom: a@b\nTo: c@d\n\n",
            b"Fr\xffm: a@b\nSubject: x\nTo: c@d\n\n",
            b"Received: x\n\0\0\nDate: y\nX-\n\ty\nX: y\n\n",
            b"From: a@b\r\r\nTo: c@d\r\r\n\r\r\nDear all,\r\r\n",
        ] {
            assert_eq!(
                kind_of(damaged),
                Ok(StartKind::Eml),
                "{}",
                damaged.escape_ascii()
            );
        }
        assert_eq!(
            kind_of(b"\xef\xbb\xbfFrom a\nSubject: x\n\n"),
            Ok(StartKind::Mbox)
        );
        for text in [
            b"Dear all,\nSubject: x\n".as_slice(),
            b"Dear all,\nso far\nSubject: x\nFrom: y\n",
            b"HTTP/1.1 200 OK\r\nDate: x\r\nContent-Type: text/html\r\n\r\n",
            b"\n\nSubject: x\n\n",
            b"\xef\xbb\xbftitle: x\n\n",
            b"QK\x03\x04\0boxFrom a\nFrom: a@b\nTo: x\nSubject: y\n\n",
            b"title: x\nlayout: post\n\n",
            b"title: x\n\n\0\0",
            b" From a\n",
            b"\n\n",
            b"\x1b$B%a\x1b(B\n",
        ] {
            assert_eq!(kind_of(text), Err(NotMail::Text), "{}", text.escape_ascii());
            assert_eq!(kind_in_format(text, Format::Eml), Ok(StartKind::Eml));
        }
        for (other, name) in [
            (b"\x1f\x8b\x08Subject: x\n".as_slice(), "gzip"),
            (b"\0\0", "binary"),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary"),
            (b"ab\x01\x02\x03\x04", "binary"),
        ] {
            for format in [Format::Auto, Format::Eml, Format::Mbox] {
                let found = kind_in_format(other, format).expect_err("it is no mail");
                assert!(found.name().contains(name), "{}", other.escape_ascii());
            }
        }
    }
}
