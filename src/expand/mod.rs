//! The verb: scan → plan → retrieve → edits → splice.
//!
//! Any trouble with one reference leaves its part byte for byte, and is a row of the report; the policy may ask to stop
//! with an [`Error`](crate::Error) instead where it may be over later.
//!
//! Content that is itself a message or a multipart is looked at before it is put in. Bounds are met in the order of the
//! document: a later run may go on at what was left. Without a bound that was reached, a second run changes nothing.

mod composite;
mod content;
mod context;
pub(crate) mod date;
mod driver;
mod embed;
#[cfg(feature = "mailbox")]
pub(crate) mod envelope;
#[cfg(all(feature = "file", feature = "mailbox"))]
mod eudora;
mod expander;
mod expansion;
pub(crate) mod field_names;
mod forms;
#[cfg(feature = "mailbox")]
mod gmail;
mod hosted;
#[cfg(feature = "cli")]
mod look;
#[cfg(feature = "mailbox")]
pub(crate) mod mailbox;
mod mark;
mod needs;
mod part_edits;
mod pass;
mod prefilter;
mod retrieve;
mod run;
mod scrubbed;
mod session;
mod source_field;
mod stored;
mod substitute;
mod wrapped;

#[cfg(feature = "cli")]
pub(crate) use self::embed::BLANK_PICTURE;
pub use self::expander::{Expander, ExpanderBuilder};
pub use self::expansion::Expansion;
#[cfg(feature = "cli")]
pub(crate) use self::look::Target;
pub use self::mark::{MARK_FIELD, Mark};
#[cfg(any(test, feature = "cli", feature = "internals"))]
pub use self::prefilter::Prefilter;
#[cfg(all(unix, feature = "milter"))]
pub use self::prefilter::kinds::Kinds;
#[cfg(feature = "cli")]
pub(crate) use self::session::Asking;
pub(crate) use self::stored::refusal_of;
