//! `embody convert`: whole mailboxes, beside or in place.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::args::{Asking, ConvertArgs, ProgressOption, SayingArgs, Volume, WalkArgs};
use super::cache::Cache;
use super::exit::Status;
use super::input::{is_folder, is_standard, stream};
use super::mailboxes::{Filter, Listener};
use super::origin::{Origin, Piece, Start};
use super::output;
use super::progress::Display;
use super::report_file::{self, ReportFile};
use super::say;
use super::signals::{self, Signals};
use super::targets;
use super::totals::{self, Totals};
use super::verb::{Expanding, Verb, Work};
use super::wording;
use crate::error::Error;
use crate::expand::Expander;
use crate::fetch::{Fetch, Fetcher, Pace, Unasked};
use crate::mailbox::find::{Kind, find, look_at, not_in_place};
use crate::mailbox::{
    Effect, Opened, Options, Output, Stop, Summary, convert_in_place, convert_open, convert_to,
};
use crate::policy::Policy;
use crate::report::{Detail, Outcome, Reason, Row};

/// Converts mailboxes.
pub(super) fn run(args: &ConvertArgs) -> Status {
    Status::of(convert(args))
}

fn convert(args: &ConvertArgs) -> Result<Status, Error> {
    let signals = Signals::watch();
    let common = &args.common;
    let policy = common.policy.policy();
    let walk = Walk {
        sources: &args.sources,
        args: &args.walk,
        output: args.walk.output.as_deref(),
        saying: &common.saying,
        options: args
            .cut
            .added_to(args.walk.options(&policy), &args.sources)?,
        word: match args.asking() {
            _ if policy.fetch.is_empty() => "dry run, nothing written: ",
            Asking::Nobody => "dry run, nothing written, nothing retrieved: ",
            _ => "dry run, nothing written, sources only probed: ",
        },
        policy: &policy,
        signals: &signals,
    };
    walk.check()?;
    let cache = Cache::open(&common.policy.cache, &common.policy.archive, args.asking())?;
    let expander = Expander::builder(policy.clone())
        .fetch_with(|policy| shared_fetcher(policy, &cache, args.asking(), signals.stop()))?
        .mark(common.mark)
        .build()?;
    let work = match args.walk.dry_run {
        true => Work::Rehearse,
        false => Work::Expand,
    };
    let done = walk.run(
        &Expanding {
            expander: &expander,
            work,
        },
        String::new,
    );
    say::cache_trouble(&cache, common.saying.volume());
    done
}

/// A walk over mailboxes, for one of the commands.
pub(super) struct Walk<'w> {
    pub(super) sources: &'w [PathBuf],
    pub(super) args: &'w WalkArgs,
    /// Where the result goes; none where it takes the source's place.
    pub(super) output: Option<&'w Path>,
    pub(super) saying: &'w SayingArgs,
    pub(super) options: Options,
    /// What the sum of a dry run begins with.
    pub(super) word: &'static str,
    /// What remedies are named for.
    pub(super) policy: &'w Policy,
    pub(super) signals: &'w Signals,
}

