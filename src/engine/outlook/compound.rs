//! Compound files (MS-CFB), intact or damaged. The crate cfb reads intact files.
//!
//! cfb rejects a file if its tables contradict each other. One wrong byte in the name of one value must not lose the whole
//! mail, so this module reads every stream that the damaged tables still lead to. [`Compound::read`] reports incomplete
//! streams, and [`Compound::damage`] reports damage to the tables and the number of unreachable entries.

mod copy;

use std::collections::{BTreeMap, HashSet, btree_map};
use std::io::{Cursor, Read as _};
use std::path::{Path, PathBuf};

use crate::span::{front, rest_or_empty};
use cfb::CompoundFile;

pub(super) use self::copy::StorageCopy;

pub(super) enum Compound<'a> {
    Whole(CompoundFile<Cursor<&'a [u8]>>),
    Damaged(CompoundError<'a>),
}

/// An entry in a storage (a directory inside the compound file): a stream, or another storage.
pub(super) struct StorageEntry {
    pub name: String,
    pub path: PathBuf,
    pub is_stream: bool,
    /// The entry as read by the crate cfb, from which class ids are copied. `None` if the file is damaged, because a
    /// class id may then be wrong.
    pub entry: Option<cfb::Entry>,
}

impl StorageEntry {
    fn of(entry: cfb::Entry) -> Self {
        Self {
            name: entry.name().to_owned(),
            path: entry.path().to_owned(),
            is_stream: entry.is_stream(),
            entry: Some(entry),
        }
    }
}

impl<'a> Compound<'a> {
    /// Opens an intact or damaged compound file.
    ///
    /// # Errors
    /// Returns the reason as a sentence, such as "the file is damaged: ...".
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, String> {
        match CompoundFile::open(Cursor::new(bytes)) {
            Ok(file) => Ok(Self::Whole(file)),
            Err(error) => {
                let file = CompoundError::open(bytes, error.to_string());
                file.map(Self::Damaged)
                    .ok_or_else(|| format!("the file is damaged: {error}"))
            }
        }
    }

    /// Returns one sentence for each kind of damage in the tables of the file.
    pub(super) fn damage(&self) -> Vec<String> {
        let Self::Damaged(file) = self else {
            return Vec::new();
        };
        let mut damage = vec![format!(
            "the file is damaged ({}); all content that can still be found is used",
            file.why
        )];
        if file.lost > 0 {
            let parts = match file.lost {
                1 => "1 part".to_owned(),
                lost => format!("{lost} parts"),
            };
            damage.push(format!(
                "{parts} of the file cannot be reached, so content may be missing from the message"
            ));
        }
        damage
    }

    pub(super) fn is_stream(&self, path: &Path) -> bool {
        match self {
            Self::Whole(file) => file.is_stream(path),
            Self::Damaged(file) => file.entry(path).is_some_and(|it| it.is_stream),
        }
    }

    /// Returns the streams and storages in a storage.
    pub(super) fn list(&self, storage: &Path) -> Vec<StorageEntry> {
        match self {
            Self::Whole(file) => {
                let entries = file.read_storage(storage);
                entries.map_or_else(|_| Vec::new(), |it| it.map(StorageEntry::of).collect())
            }
            Self::Damaged(file) => file.list(storage),
        }
    }

    /// Returns a storage and everything inside it, down to [`DEEPEST`] levels. With more levels, the paths could need more
    /// memory than the file.
    pub(super) fn walk(&self, storage: &Path) -> Vec<StorageEntry> {
        let own = match self {
            Self::Whole(file) => file.entry(storage).ok().map(StorageEntry::of),
            Self::Damaged(file) => file.listed(storage.to_owned()),
        };
        let mut walked: Vec<StorageEntry> = own.into_iter().collect();
        let deepest = storage.iter().count() + DEEPEST;
        let mut at = 0;
        while let Some(next) = walked.get(at) {
            let is_open = !next.is_stream && next.path.iter().count() < deepest;
            let inner = if is_open {
                self.list(&next.path)
            } else {
                Vec::new()
            };
            walked.extend(inner);
            at += 1;
        }
        walked
    }

    /// Reads at most `most` bytes of a stream. If bytes are missing from the file, the second value is the reason.
    pub(super) fn read(&mut self, path: &Path, most: usize) -> (Vec<u8>, Option<String>) {
        match self {
            Self::Whole(file) => {
                let mut bytes = Vec::new();
                let most = u64::try_from(most).unwrap_or(u64::MAX);
                let read = file
                    .open_stream(path)
                    .and_then(|stream| stream.take(most).read_to_end(&mut bytes));
                (bytes, read.err().map(|error| error.to_string()))
            }
            Self::Damaged(file) => file.read(path, most),
        }
    }
}

/// Maximum nesting depth of storages in an object.
const DEEPEST: usize = 64;
/// First of the special sector numbers (end of chain, free sector).
const MOST_SECTORS: u32 = 0xffff_fffa;
/// Marker for the end of a chain of sectors.
const END: u32 = 0xffff_fffe;
/// Size of a directory entry in bytes.
const ENTRY: usize = 128;
/// Size of a small sector in bytes. Small sectors are stored together in one large stream.
const SMALL: usize = 64;
/// Minimum length in bytes of a stream that is stored in ordinary sectors.
const LARGE: usize = 4096;

/// A compound file whose tables contradict each other.
pub(super) struct CompoundError<'a> {
    bytes: &'a [u8],
    /// Size of a sector in bytes.
    sector: usize,
    /// The allocation table: for each sector, the number of the next sector of the same stream.
    next: Vec<u32>,
    /// The allocation table for small streams: for each small sector, the number of the next one of the same stream.
    next_small: Vec<u32>,
    /// Ordinary sectors that contain the small streams.
    small: Vec<u32>,
    /// Entries of the directory. Entry 0 is the root storage.
    entries: Vec<DirectoryEntry>,
    /// Number of unreachable streams and storages: the damage removed them from their storage.
    lost: usize,
    why: String,
}

