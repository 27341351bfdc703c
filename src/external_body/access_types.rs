//! Every access type and other form of a reference that embody knows, in one table each. References are read
//! by these tables, and `embody schemes` prints them, with the URL schemes.

use super::facility::Facility;
use super::scheme::SCHEMES;

/// How the parameters of an access type are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    /// RFC 2017.
    Url,
    /// RFC 2046 §5.2.3.2.
    Ftp,
    /// RFC 2046 §5.2.3.4.
    LocalFile,
    /// RFC 1873.
    ContentId,
    /// The content was deleted.
    Deleted,
    /// Known, and not retrieved.
    Unsupported,
}

/// The access types, in the order of docs/schemes.md.
pub(super) const ACCESS_TYPES: [(Access, Facility); 9] = [
    (
        Access::Url,
        Facility {
            name: "URL",
            maps_to: "its `URL` parameter without white space (RFC 2017)",
            operation: "that of the scheme",
            example: None,
            allowed_by: "",
            syntax: "a URL in words of 40 characters; relative to Content-Base or Content-Location",
            characters: "those of the URL; RFC 2231 is undone once, percent-escapes are not",
            utility: "the general case",
            disclosure: "as the scheme",
            danger: "the phantom header promises a type and a digest: both are compared with what came",
        },
    ),
    (
        Access::Ftp,
        Facility {
            name: "FTP",
            maps_to: "`ftp://site/directory/name;type=` by `mode` (RFC 2046)",
            operation: "RETR, as anonymous",
            example: Some(
                "Content-Type: message/external-body; access-type=FTP; site=\"ftp.example.org\";\n directory=\"pub\"; name=\"x.txt\"\n\nContent-Type: text/plain\n",
            ),
            allowed_by: "--fetch ftp",
            syntax: "parameters, not relative",
            characters: "escaped as UTF-8; control characters are refused",
            utility: "old mail",
            disclosure: "the server learns our address; nobody is asked for the login that RFC 2046 speaks of",
            danger: "`site` is a bare host name: no port, no user, no line end",
        },
    ),
    (
        Access::Ftp,
        Facility {
            name: "ANON-FTP",
            maps_to: "the same",
            operation: "RETR, as anonymous",
            example: Some(
                "Content-Type: message/external-body; access-type=ANON-FTP; site=\"ftp.example.org\";\n directory=\"pub\"; name=\"x.txt\"\n\nContent-Type: text/plain\n",
            ),
            allowed_by: "--fetch ftp",
            syntax: "parameters, not relative",
            characters: "the same",
            utility: "announcements of the IETF; most servers are gone: `--map`",
            disclosure: "the server learns our address, and `embody@` as password",
            danger: "the same",
        },
    ),
    (
        Access::LocalFile,
        Facility {
            name: "LOCAL-FILE",
            maps_to: "`file://` and its `name` (RFC 2046)",
            operation: "read",
            example: Some(
                "Content-Type: message/external-body; access-type=LOCAL-FILE; name=\"/usr/share/x.txt\"\n\nContent-Type: text/plain\n",
            ),
            allowed_by: "--fetch file --file-root DIR",
            syntax: "an absolute path; `~` and relative ones meant the sender's machine",
            characters: "escaped as UTF-8",
            utility: "mail within one site",
            disclosure: "nobody learns of it; what is read goes where the mail goes",
            danger: "as `file:`; `site`, the domain in which the name holds, is not looked at",
        },
    ),
    (
        Access::ContentId,
        Facility {
            name: "CONTENT-ID",
            maps_to: "the other part of the message with that Content-ID (RFC 1873)",
            operation: "copy",
            example: Some(
                "Content-ID: <x@example.org>\nContent-Type: message/external-body; access-type=CONTENT-ID\n\n\n--b\nContent-ID: <x@example.org>\n\nx\n",
            ),
            allowed_by: "",
            syntax: "an identifier",
            characters: "compared byte by byte",
            utility: "one content in two places of a message",
            disclosure: "nobody",
            danger: "circles, and growth: `--max-growth`",
        },
    ),
    (
        Access::Unsupported,
        Facility {
            name: "MAIL-SERVER",
            maps_to: "a letter to `server`, its text the phantom body (RFC 2046)",
            operation: "none",
            example: Some(
                "Content-Type: message/external-body; access-type=MAIL-SERVER; server=\"x@example.org\"\n\nContent-Type: text/plain\n\nSEND x\n",
            ),
            allowed_by: "",
            syntax: "an address and a text",
            characters: "those of mail",
            utility: "there was no network at the other end",
            disclosure: "would tell a stranger that the mail was read",
            danger: "mail in the user's name, with a stranger's words; the answer comes some other day",
        },
    ),
    (
        Access::Unsupported,
        Facility {
            name: "TFTP",
            maps_to: "a file of a boot server (RFC 2046)",
            operation: "none",
            example: Some(
                "Content-Type: message/external-body; access-type=TFTP; site=\"boot.example.org\";\n name=\"x\"\n\nContent-Type: text/plain\n",
            ),
            allowed_by: "",
            syntax: "parameters",
            characters: "not said",
            utility: "none outside a local net",
            disclosure: "the server would learn our address",
            danger: "UDP without any proof of where the content is from",
        },
    ),
    (
        Access::Unsupported,
        Facility {
            name: "AFS",
            maps_to: "a file of the Andrew File System (RFC 2046)",
            operation: "none",
            example: Some(
                "Content-Type: message/external-body; access-type=AFS; name=\"/afs/example.org/x\"\n\nContent-Type: text/plain\n",
            ),
            allowed_by: "",
            syntax: "a path",
            characters: "not said",
            utility: "where AFS is mounted, LOCAL-FILE names the same file",
            disclosure: "would use the user's Kerberos tickets",
            danger: "a stranger's mail would read with the user's rights",
        },
    ),
    (
        Access::Deleted,
        Facility {
            name: "X-MUTT-DELETED",
            maps_to: "nothing: mutt removed the attachment",
            operation: "none",
            example: Some(
                "Content-Type: message/external-body; access-type=x-mutt-deleted;\n expiration=\"Fri, 1 Jan 2021 00:00:00 +0000\"; length=5\n\nContent-Type: text/plain\n",
            ),
            allowed_by: "",
            syntax: "no reference",
            characters: "none",
            utility: "says that there was something",
            disclosure: "nobody",
            danger: "none",
        },
    ),
];

