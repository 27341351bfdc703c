//! `--cache` and what goes with it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::archive_args::ArchiveArgs;
use super::values::size;
use crate::archive::{OrArchived, Order, Pace};
use crate::cache::{
    Asking, CacheFolder, Ignoring, Kept, cannot_write, is_of_disk, the_cache, trust,
};
use crate::error::Error;
use crate::fetch::{Exchange, Fetch, SystemFetcher};
use crate::mailbox::Stop;
use crate::policy::Policy;

// Shared by all commands that retrieve.
#[derive(Args, Clone, Default, Debug)]
#[command(next_help_heading = "What may be retrieved")]
pub(super) struct CacheArgs {
    /// Keep what http and https servers answer in this folder, and use it [default: none]
    #[arg(hide_short_help = true, long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// What that folder may hold; what was not used for the longest time goes; none is no limit
    /// [default: 2G]
    #[arg(hide_short_help = true, long, value_name = "SIZE", requires = "cache", value_parser = CacheMax::parse)]
    cache_max: Option<CacheMax>,
    /// Keep also what the server forbids to keep: no-store (and private) [default: none]
    #[arg(
        hide_short_help = true,
        long,
        value_enum,
        hide_possible_values = true,
        value_delimiter = ',',
        value_name = "WHAT",
        requires = "cache"
    )]
    cache_ignore: Vec<IgnoreOption>,
    /// Ask no server; only what is in --cache, fresh or not [default: off]
    #[arg(hide_short_help = true, long, requires = "cache")]
    offline: bool,
}

/// What a cache may hold, in octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct CacheMax(Option<u64>);

impl Default for CacheMax {
    /// Any mail may name what is large and never put in.
    fn default() -> Self {
        Self(Some(2 << 30))
    }
}

impl CacheMax {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(None)),
            _ => size(text).map(|octets| Self(Some(octets))),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum IgnoreOption {
    NoStore,
}

/// A cache that is open, as long as a run takes; and the archive that is asked besides.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    args: CacheArgs,
    folder: Option<Arc<CacheFolder>>,
    /// Why there is none, although one is named.
    trouble: Option<String>,
    archive: Option<ArchiveArgs>,
}

impl CacheArgs {
    /// Whether nobody may be asked.
    pub(super) fn is_offline(&self) -> bool {
        self.offline
    }

    /// No cache, where nobody is asked: nothing is opened, and nothing made.
    pub(super) fn unopened(&self) -> Cache {
        Cache {
            args: self.clone(),
            folder: None,
            trouble: None,
            archive: None,
        }
    }

    /// Opens the folder, and makes it; with `--offline`, an empty one would be of no use.
    ///
    /// # Errors
    /// As [`CacheFolder::open`].
    pub(super) fn open(&self) -> Result<Cache, Error> {
        let mut cache = self.unopened();
        let Some(path) = &self.cache else {
            return Ok(cache);
        };
        if path.exists() && !path.is_dir() {
            let why = io::Error::new(io::ErrorKind::NotADirectory, "it is no folder");
            return Err(Error::cannot_write(the_cache(path))(why));
        }
        let at_most = self.cache_max.unwrap_or_default().0;
        let opened = match self.offline {
            true => CacheFolder::open_to_read(path, at_most),
            false => CacheFolder::open(path, at_most),
        };
        match opened {
            Ok(folder) => cache.folder = Some(Arc::new(folder)),
            // Mail does not wait for a disk that is only good for keeping copies.
            Err(Error::Write { source, .. }) if !self.offline && is_of_disk(&source) => {
                cache.trouble = Some(cannot_write(path, &source));
            }
            Err(error) => return Err(error),
        }
        Ok(cache)
    }
}

impl Cache {
    /// The same with what is asked of an archive.
    pub(super) fn with_archive(self, archive: &ArchiveArgs) -> Self {
        Self {
            archive: Some(archive.clone()),
            ..self
        }
    }

    /// Whether servers are asked in another way than usual.
    pub(super) fn is_needed(&self) -> bool {
        self.folder.is_some() || self.order().is_some()
    }

    /// Who is asked first, if there is an archive.
    pub(super) fn order(&self) -> Option<Order> {
        self.archive.as_ref()?.order()
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
        if let Some(archive) = &self.archive
            && let Some(sources) = archive.sources(policy, pace, is_stopped, wrap)?
        {
            return Ok(Arc::new(sources));
        }
        Ok(Arc::new(match self.folder {
            Some(_) => SystemFetcher::through(Arc::clone(policy), wrap)?,
            None => SystemFetcher::new(Arc::clone(policy))?,
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
                true => Asking::Nobody,
                false => Asking::Servers,
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

    #[test]
    fn the_help_says_what_the_cache_may_hold() {
        let command = CacheArgs::augment_args(Command::new("x"));
        let mut options = command.get_arguments();
        let option = options.find(|it| it.get_long() == Some("cache-max"));
        let help = option.unwrap().get_help().unwrap().to_string();
        let (_, behind) = help.split_once("[default: ").unwrap();
        let (value, _) = behind.split_once(']').unwrap();
        assert_eq!(CacheMax::parse(value), Ok(CacheMax::default()));
        assert_eq!(CacheMax::parse("none"), Ok(CacheMax(None)));
        assert!(CacheMax::parse("much").is_err());
    }
}
