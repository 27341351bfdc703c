//! Converts mail from or to an open file: standard input and output, compressed files, and the mboxes of archives.
//!
//! If a run fails, an open output file keeps the bytes that were written. Only the error shows that they are
//! incomplete.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use crate::detail::{Detail, Setting};
use crate::engine::Mode;
use crate::engine::declared_charsets::in_declared_charsets;
use crate::error::{Error, unpoisoned};
use crate::mailbox::archive::{self, MemberRules, SkippedMember};
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::compressed::{
    CompressionDamage, Decoder, LEFT_AS_UTF16, Method, method_of, not_encoded,
};
use crate::mailbox::failure::{cannot_read, cannot_write, in_full, unreadable};
use crate::mailbox::file::{PackedFile, PackedReader};
use crate::mailbox::find;
use crate::mailbox::forms::flags::MessageFlags;
use crate::mailbox::forms::imap_backup::{self, LengthChange};
use crate::mailbox::forms::mbox::MboxReadState;
use crate::mailbox::forms::proton::ProtonState;
use crate::mailbox::forms::{self, carriage, emlx, emlx_files, outlook};
use crate::mailbox::identity::FileIdentity;
use crate::mailbox::input::Background;
use crate::mailbox::input::source::InputSource;
use crate::mailbox::kind::StartKind;
use crate::mailbox::not_mail::NotMail;
use crate::mailbox::place::journal::{JournalRecord, ResultPart};
use crate::mailbox::place::output_stream::{OPEN_OUTPUT, OutputStream};
use crate::mailbox::place::replace::{self, AtomicWriter};
use crate::mailbox::read::entry::ALL_MAIL;
#[cfg(feature = "cli")]
use crate::mailbox::read::entry::WITHOUT_PSTS;
use crate::mailbox::read::sink::{Output, Sink};
use crate::mailbox::temporary::folder_of;
use crate::mailbox::{Format, Options, Stop, Summary};
use crate::platform::NewFile;
use crate::prologue;

const WINDOW: usize = 1 << 20;

/// Number of bytes that are read ahead to find damaged data if the start of a file does not look like mail.
const AHEAD: usize = 4 << 20;

impl InputSource {
    /// Opens a mail file, which may be compressed or an archive. The mail in an archive is the content of its mboxes,
    /// one after the other. Its Outlook mailboxes are copied and returned with the skipped members.
    pub(crate) fn named(
        file: File,
        name: &Path,
        options: &Options,
        stop: &Stop,
    ) -> Result<Self, Error> {
        Self::judged_by(ALL_MAIL, file, name, options, stop)
    }

    /// Opens a file as [`named`](Self::named) does, but reports Outlook mailboxes in an archive as files that were not
    /// read.
    #[cfg(feature = "cli")]
    pub(crate) fn of_mboxes(
        file: File,
        name: &Path,
        options: &Options,
        stop: &Stop,
    ) -> Result<Self, Error> {
        Self::judged_by(WITHOUT_PSTS, file, name, options, stop)
    }

    fn judged_by(
        rules: MemberRules,
        file: File,
        name: &Path,
        options: &Options,
        stop: &Stop,
    ) -> Result<Self, Error> {
        let skipped = Arc::default();
        let ending = stop.of_part();
        let packed = PackedFile::new(&Arc::new(file), &ending);
        let most = options.max_expanded;
        let method = method_of(&packed.file).map_err(in_full(name))?;
        if let Some(method) = method.filter(|method| method.is_utf16()) {
            let reader = PackedReader::new(&packed);
            let open =
                move || Ok(Box::new(Decoder::new(method, reader, most)) as Box<dyn Read + Send>);
            let reader = Background::start(open, name.into(), ending);
            return Ok(Self::stream(reader, Some(packed), skipped).of_utf16());
        }
        let unpacked = archive::unpacked(&packed, most, rules, &skipped);
        Ok(match unpacked.map_err(in_full(name))? {
            Some(reader) => {
                let reader = Background::start(|| Ok(reader), name.into(), ending);
                Self::stream(reader, Some(packed), skipped)
            }
            None => Self::file(&packed.file),
        })
    }
}

