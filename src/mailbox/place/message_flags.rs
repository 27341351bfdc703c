//! Flags of single messages, for commands that do not write a mailbox.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::error::unpoisoned;
use crate::mailbox::forms::flags::{FlagIndex, MessageFlags};
use crate::mailbox::forms::keywords::Keywords;
use crate::mailbox::forms::mh::{self, MhSequences};
use crate::mailbox::forms::proton::ProtonState;
use crate::mailbox::forms::suffixes::SuffixClass;
use crate::mailbox::forms::{emlx, eudora_files, imap_backup};
use crate::mailbox::place::folder::noted_in_name;
use crate::mailbox::place::keyword_files::FolderKeywords;
use crate::mailbox::{MailState, Message, Program, Quoting};
use crate::prologue::Prologue;

/// Reads flags and keywords, including those in files next to the messages. Each of these files is read only once.
#[derive(Default)]
pub(crate) struct StoredFlags {
    folders: Mutex<HashMap<PathBuf, Arc<FlagFiles>>>,
    /// The mbox or Eudora mailbox that is being read, and its index.
    index: Mutex<Option<(PathBuf, Arc<SortedIndex>)>>,
}

/// The flags and keywords of a message, as `compare` needs them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct SeenFlags {
    /// Flags that the mailbox stores. `None` if it cannot store flags.
    pub(crate) stored: Option<MessageFlags>,
    /// Flags in the header that belong to the message in any mailbox: those of Thunderbird, wherever they are in the header,
    /// and all flags in the header of a file that no mailbox contains.
    pub(crate) fields: MessageFlags,
}

/// Where the flags of a message in a mailbox are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FlagPlace {
    /// In files of the mailbox or in names of files. Flags in the header may be older.
    Mailbox,
    /// In header fields that the format of the mailbox reads.
    Header,
    /// In header fields, which the format of the mailbox does not read.
    MessageAlone,
}

/// Files with flags and keywords of one folder.
enum FlagFiles {
    Maildir(FolderKeywords),
    /// Sequences of an MH folder. Empty if the folder has no sequences file.
    Mh(MhSequences),
}

/// Flags of an mbox by the offset of each message's separator, in ascending order. Empty if the mbox has no index.
type SortedIndex = Vec<(u64, MessageFlags)>;

impl StoredFlags {
    /// Returns the flags of a message. A mailbox cannot store flags if the message is not in an mbox, a Maildir, an MH folder
    /// or a mailbox of Apple Mail, and its header has no field for flags.
    pub(crate) fn of(&self, message: &Message<'_>) -> SeenFlags {
        let content = Prologue::behind(message.content);
        let (stored, place) = match self.stored(message, content) {
            Some((flags, place)) => (Some(flags), place),
            None => (None, FlagPlace::MessageAlone),
        };
        let fields = MessageFlags::of_all_fields(content, place != FlagPlace::Mailbox);
        let fields = match place {
            FlagPlace::MessageAlone => fields.with(&MessageFlags::of_fields(content)),
            FlagPlace::Mailbox | FlagPlace::Header => fields,
        };
        SeenFlags { stored, fields }
    }

