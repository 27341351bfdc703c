//! Splits references into components, resolves them (RFC 3986 §5.2), and compares them. "The draft" is
//! draft-fielding-url-syntax-05 (appendix B for splitting, §6 for comparing).

use memchr::{memchr, memchr_iter, memrchr};

/// The components of a URL reference. An absent component (`None`) differs from an empty one (`Some("")`), for
/// example in `x` and `x?`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UrlReference<'a> {
    pub scheme: Option<&'a str>,
    /// Host, with user name and port if the URL contains them. The draft calls this component *site*.
    pub authority: Option<&'a str>,
    pub path: &'a str,
    pub query: Option<&'a str>,
    pub fragment: Option<&'a str>,
}

impl<'a> UrlReference<'a> {
    /// Splits a reference as the regular expression of the draft does (appendix B):
    /// `^(([^:/?#]+):)?(//([^/?#]*))?([^?#]*)(\?([^#]*))?(#(.*))?`. It matches any text, so this cannot fail.
    /// Deviation: `.` also matches line endings.
    pub fn split(text: &'a str) -> Self {
        let (text, fragment) = cut(text, b'#');
        let (text, query) = cut(text, b'?');
        let (scheme, rest) = match cut(text, b':') {
            (scheme, Some(rest)) if !scheme.is_empty() && !scheme.contains('/') => {
                (Some(scheme), rest)
            }
            _ => (None, text),
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let end = memchr(b'/', rest.as_bytes()).unwrap_or(rest.len());
                (Some(&rest[..end]), &rest[end..])
            }
            None => (None, rest),
        };
        Self {
            scheme,
            authority,
            path,
            query,
            fragment,
        }
    }

    /// Joins the components to a URL (the draft §5.2 step 7, RFC 3986 §5.3).
    ///
    /// Deviation: if the URL has no authority and its path begins with `//`, the path is written as `/.//`, as in the
    /// WHATWG standard. Otherwise `//` would be read as the start of an authority. Such a path is never the result of
    /// splitting a URL, only of resolving a relative one.
    pub fn recompose(&self) -> String {
        let behind = |mark, part: Option<&'a str>| part.map_or(["", ""], |part| [mark, part]);
        let is_like_authority = self.authority.is_none() && self.path.starts_with("//");
        [
            self.scheme.map_or(["", ""], |scheme| [scheme, ":"]),
            behind("//", self.authority),
            [if is_like_authority { "/." } else { "" }, self.path],
            behind("?", self.query),
            behind("#", self.fragment),
        ]
        .as_flattened()
        .concat()
    }

    pub fn is_relative(&self) -> bool {
        self.scheme.is_none()
    }

    pub fn has_scheme(&self, name: &str) -> bool {
        self.scheme
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case(name))
    }

    /// Splits the authority into user information, host and port. Nothing is decoded: `user:secret`, `[::1]`, `80`.
    pub fn site(&self) -> Option<Site<'a>> {
        let authority = self.authority?;
        let (userinfo, place) = match authority.rsplit_once('@') {
            Some((userinfo, place)) => (Some(userinfo), place),
            None => (None, authority),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (place, None),
        };
        Some(Site {
            userinfo,
            host,
            port,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Site<'a> {
    pub userinfo: Option<&'a str>,
    pub host: &'a str,
    pub port: Option<&'a str>,
}

fn default_port(scheme: &str) -> Option<&'static str> {
    match scheme {
        "http" | "ws" => Some("80"),
        "https" | "wss" => Some("443"),
        "ftp" => Some("21"),
        "gopher" => Some("70"),
        _ => None,
    }
}

/// Returns a key for comparing URLs: two URLs are equivalent if their keys are equal (draft-fielding-url-syntax-05 §6).
///
/// In the key, the scheme and the host are in lower case, and a default or empty port is left out. With http, https,
/// ftp, ws, wss and gopher, an empty path becomes `/` (RFC 3986 §6.2.3). All other bytes are unchanged: `%7e` differs
/// from `~`, and an empty query from an absent one. The key of an absolute URL is an equivalent URL.
pub fn equivalence_key(url: &str) -> String {
    let reference = UrlReference::split(url);
    let scheme = reference.scheme.map(str::to_ascii_lowercase);
    let standard_port = scheme.as_deref().and_then(default_port);
    let authority = reference.site().map(|site| {
        let is_told = |port: &&str| !port.is_empty() && Some(*port) != standard_port;
        let userinfo = site.userinfo.map_or(["", ""], |userinfo| [userinfo, "@"]);
        let port = site
            .port
            .filter(is_told)
            .map_or(["", ""], |port| [":", port]);
        let host = site.host.to_ascii_lowercase();
        [userinfo, ["", &host], port].as_flattened().concat()
    });
    let path = match reference.path {
        "" if authority.is_some() && standard_port.is_some() => "/",
        path => path,
    };
    UrlReference {
        scheme: scheme.as_deref(),
        authority: authority.as_deref(),
        path,
        ..reference
    }
    .recompose()
}

