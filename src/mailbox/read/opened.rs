//! Reads open files: standard input, compressed files, and the mboxes of archives.

use std::fs::File;
use std::io::{Read, Write as _};
use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::mailbox::archive::{self, MemberRules, SkippedMember};
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::candidate::FormatCandidate;
use crate::mailbox::compressed::{CompressionDamage, Decoder, Method, method_of};
use crate::mailbox::event::{MailboxEvent, MailboxFact};
use crate::mailbox::failure::{cannot_write, in_full, unreadable};
use crate::mailbox::file::{PackedFile, PackedReader};
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::identity::FileIdentity;
use crate::mailbox::input::Background;
use crate::mailbox::input::source::InputSource;
use crate::mailbox::not_mail::NotMail;
use crate::mailbox::read::entry::ALL_MAIL;
#[cfg(feature = "cli")]
use crate::mailbox::read::entry::WITHOUT_PSTS;
use crate::mailbox::start::{as_named, kind_of};
use crate::mailbox::{Format, ReadOptions, Stop, Summary, find};

pub(crate) const WINDOW: usize = 1 << 20;

/// Number of bytes that are read ahead to find damaged data if the start of a file does not look like mail.
const AHEAD: usize = 4 << 20;

impl InputSource {
    /// Opens a mail file, which may be compressed or an archive. The mail in an archive is the content of its mboxes,
    /// one after the other. Its Outlook mailboxes are copied and returned with the skipped members.
    pub(crate) fn named(
        file: File,
        name: &Path,
        options: &ReadOptions,
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
        options: &ReadOptions,
        stop: &Stop,
    ) -> Result<Self, Error> {
        Self::judged_by(WITHOUT_PSTS, file, name, options, stop)
    }

    fn judged_by(
        rules: MemberRules,
        file: File,
        name: &Path,
        options: &ReadOptions,
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
    pub(crate) fn open(&self) -> Result<(File, FileIdentity), Error> {
        let file = File::open(self.path).map_err(unreadable(self.path))?;
        let before = file.metadata().map_err(unreadable(self.path))?;
        Ok((file, FileIdentity::of(&before)))
    }

    /// Opens a source whose kind is known. Also returns the identity of the file before it was read, and the kind of the mail
    /// in an archive.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read, or if it contains no mail.
    pub(crate) fn open_source(
        &self,
        kind: StartKind,
    ) -> Result<(InputSource, FileIdentity, StartKind), Error> {
        let (file, before) = self.open()?;
        if kind != StartKind::Archive && self.method.is_none() {
            return Ok((InputSource::file(&Arc::new(file)), before, kind));
        }
        let mut source = InputSource::named(file, self.path, &self.options.read, self.stop)?;
        let kind = match kind {
            StartKind::Archive => kind_of_open(&mut source, self.path, self.options.read.format)?
                .map_err(|other| other.error(self.path))?,
            kind => kind,
        };
        Ok((source, before, kind))
    }

    /// Decompresses a file to an unnamed temporary file. Returns the damage as the inner error if the data are damaged.
    pub(crate) fn expanded(
        &self,
        method: Method,
        file: &Arc<File>,
    ) -> Result<Result<File, CompressionDamage>, Error> {
        let reader = PackedReader::new(&PackedFile::new(file, self.stop));
        let mut decoder = Decoder::new(method, reader, self.options.read.max_expanded);
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

    pub(crate) fn damaged(&self, damage: &CompressionDamage, summary: &mut Summary) {
        summary.damaged += 1;
        let read = match summary.messages {
            0 => "no message was read".to_owned(),
            1 => "1 message was read".to_owned(),
            messages => format!("{messages} messages were read"),
        };
        let left = damage.left(summary.messages);
        let why = damage.detail().then(format!("; {read}{left}"));
        self.observer.event(MailboxEvent::damaged(self.path, why));
    }

    pub(crate) fn all_damaged(&self, damage: &CompressionDamage) -> Summary {
        let mut summary = Summary::of(|sum| sum.mailboxes = 1);
        self.damaged(damage, &mut summary);
        summary
    }

    /// Returns what is known about a source after its last message.
    pub(crate) fn end_of_source<'s>(
        &self,
        source: &'s InputSource,
        summary: &mut Summary,
    ) -> SourceEnd<'s> {
        let empty_files = std::mem::take(&mut summary.skipped_files);
        let mut skipped = source.skipped();
        let has_inner = self.keep_inner(&mut skipped, summary);
        // A directory can contain archives without mail, such as archives of pictures. Only an archive that is named as the
        // source must contain mail, unless other sources can be the volumes of the same export that contain the mail.
        let lacks_mail = source.damage().is_some_and(|damage| damage.is_without_mail);
        let is_accepted = lacks_mail && (self.is_within || self.options.read.may_lack_mail);
        let damage = source.damage().filter(|_| !is_accepted);
        if is_accepted && !self.is_within && !has_inner {
            summary.without_mail = 1;
            summary.mailboxes = 0;
        }
        if let Some(packed) = source.packed() {
            self.observer.event(MailboxEvent::Advance(packed.rest(), 0));
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
    pub(crate) fn report_source(&self, end: SourceEnd<'_>, summary: &mut Summary) {
        if let Some(damage) = end.damage {
            self.damaged(damage, summary);
        }
        if summary.without_mail > 0 {
            self.observer.event(
                MailboxFact::Noted(
                    self.path.to_owned(),
                    "this archive contains no mail".to_owned(),
                )
                .into(),
            );
        }
        summary.prologues += end.skipped.prologues;
        // Skipped files are reported one by one below, so the counts that are reported here do not contain them.
        self.observer.event(MailboxEvent::done(summary));
        summary.skipped_files += end.empty_files;
        let skipped = end.skipped;
        summary.files.add(&skipped.files);
        skipped.lost.report(self.observer);
        for (member, what) in skipped.named {
            summary.skipped_files += 1;
            self.observer.event(
                MailboxFact::Skipped(self.path.join(member.trim_start_matches('/')), what).into(),
            );
        }
        for (what, count) in skipped.others {
            summary.skipped_files += count;
            self.observer
                .event(MailboxFact::SkippedOthers(self.path.to_owned(), what, count).into());
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
}

/// The facts about a source that are complete only after its last message was read.
pub(crate) struct SourceEnd<'s> {
    /// Number of empty files with the name of a message.
    pub(crate) empty_files: u64,
    pub(crate) skipped: SkippedMember,
    /// Whether the source contains Outlook mailboxes.
    pub(crate) has_inner: bool,
    pub(crate) lacks_mail: bool,
    pub(crate) damage: Option<&'s CompressionDamage>,
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
    let by_start = kind_of(&start, format, FormatCandidate::Stream(name));
    let kind = as_named(by_start, (name, &start), format);
    if kind.is_err() && source.as_file().is_none() {
        // Reads ahead to find damage. If the data are damaged nearby, the damage is reported, because it explains more
        // than an unrecognised start.
        source.start(AHEAD).map_err(in_full(name))?;
    }
    Ok(match kind {
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
