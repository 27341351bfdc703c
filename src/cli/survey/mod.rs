//! What is in mailboxes, in numbers, before a long run (docs/survey.md).
//!
//! `gather` looks at one message, in the workers; `sum` adds surveys up, with the bounded counts of `tally`; `json`,
//! `text` and `page` say it. `looked` has the commands of the page, `sheet` its elements, `contents` its largest
//! section.
//!
//! Memory has a bound, whatever a stranger names: ten thousand hosts, types and schemes each; a million contents.

mod contents;
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
pub(super) use self::tally::{Amount, Counts, NAMES, Named};
pub(super) use self::text::{lines, size as in_units};
