//! The options for IMAP accounts: the connection, the choice of folders and messages, and how messages are replaced.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::values::{at_least_one, day, duration_or_none, file};
use crate::engine::policy::Policy;
use crate::error::Error;
use crate::imap::account::{Account, FolderChoice};

#[derive(Args, Default, PartialEq, Debug)]
#[group(skip)]
#[command(next_help_heading = "Mail on servers (imaps:)")]
pub(crate) struct ImapArgs {
    /// Command that prints the password or token for the server
    ///
    /// Only the first line of the output is used. Without this option, the password is the first line of the file in
    /// EMBODY_IMAP_PASSWORD_FILE. Without that, embody prompts for the password on the terminal.
    #[arg(long, value_name = "CMD")]
    pub password_command: Option<String>,
    /// Number of parallel connections [default: 2]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    connections: Option<usize>,
    /// Only messages received on this day or later, e.g. 2020-12-31
    #[arg(long, value_name = "DAY", value_parser = day)]
    since: Option<String>,
    /// Only messages received before this day
    #[arg(long, value_name = "DAY", value_parser = day)]
    before: Option<String>,
    /// Only these folders [default: all]
    ///
    /// * matches anything, and % matches names up to the next separator.
    #[arg(long, value_name = "FOLDER")]
    folder: Vec<String>,
    /// Skip these folders
    #[arg(long, value_name = "FOLDER")]
    not_folder: Vec<String>,
    /// Allow imap: without TLS, to a server on this machine
    #[arg(long)]
    pub allow_plaintext: bool,
}

impl ImapArgs {
    /// Returns the account of a URL with these options applied.
    pub(crate) fn added_to(&self, account: Account) -> Account {
        Account {
            choice: FolderChoice {
                folders: self.folder.clone(),
                not_folders: self.not_folder.clone(),
                since: self.since.clone(),
                before: self.before.clone(),
                ..account.choice
            },
            // Servers limit the number of connections of one user (Gmail to 15, Dovecot to 10), so a larger number is
            // reduced to 10.
            connections: self.connections.unwrap_or(2).min(10),
            ..account
        }
    }
}

// Options of a connection, for commands that have no options for retrieving content.
#[derive(Args, Default, PartialEq, Debug)]
#[group(skip)]
#[command(next_help_heading = "Mail on servers (imaps:)")]
pub(crate) struct ConnectionArgs {
    /// Trust the certificates in this PEM file, too
    #[arg(long, value_name = "PEM", value_parser = file())]
    ca_file: Option<PathBuf>,
    /// Time limit for a server that sends nothing [default: 5m]
    #[arg(long, value_name = "DUR", value_parser = duration_or_none)]
    timeout: Option<Duration>,
}

impl ConnectionArgs {
    /// Returns an error if the options were given although no source is on a server.
    pub(crate) fn check_unused(&self) -> Result<(), Error> {
        if *self == Self::default() {
            return Ok(());
        }
        let what = "--ca-file and --timeout work only with imaps: or imap: sources here";
        Err(Error::Usage(what.into()))
    }

    pub(crate) fn policy(&self) -> Policy {
        let mut policy = Policy {
            ca_file: self.ca_file.clone(),
            ..Policy::default()
        };
        policy.limits.timeout = self.timeout.unwrap_or(policy.limits.timeout);
        policy
    }
}

#[derive(Args, Default, PartialEq, Debug)]
#[group(skip)]
#[command(next_help_heading = "Mail on servers, with --in-place")]
pub(crate) struct ReplacingArgs {
    /// Directory of the journal [default: $XDG_STATE_HOME/embody]
    ///
    /// The journal records replacements that are under way. If a run is killed, the next run completes or undoes them.
    /// The directory is created if it does not exist; only its owner may have write permission.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Move old messages to this folder [default: none; on Gmail: its trash]
    ///
    /// Without this option, old messages are deleted after the new ones have been read back and compared.
    #[arg(long, value_name = "FOLDER")]
    pub trash: Option<String>,
    /// Replace in one step if the quota has no room for both messages
    ///
    /// The server needs the extension REPLACE (RFC 8508). The new message can then be compared only after the old one
    /// is gone.
    #[arg(long)]
    pub replace: bool,
}

impl ReplacingArgs {
    pub(crate) fn state(&self) -> Result<PathBuf, Error> {
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
            let what = "cannot find a directory for the journal, because neither XDG_STATE_HOME nor HOME is set; name one with --state";
            Error::Usage(what.into())
        })
    }
}
