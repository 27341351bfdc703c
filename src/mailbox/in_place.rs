//! Changes an mbox in place: reads, locks and replaces it so that no mail that is delivered during the run is lost.
//!
//! Usually the lock is held from before the first byte is read until the new file has replaced the old one. If the
//! transform waits for the network ([`waits`](crate::mailbox::Options::waits)), slow servers would delay deliveries. In
//! this case, the mbox is processed in rounds between locks:
//! 1. Lock the mbox, get its length, and unlock it. All messages up to this length are complete.
//! 2. Read and transform these bytes without a lock, and write the result to a temporary file.
//! 3. Lock the mbox again. If the bytes that were read have changed, start again. Content that was already retrieved is
//!    in the cache of the run. If mail was appended, process only this mail in another round.
//! 4. After a few rounds, copy further mail unchanged, for a later run. Replace the file while it is locked.
//!
//! `latecomers` copies mail that is appended to the old file. See docs/mailbox-internals.md, "What can still be lost".

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use md5::{Digest as _, Md5};

use crate::error::Error;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::compressed::method_of;
use crate::mailbox::copy::MboxCopy;
use crate::mailbox::event::MailboxEvent;
use crate::mailbox::failure::{changed, unreadable};
use crate::mailbox::file::octets_at;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::mbox::MboxReadState;
use crate::mailbox::forms::mmdf;
use crate::mailbox::identity::FileIdentity;
use crate::mailbox::input::source::InputSource;
use crate::mailbox::place::latecomers::{carry_over, keep};
use crate::mailbox::place::lock::{LockPatience, MboxLock};
use crate::mailbox::place::replace::start_of;
use crate::mailbox::read::sink::{Output, Sink};
use crate::mailbox::reader::{MboxPart, ReadContext, quoting_of};
use crate::mailbox::{Stop, Summary};
use crate::platform::{MetadataExt as _, NewFile};
use crate::span::front;

const ATTEMPTS: usize = 3;
/// Maximum number of rounds for mail that is appended during the run. Mail that arrives later is copied unchanged.
const ROUNDS: usize = 4;
/// Minimum time in which a file must be unchanged for its times to be trusted. Old file systems store times in seconds:
/// if a file changes twice within a second, the second change leaves the time as it is.
const SETTLED: Duration = Duration::from_secs(3);
/// Number of bytes of appended mail that are searched for its `From ` line, which empty lines may precede.
const BLANKS: usize = 16;

