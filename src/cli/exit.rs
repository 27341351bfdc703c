//! Exit statuses (docs/reasons.md).

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory as _;

use super::args::Cli;
use super::say;
use crate::error::Error;

/// How the program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    /// 0: everything was done; `filter` wrote a whole message.
    Success,
    /// 1: something could not be read or written.
    Trouble,
    /// 2: the command line makes no sense.
    Usage,
    /// 75, `EX_TEMPFAIL` of sysexits.h: mail systems keep the message and try again.
    TryAgain,
    /// 128 and the number of the signal that asked the run to stop, as shells have it.
    Stopped(u8),
}

impl Status {
    /// The status of a run that is no filter's. What ended it is said.
    pub(super) fn of(done: Result<Self, Error>) -> Self {
        done.unwrap_or_else(|error| Self::told(&error))
    }

    /// What a filter comes to: a mail system tries again what failed.
    pub(super) fn of_filter(done: Result<(), Error>) -> Self {
        match done {
            Ok(()) => Self::Success,
            Err(error) => {
                say::tell(&say::error(&error));
                Self::TryAgain
            }
        }
    }

    /// Says an error. The status that comes of it.
    pub(super) fn told(error: &Error) -> Self {
        say::tell(&say::error(error));
        Self::of_error(error)
    }

    /// The status that comes of an error.
    pub(super) fn of_error(error: &Error) -> Self {
        match error {
            Error::Usage(_) => Self::Usage,
            _ => Self::Trouble,
        }
    }

    /// The status for a command line that could not be understood. Only what was surely meant to be
    /// another command than a filter may end with 2, which makes mail systems bounce: a typo in an MTA's
    /// configuration must delay mail. Nobody's configuration names no command at all.
    pub(super) fn of_usage(arguments: &[OsString]) -> Self {
        let Some(name) = arguments.get(1) else {
            return Self::Usage;
        };
        let walks = |argument: &OsString| {
            let argument = argument.to_string_lossy();
            let name = argument.split('=').next().unwrap_or_default();
            ["--in-place", "--output", "--dry-run"].contains(&name)
        };
        match name.to_str() {
            Some("filter") => Self::TryAgain,
            // With one of these they take mailboxes.
            Some("detach" | "restore" | "embed") => match arguments.iter().any(walks) {
                true => Self::Usage,
                false => Self::TryAgain,
            },
            Some("help") => Self::Usage,
            _ if Cli::command().find_subcommand(name).is_some() => Self::Usage,
            _ => Self::TryAgain,
        }
    }

    /// The status when help could not be printed: mail may have been what was waited for.
    pub(super) fn of_lost_output(command: Option<&OsString>) -> Self {
        match command {
            Some(name)
                if ["filter", "detach", "restore", "embed"]
                    .iter()
                    .any(|it| name == it) =>
            {
                Self::TryAgain
            }
            _ => Self::Trouble,
        }
    }

    /// The number.
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