struct DirectoryEntry {
    is_stream: bool,
    start: u32,
    length: usize,
    /// The entries of a storage: their names in lower case, and their indexes in [`CompoundError::entries`].
    content: BTreeMap<String, usize>,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let numbers = bytes.as_chunks::<4>().0.iter();
    numbers.map(|bytes| u32::from_le_bytes(*bytes))
}

/// Returns the first `most` sectors of a chain. A chain that contains a loop ends before the sector that repeats.
fn chain(first: u32, next: &[u32], most: usize) -> Vec<u32> {
    let (mut sectors, mut seen, mut at) = (Vec::new(), HashSet::new(), first);
    while at < MOST_SECTORS && sectors.len() < most && seen.insert(at) {
        let Some(after) = usize::try_from(at).ok().and_then(|at| next.get(at)) else {
            break;
        };
        sectors.push(at);
        at = *after;
    }
    sectors
}

impl<'a> CompoundError<'a> {
    /// Reads only the header and the allocation table of a file.
    fn with_table(bytes: &'a [u8], why: String) -> Self {
        let is_of_4096 = u16_at(bytes, 26) == Some(4);
        let mut file = Self {
            bytes,
            sector: if is_of_4096 { 4096 } else { 512 },
            next: Vec::new(),
            next_small: Vec::new(),
            small: Vec::new(),
            entries: Vec::new(),
            lost: 0,
            why,
        };
        file.next = file.table();
        file
    }

    /// Opens a damaged file. Returns `None` if its directory cannot be read.
    fn open(bytes: &'a [u8], why: String) -> Option<Self> {
        let mut file = Self::with_table(bytes, why);
        let all = file.next.len();
        let sectors = chain(u32_at(bytes, 60)?, &file.next, all);
        let tables = sectors.iter().map(|sector| numbers(file.at(*sector)));
        file.next_small = tables.flatten().collect();
        let directory = chain(u32_at(bytes, 48)?, &file.next, all);
        file.read_directory(&directory);
        (file.entries.len() > 1).then_some(file)
    }

