//! embody fills in the content of attachments to which a mail only refers.
//!
//! A mail can contain a `message/external-body` part: a reference to content that is stored elsewhere (RFC 2046 §5.2.3,
//! RFC 2017). embody replaces the reference by the content, makes relative links in HTML and CSS work, and leaves every
//! other byte unchanged.
//!
//! The crate is not published yet. To use a checkout without the command line program:
//!
//! ```text
//! cargo add --path ../embody --no-default-features --features http,mailbox
//! ```
//!
//! `examples/` contains these programs: `fill` (fills in the pictures of one message), `fetch` (implements a fetcher),
//! `senders` (reads any mailbox), `pst2eml` (converts an Outlook mailbox), `detach` (moves the attachments of a mailbox out and back in), `async` (runs the
//! [`engine`] with tokio and hyper), and `wasm` (runs the engine in WebAssembly, from JavaScript).
//!
//! # Fill a mail
//!
//! An [`Expander`] has a [`Policy`] and processes one message after the other. By default nothing is retrieved. Only
//! content that is in the message itself, in `data:` URLs and in other parts, is filled in:
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
//! A policy can also allow requests to servers and reading of files: `Policy::default().with_fetch([Scheme::Https])`.
//! [`Expander::forecast`] returns a preview of what would be done, and makes no requests.
//!
//! # Retrieve content in your own way
//!
//! Content that is not in the mail is requested from a [`fetch::Fetch`], as far as the policy allows. A part that
//! cannot be filled in stays unchanged, byte for byte, and a [`report::Row`] contains the reason:
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
//! The default of an expander is a [`fetch::Fetcher`]. Your own `Fetch` can pass requests on to a `Fetcher`
//! ([`ExpanderBuilder::fetch_with`]).
//!
//! # Retrieve content with your own event loop
//!
//! An [`Engine`](engine::Engine) does no I/O, starts no threads and reads no clock. It returns a list of the content
//! that a mail needs, and takes the responses. It can therefore run in asynchronous programs, and on targets without an
//! operating system, such as `wasm32-unknown-unknown`. On targets other than Unix and Windows, the crate contains only
//! the modules [`engine`], [`policy`] and [`report`], and `outlook` and `view` with the features of these names; build it with
//! `default-features = false`.
//!
//! # Process a mailbox
//!
//! `mailbox::Messages` reads the messages of any mailbox or directory, one after the other. With the feature
//! `archives`, it also reads archives and compressed mail.
//!
//! To change the messages, use a [`mailbox::Transform`], for example an expander. A [`mailbox::Conversion`]
//! applies it to each message of an mbox file, a Maildir or a directory of messages. It
//! needs the feature `mailbox`.
//!
#![cfg_attr(feature = "mailbox", doc = "```")]
#![cfg_attr(not(feature = "mailbox"), doc = "```ignore")]
//! use embody::mailbox::Conversion;
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
//! let summary = Conversion::of(&source).to(&target).run(&expander, &())?;
//!
//! assert_eq!((summary.messages, summary.changed), (2, 1));
//! assert!(std::fs::read_to_string(&target)?.contains("\n\nA brief note\n"));
//! std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Read Outlook files
//!
//! The module `outlook` reads mailboxes (`.pst`), messages (`.msg`) and `winmail.dat` files (TNEF) of Outlook, and converts
//! them to mail. It needs the feature `outlook` and no other feature, and no operating system.
//!
//! # Detach, restore, and store responses
//!
//! [`detach`] moves large attachments into a [`store`], and an expander puts them back byte for byte. With the feature
//! `cache`, a directory keeps the responses of servers for later runs.
//!
//! # Promises
//!
//! * No mail is lost or cut: the output is complete, or an [`Error`] is returned. If one reference cannot be filled in,
//!   its part stays unchanged.
//! * Bytes that need not change do not change. If there is nothing to change, the output is the borrowed input.
//! * Only content that the [`Policy`] allows is retrieved.
//! * The same input, policy and responses give the same output. A second run changes nothing more, unless a limit
//!   stopped the first run. Limits apply to references in the order of the document, so a later run continues after the
//!   last reference of the first run.
//! * Hostile mail costs a limited amount of time, memory, requests and growth ([`policy::Limits`]).
//! * Signed and encrypted parts are not changed, unless [`policy::Protected::Rewrite`] allows it.
//!
//! # Features
//!
//! All of these features except `s3` are on by default. A program that only uses the library sets
//! `default-features = false` and names the features that it needs.
//!
//! * `file`: reads `file:` URLs below [`Policy::with_file_roots`] (cap-std).
//! * `http`: retrieves `http:` and `https:` URLs (ureq, rustls).
//! * `ftp`: retrieves `ftp:` URLs (suppaftp).
//! * `mailbox`: the module `mailbox`, which reads and changes mailboxes: mbox files, Maildirs, MH folders and
//!   directories of messages.
//! * `archives`: the module `mailbox` also reads and writes compressed mail (gzip, zstd, bzip2, xz), and reads zip and
//!   tar archives. Without this feature, compressed mail and archives are errors.
//! * `outlook`: the module `outlook`, which reads files of Outlook. With this feature, the engine also opens attached
//!   `.msg` files, and the module `mailbox` reads `.pst`, `.msg` and `winmail.dat` files.
//! * `cache`: the module `cache`, which stores responses of servers for later runs. It needs `http`.
//! * `view`: the module `view`, which shows the mail in a file: fields, texts, parts, and what is missing. It also works on
//!   targets without an operating system.
//! * `s3`: attachment stores in S3 and compatible servers. Not on by default.
//! * `cli`: the program `embody`, without the IMAP accounts, the milter and the HTTP service of the next three features. The manual
//!   pages describe its options. docs/ describes its reports and contains recipes for mail systems.
//! * `imap`: the program reads and changes mail on IMAP servers.
//! * `milter`: the program has the command `embody milter`.
//! * `serve`: the program has the command `embody serve`.
//!
//! # How it works
//!
//! The original message is never changed in memory. Parts, header fields and attribute values are [`Span`]s into its
//! bytes. Each decision is an [`Edit`], which replaces one span. Only one function writes output: it copies the
//! original up to each edit.
//!
//! # Vocabulary
//!
//! * *external body*: a part that contains only a reference to its content; *phantom header*: the header fields of that
//!   content, which are in the body of the part.
//! * *reference*: the place that a part refers to, as an external body or in another form ([`report::Kind`]); *base*:
//!   the URL against which a relative reference is resolved.
//! * *rivals*: external bodies of one multipart/alternative that refer to the same object.
//! * *left*: unchanged, byte for byte, for a [`report::Reason`].

