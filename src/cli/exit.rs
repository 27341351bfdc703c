//! The end of a run: exit statuses (docs/reasons.md), signals that stop the run, and the signal for files that exceed a
//! size limit.

use std::error::Error as StdError;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use clap::CommandFactory as _;
#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGXFSZ};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::args::Cli;
use super::say;
use super::streams::is_reader_gone;
use crate::error::{Error, unpoisoned};
use crate::mailbox::{Stop, field_of_stat};

pub(super) const FILTERS: [&str; 4] = ["detach", "restore", "embed", "recover"];
pub(super) const WALKS: [&str; 3] = ["output", "in-place", "dry-run"];

type LastAction = Box<dyn FnOnce() + Send>;

static LAST_ACTIONS: Mutex<Vec<LastAction>> = Mutex::new(Vec::new());

/// Adds an action that follows everything else in the process, after all reports were written and memory was freed. The action
/// removes the record with which the same command recognises the result of a killed run. Without the record, the result would be
/// an existing file that the same command must not overwrite, so as little time as possible must pass between the removal and the
/// end of the process.
pub(super) fn at_end(action: impl FnOnce() + Send + 'static) {
    unpoisoned(LAST_ACTIONS.lock()).push(Box::new(action));
}

/// Performs the actions of [`at_end`].
pub(super) fn act_last() {
    let actions = std::mem::take(&mut *unpoisoned(LAST_ACTIONS.lock()));
    actions.into_iter().for_each(|action| action());
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ProgramStatus {
    Success,
    Trouble,
    Usage,
    /// 75, `EX_TEMPFAIL` of sysexits.h: the mail system keeps the message and tries again.
    TryAgain,
    /// 128 plus the number of the signal that stopped the run, as in shells.
    Stopped(u8),
}

impl ProgramStatus {
    /// Status if the reader of a report closed the pipe, as `head` does when it has read enough. It is 128 plus the
    /// number of SIGPIPE, as shells report for a program that this signal ended. It is not 0, because the report is
    /// incomplete.
    pub(super) const READER_GONE: Self = Self::Stopped(13);

    pub(super) fn of(done: Result<Self, Error>) -> Self {
        done.unwrap_or_else(|error| Self::told(&error))
    }

    /// Returns the status of a command that only writes a report. A closed pipe causes no error message, because a
    /// reader such as `head` closes it after it has read enough.
    pub(super) fn of_report(done: Result<Self, Error>) -> Self {
        match done {
            Err(error) if is_reader_gone(&error) => Self::READER_GONE,
            done => Self::of(done),
        }
    }

    /// Returns the status of a command that processes one message. A command line that names a FILE cannot be that of a
    /// mail system, which passes the mail on standard input. A usage error then has status 2. `filter` always has
    /// status 75.
    pub(super) fn of_one_message(done: Result<(), Error>) -> Self {
        match done {
            Err(error @ Error::Usage(_))
                if has_operand(&std::env::args_os().collect::<Vec<_>>()) =>
            {
                Self::told(&error)
            }
            done => Self::of_filter(done),
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

    /// Returns the status for a usage error. Status 2 makes a mail system bounce the mail, so a typing error in its
    /// configuration must have status 75, which only delays the mail. Status 2 is therefore used only if the arguments
    /// cannot be those of a mail filter: no command, an unknown command that is not similar to the name of a filter, an
    /// option of mailboxes, or a FILE for any command except `filter` (a mail system passes the mail on standard
    /// input). `similar` contains the commands that the error message suggests.
    pub(super) fn of_usage(arguments: &[OsString], similar: &[String]) -> Self {
        let Some(name) = arguments.get(1) else {
            return Self::Usage;
        };
        let walks = |argument: &OsString| is_of_walk(&argument.to_string_lossy());
        match name.to_str() {
            Some("filter") => Self::TryAgain,
            Some("help") => Self::Usage,
            Some(name) if FILTERS.contains(&name) => {
                if arguments.iter().any(walks) || has_operand(arguments) {
                    Self::Usage
                } else {
                    Self::TryAgain
                }
            }
            _ if similar.iter().any(|name| is_filter(name)) => Self::TryAgain,
            _ => Self::Usage,
        }
    }

    /// Returns the status after printing the help or the version. If a filter cannot print it, the status is 75: a mail
    /// system may have passed a mail to this command, and must keep the mail.
    pub(super) fn of_help(printed: Result<(), Error>, command: Option<&OsString>) -> Self {
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

impl From<ProgramStatus> for ExitCode {
    fn from(status: ProgramStatus) -> Self {
        Self::from(status.code())
    }
}

pub(super) struct Signals {
    pub(super) stop: Stop,
    which: Arc<AtomicUsize>,
}

impl Signals {
    /// Starts to watch the signals that stop a run. After a signal, the run ends between two messages, so that it
    /// leaves no lock and no temporary file.
    pub(super) fn watch() -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let which = Arc::new(AtomicUsize::new(0));
        for signal in heeded() {
            // Without a handler, the signal ends the process immediately. No mail is lost in this case.
            let number = usize::try_from(signal).unwrap_or(0);
            let _ = signal_hook::flag::register_usize(signal, Arc::clone(&which), number);
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
        }
        Self {
            stop: Stop::over(flag),
            which,
        }
    }

    pub(super) fn status(&self) -> ProgramStatus {
        u8::try_from(self.which.load(Ordering::SeqCst))
            .map_or(ProgramStatus::Trouble, ProgramStatus::Stopped)
    }
}

fn is_filter(name: &str) -> bool {
    name == "filter" || FILTERS.contains(&name)
}

/// Returns whether the arguments contain an operand: a file or mailbox that is neither `-` nor the value of an option.
/// The value of an unknown option looks like an operand, and clap parses it as one too.
fn has_operand(arguments: &[OsString]) -> bool {
    let mut program = Cli::command();
    // clap defines the options of subcommands only when the program is built.
    program.build();
    let Some(command) = arguments
        .get(1)
        .and_then(|name| program.find_subcommand(name))
    else {
        return false;
    };
    let takes_value = |is: &dyn Fn(&clap::Arg) -> bool| {
        let found = command.get_arguments().find(|it| is(it));
        found.is_some_and(|it| it.get_action().takes_values())
    };
    let mut is_value = false;
    for argument in arguments.iter().skip(2) {
        let argument = argument.to_string_lossy();
        if std::mem::take(&mut is_value) {
            continue;
        }
        if let Some(long) = argument.strip_prefix("--") {
            is_value = !long.contains('=') && takes_value(&|it| it.get_long() == Some(long));
        } else if let Some(letters) = argument.strip_prefix('-') {
            let of = |letter| takes_value(&|it: &clap::Arg| it.get_short() == Some(letter));
            let first = letters.chars().position(of);
            is_value = first.is_some_and(|at| at + 1 == letters.chars().count());
        } else {
            return true;
        }
    }
    false
}

/// Returns whether an argument is an option that only mailbox commands have: `--output=x`, `-o`, `-ox`, `-qn`. A mail
/// system never calls embody as a filter with such an option, so an error may have status 2.
fn is_of_walk(argument: &str) -> bool {
    if let Some(option) = argument.strip_prefix("--") {
        return WALKS.contains(&option.split('=').next().unwrap_or_default());
    }
    let options = argument.strip_prefix('-').unwrap_or_default();
    let mut letters = options.chars().skip_while(|letter| "qv".contains(*letter));
    letters.next().is_some_and(|letter| "on".contains(letter))
}

#[cfg(unix)]
const ASKING: &[i32] = &[SIGINT, SIGTERM, SIGHUP];
#[cfg(not(unix))]
const ASKING: &[i32] = &[SIGINT, SIGTERM];

/// Returns the signals that stop a run. Signals that the parent process ignores stay ignored, because nohup and shells
/// keep background jobs running in this way.
pub(super) fn heeded() -> impl Iterator<Item = i32> {
    let ignored = ignored("/proc/self/stat");
    let asking = ASKING.iter().copied();
    asking.filter(move |signal| ignored & 1 << (signal - 1) == 0)
}

/// Returns the signals that the parent process set to be ignored, as a bit mask. `stat` is the path of
/// `/proc/self/stat`, which contains the mask. `/proc/self/status` also contains it, but is twice as slow to create.
/// Without /proc, only SIGHUP counts as ignored: embody then sets no handler for it, and its default action applies.
fn ignored(stat: &str) -> u64 {
    const HANGUP: u64 = 1;
    let mut text = [0; 2048];
    let read = File::open(stat).and_then(|mut file| file.read(&mut text));
    field_of_stat(&text[..read.unwrap_or(0)], 33)
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(HANGUP)
}

/// Handles SIGXFSZ, so that writing beyond a file size limit is an ordinary write error. By default, the signal ends
/// the process without a message.
pub(super) fn limits_on_files_are_failed_writes() {
    #[cfg(unix)]
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_in_place_or_dry_run_option_indicates_a_mailbox_command() {
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
    fn hangup_counts_as_ignored_if_the_ignored_signals_are_unknown() {
        assert_eq!(ignored("/nonexistent"), 1 << (SIGHUP - 1));
        assert_eq!(ignored("/dev/null"), 1 << (SIGHUP - 1));
    }
}
