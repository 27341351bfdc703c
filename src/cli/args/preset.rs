//! Options of `embed` and `recover`, which are `convert` or `filter` with other defaults.

use std::path::{Path, PathBuf};

use clap::Args;

use super::convert::ConvertArgs;
use super::filter::FilterArgs;
use super::levels::levels;
use super::policy::{Common, FOLLOWED, FailureArgs};
use super::walk::{MAILBOXES, ResumeArgs, WalkArgs};
use crate::error::Error;

// The options of `embed` and `recover`. Both commands run `convert` with other defaults, or `filter` with other defaults if
// the run has neither --output nor --in-place and so processes one message.
#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct PresetArgs {
    /// One message [default: standard input]; or, with --output or --in-place, mailboxes, directories and
    /// imaps: URLs
    #[arg(value_name = "FILE|SOURCE")]
    sources: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) walk: WalkArgs,
    #[command(flatten)]
    failure: FailureArgs,
    /// With --dry-run: ask each server whether it has the content
    ///
    /// The request is HEAD, or GET for servers that do not support HEAD.
    #[arg(long, requires = "dry_run", help_heading = MAILBOXES)]
    probe: bool,
    #[command(flatten)]
    resume: ResumeArgs,
    #[command(flatten)]
    common: Common,
}

// The defaults of `embed` are `--embed data,remote --fetch http,https`.
#[derive(Args, Debug)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("where").args(["output", "in_place"])))]
#[command(mut_arg("embed", |option| option.help(EMBEDDED).long_help(EMBEDDED)))]
#[command(mut_arg("fetch", |option| option.help(RETRIEVED_FROM)))]
#[command(mut_arg("follow", |option| option.help(FOLLOWED)))]
#[command(mut_arg("archive", |option| option.help_heading("Retrieval")))]
#[command(mut_args(levels(
    &["backup", "embed", "trackers", "embed_kinds"],
    &["archive", "html"]
)))]
pub(crate) struct EmbedArgs {
    #[command(flatten)]
    pub(crate) preset: PresetArgs,
}

// The defaults of `recover` are `--fetch http,https` and `--follow` with all forms of reference that replace an
// attachment.
#[derive(Args, Debug)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("where").args(["output", "in_place"])))]
#[command(mut_arg("attachments", |option| option.help(ATTACHMENTS).long_help(ATTACHMENTS)))]
#[command(mut_arg("follow", |option| option.help(RECOVERED).long_help(RECOVERED_KINDS)))]
#[command(mut_arg("offline", |option| option.help(OFFLINE)))]
#[command(mut_arg("fetch", |option| option.help(RETRIEVED_FROM)))]
#[command(mut_arg("archive", |option| option.help_heading("Retrieval")))]
#[command(mut_args(levels(
    &["backup", "attachments", "copies", "offline"],
    &["archive", "html", "resolver"]
)))]
pub(crate) struct RecoverArgs {
    #[command(flatten)]
    pub(crate) preset: PresetArgs,
}

const EMBEDDED: &str = "Embed pictures of HTML mail: data, remote [default: data,remote]";

const RETRIEVED_FROM: &str =
    "Retrieve over these schemes: http, https, ftp, file [default: http,https]";

const ATTACHMENTS: &str = "Look for missing attachments in this directory first";

const OFFLINE: &str = "Make no network requests: use files, --cache and --archive";

const RECOVERED: &str =
    "Kinds of references to follow; -NAME removes one [default: all that replace an attachment]";

const RECOVERED_KINDS: &str = "Kinds of references to follow; -NAME removes one [default: thunderbird, exchange, apple, eudora, \
    mailman, mailman-digests, sympa, yahoo-groups, gmail, outlook, mail-drop, filelink, winmail]\n\nOther values: links (cloud files \
    that the text links to), shortcuts (.url files), all, none.";

impl EmbedArgs {
    /// Returns the options of `convert`, which processes mailboxes.
    pub(crate) fn convert(self) -> Result<ConvertArgs, Error> {
        self.preset.convert(Common::embedding)
    }

    /// Returns the options of `filter`, which processes one message.
    pub(crate) fn filter(self) -> Result<FilterArgs, Error> {
        self.preset.filter(Common::embedding)
    }
}

impl RecoverArgs {
    /// Returns the options of `convert`, which processes mailboxes.
    pub(crate) fn convert(self) -> Result<ConvertArgs, Error> {
        let args = self.preset.convert(Common::recovering)?;
        Ok(ConvertArgs {
            needs_attachments: true,
            ..args
        })
    }

    /// Returns the options of `filter`, which processes one message.
    pub(crate) fn filter(self) -> Result<FilterArgs, Error> {
        self.preset.filter(Common::recovering)
    }
}

impl PresetArgs {
    fn convert(self, preset: impl FnOnce(Common) -> Common) -> Result<ConvertArgs, Error> {
        let what = match (self.failure.on_failure, self.sources.is_empty()) {
            (Some(_), _) => {
                "--on-failure works only with one message on standard input, which a mail system delivers again later"
            }
            (None, true) => "no source is given: name mboxes, Maildirs or messages",
            (None, false) => {
                return Ok(ConvertArgs {
                    sources: self.sources,
                    walk: self.walk,
                    probe: self.probe,
                    range: None,
                    expect: None,
                    needs_attachments: false,
                    resume: self.resume,
                    common: preset(self.common),
                });
            }
        };
        Err(Error::Usage(what.into()))
    }

    fn filter(self, preset: impl FnOnce(Common) -> Common) -> Result<FilterArgs, Error> {
        let no_resume = self.resume.no_resume;
        let file = self.walk.one_message(&self.sources, no_resume)?;
        Ok(FilterArgs {
            file: file.map(Path::to_owned),
            failure: self.failure,
            common: preset(self.common),
        })
    }
}
