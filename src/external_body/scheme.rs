//! Every URL scheme that embody knows: the facts that the code asks for, and the rows that `embody schemes`
//! prints. The code that retrieves them is in `fetch/system/`.

use super::facility::Facility;

/// A URL scheme that can be retrieved from outside the message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scheme {
    /// `http:` (RFC 9110).
    Http,
    /// `https:` (RFC 9110).
    Https,
    /// `ftp:` (RFC 1738 §3.2).
    Ftp,
    /// `file:` (RFC 8089).
    File,
}

impl Scheme {
    /// All of them, in the order of the README.
    pub const ALL: [Self; 4] = [Self::Http, Self::Https, Self::Ftp, Self::File];

    /// The name, lower case, without the colon.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Ftp => "ftp",
            Self::File => "file",
        }
    }

    /// The scheme of that name, case-blind.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|scheme| name.eq_ignore_ascii_case(scheme.as_str().as_bytes()))
    }

    /// The names of all, for a sentence: `http, https, ftp, file`.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }

    pub(crate) fn of_url(url: &str) -> Option<Self> {
        let (name, _) = url.split_once(':')?;
        Self::from_name(name.as_bytes())
    }

    /// The port the scheme uses unless its URL says otherwise; none for files.
    #[must_use]
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

/// The schemes, in the order of docs/schemes.md. A URL of any other scheme is left.
pub(super) const SCHEMES: [Facility; 7] = [
    Facility {
        name: "data:",
        maps_to: "its own text (RFC 2397)",
        operation: "decode",
        example: Some(
            "Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\nContent-Type: text/plain\n",
        ),
        allowed_by: "",
        syntax: "not hierarchical: absolute, and no base",
        characters: "percent-escaped bytes or base64; the charset is a parameter",
        utility: "content without a server",
        disclosure: "nobody",
        danger: "hides content from those who look at parts only; `--deny-type` holds here too",
    },
    Facility {
        name: "cid:",
        maps_to: "the part of the message with that Content-ID (RFC 2392)",
        operation: "copy",
        example: Some(
            "Content-Type: message/external-body; access-type=URL; URL=\"cid:x@example.org\"\n\n\n--b\nContent-ID: <x@example.org>\n\nx\n",
        ),
        allowed_by: "",
        syntax: "not hierarchical; no `//`",
        characters: "the identifier, percent-escaped",
        utility: "one content in two places of a message",
        disclosure: "nobody",
        danger: "circles, and growth: `--max-growth`",
    },
    Facility {
        name: "mid:",
        maps_to: "`mid:message/part`, if it names this message (RFC 2392)",
        operation: "copy",
        example: Some(
            "Content-Type: message/external-body; access-type=URL;\n URL=\"mid:m@example.org/x@example.org\"\n\n\n--b\nContent-ID: <x@example.org>\n\nx\n",
        ),
        allowed_by: "",
        syntax: "not hierarchical; its `/` divides two identifiers",
        characters: "the same, each of the two",
        utility: "as `cid:`",
        disclosure: "nobody; other messages are not looked for",
        danger: "the same",
    },
    Facility {
        name: "https:",
        maps_to: "HTTP over TLS (RFC 9110)",
        operation: "GET",
        example: Some(
            "Content-Type: message/external-body; access-type=URL; URL=\"https://example.org/x\"\n\nContent-Type: text/plain\n",
        ),
        allowed_by: "--fetch https",
        syntax: "hierarchical, with `//`; may be relative",
        characters: "as written; what is no URL character is escaped as UTF-8",
        utility: "where content is today",
        disclosure: "the server learns our address, when the mail came, and what the URL holds; no cookie, no Referer, no login without `--allow-userinfo`",
        danger: "names of this network: addresses are judged when they are connected to; redirects are judged anew",
    },
    Facility {
        name: "http:",
        maps_to: "HTTP (RFC 9110)",
        operation: "GET",
        example: Some(
            "Content-Type: message/external-body; access-type=URL; URL=\"http://example.org/x\"\n\nContent-Type: text/plain\n",
        ),
        allowed_by: "--fetch http",
        syntax: "the same",
        characters: "the same",
        utility: "where content was",
        disclosure: "the same, and everybody on the way",
        danger: "the same; and whoever is on the way may answer: Content-MD5 is compared",
    },
    Facility {
        name: "ftp:",
        maps_to: "FTP, passive mode (RFC 1738)",
        operation: "RETR",
        example: Some(
            "Content-Type: message/external-body; access-type=URL; URL=\"ftp://example.org/x\"\n\nContent-Type: text/plain\n",
        ),
        allowed_by: "--fetch ftp",
        syntax: "hierarchical, with `//`; `;type=` at its end",
        characters: "bytes, percent-escaped; `%00`, `%0a` and `%0d` are refused",
        utility: "archives",
        disclosure: "as http; a password stands in the URL in the clear: `--allow-userinfo`",
        danger: "as http; data connections go to the server's own address only",
    },
    Facility {
        name: "file:",
        maps_to: "a file of this machine (RFC 8089)",
        operation: "read",
        example: Some(
            "Content-Type: message/external-body; access-type=URL; URL=\"file:///usr/share/x\"\n\nContent-Type: text/plain\n",
        ),
        allowed_by: "--fetch file --file-root DIR",
        syntax: "hierarchical; `file://machine/` is another machine's and refused",
        characters: "bytes, percent-escaped",
        utility: "detached attachments",
        disclosure: "nobody learns of it; what is read goes where the mail goes",
        danger: "`..`, links and devices: beneath a root only, regular files only",
    },
];
