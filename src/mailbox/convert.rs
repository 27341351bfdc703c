//! The driver: from a source to a destination, or in place.
//!
//! Every mailbox is whole or as it was: output appears under its name when it is finished, and in
//! place is [`replace`](super::replace)'s business. Of several mailboxes in a folder those done
//! before an error or a stop stay done.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::find::{self, Finds, Kind};
use super::lock::Lock;
use super::maildir::{self, Destination};
use super::mbox::Extent;
use super::pipeline::{self, Limits, Stages};
use super::replace::{self, Beside, Identity};
use super::rewrite::{self, Rewritten};
use super::window::{Chunk, Pool, Windows};
use super::{
    Effect, Message, Options, Progress, Quoting, Stop, Summary, Transform, cannot_read,
    cannot_write,
};
use crate::error::Error;

/// How much of an mbox is read to see how it quotes.
const SAMPLE: usize = 1 << 20;

/// Converts `source` (an mbox file, a Maildir, a message, a folder of them) to `destination`.
///
/// A file becomes a file, a folder a folder with the same names in it. Nothing that exists is
/// overwritten, a device or pipe excepted, which is written to directly. Files get the source's
/// owner, mode and time. They are not synced: the source is still there.
///
/// # Errors
/// [`Error::NotAMailbox`]; [`Error::Changed`] if an mbox changed while it was read;
/// [`Error::Interrupted`] if `stop` was requested; [`Error::Read`], [`Error::Write`]; whatever
/// `transform` gives. No temporary file is left, and no half of a file.
pub fn convert_to(
    source: &Path,
    destination: &Path,
    options: &Options,
    transform: &dyn Transform,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Summary, Error> {
    let finds = find::find(source, options.format)?;
    let mut summary = skipped(&finds, progress);
    for found in finds.mailboxes {
        stop.check()?;
        let target = if found.relative.as_os_str().is_empty() {
            destination.to_path_buf()
        } else {
            destination.join(&found.relative)
        };
        let job = Job {
            path: &found.path,
            options,
            transform,
            progress,
            stop,
        };
        if options.effect == Effect::Write {
            let folder = replace::folder_of(&target);
            fs::create_dir_all(folder).map_err(cannot_write(folder))?;
        }
        progress.begin(&found.path);
        summary.add(&match found.kind {
            Kind::Maildir => job.maildir(Destination::Folder(&target)),
            Kind::Mbox => job.mbox_to(&target),
            Kind::Eml => job.message_to(&target),
        }?);
    }
    Ok(summary)
}

/// Converts `source` in place. What does not change is not written.
///
/// An mbox is locked (dotlock and fcntl) from before it is read until it is replaced. With
/// [`Effect::DryRun`] nothing is locked or written.
///
/// # Errors
/// As [`convert_to`], and [`Error::Locked`] if the lock was not to be had in time. The mailbox an
/// error is about is as it was; for a Maildir: each message is.
pub fn convert_in_place(
    source: &Path,
    options: &Options,
    transform: &dyn Transform,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Summary, Error> {
    let finds = find::find(source, options.format)?;
    if options.backup.is_some() && finds.mailboxes.iter().any(|f| f.kind == Kind::Maildir) {
        return Err(Error::Usage(
            "--backup is not for a Maildir, where a copy of a message is one more message; copy the folder"
                .into(),
        ));
    }
    let mut summary = skipped(&finds, progress);
    for found in finds.mailboxes {
        stop.check()?;
        let job = Job {
            path: &found.path,
            options,
            transform,
            progress,
            stop,
        };
        progress.begin(&found.path);
        summary.add(&match found.kind {
            Kind::Maildir => job.maildir(Destination::InPlace),
            Kind::Mbox => job.mbox_in_place(),
            Kind::Eml => job.message_in_place(),
        }?);
    }
    Ok(summary)
}

/// Says what is skipped, and counts it.
fn skipped(finds: &Finds, progress: &dyn Progress) -> Summary {
    for (path, other) in &finds.skipped {
        progress.skipped(path, other.name());
    }
    Summary {
        skipped_files: finds.skipped.len() as u64,
        ..Summary::default()
    }
}

/// One mailbox to convert.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) path: &'a Path,
    pub(super) options: &'a Options,
    pub(super) transform: &'a dyn Transform,
    pub(super) progress: &'a dyn Progress,
    pub(super) stop: &'a Stop,
}

impl Job<'_> {
    fn maildir(&self, destination: Destination<'_>) -> Result<Summary, Error> {
        let Self {
            path,
            options,
            transform,
            progress,
            stop,
        } = *self;
        maildir::convert(path, destination, options, transform, progress, stop)
    }

    fn open(&self) -> Result<(File, Identity), Error> {
        let file = File::open(self.path).map_err(cannot_read(self.path))?;
        let metadata = file.metadata().map_err(cannot_read(self.path))?;
        Ok((file, Identity::of(&metadata)))
    }

    fn mbox_to(&self, target: &Path) -> Result<Summary, Error> {
        let (file, before) = self.open()?;
        let mut sink = if self.options.effect == Effect::DryRun {
            Sink::Nowhere
        } else {
            Sink::to(target)?
        };
        let summary = self.mbox(&file, &mut sink)?;
        before.check(self.path)?;
        sink.appear(&file)?;
        Ok(summary)
    }

    fn mbox_in_place(&self) -> Result<Summary, Error> {
        if self.options.effect == Effect::DryRun {
            let (file, _) = self.open()?;
            return self.mbox(&file, &mut Sink::Nowhere);
        }
        let target = self.path.canonicalize().map_err(cannot_read(self.path))?;
        let lock = Lock::acquire(&target, self.path, self.options.lock_timeout, self.stop)?;
        replace::sweep(replace::folder_of(&target));
        let metadata = lock.file().metadata().map_err(cannot_read(&target))?;
        let before = Identity::of(&metadata);
        let mut sink = Sink::InPlace(InPlace {
            source: lock.file(),
            target: &target,
            options: self.options,
            unchanged: 0,
            beside: None,
        });
        let summary = self.mbox(lock.file(), &mut sink)?;
        let Sink::InPlace(InPlace {
            beside: Some(beside),
            ..
        }) = sink
        else {
            return Ok(summary);
        };
        self.stop.check()?;
        let finished = beside.finished(lock.file())?;
        finished.replace(&before, self.options.backup.as_deref())?;
        rescue(&lock, &target, before.length(), self.stop)?;
        Ok(summary)
    }

    fn message_to(&self, target: &Path) -> Result<Summary, Error> {
        let (file, before) = self.open()?;
        let (summary, content, new) = self.message(&file, &before)?;
        if self.options.effect == Effect::Write {
            let mut sink = Sink::to(target)?;
            match content {
                Some(content) => sink.put(new.as_deref().unwrap_or(&content), Bytes::New)?,
                None => sink.put_start_of(&file, before.length())?,
            }
            before.check(self.path)?;
            sink.appear(&file)?;
        }
        Ok(summary)
    }

    fn message_in_place(&self) -> Result<Summary, Error> {
        let (file, before) = self.open()?;
        let (summary, _, new) = self.message(&file, &before)?;
        if let (Some(new), Effect::Write) = (new, self.options.effect) {
            let target = self.path.canonicalize().map_err(cannot_read(self.path))?;
            let backup = self.options.backup.as_deref();
            replace::sweep(replace::folder_of(&target));
            replace::check_replaceable(&target, backup)?;
            let mut beside = Beside::start(&target)?;
            beside.write(&new)?;
            self.stop.check()?;
            beside.finished(&file)?.replace(&before, backup)?;
        }
        Ok(summary)
    }

    /// A single message: its content (unless it is too large) and what becomes of it.
    #[allow(clippy::type_complexity)] // three values that are used apart
    pub(super) fn message(
        &self,
        mut file: &File,
        before: &Identity,
    ) -> Result<(Summary, Option<Vec<u8>>, Option<Vec<u8>>), Error> {
        let mut summary = Summary {
            mailboxes: 1,
            messages: 1,
            bytes_in: before.length(),
            bytes_out: before.length(),
            ..Summary::default()
        };
        self.progress.advance(before.length(), 1);
        if before.length() > self.options.max_message as u64 {
            summary.oversized = 1;
            return Ok((summary, None, None));
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content)
            .map_err(cannot_read(self.path))?;
        let new = maildir::transformed(self.transform, 1, self.path, &content)?;
        if let Some(new) = &new {
            summary.changed = 1;
            summary.bytes_out = new.len() as u64;
        }
        Ok((summary, Some(content), new))
    }

    /// An mbox through the pipeline into `sink`.
    pub(super) fn mbox(&self, file: &File, sink: &mut Sink<'_>) -> Result<Summary, Error> {
        let quoting = match self.options.quoting {
            Some(quoting) => quoting,
            None => quoting_of(file).map_err(cannot_read(self.path))?,
        };
        let pool = Pool::default();
        let window = self.options.window;
        let mut windows = Windows::new(file, pool.clone(), window, self.options.max_message);
        let stages = Messages {
            path: self.path,
            transform: self.transform,
            quoting,
        };
        let limits = Limits {
            workers: self.options.workers(),
            budget: self.options.budget(),
        };
        let mut summary = Summary {
            mailboxes: 1,
            ..Summary::default()
        };
        pipeline::run(
            &stages,
            limits,
            self.stop,
            || {
                let chunk = windows.next_chunk().map_err(cannot_read(self.path))?;
                Ok(chunk.map(|chunk| {
                    let weight = chunk.buffer.len();
                    (chunk, weight)
                }))
            },
            |chunk, done| {
                let bytes = chunk.bytes();
                summary.bytes_out += bytes.len() as u64;
                let mut copied = 0;
                for (frame, new) in done {
                    let Some(new) = new else { continue };
                    let frame = chunk.frames[frame];
                    sink.put(&bytes[copied..frame.start], Bytes::Same)?;
                    sink.put(&new, Bytes::New)?;
                    summary.bytes_out += new.len() as u64;
                    summary.bytes_out -= (frame.end - frame.start) as u64;
                    summary.changed += 1;
                    copied = frame.end;
                }
                sink.put(&bytes[copied..], Bytes::Same)?;
                let messages = chunk.frames.len() as u64 + chunk.oversized;
                summary.oversized += chunk.oversized;
                summary.messages += messages;
                summary.bytes_in += bytes.len() as u64;
                self.progress.advance(bytes.len() as u64, messages);
                pool.give_back(chunk.buffer, window);
                Ok(())
            },
        )?;
        Ok(summary)
    }
}

