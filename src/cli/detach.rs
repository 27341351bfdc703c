//! `embody detach` and `embody restore`: one message through, as a filter, or mailboxes, beside or in place.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::{
    ArchiveArgs, Asking, DetachArgs, RecordArgs, RestoreArgs, ResumeArgs, SayingArgs, WalkArgs,
};
use super::cache::Cache;
use super::convert::{Walk, shared_fetcher, user};
use super::exit::Status;
use super::filter::{Begun, Job};
use super::input::is_standard;
use super::resume::Resume;
use super::say;
use super::signals::Signals;
use super::store::{is_missing, missing};
use super::verb::{Detaching, Expanding, Said, Work};
use crate::detach::{Detacher, Settings};
use crate::error::Error;
use crate::expand::{Expander, Mark, Prefilter};
#[cfg(all(unix, feature = "imap"))]
use crate::imap::candidates::Candidates;
use crate::lengths::Lengths;
use crate::mailbox::{Locking, Options, Stop, Transform};
use crate::policy::Policy;
use crate::store::{self, Purpose, Store};

pub(super) fn detach(args: &DetachArgs) -> Status {
    let policy = args.policy();
    let way = Way {
        command: "detach",
        store: Some(&args.store),
        sources: &args.sources,
        walk: &args.walk,
        saying: &args.saying,
        policy: &policy,
        prefilter: Prefilter::of_attachments(),
        #[cfg(all(unix, feature = "imap"))]
        candidates: {
            let choice = args.choice();
            let (least, types) = (choice.larger_than, choice.types);
            Candidates::Attachments { least, types }
        },
    };
    way.done(
        None,
        |_, _| detacher(args),
        |detacher| {
            let (objects, octets) = detacher.0.foreseen();
            match args.walk.dry_run {
                true => {
                    format!("the store would hold {objects} objects of {octets} bytes for them\n")
                }
                false => String::new(),
            }
        },
    )
}

fn detacher(args: &DetachArgs) -> Result<Made<Detaching>, Error> {
    let policy = args.policy();
    let (store, base_url) = match args.walk.dry_run {
        // Not even the folder is made.
        true => (None, store::unopened_base_url(&args.store, &policy)?),
        false => {
            let store = open(&args.store, Purpose::Put, &policy)?;
            let base_url = store.base_url();
            (Some(store), base_url)
        }
    };
    let detacher = Detacher::new(Settings {
        store: store.clone(),
        base_url: args.base_url.clone().unwrap_or(base_url),
        choice: args.choice(),
        form: args.form.unwrap_or_default(),
        text: args.note,
        on_failure: policy.on_failure,
    });
    Ok((Detaching(detacher), store))
}

pub(super) fn restore(args: &RestoreArgs) -> Status {
    let policy = args.policy();
    let way = Way {
        command: "restore",
        store: args.store.as_deref(),
        sources: &args.sources,
        walk: &args.walk,
        saying: &args.saying,
        policy: &policy,
        prefilter: Prefilter::of_detached(),
        #[cfg(all(unix, feature = "imap"))]
        candidates: Candidates::References,
    };
    let opened = OnceCell::new();
    let keeps = !args.walk.dry_run && !args.cache.offline;
    let status = way.done(
        Some(&args.resume).filter(|_| keeps),
        |stop, resume| Ok((restorer(args, stop, resume, &opened)?, None)),
        |_| String::new(),
    );
    if let Some(cache) = opened.get() {
        say::cache_trouble(cache, args.saying.volume());
    }
    status
}

/// In a dry run, nothing of what it does is written.
fn restorer(
    args: &RestoreArgs,
    stop: &Stop,
    resume: Option<&Resume>,
    opened: &OnceCell<Cache>,
) -> Result<Expanding, Error> {
    let (work, asking) = match args.walk.dry_run {
        true if args.cache.offline => (Work::Rehearse, Asking::WhetherThereIsAnAnswer),
        true => (Work::Rehearse, Asking::Nobody),
        false => (Work::Expand, Asking::ForContent),
    };
    let is_remote = args.store.as_deref().is_some_and(is_remote);
    if is_remote && args.cache.offline {
        let what = "--offline asks no server, and --store names one";
        return Err(Error::Usage(what.into()));
    }
    let (archive, record) = (ArchiveArgs::default(), RecordArgs::default());
    let cache = Cache::open(&args.cache, &archive, &record, asking)?
        .behind(resume.and_then(|resume| resume.folder.as_ref()));
    let cache = opened.get_or_init(|| cache);
    let mut builder = Expander::builder(args.policy())
        .fetch_with(|policy| shared_fetcher(policy, cache, asking, stop))?
        .restoring();
    if let Some(store) = &args.store {
        builder = builder.store(open(store, Purpose::Read, &args.policy())?);
    }
    Ok(Expanding {
        expander: builder.build()?,
        work,
        lengths: Lengths::Reversible,
        recorder: None,
    })
}

