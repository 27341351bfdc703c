//! `embody inspect --duplicates`: counts the mails that occur in several mailboxes, in the same way as `embody merge`,
//! and writes no result.

use super::args::{InspectArgs, ProgressOption};
use super::exit::{ProgramStatus, Signals};
use super::merge::{Collector, MergeSummary, SourceSettings, united};
use super::overlap::check_sources;
use super::progress::Display;
#[cfg(all(unix, feature = "imap"))]
use super::remote;
use super::say;
use super::streams::{is_standard, print, write_error};
use crate::error::Error;
use crate::mailbox::{FileCounts, Options, ReadOptions};
use crate::merge::{MergeIndex, Order, ReadSource};

pub(super) fn run(args: &InspectArgs) -> Result<ProgramStatus, Error> {
    if args.sources.is_empty() || args.sources.iter().any(|source| is_standard(source)) {
        let what = "--duplicates cannot read standard input; name the mailboxes to compare";
        return Err(Error::Usage(what.into()));
    }
    #[cfg(all(unix, feature = "imap"))]
    if !args.sources.iter().any(|source| remote::is_remote(source)) {
        remote::are_remote(&args.sources, &args.imap)?;
    }
    let signals = Signals::watch();
    match counted(args, &signals) {
        Err(Error::Interrupted) => Ok(signals.status()),
        done => done,
    }
}

fn counted(args: &InspectArgs, signals: &Signals) -> Result<ProgramStatus, Error> {
    let stop = &signals.stop;
    let directory = std::env::temp_dir();
    let options = Options::for_reading(args.compressed.added_to(ReadOptions {
        format: args.format,
        may_lack_mail: args.sources.len() > 1,
        ..ReadOptions::default()
    }));
    check_sources(&args.sources, &options.read)?;
    #[cfg(all(unix, feature = "imap"))]
    let policy = args.policy.policy();
    let sources = SourceSettings {
        options: &options,
        stop,
        directory: &directory,
        #[cfg(all(unix, feature = "imap"))]
        imap: &args.imap,
        #[cfg(all(unix, feature = "imap"))]
        policy: &policy,
    };
    let display = Display::new(ProgressOption::Never, 0);
    let mut status = ProgramStatus::Success;
    let collector = Collector::new(MergeIndex::new(&directory)?, false, &[]);
    let mut form = None;
    let mut has_read = false;
    let mut without_mail = 0;
    let (mut files, mut not_read) = (Some(FileCounts::default()), Vec::new());
    for (number, source) in args.sources.iter().enumerate() {
        let mut read = || {
            let origin = sources.origin(source)?;
            // Sizes depend on the format of the result. `merge` uses the format of the first source, so the counts use
            // it too.
            let form = match form {
                Some(form) => form,
                None => *form.insert(sources.form_of(&origin)?),
            };
            let nothing = (ReadSource::NONE, None);
            let source = (number, source.as_path());
            let read = collector.read(source, (&origin, form), &sources, &display, nothing)?;
            has_read = true;
            files = united(files, read.files);
            not_read.extend(read.not_read);
            without_mail += usize::from(read.lacks_mail);
            Ok(read.is_whole && !origin.is_damaged)
        };
        match read() {
            Ok(true) => {}
            Ok(false) => status = ProgramStatus::Trouble,
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => {
                ProgramStatus::told(&error);
                status = ProgramStatus::Trouble;
            }
        }
    }
    if !has_read {
        return Ok(status);
    }
    if without_mail == args.sources.len() {
        say::tell(say::NO_MAIL);
        status = ProgramStatus::Trouble;
    }
    let (index, _) = collector.finish()?;
    let kept = index.decide(Order::First, true, (options.read.pool_limits(), stop))?;
    let summary = MergeSummary {
        sources: &args.sources,
        tally: &kept.tally,
        files,
        not_read: &not_read,
    };
    if args.json {
        print(&summary.json("duplicates").map_err(write_error)?)?
    } else {
        print(summary.text(true).as_bytes())?
    }
    Ok(status)
}
