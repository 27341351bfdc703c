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

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::error::{Error, unpoisoned};
use crate::mailbox::Summary;
use crate::mailbox::archive::InnerMailboxes;
use crate::mailbox::begin::{MailboxJob, begun, sweep};
use crate::mailbox::event::MailboxEvent;
use crate::mailbox::failure::cannot_write;
use crate::mailbox::finds::{Finds, SourceFind};
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::proton::{self, ProtonLabels};
use crate::mailbox::place::delivery::{Delivery, ResultPlace};
use crate::mailbox::place::journal::JournalRecord;
use crate::mailbox::read::sink::Output;
use crate::mailbox::result_folders::groups::groups;
use crate::mailbox::result_folders::{ResultFolder, result_folders};
use crate::mailbox::result_form::form;
use crate::mailbox::temporary;
use crate::platform;

impl<S: Send> MailboxJob<'_, S> {
    /// Writes the messages of all mailboxes to one mbox in an open file.
    pub(crate) fn transfer_to_open(&self, finds: &Finds, output: File) -> Result<Summary, Error> {
        let options = self.options;
        if options.writes {
            sweep(finds, options.read.format);
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
        let writes = options.writes;
        if writes {
            sweep(finds, options.read.format);
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
        if options.output_format.is_tree() {
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
                self.observer
                    .event(MailboxEvent::Begin(first.path.to_owned()));
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
        if !first.kind.has_folders() || moved.messages > 0 {
            self.finish(delivery, &moved, record)?;
        }
        Ok(moved)
    }

    /// Converts all mailboxes to folders of a tree, below the folder at `destination`. If the source is a single
    /// mailbox, its messages become the messages of that folder.
    fn to_tree(&self, folders: &[ResultFolder<'_>], destination: &Path) -> Result<Summary, Error> {
        if self.options.writes {
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
            self.options.output_format,
            self.options,
            ResultPlace::Path(destination),
            like.as_ref(),
            self.journal,
        )?;
        let mut summary = Summary::default();
        let inner = Arc::<InnerMailboxes>::default();
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
            |job, (found, target)| {
                if job.is_made(job.path) {
                    return Ok(job.made());
                }
                let done = job.file_to(found.kind, Output::InFolder(target));
                let _alone = unpoisoned(state_files.lock());
                job.copy_state_files(found.kind, target).and(done)
            },
        )
    }

    /// Copies the files next to a message in which Proton stores its state.
    fn copy_state_files(&self, kind: StartKind, target: &Path) -> Result<(), Error> {
        let state = proton::metadata_path(self.path).filter(|path| path.is_file());
        let (Some(state), Some(copy)) = (state, proton::metadata_path(target)) else {
            return Ok(());
        };
        if kind != StartKind::Eml || !self.options.writes {
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
