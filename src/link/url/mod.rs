//! URL references as text. "The draft" is draft-fielding-url-syntax-05.
//!
//! Text that an algorithm does not have to touch keeps its bytes: nothing is percent-encoded, decoded, lower-cased or
//! sorted, no port is dropped, no host is looked at. The caller must leave values that are not UTF-8. All functions
//! take time and memory linear in their input, and none panics.

mod browser;
mod clean;
mod resolve;
mod secret;
mod split;

pub(crate) use browser::{NETWORK_SCHEMES, scheme_and_rest};
pub use browser::{Relation, absolute_as_browser, behind_slashes, relation, resolve_as_browser};
pub(crate) use clean::{all_but, with_blanks_escaped, with_octets_escaped};
pub use clean::{from_parameter, masked, unwrapped, without_fragment};
#[cfg(any(test, feature = "internals"))]
pub use resolve::Unresolvable;
pub use resolve::resolve;
#[cfg(feature = "cli")]
pub use secret::holds_token;
pub use secret::without_secrets;
pub use split::{Reference, equivalence_key};
