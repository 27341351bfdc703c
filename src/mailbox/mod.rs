//! Reading and writing mailboxes: mbox files, Maildirs, MH folders, single `.eml` files and directories of them
//! (docs/mailboxes.md).
//!
//! This module finds where each message starts and ends, puts changed messages back, and replaces the mailbox file so
//! that neither a kill nor a full disk loses mail. A [`Transform`] decides how a message changes. This module does not
//! parse MIME and makes no network requests.
//!
//! `source` is what a run reads, and `find` recognises what it contains. `begin` starts a run, and `result` determines the
//! output format. `conversion` is the entry: `message_in_place`, `in_place`, `maildir` and `own_format` convert within one format or in place, and
//! `transfer` converts to another format. `reader` reads messages without a change, and `deliver` writes the messages of a reader
//! to a mailbox of another format.
//!
//! Compressed mail and archives need the feature `archives`.
//!
//! Three properties of files are not preserved: the last access time, holes in sparse files, and the inode number of a
//! changed message in a Maildir.

mod among;
mod appended;
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
mod archive;
mod begin;
mod candidate;
#[cfg(feature = "cli")]
mod collect;
mod compressed;
mod conversion;
mod copy;
mod damaged;
mod deliver;
mod each;
mod encoding;
mod event;
mod external;
mod failure;
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
mod file;
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
pub(crate) mod find;
mod finds;
mod flag_losses;
mod folder_flags;
mod forms;
mod identity;
mod in_place;
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
mod input;
mod letter_work;
mod maildir;
#[cfg(feature = "view")]
pub(crate) mod memory;
mod message_in_place;
mod not_mail;
mod obstacle;
mod own_format;
mod partial;
mod place;
mod prepare;
mod program;
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
mod pst_file;
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
mod read;
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
mod reader;
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
mod result;
mod result_folders;
mod result_form;
mod seen;
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
mod source;
mod start;
mod state;
mod temporary;
mod transfer;
mod verdict;

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::detail::{Detail, Setting};
use crate::edit::Edits;
use crate::engine::lengths::Lengths;
use crate::error::Error;
use crate::platform::OsStrExt as _;
use crate::pool;

pub use crate::stop::Stop;
pub use conversion::Conversion;
pub use event::{MailboxEvent, MailboxFact, Observer};
pub use external::{ExternalMessage, ExternalMessages};
#[cfg(all(unix, feature = "imap"))]
pub(crate) use forms::modified_utf7;
pub use forms::quoting::Quoting;
#[cfg(feature = "cli")]
pub(crate) use forms::suffixes::SuffixClass;
pub use forms::{Format, MboxVariant};
#[cfg(all(unix, feature = "serve"))]
pub(crate) use input::other::{OtherInput, no_message};
#[cfg(feature = "cli")]
pub(crate) use place::journal::{JournalFiles, ResultJournal, place_beside, place_inside};
pub use program::Program;
pub(crate) use read::touch::one_by_one;
#[cfg(feature = "cli")]
pub(crate) use reader::{FactErrors, LetterWork, read_source};
pub use reader::{Messages, OwnedMessage};
pub use state::MailState;
#[cfg(all(unix, any(feature = "imap", feature = "serve")))]
pub(crate) use temporary::temporary_folder_in;
pub use verdict::{FileCounts, IgnorePatterns};
#[cfg(feature = "cli")]
pub(crate) use {
    appended::appended_to_file,
    archive::{MemberVerdict, SkippedMember, spool_in, untarred},
    collect::{AtMailboxes, MergeResult, form_and_folders, read_letters},
    compressed::{CompressionDamage, Method, not_encoded},
    failure::in_full,
    forms::carriage::with_line_feeds_alone,
    forms::flags::{Flags, MessageFlags},
    forms::keywords::Keywords,
    forms::layout::{named as kind_of_name, names_a_file, plain as plain_name},
    forms::mmdf::starts as starts_mmdf,
    forms::names as folder_names,
    forms::outlook::{as_mail, starts_like_msg},
    forms::recorded::refused_session,
    forms::rewrite::plain,
    forms::shown,
    forms::uw_imap::is_internal,
    input::Background,
    input::quoted_twice::is_quoted_twice,
    input::second::{holds_mailbox, is_mailbox},
    input::source::InputSource,
    place::delivery::{Batch, Handler, NamedResult, PreparedMail},
    place::lock::LockWaits,
    place::message_flags::{SeenFlags, StoredFlags, offset_in_own_file},
    place::tree::subfolders_of,
    read::cut::{MboxPiece, pieces},
    read::entry::ALL_MAIL,
    read::opened::kind_of_open,
    read::whole_file::WholeFile,
    result::{check_early, names_an_mbox, result_of},
    source::Source,
    temporary::{boot, field_of_stat, folder_of, sweep as sweep_temporary},
};

