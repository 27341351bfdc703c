//! Writes mail to a mailbox of another format, or to one mailbox for each label. Mailboxes that already have the format
//! of the result are copied.
//!
//! **The bytes of a message are kept**, except for the changes that the mbox format requires. Lines of the body that
//! start with `From ` are quoted (mboxrd) when a message is written to an mbox, and unquoted when it is read from one.
//! A last line without a line ending gets one, and a wrong Content-Length is corrected. The flags of a Maildir file
//! name are written to header fields of an mbox if the fields have other values. In the other direction, the fields are
//! kept and the flags are derived from them.
//!
//! **Dates** come from the time of the message file or from the separator line. A date without a zone is read as UTC
//! (RFC 4155).
//!
//! A message that is too large or damaged is reported and omitted.

use std::borrow::Cow;
use std::fs::{self, File};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::detail::Detail;
use crate::error::{Error, unpoisoned};
use crate::mailbox::archive::InnerMailboxes;
use crate::mailbox::begin::{MailboxJob, begun, sweep};
use crate::mailbox::compressed::not_encoded;
use crate::mailbox::failure::{LEFT_OUT, cannot_write, in_full, too_large, unreadable};
use crate::mailbox::finds::{Finds, SourceFind};
use crate::mailbox::forms::keywords::Keywords;
use crate::mailbox::forms::proton::{self, ProtonLabels};
use crate::mailbox::forms::{mmdf, rewrite, separator, uw_imap};
use crate::mailbox::input::accounts::Accounts;
use crate::mailbox::input::window::{WindowChunk, Windows};
use crate::mailbox::kind::StartKind;
use crate::mailbox::place::delivery::{Delivery, Handler, PreparedMail, ResultPlace, StoredState};
use crate::mailbox::place::journal::JournalRecord;
use crate::mailbox::read::messages::TransformResult;
use crate::mailbox::read::sink::Output;
use crate::mailbox::result_folders::groups::groups;
use crate::mailbox::result_folders::{ResultFolder, result_folders};
use crate::mailbox::result_form::form;
use crate::mailbox::temporary;
use crate::mailbox::{Envelope, Format, Quoting, Summary, Transform};
use crate::platform;
use crate::pool;
use crate::prologue::{self, Prologue};

