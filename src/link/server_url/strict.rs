//! A parser for the URLs that all parsers read in the same way (RFC 3986 and WHATWG URL). It replaces the crate `url` in
//! a build without the feature `url`.
//!
//! This is a boundary of security: if this parser and the program that makes the request disagreed about the host, the
//! policy would judge another server than the one that receives the request. Therefore a URL is refused if it contains
//! anything that parsers read in different ways: user names, backslashes, characters other than ASCII, malformed
//! escapes, hosts that are numbers in another notation than the usual one, or hosts in Punycode. An accepted URL is
//! normalised as the crate `url` does it: the scheme and the host become lower case, the default port is removed, and
//! dot segments are resolved. The tests compare each result with that of the crate.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::Range;

use super::host::Host;

type Parsed<T> = Result<T, &'static str>;

const SCHEMES: [(&str, u16); 3] = [("http", 80), ("https", 443), ("ftp", 21)];

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ServerUrl {
    text: String,
    scheme: &'static str,
    host: Host,
    host_range: Range<usize>,
    port: Option<u16>,
    path: Range<usize>,
    query: Option<Range<usize>>,
}

#[cfg(not(feature = "url"))]
impl Host {
    /// Parses a name or an IP address, as it is written in a URL.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        host(text).ok()
    }
}

impl ServerUrl {
    /// Parses an absolute URL with the scheme http, https or ftp.
    ///
    /// # Errors
    /// Returns the reason why the URL is refused.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        parse(text).map_err(str::to_owned)
    }

    /// Resolves a reference against this URL. Returns `None` if the result would be refused.
    pub(crate) fn join(&self, reference: &str) -> Option<String> {
        if reference.bytes().any(|byte| byte == b'\\') {
            return None;
        }
        let until = |end: usize| self.text.get(..end);
        let is_scheme =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let name = reference
            .bytes()
            .take_while(|&byte| is_scheme(byte))
            .count();
        let text = match reference.as_bytes() {
            // The text before a colon is usually a scheme, so the reference is a complete URL. In `1:x` it is not, but
            // parsers differ about this. `parse` below refuses each text with an unknown scheme, so no base is needed.
            bytes if bytes.get(name) == Some(&b':') => reference.to_owned(),
            [] => self.clone().without_fragment().text,
            [b'/', b'/', ..] => format!("{}:{reference}", self.scheme),
            [b'/', ..] => until(self.path.start)?.to_owned() + reference,
            [b'?', ..] => until(self.path.end)?.to_owned() + reference,
            [b'#', ..] => self.clone().without_fragment().text + reference,
            _ => {
                let slash = self.path().rfind('/')?;
                until(self.path.start + slash + 1)?.to_owned() + reference
            }
        };
        Some(parse(&text).ok()?.text)
    }

    fn between(&self, range: &Range<usize>) -> &str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn scheme(&self) -> &str {
        self.scheme
    }

    pub(crate) fn host(&self) -> Option<Host> {
        Some(self.host.clone())
    }

    /// Returns the host as it is written in the URL.
    pub(crate) fn host_str(&self) -> &str {
        self.between(&self.host_range)
    }

    /// Returns the port, or `None` if it is the default port of the scheme.
    pub(crate) fn port(&self) -> Option<u16> {
        self.port
    }

    pub(crate) fn path(&self) -> &str {
        self.between(&self.path)
    }

    pub(crate) fn query(&self) -> Option<&str> {
        self.query.as_ref().map(|range| self.between(range))
    }

    /// Returns an empty text, because URLs with a user name are refused.
    pub(crate) fn username(&self) -> &str {
        ""
    }

    pub(crate) fn password(&self) -> Option<&str> {
        None
    }

    pub(crate) fn without_fragment(mut self) -> Self {
        let end = self.query.as_ref().map_or(self.path.end, |query| query.end);
        self.text.truncate(end);
        self
    }

    pub(crate) fn without_password(self) -> Self {
        self
    }

    pub(crate) fn without_userinfo(self) -> Self {
        self
    }

    fn rest(&self, from: usize) -> &str {
        self.text.get(from..).unwrap_or_default()
    }

    /// Replaces the path. Callers build the new path from segments of a parsed URL, so the result is valid. If it is not,
    /// the URL stays unchanged.
    pub(crate) fn with_path(self, path: &str) -> Self {
        let (before, after) = (
            self.between(&(0..self.path.start)),
            self.rest(self.path.end),
        );
        parse(&format!("{before}{path}{after}")).unwrap_or(self)
    }

    /// Replaces the query. Callers build the new query from parameters of a parsed URL, so the result is valid. If it is
    /// not, the URL stays unchanged.
    pub(crate) fn with_query(self, query: &str) -> Self {
        let end = self.query.as_ref().map_or(self.path.end, |query| query.end);
        let (before, after) = (self.between(&(0..self.path.end)), self.rest(end));
        parse(&format!("{before}?{query}{after}")).unwrap_or(self)
    }
}

