//! Options of `convert`.

use std::ops::Range;
use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;

use super::super::streams::is_standard;
use super::super::values::{expected, range};
use super::levels::levels;
use super::policy::{Common, FOLLOWED};
use super::walk::{MAILBOXES, ResumeArgs, WalkArgs};
use crate::engine::Mode;
use crate::engine::policy::Policy;
use crate::error::Error;
use crate::mailbox::Options;

#[derive(Args, Debug)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("where").required(true).args(["output", "in_place"])))]
#[command(mut_arg("follow", |option| option.help(FOLLOWED)))]
#[command(mut_args(levels(
    &["backup", "follow", "attachments", "embed"],
    &["links", "range"]
)))]
pub(crate) struct ConvertArgs {
    /// Mailboxes, messages, directories of them, archives or imaps: URLs
    ///
    /// Mailboxes are mbox, MMDF, Maildir, MH and those of Apple Mail and Eudora, also compressed. Zip and tar archives and
    /// imaps: URLs need --output; an imaps: URL can also be changed with --in-place.
    #[arg(required = true, value_name = "SOURCE")]
    pub(crate) sources: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) walk: WalkArgs,
    /// With --dry-run: ask each server whether it has the content
    ///
    /// The request is HEAD, or GET for servers that do not support HEAD.
    #[arg(long, requires = "dry_run", help_heading = MAILBOXES)]
    pub(super) probe: bool,
    /// Only messages of an mbox that begin in the bytes A up to B [default: all]
    ///
    /// The byte B itself is not included. The results of adjacent ranges, concatenated, are identical to the result of
    /// one run, wherever the cuts are. embody split prints such ranges. Messages are numbered from 1 in each range. See
    /// docs/scale.md.
    #[arg(long, value_name = "A-B", help_heading = MAILBOXES, conflicts_with = "in_place", value_parser = range)]
    pub(super) range: Option<Range<u64>>,
    /// Refuse a SOURCE that has another length or modification time
    ///
    /// The seconds are those that embody split prints, with nine digits after the point.
    #[arg(long, value_name = "LENGTH[:SECONDS]", help_heading = MAILBOXES, requires = "range", value_parser = expected)]
    pub(super) expect: Option<(u64, Option<SystemTime>)>,
    /// Whether it is an error if the directories of `--attachments` contain none of the missing files. Only `recover`
    /// sets this: its purpose is to find attachments, so the user probably named the wrong directory.
    #[arg(skip)]
    pub(crate) needs_attachments: bool,
    #[command(flatten)]
    pub(crate) resume: ResumeArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

impl ConvertArgs {
    pub(crate) fn mode(&self) -> Mode {
        // With `--offline`, no requests are sent. A dry run can then look up each content in the cache, as a probe
        // does, so its preview says which content is available.
        self.walk
            .mode(self.probe || self.common.policy.cache.offline)
    }

    pub(crate) fn options(&self, policy: &Policy) -> Result<Options, Error> {
        let why = match self.sources.as_slice() {
            [source] if self.range.is_some() && is_standard(source) => {
                "--range works only with a file, not with standard input"
            }
            [_, _, ..] if self.range.is_some() => {
                "--range works only for one mbox; run the command once for each mbox"
            }
            _ => {
                let mut options = self.walk.options(policy, self.mode());
                options.read.range.clone_from(&self.range);
                options.read.length = self.expect.map(|(length, _)| length);
                options.read.modified = self.expect.and_then(|(_, modified)| modified);
                return Ok(options);
            }
        };
        Err(Error::Usage(why.into()))
    }
}

impl ConvertArgs {
    /// Returns a text with the options that determine which content a run obtains, apart from the policy.
    pub(crate) fn sources_of_content(&self) -> String {
        let policy = &self.common.policy;
        let (cache, archive) = (&policy.cache.cache, &policy.archive);
        format!("{:?}", (self.common.mark, cache, archive))
    }

    /// Returns the options, extended so that winmail.dat parts are unpacked. Their content is already in the message,
    /// so this needs no request.
    pub(crate) fn opening(self) -> Self {
        Self {
            common: self.common.opening(),
            ..self
        }
    }
}
