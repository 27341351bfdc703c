//! embody gives external bodies their body.

pub mod error;
pub mod fetch;
pub mod link;
pub mod mailbox;
pub mod policy;
pub mod report;
pub mod span;

pub use error::Error;
pub use span::Span;
