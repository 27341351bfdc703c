//! Converts a source to a destination, or in place.
//!
//! A mailbox is always either complete or unchanged: output appears under its final name when it is complete, and
//! `place::replace` replaces files in place in one step. If a run ends with an error or is stopped, the mailboxes of a
//! directory that were already converted are kept.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::detail::{Detail, Setting};
use crate::engine::Mode;
use crate::error::Error;
use crate::mailbox::archive::Inner;
use crate::mailbox::begin::{Job, begun, look_at, pass_over_backups, sweep};
use crate::mailbox::compressed::{Content, Damage, content_of};
use crate::mailbox::failure::{cannot_write, in_full, unread, unreadable};
use crate::mailbox::find::{self, Finds, Found, Kind};
use crate::mailbox::forms::mbox::Counted;
use crate::mailbox::forms::rewrite;
use crate::mailbox::forms::{Division, emlx, eudora};
use crate::mailbox::not_mail::not_in_place;
use crate::mailbox::place::replace::{self, Beside, Identity};
use crate::mailbox::place::temporary;
use crate::mailbox::read::accounts::Accounts;
use crate::mailbox::read::cut::{self, SINGLE, asked_for, cannot_cut};
use crate::mailbox::read::messages::{Messages, Transformed};
use crate::mailbox::read::pipeline;
use crate::mailbox::read::sink::{Output, Sink};
use crate::mailbox::read::source::Source;
use crate::mailbox::read::window::Chunk;
use crate::mailbox::result;
use crate::mailbox::{
    Format, Observer, Options, Quoting, Stop, Summary, Transform, check_backup_suffix,
};
use crate::platform;

/// Converts `source` (an mbox file, a Maildir, a message or a directory of them) and writes the result to
/// `destination`.
///
/// A file becomes a file, and a directory becomes a directory with the same names. Existing files are never
/// overwritten, but the destination may be a device or a pipe. New files get the owner, mode and time of the source.
/// They are not synced to the disk, because the source still exists.
///
/// # Errors
/// Returns [`Error::NotAMailbox`]; [`Error::Changed`] if an mbox changed while it was read; [`Error::Interrupted`]
/// after a request to `stop`; [`Error::Read`], [`Error::Unreadable`] or [`Error::Write`]; or the error that `transform`
/// returns. No temporary file and no incomplete file is left.
pub fn convert_to<S: Send>(
    source: &Path,
    destination: &Path,
    options: &Options,
    transform: &dyn Transform<S>,
    observer: &dyn Observer<S>,
    stop: &Stop,
) -> Result<Summary, Error> {
    if let (Ok(one), Ok(other)) = (fs::metadata(source), fs::metadata(destination))
        && replace::is_same(&one, &other)
    {
        let what = format!("{}: is the source as well; ", destination.display());
        let detail = Detail::from(what).naming(Setting::InPlace);
        return Err(Error::Usage(
            detail.then(" replaces the source with the result"),
        ));
    }
    let folder = temporary::folder_of(destination);
    if options.mode.writes() && !folder.is_dir() {
        let what = format!(
            "the directory {} does not exist; create it first",
            folder.display()
        );
        let missing = io::Error::new(io::ErrorKind::NotFound, what);
        return Err(cannot_write(destination)(missing));
    }
    let finds = look_at(source, options, false, stop)?;
    result::check(source, &finds, destination, options)?;
    // File names that differ only in case are checked only if the result has the names of the source. Thunderbird needs
    // file names of its own, which always differ in more than case.
    let keeps_names = options.output_format != Format::Thunderbird;
    if options.mode.writes() && keeps_names {
        let folds = || platform::folds_case(folder).unwrap_or(false);
        result::check_case(&finds, destination, options, folds)?;
    }
    let job = Job::new(source, options, transform, observer, stop);
    job.transfer(&finds, destination, None)
}

#[cfg(feature = "cli")]
pub(crate) fn convert_folder_open<S: Send>(
    source: &Path,
    output: File,
    options: &Options,
    transform: &dyn Transform<S>,
    observer: &dyn Observer<S>,
    stop: &Stop,
) -> Result<Summary, Error> {
    let finds = look_at(source, options, false, stop)?;
    result::check_open(source, result::result(&finds, options))?;
    let job = Job::new(source, options, transform, observer, stop);
    job.transfer(&finds, Path::new("standard output"), Some(output))
}