/// Splits a text at the first `mark`, an ASCII character. If there is no `mark`, returns the whole text and `None`.
pub(crate) fn cut(text: &str, mark: u8) -> (&str, Option<&str>) {
    match memchr(mark, text.as_bytes()) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unresolvable {
    #[error("the base URL is not absolute")]
    BaseNotAbsolute,
    #[error("the base URL has no host")]
    BaseWithoutHost,
    #[error("the base URL has no path to which a URL can be relative")]
    OpaqueBase,
    #[error(
        "the file: URL has a drive letter at a place where browsers disagree about its meaning"
    )]
    UncertainDrive,
}

/// Resolves `reference` against `base`, strictly according to RFC 3986 §5.2.2.
///
/// Deviations:
/// * Dot segments in the path of the base are not removed; a URL that has them should not be used as a base.
/// * A result without authority whose path begins with `//` is written as in [`UrlReference::recompose`].
///
/// # Errors
/// [`Unresolvable::BaseNotAbsolute`] if the reference is relative and the base has no scheme.
pub fn resolve(base: &str, reference: &str) -> Result<String, Unresolvable> {
    let base = UrlReference::split(base);
    let reference = UrlReference::split(reference);
    if reference.scheme.or(base.scheme).is_none() {
        return Err(Unresolvable::BaseNotAbsolute);
    }
    let is_placed = reference.scheme.is_some() || reference.authority.is_some();
    let folder = match base.path {
        _ if is_placed || reference.path.starts_with('/') => "",
        "" if base.authority.is_some() => "/",
        path => up_to_last_slash(path),
    };
    let (path, query) = match reference.path {
        "" if !is_placed => (base.path.to_owned(), reference.query.or(base.query)),
        path => {
            let path = remove_dot_segments(&[folder, path].concat(), 0, dots);
            (path, reference.query)
        }
    };
    let target = UrlReference {
        scheme: reference.scheme.or(base.scheme),
        authority: if is_placed { reference } else { base }.authority,
        path: &path,
        query,
        fragment: reference.fragment,
    };
    Ok(target.recompose())
}

/// Removes the segments `.` and `..` from a path (RFC 3986 §5.2.4). `dots` returns the number of dots if a segment is
/// one of them, and 0 for other segments. The first `floor` bytes of the path, such as a drive, are never removed.
pub(super) fn remove_dot_segments(path: &str, floor: usize, dots: fn(&str) -> usize) -> String {
    // Most paths have no dot segment, and a dot segment begins with a dot or with its escape.
    let is_dot = |at: usize| {
        path.as_bytes()
            .get(at + 1)
            .is_some_and(|byte| matches!(byte, b'.' | b'%'))
    };
    if path.starts_with('/') && !memchr_iter(b'/', path.as_bytes()).any(is_dot) {
        return path.to_owned();
    }
    let mut output = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(behind) = rest.strip_prefix("../").or(rest.strip_prefix("./")) {
        rest = behind;
    }
    if !rest.starts_with('/') {
        let (first, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if dots(first) == 0 {
            output.push_str(first);
        }
        rest = behind;
    }
    let mut segments = rest.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let dots = dots(segment);
        if dots == 2 && output.len() > floor {
            output.truncate(output.rfind('/').unwrap_or(0));
        }
        if dots == 0 || segments.peek().is_none() {
            output.push('/');
        }
        if dots == 0 {
            output.push_str(segment);
        }
    }
    output
}

fn dots(segment: &str) -> usize {
    match segment {
        "." => 1,
        ".." => 2,
        _ => 0,
    }
}

