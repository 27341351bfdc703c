//! Reads the messages of a folder in an Outlook mailbox (`.pst`), one at a time, in the order of the file.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::detail::{Detail, Setting};
use crate::engine::outlook::pst::{ItemKind, TOO_LARGE};
use crate::engine::outlook::source;
use crate::error::Error;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::failure::too_large;
use crate::mailbox::forms::flags::Flags;
use crate::mailbox::forms::outlook::OutlookMail;
use crate::mailbox::place::delivery::{Delivery, StoredState};
use crate::mailbox::pst_file::{OpenPst, PstFolder};
use crate::mailbox::{ExternalMessage, Summary};

/// The result of reading one item of a `.pst` file.
pub(crate) enum PstLetter {
    Mail {
        flags: Flags,
        received: Option<SystemTime>,
        subject: Option<String>,
        missing: Vec<String>,
    },
    Other(&'static str),
    Lost(Detail),
}

impl<S: Send> MailboxJob<'_, S> {
    /// Delivers the messages of a folder. Without a delivery, the messages are read and transformed, but not written.
    pub(crate) fn pst_to(
        &self,
        folder: &PstFolder,
        mut delivery: Option<&mut Delivery>,
    ) -> Result<Summary, Error> {
        let mailbox = &folder.opened.mailbox;
        let mut items = folder.items().iter();
        let mut number = 0;
        let mut others: BTreeMap<&'static str, u64> = BTreeMap::new();
        let next = || {
            let Some(item) = items.next() else {
                return Ok(None);
            };
            self.stop.check()?;
            if let ItemKind::Other(name) = mailbox.kind(*item) {
                return Ok(Some(self.letter(
                    number,
                    PstLetter::Other(name),
                    Vec::new(),
                )));
            }
            number += 1;
            let (letter, content) = self.read_item(&folder.opened, *item, number);
            Ok(Some(self.letter(number, letter, content)))
        };
        let summary = Summary::of(|sum| sum.mailboxes = 1);
        let is_mail = |letter: &PstLetter| matches!(letter, PstLetter::Mail { .. });
        let done = self.external(summary, next, is_mail, |letter, new, summary| {
            match &letter.about {
                PstLetter::Mail {
                    flags,
                    received,
                    subject,
                    missing,
                } => {
                    let content = new.unwrap_or(&letter.content);
                    match &mut delivery {
                        Some(delivery) => self.deliver_message(
                            content,
                            StoredState::new(Some((*flags).into()), *received),
                            delivery,
                            summary,
                        )?,
                        None => summary.bytes_out += content.len() as u64,
                    }
                    let called = called(letter.number, subject.as_deref());
                    summary.damaged += u64::from(!missing.is_empty());
                    for what in missing {
                        let what = format!("{called}: {what}");
                        self.observer.damaged(self.path, &what.into());
                    }
                }
                PstLetter::Other(name) => *others.entry(name).or_default() += 1,
                PstLetter::Lost(why) => {
                    summary.damaged += 1;
                    self.observer.lost(self.path, why);
                }
            }
            Ok(())
        });
        let summary = done?;
        self.observer.done(&summary);
        let mut summary = summary;
        self.report_others(others, &mut summary);
        Ok(summary)
    }

    /// Reports the items that are not mail. `others` contains the number of items of each kind.
    pub(crate) fn report_others(&self, others: BTreeMap<&'static str, u64>, summary: &mut Summary) {
        for (what, count) in others {
            summary.skipped_files += count;
            self.observer.skipped_others(self.path, what, count);
            let what = match count {
                1 => format!("1 item, because this item is {what}"),
                _ => format!("{count} items, because each of these items is {what}"),
            };
            self.observer.passed_over(self.path, &what);
        }
    }

    fn letter(
        &self,
        number: u64,
        about: PstLetter,
        content: Vec<u8>,
    ) -> ExternalMessage<PstLetter> {
        ExternalMessage {
            about,
            number,
            source: self.path.to_owned(),
            content,
        }
    }

    pub(crate) fn read_item(
        &self,
        opened: &OpenPst,
        item: u32,
        number: u64,
    ) -> (PstLetter, Vec<u8>) {
        let (mailbox, room) = (&opened.mailbox, opened.room(self.options));
        let most = self.options.max_message;
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
                    PstLetter::Lost(too_large(Some(number), self.options)),
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
                PstLetter::Lost(too_large(Some(number), self.options)),
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
