//! What is in mailboxes, in numbers, before a long run (docs/survey.md).
//!
//! `gather` looks at one message, in the workers; `sum` adds surveys up in the order of the messages, with the
//! bounded counts of `tally`; `json`, `text` and `page` say it, with the pictures of `plot`.
//!
//! Of what a stranger may name without end, hosts, types and schemes, the first ten thousand of each are counted
//! apart, and of contents a million are compared. So memory has a bound, whatever is in the mail.

mod gather;
mod json;
mod page;
mod plot;
mod sum;
mod tally;
mod text;

use clap::ValueEnum;

pub(super) use self::gather::Surveying;
pub(super) use self::json::Line;
pub(super) use self::page::{page, write_page};
pub(super) use self::sum::Survey;
pub(super) use self::text::lines;

/// What numbers are grouped by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Group {
    /// The hosts that mail refers to
    Host,
    /// The media types of attachments
    Type,
    /// The years of the Date fields
    Year,
    /// What would become of references and documents
    Outcome,
}

/// How mail was looked at.
pub(super) struct Looked<'l> {
    pub(super) larger_than: u64,
    /// What the URLs of a store would begin with.
    pub(super) base_url: &'l str,
    pub(super) is_probed: bool,
    /// The groups that are told.
    pub(super) by: &'l [Group],
    /// The sources, as they were named.
    pub(super) sources: &'l [String],
    /// When the run began.
    pub(super) start: &'l str,
}