impl<S: Send> MailboxJob<'_, S> {
    pub(crate) fn file_to(&self, kind: StartKind, output: Output<'_>) -> Result<Summary, Error> {
        if let Output::Delivery(delivery) = output {
            return self.deliver(kind, Some(delivery));
        }
        if self.pst.is_some() {
            return self.deliver(kind, None);
        }
        let (file, before) = self.open()?;
        let mut source = if kind == StartKind::Archive || self.method.is_some() {
            InputSource::named(file, self.path, self.options, self.stop)?
        } else {
            InputSource::file(&Arc::new(file))
        };
        let kind = match kind {
            StartKind::Archive => kind_of_open(&mut source, self.path, self.options.format)?
                .map_err(|other| other.error(self.path))?,
            kind => kind,
        };
        if kind == StartKind::Pst {
            return self.spool(&mut source);
        }
        self.open_to(source, Some(&before), kind, output)
    }

    /// Decompresses a file to an unnamed temporary file. Returns the damage as the inner error if the data are damaged.
    pub(crate) fn expanded(
        &self,
        method: Method,
        file: &Arc<File>,
    ) -> Result<Result<File, CompressionDamage>, Error> {
        let reader = PackedReader::new(&PackedFile::new(file, self.stop));
        let mut decoder = Decoder::new(method, reader, self.options.max_expanded);
        let folder = std::env::temp_dir();
        let mut plain = tempfile::tempfile_in(&folder).map_err(cannot_write(&folder))?;
        let mut piece = vec![0; 256 << 10];
        loop {
            match decoder.read(&mut piece) {
                Ok(0) => return Ok(Ok(plain)),
                Ok(read) => {
                    let written = plain.write_all(&piece[..read]);
                    written.map_err(cannot_write(&folder))?;
                }
                Err(error) => {
                    self.stop.check()?;
                    let damage = error
                        .downcast::<CompressionDamage>()
                        .map_err(unreadable(self.path))?;
                    return Ok(Err(damage));
                }
            }
        }
    }

    pub(crate) fn all_damaged(&self, damage: &CompressionDamage) -> Summary {
        let mut summary = Summary::of(|sum| sum.mailboxes = 1);
        self.damaged(damage, &mut summary);
        summary
    }

    /// Converts an open source. `read` is the identity of the source file before it was read, if the source has a name:
    /// it shows whether the file has changed since.
    pub(crate) fn open_to(
        &self,
        mut source: InputSource,
        read: Option<&FileIdentity>,
        kind: StartKind,
        output: Output<'_>,
    ) -> Result<Summary, Error> {
        let name = self.path;
        if let Output::Delivery(delivery) = output {
            return self.deliver_source(source, kind, delivery);
        }
        if source.is_utf16() && !matches!(output, Output::Nowhere) {
            return self.copy_utf16(source, read, kind, output);
        }
        let (target, whole) = match output {
            Output::Path(path) => (Some(path), None),
            Output::InFolder(path) => (Some(path), emlx_files::whole_name(path)),
            _ => (None, None),
        };
        let source_file = source.original().cloned();
        let original = source_file.as_deref();
        let mut sink = self.sink_for(output, original)?;
        let mut summary = Summary::default();
        let index = self.index_of(kind, source.as_file());
        let changes = Mutex::default();
        let job = MailboxJob {
            is_eudora: kind == StartKind::Eudora && source.as_file().is_some(),
            changes: Some(&changes),
            ..*self
        };
        if matches!(kind, StartKind::Mbox | StartKind::Eudora) {
            let mut quoting = job.quoting(&mut source)?;
            loop {
                let counted = MboxReadState::default();
                let seen = &mut |_: &[u8]| {};
                (_, source) = job.mbox(source, counted, quoting, &mut summary, &mut sink, seen)?;
                // The offsets of a range count all bytes of the source. After damage, some bytes are missing, so
                // reading ends there.
                if self.options.range.is_some() || !source.go_on() {
                    break;
                }
                if summary.messages == 0 {
                    quoting = self.quoting(&mut source)?;
                }
            }
        } else {
            summary = self.message_to(&mut source, kind, (target, whole), &mut sink)?;
        }
        let end = self.end_of_source(&source, &mut summary);
        let SourceEnd {
            has_inner,
            lacks_mail,
            damage,
            ..
        } = end;
        if let Some(read) = read {
            read.check(name)?;
        }
        let is_result = summary.messages > 0 || damage.is_none() && !has_inner && !lacks_mail;
        if let (Some(_), Some(target), true) = (&index, target, is_result) {
            // The index appears before the mbox: a run that is stopped in between writes both again.
            self.copy_index(target, &unpoisoned(changes.into_inner()))?;
        }
        if is_result {
            // The mboxes of an archive are only a part of its results, so the record does not say that the whole source
            // was converted.
            let part = if has_inner && self.nest(&mut sink)? {
                ResultPart::Nested
            } else {
                ResultPart::Whole
            };
            let record = self.record(name, read, part).map(|record| JournalRecord {
                is_damaged: damage.is_some() || lacks_mail || summary.damaged > 0,
                ..record
            });
            if !record.as_ref().is_some_and(JournalRecord::is_made) {
                sink.appear(original, kind, record.as_ref())?;
            }
        }
        self.report_source(end, &mut summary);
        Ok(summary)
    }

    /// Returns what is known about a source after its last message.
    fn end_of_source<'s>(&self, source: &'s InputSource, summary: &mut Summary) -> SourceEnd<'s> {
        let empty_files = std::mem::take(&mut summary.skipped_files);
        let mut skipped = source.skipped();
        let has_inner = self.keep_inner(&mut skipped, summary);
        // A directory can contain archives without mail, such as archives of pictures. Only an archive that is named as the
        // source must contain mail, unless other sources can be the volumes of the same export that contain the mail.
        let lacks_mail = source.damage().is_some_and(|damage| damage.is_without_mail);
        let is_accepted = lacks_mail && (self.is_within || self.options.may_lack_mail);
        let damage = source.damage().filter(|_| !is_accepted);
        if is_accepted && !self.is_within && !has_inner {
            summary.without_mail = 1;
            summary.mailboxes = 0;
        }
        if let Some(packed) = source.packed() {
            self.observer.advance(packed.rest(), 0);
        }
        SourceEnd {
            empty_files,
            skipped,
            has_inner,
            lacks_mail,
            damage,
        }
    }

    /// Reports the end of a source, and completes its counts.
    fn report_source(&self, end: SourceEnd<'_>, summary: &mut Summary) {
        if let Some(damage) = end.damage {
            self.damaged(damage, summary);
        }
        if summary.without_mail > 0 {
            self.observer
                .noted(self.path, "this archive contains no mail");
        }
        // Skipped files are reported one by one below, so the counts that are reported here do not contain them.
        self.observer.done(summary);
        summary.skipped_files += end.empty_files;
        let skipped = end.skipped;
        summary.files.add(&skipped.files);
        skipped.lost.report(self.observer);
        for (member, what) in skipped.named {
            summary.skipped_files += 1;
            self.observer
                .skipped(&self.path.join(member.trim_start_matches('/')), what);
        }
        for (what, count) in skipped.others {
            summary.skipped_files += count;
            self.observer.skipped_others(self.path, what, count);
        }
    }

    /// Reports the end of a source that was only read.
    ///
    /// # Errors
    /// Returns [`Error::Changed`] if the file changed since `before`.
    pub(crate) fn end_of_open(
        &self,
        source: &InputSource,
        before: Option<&FileIdentity>,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        let end = self.end_of_source(source, summary);
        if let Some(before) = before {
            before.check(self.path)?;
        }
        self.report_source(end, summary);
        Ok(())
    }

    /// Writes the index of imap-backup for the copy of an mbox, so that the copy keeps the flags.
    fn copy_index(&self, target: &Path, changes: &[LengthChange]) -> Result<(), Error> {
        let is_copy = self.options.mode.writes() && self.options.range.is_none();
        let copy = imap_backup::index_of_copy(self.path, target, changes);
        let Some((path, copy, content)) = copy.filter(|_| is_copy) else {
            return Ok(());
        };
        let file = File::open(&path).map_err(cannot_read(&path))?;
        let beside = AtomicWriter::of(&content, folder_of(&copy), &copy, None)?;
        let read = FileIdentity::of(&file.metadata().map_err(cannot_read(&path))?);
        let record = self.record(&path, Some(&read), ResultPart::Whole);
        beside
            .finished(&file, NewFile::Copy)?
            .appear_as(record.as_ref(), false)
    }

    /// Returns the state of a message that Proton exported. A file with the state that cannot be read is reported.
    pub(crate) fn proton_state(&self, kind: StartKind, is_file: bool) -> Option<ProtonState> {
        if kind != StartKind::Eml || !is_file {
            return None;
        }
        ProtonState::beside(self.path).unwrap_or_else(|path| {
            let what = "flags and labels, because the file of Proton with the state of the message cannot be read";
            self.observer.unused_flags(&path, what);
            None
        })
    }

    fn sink_for<'o>(&self, output: Output<'o>, original: Option<&File>) -> Result<Sink<'o>, Error> {
        Ok(match (output, self.options.mode) {
            (_, Mode::Probe | Mode::DryRun) | (Output::Nowhere | Output::Delivery(_), _) => {
                Sink::Nowhere
            }
            (Output::Path(path) | Output::InFolder(path), _) => {
                Sink::to(path, Method::of_result(path, self.method), self.journal)?
            }
            (Output::Open(file), _) => {
                let unwritable = Error::cannot_write(OPEN_OUTPUT);
                let written = file.metadata().map_err(unwritable)?;
                let metadata = original
                    .map(File::metadata)
                    .transpose()
                    .map_err(unreadable(self.path))?;
                if written.is_file() && metadata.is_some_and(|it| replace::is_same(&it, &written)) {
                    // The output would be read again as input, so the file would grow without end.
                    let what = "standard output is the same file as the source; name a new file";
                    let named = format!("{}: {what}", self.path.display());
                    return Err(Error::Usage(named.into()));
                }
                Sink::Directly(OutputStream::of_open(file))
            }
        })
    }

    /// Copies a file in UTF-16 byte by byte, because embody does not write this encoding. The messages in the file are
    /// read all the same: if one of them would change, or cannot be decoded, the file is reported.
    fn copy_utf16(
        &self,
        source: InputSource,
        read: Option<&FileIdentity>,
        kind: StartKind,
        output: Output<'_>,
    ) -> Result<Summary, Error> {
        let name = self.path;
        let Some(file) = source.original().cloned() else {
            let what = "a stream in UTF-16 cannot be copied";
            return Err(unreadable(name)(io::Error::other(what)));
        };
        let unheard = MailboxJob {
            observer: &(),
            ..*self
        };
        let seen = unheard.open_to(source, None, kind, Output::Nowhere)?;
        let mut sink = self.sink_for(output, Some(&file))?;
        let mut source = InputSource::file(&file);
        let mut piece = vec![0; WINDOW];
        let mut length = 0;
        loop {
            self.stop.check()?;
            match source.fill(&mut piece).map_err(in_full(name))? {
                0 => break,
                filled => {
                    sink.keep(&piece[..filled])?;
                    length += filled as u64;
                }
            }
        }
        if let Some(read) = read {
            read.check(name)?;
        }
        let damaged = u64::from(seen.damaged + seen.changed > 0);
        let complete = self.record(name, read, ResultPart::Whole);
        let record = complete.map(|record| JournalRecord {
            is_damaged: damaged > 0,
            ..record
        });
        if !record.as_ref().is_some_and(JournalRecord::is_made) {
            sink.appear(Some(&file), kind, record.as_ref())?;
        }
        let summary = Summary {
            damaged,
            mailboxes: 1,
            messages: seen.messages,
            bytes_in: length,
            bytes_out: length,
            ..Summary::default()
        };
        if seen.damaged > 0 {
            let what = "the file is in UTF-16 and cannot be decoded exactly; the file was copied without a change";
            self.observer.damaged(name, &what.into());
        } else if seen.changed > 0 {
            let what = Detail::from(LEFT_AS_UTF16).naming(Setting::OutputFormat);
            self.observer.damaged(name, &what);
        }
        self.observer.advance(length, seen.messages);
        self.observer.done(&summary);
        Ok(summary)
    }

    /// Converts a single message. `target` is the name of the result. Apple Mail stores a message without its
    /// attachments as `N.partial.emlx`. If such a message becomes complete, the result gets the name `whole` instead.
    fn message_to(
        &self,
        source: &mut InputSource,
        kind: StartKind,
        (target, whole): (Option<&Path>, Option<PathBuf>),
        sink: &mut Sink<'_>,
    ) -> Result<Summary, Error> {
        let is_read_alone = matches!(sink, Sink::Nowhere);
        let SingleMessage {
            content,
            octets,
            kept,
            missing,
            _alone,
        } = match self.source_message(source, kind, is_read_alone)? {
            SourceMessage::Whole(read) => read,
            SourceMessage::Unread(summary) => return Ok(summary),
            SourceMessage::Empty => {
                // The empty file is still copied.
                sink.put(b"")?;
                return Ok(self.without_message());
            }
            SourceMessage::TooLarge(start) => {
                return self.oversized_source(source, start, &mut |bytes| sink.keep(bytes));
            }
        };
        let (mut summary, done) = self.message_of(&content)?;
        let is_of_outlook = kept.is_some();
        if is_of_outlook {
            summary.bytes_in = octets;
        }
        let new = done.as_ref().and_then(|done| done.new.as_deref());
        let result = forms::as_named(new.unwrap_or(&content), target);
        sink.put(result)?;
        let is_whole = |new| emlx::is_partial(&content) && !emlx::is_partial(new);
        if let (Sink::Beside(beside), Some(whole)) = (sink, whole)
            && new.is_some_and(is_whole)
        {
            beside.target = whole;
        }
        if let Some(done) = done {
            done.tell(self.observer);
        }
        if !is_of_outlook {
            self.report_appended_to_file(&content, &mut summary);
        }
        self.report_missing(missing, &mut summary);
        Ok(summary)
    }

    /// Reports the parts of a message of Outlook that could not be read.
    pub(crate) fn report_missing(&self, missing: Vec<String>, summary: &mut Summary) {
        summary.damaged += u64::from(!missing.is_empty());
        for what in missing {
            self.observer.damaged(self.path, &what.into());
        }
    }

    /// Reads the single message of an open source. Outlook's files become mail. If `has_line_feeds` is true, lines that end
    /// with CR alone end with LF instead.
    pub(crate) fn source_message(
        &self,
        source: &mut InputSource,
        kind: StartKind,
        has_line_feeds: bool,
    ) -> Result<SourceMessage<'_>, Error> {
        let most = self.options.max_message;
        let metadata = source.as_file().and_then(|file| file.metadata().ok());
        let length = metadata.map_or(0, |metadata| metadata.len());
        let length = usize::try_from(length).unwrap_or(0);
        let mut content = Vec::with_capacity(length.min(most).saturating_add(1));
        let mut alone = None;
        for most in [self.most_in_parallel(source.packed().is_some()), most] {
            let within = most.saturating_add(1).saturating_sub(content.len()) as u64;
            let read = source.take(within).read_to_end(&mut content);
            read.map_err(in_full(self.path))?;
            if content.len() <= most || most == self.options.max_message {
                break;
            }
            alone = self.alone();
        }
        if content.len() > most {
            return Ok(SourceMessage::TooLarge(content));
        }
        if source.damage().is_some_and(|damage| !damage.whole) {
            let summary = Summary::of(|sum| sum.mailboxes = 1);
            return Ok(SourceMessage::Unread(summary));
        }
        if content.is_empty() {
            return Ok(SourceMessage::Empty);
        }
        let mail = match kind {
            StartKind::Msg => {
                let mail = outlook::message(&content).map_err(io::Error::other);
                Some(mail.map_err(unreadable(self.path))?)
            }
            _ => None,
        };
        // The start of a file shows this only if its first article is short.
        if prologue::is_news_batch(&content) {
            let error = NotMail::NEWS_BATCH.name();
            return Err(unreadable(self.path)(io::Error::other(error)));
        }
        let octets = content.len() as u64;
        if source.is_utf16() {
            match in_declared_charsets(&content) {
                Ok(Some(encoded)) => content = encoded,
                Ok(None) => {}
                Err(why) => {
                    let why = not_encoded(why);
                    self.observer.damaged(self.path, &why.into());
                    let summary = Summary::of(|sum| (sum.mailboxes, sum.damaged) = (1, 1));
                    return Ok(SourceMessage::Unread(summary));
                }
            }
        }
        if has_line_feeds {
            content = carriage::with_line_feeds_alone(content);
        }
        let (mut kept, mut missing) = (None, Vec::new());
        if let Some(mail) = mail {
            (content, missing) = (mail.content, mail.missing);
            kept = Some((Some(mail.flags.into()), mail.received));
        }
        Ok(SourceMessage::Whole(SingleMessage {
            content,
            octets,
            kept,
            missing,
            _alone: alone,
        }))
    }

    /// Reads the rest of a message that is too large, and passes all of its bytes to `keep`. `content` is its start.
    pub(crate) fn oversized_source(
        &self,
        source: &mut InputSource,
        mut content: Vec<u8>,
        keep: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<Summary, Error> {
        self.check_uncut()?;
        let mut length = 0;
        while !content.is_empty() {
            self.stop.check()?;
            length += content.len() as u64;
            keep(&content)?;
            content.clear();
            let read = source.take(WINDOW as u64).read_to_end(&mut content);
            read.map_err(in_full(self.path))?;
        }
        let mut summary = self.oversized(length)?;
        if source.damage().is_some_and(|damage| !damage.whole) {
            (summary.messages, summary.oversized) = (0, 0);
        }
        Ok(summary)
    }
}