/// The change that a run makes to each message. `S` is the type of the result for one message, which the run passes to
/// its [`Observer`].
///
/// Several threads call all methods at the same time. `next_touch` and `touched` scan every byte of every mailbox, so
/// they must run at memory speed. `transform` is called only for the messages that they return.
pub trait Transform<S = ()>: Sync {
    /// Returns the offset in `bytes` of the first byte of a message that [`transform`](Self::transform) may change.
    /// `bytes` contains complete messages with their `From ` lines. An offset in a message that needs no change only
    /// costs time. A message that is missed stays unchanged.
    ///
    /// After each hit, this method is called again with the bytes after that message. The number of bytes may differ
    /// from call to call, so that the total work stays linear even if one of several search words is rare.
    fn next_touch(&self, bytes: &[u8]) -> Option<usize>;

    /// Returns the indexes of the messages in `bytes` that [`transform`](Self::transform) may change, in ascending
    /// order. Message 0 starts at byte 0, and `ends` contains the end of each message, where the next one starts. A
    /// transform overrides this method if one place does not show whether a message may change, for example because the
    /// message must contain two search words.
    fn touched(&self, bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        one_by_one(|bytes| self.next_touch(bytes), bytes, ends)
    }

    /// Returns the edits of one message and the result for the observer. No edits leave the message unchanged. Bytes
    /// outside of the edits are kept. New text in the body of an mbox message is quoted as the mailbox quotes `From `
    /// lines.
    ///
    /// # Errors
    /// An error ends the run, and the source is left unchanged. A problem with a single message must not be returned as
    /// an error.
    fn transform(&self, message: &Message<'_>) -> Result<(Edits, S), Error>;

    /// Returns the memory that the result `said` needs until its message is written, in bytes. While one message waits
    /// for a server, later messages are transformed, until their results reach the memory limit.
    fn weight(&self, said: &S) -> usize {
        size_of_val(said)
    }

    /// Receives each message of a mailbox in order, before any of them is transformed. This is only done for mailboxes
    /// of [`Program::Eudora`], in which several messages may refer to the same attachment file.
    fn ahead(&self, _message: &Message<'_>) {}

    /// Returns the sender, date and labels of a message that is written to a mailbox of another format. `separator` is
    /// the text after `From ` in the separator line. Reading these values needs a MIME parser, which this module does
    /// not have.
    fn envelope(&self, _separator: &[u8], _content: &[u8]) -> Envelope {
        Envelope::default()
    }

    /// Returns how Content-Length and Lines are updated in a changed message of an mbox. The mailbox code calculates
    /// them, because it may quote new lines of the body. In other mailboxes, only the edits change these fields.
    fn lengths(&self) -> Lengths {
        Lengths::default()
    }
}

/// One message of a mailbox, borrowed from the buffer of the reader.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Position in the mailbox, from 1. The messages of a Maildir are in the order of their file names, `cur` first.
    pub number: u64,
    /// The file that contains the message.
    pub source: &'a Path,
    /// Header and body as they are in the file, without the `From ` line and the empty line between messages.
    pub content: &'a [u8],
    /// Offset of `content` in the file `source`, in bytes. `None` if the file does not contain these bytes, for example
    /// because it is compressed, or if the offset is not known.
    pub at: Option<u64>,
    /// How the mailbox quotes `From ` lines in `content`. [`Quoting::unquote`] removes the quoting. New text is quoted
    /// by the mailbox code, not by the transform.
    pub quoting: Quoting,
    /// Program that wrote the mailbox, if it keeps attachments in files next to `source`. These files may be read even
    /// if network requests are not allowed. `None` for a stream, which has no files next to it.
    pub beside: Option<Program>,
}

/// Data of a message that a mailbox of another format stores outside the content: sender, date, labels and flags.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Envelope {
    /// Address of the sender, without `<` and `>`. Empty if it is unknown.
    pub sender: String,
    /// Time at which the message arrived. `None` if it is unknown.
    pub date: Option<SystemTime>,
    /// Labels of the message, decoded, without duplicates. They include the standard folders that contain the message:
    /// INBOX, Sent, Drafts, Trash, Junk, Archive. [`ByLabel::First`] uses the first label. The labels are untrusted
    /// input.
    pub labels: Vec<String>,
    /// Flags that labels of the message express, such as "read" or "draft".
    pub states: Vec<MailState>,
}

