//! `embody filter`: reads one message and writes one message. No output is written before it is complete.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGABRT;

use super::args::{FilterArgs, OutputVolume, ProgressOption, SayingArgs};
use super::cache::{Cache, Process};
use super::copies::CopyMailboxes;
use super::exit::{ProgramStatus, heeded, limits_on_files_are_failed_writes};
use super::named_files::NamedFiles;
use super::origin::{RunOrigin, RunStart};
use super::picture_watch::PictureWatch;
use super::report_file::{self, ReportFile};
use super::streams::{self, Input, is_standard, shown_source, standard, write_error};
use super::survey::doubtful_notes;
use super::verb::{ExpandRun, VerbReport};
use super::{say, wording};
use crate::engine::lengths::Lengths;
use crate::engine::policy::{Follow, Policy, UnfollowedKinds};
use crate::engine::protection::opaque_details;
use crate::engine::report::{Reason, Report, Row};
use crate::engine::{Mark, Mode, Prefilter};
use crate::error::Error;
use crate::expand::Expander;
use crate::mailbox::find::{NotMail, StartKind, look_at};
use crate::mailbox::{
    Format, Message, Quoting, ReadOptions, Stop, Transform, as_mail, holds_mailbox, is_mailbox,
    starts_like_msg,
};
use crate::mime::scan;

pub(super) fn run(
    args: &FilterArgs,
    command: &'static str,
    mailboxes: &'static str,
) -> Result<(), Error> {
    let common = &args.common;
    let job = FilterRun {
        names_unfollowed: true,
        ..FilterRun::begin(&common.saying, args.file.as_deref(), command, mailboxes)?
    };
    let cache = Cache::of(&common.policy, Mode::Run, None)?;
    let policy = args.policy();
    let pictures = if common.saying.volume() >= OutputVolume::Verbose {
        PictureWatch::of_verbose_run(&policy)
    } else {
        PictureWatch::of(&policy)
    };
    // Default options include the number of processors, which takes twenty system calls to find out. The filter is
    // started for each message, so the options are created only if they are needed.
    let copies = if policy.copies.is_empty() {
        CopyMailboxes::default()
    } else {
        let options = ReadOptions::default();
        CopyMailboxes::read(&policy, &options, ProgressOption::Never, &Stop::default())?
    };
    let expander = Expander::builder(policy)
        .mark(common.mark)
        .fetch_with(|policy| {
            let fetcher = cache.fetcher(policy, Process::Run, &Stop::default())?;
            Ok(copies.before(policy, fetcher))
        })?
        .build()?;
    let expanding = ExpandRun {
        expander,
        mode: Mode::Run,
        lengths: Lengths::Corrected,
        recorder: cache.recorder.clone(),
        tells_rows: true,
        pictures,
    };
    let expander = &expanding.expander;
    let (prefilter, policy) = (expander.prefilter(), expander.policy());
    job.run(&expanding, prefilter, policy, common.mark)?;
    if expanding.pictures.has_met() && common.saying.volume() >= OutputVolume::Normal {
        say::tell(PictureWatch::delivery_notice(policy));
    }
    cache.tell_trouble(common.saying.volume());
    cache.tell_record();
    Ok(())
}

/// The run that processes one message and writes it to standard output.
///
/// If a signal stops the process, or if exhausted memory or stack aborts it, the exit status is "try again". A mail
/// system could otherwise take the signal for a permanent error of this mail. After the mail was written, the exit
/// status is success even then.
pub(super) struct FilterRun<'j> {
    file: Option<&'j Path>,
    saying: &'j SayingArgs,
    command: &'static str,
    mailboxes: &'static str,
    start: Option<RunStart>,
    is_pending: Arc<AtomicBool>,
    is_out: Arc<AtomicBool>,
    /// The directory of `detach --files`.
    files: Option<&'j NamedFiles>,
    /// Whether a verbose run names the references that the options do not include.
    names_unfollowed: bool,
}

