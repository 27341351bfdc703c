//! Reads the formats of Outlook and Exchange: MAPI properties, TNEF (MS-OXTNEF), message files (MS-OXMSG), mailboxes (MS-PST),
//! and RTF bodies (MS-OXRTFCP, MS-OXRTFEX).
//!
//! [`tnef`], `msg` and `pst` read a file into an [`Item`](properties::Item). The table in [`properties`] maps each property to
//! its place in mail, and [`compose`] creates the parts. No module does I/O. Damaged input is read as far as possible.

mod calendar;
mod clock;
pub mod codepage;
pub mod compose;
#[cfg(feature = "outlook")]
mod compound;
pub mod compressed_rtf;
mod cursor;
mod header;
#[cfg(feature = "outlook")]
pub mod msg;
mod object;
pub mod properties;
#[cfg(feature = "outlook")]
pub mod pst;
mod recurrence;
mod report;
pub mod rtf;
pub mod source;
pub mod tnef;
mod values;

#[cfg(test)]
// The integration tests include `tnef.rs` as a module of their own, so clippy would report that the file is included
// twice.
#[allow(clippy::duplicate_mod)]
#[path = "../../../tests/common/tnef.rs"]
mod sample;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
