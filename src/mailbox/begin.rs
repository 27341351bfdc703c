//! The start of a run: finds the mailboxes to convert, reports the files that are skipped, and removes temporary files
//! of runs that were killed. The conversion itself is in `own_format` and `transfer` for new files, and in `in_place`,
//! `message_in_place` and `maildir` for mailboxes that are changed in place.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::mailbox::archive::InnerMailboxes;
use crate::mailbox::compressed::Method;
use crate::mailbox::event::{MailboxEvent, MailboxFact};
use crate::mailbox::finds::{Finds, SourceFind};
use crate::mailbox::forms::eudora_files;
use crate::mailbox::forms::flags::FlagIndex;
use crate::mailbox::forms::imap_backup;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::proton::ProtonLabels;
use crate::mailbox::identity::FileIdentity;
use crate::mailbox::not_mail::NotMail;
use crate::mailbox::place::folder::MessageFolder;
use crate::mailbox::place::journal::{JournalRecord, ResultJournal, ResultPart};
use crate::mailbox::place::lock::LockWaits;
use crate::mailbox::place::origin::ResultOrigin;
use crate::mailbox::pst_file::PstFolder;
use crate::mailbox::temporary;
use crate::mailbox::{Format, Observer, Options, Stop, Summary, Transform};
use crate::platform::OsStrExt as _;

pub(crate) struct MailboxJob<'a, S> {
    pub(crate) path: &'a Path,
    pub(crate) options: &'a Options,
    pub(crate) method: Option<Method>,
    /// Whether the mailbox was found by searching a directory. False if the mailbox is the source itself.
    pub(crate) is_within: bool,
    #[cfg_attr(not(feature = "outlook"), allow(dead_code))]
    pub(crate) pst: Option<&'a PstFolder>,
    /// Outlook mailboxes that were found inside an archive or a compressed file, to be read later. `None` if the run
    /// does not read such mailboxes.
    pub(crate) inner: Option<&'a Arc<InnerMailboxes>>,
    /// Lock for the memory of a large compressed message: only one thread at a time holds such a message in memory.
    /// `None` if messages are read one by one.
    pub(crate) large: Option<&'a Mutex<()>>,
    /// Folders and labels of a Proton export. `None` if the messages are not from a Proton export.
    pub(crate) proton: Option<&'a ProtonLabels>,
    /// Journal of the results of this run and of an interrupted run. `None` if the run keeps no journal.
    pub(crate) journal: Option<&'a ResultJournal>,
    /// Time that the run has waited for locks. `None` if each mailbox has its own timeout.
    pub(crate) lock_waits: Option<&'a LockWaits>,
    pub(crate) transform: Option<&'a dyn Transform<S>>,
    pub(crate) observer: &'a dyn Observer<S>,
    pub(crate) stop: &'a Stop,
}

impl<'a, S> MailboxJob<'a, S> {
    pub(crate) fn new(
        path: &'a Path,
        options: &'a Options,
        transform: &'a dyn Transform<S>,
        observer: &'a dyn Observer<S>,
        stop: &'a Stop,
    ) -> Self {
        Self {
            transform: Some(transform),
            ..Self::reading(path, options, observer, stop)
        }
    }

    /// Returns a job that reads the mailbox and writes no result.
    pub(crate) fn reading(
        path: &'a Path,
        options: &'a Options,
        observer: &'a dyn Observer<S>,
        stop: &'a Stop,
    ) -> Self {
        Self {
            path,
            options,
            method: None,
            is_within: false,
            pst: None,
            inner: None,
            large: None,
            proton: None,
            journal: None,
            lock_waits: None,
            transform: None,
            observer,
            stop,
        }
    }