/// Returns lines about the references that the options do not include, about links in plain texts to files in cloud storage,
/// and about notes of Mailman with the hash of another mail, if the run follows notes of Mailman.
fn unfollowed(message: &[u8], report: &Report, policy: &Policy) -> Vec<String> {
    let policy = Policy {
        unfollowed: UnfollowedKinds::All,
        ..policy.clone()
    };
    // The settings were checked when the expander of the run was built.
    let Ok(expander) = Expander::new(policy) else {
        return Vec::new();
    };
    let tree = scan(message, &expander.policy().limits.scan());
    // The rows of the run also have the name of the mail, so whole rows are never equal.
    let is_same = |old: &Row, row: &Row| {
        (&old.part, old.kind, &old.url, old.reason) == (&row.part, row.kind, &row.url, row.reason)
    };
    let is_new = |row: &Row| {
        row.reason == Some(Reason::NotFollowed) && !report.rows.iter().any(|old| is_same(old, row))
    };
    let forecast = expander.forecast(message, "");
    let rows: Vec<Row> = forecast.rows.into_iter().filter(is_new).collect();
    let links = expander.cloud_links_in_texts(&tree);
    let of_texts = links.iter().map(|(part, link)| {
        let number = tree.number(*part);
        format!("part {number}: {}", say::text_link(link))
    });
    let follows_notes = expander.policy().follow.contains(Follow::Mailman);
    let doubtful = follows_notes.then(|| expander.notes_without_proof(&tree) as u64);
    let of_notes = doubtful.filter(|count| *count > 0).map(doubtful_notes);
    let of_rows = say::lines(&rows, expander.policy(), OutputVolume::Verbose);
    of_rows
        .into_iter()
        .chain(of_texts)
        .chain(of_notes)
        .collect()
}

impl<'j> FilterRun<'j> {
    /// Sets the exit statuses for signals, and checks the path of the report, before any file is opened or created. A
    /// signal therefore leaves nothing to clean up: temporary files of the mail have no name, and a later run removes
    /// the temporary files of a store.
    pub(super) fn begin(
        saying: &'j SayingArgs,
        file: Option<&'j Path>,
        command: &'static str,
        mailboxes: &'static str,
    ) -> Result<Self, Error> {
        let job = Self {
            file,
            saying,
            command,
            mailboxes,
            start: saying.report.as_ref().map(|_| RunStart::now(None)),
            is_pending: Arc::new(AtomicBool::new(true)),
            is_out: Arc::new(AtomicBool::new(false)),
            files: None,
            names_unfollowed: false,
        };
        let statuses = [
            (ProgramStatus::TryAgain, &job.is_pending),
            (ProgramStatus::Success, &job.is_out),
        ];
        for signal in heeded().chain([SIGABRT]) {
            for (status, holds) in statuses {
                // If the handler of a signal cannot be set, the signal simply ends the process. The mail system then
                // still has the mail.
                let _ = signal_hook::flag::register_conditional_shutdown(
                    signal,
                    i32::from(status.code()),
                    Arc::clone(holds),
                );
            }
        }
        limits_on_files_are_failed_writes();
        let sources = [file.unwrap_or(standard())];
        report_file::check(saying.report.as_deref(), &sources, &[standard()])?;
        Ok(job)
    }

    pub(super) fn with_files(self, files: Option<&'j NamedFiles>) -> Self {
        Self { files, ..self }
    }

    fn mail_is_out(&self) {
        self.is_out.store(true, Ordering::SeqCst);
        self.is_pending.store(false, Ordering::SeqCst);
    }

