//! Prepares messages for a mailbox of another format: removes the quoting of an mbox and the lines before the header, and finds
//! the flags, the date and the labels.

use std::borrow::Cow;

use crate::error::Error;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::forms::keywords::Keywords;
use crate::mailbox::forms::proton::{self, ProtonLabels};
use crate::mailbox::forms::{mmdf, rewrite, separator, uw_imap};
use crate::mailbox::place::delivery::{PreparedMail, ResultForm, StoredState};
use crate::mailbox::reader::{LetterPlace, MboxPlace};
use crate::mailbox::{Envelope, Summary, Transform};
use crate::prologue::{self, Prologue};

/// A message of a mailbox, before it is prepared.
pub(super) struct DeliveredLetter<'l> {
    pub(super) number: u64,
    pub(super) content: &'l [u8],
    /// The changed message, without quoting. `None` if the message did not change.
    pub(super) new: Option<&'l [u8]>,
    pub(super) stored: StoredState,
    pub(super) place: &'l LetterPlace<'l>,
}

/// Function that gets a prepared message, and the folders of the message that a result without folders loses.
type TakePrepared<'t> = &'t mut dyn FnMut(PreparedMail<'_>, &[String]) -> Result<(), Error>;

impl<S: Send> MailboxJob<'_, S> {
    /// Prepares a message for a mailbox of the form `form`, and passes it to `take` if it is mail. Adds what was removed from
    /// the message to `counts`.
    ///
    /// # Errors
    /// Returns the error of `take`.
    pub(super) fn prepare(
        &self,
        letter: DeliveredLetter<'_>,
        form: ResultForm,
        counts: &mut Summary,
        take: TakePrepared<'_>,
    ) -> Result<(), Error> {
        match letter.place {
            LetterPlace::Mbox(place) => self.prepare_of_mbox(&letter, place, counts, take),
            LetterPlace::Folder | LetterPlace::File => {
                self.prepare_alone(letter, form, counts, take)
            }
        }
    }

    fn prepare_of_mbox(
        &self,
        letter: &DeliveredLetter<'_>,
        place: &MboxPlace<'_>,
        counts: &mut Summary,
        take: TakePrepared<'_>,
    ) -> Result<(), Error> {
        let (plain, unsure) = rewrite::plain(letter.content, place.quoting);
        counts.ambiguous += unsure;
        let plain = letter.new.map_or(plain, Cow::Borrowed);
        let separator = mmdf::from_line(place.separator).trim_ascii();
        // A `>From ` line directly after the separator is an older separator: the `From ` line of an earlier mailbox,
        // which a program quoted. It and other lines before the header are not part of the message, so they are
        // removed.
        let rest = match Prologue::of_separators(&plain, separator::is_asctime) {
            Some(_) => Some(Cow::Borrowed(&b""[..])),
            None => prologue::without_prologue(&plain),
        };
        counts.prologues += u64::from(rest.is_some());
        let plain = rest.as_deref().unwrap_or(&plain);
        if letter.number == 1 && uw_imap::is_internal(plain) {
            counts.internal += 1;
            return Ok(());
        }
        let mail = PreparedMail {
            content: plain,
            flags: letter.stored.flags.clone(),
            keywords: Keywords::default(),
            envelope: self.envelope(separator, plain),
            // A variant of the same mbox keeps the separators that all programs read.
            separator: Some(separator).filter(|line| {
                let is_same = self.options.mbox_variant.is_some() || self.options.skip_deleted;
                is_same && separator::is_asctime(line)
            }),
            member: place.member.clone(),
        };
        take(mail, &[])
    }

    /// Prepares a message that is not in an mbox.
    fn prepare_alone(
        &self,
        letter: DeliveredLetter<'_>,
        form: ResultForm,
        counts: &mut Summary,
        take: TakePrepared<'_>,
    ) -> Result<(), Error> {
        let content = letter.new.unwrap_or(letter.content);
        let StoredState {
            flags,
            date: modified,
            proton,
        } = letter.stored;
        // Some programs store the `From ` line of an mbox in the file of a message. If the result is an mbox, this line
        // becomes the separator. In other formats, it is removed with the other lines before the header, because most
        // programs do not find a header after them.
        let prologue = Prologue::of(content)
            .or_else(|| Prologue::of_separators(content, separator::is_asctime))
            .unwrap_or_default();
        let separator = prologue
            .separator
            .and_then(|(start, end)| content.get(start..end));
        let line = separator.unwrap_or_default();
        let is_one = prologue.is_separators && prologue.separators == 1;
        let is_kept = is_one && form.has_separators();
        let content = &content[prologue.length..];
        let rest = prologue::without_banner_in_header(content);
        counts.prologues += u64::from(prologue.length > 0 && !is_kept || rest.is_some());
        let content = rest.as_deref().unwrap_or(content);

        let envelope = self.envelope(mmdf::from_line(line), content);
        let date = if separator::is_plausible(line) {
            envelope.date.or(modified)
        } else {
            modified.or(envelope.date)
        };
        let mut envelope = Envelope { date, ..envelope };
        let (mut keywords, mut lost) = (Keywords::default(), Vec::new());
        if let Some(state) = proton {
            let none = ProtonLabels::default();
            let (folders, labels) = self.proton.unwrap_or(&none).sorted(&state);
            let is_lost = |folder: &&String| proton::is_named_if_lost(folder, &labels);
            lost.extend(folders.iter().filter(is_lost).cloned());
            if form.has_label_keywords() {
                keywords = proton::keywords(&labels);
            }
            envelope.labels = folders;
            envelope.states.extend(state.states);
        }
        let mail = PreparedMail {
            content,
            flags,
            keywords,
            envelope,
            separator: Some(line).filter(|line| separator::is_asctime(line)),
            member: None,
        };
        take(mail, &lost)
    }

    fn envelope(&self, separator: &[u8], content: &[u8]) -> Envelope {
        let of = |transform: &dyn Transform<S>| transform.envelope(separator, content);
        self.transform.map_or_else(Envelope::default, of)
    }
}
