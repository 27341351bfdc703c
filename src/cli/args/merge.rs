//! Options of `merge`.

use std::path::PathBuf;

use clap::Args;

use super::super::values::{OutputFormat, output_format, output_format_help};
#[cfg(all(unix, feature = "imap"))]
use super::imap::{ConnectionArgs, ImapArgs};
use super::levels::levels;
use super::walk::{CompressedArgs, ProgressOption};
use crate::mailbox::{Format, MboxVariant};
use crate::merge::Order;

#[derive(Args, Debug)]
#[group(skip)]
#[command(mut_args(levels(&["order", "flat", "output_format", "json"], &[])))]
pub(crate) struct MergeArgs {
    /// Mailboxes, directories of mailboxes, archives, messages, or imaps: URLs
    ///
    /// If several copies of a mail are equally complete, the one from the first SOURCE is kept.
    #[arg(required = true, value_name = "SOURCE")]
    pub(crate) sources: Vec<PathBuf>,
    /// Write the result to this new file or directory
    ///
    /// A file whose name ends with .gz, .zst, .bz2 or .xz is compressed.
    #[arg(short, long, value_name = "DEST")]
    pub(crate) output: PathBuf,
    #[arg(
        long,
        value_name = "WHAT",
        value_parser = output_format,
        help = output_format_help(),
        long_help = format!(
            "{}\n\nauto is maildir if the first SOURCE is a Maildir or an MH folder, otherwise mbox.",
            output_format_help()
        )
    )]
    output_format: Option<OutputFormat>,
    /// Order of the mails: date, or first (the order in which they are read)
    #[arg(
        long,
        value_name = "date|first",
        default_value = "date",
        hide_possible_values = true
    )]
    pub(crate) order: Order,
    /// Make one mailbox, even if the sources have several folders
    ///
    /// Without this option, DEST is a directory if a source has several folders. Each mail is then in every folder in
    /// which at least one source has it.
    #[arg(long)]
    pub(crate) flat: bool,
    /// Preview a run without writing the result
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Print the counts as a JSON line, {"merge":{...}}
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Format of the sources
    #[arg(long, value_name = "WHAT", default_value = "auto")]
    pub(crate) format: Format,
    /// Show progress on stderr
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) progress: ProgressOption,
    #[command(flatten)]
    pub(crate) compressed: CompressedArgs,
    #[cfg(all(unix, feature = "imap"))]
    #[command(flatten)]
    pub(crate) imap: ImapArgs,
    #[cfg(all(unix, feature = "imap"))]
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

impl MergeArgs {
    /// Returns the value of `--output-format`. Its format is [`Format::Auto`] if the option is not given.
    pub(crate) fn output_form(&self) -> (Format, Option<MboxVariant>) {
        let given = self.output_format.unwrap_or_default();
        (given.format, given.variant)
    }
}
