//! Delivers the messages of a Maildir or an MH folder to a mailbox of another format.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use crate::detail::Detail;
use crate::error::{Error, unpoisoned};
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::compressed::method_of;
use crate::mailbox::failure::{LEFT_OUT, cannot_read, too_large, unread};
use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::forms::carriage;
use crate::mailbox::forms::flags::MessageFlags;
use crate::mailbox::forms::keywords::unexplained;
use crate::mailbox::forms::mh::{self, MhSequences};
use crate::mailbox::forms::refused::refused_message;
use crate::mailbox::forms::state_files::unused_beside;
use crate::mailbox::input::content::{CompressedContent, content_of};
use crate::mailbox::kind::StartKind;
use crate::mailbox::place::delivery::{Delivery, StoredState};
use crate::mailbox::place::folder::{MessageFolder, noted_in_name};
use crate::mailbox::place::keyword_files::FolderKeywords;
use crate::mailbox::place::listing;
use crate::mailbox::{ExternalMessage, Summary};
use crate::platform::OsStrExt as _;

impl<S: Send> MailboxJob<'_, S> {
    /// Delivers the messages of a Maildir or MH folder, without nested Maildirs. The messages of a Maildir are
    /// delivered in the order of the delivery times in their file names.
    pub(crate) fn folder_to(
        &self,
        kind: StartKind,
        delivery: &mut Delivery,
    ) -> Result<Summary, Error> {
        let place = MessageFolder::of(self.path, kind, self.options.format);
        let (messages, others) = place.messages();
        for (path, why) in &others {
            self.observer.damaged(path, why);
        }
        let mut numbered: Vec<(u64, &PathBuf)> = (1..).zip(messages.names()).collect();
        if !place.is_mh {
            numbered.sort_by_cached_key(|(_, name)| arrival(name));
        }
        let mut numbered = numbered.into_iter();
        let mut summary =
            Summary::of(|sum| (sum.mailboxes, sum.damaged) = (1, others.len() as u64));
        summary.files.not_read = summary.damaged;
        let flags = FolderFlags::of(&place);
        let next = || {
            let next = numbered.next();
            let place = (&place, &messages, &flags);
            Ok(next.map(|(number, name)| self.read_file(number, name, place)))
        };
        let done = self.external(summary, next, Result::is_ok, |letter, new, summary| {
            match &letter.about {
                Ok((flags, modified)) => {
                    let content = new.unwrap_or(&letter.content);
                    let stored = StoredState::new(flags.clone(), *modified);
                    self.deliver_message(content, stored, delivery, summary)?;
                    summary.files.read += 1;
                }
                Err(why) => {
                    summary.files.not_read += 1;
                    summary.damaged += 1;
                    self.observer.lost(&letter.source, why);
                }
            }
            Ok(())
        });
        let mut summary = done?;
        unpoisoned(flags.losses.into_inner()).report(self.observer);
        let missed = self.name_missed(&messages)?;
        summary.damaged += missed;
        summary.files.not_read += missed;
        self.observer.done(&summary);
        Ok(summary)
    }

    /// Reports the messages of an MH folder that may have been missed because the folder changed. Returns their number.
    pub(crate) fn name_missed(&self, messages: &listing::ListedMessages) -> Result<u64, Error> {
        let missed = messages.missed().map_err(cannot_read(self.path))?;
        for name in &missed {
            let why = listing::MISSED.into();
            self.observer.damaged(&self.path.join(name), &why);
        }
        Ok(missed.len() as u64)
    }

    /// Reads one message file. If the file is omitted from the result, `about` contains the reason.
    fn read_file(
        &self,
        number: u64,
        listed: &Path,
        (place, messages, flags): (&MessageFolder, &listing::ListedMessages, &FolderFlags),
    ) -> ExternalMessage<Read> {
        let left_out = |why: Detail| (Err(why.then(LEFT_OUT)), Vec::new());
        let (name, file) = match messages.open(listed) {
            Ok(Some((name, file))) => (name, Ok(file)),
            Ok(None) => (listed.to_owned(), Err(listing::GONE.into())),
            Err(error) => (listed.to_owned(), Err(unread(&error).into())),
        };
        let read = |file: File| -> std::io::Result<_> {
            let file = Arc::new(file);
            let metadata = file.metadata()?;
            let method = method_of(&file)?;
            let most = self.options.max_message;
            let content = content_of(&file, metadata.len(), method, self.options, most)?;
            Ok((metadata.modified().ok(), content))
        };
        let (about, content) = match file.map(read) {
            Ok(Ok((modified, CompressedContent::Whole(content)))) => {
                match refused_message(&content) {
                    Some(other) => left_out(other.detail()),
                    None => (
                        Ok((flags.of_message(&name, &content), modified)),
                        carriage::with_line_feeds_alone(content),
                    ),
                }
            }
            Ok(Ok((_, CompressedContent::TooLarge))) => {
                (Err(too_large(None, self.options)), Vec::new())
            }
            Ok(Ok((_, CompressedContent::Damaged(damage)))) => left_out(damage.detail()),
            Ok(Err(error)) => left_out(unread(&error).into()),
            Err(why) => left_out(why),
        };
        ExternalMessage {
            about,
            number,
            source: place.folder.join(name),
            content,
        }
    }
}

/// The flags and keywords of the messages in a folder.
struct FolderFlags {
    keywords: FolderKeywords,
    /// The sequences of an MH folder. `None` if the folder has none.
    sequences: Option<MhSequences>,
    is_mh: bool,
    /// Flags that other programs keep in files of their own, which embody does not read.
    unused: Vec<String>,
    losses: Mutex<FlagLosses>,
}

impl FolderFlags {
    fn of(place: &MessageFolder) -> Self {
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
            losses: Mutex::default(),
        }
    }

    /// Returns the flags of a message. Returns `None` if only its header contains flags.
    fn of_message(&self, name: &Path, content: &[u8]) -> Option<MessageFlags> {
        for what in &self.unused {
            unpoisoned(self.losses.lock()).count(what.clone());
        }
        if self.is_mh {
            let number = name.file_name().and_then(mh::number)?;
            let sequences = self.sequences.as_ref()?;
            return Some(sequences.flags(number, MessageFlags::of_fields(content)));
        }
        let system = noted_in_name(name, content)?;
        let (keywords, unknown) = self.keywords.of_message(name);
        for letter in unknown {
            unpoisoned(self.losses.lock()).count(unexplained(letter));
        }
        Some(MessageFlags::new(system, keywords))
    }
}

/// Flags and modification time of a message that was read, or the reason why it was omitted.
type Read = Result<(Option<MessageFlags>, Option<SystemTime>), Detail>;

/// Returns the delivery time at the start of a Maildir file name, followed by the complete name, as a sort key.
fn arrival(name: &Path) -> (u64, Vec<u8>) {
    let name = name.file_name().unwrap_or_default().as_bytes();
    let end = name.iter().position(|octet| !octet.is_ascii_digit());
    let (digits, _) = name.split_at(end.unwrap_or(name.len()));
    let digits = std::str::from_utf8(digits).ok();
    let number = digits.and_then(|digits| digits.parse().ok());
    (number.unwrap_or(u64::MAX), name.to_owned())
}
