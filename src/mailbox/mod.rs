//! Many messages: mbox files, Maildirs, MH folders, single `.eml` files and folders of them (docs/mailboxes.md).
//!
//! Here is where a message starts and ends, how a changed one is put back, and its file replaced so that no kill or
//! full disk loses mail. A [`Transform`] decides what becomes of a message: MIME and the network are not known here.
//!
//! `find` says what a path holds, `begin` what there is to do, `result` what it becomes; `convert`, `transfer` do it.
//!
//! Not preserved: the last access time, holes in sparse files, and the inode number of a Maildir's changed message.

#[cfg_attr(not(feature = "cli"), allow(dead_code))]
mod archive;
mod begin;
#[cfg(feature = "cli")]
mod collect;
mod compressed;
mod convert;
mod failure;
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
pub(crate) mod find;
mod forms;
mod handed;
mod messages;
mod not_mail;
mod place;
mod program;
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
mod read;
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
mod result;
mod start;
mod state;
mod stop;
mod transfer;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::detail::{Detail, Setting};
use crate::edit::Edits;
use crate::engine::Mode;
use crate::error::Error;
use crate::lengths::Lengths;
use crate::platform::OsStrExt as _;

pub use convert::{convert_in_place, convert_to};
pub use forms::Format;
pub use forms::quoting::Quoting;
pub use handed::{Handed, convert_handed};
pub use messages::{Messages, OwnedMessage};
pub use program::Program;
pub(crate) use read::touch::one_by_one;
pub use state::MailState;
pub use stop::Stop;
#[cfg(feature = "cli")]
pub(crate) use {
    archive::{Judged, Skipped, unpacked, untarred},
    collect::{Merged, looked_at, read_letters},
    compressed::{Damage, Method},
    convert::convert_folder_open,
    failure::in_full,
    forms::flags::Flags,
    forms::names::thunderbird_top,
    forms::outlook::{as_mail, starts_like_msg},
    forms::rewrite::{plain, takes_separators},
    forms::shown,
    place::delivery::{Handler, Letter},
    place::folder::flags_of_message,
    place::temporary::{field_of_stat, folder_of},
    read::Background,
    read::cut::{Piece, pieces},
    read::file::PackedFile,
    read::opened::{convert_open, kind_of_open},
    read::second::{has_second_message, holds_second_message},
    read::sink::Output,
    read::source::Source,
    result::{check_early, names_a_file, result_of},
    transfer::is_quoted_twice,
};

/// What is done to each message. `S` is what is said of one, for the [`Observer`] of the run.
///
/// Several threads call all methods at once. The first two are asked about every byte of every mailbox and must run at
/// memory speed; the third only about messages they pointed at.
pub trait Transform<S = ()>: Sync {
    /// The offset of the first byte in `bytes`, a run of whole messages with their `From ` lines, that
    /// [`transform`](Self::transform) might care about. A hit in the wrong place costs time, a miss leaves a message untouched.
    ///
    /// It is called again behind each message that was hit, with more bytes or fewer, so that the sum of the work stays
    /// linear even if one of several needles is far away each time.
    fn next_touch(&self, bytes: &[u8]) -> Option<usize>;

    /// Which of the messages in `bytes` [`transform`](Self::transform) might care about, numbered from 0 and in order.
    /// Each ends at its place in `ends`, where the next one starts. A transform that can tell by more than one word's
    /// place does so here.
    fn touched(&self, bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        one_by_one(|bytes| self.next_touch(bytes), bytes, ends)
    }

