//! A directory with the responses of http servers. There are two kinds: a cache that several runs share, and the cache of one
//! run over mailboxes, with which an interrupted run continues (docs/cache.md).
//!
//! ```
//! use std::sync::Arc;
//!
//! use embody::cache::CacheFolder;
//! use embody::policy::Scheme;
//! use embody::{Expander, Policy};
//!
//! let folder = std::env::temp_dir().join(format!("embody-cache-{}", std::process::id()));
//! let cache = Arc::new(CacheFolder::open(&folder, Some(2 << 30))?);
//! let expander = Expander::builder(Policy::default().with_fetch([Scheme::Https]))
//!     .fetch_with(|policy| cache.fetcher(Arc::clone(policy)))?
//!     .build()?;
//! # drop(expander);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `KeptResponses` implements `Disk` of `fetch` and handles each request, below the code that follows redirects. A
//! redirect is therefore an entry of its own, and the policy checks each step as if the server had responded.
//!
//! The content of the files comes from untrusted servers. Only header values and hashes are read, and invalid ones are ignored.

mod entry;
mod fetcher;
#[cfg(unix)]
mod folder;
#[cfg(not(unix))]
#[path = "elsewhere.rs"]
mod folder;
mod hosts;
mod kept;
mod semantics;
#[cfg(unix)]
mod size;

use std::io;
use std::path::Path;

pub(crate) use fetcher::trust;
pub use folder::CacheFolder;
pub(crate) use folder::RunFolder;
pub(crate) use kept::{KeptResponses, Offline};
pub(crate) use semantics::IgnoredDirectives;

pub(crate) fn the_cache(path: &Path) -> String {
    format!("the cache {}", path.display())
}

pub(crate) fn cannot_write(path: &Path, why: &io::Error) -> String {
    format!("{} cannot be written: {why}", the_cache(path))
}

/// Returns whether the disk is full or read-only. In this case embody continues without storing responses, because a cache must
/// not stop the conversion of mail.
pub(crate) fn is_of_disk(why: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(why.kind(), QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}
