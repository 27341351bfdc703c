//! Reads the messages of all sources, decides which mails are kept, and returns these mails in order.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::groups::{Candidate, Verdict, compared, fillable, settled};
use super::record::{self, Details, Entry, KEPT_LENGTH, KeptRecord, Record};
use super::sorted::{Sorted, Sorter};
use super::spool::{About, Spool, Spooled};
use super::words::Words;
use crate::engine::same::{Difference, MOST_COMPARED, copy_key_with, identity, plain};
use crate::error::Error;
use crate::mailbox::{Flags, Letter, Stop};
use crate::mime::Header;
use crate::mime::date::seconds;
use crate::platform::FileExt as _;
use crate::pool;

const LONGEST_HEADER: usize = 1 << 20;

/// Maximum length of a separator line and of a sender, in bytes. A longer one is left out, and the result gets a new
/// separator line. The limit keeps the length of the metadata far below 4 GiB, because the index stores it in 32 bits.
const LONGEST_SEPARATOR: usize = 1 << 20;

/// Length of the mails that a thread compares, or reads for the result, at a time, in bytes. A batch is only longer if its
/// last mails are.
const LONGEST_BATCH: usize = 256 << 10;

/// Maximum number of mails in one batch of the result.
const MOST_IN_BATCH: usize = 1000;

/// The order of the mails in the result.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub(crate) enum Order {
    /// By the Date field; mails without a date come last.
    #[default]
    Date,
    /// In the order in which they were first read.
    First,
}

/// Messages that were read from one folder of a source, prepared for the index. The threads that read prepare them, so
/// that [`Index::add`], which only one thread calls at a time, does little more than write.
pub(crate) struct Arrivals {
    /// Records of the messages. The fields that depend on other messages are 0: the number, the place in the spool, the
    /// source and the folder.
    records: Vec<Record>,
    /// Encoded metadata and content of each message. Their lengths are in `records`.
    bytes: Vec<u8>,
}

impl Arrivals {
    /// Reserves memory for messages of about this length together, in bytes.
    pub(crate) fn of_length(length: usize) -> Self {
        Self {
            records: Vec::new(),
            bytes: Vec::with_capacity(length),
        }
    }

    /// Adds a message with its flags.
    pub(crate) fn add(&mut self, letter: &Letter<'_>, flags: Flags) {
        let plain = plain(letter.content);
        let since = letter
            .envelope
            .date
            .and_then(|date| date.duration_since(UNIX_EPOCH).ok());
        let arrival = since.map(|since| since.as_secs());
        let header = Header::of_message(&plain, LONGEST_HEADER);
        let date = header
            .fields
            .value(&plain, "Date")
            .and_then(seconds)
            .or(arrival.and_then(|it| i64::try_from(it).ok()));
        let is_short = |length: usize| length <= LONGEST_SEPARATOR;
        let sender = Some(letter.envelope.sender.as_str()).filter(|sender| is_short(sender.len()));
        let separator = letter.separator.filter(|line| is_short(line.len()));
        let about = About {
            sender: sender.unwrap_or_default().into(),
            arrived: arrival,
            separator: separator.map(Cow::Borrowed),
            words: Words::of(letter.content),
        };
        let start = self.bytes.len();
        about.encode_into(&mut self.bytes);
        let entry = Entry {
            place: 0,
            about: (self.bytes.len() - start) as u32,
            length: letter.content.len() as u64,
        };
        self.bytes.extend_from_slice(letter.content);
        self.records.push(Record {
            key: copy_key_with(&header, &plain).to_bytes(),
            identity: identity(&plain).to_bytes(),
            number: 0,
            entry,
            date: date.unwrap_or(i64::MAX),
            source: 0,
            folder: 0,
            flags,
            has_words: !about.words.is_empty(),
        });
    }
}

/// Maximum number of sources that contain a mail for the mail to be counted in [`Tally::pairs`]. A mail in a thousand
/// sources would be counted for half a million pairs.
pub(crate) const MOST_SOURCES: usize = 64;

