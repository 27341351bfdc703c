//! Converts archives, and Outlook mailboxes that are compressed or come from a pipe.
//!
//! The mboxes of an archive become one mailbox. Each folder of an Outlook mailbox becomes a mailbox. If an archive
//! contains only mboxes, the result is one mailbox. If the archive also contains an Outlook mailbox, the result is a
//! directory. The Outlook mailbox may be the last member of the archive, so the form of the result is only known after
//! the whole archive was read. In a directory, the mailbox with the messages of the mboxes is named after the archive:
//! the messages from `backup.zip` are in `new/backup.mbox`, next to the folders.

use std::convert::Infallible;
use std::fs::{self, Metadata};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::detail::{Detail, Setting};
use crate::error::{Error, unpoisoned};
use crate::mailbox::Summary;
use crate::mailbox::archive::{InnerMailboxes, SkippedMember, SpooledFile};
use crate::mailbox::begin::{MailboxJob, begun};
use crate::mailbox::event::MailboxEvent;
use crate::mailbox::failure::{cannot_write, in_full};
use crate::mailbox::finds::{Finds, SourceFind};
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::layout::{archive_stem, names_a_file};
use crate::mailbox::forms::names::FolderNames;
use crate::mailbox::identity::FileIdentity;
use crate::mailbox::input::source::InputSource;
use crate::mailbox::place::delivery::{Delivery, ResultPlace};
use crate::mailbox::place::journal::{JournalRecord, ResultPart};
#[cfg(feature = "outlook")]
use crate::mailbox::pst_file;
use crate::mailbox::read::sink::{Output, Sink};
use crate::mailbox::result_folders::source_folders;
use crate::mailbox::result_form::{form, is_moved};

