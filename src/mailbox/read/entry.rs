//! Converts a single message in an archive to an entry of an mbox, because the mail of an archive is read as one mbox.
//!
//! The sender `mboxrd@z` in the separator, which public-inbox introduced, says that the entry is quoted as mboxrd. The quoting
//! can therefore be undone exactly.

use std::path::Path;

use crate::mailbox::archive::{MboxEntry, MemberRules};
use crate::mailbox::find::{self, Kind};
use crate::mailbox::forms::flags::MessageFlags;
use crate::mailbox::forms::rewrite::{MBOXRD_SEPARATOR, for_mbox};
use crate::mailbox::forms::{emlx, outlook};
use crate::mailbox::place::folder::noted_in_name;

/// How the members of an archive are read: the mboxes and messages as one mbox, and the Outlook mailboxes later.
pub(crate) const ALL_MAIL: MemberRules = MemberRules {
    judge: find::judged_with_psts,
    convert: mbox_entry,
};

/// How the members of an archive are read if Outlook mailboxes in it are only named.
#[cfg(feature = "cli")]
pub(crate) const WITHOUT_PSTS: MemberRules = MemberRules {
    judge: find::judged,
    convert: mbox_entry,
};

/// Converts the file `content` of an archive, whose path is `name`. The flags in the name of a message of a Maildir and in the
/// data of Apple Mail are written to Status fields.
///
/// # Errors
/// Returns the reason why the message cannot be read.
pub(crate) fn mbox_entry(name: &str, content: &[u8], kind: Kind) -> Result<MboxEntry, String> {
    if kind == Kind::Msg {
        let mail = outlook::message(content)?;
        return Ok(MboxEntry {
            bytes: entry(&mail.content, Some(&mail.flags.into())),
            missing: mail.missing,
        });
    }
    let (message, flags) = match emlx::message(content) {
        Some(Ok(range)) => (
            content.get(range).unwrap_or(content),
            emlx::noted(content).0,
        ),
        Some(Err(why)) => return Err(why.to_owned()),
        None => (content, flags_in_name(name, content)),
    };
    Ok(MboxEntry {
        bytes: entry(message, flags.as_ref()),
        missing: Vec::new(),
    })
}

/// Returns the flags in the file name of a message in `cur` or `new` of a Maildir.
fn flags_in_name(name: &str, content: &[u8]) -> Option<MessageFlags> {
    let path = Path::new(name);
    let part = path.parent()?.file_name()?;
    if part != "cur" && part != "new" {
        return None;
    }
    noted_in_name(&Path::new(part).join(path.file_name()?), content).map(MessageFlags::from)
}

fn entry(message: &[u8], flags: Option<&MessageFlags>) -> Vec<u8> {
    let content = match flags {
        Some(flags) => flags.put_into(message),
        None => message.into(),
    };
    [MBOXRD_SEPARATOR, b"\n", &for_mbox(&content)].concat()
}