/// The counts of messages, for the summary of the run.
#[derive(Clone, Default, Debug)]
pub(crate) struct Tally {
    /// Number of messages in all sources.
    pub(crate) messages: u64,
    /// Total length of the messages in all sources, in bytes.
    pub(crate) bytes: u64,
    /// Number of mails in the result.
    pub(crate) kept: u64,
    /// Total length of the mails in the result, in bytes.
    pub(crate) kept_bytes: u64,
    /// Number of messages that are identical to an earlier one, apart from fields that mail programs add for their
    /// mailboxes.
    pub(crate) identical: u64,
    /// Number of copies that were dropped although their content is different. For each of them, a copy that is at
    /// least as complete is kept.
    pub(crate) dropped: u64,
    /// Number of parts that were missing in a dropped copy and are present in the copy kept in its place.
    pub(crate) filled: u64,
    /// Number of missing parts, of all messages, whose content `recover --copies` would take from another copy of the
    /// same mail in the sources. `None` if they were not counted.
    pub(crate) fillable: Option<u64>,
    /// Number of dropped copies whose end is missing, while the kept copy is complete.
    pub(crate) completed: u64,
    /// Number of incomplete copies that could belong to several mails. They are kept.
    pub(crate) ambiguous: u64,
    /// Number of mails that were not compared, because too many have the same Message-ID.
    pub(crate) uncompared: u64,
    /// For each kind of difference, the number of mails that have the Message-ID of another mail but differ from it in
    /// this way.
    pub(crate) differences: BTreeMap<Difference, u64>,
    /// Number of mails that are in more than one source.
    pub(crate) shared: u64,
    /// Number of mails that two sources have in common, for each pair of sources. A mail in more than [`MOST_SOURCES`]
    /// sources is counted in `widespread` instead.
    pub(crate) pairs: BTreeMap<(u32, u32), u64>,
    /// Number of mails that are in more than [`MOST_SOURCES`] sources.
    pub(crate) widespread: u64,
}

/// Lengths of the files of an index, and its counts.
#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Position {
    pub(super) spool: u64,
    /// Position in the file, in bytes, and number of records of each sorted run.
    pub(super) runs: Vec<(u64, u64)>,
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

/// Collects the messages of all sources in temporary files.
pub(crate) struct Index {
    directory: PathBuf,
    spool: Spool,
    sorter: Sorter<{ record::LENGTH }>,
    tally: Tally,
}

impl Index {
    /// Creates unnamed temporary files in `directory`. They need about as much space as all different messages
    /// together.
    pub(crate) fn new(directory: &Path) -> Result<Self, Error> {
        Ok(Self {
            directory: directory.to_owned(),
            spool: Spool::new(temporary(directory)?),
            sorter: Sorter::new(temporary(directory)?),
            tally: Tally::default(),
        })
    }

    /// Continues with files that contain the messages up to this position.
    pub(super) fn continued(
        directory: &Path,
        (spool, records): (File, File),
        position: &Position,
    ) -> Result<Self, Error> {
        let spool = Spool::continued(spool, position.spool);
        Ok(Self {
            directory: directory.to_owned(),
            spool: spool.map_err(cannot_write(directory))?,
            sorter: Sorter::continued(records, position.runs.clone()),
            tally: Tally {
                messages: position.messages,
                bytes: position.bytes,
                ..Tally::default()
            },
        })
    }

    /// Writes everything to the files, and returns their lengths.
    pub(super) fn save(&mut self) -> Result<Position, Error> {
        let failed = cannot_write(&self.directory);
        Ok(Position {
            spool: self.spool.save().map_err(&failed)?,
            runs: self.sorter.save().map_err(&failed)?.to_vec(),
            messages: self.tally.messages,
            bytes: self.tally.bytes,
        })
    }

