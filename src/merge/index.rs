//! Reads the messages of all sources, decides which mails are kept, and returns these mails in order.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::groups::{Candidate, fillable, settled};
use super::record::{self, Record};
use super::sorted::{Sorted, Sorter};
use super::spool::{About, Spool, Spooled};
use super::words::Words;
use crate::engine::same::{Difference, MOST_COMPARED, plain};
use crate::error::Error;
use crate::mailbox::{Flags, Letter, Stop};
use crate::mime::Header;
use crate::mime::date::seconds;
use crate::platform::FileExt as _;

const LONGEST_HEADER: usize = 1 << 20;

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

/// A message as it was read from a source.
pub(crate) struct Arrived<'a> {
    pub(crate) source: u32,
    pub(crate) folder: u32,
    pub(crate) letter: &'a Letter<'a>,
    pub(crate) flags: Flags,
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

    pub(crate) fn add(&mut self, arrived: &Arrived<'_>) -> Result<(), Error> {
        let letter = arrived.letter;
        let plain = plain(letter.content);
        let identity = Record::identity_of(&plain);
        let since = letter
            .envelope
            .date
            .and_then(|date| date.duration_since(UNIX_EPOCH).ok());
        let arrival = since.map(|since| since.as_secs());
        let header = Header::of_message(&plain, LONGEST_HEADER);
        let date = header.fields.value(&plain, "Date").and_then(seconds);
        let date = date.or(arrival.and_then(|it| i64::try_from(it).ok()));
        let about = About {
            sender: letter.envelope.sender.clone(),
            arrived: arrival,
            separator: letter.separator.map(<[u8]>::to_vec),
            words: Words::of(letter.content),
        };
        let place = self.spool.push(identity, &about, letter.content);
        let length = letter.content.len() as u64;
        let record = Record {
            key: Record::key_of(&plain),
            identity,
            number: self.tally.messages,
            place: place.map_err(cannot_write(&self.directory))?,
            length,
            date: date.unwrap_or(i64::MAX),
            source: arrived.source,
            folder: arrived.folder,
            flags: arrived.flags,
            has_words: !about.words.is_empty(),
        };
        self.tally.messages += 1;
        self.tally.bytes += length;
        let pushed = self.sorter.push(record.encode());
        pushed.map_err(cannot_write(&self.directory))
    }

    /// Decides which messages are copies of one mail, and which copies are kept. With `counts_fillable`, also counts
    /// [`Tally::fillable`], which reads the copies of each mail once more.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and errors of the temporary files.
    pub(crate) fn decide(
        self,
        order: Order,
        counts_fillable: bool,
        stop: &Stop,
    ) -> Result<Kept, Error> {
        let failed = cannot_write(&self.directory);
        let mut deciding = Deciding {
            order,
            spooled: self.spool.finish().map_err(&failed)?,
            sorter: Sorter::new(temporary(&self.directory)?),
            notes: Notes {
                file: temporary(&self.directory)?,
                end: 0,
            },
            tally: Tally {
                fillable: counts_fillable.then_some(0),
                ..self.tally
            },
        };
        let mut sorted = self.sorter.sorted().map_err(&failed)?;
        let mut group = Group::default();
        while let Some(bytes) = sorted.next().map_err(&failed)? {
            let record = Record::decode(&bytes);
            if group.key != record.key {
                stop.check()?;
                let whole = std::mem::replace(&mut group, Group::of(record.key));
                deciding.settle(whole).map_err(&failed)?;
            }
            deciding.push(&mut group, record).map_err(&failed)?;
        }
        drop(sorted);
        deciding.settle(group).map_err(&failed)?;
        Ok(Kept {
            spooled: deciding.spooled,
            sorted: deciding.sorter.sorted().map_err(&failed)?,
            notes: deciding.notes,
            tally: deciding.tally,
            directory: self.directory,
        })
    }
}

/// The messages with one Message-ID, which can be copies of one mail. They are compared with each other.
#[derive(Default)]
struct Group {
    key: [u8; 16],
    candidates: Vec<Candidate>,
    /// A candidate that is kept without a comparison, because there are already [`MOST_COMPARED`] others. The messages
    /// of a group are sorted so that identical ones follow each other. So only this last one must stay in memory: the
    /// next message is either identical to it or new.
    last: Option<Candidate>,
}

impl Group {
    fn of(key: [u8; 16]) -> Self {
        Self {
            key,
            ..Self::default()
        }
    }
}

/// Length of the entry of a kept mail in the sorted file, in bytes. It consists of three numbers of 8 bytes: the sort
/// key, the number of the mail in the order of reading, and the position of its [`Note`].
const KEPT_LENGTH: usize = 24;

struct Deciding {
    order: Order,
    spooled: Spooled,
    sorter: Sorter<KEPT_LENGTH>,
    notes: Notes,
    tally: Tally,
}