/// Other forms of references, without an access type ([`super::Form`]).
pub(super) const RELATIVES: [Facility; 6] = [
    Facility {
        name: "X-Mozilla-External-Attachment-URL",
        maps_to: "its URL: an attachment that Thunderbird detached, an enclosure of its feed reader",
        operation: "that of the scheme",
        example: None,
        allowed_by: "",
        syntax: "a URL; mostly `file:`, of the machine where it was detached: `--map`",
        characters: "blanks are escaped, folds go",
        utility: "the attachment comes back, with the header it had",
        disclosure: "as the scheme",
        danger: "any sender can write the field: only a part with nothing but a note in it is replaced",
    },
    Facility {
        name: "X-Mozilla-Cloud-Part",
        maps_to: "its `url=`, unquoted",
        operation: "that of the scheme",
        example: None,
        allowed_by: "",
        syntax: "a URL up to the next known parameter",
        characters: "as above",
        utility: "what was too large to be attached",
        disclosure: "as the scheme; the URL is often the only key: who has it has the file",
        danger: "a cloud may answer with a page to sign in on: refused",
    },
    Facility {
        name: "X-Mozilla-Altered: AttachmentDeleted",
        maps_to: "nothing: Thunderbird deleted the attachment",
        operation: "none",
        example: Some(
            "Content-Type: text/x-moz-deleted\nX-Mozilla-Altered: AttachmentDeleted; date=\"x\"\n\nnote\n",
        ),
        allowed_by: "",
        syntax: "no reference",
        characters: "none",
        utility: "says that there was something",
        disclosure: "nobody",
        danger: "none",
    },
    Facility {
        name: "message/external-body with [InternetShortcut]",
        maps_to: "its `URL=` line, as Exchange writes them",
        operation: "that of the scheme",
        example: None,
        allowed_by: "",
        syntax: "a URL on a line",
        characters: "ASCII, UTF-8 or UTF-16",
        utility: "files that stay in a store",
        disclosure: "as the scheme; the store mostly wants a login and answers with a page",
        danger: "nothing declares a type: `--deny-type`",
    },
    Facility {
        name: "application/internet-shortcut",
        maps_to: "the same, in an attached file",
        operation: "that of the scheme",
        example: Some(
            "Content-Type: application/internet-shortcut\n\n[InternetShortcut]\nURL=data:,x\n",
        ),
        allowed_by: "--follow shortcuts",
        syntax: "the same",
        characters: "the same",
        utility: "the same; but a bookmark may be wanted as it is",
        disclosure: "as the scheme",
        danger: "the same",
    },
    Facility {
        name: "A non-text attachment was scrubbed...",
        maps_to: "the URL of a note that Mailman left, in any of its versions and languages",
        operation: "that of the scheme",
        example: Some(
            "Content-Type: text/plain\n\nAn HTML attachment was scrubbed...\nURL: <http://lists.example.org/pipermail/x/attachments/20240514/542cdbd7/attachment.html>\n",
        ),
        allowed_by: "--follow mailman --fetch http",
        syntax: "a URL on a line, or cut into several",
        characters: "ASCII",
        utility: "mail of lists, from their archives",
        disclosure: "the server of the list, which has an archive for all",
        danger: "the hash of the Message-ID proves whose it is, the size that it is whole",
    },
];

/// The rows for all that is in no table.
const OTHERS: [Facility; 2] = [
    Facility {
        name: "any other access type, or none",
        maps_to: "nothing",
        operation: "none",
        example: Some(
            "Content-Type: message/external-body; access-type=x-carrier-pigeon\n\nContent-Type: text/plain\n",
        ),
        allowed_by: "",
        syntax: "not known",
        characters: "not known",
        utility: "not known",
        disclosure: "nobody",
        danger: "what is not known is not tried",
    },
    Facility {
        name: "any other scheme",
        maps_to: "nothing; but `--map` may put a known one in its place",
        operation: "none",
        example: Some(
            "Content-Type: message/external-body; access-type=URL; URL=\"gopher://example.org/0x\"\n\nContent-Type: text/plain\n",
        ),
        allowed_by: "",
        syntax: "generic",
        characters: "as written",
        utility: "not known",
        disclosure: "nobody",
        danger: "what is not known is not tried",
    },
];

/// How the parameters of an access type (any case) are read; none if it is unknown.
pub(super) fn access_of(name: &str) -> Option<Access> {
    ACCESS_TYPES
        .iter()
        .find(|(_, facility)| facility.name.eq_ignore_ascii_case(name))
        .map(|(access, _)| *access)
}

/// Access types first, then the other forms, then the schemes.
pub fn facilities() -> impl Iterator<Item = &'static Facility> {
    let access_types = ACCESS_TYPES.iter().map(|(_, facility)| facility);
    access_types
        .chain(&RELATIVES)
        .chain(&SCHEMES)
        .chain(&OTHERS)
}