    /// Length of all messages so far, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.tally.bytes
    }

    /// Adds messages of a folder. `source` and `folder` are the numbers of the source and the folder.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn add(
        &mut self,
        (source, folder): (u32, u32),
        arrivals: &Arrivals,
    ) -> Result<(), Error> {
        let failed = cannot_write(&self.directory);
        let mut rest = arrivals.bytes.as_slice();
        for record in &arrivals.records {
            let Entry { about, length, .. } = record.entry;
            let (about, behind) = rest.split_at(about as usize);
            let (content, behind) = behind.split_at(length as usize);
            rest = behind;
            let entry = self.spool.push(record.identity, about, content);
            let record = Record {
                number: self.tally.messages,
                entry: entry.map_err(&failed)?,
                source,
                folder,
                ..*record
            };
            self.tally.messages += 1;
            self.tally.bytes += length;
            self.sorter.push(record.encode()).map_err(&failed)?;
        }
        Ok(())
    }

    /// Decides which messages are copies of one mail, and which copies are kept. Several threads compare copies. With
    /// `counts_fillable`, also counts [`Tally::fillable`], which reads the copies of each mail once more.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and errors of the temporary files.
    pub(crate) fn decide(
        self,
        order: Order,
        counts_fillable: bool,
        (limits, stop): (pool::Limits, &Stop),
    ) -> Result<Kept, Error> {
        let failed = cannot_write(&self.directory);
        let spooled = self.spool.finish().map_err(&failed)?;
        let mut groups = Groups {
            sorted: self.sorter.sorted().map_err(&failed)?,
            spooled: &spooled,
            group: None,
            identical: 0,
            uncompared: 0,
        };
        let mut deciding = Deciding {
            order,
            spooled: &spooled,
            sorter: Sorter::new(temporary(&self.directory)?),
            notes: NoteWriter {
                file: BufWriter::new(temporary(&self.directory)?),
                end: 0,
            },
            tally: Tally {
                fillable: counts_fillable.then_some(0),
                ..self.tally
            },
        };
        pool::run(
            limits,
            stop,
            || groups.next_batch().map_err(&failed),
            |_| vec![0],
            |batch, _| {
                let compared = batch
                    .iter()
                    .map(|group| Comparison::of(group, counts_fillable, &spooled));
                compared.collect::<io::Result<Vec<_>>>().map_err(&failed)
            },
            |_, _| None,
            |batch: Vec<Group>, done| {
                let compared = done.into_iter().flat_map(|(_, compared)| compared);
                let mut groups = batch.into_iter().zip(compared);
                let settled = groups.try_for_each(|(group, it)| deciding.settle(group, it));
                settled.map_err(&failed)
            },
        )?;
        let Deciding {
            sorter,
            notes,
            tally,
            ..
        } = deciding;
        let tally = Tally {
            identical: groups.identical,
            uncompared: groups.uncompared,
            ..tally
        };
        drop(groups);
        Ok(Kept {
            order: KeptOrder {
                sorted: sorter.sorted().map_err(&failed)?,
                directory: self.directory.clone(),
            },
            mails: KeptMails {
                spooled,
                notes: notes.finish().map_err(&failed)?,
                directory: self.directory,
            },
            tally,
        })
    }
}

/// The messages with one Message-ID, which can be copies of one mail. They are compared with each other.
struct Group {
    key: [u8; 16],
    candidates: Vec<Candidate>,
    /// A candidate that is kept without a comparison, because there are already [`MOST_COMPARED`] others. The messages
    /// of a group are sorted so that identical ones follow each other. So only this last one must stay in memory: the
    /// next message is either identical to it or new.
    last: Option<Candidate>,
}

impl Group {
    fn of(key: [u8; 16], candidate: Candidate) -> Self {
        Self {
            key,
            candidates: vec![candidate],
            last: None,
        }
    }

