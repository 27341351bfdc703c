//! Folders of ours on a disk, stores (docs/store.md) and caches (docs/cache.md): their names, and how their files are
//! written.
//!
//! Everything is opened in the folder around it, and no symbolic link is followed, so one that somebody planted leads
//! nowhere. A file is written under a temporary name and gets its own in one step, so a reader sees a whole file or
//! none.

#[cfg(unix)]
mod files;
mod key;
#[cfg_attr(not(unix), allow(dead_code))]
pub mod layout;
#[cfg(unix)]
mod temporary;

#[cfg(unix)]
pub use self::files::{FOLDER, open_file, open_folder};
pub use self::key::Key;
#[cfg(all(unix, feature = "cli"))]
pub(crate) use self::layout::is_temporary;
#[cfg(unix)]
pub use self::temporary::{Temporary, sweep};
#[cfg(unix)]
pub use crate::platform::{absent, sync};
