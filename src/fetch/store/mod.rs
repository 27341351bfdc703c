//! Stores for the attachments that `detach` moves out of mails (docs/store.md).
//!
//! An object is a file whose name is the SHA-256 of its content. Equal attachments are therefore stored once, an object is
//! never overwritten, and each reader can verify it.

#[cfg(unix)]
mod batch;
#[cfg(unix)]
mod folder;
pub(crate) mod layers;
#[cfg(unix)]
mod listing;
mod named;
#[cfg(unix)]
mod places;
#[cfg(feature = "s3")]
mod s3;
#[cfg(unix)]
mod users;
pub(crate) mod uses;
#[cfg(feature = "http")]
mod web;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

pub use crate::key::Key;
#[cfg(unix)]
pub use folder::Folder;
#[cfg(all(test, feature = "s3"))]
pub(crate) use named::on_server;
#[cfg(not(unix))]
pub(crate) use named::open_folder;
pub(crate) use named::{StorePurpose, open, unopened_base_url};

#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreObject {
    pub key: Key,
    /// Size in bytes.
    pub size: u64,
    /// Time at which the object was last put into the store, even if it existed already.
    pub modified: SystemTime,
}

/// A place for objects. Several threads and processes can use it at the same time.
pub trait Store: Send + Sync + fmt::Debug {
    /// Adds an object. It is durable only after [`flush`](Store::flush) has returned without an error: making one object
    /// durable takes as long as making a hundred durable, so a store may collect the objects of several threads.
    ///
    /// If the object exists, it is read, verified, and its modification time is updated.
    ///
    /// # Errors
    /// The store cannot accept the object, or contains different content under its name.
    fn put(&self, octets: &[u8]) -> Result<Key, StoreError>;

    /// Sets the user whose mail will refer to the objects that are added after this call. A store with garbage collection adds
    /// the user to its list before the first of these objects, and returns an error from `put` if this fails.
    fn puts_from(&self, _user: User) {}

    /// Makes the objects that [`put`](Store::put) has accepted durable, reads them back and compares their hashes. No mail may
    /// refer to an object before this.
    ///
    /// # Errors
    /// An object in `keys` could not be made durable. No mail may refer to any of them.
    fn flush(&self, keys: &[Key]) -> Result<(), StoreError>;

    /// Returns the content of an object after comparing its hash with the key. Returns `None` if the store does not have the
    /// object.
    ///
    /// # Errors
    /// The object cannot be read, does not match its key, or has more than `at_most` bytes.
    fn get(&self, key: &Key, at_most: u64) -> Result<Option<Vec<u8>>, StoreError>;

    /// Opens the file of an object, whose content is not compared with the key. Returns `None` if the store does not have the
    /// object, and if its objects are not files of this machine.
    ///
    /// # Errors
    /// The file cannot be opened.
    fn file(&self, _key: &Key) -> Result<Option<std::fs::File>, StoreError> {
        Ok(None)
    }

    /// Returns the part of an object's URL before [`Key::path`], including the last slash.
    fn base_url(&self) -> String;
}

const MOST_USERS: usize = 10_000;

/// A user whose mail refers to objects of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// User id of the process.
    pub uid: u32,
    /// Location of the mail.
    pub mail: Mail,
}

/// The location of a user's mail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mail {
    /// A mailbox, a message, or a directory of them: an absolute path, or a URL.
    At(PathBuf),
    /// Mail that was read from standard input and written to standard output, so its location is unknown.
    Filtered,
    /// A mailbox that is not in the list of users, because the list was full.
    Unlisted,
}

impl User {
    /// Returns the user of this process, with mail at the given location.
    pub fn this(mail: Mail) -> Self {
        let uid = crate::platform::user();
        Self { uid, mail }
    }
}

impl fmt::Display for User {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uid = self.uid;
        match &self.mail {
            Mail::At(path) => write!(formatter, "{} (user id {uid})", path.display()),
            Mail::Filtered => write!(formatter, "standard input (user id {uid})"),
            Mail::Unlisted => write!(
                formatter,
                "mailboxes that the store does not list, because it lists at most {MOST_USERS} (user id {uid})"
            ),
        }
    }
}

/// An error of a store.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct StoreError {
    what: String,
    source: Option<io::Error>,
    is_temporary: bool,
}

impl StoreError {
    /// Creates an error that would occur again in a later run.
    pub fn lasting(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            source: None,
            is_temporary: false,
        }
    }

    /// Creates an error that may not occur in a later run.
    pub fn temporary(what: impl Into<String>) -> Self {
        Self {
            is_temporary: true,
            ..Self::lasting(what)
        }
    }

    /// Creates an error from an I/O error. A full disk, an unreachable server and an unmounted directory are temporary. Missing
    /// permissions and a file of the wrong type are not.
    pub fn io(what: impl Into<String>, source: io::Error) -> Self {
        let is_temporary = !matches!(
            source.kind(),
            io::ErrorKind::PermissionDenied
                | io::ErrorKind::InvalidInput
                | io::ErrorKind::InvalidFilename
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::IsADirectory
                | io::ErrorKind::Unsupported
        );
        Self {
            what: what.into(),
            source: Some(source),
            is_temporary,
        }
    }

    pub(crate) fn not_its_name(object: impl fmt::Display) -> Self {
        Self::lasting(format!(
            "{object}: the content of the object does not match the SHA-256 in its name; the object was not changed"
        ))
    }

    /// Returns whether a later run may succeed.
    pub fn is_temporary(&self) -> bool {
        self.is_temporary
    }

    /// Copies the error. Another thread returns the copy, because its object failed in the same batch.
    pub(crate) fn again(&self) -> Self {
        Self {
            what: self.what.clone(),
            source: self.source.as_ref().map(again),
            is_temporary: self.is_temporary,
        }
    }
}

#[cfg(unix)]
fn the_store(path: &std::path::Path) -> String {
    format!("the store {}", path.display())
}

fn again(why: &io::Error) -> io::Error {
    io::Error::new(why.kind(), why.to_string())
}
