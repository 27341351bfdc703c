//! `embody man` and `embody completions`: what packagers install besides the program, written from the same
//! definitions that parse the command line.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;

use super::args::Cli;
use super::exit::Status;
use super::output;
use super::say;
use crate::error::Error;

/// Prints embody(1), or writes it and a page for each command into a folder.
pub(super) fn man(folder: Option<&Path>) -> Status {
    let written = match folder {
        None => page().and_then(|page| print(&page)),
        Some(folder) => pages(folder),
    };
    status(written)
}

/// Prints the completions for one shell.
pub(super) fn completions(shell: Shell) -> Status {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "embody", &mut script);
    status(print(&script))
}

fn page() -> Result<Vec<u8>, Error> {
    let mut page = Vec::new();
    // Without clap's own `help`, for which embody(1) would name a page that nobody writes.
    Man::new(Cli::command().disable_help_subcommand(true))
        .render(&mut page)
        .map_err(|source| write_error("the manual page".to_owned(), source))?;
    Ok(page)
}

fn pages(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|source| write_error(folder.display().to_string(), source))
}

pub(super) fn print(bytes: &[u8]) -> Result<(), Error> {
    let mut stdout = output::open()?;
    stdout.write_all(bytes).map_err(output::write_error)
}

fn write_error(what: String, source: io::Error) -> Error {
    Error::Write { what, source }
}

pub(super) fn status(done: Result<(), Error>) -> Status {
    match done {
        Ok(()) => Status::Success,
        Err(error) => {
            say::tell(&say::error(&error));
            Status::Trouble
        }
    }
}
