//! What is in mailboxes, in numbers, before a long run (docs/survey.md).
//!
//! `gather` looks at one message, in the workers; `sum` adds surveys up in the order of the messages, with the
//! bounded counts of `tally`; `json`, `text` and `page` say it; `looked` is what was asked, with the
//! commands of the page, which is made with `sheet`; `contents` is its largest section. `copies` knows which messages stand several times.
//!
//! Of what a stranger may name without end, hosts, types and schemes, the first ten thousand of each are counted
//! apart, and of contents a million are compared. So memory has a bound, whatever is in the mail.

mod contents;
mod copies;
mod gather;
mod json;
mod looked;
mod page;
mod sheet;
mod sum;
mod tally;
mod text;

pub(super) use self::gather::Surveying;
pub(super) use self::json::{Listed, as_json};
pub(super) use self::looked::{Group, Looked, NamedSource, SourceKind};
pub(super) use self::page::{page, write_page};
pub(super) use self::sum::Survey;
pub(super) use self::tally::{NAMES, Named};
pub(super) use self::text::{lines, size as in_units};