    pub(super) fn run(
        &self,
        transform: &dyn Transform<VerbReport>,
        prefilter: &Prefilter,
        policy: &Policy,
        mark: Mark,
    ) -> Result<(), Error> {
        let mut output = streams::output()?;
        let file = self.file.filter(|path| !is_standard(path));
        // A mailbox on standard input is passed on unchanged. If it were refused like a FILE, a sender could write a line
        // that looks like the start of a second message, and the mail would be delayed.
        let named = file.filter(|path| {
            *path != Path::new("/dev/stdin") && fs::metadata(path).is_ok_and(|data| data.is_file())
        });
        if let Some(path) = named {
            self.refuse_mailbox(path)?;
        }
        if let Some(path) = file.filter(|path| path.is_dir()) {
            return Err(self.refusal(path, "a directory"));
        }
        let input = match file {
            Some(path) => {
                let failed = Error::cannot_read(path.display());
                #[cfg(all(unix, feature = "imap"))]
                super::remote::check_file(path)?;
                Input::read(File::open(path).map_err(&failed)?, prefilter).map_err(failed)?
            }
            None => Input::read(streams::input()?, prefilter).map_err(streams::read_error)?,
        };
        let is_mailbox = match &input {
            Input::Message(message, _) => is_mailbox(message),
            Input::Untouched(spooled) => {
                holds_mailbox(spooled).map_err(Error::cannot_read("the temporary file"))?
            }
        };
        if let Some(path) = named.filter(|_| is_mailbox) {
            return Err(self.refusal(path, "a mailbox of several messages"));
        }
        let message = match input {
            Input::Message(message, _) if is_mailbox => {
                output
                    .write_all(&message)
                    .and_then(|()| output.flush())
                    .map_err(write_error)?;
                self.mail_is_out();
                self.tell_mailbox();
                return Ok(());
            }
            Input::Message(message, trouble) => {
                let message = self.as_mail(message)?;
                if let Some(why) = trouble.filter(|_| self.saying.volume() >= OutputVolume::Normal)
                {
                    say::tell(&format!("{why}; the message is kept in memory instead"));
                }
                message
            }
            Input::Untouched(mut file) => {
                io::copy(&mut file, &mut output)
                    .and_then(|_| output.flush())
                    .map_err(write_error)?;
                self.mail_is_out();
                if is_mailbox {
                    self.tell_mailbox();
                } else if self.saying.volume() >= OutputVolume::Verbose {
                    say::tell("nothing to do");
                }
                return Ok(());
            }
        };
        let name = file.map_or_else(|| "-".to_owned(), |path| path.display().to_string());
        let (edits, mut said) = transform.transform(&Message {
            number: 1,
            source: Path::new(&name),
            content: &message,
            at: None,
            quoting: Quoting::None,
            beside: None,
        })?;
        said.name(&name);
        let mut buffered = BufWriter::with_capacity(message.len().min(64 << 10), &mut output);
        edits
            .splice(&message)
            .write_to(&mut buffered)
            .and_then(|()| buffered.flush())
            .map_err(write_error)?;
        drop(buffered);
        self.mail_is_out();
        if let Some(files) = self.files {
            files.place(&said.files);
            let (text, is_whole) = files.ended();
            if !is_whole || self.saying.volume() >= OutputVolume::Verbose {
                say::tell(&text);
            }
        }
        // The mail was written, so an error of the report must not change the exit status.
        self.report(&name, &said, &message, policy, mark);
        Ok(())
    }

    /// Says that a mailbox on standard input was passed on unchanged.
    fn tell_mailbox(&self) {
        if self.saying.volume() > OutputVolume::Quiet {
            say::tell(&format!(
                "standard input looks like a mailbox with several messages, but {} reads only one message; the mail was passed on unchanged (for a mailbox, {})",
                self.command, self.mailboxes
            ));
        }
    }