pub(super) fn up_to_last_slash(path: &str) -> &str {
    memrchr(b'/', path.as_bytes()).map_or("", |at| &path[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn equivalent(one: &str, other: &str) -> bool {
        equivalence_key(one) == equivalence_key(other)
    }

    proptest! {
        #[test]
        fn taking_apart_and_putting_together_changes_nothing(text in "[a:/?#é%@.]{0,20}") {
            let reference = UrlReference::split(&text);
            prop_assert_eq!(reference.recompose(), text);
        }

        #[test]
        fn urls_are_equal_if_only_the_case_of_scheme_or_host_differs(tail in "(/[a-zA-Z%?#:@]{0,9})?") {
            let one = format!("http://h.Ex{tail}");
            let same = format!("HTTP://H.ex:80{tail}");
            prop_assert!(equivalent(&one, &same));
            let longer = format!("{one}/x");
            prop_assert!(!equivalent(&one, &longer));
        }
    }

    #[test]
    fn an_empty_component_is_not_an_absent_one() {
        let all = UrlReference::split("s://?#");
        assert_eq!(all.authority, Some(""));
        assert_eq!(all.query, Some(""));
        assert_eq!(all.fragment, Some(""));
        assert_eq!(UrlReference::split("").query, None);
        assert_eq!(UrlReference::split("#").fragment, Some(""));
        assert_eq!(UrlReference::split("?").query, Some(""));
        assert_eq!(UrlReference::split(":x").scheme, None);
        assert_eq!(UrlReference::split("./a:b").scheme, None);
    }

    #[test]
    fn urls_are_compared_by_scheme_host_and_port_as_the_url_syntax_defines() {
        for (one, other) in [
            ("http://www.XEROX.com", "http://www.xerox.com"),
            ("http://a:80/x", "HTTP://A/x"),
            ("http://a:/x", "http://a/x"),
            ("https://a:443", "https://a/"),
            ("ftp://u@A:21/x", "ftp://u@a/x"),
            ("http://[::FF]:80/", "http://[::ff]"),
            ("http://a?q", "http://a/?q"),
        ] {
            assert!(equivalent(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("http://a/X", "http://a/x"),
            ("http://a:443/", "http://a/"),
            ("http://a/%7e", "http://a/~"),
            ("http://a/%7e", "http://a/%7E"),
            ("http://a/?", "http://a/"),
            ("http://a/#", "http://a/"),
            ("http://U@a/", "http://u@a/"),
            ("http://a/", "https://a/"),
            ("x://a", "x://a/"),
            ("a", "A"),
        ] {
            assert!(!equivalent(one, other), "{one} {other}");
        }
    }

    #[test]
    fn dot_segments_go_as_in_the_two_examples_of_section_5_2_4() {
        for (path, expected) in [
            ("/a/b/c/./../../g", "/a/g"),
            ("mid/content=5/../6", "mid/6"),
            // Further cases of RFC 3986 §5.2.4: paths without a leading slash, and paths that end in `.` or `..`.
            ("../.././a", "a"),
            (".//../a/..", "/"),
            ("a/../b", "/b"),
            ("a/..", "/"),
            ("a/.", "a/"),
            ("..", ""),
            (".", ""),
            ("", ""),
            ("/..", "/"),
            ("/a//../b/./", "/a/b/"),
        ] {
            assert_eq!(remove_dot_segments(path, 0, dots), expected, "{path}");
        }
    }

    #[test]
    fn a_relative_base_resolves_nothing_relative() {
        assert_eq!(resolve("/a/", "g"), Err(Unresolvable::BaseNotAbsolute));
        assert_eq!(resolve("/a/", "x:g").unwrap(), "x:g");
    }

    #[test]
    fn untouched_text_keeps_its_bytes() {
        assert_eq!(
            resolve("HTTP://Ex.ORG:80/%7E a/é/x", "../Ü%zz?\"<>").unwrap(),
            "HTTP://Ex.ORG:80/%7E a/Ü%zz?\"<>"
        );
    }

    #[test]
    fn a_path_never_turns_into_a_host() {
        assert_eq!(resolve("x:/a", "/.//b").unwrap(), "x:/.//b");
    }

    #[test]
    fn a_megabyte_of_dots_is_no_trouble() {
        let deep = "a/".repeat(200_000) + &"../".repeat(200_000);
        assert_eq!(resolve("http://h/", &deep).unwrap(), "http://h/");
    }
}
