//! Constructors that turn I/O errors of reading and writing into an [`Error`] with the path.

use std::io;
use std::path::Path;

use crate::detail::Detail;
use crate::error::Error;
use crate::mailbox::ReadOptions;

pub(crate) fn cannot_read(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    Error::cannot_read(path.display())
}

pub(crate) fn unreadable(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    move |source| Error::Unreadable {
        path: path.into(),
        source,
    }
}

/// Extracts the [`Error`] that a stream has wrapped in an I/O error. Any other I/O error becomes [`Error::Unreadable`]
/// with `path`.
pub(crate) fn in_full(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    move |error| error.downcast::<Error>().unwrap_or_else(unreadable(path))
}

pub(crate) fn cannot_write(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    Error::cannot_write(path.display())
}

pub(crate) fn changed(path: &Path) -> Error {
    Error::Changed { path: path.into() }
}

pub(crate) fn unread(error: &io::Error) -> String {
    format!("cannot be read: {error}")
}

pub(crate) const LEFT_OUT: &str = "; the message was not written";

pub(crate) fn too_large(number: Option<u64>, options: &ReadOptions) -> Detail {
    let which = number.map_or_else(String::new, |number| format!("message {number}: "));
    let most = options.max_message;
    format!("{which}the message has more than {most} bytes, so it cannot be converted to another format{LEFT_OUT}").into()
}
