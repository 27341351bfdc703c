//! A run over whole mailboxes, for all commands that change mail: reads the sources, and writes the results to a new
//! mailbox or in place.

mod check;
mod end;

use std::cell::OnceCell;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::args::{OutputVolume, ProgressOption, ResumeArgs, SayingArgs, WalkArgs};
use super::cache::Resume;
use super::exit::{ProgramStatus, Signals, limits_on_files_are_failed_writes};
use super::named_files::NamedFiles;
use super::origin::{OriginRange, RunStart};
use super::outcomes::Task;
use super::progress::Display;
#[cfg(all(unix, feature = "imap"))]
use super::remote;
use super::report_file::ReportFile;
use super::reporter::{Reporter, ReporterCounts};
use super::say;
use super::streams::{self, is_folder, is_standard, stream};
use super::summary::RunSummary;
#[cfg(all(unix, feature = "imap"))]
use super::survey::in_units;
use super::survey::{RepeatedLinks, RunContext, run_page, write_page};
use super::targets;
use super::thumbnail::ThumbnailChoice;
use super::totals::Totals;
use super::verb::VerbReport;
use crate::engine::Mode;
use crate::engine::policy::{Limits, Policy, UnfollowedKinds};
use crate::error::Error;
use crate::fetch::store::{Mail, Store, User};
#[cfg(all(unix, feature = "imap"))]
use crate::imap::{
    account::Account, candidates::Candidates, download::Download, in_place::InPlace,
};
use crate::mailbox::find::StartKind;
use crate::mailbox::{
    Conversion, FileCounts, InputSource, LockWaits, Options, ResultJournal, Source, Summary,
    Transform, folder_of,
};
use crate::platform::Stream;

/// A run over mailboxes, with the options of its command.
pub(super) struct Walk<'w> {
    pub(super) sources: Vec<PathBuf>,
    pub(super) args: &'w WalkArgs,
    pub(super) output: Option<&'w Path>,
    pub(super) saying: &'w SayingArgs,
    pub(super) options: Options,
    pub(super) mode: Mode,
    #[cfg(all(unix, feature = "imap"))]
    pub(super) candidates: Candidates,
    /// Store with detached attachments. A replacement on a server that an earlier run left unfinished is completed only
    /// if the store contains the attachments.
    #[cfg(all(unix, feature = "imap"))]
    pub(super) objects: Option<Arc<dyn Store>>,
    pub(super) word: &'static str,
    pub(super) task: Task,
    pub(super) policy: &'w Policy,
    /// Whether the exit status is 1 if no file was found in the directories of `--attachments`.
    pub(super) needs_attachments: bool,
    /// Directory for attachments that the run writes as files. The files are named in the order of the mails.
    pub(super) files: Option<Arc<NamedFiles>>,
    /// Selects the picture on the page of `--html`.
    pub(super) thumbnail: ThumbnailChoice,
    pub(super) signals: Signals,
    /// Contents of the sources and paths of the results. They are determined on demand.
    pub(super) known: WalkSources,
    /// Time that the run has waited for locks of other programs.
    pub(super) lock_waits: LockWaits,
}

/// The messages that a run searched, for statements about all mail of the sources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SearchedMail {
    All,
    /// All messages except those that are larger than the limit of a message.
    ExceptLarge,
    /// The run failed, or some mail could not be read.
    Unknown,
}

#[derive(Default)]
pub(super) struct WalkSources {
    sources: OnceCell<Vec<Source>>,
    targets: OnceCell<Vec<PathBuf>>,
}

