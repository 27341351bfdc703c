//! Mail that comes from, or goes to, an open file: standard input, of which [`growing`](super::growing)
//! keeps what is needed, and standard output.
//!
//! What was written to an open file stays there when the run fails: only a status says that it is
//! not whole.

use std::fs::File;
use std::io::{self, BufWriter, Read as _};
use std::path::Path;
use std::sync::Arc;

use memchr::memchr;

use super::archive::{self, Skipped, SkippedMembers};
use super::compressed::{Damage, Method};
use super::convert::Job;
use super::expanded::{Expanded, Expansion, method_of};
use super::failure::{cannot_write, in_full, unreadable};
use super::find::{self, Kind, NotMail};
use super::forms;
use super::growing::Growing;
use super::pool::Pool;
use super::replace::{self, Identity};
use super::sample::piece_of;
use super::separator::{Next, next_separator};
use super::sink::{Bytes, Output, Sink};
use super::temporary;
use super::window::{Section, Windows};
use super::{Effect, Format, Options, Progress, Stop, Summary, Transform};
use crate::error::Error;

/// Bytes looked at to tell what a stream is, and the window in which one is searched.
const WINDOW: usize = 1 << 20;

/// What mail is read from.
#[derive(Debug)]
pub(crate) enum Opened {
    /// A file with a name: it must still be there under it, as it was, at the end.
    File(Arc<File>),
    /// What comes in a stream, is not all there yet, and can be read once; and members of an archive that are no mail.
    Growing(Arc<Growing>, Skipped),
    /// What is in a compressed file with a name.
    Expanded(Expanded),
}

impl Opened {
    /// A file with a name, whatever it is compressed with; of an archive its mboxes.
    ///
    /// # Errors
    /// [`Error::Read`], or about the folder for temporary files.
    pub(crate) fn named(
        file: File,
        name: &Path,
        options: &Options,
        stop: &Stop,
    ) -> Result<Self, Error> {
        let method = method_of(&file).map_err(unreadable(name))?;
        let file = Arc::new(file);
        let limits = Expansion::limits(options);
        let skipped = Skipped::default();
        let ending = stop.of_part();
        let unpacked = archive::unpacked(&file, method, limits, find::judged, &skipped, &ending);
        match unpacked.map_err(unreadable(name))? {
            Some(reader) => Ok(Self::Expanded(Expanded::of(
                file, reader, skipped, name, ending,
            )?)),
            None => Ok(Self::File(file)),
        }
    }

    /// It, unless it is a plain file.
    pub(crate) fn stream(self) -> Option<Self> {
        match self {
            Self::File(_) => None,
            stream => Some(stream),
        }
    }

    /// The content, or what of it is in a file.
    fn file(&self) -> &File {
        match self {
            Self::File(file) => file,
            Self::Growing(growing, _) => growing.file(),
            Self::Expanded(expanded) => expanded.growing.file(),
        }
    }

    /// What the content comes from.
    fn original(&self) -> &File {
        match self {
            Self::Expanded(expanded) => &expanded.file,
            _ => self.file(),
        }
    }

    fn growing(&self) -> Option<&Growing> {
        match self {
            Self::File(_) => None,
            Self::Growing(growing, _) => Some(growing),
            Self::Expanded(expanded) => Some(&expanded.growing),
        }
    }

    /// Members of an archive that are no mail.
    fn skipped(&self) -> SkippedMembers {
        match self {
            Self::File(_) => SkippedMembers::default(),
            Self::Growing(_, skipped) => skipped.take(),
            Self::Expanded(expanded) => expanded.skipped.take(),
        }
    }

    /// What comes behind damage that does not concern it.
    fn next_part(&self) -> Result<Option<Arc<Growing>>, Error> {
        match self {
            Self::Expanded(expanded) => expanded.next_part(),
            _ => Ok(None),
        }
    }

    /// What is wrong with the compressed data it comes from; only once it ended.
    pub(crate) fn damage(&self) -> Option<Damage> {
        self.growing().and_then(Growing::damage)
    }

    /// The file, once all of it is there.
    ///
    /// # Errors
    /// What went wrong with the stream.
    pub(crate) fn whole(&self) -> Result<&File, Error> {
        match self.growing() {
            None => Ok(self.file()),
            Some(growing) => growing.whole(),
        }
    }

    /// Whether nothing is in it.
    ///
    /// # Errors
    /// What went wrong with the stream.
    pub(crate) fn is_empty(&self) -> Result<bool, Error> {
        match self.growing() {
            None => Ok(self.file().metadata().is_ok_and(|data| data.len() == 0)),
            Some(growing) => Ok(growing.wait_for(1)? == 0),
        }
    }

