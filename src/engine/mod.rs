//! The engine: what becomes of one message, decided without I/O, clocks or threads.
//!
//! [`forms`] contains one directory for each form in which content is in a message without being a part that mail
//! programs can read. [`outlook`] reads the formats of Outlook and Exchange that several forms share. [`parts`] writes the new parts.

pub mod forms;
pub mod outlook;
pub mod parts;
