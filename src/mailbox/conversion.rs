//! Runs a conversion: reads the mailboxes of a source and writes them to a destination. Every run over a mailbox starts here.
//!
//! A mailbox is always either complete or unchanged: output appears under its final name when it is complete, and
//! `place::replace` replaces files in place in one step. If a run ends with an error or is stopped, the mailboxes of a
//! directory that were already converted are kept.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::detail::{Detail, Setting};
use crate::error::Error;
use crate::mailbox::archive::InnerMailboxes;
use crate::mailbox::begin::{MailboxJob, begun, pass_over_backups, sweep};
use crate::mailbox::event::MailboxEvent;
use crate::mailbox::failure::cannot_write;
use crate::mailbox::finds::{Finds, SourceFind};
use crate::mailbox::forms::kind::{InPlaceWay, StartKind};
use crate::mailbox::forms::{emlx_files, imap_backup};
use crate::mailbox::input::source::InputSource;
use crate::mailbox::not_mail::{NotMail, not_in_place};
use crate::mailbox::place::delivery::{Delivery, ResultPlace};
use crate::mailbox::place::journal::ResultJournal;
use crate::mailbox::place::lock::LockWaits;
use crate::mailbox::place::replace;
use crate::mailbox::read::opened::kind_of_open;
use crate::mailbox::read::sink::Output;
use crate::mailbox::source::Source;
use crate::mailbox::temporary;
use crate::mailbox::{Observer, Options, Stop, Summary, Transform, check_backup_suffix};
use crate::mailbox::{result, result_form};

/// A run over a mailbox: reads the messages of a source, transforms them, and writes the result to a destination or in
/// place. Without a destination, the messages are only read.
///
/// The source is an mbox file, a Maildir, a message, an archive, or a directory of them (docs/mailboxes.md).
///
/// ```
/// use embody::mailbox::Conversion;
/// use embody::{Expander, Policy};
///
/// let folder = tempfile::tempdir()?;
/// let (source, target) = (folder.path().join("in.eml"), folder.path().join("out.eml"));
/// std::fs::write(&source, "Subject: one\n\nhello\n")?;
///
/// let expander = Expander::new(Policy::default())?;
/// let summary = Conversion::of(&source).to(&target).run(&expander, &())?;
/// assert_eq!((summary.messages, summary.changed), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "call `run` to convert the mailbox"]
pub struct Conversion<'c> {
    source: &'c Path,
    /// Search result for the source, if the caller may already have searched it.
    looked_at: Option<&'c Source>,
    /// Content of the source, if the caller has opened it.
    stream: Option<InputSource>,
    destination: ConversionTarget<'c>,
    options: Cow<'c, Options>,
    journal: Option<&'c ResultJournal>,
    lock_waits: LockWaits,
    stop: Stop,
}

enum ConversionTarget<'c> {
    Nowhere,
    InPlace,
    Path(&'c Path),
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    Open(File),
}

impl<'c> Conversion<'c> {
    /// Begins the description of a run that reads `source`.
    pub fn of(source: &'c Path) -> Self {
        Self {
            source,
            looked_at: None,
            stream: None,
            destination: ConversionTarget::Nowhere,
            options: Cow::Owned(Options::default()),
            journal: None,
            lock_waits: LockWaits::default(),
            stop: Stop::default(),
        }
    }

    /// Begins the description of a run that reads a source that was already looked at.
    #[cfg(feature = "cli")]
    pub(crate) fn of_source(source: &'c Source) -> Self {
        Self {
            looked_at: Some(source),
            ..Self::of(source.path())
        }
    }

    /// Begins the description of a run that reads an open file or pipe. `name` is its name in reports and errors.
    #[cfg(feature = "cli")]
    pub(crate) fn of_stream(stream: InputSource, name: &'c Path) -> Self {
        Self {
            stream: Some(stream),
            ..Self::of(name)
        }
    }

    /// Sets the options. The default is [`Options::default`].
    pub fn options(mut self, options: &'c Options) -> Self {
        self.options = Cow::Borrowed(options);
        self
    }

    /// Sets the request that ends the run early. Without it, the run ends only with the source.
    pub fn stop(mut self, stop: &Stop) -> Self {
        self.stop = stop.clone();
        self
    }

