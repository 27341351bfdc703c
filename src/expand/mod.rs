//! The loop around the [engine](crate::engine): [`Expander`] retrieves the content that the engine needs, from its
//! sources.

// The library re-exports this module as `embody::detach`.
#[doc(hidden)]
pub mod detach;
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
pub(crate) use self::look::{LookTarget, shows_remote_pictures};
pub(crate) use self::stored::refusal_of;
