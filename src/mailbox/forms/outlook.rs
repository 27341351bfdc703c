//! Mail of Outlook: `.msg` and `.oft` files with one message each. `engine::outlook` reads them.

#[cfg(feature = "cli")]
use std::borrow::Cow;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::engine::outlook::source::Mail;
#[cfg(feature = "outlook")]
use crate::engine::outlook::{msg, pst};
use crate::mailbox::compressed::plain_suffix;
use crate::mailbox::forms::flags::Flags;
use crate::mailbox::not_mail::NotMail;

/// Messages that are attached to messages, at most.
#[cfg(feature = "outlook")]
const DEEPEST: usize = 20;

/// A message that was made of one of Outlook.
pub(crate) struct OutlookMail {
    pub(crate) content: Vec<u8>,
    pub(crate) flags: Flags,
    pub(crate) received: Option<SystemTime>,
    /// A sentence for each thing that the message does not contain.
    pub(crate) missing: Vec<String>,
}

impl OutlookMail {
    #[cfg_attr(not(feature = "outlook"), allow(dead_code))]
    pub(crate) fn of(mail: Mail) -> Self {
        let received = mail.state.received.and_then(|it| u64::try_from(it).ok());
        let received = received.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
        let missing = mail.missing.into_iter();
        let missing = missing.map(|what| format!("not in the converted message: {what}"));
        Self {
            content: mail.content,
            flags: Flags::of_outlook(&mail.state),
            received,
            missing: missing.collect(),
        }
    }
}

/// Whether a file may be a message of Outlook. Documents of Office begin with the same bytes.
pub(crate) fn starts_like_msg(start: &[u8]) -> bool {
    #[cfg(feature = "outlook")]
    let is_msg = start.starts_with(msg::SIGNATURE);
    // Nothing reads such a file without the feature.
    #[cfg(not(feature = "outlook"))]
    let is_msg = {
        let _ = start;
        false
    };
    is_msg
}

/// Whether a file that starts like a mailbox of Outlook can be read. `None`: it does not start like one, or this version of
/// the program reads none.
pub(crate) fn pst_of_start(start: &[u8]) -> Option<Result<(), NotMail>> {
    #[cfg(feature = "outlook")]
    return start
        .starts_with(pst::SIGNATURE)
        .then(|| match pst::version(start) {
            Some(14 | 15 | 23) => Ok(()),
            Some(36) => Err(NotMail::Format(
                "an OST file of Outlook 2013 or later (version 36)",
                "embody does not read this version; export the mailbox to a .pst file in Outlook, and convert that file",
            )),
            _ => Err(NotMail::Format(
                "an Outlook PST file of an unknown version",
                "embody reads the versions 14, 15 and 23; export the mailbox to a new .pst file in Outlook, and convert that file",
            )),
        });
    #[cfg(not(feature = "outlook"))]
    return start.first().and(None);
}

/// Whether a file that starts like a message of Outlook is one.
pub(crate) fn is_msg(file: &File) -> bool {
    #[cfg(feature = "outlook")]
    let is_msg = msg::is_message(file);
    #[cfg(not(feature = "outlook"))]
    let is_msg = {
        let _ = file;
        false
    };
    is_msg
}

pub(crate) fn is_named_msg(path: &Path) -> bool {
    let suffix = plain_suffix(path);
    suffix.is_some_and(|it| it.eq_ignore_ascii_case("msg") || it.eq_ignore_ascii_case("oft"))
}

/// The same for what is in a compressed file, which would have to be decompressed to look further.
pub(crate) fn is_packed_msg(path: &Path, start: &[u8]) -> bool {
    starts_like_msg(start) && is_named_msg(path)
}

/// The message of mail that is in a file: `file` itself, unless it is a message of Outlook; and what is not in the message.
///
/// # Errors
/// The reason why a message of Outlook cannot be read. `path` tells whether a damaged file was one.
#[cfg(feature = "cli")]
pub(crate) fn as_mail<'f>(
    file: Cow<'f, [u8]>,
    path: &Path,
) -> Result<(Cow<'f, [u8]>, Vec<String>), String> {
    #[cfg(feature = "outlook")]
    let is_one = starts_like_msg(&file)
        && (is_named_msg(path) || msg::is_message(std::io::Cursor::new(&*file)));
    #[cfg(not(feature = "outlook"))]
    let is_one = starts_like_msg(&file) && is_named_msg(path);
    if !is_one {
        return Ok((file, Vec::new()));
    }
    let mail = message(&file)?;
    Ok((Cow::Owned(mail.content), mail.missing))
}

/// Makes a message of mail.
///
/// # Errors
/// The reason why the file cannot be read.
#[cfg(feature = "outlook")]
pub(crate) fn message(file: &[u8]) -> Result<OutlookMail, String> {
    let message = msg::read(file, DEEPEST).map_err(|why| format!("the file {why}"))?;
    let mut mail = OutlookMail::of(crate::engine::outlook::source::mail(&message.item));
    mail.missing.extend(message.damage);
    Ok(mail)
}

#[cfg(not(feature = "outlook"))]
pub(crate) fn message(_file: &[u8]) -> Result<OutlookMail, String> {
    Err("this version of the program cannot read files of Outlook".to_owned())
}