fn quoting_of(file: &File) -> io::Result<Quoting> {
    let mut sample = vec![0; SAMPLE];
    let mut filled = 0;
    while filled < SAMPLE {
        match file.read_at(&mut sample[filled..], filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    let extent = if filled < SAMPLE {
        Extent::Whole
    } else {
        Extent::Start
    };
    Ok(Quoting::of_sample(&sample[..filled], extent))
}

/// The stages of an mbox: a chunk's messages that something points at are transformed.
struct Messages<'a> {
    path: &'a Path,
    transform: &'a dyn Transform,
    quoting: Quoting,
}

impl Stages for Messages<'_> {
    type Item = Chunk;
    /// An index into the chunk's frames.
    type Part = usize;
    type Done = (usize, Option<Vec<u8>>);

    fn split(&self, chunk: &Chunk) -> Result<Vec<usize>, Error> {
        Ok(touched(self.transform, chunk))
    }

    fn work(&self, chunk: &Chunk, index: usize) -> Result<Self::Done, Error> {
        let frame = chunk.frames[index];
        let (_, content, _) = frame.parts(chunk.bytes());
        let number = chunk.first_number + index as u64;
        let message = Message {
            number,
            source: self.path,
            content,
            quoting: self.quoting,
        };
        let change = self.transform.transform(&message)?;
        let new = rewrite::rewritten(chunk.bytes(), &frame, change, self.quoting);
        let new = new.map_err(|_| {
            cannot_write(self.path)(io::Error::other(format!(
                "message {number}: replacements overlap or lie outside the message"
            )))
        })?;
        Ok(match new {
            Rewritten::Unchanged => (index, None),
            Rewritten::Changed(new) => (index, Some(new)),
            Rewritten::Refused => {
                self.transform.refused(&message);
                (index, None)
            }
        })
    }
}