/// Converts `source` in place. Mailboxes without a changed message are not written. [`Mode::DryRun`] takes no locks.
///
/// An mbox is locked with a dotlock and fcntl from before it is read until it is replaced, unless [`Options::waits`] is
/// set.
///
/// # Errors
/// Returns the errors of [`convert_to`], and [`Error::Locked`] if the lock was not available in time. The mailbox or
/// Maildir message to which the error applies is unchanged.
pub fn convert_in_place<S: Send>(
    source: &Path,
    options: &Options,
    transform: &dyn Transform<S>,
    observer: &dyn Observer<S>,
    stop: &Stop,
) -> Result<Summary, Error> {
    if cfg!(not(unix)) && options.mode.writes() {
        let detail = Detail::default()
            .naming(Setting::InPlace)
            .then(" works only on Linux, macOS and other Unix systems; name a new file with ");
        return Err(Error::Usage(detail.naming(Setting::Output)));
    }
    if let Some(suffix) = &options.backup {
        check_backup_suffix(suffix)?;
    }
    let mut finds = look_at(source, options, true, stop)?;
    if let Some(suffix) = &options.backup {
        pass_over_backups(&mut finds, suffix);
    }
    check_in_place(&finds, options)?;
    if options.mode.writes() {
        sweep(&finds, options.format);
    }
    let mut summary = begun(&finds, observer);
    let inner = Inner::default();
    let job = Job {
        inner: Some(&inner),
        ..Job::new(source, options, transform, observer, stop)
    };
    let done = job.each(&finds.mailboxes, |job, kind| match kind {
        Kind::Maildir | Kind::Mh => job.folder(kind, None),
        Kind::Archive if options.mode.writes() => Err(not_in_place(job.path)),
        Kind::Archive | Kind::Eudora | Kind::Msg | Kind::Pst => job.file_to(kind, Output::Nowhere),
        Kind::Mbox => job.mbox_in_place(),
        Kind::Eml => job.message_in_place(),
    });
    summary.add(&done?);
    summary.add(&job.each_inner(&inner, |job, _| job.inner_to(None))?);
    Ok(summary)
}

fn check_in_place(finds: &Finds, options: &Options) -> Result<(), Error> {
    let writes = options.mode.writes();
    let of = |setting| Detail::default().naming(setting);
    if writes && options.range.is_some() {
        let detail = of(Setting::Range)
            .then(" cannot be used with ")
            .then(of(Setting::InPlace));
        let why = ", because the rest of the mailbox would be lost";
        return Err(Error::Usage(detail.then(why)));
    }
    let refused = |found: &Found, why: &str| {
        let what = format!("{}: {why} as ", found.file().display());
        Err(Error::Usage(Detail::from(what).naming(Setting::Output)))
    };
    let written = || finds.mailboxes.iter().filter(|_| writes);
    if let Some(found) = written().find(|found| found.kind == Kind::Eudora) {
        let why = "cannot change a mailbox of Eudora in place, because the index of Eudora contains the position of each message; name a new mailbox";
        return refused(found, why);
    }
    if let Some(found) = written().find(|found| matches!(found.kind, Kind::Msg | Kind::Pst)) {
        let why = "embody does not write files of Outlook, so it cannot change one in place; name a new file";
        return refused(found, why);
    }
    if options.backup.is_some() && finds.mailboxes.iter().any(|found| found.kind.is_folder()) {
        let why = " cannot be used for a Maildir or an MH folder, where the backup of a message would be read as another message; copy the folder first";
        return Err(Error::Usage(of(Setting::Backup).then(why)));
    }
    if let Some(found) = written().find(|found| emlx::beside(&found.path).is_some()) {
        let why = "cannot change files of Apple Mail in place, because Apple Mail keeps an index of them; name a new directory";
        return refused(found, why);
    }
    Ok(())
}

