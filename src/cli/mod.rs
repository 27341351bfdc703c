//! The command line. Only this module prints text and ends the process.
//!
//! Each command is defined in `args` and implemented in its own file. `verb` contains the transforms of `filter` and
//! `convert`, which process one message. `say` makes untrusted text safe for a terminal. `wording` writes the names of
//! options into messages.

mod args;
mod cache;
mod compare;
mod config;
mod convert;
mod copies;
mod detach;
mod duplicates;
mod exit;
mod filter;
mod forecast;
mod help;
mod inspect;
mod manual;
mod merge;
mod messages;
#[cfg(all(unix, feature = "milter"))]
mod milter;
mod named_files;
mod origin;
mod outcomes;
mod outline;
mod overlap;
mod pages;
mod picture_watch;
mod progress;
#[cfg(all(unix, feature = "imap"))]
mod remote;
mod report_file;
mod reporter;
mod say;
#[cfg(all(unix, feature = "serve"))]
mod serve;
mod sizes;
#[cfg_attr(not(unix), allow(dead_code))]
mod sources;
mod split;
#[cfg(unix)]
mod store;
mod streams;
mod summary;
mod survey;
mod survey_run;
mod tally;
mod targets;
mod thumbnail;
mod totals;
mod values;
mod verb;
mod walk;
pub(crate) mod wording;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, FromArgMatches as _};

#[cfg(test)]
pub(crate) use self::args::tests::policy_of;
use self::args::{Cli, DeferredArgs, EmbedArgs, FilterArgs, RecoverArgs, SubcommandArgs};
use self::exit::ProgramStatus;
use crate::link::url::masked;

/// Runs the program with the arguments and standard streams of the process.
pub fn run() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // After a panic, the exit status must be one with which a mail system tries again. Another status could return mail
    // to its sender.
    let status = std::panic::catch_unwind(|| parse_and_run(&arguments))
        .unwrap_or_else(|_| ProgramStatus::of_usage(&arguments, &[]));
    exit::act_last();
    status.into()
}

/// The tables of URL schemes in Markdown. `tests/unit/schemes.rs` tests each row.
pub(crate) const SCHEMES: &str = include_str!("schemes.md");

fn parse_and_run(arguments: &[OsString]) -> ProgramStatus {
    if let [_, name] = arguments
        && name == "filter"
    {
        // Building the definitions of the options takes as long as filtering a small mail, so they are not built
        // without options.
        return filtered(&FilterArgs::default());
    }
    let given = arguments;
    let page = help::without_help_command(given);
    let arguments = page.as_deref().unwrap_or(given);
    let mut options = help::prepared(options(arguments), arguments);
    let (merged, file) = match config::merged(arguments, &mut options) {
        Ok(merged) => merged,
        Err(error) => {
            say::tell(&say::error(&error));
            return ProgramStatus::of_usage(arguments, &[]);
        }
    };
    match parse(&merged, options) {
        Ok(command) => dispatch(command, arguments),
        Err(problem) if !problem.use_stderr() => {
            let printed = problem.print().and_then(|()| std::io::stdout().flush());
            ProgramStatus::of_help(printed.map_err(streams::write_error), given.get(1))
        }
        Err(problem) => {
            if let Some(file) = file.filter(|_| parse_alone(arguments).is_ok()) {
                say::tell(&format!("in {}:", file.place_of(&problem)));
            }
            let _ = problem.print();
            if let Some(file) = file_named_as_command(&problem) {
                let file = survey::quoted(&file);
                say::tell(&format!(
                    "to see what the mail in this file refers to, run: embody inspect {file}"
                ));
            }
            ProgramStatus::of_usage(&merged, &suggested(&problem))
        }
    }
}

/// Returns the definition of the command line. `filter` runs once for each message, so only its own options are built
/// for it.
fn options(arguments: &[OsString]) -> clap::Command {
    match arguments.get(1) {
        Some(name) if name == "filter" => args::with_flags(FilterArgs::command()),
        _ => help::program(),
    }
}

fn parse(
    arguments: &[OsString],
    mut options: clap::Command,
) -> Result<SubcommandArgs, clap::Error> {
    let is_filter = !options.has_subcommands();
    let words = arguments.iter().skip(usize::from(is_filter));
    let matches = options.try_get_matches_from_mut(words);
    let command = matches.and_then(|mut matches| {
        if is_filter {
            FilterArgs::from_arg_matches_mut(&mut matches)
                .map(|filter| SubcommandArgs::Filter(DeferredArgs(filter)))
        } else {
            Cli::from_arg_matches_mut(&mut matches).map(|cli| cli.command)
        }
    });
    command.map_err(|problem| without_passwords(problem.format(&mut options)))
}

/// Returns the commands that the error message suggests instead of an unknown one.
fn suggested(problem: &clap::Error) -> Vec<String> {
    match problem.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::String(name)) => vec![name.clone()],
        Some(ContextValue::Strings(names)) => names.clone(),
        _ => Vec::new(),
    }
}

/// Returns the word at the place of the command if the word is an existing file or directory, as in `embody takeout.zip`.
fn file_named_as_command(problem: &clap::Error) -> Option<String> {
    match problem.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) if Path::new(name).exists() => Some(name.clone()),
        _ => None,
    }
}