/// The messages of a chunk that need a look.
///
/// The runs asked about double while nothing is found and start again at one message behind a
/// find. So what is searched in vain beyond a find (by a needle that is rare) was paid for by the
/// bytes before it, and the whole is linear however the finds lie.
fn touched(transform: &dyn Transform, chunk: &Chunk) -> Vec<usize> {
    let (bytes, frames) = (chunk.bytes(), &chunk.frames);
    let mut touched = Vec::new();
    let (mut next, mut run) = (0, 1);
    while let Some(first) = frames.get(next) {
        // Runs are counted in bytes of the message at hand: a large one is not followed by many.
        let least = first.end - first.start;
        let mut last = next;
        while let Some(frame) = frames.get(last + 1)
            && frame.end - first.start <= least.saturating_mul(run)
        {
            last += 1;
        }
        let searched = &bytes[first.start..frames[last].end];
        match transform.next_touch(searched) {
            None => {
                next = last + 1;
                run = run.saturating_mul(2);
            }
            Some(at) => {
                let place = first.start + at.min(searched.len() - 1);
                let found = frames.partition_point(|frame| frame.end <= place);
                touched.push(found);
                next = found + 1;
                run = 1;
            }
        }
    }
    touched
}

/// Whether bytes of an mbox are the source's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bytes {
    Same,
    New,
}

