//! `embody detach` and `embody restore`. Both process one message as a filter, convert mailboxes to a new mailbox, or change
//! mailboxes in place.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::{DetachArgs, OutputVolume, PolicyArgs, RestoreArgs, SayingArgs, WalkArgs};
use super::cache::{Cache, Resume, shared_fetcher};
use super::exit::{ProgramStatus, Signals};
use super::filter::FilterRun;
use super::named_files::NamedFiles;
use super::outcomes::Task;
use super::picture_watch::PictureWatch;
use super::say;
use super::sizes::{option_size, size};
use super::streams::{is_standard, standard};
use super::thumbnail::ThumbnailChoice;
use super::verb::{DetachRun, ExpandRun};
use super::walk::{SearchedMail, Walk, WalkSources};
use crate::engine::lengths::Lengths;
use crate::engine::policy::Policy;
use crate::engine::{Mark, Mode, Prefilter};
use crate::error::Error;
use crate::expand::Expander;
use crate::expand::detach::{Choice, Detacher, Settings};
use crate::fetch::store::{self, Mail, Store, StorePurpose, User};
#[cfg(all(unix, feature = "imap"))]
use crate::imap::candidates::Candidates;
use crate::mailbox::{LockWaits, Stop};

/// Number of messages whose objects are synced to the disk together.
const WAIT_FOR_DISK: usize = 16;

pub(super) const MAILBOXES: &str = "name --output or --in-place, as in --output new.mbox";

pub(super) fn detach(args: &DetachArgs) -> ProgramStatus {
    let policy = args.policy();
    if args.walk.walks() {
        ProgramStatus::of(detach_all(args, &policy))
    } else {
        ProgramStatus::of_one_message(detach_one(args, &policy))
    }
}

fn detach_one(args: &DetachArgs, policy: &Policy) -> Result<(), Error> {
    let file = args.sources.first().map(PathBuf::as_path);
    let job = FilterRun::begin(&args.saying, file, "detach", MAILBOXES)?;
    args.walk
        .one_message(&args.sources, args.resume.no_resume)?;
    let files = named_files(args.files.as_deref(), args.walk.dry_run)?;
    let (detaching, store) = detacher(args, policy, files.clone())?;
    if let Some(store) = store {
        store.puts_from(User::this(Mail::Filtered));
    }
    let job = job.with_files(files.as_deref());
    job.run(&detaching, &Prefilter::of_attachments(), policy, Mark::Off)
}

fn detach_all(args: &DetachArgs, policy: &Policy) -> Result<ProgramStatus, Error> {
    let store = Some(args.store.as_str());
    let files = named_files(args.files.as_deref(), args.walk.dry_run)?;
    let mailboxes = (args.sources.as_slice(), args.walk.mode(false));
    let walk = over_mailboxes(mailboxes, &args.walk, &args.saying, policy, store)?;
    // A message that waits for the disk uses no core. The store syncs the objects of all waiting messages together, so
    // more messages in flight mean fewer syncs.
    let mut options = walk.options.clone();
    options.read.max_in_flight = options.read.max_in_flight.max(WAIT_FOR_DISK);
    let walk = Walk {
        options,
        #[cfg(all(unix, feature = "imap"))]
        candidates: Candidates::Attachments {
            least: args.choice().larger_than,
            types: args.choice().types,
        },
        task: Task::Detach,
        files: files.clone(),
        ..walk
    };
    walk.check()?;
    let resume = walk.resume(&args.resume, false, &args.kept())?;
    let (detaching, store) = detacher(args, policy, files.clone())?;
    let walk_with_store = walk.with_objects(store.clone());
    let status = walk_with_store.run(&detaching, store.as_deref(), resume.as_ref(), |counts, searched| {
        // After an error, the mailbox may contain large attachments that the run did not see.
        if !counts.has_large_attachments() && searched != SearchedMail::Unknown {
            return nothing_is_large(args.choice().larger_than, searched);
        }
        let (objects, octets) = detaching.detacher.foreseen();
        if args.walk.dry_run {
            return format!("The store would contain {objects} objects with these attachments: {octets} bytes.\n");
        }
        let ended = files.as_ref().map(|files| files.ended().0 + "\n");
        ended.unwrap_or_default()
    })?;
    Ok(with_files(status, files.as_deref(), args.saying.volume()))
}

/// Opens the directory of `--files`. A dry run writes no files.
fn named_files(
    directory: Option<&Path>,
    is_dry_run: bool,
) -> Result<Option<Arc<NamedFiles>>, Error> {
    let directory = directory.filter(|_| !is_dry_run);
    directory
        .map(|it| NamedFiles::open(it).map(Arc::new))
        .transpose()
}