/// The mailboxes to which a mail with several labels is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum ByLabel {
    /// The mailbox of the first label
    First,
    /// The mailbox of each label
    All,
}

/// The settings for reading mailboxes.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Format of the sources. `Auto` recognises the format of each source.
    pub format: Format,
    /// How new text in an mbox is quoted. `None` detects the quoting in the first MiB of the mailbox.
    pub quoting: Option<Quoting>,
    /// Files of a source that are ignored. They are neither opened nor copied.
    pub ignore: IgnorePatterns,
    /// Accepts a source that is an archive without mail. Such an archive is normally an error, because its user named the
    /// wrong file; but if several sources are the volumes of one export, some volumes contain only other files.
    /// [`Summary::without_mail`] counts such archives.
    pub may_lack_mail: bool,
    /// Number of threads for computation; at least one.
    pub jobs: usize,
    /// Maximum number of messages that are processed at the same time. A value above `jobs` is useful if the
    /// [`Transform`] waits for the network.
    pub max_in_flight: usize,
    /// Maximum size of a message, in bytes. A conversion copies larger messages unchanged, which limits the memory of a
    /// run.
    pub max_message: usize,
    /// Maximum size of the expanded data of one compressed file, in bytes. The file is treated as truncated at this
    /// size.
    pub max_expanded: u64,
    /// Number of bytes of a mailbox that are read at a time. Longer messages need more memory.
    pub window: usize,
    /// Restricts the run to the messages that begin between these byte offsets. The source must be an mbox file.
    pub range: Option<Range<u64>>,
    /// Required length of the source in bytes, if `range` is set. Another length means that the file has changed.
    pub length: Option<u64>,
    /// Required modification time of the source, if `range` is set. Another time means that the file has changed.
    pub modified: Option<SystemTime>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            format: Format::Auto,
            quoting: None,
            ignore: IgnorePatterns::default(),
            may_lack_mail: false,
            jobs,
            max_in_flight: jobs,
            max_message: 512 << 20,
            max_expanded: 64 << 30,
            window: 256 << 10,
            range: None,
            length: None,
            modified: None,
        }
    }
}

impl ReadOptions {
    /// Returns the options for reading another mailbox than the source: the same limits, but any format and no range.
    #[cfg(feature = "cli")]
    pub(crate) fn for_other_source(&self) -> Self {
        Self {
            format: Format::Auto,
            range: None,
            length: None,
            modified: None,
            ..self.clone()
        }
    }

    /// Returns the number of threads of a run, and the number of bytes that may be buffered between reader and writer.
    /// Both limit the memory of a run.
    pub(crate) fn pool_limits(&self) -> pool::PoolLimits {
        let workers = self.jobs.max(self.max_in_flight).max(1);
        pool::PoolLimits {
            workers,
            budget: self.window.saturating_mul(workers + 1),
        }
    }
}

/// The settings of a conversion.
#[derive(Clone, Debug)]
pub struct Options {
    /// How the sources are read.
    pub read: ReadOptions,
    /// Format of the result: mbox, Maildir or one file for each message. `Auto` keeps the format of the source. A
    /// conversion in place or with a range always keeps the format.
    pub output_format: Format,
    /// Variant of a new mbox. `None` is mboxrd, and keeps a source that is an mbox as it is.
    pub mbox_variant: Option<MboxVariant>,
    /// Writes a directory with one mailbox for each label. Not available in place or with a range.
    pub by_label: Option<ByLabel>,
    /// Leaves out messages that are marked as deleted. Not available in place or with a range.
    pub skip_deleted: bool,
    /// Suffix of the backup: the old file is kept under its name plus this suffix. Only for conversions in place, and
    /// not for Maildirs and MH folders. The suffix must not be empty or contain a slash.
    pub backup: Option<OsString>,
    /// Whether files are written. If not, the run does all other work, and counts what it would write.
    pub writes: bool,
    /// Whether the [`Transform`] waits for servers. If so, an mbox that is converted in place is locked only briefly:
    /// before it is read, and while it is replaced. Deliveries of new mail then need not wait. If the mbox changes
    /// between both locks, the work is done again.
    pub waits: bool,
    /// Maximum time to wait for locks of other programs. A run that has waited so long for a lock waits for 0.2 seconds for
    /// each further lock.
    pub lock_timeout: Duration,
}

