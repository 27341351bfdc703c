//! `embody convert`: processes whole mailboxes, and writes the result to a new mailbox or in place.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::args::{ConvertArgs, ProgressOption, ResumeArgs, SayingArgs, Volume, WalkArgs};
use super::cache::{Cache, Process, Resume};
use super::copies::CopyMailboxes;
use super::exit::{Signals, Status, limits_on_files_are_failed_writes};
use super::origin::{Piece, Start};
use super::outcomes::Task;
use super::progress::Display;
#[cfg(all(unix, feature = "imap"))]
use super::remote;
use super::report_file::{self, ReportFile};
use super::reporter::{Counts, Reporter};
use super::say;
use super::streams::{self, is_folder, is_standard, size, stream};
use super::summary::Ending;
use super::survey::{Repeated, RunContext, check_page, in_units, quoted, run_page, write_page};
use super::targets;
use super::totals::Totals;
use super::verb::{Expanding, Said};
use crate::engine::lengths::Lengths;
use crate::engine::policy::{Policy, Trackers};
use crate::engine::{Mark, Mode};
use crate::error::Error;
use crate::expand::Expander;
use crate::fetch::store::{Mail, Store, User};
use crate::fetch::{Fetch, Fetcher};
#[cfg(all(unix, feature = "imap"))]
use crate::imap::{
    account::Account, candidates::Candidates, download::Download, in_place::InPlace,
};
use crate::mailbox::find::{Kind, look_at, not_in_place};
use crate::mailbox::{
    Conversion, Format, Options, Source, Stop, Summary, Transform, check_early, folder_of,
};
use crate::platform::free_space;

/// Maximum number of sources for which the summary contains commands that check the result. For more sources, the
/// summary would be too long with them.
const PROOFS: usize = 3;

pub(super) fn run(args: &ConvertArgs) -> Result<Status, Error> {
    let common = &args.common;
    let policy = common.policy.policy();
    let walk = Walk {
        sources: args.sources.clone(),
        args: &args.walk,
        output: args.walk.output.as_deref(),
        saying: &common.saying,
        options: args.options(&policy)?,
        #[cfg(all(unix, feature = "imap"))]
        candidates: remote::candidates(&policy, common.mark != Mark::Off),
        word: match args.mode() {
            _ if policy.fetch.is_empty() => "dry run, nothing was written: ",
            Mode::DryRun => "dry run, nothing was written or retrieved: ",
            _ => {
                "dry run, nothing was written, servers were only asked whether they have the content: "
            }
        },
        task: Task::FillIn,
        policy: &policy,
        needs_attachments: args.needs_attachments,
        signals: Signals::watch(),
    };
    walk.check()?;
    // `--embed remote` needs --fetch http or https. With `--trackers blank`, it is also useful without --fetch, because
    // trackers are replaced without network requests.
    let needs_http = policy.embed.remote && policy.embed.trackers != Trackers::Blank;
    if needs_http && !walk.retrieves_http() && args.mode().writes() {
        let what = "--embed remote retrieves pictures over http and https, but --fetch allows neither; add --fetch http,https";
        return Err(Error::Usage(what.into()));
    }
    let resume = walk.resume(&args.resume, common.policy.cache.offline, common.mark)?;
    let cache = Cache::of(&common.policy, args.mode(), resume.as_ref())?;
    cache.open_record(&args.sources, &walk.targets()?)?;
    let stop = &walk.signals.stop;
    let copies = match CopyMailboxes::read(&policy, &walk.options, walk.copies_progress(), stop) {
        Err(Error::Interrupted) => return Ok(walk.signals.status()),
        copies => copies?,
    };
    let expander = Expander::builder(policy.clone())
        .fetch_with(|policy| Ok(copies.before(policy, shared_fetcher(policy, &cache, stop)?)))?
        .mark(common.mark)
        .build()?;
    cache.read_archive(expander.policy(), &walk.signals.stop)?;
    let expanding = Expanding {
        expander,
        mode: walk.options.mode,
        lengths: Lengths::Corrected,
        recorder: cache.recorder.clone(),
        tells_rows: common.saying.tells_rows() || args.walk.html.is_some(),
    };
    let done = walk.run(&expanding, None, resume.as_ref(), String::new);
    cache.tell_trouble(common.saying.volume());
    match done {
        Ok(Status::Success) if cache.tell_record() || copies.is_damaged => Ok(Status::Trouble),
        done => done,
    }
}

