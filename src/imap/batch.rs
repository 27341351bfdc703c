//! Processes one folder of an account in place: downloads the candidates in batches over several connections
//! ([`originals`](super::originals)), and replaces those that change.
//!
//! The new messages are appended in the order of the folder, even if several connections append them. A mail client may show
//! messages in this order, and Thunderbird does not recognise a thread if a reply has a lower UID than the message it answers.

use std::collections::{BTreeSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::doubts::ShortMessage;
use super::download::check_uidvalidity;
use super::failure::ImapFailure;
use super::in_place::{AccountRun, account_url};
use super::names::shown;
use super::place::MessagePlace;
use super::replace::{AppendTurn, MessageChange, ReplaceResult};
use super::session::{Metadata, RemoteFolder, SelectResponse};
use crate::edit::Edits;
use crate::engine::report::Reason;
use crate::error::{Error, unpoisoned};
use crate::mailbox::MailboxEvent;
use crate::mailbox::{Message, Quoting, Stop};
use crate::pool;

/// Maximum size of the messages that a connection holds at a time, in bytes. The last message may exceed it.
const BATCH: u64 = 16 << 20;

/// Maximum and minimum number of messages in a batch. Smaller batches would occupy more connections, and the
/// login of a connection takes as long as the download of a few messages.
const MOST: usize = 64;
const LEAST: usize = 8;

/// Maximum number of consecutive messages that the server altered when it stored them. At this number, the run ends,
/// because the server probably alters every message.
const ALTERED: u32 = 3;

/// Interval at which a connection that waits for another one checks whether the run was interrupted.
const LOOKS: Duration = Duration::from_millis(100);

/// State of the work in one folder, which several connections share.
struct FolderWork<'f, S> {
    url: &'f Path,
    batches: Vec<&'f [(u32, u64)]>,
    queue: Mutex<ReplaceQueue<S>>,
    changed: Condvar,
    /// Serialises the reports: several connections process messages, but the observer must receive one at a time.
    telling: Mutex<()>,
    /// Number of threads per connection.
    jobs: usize,
}

/// Queue of transformed messages that wait for their replacement, in the order of the folder. The connection that
/// replaces a message need not be the one that downloaded it.
struct ReplaceQueue<S> {
    messages: VecDeque<TransformedMessage<S>>,
    /// Number of batches that connections have started to download. `came` is the number of finished downloads.
    taken: usize,
    came: usize,
    /// Number of messages taken from the queue so far. It numbers the messages, and `before_append` has the numbers of
    /// those whose new version is not yet appended. The lowest number is the next to be appended.
    begun: usize,
    before_append: BTreeSet<usize>,
    /// Whether a connection failed permanently.
    is_over: bool,
}

impl<S> FolderWork<'_, S> {
    fn queue(&self) -> MutexGuard<'_, ReplaceQueue<S>> {
        unpoisoned(self.queue.lock())
    }

    /// Waits until another connection changes the queue, for at most [`LOOKS`].
    fn wait<'q>(
        &self,
        queue: MutexGuard<'q, ReplaceQueue<S>>,
        stop: &Stop,
    ) -> Result<MutexGuard<'q, ReplaceQueue<S>>, ImapFailure> {
        stop.check()?;
        let waited = self.changed.wait_timeout(queue, LOOKS);
        Ok(unpoisoned(waited).0)
    }

    /// Appends the messages of a batch to the queue. Waits for the earlier batches, to keep the order of the folder.
    fn put(
        &self,
        batch: usize,
        items: Vec<TransformedMessage<S>>,
        stop: &Stop,
    ) -> Result<(), ImapFailure> {
        let mut queue = self.queue();
        while queue.came < batch && !queue.is_over {
            queue = self.wait(queue, stop)?;
        }
        queue.messages.extend(items);
        queue.came = batch + 1;
        self.changed.notify_all();
        Ok(())
    }
}

/// Place of a message in the order in which new messages are appended. When the value is dropped, the next
/// message in the order may be appended.
struct AppendPlace<'f, S> {
    work: &'f FolderWork<'f, S>,
    number: usize,
}

impl<S> AppendPlace<'_, S> {
    fn wait(&self, stop: &Stop) -> Result<(), ImapFailure> {
        let mut queue = self.work.queue();
        while queue.before_append.first() != Some(&self.number) {
            queue = self.work.wait(queue, stop)?;
        }
        Ok(())
    }
}

