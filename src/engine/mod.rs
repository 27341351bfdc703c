//! The engine decides what happens to one message. It has no I/O, no clock and no threads.
//!
//! [`Engine::run`] is a function from a message, its [`Context`] and the [`Answers`] so far to an [`EngineOutcome`]: edits, a
//! report, and the content that the message still needs. A driver retrieves this content and calls the function again.
//!
//! If a reference cannot be processed, its part stays unchanged, and a row of the report contains the reason. Limits apply in
//! the order of the document, so a later run can continue where an earlier run stopped. If no limit was reached, a second run
//! changes nothing.

// The library exports this module and `report` at its root, so their paths here are hidden from the documentation.
#[doc(hidden)]
pub mod policy;
#[doc(hidden)]
pub mod report;

mod announcement;
mod composite;
mod content;
mod content_source;
mod contents;
mod context;
pub(crate) mod date;
#[cfg(feature = "mailbox")]
pub(crate) mod declared_charsets;
pub mod detach;
mod embed;
#[expect(
    clippy::module_inception,
    reason = "engine/engine.rs contains the main type of the directory engine"
)]
mod engine;
// Only the command line program detaches attachments, writes notes and reads Eudora mailboxes, so this code is unused in the
// library.
pub(crate) mod external_body;
pub(crate) mod field_names;
mod guide;
pub(crate) mod lengths;
#[cfg(feature = "cli")]
pub(crate) mod same;
// Only the command line program opens these forms (winmail.dat, uuencode and others), so the code is unused in the library.
pub(crate) mod forms;
pub(crate) mod ledger;
pub(crate) mod mark;
mod mode;
mod need;
mod needs;
mod new_part;
mod obtained;
pub(crate) mod outlook;
mod part_edits;
pub(crate) mod parts;
mod pass;
pub(crate) mod plan;
pub(crate) mod prefilter;
pub(crate) mod protection;
#[cfg(feature = "cli")]
pub mod prove;
mod run;
mod search_words;
mod session;
mod settings;
mod source_field;
mod stored;
mod stub;
mod substitute;
pub(crate) mod text_lines;
#[cfg(feature = "mailbox")]
pub(crate) mod undeclared;
#[cfg(all(feature = "file", feature = "mailbox"))]
mod unflatten;
mod unwrap;
mod wrapped;

pub use self::announcement::{Announcement, Answer};
pub use self::content::{Content, CopiedPart, Origin};
pub use self::context::Context;
pub use self::engine::{Engine, EngineOutcome};
pub use self::mode::Mode;
pub use self::need::{MissingPart, Need, Neighbour, WholeMail};
pub use self::needs::{Answers, Needs};

#[cfg(all(feature = "file", feature = "mailbox"))]
pub(crate) use self::context::NamedFile;
#[cfg(feature = "cli")]
pub(crate) use self::embed::PAGE_INSTEAD;
pub(crate) use self::{
    context::NeighbourDirectories,
    mark::Mark,
    needs::too_much,
    prefilter::{Prefilter, kinds::Kinds},
};
