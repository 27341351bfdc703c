//! Writes a compound file (MS-CFB) without reading the clock.
//!
//! The crate cfb stores the current time in each storage that it creates, and on targets without a clock, such as
//! `wasm32-unknown-unknown`, reading it aborts the program. Streams have no time stamp, so each storage is created as
//! an empty stream, whose directory entry is then changed to that of a storage with the time 1970-01-01. Apart from the
//! time stamps, the file has the same bytes as one that cfb writes.

use std::io::{Cursor, Write as _};
use std::path::Path;

use cfb::CompoundFile;

use super::{CompoundError, ENTRY, chain, u32_at};

/// 1970-01-01 in units of 100 nanoseconds since 1601.
const EPOCH: u64 = 116_444_736_000_000_000;

/// A compound file in memory. Storages and streams must be added in breadth-first order: everything on one level of the
/// hierarchy before anything on the next.
pub(in crate::engine::outlook) struct StorageCopy {
    file: Option<CompoundFile<Cursor<Vec<u8>>>>,
    /// Depth of the path that was added last.
    depth: usize,
    /// Number of directory entries so far. Entries are never removed, so this is the index of the next entry.
    entries: usize,
    /// Streams that must still be turned into storages: the index of the directory entry, and the class id.
    storages: Vec<(usize, [u8; 16])>,
}

impl StorageCopy {
    /// Creates a file that contains only the root storage. `class` is the class id of the root.
    pub(in crate::engine::outlook) fn new(class: Option<[u8; 16]>) -> Option<Self> {
        let file = CompoundFile::create(Cursor::new(Vec::new())).ok()?;
        let mut copy = Self {
            file: Some(file),
            depth: 0,
            entries: 1,
            storages: Vec::new(),
        };
        copy.change(|directory| directory.root(class.unwrap_or_default()))?;
        Some(copy)
    }

    pub(in crate::engine::outlook) fn add_stream(
        &mut self,
        path: &Path,
        bytes: &[u8],
    ) -> Option<()> {
        self.enter(path)?;
        let file = self.file.as_mut()?;
        file.create_new_stream(path).ok()?.write_all(bytes).ok()?;
        self.entries += 1;
        Some(())
    }

    pub(in crate::engine::outlook) fn add_storage(
        &mut self,
        path: &Path,
        class: Option<[u8; 16]>,
    ) -> Option<()> {
        self.enter(path)?;
        self.file.as_mut()?.create_new_stream(path).ok()?;
        self.storages
            .push((self.entries, class.unwrap_or_default()));
        self.entries += 1;
        Some(())
    }

    /// Returns the bytes of the file.
    pub(in crate::engine::outlook) fn finish(mut self) -> Option<Vec<u8>> {
        self.settle()?;
        self.file.as_mut()?.flush().ok()?;
        Some(self.file?.into_inner().into_inner())
    }

    /// Turns the pending streams of the previous level into storages, if `path` is the first one of a new level.
    fn enter(&mut self, path: &Path) -> Option<()> {
        let depth = path.iter().count();
        if depth > self.depth {
            self.settle()?;
            self.depth = depth;
        }
        Some(())
    }

    fn settle(&mut self) -> Option<()> {
        let storages = std::mem::take(&mut self.storages);
        if storages.is_empty() {
            return Some(());
        }
        self.change(|directory| {
            let mut entries = storages.iter();
            entries.try_for_each(|(index, class)| directory.storage(*index, *class))
        })
    }

    /// Edits the directory entries in the bytes of the file, and opens the file again.
    fn change(&mut self, change: impl FnOnce(&mut Directory) -> Option<()>) -> Option<()> {
        let mut file = self.file.take()?;
        file.flush().ok()?;
        let mut directory = Directory::of(file.into_inner().into_inner())?;
        change(&mut directory)?;
        let reopened = CompoundFile::open(Cursor::new(directory.bytes)).ok()?;
        self.file = Some(reopened);
        Some(())
    }
}

/// Bytes of a compound file, with the offsets of its directory sectors.
struct Directory {
    bytes: Vec<u8>,
    sectors: Vec<usize>,
    /// Size of a sector in bytes.
    sector: usize,
}

impl Directory {
    fn of(bytes: Vec<u8>) -> Option<Self> {
        let file = CompoundError::with_table(&bytes, String::new());
        let sector = file.sector;
        let numbers = chain(u32_at(&bytes, 48)?, &file.next, file.next.len());
        let offset = |number: u32| {
            let number = usize::try_from(number).ok()?;
            number.checked_add(1)?.checked_mul(sector)
        };
        let sectors = numbers.into_iter().map(offset).collect::<Option<_>>()?;
        Some(Self {
            bytes,
            sectors,
            sector,
        })
    }

