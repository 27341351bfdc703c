//! Options of `split`.

use std::path::PathBuf;

use clap::Args;

use super::super::values::size;
use super::levels::levels;
use super::walk::CompressedArgs;

#[derive(Args, Debug)]
#[group(skip)]
#[command(mut_args(levels(&["size", "count"], &[])))]
pub(crate) struct SplitArgs {
    /// mbox files and messages, or directories of them
    #[arg(required = true, value_name = "SOURCE")]
    pub(crate) sources: Vec<PathBuf>,
    /// Length of a range [default: 128M]
    ///
    /// A range ends with the message that begins in it, so it may be longer.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) size: Option<u64>,
    /// Count the messages of each range, which reads all mail
    #[arg(long)]
    pub(crate) count: bool,
    #[command(flatten)]
    pub(crate) compressed: CompressedArgs,
}
