//! Recognises the format of one file or of one member of an archive, by its first bytes, its name and, if these leave it open,
//! its content.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

use crate::error::Error;
use crate::mailbox::among::refused_among_messages;
use crate::mailbox::archive::{
    MemberVerdict, has_zipped_mail, is_packed_document, is_zip_with_mail_at_end, mail_in_script,
};
use crate::mailbox::candidate::FormatCandidate;
use crate::mailbox::compressed::{
    CompressionDamage, Decoder, MAGIC, Method, check_built, plain_suffix,
};
use crate::mailbox::damaged::damaged;
use crate::mailbox::failure::cannot_read;
use crate::mailbox::forms::archive::EmbeddedMail;
use crate::mailbox::forms::eudora_files::lists_messages;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::outlook;
use crate::mailbox::forms::refused::{OLM, is_of_olm, refused_by_name};
use crate::mailbox::forms::separator::{is_separator, is_separator_after_cr};
use crate::mailbox::forms::state_files::archived_state;
use crate::mailbox::forms::suffixes::SuffixClass;
use crate::mailbox::forms::{Format, mmdf};
use crate::mailbox::input::second::is_one_message;
use crate::mailbox::not_mail::{ContentVerdict, NotMail, starts_like_document};
use crate::mailbox::partial::is_path_of_message;
use crate::mailbox::start::{as_named, before_first_message, kind_of, kind_of_start};
use crate::prologue::BYTE_ORDER_MARK;
use crate::span::front;

pub(crate) const LOOKED_AT: u64 = 64 << 10;

/// The kind and the compression of a file with mail, or the reason why the file is not read.
pub(crate) type FileVerdict = Result<(StartKind, Option<Method>), NotMail>;

pub(crate) fn look_at(path: &Path, format: Format) -> Result<FileVerdict, Error> {
    let (file, start) = opened(path)?;
    verdict_of((path, format), (&start, &file))
}

/// Returns the verdict on a file in a directory, and whether the file is a zip archive that is an office document, an electronic
/// book or a software package. This is decided by the names of its members, of which the archive has a list.
pub(super) fn look_in_directory(path: &Path, format: Format) -> Result<(FileVerdict, bool), Error> {
    let (file, start) = opened(path)?;
    let verdict = verdict_of((path, format), (&start, &file))?;
    let is_archive = matches!(verdict, Ok((StartKind::Archive, _)));
    let is_document = is_archive && starts_like_document(&start) && is_packed_document(file);
    Ok((verdict, is_document))
}

/// Opens a file and reads its start.
fn opened(path: &Path) -> Result<(File, Vec<u8>), Error> {
    let mut start = Vec::new();
    let file = File::open(path).map_err(cannot_read(path))?;
    let read = (&file).take(LOOKED_AT).read_to_end(&mut start);
    read.map_err(cannot_read(path))?;
    Ok((file, start))
}

fn verdict_of(
    (path, format): (&Path, Format),
    (start, file): (&[u8], &File),
) -> Result<FileVerdict, Error> {
    if let Some(other) = refused_by_name(path, start).filter(|_| format == Format::Auto) {
        return Ok(Err(other));
    }
    let method = Method::of_start(front(start, MAGIC));
    let Some(method) = method.or_else(|| Method::of_text(start)) else {
        check_outlook(path, start)?;
        check_archive(path, start)?;
        let by_start = kind_of(start, format, FormatCandidate::File(path, file));
        // The structure of the file may have been read.
        let mut reader = file;
        reader.rewind().map_err(cannot_read(path))?;
        let by_name = as_named(by_start, (path, start), format);
        if by_name == Ok(StartKind::Mbox) && start.is_empty() && lists_messages(path) {
            return Ok(Err(NotMail::EMPTY_WITH_INDEX));
        }
        let by_content = as_content(by_name, (path, format), (start, file), None)?;
        let kind = by_content.map_err(|other| damaged(path, start, other).unwrap_or(other));
        return Ok(match kind {
            Err(other) => Err(archive_after(file, start, other).unwrap_or(other)),
            Ok(kind) => Ok((kind, None)),
        });
    };
    check_built(method).map_err(cannot_read(path))?;
    let reader = start.chain(file);
    let decoder = Decoder::new(method, reader, u64::MAX);
    let mut plain = Vec::new();
    let is_damaged = match decoder.take(LOOKED_AT).read_to_end(&mut plain) {
        Ok(_) => false,
        Err(error)
            if error
                .get_ref()
                .is_some_and(|inner| inner.is::<CompressionDamage>()) =>
        {
            true
        }
        Err(error) => return Err(cannot_read(path)(error)),
    };
    if !is_damaged {
        check_outlook(path, &plain)?;
    }
    let by_start = kind_of(&plain, format, FormatCandidate::Packed(path));
    Ok(match by_start {
        Err(_) if is_damaged && format != Format::Maildir => Ok((StartKind::Mbox, Some(method))),
        _ => {
            let by_name = as_named(by_start, (path, &plain), format);
            let by_content = as_content(by_name, (path, format), (&plain, file), Some(method))?;
            let name = match Method::of_name(path) {
                Some(_) => Path::new(path.file_stem().unwrap_or_default()),
                None => path,
            };
            let kind = by_content.map_err(|other| damaged(name, &plain, other).unwrap_or(other));
            kind.map(|kind| (kind, Some(method)))
        }
    })
}