    /// Returns the journal record of a result that is made from the file `read`. Several results can come from one
    /// file, such as the folders of an Outlook mailbox; `name` distinguishes them. Returns `None` if the run keeps no
    /// journal.
    pub(crate) fn record(
        &self,
        name: &Path,
        read: Option<&FileIdentity>,
        part: ResultPart,
    ) -> Option<JournalRecord<'a>> {
        self.record_of(part, || Some(ResultOrigin::of_file(name, read?)))
    }

    /// Returns the journal record of a mailbox that is made from several mailboxes or messages.
    pub(crate) fn record_of_group<'f>(
        &self,
        founds: impl IntoIterator<Item = &'f SourceFind>,
    ) -> Option<JournalRecord<'a>> {
        self.record_of(ResultPart::Whole, || {
            ResultOrigin::of_group(founds, self.options)
        })
    }

    fn record_of(
        &self,
        part: ResultPart,
        origin: impl FnOnce() -> Option<ResultOrigin>,
    ) -> Option<JournalRecord<'a>> {
        let journal = self.journal.filter(|_| self.options.writes)?;
        Some(JournalRecord {
            journal,
            origin: origin()?,
            part,
            is_damaged: false,
        })
    }

    /// Returns whether an earlier run already completed the result of this file.
    pub(crate) fn is_made(&self, path: &Path) -> bool {
        let has_some = self.journal.is_some_and(|journal| journal.before() > 0);
        has_some && {
            let found = fs::metadata(path).ok().filter(fs::Metadata::is_file);
            let read = found.as_ref().map(FileIdentity::of);
            let record = self.record(path, read.as_ref(), ResultPart::Whole);
            record.is_some_and(|record| record.is_made())
        }
    }

    /// Reports that an earlier run already completed this result, and returns the counts.
    pub(crate) fn made(&self) -> Summary {
        let made = Summary::of(|sum| sum.made = 1);
        self.observer.event(MailboxEvent::done(&made));
        made
    }

    /// Reads the index next to the mailbox. Reports an index that does not match the mailbox, and returns `None` for it.
    pub(crate) fn index_of(&self, kind: StartKind, file: Option<&Arc<File>>) -> Option<FlagIndex> {
        let file = file?;
        let (index, what) = match kind {
            StartKind::Eudora => (
                eudora_files::index_beside(self.path, file),
                "flags, because the index of Eudora does not match its mailbox",
            ),
            StartKind::Mbox => (
                imap_backup::index_beside(self.path, file),
                "flags, because the index of imap-backup does not match its mailbox",
            ),
            _ => return None,
        };
        index.unwrap_or_else(|path| {
            self.observer
                .event(MailboxFact::UnusedFlags(path.to_owned(), what).into());
            None
        })
    }
}

/// Skips the backups that an earlier run wrote. A backup may be the only copy of the original mail, so it must not be
/// changed.
pub(crate) fn pass_over_backups(finds: &mut Finds, suffix: &OsStr) {
    finds.pass_over("the backup of an earlier run", |found| {
        let path = found.path.as_os_str().as_bytes();
        let original = path.strip_suffix(suffix.as_bytes())?;
        let is_within = !found.relative.as_os_str().is_empty();
        is_within.then(|| PathBuf::from(OsStr::from_bytes(original)))
    });
}

pub(crate) fn begun<S>(finds: &Finds, observer: &dyn Observer<S>) -> Summary {
    let mut objects: BTreeMap<&Path, u64> = BTreeMap::new();
    for (path, other) in &finds.skipped {
        let fact = match other {
            NotMail::SetAside(what) => MailboxFact::SetAside(path.to_owned(), what),
            other => MailboxFact::Skipped(path.to_owned(), other.name()),
        };
        observer.event(fact.into());
        match other {
            NotMail::Ours(what) | NotMail::Empty(what) => {
                observer.event(MailboxEvent::passed_over(path, *what))
            }
            NotMail::Object => *objects.entry(store_of(path)).or_default() += 1,
            _ => {}
        }
    }
    for (store, count) in objects {
        let what = format!("{count} files that belong to a store of detached attachments");
        observer.event(MailboxEvent::passed_over(store, &what));
    }
    for (path, why) in &finds.unread {
        observer.event(MailboxEvent::damaged(path, why.clone()));
    }
    let is_set_aside = |(_, other): &&(PathBuf, NotMail)| matches!(other, NotMail::SetAside(_));
    let set_aside = finds.skipped.iter().filter(is_set_aside).count() as u64;
    Summary {
        damaged: finds.unread.len() as u64,
        skipped_files: finds.skipped.len() as u64 - set_aside,
        set_aside,
        files: finds.files,
        ..Summary::default()
    }
}

/// Returns the root directory of the attachment store that contains the file `object` (`ROOT/ab/cd/HASH`). If the path
/// is too short to contain the root, because the source is inside the store, returns the parent directory of the file.
fn store_of(object: &Path) -> &Path {
    let named = |path: &&Path| !path.as_os_str().is_empty();
    let mut above = object.ancestors().skip(1).filter(named);
    let folder = above.next().unwrap_or(object);
    above.nth(1).unwrap_or(folder)
}

pub(crate) fn sweep(finds: &Finds, format: Format) {
    let mut folders = BTreeSet::new();
    for found in &finds.mailboxes {
        if found.kind.is_folder() {
            let place = MessageFolder::of(&found.path, found.kind, format);
            folders.extend([place.writing_in(&place.folder), place.folder]);
        } else {
            let canonical = found.path.canonicalize();
            let target = canonical.as_deref().unwrap_or(&found.path);
            folders.insert(temporary::folder_of(target).to_owned());
        }
    }
    for folder in folders {
        temporary::sweep(&folder);
    }
}