    /// Returns the memory that the group needs until it is settled, in bytes: the contents, if they are compared, and
    /// the candidates themselves.
    fn weight(&self) -> usize {
        let candidates = self.candidates.len() * size_of::<Candidate>();
        let lengths = self.candidates.iter().map(|it| it.record.entry.length);
        match self.candidates.len() {
            1 => candidates,
            _ => candidates
                .saturating_add(usize::try_from(lengths.sum::<u64>()).unwrap_or(usize::MAX)),
        }
    }
}

/// Returns the messages with one Message-ID together, in batches of several groups.
struct Groups<'g> {
    sorted: Sorted<{ record::LENGTH }>,
    spooled: &'g Spooled,
    /// The group whose messages are being read.
    group: Option<Group>,
    identical: u64,
    uncompared: u64,
}

impl Groups<'_> {
    /// Returns the next groups and their weight. Returns `None` after the last one.
    fn next_batch(&mut self) -> io::Result<Option<(Vec<Group>, usize)>> {
        let (mut batch, mut weight) = (Vec::new(), 0_usize);
        while weight < LONGEST_BATCH {
            let next = self.sorted.next()?;
            let is_end = next.is_none();
            let complete = match next {
                Some(bytes) => self.push(Record::decode(&bytes))?,
                None => self.group.take(),
            };
            if let Some(mut group) = complete {
                weight = weight.saturating_add(group.weight());
                group
                    .candidates
                    .sort_by_key(|candidate| candidate.record.number);
                batch.push(group);
            }
            if is_end {
                break;
            }
        }
        Ok((!batch.is_empty()).then_some((batch, weight)))
    }

    /// Adds a message. Returns a group if no further message belongs to it.
    fn push(&mut self, record: Record) -> io::Result<Option<Group>> {
        let candidate = Candidate::of(record);
        let current = self.group.as_mut().filter(|it| it.key == record.key);
        let Some(group) = current else {
            return Ok(self.group.replace(Group::of(record.key, candidate)));
        };
        let is_identical = |other: &&mut Candidate| other.record.identity == record.identity;
        let before = group.last.as_mut().or(group.candidates.last_mut());
        if let Some(other) = before.filter(is_identical) {
            self.identical += 1;
            other.absorb(candidate, self.spooled)?;
        } else if group.candidates.len() < MOST_COMPARED {
            group.candidates.push(candidate);
        } else {
            self.uncompared += 1;
            let alone = group.last.replace(candidate);
            return Ok(alone.map(|alone| Group::of(record.key, alone)));
        }
        Ok(None)
    }
}

/// The result of comparing the messages of a group.
struct Comparison {
    verdict: Verdict,
    /// Number of missing parts that `recover --copies` would fill. 0 if they are not counted.
    fillable: u64,
}

impl Comparison {
    fn of(group: &Group, counts_fillable: bool, spooled: &Spooled) -> io::Result<Self> {
        // `recover --copies` does not compare a mail with more than `MOST_COMPARED` others.
        let fillable = if counts_fillable && group.last.is_none() {
            fillable(&group.candidates, spooled)?
        } else {
            0
        };
        let verdict = compared(&group.candidates, spooled)?;
        Ok(Self { verdict, fillable })
    }
}

struct Deciding<'d> {
    order: Order,
    spooled: &'d Spooled,
    sorter: Sorter<KEPT_LENGTH>,
    notes: NoteWriter,
    tally: Tally,
}

