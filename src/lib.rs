//! embody gives external bodies their body.
//!
//! A mail may hold a `message/external-body` part: a reference to content that is elsewhere
//! (RFC 2046 §5.2.3, RFC 2017). embody puts the content where the reference was, makes relative
//! links in HTML and CSS work, and hands on every other byte as it came.
//!
//! ```
//! use embody::{Expander, Policy, fetch::Nowhere};
//!
//! let mail = b"Subject: a card\nMIME-Version: 1.0\nContent-Type: message/external-body;\n access-type=URL; URL=\"data:text/plain,A%20brief%20note\"\n\nContent-Type: text/plain\n\n";
//! let expander = Expander::new(Policy::default(), &Nowhere);
//! let expansion = expander.expand(mail, "card.eml")?;
//! assert_eq!(
//!     expansion.output.into_bytes().as_ref(),
//!     b"Subject: a card\nMIME-Version: 1.0\nContent-Type: text/plain\nContent-Transfer-Encoding: 7bit\n\nA brief note",
//! );
//! # Ok::<(), embody::Error>(())
//! ```
//!
//! # How it works
//!
//! ```text
//! bytes --mime::scan--> Tree of spans --plan--> Plan --expand + trait Fetch--> Edits --splice--> bytes
//!                                         `------- left alone, and why -------> Report
//! ```
//!
//! One idea carries everything: spans over an immutable original, edited once. Parts, header
//! fields and attribute values are [`Span`]s into the same bytes; a decision is an
//! [`edit::Edit`]; output is made in one place, by copying the original up to each edit. No edits:
//! the input is given back borrowed.
//!
//! # Vocabulary
//!
//! * *external body*: a part that refers to its content; *phantom header*: the header fields, in the
//!   part's body, that the content would have.
//! * *relatives*: parts that refer to their content in ways no document describes: detached
//!   attachments, enclosures, cloud files, shortcuts ([`external_body::Form`]).
//! * *reference*: what a part refers to; *base*: what a relative one is resolved against.
//! * *rivals*: external bodies of one multipart/alternative that offer the same object.
//! * *left*: not touched, byte for byte, for a [`report::Reason`].
//! * *world*: what implements [`fetch::Fetch`]. [`fetch::Nowhere`] retrieves nothing,
//!   [`fetch::World`] does what a [`Policy`] allows, [`fetch::canned::Canned`] is for tests.

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
