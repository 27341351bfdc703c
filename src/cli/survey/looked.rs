//! How mail was looked at, and what is told of it.

use clap::ValueEnum;

/// What numbers are grouped by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Group {
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
pub struct Looked<'l> {
    pub larger_than: u64,
    /// What the URLs of a store would begin with.
    pub base_url: &'l str,
    pub is_probed: bool,
    /// Whether an archive was asked for what is dead.
    pub has_archive: bool,
    /// The groups that are told.
    pub by: &'l [Group],
    /// The sources, as they were named.
    pub sources: &'l [String],
    /// When the run began.
    pub start: &'l str,
}
