//! Reads a message of a Maildir or an MH folder. Other programs may move or rename it at any time. The reader of folders, their
//! copy and their change in place read each message here.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use crate::detail::Detail;
use crate::error::unpoisoned;
use crate::mailbox::Options;
use crate::mailbox::among::refused_among_messages;
use crate::mailbox::appended::AppendedData;
use crate::mailbox::compressed::{Method, method_of};
use crate::mailbox::failure::unread;
use crate::mailbox::identity::FileIdentity;
use crate::mailbox::input::content::{CompressedContent, content_of};
use crate::mailbox::place::listing::{GONE, ListedMessages};

/// Maximum size of a compressed message, in bytes, that is decompressed in parallel with other messages. Larger
/// messages are decompressed one at a time to limit memory.
const SMALL: usize = 64 << 20;

/// A message of a Maildir or an MH folder.
pub(crate) struct FolderMessage<'l> {
    /// Current name of the message, relative to the folder.
    pub(crate) name: PathBuf,
    pub(crate) file: Arc<File>,
    /// Identity of the file before it was read.
    pub(crate) before: FileIdentity,
    /// Modification time of the file. `None` if the file system has none.
    pub(crate) modified: Option<SystemTime>,
    pub(crate) method: Option<Method>,
    /// The decompressed message. Otherwise the reason why it cannot be read, or `None` if it is too large.
    pub(crate) content: Result<Vec<u8>, Option<Detail>>,
    /// Sentence about data of another format in the message.
    pub(crate) appended: Option<Detail>,
    /// Lock that is held while a large compressed message is in memory.
    pub(crate) _alone: Option<MutexGuard<'l, ()>>,
}

/// Reads a message of a folder. `large` is locked while a large compressed message is in memory.
///
/// # Errors
/// Returns the reason if there is no such message any more, or if its file cannot be read.
pub(crate) fn read_folder_message<'l>(
    messages: &ListedMessages,
    listed: &Path,
    options: &Options,
    large: &'l Mutex<()>,
) -> Result<FolderMessage<'l>, Detail> {
    FolderMessage::read(open_folder_message(messages, listed)?, options, large)
}

/// Opens a message of a folder. Returns its current name and its file.
///
/// # Errors
/// Returns the reason if there is no such message any more, or if its file cannot be read.
pub(crate) fn open_folder_message(
    messages: &ListedMessages,
    listed: &Path,
) -> Result<(PathBuf, Arc<File>), Detail> {
    match messages.open(listed) {
        Ok(Some((name, file))) => Ok((name, Arc::new(file))),
        Ok(None) => Err(GONE.into()),
        Err(error) => Err(unread(&error).into()),
    }
}

impl<'l> FolderMessage<'l> {
    /// Reads an open message. `large` is locked while a large compressed message is in memory.
    ///
    /// # Errors
    /// Returns the reason why the file cannot be read.
    pub(crate) fn read(
        (name, file): (PathBuf, Arc<File>),
        options: &Options,
        large: &'l Mutex<()>,
    ) -> Result<Self, Detail> {
        let mut alone = None;
        let mut read = || -> io::Result<_> {
            let metadata = file.metadata()?;
            let before = FileIdentity::of(&metadata);
            let method = method_of(&file)?;
            let most = options.read.max_message;
            let at_first = method.map_or(most, |_| most.min(SMALL));
            let read = |most| content_of(&file, before.length, method, &options.read, most);
            let content = match read(at_first)? {
                CompressedContent::TooLarge if most > at_first => {
                    alone = Some(unpoisoned(large.lock()));
                    read(most)?
                }
                content => content,
            };
            Ok((before, metadata.modified().ok(), method, content))
        };
        let (before, modified, method, content) = read().map_err(|error| unread(&error))?;
        let mut appended = None;
        let content = match content {
            CompressedContent::Whole(content) => match refused_among_messages(&content) {
                None => {
                    appended = appended_to_message(&content, method);
                    Ok(content)
                }
                Some(other) => Err(Some(other.detail())),
            },
            CompressedContent::Damaged(damage) => Err(Some(damage.detail())),
            CompressedContent::TooLarge => Err(None),
        };
        Ok(Self {
            name,
            file,
            before,
            modified,
            method,
            content,
            appended,
            _alone: alone,
        })
    }
}

/// Returns the sentence about data of another format in the file of a message.
fn appended_to_message(content: &[u8], method: Option<Method>) -> Option<Detail> {
    let data = AppendedData::in_single(content)?;
    Some(data.detail("the message", method.is_none().then_some(0)))
}