impl Options {
    /// Returns the options of a run that only reads.
    pub(crate) fn for_reading(read: ReadOptions) -> Self {
        Self {
            read,
            writes: false,
            ..Self::default()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            read: ReadOptions::default(),
            output_format: Format::Auto,
            mbox_variant: None,
            by_label: None,
            skip_deleted: false,
            backup: None,
            writes: true,
            waits: false,
            lock_timeout: Duration::from_secs(60),
        }
    }
}

/// The counts of a conversion.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// Mailboxes that were read: mbox files, Maildirs (each folder counts) and single messages.
    pub mailboxes: u64,
    /// Messages that were read.
    pub messages: u64,
    /// Messages that were changed. If [`Options::writes`] is false, messages that would be changed.
    pub changed: u64,
    /// Bytes of all mailboxes before the conversion.
    pub bytes_in: u64,
    /// Bytes of all mailboxes after the conversion.
    pub bytes_out: u64,
    /// Messages that were copied without being examined, because they are larger than [`ReadOptions::max_message`].
    pub oversized: u64,
    /// Files in a directory that contain no mail, such as indexes. They are neither copied nor changed.
    pub skipped_files: u64,
    /// Files whose mail does not belong to a mailbox: mail that is deleted or was not delivered, and copies of other mail. They
    /// are neither copied nor changed.
    pub set_aside: u64,
    /// Archives without mail that are sources ([`ReadOptions::may_lack_mail`]). All of their members were examined.
    pub without_mail: u64,
    /// All files of the source, by verdict. Mail that is not in files, such as that of a pipe or a server, is not included.
    pub files: FileCounts,
    /// Messages that were delivered to an mbox during the run, while it was not locked. They were copied without being
    /// transformed.
    pub late: u64,
    /// Messages of a Maildir or MH folder that another program moved or changed during the run. They were left
    /// unchanged.
    pub moved: u64,
    /// Results that an interrupted run of the program already wrote. Their messages are not counted again.
    pub made: u64,
    /// Lines that start with `>From ` in messages that were converted to another format. The old mbox does not show
    /// whether it added the `>` or the sender wrote it. So the text of each of these lines may be wrong by one `>`.
    pub ambiguous: u64,
    /// Messages that were written to another format without the text before their headers: a byte order mark, empty
    /// lines, separators of an mbox, and lines of other programs.
    pub prologues: u64,
    /// Messages that were not written to the mailbox of a label, because this mailbox already contains a message with
    /// the same bytes.
    pub repeated: u64,
    /// Messages with too many labels or too long ones. No mailboxes were created for the labels beyond the limits.
    pub overlabelled: u64,
    /// Files and directories that cannot be read completely. Each was reported as [`MailboxFact::Damaged`] or [`MailboxFact::Lost`].
    pub damaged: u64,
    /// Messages that were left out because they are marked as deleted ([`Options::skip_deleted`]).
    pub deleted: u64,
    /// Messages in which UW IMAP stores the state of an mbox. They are not mail, and were not converted.
    pub internal: u64,
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
        self.set_aside += other.set_aside;
        self.without_mail += other.without_mail;
        self.files.add(&other.files);
        self.late += other.late;
        self.moved += other.moved;
        self.made += other.made;
        self.ambiguous += other.ambiguous;
        self.prologues += other.prologues;
        self.repeated += other.repeated;
        self.overlabelled += other.overlabelled;
        self.damaged += other.damaged;
        self.deleted += other.deleted;
        self.internal += other.internal;
    }
}

/// Checks that `suffix` can be appended to a file name to form the name of a backup.
///
/// # Errors
/// Returns [`Error::Usage`] if the suffix is empty, or contains a slash or a NUL byte.
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