    fn entry(&mut self, index: usize) -> Option<&mut [u8; ENTRY]> {
        let in_sector = self.sector / ENTRY;
        let start = *self.sectors.get(index / in_sector)?;
        let rest = self.bytes.get_mut(start + index % in_sector * ENTRY..)?;
        rest.first_chunk_mut()
    }

    fn root(&mut self, class: [u8; 16]) -> Option<()> {
        let entry = self.entry(0)?;
        entry[80..96].copy_from_slice(&class);
        entry[108..116].copy_from_slice(&EPOCH.to_le_bytes());
        Some(())
    }

    /// Changes the entry of an empty stream to that of an empty storage (MS-CFB 2.6.1).
    fn storage(&mut self, index: usize, class: [u8; 16]) -> Option<()> {
        const STORAGE: u8 = 1;
        let entry = self.entry(index)?;
        entry[66] = STORAGE;
        entry[80..96].copy_from_slice(&class);
        entry[100..108].copy_from_slice(&EPOCH.to_le_bytes());
        entry[108..116].copy_from_slice(&EPOCH.to_le_bytes());
        // A storage has no sectors, so the number of its first sector is 0.
        entry[116..120].copy_from_slice(&[0; 4]);
        Some(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::PathBuf;
    use std::time::UNIX_EPOCH;

    use super::*;

    const CLASS: [u8; 16] = *b"0123456789abcdef";

    /// A storage without content, or a stream with its content.
    type Content = (PathBuf, Option<Vec<u8>>);

    fn copy(content: &[Content]) -> Vec<u8> {
        let mut copy = StorageCopy::new(Some(CLASS)).unwrap();
        for (path, bytes) in content {
            match bytes {
                Some(bytes) => copy.add_stream(path, bytes).unwrap(),
                None => copy.add_storage(path, Some(CLASS)).unwrap(),
            }
        }
        copy.finish().unwrap()
    }

    /// Reference implementation: writes the same file with cfb's own functions, which read the clock.
    fn with_clock(content: &[Content]) -> Vec<u8> {
        let empty = CompoundFile::open(Cursor::new(copy(&[]))).unwrap();
        let class = *empty.root_entry().clsid();
        let mut file = CompoundFile::create(Cursor::new(Vec::new())).unwrap();
        file.set_storage_clsid("/", class).unwrap();
        for (path, bytes) in content {
            match bytes {
                Some(bytes) => file.create_stream(path).unwrap().write_all(bytes).unwrap(),
                None => {
                    file.create_storage(path).unwrap();
                    file.set_storage_clsid(path, class).unwrap();
                    file.set_created_time(path, UNIX_EPOCH).unwrap();
                    file.set_modified_time(path, UNIX_EPOCH).unwrap();
                }
            }
        }
        file.set_modified_time("/", UNIX_EPOCH).unwrap();
        file.flush().unwrap();
        file.into_inner().into_inner()
    }

    #[test]
    fn copy_has_the_bytes_of_a_file_that_cfb_created_with_a_clock() {
        let stream = |path: &str, length: usize| -> Content {
            let bytes = (0..length).map(|at| at as u8);
            (path.into(), Some(bytes.collect()))
        };
        let storage = |path: &str| -> Content { (path.into(), None) };
        let nested = [
            stream("/a", 10),
            storage("/B"),
            stream("/c", 5000),
            storage("/d"),
            storage("/B/e"),
            stream("/B/f", 0),
            stream("/d/g", 70_000),
            storage("/B/e/h"),
            stream("/B/e/h/i", 1),
        ];
        // More entries than fit into one directory sector, on two levels.
        let many: Vec<Content> = (0..100)
            .map(|number| match number % 3 {
                0 => storage(&format!("/s{number}")),
                _ => stream(&format!("/t{number}"), number * 97),
            })
            .chain((0..100).map(|number| stream(&format!("/s{}/x{number}", number / 3 * 3), 40)))
            .collect();
        for content in [&[], &nested[..1], &nested, &many] {
            let made = copy(content);
            assert!(made == with_clock(content), "{} entries", content.len());
            let file = CompoundFile::open_strict(Cursor::new(made)).unwrap();
            assert_eq!(file.walk().count(), content.len() + 1);
        }
    }
}
