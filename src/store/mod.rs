//! Stores of objects that are named by their content: what detach moves out of mails (docs/store.md).
//!
//! An object lies under the SHA-256 of its octets, so equal octets are one object, nothing is ever overwritten, and
//! every reader of an object can tell whether it is the right one. What lives here: the [`Key`], the promise of a
//! [`Store`], and the store in a [`Folder`]. What never does: MIME; and a network only through the client of `fetch`.

#[cfg(unix)]
mod batch;
mod contract;
#[cfg(unix)]
mod folder;
#[cfg(not(unix))]
#[path = "elsewhere.rs"]
mod folder;
pub(crate) mod layers;
#[cfg(unix)]
mod listing;
mod named;
#[cfg(unix)]
mod places;
#[cfg(feature = "s3")]
mod s3;
#[cfg(unix)]
mod users;
pub(crate) mod uses;
#[cfg(feature = "http")]
mod web;

pub use crate::disk::Key;
pub(crate) use contract::Object;
pub use contract::{Mail, Store, StoreError, User};
#[cfg(unix)]
pub use folder::Folder;
#[cfg(not(unix))]
pub(crate) use folder::NoFolder as Folder;
#[cfg(all(test, feature = "s3"))]
pub(crate) use named::s3_store;
pub(crate) use named::{Purpose, open, unopened_base_url};
