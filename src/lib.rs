//! embody puts attachments that a mail only refers to back into the mail.
//!
//! A mail may hold a `message/external-body` part: a reference to content that is elsewhere
//! (RFC 2046 §5.2.3, RFC 2017). embody puts the content where the reference was, makes relative
//! links in HTML and CSS work, and leaves every other byte unchanged.
//!
//! The crate is not published yet. To use a checkout of it without the command line program:
//!
//! ```text
//! cargo add --path ../embody --no-default-features --features http,mailbox
//! ```
//!
//! `examples/` has these programs: `fill` (one message with its pictures), `fetch` (a fetcher of your own), `senders` (reads
//! any mailbox), `detach` (moves the attachments of a mailbox out and back in), `async` (drives the [`engine`] with tokio and hyper), and
//! `wasm` (the engine in WebAssembly, driven by JavaScript).
//!
//! # Fill a mail
//!
//! An [`Expander`] has a [`Policy`] and works on one message after the other. By default nothing is
//! retrieved; what is in the message itself, in `data:` URLs and in other parts, is put in:
//!
//! ```
//! use embody::{Expander, Policy};
//!
//! let mail = b"Subject: a card\nMIME-Version: 1.0\nContent-Type: message/external-body;\n access-type=URL; URL=\"data:text/plain,A%20brief%20note\"\n\nContent-Type: text/plain\n\n";
//! let expander = Expander::new(Policy::default())?;
//! let expansion = expander.expand(mail, "card.eml")?;
//! assert_eq!(
//!     expansion.output().into_bytes().as_ref(),
//!     b"Subject: a card\nMIME-Version: 1.0\nContent-Type: text/plain\nContent-Transfer-Encoding: 7bit\n\nA brief note",
//! );
//! # Ok::<(), embody::Error>(())
//! ```
//!
//! With a policy that allows more, servers and files are asked:
//! `Policy::default().with_fetch([Scheme::Https])`. [`Expander::forecast`] says what would be done and asks
//! nobody.
//!
//! # Retrieve in one's own way
//!
//! Content that is not in the mail is asked of a [`fetch::Fetch`], as far as the policy allows. A part that is left stays byte
//! for byte, and a [`report::Row`] says why:
//!
//! ```
//! use std::collections::HashMap;
//!
//! use embody::engine::Content;
//! use embody::fetch::{Bytes, Fetch, Request};
//! use embody::policy::Scheme;
//! use embody::report::{Outcome, Reason, Refusal};
//! use embody::{Expander, Policy};
//!
//! /// Content that is at hand already, by URL.
//! struct Archive(HashMap<&'static str, &'static str>);
//!
//! impl Fetch for Archive {
//!     fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
//!         let refusal = || Refusal::lasting(Reason::FileNotReadable, "it is not in the archive");
//!         let body = self.0.get(request.url()).ok_or_else(refusal)?;
//!         let media_type = Some("text/plain".to_owned());
//!         Ok(Content::new(request.url(), media_type, Bytes::from(*body)))
//!     }
//! }
//!
//! let mail = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
//!     --b\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/note.txt\"\n\n\
//!     Content-Type: text/plain\n\n\
//!     --b\nContent-Type: message/external-body; access-type=URL;\n URL=\"ftp://ftp.example.org/note.txt\"\n\n\
//!     Content-Type: text/plain\n\n--b--\n";
//!
//! let archive = Archive([("https://www.example.org/note.txt", "A brief note")].into());
//! let expander = Expander::builder(Policy::default().with_fetch([Scheme::Https]))
//!     .fetch(archive)
//!     .build()?;
//! let expansion = expander.expand(mail.as_bytes(), "two.eml")?;
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
//! [`fetch::Fetcher`] is what an expander uses otherwise; a `Fetch` of one's own may hand requests on to
//! one ([`ExpanderBuilder::fetch_with`]).
//!
//! # Retrieve with one's own event loop
//!
//! An [`Engine`](engine::Engine) does no I/O, starts no threads and reads no clock. It says what a mail needs, and gets the
//! answers, so asynchronous programs drive it, and programs on targets without a system, such as `wasm32-unknown-unknown`.
//! On targets other than Unix and Windows, the crate has the modules [`engine`], [`policy`] and [`report`] alone; build it
//! with `default-features = false`.
//!
//! # Walk a mailbox
//!
//! `mailbox::Messages` reads the messages of any mailbox, archive or folder, one after the other.
//!
//! To change them: an expander is a [`mailbox::Transform`]: [`mailbox::convert_to`] and [`mailbox::convert_in_place`] do to each
//! message of an mbox file, a Maildir or a folder of messages what a transform says. They need the feature
//! `mailbox`.
//!
#![cfg_attr(feature = "mailbox", doc = "```")]
#![cfg_attr(not(feature = "mailbox"), doc = "```ignore")]
//! use embody::mailbox::{Options, Stop, convert_to};
//! use embody::{Expander, Policy};
//!
//! let folder = std::env::temp_dir().join(format!("embody-example-{}", std::process::id()));
//! std::fs::create_dir_all(&folder)?;
//! let (source, target) = (folder.join("in.mbox"), folder.join("out.mbox"));
//! std::fs::write(
//!     &source,
//!     "From a@example.org Sat Jan  3 01:05:34 1996\nSubject: one\n\nhello\n\n\
//!      From a@example.org Sat Jan  3 01:05:35 1996\nMIME-Version: 1.0\nContent-Type: message/external-body;\n \
//!      access-type=URL; URL=\"data:,A%20brief%20note\"\n\nContent-Type: text/plain\n\n",
//! )?;
//!
//! let expander = Expander::new(Policy::default())?;
//! let summary = convert_to(&source, &target, &Options::default(), &expander, &(), &Stop::default())?;
//!
//! assert_eq!((summary.messages, summary.changed), (2, 1));
//! assert!(std::fs::read_to_string(&target)?.contains("\n\nA brief note\n"));
//! std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Detach, restore, and keep answers
//!
//! [`detach`] moves large attachments into a [`store`], and back byte for byte. With the feature `cache`, a folder keeps
//! answers from run to run.
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
//! # Features
//!
//! All of these except `s3` are on by default. A program that only uses the library sets `default-features = false` and
//! names the features that it needs.
//!
//! * `file`: reads `file:` URLs below [`Policy::with_file_roots`] (cap-std).
//! * `http`: retrieves `http:` and `https:` URLs (ureq, rustls).
//! * `ftp`: retrieves `ftp:` URLs (suppaftp).
//! * `mailbox`: the module `mailbox`.
//! * `cache`: the module `cache`, which keeps responses from run to run. It needs `http`.
//! * `s3`: stores of attachments in S3 and compatible servers. Not on by default.
//! * `cli`: the program `embody`, without the two commands below. Its options are in its manual pages; docs/ describes its
//!   reports and has recipes for mail systems.
//! * `imap`: the program reads and changes mail on IMAP servers.
//! * `milter`: the program has the command `embody milter`.
//!
//! # How it works
//!
//! Spans over an immutable original, edited once. Parts, header fields and attribute values are [`Span`]s into the same bytes;
//! a decision is an [`Edit`]; output is made in one place, by copying the original up to each edit.
//!
//! # Vocabulary
//!
//! * *external body*: a part that refers to its content; *phantom header*: the header fields, in the
//!   part's body, that the content would have.
//! * *reference*: what a part refers to, an external body or another form of one ([`report::Kind`]);
//!   *base*: what a relative one is resolved against.
//! * *rivals*: external bodies of one multipart/alternative that offer the same object.
//! * *left*: unchanged, byte for byte, for a [`report::Reason`].