impl<S: Send> MailboxJob<'_, S> {
    /// Collects the Outlook mailboxes that the reader of an archive has copied. If the run does not convert these
    /// mailboxes, they are reported as unread. Returns whether the archive contained any.
    pub(crate) fn keep_inner(&self, skipped: &mut SkippedMember, summary: &mut Summary) -> bool {
        let mut spooled = std::mem::take(&mut skipped.spooled);
        let has_some = !spooled.is_empty();
        for one in &mut spooled {
            self.path.clone_into(&mut one.archive);
        }
        match self.inner {
            Some(inner) => unpoisoned(inner.found.lock()).extend(spooled),
            None => {
                for one in spooled {
                    let why = Detail::from(
                        "this Outlook mailbox was not read, because each of its folders becomes a mailbox; name a new directory with ",
                    );
                    let path = self.path.join(one.name.trim_start_matches('/'));
                    self.observer
                        .event(MailboxEvent::damaged(path, why.naming(Setting::Output)));
                    summary.damaged += 1;
                    summary.files.not_read += 1;
                }
            }
        }
        if has_some && summary.messages == 0 {
            summary.mailboxes = 0;
        }
        has_some
    }

    /// Changes the target of the mailbox that contains the mboxes of an archive. If the archive also contains Outlook
    /// folders, the result is a directory, and this mailbox becomes a file in the directory. Returns whether the target was
    /// changed.
    ///
    /// # Errors
    /// Returns [`Error::Write`] if the directory cannot be created.
    pub(crate) fn nest(&self, sink: &mut Sink<'_>) -> Result<bool, Error> {
        let nested = self.inner.and_then(|inner| inner.nested.as_deref());
        let (Some(nested), Sink::Beside(beside)) = (nested, sink) else {
            return Ok(false);
        };
        make_parent(nested)?;
        nested.clone_into(&mut beside.target);
        Ok(true)
    }

    /// Copies an Outlook mailbox from a stream to a temporary file, because its parts are not read in order.
    pub(crate) fn spool(&self, source: &mut InputSource) -> Result<Summary, Error> {
        let mut summary = Summary::default();
        let most = self.options.read.max_expanded;
        let copied = SpooledFile::copy(String::new(), b"", &mut source.by_ref().take(most));
        let (mut spooled, error) = copied.map_err(in_full(self.path))?;
        if let Some(error) = error {
            return Err(in_full(self.path)(error));
        }
        if !source.start(1).map_err(in_full(self.path))?.is_empty() {
            let why = Detail::from(format!(
                "the decompressed mailbox is larger than {most} bytes ("
            ))
            .naming(Setting::Expanded)
            .then("), so the mailbox was not read");
            self.observer.event(MailboxEvent::damaged(self.path, why));
            summary.damaged = 1;
            summary.files.not_read = 1;
            return Ok(summary);
        }
        if let Some(damage) = source.damage() {
            self.damaged(damage, &mut summary);
            spooled.is_whole = false;
        }
        if let Some(packed) = source.packed() {
            self.observer.event(MailboxEvent::Advance(packed.rest(), 0));
        }
        let mut skipped = SkippedMember::default();
        skipped.spooled.push(spooled);
        self.keep_inner(&mut skipped, &mut summary);
        Ok(summary)
    }

    /// Returns the folders of the copied Outlook mailboxes. A mailbox that cannot be opened is added to the unreadable
    /// files.
    pub(crate) fn folders_in(&self, spooled: Vec<SpooledFile>) -> Finds {
        let mut finds = Finds::default();
        let mut names = FolderNames::default();
        let mut give = |name: &str| {
            let given = names.give(name, "", |_| Ok::<bool, Infallible>(true));
            given.unwrap_or_else(|never| match never {})
        };
        // The name of the archive is reserved for the mailbox that gets the messages of its mboxes.
        give(&archive_stem(self.path));
        for one in spooled {
            let name = Path::new(one.name.trim_start_matches('/'));
            let path = if one.name.is_empty() {
                one.archive.clone()
            } else {
                one.archive.join(name)
            };
            let base = match name.file_stem() {
                Some(stem) => PathBuf::from(give(&stem.to_string_lossy())),
                None => PathBuf::new(),
            };
            self.add_folders(&mut finds, one, (path, base));
        }
        finds.sort();
        finds
    }

    #[cfg(feature = "outlook")]
    fn add_folders(&self, finds: &mut Finds, one: SpooledFile, (path, base): (PathBuf, PathBuf)) {
        match pst_file::opened(self.path, one.file) {
            Ok((folders, damage)) => {
                finds.files.count_read(one.is_whole && damage.is_empty());
                let damage = damage.into_iter().map(|what| (path.clone(), what.into()));
                finds.unread.extend(damage);
                let found = |(folder, pst): (PathBuf, _)| SourceFind {
                    path: path.join(&folder),
                    relative: base.join(folder),
                    kind: StartKind::Pst,
                    method: None,
                    length: 0,
                    pst: Some(pst),
                };
                finds.mailboxes.extend(folders.into_iter().map(found));
            }
            Err(why) => {
                finds.files.not_read += 1;
                finds.unread.push((path, why.into()));
            }
        }
    }

    #[cfg(not(feature = "outlook"))]
    fn add_folders(&self, finds: &mut Finds, _: SpooledFile, (path, _): (PathBuf, PathBuf)) {
        let why = "this version of the program cannot read Outlook files";
        finds.files.not_read += 1;
        finds.unread.push((path, why.into()));
    }

    /// Converts an archive, or an Outlook mailbox from a stream, to `destination`. `read` reads the whole source once.
    /// `like` is the metadata of the source file: if root runs the program, its owner becomes the owner of the result.
    ///
    /// `directory` gets the folders of Outlook mailboxes in the archive. If it differs from `destination`, the mailbox with the
    /// messages of the mboxes stays at `destination`, next to the directory.
    pub(crate) fn unpack(
        &self,
        kind: StartKind,
        (destination, directory): (&Path, &Path),
        like: Option<&Metadata>,
        read: impl FnOnce(&MailboxJob<'_, S>, Output<'_>) -> Result<Summary, Error>,
    ) -> Result<Summary, Error> {
        let options = self.options;
        let form = form(kind, options);
        let is_tree = form.is_tree();
        // A range selects messages of the mboxes only. The Outlook folders are then not converted, so the result is a
        // single mailbox.
        let is_apart = directory != destination;
        let may_nest =
            options.read.range.is_none() && (is_tree || is_apart || !names_a_file(destination));
        let mut name = archive_stem(self.path);
        if let Some(written) = form.written()
            && form.is_file()
            && options.by_label.is_none()
        {
            name.push_str(written.suffix);
        }
        let nested = if is_apart {
            destination.to_owned()
        } else {
            destination.join(name)
        };
        let inner = Arc::new(InnerMailboxes {
            found: Mutex::default(),
            nested: Some(nested.clone()),
        });
        let job = MailboxJob {
            inner: may_nest.then_some(&inner),
            ..*self
        };
        let read_file = like.map(FileIdentity::of);
        let record = |part| self.record(self.path, read_file.as_ref(), part);
        let place = ResultPlace::Path(destination);
        if is_tree {
            let mut delivery = Delivery::start(form, options, place, like, self.journal)?;
            let output = if kind.has_folders() {
                Output::Nowhere
            } else {
                Output::Delivery(&mut delivery)
            };
            let mut summary = read(&job, output)?;
            let entered = self.each_inner(&inner, |job, levels| {
                delivery.enter(levels)?;
                job.inner_to(Some(&mut delivery))
            });
            summary.add(&entered?);
            self.finish(delivery, &summary, record(ResultPart::Whole))?;
            return Ok(summary);
        }
        let mut summary = if kind.has_folders() {
            read(&job, Output::Nowhere)?
        } else if is_moved(kind, options) {
            let mut delivery = Delivery::start(form, options, place, like, self.journal)?;
            let summary = read(&job, Output::Delivery(&mut delivery))?;
            let has_inner = !unpoisoned(inner.found.lock()).is_empty();
            let record = record(if has_inner {
                ResultPart::Nested
            } else {
                ResultPart::Whole
            });
            if has_inner && summary.messages > 0 {
                if options.writes {
                    make_parent(&nested)?;
                }
                delivery.rename(&nested);
            }
            let is_made = has_inner && record.as_ref().is_some_and(JournalRecord::is_made);
            if !is_made && (!has_inner || summary.messages > 0) {
                self.finish(delivery, &summary, record)?;
            }
            summary
        } else {
            read(&job, Output::Path(destination))?
        };
        let spooled = inner.take();
        if spooled.is_empty() {
            return Ok(summary);
        }
        let finds = self.folders_in(spooled);
        if options.writes {
            fs::create_dir_all(directory).map_err(cannot_write(directory))?;
        }
        summary.add(&self.transfer(&finds, directory)?);
        Ok(summary)
    }

    /// Calls `take` for each folder of the mailboxes in `inner`, with the names of the folder and
    /// of those above it.
    pub(crate) fn each_inner(
        &self,
        inner: &InnerMailboxes,
        mut take: impl FnMut(&MailboxJob<'_, S>, &[String]) -> Result<Summary, Error>,
    ) -> Result<Summary, Error> {
        let spooled = inner.take();
        if spooled.is_empty() {
            return Ok(Summary::default());
        }
        let finds = self.folders_in(spooled);
        let mut summary = begun(&finds, self.observer);
        for folder in source_folders(&finds, self.options) {
            let levels = folder.levels();
            let read = self.each(folder.founds, |job, _| take(job, &levels));
            summary.add(&read?);
        }
        Ok(summary)
    }

    /// Reads one folder of an Outlook mailbox.
    pub(crate) fn inner_to(&self, delivery: Option<&mut Delivery>) -> Result<Summary, Error> {
        self.file_to(
            StartKind::Pst,
            match delivery {
                Some(delivery) => Output::Delivery(delivery),
                None => Output::Nowhere,
            },
        )
    }
}

fn make_parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(parent).map_err(cannot_write(parent))
}
