//! What asks servers: behind the cache of `--cache`, and with the archive of `--archive` besides.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::args::{ArchiveArgs, Asking, CacheArgs};
use super::values::CacheMax;
use crate::archive::{Archive, OrArchived, Order, Pace, Paced, Settings, Sources, Window};
use crate::cache::{self, CacheFolder, Ignoring, Kept, cannot_write, is_of_disk, the_cache, trust};
use crate::error::Error;
use crate::fetch::{Exchange, Fetch, SystemFetcher};
use crate::mailbox::Stop;
use crate::policy::Policy;

/// What a cache may hold if nothing else is said: any mail may name what is large and never put in.
const CACHE_MAX: CacheMax = Some(2 << 30);

/// A day.
const DAY: u64 = 24 * 60 * 60;

/// What holds without `--archive-window`.
const WINDOW: Window = Window {
    before: Duration::from_secs(90 * DAY),
    after: Duration::from_secs(400 * DAY),
};

/// A cache that is open, as long as a run takes; and the archive that is asked besides.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    args: CacheArgs,
    folder: Option<Arc<CacheFolder>>,
    /// Why there is none, although one is named.
    trouble: Option<String>,
    archive: ArchiveArgs,
}

impl Cache {
    /// Opens the folder, and makes it; with `--offline`, an empty one would be of no use. Where nobody is asked, nothing is
    /// opened and nothing made.
    ///
    /// # Errors
    /// As [`CacheFolder::open`].
    pub(super) fn open(
        args: &CacheArgs,
        archive: &ArchiveArgs,
        asking: Asking,
    ) -> Result<Self, Error> {
        let mut cache = Self {
            args: args.clone(),
            folder: None,
            trouble: None,
            archive: archive.clone(),
        };
        let Some(path) = args.cache.as_ref().filter(|_| asking != Asking::Nobody) else {
            return Ok(cache);
        };
        if path.exists() && !path.is_dir() {
            let why = io::Error::new(io::ErrorKind::NotADirectory, "it is no folder");
            return Err(Error::cannot_write(the_cache(path))(why));
        }
        let at_most = args.cache_max.unwrap_or(CACHE_MAX);
        let opened = match args.offline {
            true => CacheFolder::open_to_read(path, at_most),
            false => CacheFolder::open(path, at_most),
        };
        match opened {
            Ok(folder) => cache.folder = Some(Arc::new(folder)),
            // Mail does not wait for a disk that is only good for keeping copies.
            Err(Error::Write { source, .. }) if !args.offline && is_of_disk(&source) => {
                cache.trouble = Some(cannot_write(path, &source));
            }
            Err(error) => return Err(error),
        }
        Ok(cache)
    }

    /// Whether servers are asked in another way than usual.
    pub(super) fn is_needed(&self) -> bool {
        self.folder.is_some() || self.order().is_some()
    }

    /// Who is asked first, if there is an archive.
    pub(super) fn order(&self) -> Option<Order> {
        self.archive
            .archive
            .as_ref()
            .map(|_| self.archive.archive_first)
    }

    /// What retrieves under this policy, behind the cache. With an archive, what has a date is asked of that,
    /// at this pace.
    ///
    /// # Errors
    /// As [`SystemFetcher::new`].
    pub(super) fn fetcher(
        &self,
        policy: &Arc<Policy>,
        pace: Pace,
        stop: &Stop,
    ) -> Result<Arc<dyn Fetch>, Error> {
        let trust = match self.folder {
            Some(_) => trust(policy)?,
            None => String::new(),
        };
        let wrap = |servers: Arc<dyn Exchange>| self.wrapped(policy, &trust, servers);
        let stop = stop.clone();
        let is_stopped = move || stop.check().is_err();
        if let Some(sources) = self.sources(policy, pace, is_stopped, wrap)? {
            return Ok(Arc::new(sources));
        }
        Ok(Arc::new(match self.folder {
            Some(_) => SystemFetcher::through(Arc::clone(policy), wrap)?,
            None => SystemFetcher::new(Arc::clone(policy))?,
        }))
    }

