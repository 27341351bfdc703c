//! Forms of messages: how each mailbox format writes them. Several threads prepare messages in parallel, while one
//! thread writes.

use std::borrow::Cow;

use super::prepared::{PreparedMail, PreparedMessage};
use crate::from_field::{SpellingPlace, spelled};
use crate::mailbox::forms::flags::MessageFlags;
use crate::mailbox::{MailState, MboxVariant};
use crate::span::Newline;

/// The form of a message in mailboxes of one format.
pub(super) trait MessageForm: Sync {
    /// Returns the bytes of a message: the content of its file, or the separator and the quoted content in an mbox of
    /// this variant. An empty message becomes a file with an empty line, because an empty file is not a message.
    fn bytes<'m>(
        &self,
        letter: &PreparedMail<'m>,
        _flags: &MessageFlags,
        _variant: MboxVariant,
    ) -> Cow<'m, [u8]> {
        let content = spelled(letter.content, SpellingPlace::Unquoted);
        if content.is_empty() {
            return Cow::Borrowed(Newline::Lf.bytes());
        }
        content
    }

    /// Returns the flags and keywords that the format cannot store, each with the reason. Those that depend on other messages
    /// of the mailbox are reported when the message is written. `content` is the message before a change.
    fn lost(&self, _flags: &MessageFlags, _content: &[u8]) -> Vec<String> {
        Vec::new()
    }

    /// Whether each message follows a separator, the `From ` line of an mbox.
    fn has_separators(&self) -> bool {
        false
    }

    /// Whether the result has folders, so that one of them can be the trash.
    fn has_folders(&self) -> bool {
        false
    }
}

/// How messages are written in a result. It is separate from [`Delivery`](super::Delivery), so that several threads can
/// prepare messages while one of them writes.
#[derive(Clone, Copy)]
pub(crate) struct ResultForm {
    pub(super) format: &'static dyn MessageForm,
    /// Whether the result has a mailbox for each label.
    pub(super) is_by_label: bool,
    pub(super) variant: MboxVariant,
}

impl ResultForm {
    /// Whether the messages are written to an mbox.
    pub(crate) fn has_separators(self) -> bool {
        self.format.has_separators()
    }

    /// Whether labels become keywords, because the result has no mailbox for each label.
    pub(crate) fn has_label_keywords(self) -> bool {
        !self.is_by_label
    }

    /// Returns the flags of a message: those that its source mailbox or its header fields contain, and those that its
    /// Gmail labels mean. Programs permanently remove messages that are marked as deleted, so the trash label is
    /// ignored if the result has a folder for it. The trash label is also ignored if the message has flags from its
    /// mailbox or its header fields, because these flags show whether the message is deleted.
    pub(crate) fn flags(self, letter: &PreparedMail<'_>) -> MessageFlags {
        let flags = self.flags_without_keywords(letter);
        if letter.keywords.is_empty() {
            flags
        } else {
            MessageFlags::new(flags.system, flags.keywords.with(&letter.keywords))
        }
    }

    fn flags_without_keywords(self, letter: &PreparedMail<'_>) -> MessageFlags {
        let noted = letter.flags.clone();
        let fields = || MessageFlags::of_fields(letter.content);
        let states = &letter.envelope.states;
        if states.is_empty() {
            return noted.unwrap_or_else(fields);
        }
        let is_noted = noted.is_some() || MessageFlags::has_fields(letter.content);
        let keeps = |state: &MailState| {
            let says_trash = !self.is_by_label && !self.format.has_folders();
            *state != MailState::Trashed || says_trash && !is_noted
        };
        let kept: Vec<MailState> = states.iter().copied().filter(keeps).collect();
        let of_states = MessageFlags::of_states(&kept);
        noted.unwrap_or_else(fields).with(&of_states)
    }

    /// Returns the message as the mailbox will contain it.
    pub(crate) fn prepared(self, letter: PreparedMail<'_>) -> PreparedMessage<'_> {
        let flags = self.flags(&letter);
        PreparedMessage {
            lost: self.format.lost(&flags, letter.content),
            bytes: self.format.bytes(&letter, &flags, self.variant),
            system: flags.system,
            keywords: flags.keywords,
            date: letter.envelope.date,
            labels: letter.envelope.labels,
        }
    }
}
