//! `embody convert`: whole mailboxes, beside or in place.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::args::{Asking, ConvertArgs, ProgressOption, Volume};
use super::exit::Status;
use super::input::{is_standard, spooled};
use super::mailboxes::{Filter, Listener, Work};
use super::origin::{Origin, Start};
use super::output;
use super::progress::Display;
use super::report_file::ReportFile;
use super::say;
use super::signals::{self, Heeding, Signals};
use super::totals::{self, Totals};
use crate::error::Error;
use crate::expand::Expander;
use crate::fetch::{AtMost, Cached, Fetch, Nowhere, Probing, Unasked, World};
use crate::mailbox::find::{Kind, find};
use crate::mailbox::{
    Effect, Options, Output, Stop, Summary, convert_in_place, convert_open, convert_to,
};
use crate::policy::Policy;
use crate::report::{Outcome, Row};

/// Converts mailboxes.
pub(super) fn run(args: &ConvertArgs) -> Status {
    match convert(args) {
        Ok(status) => status,
        Err(error) => {
            say::tell(&say::error(&error));
            status_of(&error)
        }
    }
}

fn status_of(error: &Error) -> Status {
    match error {
        Error::Usage(_) => Status::Usage,
        _ => Status::Trouble,
    }
}

fn convert(args: &ConvertArgs) -> Result<Status, Error> {
    let start = Instant::now();
    check_standard_streams(args)?;
    signals::limits_on_files_are_failed_writes();
    let signals = Signals::watch();
    let stop = signals.stop();
    let options = args.options();
    let policy = args.policy();
    let policy_asks = !policy.fetch.is_empty();
    let world = shared_world(&policy, args.asking(), stop)?;
    let expander = Expander::new(policy, world.as_ref())
        .with_mark(args.mark())
        .with_lengths(crate::expand::Lengths::Kept);
    if let Some(output) = &args.output {
        make_room(output, args.sources.len(), options.effect)?;
    }
    let voice = Voice::new(args, &options)?;
    let several = args.sources.len() > 1 || args.sources.iter().any(|source| source.is_dir());
    let filter = Filter::new(&expander, Work::Expand, several, stop.clone(), &voice);
    let mut status = Status::Success;
    for source in &args.sources {
        let result = match &args.output {
            Some(output) => {
                let target = target(source, output, args.sources.len())?;
                convert_source(source, &target, &options, &filter, stop)
            }
            None => convert_in_place(source, &options, &filter, &filter, stop),
        };
        match result {
            Ok(_) => {}
            Err(Error::Interrupted) => {
                status = signals.status();
                break;
            }
            Err(error) => {
                voice.display.say(&say::error(&error));
                status = status_of(&error);
                if status == Status::Usage {
                    break;
                }
            }
        }
    }
    let (summary, counts) = filter.finish();
    voice.display.finish();
    if matches!(status, Status::Stopped(_)) {
        say::tell(&stopped(args, &options, &summary));
    }
    if args.saying.volume() >= Volume::Normal {
        let word = match options.effect {
            Effect::Write => "",
            Effect::DryRun if policy_asks && args.asking() == Asking::Nobody => {
                "dry run, nothing written, nothing retrieved: "
            }
            Effect::DryRun if policy_asks => "dry run, nothing written, sources only probed: ",
            Effect::DryRun => "dry run, nothing written: ",
        };
        let seconds = start.elapsed().as_secs_f64();
        let text = totals::summary(&summary, &counts, seconds);
        say::tell(format!("{word}{text}").trim_end());
    }
    if status == Status::Success && voice.report_failed() {
        status = Status::Trouble;
    }
    Ok(status)
}

/// What cannot be done with standard input and output is known before anything is read.
fn check_standard_streams(args: &ConvertArgs) -> Result<(), Error> {
    let from_standard = args.sources.iter().filter(|path| is_standard(path)).count();
    let problem = match &args.output {
        None if from_standard > 0 => {
            "standard input cannot be replaced; name a file, or --output instead of --in-place"
        }
        _ if from_standard > 1 => "standard input can be read once only",
        Some(output) if is_standard(output) && args.sources.len() > 1 => {
            "--output - takes one source; name a folder for several"
        }
        Some(_) if from_standard > 0 && args.sources.len() > 1 => {
            "standard input has no name in a folder; convert it on its own"
        }
        Some(output) if is_standard(output) && args.sources.iter().any(|path| path.is_dir()) => {
            "a folder cannot go to standard output; name a new folder"
        }
        _ => return Ok(()),
    };
    Err(Error::Usage(problem.to_owned()))
}

