//! Reasons why a part was left unchanged. A test compares this list with docs/reasons.md.

use crate::detail::Setting;

/// Turns the remedy column of the table below into an `Option<Setting>`.
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
        /// Reason why a part was left unchanged. The words are stable: later versions do not rename them.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[derive(serde::Serialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Reason {
            $(#[doc = concat!("`", $word, "`: ", $meaning)] $variant,)*
        }

        impl Reason {
            /// Every reason, in the order of the table in docs/reasons.md.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name of the reason in rows of the report, such as `not-found`. Programs read these names, so
            /// they never change.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Returns an explanation of the reason, as a sentence without a full stop.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// Returns the setting that can allow the operation, or `None` if there is no such setting.
            pub fn remedy(self) -> Option<Setting> {
                match self { $(Self::$variant => remedy!($remedy),)* }
            }
        }
    };
}

reasons! {
    SchemeNotAllowed "scheme-not-allowed" Fetch "the options do not allow the scheme of the URL";
    Offline "offline" none "the run is offline, and the content is neither in the cache nor in the archive files";
    InArchive "in-archive" none "a dry run retrieves nothing; the source is gone, and the archive has a capture of it";
    NotArchived "not-archived" none "the source is gone, and the archive has no usable capture of it: no capture at all, none near enough to the date of the mail, or only captures of an error";
    ArchiveBusy "archive-busy" none "the source is gone, and the archive cannot be used now, because it requested a pause or because other requests to it are waiting";
    SecretUrl "secret-url" ArchiveAny "the source is gone, and its URL is not sent to the archive, because the URL may contain a secret or its host is not public";
    UnsupportedScheme "unsupported-scheme" none "embody supports the scheme, but cannot retrieve the URL: it names a folder or a file on another computer, or it is an ftp URL and the run uses a proxy";
    HostNotAllowed "host-not-allowed" AllowHost "the host is denied, or is not one of the allowed hosts";
    PrivateAddress "private-address" AllowNet "the address of the host is not public, for example because it is in a private network";
    PortNotAllowed "port-not-allowed" AllowPort "the port is not the default port of the scheme";
    UserinfoNotAllowed "userinfo-not-allowed" AllowUserinfo "the URL contains a user name or password";
    OutsideFileRoot "outside-file-root" FileRoot "the file is not in an allowed directory";
    NotARegularFile "not-a-regular-file" none "the file is not a regular file, but a folder, a device, a pipe, a socket, or a symbolic link that must not be followed";
    FileNotReadable "file-not-readable" none "the file does not exist or cannot be read";
    AmbiguousFile "ambiguous-file" none "two different files in the directories of attachments match the reference";
    NotInCopies "not-in-copies" none "the part is not in the mail, and the mailboxes of copies contain no copy of the mail that has it";
    CopiesDiffer "copies-differ" none "copies of the mail contain different contents for the part, so embody does not use any of them";
    FileTaken "file-taken" none "an earlier mail in the mailbox, or an earlier line of this mail, already names the file, and each file is inserted only once";
    TypeNotAllowed "type-not-allowed" AllowType "the media type is denied, or is not one of the allowed types";
    TypeMismatch "type-mismatch" AcceptMismatch "the type of the content differs from the type that the mail declares";
    SizeMismatch "size-mismatch" none "the size of the content differs from the size that the mail declares";
    DigestMismatch "digest-mismatch" none "the content does not match its Content-MD5 field, or the SHA-256 that detach recorded";
    TooLarge "too-large" Body "the content, or its declared size, is larger than the limit for one retrieved file";
    GrowthLimit "growth-limit" Growth "the content would make the message grow beyond the growth limit";
    MessageLimit "message-limit" Message "the content would make the message larger than the message limit";
    TooMuchWork "too-much-work" Work "the change would exceed the work limit, or the memory limit, which depends on the size of the message and cannot be set";
    TooManyFetches "too-many-fetches" Fetches "the message needs more retrievals than the limit allows";
    TooManyRedirects "too-many-redirects" Redirects "the server sent more redirects than the limit allows, or the redirects form a loop";
    RedirectRefused "redirect-refused" Fetch "a redirect leads to a scheme that is not allowed, from https to http, or to an invalid URL";
    Timeout "timeout" Timeout "the retrieval took longer than the time limit for one retrieval";
    HostUnresponsive "host-unresponsive" Timeout "three requests in a row to the host timed out, so this run sent no further requests to it";
    Deadline "deadline" Deadline "the message and its retrievals took longer than the time limit for one message";
    ConnectionFailed "connection-failed" none "the connection failed or was interrupted";
    NameNotFound "name-not-found" none "the host name does not exist, or has no address";
    NameServerFailed "name-server-failed" none "the name server failed or did not respond, so it is not known whether the host exists";
    TlsFailed "tls-failed" CaFile "the certificate of the server is not trusted, or the TLS handshake failed";
    HttpStatus "http-status" none "the server returned a status other than 200 and 203";
    FtpStatus "ftp-status" none "the FTP server refused a command";
    IncompleteBody "incomplete-body" none "the content is incomplete: the server closed the connection too early, or the end of the part is missing";
    BadResponse "bad-response" none "the response of the server is malformed";
    BadUrl "bad-url" none "the URL is malformed, or contains characters that are not allowed";
    BadDataUrl "bad-data-url" none "the data: URL contains no comma, or its base64 is damaged";
    NoBase "no-base" none "the URL is relative, and the message declares no base URL for it";
    MissingUrl "missing-url" none "the part has access-type=URL but no URL parameter";
    MissingParameter "missing-parameter" none "the part lacks a parameter that its access type requires";
    NoAccessType "no-access-type" none "the message/external-body part has no access-type parameter";
    UnsupportedAccessType "unsupported-access-type" none "embody does not support the access type of the part";
    UnknownAccessType "unknown-access-type" none "the part has an unknown access type";
    NotFollowed "not-followed" Follow "the options do not include this kind of reference";
    UnsupportedDocument "unsupported-document" none "embody does not embed pictures into AMP documents";
    Tracker "tracker" Trackers "the picture is hidden or at most 3 by 3 pixels, so it is probably a tracking picture";
    NotAnImage "not-an-image" none "the content is not a picture that can be embedded, or it is an SVG with scripts or external references";
    WebPage "web-page" Resolver "the response is a web page, not the file that the mail links to";
    SignIn "sign-in" Resolver "the cloud storage requires a login before it sends the file";
    ScanPage "scan-page" Resolver "the cloud storage sends a warning page instead of the file, because it did not scan the file for viruses";
    Expired "expired" none "the cloud storage no longer has the file, and according to the mail it has expired";
    OnlineDocument "online-document" Resolver "the link leads to an online document, a folder or a download page, not to a file";
    ResolverFailed "resolver-failed" none "the resolver program did not return the file";
    Deleted "deleted" none "the attachment was deleted from the mail, not detached, so there is nothing to retrieve";
    ContentIdNotFound "content-id-not-found" none "no other part of the message has this Content-ID";
    ReferenceLoop "reference-loop" none "the reference leads back to itself, or to a part that contains the reference";
    CompositeTarget "composite-target" none "the Content-ID belongs to a multipart or a message, and embody does not copy those";
    BoundaryCollision "boundary-collision" none "the content has a line that is also a boundary of the message, or it is a multipart that would absorb the parts after it";
    UnfitComposite "unfit-composite" none "the content is a multipart or a message that cannot be inserted here: it has no boundary, 8-bit bytes or too long lines, or it is itself a message/external-body";
    ControlCharacter "control-character" none "the content, or the header inside the external-body part, contains a NUL byte or a CR without LF, which some programs read as the end of a line";
    Signed "signed" Protected "the part is signed, or it is inside a signed part";
    Encrypted "encrypted" Protected "the part is encrypted, or it is inside an encrypted part";
    InsideReport "inside-report" none "the part is inside a multipart/report (such as a bounce), which is kept unchanged as evidence";
    EncodedReference "encoded-reference" none "the part with the reference is encoded in base64 or quoted-printable";
    CharsetNotSupported "charset-not-supported" none "the charset of the text is not a superset of ASCII, or the charset of a file name is not supported";
    UndecodableBody "undecodable-body" none "the transfer encoding of the body is damaged or not supported";
    LooksEncoded "looks-encoded" none "the text looks like quoted-printable, but its header does not declare quoted-printable";
    LineTooLong "line-too-long" none "the change would make a line of a 7bit or 8bit body longer than 998 bytes";
    RivalExpanded "rival-expanded" none "another part offered the same content and was used, so this part was removed";
    TooDeep "too-deep" Depth "the part is nested more deeply than the limit allows";
    TooManyParts "too-many-parts" Parts "the message has more parts than the limit allows";
    HoldsSeparator "holds-separator" none "the change would replace a line that starts with \"From \" and may be the beginning of another message in the mailbox";
    ShownInline "shown-inline" Inline "the text of the mail displays the part or links to it, or may do so, so detach keeps it";
    NotRestorable "not-restorable" none "restore could not put the part back byte for byte, so detach keeps it";
    StoreFailed "store-failed" none "embody could not write or read the store of detached attachments";
    NotInStore "not-in-store" none "the content of the attachment is not in the store";
    BadNote "bad-note" none "the X-Embody-Detached field, which detach wrote, is malformed or does not match the part";
    AlreadyInMail "already-in-mail" none "everything that can be extracted from the file is already in the mail; the file stays attached, because it also contains data that cannot be extracted";
    DamagedFile "damaged-file" none "nothing can be read from the file, because it is damaged";
    NoCounterpart "no-counterpart" none "mail has no counterpart for the content of the file, such as a contact or a task, or embody found no content in the file";
    HeaderTooLarge "header-too-large" Header "a header section in the message is larger than the limit";
    ChangedMeanwhile "changed-meanwhile" none "another program moved, deleted or changed the message on the server during the run";
    AlteredByServer "altered-by-server" none "the server altered or lost the new message or its date, so the new message was removed and the old one is unchanged; or the server discarded the new message, because it has the Message-ID of the old one";
    FlagsNotKept "flags-not-kept" none "the folder on the server cannot store the flags, keywords or labels of the message";
    QuotaFull "quota-full" none "the quota on the server has no room for both the new and the old message";
    ServerRefused "server-refused" none "the server rejected the new message or the deletion of the old message";
    AmbiguousCopy "ambiguous-copy" none "embody cannot tell which message is the original or the copy that it wrote, so all messages are kept";
    WrongSize "wrong-size" none "the server announced a size for the message and sent a different number of bytes";
    NulByte "nul-byte" none "the message may contain NUL bytes; IMAP servers send 0x80 in their place, so the new message would be different";
}

impl Reason {
    /// Whether the reason is an exhausted limit for one message. Each run starts with fresh limits, so a later run may
    /// process the references that were left.
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
        use crate::engine::report::{Kind, Outcome};

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
