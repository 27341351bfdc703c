//! A folder keeps answers of http servers from run to run, and those of one run over mailboxes, so that it can be gone
//! on with (docs/cache.md).
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
//! `Kept` stands between redirects and servers, as a `Disk` of `fetch`: each step of a retrieval is an answer of its
//! own, which the policy judges as if a server had given it.
//!
//! What the files say came from strangers: only header values and hashes, not believed where they do not fit.

mod entry;
mod fetcher;
#[cfg(unix)]
mod folder;
#[cfg(not(unix))]
#[path = "elsewhere.rs"]
mod folder;
mod hosts;
mod kept;
mod made;
mod semantics;
#[cfg(unix)]
mod size;

use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) use fetcher::trust;
pub use folder::CacheFolder;
pub(crate) use folder::RunFolder;
pub(crate) use kept::{Kept, Offline};
pub(crate) use made::Made;
pub(crate) use semantics::Ignoring;

pub(crate) fn the_cache(path: &Path) -> String {
    format!("the cache {}", path.display())
}

pub(crate) fn cannot_write(path: &Path, why: &io::Error) -> String {
    format!("{} cannot be written: {why}", the_cache(path))
}

/// Mail does not wait for a disk that is only good for keeping copies.
pub(crate) fn is_of_disk(why: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(why.kind(), QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

/// In seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
