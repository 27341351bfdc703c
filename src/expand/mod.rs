//! The loop around the engine, and its sources: [`Expander`] retrieves what the [engine](crate::engine) needs.

mod driver;
#[cfg(feature = "mailbox")]
pub(crate) mod envelope;
mod expander;
#[cfg(feature = "mailbox")]
mod gmail;
#[cfg(feature = "cli")]
mod look;
#[cfg(feature = "mailbox")]
pub(crate) mod mailbox;
mod stored;

pub use self::expander::{Expander, ExpanderBuilder};
#[cfg(feature = "cli")]
pub(crate) use self::look::Target;
pub(crate) use self::stored::refusal_of;