impl<S> Drop for AppendPlace<'_, S> {
    fn drop(&mut self) {
        self.work.queue().before_append.remove(&self.number);
        self.work.changed.notify_all();
    }
}

/// A message that was downloaded and is not yet transformed.
pub(super) struct DownloadedMessage {
    pub(super) metadata: Metadata,
    pub(super) content: Vec<u8>,
}

/// A message that was transformed and is still to be replaced.
struct TransformedMessage<S> {
    original: DownloadedMessage,
    /// Result of the transformation. `None` if the message contains nothing to transform.
    done: Option<Result<(Edits, S), Error>>,
}

impl<S: Send> AccountRun<'_, S> {
    pub(super) fn folder(&mut self, folder: &RemoteFolder) -> Result<(), ImapFailure> {
        let (job, url) = (self.job, self.url_of(&folder.name));
        self.selected = SelectResponse::default();
        self.again(|run| run.select(&folder.name))?;
        check_uidvalidity(&job.account.choice, &self.selected)?;
        job.observer.event(MailboxEvent::Begin(url.clone()));
        let before = std::mem::take(&mut self.summary);
        let done = self.candidates().and_then(|chosen| {
            if let Some(why) = self.obstacle() {
                self.skip(&url, &why, chosen.len());
                return Ok(());
            }
            self.summary.mailboxes = 1;
            job.observer.event(MailboxEvent::Expects(
                chosen.iter().map(|(_, size)| size).sum(),
            ));
            self.connected(&url, &chosen)
        });
        job.observer.event(MailboxEvent::done(&self.summary));
        let of_folder = std::mem::replace(&mut self.summary, before);
        self.summary.add(&of_folder);
        done
    }

    /// Reports that no message of the folder can be replaced. `count` is the number of its messages that the command might
    /// change. If there are any, the run did not do all that it was started for, so they count as an error.
    fn skip(&mut self, url: &Path, why: &str, count: usize) {
        self.summary.messages = 0;
        self.skipped_folders += 1;
        let observer = self.job.observer;
        let might = match count {
            0 => {
                let why = format!("{why}; no message in it needs a change");
                observer.event(MailboxEvent::passed_over(url, &why));
                return;
            }
            1 => "1 message that may need a change was not changed".to_owned(),
            count => format!("{count} messages that may need a change were not changed"),
        };
        observer.event(MailboxEvent::damaged(url, format!("{why}; {might}")));
        self.summary.damaged += 1;
    }

    /// Returns the reason why no message can be replaced in the folder, if there is one.
    fn obstacle(&self) -> Option<String> {
        let SelectResponse {
            rights,
            is_read_only,
            ..
        } = &self.selected;
        if !self.job.mode.writes() {
            return None;
        }
        if *is_read_only {
            return Some("the folder is read-only".to_owned());
        }
        // Empty rights mean that the server supports ACL but did not report them. Whether messages can be replaced is
        // unknown, so the run tries it.
        let rights = rights.as_ref().filter(|rights| !rights.is_empty())?;
        // The rights `t` (set `\Deleted`) and `e` (expunge) are from RFC 4314. The older RFC 2086 has the right `d` for
        // both, so a server that returns `d` grants `t` and `e`.
        let has =
            |right: char| rights.contains(right) || "te".contains(right) && rights.contains('d');
        let missing: String = "lrswite".chars().filter(|right| !has(*right)).collect();
        (!missing.is_empty()).then(|| {
            format!(
                "you do not have all rights on the folder that are needed to replace messages (missing: {missing}; needed: lrswite)"
            )
        })
    }

    pub(super) fn name_lost(&mut self, lost: &[u32]) {
        for uid in lost {
            let why =
                "the server lists the message but does not send it; the message was not changed";
            self.damaged(*uid, why.into());
        }
    }

    pub(super) fn damaged(&mut self, uid: u32, why: String) {
        let SelectResponse {
            folder,
            uidvalidity,
            ..
        } = &self.selected;
        let mut url = self.url_of(folder);
        let of_message = format!(";UIDVALIDITY={uidvalidity}/;UID={uid}");
        url.as_mut_os_string().push(of_message);
        self.job.observer.event(MailboxEvent::damaged(url, why));
        self.summary.damaged += 1;
    }

    /// Processes the messages over as many connections as the account allows.
    fn connected(&mut self, url: &Path, chosen: &[(u32, u64)]) -> Result<(), ImapFailure> {
        let most = self.job.account.connections.max(1);
        let share = chosen.len().div_ceil(most * 2).clamp(LEAST, MOST);
        let batches: Vec<&[(u32, u64)]> = batches(chosen, share).collect();
        let count = most.min(batches.len()).max(1);
        let work = FolderWork {
            url,
            batches,
            queue: Mutex::new(ReplaceQueue {
                messages: VecDeque::new(),
                taken: 0,
                came: 0,
                begun: 0,
                before_append: BTreeSet::new(),
                is_over: false,
            }),
            changed: Condvar::new(),
            telling: Mutex::new(()),
            jobs: self.job.jobs.div_ceil(count),
        };
        let others: Vec<Self> = (1..count).map(|_| self.beside()).collect();
        std::thread::scope(|scope| {
            let begin = |mut other: Self| {
                let work = &work;
                scope.spawn(move || {
                    // If the server refuses another connection, the work continues over the connections that are already open.
                    let done = match other.session() {
                        Ok(_) => other.work(work),
                        Err(_) => Ok(()),
                    };
                    let (summary, doubts) = (other.summary, std::mem::take(&mut other.doubts));
                    other.end();
                    (done, summary, doubts)
                })
            };
            let others: Vec<_> = others.into_iter().map(begin).collect();
            let mut done = self.work(&work);
            for other in others {
                let (of_other, summary, doubts) = other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                self.summary.add(&summary);
                self.doubts.add(doubts);
                done = done.and(of_other);
            }
            self.name_short();
            done
        })
    }

    /// Reports the messages that did not change and are shorter than the server announced: the missing rest may contain what
    /// needs a change. If the announced sizes of most messages are wrong, they show nothing.
    fn name_short(&mut self) {
        let doubts = std::mem::take(&mut self.doubts);
        if doubts.sizes_are_wrong() {
            return;
        }
        for short in doubts.short.iter().filter(|short| !short.is_closed) {
            let ShortMessage {
                uid, size, given, ..
            } = short;
            self.damaged(
                *uid,
                format!(
                    "the server announced {size} bytes for the message but sent {given}; the message was not changed"
                ),
            );
        }
    }

    /// Downloads and replaces messages until all are done, or until another connection fails permanently.
    fn work(&mut self, work: &FolderWork<'_, S>) -> Result<(), ImapFailure> {
        let done = std::panic::catch_unwind(AssertUnwindSafe(|| self.taken(work)));
        if !matches!(done, Ok(Ok(()))) {
            work.queue().is_over = true;
            work.changed.notify_all();
        }
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn taken(&mut self, work: &FolderWork<'_, S>) -> Result<(), ImapFailure> {
        let job = self.job;
        let mut queue = work.queue();
        while !queue.is_over {
            if let Some(item) = queue.messages.pop_front() {
                let number = queue.begun;
                queue.begun += 1;
                queue.before_append.insert(number);
                drop(queue);
                job.stop.check()?;
                let octets = item.original.content.len() as u64;
                self.settled(item, AppendPlace { work, number })?;
                job.observer.event(MailboxEvent::Advance(octets, 1));
                queue = work.queue();
            } else if let Some(batch) = work.batches.get(queue.taken) {
                let number = queue.taken;
                queue.taken += 1;
                drop(queue);
                let originals = self.originals(batch)?;
                let items = self.transformed(work, originals)?;
                work.put(number, items, job.stop)?;
                queue = work.queue();
            } else if queue.came < queue.taken {
                queue = work.wait(queue, job.stop)?;
            } else {
                break;
            }
        }
        Ok(())
    }

    /// Transforms the messages with several threads.
    fn transformed(
        &self,
        at: &FolderWork<'_, S>,
        items: Vec<DownloadedMessage>,
    ) -> Result<Vec<TransformedMessage<S>>, Error> {
        let transform = self.job.transform;
        let mut transformed = Vec::with_capacity(items.len());
        let limits = pool::PoolLimits {
            workers: at.jobs.min(items.len()),
            // No limit: all messages of the batch are already in memory.
            budget: usize::MAX,
        };
        let mut items = items.into_iter();
        pool::run(
            limits,
            self.job.stop,
            || Ok(items.next().map(|item| (item, 1))),
            |item| {
                let touch = transform.next_touch(&item.content);
                touch.map(|_| 0).into_iter().collect()
            },
            |item, _| {
                let message = Message {
                    number: u64::from(item.metadata.uid),
                    source: at.url,
                    content: &item.content,
                    at: None,
                    quoting: Quoting::None,
                    beside: None,
                };
                // The error is kept until all earlier messages were replaced, and then ends the run.
                Ok(transform.transform(&message))
            },
            |_, _| None,
            |original, done| {
                let done = done.into_iter().next().map(|(_, done)| done);
                transformed.push(TransformedMessage { original, done });
                Ok(())
            },
        )?;
        Ok(transformed)
    }

    /// Replaces a message if the transformation changed it, and reports the outcome.
    fn settled(
        &mut self,
        item: TransformedMessage<S>,
        turn: AppendPlace<'_, S>,
    ) -> Result<(), ImapFailure> {
        let work = turn.work;
        let TransformedMessage {
            original: DownloadedMessage { metadata, content },
            done,
        } = item;
        self.summary.bytes_in += content.len() as u64;
        self.doubts.judge(&metadata, &content);
        let Some(done) = done else {
            self.summary.bytes_out += content.len() as u64;
            return Ok(());
        };
        let (edits, said) = done?;
        let mut place = MessagePlace {
            folder: shown(&self.selected.folder),
            uidvalidity: self.selected.uidvalidity,
            uid: metadata.uid,
            new_uid: None,
        };
        let new = edits.splice(&content).into_bytes();
        let fate = if edits.is_empty() || *new == *content {
            None
        } else if let Some(keyword) = metadata.odd_flags.first() {
            let why = format!(
                "the message has the keyword {keyword}, which IMAP does not allow, so the keyword could not be set on a new message; the message was not changed"
            );
            self.damaged(metadata.uid, why.clone());
            Some(ReplaceResult::Left(Reason::FlagsNotKept, why))
        } else if metadata.size == 0 {
            let why = "the server does not report the size of the message, so embody cannot tell whether the message is complete";
            Some(ReplaceResult::Left(Reason::ServerRefused, why.to_owned()))
        } else if content.len() as u64 != metadata.size {
            // The report about the message says this.
            self.doubts.short.retain(|it| it.uid != metadata.uid);
            let size = metadata.size;
            let why = format!(
                "the server announced {size} bytes for the message, but sent a different number"
            );
            Some(ReplaceResult::Left(Reason::WrongSize, why))
        } else if metadata.internal_date.text.trim().is_empty() {
            let why = "the server does not send the date of arrival (INTERNALDATE), so the new message would have a different date";
            Some(ReplaceResult::Left(Reason::ServerRefused, why.to_owned()))
        } else if may_hide_nul(&content) || new.contains(&0) {
            let why = "the message may contain NUL bytes, which the server replaces with the byte 0x80, so the new message would be different; the message was not changed";
            Some(ReplaceResult::Left(Reason::NulByte, why.to_owned()))
        } else if !self.job.mode.writes() {
            self.summary.changed += 1;
            None
        } else if self.is_open(metadata.uid) {
            let why = "an earlier run was stopped while it replaced this message, and embody cannot find out which steps were completed";
            Some(ReplaceResult::Left(Reason::ServerRefused, why.to_owned()))
        } else {
            Some(self.replaced(&metadata, &content, &new, turn)?)
        };
        let is_dry = !self.job.mode.writes() && fate.is_none();
        let size = match &fate {
            Some(ReplaceResult::Replaced(uid, _) | ReplaceResult::Doubled(uid, _)) => {
                self.summary.changed += 1;
                self.altered = 0;
                place.new_uid = Some(*uid);
                new.len()
            }
            None if is_dry => new.len(),
            _ => content.len(),
        };
        self.summary.bytes_out += size as u64;
        self.altered += u32::from(matches!(
            fate,
            Some(
                ReplaceResult::Left(Reason::AlteredByServer, _)
                    | ReplaceResult::Both(Reason::AlteredByServer | Reason::AmbiguousCopy, _)
            )
        ));
        self.summary.damaged += u64::from(fate.as_ref().is_some_and(ReplaceResult::may_be_doubled));
        {
            let _one = unpoisoned(work.telling.lock());
            self.job.observer.message_at(said, place, fate);
        }
        if self.altered >= ALTERED {
            let what = format!(
                "{}: the run ended early and replaces no more messages, because the server altered {ALTERED} new messages in a row, or because embody could not find the new messages that it wrote",
                account_url(self.job.account)
            );
            return Err(ImapFailure::Run(Error::Usage(what.into())));
        }
        Ok(())
    }

    fn replaced(
        &mut self,
        metadata: &Metadata,
        content: &[u8],
        new: &[u8],
        turn: AppendPlace<'_, S>,
    ) -> Result<ReplaceResult, ImapFailure> {
        let mut turn = TakenTurn {
            turn: Some(turn),
            stop: self.job.stop,
        };
        self.in_work = Some(metadata.uid);
        let fate = self.again(|run| {
            if let Some(fate) = run.resumed.take() {
                return Ok(fate);
            }
            // A command failed, but the session continues. The journal entry is resumed rather than restarted, because
            // a restart would append a second new message.
            if run.is_open(metadata.uid) {
                let folder = run.selected.folder.clone();
                let mut fates = Vec::new();
                run.resume_in(&folder, Some(metadata.uid), &mut fates)?;
                if let Some((_, fate)) = fates.pop() {
                    return Ok(fate);
                }
            }
            let least = run.least;
            let none = ImapFailure::Protocol(
                "embody has no journal for the replacement (a defect of embody; please report it)",
            );
            let mut replacing = run.replacing()?.ok_or(none)?;
            let change = MessageChange {
                old: metadata,
                original: content,
                new,
                least,
            };
            let why = "the changes to this message were undone";
            let fate = replacing.replace(&change, &mut turn)?;
            Ok(fate.unwrap_or(ReplaceResult::Left(
                Reason::ChangedMeanwhile,
                why.to_owned(),
            )))
        });
        self.in_work = None;
        let fate = fate?;
        if let ReplaceResult::Replaced(uid, _) | ReplaceResult::Doubled(uid, _) = &fate {
            self.least = self.least.max(uid.saturating_add(1));
        }
        Ok(fate)
    }
}