/// Returns the exit status of a run that also writes attachments as files (`--files`). A failure to write such a file
/// is reported here; the mail itself is complete.
fn with_files(
    status: ProgramStatus,
    files: Option<&NamedFiles>,
    volume: OutputVolume,
) -> ProgramStatus {
    let Some((text, false)) = files.map(NamedFiles::ended) else {
        return status;
    };
    if volume < OutputVolume::Normal {
        say::tell(&text);
    }
    match status {
        ProgramStatus::Success => ProgramStatus::Trouble,
        other => other,
    }
}

/// Returns advice for a mailbox in which no attachment of the searched messages has the minimum size.
fn nothing_is_large(larger_than: u64, searched: SearchedMail) -> String {
    const UNIT: u64 = 1 << 10;
    let least = larger_than.max(Choice::LEAST);
    let smaller = (least / 10 / UNIT * UNIT).max(Choice::LEAST);
    let of_others = match searched {
        SearchedMail::ExceptLarge => " of the searched messages",
        SearchedMail::All | SearchedMail::Unknown => "",
    };
    let advice = if smaller < least {
        let smaller = option_size(smaller);
        format!(
            "A smaller size moves more attachments, for example --larger-than {smaller}; embody inspect --html shows the sizes of all attachments."
        )
    } else {
        "A smaller attachment always stays in the mail, because the reference to it would be as long.".to_owned()
    };
    let size = size(least);
    format!("No attachment{of_others} has {size} or more. {advice}\n")
}

fn detacher(
    args: &DetachArgs,
    policy: &Policy,
    files: Option<Arc<NamedFiles>>,
) -> Result<(DetachRun, Option<Arc<dyn Store>>), Error> {
    let (store, base_url) = if args.walk.dry_run {
        // In a dry run the store is not opened, because opening it would create its directory.
        (None, store::unopened_base_url(&args.store, policy)?)
    } else {
        let store = open(&args.store, StorePurpose::Put, policy)?;
        let base_url = store.base_url();
        (Some(store), base_url)
    };
    let detacher = Detacher::new(Settings {
        store: store.clone(),
        base_url: args.base_url.clone().unwrap_or(base_url),
        choice: args.choice(),
        form: args.selection.note_format.unwrap_or_default(),
        text: args.selection.note,
        on_failure: policy.on_failure,
    });
    let objects = (!is_remote(&args.store)).then(|| PathBuf::from(&args.store));
    let files = files.map(|files| (files, objects));
    Ok((DetachRun { detacher, files }, store))
}

pub(super) fn restore(args: &RestoreArgs) -> ProgramStatus {
    let policy = args.policy();
    let opened = OnceCell::new();
    let status = if args.walk.walks() {
        ProgramStatus::of(restore_all(args, &policy, &opened))
    } else {
        ProgramStatus::of_one_message(restore_one(args, &policy, &opened))
    };
    if let Some(cache) = opened.get() {
        cache.tell_trouble(args.saying.volume());
    }
    status
}

/// Returns the mode of the run. With `--offline`, no requests are sent, so a dry run may look up each content in the
/// cache and say which content is available.
fn restore_mode(args: &RestoreArgs) -> Mode {
    args.walk.mode(args.cache.offline)
}

fn restore_one(args: &RestoreArgs, policy: &Policy, opened: &OnceCell<Cache>) -> Result<(), Error> {
    let file = args.sources.first().map(PathBuf::as_path);
    let job = FilterRun::begin(&args.saying, file, "restore", MAILBOXES)?;
    let no_resume = args.resume.no_resume && !args.cache.offline;
    args.walk.one_message(&args.sources, no_resume)?;
    let (restoring, _) = restorer(args, restore_mode(args), &Stop::default(), None, opened)?;
    job.run(&restoring, &Prefilter::of_detached(), policy, Mark::Off)
}

fn restore_all(
    args: &RestoreArgs,
    policy: &Policy,
    opened: &OnceCell<Cache>,
) -> Result<ProgramStatus, Error> {
    let store = args.store.as_deref();
    let mailboxes = (args.sources.as_slice(), restore_mode(args));
    let walk = over_mailboxes(mailboxes, &args.walk, &args.saying, policy, store)?;
    walk.check()?;
    let more = format!("{:?}", (&args.store, &args.cache.cache));
    let resume = walk.resume(&args.resume, args.cache.offline, &more)?;
    let mode = walk.mode;
    let (restoring, objects) = restorer(args, mode, &walk.signals.stop, resume.as_ref(), opened)?;
    let walk_with_store = walk.with_objects(objects);
    walk_with_store.run(&restoring, None, resume.as_ref(), |_, _| String::new())
}

