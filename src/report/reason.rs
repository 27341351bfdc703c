//! Why a part was left: the one list of words, which a test compares with docs/reasons.md.

use serde::Serialize;

use crate::detail::Setting;

/// A setting by its name, or `none`.
macro_rules! remedy {
    (none) => {
        None
    };
    ($setting:ident) => {
        Some(Setting::$setting)
    };
}

macro_rules! reasons {
    ($($variant:ident $word:literal $remedy:ident $meaning:literal;)*) => {
        /// Why a part was left unchanged: the one list. Words are stable.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Reason {
            $(#[doc = concat!("`", $word, "`: ", $meaning)] $variant,)*
        }

        impl Reason {
            /// Every reason, in the order of the table in docs/reasons.md.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable kebab-case word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// What it means, as a sentence without a full stop.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// The setting that would have allowed it; none where none would.
            pub fn remedy(self) -> Option<Setting> {
                match self { $(Self::$variant => remedy!($remedy),)* }
            }
        }
    };
}

reasons! {
    SchemeNotAllowed "scheme-not-allowed" Fetch "the scheme of the URL is not allowed";
    NotRetrieved "not-retrieved" none "a dry run retrieves nothing; a probe only asks whether the server has the content";
    Offline "offline" none "the run is offline, and neither the cache nor the files of the archive have the content";
    InArchive "in-archive" none "a dry run retrieves nothing; the source is gone, and the archive has a capture of it";
    NotArchived "not-archived" none "the source is gone, and the archive has no capture of it that could be put in: none at all, none near enough to the mail, or only one of an error";
    ArchiveBusy "archive-busy" none "the source is gone, and the archive is not used now: it requested a pause, or other requests are waiting";
    SecretUrl "secret-url" ArchiveAny "the content is gone, and the URL is not sent to the archive, because it looks like a secret or its host is not public";
    UnsupportedScheme "unsupported-scheme" none "the scheme can be retrieved, but not in this case: ftp through a proxy, a folder, a file of another machine";
    HostNotAllowed "host-not-allowed" AllowHost "the host is denied, or not among the allowed ones";
    PrivateAddress "private-address" AllowNet "the host is, or resolves to, an address that is not globally reachable";
    PortNotAllowed "port-not-allowed" AllowPort "the port is not the scheme's own";
    UserinfoNotAllowed "userinfo-not-allowed" AllowUserinfo "the URL carries a user name or password";
    OutsideFileRoot "outside-file-root" FileRoot "the file is not below an allowed directory";
    NotARegularFile "not-a-regular-file" none "the file is a folder, a device, a pipe or a socket, or a link where none is followed";
    FileNotReadable "file-not-readable" none "the file does not exist or cannot be read";
    AmbiguousFile "ambiguous-file" none "two files below the directories of attachments match";
    FileTaken "file-taken" none "another mail of the mailbox, or another line of this one, names the file before";
    TypeNotAllowed "type-not-allowed" AllowType "the media type is denied, or not among the allowed ones";
    TypeMismatch "type-mismatch" AcceptMismatch "the content's type is not the declared one";
    SizeMismatch "size-mismatch" none "the content does not have the size that the mail declares";
    DigestMismatch "digest-mismatch" none "the content does not match the declared Content-MD5, or the SHA-256 in the note of detach";
    TooLarge "too-large" Body "the content, or its declared size, is above the limit of one body";
    GrowthLimit "growth-limit" Growth "the message would grow above the growth limit";
    MessageLimit "message-limit" Message "the message would become larger than the message limit";
    TooMuchWork "too-much-work" Work "this would exceed the work limit, or the memory limit, which is a multiple of the message and cannot be changed";
    TooManyFetches "too-many-fetches" Fetches "the message needs more retrievals than the limit allows";
    TooManyRedirects "too-many-redirects" Redirects "more redirects than are allowed, or a redirect loop";
    RedirectRefused "redirect-refused" Fetch "a redirect leads to a scheme that is not allowed, from https to http, or nowhere";
    Timeout "timeout" Timeout "the retrieval took longer than the time limit for one retrieval";
    Deadline "deadline" Deadline "the message took longer than the time limit for one message";
    ConnectionFailed "connection-failed" none "the connection failed or was interrupted";
    NameNotFound "name-not-found" none "the host name cannot be resolved";
    TlsFailed "tls-failed" CaFile "the server's certificate or TLS handshake was not acceptable";
    HttpStatus "http-status" none "the server returned a status other than 200";
    FtpStatus "ftp-status" none "the FTP server refused a command";
    IncompleteBody "incomplete-body" none "the content ended before it was whole: the server closed the connection, or the part referred to was cut off";
    BadResponse "bad-response" none "the response of the server is malformed";
    BadUrl "bad-url" none "the URL is malformed, or contains characters that are not allowed";
    BadDataUrl "bad-data-url" none "the data: URL has no comma, or its base64 is damaged";
    NoBase "no-base" none "the URL is relative and no base is declared";
    MissingUrl "missing-url" none "access-type=URL without a URL parameter";
    MissingParameter "missing-parameter" none "a parameter that the access type needs is missing";
    NoAccessType "no-access-type" none "message/external-body without an access-type";
    UnsupportedAccessType "unsupported-access-type" none "the access type is known, but embody does not retrieve by it";
    UnknownAccessType "unknown-access-type" none "the access type is unknown";
    NotFollowed "not-followed" Follow "references of this kind are not followed";
    UnsupportedDocument "unsupported-document" none "pictures are not embedded into this kind of document: AMP";
    Tracker "tracker" Trackers "the picture is at most 3 by 3 pixels or hidden, as tracking pictures are";
    NotAnImage "not-an-image" none "the content is not of a kind that may be embedded, or is an SVG with scripts or external references";
    WebPage "web-page" Resolver "the response is a web page, not the file that the mail links to";
    SignIn "sign-in" Resolver "the cloud requires a login before it sends the file";
    ScanPage "scan-page" Resolver "the cloud sends a warning page instead of a file that it did not scan for viruses";
    Expired "expired" none "the cloud no longer has the file, and the date in the mail says that it expired";
    OnlineDocument "online-document" Resolver "the link leads to an online document or a folder, not to a file";
    ResolverFailed "resolver-failed" none "the resolver program did not return the file; the detail has its reason";
    Deleted "deleted" none "the attachment was deleted, not detached: there is nothing to retrieve";
    ContentIdNotFound "content-id-not-found" none "no other part of the message has this Content-ID";
    ReferenceLoop "reference-loop" none "the reference leads back to itself, or to a part that it is inside of";
    CompositeTarget "composite-target" none "the Content-ID belongs to a multipart or a message, which is not copied";
    BoundaryCollision "boundary-collision" none "the content holds a line that is a boundary of the message it would be put into, or is a multipart that would swallow the parts that follow";
    UnfitComposite "unfit-composite" none "the content is a multipart or a message that cannot be put here without an encoding: it has no boundary, 8-bit bytes or lines that are too long, or is itself an external body";
    ControlCharacter "control-character" none "a phantom header field, or a multipart or message that would be put in, holds a bare CR or a NUL, which other readers take for a line end";
    Signed "signed" Protected "the part is signed, or inside a signed part";
    Encrypted "encrypted" Protected "the part is encrypted, or inside an encrypted part";
    InsideReport "inside-report" none "the part is inside a multipart/report, which is kept as evidence";
    EncodedReference "encoded-reference" none "the external-body part is itself base64 or quoted-printable encoded";
    CharsetNotSupported "charset-not-supported" none "the text is in a charset that is not a superset of ASCII, or a name is in an unsupported charset";
    UndecodableBody "undecodable-body" none "the body's transfer encoding is damaged or not supported";
    LooksEncoded "looks-encoded" none "the text looks like quoted-printable, but is not labelled as quoted-printable";
    LineTooLong "line-too-long" none "the change would make a line of a 7bit or 8bit body longer than 998 bytes";
    RivalExpanded "rival-expanded" none "another source of the same object was put in, and this one was removed";
    TooDeep "too-deep" Depth "the part is nested more deeply than the limit allows";
    TooManyParts "too-many-parts" Parts "the message has more parts than the limit allows";
    HoldsSeparator "holds-separator" none "the change would replace a line that starts with \"From \", where another message of the mailbox may start";
    ShownInline "shown-inline" Inline "the mail displays the part or refers to it, or may do so in a document that cannot be read; or the part is an inline picture next to HTML: detach keeps it";
    NotRestorable "not-restorable" none "the part could not be put back byte for byte: detach keeps it";
    StoreFailed "store-failed" none "the store of detached attachments could not be written, or read";
    NotInStore "not-in-store" none "the store does not have the content of the attachment";
    BadNote "bad-note" none "the note that detach left, X-Embody-Detached, cannot be read or does not fit the part";
    HeaderTooLarge "header-too-large" Header "a header section is larger than the limit";
    ChangedMeanwhile "changed-meanwhile" none "another program moved, deleted or changed the message on the server during the run";
    AlteredByServer "altered-by-server" none "the server altered or lost the new message or its date: the message is unchanged, and the copy was removed";
    FlagsNotKept "flags-not-kept" none "the folder on the server cannot hold the flags, keywords or labels of the message";
    QuotaFull "quota-full" none "the quota on the server has no room for both the new and the old message";
    ServerRefused "server-refused" none "the server rejects the new message, or rejects the deletion of the old message";
    AmbiguousCopy "ambiguous-copy" none "several messages may be the copy that embody wrote, or another message is in its place: all messages are kept";
    WrongSize "wrong-size" none "the message on the server does not have the size that the server says";
    NulByte "nul-byte" none "the message may hold NUL bytes, which IMAP cannot transfer: servers send 0x80 in their place, and the new message would have that";
}

impl Reason {
    /// Whether a limit of the message was reached: a later run may do what was left.
    pub fn is_bound(self) -> bool {
        matches!(
            self,
            Self::GrowthLimit
                | Self::MessageLimit
                | Self::TooManyFetches
                | Self::TooMuchWork
                | Self::Deadline
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_distinct_kebab_case_words() {
        let mut words: Vec<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert!(words.iter().all(|word| {
            word.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        }));
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Reason::ALL.len());
    }

    #[cfg(feature = "cli")]
    #[test]
    fn a_report_in_json_has_the_same_words() {
        use crate::report::{Kind, Outcome};

        let word = |it: serde_json::Result<serde_json::Value>| it.expect("it is a word");
        for reason in Reason::ALL {
            assert_eq!(word(serde_json::to_value(reason)), reason.as_str());
        }
        for kind in Kind::ALL {
            assert_eq!(word(serde_json::to_value(kind)), kind.as_str());
        }
        for outcome in Outcome::ALL {
            assert_eq!(word(serde_json::to_value(outcome)), outcome.as_str());
        }
    }
}
