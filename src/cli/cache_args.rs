//! `--cache` and what goes with it.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::values::size;
use crate::cache::{Asking, CacheFolder, Ignoring, Kept};
use crate::error::Error;
use crate::fetch::SystemFetcher;
use crate::policy::Policy;

// Shared by all commands that retrieve.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What may be retrieved")]
pub(super) struct CacheArgs {
    /// Keep what http and https servers answer in this folder, and use it [default: none]
    #[arg(hide_short_help = true, long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// What that folder may hold; what was not used for the longest time goes [default: none]
    #[arg(hide_short_help = true, long, value_name = "SIZE", requires = "cache", value_parser = size)]
    cache_max: Option<u64>,
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

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum IgnoreOption {
    NoStore,
}

/// A cache that is open, as long as a run takes.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    args: CacheArgs,
    folder: Option<Arc<CacheFolder>>,
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
        }
    }

    /// Opens the folder, and makes it; with `--offline`, an empty one would be of no use.
    ///
    /// # Errors
    /// As [`CacheFolder::open`].
    pub(super) fn open(&self) -> Result<Cache, Error> {
        let open = |path: &PathBuf| match self.offline {
            true => CacheFolder::open_to_read(path, self.cache_max),
            false => CacheFolder::open(path, self.cache_max),
        };
        Ok(Cache {
            folder: self.cache.as_ref().map(open).transpose()?.map(Arc::new),
            args: self.clone(),
        })
    }
}

impl Cache {
    /// Whether there is one.
    pub(super) fn is_open(&self) -> bool {
        self.folder.is_some()
    }

    /// What retrieves under this policy, behind the cache.
    ///
    /// # Errors
    /// As [`SystemFetcher::new`].
    pub(super) fn fetcher(&self, policy: &Arc<Policy>) -> Result<SystemFetcher, Error> {
        let Some(folder) = &self.folder else {
            return SystemFetcher::new(Arc::clone(policy));
        };
        SystemFetcher::through(Arc::clone(policy), |servers| {
            Arc::new(Kept {
                folder: Arc::clone(folder),
                policy: Arc::clone(policy),
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
        })
    }

    /// What kept the cache from being written, in words.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.folder.as_ref()?.trouble()
    }
}
