//! embody gives external bodies their body.

pub mod cli;
pub mod edit;
pub mod error;
pub mod expand;
pub mod external_body;
pub mod fetch;
pub mod link;
pub mod mailbox;
pub mod mime;
pub mod plan;
pub mod policy;
pub mod report;
pub mod span;

pub use error::Error;
pub use expand::{Expander, Expansion, Mark};
pub use policy::Policy;
pub use report::Report;
pub use span::Span;
