//! A source of a run. Each source is searched once, when the run first needs to know what it contains. All parts of the
//! run use this result: the check before the run, the names of the results, the sizes for the progress, the reader, and
//! the texts at the end.
//!
//! If a file or directory has changed by the time reading begins, the source is searched again. Pipes and other streams
//! are not searched, because their bytes could not be read again.

use std::fs;
#[cfg(feature = "outlook")]
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::{Error, unpoisoned};
#[cfg(feature = "outlook")]
use crate::mailbox::failure::unreadable;
use crate::mailbox::find::{self, FileVerdict, look_at};
use crate::mailbox::finds::{Finds, SourceFind};
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::not_mail::NotMail;
use crate::mailbox::place::folder::MessageFolder;
#[cfg(feature = "outlook")]
use crate::mailbox::pst_file;
use crate::mailbox::read::cut;
use crate::mailbox::{Format, ReadOptions, Stop};

pub(crate) struct Source {
    path: PathBuf,
    options: ReadOptions,
    /// Whether the source is changed in place and not only read. A message of a Maildir is then treated as a part of
    /// the Maildir.
    is_in_place: bool,
    stop: Stop,
    state: Mutex<SourceState>,
}

enum SourceState {
    /// The source has not been searched yet.
    Unknown,
    Known(Arc<SourceContent>),
    /// The source cannot be read, or contains no mail. The error is returned when reading begins.
    Failed(Error, Option<FileVerdict>),
    /// The source was read, and the list of its mailboxes was dropped to free memory.
    Closed(Option<StartKind>),
}

/// Mailboxes that a source contained when it was searched.
struct SourceContent {
    /// Verdict on the source itself. `None` if the source is a directory.
    verdict: Option<FileVerdict>,
    finds: Arc<Finds>,
    /// The mailboxes with each Outlook mailbox replaced by its folders. Created on demand, because the Outlook files
    /// must be opened for it.
    folders: Mutex<Option<Arc<Finds>>>,
}

impl Source {
    pub(crate) fn new(path: &Path, options: &ReadOptions, is_in_place: bool, stop: &Stop) -> Self {
        Self {
            path: path.to_owned(),
            options: options.clone(),
            is_in_place,
            stop: stop.clone(),
            state: Mutex::new(SourceState::Unknown),
        }
    }

