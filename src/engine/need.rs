//! Content that a message refers to and does not contain. The engine lists it as needs, and the driver retrieves it.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;

use crate::mime::entity::sha256;

/// Content that a message refers to and does not contain.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Need {
    /// The content of a URL.
    Url {
        /// An absolute URL without white space, after the replacements of `--map`.
        url: String,
        /// The media type without parameters that the reference declares, for the Accept field of a request.
        accept: Option<String>,
    },
    /// A file in a directory that `--attachments` names (see [`Policy::attachments`](crate::Policy)). If there is no
    /// such file, the content is retrieved from the URL.
    Attachment {
        /// The URL of the reference. The end of its path is the name of the file.
        url: String,
        /// As in [`Need::Url`].
        accept: Option<String>,
        /// Minimum number of path components that the path of the file must have in common with the URL, counted from
        /// the end.
        components: usize,
    },
    /// The object of a store.
    Object {
        /// SHA-256 of the content, from the note that `embody detach` left in the part.
        sha256: String,
    },
    /// A file that a program retrieves for the user (`--resolver`).
    Question {
        /// The name of the service that has the file, as in reports.
        provider: &'static str,
        /// The file name in the mail.
        name: Option<String>,
        /// The http or https URL in the mail, without control characters.
        url: String,
    },
    /// A file next to the mailbox.
    Neighbour(Neighbour),
    /// The content of a part that is missing in the mail (`--copies`). It is taken from another copy of the mail, or from any
    /// mail with a part that has the digest of the content.
    Copy(MissingPart),
}

/// A part whose content the mail lacks, with the facts that identify a copy of the content.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct MissingPart {
    /// The mail that lacks the part. `None` if the part belongs to content that was retrieved for the mail. The
    /// mailboxes contain no copy of such content as a mail, so only a part with the right digest can replace it.
    pub mail: Option<WholeMail>,
    /// Number of the part in the mail, as in IMAP.
    pub part: String,
    /// Index of the note in the text of the part, from 0. A note is the text that a mail program wrote in place of an
    /// attachment. The index is 0 if the whole part is such a note.
    pub note: usize,
    /// SHA-256 of the content in hexadecimal digits, if the mail states it.
    pub sha256: Option<String>,
    /// MD5 of the content, if the mail states it (RFC 1864).
    pub md5: Option<[u8; 16]>,
    /// Length of the content in bytes, if the mail states it.
    pub size: Option<u64>,
}

/// A whole mail as part of a need. Equality compares only the SHA-256, so that needs can be compared quickly.
#[derive(Clone)]
pub struct WholeMail(Arc<(Bytes, String)>);

impl WholeMail {
    pub(crate) fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let digest = sha256(&bytes);
        Self(Arc::new((bytes, digest)))
    }

    /// Returns the bytes of the mail, including its header.
    pub fn bytes(&self) -> &Bytes {
        &self.0.0
    }

    /// Returns the SHA-256 of the mail, in hexadecimal digits.
    pub fn sha256(&self) -> &str {
        &self.0.1
    }
}

impl PartialEq for WholeMail {
    fn eq(&self, other: &Self) -> bool {
        self.sha256() == other.sha256()
    }
}

impl Eq for WholeMail {}

impl Hash for WholeMail {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.sha256().hash(hasher);
    }
}

impl fmt::Debug for WholeMail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "WholeMail({})", self.sha256())
    }
}

/// A file next to the mailbox, in a directory of the program that wrote the mailbox.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Neighbour {
    /// A file in a directory that belongs to the message, as Apple Mail writes them. The directory has a subdirectory for each
    /// part with a file.
    OfMessage {
        /// Name of the subdirectory, which is the number of the part.
        folder: String,
        /// File name in the mail. It selects the file if the subdirectory contains several.
        name: Option<String>,
    },
    /// A file in a directory that belongs to all messages of the mailbox, as in Eudora.
    OfMailbox {
        /// Number of the directory that contains the file. The [`Context`](super::Context) assigns these numbers.
        folder: usize,
        /// Name of the file in this directory.
        name: OsString,
    },
}

impl Need {
    /// Creates the need for the content of an absolute URL, to be requested with the media type `accept`.
    pub fn of_url(url: impl Into<String>, accept: Option<&str>) -> Self {
        Self::Url {
            url: url.into(),
            accept: accept.map(str::to_owned),
        }
    }

    /// Returns the URL in the mail, after the replacements of `--map`. Returns `None` for content that has no URL.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Url { url, .. } | Self::Attachment { url, .. } | Self::Question { url, .. } => {
                Some(url)
            }
            Self::Object { .. } | Self::Neighbour(_) | Self::Copy(_) => None,
        }
    }

    /// Returns the media type that the reference declares.
    pub fn accept(&self) -> Option<&str> {
        match self {
            Self::Url { accept, .. } | Self::Attachment { accept, .. } => accept.as_deref(),
            _ => None,
        }
    }

    /// Returns an identifier of the source, by which cycles are detected: content that refers to its own source. The
    /// same URL has two identifiers if it is requested, and if it finds a file in `--attachments`.
    pub(crate) fn source_name(&self) -> Cow<'_, str> {
        match self {
            Self::Url { url, .. } => Cow::Borrowed(url),
            Self::Attachment {
                url, components, ..
            } => Cow::Owned(format!("{components} components of {url}")),
            Self::Question { provider, url, .. } => Cow::Owned(format!("{provider} for {url}")),
            Self::Object { sha256 } => Cow::Borrowed(sha256),
            Self::Neighbour(Neighbour::OfMessage { folder, .. }) => Cow::Borrowed(folder),
            Self::Neighbour(Neighbour::OfMailbox { name, .. }) => name.to_string_lossy(),
            Self::Copy(missing) => Cow::Owned(format!("a copy of part {}", missing.part)),
        }
    }
}