impl Walk<'_> {
    /// Does what the verb says to each message. `more` is what is said behind the sum.
    pub(super) fn run(
        &self,
        verb: &dyn Verb,
        more: impl FnOnce() -> String,
    ) -> Result<Status, Error> {
        let start = Instant::now();
        signals::limits_on_files_are_failed_writes();
        let stop = self.signals.stop();
        let targets = self.targets()?;
        if let Some(output) = self.output {
            make_room(output, self.sources.len(), self.options.effect)?;
        }
        let voice = Voice::new(self)?;
        let several = self.sources.len() > 1 || self.sources.iter().any(|source| is_folder(source));
        let filter = Filter::new(verb, several, stop.clone(), &voice);
        let mut status = Status::Success;
        for (index, source) in self.sources.iter().enumerate() {
            let target = targets.get(index);
            let place = target.unwrap_or(source);
            verb.writes_to(Some(place.as_path()).filter(|place| !is_standard(place)));
            let result = match target {
                Some(target) => convert_source(source, target, &self.options, &filter, stop),
                None => self
                    .check_in_place(source)
                    .and_then(|()| convert_in_place(source, &self.options, &filter, &filter, stop)),
            };
            match result {
                Ok(summary) if summary.damaged > 0 => status = Status::Trouble,
                Ok(_) => {}
                Err(Error::Interrupted) => {
                    status = self.signals.status();
                    break;
                }
                Err(error) => {
                    voice.display.say(&say::error(&error));
                    status = Status::of_error(&error);
                    if status == Status::Usage {
                        break;
                    }
                }
            }
        }
        let (summary, counts) = filter.finish();
        voice.display.finish();
        if matches!(status, Status::Stopped(_)) {
            say::tell(&stopped(self.args, &self.options, &summary));
        }
        if self.saying.volume() >= Volume::Normal {
            let word = match self.options.effect {
                Effect::Write => "",
                Effect::DryRun => self.word,
            };
            let seconds = start.elapsed().as_secs_f64();
            let text = totals::summary(&summary, &counts, self.options.effect, seconds);
            say::tell(format!("{word}{text}{}", more()).trim_end());
        }
        if status == Status::Success && voice.report_failed() {
            status = Status::Trouble;
        }
        Ok(status)
    }

    /// A dry run says what the run would say.
    fn check_in_place(&self, source: &Path) -> Result<(), Error> {
        if self.args.in_place
            && self.args.dry_run
            && source.is_file()
            && let Ok((Kind::Archive, _)) = look_at(source, self.options.format)?
        {
            return Err(not_in_place(source));
        }
        Ok(())
    }

    /// What cannot be done is known before anything is opened or made.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.check_standard_streams()?;
        report_file::check(
            self.saying.report.as_deref(),
            self.sources,
            &self.targets()?,
        )
    }

    /// Where each source goes; nothing where it stays.
    fn targets(&self) -> Result<Vec<PathBuf>, Error> {
        let Some(output) = self.output else {
            return Ok(Vec::new());
        };
        targets::of(self.sources, output)
    }

    fn check_standard_streams(&self) -> Result<(), Error> {
        let from_standard = self.sources.iter().filter(|path| is_standard(path)).count();
        let problem = match self.output {
            None if from_standard > 0 && !self.args.in_place => {
                "standard input has no name among several sources; name it on its own"
            }
            None if from_standard > 0 => {
                "standard input cannot be replaced; name a file, or --output instead of --in-place"
            }
            _ if from_standard > 1 => "standard input can be read once only",
            Some(output) if is_standard(output) && self.sources.len() > 1 => {
                "--output - takes one source; name a folder for several"
            }
            Some(_) if from_standard > 0 && self.sources.len() > 1 => {
                "standard input has no name in a folder; convert it on its own"
            }
            Some(output)
                if is_standard(output) && self.sources.iter().any(|path| is_folder(path)) =>
            {
                "a folder cannot go to standard output; name a new folder"
            }
            _ => return Ok(()),
        };
        Err(Error::Usage(problem.into()))
    }
}

/// One source to a new file or folder, or to standard output.
fn convert_source(
    source: &Path,
    target: &Path,
    options: &Options,
    filter: &Filter<'_>,
    stop: &Stop,
) -> Result<Summary, Error> {
    let stream = stream(source, options, stop)?;
    if stream.is_none() && !is_standard(target) {
        return convert_to(source, target, options, filter, filter, stop);
    }
    let to = if is_standard(target) {
        Output::Open(output::open()?)
    } else {
        Output::Path(target)
    };
    let opened = match stream {
        Some(stream) => stream,
        None => {
            let file = File::open(source).map_err(Error::cannot_read(source.display()))?;
            Opened::named(file, source, options, stop)?
        }
    };
    convert_open(opened, source, to, options, filter, filter, stop)
}

/// What a run did that was stopped.
fn stopped(args: &WalkArgs, options: &Options, summary: &Summary) -> String {
    match (options.effect, &args.output) {
        (Effect::DryRun, _) => "stopped; nothing was written".to_owned(),
        (Effect::Write, None) => format!(
            "stopped; {} messages changed, the rest as they were",
            summary.changed
        ),
        (Effect::Write, Some(_)) => format!(
            "stopped; {} messages written, {} of them changed, the rest not",
            summary.messages, summary.changed
        ),
    }
}

/// Several sources go into a folder, which is made if the one it stands in is there.
fn make_room(output: &Path, sources: usize, effect: Effect) -> Result<(), Error> {
    let failed = Error::cannot_write(output.display());
    let folder = match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        let what = format!("there is no folder {}; make it first", folder.display());
        return Err(failed(io::Error::new(io::ErrorKind::NotFound, what)));
    }
    if sources == 1 || effect == Effect::DryRun || output.is_dir() {
        return Ok(());
    }
    fs::create_dir(output).map_err(failed)
}

/// One for all messages of a run: what was retrieved for one message is there for the next, and no more is
/// asked at a time than the policy allows. Once the run is to stop, nothing is asked for any more.
pub(super) fn shared_fetcher(
    policy: &Arc<Policy>,
    cache: &Cache,
    asking: Asking,
    stop: &Stop,
) -> Result<Arc<dyn Fetch>, Error> {
    let fetcher = cache
        .fetcher(policy, Pace::default(), stop)?
        .in_flight(policy.limits.in_flight)
        .memory(Fetcher::MEMORY, None);
    Ok(match asking {
        Asking::Nobody => Arc::new(Unasked),
        Asking::WhetherThereIsAnAnswer => Arc::new(fetcher.probing()),
        Asking::ForContent => Arc::new(fetcher),
    })
}