/// One source to a new file or folder, or to standard output.
fn convert_source(
    source: &Path,
    target: &Path,
    options: &Options,
    filter: &Filter<'_>,
    stop: &Stop,
) -> Result<Summary, Error> {
    let spooled = spooled(source, stop)?;
    if spooled.is_none() && !is_standard(target) {
        return convert_to(source, target, options, filter, filter, stop);
    }
    let to = if is_standard(target) {
        Output::Open(output::open()?)
    } else {
        Output::Path(target)
    };
    let (file, named) = match spooled {
        Some(file) => (file, false),
        None => (open_source(source)?, true),
    };
    convert_open(&file, source, named, to, options, filter, filter, stop)
}

fn open_source(source: &Path) -> Result<File, Error> {
    File::open(source).map_err(|error| Error::Read {
        what: source.display().to_string(),
        source: error,
    })
}

/// What a run did that was stopped.
fn stopped(args: &ConvertArgs, options: &Options, summary: &Summary) -> String {
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
    let failed = |source| Error::Write {
        what: output.display().to_string(),
        source,
    };
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

/// One world for all messages of a run: what was retrieved for one is there for the next, and no more is
/// asked at a time than the policy allows. Once the run is to stop, nothing is asked for any more.
pub(super) fn shared_world(
    policy: &Policy,
    asking: Asking,
    stop: &Stop,
) -> Result<Box<dyn Fetch>, Error> {
    if policy.fetch.is_empty() && policy.ca_file.is_none() {
        return Ok(Box::new(Nowhere));
    }
    let world = Heeding {
        world: World::new(policy)?,
        stop: stop.clone(),
    };
    let world = AtMost::new(policy.limits.in_flight, world);
    Ok(match asking {
        Asking::Nobody => Box::new(Unasked),
        Asking::WhetherThereIsAnAnswer => Box::new(Cached::new(Probing(world))),
        Asking::ForContent => Box::new(Cached::new(world)),
    })
}

/// Where a source goes: one source becomes DEST itself, several become DEST/name.
fn target(source: &Path, output: &Path, sources: usize) -> Result<PathBuf, Error> {
    if sources == 1 {
        return Ok(output.to_owned());
    }
    let name: Option<&OsStr> = source.file_name();
    name.map(|name| output.join(name)).ok_or_else(|| {
        Error::Usage(format!(
            "{}: has no name that it could have in {}",
            source.display(),
            output.display()
        ))
    })
}

/// Bytes in a source, for a progress bar; what cannot be looked at counts nothing.
fn size(source: &Path, options: &Options) -> u64 {
    let length = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    let finds = find(source, options.format).unwrap_or_default();
    finds
        .mailboxes
        .iter()
        .map(|found| match found.kind {
            Kind::Mbox | Kind::Eml => length(&found.path),
            Kind::Maildir => ["cur", "new"]
                .iter()
                .filter_map(|folder| fs::read_dir(found.path.join(folder)).ok())
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
    fn new(args: &ConvertArgs, options: &Options) -> Result<Self, Error> {
        let volume = args.saying.volume();
        let progress = match volume {
            Volume::Quiet => ProgressOption::Never,
            _ => args.progress,
        };
        let total = match progress {
            ProgressOption::Never => 0,
            _ => args
                .sources
                .iter()
                .map(|source| size(source, options))
                .sum(),
        };
        let report = match &args.saying.report {
            None => Report::None,
            Some(path) => Report::Open(ReportFile::open(path).map_err(|source| Error::Write {
                what: path.display().to_string(),
                source,
            })?),
        };
        Ok(Self {
            display: Display::new(progress, total),
            volume,
            policy: args.policy(),
            start: Start::now(),
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
            let path = path.display().to_string();
            self.display
                .say(&format!("{}: skipped: {what}", say::harmless(&path)));
        }
    }

    fn rows(&self, origin: &Origin, rows: &[Row]) {
        // Twenty years of mail hold too many references to name each one that went well.
        let is_said = |row: &&Row| self.volume == Volume::Verbose || row.outcome == Outcome::Left;
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
    fn waiting(&self, mailbox: &Path, lock: &Path) {
        if self.volume == Volume::Quiet {
            return;
        }
        let mailbox = mailbox.display().to_string();
        let lock = lock.display().to_string();
        self.display.say(&format!(
            "{}: another program holds the lock {}; waiting for it",
            say::harmless(&mailbox),
            say::harmless(&lock)
        ));
    }
}
