//! `embody inspect`: what is in there, and what the same options would do. Never fetches.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::args::InspectArgs;
use super::exit::Status;
use super::input::spooled;
use super::mailboxes::{Filter, Listener, Work};
use super::output::{self, write_error};
use super::report_file::json;
use super::say::{self, harmless};
use super::totals::Totals;
use crate::error::Error;
use crate::expand::Expander;
use crate::fetch::Nowhere;
use crate::link::url::masked;
use crate::mailbox::find::{Kind, NotMail, look_at};
use crate::mailbox::{
    Effect, Format, Options, Output, Stop, convert_in_place, convert_open, kind_of_open,
};
use crate::mime::{Content, PartId, Tree, scan};
use crate::plan::{Bases, opaque_parts};
use crate::report::{Report, Row};

/// Inspects messages and mailboxes.
pub(super) fn run(args: &InspectArgs) -> Status {
    if let Err(error) = output::open() {
        eprintln!("embody: {}", say::error(&error));
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
    let inspection = Inspection {
        expander: &expander,
        named,
        as_json: args.json,
        verbose: args.verbose,
    };
    for source in sources {
        if let Err(error) = inspection.run(source) {
            eprintln!("embody: {}", say::error(&error));
            status = Status::Trouble;
        }
    }
    status
}

/// What is to be said about each source.
#[derive(Clone, Copy)]
struct Inspection<'a> {
    expander: &'a Expander<'a>,
    /// Whether there are several sources.
    named: bool,
    as_json: bool,
    verbose: bool,
}

impl Inspection<'_> {
    fn run(&self, source: &Path) -> Result<(), Error> {
        let failed = |error| Error::Read {
            what: source.display().to_string(),
            source: error,
        };
        if source.is_dir() {
            return self.mailbox(source, None);
        }
        let spooled = spooled(source, &Stop::default())?;
        let kind = match &spooled {
            Some(file) => kind_of_open(file, source, Format::Auto)?,
            None => look_at(source, Format::Auto)?,
        };
        let is_empty = |file: &File| file.metadata().is_ok_and(|data| data.len() == 0);
        match (kind, spooled) {
            // Nothing on standard input is an empty message, as filter takes it.
            (Ok(Kind::Mbox), spooled) if !spooled.as_ref().is_some_and(is_empty) => {
                self.mailbox(source, spooled)
            }
            (Ok(_) | Err(NotMail::Text), spooled) => {
                let mut message = Vec::new();
                match spooled {
                    Some(file) => file,
                    None => File::open(source).map_err(failed)?,
                }
                .read_to_end(&mut message)
                .map_err(failed)?;
                self.message(source, &message)
            }
            (Err(other), _) => Err(other.error(source)),
        }
    }

    /// Totals per kind, scheme, host and outcome, so that one sees what a run would do; or, as JSON,
    /// every row.
    fn mailbox(&self, source: &Path, spooled: Option<File>) -> Result<(), Error> {
        let Self {
            expander,
            named,
            as_json,
            verbose,
        } = *self;
        let rows = Rows {
            as_json,
            verbose,
            failure: Mutex::new(None),
        };
        let options = Options {
            effect: Effect::DryRun,
            ..Options::default()
        };
        let stop = Stop::default();
        let several = named || source.is_dir();
        let filter = Filter::new(expander, Work::Forecast, several, stop.clone(), &rows);
        let summary = match spooled {
            Some(file) => convert_open(
                &file,
                source,
                false,
                Output::Nowhere,
                &options,
                &filter,
                &filter,
                &stop,
            ),
            None => convert_in_place(source, &options, &filter, &filter, &stop),
        }?;
        let totals = filter.finish();
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

    /// The tree of parts of one message.
    fn message(&self, source: &Path, message: &[u8]) -> Result<(), Error> {
        let Self {
            expander,
            named,
            as_json,
            ..
        } = *self;
        let name = source.display().to_string();
        let report = expander.forecast(message, &name);
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
            let tree = scan(message, &expander.scan_limits());
            text.extend(outline(message, &tree, &report).bytes());
        }
        let mut stdout = io::stdout().lock();
        stdout
            .write_all(&text)
            .and_then(|()| stdout.flush())
            .map_err(write_error)
    }
}

/// Prints rows as they come.
struct Rows {
    as_json: bool,
    verbose: bool,
    failure: Mutex<Option<io::Error>>,
}

impl Listener for Rows {
    fn skipped(&self, path: &Path, what: &str) {
        if self.verbose {
            let path = path.display().to_string();
            eprintln!("embody: {}: skipped: {what}", harmless(&path));
        }
    }

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
