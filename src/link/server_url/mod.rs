//! The parser of URLs that name a server. The policy judges the parsed URL, and the request is made with the same
//! parsed URL, so the server that was judged is the server that receives the request.
//!
//! With the feature `url`, [`ServerUrl`] is the parser of browsers (`whatwg`: the crate `url`), which also accepts
//! international host names. Without this feature, it is a small parser (`strict`) that accepts only URLs that all
//! parsers read in the same way, and refuses all others. Tests compare both parsers.

mod host;
#[cfg(any(test, not(feature = "url")))]
#[cfg_attr(feature = "url", allow(dead_code))]
mod strict;
#[cfg(feature = "url")]
mod whatwg;

pub(crate) use self::host::Host;
#[cfg(not(feature = "url"))]
pub(crate) use self::strict::ServerUrl;
#[cfg(feature = "url")]
pub(crate) use self::whatwg::ServerUrl;

/// Returns the end of an error message about a URL or host that this build refuses. It is empty if the build parses all
/// URLs.
pub(crate) fn advice() -> &'static str {
    if cfg!(feature = "url") {
        ""
    } else {
        "; this build of embody accepts only simple URLs; the feature `url` accepts the others"
    }
}
