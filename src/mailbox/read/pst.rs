//! The items of a folder in an Outlook mailbox (`.pst`): mail, and items that are not mail.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::detail::{Detail, Setting};
use crate::engine::outlook::pst::TOO_LARGE;
use crate::engine::outlook::source;
use crate::mailbox::Summary;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::event::{MailboxEvent, MailboxFact};
use crate::mailbox::failure::too_large;
use crate::mailbox::forms::flags::Flags;
use crate::mailbox::forms::outlook::OutlookMail;
use crate::mailbox::pst_file::OpenPst;

/// The result of reading one item of a `.pst` file.
pub(crate) enum PstLetter {
    Mail {
        flags: Flags,
        received: Option<SystemTime>,
        subject: Option<String>,
        missing: Vec<String>,
    },
    Lost(Detail),
}

impl<S: Send> MailboxJob<'_, S> {
    /// Reports the items that are not mail. `others` contains the number of items of each kind.
    pub(crate) fn report_others(&self, others: BTreeMap<&'static str, u64>, summary: &mut Summary) {
        for (what, count) in others {
            summary.skipped_files += count;
            self.observer
                .event(MailboxFact::SkippedOthers(self.path.to_owned(), what, count).into());
            let what = match count {
                1 => format!("1 item, because this item is {what}"),
                _ => format!("{count} items, because each of these items is {what}"),
            };
            self.observer
                .event(MailboxEvent::passed_over(self.path, &what));
        }
    }

    /// Reads an item of the file. The number is that of the message.
    pub(crate) fn read_item(
        &self,
        opened: &OpenPst,
        item: u32,
        number: u64,
    ) -> (PstLetter, Vec<u8>) {
        let (mailbox, room) = (&opened.mailbox, opened.room(&self.options.read));
        let most = self.options.read.max_message;
        let most_octets = u64::try_from(most).unwrap_or(u64::MAX).min(room);
        let lost = |subject: Option<&str>, why: &str| {
            let called = called(number, subject);
            let text = format!("{called}: not written, because {why}");
            let why = if text.ends_with(TOO_LARGE) {
                Detail::from(format!("{text} ("))
                    .naming(Setting::Expanded)
                    .then(")")
            } else {
                text.into()
            };
            (PstLetter::Lost(why), Vec::new())
        };
        let read = match mailbox.item(item, most_octets) {
            Ok(read) => read,
            Err(unread) if unread.why == TOO_LARGE && most_octets < room => {
                return (
                    PstLetter::Lost(too_large(Some(number), &self.options.read)),
                    Vec::new(),
                );
            }
            Err(unread) => {
                let subject = unread.subject.as_deref().map(source::subject);
                return lost(subject, &unread.why);
            }
        };
        let mail = source::mail(&read.item);
        let subject = mail.subject.clone();
        let mut mail = OutlookMail::of(mail);
        drop(read.item);
        let octets = mail.content.len();
        if octets > most {
            return (
                PstLetter::Lost(too_large(Some(number), &self.options.read)),
                Vec::new(),
            );
        }
        if octets as u64 > room {
            return lost(subject.as_deref(), TOO_LARGE);
        }
        opened.count(octets as u64);
        mail.missing.extend(read.damage);
        let letter = PstLetter::Mail {
            flags: mail.flags,
            received: mail.received,
            subject,
            missing: mail.missing,
        };
        (letter, mail.content)
    }
}

pub(crate) fn called(number: u64, subject: Option<&str>) -> String {
    // Maximum number of characters of a subject in a report. They are enough to find the message in Outlook.
    const LONGEST: usize = 60;
    match subject {
        Some(subject) => {
            let subject: String = subject.chars().take(LONGEST).collect();
            format!("message {number}, {subject:?}")
        }
        None => format!("message {number}"),
    }
}
