//! Web archives: the captures near the date of a mail (docs/archive.md), by Memento (RFC 7089).
//!
//! [`Archive`] is what a [`Fetcher`](crate::fetch::Fetcher) asks before its source or after it, over the same
//! [`Servers`](crate::fetch::Servers) as the source, so that answers are kept and judged alike.

mod files;
mod index;
mod lookup;
mod secret;
mod template;
mod time;

pub(crate) use files::{CaptureFiles, Replaying};
pub(crate) use lookup::{Archive, Window};
pub(crate) use template::{IndexTemplate, Template};