impl Walk<'_> {
    /// Sets the store with detached attachments.
    #[cfg(all(unix, feature = "imap"))]
    pub(super) fn with_objects(self, objects: Option<Arc<dyn Store>>) -> Self {
        Self { objects, ..self }
    }

    /// Returns the run unchanged: without IMAP accounts, no run needs the store.
    #[cfg(not(all(unix, feature = "imap")))]
    pub(super) fn with_objects(self, _: Option<Arc<dyn Store>>) -> Self {
        self
    }

    /// Returns the progress display for reading the mailboxes of `--copies`.
    pub(super) fn copies_progress(&self) -> ProgressOption {
        match self.saying.volume() {
            OutputVolume::Quiet => ProgressOption::Never,
            _ => self.args.progress,
        }
    }

    /// Opens the resume directory next to the output, in which the run keeps its journal and its responses. Returns
    /// `None` if the output is not a file or directory, so that nothing can be resumed. `more` contains the options
    /// that determine the result but are neither in the policy nor in the options of the run.
    pub(super) fn resume(
        &self,
        args: &ResumeArgs,
        is_offline: bool,
        more: &str,
    ) -> Result<Option<Resume>, Error> {
        let is_wanted = self.options.writes && !args.no_resume;
        let Some(output) = self.output.filter(|_| is_wanted) else {
            return Ok(None);
        };
        let keeps_responses = self.retrieves_http() && !is_offline;
        if !keeps_responses && !self.sources.iter().any(|source| has_results(source)) {
            return Ok(None);
        }
        // Space that the output may need, in bytes. The kept responses must leave this space free on the disk.
        let leaves = keeps_responses.then(|| self.sizes(true));
        let command = self.command(output, (is_offline, more));
        Resume::beside(output, &command, leaves, self.saying.volume())
    }

    /// Returns a text that identifies the command: it contains everything that determines the results, except the
    /// content of the sources. Limits on time and on parallel requests are not included.
    fn command(&self, output: &Path, more: (bool, &str)) -> String {
        let limits = Limits::default();
        let (timeout, deadline, in_flight) = (limits.timeout, limits.deadline, limits.in_flight);
        let policy = Policy {
            unfollowed: UnfollowedKinds::None,
            limits: Limits {
                timeout,
                deadline,
                in_flight,
                ..self.policy.limits.clone()
            },
            ..self.policy.clone()
        };
        let options = &self.options;
        let variant = (options.mbox_variant, options.skip_deleted);
        let forms = (
            options.read.format,
            options.output_format,
            variant,
            options.by_label,
        );
        let range = (
            &options.read.range,
            options.read.length,
            options.read.modified,
        );
        let limits = (
            options.read.max_message,
            options.read.max_expanded,
            options.read.quoting,
        );
        let version = env!("CARGO_PKG_VERSION");
        let places = (&self.sources, output);
        format!("{version} {places:?} {forms:?} {range:?} {limits:?} {more:?} {policy:?}")
    }

    pub(super) fn run(
        &self,
        transform: &dyn Transform<VerbReport>,
        store: Option<&dyn Store>,
        resume: Option<&Resume>,
        more: impl FnOnce(&Totals, SearchedMail) -> String,
    ) -> Result<ProgramStatus, Error> {
        let start = Instant::now();
        // The sizes are determined now, because the sources are closed before the end of the run.
        let planned = self.plans_pictures().then(|| self.sizes(true));
        limits_on_files_are_failed_writes();
        let (sources, targets) = (self.known_sources(), self.targets()?);
        if let Some(output) = self.output {
            let is_directory = self.sources.len() > 1 || self.options.output_format.is_tree();
            make_room(output, is_directory, self.mode)?;
        }
        let range = self.options.read.range.as_ref();
        let started =
            RunStart::now(range.and_then(|range| OriginRange::of(range, self.sources.first()?)));
        let reporter = self.reporter(&started)?;
        let mut status = ProgramStatus::Success;
        let (mut has_done_some, mut has_left_some) = (false, false);
        let mut without_mail = Vec::new();
        let mut files = FileCounts::default();
        for (index, source) in sources.iter().enumerate() {
            let target = targets.get(index).map(PathBuf::as_path);
            let place = target.unwrap_or(source.path());
            if let Some(store) = store {
                store.puts_from(User::this(if is_standard(place) {
                    Mail::Filtered
                } else {
                    Mail::At(whole(place))
                }));
            }
            let journal = resume.map(|resume| &resume.journal);
            let converted = self.convert_source((source, target), transform, &reporter, journal);
            source.close();
            match converted {
                Ok(summary) => {
                    has_done_some = true;
                    files.add(&summary.files);
                    if summary.without_mail > 0 {
                        without_mail.push(index);
                    }
                    if summary.damaged + summary.moved > 0 {
                        status = ProgramStatus::Trouble;
                    }
                }
                Err(Error::Interrupted) => {
                    has_left_some = true;
                    status = self.signals.status();
                    break;
                }
                Err(error) => {
                    // After an error, the kept responses are not deleted, and the user is advised to run the same
                    // command again. This is pointless for a source that is not a mailbox.
                    has_left_some |= !matches!(error, Error::NotAMailbox { .. });
                    reporter.display.say(&say::error(&error));
                    status = ProgramStatus::of_error(&error);
                    if status == ProgramStatus::Usage {
                        break;
                    }
                }
            }
        }
        if !sources.is_empty() && without_mail.len() == sources.len() {
            reporter.display.say(say::NO_MAIL);
            status = ProgramStatus::Trouble;
        }
        if let Some(resume) = resume.filter(|_| has_done_some && !has_left_some) {
            resume.is_whole.set(true);
        }
        let mut tally = reporter.run_tally();
        let (mut summary, counts, failure) = reporter.finish();
        tally.settle(counts.outcomes.has_no_response());
        // The observer has the counts of each mailbox, but only the run knows the files that are not mailboxes.
        summary.files = files;
        let arguments: Vec<OsString> = std::env::args_os().collect();
        let verb = arguments.get(1).and_then(|verb| verb.to_str());
        let proofs = match status {
            ProgramStatus::Success if !counts.outcomes.has_no_response() => {
                self.proofs(&summary, (targets, &without_mail))
            }
            _ => Vec::new(),
        };
        let context = RunContext {
            verb: verb.unwrap_or("convert"),
            sources: &self.sources,
            output: self.output,
            repeated: RepeatedLinks::of_run(&arguments),
            start: &started.time,
            is_stopped: matches!(status, ProgramStatus::Stopped(_)),
            proofs: &proofs,
            thumbnail: self.thumbnail.url(),
        };
        let again = self.again(&context);
        if let Some(file) = &self.args.html {
            let page = run_page(&tally, &summary, &context);
            if let Err(error) = write_page(file, &page) {
                say::tell(&say::error(&error));
                if status == ProgramStatus::Success {
                    status = ProgramStatus::Trouble;
                }
            }
        }
        if matches!(status, ProgramStatus::Stopped(_)) {
            say::tell(&self.stopped(&summary));
        }
        // If no source could be read, the errors were already printed, and a summary adds nothing.
        if self.saying.volume() >= OutputVolume::Normal
            && (has_done_some || summary.messages > 0 || status != ProgramStatus::Trouble)
        {
            let word = match self.mode {
                Mode::Run => "",
                Mode::Probe | Mode::DryRun => self.word,
            };
            let seconds = start.elapsed().as_secs_f64();
            let plans = self.plans(&counts, planned);
            let ending = RunSummary {
                summary: &summary,
                totals: &counts,
                task: self.task,
                mode: self.mode,
                seconds,
                is_remote: self.sources.iter().all(|source| is_of_account(source)),
                again: &again,
                pictures_follow: !plans.is_empty(),
            };
            let (text, remedy) = (ending.text(), ending.remedy());
            let is_verbose = self.saying.volume() == OutputVolume::Verbose;
            let table = if is_verbose {
                counts.table(true)
            } else {
                counts.missing_and_skipped()
            };
            let names = if counts.has_left_some() && !is_verbose {
                "--verbose prints each reference; --report FILE writes each as JSON.\n"
            } else {
                ""
            };
            let missing = counts
                .missing_below(self.policy)
                .map(|line| line + "\n")
                .unwrap_or_default();
            let command = match counts.outcomes.gone() {
                count if count > 0 && self.options.writes => context.archived(),
                _ => None,
            };
            let names_archive = command.is_none() && !counts.outcomes.has_no_response();
            let advice = counts.advice(names_archive);
            let archived = command.map_or_else(String::new, |command| {
                format!("to look in a web archive for what is gone: {command}\n")
            });
            let proof: String = proofs
                .iter()
                .map(|command| format!("to check that no mail was lost: {command}\n"))
                .collect();
            let is_whole = status == ProgramStatus::Success && summary.mailboxes > 0;
            let searched = match summary.oversized {
                _ if !is_whole => SearchedMail::Unknown,
                0 => SearchedMail::All,
                _ => SearchedMail::ExceptLarge,
            };
            let more = more(&counts, searched);
            let all = format!(
                "{word}{text}{table}{missing}{plans}{more}{remedy}{advice}{names}{archived}{proof}"
            );
            say::tell(all.trim_end());
        }
        if self.needs_attachments && counts.has_found_nothing_below() {
            if self.saying.volume() < OutputVolume::Normal {
                counts
                    .missing_below(self.policy)
                    .iter()
                    .for_each(|line| say::tell(line));
            }
            if status == ProgramStatus::Success {
                status = ProgramStatus::Trouble;
            }
        }
        if let Some(failure) = counts.outcomes.store_failure(self.task, &again) {
            if self.saying.volume() < OutputVolume::Normal {
                say::tell(&failure);
            }
            if status == ProgramStatus::Success {
                status = ProgramStatus::Trouble;
            }
        }
        if counts.outcomes.has_no_response() && self.saying.volume() < OutputVolume::Normal {
            say::tell(&counts.outcomes.no_response(&again));
        }
        if status == ProgramStatus::Success && counts.outcomes.has_no_response() {
            status = ProgramStatus::Trouble;
        }
        let is_refused = self.options.writes && counts.outcomes.has_server_refusals();
        if status == ProgramStatus::Success && is_refused {
            status = ProgramStatus::Trouble;
        }
        if status == ProgramStatus::Success && failure.is_some() {
            status = ProgramStatus::Trouble;
        }
        Ok(status)
    }

    fn sizes(&self, compressed: bool) -> u64 {
        let sizes = self.known_sources().iter();
        sizes.map(|source| source.size(compressed)).sum()
    }

    /// Returns the sources of the run. Each source is examined only once.
    pub(super) fn known_sources(&self) -> &[Source] {
        let stop = &self.signals.stop;
        let known = |path: &PathBuf| {
            if has_results(path) {
                Source::new(path, &self.options.read, self.output.is_none(), stop)
            } else {
                Source::of_no_file(path)
            }
        };
        let sources = &self.known.sources;
        sources.get_or_init(|| self.sources.iter().map(known).collect())
    }

    fn reporter<'r>(&'r self, start: &'r RunStart) -> Result<Reporter<'r>, Error> {
        let volume = self.saying.volume();
        let progress = match volume {
            OutputVolume::Quiet => ProgressOption::Never,
            _ => self.args.progress,
        };
        let mut total: u64 = match progress {
            ProgressOption::Never => 0,
            // The progress bar shows bytes that are read. With `--in-place`, compressed files are decompressed first,
            // so their compressed size is not counted.
            _ => self.sizes(self.output.is_some() || self.args.dry_run),
        };
        if let Some(range) = &self.options.read.range {
            total = range.end.min(total).saturating_sub(range.start);
        }
        let report = self.saying.report.as_deref();
        let report =
            report.map(|path| ReportFile::open(path).map_err(Error::cannot_write(path.display())));
        Ok(Reporter {
            display: Display::new(progress, total),
            volume,
            says_rows: true,
            counts_remedies: volume > OutputVolume::Quiet,
            needs_rows: None,
            policy: self.policy,
            start,
            files: self.files.as_deref(),
            several: self.sources.len() > 1 || self.sources.iter().any(|source| is_folder(source)),
            counts: ReporterCounts::with_page(
                ReporterCounts::new(report.transpose()?),
                self.args.html.is_some(),
            ),
        })
    }

    fn convert_source(
        &self,
        (looked_at, target): (&Source, Option<&Path>),
        transform: &dyn Transform<VerbReport>,
        reporter: &Reporter<'_>,
        journal: Option<&ResultJournal>,
    ) -> Result<Summary, Error> {
        let (options, stop, source) = (&self.options, &self.signals.stop, looked_at.path());
        #[cfg(all(unix, feature = "imap"))]
        if let Some(account) = remote::account(source, &self.args.imap, self.policy)? {
            let Some(output) = target else {
                return self.in_account(&account, transform, reporter);
            };
            let download = Download {
                account: &account,
                output,
                options,
                transform,
                observer: reporter,
                stop,
            };
            let done = download.run();
            return done.map_err(|why| remote::error(why, &account));
        }
        let described = |conversion: Conversion<'_>| {
            let conversion = conversion
                .options(options)
                .journal(journal)
                .stop(stop)
                .lock_waits(&self.lock_waits);
            conversion.run(transform, reporter)
        };
        let Some(target) = target else {
            return described(Conversion::of_source(looked_at).in_place());
        };
        let has_folders = || looked_at.kind().is_some_and(StartKind::has_folders);
        if is_standard(target) && !is_standard(source) && (is_folder(source) || has_folders()) {
            return described(Conversion::of_source(looked_at).into_open(self.standard_output()?));
        }
        let stream = stream(source, options, stop)?;
        if stream.is_none() && !is_standard(target) {
            return described(Conversion::of_source(looked_at).to(target));
        }
        let opened = match stream {
            Some(stream) => stream,
            None => {
                let file = File::open(source).map_err(Error::cannot_read(source.display()))?;
                InputSource::named(file, source, &options.read, stop)?
            }
        };
        let conversion = Conversion::of_stream(opened, source);
        described(if is_standard(target) {
            conversion.into_open(self.standard_output()?)
        } else {
            conversion.to(target)
        })
    }

    /// Returns standard output. In a dry run, only the report is written to it, and no mail.
    fn standard_output(&self) -> Result<File, Error> {
        match self.mode {
            Mode::Run => streams::output(),
            Mode::Probe | Mode::DryRun => streams::report_output(),
        }
        .map(Stream::into_file)
    }

    #[cfg(all(unix, feature = "imap"))]
    fn in_account(
        &self,
        account: &Account,
        transform: &dyn Transform<VerbReport>,
        reporter: &Reporter<'_>,
    ) -> Result<Summary, Error> {
        let (options, replacing) = (&self.options, &self.args.replacing);
        let state = match self.mode {
            Mode::Run => replacing.state()?,
            Mode::Probe | Mode::DryRun => PathBuf::new(),
        };
        let in_place = InPlace {
            account,
            candidates: &self.candidates,
            mode: self.mode,
            trash: replacing.trash.as_deref(),
            by_replace: replacing.replace,
            state: &state,
            objects: self.objects.as_deref(),
            jobs: options.read.max_in_flight.max(options.read.jobs),
            max_message: options.read.max_message,
            transform,
            observer: reporter,
            stop: &self.signals.stop,
        };
        let done = in_place
            .run()
            .map_err(|failure| remote::error(failure, account))?;
        if reporter.volume >= OutputVolume::Normal
            && options.writes
            && let Some((before, after)) = done.quota
        {
            let more = if after > before { "more" } else { "less" };
            let (now, change) = (in_units(after), in_units(after.abs_diff(before)));
            reporter.display.say(&format!(
                "the account now uses {now} of its quota, {change} {more} than before"
            ));
        }
        Ok(done.summary)
    }

    pub(super) fn retrieves_http(&self) -> bool {
        self.policy.fetch.iter().any(|scheme| scheme.is_http())
    }

    pub(super) fn targets(&self) -> Result<&[PathBuf], Error> {
        if let Some(targets) = self.known.targets.get() {
            return Ok(targets);
        }
        let targets = match self.output {
            None => Vec::new(),
            Some(output) => targets::of(
                self.known_sources(),
                output,
                &self.options,
                &self.signals.stop,
            )?,
        };
        Ok(self.known.targets.get_or_init(|| targets))
    }
}

