//! Adds a third level of help: `-h` lists the options that most users need, `--help` also lists the options for special
//! cases, and `--help-all` lists all options with all paragraphs about them.
//!
//! clap has only two levels, short and long help, and two flags that hide an option from one of them. Together, the
//! flags of an option define its level here. Before clap parses `--help`, this module changes the flags accordingly.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::args::{Cli, with_flags};

/// Commands whose options are defined when the program is defined. The options of all other commands are deferred until
/// the command is used.
#[cfg(unix)]
const UNDEFERRED: &[&str] = &["schemes", "man", "completions"];
#[cfg(not(unix))]
const UNDEFERRED: &[&str] = &["milter", "serve", "schemes", "man", "completions"];

/// Returns the definition of the program with all its commands.
pub(super) fn program() -> Command {
    let program = UNDEFERRED.iter().fold(Cli::command(), |program, name| {
        program.mut_subcommand(name, with_flags)
    });
    with_flags(program)
}

/// Replaces `embody help COMMAND` by `embody COMMAND --help`, and `embody help --help` by `embody --help`.
pub(super) fn without_help_command(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let [first, help, name] = arguments else {
        return None;
    };
    if help == "help"
        && ["-h", "--help", "--help-all"]
            .iter()
            .any(|flag| name == *flag)
    {
        return Some(vec![first.clone(), name.clone()]);
    }
    let is_known = help == "help" && Cli::command().find_subcommand(name).is_some();
    is_known.then(|| vec![first.clone(), name.clone(), "--help".into()])
}

/// Changes the definition of the program so that clap prints the level of help that the arguments request: `--help` or
/// `--help-all`. For `-h`, clap needs no change.
pub(super) fn prepared(program: Command, arguments: &[OsString]) -> Command {
    let mut flags = arguments.iter().filter_map(|argument| argument.to_str());
    let Some(flag) = flags.find(|it| ["-h", "--help", "--help-all"].contains(it)) else {
        return program;
    };
    if flag == "-h" {
        return program;
    }
    let shown = |command| match flag {
        "--help" => with_particular_options(command),
        _ => with_all_options(command),
    };
    let mut program = program;
    program.build();
    match arguments.get(1).and_then(|name| name.to_str()) {
        // clap's own command `help` has no option that this function could change.
        Some(name) if name != "help" && program.find_subcommand(name).is_some() => {
            program.mut_subcommand(name, shown)
        }
        _ => shown(program),
    }
}

fn with_particular_options(command: Command) -> Command {
    let hides_some = command.get_arguments().any(Arg::is_hide_long_help_set);
    if !hides_some {
        // No option of this command is hidden in `--help`, so `--help` and `--help-all` print the same text.
        return command.mut_arg("help", |flag| flag.action(ArgAction::HelpLong));
    }
    let page = command
        .get_after_long_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let examples = first_examples(&page);
    let name = command.get_name();
    let more = format!(
        "{examples}\n\nembody {name} --help-all lists all options, values and exit statuses."
    );
    let command = command.mut_args(|option| {
        let is_hidden = option.is_hide_long_help_set();
        option.hide_short_help(is_hidden)
    });
    command.after_help(more)
}

/// Returns the first section of a help page, up to and including the second example.
fn first_examples(page: &str) -> String {
    const MOST: usize = 2;
    let section = page.split("\n\n").next().unwrap_or_default();
    let is_example = |line: &str| line.starts_with("  ") && !line.starts_with("      ");
    let mut examples = 0;
    let lines = section.lines().take_while(|line| {
        examples += usize::from(is_example(line));
        examples <= MOST
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn with_all_options(command: Command) -> Command {
    command.mut_args(|option| option.hide_short_help(false).hide_long_help(false))
}