    /// Converts an Outlook message to a mail. Content that could not be converted is reported on standard error,
    /// because standard output contains only the mail.
    fn as_mail(&self, file: Vec<u8>) -> Result<Vec<u8>, Error> {
        if !starts_like_msg(&file) {
            return Ok(file);
        }
        let path = self.file.unwrap_or(standard());
        let shown = shown_source(path);
        let made = as_mail(Cow::Owned(file), path);
        let (message, missing) = made.map_err(|why| Error::Unreadable {
            path: shown.to_owned(),
            source: io::Error::other(why),
        })?;
        for what in missing {
            say::tell(&say::damaged(shown, &what));
        }
        Ok(message.into_owned())
    }

    fn report(&self, name: &str, said: &VerbReport, message: &[u8], policy: &Policy, mark: Mark) {
        let report = &said.report;
        let saying = self.saying;
        let volume = saying.volume();
        let origin = || match &said.origin {
            Some(origin) => Cow::Borrowed(origin),
            None => Cow::Owned(RunOrigin::new(name, 1, message)),
        };
        if volume >= OutputVolume::Verbose
            && let Some(described) = origin().described()
        {
            say::tell(&described);
        }
        for line in say::lines(&report.rows, policy, volume) {
            say::tell(&line);
        }
        if volume >= OutputVolume::Verbose {
            for detail in opaque_details(&scan(message, &policy.limits.scan())) {
                say::tell(&wording::detail(&detail));
            }
            if self.names_unfollowed {
                for line in unfollowed(message, report, policy) {
                    say::tell(&line);
                }
            }
            if report.rows.is_empty() {
                say::tell("nothing to do");
            } else if mark == Mark::Off {
                let mut sum = say::sum(report);
                let others = [
                    (report.detached(), "detached"),
                    (report.restored(), "restored"),
                ];
                for (count, word) in others.into_iter().filter(|(count, _)| *count > 0) {
                    sum.push_str(&format!(", {count} {word}"));
                }
                say::tell(&sum);
            }
        }
        if let (Some(path), Some(start)) = (&saying.report, &self.start) {
            let written = ReportFile::open(path).and_then(|mut file| {
                file.write(start, &origin(), wording::rows(&report.rows, Some(policy)))
            });
            if let Err(error) = written {
                say::tell(&format!(
                    "cannot write the report {}: {error}; the mail itself was passed on",
                    path.display()
                ));
            }
        }
    }

    fn refusal(&self, path: &Path, what: &str) -> Error {
        let (command, instead) = (self.command, self.mailboxes);
        Error::NotAMailbox {
            path: path.to_owned(),
            why: format!("{what}, but {command} reads only one message; {instead}").into(),
        }
    }

    /// Returns an error for a mailbox, which would otherwise be copied unchanged as if it were one message.
    fn refuse_mailbox(&self, path: &Path) -> Result<(), Error> {
        match (look_at(path, Format::Eml)?, look_at(path, Format::Auto)?) {
            (Ok((_, Some(_))) | Err(NotMail::ReadAs(..)), Ok((StartKind::Mbox, Some(_)))) => {
                Err(self.refusal(path, "a compressed mailbox"))
            }
            (_, Ok((StartKind::Archive, _))) => Err(self.refusal(path, "an archive")),
            (Ok((_, Some(method))), _) | (_, Ok((_, Some(method)))) if method.is_utf16() => {
                Err(Error::NotAMailbox {
                    path: path.to_owned(),
                    why: format!(
                        "the file is in UTF-16, which {} does not read; save it in another encoding first, or {}",
                        self.command, self.mailboxes
                    )
                    .into(),
                })
            }
            (Ok((_, Some(_))), _) | (_, Ok((_, Some(_)))) => Err(Error::NotAMailbox {
                path: path.to_owned(),
                why: format!(
                    "the file is compressed, but {} reads only uncompressed messages; decompress it first, or {}",
                    self.command, self.mailboxes
                )
                .into(),
            }),
            (Err(NotMail::ReadAs(..)), _) => Err(self.refusal(path, "a mailbox")),
            (Err(other @ NotMail::Format(..)), _) => Err(other.error(path)),
            _ => Ok(()),
        }
    }
}
