//! Files of Outlook: messages, `winmail.dat` and mailboxes.

use bytes::Bytes;

use super::failure::ViewError;
use super::summary::{FileFormat, MailSummary, summary_of};
use crate::outlook::{ConvertedMail, Msg, OutlookError, Pst, PstItem, Tnef};

/// A file of Outlook in memory.
pub(super) enum OutlookFile {
    /// One message, which was converted when the file was opened.
    One(Box<ConvertedMail>),
    Mailbox {
        pst: Box<Pst>,
        /// Position of each folder's first item in the list of all items.
        starts: Vec<usize>,
        length: usize,
    },
}

impl std::fmt::Debug for OutlookFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "OutlookFile({})", self.len())
    }
}

impl OutlookFile {
    /// Returns the format of a file of Outlook, by its content. Returns `None` for other files.
    pub(super) fn format_of(bytes: &[u8]) -> Option<FileFormat> {
        if Pst::is_pst(bytes) {
            Some(FileFormat::Pst)
        } else if Tnef::is_tnef(bytes) {
            Some(FileFormat::Tnef)
        } else {
            Msg::is_msg(bytes).then_some(FileFormat::Msg)
        }
    }

    pub(super) fn open(bytes: Bytes, format: FileFormat) -> Result<Self, ViewError> {
        let one = |mail| Self::One(Box::new(mail));
        let opened = match format {
            FileFormat::Pst => Self::mailbox(bytes.into()),
            FileFormat::Tnef => Tnef::parse(&bytes).map(|tnef| one(tnef.mail())),
            _ => Msg::parse(&bytes).map(|msg| one(msg.mail())),
        };
        opened.map_err(|why| ViewError::new(why.to_string()))
    }

    fn mailbox(bytes: Vec<u8>) -> Result<Self, OutlookError> {
        let pst = Pst::from_bytes(bytes)?;
        let mut length = 0;
        let starts = pst.folders().map(|folder| {
            let start = length;
            length += folder.len();
            start
        });
        let starts = starts.collect();
        Ok(Self::Mailbox {
            pst: Box::new(pst),
            starts,
            length,
        })
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Mailbox { length, .. } => *length,
        }
    }

    /// Returns sentences about what could not be read in a mailbox.
    pub(super) fn damage(&self) -> &[String] {
        match self {
            Self::One(_) => &[],
            Self::Mailbox { pst, .. } => pst.damage(),
        }
    }

    /// Reads an item of a mailbox, and the path of its folder.
    fn item(&self, index: usize) -> Option<(PstItem, Vec<String>)> {
        let Self::Mailbox { pst, starts, .. } = self else {
            return None;
        };
        let number = starts
            .partition_point(|start| *start <= index)
            .checked_sub(1)?;
        let folder = pst.folders().nth(number)?;
        let item = folder.item(index - starts.get(number)?)?;
        Some((item, folder.path().to_vec()))
    }

    pub(super) fn summary(&self, index: usize) -> Option<MailSummary> {
        if let Self::One(mail) = self {
            return (index == 0).then(|| of_mail(mail));
        }
        let (item, folder) = self.item(index)?;
        let summary = match item {
            PstItem::Mail(mail) => of_mail(&mail),
            PstItem::NotMail(what) => MailSummary {
                problem: Some(format!("the item is {what}, not a mail")),
                ..MailSummary::default()
            },
            PstItem::Unreadable { subject, why, .. } => MailSummary {
                subject: subject.unwrap_or_default(),
                problem: Some(why),
                ..MailSummary::default()
            },
        };
        Some(MailSummary { folder, ..summary })
    }

    /// Returns a mail, and sentences about what it lacks and about damage of the file.
    pub(super) fn mail(&self, index: usize) -> Result<(Vec<u8>, Vec<String>), ViewError> {
        if let (Self::One(mail), 0) = (self, index) {
            return Ok((mail.content.clone(), notes_of(mail)));
        }
        match self.item(index) {
            None => Err(ViewError::new("the file has no such mail")),
            Some((PstItem::Mail(mail), _)) => {
                let notes = notes_of(&mail);
                Ok((mail.content, notes))
            }
            Some((PstItem::NotMail(what), _)) => {
                Err(ViewError::new(format!("the item is {what}, not a mail")))
            }
            Some((PstItem::Unreadable { why, .. }, _)) => Err(ViewError::new(why)),
        }
    }
}

fn notes_of(mail: &ConvertedMail) -> Vec<String> {
    mail.missing.iter().chain(&mail.damage).cloned().collect()
}

fn of_mail(mail: &ConvertedMail) -> MailSummary {
    summary_of(&mail.content, mail.content.len())
}
