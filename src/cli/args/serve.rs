//! The options of `embody serve`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::detach::SelectionArgs;
use super::levels::levels;
use super::policy::{Common, FailureArgs};
use super::walk::CompressedArgs;
use crate::cli::values::{at_least_one, group, size};
use crate::engine::policy::Policy;
use crate::mailbox::{Format, ReadOptions};
use crate::serve::{ServeAddress, ServeLimits};

const STORE: &str = "Move attachments to this store, and restore them";
const STORE_LONG: &str = "Move attachments to this store, and restore them\n\n\
    The store is a directory, s3://BUCKET/PREFIX or https://HOST/PATH. Without it, the requests detach and objects are refused.";
const DEFER: &str = "Action while content is unavailable: leave or defer [default: leave]";
const DEFER_LONG: &str = "Action while content is unavailable: leave or defer [default: leave]\n\n\
    leave keeps the reference. defer gives the client a response with status 503, so that it can try again later.";

const EXPANDED: &str =
    "Maximum size of a mailbox after decompression [default: four times --max-mailbox]";

/// Port of the service.
const PORT: u16 = 9997;

const MAX_REQUEST: u64 = 64 << 20;
const MAX_MAILBOX: u64 = 4 << 30;
const MAX_QUEUE: usize = 64;
const MAX_CONNECTIONS: usize = 128;

/// Minimum of the default of `--jobs`.
const FEWEST_JOBS: usize = 8;

#[derive(Args, Debug)]
#[group(skip)]
#[command(mut_arg("store", |option| option.help(STORE).long_help(STORE_LONG).value_name("DIR|URL").value_parser(store)))]
#[command(mut_arg("on_failure", |option| option.help(DEFER).long_help(DEFER_LONG)))]
#[command(mut_arg("max_expanded", |option| option.help(EXPANDED).long_help(EXPANDED)))]
#[command(mut_args(levels(
    &["listen", "token_file", "store", "allow_host_header"],
    &["base_url", "max_request", "max_mailbox", "spool", "larger_than"]
)))]
pub(crate) struct ServeArgs {
    /// Address: host:port or unix:/path [default: 127.0.0.1:9997]
    ///
    /// An address that other machines can reach needs --token-file. Only the user of the process can use the socket of
    /// unix:/path. The option may be given several times.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<ServeAddress>,
    /// File with the token that each request must contain
    ///
    /// A request contains the token in the field Authorization: Bearer TOKEN. Only /healthz needs no token.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Accept requests to this name, too, e.g. the name of the container
    ///
    /// A request whose Host field contains another name than the address of --listen is refused, because a web page
    /// could otherwise send requests to this service.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub allow_host_header: Vec<String>,
    /// Ask a running service whether it accepts requests
    ///
    /// Asks the service at the address of --listen. The exit status is 0 if the service accepts requests, and otherwise 1.
    /// Health checks of containers can use this option.
    #[arg(long)]
    pub check: bool,
    /// Number of messages at a time [default: one for each core, at least 8]
    ///
    /// More than one for each core is useful, because messages wait for servers and for the disk of the store.
    #[arg(short, long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<usize>,
    /// Group of the socket file, by name or number
    ///
    /// The members of the group can connect. Without this option, only the user of the process can.
    #[arg(long, value_name = "GROUP", value_parser = group)]
    pub socket_group: Option<u32>,
    /// Maximum size of a message in a request [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_request: Option<u64>,
    /// Maximum size of a mailbox in a request [default: 4G]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_mailbox: Option<u64>,
    /// Directory for mailboxes while they are read [default: that of the system]
    ///
    /// At most two mailboxes are read at a time, so the directory needs twice the space of --max-mailbox, and more if Outlook
    /// mailboxes are in archives (--max-expanded).
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// Maximum number of messages that wait [default: 64]
    ///
    /// Further requests get a response with status 429.
    #[arg(long, value_name = "N")]
    max_queue: Option<usize>,
    /// Maximum number of connections [default: 128]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_connections: Option<usize>,
    #[command(flatten)]
    pub selection: SelectionArgs,
    #[command(flatten)]
    failure: FailureArgs,
    #[command(flatten)]
    pub compressed: CompressedArgs,
    #[command(flatten)]
    pub common: Common,
}

/// Returns the absolute path of a directory, or the URL of a store on a server.
fn store(text: &str) -> Result<PathBuf, String> {
    if text.contains("://") {
        Ok(text.into())
    } else {
        super::retrieval::file_root(text)
    }
}

impl ServeArgs {
    pub(crate) fn addresses(&self) -> Vec<ServeAddress> {
        match self.listen.as_slice() {
            [] => vec![ServeAddress::Tcp {
                host: "127.0.0.1".to_owned(),
                port: PORT,
            }],
            given => given.to_vec(),
        }
    }

    pub(crate) fn spool(&self) -> PathBuf {
        self.spool.clone().unwrap_or_else(std::env::temp_dir)
    }

    pub(crate) fn is_spool_given(&self) -> Option<&Path> {
        self.spool.as_deref()
    }

    pub(crate) fn limits(&self) -> ServeLimits {
        ServeLimits {
            max_request: self.max_request.unwrap_or(MAX_REQUEST),
            max_mailbox: self.max_mailbox.unwrap_or(MAX_MAILBOX),
            max_queue: self.max_queue.unwrap_or(MAX_QUEUE),
            max_connections: self.max_connections.unwrap_or(MAX_CONNECTIONS),
            jobs: self
                .jobs
                .unwrap_or_else(|| ReadOptions::default().jobs.max(FEWEST_JOBS)),
        }
    }

    /// Returns the policy of a command with the options `common`.
    pub(crate) fn policy(&self, common: &Common) -> Policy {
        self.failure.added_to(common.policy.policy())
    }
}

// The options of a request with a mailbox.
#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct MailboxArgs {
    /// Format of the mailbox
    #[arg(long, value_name = "WHAT", default_value = "auto")]
    pub format: Format,
    #[command(flatten)]
    pub compressed: CompressedArgs,
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    #[test]
    fn help_of_serve_states_the_real_limits() {
        let command = ServeArgs::augment_args(clap::Command::new("x"));
        let limits = |words: &[String]| {
            let matches = command.clone().get_matches_from(words);
            format!(
                "{:?}",
                ServeArgs::from_arg_matches(&matches).unwrap().limits()
            )
        };
        let defaults = limits(&["x".to_owned()]);
        for name in ["max-request", "max-mailbox", "max-queue", "max-connections"] {
            let mut options = command.get_arguments();
            let option = options.find(|it| it.get_long() == Some(name)).unwrap();
            let help = option.get_help().unwrap().to_string();
            let value = help
                .split_once("[default: ")
                .unwrap()
                .1
                .trim_end_matches(']');
            let words = ["x".to_owned(), format!("--{name}={value}")];
            assert_eq!(limits(&words), defaults, "{name}");
            assert_ne!(limits(&["x".to_owned(), format!("--{name}=7")]), defaults);
        }
    }
}
