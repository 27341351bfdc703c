//! Interface between the reader of archives, which knows only members, and the code that knows the formats of messages.

use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::kind::StartKind;

/// Maximum size of all files with keywords in an archive and the archives in it, in bytes. Their content is kept in memory.
pub(crate) const MOST_KEYWORDS: u64 = 16 << 20;

/// A message as an entry of an mbox, and sentences for the report about data that it does not contain.
pub(crate) struct MboxEntry {
    pub(crate) bytes: Vec<u8>,
    pub(crate) missing: Vec<String>,
    /// Flags and keywords that the entry cannot contain, each with the reason.
    pub(crate) lost: Vec<String>,
}

/// Converts the single messages of an archive to entries of an mbox. Names are the paths of members in all archives around
/// them.
pub(crate) trait EntryMaker: Send {
    /// Converts the message `content`.
    ///
    /// # Errors
    /// Returns the reason why the message cannot be read.
    fn entry(&mut self, name: &str, content: &[u8], kind: StartKind) -> Result<MboxEntry, String>;

    /// Returns whether files such as `dovecot-keywords` may contain keywords of this message. They are then read before it,
    /// wherever they are in the archive.
    fn uses_keyword_files(&self, name: &str) -> bool;

    fn is_keyword_file(&self, name: &str) -> bool;

    /// Uses a file with keywords for all messages that follow. Keywords that are not used are added to `lost`: the file is too
    /// large, or it comes after its messages in a stream.
    fn add_keyword_file(&mut self, name: &str, content: &[u8], lost: &mut FlagLosses);

    /// Returns a description of the flags that a file of another program contains and that are not used in archives.
    fn unused_flags(&self, name: &str, start: &[u8]) -> Option<&'static str>;
}