// Without the features of the program, some functions are not used. The same is true on systems other than Unix, where
// some parts of the program do not exist.
#![cfg_attr(
    not(all(
        unix,
        feature = "cli",
        feature = "imap",
        feature = "milter",
        feature = "serve"
    )),
    allow(dead_code, unused_imports)
)]
// The benchmarks and fuzz targets use items that are not part of the public interface. Only a build with the feature
// `internals` includes all of these uses, so other builds must not warn about these items. They also need no
// documentation.
#![cfg_attr(not(any(test, feature = "internals")), allow(unreachable_pub))]
#![cfg_attr(any(test, feature = "internals"), allow(missing_docs))]

#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "cli")]
mod copies;
mod detail;
mod edit;
pub mod engine;
mod error;
// A target without files, threads and a clock, such as wasm32-unknown-unknown, has the engine and the module outlook alone. Modules that need the
// system are compiled on Unix and Windows only.
#[cfg(any(unix, windows))]
mod expand;
#[cfg(any(unix, windows))]
pub mod fetch;
#[cfg(feature = "mailbox")]
mod from_field;
#[cfg(all(unix, feature = "imap"))]
mod imap;
mod key;
mod link;
#[cfg(all(feature = "mailbox", any(unix, windows)))]
pub mod mailbox;
#[cfg(feature = "mailbox")]
mod mailbox_field;
// A system without files has only the formats of mailboxes, which `view` opens in memory.
#[cfg(all(feature = "view", not(any(unix, windows))))]
#[path = "mailbox/without_files.rs"]
mod mailbox;
#[cfg(feature = "cli")]
mod merge;
#[cfg(all(unix, any(feature = "milter", feature = "serve")))]
mod metrics;
// The mail filter server of `embody milter`.
#[cfg(all(unix, feature = "milter"))]
mod milter;
mod mime;
#[cfg(feature = "outlook")]
pub mod outlook;
mod platform;
#[cfg(any(unix, windows))]
mod pool;
// Without the feature `mailbox`, only the position of the header is used.
#[cfg_attr(not(feature = "mailbox"), allow(dead_code))]
mod prologue;
// The HTTP service of `embody serve`.
#[cfg(all(unix, feature = "serve"))]
mod serve;
mod span;
#[cfg(feature = "cli")]
mod spool;
#[cfg(any(unix, windows))]
mod stop;
#[cfg(feature = "view")]
pub mod view;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub use cli::run as run_program;
pub use edit::{Edit, Edits, Overlap, Spliced};
pub use engine::lengths::Lengths;
pub use engine::mark::{MARK_FIELD, Mark};
pub use engine::policy::Policy;
pub use engine::report::Report;
#[doc(inline)]
pub use engine::{policy, report};
pub use error::Error;
#[cfg(any(unix, windows))]
#[doc(inline)]
pub use expand::detach;
#[cfg(any(unix, windows))]
pub use expand::{Expander, ExpanderBuilder};
#[cfg(feature = "cache")]
#[doc(inline)]
pub use fetch::cache;
#[cfg(any(unix, windows))]
#[doc(inline)]
pub use fetch::store;
pub use span::Span;

#[cfg(any(test, feature = "internals"))]
#[doc(hidden)]
#[allow(missing_docs, unused_imports)]
pub mod internals;

// Unit tests of private items use the paths that other programs use (`embody::...`), so this crate also needs the name
// `embody`.
#[cfg(all(test, feature = "milter"))]
extern crate self as embody;
#[cfg(all(test, feature = "milter"))]
#[path = "../tests/unit/mod.rs"]
mod unit;
