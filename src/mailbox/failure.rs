//! What could not be read or written, as an [`Error`].

use std::path::Path;

use crate::error::Error;

/// [`Error::Read`] for a path.
pub(crate) fn cannot_read(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |source| Error::Read {
        what: path.display().to_string(),
        source,
    }
}

/// [`Error::Unreadable`] for a mailbox of which nothing was replaced.
pub(crate) fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |source| Error::Unreadable {
        path: path.into(),
        source,
    }
}

/// The same, but a stream says in full what went wrong.
pub(crate) fn in_full(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |error| error.downcast::<Error>().unwrap_or_else(unreadable(path))
}

/// [`Error::Write`] for a path.
pub(crate) fn cannot_write(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |source| Error::Write {
        what: path.display().to_string(),
        source,
    }
}

/// Why something was passed over that could not be read.
pub(crate) fn unread(error: &std::io::Error) -> String {
    format!("cannot be read: {error}")
}