    /// What becomes of one message: edits of its content, none to leave it unchanged, and what is said of it. Bytes
    /// outside of the edits stay, and new text in the body is quoted the way the mailbox quotes.
    ///
    /// # Errors
    /// Ends the whole run; the source stays as it is. Trouble with one message is not an error.
    fn transform(&self, message: &Message<'_>) -> Result<(Edits, S), Error>;

    /// Memory that `said` needs until its message is written, in bytes. Messages behind a message that waits for a server are
    /// transformed as long as there is memory for the results.
    fn weight(&self, said: &S) -> usize {
        size_of_val(said)
    }

    /// Shows each message of a mailbox with files beside it that several messages may mean ([`Program::Eudora`]): in
    /// their order, and before any of them is transformed.
    fn ahead(&self, _message: &Message<'_>) {}

    /// What only MIME tells of a message that goes to a mailbox of another form; `separator` is what stood behind `From `.
    fn envelope(&self, _separator: &[u8], _content: &[u8]) -> Envelope {
        Envelope::default()
    }

    /// What becomes of Content-Length and Lines in the header of a message of an mbox that changes: new lines of its
    /// body may be quoted. In other mailboxes they are what the edits make of them.
    fn lengths(&self) -> Lengths {
        Lengths::default()
    }
}

/// One message as a mailbox holds it.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Its place in the mailbox, from 1. In a Maildir: in the order of file names, `cur` first.
    pub number: u64,
    /// The file that contains the message.
    pub source: &'a Path,
    /// Header and body as they stand in the file, without the `From ` line and the empty line that separates messages.
    pub content: &'a [u8],
    /// How `From ` lines of `content` are quoted ([`Quoting::unquote`] undoes it); the mailbox quotes new text.
    pub quoting: Quoting,
    /// The program whose files beside `source` may be the message's and be read unasked; none in a stream.
    pub beside: Option<Program>,
}

/// Data of a mailbox about a message, without the content.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Envelope {
    /// Address of the sender, without `<` and `>`. Empty if it is unknown.
    pub sender: String,
    /// Time at which the message arrived. `None` if it is unknown.
    pub date: Option<SystemTime>,
    /// Labels as a person reads them, each once, and the standard folders that the mail is in: INBOX, Sent, Drafts, Trash,
    /// Junk, Archive. The one that [`ByLabel::First`] takes is the first. They may be anybody's words.
    pub labels: Vec<String>,
    /// What the labels say about the state of the mail.
    pub states: Vec<MailState>,
}

/// Where a mail with several labels goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum ByLabel {
    /// To the first.
    First,
    /// Once to each.
    All,
}

/// Hears of progress and of messages: from one thread at a time, in the order of the mailbox.
pub trait Observer<S = ()>: Sync {
    /// A mailbox begins: an mbox file, one Maildir, one message. Message numbers start again.
    fn begin(&self, _mailbox: &Path) {}

    /// What the [`Transform`] said of a message that was read to its end. A change is refused, and the message passed on as
    /// it is, if a line would have gone that some mailbox reader takes for a separator, and a message of others with it.
    fn message(&self, _said: S, _is_refused: bool) {}

    /// That many more bytes of the source and messages are done: bytes on the disk, of an archive or a compressed mbox.
    fn advance(&self, _bytes: u64, _messages: u64) {}

    /// That many more bytes are to come than were known before.
    fn expects(&self, _bytes: u64) {}

    /// What was done to the mailbox that began last. An error or stop omits it, unless some was written (in a Maildir).
    fn done(&self, _summary: &Summary) {}

    /// A file in a folder holds no mail, but `_what`.
    fn skipped(&self, _path: &Path, _what: &'static str) {}

    /// A store or a cache of embody among the mail was skipped, or something in it.
    fn passed_over(&self, _path: &Path, _what: &str) {}

    /// `_count` more in an archive, whose names are not told.
    fn skipped_others(&self, _archive: &Path, _what: &'static str, _count: u64) {}

    /// What is compressed in `_path` is damaged, or expands to too much: what was read before went on, and the source
    /// stays as it is. Or it could not be read at all, and the others go on.
    fn damaged(&self, _path: &Path, _why: &Detail) {}

    /// Whether an earlier run with the same task made a file of `_source` that is still there: then `_source` is not read.
    fn is_made(&self, _source: &Path) -> bool {
        false
    }

    /// A file that was made of `_source` gets the name `_target` now.
    fn makes(&self, _source: &Path, _target: &Path, _file: &File) {}

    /// Another program has held the lock of `_mailbox` for long; `_lock` is the file that says so.
    fn waiting(&self, _mailbox: &Path, _lock: &Path) {}
}

/// Hears nothing.
impl<S> Observer<S> for () {}

/// How a conversion is to be done.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the sources are.
    pub format: Format,
    /// What the result is to be: mbox, Maildir, or messages in files of their own; `Auto`: as the source. In place, and
    /// with a range, always as the source.
    pub output_format: Format,
    /// Whether the result is a folder with a mailbox for each label. Not in place, and not with a range.
    pub by_label: Option<ByLabel>,
    /// Threads for the processor's work; at least one.
    pub jobs: usize,
    /// Messages being transformed at the same time; more than `jobs` pays when that waits for a network.
    pub max_in_flight: usize,
    /// In place: keep the old file under its name with this behind it, neither empty nor with a slash in it. Not for
    /// Maildirs and MH folders.
    pub backup: Option<OsString>,
    /// Only [`Mode::Run`] writes. In the other modes everything else is done.
    pub mode: Mode,
    /// Whether the [`Transform`] waits for others. An mbox in place is then locked only for moments, before it is read
    /// and while it is replaced, so that nobody's mail is delayed, but the work may have to be done again.
    pub waits: bool,
    /// How long to wait for another program's lock.
    pub lock_timeout: Duration,
    /// A message of more bytes is passed on without being looked at, so that memory has a bound.
    pub max_message: usize,
    /// Compressed data that expand to more bytes are read that far only, file by file.
    pub max_expanded: u64,
    /// Bytes read at a time.
    pub window: usize,
    /// How new text in an mbox is quoted; `None`: as the mailbox does, by its first window.
    pub quoting: Option<Quoting>,
    /// Only the messages that begin between these offsets; the source is an mbox file then.
    pub range: Option<Range<u64>>,
    /// With a range: how long the source has to be.
    pub length: Option<u64>,
    /// With a range: when it has to be modified.
    pub modified: Option<SystemTime>,
}

impl Default for Options {
    fn default() -> Self {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            format: Format::Auto,
            output_format: Format::Auto,
            by_label: None,
            jobs,
            max_in_flight: jobs,
            backup: None,
            mode: Mode::Run,
            waits: false,
            lock_timeout: Duration::from_secs(60),
            max_message: 512 << 20,
            max_expanded: 64 << 30,
            window: 256 << 10,
            quoting: None,
            range: None,
            length: None,
            modified: None,
        }
    }
}

