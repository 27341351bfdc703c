//! The options of `embody milter`.

use std::time::Duration;

use clap::Args;

use super::levels::levels;
use super::policy::{Common, FailureArgs};
use crate::cli::values::{at_least_one, group, octal};
use crate::engine::policy::Policy;
use crate::error::Error;
use crate::milter::Address;

/// Default of `--max-message`, in bytes. It is 8% below Postfix's default limit of 10,240,000 bytes, because Postfix
/// counts each line ending as two bytes. A message of this size is then accepted.
const MOST: u64 = 9 << 20;

const MAX_MESSAGE: &str = "Maximum size of one message, with new content [default: 9M]";

/// Maximum of `--deadline`. Mail systems wait 300 seconds for a reply, and the work after the retrievals also needs
/// time.
const LONGEST_DEADLINE: Duration = Duration::from_secs(240);

#[derive(Args, Debug)]
#[group(skip)]
#[command(mut_arg("max_message", |option| option.help(MAX_MESSAGE)))]
#[command(mut_arg("resolver", |option| option.hide(true)))]
#[command(mut_args(levels(
    &["listen", "on_failure", "embed", "links", "max_message"],
    &["socket_group", "socket_mode", "max_connections", "metrics"]
)))]
pub(crate) struct MilterArgs {
    /// Socket for the mail system: unix:/path or inet:host:port
    ///
    /// inet:port listens on 127.0.0.1. The option may be given several times. Sockets that systemd passes to the
    /// process are used, too.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<Address>,
    /// Group of the socket file, by name or number
    ///
    /// Usually the group of the mail system, so that only the mail system can connect. Without this option the socket
    /// file has the group of the process. Only root and members of the group can set this group.
    #[arg(long, value_name = "GROUP", value_parser = group)]
    pub socket_group: Option<u32>,
    /// Permissions of the socket file, in octal [default: 0660]
    #[arg(long, value_name = "MODE", value_parser = octal)]
    pub socket_mode: Option<u32>,
    /// Maximum number of connections [default: 128]
    ///
    /// Messages on further connections get a temporary failure.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub max_connections: Option<usize>,
    /// Socket for counters in Prometheus format, e.g. inet:9891
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<Address>,
    #[command(flatten)]
    failure: FailureArgs,
    #[command(flatten)]
    pub common: Common,
}

impl MilterArgs {
    /// Returns the policy. Without `--max-message`, a message must not grow beyond the size that mail systems accept.
    pub(crate) fn policy(&self) -> Result<Policy, Error> {
        if self.common.policy.resolver.is_some() {
            let why = "--resolver cannot be used by a milter, because any sender could then retrieve files with your login; leave --resolver out";
            return Err(Error::Usage(why.into()));
        }
        let mut policy = self.failure.added_to(self.common.policy.policy());
        policy.limits.message.get_or_insert(MOST);
        if policy.limits.deadline > LONGEST_DEADLINE {
            let why = format!(
                "--deadline must be at most {} s, and 0 (no limit) is not allowed, because mail systems wait only 300 s for a milter",
                LONGEST_DEADLINE.as_secs()
            );
            return Err(Error::Usage(why.into()));
        }
        Ok(policy)
    }
}