impl Deciding<'_> {
    fn settle(&mut self, group: Group, comparison: Comparison) -> io::Result<()> {
        let tally = &mut self.tally;
        if let Some(count) = &mut tally.fillable {
            *count += comparison.fillable;
        }
        let done = settled(group.candidates, comparison.verdict, self.spooled)?;
        tally.dropped += done.dropped;
        tally.filled += done.filled;
        tally.completed += done.completed;
        tally.ambiguous += done.ambiguous;
        for difference in done.differences {
            *tally.differences.entry(difference).or_default() += 1;
        }
        for kept in done.kept.into_iter().chain(group.last) {
            self.keep(kept)?;
        }
        Ok(())
    }

    fn keep(&mut self, mut candidate: Candidate) -> io::Result<()> {
        self.tally.kept += 1;
        self.tally.kept_bytes += candidate.record.entry.length;
        self.tally.shared += u64::from(candidate.sources.len() > 1);
        let sources: Vec<u32> = candidate.sources.iter().copied().collect();
        let counted = if sources.len() > MOST_SOURCES {
            self.tally.widespread += 1;
            &[][..]
        } else {
            sources.as_slice()
        };
        for (at, &one) in counted.iter().enumerate() {
            for &other in counted.iter().skip(at + 1) {
                *self.tally.pairs.entry((one, other)).or_default() += 1;
            }
        }
        let words = candidate.united_words(self.spooled)?;
        let folders: Vec<u32> = candidate.folders.into_iter().collect();
        let details = match (words, folders.as_slice()) {
            (None, &[folder]) => Details::Folder(folder),
            (words, _) => Details::Note(self.notes.push(&Note { words, folders })?),
        };
        let record = candidate.record;
        let kept = KeptRecord {
            order: match self.order {
                // A date before 1970 is negative. Inverting the sign bit makes it sort before later dates.
                Order::Date => (record.date as u64) ^ (1 << 63),
                Order::First => 0,
            },
            number: record.number,
            entry: record.entry,
            flags: candidate.flags,
            details,
        };
        self.sorter.push(kept.encode())
    }
}

/// The keywords and folders of all copies of a kept mail. It is stored in a temporary file to save memory.
#[derive(serde::Serialize, serde::Deserialize)]
struct Note {
    words: Option<Words>,
    folders: Vec<u32>,
}

struct NoteWriter {
    file: BufWriter<File>,
    end: u64,
}

impl NoteWriter {
    fn push(&mut self, note: &Note) -> io::Result<u64> {
        let bytes = serde_json::to_vec(note)?;
        let place = self.end;
        self.file.write_all(&(bytes.len() as u32).to_be_bytes())?;
        self.file.write_all(&bytes)?;
        self.end += 4 + bytes.len() as u64;
        Ok(place)
    }

    fn finish(self) -> io::Result<Notes> {
        let file = self.file.into_inner().map_err(|error| error.into_error())?;
        Ok(Notes(file))
    }
}

struct Notes(File);

