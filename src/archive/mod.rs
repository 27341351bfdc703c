//! What a web archive saw near the date of a mail (docs/archive.md), by Memento (RFC 7089).
//!
//! [`OrArchived`] asks the source, and then the archive, or the other way round; [`Sources`] is what it asks: requests
//! without a date go to the source, those with one to the archive. `lookup` follows what an archive answers,
//! over the same [`Exchange`](crate::fetch::Exchange) as the source, so that answers are kept and judged alike. `pace` stands
//! between the cache and the servers. `template`, `index`, `secret` and `time` know nothing of any of this.

mod either;
mod index;
mod lookup;
mod pace;
mod secret;
mod template;
mod time;

pub(crate) use either::{OrArchived, Order, Sources};
pub(crate) use lookup::{Archive, Settings, Window};
pub(crate) use pace::{Pace, Paced};
pub(crate) use secret::Tells;
pub(crate) use template::{IndexTemplate, Template};