/// Corrects the kind of a file named `.eml` that starts with a `From ` line. If a second message follows, the file is
/// an mbox. Otherwise, it is a single message: some programs save a message with the separator that it had in an mbox.
/// A single message is not divided, and its text is not quoted.
fn as_content(
    kind: Result<StartKind, NotMail>,
    (path, format): (&Path, Format),
    (start, file): (&[u8], &File),
    method: Option<Method>,
) -> Result<Result<StartKind, NotMail>, Error> {
    let is_named = plain_suffix(path).and_then(SuffixClass::of) == Some(SuffixClass::Message);
    let is_mbox = kind == Ok(StartKind::Mbox) && before_first_message(start).is_some();
    let may_be = is_mbox && format == Format::Auto && !start.is_empty();
    if !(is_named && may_be) {
        return Ok(kind);
    }
    let is_one = is_one_message(file, method).map_err(cannot_read(path))?;
    Ok(if is_one { Ok(StartKind::Eml) } else { kind })
}

/// Returns whether the file is empty and has the name of a message, such as `x.eml`. An empty file with any other name
/// is an mbox without messages.
pub(crate) fn is_empty_message(path: &Path, length: u64) -> bool {
    let class = path.extension().and_then(SuffixClass::of);
    length == 0 && class.is_some_and(SuffixClass::is_message)
}

/// Checks that a file with the name of an Outlook file is not empty. Unlike an empty mbox, such a file is never a
/// mailbox without mail, but a copy that failed.
///
/// # Errors
/// Returns [`Error::Read`] if the file is empty. `start` is the start of its content after decompression.
pub(crate) fn check_outlook(path: &Path, start: &[u8]) -> Result<(), Error> {
    if !(start.is_empty() && is_named_outlook(path)) {
        return Ok(());
    }
    let why = "the file is empty, and an Outlook file never is; get another copy of the file";
    Err(cannot_read(path)(io::Error::new(
        io::ErrorKind::UnexpectedEof,
        why,
    )))
}

/// Checks that a file with the name of an archive or of a compressed file is not empty.
///
/// # Errors
/// Returns [`Error::Read`] if the file is empty. `start` is the start of its content before decompression.
fn check_archive(path: &Path, start: &[u8]) -> Result<(), Error> {
    if !(start.is_empty() && is_named_archive(path)) || has_folders_of_thunderbird(path) {
        return Ok(());
    }
    let why = "the file is empty, and an archive or a compressed file never is; get another copy of the file";
    Err(cannot_read(path)(io::Error::new(
        io::ErrorKind::UnexpectedEof,
        why,
    )))
}

/// Returns whether the file is a folder of Thunderbird that contains folders: they are in a directory next to it.
fn has_folders_of_thunderbird(path: &Path) -> bool {
    let mut name = path.as_os_str().to_owned();
    name.push(".sbd");
    Path::new(&name).is_dir()
}

/// Returns whether the name is that of an archive or of a compressed file.
fn is_named_archive(path: &Path) -> bool {
    use SuffixClass::{Archive, Compressed, OtherArchive};
    let class = path.extension().and_then(SuffixClass::of);
    matches!(class, Some(Archive | Compressed | OtherArchive))
}

