//! Interface to the work on mail. The command line implements it, because it depends on the options.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tempfile::TempDir;

use super::problem::Problem;
use crate::key::Key;
use crate::stop::Stop;

/// The operations on one message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Verb {
    Filter,
    Embed,
    Recover,
    Detach,
    Restore,
    Inspect,
}

impl Verb {
    pub(crate) const ALL: [Self; 6] = [
        Self::Filter,
        Self::Embed,
        Self::Recover,
        Self::Detach,
        Self::Restore,
        Self::Inspect,
    ];

    /// Returns the last segment of the path, which is also the name of the command.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Embed => "embed",
            Self::Recover => "recover",
            Self::Detach => "detach",
            Self::Restore => "restore",
            Self::Inspect => "inspect",
        }
    }
}

/// The query parameters of a request, decoded, in order.
pub(crate) type Parameters = [(String, String)];

/// The result for one message.
#[derive(Debug)]
pub(crate) enum BackendResult {
    Mail {
        mail: Vec<u8>,
        is_changed: bool,
        /// Number of references that were left unchanged.
        left: u64,
        /// The report as JSON.
        report: Vec<u8>,
    },
    /// A report as JSON. The response contains no mail.
    Report(Vec<u8>),
}

/// A message of a mailbox.
#[derive(Debug)]
pub(crate) struct MailboxMessage<'m> {
    /// Names of the folders that contain the message, from the outermost to the innermost.
    pub(crate) folder: &'m [String],
    pub(crate) flags: Vec<String>,
    pub(crate) labels: &'m [String],
    pub(crate) date: Option<SystemTime>,
    pub(crate) content: &'m [u8],
}

/// Receives the messages of a mailbox in order. An error means that the client is gone.
pub(crate) trait MailboxSink: Send {
    fn message(&mut self, message: &MailboxMessage<'_>) -> io::Result<()>;
}

pub(crate) type SharedSink = Arc<Mutex<dyn MailboxSink>>;

/// The content of an object.
#[derive(Debug)]
pub(crate) enum ObjectContent {
    Memory(Vec<u8>),
    /// A file whose content was verified, and its length.
    File(File, u64),
}

/// Reads the first bytes of a file, at most `length`.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn start_of(mut file: &File, length: u64, start: &mut Vec<u8>) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.take(length).read_to_end(start).map(drop)
}

pub(crate) trait Backend: Send + Sync + 'static {
    /// Processes one message.
    fn process(
        &self,
        verb: Verb,
        parameters: &Parameters,
        message: Vec<u8>,
    ) -> Result<BackendResult, Problem>;

    /// Checks the parameters of a request for a mailbox, before its body is read.
    fn check_mailbox(&self, parameters: &Parameters) -> Result<(), Problem>;

    /// Creates an empty directory for one mailbox, which is removed when it is dropped.
    fn spool(&self) -> io::Result<TempDir>;

    /// Passes all messages of the mailbox `source` on to `sink`, and returns the report as JSON. `source` is a file in a
    /// directory of its own.
    fn mailbox(
        &self,
        source: &Path,
        parameters: &Parameters,
        stop: &Stop,
        sink: SharedSink,
    ) -> Result<Vec<u8>, Problem>;

    /// Returns a verified object of the store and its media type. Returns `None` if the store does not have the object.
    fn object(&self, key: &Key) -> Result<Option<(ObjectContent, &'static str)>, Problem>;

    /// Logs a request, if the user wants one line per request.
    fn requested(&self, line: &dyn Fn() -> String);

    /// Logs a problem of the server itself.
    fn trouble(&self, line: &str);
}
