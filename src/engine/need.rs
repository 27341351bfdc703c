//! Content that a message refers to and does not contain. The engine lists it as needs, and the driver retrieves it.

use std::borrow::Cow;
use std::ffi::OsString;

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
            Self::Object { .. } | Self::Neighbour(_) => None,
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
        }
    }
}