pub(super) struct Walk<'w> {
    pub(super) sources: Vec<PathBuf>,
    pub(super) args: &'w WalkArgs,
    pub(super) output: Option<&'w Path>,
    pub(super) saying: &'w SayingArgs,
    pub(super) options: Options,
    #[cfg(all(unix, feature = "imap"))]
    pub(super) candidates: Candidates,
    pub(super) word: &'static str,
    pub(super) task: Task,
    pub(super) policy: &'w Policy,
    /// Whether the exit status is 1 if none of the files to which mail refers are in the directories of
    /// `--attachments`.
    pub(super) needs_attachments: bool,
    pub(super) signals: Signals,
}

impl Walk<'_> {
    /// Returns how the progress of reading the mailboxes of `--copies` is displayed.
    fn copies_progress(&self) -> ProgressOption {
        match self.saying.volume() {
            Volume::Quiet => ProgressOption::Never,
            _ => self.args.progress,
        }
    }

    /// Opens the directory of kept responses next to the output. Returns `None` if the output is not a file or
    /// directory, or if no content is retrieved over http, because only such responses are kept.
    pub(super) fn resume(
        &self,
        args: &ResumeArgs,
        is_offline: bool,
        mark: Mark,
    ) -> Result<Option<Resume>, Error> {
        let writes = self.options.mode.writes();
        let keeps = writes && !args.no_resume && !is_offline;
        let Some(output) = self.output.filter(|_| keeps && self.retrieves_http()) else {
            return Ok(None);
        };
        // Number of bytes that the output may need. The kept responses must leave this space free on the disk.
        let leaves = self.sizes(true);
        let policy = self.policy;
        let files = (&policy.attachments, &policy.copies);
        let from = (&policy.fetch, &policy.maps, files);
        let any_type = policy.accept_mismatch;
        let types = (&policy.allow_types, &policy.deny_types, any_type);
        let what = (&policy.follow, &policy.embed, policy.protected);
        let mark = (mark, policy.provenance);
        let form = (self.options.output_format, self.options.by_label, mark);
        let command = format!("{:?}", (from, types, what, policy.links, form));
        Resume::beside(output, &command, leaves, self.saying.volume())
    }

    pub(super) fn run(
        &self,
        transform: &dyn Transform<Said>,
        store: Option<&dyn Store>,
        resume: Option<&Resume>,
        more: impl FnOnce() -> String,
    ) -> Result<Status, Error> {
        let start = Instant::now();
        limits_on_files_are_failed_writes();
        let targets = self.targets()?;
        if let Some(output) = self.output {
            let is_directory =
                self.sources.len() > 1 || self.options.output_format == Format::Thunderbird;
            make_room(output, is_directory, self.options.mode)?;
        }
        let range = self.options.range.as_ref();
        let started = Start::now(range.and_then(|range| Piece::of(range, self.sources.first()?)));
        let reporter = self.reporter(&started, resume)?;
        let mut status = Status::Success;
        let (mut has_done_some, mut has_left_some) = (false, false);
        for (index, source) in self.sources.iter().enumerate() {
            let target = targets.get(index);
            let place = target.unwrap_or(source);
            if let Some(store) = store {
                store.puts_from(User::this(if is_standard(place) {
                    Mail::Filtered
                } else {
                    Mail::At(whole(place))
                }));
            }
            match self.convert_source(source, target, transform, &reporter) {
                Ok(summary) => {
                    has_done_some = true;
                    if summary.damaged + summary.moved > 0 {
                        status = Status::Trouble;
                    }
                }
                Err(Error::Interrupted) => {
                    has_left_some = true;
                    status = self.signals.status();
                    break;
                }
                Err(error) => {
                    // After an error, the kept responses are not deleted, and the user is advised to run the same
                    // command again. A source that is not a mailbox would fail again, so it does not count here.
                    has_left_some |= !matches!(error, Error::NotAMailbox { .. });
                    reporter.display.say(&say::error(&error));
                    status = Status::of_error(&error);
                    if status == Status::Usage {
                        break;
                    }
                }
            }
        }
        if let Some(resume) = resume.filter(|_| has_done_some && !has_left_some) {
            resume.is_whole.set(true);
        }
        let tally = reporter.run_tally();
        let (summary, counts, failure) = reporter.finish();
        if let Some(file) = &self.args.html {
            let arguments: Vec<OsString> = std::env::args_os().collect();
            let verb = arguments.get(1).and_then(|verb| verb.to_str());
            let context = RunContext {
                verb: verb.unwrap_or("convert"),
                sources: &self.sources,
                output: self.output,
                repeated: Repeated::of_run(&arguments),
                start: &started.time,
                is_stopped: matches!(status, Status::Stopped(_)),
            };
            let page = run_page(&tally, &summary, &context);
            if let Err(error) = write_page(file, &page) {
                say::tell(&say::error(&error));
                if status == Status::Success {
                    status = Status::Trouble;
                }
            }
        }
        if matches!(status, Status::Stopped(_)) {
            say::tell(&stopped(self.args, &self.options, &summary));
        }
        if self.saying.volume() >= Volume::Normal {
            let word = match self.options.mode {
                Mode::Run => "",
                Mode::Probe | Mode::DryRun => self.word,
            };
            let seconds = start.elapsed().as_secs_f64();
            let plans = self.plans(&counts);
            let ending = Ending {
                summary: &summary,
                totals: &counts,
                task: self.task,
                mode: self.options.mode,
                seconds,
                pictures_follow: !plans.is_empty(),
            };
            let (text, remedy) = (ending.text(), ending.remedy());
            let is_verbose = self.saying.volume() == Volume::Verbose;
            let table = if is_verbose {
                counts.table(true)
            } else {
                counts.missing_and_skipped()
            };
            let names = if counts.left > 0 && !is_verbose {
                "--verbose prints each reference; --report FILE writes each as JSON.\n"
            } else {
                ""
            };
            let missing = counts
                .missing_below(self.policy)
                .map(|line| line + "\n")
                .unwrap_or_default();
            let proof = match status {
                Status::Success => self.proof(&summary, &targets),
                _ => String::new(),
            };
            let more = more();
            let all = format!("{word}{text}{table}{missing}{plans}{more}{remedy}{names}{proof}");
            say::tell(all.trim_end());
        }
        if self.needs_attachments && counts.has_found_nothing_below() {
            if self.saying.volume() < Volume::Normal {
                counts
                    .missing_below(self.policy)
                    .iter()
                    .for_each(|line| say::tell(line));
            }
            if status == Status::Success {
                status = Status::Trouble;
            }
        }
        if counts.outcomes.has_no_response() && self.saying.volume() < Volume::Normal {
            say::tell(&counts.outcomes.no_response());
        }
        if status == Status::Success && counts.outcomes.has_no_response() {
            status = Status::Trouble;
        }
        if status == Status::Success && failure.is_some() {
            status = Status::Trouble;
        }
        Ok(status)
    }

    /// Returns the commands that check that the result contains all mail of its source.
    ///
    /// Returns an empty text if `embody compare` could not give a correct answer: for mail on a server, which needs
    /// further options; for a part of a mailbox; and if a message that is twice in the source was written only once.
    fn proof(&self, summary: &Summary, targets: &[PathBuf]) -> String {
        let options = &self.options;
        let is_other_form = options.output_format != Format::Auto || options.by_label.is_some();
        let is_whole = options.range.is_none() && summary.repeated + summary.damaged == 0;
        let is_changed = is_whole && (summary.changed > 0 || is_other_form);
        if !options.mode.writes() || options.format != Format::Auto || !is_changed {
            return String::new();
        }
        let new = |target: &'_ Path| match (options.output_format, self.output) {
            // In the format of Thunderbird, the targets are folders inside the output directory. Such a folder can
            // consist of a file and a directory, so the command names the whole output directory.
            (Format::Thunderbird, Some(output)) => output.to_owned(),
            _ => target.to_owned(),
        };
        let pairs: Option<Vec<[String; 2]>> = self
            .sources
            .iter()
            .zip(targets)
            .map(|(source, target)| {
                let is_file = self.is_named_file(source) && !is_standard(target);
                let pair = [source.clone(), new(target)];
                let [old, new] = pair.each_ref().map(|path| path.to_str());
                let has_control = |path: &str| path.chars().any(char::is_control);
                let words = [old?, new?];
                let is_plain = is_file && !words.iter().any(|it| has_control(it));
                is_plain.then(|| words.map(quoted))
            })
            .collect();
        pairs
            .filter(|pairs| (1..=PROOFS).contains(&pairs.len()))
            .unwrap_or_default()
            .into_iter()
            .map(|[old, new]| {
                format!("to check that no mail was lost: embody compare {old} {new}\n")
            })
            .collect()
    }

    /// Returns whether `compare` can compare the source with its result. It cannot compare a mailbox of Eudora, because
    /// all its messages are converted to MIME and are therefore different.
    fn is_named_file(&self, source: &Path) -> bool {
        #[cfg(all(unix, feature = "imap"))]
        if remote::is_remote(source) {
            return false;
        }
        let kind = || look_at(source, self.options.format);
        !is_standard(source)
            && (source.is_dir() || matches!(kind(), Ok(Ok((kind, _))) if kind != Kind::Eudora))
    }

    fn plans(&self, counts: &Totals) -> String {
        let embeds = self.policy.embed.is_on();
        let mut text = match self.options.mode {
            Mode::Probe | Mode::DryRun if embeds => counts.forecast.lines(self.policy, true),
            _ => String::new(),
        };
        let output = self
            .output
            .filter(|output| !is_standard(output) && !text.is_empty());
        let place = output.map(|output| {
            if output.is_dir() {
                output
            } else {
                folder_of(output)
            }
        });
        if let Some(free) = place.and_then(|place| free_space(place).ok()) {
            let [free, size] = [free, self.sizes(true)].map(in_units);
            text += &format!(
                "The sources contain {size}; the disk of the output has {free} of free space.\n"
            );
        }
        text
    }

    fn sizes(&self, compressed: bool) -> u64 {
        let stop = &self.signals.stop;
        let size = |source: &PathBuf| size(source, &self.options, stop, compressed);
        self.sources.iter().map(size).sum()
    }

    fn reporter<'r>(
        &'r self,
        start: &'r Start,
        resume: Option<&'r Resume>,
    ) -> Result<Reporter<'r>, Error> {
        let volume = self.saying.volume();
        let progress = match volume {
            Volume::Quiet => ProgressOption::Never,
            _ => self.args.progress,
        };
        let mut total: u64 = match progress {
            ProgressOption::Never => 0,
            // The progress bar shows bytes that are read. With `--in-place`, compressed files are decompressed before
            // they are read, so their compressed size is not counted.
            _ => self.sizes(self.output.is_some() || self.args.dry_run),
        };
        if let Some(range) = &self.options.range {
            total = range.end.min(total).saturating_sub(range.start);
        }
        let report = self.saying.report.as_deref();
        let report =
            report.map(|path| ReportFile::open(path).map_err(Error::cannot_write(path.display())));
        Ok(Reporter {
            display: Display::new(progress, total),
            volume,
            says_rows: true,
            needs_rows: None,
            policy: self.policy,
            start,
            made: resume.map(|resume| &resume.made),
            several: self.sources.len() > 1 || self.sources.iter().any(|source| is_folder(source)),
            counts: Counts::with_page(Counts::new(report.transpose()?), self.args.html.is_some()),
        })
    }

    fn convert_source(
        &self,
        source: &Path,
        target: Option<&PathBuf>,
        transform: &dyn Transform<Said>,
        reporter: &Reporter<'_>,
    ) -> Result<Summary, Error> {
        let (options, stop) = (&self.options, &self.signals.stop);
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
            let conversion = conversion.options(options).stop(stop);
            conversion.run(transform, reporter)
        };
        let Some(target) = target else {
            return described(Conversion::of(source).in_place());
        };
        let is_pst = || {
            // Detecting the format reads the start of the source. A pipe can be read only once, so its format is not
            // detected here.
            let found = source.is_file().then(|| look_at(source, options.format));
            matches!(found, Some(Ok(Ok((Kind::Pst, _)))))
        };
        if is_standard(target) && !is_standard(source) && (is_folder(source) || is_pst()) {
            return described(Conversion::of(source).into_open(self.standard_output()?));
        }
        let stream = stream(source, options, stop)?;
        if stream.is_none() && !is_standard(target) {
            return described(Conversion::of(source).to(target));
        }
        let opened = match stream {
            Some(stream) => stream,
            None => {
                let file = File::open(source).map_err(Error::cannot_read(source.display()))?;
                Source::named(file, source, options, stop)?
            }
        };
        let conversion = Conversion::of_stream(opened, source);
        described(if is_standard(target) {
            conversion.into_open(self.standard_output()?)
        } else {
            conversion.to(target)
        })
    }

    /// Returns standard output. In a dry run, it contains only the report and no mail.
    fn standard_output(&self) -> Result<File, Error> {
        match self.options.mode {
            Mode::Run => streams::output(),
            Mode::Probe | Mode::DryRun => streams::report_output(),
        }
    }

    #[cfg(all(unix, feature = "imap"))]
    fn in_account(
        &self,
        account: &Account,
        transform: &dyn Transform<Said>,
        reporter: &Reporter<'_>,
    ) -> Result<Summary, Error> {
        let (options, replacing) = (&self.options, &self.args.replacing);
        let state = match options.mode {
            Mode::Run => replacing.state()?,
            Mode::Probe | Mode::DryRun => PathBuf::new(),
        };
        let in_place = InPlace {
            account,
            candidates: &self.candidates,
            mode: options.mode,
            trash: replacing.trash.as_deref(),
            by_replace: replacing.replace,
            state: &state,
            jobs: options.max_in_flight.max(options.jobs),
            max_message: options.max_message,
            transform,
            observer: reporter,
            stop: &self.signals.stop,
        };
        let done = in_place
            .run()
            .map_err(|failure| remote::error(failure, account))?;
        if reporter.volume >= Volume::Normal
            && options.mode.writes()
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

    fn retrieves_http(&self) -> bool {
        self.policy.fetch.iter().any(|scheme| scheme.is_http())
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        self.check_standard_streams()?;
        if let Some(page) = &self.args.html {
            if is_standard(page) {
                let what = "--html cannot write to standard output here; name a file";
                return Err(Error::Usage(what.into()));
            }
            report_file::check_apart("--html", page, &self.sources, &self.targets()?)?;
            check_page(page)?;
        }
        #[cfg(all(unix, feature = "imap"))]
        {
            let are_remote = remote::are_remote(&self.sources, &self.args.imap)?;
            self.args.check_replacing(are_remote)?;
            if are_remote {
                // Only the URL of the account is checked here. Its folders are listed later.
                for source in &self.sources {
                    remote::account(source, &self.args.imap, self.policy)?;
                }
                let targets = self.targets()?;
                for target in &targets {
                    remote::check(&self.options, target)?;
                }
                return report_file::check(self.saying.report.as_deref(), &self.sources, &targets);
            }
        }
        let files = self.sources.iter().filter(|source| source.is_file());
        for source in files.filter(|_| self.args.in_place) {
            // A source that cannot be changed in place is an error before the first source is changed. Unreadable
            // sources are reported later.
            if let Ok(Ok((Kind::Archive, _))) = look_at(source, self.options.format) {
                return Err(Error::Usage(not_in_place(source).detail()));
            }
        }
        let targets = self.targets()?;
        for (source, target) in self.sources.iter().zip(&targets) {
            if !is_standard(source) {
                let target = Some(target.as_path()).filter(|target| !is_standard(target));
                check_early(source, target, &self.options, &self.signals.stop)?;
            }
        }
        report_file::check(self.saying.report.as_deref(), &self.sources, &targets)
    }

    fn targets(&self) -> Result<Vec<PathBuf>, Error> {
        let Some(output) = self.output else {
            return Ok(Vec::new());
        };
        targets::of(&self.sources, output, &self.options, &self.signals.stop)
    }

    fn check_standard_streams(&self) -> Result<(), Error> {
        let from_standard = self.sources.iter().filter(|path| is_standard(path)).count();
        let (is_several, form) = (self.sources.len() > 1, self.options.output_format);
        let problem = match self.output {
            None if from_standard > 0 && !self.args.in_place => {
                "standard input cannot be combined with other sources; use it as the only source"
            }
            None if from_standard > 0 => {
                "standard input cannot be replaced; name a file, or --output instead of --in-place"
            }
            _ if from_standard > 1 => "standard input can be read only once",
            Some(output) if is_standard(output) && is_several => {
                "--output - works with only one source; for several sources, name a folder"
            }
            Some(_) if from_standard > 0 && is_several => {
                "standard input has no name for a file in the output folder; convert it separately"
            }
            Some(output) if !is_standard(output) => return Ok(()),
            Some(_)
                if self.options.by_label.is_some()
                    || matches!(form, Format::Maildir | Format::Thunderbird) =>
            {
                "standard output can receive only one mbox or message; name a directory with --output for the result"
            }
            Some(_) if form != Format::Mbox && self.sources.iter().any(|path| is_folder(path)) => {
                "a folder cannot be written to standard output; name a new folder, or use --output-format mbox"
            }
            _ => return Ok(()),
        };
        Err(Error::Usage(problem.into()))
    }
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

fn stopped(args: &WalkArgs, options: &Options, summary: &Summary) -> String {
    let (messages, changed) = (summary.messages, summary.changed);
    match (options.mode, &args.output) {
        (Mode::Probe | Mode::DryRun, _) => "stopped by a signal; nothing was written".to_owned(),
        (Mode::Run, None) => {
            format!(
                "stopped by a signal; {changed} messages were changed, and the other messages are unchanged; run the same command again to continue"
            )
        }
        (Mode::Run, Some(_)) => {
            format!(
                "stopped by a signal; {messages} messages were written, and {changed} of these were changed; run the same command again"
            )
        }
    }
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

/// Creates the fetcher for all messages of a run. Content is then retrieved only once, and the limits of the policy
/// apply to all requests together.
pub(super) fn shared_fetcher(
    policy: &Arc<Policy>,
    cache: &Cache,
    stop: &Stop,
) -> Result<Arc<dyn Fetch>, Error> {
    let fetcher = cache
        .fetcher(policy, Process::Run, stop)?
        .in_flight(policy.limits.in_flight)
        .memory(Fetcher::MEMORY, None)
        .keeping_failures();
    Ok(Arc::new(fetcher))
}
