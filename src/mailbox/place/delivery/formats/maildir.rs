//! Messages in Maildirs.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use super::super::form::MessageForm;
use super::super::prepared::{PreparedMessage, seconds};
use super::super::writer::{MailboxFiles, NumberedMessage, new_folder, put_file};
use super::super::written_format::WrittenFormat;
use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::forms::keywords::{DOVECOT, KeywordLetters};
use crate::mailbox::place::keyword_files::letters_of;
use crate::platform::{self, Owner};

/// Reason why a Maildir does not store a keyword.
pub(crate) const NO_LETTER: &str =
    "because a Maildir can store only 26 keywords, in the characters that IMAP allows";

pub(super) struct MaildirFormat;

impl WrittenFormat for MaildirFormat {
    fn form(&self) -> &'static dyn MessageForm {
        &MaildirFormat
    }

    fn files(&self) -> Box<dyn MailboxFiles> {
        Box::new(NewMaildirs::default())
    }
}

impl MessageForm for MaildirFormat {}

struct NewMaildirs {
    /// Separator before the flags in a file name: a colon, or `;` if the file system does not allow colons.
    before_flags: char,
    /// Keyword letters of each Maildir, by its number. Each Maildir has its own letters, because Dovecot explains them
    /// separately in each folder.
    letters: HashMap<usize, KeywordLetters>,
}

impl Default for NewMaildirs {
    fn default() -> Self {
        Self {
            before_flags: ':',
            letters: HashMap::new(),
        }
    }
}

impl NewMaildirs {
    /// Returns the letters of the keywords of a message in the Maildir with this number.
    fn letters(
        &mut self,
        number: usize,
        message: &PreparedMessage<'_>,
        losses: &mut FlagLosses,
    ) -> String {
        if message.keywords.is_empty() {
            return String::new();
        }
        let known = self.letters.entry(number).or_default();
        let (letters, lost) = letters_of(known, &message.keywords);
        for name in lost {
            losses.count(format!("keyword {name}, {NO_LETTER}"));
        }
        letters
    }
}

impl MailboxFiles for NewMaildirs {
    fn begin(&mut self, directory: &Path) -> io::Result<()> {
        self.before_flags = platform::before_flags(directory)?;
        Ok(())
    }

    fn fill(&self, path: &Path, owner: Option<Owner>) -> io::Result<()> {
        let mut parts = ["cur", "new", "tmp"].into_iter();
        parts.try_for_each(|part| new_folder(&path.join(part), owner))
    }

    fn name(
        &mut self,
        NumberedMessage { message, number }: &NumberedMessage<'_>,
        mailbox: usize,
        losses: &mut FlagLosses,
    ) -> String {
        let keywords = self.letters(mailbox, message, losses);
        let (seconds, octets) = (seconds(message.date), message.bytes.len());
        let name = format!("{seconds:010}.{number:08}.embody,S={octets}");
        let (before, flags) = (self.before_flags, message.system);
        // A message with keyword letters is written to `cur`, because a file name in `new` cannot contain them.
        if flags.is_in_cur() || !keywords.is_empty() {
            format!("cur/{name}{before}2,{}{keywords}", flags.letters())
        } else {
            format!("new/{name}")
        }
    }

    /// Writes `dovecot-keywords` to each Maildir whose messages have keywords. Only Dovecot reads this file and the
    /// keyword letters in file names; other programs ignore both.
    fn finish(&mut self, mailboxes: &[PathBuf], owner: Option<Owner>) -> io::Result<()> {
        for (number, mailbox) in mailboxes.iter().enumerate() {
            let letters = self.letters.get(&number).filter(|it| !it.is_empty());
            if let Some(letters) = letters {
                put_file(&mailbox.join(DOVECOT), letters.file().as_bytes(), owner)?;
            }
        }
        Ok(())
    }
}
