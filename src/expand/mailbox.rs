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
                let files = self.eudora_files(message, false);
                Some(Sidecars::Eudora(message.number, files))
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

#[cfg(all(test, feature = "file"))]
mod tests {
    use std::fs;

    use crate::engine::Mode;
    use crate::engine::policy::Policy;
    use crate::expand::Expander;
    use crate::mailbox::{Message, Program, Quoting};

    /// Threads can share an expander, so it can process two mailboxes at the same time.
    #[test]
    fn message_gets_the_file_of_its_own_mailbox_after_another_mailbox_was_opened() {
        const CONTENT: &[u8] =
            b"From: a@example.org\nSubject: x\n\nAttachment Converted: \"C:\\ATTACH\\x.txt\"\n";
        let root = tempfile::tempdir().unwrap();
        let mailbox = |name: &str| {
            let attachments = root.path().join(name).join("attach");
            fs::create_dir_all(&attachments).unwrap();
            fs::write(attachments.join("x.txt"), format!("file of {name}\n")).unwrap();
            root.path().join(name).join("In.mbx")
        };
        let (first, second) = (mailbox("first"), mailbox("second"));
        let expander = Expander::builder(Policy::default()).build().unwrap();
        let beside = |source| {
            expander.beside(&Message {
                number: 1,
                source,
                content: CONTENT,
                at: None,
                quoting: Quoting::None,
                beside: Some(Program::Eudora),
            })
        };
        let of_first = beside(&first);
        let of_second = beside(&second);
        for (beside, name) in [(of_first, "first"), (of_second, "second")] {
            let expansion = expander.expand_beside(CONTENT, "1", beside.as_ref(), Mode::Run);
            let outcome = expansion.unwrap();
            let output = outcome.output().into_bytes();
            let expected = format!("file of {name}");
            assert!(
                memchr::memmem::find(&output, expected.as_bytes()).is_some(),
                "{}",
                output.escape_ascii()
            );
        }
    }
}