impl From<ServerUrl> for String {
    fn from(url: ServerUrl) -> Self {
        url.text
    }
}

fn parse(text: &str) -> Parsed<ServerUrl> {
    let (scheme, rest) = text
        .split_once("://")
        .ok_or("the URL does not begin with a scheme and ://")?;
    let known = SCHEMES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(scheme));
    let (scheme, default_port) = *known.ok_or("the scheme of the URL is not http, https or ftp")?;
    check_escapes(rest)?;

    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at_checked(end).unwrap_or_default();
    let (host_text, port_text) = authority_parts(authority)?;
    let (rest, fragment) = split(rest, '#');
    let (path, query) = split(rest, '?');
    let host = host(host_text)?;
    let port = port_text
        .map(port_number)
        .transpose()?
        .filter(|port| *port != default_port);
    // Refuses a URL with a character that RFC 3986 or the WHATWG URL standard forbids in this place, or that the crate
    // `url` escapes: parsers read such a URL in different ways.
    if !path.bytes().all(|byte| is_path(byte) || byte == b'\'') {
        return Err("the path in the URL contains a character that must be escaped");
    }
    if !query
        .unwrap_or_default()
        .bytes()
        .all(|byte| is_path(byte) || byte == b'?')
    {
        return Err("the query in the URL contains a character that must be escaped");
    }
    let is_fragment = |byte| is_path(byte) || matches!(byte, b'?' | b'\'');
    if !fragment.unwrap_or_default().bytes().all(is_fragment) {
        return Err("the fragment in the URL contains a character that must be escaped");
    }

    let mut text = format!("{scheme}://");
    let host_start = text.len();
    match &host {
        Host::Name(name) => text.push_str(name),
        Host::Address(_) => text.push_str(host_text),
    }
    let host_range = host_start..text.len();
    if let Some(port) = port {
        text.push_str(&format!(":{port}"));
    }
    let path_start = text.len();
    push_path(path, &mut text)?;
    let path = path_start..text.len();
    let query = query.map(|query| {
        text.push('?');
        let start = text.len();
        text.push_str(query);
        start..text.len()
    });
    if let Some(fragment) = fragment {
        text.push('#');
        text.push_str(fragment);
    }
    Ok(ServerUrl {
        text,
        scheme,
        host,
        host_range,
        port,
        path,
        query,
    })
}

