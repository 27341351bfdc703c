//! Sources of a merge: checks each source, and adds its messages to the index.

use std::path::Path;
use std::sync::{Arc, Mutex};

#[cfg(all(unix, feature = "imap"))]
use super::super::args::{ImapArgs, ProgressOption};
use super::super::progress::Display;
#[cfg(all(unix, feature = "imap"))]
use super::super::remote;
use super::super::say;
use super::super::totals::Totals;
use super::super::wording;
use crate::edit::Edits;
#[cfg(all(unix, feature = "imap"))]
#[cfg(all(unix, feature = "imap"))]
use crate::engine::policy::Policy;
use crate::error::{Error, unpoisoned};
use crate::expand::envelope;
#[cfg(all(unix, feature = "imap"))]
use crate::imap::download::Download;
#[cfg(all(unix, feature = "imap"))]
use crate::mailbox::temporary_folder_in;
use crate::mailbox::{
    AtMailboxes, Batch, Envelope, FileCounts, Format, Handler, MailboxEvent, MailboxFact, Message,
    MessageFlags, Observer, Options, PreparedMail, Source, Stop, Summary, Transform,
    form_and_folders, names_a_file, read_letters,
};
use crate::merge::{ArrivalBatch, MergeIndex, Numbers, ReadSource, SavedIndex};

/// A source that can be read: a path, or a temporary copy of a mailbox on a server.
pub(crate) struct SourceOrigin {
    pub(crate) source: Source,
    /// Format of the source. `None` for a copy of a mailbox on a server.
    form: Option<Format>,
    /// Whether the source has several folders.
    pub(crate) has_folders: bool,
    /// Temporary copy of a mailbox on a server. Dropping it removes the copy.
    _copy: Option<tempfile::TempDir>,
    /// Whether a part of the mailbox could not be downloaded. The part was already reported.
    pub(crate) is_damaged: bool,
}

/// How the sources are read.
#[derive(Clone, Copy)]
pub(crate) struct SourceSettings<'s> {
    pub(crate) options: &'s Options,
    pub(crate) stop: &'s Stop,
    /// Directory for the temporary copies of mailboxes on servers.
    #[cfg_attr(not(all(unix, feature = "imap")), allow(dead_code))]
    pub(crate) directory: &'s Path,
    #[cfg(all(unix, feature = "imap"))]
    pub(crate) imap: &'s ImapArgs,
    #[cfg(all(unix, feature = "imap"))]
    pub(crate) policy: &'s Policy,
}

impl SourceSettings<'_> {
    /// Prepares a source. A mailbox on a server is downloaded to a temporary directory.
    ///
    /// # Errors
    /// The source cannot be read, or contains no mailbox.
    pub(crate) fn origin(&self, source: &Path) -> Result<SourceOrigin, Error> {
        #[cfg(all(unix, feature = "imap"))]
        if let Some(account) = remote::account(source, self.imap, self.policy)? {
            let directory = self.directory;
            // The directory has the name of embody's temporary directories, so a later run removes it if this run is
            // killed.
            let copy =
                temporary_folder_in(directory).map_err(Error::cannot_write(directory.display()))?;
            let display = Display::new(ProgressOption::Never, 0);
            let reading = SourceObserver::with(&display);
            let options = &Options {
                writes: true,
                ..self.options.clone()
            };
            let download = Download {
                account: &account,
                output: copy.path(),
                options,
                transform: &reading,
                observer: &reading,
                stop: self.stop,
            };
            let done = download.run();
            let summary = done.map_err(|why| remote::error(why, &account))?;
            return Ok(SourceOrigin {
                source: self.known(copy.path()),
                form: None,
                has_folders: true,
                _copy: Some(copy),
                is_damaged: summary.damaged > 0,
            });
        }
        let source = self.known(source);
        let finds = source.begin()?;
        let (form, has_folders) = form_and_folders(&finds, self.options, self.stop)?;
        Ok(SourceOrigin {
            source,
            form: Some(form),
            has_folders,
            _copy: None,
            is_damaged: false,
        })
    }

    fn known(&self, path: &Path) -> Source {
        Source::new(path, &self.options.read, false, self.stop)
    }

    /// Returns the default format of the result: that of the source.
    ///
    /// # Errors
    /// The source cannot be read, or contains no mailbox.
    pub(crate) fn form_of(&self, origin: &SourceOrigin) -> Result<Format, Error> {
        match origin.form {
            Some(form) => Ok(form),
            None => {
                let finds = origin.source.begin()?;
                Ok(form_and_folders(&finds, self.options, self.stop)?.0)
            }
        }
    }
}