/// Returns whether an interrupted run can continue the results of a source. Standard input cannot be read again, and a
/// download from a server has its own record.
fn has_results(source: &Path) -> bool {
    #[cfg(all(unix, feature = "imap"))]
    if remote::is_remote(source) {
        return false;
    }
    !is_standard(source)
}

fn is_of_account(source: &Path) -> bool {
    !has_results(source) && !is_standard(source)
}

fn whole(path: &Path) -> PathBuf {
    #[cfg(all(unix, feature = "imap"))]
    if remote::is_remote(path) {
        return path.to_owned();
    }
    let there = path.canonicalize().ok();
    let beside = || Some(folder_of(path).canonicalize().ok()?.join(path.file_name()?));
    let absolute = || std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    there.or_else(beside).unwrap_or_else(absolute)
}

fn make_room(output: &Path, is_directory: bool, mode: Mode) -> Result<(), Error> {
    let failed = Error::cannot_write(output.display());
    let folder = folder_of(output);
    if !folder.is_dir() {
        let what = format!(
            "the directory {} does not exist; create it first",
            folder.display()
        );
        return Err(failed(io::Error::new(io::ErrorKind::NotFound, what)));
    }
    if !is_directory || !mode.writes() || output.is_dir() {
        return Ok(());
    }
    fs::create_dir(output).map_err(failed)
}
