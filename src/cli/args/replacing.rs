//! How messages of an account are replaced.

use std::env;
use std::path::PathBuf;

use clap::Args;

use crate::error::Error;

#[derive(Args, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = "How accounts are changed in place (imaps:)")]
pub struct ReplacingArgs {
    /// Where the journal of half-made replacements is [default: $XDG_STATE_HOME/embody]
    ///
    /// The next run finishes, or takes back, what one that was killed left half-made. The folder is made if it is not there,
    /// and nobody else may write to it.
    #[arg(hide_short_help = true, long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Move the old messages to this folder [default: none; at Gmail, its trash]
    ///
    /// Without it they are expunged once the new ones were read back.
    #[arg(hide_short_help = true, long, value_name = "FOLDER")]
    pub trash: Option<String>,
    /// Where the quota has no room for both, replace in one step (RFC 8508) [default: off]
    ///
    /// Then the new message can be compared only when the old one is gone.
    #[arg(hide_short_help = true, long)]
    pub replace: bool,
}

impl ReplacingArgs {
    /// Whether any of them is given.
    pub fn is_told(&self) -> bool {
        self.state.is_some() || self.trash.is_some() || self.replace
    }

    /// The folder of the journal.
    pub fn state(&self) -> Result<PathBuf, Error> {
        let absolute = |name| {
            env::var_os(name)
                .map(PathBuf::from)
                .filter(|it| it.is_absolute())
        };
        let state = || {
            let home = || Some(absolute("HOME")?.join(".local/state"));
            Some(absolute("XDG_STATE_HOME").or_else(home)?.join("embody"))
        };
        self.state.clone().or_else(state).ok_or_else(|| {
            let what = "neither XDG_STATE_HOME nor HOME says where the journal goes; name a folder with --state";
            Error::Usage(what.into())
        })
    }
}
