//! The inverse verb: large attachments leave the mail for a store, and come back octet for octet (docs/detach.md).
//!
//! scan → what may leave → decode and compare → store → edits → splice. A part leaves only if writing its content
//! again gives the same octets, and only when the store has its content durably. The part itself
//! tells the way back ([`Note`](crate::external_body::Note)), which [`crate::expand`] takes. Any trouble with one part
//! leaves it byte for byte and is a row of the report.
//!
//! The URL of an object is a matter of its content and the settings, so the same mail always becomes the same mail.

mod choice;
mod detacher;
mod part;

pub use self::choice::{Choice, Stub, is_attachment};
pub use self::detacher::{Detacher, Settings};