    /// Returns the bytes of a sector. At the end of the file, the sector can be shorter. A sector after the end of the
    /// file has no bytes.
    fn at(&self, sector: u32) -> &'a [u8] {
        let number = usize::try_from(sector).unwrap_or(usize::MAX);
        let start = number.saturating_add(1).saturating_mul(self.sector);
        front(rest_or_empty(self.bytes, start), self.sector)
    }

    /// Returns the allocation table: for each sector, the next sector of its chain.
    fn table(&self) -> Vec<u32> {
        let count = (self.bytes.len() / self.sector).saturating_add(1);
        let header = front(self.bytes, 512);
        let mut sectors: Vec<u32> = numbers(rest_or_empty(header, 76)).collect();
        // The header contains the numbers of the first sectors that hold the table. The numbers of further sectors are
        // in a linked list of sectors: the last number in each sector of the list is the next sector of the list.
        let (mut at, mut seen) = (u32_at(self.bytes, 68).unwrap_or(END), HashSet::new());
        while at < MOST_SECTORS && seen.insert(at) {
            let list: Vec<u32> = numbers(self.at(at)).collect();
            let Some((last, numbers)) = list.split_last() else {
                break;
            };
            sectors.extend_from_slice(numbers);
            at = *last;
        }
        let mut next = Vec::new();
        let tables = sectors.iter().filter(|sector| **sector < MOST_SECTORS);
        for sector in tables {
            if next.len() >= count {
                break;
            }
            let before = next.len();
            next.extend(numbers(self.at(*sector)));
            // The table refers to a sector after the end of the file. Its missing entries become end-of-chain markers,
            // so streams that depend on them are incomplete.
            next.resize(before + self.sector / 4, MOST_SECTORS);
        }
        next.truncate(count);
        next
    }

    fn read_directory(&mut self, sectors: &[u32]) {
        let raw: Vec<&'a [u8]> = sectors
            .iter()
            .flat_map(|sector| self.at(*sector).chunks_exact(ENTRY))
            .collect();
        let Some(root) = raw.first() else { return };
        let small = u32_at(root, 116).unwrap_or(END);
        self.small = chain(small, &self.next, self.next.len());
        self.entries.push(DirectoryEntry::of(root, false));
        let mut seen = HashSet::from([0]);
        let child = |bytes: &[u8]| u32_at(bytes, 76).unwrap_or(END);
        // Directory entries to visit, each with the index of its parent storage.
        let mut open = vec![(child(root), 0)];
        while let Some((index, parent)) = open.pop() {
            let at = usize::try_from(index).unwrap_or(usize::MAX);
            let Some(bytes) = raw.get(at).filter(|_| seen.insert(at)) else {
                continue;
            };
            let is_stream = match bytes.get(66) {
                Some(1) => false,
                Some(2) => true,
                _ => continue,
            };
            let sides = [68, 72].map(|side| u32_at(bytes, side).unwrap_or(END));
            open.extend(sides.map(|side| (side, parent)));
            let number = self.entries.len();
            let content = self.entries.get_mut(parent).map(|it| &mut it.content);
            let Some(btree_map::Entry::Vacant(place)) = content.map(|it| it.entry(name(bytes)))
            else {
                self.lost += 1;
                continue;
            };
            place.insert(number);
            self.entries.push(DirectoryEntry::of(bytes, is_stream));
            if !is_stream {
                open.push((child(bytes), number));
            }
        }
        let is_used = |bytes: &&[u8]| matches!(bytes.get(66), Some(1 | 2));
        let unseen = raw.iter().enumerate().filter(|(at, _)| !seen.contains(at));
        self.lost += unseen.filter(|(_, bytes)| is_used(bytes)).count();
    }

    fn entry(&self, path: &Path) -> Option<&DirectoryEntry> {
        let names = path.iter().filter(|name| *name != "/");
        let mut entry = self.entries.first()?;
        for name in names {
            let place = entry.content.get(&name.to_string_lossy().to_lowercase())?;
            entry = self.entries.get(*place)?;
        }
        Some(entry)
    }

    fn listed(&self, path: PathBuf) -> Option<StorageEntry> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Some(StorageEntry {
            name: name.into_owned(),
            is_stream: self.entry(&path)?.is_stream,
            path,
            entry: None,
        })
    }

    fn list(&self, storage: &Path) -> Vec<StorageEntry> {
        let names = self.entry(storage).map(|entry| entry.content.keys());
        let paths = names.into_iter().flatten().map(|name| storage.join(name));
        paths.filter_map(|path| self.listed(path)).collect()
    }

    fn read(&self, path: &Path, most: usize) -> (Vec<u8>, Option<String>) {
        let Some(entry) = self.entry(path).filter(|entry| entry.is_stream) else {
            return (
                Vec::new(),
                Some("the file does not contain the value".to_owned()),
            );
        };
        let wanted = entry.length.min(most);
        let mut bytes = Vec::new();
        let small_sector = |sector: u32| {
            let start = usize::try_from(sector).ok()?.checked_mul(SMALL)?;
            let outer = self.at(*self.small.get(start / self.sector)?);
            let rest = outer.get(start % self.sector..)?;
            Some(front(rest, SMALL))
        };
        let sectors = if entry.length < LARGE {
            chain(entry.start, &self.next_small, wanted.div_ceil(SMALL))
        } else {
            chain(entry.start, &self.next, wanted.div_ceil(self.sector))
        };
        for sector in sectors {
            let piece = if entry.length < LARGE {
                small_sector(sector)
            } else {
                Some(self.at(sector))
            };
            match piece.filter(|piece| !piece.is_empty()) {
                Some(piece) => bytes.extend_from_slice(piece),
                None => break,
            }
        }
        bytes.truncate(wanted);
        let is_whole = bytes.len() == wanted;
        let why = (!is_whole).then(|| match bytes.len() {
            0 => "the content is missing".to_owned(),
            length => format!("only {length} of {} bytes could be read", entry.length),
        });
        (bytes, why)
    }
}

impl DirectoryEntry {
    fn of(bytes: &[u8], is_stream: bool) -> Self {
        let length = u32_at(bytes, 120).and_then(|length| usize::try_from(length).ok());
        Self {
            is_stream,
            start: u32_at(bytes, 116).unwrap_or(END),
            length: length.unwrap_or_default(),
            content: BTreeMap::new(),
        }
    }
}

/// Returns the name of an entry in lower case. Path separators and other special characters are replaced by underscores.
fn name(bytes: &[u8]) -> String {
    let length = usize::from(u16_at(bytes, 64).unwrap_or_default()).clamp(2, 64) - 2;
    let units: Vec<u16> = front(bytes, length)
        .as_chunks::<2>()
        .0
        .iter()
        .map(|unit| u16::from_le_bytes(*unit))
        .collect();
    let name = String::from_utf16_lossy(&units)
        .to_lowercase()
        .replace(['/', '\\', ':', '!', '\0'], "_");
    match &*name {
        "" | "." | ".." => "_".to_owned(),
        _ => name,
    }
}
