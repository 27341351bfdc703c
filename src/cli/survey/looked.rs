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
    /// The domains of the From fields
    Sender,
    /// What would become of references and documents
    Outcome,
}

pub struct NamedSource {
    pub name: String,
    pub kind: SourceKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A file, which `--in-place` replaces, and `--backup` keeps.
    File,
    /// An archive, or something else of which the result is another file.
    Archive,
    /// A folder: of a Maildir or MH folder there is no backup.
    Folder,
    /// Standard input, or a name that no command line of text can hold.
    Nameless,
}

pub struct Looked<'l> {
    pub larger_than: u64,
    /// What the URLs of a store would begin with.
    pub base_url: &'l str,
    pub is_probed: bool,
    /// Whether an archive was asked for what is dead.
    pub has_archive: bool,
    pub by: &'l [Group],
    pub sources: &'l [NamedSource],
    /// `--store`, as detach takes it, and what its URLs begin with.
    pub store: Option<(String, Option<&'l str>)>,
    /// ` --format WORD`, if it was given.
    pub format: String,
    pub start: &'l str,
}
