//! Reading of one mailbox: a digest of each message, and the content of some of them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use super::super::origin::RunOrigin;
use super::super::say;
use super::super::wording;
use crate::edit::Edits;
use crate::engine::report::Detail;
use crate::engine::same::{Digest, identity, plain};
use crate::error::{Error, unpoisoned};
use crate::mailbox::{
    Conversion, FileCounts, Message, MessageFlags, Observer, Options, Quoting, Stop, StoredFlags,
    Transform, is_internal, offset_in_own_file,
};

/// A message of a mailbox, without its content.
pub(super) struct SeenMessages {
    pub(super) identity: Digest,
    /// Flags and keywords of the message in its mailbox. `None` if this format of mailbox cannot store flags.
    pub(super) flags: Option<MessageFlags>,
    /// Whether the message only contains the state of the mailbox. `convert` does not write it, so it is not compared.
    is_internal: bool,
}

/// A message whose content is examined.
pub(super) struct MessageResult<'m> {
    pub(super) seen: &'m SeenMessages,
    pub(super) named: LostMessage,
    /// Position of the content in its file. `None` if the file does not contain these bytes.
    pub(super) at: Option<u64>,
    pub(super) content: &'m [u8],
    /// The message in its [plain form](plain).
    pub(super) plain: &'m [u8],
}

/// The place and the name of a message, for the result.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
pub(super) struct LostMessage {
    pub(super) source: String,
    pub(super) index: u64,
    #[serde(rename = "message")]
    pub(super) called: String,
}

/// Calls `see` for each message of a mailbox, in order. Before, it calls `examine` for each message for which `is_examined`
/// returns true, in several threads; `see` gets its result. `not_read` receives the files and messages that could not be read,
/// and they are printed. Each mailbox is read several times, but only its first reading has this list.
pub(super) fn read<R: Send>(
    mailbox: &Path,
    options: &Options,
    stop: &Stop,
    (is_examined, examine): (
        impl Fn(&Digest) -> bool + Sync,
        impl Fn(MessageResult<'_>) -> Result<R, Error> + Sync,
    ),
    see: impl FnMut(SeenMessages, Option<R>) + Send,
    not_read: Option<&mut Vec<UnreadSource>>,
) -> Result<SideCounts, Error> {
    let reading = CompareObserver {
        is_examined,
        examine,
        flags: StoredFlags::default(),
        see: Mutex::new((see, Vec::new())),
    };
    let summary = Conversion::of(mailbox)
        .options(options)
        .stop(stop)
        .run(&reading, &reading)?;
    let (_, unread) = unpoisoned(reading.see.into_inner());
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
    })
}

/// Returns true for the first message of an mbox. Other mailboxes do not store their state in a message.
fn is_first_of_mbox(message: &Message<'_>) -> bool {
    // A separator precedes the message, also in an mbox that quotes no lines.
    let has_separator = message.quoting != Quoting::None || message.at.is_some_and(|at| at > 0);
    message.number == 1 && has_separator
}

/// Returns the position of the content in its file. Returns `None` if the file does not contain these bytes, and if its path is
/// not UTF-8: the temporary file contains paths as text.
fn place_in_file(message: &Message<'_>) -> Option<u64> {
    message.source.to_str()?;
    message.at.or_else(|| offset_in_own_file(message))
}

/// A file or message that could not be read completely.
pub(super) struct UnreadSource {
    pub(super) path: PathBuf,
    pub(super) why: String,
}

/// The counts of one reading of a mailbox.
pub(super) struct SideCounts {
    pub(super) is_damaged: bool,
    pub(super) files: FileCounts,
}

struct CompareObserver<D, E, S> {
    is_examined: D,
    examine: E,
    flags: StoredFlags,
    /// The function that receives the messages, and the files and messages that could not be read.
    see: Mutex<(S, Vec<UnreadSource>)>,
}

impl<D, E, S> CompareObserver<D, E, S> {
    fn locked(&self) -> MutexGuard<'_, (S, Vec<UnreadSource>)> {
        unpoisoned(self.see.lock())
    }
}

impl<R, D, E, S> Transform<(SeenMessages, Option<R>)> for CompareObserver<D, E, S>
where
    D: Fn(&Digest) -> bool + Sync,
    E: Fn(MessageResult<'_>) -> Result<R, Error> + Sync,
    S: FnMut(SeenMessages, Option<R>) + Send,
{
    /// Every message is read, also one of no bytes.
    fn next_touch(&self, _bytes: &[u8]) -> Option<usize> {
        Some(0)
    }

    fn touched(&self, _bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        (0..ends.len()).collect()
    }

    fn transform(
        &self,
        message: &Message<'_>,
    ) -> Result<(Edits, (SeenMessages, Option<R>)), Error> {
        let plain = plain(message.content);
        let seen = SeenMessages {
            identity: identity(&plain),
            flags: self.flags.of(message),
            is_internal: is_first_of_mbox(message) && is_internal(message.content),
        };
        if seen.is_internal || !(self.is_examined)(&seen.identity) {
            return Ok((Edits::new(), (seen, None)));
        }
        let source = message.source.display().to_string();
        let origin = RunOrigin::new(&source, message.number, message.content);
        let examined = (self.examine)(MessageResult {
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
        Ok((Edits::new(), (seen, Some(examined))))
    }
}

impl<R, D, E, S> Observer<(SeenMessages, Option<R>)> for CompareObserver<D, E, S>
where
    R: Send,
    D: Fn(&Digest) -> bool + Sync,
    E: Fn(MessageResult<'_>) -> Result<R, Error> + Sync,
    S: FnMut(SeenMessages, Option<R>) + Send,
{
    fn message(&self, (seen, examined): (SeenMessages, Option<R>), _is_refused: bool) {
        if !seen.is_internal {
            (self.locked().0)(seen, examined);
        }
    }

    fn damaged(&self, path: &Path, why: &Detail) {
        self.locked().1.push(UnreadSource {
            path: path.to_owned(),
            why: wording::detail(why),
        });
    }
}
