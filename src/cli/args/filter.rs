//! Options of `filter`.

use std::path::PathBuf;

use clap::Parser;

use super::super::pages::{self, whole};
use super::levels::levels;
use super::policy::{Common, FailureArgs};
use crate::engine::policy::Policy;

pub(super) const FILTER_ABOUT: &str = "Fill in external content in one message (stdin to stdout)";

pub(super) const FILTER_HELP: &str = "Example: embody filter --fetch https < in.eml > out.eml\n\
    Exit status: 0 with a complete message on stdout, otherwise 75 and no output.";

// `filter` has a clap parser of its own, because it runs once for each mail. Building the parser for all commands would
// take as long as filtering the mail.
#[derive(Parser, Default, Debug)]
#[command(
    name = "filter",
    bin_name = "embody filter",
    version,
    max_term_width = 80,
    args_override_self = true
)]
#[command(about = FILTER_ABOUT, after_help = FILTER_HELP, after_long_help = whole(pages::FILTER))]
#[command(mut_args(levels(
    &["follow", "attachments", "embed", "on_failure"],
    &[
        "allow_net",
        "deadline",
        "deny_host",
        "file_root",
        "links",
        "mark",
        "resolver",
        "signed"
    ]
)))]
#[group(skip)]
pub(crate) struct FilterArgs {
    /// The message; without it, standard input is read
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) failure: FailureArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

impl FilterArgs {
    pub(crate) fn policy(&self) -> Policy {
        self.failure.added_to(self.common.policy.policy())
    }
}