fn parse_alone(arguments: &[OsString]) -> Result<SubcommandArgs, clap::Error> {
    parse(arguments, options(arguments))
}

/// Removes passwords from an error message. clap repeats the wrong value, and even a value that is not a URL can
/// contain a password.
fn without_passwords(mut problem: clap::Error) -> clap::Error {
    let text = |kind| problem.get(kind).map(ToString::to_string);
    let option = text(ContextKind::InvalidArg).unwrap_or_default();
    let Some(value) = text(ContextKind::InvalidValue) else {
        return problem;
    };
    let shown = if option.starts_with("--proxy") {
        "(not shown)".to_owned()
    } else {
        masked(&value).into_owned()
    };
    if shown != value {
        problem.insert(ContextKind::InvalidValue, ContextValue::String(shown));
    }
    problem
}

#[cfg(all(unix, feature = "milter"))]
fn reread(arguments: &[OsString]) -> Result<args::MilterArgs, String> {
    let mut options = options(arguments);
    let (merged, file) =
        config::merged(arguments, &mut options).map_err(|error| say::error(&error))?;
    match parse(&merged, options) {
        Ok(SubcommandArgs::Milter(args)) => Ok(*args.0),
        Ok(_) => Err("another command".to_owned()),
        Err(problem) => {
            let text = problem.to_string();
            let line = text
                .lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("error: ");
            let place = file.map(|file| format!("in {}: ", file.place_of(&problem)));
            Err(say::harmless_sentence(&(place.unwrap_or_default() + line)).into_owned())
        }
    }
}

fn filtered(args: &FilterArgs) -> ProgramStatus {
    ProgramStatus::of_filter(filter::run(args, "filter", "use embody convert"))
}

fn embed(args: EmbedArgs) -> ProgramStatus {
    let filtered = |args| filter::run(&args, "embed", detach::MAILBOXES);
    if args.preset.walk.walks() {
        ProgramStatus::of(args.convert().and_then(|args| convert::run(&args)))
    } else {
        ProgramStatus::of_one_message(args.filter().and_then(filtered))
    }
}

fn recover(args: RecoverArgs) -> ProgramStatus {
    let filtered = |args| filter::run(&args, "recover", detach::MAILBOXES);
    if args.preset.walk.walks() {
        ProgramStatus::of(args.convert().and_then(|args| convert::run(&args)))
    } else {
        ProgramStatus::of_one_message(args.filter().and_then(filtered))
    }
}

fn dispatch(command: SubcommandArgs, arguments: &[OsString]) -> ProgramStatus {
    match command {
        SubcommandArgs::Filter(args) => filtered(&args.0),
        SubcommandArgs::Convert(args) => ProgramStatus::of(convert::run(&args.0.opening())),
        SubcommandArgs::Embed(args) => embed(args.0),
        SubcommandArgs::Recover(args) => recover(args.0),
        SubcommandArgs::Detach(args) => detach::detach(&args.0),
        SubcommandArgs::Restore(args) => detach::restore(&args.0),
        SubcommandArgs::Inspect(args) => {
            ProgramStatus::of_report(inspect::run(&args.0.opening(), arguments))
        }
        SubcommandArgs::Compare(args) => ProgramStatus::of_report(compare::run(&args.0)),
        SubcommandArgs::Merge(args) => ProgramStatus::of_report(merge::run(&args.0)),
        #[cfg(all(unix, feature = "milter"))]
        SubcommandArgs::Milter(args) => {
            let done = milter::run(&args.0, &|| reread(arguments));
            done.unwrap_or_else(|error| ProgramStatus::told(&*error))
        }
        #[cfg(all(not(unix), feature = "milter"))]
        SubcommandArgs::Milter { .. } => {
            let why = "embody milter needs Linux, macOS or another Unix; run it where Postfix or Sendmail runs";
            ProgramStatus::told(&crate::error::Error::Usage(why.into()))
        }
        #[cfg(all(unix, feature = "serve"))]
        SubcommandArgs::Serve(args) => {
            let done = serve::run(*args.0);
            done.unwrap_or_else(|error| ProgramStatus::told(&*error))
        }
        #[cfg(all(not(unix), feature = "serve"))]
        SubcommandArgs::Serve { .. } => {
            let why = "embody serve needs Linux, macOS or another Unix";
            ProgramStatus::told(&crate::error::Error::Usage(why.into()))
        }
        SubcommandArgs::Split(args) => ProgramStatus::of_report(split::run(&args.0)),
        #[cfg(unix)]
        SubcommandArgs::Store(args) => store::run(&args.0),
        #[cfg(not(unix))]
        SubcommandArgs::Store(args) => {
            let store = crate::fetch::store::open_folder(
                &args.0.folder,
                crate::fetch::store::StorePurpose::Read,
            );
            store.map_or_else(|why| ProgramStatus::told(&why), |_| ProgramStatus::Success)
        }
        SubcommandArgs::Schemes => manual::printed(SCHEMES.as_bytes()),
        SubcommandArgs::Man { folder } => manual::man(folder.as_deref()),
        SubcommandArgs::Completions { shell } => manual::completions(shell),
    }
}
