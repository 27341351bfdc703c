//! The target of a URL. A URL is parsed only once, so that the server that the policy checks is the server that
//! receives the request.
//!
//! Deviations from the WHATWG parser. In all these cases the URL is refused ([`Reason::BadUrl`]):
//! * white space and control characters at any position (the parser removes some of them);
//! * any text other than `//` and a host after `http:`, `https:` and `ftp:` (the parser finds a host in `http:127.0.0.1`);
//! * `%00`, `%0a` and `%0d` in ftp URLs (draft-fielding-url-syntax-05 §7), because they could inject commands;
//! * a query in a file URL.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use percent_encoding::percent_decode_str;

use super::{Host, Scheme};
use crate::engine::report::{Reason, Refusal};
use crate::error::Error;
use crate::link::server_url::ServerUrl;
use crate::link::url::{scheme_and_rest, without_fragment};

/// A valid URL. Only [`super::Policy`] creates targets, so a target may be retrieved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    scheme: Scheme,
    location: TargetLocation,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum TargetLocation {
    Server(ServerUrl),
    File { path: PathBuf, url: String },
}

impl Target {
    /// Returns the scheme of the URL.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub(crate) fn host(&self) -> Option<Host> {
        self.server()?.host()
    }

    /// Returns the port of the server, which is the default port of the scheme if the URL has none. Returns `None` for files.
    pub fn port(&self) -> Option<u16> {
        self.server()?.port().or(self.scheme.default_port())
    }

    /// Returns the absolute path of the file, percent-decoded once. Returns `None` for URLs with a server.
    pub fn path(&self) -> Option<&Path> {
        match &self.location {
            TargetLocation::File { path, .. } => Some(path),
            TargetLocation::Server(_) => None,
        }
    }

    /// Returns the path of the URL as it is sent to the server, with its percent-escapes. The path is empty for files.
    pub fn server_path(&self) -> &str {
        self.server().map_or("", ServerUrl::path)
    }

    /// Returns whether the URL contains a user name or a password.
    pub fn has_userinfo(&self) -> bool {
        self.server()
            .is_some_and(|url| !url.username().is_empty() || url.password().is_some())
    }

    /// Returns the user name and the password, percent-decoded once.
    pub fn userinfo(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let url = self.server().filter(|_| self.has_userinfo())?;
        let decoded = |text| percent_decode_str(text).collect();
        let (user, password) = (url.username(), url.password().unwrap_or(""));
        Some((decoded(user), decoded(password)))
    }

    /// Returns the URL for the request: without fragment, user name and password.
    pub fn request_url(&self) -> String {
        match self.server().cloned() {
            Some(url) => url.without_fragment().without_userinfo().into(),
            None => self.public_url(),
        }
    }

    /// Returns the URL for reports and files: without fragment and password.
    pub fn public_url(&self) -> String {
        match &self.location {
            TargetLocation::File { url, .. } => url.clone(),
            TargetLocation::Server(url) => url.clone().without_fragment().without_password().into(),
        }
    }

    /// Resolves the URL of a redirect. In contrast to browsers, a relative URL does not inherit the user name and the password.
    pub(super) fn join(&self, reference: &str) -> Option<String> {
        ServerUrl::parse(&self.request_url()).ok()?.join(reference)
    }

    fn server(&self) -> Option<&ServerUrl> {
        match &self.location {
            TargetLocation::Server(url) => Some(url),
            TargetLocation::File { .. } => None,
        }
    }

    pub(crate) fn parse(scheme: Scheme, url: &str) -> Result<Self, Refusal> {
        if url.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(bad("the URL contains white space or a control character"));
        }
        let (_, rest) = split_scheme(url)?;
        let location = if scheme.has_server() {
            parse_server(url, rest)?
        } else {
            parse_file(url, rest)?
        };
        let is_line_break = |octet| matches!(octet, 0 | b'\n' | b'\r');
        if scheme.is_command() && percent_decode_str(rest).any(is_line_break) {
            let name = scheme.as_str();
            let why = format!("the {name}: URL contains %00, %0a or %0d, which is not allowed");
            return Err(bad(&why));
        }
        Ok(Self { scheme, location })
    }
}

fn parse_server(url: &str, rest: &str) -> Result<TargetLocation, Refusal> {
    let authority = rest
        .strip_prefix("//")
        .filter(|authority| !authority.is_empty() && !authority.starts_with(['/', '\\', '?', '#']))
        .ok_or_else(|| bad("the URL contains no host name"))?;
    let server = authority.split(['/', '\\', '?', '#']).next().unwrap_or("");
    let host = server.rsplit_once('@').map_or(server, |(_, host)| host);
    if host.starts_with('[') && host.contains('%') {
        let detail = "addresses with a zone (such as fe80::1%eth0) are not allowed, because they belong to a local network of this computer";
        return Err(Refusal::lasting(Reason::PrivateAddress, detail));
    }
    let parsed = ServerUrl::parse(url).map_err(|why| bad(&why))?;
    if parsed.host_str().is_empty() {
        return Err(bad("the URL contains no host name"));
    }
    Ok(TargetLocation::Server(parsed))
}

