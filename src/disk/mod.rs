//! Folders of ours on a disk: the names and files of stores (docs/store.md) and caches (docs/cache.md).
//!
//! All is opened in the folder around it, and no symbolic link is followed. A file gets its name in one step.

#[cfg(unix)]
mod files;
#[cfg_attr(not(unix), allow(dead_code))]
pub mod layout;
#[cfg(unix)]
mod temporary;

#[cfg(unix)]
pub use self::files::{FOLDER, names, open_file, open_folder, open_root, open_to_write};
#[cfg(unix)]
pub use self::temporary::{Temporary, sweep};
#[cfg(unix)]
pub use crate::platform::{absent, sync};
