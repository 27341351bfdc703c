//! `embody inspect --messages`: writes messages for other programs, which then need not parse mailbox formats.
//!
//! A JSON line before each message contains its length in bytes, so no text in a message can be mistaken for the start
//! of the next one.
//!
//! `embody inspect --keys` writes only a line for each message, with the key that all copies of a mail have in common. A
//! program that merges mailboxes on several machines groups the messages by it.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::args::InspectArgs;
use super::exit::ProgramStatus;
use super::report_file::{ReportFields, json};
use super::streams::{self, is_standard, write_error};
use crate::engine::same::{self, copy_key};
use crate::error::Error;
use crate::mailbox::{Messages, Options, Quoting, is_quoted_twice, plain};

pub(super) fn run(args: &InspectArgs) -> Result<ProgramStatus, Error> {
    if args.sources.is_empty() || args.sources.iter().any(|source| is_standard(source)) {
        let option = if args.keys { "--keys" } else { "--messages" };
        let what = format!("{option} cannot read standard input; name a file or a folder");
        return Err(Error::Usage(what.into()));
    }
    let options = args.compressed.added_to(Options {
        format: args.format,
        ..Options::default()
    });
    let mut status = ProgramStatus::Success;
    let mut output = BufWriter::with_capacity(1 << 16, streams::output()?);
    let mut twice = None;
    for source in &args.sources {
        for message in Messages::new(source, options.clone()) {
            let message = match message {
                Ok(message) => message,
                Err(error) => {
                    status = ProgramStatus::told(&error);
                    continue;
                }
            };
            let quoting = match message.quoting {
                Quoting::O if is_twice(&message.source, &mut twice) => Quoting::Rd,
                quoting => quoting,
            };
            let (content, _) = plain(&message.content, quoting);
            // The fields have the same names as in the rows of a report, so that other programs can match a row with
            // its message.
            let kind = if args.keys { "key" } else { "message" };
            let head = ReportFields::default()
                .with("kind", &kind)
                .with("source", &message.source.to_string_lossy())
                .with("index", &message.number)
                .with("bytes", &content.len());
            if args.keys {
                let key: String = copy_key(&same::plain(&content))
                    .to_bytes()
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect();
                let line = json(&head.with("at", &message.at).with("key", &key));
                let written = line.and_then(|line| output.write_all(&line));
                written.map_err(write_error)?;
                continue;
            }
            let written = json(&head).and_then(|head| {
                output.write_all(&head)?;
                output.write_all(&content)?;
                output.write_all(b"\n")
            });
            written.map_err(write_error)?;
        }
    }
    output.flush().map_err(write_error)?;
    Ok(status)
}

/// Returns whether the program that wrote this mbox also quotes lines that are already quoted (`>From` as `>>From`). If
/// so, the quoting of these lines is removed as well. `last` contains the result for the file of the previous message,
/// so that each file is examined only once.
fn is_twice(source: &Path, last: &mut Option<(PathBuf, bool)>) -> bool {
    if let Some((_, is_twice)) = last.as_ref().filter(|(last, _)| last == source) {
        return *is_twice;
    }
    let file = File::open(source).ok();
    let is_twice = file.is_some_and(|file| is_quoted_twice(&file, source).unwrap_or(false));
    *last = Some((source.to_owned(), is_twice));
    is_twice
}