    /// Creates a source that is not a file, such as standard input or mail on a server. It is never searched.
    pub(crate) fn of_no_file(path: &Path) -> Self {
        Self {
            state: Mutex::new(SourceState::Closed(None)),
            ..Self::new(path, &ReadOptions::default(), false, &Stop::default())
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the kind of a file. Returns `None` for a directory, a stream, or a file that is not read.
    pub(crate) fn kind(&self) -> Option<StartKind> {
        let state = self.looked_at();
        match &*state {
            SourceState::Known(content) => content.kind(),
            SourceState::Closed(kind) => *kind,
            SourceState::Unknown | SourceState::Failed(..) => None,
        }
    }

    /// Returns whether the source is a mail file that is neither compressed nor an archive.
    pub(crate) fn is_plain_file(&self) -> bool {
        let is_plain = |verdict: &FileVerdict| matches!(verdict, Ok((kind, None)) if *kind != StartKind::Archive);
        match &*self.looked_at() {
            SourceState::Known(content) => content.verdict.as_ref().is_some_and(is_plain),
            _ => false,
        }
    }

    /// Returns the verdict on a file.
    ///
    /// # Errors
    /// Returns [`Error::Read`] if the file cannot be read.
    pub(crate) fn verdict(&self) -> Result<Result<StartKind, NotMail>, Error> {
        let known = match &*self.looked_at() {
            SourceState::Known(content) => content.verdict,
            SourceState::Failed(_, verdict) => *verdict,
            SourceState::Unknown | SourceState::Closed(_) => None,
        };
        let verdict = known.map_or_else(|| look_at(&self.path, self.options.format), Ok);
        Ok(verdict?.map(|(kind, _)| kind))
    }

    /// Returns the mailboxes of the source, or `None` if the source cannot be read or contains no mail.
    /// [`begin`](Self::begin) then returns the error.
    pub(crate) fn finds(&self) -> Option<Arc<Finds>> {
        let content = match &*self.looked_at() {
            SourceState::Known(content) => Arc::clone(content),
            _ => return None,
        };
        self.folders(&content).ok()
    }

    /// Returns the number of bytes to read, for the progress bar, or 0 if the source cannot be read. For compressed
    /// mail, this is the size of the file if `compressed` is true, and 0 otherwise, because the decompressed size is
    /// unknown.
    pub(crate) fn size(&self, compressed: bool) -> u64 {
        match &*self.looked_at() {
            SourceState::Known(content) => {
                let founds = content.finds.mailboxes.iter();
                founds.map(|found| size_of(found, compressed)).sum()
            }
            _ => 0,
        }
    }

    /// Returns the mailboxes of the source when reading begins. If the source has changed since it was searched, it is
    /// searched again.
    ///
    /// # Errors
    /// Returns the errors of [`find`](find::find), and [`Error::Usage`] if the options select a part of a directory.
    pub(crate) fn begin(&self) -> Result<Arc<Finds>, Error> {
        let mut state = unpoisoned(self.state.lock());
        let before = std::mem::replace(&mut *state, SourceState::Unknown);
        let content = match before {
            SourceState::Failed(error, _) => return Err(error),
            SourceState::Known(content) if !content.finds.has_changed() => content,
            _ => Arc::new(self.look().map_err(|(error, _)| error)?),
        };
        *state = SourceState::Known(Arc::clone(&content));
        drop(state);
        self.folders(&content)
    }

    /// Frees the list of mailboxes after the source was read.
    pub(crate) fn close(&self) {
        let mut state = unpoisoned(self.state.lock());
        let kind = match &*state {
            SourceState::Known(content) => content.kind(),
            SourceState::Closed(kind) => *kind,
            SourceState::Unknown | SourceState::Failed(..) => None,
        };
        *state = SourceState::Closed(kind);
    }

    fn looked_at(&self) -> MutexGuard<'_, SourceState> {
        let mut state = unpoisoned(self.state.lock());
        // A pipe is not examined: opening it would block until a program writes to it.
        let is_kept = || fs::metadata(&self.path).map_or(true, |it| it.is_file() || it.is_dir());
        if matches!(*state, SourceState::Unknown) && is_kept() {
            *state = match self.look() {
                Ok(content) => SourceState::Known(Arc::new(content)),
                Err((error, verdict)) => SourceState::Failed(error, verdict),
            };
        }
        state
    }

    /// Finds the mailboxes in the source. A source that is `cur` or `new` of a Maildir, or a message in them, is read
    /// as a part of this Maildir, because the file names contain the flags.
    ///
    /// # Errors
    /// Returns the error with the verdict on the file, if there is one.
    fn look(&self) -> Result<SourceContent, (Error, Option<FileVerdict>)> {
        let (path, options) = (self.path.as_path(), &self.options);
        let may_be = matches!(options.format, Format::Auto | Format::Maildir);
        let within = may_be
            .then(|| MessageFolder::within(path, options.format))
            .flatten();
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file);
        let verdict = metadata.is_some().then(|| look_at(path, options.format));
        if let Some(place) = &within
            && (place.is_folder() || self.is_in_place)
        {
            // An error in the verdict is ignored here: the reader of the Maildir reports a file that cannot be read.
            return Ok(SourceContent::of(
                verdict.and_then(Result::ok),
                Finds::of_source(path, StartKind::Maildir, None, 0),
            ));
        }
        let verdict = verdict.transpose().map_err(|error| (error, None))?;
        let finds = match (verdict, metadata) {
            (Some(verdict), Some(metadata)) => {
                self.look_at_file(verdict, within.is_some(), &metadata)
            }
            _ => find::find(path, options, &self.stop),
        };
        match finds {
            Ok(finds) => Ok(SourceContent::of(verdict, finds)),
            Err(error) => Err((error, verdict)),
        }
    }