fn split(text: &str, mark: char) -> (&str, Option<&str>) {
    match text.split_once(mark) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

/// Checks that each percent sign is followed by two hexadecimal digits.
fn check_escapes(text: &str) -> Parsed<()> {
    let mut parts = text.split('%').skip(1);
    let is_escape = |part: &str| {
        let digits = part.as_bytes().first_chunk::<2>();
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if parts.all(is_escape) {
        Ok(())
    } else {
        Err("the URL contains a percent sign without two hexadecimal digits")
    }
}

/// Returns whether a character stays as it is in a path and a query. These are the characters that RFC 3986 allows in
/// both, except `'`, which the crate `url` escapes in queries, and three that are common in links.
fn is_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&()*+,;=:@/|[]".contains(&byte)
}

/// Divides an authority into the host and the port.
fn authority_parts(authority: &str) -> Parsed<(&str, Option<&str>)> {
    if authority.contains('@') {
        return Err("the URL contains a user name");
    }
    let end = if authority.starts_with('[') {
        authority.find(']').map_or(0, |bracket| bracket + 1)
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (host, rest) = authority.split_at_checked(end).unwrap_or_default();
    match rest.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err("the host in the URL is malformed"),
    }
}

/// Parses a port as it is usually written: without a sign and without leading zeros.
fn port_number(text: &str) -> Parsed<u16> {
    let number = text
        .parse::<u16>()
        .ok()
        .filter(|number| number.to_string() == text);
    number.ok_or("the port in the URL is not a number from 0 to 65535")
}

/// Parses a host: a name, or an IP address in its usual notation.
fn host(text: &str) -> Parsed<Host> {
    if let Some(inner) = text.strip_prefix('[') {
        let address = inner
            .strip_suffix(']')
            .and_then(|it| it.parse::<Ipv6Addr>().ok())
            .filter(|&address| canonical(address) == inner.trim_end_matches(']'));
        let wrong = "the host in the URL is not an IPv6 address in its usual notation";
        return Ok(Host::Address(IpAddr::V6(address.ok_or(wrong)?)));
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(Host::Address(IpAddr::V4(address)));
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if !text.bytes().all(is_name) {
        return Err(
            "the host in the URL contains a character that is not a letter, a digit, a hyphen or a dot",
        );
    }
    // A trailing dot marks an absolute name.
    let last = text.strip_suffix('.').unwrap_or(text).rsplit('.').next();
    match last.unwrap_or_default().as_bytes() {
        [] => return Err("the host in the URL is not a name"),
        // A name that ends in a number is an IPv4 address in another notation, such as `0x7f.1` or `127.1`.
        [first, ..] if first.is_ascii_digit() => {
            return Err(
                "the host in the URL ends in a number, but is not an IPv4 address in its usual notation",
            );
        }
        _ => {}
    }
    let name = text.to_ascii_lowercase();
    if name.split('.').any(|label| label.starts_with("xn--")) {
        return Err("the host in the URL is an international name in Punycode");
    }
    Ok(Host::Name(name))
}

/// Writes an IPv6 address as URLs contain it (RFC 5952 §4). The IPv4 notation of its last bytes is not used.
fn canonical(address: Ipv6Addr) -> String {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => format!("::ffff:{high:x}:{low:x}"),
        _ => address.to_string(),
    }
}

/// Appends the path without its dot segments. An escaped dot counts as a dot, as in browsers.
fn push_path(path: &str, text: &mut String) -> Parsed<()> {
    enum PathSegment {
        Same,
        Up,
        Other,
    }
    let kind = |segment: &str| {
        let dots = segment.len() <= 6;
        let segment = segment.to_ascii_lowercase().replace("%2e", ".");
        match segment.as_str() {
            "." if dots => PathSegment::Same,
            ".." if dots => PathSegment::Up,
            _ => PathSegment::Other,
        }
    };
    let segments = || path.strip_prefix('/').unwrap_or(path).split('/');
    let mut kept: Vec<&str> = Vec::new();
    let mut has_dots = false;
    let last = segments().count() - 1;
    for (at, segment) in segments().enumerate() {
        match kind(segment) {
            PathSegment::Other => kept.push(segment),
            dots => {
                has_dots = true;
                if let PathSegment::Up = dots {
                    kept.pop();
                }
                // Dots at the end leave a slash at the end.
                if at == last {
                    kept.push("");
                }
            }
        }
    }
    // Some parsers treat such a segment as a drive of Windows, which `..` does not remove.
    let is_drive = |segment: &str| matches!(segment.as_bytes(), [letter, b':' | b'|', ..] if letter.is_ascii_alphabetic());
    if has_dots && segments().any(is_drive) {
        return Err(
            "the path in the URL contains `..` and a segment that looks like a drive, which programs resolve differently",
        );
    }
    for segment in kept {
        text.push('/');
        text.push_str(segment);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use url::Url;

    use super::*;

    const CASES: u32 = 20_000;

    /// Pieces from which the tests build random URLs and references. Most have a meaning for a URL parser.
    const PIECES: &[&str] = &[
        "a",
        "b.html",
        "Z-9",
        "x;p=1",
        "é",
        "日本",
        "ß",
        "%41",
        "%",
        "%2",
        "%zz",
        "%2e",
        "%2E",
        ".%2e",
        "%2e%2E",
        ".",
        "..",
        "...",
        "/",
        "//",
        "///",
        "./",
        "../",
        "../../",
        "/..",
        "/.",
        "\\",
        "\\..\\",
        "/\\",
        "?",
        "#",
        "?q",
        "#f",
        "?a=b/../c",
        "'",
        "\"",
        "<",
        ">",
        "`",
        "{",
        "}",
        "|",
        "^",
        "[",
        "]",
        "~",
        "!",
        "$",
        "&",
        "(",
        ")",
        "*",
        "+",
        ",",
        ";",
        "=",
        ":",
        ":80",
        ":443",
        ":21",
        ":0",
        ":00",
        ":08080",
        ":65535",
        ":65536",
        ":+80",
        ":x",
        "@",
        "u@",
        "u:p@",
        "c:",
        "C|",
        "d:/",
        " ",
        "\t",
        "\n",
        "\r",
        "\0",
        "\u{1f}",
        "\u{7f}",
        "\u{ad}",
        "\u{200b}",
        "．",
        "。",
        "①",
        "%00",
        "%0a",
        "%c3%a9",
        "%7F",
        "http:",
        "https://",
        "ftp:",
        "file:",
        "ws://",
        "HTTP://",
        "javascript:",
        "1:",
        "-",
        "_",
        "--",
    ];

    const HOSTS: &[&str] = &[
        "example.org",
        "EXAMPLE.Org",
        "a.b.c.d",
        "example.org.",
        "a..b",
        ".a",
        ".",
        "..",
        "",
        "a.",
        "a_b.example",
        "-a-.b-",
        "xn--bcher-kva.example",
        "XN--a",
        "a.xn--b",
        "ab--c.example",
        "xn-",
        "xn--",
        "1.2.3.4",
        "1.2.3.4.",
        "1.2.3",
        "127.1",
        "0x7f.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "1.2.3.04",
        "1.2.3.256",
        "a.1",
        "a.0x1",
        "a.0x",
        "a.09",
        "a.1.",
        "a.1a",
        "1a",
        "a.0xg",
        "0x",
        "[::1]",
        "[::]",
        "[0::1]",
        "[::ffff:1.2.3.4]",
        "[::ffff:102:304]",
        "[::1.2.3.4]",
        "[::102:304]",
        "[1:0:0:2:0:0:0:3]",
        "[1::2:0:0:3]",
        "[1:2:3:4:5:6:7:8]",
        "[1:2:3:4:5:6:7::]",
        "[1:2:3:4:5:6::8]",
        "[FE80::1]",
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[::1",
        "::1",
        "[]",
        "[v1.a]",
        "[64:ff9b::1]",
        "[::ffff:0:0]",
        "a%2eb",
        "%61",
        "é.example",
        "ａ.example",
        "a\u{ad}b",
        "a b",
        "a,b",
        "a;b",
        "a(b)",
        "a!b",
        "a~b",
        "a'b",
        "a*b",
        "a&b",
        "a=b",
        "a+b",
        "a$b",
        "a<b",
        "a^b",
        "a|b",
        "localhost",
        "a.localhost",
        "999999999999",
        "08.0.0.1",
    ];

    fn pieces(from: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
        proptest::collection::vec(proptest::sample::select(from), 0..most)
            .prop_map(|all| all.concat())
    }

    fn host_text() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => proptest::sample::select(HOSTS).prop_map(str::to_owned),
            1 => pieces(HOSTS, 3),
            1 => r"[a-zA-Z0-9._-]{0,8}(\.[a-z0-9x-]{0,4}){0,3}\.?",
            1 => r"([0-9]{1,3}\.){0,4}[0-9]{1,3}",
            1 => any::<[u16; 8]>().prop_map(|it| format!("[{}]", Ipv6Addr::from(it))),
            1 => proptest::collection::vec(prop_oneof![Just(0_u16), any::<u16>()], 8).prop_map(|it| {
                let segments: [u16; 8] = it.try_into().unwrap();
                format!("[{}]", Ipv6Addr::from(segments))
            }),
            1 => r"\[[0-9a-f:.]{0,12}\]",
            1 => pieces(PIECES, 4),
        ]
    }

    fn url_text() -> impl Strategy<Value = String> {
        let scheme = prop_oneof![
            8 => proptest::sample::select(vec!["http://", "https://", "ftp://", "HtTp://"]).prop_map(str::to_owned),
            1 => r"[a-zA-Z:+.0-9/\\-]{0,6}:?[/\\]{0,3}",
        ];
        let port = prop_oneof![
            4 => Just(String::new()),
            1 => r":[0-9]{0,6}",
            1 => proptest::sample::select(vec![":80", ":443", ":21", ":8080", ":", ":080"]).prop_map(str::to_owned),
        ];
        prop_oneof![
            8 => (scheme, host_text(), port, pieces(PIECES, 7)).prop_map(|(scheme, host, port, rest)| scheme + &host + &port + &rest),
            4 => (host_text(), pieces(PIECES, 9)).prop_map(|(host, rest)| format!("http://{host}/{rest}")),
            1 => r"(http|ftp)://[ -~]{0,20}",
            1 => pieces(PIECES, 9),
            1 => any::<String>(),
        ]
    }

    fn check(ours: &ServerUrl) -> Result<(), TestCaseError> {
        let text = ours.as_str();
        let theirs = Url::parse(text);
        prop_assert!(theirs.is_ok(), "{} {:?}", text, theirs);
        let theirs = theirs.unwrap();
        prop_assert_eq!(text, theirs.as_str());
        prop_assert_eq!(ours.scheme(), theirs.scheme());
        prop_assert_eq!(Some(ours.host_str()), theirs.host_str());
        let host = theirs.host().map(|host| match host {
            url::Host::Domain(name) => Host::Name(name.to_owned()),
            url::Host::Ipv4(address) => Host::Address(address.into()),
            url::Host::Ipv6(address) => Host::Address(address.into()),
        });
        prop_assert_eq!(ours.host(), host);
        prop_assert_eq!(ours.port(), theirs.port());
        prop_assert_eq!(ours.path(), theirs.path());
        prop_assert_eq!(ours.query(), theirs.query());
        prop_assert_eq!(
            (ours.username(), ours.password()),
            (theirs.username(), theirs.password())
        );
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(CASES))]

        #[test]
        fn accepted_url_is_the_one_that_the_url_crate_parses(text in url_text()) {
            if let Ok(ours) = parse(&text) {
                check(&ours)?;
                let theirs = Url::parse(&text);
                prop_assert_eq!(Ok(ours.as_str()), theirs.as_ref().map(Url::as_str));
                prop_assert_eq!(parse(ours.as_str()), Ok(ours));
            }
        }

        #[test]
        fn accepted_host_is_the_one_that_the_url_crate_parses(text in host_text()) {
            if let Ok(ours) = host(&text) {
                prop_assert_eq!(Some(ours), Host::parse(&text));
            }
        }

        #[test]
        fn accepted_reference_resolves_as_with_the_url_crate(base in url_text(), reference in prop_oneof![pieces(PIECES, 7), url_text()]) {
            if let Ok(ours) = parse(&base)
                && let Some(joined) = ours.join(&reference)
            {
                let theirs = Url::parse(&base).unwrap().join(&reference);
                prop_assert_eq!(Ok(joined.as_str()), theirs.as_ref().map(Url::as_str));
            }
        }

        #[test]
        fn changed_url_is_the_one_that_the_url_crate_makes(url in url_text(), segments in proptest::collection::vec("[a-z0-9%41.]{0,3}", 0..4)) {
            if let Ok(ours) = parse(&url) {
                let mut theirs = Url::parse(&url).unwrap();
                theirs.set_fragment(None);
                let bare = ours.clone().without_fragment();
                prop_assert_eq!(bare.as_str(), theirs.as_str());
                let path = format!("/{}", ours.path().split('/').chain(["download"]).collect::<Vec<_>>().join("/"));
                theirs.set_path(&path);
                theirs.set_query(Some("dl=1"));
                let changed = ours.clone().with_path(&path).with_query("dl=1").without_fragment();
                prop_assert_eq!(changed.as_str(), theirs.as_str());
                // The path is now random text. Either it is refused, so the URL stays unchanged, or the result is that of
                // the crate `url`.
                let path = format!("/{}", segments.join("/"));
                let mut theirs = Url::parse(&url).unwrap();
                theirs.set_path(&path);
                let changed = ours.clone().with_path(&path);
                prop_assert!([theirs.as_str(), ours.as_str()].contains(&changed.as_str()), "{}", changed.as_str());
                check(&changed)?;
            }
        }

        #[test]
        fn usual_url_is_accepted(url in r"(https?|ftp)://([a-z0-9-]{1,9}\.){1,3}[a-z]{2,4}(:[1-9][0-9]{1,3})?(/[a-zA-Z0-9._%41~=,+-]{0,9}){0,3}(\?[a-z0-9=&;/?:|%20-]{0,20})?(#[a-z0-9/?-]{0,5})?") {
            let has_broken_escape = check_escapes(&url).is_err();
            let is_international = url.contains("xn--");
            prop_assert!(has_broken_escape || is_international || parse(&url).is_ok(), "{url} {:?}", parse(&url));
        }
    }

    #[test]
    fn url_that_parsers_read_in_different_ways_is_refused() {
        for url in [
            "http://good.example@evil.example/",
            "http://evil.example\\@good.example/",
            "http://good.example%2f@evil.example/",
            "http:\\\\evil.example/",
            "http:/evil.example/",
            "http:evil.example/",
            "http:///evil.example/",
            "http://127.1/",
            "http://0x7f000001/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://[::ffff:127.0.0.1]/",
            "http://[0:0::1]/",
            "http://[fe80::1%25eth0]/",
            "http://ex\tample.org/",
            "http://example.org:/",
            "http://example.org:080/",
            "http://example.org:99999/",
            "http://ｅvil.example/",
            "http://xn--bcher-kva.example/",
            "http://b%C3%BCcher.example/",
            "http://a,b.example/",
            "http://example.org/a b",
            "http://example.org/%zz",
            "http://example.org/\\..\\",
            "http://example.org/c:/../x",
            "file://example.org/x",
            "gopher://example.org/",
            " http://example.org/",
            "",
        ] {
            assert!(parse(url).is_err(), "{url}");
        }
        let normal = |url: &str| String::from(parse(url).unwrap());
        assert_eq!(
            normal("HTTP://WWW.Example.ORG:80"),
            "http://www.example.org/"
        );
        assert_eq!(
            normal("https://h/a/%2E%2e/./b/..?q/../r#../f"),
            "https://h/?q/../r#../f"
        );
    }
}
