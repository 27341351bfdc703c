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
        /// An absolute URL without white space, after `--map`.
        url: String,
        /// The media type without parameters that the reference declares, for the Accept field of a request.
        accept: Option<String>,
    },
    /// A file below the directories of [`Policy::attachments`](crate::Policy). If there is no such file, the content of the
    /// URL.
    Attachment {
        /// The URL of the reference. The end of its path is the name of the file.
        url: String,
        /// As in [`Need::Url`].
        accept: Option<String>,
        /// Minimum number of path components, from the end, that the file must have in common with the URL.
        components: usize,
    },
    /// The object of a store.
    Object {
        /// SHA-256 of the content, as the note in the part writes it.
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
    /// The content of a part that is missing in the mail, from another copy of the mail, or from any mail that has a part with
    /// the digest (`--copies`).
    Copy(MissingPart),
}

/// A part whose content is not in the mail.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct MissingPart {
    /// The mail. `None` for a part of content that was retrieved for the mail: only a digest can find it.
    pub mail: Option<WholeMail>,
    /// Number of the part in the mail, as IMAP counts.
    pub part: String,
    /// Number of the note in the text of the part, from 0. It is 0 if the part itself is the note.
    pub note: usize,
    /// SHA-256 of the content in hexadecimal digits, if the part says it.
    pub sha256: Option<String>,
    /// MD5 of the content, if the part says it (RFC 1864).
    pub md5: Option<[u8; 16]>,
    /// Length of the content in bytes, if the part says it.
    pub size: Option<u64>,
}

/// A mail as a part of a need. Two of them are equal if the mails have the same SHA-256.
#[derive(Clone)]
pub struct WholeMail(Arc<(Bytes, String)>);

impl WholeMail {
    pub(crate) fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let digest = sha256(&bytes);
        Self(Arc::new((bytes, digest)))
    }

    /// The mail, with its header.
    pub fn bytes(&self) -> &Bytes {
        &self.0.0
    }

    /// SHA-256 of the mail, in hexadecimal digits.
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
    /// A file of Apple Mail, below the directory that has the number of the message.
    Apple {
        /// Name of the directory: the number of the part.
        folder: String,
        /// The file name in the mail. If the directory contains several files, it selects one.
        name: Option<String>,
    },
    /// A file of Eudora.
    Eudora {
        /// Number of the directory in the [`Context`](super::Context).
        folder: usize,
        /// Name of the file in this directory.
        name: OsString,
    },
}

impl Need {
    /// The content of an absolute URL, requested with the media type `accept`.
    pub fn of_url(url: impl Into<String>, accept: Option<&str>) -> Self {
        Self::Url {
            url: url.into(),
            accept: accept.map(str::to_owned),
        }
    }

    /// The URL in the mail, after `--map`. `None` for content that has no URL.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Url { url, .. } | Self::Attachment { url, .. } | Self::Question { url, .. } => {
                Some(url)
            }
            Self::Object { .. } | Self::Neighbour(_) | Self::Copy(_) => None,
        }
    }

    /// The media type that the reference declares.
    pub fn accept(&self) -> Option<&str> {
        match self {
            Self::Url { accept, .. } | Self::Attachment { accept, .. } => accept.as_deref(),
            _ => None,
        }
    }

    /// Returns a name for the source that is different for every source. For example, a file of `--attachments` has another
    /// name than the content of the URL that leads to it.
    pub(crate) fn source_name(&self) -> Cow<'_, str> {
        match self {
            Self::Url { url, .. } => Cow::Borrowed(url),
            Self::Attachment {
                url, components, ..
            } => Cow::Owned(format!("{components} components of {url}")),
            Self::Question { provider, url, .. } => Cow::Owned(format!("{provider} for {url}")),
            Self::Object { sha256 } => Cow::Borrowed(sha256),
            Self::Neighbour(Neighbour::Apple { folder, .. }) => Cow::Borrowed(folder),
            Self::Neighbour(Neighbour::Eudora { name, .. }) => name.to_string_lossy(),
            Self::Copy(missing) => Cow::Owned(format!("a copy of part {}", missing.part)),
        }
    }
}
