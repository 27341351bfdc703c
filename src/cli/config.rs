//! `--config FILE`: options in a TOML file, under their long names.
//!
//! The options of the file are inserted before those of the command line, so that one parser checks both. The command
//! line has precedence: an option of the file is dropped if the same option, or one that excludes it, is on the command
//! line. Options that only other commands have are ignored.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, mem};

use clap::error::ContextKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use toml::de::DeTable;
use toml::{Table, Value};

use super::exit::{FILTERS, WALKS};
use super::help::program;
use crate::error::Error;

pub(super) fn merged<'a>(
    arguments: &'a [OsString],
    options: &mut Command,
) -> Result<(Cow<'a, [OsString]>, Option<ConfigFile>), Error> {
    let unchanged = Ok((Cow::Borrowed(arguments), None));
    let is_named = |argument: &OsString| argument.as_encoded_bytes().starts_with(b"--config");
    let Some(name) = arguments.get(1).and_then(|name| name.to_str()) else {
        return unchanged;
    };
    if !arguments.iter().any(is_named) {
        return unchanged;
    }
    // This first parse is only needed to find `--config`, so it ignores errors. After the options of the file are
    // inserted, the complete command line is parsed again, which reports them.
    let mut of_program;
    let (command, given) = if options.has_subcommands() {
        of_program = options.clone().ignore_errors(true);
        let given = of_program
            .try_get_matches_from_mut(arguments)
            .ok()
            .and_then(|mut given| Some(given.remove_subcommand()?.1));
        (of_program.find_subcommand(name), given)
    } else {
        *options = mem::take(options).ignore_errors(true);
        let given = options.try_get_matches_from_mut(arguments.iter().skip(1));
        *options = mem::take(options).ignore_errors(false);
        (Some(&*options), given.ok())
    };
    let (Some(command), Some(given)) = (command.filter(|it| takes_config(it)), given) else {
        return unchanged;
    };
    let Ok(Some(file)) = given.try_get_one::<PathBuf>("config") else {
        return unchanged;
    };
    let mut merged: Vec<OsString> = arguments.iter().take(2).cloned().collect();
    let (table, file) = read(file)?;
    let is_filter = FILTERS.contains(&command.get_name())
        && !WALKS.iter().any(|name| {
            let source = given.value_source(&name.replace('-', "_"));
            let is_set = |value: &Value| value.as_bool() != Some(false);
            source == Some(ValueSource::CommandLine) || table.get(*name).is_some_and(is_set)
        });
    let wrong = |key: &str, what: String| {
        let place = file.place(std::iter::once(key));
        Error::Usage(format!("{place}: {what}").into())
    };
    for (key, value) in table {
        let misplaced = ["config", "help", "help-all", "version"].contains(&key.as_str());
        let Some(argument) = option(command, &key).filter(|_| !misplaced) else {
            let names = names_of_all();
            let why = match (misplaced, &value) {
                (true, _) => {
                    "cannot be set in a configuration file; set it on the command line".to_owned()
                }
                _ if names.contains(&key) => continue,
                (_, Value::Table(_)) => {
                    format!(
                        "is a section, which a configuration file cannot have; remove the line [{key}]"
                    )
                }
                _ => match nearest(&key, &names) {
                    Some(name) => format!("is not the name of an option; did you mean '{name}'?"),
                    None => {
                        "is not the name of an option; embody COMMAND --help lists them".to_owned()
                    }
                },
            };
            return Err(wrong(&key, format!("'{key}' {why}")));
        };
        let words = words(argument, &key, value)
            .map_err(|expected| wrong(&key, format!("'{key}' must be {expected}")))?;
        let is_unneeded = is_filter && OF_WALKS.contains(&key.as_str());
        if !is_unneeded && !is_overruled(command, argument, &given) {
            merged.extend(words);
        }
    }
    merged.extend(arguments.iter().skip(2).cloned());
    Ok((Cow::Owned(merged), Some(file)))
}

const OF_WALKS: [&str; 6] = [
    "format",
    "jobs",
    "backup",
    "progress",
    "max-expanded",
    "ignore",
];

fn takes_config(command: &Command) -> bool {
    option(command, "config").is_some()
}

fn option<'a>(command: &'a Command, long: &str) -> Option<&'a Arg> {
    let mut arguments = command.get_arguments();
    arguments.find(|argument| names(argument).any(|name| name == long))
}

/// Returns the long name of an option and its former names.
fn names(option: &Arg) -> impl Iterator<Item = &str> {
    let former = option.get_all_aliases().unwrap_or_default();
    option.get_long().into_iter().chain(former)
}

/// Returns the option names of all commands with `--config`. Commands can share a file, so an option of another command
/// is no error.
fn names_of_all() -> Vec<String> {
    let mut program = program();
    program.build();
    let commands = program.get_subcommands().filter(|it| takes_config(it));
    let options = commands.flat_map(Command::get_arguments);
    options.flat_map(names).map(str::to_owned).collect()
}