    /// Sets the record of results. If the record is from an interrupted run, this run continues the interrupted run.
    #[cfg(feature = "cli")]
    pub(crate) fn journal(mut self, journal: Option<&'c ResultJournal>) -> Self {
        self.journal = journal;
        self
    }

    /// Sets the time that conversions of the same run have waited for locks.
    #[cfg(feature = "cli")]
    pub(crate) fn lock_waits(mut self, waits: &LockWaits) -> Self {
        self.lock_waits = waits.clone();
        self
    }

    /// Writes the result to a new file or directory.
    ///
    /// A file becomes a file, and a directory becomes a directory with the same names. Existing files are never
    /// overwritten, but the destination may be a device or a pipe. New files get the owner, mode and time of the source.
    /// They are not synced to the disk, because the source still exists.
    pub fn to(mut self, destination: &'c Path) -> Self {
        self.destination = ConversionTarget::Path(destination);
        self
    }

    /// Writes the result to an open file, such as standard output. If the run fails, the file keeps the bytes that were
    /// written: only the error shows that they are incomplete.
    #[cfg(feature = "cli")]
    pub(crate) fn into_open(mut self, file: File) -> Self {
        self.destination = ConversionTarget::Open(file);
        self
    }

    /// Replaces the source. Mailboxes without a changed message are not written. If [`Options::writes`] is false, no locks are taken.
    ///
    /// An mbox is locked with a dotlock and fcntl from before it is read until it is replaced, unless [`Options::waits`] is
    /// set.
    pub fn in_place(mut self) -> Self {
        self.destination = ConversionTarget::InPlace;
        self
    }

    /// Runs the conversion. `observer` receives the events of the run, and the results of `transform` in the order of the
    /// messages.
    ///
    /// # Errors
    /// Returns [`Error::NotAMailbox`]; [`Error::Changed`] if an mbox changed while it was read; [`Error::Interrupted`]
    /// after a request to stop; [`Error::Locked`] if the lock of a mailbox that is replaced was not available in time;
    /// [`Error::Usage`] if the options do not fit the source and the destination; [`Error::Read`], [`Error::Unreadable`]
    /// or [`Error::Write`]; or the error that `transform` returns. No temporary file and no incomplete file is left. In
    /// place, the mailbox or Maildir message to which the error applies is unchanged.
    pub fn run<S: Send>(
        mut self,
        transform: &dyn Transform<S>,
        observer: &dyn Observer<S>,
    ) -> Result<Summary, Error> {
        if matches!(self.destination, ConversionTarget::Nowhere) && self.options.writes {
            self.options.to_mut().writes = false;
        }
        let job = MailboxJob {
            journal: self.journal,
            lock_waits: Some(&self.lock_waits),
            ..MailboxJob::new(self.source, &self.options, transform, observer, &self.stop)
        };
        let is_in_place = matches!(
            self.destination,
            ConversionTarget::InPlace | ConversionTarget::Nowhere
        );
        let unknown = Source::new(self.source, &self.options.read, is_in_place, &self.stop);
        let source = self.looked_at.unwrap_or(&unknown);
        match (self.stream, self.destination) {
            (None, ConversionTarget::Path(destination)) => to_path(&job, source, destination),
            (None, ConversionTarget::Open(file)) => to_open_file(&job, source, file),
            (None, ConversionTarget::InPlace | ConversionTarget::Nowhere) => in_place(&job, source),
            (Some(_), ConversionTarget::InPlace) => Err(not_in_place(self.source)),
            (Some(stream), ConversionTarget::Path(to)) => {
                from_stream(&job, stream, Output::Path(to))
            }
            (Some(stream), ConversionTarget::Open(file)) => {
                from_stream(&job, stream, Output::Open(file))
            }
            (Some(stream), ConversionTarget::Nowhere) => from_stream(&job, stream, Output::Nowhere),
        }
    }
}

