//! The formats of Outlook and Exchange: MAPI properties, TNEF (MS-OXTNEF), and RTF bodies (MS-OXRTFCP, MS-OXRTFEX).
//!
//! [`tnef`] reads a stream into an [`Item`](properties::Item), [`properties`] says what each property becomes in mail,
//! and [`compose`] makes the parts. All of it is pure, and defined for all input: damaged input gives what is readable.

mod calendar;
mod clock;
pub mod codepage;
pub mod compose;
pub mod compressed_rtf;
mod cursor;
mod header;
mod object;
pub mod properties;
mod recurrence;
mod report;
pub mod rtf;
pub mod tnef;

#[cfg(test)]
// The tests of the crate have their own.
#[allow(clippy::duplicate_mod)]
#[path = "../../../tests/common/tnef.rs"]
mod sample;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
