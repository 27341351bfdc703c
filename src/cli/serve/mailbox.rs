//! Requests with a mailbox: sends its messages, and reports the parts that could not be read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::super::report_file::ReportFields;
use super::super::{say, wording};
use crate::edit::Edits;
use crate::error::{Error, unpoisoned};
use crate::expand::envelope;
use crate::mailbox::{
    AtMailboxes, Batch, Envelope, Format, Handler, MailboxEvent, MailboxFact, Message,
    MessageFlags, Observer, Options, PreparedMail, Source, Stop, Transform, read_letters,
};
use crate::serve::{MailboxMessage, SharedSink};

/// Maximum number of entries in each list of the report. Further entries are only counted.
const MOST: usize = 10_000;

/// Sends the messages of `source` to `sink`, and returns the report.
///
/// # Errors
/// The source is not a mailbox, or cannot be read.
pub(super) fn deliver(
    source: &Path,
    options: &Options,
    stop: &Stop,
    sink: SharedSink,
) -> Result<ReportFields, Error> {
    let reading = MailboxObserver {
        source: source.to_owned(),
        unreadable: Mutex::default(),
        damaged: Mutex::default(),
        skipped: Mutex::default(),
    };
    let place = Arc::new(MailboxPlace {
        sink,
        folder: Mutex::default(),
        delivered: Mutex::new((0, 0)),
    });
    let handler: Arc<dyn Handler> = Arc::new(Deliverer(Arc::clone(&place)));
    let mut enter = |levels: &[String]| levels.clone_into(&mut *unpoisoned(place.folder.lock()));
    let at = AtMailboxes {
        skipped: 0,
        enter: &mut enter,
        leave: &mut |_, _| Ok(()),
    };
    let form = (Format::Maildir, options);
    let source = Source::new(source, &options.read, false, stop);
    let summary = read_letters(&source, form, (&reading, &reading), stop, at, &handler)?;
    let (delivered, bytes) = *unpoisoned(place.delivered.lock());
    let list = |list: &Mutex<MailboxFolders>| std::mem::take(&mut *unpoisoned(list.lock()));
    let (unreadable, damaged) = (list(&reading.unreadable), list(&reading.damaged));
    let skipped = list(&reading.skipped);
    Ok(ReportFields::default()
        .with("kind", &"report")
        .with("announced", &(delivered + unreadable.count))
        .with("delivered", &delivered)
        .with("bytes", &bytes)
        .with("unreadable_count", &unreadable.count)
        .with("unreadable", &unreadable.entries)
        .with("damaged_count", &damaged.count)
        .with("damaged", &damaged.entries)
        .with("skipped_count", &skipped.count)
        .with("skipped", &skipped.entries)
        .with("mailboxes", &summary.mailboxes))
}

struct MailboxPlace {
    sink: SharedSink,
    folder: Mutex<Vec<String>>,
    /// Number and total size of the messages that were sent.
    delivered: Mutex<(u64, u64)>,
}

struct Deliverer(Arc<MailboxPlace>);

impl Handler for Deliverer {
    fn batch(&self, _length: usize) -> Box<dyn Batch> {
        Box::new(Pieces {
            place: Arc::clone(&self.0),
            mails: Vec::new(),
        })
    }
}

struct Pieces {
    place: Arc<MailboxPlace>,
    mails: Vec<MailboxMail>,
}

struct MailboxMail {
    member: Option<Arc<[String]>>,
    flags: Vec<String>,
    labels: Vec<String>,
    date: Option<SystemTime>,
    content: Vec<u8>,
}

impl Batch for Pieces {
    fn add(&mut self, letter: &PreparedMail<'_>, flags: MessageFlags) {
        self.mails.push(MailboxMail {
            member: letter.member.clone(),
            flags: names(&flags),
            labels: letter.envelope.labels.clone(),
            date: letter.envelope.date,
            content: letter.content.to_owned(),
        });
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        let folder = unpoisoned(self.place.folder.lock()).clone();
        let mut sink = unpoisoned(self.place.sink.lock());
        for mail in self.mails {
            let member = mail.member.as_deref().unwrap_or_default();
            let sent = sink.message(&MailboxMessage {
                folder: &[folder.as_slice(), member].concat(),
                flags: mail.flags,
                labels: &mail.labels,
                date: mail.date,
                content: &mail.content,
            });
            // The client closed the connection, so the rest of the mailbox need not be read.
            sent.map_err(|_| Error::Interrupted)?;
            let mut delivered = unpoisoned(self.place.delivered.lock());
            delivered.0 += 1;
            delivered.1 += mail.content.len() as u64;
        }
        Ok(())
    }
}

/// Returns the IMAP names of the flags.
fn names(flags: &MessageFlags) -> Vec<String> {
    let system = flags.system.letters();
    let of_letter = |letter| match letter {
        'D' => Some("\\Draft"),
        'F' => Some("\\Flagged"),
        'P' => Some("$Forwarded"),
        'R' => Some("\\Answered"),
        'S' => Some("\\Seen"),
        'T' => Some("\\Deleted"),
        _ => None,
    };
    let system = system.chars().filter_map(of_letter);
    system
        .chain(flags.keywords.names())
        .map(str::to_owned)
        .collect()
}

#[derive(Default)]
struct MailboxFolders {
    entries: Vec<ReportFields>,
    count: u64,
}

impl MailboxFolders {
    fn add(&mut self, count: u64, entry: impl FnOnce() -> ReportFields) {
        self.count += count;
        if self.entries.len() < MOST {
            self.entries.push(entry());
        }
    }
}

/// Collects damage reports. Messages are left unchanged.
struct MailboxObserver {
    source: PathBuf,
    unreadable: Mutex<MailboxFolders>,
    damaged: Mutex<MailboxFolders>,
    skipped: Mutex<MailboxFolders>,
}

impl MailboxObserver {
    fn entry(&self, path: &Path, why: &str) -> ReportFields {
        ReportFields::default()
            .with("source", &self.named(&path.display().to_string()))
            .with("reason", &self.named(why))
    }

    fn named(&self, text: &str) -> String {
        without_path(text, &self.source)
    }
}

/// Removes the path of the spool file from a text, because it means nothing to the client.
pub(super) fn without_path(text: &str, source: &Path) -> String {
    let path = source.display().to_string();
    let text = text.replace(&format!("{path}/"), "");
    say::harmless_sentence(&text.replace(&path, "the mailbox")).into_owned()
}

impl Transform<()> for MailboxObserver {
    fn next_touch(&self, _bytes: &[u8]) -> Option<usize> {
        None
    }

    fn transform(&self, _message: &Message<'_>) -> Result<(Edits, ()), Error> {
        Ok((Edits::new(), ()))
    }

    fn envelope(&self, separator: &[u8], content: &[u8]) -> Envelope {
        envelope::of(separator, content)
    }
}

impl Observer<()> for MailboxObserver {
    fn event(&self, event: MailboxEvent<()>) {
        let MailboxEvent::Fact(fact) = event else {
            return;
        };
        let (list, path, reason) = match fact {
            MailboxFact::Lost(path, why) => (&self.unreadable, path, wording::detail(&why)),
            MailboxFact::Damaged(path, why) => (&self.damaged, path, wording::detail(&why)),
            MailboxFact::PassedOver(path, what) => (&self.skipped, path, what),
            _ => return,
        };
        unpoisoned(list.lock()).add(1, || self.entry(&path, &reason));
    }
}
