//! An iterator over the messages of mailboxes of all formats, for programs that only read mail.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::detail::Detail;
use crate::edit::Edits;
use crate::engine::Mode;
use crate::error::{Error, unpoisoned};
use crate::mailbox::failure::unreadable;
use crate::mailbox::{Conversion, Message, Observer, Options, Quoting, Stop, Summary, Transform};

const AHEAD: usize = 16;

/// An iterator over the messages of an mbox, a Maildir, an MH folder, a single message, an archive or a directory of
/// these, compressed or not, in order. It never writes, locks or makes network requests. Archives and compressed mail
/// need the feature `archives`, and are errors without it.
///
/// If a mailbox is damaged or unreadable, an item is an error, and the next mailbox follows. If messages of a mailbox
/// are larger than [`Options::max_message`], an error follows its other messages. Files without mail are skipped. Only
/// the options about reading are used. A second thread reads ahead, and ends when the iterator is dropped.
///
/// ```
/// use embody::mailbox::{Messages, Options};
///
/// let mbox = std::env::temp_dir().join(format!("embody-messages-{}.mbox", std::process::id()));
/// std::fs::write(&mbox, "From a@example.org Sat Jan  3 01:05:34 1996\nSubject: one\n\nhello\n")?;
/// for message in Messages::new(&mbox, Options::default()) {
///     let message = message?;
///     assert_eq!((message.number, &*message.content), (1, &b"Subject: one\n\nhello\n"[..]));
/// }
/// # std::fs::remove_file(mbox)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Messages {
    next: Option<Receiver<Result<OwnedMessage, Error>>>,
    stop: Stop,
    reader: Option<JoinHandle<()>>,
}

/// A [`Message`] that owns its content, so that it can be kept after the mailbox was read.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OwnedMessage {
    /// Position in the mailbox, from 1. The messages of a Maildir are in the order of their file names, `cur` first.
    pub number: u64,
    /// The file that contains the message.
    pub source: PathBuf,
    /// Header and body as they are in the file. A `>` that the mailbox added before `From ` is still in it.
    /// [`Quoting::unquote`] removes it.
    pub content: Vec<u8>,
    /// How the mailbox quotes `From ` lines.
    pub quoting: Quoting,
    /// Position of the first byte of the content in the file. `None` if the message is in a file of its own, in a
    /// compressed file or in an archive.
    pub at: Option<u64>,
}

impl Messages {
    /// Returns the messages of `source`. If the source does not exist, the first item is the error.
    pub fn new(source: impl Into<PathBuf>, options: Options) -> Self {
        let (source, stop) = (source.into(), Stop::default());
        let (sender, next) = sync_channel(AHEAD);
        let reading = stop.clone();
        let reader = std::thread::spawn(move || read(&source, options, sender, &reading));
        Self {
            next: Some(next),
            stop,
            reader: Some(reader),
        }
    }
}

impl Iterator for Messages {
    type Item = Result<OwnedMessage, Error>;

    /// # Panics
    /// Panics if the reader thread panicked.
    fn next(&mut self) -> Option<Self::Item> {
        let item = self.next.as_ref()?.recv();
        if item.is_err() {
            self.next = None;
            if let Some(Err(panic)) = self.reader.take().map(JoinHandle::join) {
                std::panic::resume_unwind(panic);
            }
        }
        item.ok()
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.stop.request();
        // The reader may be blocked, because the channel is full. Without a receiver, its next send fails and the
        // thread ends, so that it can be joined.
        self.next = None;
        if let Some(reader) = self.reader.take() {
            // A panic of the reader is ignored, because the caller does not read any more messages.
            reader.join().ok();
        }
    }
}

fn read(
    source: &Path,
    options: Options,
    sender: SyncSender<Result<OwnedMessage, Error>>,
    stop: &Stop,
) {
    let options = Options {
        mode: Mode::DryRun,
        backup: None,
        ..options
    };
    let telling = MessageSender {
        sender,
        stop,
        mailbox: Mutex::default(),
    };
    let done = Conversion::of(source)
        .options(&options)
        .stop(stop)
        .run(&telling, &telling);
    if let Err(error) = done {
        telling.send(Err(error));
    }
}

impl Transform<OwnedMessage> for MessageSender<'_> {
    fn next_touch(&self, _bytes: &[u8]) -> Option<usize> {
        Some(0)
    }

    fn touched(&self, _bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        (0..ends.len()).collect()
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, OwnedMessage), Error> {
        let owned = OwnedMessage {
            number: message.number,
            source: message.source.to_owned(),
            content: message.content.to_owned(),
            quoting: message.quoting,
            at: message.at,
        };
        Ok((Edits::new(), owned))
    }
}

struct MessageSender<'t> {
    sender: SyncSender<Result<OwnedMessage, Error>>,
    stop: &'t Stop,
    mailbox: Mutex<PathBuf>,
}

impl MessageSender<'_> {
    fn send(&self, item: Result<OwnedMessage, Error>) {
        if self.sender.send(item).is_err() {
            self.stop.request();
        }
    }
}

impl Observer<OwnedMessage> for MessageSender<'_> {
    fn message(&self, said: OwnedMessage, _is_refused: bool) {
        self.send(Ok(said));
    }

    fn damaged(&self, path: &Path, why: &Detail) {
        let why = io::Error::other(why.to_string());
        self.send(Err(unreadable(path)(why)));
    }

    fn begin(&self, mailbox: &Path) {
        mailbox.clone_into(&mut *unpoisoned(self.mailbox.lock()));
    }

    fn done(&self, summary: &Summary) {
        if summary.oversized > 0 {
            let mailbox = unpoisoned(self.mailbox.lock());
            let why = format!("{} messages are too large", summary.oversized);
            self.send(Err(unreadable(&mailbox)(io::Error::other(why))));
        }
    }
}
