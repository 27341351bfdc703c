//! Sorts many records of the same length by their bytes, with limited memory and a temporary file.
//!
//! Records are collected in memory up to a limit. They are then sorted and written to the file as one run (a sorted
//! sequence). Reading merges all runs into one sequence.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;

use crate::platform::FileExt as _;

/// Memory in bytes. While records are collected, it contains the records of the next run. When the runs are merged, it
/// contains the read buffers of all runs.
const MEMORY: usize = 24 << 20;

/// Minimum size of the read buffer of one run, in bytes, even if there are so many runs that [`MEMORY`] is exceeded.
const LEAST: usize = 4 << 10;

pub(crate) struct Sorter<const N: usize> {
    file: Arc<File>,
    end: u64,
    records: Vec<[u8; N]>,
    /// Maximum number of records in memory.
    most: usize,
    /// For each run, its position in the file, in bytes, and its number of records.
    runs: Vec<(u64, u64)>,
}

impl<const N: usize> Sorter<N> {
    pub(crate) fn new(file: File) -> Self {
        Self::with_memory(file, MEMORY)
    }

    fn with_memory(file: File, memory: usize) -> Self {
        Self {
            file: Arc::new(file),
            end: 0,
            records: Vec::new(),
            most: (memory / N).max(1),
            runs: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, record: [u8; N]) -> io::Result<()> {
        if self.records.len() >= self.most {
            self.write_run()?;
        }
        self.records.push(record);
        Ok(())
    }

    /// Continues with the sorted runs of an existing file, as returned by [`save`](Self::save).
    pub(crate) fn continued(file: File, runs: Vec<(u64, u64)>) -> Self {
        let end = runs.last().map_or(0, |(at, count)| at + count * N as u64);
        Self {
            end,
            runs,
            ..Self::new(file)
        }
    }

    /// Writes all records to the file, and returns the position in bytes and the number of records of each run.
    pub(crate) fn save(&mut self) -> io::Result<&[(u64, u64)]> {
        if !self.records.is_empty() {
            self.write_run()?;
        }
        Ok(&self.runs)
    }

    fn write_run(&mut self) -> io::Result<()> {
        self.records.sort_unstable();
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.end))?;
        for records in self.records.chunks(1 << 12) {
            file.write_all(records.as_flattened())?;
        }
        let count = self.records.len() as u64;
        self.runs.push((self.end, count));
        self.end += count * N as u64;
        self.records.clear();
        Ok(())
    }

    /// Returns all records in order. If they fit into memory, nothing is written to the file.
    pub(crate) fn sorted(mut self) -> io::Result<SortedRecords<N>> {
        if self.runs.is_empty() {
            self.records.sort_unstable();
            let records = std::mem::take(&mut self.records);
            return Ok(SortedRecords {
                runs: Vec::new(),
                heap: BinaryHeap::new(),
                records: records.into_iter(),
            });
        }
        if !self.records.is_empty() {
            self.write_run()?;
        }
        self.records = Vec::new();
        let memory = (self.most * N / self.runs.len()).max(LEAST).max(N);
        let run = |(at, left)| SortedRun {
            file: Arc::clone(&self.file),
            at,
            left,
            buffer: Vec::new(),
            next: 0,
            most: (memory / N).max(1),
        };
        let mut runs: Vec<SortedRun<N>> = self.runs.iter().copied().map(run).collect();
        let mut heap = BinaryHeap::new();
        for (number, run) in runs.iter_mut().enumerate() {
            if let Some(record) = run.next()? {
                heap.push(Reverse((record, number)));
            }
        }
        Ok(SortedRecords {
            runs,
            heap,
            records: Vec::new().into_iter(),
        })
    }
}

struct SortedRun<const N: usize> {
    file: Arc<File>,
    at: u64,
    left: u64,
    buffer: Vec<[u8; N]>,
    next: usize,
    /// Number of records that are read from the file at once.
    most: usize,
}

impl<const N: usize> SortedRun<N> {
    fn next(&mut self) -> io::Result<Option<[u8; N]>> {
        if self.next == self.buffer.len() {
            let count = self
                .most
                .min(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.buffer.resize(count, [0; N]);
            self.file
                .read_exact_at(self.buffer.as_flattened_mut(), self.at)?;
            self.at += (count * N) as u64;
            self.left -= count as u64;
            self.next = 0;
        }
        let record = self.buffer.get(self.next).copied();
        self.next += usize::from(record.is_some());
        Ok(record)
    }
}

pub(crate) struct SortedRecords<const N: usize> {
    runs: Vec<SortedRun<N>>,
    heap: BinaryHeap<Reverse<([u8; N], usize)>>,
    records: std::vec::IntoIter<[u8; N]>,
}

impl<const N: usize> SortedRecords<N> {
    pub(crate) fn next(&mut self) -> io::Result<Option<[u8; N]>> {
        let Some(mut first) = self.heap.peek_mut() else {
            return Ok(self.records.next());
        };
        let Reverse((record, number)) = *first;
        let next = match self.runs.get_mut(number) {
            Some(run) => run.next()?,
            None => None,
        };
        match next {
            Some(next) => *first = Reverse((next, number)),
            None => _ = PeekMut::pop(first),
        }
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_a_saved_sorter_are_sorted_together_with_later_ones() {
        let file = tempfile::tempfile().unwrap();
        let mut sorter = Sorter::<1>::new(file.try_clone().unwrap());
        assert_eq!(sorter.save().unwrap(), []);
        for record in [3, 1] {
            sorter.push([record]).unwrap();
        }
        let runs = sorter.save().unwrap().to_vec();
        sorter.push([9]).unwrap();
        sorter.save().unwrap();
        let mut sorter = Sorter::<1>::continued(file, runs);
        for record in [4, 2] {
            sorter.push([record]).unwrap();
        }
        let mut sorted = sorter.sorted().unwrap();
        let found = std::iter::from_fn(|| sorted.next().unwrap());
        assert_eq!(found.collect::<Vec<_>>(), [[1], [2], [3], [4]]);
    }

    #[test]
    fn records_with_any_memory_limit_are_sorted() {
        for (count, memory) in [
            (0_u32, 64),
            (1, 64),
            (8, 64),
            (9, 64),
            (5000, 64),
            (5000, 1 << 20),
        ] {
            let mut sorter = Sorter::<8>::with_memory(tempfile::tempfile().unwrap(), memory);
            let mut expected = Vec::new();
            for number in 0..count {
                let record = (u64::from(number.wrapping_mul(0x9e37_79b9)) << 8).to_be_bytes();
                sorter.push(record).unwrap();
                expected.push(record);
            }
            expected.sort_unstable();
            let mut sorted = sorter.sorted().unwrap();
            let mut found = Vec::new();
            while let Some(record) = sorted.next().unwrap() {
                found.push(record);
            }
            assert_eq!(found, expected, "{count} {memory}");
        }
    }
}
