//! Options of `compare`.

use std::path::PathBuf;

use clap::Args;

#[cfg(all(unix, feature = "imap"))]
use super::imap::{ConnectionArgs, ImapArgs};
use super::levels::levels;
use super::walk::CompressedArgs;
use crate::mailbox::Format;

#[derive(Args, Debug)]
#[group(skip)]
#[command(mut_args(levels(&["json", "merged"], &[])))]
pub(crate) struct CompareArgs {
    /// The mailbox before the change: an mbox, Maildir, directory, archive, message or imaps: URL
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,
    /// The mailbox after the change, in any of these formats
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,
    /// Print JSON lines, one for each message that is missing or altered
    ///
    /// The last line contains the counts, {"compare":{...}}.
    #[arg(long)]
    pub(crate) json: bool,
    /// Accept a different copy of a message if that copy is at least as complete
    ///
    /// For the result of embody merge, which keeps one of several copies of a mail. docs/merge.md lists the differences
    /// between copies.
    #[arg(long)]
    pub(crate) merged: bool,
    /// Print only messages that are missing or altered
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Format of both mailboxes
    #[arg(long, value_name = "WHAT", default_value = "auto")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) compressed: CompressedArgs,
    #[cfg(all(unix, feature = "imap"))]
    #[command(flatten)]
    pub(crate) imap: ImapArgs,
    #[cfg(all(unix, feature = "imap"))]
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}