/// The result of reading a source.
pub(crate) struct SourceResult {
    /// Whether all messages of the source could be read.
    pub(crate) is_whole: bool,
    /// Files of the source, by verdict. `None` if an interrupted run has already read a part of the source, because its
    /// counts are unknown.
    pub(crate) files: Option<FileCounts>,
    /// Whether the source is an archive without mail.
    pub(crate) lacks_mail: bool,
    /// Names of files and messages that were not read completely, each with the reason. They include those that an
    /// interrupted run has reported.
    pub(crate) not_read: Vec<(String, String)>,
}

/// Adds the messages of the sources to an index, one source after the other.
pub(crate) struct Collector {
    collecting: SharedCollecting,
    handler: Arc<dyn Handler>,
    has_folders: bool,
}

/// Collector that several threads share. `None` after all messages were added.
type SharedCollecting = Arc<Mutex<Option<SourceCollector>>>;

/// The index, the names of all folders, and the current source and folder (as numbers).
struct SourceCollector {
    index: MergeIndex,
    folders: Numbers,
    source: u32,
    folder: u32,
}

struct ToIndex(SharedCollecting);

impl Handler for ToIndex {
    fn batch(&self, length: usize) -> Box<dyn Batch> {
        Box::new(IndexBatch {
            collecting: Arc::clone(&self.0),
            arrivals: ArrivalBatch::of_length(length),
        })
    }
}

struct IndexBatch {
    collecting: SharedCollecting,
    arrivals: ArrivalBatch,
}

impl Batch for IndexBatch {
    fn add(&mut self, letter: &PreparedMail<'_>, flags: MessageFlags) {
        self.arrivals.add(letter, &flags);
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        match &mut *unpoisoned(self.collecting.lock()) {
            Some(collecting) => {
                let place = (collecting.source, collecting.folder);
                collecting.index.add(place, &self.arrivals)
            }
            None => Ok(()),
        }
    }
}

impl Collector {
    /// Creates a collector. With `has_folders`, the folders of the sources are kept apart. `folders` are the names of
    /// the folders that the index already contains.
    pub(crate) fn new(index: MergeIndex, has_folders: bool, folders: &[String]) -> Self {
        let collecting = Arc::new(Mutex::new(Some(SourceCollector {
            index,
            folders: Numbers::continued(folders),
            source: 0,
            folder: 0,
        })));
        Self {
            handler: Arc::new(ToIndex(Arc::clone(&collecting))),
            collecting,
            has_folders,
        }
    }

    /// Reads all messages of a source. They are converted to `form`, the format of the result, so that their flags and
    /// lengths are the same as in the result. `number` is the number of the source, `name` is its name on the command
    /// line, and `before` is the part that an interrupted run has already read. The saved index records which part was
    /// read.
    ///
    /// # Errors
    /// Nothing in the source can be read, or a temporary file cannot be written.
    pub(crate) fn read(
        &self,
        (number, name): (usize, &Path),
        (origin, form): (&SourceOrigin, Format),
        sources: &SourceSettings<'_>,
        display: &Display,
        (before, mut saved): (ReadSource, Option<&mut SavedIndex>),
    ) -> Result<SourceResult, Error> {
        let mut enter = |levels: &[String]| {
            let folder = match levels {
                _ if !self.has_folders => String::new(),
                [] => named_by(name),
                levels => levels.join("/"),
            };
            if let Some(collecting) = &mut *unpoisoned(self.collecting.lock()) {
                collecting.source = u32::try_from(number).unwrap_or(u32::MAX);
                collecting.folder = collecting.folders.of(&folder);
            }
        };
        let reading = SourceObserver {
            display,
            lines: Mutex::new(before.lines),
            not_read: Mutex::new(before.not_read),
        };
        let is_whole = |done: &Summary| before.is_whole && done.damaged == 0 && done.oversized == 0;
        let is_continued = before.mailboxes.is_some();
        let files = |done: &Summary| (!is_continued).then_some(done.files);
        let mut note = |mailboxes: Option<usize>, done: &Summary| {
            let (Some(saved), Some(collecting)) =
                (&mut saved, &mut *unpoisoned(self.collecting.lock()))
            else {
                return Ok(());
            };
            let read = ReadSource {
                mailboxes,
                is_whole: is_whole(done),
                lines: unpoisoned(reading.lines.lock()).clone(),
                files: files(done),
                lacks_mail: done.without_mail > 0,
                not_read: unpoisoned(reading.not_read.lock()).clone(),
            };
            saved.note(
                number,
                read,
                &mut collecting.index,
                collecting.folders.names(),
            )
        };
        let done = read_letters(
            &origin.source,
            (form, sources.options),
            (&reading, &reading),
            sources.stop,
            AtMailboxes {
                skipped: before.mailboxes.unwrap_or(0),
                enter: &mut enter,
                leave: &mut |mailboxes, done| note(Some(mailboxes), done),
            },
            &self.handler,
        );
        origin.source.close();
        let done = done?;
        note(None, &done)?;
        Ok(SourceResult {
            is_whole: is_whole(&done),
            files: files(&done),
            not_read: unpoisoned(reading.not_read.into_inner()),
            lacks_mail: done.without_mail > 0,
        })
    }

