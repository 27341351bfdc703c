//! The flags that a Maildir or an MH folder stores outside of its messages, for a mailbox of another format.

use std::fs;
use std::path::Path;

use crate::mailbox::forms::flags::MessageFlags;
use crate::mailbox::forms::keywords::unexplained;
use crate::mailbox::forms::mh::{self, MhSequences};
use crate::mailbox::forms::state_files::unused_beside;
use crate::mailbox::place::folder::{MessageFolder, noted_in_name};
use crate::mailbox::place::keyword_files::FolderKeywords;

/// The flags and keywords of the messages in a folder.
pub(crate) struct FolderFlags {
    keywords: FolderKeywords,
    /// The sequences of an MH folder. `None` if the folder has none.
    sequences: Option<MhSequences>,
    is_mh: bool,
    /// Flags that other programs keep in files of their own, which embody does not read.
    unused: Vec<String>,
}

impl FolderFlags {
    pub(crate) fn of(place: &MessageFolder) -> Self {
        let read = || fs::read(place.folder.join(mh::SEQUENCES)).ok();
        let sequences = place.is_mh.then(read).flatten();
        Self {
            keywords: if place.is_mh {
                FolderKeywords::default()
            } else {
                FolderKeywords::of(&place.folder)
            },
            sequences: sequences.map(|content| MhSequences::of_file(&content)),
            is_mh: place.is_mh,
            unused: unused_beside(&place.folder, &|path| path.exists()),
        }
    }

    /// Returns the flags of a message in a directory `cur` or `new` that is not read as a Maildir, because it also contains other
    /// files, and what is lost. Returns `None` for a message in any other directory.
    pub(crate) fn of_alone(
        path: &Path,
        content: &[u8],
    ) -> Option<(Option<MessageFlags>, Vec<String>)> {
        let (part, name) = (path.parent()?, path.file_name()?);
        let part_name = part.file_name().filter(|it| *it == "cur" || *it == "new")?;
        let place = MessageFolder::maildir(part.parent()?);
        let name_in_maildir = Path::new(part_name).join(name);
        Some(Self::of(&place).of_message(&name_in_maildir, content))
    }

    /// Returns the flags of a message, and what is lost because it is in no file that embody reads. The flags are `None` if only
    /// the header contains flags.
    pub(crate) fn of_message(
        &self,
        name: &Path,
        content: &[u8],
    ) -> (Option<MessageFlags>, Vec<String>) {
        let mut lost = self.unused.clone();
        let flags = if self.is_mh {
            self.of_sequences(name, content)
        } else {
            noted_in_name(name, content).map(|system| {
                let (keywords, unknown) = self.keywords.of_message(name);
                lost.extend(unknown.into_iter().map(unexplained));
                MessageFlags::new(system, keywords)
            })
        };
        (flags, lost)
    }

    fn of_sequences(&self, name: &Path, content: &[u8]) -> Option<MessageFlags> {
        let number = name.file_name().and_then(mh::number)?;
        let sequences = self.sequences.as_ref()?;
        Some(sequences.flags(number, MessageFlags::of_fields(content)))
    }
}
