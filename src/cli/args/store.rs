//! Options of `store`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct StoreArgs {
    /// check: verify all objects and references; gc: list unreferenced objects
    #[arg(value_name = "check|gc", hide_possible_values = true)]
    pub(crate) action: StoreAction,
    /// Directory of the store
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Mailboxes; for gc: all mailboxes that may refer to the store
    #[arg(value_name = "SOURCE")]
    pub(crate) sources: Vec<PathBuf>,
    /// Print only problems
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// With gc: remove unreferenced objects that are older than a day
    #[arg(long)]
    pub(crate) delete: bool,
    /// With gc: state that the command names all mail that refers to the store
    ///
    /// Without this option, nothing is removed if the store's list of users contains standard input, or a mailbox that
    /// the command does not name or cannot read.
    #[arg(long)]
    pub(crate) all_mail_is_here: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StoreAction {
    Check,
    Gc,
}
