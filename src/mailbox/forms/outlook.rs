//! Recognises Outlook files, and converts files with one message each: `.msg`, `.oft` and `winmail.dat` (TNEF).
//! `engine::outlook` converts the content.

#[cfg(feature = "cli")]
use std::borrow::Cow;
#[cfg(feature = "outlook")]
use std::io::Cursor;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::engine::outlook::source::OutlookMessage;
#[cfg(feature = "outlook")]
use crate::engine::outlook::{msg, properties::OutlookItem, pst, source, tnef};
use crate::mailbox::candidate::FormatCandidate;
use crate::mailbox::compressed::plain_suffix;
use crate::mailbox::forms::Format;
use crate::mailbox::forms::flags::Flags;
use crate::mailbox::forms::suffixes::SuffixClass;
use crate::mailbox::not_mail::NotMail;

/// Maximum nesting depth of messages that are attached to other messages.
#[cfg(feature = "outlook")]
const DEEPEST: usize = 20;

/// A mail that was converted from an Outlook message.
pub(crate) struct OutlookMail {
    pub(crate) content: Vec<u8>,
    pub(crate) flags: Flags,
    pub(crate) received: Option<SystemTime>,
    /// Sentences for the report, one for each property of the Outlook message that the mail does not contain.
    pub(crate) missing: Vec<String>,
}

impl OutlookMail {
    #[cfg(feature = "outlook")]
    fn with_damage(item: &OutlookItem<'_>, damage: Vec<String>) -> Self {
        let mut mail = Self::of(source::mail(item));
        mail.missing.extend(damage);
        mail
    }

    #[cfg_attr(not(feature = "outlook"), allow(dead_code))]
    pub(crate) fn of(mail: OutlookMessage) -> Self {
        let seconds = mail.received.and_then(|it| u64::try_from(it).ok());
        let received = seconds.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
        let missing = mail
            .missing
            .into_iter()
            .map(|what| format!("not in the converted message: {what}"));
        Self {
            content: mail.content,
            flags: Flags::of_outlook(mail.flags),
            received,
            missing: missing.collect(),
        }
    }
}

/// Returns whether a file may be an Outlook message. Office documents start with the same bytes as `.msg` files, so
/// [`is_msg`] also checks the name or the content.
pub(crate) fn starts_like_msg(start: &[u8]) -> bool {
    #[cfg(feature = "outlook")]
    let is_msg = start.starts_with(msg::SIGNATURE) || is_tnef(start);
    // Without the feature `outlook`, Outlook files are not read.
    #[cfg(not(feature = "outlook"))]
    let is_msg = {
        let _ = start;
        false
    };
    is_msg
}

/// Returns whether a file is TNEF, such as `winmail.dat`. Its first four bytes occur in no other format of mail.
#[cfg(feature = "outlook")]
fn is_tnef(start: &[u8]) -> bool {
    start.starts_with(tnef::SIGNATURE)
}

/// Returns whether an Outlook mailbox can be read, by its first bytes. Returns `None` if the file is not an Outlook
/// mailbox, or if this build of the program does not read such mailboxes.
pub(crate) fn pst_of_start(start: &[u8]) -> Option<Result<(), NotMail>> {
    #[cfg(feature = "outlook")]
    return start
        .starts_with(pst::SIGNATURE)
        .then(|| match pst::version(start) {
            Some(36) => Err(NotMail::Format(
                "an OST file of Outlook 2013 or later (version 36)",
                "embody does not read this version; export the mailbox to a .pst file in Outlook, and convert that file",
            )),
            // Any other version number is accepted, because the number in a damaged header may be wrong. The rest of
            // the file may still be readable.
            _ => Ok(()),
        });
    #[cfg(not(feature = "outlook"))]
    return start.first().and(None);
}

/// Returns whether a source with these first bytes is an Outlook message, if the user did not name another format. Office
/// documents start with the same bytes as `.msg` files, so the name or the structure decides.
pub(crate) fn is_msg(start: &[u8], format: Format, candidate: FormatCandidate<'_>) -> bool {
    if !starts_like_msg(start) || !format.may_be_message() {
        return false;
    }
    #[cfg(feature = "outlook")]
    if is_tnef(start) {
        return true;
    }
    is_named_msg(candidate.name())
        || match candidate {
            #[cfg(feature = "outlook")]
            FormatCandidate::File(_, file) => msg::is_message(file),
            #[cfg(feature = "outlook")]
            FormatCandidate::Memory(_, bytes) => msg::is_message(Cursor::new(bytes)),
            FormatCandidate::Stream(_) => true,
            _ => false,
        }
}

fn is_named_msg(path: &Path) -> bool {
    plain_suffix(path).and_then(SuffixClass::of) == Some(SuffixClass::OutlookMessage)
}

/// Returns whether a file has the name that Outlook gives to a message in TNEF, or a similar one: a second file of this name
/// in a directory is often called `winmail (1).dat`.
pub(crate) fn is_named_tnef(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_usual = name.to_ascii_lowercase().starts_with("winmail");
    let suffix = plain_suffix(path);
    suffix.is_some_and(|it| {
        it.eq_ignore_ascii_case("tnef") || is_usual && it.eq_ignore_ascii_case("dat")
    })
}

/// Returns the message in `file` as mail. If it is an Outlook message, it is converted, and a list of the properties
/// that are missing in the converted message is returned with it.
///
/// # Errors
/// Returns the reason why an Outlook message cannot be read. If the file is damaged, the name in `path` decides whether
/// it is an Outlook message.
#[cfg(feature = "cli")]
pub(crate) fn as_mail<'f>(
    file: Cow<'f, [u8]>,
    path: &Path,
) -> Result<(Cow<'f, [u8]>, Vec<String>), String> {
    if !is_msg(&file, Format::Auto, FormatCandidate::Memory(path, &file)) {
        return Ok((file, Vec::new()));
    }
    let mail = message(&file)?;
    Ok((Cow::Owned(mail.content), mail.missing))
}

/// Converts an Outlook message file to a message of mail.
///
/// # Errors
/// Returns the reason why the file cannot be read.
#[cfg(feature = "outlook")]
pub(crate) fn message(file: &[u8]) -> Result<OutlookMail, String> {
    if is_tnef(file) {
        let message = tnef::read_whole(file, DEEPEST)?;
        return Ok(OutlookMail::with_damage(&message.item, message.damage));
    }
    let message = msg::read(file, DEEPEST)?;
    Ok(OutlookMail::with_damage(&message.item, message.damage))
}

#[cfg(not(feature = "outlook"))]
pub(crate) fn message(_file: &[u8]) -> Result<OutlookMail, String> {
    Err("this version of the program cannot read Outlook files".to_owned())
}