/// Bytes in a source, for a progress bar; what cannot be looked at counts nothing, and how long something compressed is
/// nobody knows.
fn size(source: &Path, options: &Options, stop: &Stop) -> u64 {
    let length = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    let finds = find(source, options.format, stop).unwrap_or_default();
    finds
        .mailboxes
        .iter()
        .map(|found| match found.kind {
            Kind::Archive => 0,
            Kind::Mbox | Kind::Eml if found.method.is_some() => 0,
            Kind::Mbox | Kind::Eml => length(&found.path),
            Kind::Maildir => ["cur", "new"]
                .iter()
                .filter_map(|folder| fs::read_dir(found.path.join(folder)).ok())
                .flatten()
                .filter_map(Result::ok)
                .map(|entry| length(&entry.path()))
                .sum(),
            // What lies beside the messages is short.
            Kind::Folder(_) => fs::read_dir(&found.path)
                .into_iter()
                .flatten()
                .filter_map(Result::ok)
                .map(|entry| length(&entry.path()))
                .sum(),
        })
        .sum()
}

/// Everything that is said while a conversion runs.
struct Voice {
    display: Display,
    volume: Volume,
    policy: Policy,
    start: Start,
    report: Mutex<Report>,
}

/// The report file, and whether writing it failed.
enum Report {
    None,
    Open(ReportFile),
    Failed,
}

impl Voice {
    fn new(walk: &Walk<'_>) -> Result<Self, Error> {
        let volume = walk.saying.volume();
        let progress = match volume {
            Volume::Quiet => ProgressOption::Never,
            _ => walk.args.progress,
        };
        let range = walk.options.range.as_ref();
        let piece = range.and_then(|range| Piece::of(range, walk.sources.first()?));
        let total: u64 = match progress {
            ProgressOption::Never => 0,
            _ => walk
                .sources
                .iter()
                .map(|source| size(source, &walk.options, walk.signals.stop()))
                .sum(),
        };
        let report = match &walk.saying.report {
            None => Report::None,
            Some(path) => {
                let opened = ReportFile::open(path).map_err(Error::cannot_write(path.display()));
                Report::Open(opened?)
            }
        };
        Ok(Self {
            display: Display::new(
                progress,
                range.map_or(total, |range| {
                    range.end.min(total).saturating_sub(range.start)
                }),
            ),
            volume,
            policy: walk.policy.clone(),
            start: Start::now(piece),
            report: Mutex::new(report),
        })
    }

    fn report_failed(&self) -> bool {
        let report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*report, Report::Failed)
    }
}

impl Listener for Voice {
    fn skipped(&self, path: &Path, what: &str) {
        if self.volume == Volume::Verbose {
            self.display.say(&say::skipped(path, what));
        }
    }

    fn passed_over(&self, path: &Path, what: &str) {
        if self.volume == Volume::Normal {
            self.display.say(&say::skipped(path, what));
        }
    }

    fn rows(&self, origin: &Origin, rows: &[Row]) {
        // Twenty years of mail hold too many references to name each one that went well, or each picture that stays
        // where it is seen.
        let is_trouble =
            |row: &Row| row.outcome == Outcome::Left && row.reason != Some(Reason::ShownInline);
        let is_said = |row: &&Row| self.volume == Volume::Verbose || is_trouble(row);
        let said: Vec<&Row> = rows.iter().filter(is_said).collect();
        let name = rows.first().map_or("", |row| row.message.as_str());
        let message = say::harmless(name);
        if self.volume == Volume::Verbose
            && let Some(described) = origin.described()
        {
            self.display.say(&format!("message {message}, {described}"));
        }
        for line in say::lines(&said, &self.policy, self.volume) {
            self.display.say(&format!("message {message}, {line}"));
        }
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        if let Report::Open(file) = &mut *report
            && let Err(error) = file.write(&self.start, origin, rows)
        {
            self.display.say(&format!(
                "cannot write the report: {error}; the mail goes on without it"
            ));
            *report = Report::Failed;
        }
    }

    fn advanced(&self, bytes: u64, messages: u64, totals: &Totals) {
        self.display.advance(bytes, messages, totals);
    }

    fn damaged(&self, path: &Path, why: &Detail) {
        self.display.say(&say::damaged(path, &wording::detail(why)));
    }

    fn waiting(&self, mailbox: &Path, lock: &Path) {
        if self.volume == Volume::Quiet {
            return;
        }
        self.display.say(&format!(
            "{}: another program holds the lock {}; waiting for it",
            say::shown(mailbox),
            say::shown(lock)
        ));
    }
}
