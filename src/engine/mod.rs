//! The engine: what becomes of one message, decided without I/O, clocks or threads.
//!
//! [`forms`] contains one directory for each form in which content is in a message without being a part that mail
//! programs can read. [`outlook`] reads the formats of Outlook and Exchange that several forms share. [`parts`] writes the new parts.

pub(crate) mod content;
// Only the program opens these forms.
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
#[allow(unreachable_pub)]
pub(crate) mod forms;
pub(crate) mod need;
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
#[allow(missing_docs, unreachable_pub)]
pub(crate) mod outlook;
#[allow(unreachable_pub)]
pub(crate) mod parts;

pub use content::{Content, Origin};
pub use need::{Need, Neighbour};
