//! Interface between the archive reader, which only knows members, and the code that knows the message formats.

use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::forms::kind::StartKind;

/// Maximum total size of the keyword files in an archive and in the archives inside it, in bytes. Their content is kept
/// in memory.
pub(crate) const MOST_KEYWORDS: u64 = 16 << 20;

/// A message as an mbox entry, and remarks for the report about data that the entry does not contain.
pub(crate) struct MboxEntry {
    pub(crate) bytes: Vec<u8>,
    pub(crate) missing: Vec<String>,
    /// Flags and keywords that the entry cannot contain, each with the reason.
    pub(crate) lost: Vec<String>,
    /// Whether the message began with text before its header, which the entry does not contain.
    pub(crate) had_prologue: bool,
}

/// Converts the single messages of an archive to mbox entries. In all functions, `name` is the path of the member,
/// including the paths of the archives around it.
pub(crate) trait EntryMaker: Send {
    /// Converts the message `content`.
    ///
    /// # Errors
    /// Returns the reason why the message cannot be read.
    fn entry(&mut self, name: &str, content: &[u8], kind: StartKind) -> Result<MboxEntry, String>;

    /// Returns whether keyword files such as `dovecot-keywords` may contain keywords of this message. If so, they are
    /// read before the message, wherever they are in the archive.
    fn uses_keyword_files(&self, name: &str) -> bool;

    fn is_keyword_file(&self, name: &str) -> bool;

    /// Uses a keyword file for all messages that follow. Its keywords are added to `lost` if they are not used: because
    /// the file is too large, or because it comes after its messages in a stream.
    fn add_keyword_file(&mut self, name: &str, content: &[u8], lost: &mut FlagLosses);

    /// Returns a description of the flags if the file contains flags in the format of another program, which are not
    /// used in archives.
    fn unused_flags(&self, name: &str, start: &[u8]) -> Option<&'static str>;
}
