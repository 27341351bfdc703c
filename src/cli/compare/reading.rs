//! Reads one mailbox: computes a digest of each message, and examines the content of some of them.

use std::path::{Path, PathBuf};

use super::super::origin::RunOrigin;
use super::super::say;
use super::super::wording;
use crate::engine::same::{Digest, identity, plain};
use crate::error::Error;
use crate::mailbox::{
    FileCounts, LetterWork, MailboxEvent, MailboxFact, Message, Quoting, ReadOptions, SeenFlags,
    Stop, StoredFlags, is_internal, offset_in_own_file, read_source,
};

/// A message without its content.
pub(super) struct SeenMessages {
    pub(super) identity: Digest,
    pub(super) flags: SeenFlags,
    /// Whether the message only contains the state of the mailbox. `convert` does not write such a message, so it is
    /// not compared.
    is_internal: bool,
}

/// A message whose content is examined.
pub(super) struct MessageResult<'m> {
    pub(super) seen: &'m SeenMessages,
    pub(super) named: LostMessage,
    /// Offset of the content in its file. `None` if the file does not contain the content as it is, for example because
    /// the file is compressed.
    pub(super) at: Option<u64>,
    pub(super) content: &'m [u8],
    /// The message in its [plain form](plain).
    pub(super) plain: &'m [u8],
}

/// Place and name of a message for the report.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
pub(super) struct LostMessage {
    pub(super) source: String,
    pub(super) index: u64,
    #[serde(rename = "message")]
    pub(super) called: String,
}

/// Calls `see` for each message of a mailbox, in order. If `is_examined` returns true for a message, `examine` is
/// called for it first, in parallel, and `see` gets the result. Files and messages that cannot be read are printed and
/// added to `not_read`. The list is only needed for the first of several readings of a mailbox.
pub(super) fn read<R: Send>(
    mailbox: &Path,
    options: &ReadOptions,
    stop: &Stop,
    (is_examined, examine): (
        impl Fn(&Digest) -> bool + Sync,
        impl Fn(MessageResult<'_>) -> Result<R, Error> + Sync,
    ),
    mut see: impl FnMut(SeenMessages, Option<R>) + Send,
    not_read: Option<&mut Vec<UnreadSource>>,
) -> Result<SideCounts, Error> {
    let flags = StoredFlags::default();
    let work = |message: &Message<'_>| -> Result<_, Error> {
        let plain = plain(message.content);
        let seen = SeenMessages {
            identity: identity(&plain),
            flags: flags.of(message),
            is_internal: is_first_of_mbox(message) && is_internal(message.content),
        };
        if seen.is_internal || !is_examined(&seen.identity) {
            return Ok((seen, None));
        }
        let source = message.source.display().to_string();
        let origin = RunOrigin::new(&source, message.number, message.content);
        let examined = examine(MessageResult {
            seen: &seen,
            named: LostMessage {
                called: origin.called(),
                source,
                index: message.number,
            },
            at: place_in_file(message),
            content: message.content,
            plain: &plain,
        })?;
        Ok((seen, Some(examined)))
    };
    let work = LetterWork {
        work: &work,
        weight: &size_of_val,
    };
    let mut unread = Vec::new();
    let mut links = Vec::new();
    let summary = read_source(mailbox, (options, stop), &work, &mut |event| {
        match event {
            MailboxEvent::Begin(path) => {
                let parts = ["cur", "new"].map(|part| path.join(part));
                links.extend(parts.into_iter().filter(|part| part.is_symlink()));
            }
            MailboxEvent::Message((seen, examined), _) if !seen.is_internal => see(seen, examined),
            MailboxEvent::Fact(MailboxFact::Damaged(path, why) | MailboxFact::Lost(path, why)) => {
                let why = wording::detail(&why);
                unread.push(UnreadSource { path, why });
            }
            _ => {}
        }
        Ok(())
    })?;
    let is_damaged = !unread.is_empty() || summary.damaged + summary.oversized > 0;
    if let Some(not_read) = not_read {
        for file in unread {
            say::tell(&say::damaged(&file.path, &file.why));
            not_read.push(file);
        }
    }
    Ok(SideCounts {
        is_damaged,
        files: summary.files,
        links,
    })
}

/// Returns whether the message is the first of an mbox. Only there can it contain the state of the mailbox.
fn is_first_of_mbox(message: &Message<'_>) -> bool {
    // An mbox has a separator before the message. In an mbox without quoting, only the offset of the message shows
    // this.
    let has_separator = message.quoting != Quoting::None || message.at.is_some_and(|at| at > 0);
    message.number == 1 && has_separator
}

/// Returns the offset of the content in its file. Returns `None` if the file does not contain the content as it is, or
/// if the path is not UTF-8 and thus cannot be written to the temporary file.
fn place_in_file(message: &Message<'_>) -> Option<u64> {
    message.source.to_str()?;
    message.at.or_else(|| offset_in_own_file(message))
}

/// A file or message that could not be read completely.
pub(super) struct UnreadSource {
    pub(super) path: PathBuf,
    pub(super) why: String,
}

/// Counts of one pass over a mailbox.
pub(super) struct SideCounts {
    pub(super) is_damaged: bool,
    pub(super) files: FileCounts,
    /// Symbolic links that are `cur` or `new` of a Maildir.
    pub(super) links: Vec<PathBuf>,
}