impl<S: Send> MailboxJob<'_, S> {
    pub(crate) fn mbox_in_place(&self) -> Result<Summary, Error> {
        if let Some(left) = self.leave_utf16() {
            return Ok(left);
        }
        if !self.options.writes {
            if self.method.is_some() {
                return self.file_to(StartKind::Mbox, Output::Nowhere);
            }
            let (file, _) = self.open()?;
            let source = InputSource::file(&Arc::new(file));
            let summary = self.whole_mbox(source, &mut Sink::Nowhere)?;
            self.observer.event(MailboxEvent::done(&summary));
            return Ok(summary);
        }
        let target = self.path.canonicalize().map_err(unreadable(self.path))?;
        if self.options.waits && self.method.is_none() {
            return self.between_locks(&target);
        }
        let lock = self.locked(&target)?;
        let before = FileIdentity::of(&lock.file.metadata().map_err(unreadable(&target))?);
        let plain = match self.method {
            None => Arc::clone(&lock.file),
            Some(method) => {
                if method_of(&lock.file).map_err(unreadable(self.path))? != Some(method) {
                    return Err(changed(&target));
                }
                // The whole file is decompressed first, so that damage is found before messages are reported as
                // processed.
                match self.expanded(method, &lock.file)? {
                    Ok(plain) => Arc::new(plain),
                    Err(damage) => {
                        let summary = self.all_damaged(&damage);
                        self.observer.event(MailboxEvent::done(&summary));
                        return Ok(summary);
                    }
                }
            }
        };
        let mut sink = self.sink(&plain, &target);
        let summary = self.whole_mbox(InputSource::file(&plain), &mut sink)?;
        self.put(&lock, &target, sink, &before, &summary)?;
        Ok(summary)
    }

    fn whole_mbox(&self, source: InputSource, sink: &mut Sink<'_>) -> Result<Summary, Error> {
        let mut summary = Summary::default();
        let context = Arc::new(ReadContext::of_job(self));
        let part = MboxPart::first(&context, false, source, None)?;
        self.copy_part(part, &mut MboxCopy::to(sink), &mut summary)?;
        Ok(summary)
    }

    /// Returns how long this run still waits for the lock of a mailbox.
    pub(crate) fn patience(&self) -> LockPatience<'_> {
        let patience = self.full_patience();
        match self.lock_waits {
            Some(waits) => patience.within(waits),
            None => patience,
        }
    }

    /// Returns the whole timeout, for a mailbox that this run has locked before.
    fn full_patience(&self) -> LockPatience<'_> {
        LockPatience::new(self.options.lock_timeout, self.stop, self.observer)
    }

    fn locked(&self, target: &Path) -> Result<MboxLock, Error> {
        MboxLock::acquire(target, self.path, &self.patience())
    }

    fn sink<'s>(&'s self, source: &Arc<File>, target: &'s Path) -> Sink<'s> {
        Sink::InPlace {
            source: Arc::clone(source),
            method: self.method,
            target,
            backup: self.options.backup.as_deref(),
            unchanged: 0,
        }
    }

    fn between_locks(&self, target: &Path) -> Result<Summary, Error> {
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                self.observer
                    .event(MailboxEvent::Begin(self.path.to_owned()));
            }
            if let Some(summary) = self.attempt(target)? {
                return Ok(summary);
            }
        }
        Err(changed(target))
    }

    /// Processes the mbox once. Returns `None` if the bytes that were read have changed, so that the work must be
    /// repeated.
    fn attempt(&self, target: &Path) -> Result<Option<Summary>, Error> {
        let mut lock = self.locked(target)?;
        let context = Arc::new(ReadContext::of_job(self));
        let quoting = quoting_of(&context, false, &mut InputSource::file(&lock.file))?;
        let mut sink = self.sink(&lock.file, target);
        let mut summary = Summary::default();
        let mut digest = Md5::new();
        let mut state = Moment::of(&lock.file, target)?;
        let (mut read, mut counted) = (0, MboxReadState::default());
        for round in 0..ROUNDS {
            let end = state.identity.length;
            if round > 0 && end == read {
                break;
            }
            let file = lock.let_go(target)?;
            let section = InputSource::section(&file, read, end);
            let mut seen = |bytes: &[u8]| digest.update(bytes);
            let mut copy = MboxCopy {
                seen: Some(&mut seen),
                ..MboxCopy::to(&mut sink)
            };
            let before = (summary.messages, counted);
            let part = MboxPart::of_section(&context, quoting, section, before)?;
            counted = match self.copy_part(part, &mut copy, &mut summary) {
                Err(Error::Changed { .. }) => return Ok(None),
                part => part?.into_end().0,
            };
            read = end;
            lock = match MboxLock::again(file, target, self.path, &self.full_patience()) {
                Err(Error::Changed { .. }) => return Ok(None),
                locked => locked?,
            };
            let now = Moment::of(&lock.file, target)?;
            let whole = now.is_surely(&state)
                || now.identity.length >= read
                    && summary.bytes_in == read
                    && digest_of(&lock.file, read, target)? == digest.clone().finalize().as_slice()
                    && message_starts(&lock.file, read, target)?;
            if !whole {
                return Ok(None);
            }
            state = now;
        }
        let length = state.identity.length;
        if length > read {
            let section = InputSource::section(&lock.file, read, length);
            let seen = summary.messages;
            let unseen = MailboxJob {
                transform: None,
                ..*self
            };
            let part = MboxPart::of_section(&context, quoting, section, (seen, counted))?;
            unseen.copy_part(part, &mut MboxCopy::to(&mut sink), &mut summary)?;
            summary.late += summary.messages - seen;
        }
        self.put(&lock, target, sink, &state.identity, &summary)?;
        Ok(Some(summary))
    }

    fn put(
        &self,
        lock: &MboxLock,
        target: &Path,
        sink: Sink<'_>,
        before: &FileIdentity,
        summary: &Summary,
    ) -> Result<(), Error> {
        let Sink::Beside(beside) = sink else {
            self.observer.event(MailboxEvent::done(summary));
            return Ok(());
        };
        self.stop.check()?;
        let finished = beside.finished(&lock.file, NewFile::Replacement)?;
        finished.sync()?;
        lock.check(target)?;
        let old = finished.replace(before, self.options.backup.as_deref())?;
        self.observer.event(MailboxEvent::done(summary));
        // A stop is ignored from here on, because it would lose mail that is appended to the old file.
        let never = Stop::default();
        let patience = LockPatience::new(self.options.lock_timeout, &never, self.observer);
        carry_over(lock, target, before.length, &patience).map_err(|error| keep(old, target, error))
    }
}

struct Moment {
    identity: FileIdentity,
    /// The ctime of the file. Programs cannot set it, unlike the modification time, so it shows every change.
    changed: (i64, i64),
    taken: SystemTime,
}

impl Moment {
    fn of(file: &File, path: &Path) -> Result<Self, Error> {
        let metadata = file.metadata().map_err(unreadable(path))?;
        Ok(Self {
            identity: FileIdentity::of(&metadata),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            taken: SystemTime::now(),
        })
    }

    fn is_surely(&self, earlier: &Self) -> bool {
        let seconds = u64::try_from(earlier.changed.0).unwrap_or(u64::MAX);
        let changed = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        let age = changed.and_then(|changed| earlier.taken.duration_since(changed).ok());
        self.identity == earlier.identity
            && self.changed == earlier.changed
            && age.is_some_and(|age| age > SETTLED)
    }
}

fn digest_of(file: &File, length: u64, path: &Path) -> Result<Vec<u8>, Error> {
    let mut digest = Md5::new();
    let read = start_of(file, length, path, &mut |bytes| {
        digest.update(bytes);
        Ok(())
    });
    match read {
        // This error means that the file has become shorter. The digest of the shorter file differs from the earlier
        // digest. The caller compares the two and finds the change, so the error can be ignored.
        Ok(()) | Err(Error::Changed { .. }) => Ok(digest.finalize().to_vec()),
        Err(error) => Err(error),
    }
}

/// Returns whether a new message starts at `at`. If not, the appended bytes continue the last message that was read.
fn message_starts(file: &File, at: u64, path: &Path) -> Result<bool, Error> {
    let start = octets_at(file, at, BLANKS.max(mmdf::LOOK_AHEAD)).map_err(unreadable(path))?;
    let text = front(&start, BLANKS).trim_ascii_start();
    Ok(text.starts_with(b"From ") || mmdf::starts(&start) || start.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_message_starts_only_with_a_separator_after_optional_empty_lines() {
        for (appended, starts) in [
            ("", true),
            ("From a 10:00\n", true),
            ("\n\r\nFrom a 10:00\n", true),
            ("From\n", false),
            ("more of it\n\nFrom a 10:00\n", false),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), format!("1234{appended}")).unwrap();
            let got = message_starts(file.as_file(), 4, file.path()).unwrap();
            assert_eq!(got, starts, "{appended:?}");
        }
    }
}