impl Notes {
    fn read(&self, place: u64) -> io::Result<Note> {
        let mut length = [0; 4];
        self.0.read_exact_at(&mut length, place)?;
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact_at(&mut bytes, place + 4)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

/// The kept mails. The order and the contents are separate, so that several threads can read contents while one of them
/// gets the next batch.
pub(crate) struct Kept {
    pub(crate) order: KeptOrder,
    pub(crate) mails: KeptMails,
    pub(crate) tally: Tally,
}

/// The kept mails in the order of the result, without their contents.
pub(crate) struct KeptOrder {
    sorted: Sorted<KEPT_LENGTH>,
    directory: PathBuf,
}

/// Consecutive mails of the result, without their contents.
pub(crate) struct KeptBatch(Vec<KeptRecord>);

impl KeptOrder {
    /// Returns the next mails, and the length of their contents in bytes. Returns `None` after the last one.
    ///
    /// # Errors
    /// [`Error::Write`], if a temporary file cannot be read.
    pub(crate) fn next_batch(&mut self) -> Result<Option<(KeptBatch, usize)>, Error> {
        let (mut records, mut length) = (Vec::new(), 0_usize);
        while records.len() < MOST_IN_BATCH && length < LONGEST_BATCH {
            let next = self.sorted.next();
            let Some(bytes) = next.map_err(cannot_write(&self.directory))? else {
                break;
            };
            let record = KeptRecord::decode(&bytes);
            let own = usize::try_from(record.entry.length).unwrap_or(usize::MAX);
            length = length.saturating_add(own);
            records.push(record);
        }
        Ok((!records.is_empty()).then_some((KeptBatch(records), length)))
    }
}

/// The contents of the kept mails.
pub(crate) struct KeptMails {
    spooled: Spooled,
    notes: Notes,
    directory: PathBuf,
}

/// A kept mail, with the flags, keywords and labels of all its copies.
pub(crate) struct KeptMail<'b> {
    pub(crate) content: Cow<'b, [u8]>,
    pub(crate) flags: Flags,
    pub(crate) sender: String,
    pub(crate) arrived: Option<SystemTime>,
    pub(crate) separator: Option<Cow<'b, [u8]>>,
    /// Numbers of the folders that contain a copy of the mail.
    pub(crate) folders: Vec<u32>,
}

impl KeptMails {
    /// Reads the mails of a batch, and calls `take` for each of them, in their order.
    ///
    /// # Errors
    /// [`Error::Write`], if a temporary file cannot be read.
    pub(crate) fn read(
        &self,
        batch: &KeptBatch,
        mut take: impl FnMut(KeptMail<'_>),
    ) -> Result<(), Error> {
        let mut bytes = Vec::new();
        for record in &batch.0 {
            let mail = self.read_one(record, &mut bytes);
            take(mail.map_err(cannot_write(&self.directory))?);
        }
        Ok(())
    }

    fn read_one<'b>(
        &self,
        record: &KeptRecord,
        bytes: &'b mut Vec<u8>,
    ) -> io::Result<KeptMail<'b>> {
        let (about, content) = self.spooled.read(record.entry, bytes)?;
        let note = match record.details {
            Details::Folder(folder) => Note {
                words: None,
                folders: vec![folder],
            },
            Details::Note(place) => self.notes.read(place)?,
        };
        let content = match note.words {
            Some(words) => words.put_into(content),
            None => content.into(),
        };
        let arrived = about.arrived.map(Duration::from_secs);
        Ok(KeptMail {
            content,
            flags: record.flags,
            sender: about.sender.into_owned(),
            arrived: arrived.and_then(|since| UNIX_EPOCH.checked_add(since)),
            separator: about.separator,
            folders: note.folders,
        })
    }
}

fn temporary(directory: &Path) -> Result<File, Error> {
    tempfile::tempfile_in(directory).map_err(cannot_write(directory))
}

fn cannot_write(directory: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let what = format!("a temporary file in {}", directory.display());
    move |error| Error::cannot_write(&what)(error)
}

/// Assigns numbers to names, in the order of their first use.
#[derive(Default)]
pub(crate) struct Numbers(HashMap<String, u32>, Vec<String>);

impl Numbers {
    pub(crate) fn of(&mut self, name: &str) -> u32 {
        if let Some(number) = self.0.get(name) {
            return *number;
        }
        let number = u32::try_from(self.1.len()).unwrap_or(u32::MAX);
        self.0.insert(name.to_owned(), number);
        self.1.push(name.to_owned());
        number
    }

    /// Continues with names that [`names`](Self::names) has returned.
    pub(crate) fn continued(names: &[String]) -> Self {
        let mut numbers = Self::default();
        for name in names {
            numbers.of(name);
        }
        numbers
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.1
    }

    pub(crate) fn name(&self, number: u32) -> &str {
        self.1.get(number as usize).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::Envelope;

    #[test]
    fn separator_line_of_two_megabytes_is_left_out_of_the_index() {
        let mut arrivals = Arrivals::of_length(0);
        let long = "x".repeat(2 << 20);
        let separator = format!("From {long} Tue May 14 12:00:00 2024");
        let content = b"Subject: x\n\nbody\n";
        let letter = Letter {
            content,
            flags: None,
            envelope: Envelope {
                sender: long,
                ..Envelope::default()
            },
            separator: Some(separator.as_bytes()),
        };
        arrivals.add(&letter, Flags::default());
        let about = arrivals.records[0].entry.about as usize;
        assert!(about < 100, "{about}");
        assert_eq!(&arrivals.bytes[about..], content);
    }
}
