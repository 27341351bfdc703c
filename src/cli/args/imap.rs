//! Which server, what of it, and how its messages are replaced.

use std::env;
use std::path::PathBuf;

use clap::Args;

use crate::cli::values::{at_least_one, day};
use crate::error::Error;
use crate::imap::account::{Account, Choice};

#[derive(Args, Default, PartialEq, Debug)]
#[group(skip)]
#[command(next_help_heading = "Mail on servers (imaps: and imap:)")]
pub struct ImapArgs {
    /// The first line that this command prints is the password, or the token [default: none]
    ///
    /// Without it: the first line of the file that EMBODY_IMAP_PASSWORD_FILE names, or a question on the terminal.
    #[arg(long, value_name = "CMD")]
    pub password_command: Option<String>,
    /// Connections at a time [default: 2]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    connections: Option<usize>,
    /// Only messages that came on this day or later: 2020-12-31 [default: all]
    #[arg(long, value_name = "DAY", value_parser = day)]
    since: Option<String>,
    /// Only messages that came before this day [default: all]
    #[arg(long, value_name = "DAY", value_parser = day)]
    before: Option<String>,
    /// Only these folders; * stands for anything, % for one level [default: all]
    #[arg(long, value_name = "FOLDER")]
    folder: Vec<String>,
    /// None of these folders [default: none]
    #[arg(long, value_name = "FOLDER")]
    not_folder: Vec<String>,
    /// With imap: and a server on this machine: no TLS [default: off]
    #[arg(long)]
    pub allow_plaintext: bool,
}

impl ImapArgs {
    /// An account, with what is chosen of it besides what its URL says.
    pub fn added_to(&self, account: Account) -> Account {
        Account {
            choice: Choice {
                folders: self.folder.clone(),
                not_folders: self.not_folder.clone(),
                since: self.since.clone(),
                before: self.before.clone(),
                ..account.choice
            },
            // More than servers take (Gmail 15, Dovecot 10).
            connections: self.connections.unwrap_or(2).min(10),
            ..account
        }
    }
}

#[derive(Args, Default, PartialEq, Debug)]
#[group(skip)]
#[command(next_help_heading = "How accounts are changed in place (imaps:)")]
pub struct ReplacingArgs {
    /// Where the journal of half-made replacements is [default: $XDG_STATE_HOME/embody]
    ///
    /// The next run finishes, or takes back, what one that was killed left half-made. The folder is made if it is not there,
    /// and nobody else may write to it.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Move the old messages to this folder [default: none; at Gmail, its trash]
    ///
    /// Without it they are expunged once the new ones were read back.
    #[arg(long, value_name = "FOLDER")]
    pub trash: Option<String>,
    /// Where the quota has no room for both, replace in one step (RFC 8508) [default: off]
    ///
    /// Then the new message can be compared only when the old one is gone.
    #[arg(long)]
    pub replace: bool,
}

impl ReplacingArgs {
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