    fn look_at_file(
        &self,
        verdict: FileVerdict,
        is_in_maildir: bool,
        metadata: &fs::Metadata,
    ) -> Result<Finds, Error> {
        let is_message = verdict.is_ok_and(|(kind, _)| kind.is_message());
        // In a Maildir, every file is a message, even if its content does not look like one.
        let verdict = if is_in_maildir && !is_message {
            look_at(&self.path, Format::Eml)?
        } else {
            verdict
        };
        find::of_file(&self.path, verdict, metadata)
    }

    fn folders(&self, content: &SourceContent) -> Result<Arc<Finds>, Error> {
        let mut folders = unpoisoned(content.folders.lock());
        let finds = match &*folders {
            Some(finds) => Arc::clone(finds),
            None => {
                #[cfg(feature = "outlook")]
                let finds = with_pst_folders(&content.finds)?;
                #[cfg(not(feature = "outlook"))]
                let finds = Arc::clone(&content.finds);
                finds
            }
        };
        if self.options.range.is_some() {
            cut::check(&self.path, &finds)?;
        }
        *folders = Some(Arc::clone(&finds));
        Ok(finds)
    }
}

impl SourceContent {
    fn of(verdict: Option<FileVerdict>, finds: Finds) -> Self {
        Self {
            verdict,
            finds: Arc::new(finds),
            folders: Mutex::default(),
        }
    }

    fn kind(&self) -> Option<StartKind> {
        Some(self.verdict?.ok()?.0)
    }
}

fn size_of(found: &SourceFind, compressed: bool) -> u64 {
    let length = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    let in_folder = |folder: &Path| -> u64 {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| length(&entry.path())).sum()
    };
    match found.kind {
        StartKind::Archive if !compressed => 0,
        kind if (kind.is_sequence() || kind.is_message())
            && found.method.is_some()
            && !compressed =>
        {
            0
        }
        StartKind::Maildir => {
            in_folder(&found.path.join("cur")) + in_folder(&found.path.join("new"))
        }
        // The sizes of all files are added, although some files are not messages. Those are short and hardly matter.
        kind if kind.is_folder() => in_folder(&found.path),
        _ => found.length,
    }
}

