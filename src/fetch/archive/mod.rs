//! Web archives: finds the capture closest to the date of a mail (docs/archive.md), with Memento (RFC 7089).
//!
//! A [`Fetcher`](crate::fetch::Fetcher) sends requests to an [`Archive`] before or after the source. The archive uses the same
//! [`Servers`](crate::fetch::Servers) as the source, so that the cache and the checks of the policy apply to both.

mod files;
mod index;
mod lookup;
mod secret;
mod template;
mod time;

pub(crate) use files::{ArchiveReplay, CaptureFiles};
pub(crate) use lookup::{Archive, ArchiveWindow};
pub(crate) use template::{IndexTemplate, Template};