fn restorer(
    args: &RestoreArgs,
    mode: Mode,
    stop: &Stop,
    resume: Option<&Resume>,
    opened: &OnceCell<Cache>,
) -> Result<(ExpandRun, Option<Arc<dyn Store>>), Error> {
    let is_remote = args.store.as_deref().is_some_and(is_remote);
    if is_remote && args.cache.offline {
        let what = "--store names a store on a server, but --offline makes no requests; leave --offline out, or name a store in a directory";
        return Err(Error::Usage(what.into()));
    }
    let mut policy = PolicyArgs::default();
    policy.cache = args.cache.clone();
    let new_cache = Cache::of(&policy, mode, resume)?;
    let cache = opened.get_or_init(|| new_cache);
    let mut builder = Expander::builder(args.policy())
        .fetch_with(|policy| shared_fetcher(policy, cache, stop))?
        .restoring();
    let mut objects = None;
    if let Some(store) = &args.store {
        let opened_store = open(store, StorePurpose::Read, &args.policy())?;
        builder = builder.store(Arc::clone(&opened_store));
        objects = Some(opened_store);
    }
    let run = ExpandRun {
        expander: builder.build()?,
        mode,
        lengths: Lengths::Reversible,
        recorder: None,
        tells_rows: true,
        pictures: PictureWatch::default(),
    };
    Ok((run, objects))
}

/// Creates the run over mailboxes. Without a source, `--output` and `--in-place`, a dry run reads one message from
/// standard input, like a filter.
fn over_mailboxes<'a>(
    (sources, mode): (&[PathBuf], Mode),
    args: &'a WalkArgs,
    saying: &'a SayingArgs,
    policy: &'a Policy,
    store: Option<&str>,
) -> Result<Walk<'a>, Error> {
    let is_of_filter = args.output.is_none() && !args.in_place;
    let (sources, output) = match sources {
        [] if is_of_filter => (vec![standard().to_owned()], Some(standard())),
        [source] if is_of_filter && is_standard(source) => (sources.to_vec(), Some(standard())),
        [] => {
            return Err(Error::Usage(
                "no source is given: name mboxes, Maildirs or messages".into(),
            ));
        }
        sources => (sources.to_vec(), args.output.as_deref()),
    };
    let mut options = args.options(policy, mode);
    options.read.may_lack_mail = sources.len() > 1;
    // A message that waits for a server uses no core, so there can be more messages in flight than cores. With `waits`,
    // an mbox that is changed in place is not locked while servers are slow, so that deliveries are not delayed.
    if store.is_some_and(is_remote) {
        options.read.max_in_flight = policy.limits.in_flight.max(options.read.jobs);
        options.waits = true;
    }
    Ok(Walk {
        sources,
        args,
        output,
        saying,
        options,
        mode,
        #[cfg(all(unix, feature = "imap"))]
        candidates: Candidates::References,
        #[cfg(all(unix, feature = "imap"))]
        objects: None,
        word: "dry run, nothing was written: ",
        task: Task::Restore,
        policy,
        needs_attachments: false,
        files: None,
        thumbnail: ThumbnailChoice::default(),
        signals: Signals::watch(),
        known: WalkSources::default(),
        lock_waits: LockWaits::default(),
    })
}

pub(super) fn open(
    store: &str,
    purpose: StorePurpose,
    policy: &Policy,
) -> Result<Arc<dyn Store>, Error> {
    store::open(store, purpose, policy)?.map_err(|error| {
        let why = std::io::Error::other(say::error(&error));
        match purpose {
            StorePurpose::Read if !is_remote(store) && is_missing(store) => missing(store),
            StorePurpose::Put => Error::cannot_write("the store")(why),
            StorePurpose::Read => Error::cannot_read("the store")(why),
        }
    })
}

pub(super) fn is_missing(store: impl AsRef<Path>) -> bool {
    std::fs::metadata(store).is_err_and(|why| why.kind() == std::io::ErrorKind::NotFound)
}

pub(super) fn missing(store: impl std::fmt::Display) -> Error {
    Error::Usage(
        format!("the store {store} does not exist; check its name (embody detach creates a store)")
            .into(),
    )
}

fn is_remote(store: &str) -> bool {
    store.contains("://")
}
