//! URL references as text: taken apart, resolved, compared, cleaned, made fit to be shown.
//!
//! * [`Reference`]: the components, by the regular expression of draft-fielding-url-syntax-05
//!   appendix B (the same as RFC 3986 appendix B).
//! * [`resolve()`]: RFC 3986 §5.2.
//! * [`resolve_as_browser`]: what a browser makes of a reference that stands in HTML.
//! * [`equivalent`]: the draft's §6.
//! * [`from_parameter`]: a URL as mail carries it (RFC 2017 §3.1, the draft's appendix E).
//! * [`masked`], [`without_secrets`], [`without_fragment`]: what reports and header fields show.
//!
//! Everything is textual. Text that an algorithm does not have to touch keeps its bytes: nothing is
//! percent-encoded, decoded, lower-cased or sorted, no port is dropped, no host is looked at.
//! References are `&str`: every character that means something in a URL is ASCII, but results
//! are put into HTML and JSON, so what a document's bytes mean is settled by the caller before.
//! The caller must leave values that are not UTF-8.
//!
//! All functions take time and memory linear in their input, and none panics.

mod browser;
mod clean;
mod resolve;
mod secret;
mod split;

pub(crate) use browser::scheme_and_rest;
pub use browser::{Relation, absolute_as_browser, behind_slashes, relation, resolve_as_browser};
pub(crate) use clean::{all_but, with_blanks_escaped, with_octets_escaped};
pub use clean::{from_parameter, masked, unwrapped, without_fragment};
#[cfg(any(test, feature = "internals"))]
pub use resolve::Unresolvable;
pub use resolve::resolve;
#[cfg(feature = "cli")]
pub use secret::holds_token;
pub use secret::without_secrets;
#[cfg(any(test, feature = "internals"))]
pub use split::equivalent;
pub use split::{Reference, equivalence_key};
