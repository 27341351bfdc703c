//! `embody man` and `embody completions`: generate the manual pages and shell completions from the definition of the
//! command line.

use std::fs;
use std::io;
use std::path::Path;

use clap::builder::PossibleValuesParser;
use clap::{Command, ValueHint};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::exit::ProgramStatus;
use super::help::{self, program};
use super::streams::{is_standard, print};
use super::values::output_format_words;
use crate::engine::policy::{Follow, Scheme};
use crate::error::Error;

pub(super) fn man(folder: Option<&Path>) -> ProgramStatus {
    let folder = folder.filter(|path| !is_standard(path));
    // clap's built-in command `help` is left out. Otherwise embody(1) would refer to embody-help(1), which does not
    // exist.
    let mut program = program().disable_help_subcommand(true);
    program.build();
    let written = match folder {
        None => written_page(&program)
            .map_err(Error::cannot_write("the manual page"))
            .and_then(|page| print(&page)),
        Some(folder) => pages(&program, folder).map_err(Error::cannot_write(folder.display())),
    };
    ProgramStatus::of_report(written.map(|()| ProgramStatus::Success))
}

pub(super) fn completions(shell: Shell) -> ProgramStatus {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut completed(), "embody", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if shell == Shell::Bash {
        // With `-o filenames`, bash appends a slash instead of a blank to the name of a directory, so that the user can
        // continue with a name in it.
        script = script.replace(
            "-o bashdefault -o default",
            "-o filenames -o bashdefault -o default",
        );
    }
    printed(script.as_bytes())
}

fn completed() -> Command {
    let mut program = program();
    program.build();
    program.mut_subcommands(|command| {
        command.mut_args(|argument| {
            let argument = argument.hide_possible_values(false);
            match argument.get_long() {
                Some("fetch") => argument.value_parser(Scheme::ALL.map(Scheme::as_str)),
                Some("follow") => {
                    let forms = Follow::ALL.into_iter().map(Follow::as_str);
                    let words: Vec<&str> = forms.chain(["all", "none"]).collect();
                    argument.value_parser(PossibleValuesParser::new(words))
                }
                Some("output-format") => {
                    argument.value_parser(PossibleValuesParser::new(output_format_words()))
                }
                Some("cache-max") => argument.value_parser(["none"]),
                Some("file-root") => argument.value_hint(ValueHint::DirPath),
                _ => argument,
            }
        })
    })
}

fn pages(program: &Command, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for command in std::iter::once(program).chain(program.get_subcommands()) {
        let file = folder.join(Man::new(command.clone()).get_filename());
        fs::write(file, written_page(command)?)?;
    }
    Ok(())
}

fn written_page(command: &Command) -> io::Result<Vec<u8>> {
    let more = command
        .get_after_long_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let has_commands = command.has_subcommands();
    let page = Man::new(help::with_all_options(command.clone()))
        .source(concat!("embody ", env!("CARGO_PKG_VERSION")))
        .manual("embody manual");
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    synopsis(command).to_writer(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if has_commands {
        page.render_subcommands_section(&mut text)?;
    }
    let mut roff = Roff::new();
    for line in more.lines().filter(|line| !line.is_empty()) {
        let title = line.strip_suffix(':').filter(|_| !line.starts_with(' '));
        let words = line.trim();
        match title {
            Some(title) => roff.control("SH", [title.to_ascii_uppercase().as_str()]),
            None if line.starts_with("      ") => roff.text([roman(words)]),
            None => roff.control("TP", []).text([bold(words)]),
        };
    }
    roff.to_writer(&mut text)?;
    Ok(text)
}

/// Returns the synopsis: the command, `[OPTIONS]` and the operands. A list of all options would be longer than a
/// screen.
fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    for written in usage.lines().map(str::trim) {
        let line = written.strip_prefix("Usage: ").unwrap_or(written);
        let places = [line.find(" ["), line.find(" <")].into_iter().flatten();
        let arguments = places.min().unwrap_or(line.len());
        let (name, arguments) = line.split_at_checked(arguments).unwrap_or((line, ""));
        roff.text([bold(name), roman(arguments)]);
    }
    roff
}

pub(super) fn printed(bytes: &[u8]) -> ProgramStatus {
    ProgramStatus::of_report(print(bytes).map(|()| ProgramStatus::Success))
}