fn to_path<S: Send>(
    job: &MailboxJob<'_, S>,
    looked_at: &Source,
    destination: &Path,
) -> Result<Summary, Error> {
    let (source, options) = (job.path, job.options);
    if let (Ok(one), Ok(other)) = (fs::metadata(source), fs::metadata(destination))
        && replace::is_same(&one, &other)
    {
        let what = format!(
            "{}: the source and the destination are the same file; ",
            destination.display()
        );
        let detail = Detail::from(what).naming(Setting::InPlace);
        return Err(Error::Usage(
            detail.then(" replaces the source with the result"),
        ));
    }
    let folder = temporary::folder_of(destination);
    if options.writes && !folder.is_dir() {
        let what = format!(
            "the directory {} does not exist; create it first",
            folder.display()
        );
        let missing = io::Error::new(io::ErrorKind::NotFound, what);
        return Err(cannot_write(destination)(missing));
    }
    let mut finds = looked_at.begin()?;
    let has_results = |journal: &&ResultJournal| journal.has_results_among(&finds.mailboxes);
    if let Some(journal) = job.journal.filter(has_results) {
        journal.remove_results(&mut Arc::make_mut(&mut finds).mailboxes);
    }
    result::check(source, &finds, destination, options)?;
    job.transfer(&finds, destination)
}

/// Converts a directory of messages, or the folders of an Outlook mailbox, to an open file.
fn to_open_file<S: Send>(
    job: &MailboxJob<'_, S>,
    looked_at: &Source,
    output: File,
) -> Result<Summary, Error> {
    let (source, options) = (job.path, job.options);
    let finds = looked_at.begin()?;
    result::check_open(source, result::result(&finds, options))?;
    job.transfer_to_open(&finds, output)
}

fn in_place<S: Send>(job: &MailboxJob<'_, S>, source: &Source) -> Result<Summary, Error> {
    let (options, observer) = (job.options, job.observer);
    if cfg!(not(unix)) && options.writes {
        let detail = Detail::default()
            .naming(Setting::InPlace)
            .then(" works only on Linux, macOS and other Unix systems; name a new file with ");
        return Err(Error::Usage(detail.naming(Setting::Output)));
    }
    if let Some(suffix) = &options.backup {
        check_backup_suffix(suffix)?;
    }
    let mut finds = source.begin()?;
    if options.writes && finds.mailboxes.iter().any(is_left_archive) {
        leave_archives(Arc::make_mut(&mut finds));
    }
    if let Some(suffix) = &options.backup {
        pass_over_backups(Arc::make_mut(&mut finds), suffix);
    }
    check_in_place(&finds, options)?;
    if options.writes {
        sweep(&finds, options.read.format);
    }
    let mut summary = begun(&finds, observer);
    let inner = Arc::<InnerMailboxes>::default();
    let job = MailboxJob {
        inner: Some(&inner),
        ..*job
    };
    let founds: Vec<&SourceFind> = finds.mailboxes.iter().collect();
    let done = job.each_in_parallel(&founds, |job, kind| {
        let done = match kind.facts().in_place {
            InPlaceWay::Directory => job.folder(kind, None),
            InPlaceWay::Mbox => job.mbox_in_place(),
            InPlaceWay::Message => job.message_in_place(),
            _ if options.writes => Err(not_in_place(job.path)),
            InPlaceWay::Left | InPlaceWay::Refused(_) => job.file_to(kind, Output::Nowhere),
        };
        job.unless_left(kind, done)
    });
    summary.add(&done?);
    summary.add(&job.each_inner(&inner, |job, _| job.inner_to(None))?);
    Ok(summary)
}

/// Moves the archives in a directory to the files that are not read, because an archive cannot be changed in place. An
/// archive that is the source itself is an error instead.
fn leave_archives(finds: &mut Finds) {
    let is_left = |found: &mut SourceFind| is_left_archive(found);
    let left: Vec<SourceFind> = finds.mailboxes.extract_if(.., is_left).collect();
    finds.files.not_read += left.len() as u64;
    let why = || NotMail::ARCHIVE_IN_PLACE.detail();
    finds
        .unread
        .extend(left.into_iter().map(|found| (found.path, why())));
    finds.sort();
}

fn is_left_archive(found: &SourceFind) -> bool {
    found.kind.facts().in_place == InPlaceWay::Left && !found.relative.as_os_str().is_empty()
}