/// Returns whether an empty file is a mailbox without messages, by its name: it has no suffix, or one of a mailbox, or one that
/// belongs to the name of a folder, such as `Dr. Who`. `has` returns whether the directory contains a file with this name.
pub(super) fn is_empty_mailbox(path: &Path, has: impl Fn(&str) -> bool) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let suffix = path.extension().and_then(|suffix| suffix.to_str());
    let is_of_file = suffix.is_some_and(|suffix| {
        (1..=5).contains(&suffix.len())
            && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && suffix.bytes().any(|byte| byte.is_ascii_lowercase())
            && !SuffixClass::of(OsStr::new(suffix)).is_some_and(SuffixClass::is_mbox)
    });
    // Thunderbird keeps an index next to each of its mailboxes.
    !is_of_file || name.is_some_and(|name| has(&format!("{name}.msf")))
}

/// Returns whether the name, without the suffix of a compression, is that of a mailbox or a message of Outlook.
fn is_named_outlook(path: &Path) -> bool {
    let class = plain_suffix(path).and_then(SuffixClass::of);
    class.is_some_and(SuffixClass::is_of_outlook) || outlook::is_named_tnef(path)
}

pub(crate) fn judged(name: &[u8], start: &[u8]) -> MemberVerdict {
    let verdict = judged_by_start(name, start);
    if !matches!(verdict, MemberVerdict::Skipped(_)) {
        return verdict;
    }
    // The end of the member is not known, so only an archive in its first bytes is found.
    let is_script = || mail_in_script(None, start, is_mail_in_archive) == Some(EmbeddedMail::Found);
    match () {
        () if has_zipped_mail(start, is_mail_in_archive) => refused_member(archive_at_end(start)),
        () if is_script() => refused_member(NotMail::SCRIPT_WITH_MAIL),
        () => verdict,
    }
}

fn judged_by_start(name: &[u8], start: &[u8]) -> MemberVerdict {
    let text = String::from_utf8_lossy(name);
    let path = Path::new(text.as_ref());
    if start.is_empty() && is_named_outlook(path) {
        return MemberVerdict::Left("an empty Outlook file, which is a copy that failed");
    }
    if start.is_empty() && is_named_archive(path) {
        return MemberVerdict::Left(
            "an empty file with the name of an archive, which is a copy that failed",
        );
    }
    if start.is_empty()
        && let Some(what) = archived_state(path, start)
    {
        return MemberVerdict::Part(what);
    }
    if Method::of_start(start).is_some() {
        return MemberVerdict::Nested;
    }
    if is_of_olm(name) {
        return refused_member(OLM);
    }
    if let Some(other) = refused_by_name(path, start) {
        return refused_member(other);
    }
    let by_start = kind_of(start, Format::Auto, FormatCandidate::Packed(path));
    match as_named(by_start, (path, start), Format::Auto) {
        // A message of a Maildir can begin with the separator that it had in an mbox. Its flags are in its name.
        Ok(StartKind::Mbox) if is_path_of_message(path) && !mmdf::starts(start) => {
            MemberVerdict::Message(StartKind::Eml)
        }
        // The mboxes of an archive are read one after the other as one mbox. If the mark hides the first separator of a
        // later mbox, the first message would become a part of the previous one. So such an mbox is not read.
        Ok(StartKind::Mbox) if hides_separator(start) => MemberVerdict::Left(
            "an mbox that begins with a byte order mark and no separator with a date",
        ),
        Ok(StartKind::Mbox) if mmdf::starts(start) => MemberVerdict::Left("an MMDF mailbox"),
        Ok(StartKind::Mbox) => MemberVerdict::Taken,
        Ok(StartKind::Archive) => MemberVerdict::Nested,
        Ok(StartKind::Pst) => MemberVerdict::Left("an Outlook mailbox"),
        Ok(kind) => MemberVerdict::Message(kind),
        Err(without_mail) => {
            let among_messages = Some(start).filter(|_| is_path_of_message(path));
            if let Some(other) = among_messages.and_then(refused_among_messages) {
                return refused_member(other);
            }
            let other = damaged(path, start, without_mail).unwrap_or(without_mail);
            match (other.verdict(), archived_state(path, start)) {
                (ContentVerdict::NotRead, _) => refused_member(other),
                (ContentVerdict::NotMail, None) => MemberVerdict::Skipped(other.name()),
                (ContentVerdict::NotMail, Some(what)) => MemberVerdict::Part(what),
                (ContentVerdict::Part, _) => MemberVerdict::Part(other.name()),
            }
        }
    }
}