impl Options {
    /// Threads that transform, and the bytes that may be between reader and writer: they bound memory.
    fn threads(&self) -> (usize, usize) {
        let workers = self.jobs.max(self.max_in_flight).max(1);
        (workers, self.window.saturating_mul(workers + 1))
    }
}

/// What a conversion did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// Mailboxes read: mbox files, Maildirs (each folder counts) and single messages.
    pub mailboxes: u64,
    /// Messages seen.
    pub messages: u64,
    /// Messages that changed, or would.
    pub changed: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes of the same mailboxes afterwards.
    pub bytes_out: u64,
    /// Messages passed on unread for [`Options::max_message`].
    pub oversized: u64,
    /// Files in a folder that hold no mail (indexes and the like); not copied, not touched.
    pub skipped_files: u64,
    /// Messages that came to an mbox while its lock was not held, and were taken over unread.
    pub late: u64,
    /// Messages of a Maildir or MH folder that another program moved or changed meanwhile; left alone.
    pub moved: u64,
    /// Files of the result that an earlier run made ([`Observer::is_made`]): nothing else of them is counted.
    pub made: u64,
    /// Lines that start with `>From ` in an mbox that does not tell whether they were written so, of messages that went to a
    /// mailbox of another form.
    pub ambiguous: u64,
    /// Messages that did not go to the mailboxes of their labels once more, because they stand there already, octet for octet.
    pub repeated: u64,
    /// Messages with more labels, or longer ones, than folders are made for.
    pub overlabelled: u64,
    /// Files and folders that cannot be read in whole; each was told to [`Observer::damaged`].
    pub damaged: u64,
}

impl Summary {
    pub(crate) fn of(count: impl FnOnce(&mut Self)) -> Self {
        let mut summary = Self::default();
        count(&mut summary);
        summary
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Self) {
        self.mailboxes += other.mailboxes;
        self.messages += other.messages;
        self.changed += other.changed;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.oversized += other.oversized;
        self.skipped_files += other.skipped_files;
        self.late += other.late;
        self.moved += other.moved;
        self.made += other.made;
        self.ambiguous += other.ambiguous;
        self.repeated += other.repeated;
        self.overlabelled += other.overlabelled;
        self.damaged += other.damaged;
    }
}

/// Whether this can stand behind a file's name to make the name of its backup.
///
/// # Errors
/// [`Error::Usage`] if it is empty, or holds a slash or a NUL.
pub fn check_backup_suffix(suffix: &OsStr) -> Result<(), Error> {
    let wrong = match suffix.as_bytes() {
        [] => "is empty, so the backup would have the same name as the mailbox",
        bytes if bytes.contains(&b'/') => {
            "contains a slash, but the backup is always written to the directory of the mailbox"
        }
        bytes if bytes.contains(&0) => "contains a NUL byte, which is not allowed in a file name",
        _ => return Ok(()),
    };
    let detail = Detail::from("the suffix of ").naming(Setting::Backup);
    Err(Error::Usage(detail.then(format!(" {wrong}"))))
}