impl<S: Send> Job<'_, S> {
    /// Calls `convert` for each of the mailboxes and returns the sum of their counts. If a file inside a source
    /// directory cannot be read, it is reported as damaged, and the other mailboxes are still converted.
    pub(crate) fn each<'f>(
        &self,
        founds: impl IntoIterator<Item = &'f Found>,
        mut convert: impl FnMut(&Job<'_, S>, Kind) -> Result<Summary, Error>,
    ) -> Result<Summary, Error> {
        let mut sum = Summary::default();
        for found in founds {
            self.stop.check()?;
            self.observer.begin(&found.path);
            let job = Job {
                path: &found.path,
                method: found.method,
                pst: found.pst.as_ref(),
                ..*self
            };
            let is_within = !found.relative.as_os_str().is_empty();
            match convert(&job, found.kind) {
                Err(Error::Unreadable { source, .. }) if is_within && !found.kind.is_folder() => {
                    let why = format!("{}; it was not changed", unread(&source));
                    self.observer.damaged(&found.path, &why.into());
                    sum.damaged += 1;
                }
                done => sum.add(&done?),
            }
        }
        Ok(sum)
    }

    pub(crate) fn open(&self) -> Result<(File, Identity), Error> {
        let file = File::open(self.path).map_err(unreadable(self.path))?;
        let before = file.metadata().map_err(unreadable(self.path))?;
        Ok((file, Identity::of(&before)))
    }

    fn message_in_place(&self) -> Result<Summary, Error> {
        let (file, before) = self.open()?;
        let file = Arc::new(file);
        let most = self.options.max_message;
        let content = content_of(&file, before.length, self.method, self.options, most);
        let (summary, done) = match content.map_err(unreadable(self.path))? {
            Content::Whole(content) => self.message_of(&content)?,
            Content::TooLarge => (self.oversized(before.length)?, None),
            Content::Damaged(damage) => (self.all_damaged(&damage), None),
        };
        let new = done.as_ref().and_then(|done| done.new.as_ref());
        if let (Some(new), Mode::Run) = (new, self.options.mode) {
            let target = self.path.canonicalize().map_err(unreadable(self.path))?;
            let backup = self.options.backup.as_deref();
            replace::check_replaceable(&target, backup)?;
            let folder = temporary::folder_of(&target);
            let beside = Beside::of(new, folder, &target, self.method)?;
            self.stop.check()?;
            beside.finished(&file)?.replace(&before, backup)?;
        }
        if let Some(done) = done {
            done.tell(self.observer);
        }
        self.observer.done(&summary);
        Ok(summary)
    }

    pub(crate) fn check_uncut(&self) -> Result<(), Error> {
        let metadata = fs::metadata(self.path).ok();
        match asked_for(self.options, self.path, metadata.as_ref())? {
            Some(_) => Err(cannot_cut(self.path, SINGLE)),
            None => Ok(()),
        }
    }

    pub(crate) fn oversized(&self, octets: u64) -> Result<Summary, Error> {
        Ok(Summary {
            oversized: 1,
            ..self.one_message(octets)?
        })
    }

    fn one_message(&self, octets: u64) -> Result<Summary, Error> {
        self.check_uncut()?;
        self.observer.advance(octets, 1);
        Ok(Summary {
            mailboxes: 1,
            messages: 1,
            bytes_in: octets,
            bytes_out: octets,
            ..Summary::default()
        })
    }

    pub(crate) fn message_of(
        &self,
        content: &[u8],
    ) -> Result<(Summary, Option<Transformed<S>>), Error> {
        let mut summary = self.one_message(content.len() as u64)?;
        let (is_wrapped, range) = match emlx::message(content) {
            None => (false, 0..content.len()),
            Some(Ok(range)) => (true, range),
            Some(Err(why)) => {
                summary.damaged = 1;
                let why = format!("{why}; the file was not changed");
                self.observer.damaged(self.path, &why.into());
                return Ok((summary, None));
            }
        };
        let message = content.get(range.clone()).unwrap_or_default();
        let beside = emlx::beside(self.path).filter(|_| is_wrapped);
        let mut done = self.single((1, self.path), message, beside, rewrite::spliced_in_file)?;
        if let Some(new) = done.as_mut().and_then(|done| done.new.as_mut()) {
            if is_wrapped {
                *new = emlx::with_message(content, range, new);
            }
            summary.changed = 1;
            summary.bytes_out = new.len() as u64;
        }
        Ok((summary, done))
    }

    pub(crate) fn damaged(&self, damage: &Damage, summary: &mut Summary) {
        summary.damaged += 1;
        let read = match summary.messages {
            0 => "no message was read".to_owned(),
            1 => "1 message was read".to_owned(),
            messages => format!("{messages} messages were read"),
        };
        let left = damage.left(summary.messages);
        let why = damage.detail().then(format!("; {read}{left}"));
        self.observer.damaged(self.path, &why);
    }

    pub(crate) fn quoting(&self, source: &mut Source) -> Result<Quoting, Error> {
        match (self.eudora, self.options.quoting) {
            (Some(_), _) => Ok(Quoting::None),
            (None, Some(quoting)) => Ok(quoting),
            (None, None) => source.quoting().map_err(in_full(self.path)),
        }
    }

    pub(crate) fn whole_mbox(
        &self,
        mut source: Source,
        sink: &mut Sink<'_>,
    ) -> Result<Summary, Error> {
        let quoting = self.quoting(&mut source)?;
        let mut summary = Summary::default();
        let counted = Counted::default();
        self.mbox(source, counted, quoting, &mut summary, sink, &mut |_| {})?;
        Ok(summary)
    }

    /// Converts the messages of an mbox and writes the result to `sink`. `source` starts at the beginning of the mbox,
    /// or after messages that were already converted. `counted` is what is known about Content-Length in the mailbox at
    /// this position. `seen` is called with all bytes that were read. Returns the updated `counted` and the source, so
    /// that the caller can continue with messages that were appended since.
    pub(crate) fn mbox(
        &self,
        source: Source,
        counted: Counted,
        quoting: Quoting,
        summary: &mut Summary,
        sink: &mut Sink<'_>,
        seen: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<(Counted, Source), Error> {
        let packed = source.packed().cloned();
        let mut windows = cut::windows(source, counted, self.options, self.path)?;
        if self.eudora.is_some() {
            let start = windows.source.start(find::LOOKED_AT as usize);
            let start = start.map_err(in_full(self.path))?;
            let has_cr = eudora::ends_lines_with_cr(&start);
            windows.division = Division::Eudora { has_cr };
        }
        let stages = Messages {
            job: self,
            quoting,
            before: summary.messages,
            is_plain: matches!(sink, Sink::Delivery(_)),
        };
        summary.mailboxes = 1;
        let mut accounts = Accounts::of(&windows);
        pipeline::run(
            self.options.threads(),
            self.stop,
            || {
                let chunk = windows.next_chunk().map_err(in_full(self.path))?;
                let Some(chunk) = chunk else {
                    return Ok(None);
                };
                stages.ahead(&chunk).map_err(unreadable(self.path))?;
                let weight = chunk.weight();
                Ok(Some((chunk, weight)))
            },
            |chunk| stages.touched(chunk),
            |chunk, index| stages.work(chunk, index),
            |chunk, done| {
                let results = done.iter().filter_map(|(_, done)| done.as_ref());
                let weight: usize = results.map(|it| it.weight(self.transform)).sum();
                chunk.let_go().map(|of_chunk| of_chunk + weight)
            },
            |mut chunk: Chunk, done| {
                chunk.read_again().map_err(unreadable(self.path))?;
                let bytes = chunk.bytes();
                accounts.chunk(&chunk).map_err(unreadable(self.path))?;
                seen(bytes);
                if let Sink::Delivery(delivery) = sink {
                    self.deliver_chunk(&chunk, &done, quoting, delivery, summary)?;
                } else {
                    summary.bytes_out += bytes.len() as u64;
                    let mut copied = 0;
                    for (frame, done) in &done {
                        let Some(new) = &done.new else { continue };
                        let frame = chunk.frames[*frame];
                        sink.keep(&bytes[copied..frame.start])?;
                        sink.put(new)?;
                        summary.bytes_out += new.len() as u64;
                        summary.bytes_out -= (frame.end - frame.start) as u64;
                        summary.changed += 1;
                        copied = frame.end;
                    }
                    sink.keep(&bytes[copied..])?;
                }
                for (_, done) in done {
                    done.tell(self.observer);
                }
                let messages = chunk.messages();
                summary.oversized += chunk.oversized;
                summary.messages += messages;
                summary.bytes_in += bytes.len() as u64;
                let read = packed.as_ref().map_or(bytes.len() as u64, |it| it.news());
                self.observer.advance(read, messages);
                Ok(())
            },
        )?;
        accounts.end(&windows).map_err(unreadable(self.path))?;
        Ok((windows.counted.elsewhere(), windows.source))
    }
}