/// The single message of an open source.
pub(crate) enum SourceMessage<'l> {
    Whole(SingleMessage<'l>),
    /// The counts of a source whose message cannot be read.
    Unread(Summary),
    Empty,
    /// Start of a message that is too large.
    TooLarge(Vec<u8>),
}

/// A message that was read.
pub(crate) struct SingleMessage<'l> {
    pub(crate) content: Vec<u8>,
    /// Length of the message in its own format, in bytes.
    pub(crate) octets: u64,
    /// Flags and date of a message of Outlook.
    pub(crate) kept: Option<(Option<MessageFlags>, Option<SystemTime>)>,
    /// Parts of a message of Outlook that could not be read.
    pub(crate) missing: Vec<String>,
    /// Lock that is held while a large compressed message is in memory.
    pub(crate) _alone: Option<MutexGuard<'l, ()>>,
}

/// The facts about a source that are complete only after its last message was read.
struct SourceEnd<'s> {
    /// Number of empty files with the name of a message.
    empty_files: u64,
    skipped: SkippedMember,
    /// Whether the source contains Outlook mailboxes.
    has_inner: bool,
    lacks_mail: bool,
    damage: Option<&'s CompressionDamage>,
}

pub(crate) fn kind_of_open(
    source: &mut InputSource,
    name: &Path,
    format: Format,
) -> Result<Result<StartKind, NotMail>, Error> {
    let start = source
        .start(find::LOOKED_AT as usize)
        .map_err(in_full(name))?;
    if source.damage().is_none() {
        find::check_outlook(name, &start)?;
    }
    let kind = find::as_named(find::kind_of(&start, format), (name, &start), format);
    if kind.is_err() && source.as_file().is_none() {
        // Reads ahead to find damage. If the data are damaged nearby, the damage is reported, because it explains more
        // than an unrecognised start.
        source.start(AHEAD).map_err(in_full(name))?;
    }
    let may_be_msg = matches!(format, Format::Auto | Format::Eml);
    Ok(match kind {
        _ if may_be_msg && outlook::starts_like_msg(&start) => Ok(StartKind::Msg),
        // The data are damaged, so the format of the file is unknown. The file is passed on as an mbox, because the
        // mbox reader reports the damage.
        Err(_) if source.damage().is_some() => Ok(StartKind::Mbox),
        Ok(StartKind::Archive) => Err(match source.original() {
            None => NotMail::STREAMED_ZIP,
            Some(_) => NotMail::PACKED_ZIP,
        }),
        kind => kind,
    })
}