    /// What retrieves from sources and from the archive. `wrap` stands between the steps and the servers: a cache.
    ///
    /// # Errors
    /// As [`SystemFetcher::new`].
    fn sources(
        &self,
        policy: &Arc<Policy>,
        pace: Pace,
        is_stopped: impl Fn() -> bool + Send + Sync + 'static,
        wrap: impl FnOnce(Arc<dyn Exchange>) -> Arc<dyn Exchange>,
    ) -> Result<Option<Sources>, Error> {
        let Some(template) = &self.archive.archive else {
            return Ok(None);
        };
        let mut shared = None;
        let source = SystemFetcher::through(Arc::clone(policy), |servers| {
            let timeout = policy.limits.timeout;
            let servers = wrap(Arc::new(Paced {
                pace,
                timeout,
                is_stopped: Box::new(is_stopped),
                servers,
            }));
            shared = Some(Arc::clone(&servers));
            servers
        })?;
        Ok(shared.map(|servers| Sources {
            source,
            archive: Archive {
                policy: Arc::clone(policy),
                settings: Settings {
                    template: template.clone(),
                    index: self.archive.archive_cdx.clone(),
                    window: self.archive.archive_window.unwrap_or(WINDOW),
                    tells: self.archive.archive_any,
                },
                servers,
            },
        }))
    }

    /// Asks the archive, if there is one, besides: in front of what remembers answers.
    pub(super) fn or_archived(&self, fetch: impl Fetch + 'static) -> Arc<dyn Fetch> {
        either(fetch, self.order())
    }

    /// The same to know what is alive: sources are asked first, whatever the options say.
    pub(super) fn or_probed(&self, fetch: impl Fetch + 'static) -> Arc<dyn Fetch> {
        either(fetch, self.order().map(|_| Order::SourceFirst))
    }

    fn wrapped(
        &self,
        policy: &Arc<Policy>,
        trust: &str,
        servers: Arc<dyn Exchange>,
    ) -> Arc<dyn Exchange> {
        let Some(folder) = &self.folder else {
            return servers;
        };
        Arc::new(Kept {
            folder: Arc::clone(folder),
            policy: Arc::clone(policy),
            trust: trust.to_owned(),
            ignoring: match self.args.cache_ignore.is_empty() {
                true => Ignoring::Nothing,
                false => Ignoring::NoStore,
            },
            asking: match self.args.offline {
                true => cache::Asking::Nobody,
                false => cache::Asking::Servers,
            },
            servers,
        })
    }

    /// What kept the cache from being written, in words.
    pub(super) fn trouble(&self) -> Option<&str> {
        match &self.folder {
            Some(folder) => folder.trouble(),
            None => self.trouble.as_deref(),
        }
    }
}

fn either(inner: impl Fetch + 'static, order: Option<Order>) -> Arc<dyn Fetch> {
    match order {
        Some(order) => Arc::new(OrArchived { inner, order }),
        None => Arc::new(inner),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command};

    use super::*;
    use crate::cli::values::{cache_max, window};

    #[test]
    fn the_help_says_what_holds_without_these_options() {
        let command = ArchiveArgs::augment_args(CacheArgs::augment_args(Command::new("x")));
        let default = |name| {
            let mut options = command.get_arguments();
            let option = options.find(|it| it.get_long() == Some(name)).unwrap();
            let help = option.get_help().unwrap().to_string();
            let (_, behind) = help.split_once("[default: ").unwrap();
            behind.split_once(']').unwrap().0.to_owned()
        };
        assert_eq!(cache_max(&default("cache-max")), Ok(CACHE_MAX));
        assert_eq!(window(&default("archive-window")), Ok(WINDOW));
    }
}
