//! What `--cache` keeps: answers of http servers, and where nobody answered (docs/cache.md).
//!
//! [`Kept`] stands between the redirects that one retrieval follows and the servers, as a [`Disk`]: each step is an answer
//! of its own, so each is judged by the policy as if a server had given it. `semantics` says what may be
//! kept and what is fresh (RFC 9111), `entry` and `hosts` how it is written down, `folder` where.
//!
//! What is read here was written by this user, but what it says came from strangers: it names nothing but header
//! values and hashes, and is not believed where it does not fit.
//!
//! [`Disk`]: crate::fetch::Disk

mod entry;
mod folder;
mod hosts;
mod kept;
mod record;
mod semantics;
mod size;
mod trust;

pub(crate) use folder::{CacheFolder, cannot_write, is_of_disk, the_cache};
pub(crate) use kept::{Asking, Kept};
pub(crate) use semantics::Ignoring;
pub(crate) use trust::trust;