    /// Waits for so many bytes, or the end.
    fn wait_for(&self, length: u64) -> Result<(), Error> {
        if let Some(growing) = self.growing() {
            growing.wait_for(length)?;
        }
        Ok(())
    }

    /// Nothing before `offset` is read any more.
    pub(super) fn pass(&self, offset: u64) {
        if let Some(growing) = self.growing() {
            growing.pass(offset);
        }
    }

    pub(super) fn section(&self) -> Section<'_> {
        Section {
            growing: self.growing(),
            ..Section::whole(self.file())
        }
    }
}

/// Converts the mbox or message in `source`, which reports call `name`, to `output`.
///
/// # Errors
/// As [`convert_to`](super::convert_to).
#[allow(clippy::too_many_arguments)] // those of `convert_to`, and where from
pub(crate) fn convert_open(
    source: &Opened,
    name: &Path,
    output: Output<'_>,
    options: &Options,
    transform: &dyn Transform,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Summary, Error> {
    let job = Job {
        path: name,
        options,
        method: None,
        transform,
        progress,
        stop,
    };
    let kind = kind_of_open(source, name, options.format)?.map_err(|other| other.error(name))?;
    if let (Output::Path(target), Effect::Write) = (&output, options.effect) {
        temporary::sweep(temporary::folder_of(target));
    }
    progress.begin(name);
    job.open_to(source, None, kind, output)
}

impl Job<'_> {
    /// An mbox or message, compressed or not, or the mboxes of an archive.
    pub(super) fn file_to(&self, kind: Kind, output: Output<'_>) -> Result<Summary, Error> {
        let (file, before) = self.open()?;
        let opened = match kind == Kind::Archive || self.method.is_some() {
            true => Opened::named(file, self.path, self.options, self.stop)?,
            false => Opened::File(Arc::new(file)),
        };
        let kind = match kind {
            Kind::Archive => kind_of_open(&opened, self.path, self.options.format)?
                .map_err(|other| other.error(self.path))?,
            kind => kind,
        };
        self.open_to(&opened, Some(&before), kind, output)
    }

    /// A compressed mbox, under lock until it is replaced.
    pub(super) fn compressed_in_place(&self, method: Method) -> Result<Summary, Error> {
        if self.options.effect == Effect::DryRun {
            return self.file_to(Kind::Mbox, Output::Nowhere);
        }
        let target = self.path.canonicalize().map_err(unreadable(self.path))?;
        let lock = self.locked(&target)?;
        let before = Identity::of_file(lock.file(), &target)?;
        if method_of(lock.file()).map_err(unreadable(self.path))? != Some(method) {
            return Err(Error::Changed { path: target });
        }
        let expansion = Expansion::new(method, self.options);
        let file = Arc::clone(lock.file());
        let expanded = Expanded::start(file, expansion, self.path, self.stop)?;
        let opened = Opened::Expanded(expanded);
        // Damage is seen before anything is reported as done.
        opened.wait_for(u64::MAX)?;
        if let Some(damage) = opened.damage() {
            let summary = self.all_damaged(&damage);
            self.progress.done(&summary);
            return Ok(summary);
        }
        let backup = self.options.backup.as_deref();
        let file = Arc::clone(lock.file());
        let mut sink = Sink::in_place(file, Some(expansion), &target, backup);
        let summary = self.whole_mbox(opened.section(), &mut sink)?;
        self.put(&lock, &target, sink, &before, &summary)?;
        Ok(summary)
    }

    /// Tells that there is nothing but damage.
    pub(super) fn all_damaged(&self, damage: &Damage) -> Summary {
        let mut summary = Summary {
            mailboxes: 1,
            ..Summary::default()
        };
        self.damaged(damage, &mut summary);
        summary
    }

    /// `read` is what was opened, as it was before it was read, if it has a name.
    fn open_to(
        &self,
        opened: &Opened,
        read: Option<&Identity>,
        kind: Kind,
        output: Output<'_>,
    ) -> Result<Summary, Error> {
        let name = self.path;
        if kind != Kind::Mbox {
            opened.wait_for(u64::MAX)?;
        }
        let target = match output {
            Output::Path(path) => Some(path),
            _ => None,
        };
        let original = opened.original();
        let metadata = original.metadata().map_err(unreadable(name))?;
        let mut sink = match (output, self.options.effect) {
            (_, Effect::DryRun) | (Output::Nowhere, _) => Sink::Nowhere,
            (Output::Path(path), _) => {
                let method = match opened {
                    Opened::Expanded(_) => method_of(original).map_err(unreadable(name))?,
                    _ => None,
                };
                Sink::to(path, Method::of_result(path, method))?
            }
            (Output::Open(file), _) => {
                let name_of_output = Path::new("standard output");
                let written = file.metadata().map_err(cannot_write(name_of_output))?;
                if written.is_file() && replace::is_same(&metadata, &written) {
                    // It would be read as fast as it grows.
                    let what = "standard output is the same file; name a new one";
                    return Err(Error::Usage(format!("{}: {what}", name.display()).into()));
                }
                Sink::Directly(name_of_output.into(), BufWriter::new(file))
            }
        };
        let mut last = None;
        let mut summary = if kind == Kind::Mbox {
            let mut summary = Summary::default();
            let section = opened.section();
            let quoting = self.quoting(&section)?;
            self.mbox(section, quoting, &mut summary, &mut sink, &mut |_| {})?;
            last = opened.damage();
            // The places of a range are those of what is read without a break.
            while self.options.range.is_none()
                && last.as_ref().is_some_and(|damage| damage.goes_on)
                && let Some(part) = opened.next_part()?
            {
                let section = Section {
                    growing: Some(&part),
                    ..Section::whole(part.file())
                };
                let quoting = match summary.messages {
                    0 => self.quoting(&section)?,
                    _ => quoting,
                };
                self.mbox(section, quoting, &mut summary, &mut sink, &mut |_| {})?;
                last = part.damage();
            }
            summary
        } else if opened.damage().is_some_and(|damage| !damage.whole) {
            Summary {
                mailboxes: 1,
                ..Summary::default()
            }
        } else {
            let mut content = opened.whole()?;
            let length = content.metadata().map_err(unreadable(name))?.len();
            if length > self.options.max_message as u64 {
                let summary = self.oversized(length)?;
                sink.put_start_of(content, length, name)?;
                summary
            } else {
                let mut message = Vec::new();
                content
                    .read_to_end(&mut message)
                    .map_err(unreadable(name))?;
                let (summary, message, new) = self.message_of(message)?;
                let result = new.as_deref().unwrap_or(&message);
                sink.put(forms::as_named(result, target), Bytes::New)?;
                summary
            }
        };
        if let Some(read) = read {
            read.check(name)?;
        }
        let damage = last.or_else(|| opened.damage());
        // Of damaged data of which nothing was read there is no result.
        if damage.is_none() || summary.messages > 0 {
            sink.appear(original)?;
        }
        if let Some(damage) = damage {
            self.damaged(&damage, &mut summary);
        }
        // Who is told of each does not count them with the rest.
        self.progress.done(&summary);
        let skipped = opened.skipped();
        for (member, what) in skipped.named {
            summary.skipped_files += 1;
            self.progress
                .skipped(&name.join(member.trim_start_matches('/')), what);
        }
        for (what, count) in skipped.others {
            summary.skipped_files += count;
            self.progress.skipped_others(name, what, count);
        }
        Ok(summary)
    }
}

