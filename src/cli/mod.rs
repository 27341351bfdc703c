//! The command line: the only room that prints or exits.
//!
//! `args` turns options into a policy, `filter` and `inspect` do the work, `exit` knows the exit statuses, `say`
//! makes text from strangers fit for a terminal, `input` reads and spools.

mod args;
mod exit;
mod filter;
mod input;
mod inspect;
mod report_file;
mod say;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use self::args::{Cli, Command, FilterCli};
use self::exit::Status;

/// Runs the program on the process's own arguments and standard streams.
#[must_use]
pub fn run() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let command = arguments.get(1);
    let parsed = if command.is_some_and(|name| name == "filter") {
        FilterCli::try_parse_from(arguments.iter().skip(1))
            .map(|filter| Command::Filter(filter.args))
    } else {
        Cli::try_parse_from(&arguments).map(|cli| cli.command)
    };
    let status = match parsed {
        Ok(command) => dispatch(command),
        Err(problem) if !problem.use_stderr() => match problem.print() {
            Ok(()) => Status::Success,
            Err(_) => Status::Trouble,
        },
        Err(problem) => {
            let _ = problem.print();
            Status::of_usage(command)
        }
    };
    status.into()
}

fn dispatch(command: Command) -> Status {
    match command {
        // A defect in embody must not bounce anybody's mail.
        Command::Filter(args) => {
            std::panic::catch_unwind(|| filter::run(&args)).unwrap_or(Status::TryAgain)
        }
        Command::Inspect(args) => inspect::run(&args),
    }
}
