//! Large attachments leave the mail for a store, and come back octet for octet (docs/detach.md).
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
//! A part leaves only if writing its content again gives the same octets, and only when the store has its content
//! durably. The field `X-Embody-Detached` of the part tells an expander the way back. Trouble with one part leaves it
//! byte for byte, and is a row of the report.
//!
//! The URL of an object follows from its content and the settings, so the same mail always becomes the same mail.

mod detacher;
#[cfg(feature = "mailbox")]
mod mailbox;

pub use self::detacher::{Detacher, Settings};
pub use crate::engine::detach::{Attachment, Choice, Detachment, Object, Stub};