// Benches, fuzz targets and the tests of this crate use what is behind the public interface: `internals`.
#[cfg(feature = "cli")]
#[allow(unreachable_pub)]
mod archive;
#[cfg(feature = "cache")]
#[cfg_attr(not(all(unix, feature = "cli")), allow(dead_code, unused_imports))]
#[allow(unreachable_pub)]
pub mod cache;
#[cfg(feature = "cli")]
#[allow(unreachable_pub)]
mod cli;
// A target without files, threads and a clock, such as wasm32-unknown-unknown, has the engine alone: modules that need the
// system are compiled on Unix and Windows only.
#[cfg(any(unix, windows))]
pub mod detach;
mod detail;
// Stores and caches lie in folders of ours.
#[cfg(any(unix, windows))]
#[cfg_attr(not(feature = "cli"), allow(dead_code, unused_imports))]
#[allow(unreachable_pub)]
mod disk;
#[allow(unreachable_pub)]
mod edit;
// Parts of the engine are used only by modules that need the system.
#[cfg_attr(not(any(unix, windows)), allow(dead_code, unused_imports))]
pub mod engine;
mod error;
// What only the milter needs.
#[cfg(any(unix, windows))]
#[cfg_attr(not(unix), allow(dead_code))]
#[allow(unreachable_pub)]
mod expand;
// The program alone detaches, writes notes, and has the mailboxes of Eudora.
#[cfg_attr(not(feature = "cli"), allow(dead_code, unused_imports))]
#[allow(missing_docs, unreachable_pub)]
mod external_body;
// Archives, a cache in front of servers, and servers of stores are the program's.
#[cfg(any(unix, windows))]
#[cfg_attr(not(all(unix, feature = "cli")), allow(dead_code, unused_imports))]
pub mod fetch;
// Some commands of the protocol are said by fuzzing alone.
#[cfg(all(unix, feature = "imap"))]
#[allow(dead_code, missing_docs, unreachable_pub)]
mod imap;
// A target without files has no stores.
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
mod key;
#[allow(unreachable_pub)]
mod lengths;
#[allow(missing_docs, unreachable_pub)]
mod link;
#[cfg(feature = "mailbox")]
pub mod mailbox;
#[cfg(feature = "cli")]
mod merge;
// The server of the program.
#[cfg(all(unix, feature = "milter"))]
#[allow(missing_docs, unreachable_pub)]
mod milter;
#[allow(missing_docs, unreachable_pub)]
mod mime;
#[cfg_attr(
    not(all(feature = "cli", feature = "milter")),
    allow(dead_code, unused_imports)
)]
#[allow(unreachable_pub, missing_docs)]
mod platform;
pub mod policy;
#[cfg(feature = "cli")]
mod record;
pub mod report;
#[cfg(feature = "cli")]
mod same;
#[allow(unreachable_pub)]
mod span;
// The program alone collects stores.
#[cfg(any(unix, windows))]
#[cfg_attr(not(all(unix, feature = "cli")), allow(dead_code, unused_imports))]
#[allow(unreachable_pub)]
pub mod store;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub use cli::run as run_program;
pub use edit::{Edit, Edits, Overlap, Spliced};
pub use engine::mark::{MARK_FIELD, Mark};
pub use error::Error;
#[cfg(any(unix, windows))]
pub use expand::{Expander, ExpanderBuilder};
pub use lengths::Lengths;
pub use policy::Policy;
pub use report::Report;
pub use span::Span;

#[cfg(any(test, feature = "internals"))]
#[doc(hidden)]
#[allow(missing_docs, unused_imports)]
pub mod internals;

// The tests of what is not public name the crate as those outside do.
#[cfg(all(test, feature = "milter"))]
extern crate self as embody;
#[cfg(all(test, feature = "milter"))]
#[path = "../tests/unit/mod.rs"]
mod unit;