fn check_in_place(finds: &Finds, options: &Options) -> Result<(), Error> {
    let writes = options.writes;
    let of = |setting| Detail::default().naming(setting);
    if writes && options.read.range.is_some() {
        let detail = of(Setting::Range)
            .then(" cannot be used with ")
            .then(of(Setting::InPlace));
        let why = ", because the rest of the mailbox would be lost";
        return Err(Error::Usage(detail.then(why)));
    }
    let refused = |found: &SourceFind, why: &str| {
        let what = format!("{}: {why} as ", found.file().display());
        Err(Error::Usage(Detail::from(what).naming(Setting::Output)))
    };
    let written = || finds.mailboxes.iter().filter(|_| writes);
    for found in written() {
        if let InPlaceWay::Refused(why) = found.kind.facts().in_place {
            return refused(found, why);
        }
    }
    let has_index =
        |found: &&SourceFind| found.kind == StartKind::Mbox && imap_backup::has_index(&found.path);
    if let Some(found) = written().find(has_index) {
        let why = "cannot change a mailbox of imap-backup in place, because the index of imap-backup contains the position of each message; name a new directory";
        return refused(found, why);
    }
    if options.backup.is_some() && finds.mailboxes.iter().any(|found| found.kind.is_folder()) {
        let why = " cannot be used for a Maildir or an MH folder, in which the backup of a message would be read as another message; copy the folder first";
        return Err(Error::Usage(of(Setting::Backup).then(why)));
    }
    if let Some(found) = written().find(|found| emlx_files::beside(&found.path).is_some()) {
        let why = "cannot change files of Apple Mail in place, because Apple Mail keeps an index of them; name a new directory";
        return refused(found, why);
    }
    Ok(())
}

fn from_stream<S: Send>(
    job: &MailboxJob<'_, S>,
    mut source: InputSource,
    output: Output<'_>,
) -> Result<Summary, Error> {
    let (name, options, observer) = (job.path, job.options, job.observer);
    let kind =
        kind_of_open(&mut source, name, options.read.format)?.map_err(|other| other.error(name))?;
    if let Output::Path(target) = &output
        && options.writes
    {
        temporary::sweep(temporary::folder_of(target));
    }
    let finds = Finds::of_source(name, kind, None, 0);
    match &output {
        Output::Path(target) => result::check(name, &finds, target, options)?,
        Output::Open(_) => result::check_open(name, result::result(&finds, options))?,
        _ => {}
    }
    observer.event(MailboxEvent::Begin(name.to_owned()));
    let is_file = source.original().is_some();
    let mut summary = opened(job, source, kind, output)?;
    // A file with folders gets its verdict when its temporary copy is opened, so it is not counted here.
    if is_file && !kind.has_folders() {
        summary.files.count_read(summary.damaged == 0);
    }
    Ok(summary)
}

/// Converts an open source of a known kind.
fn opened<S: Send>(
    job: &MailboxJob<'_, S>,
    mut source: InputSource,
    kind: StartKind,
    output: Output<'_>,
) -> Result<Summary, Error> {
    let options = job.options;
    match &output {
        Output::Path(target) if kind == StartKind::Mbox || kind.has_folders() => {
            return job.unpack(kind, (target, target), None, |job, output| {
                if kind.has_folders() {
                    job.spool(&mut source)
                } else {
                    job.open_to(source, None, kind, output)
                }
            });
        }
        Output::Nowhere if kind.has_folders() || !result_form::is_moved(kind, options) => {
            let inner = Arc::<InnerMailboxes>::default();
            let collecting = MailboxJob {
                inner: Some(&inner),
                ..*job
            };
            let mut summary = if kind.has_folders() {
                collecting.spool(&mut source)?
            } else {
                collecting.open_to(source, None, kind, output)?
            };
            summary.add(&job.each_inner(&inner, |job, _| job.inner_to(None))?);
            return Ok(summary);
        }
        _ => {}
    }
    if !result_form::is_moved(kind, options) {
        return job.open_to(source, None, kind, output);
    }
    let form = result_form::form(kind, options);
    let place = match output {
        Output::Path(target) => ResultPlace::Path(target),
        Output::Open(file) => ResultPlace::Open(file),
        _ => ResultPlace::Nowhere,
    };
    let mut delivery = Delivery::start(form, options, place, None, None)?;
    let summary = job.open_to(source, None, kind, Output::Delivery(&mut delivery))?;
    job.finish(delivery, &summary, None)?;
    Ok(summary)
}
