//! The formats of Outlook and Exchange: MAPI properties, TNEF (MS-OXTNEF), messages in files (MS-OXMSG), mailboxes (MS-PST),
//! and RTF bodies (MS-OXRTFCP, MS-OXRTFEX).
//!
//! [`tnef`], `msg` and `pst` read a file into an [`Item`](properties::Item), [`properties`] says what each property becomes in mail,
//! and [`compose`] makes the parts. All of it is pure, and defined for all input: damaged input gives what is readable.

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
// The tests of the crate have their own.
#[allow(clippy::duplicate_mod)]
#[path = "../../../tests/common/tnef.rs"]
mod sample;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
