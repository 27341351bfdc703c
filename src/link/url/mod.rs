//! Operations on URL references as text. "The draft" is draft-fielding-url-syntax-05.
//!
//! Only the necessary bytes change: the functions do not percent-encode, decode or change the case of other text, and
//! they do not drop ports or check hosts. The caller must not pass values that are not UTF-8. All functions take
//! linear time and memory, and they do not panic.

mod browser;
mod clean;
mod in_charset;
mod split;

pub(crate) use browser::{NETWORK_SCHEMES, scheme_and_rest};
pub use browser::{
    Relation, absolute_as_browser, behind_slashes, browser_key, relation, resolve_as_browser,
};
#[cfg(feature = "cli")]
pub use clean::holds_token;
pub(crate) use clean::{all_but, with_blanks_escaped};
pub use clean::{from_parameter, masked, unwrapped, without_fragment, without_secrets};
pub(crate) use in_charset::with_query_in;
#[cfg(any(test, feature = "internals"))]
pub use split::Unresolvable;
pub(crate) use split::cut;
pub use split::{UrlReference, equivalence_key, resolve};

pub(crate) use crate::mime::charset::with_octets_escaped;
