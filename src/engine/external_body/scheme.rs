//! Every URL scheme that can be retrieved. The code that retrieves them is in `fetch/system/`, and `embody schemes` prints
//! the rows of `cli/schemes.md`.

use crate::detail::words;

words! {
    /// A URL scheme that can be retrieved from outside the message.
    pub enum Scheme [4] {
        Http "http" "`http:` (RFC 9110).";
        Https "https" "`https:` (RFC 9110).";
        Ftp "ftp" "`ftp:` (RFC 1738 §3.2).";
        File "file" "`file:` (RFC 8089).";
    }
}

impl Scheme {
    /// The scheme of that name, case-blind.
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

    /// The port the scheme uses unless its URL says otherwise; none for files.
    pub fn default_port(self) -> Option<u16> {
        match self {
            Self::Http => Some(80),
            Self::Https => Some(443),
            Self::Ftp => Some(21),
            Self::File => None,
        }
    }

    /// Whether its content is on a server, and not on this machine.
    pub(crate) fn has_server(self) -> bool {
        self.default_port().is_some()
    }

    /// Its place among rivals, the surest and nearest first.
    pub(crate) fn usefulness(self) -> u8 {
        match self {
            Self::File => 0,
            Self::Https => 1,
            Self::Http => 2,
            Self::Ftp => 3,
        }
    }

    /// Whether it is HTTP: it can be asked for a media type, and it redirects.
    pub(crate) fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }

    /// Whether its path becomes a line of a protocol, so that it must hold no line end.
    pub(crate) fn is_command(self) -> bool {
        self == Self::Ftp
    }
}
