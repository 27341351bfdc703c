//! Reading of one mailbox: a digest of each message, and descriptions of some of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use super::super::origin::Origin;
use super::super::say;
use super::super::wording;
use crate::edit::Edits;
use crate::engine::report::Detail;
use crate::engine::same::{Description, Digest, MailCopy, Place, copy_key, identity, plain};
use crate::error::{Error, unpoisoned};
use crate::mailbox::{
    Conversion, FileCounts, Flags, Message, Observer, Options, Quoting, Stop, Transform,
    flags_of_message, is_internal,
};

/// The messages for which a [`MailCopy`] is computed: a description that shows whether one message is a copy of
/// another.
#[derive(Clone, Copy)]
pub(super) enum Copies<'c> {
    /// No messages.
    Ignored,
    /// The messages that get a description, because the other mailbox has no identical message.
    OfDescribed,
    /// The messages of `OfDescribed`, and all messages whose key is in this map. The map contains the keys of the
    /// messages of OLD without an identical message. For each key, it contains the positions at which truncated copies
    /// in OLD end, because a complete copy in NEW is compared only up to the position at which the truncated copy ends.
    Of(&'c HashMap<Digest, Vec<Place>>),
}

/// The results of reading one message.
pub(super) struct Look {
    pub(super) identity: Digest,
    /// Flags of the message in its mailbox. `None` if this format of mailbox cannot store flags.
    pub(super) flags: Option<Flags>,
    pub(super) described: Option<Described>,
    /// Whether the message only contains the state of the mailbox. `convert` does not write it, so it is not compared.
    is_internal: bool,
}

pub(super) struct Described {
    pub(super) source: String,
    pub(super) index: u64,
    pub(super) called: String,
    pub(super) description: Description,
    /// The key that all copies of the mail have in common, and the description of this copy. `None` if the command does
    /// not accept copies.
    pub(super) copy: Option<(Digest, MailCopy)>,
}

impl Described {
    pub(super) fn key(&self) -> Digest {
        match &self.copy {
            Some((key, _)) => *key,
            None => Digest::of(&self.description.key().to_be_bytes()),
        }
    }
}

/// Calls `see` for each message of a mailbox, in order. A message gets a description only if `describes` returns true
/// for its digest. `not_read` receives the files and messages that
/// could not be read, and they are printed. Each mailbox is read several times, but only its first reading has this list.
pub(super) fn read(
    mailbox: &Path,
    options: &Options,
    stop: &Stop,
    (describes, copies): (impl Fn(&Digest) -> bool + Sync, Copies<'_>),
    see: impl FnMut(Look) + Send,
    not_read: Option<&mut Vec<NotRead>>,
) -> Result<SideCounts, Error> {
    let reading = Reading {
        describes,
        copies,
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

/// A file or message that could not be read completely.
pub(super) struct NotRead {
    pub(super) path: PathBuf,
    pub(super) why: String,
}

/// The counts of one reading of a mailbox.
pub(super) struct SideCounts {
    pub(super) is_damaged: bool,
    pub(super) files: FileCounts,
}

struct Reading<'r, D, S> {
    describes: D,
    copies: Copies<'r>,
    /// The function that receives the messages, and the files and messages that could not be read.
    see: Mutex<(S, Vec<NotRead>)>,
}

impl<D, S> Reading<'_, D, S> {
    fn locked(&self) -> MutexGuard<'_, (S, Vec<NotRead>)> {
        unpoisoned(self.see.lock())
    }
}

impl<D: Fn(&Digest) -> bool + Sync, S: FnMut(Look) + Send> Transform<Look> for Reading<'_, D, S> {
    /// Every message is read, also one of no bytes.
    fn next_touch(&self, _bytes: &[u8]) -> Option<usize> {
        Some(0)
    }

    fn touched(&self, _bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        (0..ends.len()).collect()
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, Look), Error> {
        let plain = plain(message.content);
        let identity = identity(&plain);
        let (key, places) = match self.copies {
            Copies::Ignored | Copies::OfDescribed => (None, None),
            Copies::Of(cuts) => {
                let key = copy_key(&plain);
                (Some(key), cuts.get(&key))
            }
        };
        let describe = || {
            let copy = || {
                let key = key.unwrap_or_else(|| copy_key(&plain));
                let places = places.map_or(&[][..], Vec::as_slice);
                (key, MailCopy::of(&plain, places))
            };
            let source = message.source.display().to_string();
            let origin = Origin::new(&source, message.number, message.content);
            Described {
                called: origin.called(),
                source,
                index: message.number,
                description: Description::of(&plain),
                copy: (!matches!(self.copies, Copies::Ignored)).then(copy),
            }
        };
        let look = Look {
            identity,
            is_internal: is_first_of_mbox(message) && is_internal(message.content),
            flags: flags_of_message(
                message.source,
                message.content,
                message.quoting != Quoting::None,
            ),
            described: (places.is_some() || (self.describes)(&identity)).then(describe),
        };
        Ok((Edits::new(), look))
    }
}

impl<D: Fn(&Digest) -> bool + Sync, S: FnMut(Look) + Send> Observer<Look> for Reading<'_, D, S> {
    fn message(&self, look: Look, _is_refused: bool) {
        if !look.is_internal {
            (self.locked().0)(look);
        }
    }

    fn damaged(&self, path: &Path, why: &Detail) {
        self.locked().1.push(NotRead {
            path: path.to_owned(),
            why: wording::detail(why),
        });
    }
}