    /// Returns the index with all messages, and the names of the folders.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if this function was called before, because it hands over the index only once.
    pub(crate) fn finish(self) -> Result<(MergeIndex, Numbers), Error> {
        let collecting = unpoisoned(self.collecting.lock())
            .take()
            .ok_or(Error::Interrupted)?;
        Ok((collecting.index, collecting.folders))
    }
}

/// Returns the name of the new folder for a source that is only one mailbox.
fn named_by(source: &Path) -> String {
    let name = if names_a_file(source) {
        source.file_stem()
    } else {
        source.file_name()
    };
    name.map_or_else(
        || "INBOX".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Transform and observer of the merge: messages are left unchanged, and progress and damage are shown.
struct SourceObserver<'r> {
    display: &'r Display,
    /// All printed lines. They are saved with the index, and a run that continues this one prints them first.
    lines: Mutex<Vec<String>>,
    not_read: Mutex<Vec<(String, String)>>,
}

impl<'r> SourceObserver<'r> {
    fn with(display: &'r Display) -> Self {
        Self {
            display,
            lines: Mutex::default(),
            not_read: Mutex::default(),
        }
    }

    fn fact(&self, fact: MailboxFact) {
        let line = match fact {
            MailboxFact::Damaged(path, why) | MailboxFact::Lost(path, why) => {
                let why = wording::detail(&why);
                if self.say(say::damaged(&path, &why)) {
                    unpoisoned(self.not_read.lock()).push((path.display().to_string(), why));
                }
                return;
            }
            MailboxFact::PassedOver(path, what) => say::skipped(&path, &what),
            MailboxFact::Noted(path, what) => say::damaged(&path, &what),
            MailboxFact::UnusedFlags(path, what) => {
                say::damaged(&path, &format!("not kept: {what}"))
            }
            MailboxFact::LostFlags(what, count) => say::lost_flags(&what, count),
            MailboxFact::Skipped(..)
            | MailboxFact::SetAside(..)
            | MailboxFact::SkippedOthers(..)
            | MailboxFact::Waiting(..) => {
                return;
            }
        };
        self.say(line);
    }

    /// Prints a line unless it was already printed, and returns whether it is new. A run that continues an interrupted
    /// run starts with the lines of that run. It may then read a damaged mailbox again, which must not be reported
    /// twice.
    fn say(&self, line: String) -> bool {
        let mut lines = unpoisoned(self.lines.lock());
        let is_new = !lines.contains(&line);
        if is_new {
            self.display.say(&line);
            lines.push(line);
        }
        is_new
    }
}

impl Transform<()> for SourceObserver<'_> {
    fn next_touch(&self, _bytes: &[u8]) -> Option<usize> {
        None
    }

    fn transform(&self, _message: &Message<'_>) -> Result<(Edits, ()), Error> {
        Ok((Edits::new(), ()))
    }

    fn envelope(&self, separator: &[u8], content: &[u8]) -> Envelope {
        envelope::of(separator, content)
    }
}

impl Observer<()> for SourceObserver<'_> {
    fn event(&self, event: MailboxEvent<()>) {
        let none = Totals::default();
        match event {
            MailboxEvent::Advance(bytes, messages) => {
                self.display.advance(bytes, messages, [&none, &none]);
            }
            MailboxEvent::Expects(bytes) => self.display.expect(bytes),
            MailboxEvent::Fact(fact) => self.fact(fact),
            MailboxEvent::Begin(_) | MailboxEvent::Message(..) | MailboxEvent::Done(_) => {}
        }
    }
}
