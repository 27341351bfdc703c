//! The survey: what a mailbox contains, in numbers (docs/survey.md). The HTML page about a run is also written here.
//!
//! `gather` surveys single messages in parallel, and `sum` adds up their numbers. `tally` defines the counts.
//! `findings` draws conclusions for the user. `steps` recommends commands, with the options in `context`. `json`,
//! `text` and `page` print the results. `run_page` is the page about a run. `sheet` contains the elements of both
//! pages, and `html_file` writes them.
//!
//! Mail is untrusted, so memory is limited: to ten thousand hosts, types and schemes each, and to a million contents.

mod answer;
mod at_risk;
mod broken;
mod context;
mod findings;
mod gather;
mod html_file;
mod json;
mod missing;
mod numbers;
mod page;
mod repeated;
mod run_page;
mod sheet;
mod shown_pictures;
mod steps;
mod sum;
mod tally;
mod text;
mod words;

pub(super) use self::context::{NamedSource, SourceKind, SurveyContext};
pub(super) use self::findings::doubtful_notes;
pub(super) use self::gather::MessageSurveyor;
pub(super) use self::html_file::{check_page, write_page};
pub(super) use self::json::{JsonList, as_json, survey_fields};
pub(super) use self::page::page;
pub(super) use self::repeated::RepeatedLinks;
pub(super) use self::run_page::{RunContext, RunTally, further_name, run_page};
pub(super) use self::sum::Survey;
pub(super) use self::text::lines;
pub(super) use self::words::{quoted, size as in_units};