/// The transform of a command, and the store that gets objects, if one does.
type Made<V> = (V, Option<Arc<dyn Store>>);

/// A command that is a filter and takes mailboxes.
struct Way<'w> {
    command: &'static str,
    store: Option<&'w str>,
    sources: &'w [PathBuf],
    walk: &'w WalkArgs,
    saying: &'w SayingArgs,
    policy: &'w Policy,
    prefilter: Prefilter,
    #[cfg(all(unix, feature = "imap"))]
    candidates: Candidates,
}

impl Way<'_> {
    /// Makes the transform and runs it. `more` goes behind the sum of a run over mailboxes, which with `resume` keeps
    /// the answers; `store` is the store that gets objects.
    fn done<V: Transform<Said>>(
        &self,
        resume: Option<&ResumeArgs>,
        make: impl FnOnce(&Stop, Option<&Resume>) -> Result<Made<V>, Error>,
        more: impl FnOnce(&V) -> String,
    ) -> Status {
        let is_walk = self.walk.walks();
        let done = match is_walk {
            true => self.walk(resume, make, more),
            false => self
                .filter(resume.unwrap_or(&ResumeArgs::default()), make)
                .map(|()| Status::Success),
        };
        done.unwrap_or_else(|error| match (Status::told(&error), is_walk) {
            (status, true) => status,
            (_, false) => Status::TryAgain,
        })
    }

    fn filter<V: Transform<Said>>(
        &self,
        resume: &ResumeArgs,
        make: impl FnOnce(&Stop, Option<&Resume>) -> Result<Made<V>, Error>,
    ) -> Result<(), Error> {
        let file = self.sources.first().map(PathBuf::as_path);
        let begun = Begun::now(self.saying, file)?;
        self.walk.one_message(self.sources, resume)?;
        let (transform, store) = make(&Stop::default(), None)?;
        if let Some(store) = store {
            store.puts_from(user(None));
        }
        let job = Job {
            file,
            saying: self.saying,
            transform: &transform,
            prefilter: &self.prefilter,
            policy: self.policy,
            mark: Mark::Off,
            command: self.command,
            mailboxes: "name --output or --in-place",
        };
        job.run(&begun)
    }

    /// While messages wait for a network, more of them are worked on, and a mailbox is not locked.
    fn options(&self) -> Options {
        let options = self.walk.options(self.policy);
        match self.store {
            Some(store) if is_remote(store) => Options {
                max_in_flight: self.policy.limits.in_flight.max(options.jobs),
                locking: Locking::AtBothEnds,
                ..options
            },
            _ => options,
        }
    }

    fn walk<V: Transform<Said>>(
        &self,
        resume: Option<&ResumeArgs>,
        make: impl FnOnce(&Stop, Option<&Resume>) -> Result<Made<V>, Error>,
        more: impl FnOnce(&V) -> String,
    ) -> Result<Status, Error> {
        let signals = Signals::watch();
        let standard = [PathBuf::from("-")];
        // From standard input to standard output, as a filter would have it.
        let is_of_filter = self.walk.output.is_none() && !self.walk.in_place;
        let (sources, output) = match self.sources {
            [] if is_of_filter => (standard.as_slice(), Some(Path::new("-"))),
            [source] if is_of_filter && is_standard(source) => (self.sources, Some(Path::new("-"))),
            [] => {
                let what = "name mboxes, Maildirs or messages";
                return Err(Error::Usage(what.into()));
            }
            sources => (sources, self.walk.output.as_deref()),
        };
        let walk = Walk {
            sources,
            args: self.walk,
            output,
            saying: self.saying,
            options: self.options(),
            #[cfg(all(unix, feature = "imap"))]
            candidates: self.candidates.clone(),
            word: "dry run, nothing written: ",
            policy: self.policy,
            signals: &signals,
        };
        walk.check()?;
        let resume = match resume {
            Some(args) => walk.resume(args, true, Mark::Off)?,
            None => None,
        };
        let resume = resume.as_ref();
        let (transform, store) = make(&signals.stop, resume)?;
        walk.run(&transform, store.as_deref(), resume, || more(&transform))
    }
}

/// Opens a store. A mistake in its options or the environment is told as such.
fn open(store: &str, purpose: Purpose, policy: &Policy) -> Result<Arc<dyn Store>, Error> {
    store::open(store, purpose, policy)?.map_err(|error| {
        let why = std::io::Error::other(say::error(&error));
        match purpose {
            Purpose::Read if !is_remote(store) && is_missing(store) => missing(store),
            Purpose::Put => Error::cannot_write("the store")(why),
            Purpose::Read => Error::cannot_read("the store")(why),
        }
    })
}

fn is_remote(store: &str) -> bool {
    store.contains("://")
}