/// What an open file is, seen from its start; it is read from its start afterwards.
///
/// # Errors
/// [`Error::Read`].
pub(crate) fn kind_of_open(
    source: &Opened,
    name: &Path,
    format: Format,
) -> Result<Result<Kind, NotMail>, Error> {
    let start = piece_of(&source.section(), 0, find::LOOKED_AT as usize);
    let start = start.map_err(|error| in_full(error, name))?;
    let kind = find::as_named(find::kind_of(&start, format), name, format);
    Ok(match kind {
        // What it would have been is not known.
        Err(_) if source.damage().is_some() => Ok(Kind::Mbox),
        Ok(Kind::Archive) => Err(match source {
            Opened::Growing(..) => NotMail::STREAMED_ZIP,
            _ => NotMail::PACKED_ZIP,
        }),
        kind => kind,
    })
}

/// Where a second message starts in `bytes`, if they start like an mbox.
#[must_use]
pub(crate) fn second_message(bytes: &[u8]) -> Option<usize> {
    let blanks = bytes
        .iter()
        .take_while(|&&b| b == b'\n' || b == b'\r')
        .count();
    let first = bytes.get(blanks..)?;
    if !first.starts_with(b"From ") {
        return None;
    }
    let from = blanks + memchr(b'\n', first)?;
    match next_separator(bytes, from, true).0 {
        Next::At(second) => Some(second),
        Next::NotHere | Next::Unsure => None,
    }
}

/// Whether a file starts like an mbox and holds a second message.
pub(crate) fn has_second_message(file: &File) -> io::Result<bool> {
    let mut windows = Windows::new(file, Pool::default(), WINDOW, WINDOW);
    let mut messages = 0;
    while let Some(chunk) = windows.next_chunk()? {
        messages += chunk.messages();
        if messages > 1 {
            return Ok(true);
        }
    }
    Ok(false)
}