/// Returns a description of the archive after the first bytes of a file without mail, if a member of the archive may be mail.
fn archive_after(file: &File, start: &[u8], other: NotMail) -> Option<NotMail> {
    if start.is_empty() || other.verdict() != ContentVerdict::NotMail {
        return None;
    }
    if is_zip_with_mail_at_end(file, start, is_mail_in_archive) {
        return Some(archive_at_end(start));
    }
    match mail_in_script(Some(file), start, is_mail_in_archive)? {
        EmbeddedMail::Found => Some(NotMail::SCRIPT_WITH_MAIL),
        EmbeddedMail::Unlisted => Some(NotMail::SCRIPT_WITH_ARCHIVE),
        EmbeddedMail::Without => None,
    }
}

/// Returns the description of a file with a zip archive after other data.
fn archive_at_end(start: &[u8]) -> NotMail {
    let is_program = start.starts_with(b"MZ") || start.starts_with(b"\x7fELF");
    if is_program {
        NotMail::SELF_EXTRACTING
    } else {
        NotMail::ZIP_AT_END
    }
}

/// Returns whether a member of an archive that embody does not read may be mail. Text files of programs can look like a header,
/// so a member without the name of a mailbox or a message counts only if its name has no suffix, or is that of a message in a
/// Maildir.
fn is_mail_in_archive(name: &[u8], start: &[u8]) -> bool {
    use MemberVerdict::{Left, Message, Nested, Refused, Taken};
    let text = String::from_utf8_lossy(name);
    let path = Path::new(text.as_ref());
    let is_mail = plain_suffix(path)
        .and_then(SuffixClass::of)
        .is_some_and(SuffixClass::is_mail);
    match judged_by_start(name, start) {
        Taken if !is_mail => path.extension().is_none() && is_separator(start),
        Message(_) if !is_mail => path.extension().is_none() || is_path_of_message(path),
        Taken | Message(_) => true,
        Nested | Left(_) | Refused(..) => is_mail,
        _ => false,
    }
}

fn refused_member(other: NotMail) -> MemberVerdict {
    match other {
        NotMail::Format(what, advice) => MemberVerdict::Refused(what, advice),
        _ => MemberVerdict::Left(other.name()),
    }
}

/// Returns whether the file begins with a byte order mark, and this mark would hide the separator in the middle of an
/// mbox.
fn hides_separator(start: &[u8]) -> bool {
    let marked = start.strip_prefix(BYTE_ORDER_MARK);
    marked.is_some_and(|first| !is_separator_after_cr(first))
}

/// Judges a member of an archive as [`judged`] does, for callers that can read Outlook mailboxes. These are copied to
/// temporary files instead of being left out.
pub(crate) fn judged_with_psts(name: &[u8], start: &[u8]) -> MemberVerdict {
    match kind_of_start(start) {
        Ok(StartKind::Pst) => MemberVerdict::Spooled,
        _ => judged(name, start),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mbox_with_a_byte_order_mark_within_an_archive_is_read_if_its_separator_has_a_date() {
        for (start, is_left) in [
            ("From a\nSubject: x\n\n", false),
            ("\nFrom a\nSubject: x\n\n", false),
            (
                "\u{feff}From a Thu Jan  1 00:00:00 1970\nSubject: x\n\n",
                false,
            ),
            ("\u{feff}From a\nSubject: x\n\n", true),
            ("\u{feff}\r\n\nFrom a\nSubject: x\n\n", true),
        ] {
            let judged = judged(b"box", start.as_bytes());
            assert_eq!(
                matches!(judged, MemberVerdict::Left(_)),
                is_left,
                "{start:?}"
            );
            assert_eq!(
                matches!(judged, MemberVerdict::Taken),
                !is_left,
                "{start:?}"
            );
        }
    }
}