/// Replaces each Outlook mailbox by its folders, because each folder is converted to a mailbox of its own. A compressed
/// Outlook mailbox is opened only when it is read. In a source directory, an Outlook mailbox that cannot be opened is
/// added to the unreadable files.
///
/// # Errors
/// Returns [`Error::Unreadable`] or [`Error::NotAMailbox`] if the source itself is such a mailbox.
#[cfg(feature = "outlook")]
fn with_pst_folders(finds: &Arc<Finds>) -> Result<Arc<Finds>, Error> {
    let is_closed = |found: &SourceFind| found.kind.has_folders() && found.method.is_none();
    if !finds.mailboxes.iter().any(is_closed) {
        return Ok(Arc::clone(finds));
    }
    let mut finds = Finds::clone(finds);
    let mut all = Vec::new();
    for found in std::mem::take(&mut finds.mailboxes) {
        if !is_closed(&found) {
            all.push(found);
            continue;
        }
        let is_source = found.relative.as_os_str().is_empty();
        let (folders, damage) = match pst_file::open(&found.path) {
            Ok(opened) => opened,
            Err(why) if is_source => {
                let why = io::Error::other(why);
                return Err(unreadable(&found.path)(why));
            }
            Err(why) => {
                finds.files.not_read += 1;
                finds.unread.push((found.path, why.into()));
                continue;
            }
        };
        finds.files.count_read(damage.is_empty());
        let damage = damage
            .into_iter()
            .map(|what| (found.path.clone(), what.into()));
        finds.unread.extend(damage);
        // The output directory of an Outlook mailbox has the name of its file without `.pst`.
        let base = found.relative.with_extension("");
        all.extend(folders.into_iter().map(|(path, folder)| SourceFind {
            path: found.path.join(&path),
            relative: base.join(&path),
            pst: Some(folder),
            ..found.clone()
        }));
    }
    finds.mailboxes = all;
    finds.sort();
    Ok(Arc::new(finds))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: &str = "From: a@example.org\nSubject: one\n\nhello\n";

    fn paths(finds: &Finds) -> Vec<PathBuf> {
        let founds = finds.mailboxes.iter();
        founds.map(|found| found.relative.clone()).collect()
    }

    #[test]
    fn source_that_changed_before_it_is_read_is_looked_at_again() {
        type Change = fn(&Path);
        let changes: [(Change, &[&str]); 7] = [
            (|_| {}, &["1.eml", "box", "deep/2.eml"]),
            (
                |folder| fs::write(folder.join("3.eml"), MAIL).unwrap(),
                &["1.eml", "3.eml", "box", "deep/2.eml"],
            ),
            (
                |folder| fs::write(folder.join("deep/3.eml"), MAIL).unwrap(),
                &["1.eml", "box", "deep/2.eml", "deep/3.eml"],
            ),
            (
                |folder| fs::remove_file(folder.join("1.eml")).unwrap(),
                &["box", "deep/2.eml"],
            ),
            (
                |folder| fs::write(folder.join("box"), "no longer an mbox\n").unwrap(),
                &["1.eml", "deep/2.eml"],
            ),
            (
                |folder| fs::write(folder.join("notes"), MAIL).unwrap(),
                &["1.eml", "box", "deep/2.eml", "notes"],
            ),
            (
                |folder| {
                    fs::rename(folder.join("deep"), folder.join("deeper")).unwrap();
                },
                &["1.eml", "box", "deeper/2.eml"],
            ),
        ];
        for (change, expected) in changes {
            let temporary = tempfile::tempdir().unwrap();
            let folder = temporary.path();
            fs::create_dir(folder.join("deep")).unwrap();
            let mbox = format!("From a@example.org Sat Jan  3 01:05:34 1998\n{MAIL}");
            for (name, content) in [
                ("1.eml", MAIL),
                ("deep/2.eml", MAIL),
                ("box", &mbox),
                ("notes", "only text\n"),
            ] {
                fs::write(folder.join(name), content).unwrap();
            }
            let source = Source::new(folder, &ReadOptions::default(), false, &Stop::default());
            let before = source.finds().unwrap();
            assert_eq!(
                paths(&before),
                ["1.eml", "box", "deep/2.eml"].map(PathBuf::from)
            );
            change(folder);
            let now = source.begin().unwrap();
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(paths(&now), expected);
            let is_kept = Arc::ptr_eq(&before, &now);
            assert_eq!(is_kept, paths(&before) == expected, "{expected:?}");
        }
    }

    #[test]
    fn file_that_was_replaced_before_it_is_read_is_looked_at_again() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("mail");
        fs::write(&path, MAIL).unwrap();
        let source = Source::new(&path, &ReadOptions::default(), false, &Stop::default());
        assert_eq!(source.kind(), Some(StartKind::Eml));
        assert_eq!(source.size(true), MAIL.len() as u64);
        fs::write(&path, format!("From a@b Sat Jan  3 01:05:34 1998\n{MAIL}")).unwrap();
        let finds = source.begin().unwrap();
        assert_eq!(finds.mailboxes.first().unwrap().kind, StartKind::Mbox);
        fs::write(&path, "text\n").unwrap();
        assert!(matches!(source.begin(), Err(Error::NotAMailbox { .. })));
        source.close();
        assert_eq!(source.kind(), None);
    }

    #[test]
    fn error_of_a_source_is_returned_when_reading_begins() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("missing");
        let source = Source::new(&path, &ReadOptions::default(), false, &Stop::default());
        assert!(source.finds().is_none());
        assert_eq!((source.kind(), source.size(true)), (None, 0));
        assert!(matches!(source.begin(), Err(Error::Read { .. })));
    }
}
