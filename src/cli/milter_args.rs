//! The options of `embody milter`.

use std::time::Duration;

use clap::Args;

use super::archive_args::ArchiveArgs;
use super::cache_args::CacheArgs;
use super::policy_args::PolicyArgs;
use super::shared_args::{OnFailureOption, SayingArgs};
use super::values::{at_least_one, octal};
use crate::error::Error;
use crate::expand::Mark;
use crate::milter::Address;
use crate::policy::Policy;

/// The largest message that is made, unless said otherwise: Postfix takes 10,240,000 octets, in which line ends count
/// twice.
const MOST: u64 = 9 << 20;

/// Other commands have no limit.
const MAX_MESSAGE: &str =
    "A message with everything put in; what no longer fits is left [default: 9M]";

/// Connections at a time, unless said otherwise: Postfix has 100 processes that may have one.
const CONNECTIONS: usize = 128;

/// Mail systems wait for 300 seconds, and something is to be left for what is not retrieving.
const LONGEST_DEADLINE: Duration = Duration::from_secs(240);

#[derive(Args, Debug)]
#[command(mut_arg("max_message", |option| option.help(MAX_MESSAGE)))]
pub(super) struct MilterArgs {
    /// unix:/path or inet:host:port [default: none]
    ///
    /// Where the mail system connects: unix:/path, inet:host:port, or inet:port, which is on 127.0.0.1. Several may be
    /// given, and what systemd hands over comes besides.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Vec<Address>,
    /// Permissions of the socket's file, in octal [default: 0660]
    #[arg(hide_short_help = true, long, value_name = "MODE", value_parser = octal)]
    socket_mode: Option<u32>,
    /// Connections at a time; messages of those above are to be tried again later [default: 128]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = at_least_one)]
    max_connections: Option<usize>,
    /// Where counts are told in Prometheus's format, e.g. inet:9891 [default: none]
    #[arg(hide_short_help = true, long, value_name = "ADDRESS")]
    pub(super) metrics: Option<Address>,
    /// Temporary failure: leave or defer [default: leave]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "WHAT")]
    on_failure: Option<OnFailureOption>,
    /// Add one header field, X-Embody, to messages that hold references [default: off]
    #[arg(hide_short_help = true, long)]
    mark: bool,
    #[command(flatten)]
    pub(super) saying: SayingArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

impl MilterArgs {
    /// What is allowed. A message may not become larger than mail systems take unless the option says so.
    ///
    /// # Errors
    /// A deadline for which a mail system would not wait.
    pub(super) fn policy(&self) -> Result<Policy, Error> {
        let mut policy = Policy {
            on_failure: self.on_failure.unwrap_or_default().into(),
            ..self.policy.policy()
        };
        policy.limits.message.get_or_insert(MOST);
        if policy.limits.deadline > LONGEST_DEADLINE {
            let why = format!(
                "--deadline is above {} s, or 0 for no limit: mail systems wait 300 s for a milter",
                LONGEST_DEADLINE.as_secs()
            );
            return Err(Error::Usage(why.into()));
        }
        Ok(policy)
    }

    /// The cache's options.
    pub(super) fn cache(&self) -> &CacheArgs {
        self.policy.cache()
    }

    /// The archive's options.
    pub(super) fn archive(&self) -> &ArchiveArgs {
        self.policy.archive()
    }

    pub(super) fn mark(&self) -> Mark {
        if self.mark { Mark::Field } else { Mark::Off }
    }

    pub(super) fn socket_mode(&self) -> u32 {
        self.socket_mode.unwrap_or(0o660)
    }

    pub(super) fn max_connections(&self) -> usize {
        self.max_connections.unwrap_or(CONNECTIONS)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;

    #[test]
    fn the_help_says_how_large_a_message_may_become() {
        let command = MilterArgs::augment_args(Command::new("x"));
        let mut options = command.get_arguments();
        let option = options.find(|it| it.get_long() == Some("max-message"));
        let help = option.unwrap().get_help().unwrap().to_string();
        let (_, behind) = help.split_once("[default: ").unwrap();
        let (value, _) = behind.split_once(']').unwrap();
        let message = |words: &[&str]| {
            let matches = command.clone().get_matches_from(words);
            let args = MilterArgs::from_arg_matches(&matches).unwrap();
            args.policy().unwrap().limits.message
        };
        assert_eq!(message(&["x"]), Some(MOST));
        assert_eq!(message(&["x", "--max-message", value]), Some(MOST));
    }
}