    fn stored(&self, message: &Message<'_>, content: &[u8]) -> Option<(MessageFlags, FlagPlace)> {
        let of_fields = || MessageFlags::of_fields(content);
        let is_of_eudora = message.beside == Some(Program::Eudora);
        if is_of_eudora || message.quoting != Quoting::None {
            return Some(match self.indexed(message) {
                Some(flags) => (flags, FlagPlace::Mailbox),
                None => (of_fields(), FlagPlace::Header),
            });
        }
        let file = message.source;
        let name = file.file_name()?;
        let folder = file.parent().unwrap_or(Path::new(""));
        if let Some(part) = folder.file_name().filter(|it| *it == "cur" || *it == "new") {
            let of_fields = of_fields();
            let noted = noted_in_name(&Path::new(part).join(name), content);
            let state = self.state(folder.parent().unwrap_or(Path::new("")), |folder| {
                FlagFiles::Maildir(FolderKeywords::of(folder))
            });
            let FlagFiles::Maildir(keywords) = &*state else {
                return Some((of_fields, FlagPlace::Header));
            };
            let (keywords, unknown) = keywords.of_message(file);
            let named: Vec<String> = unknown.iter().map(|it| format!("letter-{it}")).collect();
            let letters = Keywords::of_names(named.iter().map(String::as_str));
            let place = match noted {
                Some(_) => FlagPlace::Mailbox,
                None => FlagPlace::Header,
            };
            let flags = MessageFlags::new(
                noted.unwrap_or(of_fields.system),
                keywords.with(&of_fields.keywords).with(&letters),
            );
            return Some((flags, place));
        }
        if let Some(number) = mh::number(name) {
            let state = self.state(folder, |folder| {
                let sequences = fs::read(folder.join(mh::SEQUENCES)).unwrap_or_default();
                FlagFiles::Mh(MhSequences::of_file(&sequences))
            });
            return match &*state {
                FlagFiles::Mh(sequences) => {
                    Some((sequences.flags(number, of_fields()), FlagPlace::Mailbox))
                }
                FlagFiles::Maildir(_) => Some((of_fields(), FlagPlace::Header)),
            };
        }
        if file.extension().and_then(SuffixClass::of) == Some(SuffixClass::AppleMessage)
            && let Some(flags) = fs::read(file).ok().and_then(|file| emlx::noted(&file).0)
        {
            return Some((flags, FlagPlace::Mailbox));
        }
        if let Ok(Some(mut state)) = ProtonState::beside(file) {
            // A message in Proton's trash folder is not marked as deleted here, because results with a trash folder do
            // not mark it either.
            state.states.retain(|it| *it != MailState::Trashed);
            let flags = of_fields().with(&MessageFlags::of_states(&state.states));
            return Some((flags, FlagPlace::MessageAlone));
        }
        MessageFlags::has_fields(content).then(|| (of_fields(), FlagPlace::MessageAlone))
    }

    fn state(&self, folder: &Path, read: impl FnOnce(&Path) -> FlagFiles) -> Arc<FlagFiles> {
        let mut folders = unpoisoned(self.folders.lock());
        let known = folders.entry(folder.to_owned());
        Arc::clone(known.or_insert_with(|| Arc::new(read(folder))))
    }

    /// Returns the flags of an mbox or Eudora message from the index next to its mailbox.
    fn indexed(&self, message: &Message<'_>) -> Option<MessageFlags> {
        let at = message.at?;
        let index = {
            let mut known = unpoisoned(self.index.lock());
            match &*known {
                Some((path, index)) if path == message.source => Arc::clone(index),
                _ => {
                    let index = Arc::new(sorted_index(message));
                    *known = Some((message.source.to_owned(), Arc::clone(&index)));
                    index
                }
            }
        };
        // The index contains offsets of separators, and a message starts after its separator. So the entry is the last
        // one at or before the offset of the message.
        let end = index.partition_point(|(start, _)| *start <= at);
        let (_, flags) = index.get(end.checked_sub(1)?)?;
        Some(flags.clone())
    }
}

fn sorted_index(message: &Message<'_>) -> SortedIndex {
    let Ok(file) = File::open(message.source) else {
        return Vec::new();
    };
    let found = if message.beside == Some(Program::Eudora) {
        eudora_files::index_beside(message.source, &file)
    } else {
        imap_backup::index_beside(message.source, &file)
    };
    let index: FlagIndex = found.ok().flatten().unwrap_or_default();
    let mut sorted: SortedIndex = index.into_iter().collect();
    sorted.sort_unstable_by_key(|(start, _)| *start);
    sorted
}

/// Returns the offset of a message in its own file. Returns `None` if the file does not contain the message as it is,
/// for example because the file is compressed.
pub(crate) fn offset_in_own_file(message: &Message<'_>) -> Option<u64> {
    /// Maximum length of the data that Apple Mail stores around the message, in bytes.
    const LONGEST_EXTRA: u64 = 1 << 20;

    let length = fs::metadata(message.source).ok()?.len();
    let extra = length.checked_sub(message.content.len() as u64)?;
    if extra > LONGEST_EXTRA {
        return None;
    }
    let file = fs::read(message.source).ok()?;
    let range = match emlx::message(&file) {
        Some(range) => range.ok()?,
        None => 0..file.len(),
    };
    (file.get(range.clone())? == message.content).then_some(range.start as u64)
}
