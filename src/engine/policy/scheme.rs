//! Every URL scheme that can be retrieved. The code that retrieves them is in `fetch/system/`, and `embody schemes` prints
//! the rows of `cli/schemes.md`.

use crate::detail::words;

words! {
    /// A URL scheme of content that can be retrieved from outside the message.
    pub enum Scheme [4] {
        Http "http" "`http:` (RFC 9110).";
        Https "https" "`https:` (RFC 9110).";
        Ftp "ftp" "`ftp:` (RFC 1738 §3.2).";
        File "file" "`file:` (RFC 8089).";
    }
}

impl Scheme {
    /// Returns the scheme with this name, in upper or lower case.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|scheme| name.eq_ignore_ascii_case(scheme.as_str().as_bytes()))
    }

    pub(crate) fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }

    pub(crate) fn of_url(url: &str) -> Option<Self> {
        let (name, _) = url.split_once(':')?;
        Self::from_name(name.as_bytes())
    }

    /// Returns the default port, or `None` for files.
    pub fn default_port(self) -> Option<u16> {
        match self {
            Self::Http => Some(80),
            Self::Https => Some(443),
            Self::Ftp => Some(21),
            Self::File => None,
        }
    }

    /// Returns true if the content is on a server, and false if it is on this computer.
    pub(crate) fn has_server(self) -> bool {
        self.default_port().is_some()
    }

    /// Returns a rank, to order several sources of the same attachment. The source with the lowest rank is tried first: the
    /// most reliable and nearest one.
    pub(crate) fn usefulness(self) -> u8 {
        match self {
            Self::File => 0,
            Self::Https => 1,
            Self::Http => 2,
            Self::Ftp => 3,
        }
    }

    /// Returns true for HTTP, which supports redirects and requests for a media type.
    pub(crate) fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }

    /// Returns true if the path is sent as a line of a protocol, so that it must not contain a line ending.
    pub(crate) fn is_command(self) -> bool {
        self == Self::Ftp
    }
}
