//! `embody convert`: whole mailboxes, beside or in place.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use signal_hook::consts::{SIGINT, SIGTERM};

use super::args::{ConvertArgs, ProgressOption, Volume};
use super::exit::Status;
use super::input::{is_standard, spooled};
use super::mailboxes::{Filter, Listener, Work};
use super::output;
use super::progress::Display;
use super::report_file::ReportFile;
use super::say;
use super::totals::{self, Totals};
use crate::error::Error;
use crate::expand::Expander;
use crate::fetch::{Cached, Fetch, Nowhere, World};
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
            eprintln!("embody: {}", say::error(&error));
            match error {
                Error::Usage(_) => Status::Usage,
                _ => Status::Trouble,
            }
        }
    }
}

fn convert(args: &ConvertArgs) -> Result<Status, Error> {
    let start = Instant::now();
    check_standard_streams(args)?;
    let options = args.options();
    let stop = stop_on_signals();
    let policy = args.policy();
    let world = shared_world(&policy)?;
    let expander = Expander::new(policy, world.as_ref())
        .with_mark(args.mark())
        .with_lengths(crate::expand::Lengths::Kept);
    let voice = Voice::new(args, &options)?;
    let several = args.sources.len() > 1 || args.sources.iter().any(|source| source.is_dir());
    let filter = Filter::new(&expander, Work::Expand, several, stop.clone(), &voice);
    let mut summary = Summary::default();
    let mut status = Status::Success;
    for source in &args.sources {
        let result = match &args.output {
            Some(output) => {
                let target = target(source, output, args.sources.len())?;
                convert_source(source, &target, &options, &filter, &stop)
            }
            None => convert_in_place(source, &options, &filter, &filter, &stop),
        };
        match result {
            Ok(done) => summary.add(&done),
            Err(error) => {
                voice.display.say(&say::error(&error));
                status = Status::Trouble;
                if stop.is_requested() || matches!(error, Error::Usage(_)) {
                    break;
                }
            }
        }
    }
    let counts = filter.finish();
    voice.display.finish();
    if args.saying.volume() >= Volume::Normal {
        let word = match options.effect {
            Effect::Write => "",
            Effect::DryRun => "dry run, nothing written: ",
        };
        let seconds = start.elapsed().as_secs_f64();
        eprint!(
            "embody: {word}{}",
            totals::summary(&summary, &counts, seconds)
        );
    }
    if voice.report_failed() {
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

/// One world for all messages of a run: what was retrieved for one is there for the next.
fn shared_world(policy: &Policy) -> Result<Box<dyn Fetch>, Error> {
    if policy.fetch.is_empty() {
        return Ok(Box::new(Nowhere));
    }
    Ok(Box::new(Cached::new(World::new(policy)?)))
}

/// SIGINT and SIGTERM ask the run to stop between two messages, so that no temporary file is left.
fn stop_on_signals() -> Stop {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Without the handler the signal ends the program at once, which loses no mail either.
        let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
    }
    Stop::over(flag)
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

    fn rows(&self, rows: &[Row]) {
        for row in rows {
            // Twenty years of mail hold too many references to name each one that went well.
            let said = match self.volume {
                Volume::Quiet => false,
                Volume::Normal => row.outcome == Outcome::Left,
                Volume::Verbose => true,
            };
            if said {
                let message = say::harmless(&row.message);
                self.display
                    .say(&format!("message {message}, {}", say::line(row)));
            }
        }
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        if let Report::Open(file) = &mut *report
            && let Err(error) = file.write(rows)
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
}
