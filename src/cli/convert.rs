//! `embody convert`: processes whole mailboxes, and writes the result to a new mailbox or in place.

use super::args::ConvertArgs;
use super::cache::{Cache, shared_fetcher};
use super::copies::CopyMailboxes;
use super::exit::{ProgramStatus, Signals};
use super::outcomes::Task;
use super::picture_watch::{NOTICE, PictureWatch};
#[cfg(all(unix, feature = "imap"))]
use super::remote;
use super::thumbnail::ThumbnailChoice;
use super::verb::ExpandRun;
use super::walk::{Walk, WalkSources};
#[cfg(all(unix, feature = "imap"))]
use crate::engine::Mark;
use crate::engine::Mode;
use crate::engine::lengths::Lengths;
use crate::engine::policy::Trackers;
use crate::error::Error;
use crate::expand::Expander;
use crate::mailbox::LockWaits;

pub(super) fn run(args: &ConvertArgs) -> Result<ProgramStatus, Error> {
    let common = &args.common;
    let policy = common.policy.policy();
    let mut options = args.options(&policy)?;
    options.read.may_lack_mail = args.sources.len() > 1;
    let walk = Walk {
        sources: args.sources.clone(),
        args: &args.walk,
        output: args.walk.output.as_deref(),
        saying: &common.saying,
        options,
        mode: args.mode(),
        #[cfg(all(unix, feature = "imap"))]
        candidates: remote::candidates(&policy, common.mark != Mark::Off),
        #[cfg(all(unix, feature = "imap"))]
        objects: None,
        word: match args.mode() {
            _ if policy.fetch.is_empty() => "dry run, nothing was written: ",
            Mode::DryRun => "dry run, nothing was written or retrieved: ",
            _ => {
                "dry run, nothing was written, servers were only asked whether they have the content: "
            }
        },
        task: Task::FillIn,
        policy: &policy,
        needs_attachments: args.needs_attachments,
        files: None,
        thumbnail: ThumbnailChoice::default(),
        signals: Signals::watch(),
        known: WalkSources::default(),
        lock_waits: LockWaits::default(),
    };
    walk.check()?;
    // `--embed remote` needs --fetch http or https. With `--trackers blank`, it is also useful without --fetch, because
    // trackers are replaced without network requests.
    let needs_http = policy.embed.remote && policy.embed.trackers != Trackers::Blank;
    if needs_http && !walk.retrieves_http() && args.mode().writes() {
        let what = "--embed remote retrieves pictures over http and https, but --fetch allows neither; add --fetch http,https";
        return Err(Error::Usage(what.into()));
    }
    if args.mode() == Mode::Probe && !common.policy.cache.offline && policy.fetch.is_empty() {
        let what = "--probe asks servers whether they have the content, but --fetch allows no requests; add --fetch http,https";
        return Err(Error::Usage(what.into()));
    }
    let resume = walk.resume(
        &args.resume,
        common.policy.cache.offline,
        &args.sources_of_content(),
    )?;
    let cache = Cache::of(&common.policy, args.mode(), resume.as_ref())?;
    cache.open_record(&args.sources, walk.targets()?)?;
    let stop = &walk.signals.stop;
    let copies =
        match CopyMailboxes::read(&policy, &walk.options.read, walk.copies_progress(), stop) {
            Err(Error::Interrupted) => return Ok(walk.signals.status()),
            copies => copies?,
        };
    let expander = Expander::builder(policy.clone())
        .fetch_with(|policy| {
            let sources = copies.before(policy, shared_fetcher(policy, &cache, stop)?);
            Ok(match &args.walk.html {
                Some(_) => walk.thumbnail.watching(sources),
                None => sources,
            })
        })?
        .mark(common.mark)
        .build()?;
    cache.read_archive(expander.policy(), &walk.signals.stop)?;
    let expanding = ExpandRun {
        expander,
        mode: walk.mode,
        lengths: Lengths::Corrected,
        recorder: cache.recorder.clone(),
        tells_rows: common.saying.tells_rows() || args.walk.html.is_some(),
        pictures: PictureWatch::of(&policy),
    };
    let done = walk.run(&expanding, None, resume.as_ref(), |_, _| {
        if expanding.pictures.has_met() {
            format!("{NOTICE}.\n")
        } else {
            String::new()
        }
    });
    cache.tell_trouble(common.saying.volume());
    match done {
        Ok(ProgramStatus::Success) if cache.tell_record() || copies.is_damaged => {
            Ok(ProgramStatus::Trouble)
        }
        done => done,
    }
}
