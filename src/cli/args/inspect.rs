//! Options of `inspect`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::super::values::size;
#[cfg(all(unix, feature = "imap"))]
use super::imap::ImapArgs;
use super::levels::levels;
use super::policy::{FOLLOWED, PolicyArgs};
use super::walk::CompressedArgs;
use crate::engine::Mode;
use crate::engine::policy::{Policy, Trackers, UnfollowedKinds};
use crate::mailbox::Format;

/// Property by which numbers are grouped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SurveyGroup {
    /// The hosts that mail refers to
    Host,
    /// The media types of attachments
    Type,
    /// The years of the Date fields
    Year,
    /// The domains of the From fields
    Sender,
    /// The outcome of references and documents
    Outcome,
}

#[derive(Args, Debug)]
#[group(skip)]
#[command(mut_arg("follow", |option| option.help(FOLLOWED)))]
#[command(mut_args(levels(
    &["json", "html", "probe", "by", "embed", "duplicates", "save_attachments"],
    &["keys", "larger_than", "messages", "links"]
)))]
pub(crate) struct InspectArgs {
    /// Messages, mailboxes, archives, directories or imaps: URLs [default: standard input]
    #[arg(value_name = "SOURCE")]
    pub(crate) sources: Vec<PathBuf>,
    /// Print JSON lines, one per reference
    ///
    /// For mailboxes, and with --by or --embed, the last line contains the survey, {"survey":{...}}. docs/survey.md
    /// describes its fields.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the survey to this file as an HTML page
    ///
    /// The page needs no network. An earlier page of embody is overwritten; another existing file is not. The name - means standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print the messages, for other programs
    ///
    /// Before each message there is a JSON line with its source, its index, and its length in bytes. After the message
    /// there is a line ending. Messages are printed unchanged, apart from the quoting of mboxes, which is undone.
    #[arg(long, conflicts_with_all = ["json", "html", "by", "larger_than", "probe"])]
    pub(crate) messages: bool,
    /// Print the keys of all messages, for other programs
    ///
    /// A JSON line for each message contains its source, its index, its length in bytes, its position in the file, and the key
    /// that all copies of the mail have in common. Mails with different keys are never copies of each other.
    #[arg(long, conflicts_with_all = ["json", "html", "by", "larger_than", "messages", "probe"])]
    pub(crate) keys: bool,
    /// Count the mails that are in several sources, and the bytes that embody merge would save
    ///
    /// Mails are compared as in embody merge, so a copy may lack parts. For each pair of sources, the number of common mails
    /// is printed, and for all sources the number of missing parts that recover --copies would fill. Nothing is written.
    #[arg(long, conflicts_with_all = ["html", "by", "keys", "larger_than", "messages", "probe", "verbose"])]
    pub(crate) duplicates: bool,
    /// Write all attachments as named files into DIR
    ///
    /// A name is the date, the sender and the name in the mail, as in "2020-03-01 Anna - report.pdf". DIR/index.csv lists the mail, the name and the SHA-256 of each file. Files that exist are never overwritten, and the
    /// mail is not changed.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["duplicates", "keys", "messages"])]
    pub(crate) save_attachments: Option<PathBuf>,
    /// Group the survey by host, type, year, sender, outcome
    #[arg(
        long,
        value_delimiter = ',',
        hide_possible_values = true,
        value_name = "WHAT,..."
    )]
    pub(crate) by: Vec<SurveyGroup>,
    /// Size of attachments that detach would move [default: 100k]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) larger_than: Option<u64>,
    /// Print every count, and name files that contain no mail on stderr
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Ask each server whether it has the content
    ///
    /// Without --fetch, http and https servers are asked. The request is HEAD, or GET for servers that do not support HEAD. Content is retrieved only if a server
    /// announces a wrong type, such as a web page in place of a picture. Pictures that HTML displays are included,
    /// under the same policy. Trackers and links that one clicks are not.
    #[arg(long)]
    probe: bool,
    /// Format of the sources
    #[arg(long, value_name = "WHAT", default_value = "auto")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) compressed: CompressedArgs,
    #[cfg(all(unix, feature = "imap"))]
    #[command(flatten)]
    pub(crate) imap: ImapArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
}

impl InspectArgs {
    /// Returns the options, extended so that winmail.dat parts are unpacked. Their content is already in the message,
    /// so this needs no request. A probe asks servers over the same schemes as `embed` and `recover`.
    pub(crate) fn opening(mut self) -> Self {
        self.policy.open();
        if self.probe {
            self.policy.fetch_by_default();
        }
        self
    }

    pub(crate) fn mode(&self) -> Mode {
        if self.probe || self.policy.cache.offline {
            Mode::Probe
        } else {
            Mode::DryRun
        }
    }

    /// Returns the policy for a survey. With `--probe`, servers are also asked for pictures and for all missing
    /// attachments, but never for trackers.
    pub(crate) fn probing_policy(&self) -> Policy {
        let mut policy = self.policy.policy();
        policy.unfollowed = UnfollowedKinds::All;
        if self.probe {
            policy.embed.remote = true;
            policy.embed.trackers = Trackers::Leave;
            // A probe finds missing attachments by the same forms of reference that `recover` follows.
            policy.follow = policy.follow.with_attachments();
        }
        policy
    }
}
