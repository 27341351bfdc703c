//! What a mailbox contains, in numbers (docs/survey.md), and what a run did to it.
//!
//! `gather` counts one message, in the workers; `sum` adds surveys up, with the bounded counts of `tally`. `findings`
//! says what the numbers mean and which command helps, with the commands of `context`; `json`, `text` and `page` print
//! it. `run_page` is the page about a run. `sheet` has the elements of both pages, and `html_file` writes them.
//!
//! Memory has a bound, whatever untrusted mail names: ten thousand hosts, types and schemes each; a million contents.

mod answer;
mod broken;
mod context;
mod findings;
mod gather;
mod html_file;
mod json;
mod missing;
mod page;
mod repeated;
mod run_page;
mod sheet;
mod sum;
mod tally;
mod text;
mod words;

pub(super) use self::context::{Group, NamedSource, SourceKind, SurveyContext};
pub(super) use self::gather::Surveying;
pub(super) use self::html_file::{check_page, write_page};
pub(super) use self::json::{Listed, as_json};
pub(super) use self::page::page;
pub(super) use self::repeated::Repeated;
pub(super) use self::run_page::{RunContext, RunTally, run_page};
pub(super) use self::sum::Survey;
pub(super) use self::tally::{Amount, Counts, NAMES, Named};
pub(super) use self::text::lines;
pub(super) use self::words::{quoted, size as in_units};
