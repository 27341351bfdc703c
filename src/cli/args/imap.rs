//! Which server, and what of it.

use clap::Args;

use crate::cli::values::{at_least_one, day};
use crate::imap::account::Choice;

// Of commands that take mailboxes.
#[derive(Args, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = "Mail on servers (imaps: and imap:)")]
pub struct ImapArgs {
    /// The first line that this command prints is the password, or the token [default: none]
    ///
    /// Without it: the first line of the file that EMBODY_IMAP_PASSWORD_FILE names, or a question on the terminal.
    #[arg(hide_short_help = true, long, value_name = "CMD")]
    password_command: Option<String>,
    /// Connections at a time [default: 2]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = at_least_one)]
    connections: Option<usize>,
    /// Only messages that came on this day or later: 2020-12-31 [default: all]
    #[arg(hide_short_help = true, long, value_name = "DAY", value_parser = day)]
    since: Option<String>,
    /// Only messages that came before this day [default: all]
    #[arg(hide_short_help = true, long, value_name = "DAY", value_parser = day)]
    before: Option<String>,
    /// Only these folders; * stands for anything, % for one level [default: all]
    #[arg(hide_short_help = true, long, value_name = "FOLDER")]
    folder: Vec<String>,
    /// None of these folders [default: none]
    #[arg(hide_short_help = true, long, value_name = "FOLDER")]
    not_folder: Vec<String>,
    /// With imap: and a server on this machine: no TLS [default: off]
    #[arg(hide_short_help = true, long)]
    pub allow_plaintext: bool,
}

impl ImapArgs {
    pub fn password_command(&self) -> Option<&str> {
        self.password_command.as_deref()
    }

    pub fn connections(&self) -> usize {
        // More than servers take (Gmail 15, Dovecot 10).
        self.connections.unwrap_or(2).min(10)
    }

    /// What is chosen of an account, besides what its URL says.
    pub fn added_to(&self, choice: Choice) -> Choice {
        Choice {
            folders: self.folder.clone(),
            not_folders: self.not_folder.clone(),
            since: self.since.clone(),
            before: self.before.clone(),
            ..choice
        }
    }

    /// Whether any of them is given.
    pub fn is_told(&self) -> bool {
        self.password_command.is_some()
            || self.connections.is_some()
            || self.since.is_some()
            || self.before.is_some()
            || !self.folder.is_empty()
            || !self.not_folder.is_empty()
            || self.allow_plaintext
    }
}