/// Where an mbox goes.
pub(super) enum Sink<'a> {
    Nowhere,
    /// A file that will appear.
    Beside(Beside),
    /// A device or pipe.
    Directly(PathBuf, BufWriter<File>),
    InPlace(InPlace<'a>),
}

/// Nothing is written until something changed: most runs over a converted mailbox only read.
pub(super) struct InPlace<'a> {
    source: &'a File,
    target: &'a Path,
    options: &'a Options,
    /// Bytes of the source that were passed over while nothing was written.
    unchanged: u64,
    beside: Option<Beside>,
}

impl Sink<'_> {
    pub(super) fn to(target: &Path) -> Result<Self, Error> {
        match fs::metadata(target) {
            Ok(found) if !found.is_file() && !found.is_dir() => {
                let device = File::options().write(true).open(target);
                let device = device.map_err(cannot_write(target))?;
                Ok(Self::Directly(target.into(), BufWriter::new(device)))
            }
            Ok(_) => Err(cannot_write(target)(io::ErrorKind::AlreadyExists.into())),
            Err(_) => Ok(Self::Beside(Beside::start(target)?)),
        }
    }

    pub(super) fn put(&mut self, bytes: &[u8], kind: Bytes) -> Result<(), Error> {
        match self {
            Self::Nowhere => Ok(()),
            Self::Beside(beside) => beside.write(bytes),
            Self::Directly(path, writer) => writer.write_all(bytes).map_err(cannot_write(path)),
            Self::InPlace(place) => {
                if place.beside.is_none() {
                    if kind == Bytes::Same {
                        place.unchanged += bytes.len() as u64;
                        return Ok(());
                    }
                    let backup = place.options.backup.as_deref();
                    replace::check_replaceable(place.target, backup)?;
                    let mut beside = Beside::start(place.target)?;
                    beside.write_start_of(place.source, place.unchanged)?;
                    place.beside = Some(beside);
                }
                place
                    .beside
                    .as_mut()
                    .map_or(Ok(()), |beside| beside.write(bytes))
            }
        }
    }

    pub(super) fn put_start_of(&mut self, source: &File, length: u64) -> Result<(), Error> {
        match self {
            Self::Beside(beside) => beside.write_start_of(source, length),
            Self::Directly(path, writer) => {
                let mut source = source;
                io::copy(&mut Read::by_ref(&mut source).take(length), writer)
                    .map(|_| ())
                    .map_err(cannot_write(path))
            }
            Self::Nowhere | Self::InPlace(_) => Ok(()),
        }
    }

    /// All is written: the file gets its name.
    pub(super) fn appear(self, like: &File) -> Result<(), Error> {
        match self {
            Self::Nowhere | Self::InPlace(_) => Ok(()),
            Self::Directly(path, mut writer) => writer.flush().map_err(cannot_write(&path)),
            Self::Beside(beside) => beside.finished(like)?.appear(),
        }
    }
}

/// Mail that a deliverer with an fcntl lock only, which waited for ours, wrote to the file that
/// is no longer there: appended to the one that is, while its dotlock is still ours.
fn rescue(lock: &Lock, target: &Path, known: u64, stop: &Stop) -> Result<(), Error> {
    let Ok(length) = lock.latecomers(target, stop) else {
        // Someone holds it for long; there is nothing to wait for that we know of.
        return Ok(());
    };
    if length <= known {
        return Ok(());
    }
    let mut late = vec![0; usize::try_from(length - known).unwrap_or(0)];
    let read = lock.file().read_exact_at(&mut late, known);
    read.map_err(cannot_read(target))?;
    let mut new = File::options()
        .append(true)
        .open(target)
        .map_err(cannot_write(target))?;
    new.write_all(&late)
        .and_then(|()| new.sync_all())
        .map_err(cannot_write(target))
}
