//! What is in mailboxes, in numbers, before a long run (docs/survey.md).
//!
//! `gather` looks at one message, in the workers; `sum` adds surveys up in the order of the messages, with the
//! bounded counts of `tally`; `json`, `text` and `page` say it, `listed` names its attachments; `looked` is what was asked. The page is made with
//! `sheet`, `plot` and `command`, `contents` is its largest section, and it goes where `file` says. `copies` knows which
//! messages stand several times.
//!
//! Of what a stranger may name without end, hosts, types and schemes, the first ten thousand of each are counted
//! apart, and of contents a million are compared. So memory has a bound, whatever is in the mail.

mod command;
mod contents;
mod copies;
mod file;
mod gather;
mod json;
mod listed;
mod looked;
mod page;
mod plot;
mod sheet;
mod sum;
mod tally;
mod text;

pub(super) use self::file::write_page;
pub(super) use self::gather::Surveying;
pub(super) use self::json::as_json;
pub(super) use self::listed::Listed;
pub(super) use self::looked::{Group, Looked, NamedSource, SourceKind};
pub(super) use self::page::page;
pub(super) use self::sum::Survey;
pub(super) use self::tally::{NAMES, Named};
pub(super) use self::text::{lines, size as in_units};
