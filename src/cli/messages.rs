//! `embody inspect --messages`: writes messages for other programs, so that these need not parse mailbox formats.
//!
//! A JSON line before each message contains its length in bytes, so no text in a message can be mistaken for the start
//! of the next one.
//!
//! `embody inspect --keys` only writes a line for each message, with a key that is the same for all copies of a mail. A
//! program that merges mailboxes on several machines can group the messages by this key.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::args::InspectArgs;
use super::exit::ProgramStatus;
use super::report_file::{ReportFields, json};
use super::streams::{self, is_output_lost, is_standard, write_error};
use crate::engine::same::{self, copy_key};
use crate::error::{Error, unpoisoned};
use crate::mailbox::{
    FactErrors, LetterWork, MailboxEvent, Message, Quoting, ReadOptions, Stop, is_quoted_twice,
    plain, read_source,
};

pub(super) fn run(args: &InspectArgs) -> Result<ProgramStatus, Error> {
    if args.sources.is_empty() || args.sources.iter().any(|source| is_standard(source)) {
        let option = if args.keys { "--keys" } else { "--messages" };
        let what = format!("{option} cannot read standard input; name a file or a folder");
        return Err(Error::Usage(what.into()));
    }
    let options = args.compressed.added_to(ReadOptions {
        format: args.format,
        ..ReadOptions::default()
    });
    let mut status = ProgramStatus::Success;
    let mut output = BufWriter::with_capacity(1 << 16, streams::output()?);
    let twice = Mutex::default();
    let work = LetterWork {
        work: &|message| block(message, args.keys, &twice),
        weight: &Vec::len,
    };
    for source in &args.sources {
        let mut errors = FactErrors::default();
        let reading = (&options, &Stop::default());
        let done = read_source(source, reading, &work, &mut |event| {
            if let Some(error) = errors.of(&event) {
                status = ProgramStatus::told(&error);
            }
            match event {
                MailboxEvent::Message(block, _) => output.write_all(&block).map_err(write_error),
                _ => Ok(()),
            }
        });
        match done {
            Ok(_) => {}
            Err(error) if is_output_lost(&error) => return Err(error),
            Err(error) => status = ProgramStatus::told(&error),
        }
    }
    output.flush().map_err(write_error)?;
    Ok(status)
}

/// Returns the JSON line of a message, and for `--messages` also the message.
fn block(
    message: &Message<'_>,
    has_key: bool,
    twice: &Mutex<Option<(PathBuf, bool)>>,
) -> Result<Vec<u8>, Error> {
    let quoting = match message.quoting {
        Quoting::O => {
            let mut last = unpoisoned(twice.lock());
            if is_twice(message.source, &mut last) {
                Quoting::Rd
            } else {
                Quoting::O
            }
        }
        quoting => quoting,
    };
    let (content, _) = plain(message.content, quoting);
    // The fields have the same names as in a report, so that other programs can match rows with messages.
    let kind = if has_key { "key" } else { "message" };
    let head = ReportFields::default()
        .with("kind", &kind)
        .with("source", &message.source.to_string_lossy())
        .with("index", &message.number)
        .with("bytes", &content.len());
    if has_key {
        let key: String = copy_key(&same::plain(&content))
            .to_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        return json(&head.with("at", &message.at).with("key", &key)).map_err(write_error);
    }
    let mut block = json(&head).map_err(write_error)?;
    block.extend_from_slice(&content);
    block.push(b'\n');
    Ok(block)
}

/// Returns whether the mbox is mboxrd-quoted: lines that are already quoted were quoted again (`>From` as `>>From`), so
/// this quoting is removed too. `last` caches the result for the file of the previous message, so that each file is
/// examined only once.
fn is_twice(source: &Path, last: &mut Option<(PathBuf, bool)>) -> bool {
    if let Some((_, is_twice)) = last.as_ref().filter(|(last, _)| last == source) {
        return *is_twice;
    }
    let file = File::open(source).ok();
    let is_twice = file.is_some_and(|file| is_quoted_twice(&file, source).unwrap_or(false));
    *last = Some((source.to_owned(), is_twice));
    is_twice
}