/// Parses the rest of a file URL in one of the forms of RFC 8089 §2: `file:/path`, `file:///path`, `file://localhost/path`.
fn parse_file(url: &str, rest: &str) -> Result<TargetLocation, Refusal> {
    let rest = without_fragment(rest);
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(authority) => {
            let slash = authority
                .find('/')
                .ok_or_else(|| bad("the URL contains no file name"))?;
            let (host, path) = authority.split_at(slash);
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                // The text before an `@` can contain a password, so the error message gets only the text after it.
                let machine = host.rsplit('@').next().unwrap_or_default();
                let detail = format!("the file is on another computer, '{machine}'");
                return Err(Refusal::lasting(Reason::UnsupportedScheme, detail));
            }
            path
        }
    };
    if !path.starts_with('/') {
        return Err(bad("the path in the URL is not absolute"));
    }
    if path.contains('?') {
        return Err(bad(
            "the file: URL contains a query (?), which is not allowed",
        ));
    }
    let octets: Vec<u8> = percent_decode_str(path).collect();
    if octets.contains(&0) {
        return Err(bad("the path in the URL contains a NUL byte"));
    }
    Ok(TargetLocation::File {
        path: path_of(octets)?,
        url: without_fragment(url).to_owned(),
    })
}

#[cfg(unix)]
fn path_of(octets: Vec<u8>) -> Result<PathBuf, Refusal> {
    use std::os::unix::ffi::OsStringExt as _;
    Ok(std::ffi::OsString::from_vec(octets).into())
}

#[cfg(not(unix))]
fn path_of(octets: Vec<u8>) -> Result<PathBuf, Refusal> {
    let path = String::from_utf8(octets).map_err(|_| bad("the path in the URL is not UTF-8"))?;
    // A path with a drive letter: the slash before the letter is not part of the path (RFC 8089, appendix E.2).
    let beneath = path.strip_prefix('/').unwrap_or_default();
    Ok(match beneath.as_bytes() {
        [drive, b':', b'/', ..] if drive.is_ascii_alphabetic() => beneath.into(),
        _ => path.into(),
    })
}

pub(super) fn split_scheme(url: &str) -> Result<(&str, &str), Refusal> {
    scheme_and_rest(url).ok_or_else(|| bad("the URL has no scheme"))
}

/// Returns whether the URL consists only of letters, digits and common separators, so that it is certainly valid and
/// need not be parsed. Most URLs in mail are of this kind.
pub(super) fn is_plain(scheme: Scheme, url: &str) -> bool {
    let rest = scheme_and_rest(url).and_then(|(_, rest)| rest.strip_prefix("//"));
    let Some((host, path)) = rest.and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let is_path = |byte: u8| is_name(byte) || matches!(byte, b'/' | b'_');
    // Two kinds of hosts are not plain. If the last label contains a digit, the host may be an IP address in an unusual
    // notation. A label with `--` may be encoded in Punycode (`xn--`), which can be invalid.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_named = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_alphabetic());
    scheme.is_http()
        && is_named
        && !host.contains("--")
        && host.bytes().all(is_name)
        && path.bytes().all(is_path)
}

fn bad(why: &str) -> Refusal {
    Refusal::lasting(Reason::BadUrl, why)
}

/// `--proxy URL`: an HTTP proxy. Requests for http URLs are sent to it, and connections for https URLs are opened with CONNECT.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy(ServerUrl);

impl Proxy {
    /// Returns the URL, including user name and password.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    #[cfg(feature = "cache")]
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    pub(crate) fn public_url(&self) -> String {
        self.0.clone().without_password().into()
    }

    #[cfg(feature = "http")]
    pub(crate) fn place(&self) -> String {
        let host = self.0.host_str();
        let scheme = Scheme::of_url(self.0.as_str());
        let port = self
            .0
            .port()
            .or(scheme.and_then(Scheme::default_port))
            .unwrap_or_default();
        format!("{host}:{port}")
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A derived implementation would print the password.
        write!(formatter, "Proxy({:?})", self.0.host_str())
    }
}

impl FromStr for Proxy {
    type Err = Error;

    /// Parses `http://[user:password@]host[:port]`, or the same with https.
    ///
    /// # Errors
    /// [`Error::Usage`]. The message does not repeat the text, because it can contain a password.
    fn from_str(text: &str) -> Result<Self, Error> {
        let is_proxy = |url: &ServerUrl| {
            matches!(url.scheme(), "http" | "https") && !url.host_str().is_empty()
        };
        let url = ServerUrl::parse(text.trim()).ok().filter(is_proxy);
        let wrong = "the proxy is not an http or https URL such as http://proxy.example.org:3128"
            .to_owned();
        url.map(Self).ok_or_else(|| Error::Usage(wrong.into()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_plain_url_is_understood(url in "https?://?([a-z0-9A-Z-]{0,3}[.]?){0,3}(xn--)?[.]?([a-z]{0,3}|0x[0-9a-f]{1,10})[/:@]?[a-z0-9A-Z./_-]{0,9}") {
            let scheme = Scheme::of_url(&url).expect("http");
            prop_assert!(!is_plain(scheme, &url) || Target::parse(scheme, &url).is_ok(), "{url}");
        }
    }

    #[test]
    fn url_written_by_mailman_counts_as_plain() {
        let url = "https://stat.ethz.ch/pipermail/r-help/attachments/20240514/5a579ce7/attachment-0001.html";
        assert!(is_plain(Scheme::Https, url));
        for other in [
            "http://1.2.3.4/a",
            "http://h.0xfffffffff/a",
            "http://xn--a.example/",
            "http:/a.b/",
            "http://h.example/%zz",
        ] {
            assert!(!is_plain(Scheme::Http, other), "{other}");
        }
    }
}
