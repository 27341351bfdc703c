//! Stores of objects that are named by their content: what detach moves out of mails (docs/store.md).
//!
//! An object lies under the SHA-256 of its octets: equal ones are one, none is overwritten, each reader can check it.

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
pub(crate) use named::{Purpose, open, unopened_base_url};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    pub key: Key,
    /// Octets.
    pub size: u64,
    /// When it was put, or put again.
    pub modified: SystemTime,
}

/// Where objects are. Several threads and processes use it at once.
pub trait Store: Send + Sync + fmt::Debug {
    /// Takes an object, which is durable only when [`flush`](Store::flush) has returned without an error: to make one
    /// object durable takes as long as a hundred, so a store may collect what several threads put.
    ///
    /// Content that is there already is read, verified and touched.
    ///
    /// # Errors
    /// What the store lacks to take it, or another content under its name.
    fn put(&self, octets: &[u8]) -> Result<Key, StoreError>;

    /// Says whose mail refers to the objects that are put from here on. A store that is collected lists that user
    /// durably before the first of them, and else takes none.
    fn puts_from(&self, _user: User) {}

    /// Makes what [`put`](Store::put) has taken durable, read back and hashed. Until then no mail may refer to it.
    ///
    /// # Errors
    /// One of `keys` could not be made durable; nothing may refer to it.
    fn flush(&self, keys: &[Key]) -> Result<(), StoreError>;

    /// The octets of an object, checked against its key; none if the store has no such object.
    ///
    /// # Errors
    /// It cannot be read, is not what its name says, or has more than `at_most` octets.
    fn get(&self, key: &Key, at_most: u64) -> Result<Option<Vec<u8>>, StoreError>;

    /// What stands before [`Key::path`] in the URL of an object, its last slash included.
    fn base_url(&self) -> String;
}

const MOST_USERS: usize = 10_000;

/// Whose mail refers to objects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// The numeric id under which the program ran.
    pub uid: u32,
    /// Where the mail is.
    pub mail: Mail,
}

/// Where the mail of a user is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mail {
    /// A mailbox, a message, or a folder of them: an absolute path, or a URL.
    At(PathBuf),
    /// It came from standard input, and went to standard output.
    Filtered,
    /// Its mailboxes found no room in the list.
    Unlisted,
}

impl User {
    /// The user who runs this program, and has mail there.
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
                "further mailboxes beyond the {MOST_USERS} that are recorded (user id {uid})"
            ),
        }
    }
}

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct StoreError {
    what: String,
    source: Option<io::Error>,
    is_temporary: bool,
}

impl StoreError {
    /// A later run would meet it again.
    pub fn lasting(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            source: None,
            is_temporary: false,
        }
    }

    /// A later run may succeed.
    pub fn temporary(what: impl Into<String>) -> Self {
        Self {
            is_temporary: true,
            ..Self::lasting(what)
        }
    }

    /// What the system said. A full disk, a server that is away and a folder that is not mounted are temporary; what
    /// may not be touched, or is not what it should be, is not.
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

    /// Whether a later run may succeed.
    pub fn is_temporary(&self) -> bool {
        self.is_temporary
    }

    /// One more thread has to be told.
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
