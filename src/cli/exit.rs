//! How a run ends: exit statuses (docs/reasons.md), signals that ask it to stop, and the one for files that grow too large.

use std::error::Error as StdError;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use clap::CommandFactory as _;
#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGXFSZ};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::args::Cli;
use super::say;
use super::streams::is_reader_gone;
use crate::error::Error;
use crate::mailbox::{Stop, field_of_stat};

pub(super) const FILTERS: [&str; 4] = ["detach", "restore", "embed", "recover"];
pub(super) const WALKS: [&str; 3] = ["output", "in-place", "dry-run"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    Success,
    Trouble,
    Usage,
    /// 75, `EX_TEMPFAIL` of sysexits.h: mail systems keep the message and try again.
    TryAgain,
    /// 128 and the number of the signal that asked the run to stop, as shells have it.
    Stopped(u8),
}

impl Status {
    /// The reader of a report closed the pipe, as `head` does when it has read enough. Shells show this status, 128 and the
    /// number of SIGPIPE, for programs that the signal ended. It is not 0, because not everything was written.
    pub(super) const READER_GONE: Self = Self::Stopped(13);

    pub(super) fn of(done: Result<Self, Error>) -> Self {
        done.unwrap_or_else(|error| Self::told(&error))
    }

    /// Returns the status of a command that only writes a report. A closed pipe gives no error message, because a reader such
    /// as `head` closes it after it has read enough.
    pub(super) fn of_report(done: Result<Self, Error>) -> Self {
        match done {
            Err(error) if is_reader_gone(&error) => Self::READER_GONE,
            done => Self::of(done),
        }
    }

    pub(super) fn of_filter(done: Result<(), Error>) -> Self {
        match done {
            Ok(()) => Self::Success,
            Err(error) => {
                Self::told(&error);
                Self::TryAgain
            }
        }
    }

    pub(super) fn told(error: &(dyn StdError + 'static)) -> Self {
        say::tell(&say::error(error));
        error.downcast_ref().map_or(Self::Trouble, Self::of_error)
    }

    pub(super) fn of_error(error: &Error) -> Self {
        match error {
            Error::Usage(_) => Self::Usage,
            _ => Self::Trouble,
        }
    }

    /// Only words that were surely meant to be another command than a filter may end with 2, which makes mail systems
    /// bounce: a typo in a mail system's configuration must delay mail. No configuration names no command at all.
    pub(super) fn of_usage(arguments: &[OsString]) -> Self {
        let Some(name) = arguments.get(1) else {
            return Self::Usage;
        };
        let walks = |argument: &OsString| is_of_walk(&argument.to_string_lossy());
        match name.to_str() {
            Some("filter") => Self::TryAgain,
            Some("help") => Self::Usage,
            Some(name) if FILTERS.contains(&name) && !arguments.iter().any(walks) => Self::TryAgain,
            _ if Cli::command().find_subcommand(name).is_some() => Self::Usage,
            _ => Self::TryAgain,
        }
    }

    /// The status of a command that was asked for its help or its version. The caller of a filter may have waited for mail.
    pub(super) fn of_help(printed: Result<(), Error>, command: Option<&OsString>) -> Self {
        let is_filter = |name: &str| name == "filter" || FILTERS.contains(&name);
        match Self::of_report(printed.map(|()| Self::Success)) {
            Self::Success => Self::Success,
            _ if command.is_some_and(|name| name.to_str().is_some_and(is_filter)) => Self::TryAgain,
            status => status,
        }
    }

    pub(super) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Trouble => 1,
            Self::Usage => 2,
            Self::TryAgain => 75,
            Self::Stopped(signal) => 128_u8.saturating_add(signal),
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status.code())
    }
}

pub(super) struct Signals {
    pub(super) stop: Stop,
    which: Arc<AtomicUsize>,
}

impl Signals {
    /// A run stops between two messages, so that it leaves no lock and no temporary file.
    pub(super) fn watch() -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let which = Arc::new(AtomicUsize::new(0));
        for signal in heeded() {
            // Without the handler the signal ends the program at once, which loses no mail either.
            let number = usize::try_from(signal).unwrap_or(0);
            let _ = signal_hook::flag::register_usize(signal, Arc::clone(&which), number);
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
        }
        Self {
            stop: Stop::over(flag),
            which,
        }
    }

    pub(super) fn status(&self) -> Status {
        u8::try_from(self.which.load(Ordering::SeqCst)).map_or(Status::Trouble, Status::Stopped)
    }
}

/// Whether an argument says that the command is about mailboxes, as `--output=x`, `-o`, `-ox` and `-qn` do.
fn is_of_walk(argument: &str) -> bool {
    if let Some(option) = argument.strip_prefix("--") {
        return WALKS.contains(&option.split('=').next().unwrap_or_default());
    }
    let letters = argument.strip_prefix('-').unwrap_or_default();
    let mut letters = letters.chars().skip_while(|letter| "qv".contains(*letter));
    letters.next().is_some_and(|letter| "on".contains(letter))
}

#[cfg(unix)]
const ASKING: &[i32] = &[SIGINT, SIGTERM, SIGHUP];
#[cfg(not(unix))]
const ASKING: &[i32] = &[SIGINT, SIGTERM];

/// Signals that our caller ignores stay ignored: nohup and shells keep jobs in the background alive like this.
pub(super) fn heeded() -> impl Iterator<Item = i32> {
    let ignored = ignored("/proc/self/stat");
    let asking = ASKING.iter().copied();
    asking.filter(move |signal| ignored & 1 << (signal - 1) == 0)
}

/// A bit each. Where the system does not say, only SIGHUP is taken for ignored, which then does what it does without
/// us. `/proc/self/status` names the field, but takes the system twice as long to write.
fn ignored(stat: &str) -> u64 {
    const HANGUP: u64 = 1;
    let mut text = [0; 2048];
    let read = File::open(stat).and_then(|mut file| file.read(&mut text));
    field_of_stat(text.get(..read.unwrap_or(0)).unwrap_or_default(), 33)
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(HANGUP)
}

/// The default action of SIGXFSZ would end the process without a message.
pub(super) fn limits_on_files_are_failed_writes() {
    #[cfg(unix)]
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_name_a_destination_or_a_dry_run_are_of_mailboxes() {
        for argument in [
            "--output",
            "--output=x",
            "--in-place",
            "--dry-run",
            "-o",
            "-ox",
            "-n",
            "-nq",
            "-qn",
            "-vox",
        ] {
            assert!(is_of_walk(argument), "{argument}");
        }
        for argument in [
            "",
            "-",
            "--",
            "-q",
            "-j2",
            "-jn",
            "output",
            "--outputs",
            "-x",
            "-xo",
            "o",
        ] {
            assert!(!is_of_walk(argument), "{argument}");
        }
    }

    #[test]
    fn a_hangup_is_left_alone_where_the_system_does_not_say_what_is_ignored() {
        assert_eq!(ignored("/nonexistent"), 1 << (SIGHUP - 1));
        assert_eq!(ignored("/dev/null"), 1 << (SIGHUP - 1));
    }
}
