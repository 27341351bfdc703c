//! Exit statuses (docs/reasons.md).

use std::error::Error as StdError;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory as _;

use super::args::Cli;
use super::say;
use crate::error::Error;

pub(super) const FILTERS: [&str; 3] = ["detach", "restore", "embed"];
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
    pub(super) fn of(done: Result<Self, Error>) -> Self {
        done.unwrap_or_else(|error| Self::told(&error))
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
        let walks = |argument: &OsString| {
            let argument = argument.to_string_lossy();
            let option = argument.strip_prefix("--").unwrap_or_default();
            WALKS.contains(&option.split('=').next().unwrap_or_default())
        };
        match name.to_str() {
            Some("filter") => Self::TryAgain,
            Some("help") => Self::Usage,
            Some(name) if FILTERS.contains(&name) && !arguments.iter().any(walks) => Self::TryAgain,
            _ if Cli::command().find_subcommand(name).is_some() => Self::Usage,
            _ => Self::TryAgain,
        }
    }

    /// The caller may have waited for mail.
    pub(super) fn of_lost_output(command: Option<&OsString>) -> Self {
        match command.and_then(|name| name.to_str()) {
            Some(name) if name == "filter" || FILTERS.contains(&name) => Self::TryAgain,
            _ => Self::Trouble,
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
