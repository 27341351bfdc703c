//! embody puts attachments that a mail only refers to back into the mail.
//!
//! A mail may hold a `message/external-body` part: a reference to content that is elsewhere
//! (RFC 2046 §5.2.3, RFC 2017). embody puts the content where the reference was, makes relative
//! links in HTML and CSS work, and leaves every other byte unchanged.
//!
//! The front door is [`Expander`]: a [`Policy`], a *world* to retrieve from, and one message after the
//! other. By default nothing is retrieved; what is in the message itself, in `data:` URLs and in other
//! parts, is put in:
//!
//! ```
//! use embody::{Expander, Policy, fetch::Nowhere};
//!
//! let mail = b"Subject: a card\nMIME-Version: 1.0\nContent-Type: message/external-body;\n access-type=URL; URL=\"data:text/plain,A%20brief%20note\"\n\nContent-Type: text/plain\n\n";
//! let expander = Expander::new(Policy::default(), &Nowhere);
//! let expansion = expander.expand(mail, "card.eml")?;
//! assert_eq!(
//!     expansion.output().into_bytes().as_ref(),
//!     b"Subject: a card\nMIME-Version: 1.0\nContent-Type: text/plain\nContent-Transfer-Encoding: 7bit\n\nA brief note",
//! );
//! # Ok::<(), embody::Error>(())
//! ```
//!
//! With a policy that allows more, and a world that has more, more is put in. What is left stays byte for
//! byte, and a [`report::Row`] says why. Here the world is made of answers given beforehand; the real one is
//! `fetch::World::new(&policy)?`, and `fetch::Cached` remembers its answers from message to message:
//!
//! ```
//! use embody::fetch::canned::Canned;
//! use embody::policy::Scheme;
//! use embody::report::{Outcome, Reason};
//! use embody::{Expander, Policy};
//!
//! let mail = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
//!     --b\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/note.txt\"\n\n\
//!     Content-Type: text/plain\n\n\
//!     --b\nContent-Type: message/external-body; access-type=URL;\n URL=\"ftp://ftp.example.org/note.txt\"\n\n\
//!     Content-Type: text/plain\n\n--b--\n";
//!
//! let policy = Policy { fetch: [Scheme::Https].into(), ..Policy::default() };
//! let world = Canned::new().with("https://www.example.org/note.txt", Some("text/plain"), "A brief note");
//! let expansion = Expander::new(policy, &world).expand(mail.as_bytes(), "two.eml")?;
//!
//! let [first, second] = expansion.report.rows.as_slice() else { panic!("two references") };
//! assert_eq!(first.outcome, Outcome::Expanded);
//! assert_eq!(second.outcome, Outcome::Left);
//! assert_eq!(second.reason, Some(Reason::SchemeNotAllowed));
//! let output = String::from_utf8(expansion.output().into_bytes().into_owned()).expect("it is text");
//! assert!(output.contains("\n\nA brief note\n--b\n"));
//! assert!(output.ends_with(&mail[mail.rfind("--b\nContent-Type").expect("a second part")..]));
//! # Ok::<(), embody::Error>(())
//! ```
//!
//! [`Expander::forecast`] says what would be done and asks nobody. [`mailbox::convert_to`] and
//! [`mailbox::convert_in_place`] do to each message of a mailbox what a [`mailbox::Transform`] says.
//!
//! # Promises
//!
//! * No mail is lost or cut short: output is whole, or there is an [`Error`]. Trouble with one reference leaves
//!   its part unchanged.
//! * Bytes that need not change do not change. Nothing to do: the output is the input, borrowed.
//! * Nothing is retrieved that the [`Policy`] does not allow.
//! * Same input, same policy, same answers: same output. A second run changes nothing more, unless a limit was
//!   reached: limits are met in document order, and a later run goes on from there.
//! * Hostile mail costs bounded time, memory, requests and growth ([`policy::Limits`]).
//! * What is signed or encrypted is not touched, unless [`policy::Protected::Rewrite`] says so.
//!
//! The program's options are in its manual pages, its reports and recipes for mail systems in docs/. The module
//! [`cli`] is the program; libraries do not need it.
//!
//! # How it works
//!
//! ```text
//! bytes --mime::scan--> Tree of spans --plan--> Plan --expand + trait Fetch--> Edits --splice--> bytes
//!                                         `------- left, and why -------------> Report
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
//! * *other forms*: parts that refer to their content in ways that no document describes: detached
//!   attachments, enclosures, cloud files, shortcuts ([`external_body::Form`]).
//! * *reference*: what a part refers to; *base*: what a relative one is resolved against.
//! * *rivals*: external bodies of one multipart/alternative that offer the same object.
//! * *left*: unchanged, byte for byte, for a [`report::Reason`].
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