/// Returns the most similar option name for a misspelled key, if one is similar enough to be suggested.
fn nearest<'a>(key: &str, names: &'a [String]) -> Option<&'a String> {
    const ALIKE: f64 = 0.7;
    let key = key.to_lowercase().replace('_', "-");
    let alike = names
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&key, name), name));
    let (_, name) = alike.min()?;
    (strsim::jaro(&key, name) > ALIKE).then_some(name)
}

/// A configuration file, and the lines of its keys.
pub(super) struct ConfigFile {
    path: PathBuf,
    /// Line number of each key in the file, counted from 1, for error messages.
    lines: BTreeMap<String, usize>,
}

impl ConfigFile {
    /// Returns the path of the file for an error message. If the file contains one of these keys, the path is followed by
    /// the line of the first such key.
    pub(super) fn place<'k>(&self, keys: impl IntoIterator<Item = &'k str>) -> String {
        let path = self.path.display();
        match keys.into_iter().find_map(|key| self.lines.get(key)) {
            Some(line) => format!("{path}, line {line}"),
            None => path.to_string(),
        }
    }

    /// Returns the path of the file, followed by the line of the option that clap rejected. If the option is not in the
    /// file, only the path is returned.
    pub(super) fn place_of(&self, problem: &clap::Error) -> String {
        let arguments = [ContextKind::InvalidArg, ContextKind::PriorArg]
            .into_iter()
            .filter_map(|kind| problem.get(kind))
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(",");
        // clap prints the option as in "--max-body <SIZE>", so its name ends at the first of these characters.
        let words = arguments.split([' ', ',', '=', '[']);
        self.place(words.filter_map(|word| word.strip_prefix("--")))
    }
}

fn read(path: &Path) -> Result<(Table, ConfigFile), Error> {
    let what = format!("the configuration {}", path.display());
    let text = fs::read_to_string(path).map_err(Error::cannot_read(what))?;
    let is_end = |octet: &u8| *octet == b'\n';
    let line = |at: usize| text.bytes().take(at).filter(is_end).count() + 1;
    let wrong = |error: toml::de::Error| {
        let line = line(error.span().map_or(0, |span| span.start));
        let (file, problem) = (path.display(), error.message());
        Error::Usage(format!("{file}, line {line}: {problem}").into())
    };
    let keys = DeTable::parse(&text).map_err(wrong)?.into_inner();
    let lines = keys
        .keys()
        .map(|key| (key.get_ref().to_string(), line(key.span().start)));
    let file = ConfigFile {
        path: path.to_owned(),
        lines: lines.collect(),
    };
    Ok((toml::from_str(&text).map_err(wrong)?, file))
}

fn words(argument: &Arg, key: &str, value: Value) -> Result<Vec<OsString>, &'static str> {
    // Written as one argument `--key=value`, so that a value with a leading hyphen is not parsed as an option.
    let word = |value| {
        let text = match value {
            Value::String(text) => text,
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            _ => return None,
        };
        Some(OsString::from(format!("--{key}={text}")))
    };
    let texts = match &value {
        Value::Array(values) => values.as_slice(),
        one => std::slice::from_ref(one),
    };
    let is_of_shell = |text: &Value| text.as_str().is_some_and(|text| text.starts_with("~/"));
    if texts.iter().any(is_of_shell) {
        return Err("a complete path, because ~/ is not replaced with the home directory here");
    }
    match (argument.get_action(), value) {
        (ArgAction::SetTrue, Value::Boolean(true)) => Ok(vec![format!("--{key}").into()]),
        (ArgAction::SetTrue, Value::Boolean(false)) => Ok(Vec::new()),
        (ArgAction::SetTrue, _) => Err("true or false"),
        (ArgAction::Append, Value::Array(values)) => {
            let words: Option<_> = values.into_iter().map(word).collect();
            words.ok_or("a list of strings or numbers")
        }
        (action, value) => word(value).map(|word| vec![word]).ok_or(match action {
            ArgAction::Append => "a string, a number or a list of them",
            _ => "a string or a number",
        }),
    }
}

fn is_overruled(command: &Command, argument: &Arg, given: &ArgMatches) -> bool {
    let is_given = |other: &&Arg| {
        given.value_source(other.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let excludes = |one: &Arg, other: &Arg| {
        let conflicts = command.get_arg_conflicts_with(one);
        let is_alternative = |group: &ArgGroup| {
            let has = |it: &Arg| group.get_args().any(|member| member == it.get_id());
            !group.clone().is_multiple() && has(one) && has(other)
        };
        conflicts.iter().any(|it| it.get_id() == other.get_id())
            || command.get_groups().any(is_alternative)
    };
    command.get_arguments().filter(is_given).any(|other| {
        other.get_id() == argument.get_id()
            || excludes(other, argument)
            || excludes(argument, other)
    })
}