impl Deciding {
    fn push(&mut self, group: &mut Group, record: Record) -> io::Result<()> {
        let candidate = Candidate::of(record);
        let is_identical = |other: &&mut Candidate| other.record.identity == record.identity;
        let before = group.last.as_mut().or(group.candidates.last_mut());
        if let Some(other) = before.filter(is_identical) {
            self.tally.identical += 1;
            return other.absorb(candidate, &self.spooled);
        }
        if group.candidates.len() < MOST_COMPARED {
            group.candidates.push(candidate);
            return Ok(());
        }
        self.tally.uncompared += 1;
        match group.last.replace(candidate) {
            Some(alone) => self.keep(alone),
            None => Ok(()),
        }
    }

    fn settle(&mut self, group: Group) -> io::Result<()> {
        let tally = &mut self.tally;
        // `recover --copies` does not compare a mail with so many others.
        if let Some(count) = &mut tally.fillable
            && group.last.is_none()
        {
            *count += fillable(&group.candidates, &self.spooled)?;
        }
        let done = settled(group.candidates, &self.spooled)?;
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
        self.tally.kept_bytes += candidate.record.length;
        self.tally.shared += u64::from(candidate.sources.len() > 1);
        let sources: Vec<u32> = candidate.sources.iter().copied().collect();
        let counted = match sources.len() > MOST_SOURCES {
            true => {
                self.tally.widespread += 1;
                &[][..]
            }
            false => sources.as_slice(),
        };
        for (at, &one) in counted.iter().enumerate() {
            for &other in counted.iter().skip(at + 1) {
                *self.tally.pairs.entry((one, other)).or_default() += 1;
            }
        }
        let note = Note {
            place: candidate.record.place,
            flags: candidate.flags.to_byte(),
            words: candidate.united_words(&self.spooled)?,
            folders: candidate.folders.into_iter().collect(),
        };
        let place = self.notes.push(&note)?;
        let key = match self.order {
            // A date before 1970 is negative. Inverting the sign bit makes it sort before later dates.
            Order::Date => (candidate.record.date as u64) ^ (1 << 63),
            Order::First => 0,
        };
        let mut bytes = [0; KEPT_LENGTH];
        for (field, number) in bytes
            .chunks_exact_mut(8)
            .zip([key, candidate.record.number, place])
        {
            field.copy_from_slice(&number.to_be_bytes());
        }
        self.sorter.push(bytes)
    }
}

/// The position of a kept mail in the spool, with the flags, keywords and folders of all its copies. It is stored in a
/// temporary file to save memory.
#[derive(serde::Serialize, serde::Deserialize)]
struct Note {
    place: u64,
    flags: u8,
    words: Option<Words>,
    folders: Vec<u32>,
}

struct Notes {
    file: File,
    end: u64,
}

impl Notes {
    fn push(&mut self, note: &Note) -> io::Result<u64> {
        use std::io::Write as _;
        let bytes = serde_json::to_vec(note)?;
        let place = self.end;
        let length = (bytes.len() as u32).to_be_bytes();
        self.file.write_all(&[&length, bytes.as_slice()].concat())?;
        self.end += 4 + bytes.len() as u64;
        Ok(place)
    }

    fn read(&self, place: u64) -> io::Result<Note> {
        let mut length = [0; 4];
        self.file.read_exact_at(&mut length, place)?;
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        self.file.read_exact_at(&mut bytes, place + 4)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

/// The kept mails, in the order of the result.
pub(crate) struct Kept {
    spooled: Spooled,
    sorted: Sorted<KEPT_LENGTH>,
    notes: Notes,
    pub(crate) tally: Tally,
    directory: PathBuf,
}

/// A kept mail, with the flags, keywords and labels of all its copies.
pub(crate) struct KeptMail {
    pub(crate) content: Vec<u8>,
    pub(crate) flags: Flags,
    pub(crate) sender: String,
    pub(crate) arrived: Option<SystemTime>,
    pub(crate) separator: Option<Vec<u8>>,
    /// Numbers of the folders that contain a copy of the mail.
    pub(crate) folders: Vec<u32>,
}

impl Kept {
    pub(crate) fn next(&mut self) -> Result<Option<KeptMail>, Error> {
        let next = self.read_next();
        next.map_err(cannot_write(&self.directory))
    }

    fn read_next(&mut self) -> io::Result<Option<KeptMail>> {
        let Some(bytes) = self.sorted.next()? else {
            return Ok(None);
        };
        let [.., a, b, c, d, e, f, g, h] = bytes;
        let note = self
            .notes
            .read(u64::from_be_bytes([a, b, c, d, e, f, g, h]))?;
        let (about, mut content) = self.spooled.read(note.place)?;
        if let Some(words) = note.words
            && let std::borrow::Cow::Owned(with_words) = words.put_into(&content)
        {
            content = with_words;
        }
        let arrived = about.arrived.map(Duration::from_secs);
        Ok(Some(KeptMail {
            content,
            flags: Flags::of_byte(note.flags),
            sender: about.sender,
            arrived: arrived.and_then(|since| UNIX_EPOCH.checked_add(since)),
            separator: about.separator,
            folders: note.folders,
        }))
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