impl<S: Send> MailboxJob<'_, S> {
    /// Writes the messages of all mailboxes to one mbox in an open file.
    pub(crate) fn transfer_to_open(&self, finds: &Finds, output: File) -> Result<Summary, Error> {
        let options = self.options;
        if options.mode.writes() {
            sweep(finds, options.format);
        }
        let mut summary = begun(finds, self.observer);
        let groups = groups(finds, options);
        let founds: Vec<&SourceFind> = groups
            .iter()
            .flat_map(|group| group.founds.iter().copied())
            .collect();
        let place = ResultPlace::Open(output);
        summary.add(&self.transfer_group(&founds, place, None)?);
        Ok(summary)
    }

    /// Converts all mailboxes to `destination`.
    pub(crate) fn transfer(&self, finds: &Finds, destination: &Path) -> Result<Summary, Error> {
        let options = self.options;
        let writes = options.mode.writes();
        if writes {
            sweep(finds, options.format);
        }
        let mut summary = begun(finds, self.observer);
        if let [found] = finds.mailboxes.as_slice()
            && found.is_packed()
            && found.relative.as_os_str().is_empty()
        {
            let folder = temporary::folder_of(destination);
            if writes {
                fs::create_dir_all(folder).map_err(cannot_write(folder))?;
                temporary::sweep(folder);
            }
            if self.is_made(&found.path) {
                summary.add(&self.made());
                return Ok(summary);
            }
            let like = fs::metadata(found.file()).ok();
            let places = (destination, destination);
            let unpacked = self.unpack(found.kind, places, like.as_ref(), |job, output| {
                let mut output = Some(output);
                job.each([found], |job, kind| match output.take() {
                    Some(output) => job.file_to(kind, output),
                    None => Ok(Summary::default()),
                })
            });
            summary.add(&unpacked?);
            return Ok(summary);
        }
        let folds =
            || writes && platform::folds_names(temporary::folder_of(destination)).unwrap_or(false);
        let folders = result_folders(finds, options, folds);
        if options.output_format == Format::Thunderbird {
            let moved = self.to_tree(&folders, destination)?;
            summary.add(&moved);
            return Ok(summary);
        }
        let is_one = matches!(folders.as_slice(), [folder] if folder.path.as_os_str().is_empty());
        let mut at_work_in = PathBuf::new();
        let mut make_parent = |target: &Path| {
            let parent = temporary::folder_of(target);
            if writes && parent != at_work_in {
                fs::create_dir_all(parent).map_err(cannot_write(parent))?;
                temporary::sweep(parent);
                at_work_in = parent.to_owned();
            }
            Ok(())
        };
        let mut rest = folders.as_slice();
        while let Some((folder, after)) = rest.split_first() {
            let messages: Vec<(&SourceFind, PathBuf)> = rest
                .iter()
                .map_while(|folder| {
                    Some((folder.copied_message()?, destination.join(&folder.path)))
                })
                .collect();
            if messages.len() > 1 && self.has_several_workers() {
                rest = rest.get(messages.len()..).unwrap_or_default();
                summary.add(&self.copy_messages(&messages, &mut make_parent)?);
                continue;
            }
            rest = after;
            let Some(first) = folder.founds.first() else {
                continue;
            };
            self.stop.check()?;
            let target = if is_one {
                destination.to_owned()
            } else {
                destination.join(&folder.path)
            };
            make_parent(&target)?;
            let founds = folder.founds.iter().copied();
            if first.is_packed() {
                let unpacked = self.each(founds, |job, kind| {
                    if job.is_made(job.path) {
                        return Ok(job.made());
                    }
                    let like = fs::metadata(job.path).ok();
                    let directory = destination.join(&folder.directory);
                    let places = (target.as_path(), directory.as_path());
                    job.unpack(kind, places, like.as_ref(), |job, output| {
                        job.file_to(kind, output)
                    })
                });
                summary.add(&unpacked?);
                continue;
            }
            if !folder.is_moved {
                let done = self.each(founds, |job, kind| match kind.is_folder() {
                    true => job.folder(kind, Some(&target)),
                    false if job.is_made(job.path) => Ok(job.made()),
                    false if is_one => job.file_to(kind, Output::Path(&target)),
                    false => {
                        let done = job.file_to(kind, Output::InFolder(&target));
                        job.copy_state_files(kind, &target).and(done)
                    }
                });
                summary.add(&done?);
                continue;
            }
            let record = self.record_of_group(founds.clone());
            if record.as_ref().is_some_and(JournalRecord::is_made) {
                self.observer.begin(&first.path);
                summary.add(&self.made());
                continue;
            }
            let place = ResultPlace::Path(&target);
            summary.add(&self.transfer_group(&folder.founds, place, record)?);
        }
        Ok(summary)
    }

    /// Writes the messages of the mailboxes to one new mailbox, or to one for each label.
    fn transfer_group(
        &self,
        founds: &[&SourceFind],
        place: ResultPlace<'_>,
        record: Option<JournalRecord<'_>>,
    ) -> Result<Summary, Error> {
        let Some(first) = founds.first() else {
            return Ok(Summary::default());
        };
        let like = fs::metadata(first.file()).ok();
        let form = form(first.kind, self.options);
        let mut delivery = Delivery::start(form, self.options, place, like.as_ref(), self.journal)?;
        let labels = proton_labels(founds);
        let of_group = MailboxJob {
            proton: labels.as_ref(),
            ..*self
        };
        let moved = of_group.deliver_each(founds, &mut delivery)?;
        // An Outlook folder that contains only contacts or appointments has no messages, so no mailbox is created for it.
        if first.kind != StartKind::Pst || moved.messages > 0 {
            self.finish(delivery, &moved, record)?;
        }
        Ok(moved)
    }

    /// Converts all mailboxes to folders below the Thunderbird folder at `destination`. If the source is a single
    /// mailbox, its messages become the messages of that folder.
    fn to_tree(&self, folders: &[ResultFolder<'_>], destination: &Path) -> Result<Summary, Error> {
        if self.options.mode.writes() {
            temporary::sweep(temporary::folder_of(destination));
        }
        let record = self.record_of_group(
            folders
                .iter()
                .flat_map(|folder| folder.founds.iter().copied()),
        );
        if record.as_ref().is_some_and(JournalRecord::is_made) {
            return Ok(self.made());
        }
        let first = folders.iter().find_map(|folder| folder.founds.first());
        let like = first.and_then(|first| fs::metadata(first.file()).ok());
        let mut delivery = Delivery::start(
            Format::Thunderbird,
            self.options,
            ResultPlace::Path(destination),
            like.as_ref(),
            self.journal,
        )?;
        let mut summary = Summary::default();
        let inner = InnerMailboxes::default();
        let job = MailboxJob {
            inner: Some(&inner),
            ..*self
        };
        for folder in folders {
            self.stop.check()?;
            let above = folder.levels();
            delivery.enter(&above)?;
            let labels = proton_labels(&folder.founds);
            let of_group = MailboxJob {
                proton: labels.as_ref(),
                ..job
            };
            let moved = of_group.deliver_each(&folder.founds, &mut delivery);
            summary.add(&moved?);
            // The folders of Outlook mailboxes in an archive become subfolders of the folder of the archive.
            let entered = job.each_inner(&inner, |job, levels| {
                delivery.enter(&[above.as_slice(), levels].concat())?;
                job.inner_to(Some(&mut delivery))
            });
            summary.add(&entered?);
        }
        self.finish(delivery, &summary, record)?;
        Ok(summary)
    }

    /// Copies messages that are files of their own to a directory, with the paths of the results. `make_parent` creates the
    /// directory of a result.
    fn copy_messages(
        &self,
        messages: &[(&SourceFind, PathBuf)],
        mut make_parent: impl FnMut(&Path) -> Result<(), Error> + Send,
    ) -> Result<Summary, Error> {
        // The messages of a directory share a file with their labels, which only one thread may copy.
        let state_files = Mutex::new(());
        self.messages(
            (messages, |(found, _)| found),
            |(_, target)| make_parent(target),
            |job, (found, target), ()| {
                if job.is_made(job.path) {
                    return Ok(job.made());
                }
                let done = job.file_to(found.kind, Output::InFolder(target));
                let _alone = unpoisoned(state_files.lock());
                job.copy_state_files(found.kind, target).and(done)
            },
            |(), _| Ok(()),
        )
    }

    /// Copies the files next to a message in which Proton stores its state.
    fn copy_state_files(&self, kind: StartKind, target: &Path) -> Result<(), Error> {
        let state = proton::metadata_path(self.path).filter(|path| path.is_file());
        let (Some(state), Some(copy)) = (state, proton::metadata_path(target)) else {
            return Ok(());
        };
        if kind != StartKind::Eml || !self.options.mode.writes() {
            return Ok(());
        }
        self.copy_file(&state, &copy)?;
        let [labels, copy] = [self.path, target].map(|path| path.with_file_name(proton::LABELS));
        if copy.exists() {
            Ok(())
        } else {
            self.copy_file(&labels, &copy)
        }
    }

    /// Completes a new mailbox, and reports the flags that it cannot store.
    pub(crate) fn finish(
        &self,
        mut delivery: Delivery,
        summary: &Summary,
        record: Option<JournalRecord<'_>>,
    ) -> Result<(), Error> {
        delivery.take_losses().report(self.observer);
        delivery.finish_unless_damaged(summary, record)
    }

    fn envelope(&self, separator: &[u8], content: &[u8]) -> Envelope {
        let of = |transform: &dyn Transform<S>| transform.envelope(separator, content);
        self.transform.map_or_else(Envelope::default, of)
    }

    /// Delivers the messages of one chunk of an mbox. `done` contains the results of the transform.
    pub(crate) fn deliver_chunk(
        &self,
        chunk: &WindowChunk,
        done: &[(usize, TransformResult<S>)],
        quoting: Quoting,
        delivery: &mut Delivery,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        let changes = done.iter().map(|(at, done)| (*at, done.new.as_deref()));
        let start = summary.bytes_in;
        let mut deliver = |letter: PreparedMail<'_>| delivery.deliver(letter, summary);
        let lines = self.letters((chunk, start), changes, quoting, &mut deliver)?;
        self.count_lines(lines, summary);
        let changed = done.iter().filter(|(_, done)| done.new.is_some());
        summary.changed += changed.count() as u64;
        self.report_oversized(chunk, summary);
        Ok(())
    }

    /// Passes the messages of an mbox to a handler, without a transform. The threads of the pool fill the batches of
    /// several chunks at the same time.
    pub(crate) fn mbox_to_handler(
        &self,
        windows: &mut Windows,
        quoting: Quoting,
        delivery: &Delivery,
        handler: &dyn Handler,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        let form = delivery.message_form();
        let mut accounts = Accounts::of(windows);
        let (first, before) = (windows.offset, summary.bytes_in);
        let before_messages = summary.messages;
        pool::run(
            self.options.pool_limits(),
            self.stop,
            || {
                let chunk = windows.next_chunk().map_err(in_full(self.path))?;
                Ok(chunk.map(|chunk| {
                    let weight = chunk.weight();
                    (chunk, weight)
                }))
            },
            // The work on a message is short, so a chunk is not divided.
            |_| vec![0],
            |chunk, _| {
                let start = before + (chunk.offset - first);
                let mut batch = handler.batch(chunk.length);
                let mut add = |letter: PreparedMail<'_>| {
                    batch.add(&letter, form.flags(&letter));
                    Ok(())
                };
                let lines = self.letters((chunk, start), iter::empty(), quoting, &mut add)?;
                chunk.appended();
                Ok((batch, lines))
            },
            // This function frees the memory of chunks that wait because the work on an earlier chunk takes long, for
            // example because a server is slow. Here all work is short, so no memory is freed.
            |_, _| None,
            |chunk: WindowChunk, done| {
                accounts.chunk(&chunk).map_err(unreadable(self.path))?;
                for (_, (batch, lines)) in done {
                    batch.finish()?;
                    self.count_lines(lines, summary);
                }
                self.report_oversized(&chunk, summary);
                self.report_appended(&chunk, before_messages, summary);
                self.count(&chunk, summary);
                Ok(())
            },
        )?;
        accounts.end(windows).map_err(unreadable(self.path))
    }

    /// Calls `deliver` for each message of a chunk. `start` is the offset of the chunk in the mailbox. `changes` contains
    /// the numbers of messages in the chunk and their new contents. A new content has no `From ` line and no quoting, so
    /// it is not unquoted again.
    fn letters<'n>(
        &self,
        (chunk, start): (&WindowChunk, u64),
        changes: impl Iterator<Item = (usize, Option<&'n [u8]>)>,
        quoting: Quoting,
        deliver: &mut dyn FnMut(PreparedMail<'_>) -> Result<(), Error>,
    ) -> Result<DroppedLines, Error> {
        let mut lines = DroppedLines::default();
        let mut changes = changes.peekable();
        for (index, frame) in chunk.frames.iter().enumerate() {
            let text = chunk.text(index).map_err(unreadable(self.path))?;
            let (from_line, content, _) = text.parts();
            let quoting = rewrite::quoting_in(&text.frame, from_line, quoting);
            let (plain, unsure) = rewrite::plain(content, quoting);
            let new = changes.next_if(|(at, _)| *at == index);
            if let Some(why) = &text.refused {
                lines
                    .refused
                    .push((chunk.first_number + index as u64, why.clone()));
                continue;
            }
            lines.ambiguous += unsure;
            let plain = new.and_then(|(_, new)| new).map_or(plain, Cow::Borrowed);
            let separator = mmdf::from_line(from_line).trim_ascii();
            let start = start + frame.start as u64;
            let folder = self.members.and_then(|(members, base)| {
                let places = &unpoisoned(members.lock()).places;
                places.folder(base + chunk.offset + frame.start as u64)
            });
            // A `>From ` line directly after the separator is an older separator: the `From ` line of an earlier mailbox,
            // which a program quoted. It and other lines before the header are not part of the message, so they are
            // removed.
            let prologue = Prologue::of(&plain).unwrap_or_default();
            let plain = &plain[prologue.length..];
            let rest = prologue::without_banner_in_header(plain);
            lines.prologues += u64::from(prologue.length > 0 || rest.is_some());
            let plain = rest.as_deref().unwrap_or(plain);
            let number = chunk.first_number + index as u64;
            if number == 1 && uw_imap::is_internal(plain) {
                lines.internal += 1;
                continue;
            }
            deliver(PreparedMail {
                content: plain,
                flags: self.index.and_then(|index| index.get(&start).cloned()),
                keywords: Keywords::default(),
                envelope: self.envelope(separator, plain),
                // A variant of the same mbox keeps the separators that all programs read.
                separator: Some(separator).filter(|line| {
                    let is_same = self.options.mbox_variant.is_some() || self.options.skip_deleted;
                    is_same && separator::is_asctime(line)
                }),
                member: folder,
            })?;
        }
        Ok(lines)
    }

    fn count_lines(&self, lines: DroppedLines, summary: &mut Summary) {
        summary.ambiguous += lines.ambiguous;
        summary.prologues += lines.prologues;
        summary.internal += lines.internal;
        summary.damaged += lines.refused.len() as u64;
        for (number, why) in lines.refused {
            let why = Detail::from(format!("message {number}: {}", not_encoded(why)));
            self.observer.lost(self.path, &why.then(LEFT_OUT));
        }
    }

    /// Reports the messages of a chunk that are too large, and counts them as damaged.
    fn report_oversized(&self, chunk: &WindowChunk, summary: &mut Summary) {
        if chunk.oversized > 0 {
            let number = chunk.first_number + chunk.frames.len() as u64;
            self.observer
                .lost(self.path, &too_large(Some(number), self.options));
            summary.damaged += chunk.oversized;
        }
    }

    /// Counts the messages and bytes of a chunk, and reports the progress. For a compressed mailbox, the progress is the number
    /// of compressed bytes of this chunk: chunks that wait for their turn are not done, although they were already read.
    pub(crate) fn count(&self, chunk: &WindowChunk, summary: &mut Summary) {
        let (messages, octets) = (chunk.messages(), chunk.length as u64);
        summary.oversized += chunk.oversized;
        summary.messages += messages;
        summary.bytes_in += octets;
        self.observer
            .advance(chunk.packed.unwrap_or(octets), messages);
    }

    /// Delivers a message from its own file.
    pub(crate) fn deliver_message(
        &self,
        content: &[u8],
        stored: StoredState,
        delivery: &mut Delivery,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        let StoredState {
            flags,
            date: modified,
            proton,
        } = stored;
        // Some programs store the `From ` line of an mbox in the file of a message. If the result is an mbox, this line
        // becomes the separator. In other formats, it is removed with the other lines before the header, because most
        // programs read no header behind them.
        let prologue = Prologue::of(content).unwrap_or_default();
        let separator = prologue
            .separator
            .and_then(|(start, end)| content.get(start..end));
        let line = separator.unwrap_or_default();
        let is_one = prologue.is_separators && prologue.separators == 1;
        let is_kept = is_one && delivery.is_mbox();
        let content = &content[prologue.length..];
        let rest = prologue::without_banner_in_header(content);
        summary.prologues += u64::from(prologue.length > 0 && !is_kept || rest.is_some());
        let content = rest.as_deref().unwrap_or(content);
        let envelope = self.envelope(mmdf::from_line(line), content);
        let date = if separator::is_plausible(line) {
            envelope.date.or(modified)
        } else {
            modified.or(envelope.date)
        };
        let mut envelope = Envelope { date, ..envelope };
        let mut keywords = Keywords::default();
        if let Some(state) = proton {
            let none = ProtonLabels::default();
            let (folders, labels) = self.proton.unwrap_or(&none).sorted(&state);
            let lost = |folder: &&String| proton::is_named_if_lost(folder, &labels);
            folders
                .iter()
                .filter(lost)
                .for_each(|it| delivery.lose_folder(it));
            if delivery.has_label_keywords() {
                keywords = proton::keywords(&labels);
            }
            envelope.labels = folders;
            envelope.states.extend(state.states);
        }
        let letter = PreparedMail {
            content,
            flags,
            keywords,
            envelope,
            separator: Some(line).filter(|line| separator::is_asctime(line)),
            member: None,
        };
        delivery.deliver(letter, summary)
    }
}

/// Returns the labels of the export of Proton to which the messages belong. Returns `None` if they are no such messages.
pub(crate) fn proton_labels(founds: &[&SourceFind]) -> Option<ProtonLabels> {
    let first = founds.iter().find(|found| found.kind == StartKind::Eml)?;
    let folder = temporary::folder_of(&first.path);
    folder
        .join(proton::LABELS)
        .is_file()
        .then(|| ProtonLabels::of_folder(folder))
}

/// Lines of messages that were written to a mailbox of another format without them.
#[derive(Default)]
struct DroppedLines {
    /// Lines for which it is unknown whether they were quoted.
    ambiguous: u64,
    /// Messages with lines before their headers.
    prologues: u64,
    /// Messages that contain the state of the mailbox.
    internal: u64,
    /// Numbers of the messages that were not written, and the reasons.
    refused: Vec<(u64, String)>,
}
