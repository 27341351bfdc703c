use super::envelope;
use super::expander::Expander;
use crate::edit::Edits;
use crate::engine::Mode;
#[cfg(feature = "file")]
use crate::engine::policy::Follow;
use crate::engine::report::Report;
use crate::error::Error;
#[cfg(feature = "file")]
use crate::error::unpoisoned;
#[cfg(feature = "file")]
use crate::fetch::EudoraFiles;
use crate::fetch::Sidecars;
use crate::mailbox::{Envelope, Message, Program, Transform, one_by_one};
#[cfg(feature = "file")]
use std::sync::Arc;

/// The report is passed to the [`Observer`](crate::mailbox::Observer) of the run. The report names each message by its
/// number in the mailbox.
impl Transform<Report> for Expander {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        self.first_touch(bytes)
    }

    fn touched(&self, bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        self.touched_messages(bytes, ends)
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, Report), Error> {
        let beside = self.beside(message);
        let name = message.number.to_string();
        let expansion = self.expand_beside(message.content, &name, beside.as_ref(), Mode::Run)?;
        Ok((expansion.edits, expansion.report))
    }

    fn ahead(&self, message: &Message<'_>) {
        self.see(message);
    }

    fn envelope(&self, separator: &[u8], content: &[u8]) -> Envelope {
        envelope::of(separator, content)
    }
}

impl Expander {
    pub(crate) fn beside(&self, message: &Message<'_>) -> Option<Sidecars> {
        match message.beside? {
            #[cfg(feature = "file")]
            Program::AppleMail => Sidecars::of_apple_mail(message.source),
            #[cfg(feature = "file")]
            Program::Eudora => {
                self.eudora_files(message, false);
                Some(Sidecars::of_eudora(message.source, message.number))
            }
            #[cfg(not(feature = "file"))]
            Program::AppleMail | Program::Eudora => None,
        }
    }

    /// Records the files that a Eudora message names. A file belongs to the first message that names it, so all
    /// messages are seen in order before any of them is filled in.
    pub(crate) fn see(&self, message: &Message<'_>) {
        #[cfg(feature = "file")]
        if message.beside == Some(Program::Eudora) && self.policy().follow.contains(Follow::Eudora)
        {
            let files = self.eudora_files(message, message.number == 1);
            // An error here will occur again when the message is filled in, and is reported then.
            files.of_message(message.number, message.content, self.policy());
        }
        #[cfg(not(feature = "file"))]
        let _ = message;
    }

    #[cfg(feature = "file")]
    fn eudora_files(&self, message: &Message<'_>, is_new: bool) -> Arc<EudoraFiles> {
        let mut mailbox = unpoisoned(self.eudora.lock());
        if let Some((path, files)) = &*mailbox
            && path == message.source
            && !is_new
        {
            return Arc::clone(files);
        }
        let files = Arc::new(EudoraFiles::beside(message.source, self.policy()));
        *mailbox = Some((message.source.to_owned(), Arc::clone(&files)));
        files
    }

    /// Returns the files of the Eudora mailbox that is being read.
    #[cfg(feature = "file")]
    pub(super) fn open_eudora_files(&self) -> Option<Arc<EudoraFiles>> {
        let mailbox = unpoisoned(self.eudora.lock());
        mailbox.as_ref().map(|(_, files)| Arc::clone(files))
    }

    pub(crate) fn touched_messages(&self, bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        if self.marks() {
            // An X-Embody field that another program added is removed from every message. `Prefilter::messages` finds
            // only messages with references, so it would miss a message that has the field but no reference.
            // `first_touch` finds both.
            return one_by_one(|bytes| self.first_touch(bytes), bytes, ends);
        }
        self.prefilter().messages(bytes, ends)
    }
}
