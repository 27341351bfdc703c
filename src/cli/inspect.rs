//! `embody inspect`: what is in there, and what the same options would do. Never fetches.

use std::fs;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::args::InspectArgs;
use super::exit::Status;
use super::mailboxes::{Filter, Listener, Work};
use super::output::{self, write_error};
use super::report_file::json;
use super::say::{self, harmless};
use super::totals::Totals;
use crate::error::Error;
use crate::expand::Expander;
use crate::fetch::Nowhere;
use crate::link::url::masked;
use crate::mailbox::find::{Kind, find};
use crate::mailbox::{Effect, Format, Options, Stop, convert_in_place};
use crate::mime::{Content, PartId, Tree, scan};
use crate::plan::{Bases, opaque_parts};
use crate::report::{Report, Row};

/// Inspects messages and mailboxes.
pub(super) fn run(args: &InspectArgs) -> Status {
    if let Err(error) = output::open() {
        say::tell(&say::error(&error));
        return Status::Trouble;
    }
    let expander = Expander::new(args.policy(), &Nowhere);
    let mut status = Status::Success;
    let stdin = [Path::new("-").to_owned()];
    let sources = if args.sources.is_empty() {
        stdin.as_slice()
    } else {
        &args.sources
    };
    let named = sources.len() > 1;
    for source in sources {
        let result = if is_mailbox(source) {
            inspect_mailbox(source, named, args.json, &expander)
        } else {
            inspect(source, named, args.json, &expander)
        };
        if let Err(error) = result {
            say::tell(&say::error(&error));
            status = Status::Trouble;
        }
    }
    status
}

/// Whether a source holds many messages. What cannot be told is read as one message.
fn is_mailbox(source: &Path) -> bool {
    source.as_os_str() != "-"
        && (source.is_dir()
            || find(source, Format::Auto)
                .is_ok_and(|finds| finds.mailboxes.iter().any(|found| found.kind != Kind::Eml)))
}

/// Totals per kind, scheme, host and outcome, so that one sees what a run would do; or, as JSON,
/// every row.
fn inspect_mailbox(
    source: &Path,
    named: bool,
    as_json: bool,
    expander: &Expander<'_>,
) -> Result<(), Error> {
    let rows = Rows {
        as_json,
        failure: Mutex::new(None),
    };
    let options = Options {
        effect: Effect::DryRun,
        ..Options::default()
    };
    let stop = Stop::default();
    let several = named || source.is_dir();
    let filter = Filter::new(expander, Work::Forecast, several, stop.clone(), &rows);
    let summary = convert_in_place(source, &options, &filter, &filter, &stop)?;
    let (_, totals) = filter.finish();
    let failure = rows
        .failure
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(failure) = failure {
        return Err(write_error(failure));
    }
    if as_json {
        return Ok(());
    }
    let heading = if named {
        format!("{}:\n", harmless(&source.display().to_string()))
    } else {
        String::new()
    };
    let text = format!(
        "{heading}{} mailboxes, {} messages, {} bytes\n{}",
        summary.mailboxes,
        summary.messages,
        summary.bytes_in,
        totals.table()
    );
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(write_error)
}

/// Prints rows as they come.
struct Rows {
    as_json: bool,
    failure: Mutex<Option<io::Error>>,
}

impl Listener for Rows {
    fn rows(&self, rows: &[Row]) {
        if !self.as_json {
            return;
        }
        let mut stdout = io::stdout().lock();
        for row in rows {
            let written = json(row).and_then(|mut line| {
                line.push(b'\n');
                stdout.write_all(&line)
            });
            if let Err(error) = written {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
            }
        }
    }

    fn advanced(&self, _bytes: u64, _messages: u64, _totals: &Totals) {}
}

fn inspect(
    source: &Path,
    named: bool,
    as_json: bool,
    expander: &Expander<'_>,
) -> Result<(), Error> {
    let name = source.display().to_string();
    let read = if source.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(source)
    };
    let message = read.map_err(|source| Error::Read {
        what: name.clone(),
        source,
    })?;
    let report = expander.forecast(&message, &name);
    let mut text = Vec::new();
    if as_json {
        for row in &report.rows {
            text.extend(json(row).map_err(write_error)?);
            text.push(b'\n');
        }
    } else {
        if named {
            text.extend(format!("{}:\n", harmless(&name)).bytes());
        }
        let tree = scan(&message, &expander.scan_limits());
        text.extend(outline(&message, &tree, &report).bytes());
    }
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(&text)
        .and_then(|()| stdout.flush())
        .map_err(write_error)
}

/// The tree of parts with what would become of each reference.
fn outline(message: &[u8], tree: &Tree, report: &Report) -> String {
    let mut bases = Bases::default();
    let mut text = String::new();
    for id in tree.ids() {
        let part = tree.part(id);
        let indent = "  ".repeat(part.depth);
        let number = tree.number(id);
        let label = match id {
            PartId::ROOT if number.is_empty() => "message".to_owned(),
            _ if number.is_empty() => "-".to_owned(),
            _ => number.clone(),
        };
        let size = match &part.content {
            Content::Leaf | Content::Opaque(_) => {
                format!("{}, {} bytes", part.encoding.as_str(), part.body.len())
            }
            Content::Message => "a message".to_owned(),
            Content::Multipart(_) => format!("{} parts", part.children.len()),
        };
        text.push_str(&format!(
            "{indent}{label}  {}  ({size})\n",
            harmless(&part.essence)
        ));
        if let Some(base) = bases.of(message, tree, id) {
            text.push_str(&format!(
                "{indent}    base {} ({})\n",
                harmless(&masked(&base.url)),
                base.origin
            ));
        }
        let is_multipart = matches!(part.content, Content::Multipart(_) | Content::Message);
        for row in report
            .rows
            .iter()
            .filter(|row| !is_multipart && row.part == number)
        {
            let mut line = say::line(row);
            if let Some(behind) = line.strip_prefix(&format!("part {number}: ")) {
                line = behind.to_owned();
            }
            let declared = row
                .media_type
                .as_ref()
                .map_or_else(String::new, |named| format!(" of {}", harmless(named)));
            text.push_str(&format!(
                "{indent}    {}{declared}\n{indent}    {line}\n",
                row.kind.as_str()
            ));
        }
    }
    for opaque in opaque_parts(tree) {
        text.push_str(&format!("{opaque}\n"));
    }
    text.push_str(&summary(report));
    text
}

fn summary(report: &Report) -> String {
    if report.rows.is_empty() {
        return "nothing to do\n".to_owned();
    }
    let left = report.left();
    format!(
        "{} references: {} would be followed, {left} left\n",
        report.rows.len(),
        report.rows.len() - left
    )
}
