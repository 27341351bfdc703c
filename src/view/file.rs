use std::borrow::Cow;
use std::time::SystemTime;

use bytes::Bytes;

use super::failure::ViewError;
use super::mail::MailView;
#[cfg(feature = "outlook")]
use super::outlook::OutlookFile;
use super::summary::{FileFormat, MailSummary, summary_of};
use super::unpack::unpacked;
use crate::mailbox::memory::{self, MemoryMailbox, NotMail, StartKind};

/// A file with mail, in memory.
#[derive(Debug)]
pub struct MailFile {
    bytes: Bytes,
    format: FileFormat,
    notes: Vec<String>,
    messages: FileMessages,
}

#[derive(Debug)]
enum FileMessages {
    One,
    Mailbox(MemoryMailbox),
    #[cfg(feature = "outlook")]
    Outlook(OutlookFile),
}

impl MailFile {
    /// Opens a file. Its format is recognised by its first bytes and its name, as by the program.
    ///
    /// # Errors
    /// Returns what the file is, if it is not a file with mail that can be shown.
    pub fn open(bytes: impl Into<Bytes>, name: &str) -> Result<Self, ViewError> {
        let packed = bytes.into();
        let length = packed.len();
        let (bytes, name, damage) = unpacked(packed, name)?;
        let is_whole_file = bytes.len() == length;
        let mut notes: Vec<String> = damage.into_iter().collect();
        #[cfg(feature = "outlook")]
        if let Some(format) = OutlookFile::format_of(&bytes) {
            let outlook = OutlookFile::open(bytes, format)?;
            let damage = outlook.damage().iter().cloned();
            let all_notes = notes.into_iter().chain(damage).collect();
            let messages = FileMessages::Outlook(outlook);
            return Ok(Self::of(Bytes::new(), format, messages, all_notes));
        }
        let kind = memory::recognise(&bytes, name).map_err(refused)?;
        match kind {
            StartKind::Eml => {
                let appended = memory::appended_to_file(&bytes, is_whole_file);
                notes.extend(appended.map(|why| why.to_string()));
                Ok(Self::of(bytes, FileFormat::Eml, FileMessages::One, notes))
            }
            StartKind::Mbox | StartKind::Eudora => {
                let mut bytes = Vec::from(bytes);
                let mailbox = MemoryMailbox::of(&mut bytes, kind, name);
                let (format, messages) = match mailbox {
                    Some(mailbox) => {
                        notes.extend(mailbox.appended(&bytes, is_whole_file));
                        (FileFormat::Mbox, FileMessages::Mailbox(mailbox))
                    }
                    None => {
                        let appended = memory::appended_to_file(&bytes, is_whole_file);
                        notes.extend(appended.map(|why| why.to_string()));
                        (FileFormat::Eml, FileMessages::One)
                    }
                };
                Ok(Self::of(bytes.into(), format, messages, notes))
            }
            StartKind::Archive => Err(ViewError::new(
                "the file is an archive; unpack it, and open the mails in it",
            )),
            // A file that can be read was opened above.
            #[cfg(feature = "outlook")]
            _ => Err(ViewError::new(
                "the file is a damaged Outlook file; get another copy of the file",
            )),
            #[cfg(not(feature = "outlook"))]
            _ => Err(ViewError::new(
                "the file is a file of Outlook, which this build does not read",
            )),
        }
    }

    fn of(bytes: Bytes, format: FileFormat, messages: FileMessages, notes: Vec<String>) -> Self {
        Self {
            bytes,
            format,
            notes,
            messages,
        }
    }

    /// Returns the format of the file.
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// Returns sentences about what could not be read in the file.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the number of mails, with the items that cannot be shown.
    pub fn len(&self) -> usize {
        match &self.messages {
            FileMessages::One => 1,
            FileMessages::Mailbox(mailbox) => mailbox.len(),
            #[cfg(feature = "outlook")]
            FileMessages::Outlook(outlook) => outlook.len(),
        }
    }

    /// Returns whether the file is a mailbox without mails.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the fields of a mail for a list, by its position from 0. Returns `None` if there is no such mail.
    pub fn summary(&self, index: usize) -> Option<MailSummary> {
        match &self.messages {
            FileMessages::One => (index == 0).then(|| {
                let mail = memory::single_message(&self.bytes);
                summary_of(mail, self.bytes.len())
            }),
            FileMessages::Mailbox(mailbox) => {
                let size = mailbox.range(index)?.len();
                Some(summary_of(mailbox.start_of(&self.bytes, index)?, size))
            }
            #[cfg(feature = "outlook")]
            FileMessages::Outlook(outlook) => outlook.summary(index),
        }
    }

    /// Opens a mail, by its position from 0. `now` is the current time ([`MailView::new`]).
    ///
    /// # Errors
    /// Returns the reason if the item is not a mail or cannot be read.
    pub fn mail(&self, index: usize, now: SystemTime) -> Result<MailView, ViewError> {
        let absent = || ViewError::new("the file has no such mail");
        let mail = match &self.messages {
            FileMessages::One if index == 0 => Cow::Borrowed(memory::single_message(&self.bytes)),
            FileMessages::One => return Err(absent()),
            FileMessages::Mailbox(mailbox) => {
                mailbox.message(&self.bytes, index).ok_or_else(absent)?
            }
            #[cfg(feature = "outlook")]
            FileMessages::Outlook(outlook) => {
                let (mail, missing) = outlook.mail(index)?;
                return Ok(MailView::with_notes(mail.into(), now, missing));
            }
        };
        Ok(match mail {
            Cow::Borrowed(part) => MailView::new(self.bytes.slice_ref(part), now),
            Cow::Owned(copy) => MailView::new(copy, now),
        })
    }
}

fn refused(other: NotMail) -> ViewError {
    let what = match other {
        NotMail::Text | NotMail::Binary => {
            "the file is not a mail and not a mailbox; choose a file with mail, such as .eml, .msg, .mbox or winmail.dat"
                .to_owned()
        },
        other => format!("the file cannot be opened: {}", &*other.detail()),
    };
    ViewError::new(what)
}
