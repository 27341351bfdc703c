//! Moves large attachments of mail into a store, and puts them back byte for byte (docs/detach.md).
//!
//! ```
//! use std::sync::Arc;
//!
//! use embody::detach::{Detacher, Settings};
//! use embody::store::{Folder, Store};
//! use embody::{Expander, Policy};
//!
//! let folder = std::env::temp_dir().join(format!("embody-detach-{}", std::process::id()));
//! let store: Arc<dyn Store> = Arc::new(Folder::open(&folder)?);
//! let mail = format!(
//!     "MIME-Version: 1.0\nContent-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n{}",
//!     "AAAA".repeat(19).repeat(2000).as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line) + "\n").collect::<String>(),
//! );
//!
//! let detachment = Detacher::new(Settings::new(Arc::clone(&store))).detach(mail.as_bytes(), "report.eml")?;
//! let small = detachment.edits.splice(mail.as_bytes()).into_bytes();
//! assert!(small.len() < 1000);
//!
//! let restorer = Expander::builder(Policy::default()).restoring().store(store).build()?;
//! let restored = restorer.expand(&small, "report.eml")?;
//! assert_eq!(restored.output().into_bytes(), mail.as_bytes());
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A part is detached only if encoding its content again gives the same bytes, and only after the store has written its
//! content durably. The field `X-Embody-Detached` of the new part contains what an expander needs to restore the
//! original part. If a part cannot be detached, it stays unchanged byte for byte, and a row of the report says why.
//!
//! The URL of an object depends only on its content and the settings, so detaching the same mail twice gives the same
//! result.

mod detacher;
#[cfg(feature = "mailbox")]
mod mailbox;

pub use self::detacher::{Detacher, Settings};
pub use crate::engine::detach::{Attachment, Choice, Detachment, Object, Stub};