/// A message's turn in the append order. Dropping it lets the next message be appended.
struct TakenTurn<'f, S> {
    turn: Option<AppendPlace<'f, S>>,
    stop: &'f Stop,
}

impl<S> AppendTurn for TakenTurn<'_, S> {
    fn wait(&mut self) -> Result<(), ImapFailure> {
        match &self.turn {
            Some(turn) => turn.wait(self.stop),
            None => Ok(()),
        }
    }

    fn is_over(&mut self) {
        self.turn = None;
    }
}

/// Returns whether the content may contain a NUL byte that the server replaced by 0x80, as Dovecot does, because IMAP does not
/// allow NUL (RFC 9051 §4.3.1). A byte 0x80 inside a UTF-8 character is original. In text of other charsets it may be either,
/// so such a message is not changed.
fn may_hide_nul(content: &[u8]) -> bool {
    memchr::memchr(0x80, content).is_some()
        && content
            .utf8_chunks()
            .any(|chunk| chunk.invalid().contains(&0x80))
}

/// Splits a list into batches of about [`BATCH`] bytes and at most `most` messages.
fn batches(mut all: &[(u32, u64)], most: usize) -> impl Iterator<Item = &[(u32, u64)]> {
    std::iter::from_fn(move || {
        let mut octets = 0_u64;
        let sizes = all.iter().take(most).take_while(|(_, size)| {
            let fits = octets < BATCH;
            octets = octets.saturating_add(*size);
            fits
        });
        let (batch, rest) = all.split_at(sizes.count());
        all = rest;
        (!batch.is_empty()).then_some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_0x80_outside_a_utf8_character_may_hide_a_nul() {
        for (content, may_hide) in [
            (&b"plain"[..], false),
            ("\u{c0} \u{2026} \u{20ac}".as_bytes(), false),
            (b"\x80", true),
            (b"nul: [\x80]\r\n", true),
            (b"\xe2\x80", true),
            (b"\xe2\x80\xa6\x80", true),
            (b"\xa4 \xff", false),
        ] {
            assert_eq!(may_hide_nul(content), may_hide, "{content:?}");
        }
    }
}
