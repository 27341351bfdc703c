//! File operations for attachment stores (docs/store.md) and caches (docs/cache.md).
//!
//! Every file is opened relative to its open directory, and symbolic links are not followed. A new file appears under its name
//! only when it is complete, by a rename.

#[cfg(unix)]
mod files;
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) mod layout;
#[cfg(unix)]
mod temporary;

#[cfg(unix)]
pub(crate) use self::files::{FOLDER, names, open_file, open_folder, open_root, open_to_write};
#[cfg(unix)]
pub(crate) use self::temporary::{Temporary, sweep};
#[cfg(unix)]
pub(crate) use crate::platform::{absent, sync};
