//! Reads zip archives (APPNOTE.TXT, PKWARE 6.3) and zip64: stored or deflated members, in the order of the directory at
//! the end of the archive. If a member is damaged, the other members are still read. A symbolic link is read as a file
//! that contains a path.
//!
//! Overlapping members are refused, because a small archive could otherwise contain the same data any number of times.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use flate2::bufread::DeflateDecoder;
use rawzip::{
    CompressionMethod, RECOMMENDED_BUFFER_SIZE, RangeReader, ZipArchive, ZipArchiveEntryWayfinder,
    ZipLocator, ZipVerifier,
};

use super::members::{Member, Members};
use crate::mailbox::compressed::{CompressionDamage, exceeded};
use crate::mailbox::file::{PackedFile, PackedReader, uninterrupted};
use crate::mailbox::forms::archive::MARKS;
use crate::platform::FileExt as _;

/// Maximum number of members. The position of each member is kept in memory, so this limits the memory. The names are
/// not kept.
const MEMBERS: usize = 1 << 18;
const NAME: usize = 4096;

pub(super) struct Zip {
    packed: Arc<PackedFile>,
    most: u64,
    opened: Option<ZipDirectory>,
    body: Option<ZipVerifier<Box<dyn Read + Send>>>,
    expanded: u64,
}

struct ZipDirectory {
    archive: ZipArchive<PackedReader>,
    members: VecDeque<ZipEntry>,
    /// Start offsets of all members and of the central directory, sorted. A member that ends after the next offset
    /// overlaps another member, so the archive is refused.
    starts: Vec<u64>,
    length: u64,
    around: Option<&'static str>,
}

struct ZipEntry {
    place: ZipArchiveEntryWayfinder,
    start: u64,
    at: u64,
    closed: Option<&'static str>,
    is_stored: bool,
}

fn wording(why: impl std::fmt::Display) -> String {
    format!("the zip archive is damaged or its end is missing ({why})")
}

fn damaged(why: impl std::fmt::Display) -> io::Error {
    CompressionDamage::of_archive(wording(why), false).into()
}

impl Zip {
    pub(super) fn new(packed: &Arc<PackedFile>, most: u64) -> Self {
        Self {
            packed: Arc::clone(packed),
            most,
            opened: None,
            body: None,
            expanded: 0,
        }
    }
}

impl ZipDirectory {
    fn read(packed: &PackedFile) -> io::Result<Self> {
        let file = &packed.file;
        let length = file.metadata()?.len();
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        // The bytes of the central directory are not mail and must not count as progress, so a reader with its own
        // counters is used.
        let uncounted = PackedReader::new(&PackedFile::new(file, &packed.stop));
        let archive = ZipLocator::new()
            .locate_in_reader(uncounted, &mut buffer, length)
            .map_err(|(_, error)| {
                io::Error::from(CompressionDamage::of_cut_archive(wording(error)))
            })?;
        let (mut members, mut starts) = (VecDeque::new(), vec![archive.directory_offset()]);
        let mut entries = archive.entries(&mut buffer);
        while let Some(entry) = entries.next_entry().map_err(damaged)? {
            if starts.len() > MEMBERS {
                let why = format!("the zip archive contains more than {MEMBERS} files");
                return Err(CompressionDamage::of_archive(why, false).into());
            }
            starts.push(entry.local_header_offset());
            // An entry whose name ends in `/` is a directory. It is skipped only if it has no content, because skipping
            // a file with such a name would lose mail.
            if entry.is_dir()
                && (entry.compressed_size_hint(), entry.uncompressed_size_hint()) == (0, 0)
            {
                continue;
            }
            let method = entry.compression_method();
            let is_stored = method == CompressionMethod::STORE;
            let flags = entry.flags();
            members.push_back(ZipEntry {
                place: entry.wayfinder(),
                start: entry.local_header_offset(),
                at: entry.central_directory_offset(),
                closed: match is_stored || method == CompressionMethod::DEFLATE {
                    _ if flags.is_encrypted() || flags.has_strong_encryption() => Some("encrypted"),
                    true => None,
                    false => Some("compressed with a method that embody cannot read"),
                },
                is_stored,
            });
        }
        // Some programs store only the lower 16 bits of the number of members, so only these bits are compared.
        if ((starts.len() as u64 - 1) ^ archive.entries_hint()) & 0xffff != 0 {
            return Err(damaged(
                "the number of files in the directory of the archive differs from the declared number",
            ));
        }
        starts.sort_unstable();
        let first = starts.first().copied().unwrap_or_default();
        let mut buffer = [0; 4];
        let mark = buffer.get_mut(..first.min(4) as usize).unwrap_or_default();
        file.read_exact_at(mark, 0)?;
        let around = if archive.end_offset() != length {
            Some("the file contains other data after the zip archive")
        } else if first > 4 || !MARKS.contains(&&*mark) {
            Some("the file contains other data before the zip archive")
        } else {
            None
        };
        Ok(Self {
            archive,
            members,
            starts,
            length,
            around,
        })
    }
}

fn name_at(file: &File, at: u64) -> io::Result<Vec<u8>> {
    let mut header = [0; 46];
    file.read_exact_at(&mut header, at)?;
    let length = usize::from(u16::from_le_bytes([header[28], header[29]]));
    // If a name is too long, only its end is kept, because the suffix is needed to recognise the type of the file.
    let from = length.saturating_sub(NAME);
    let mut name = vec![0; length - from];
    file.read_exact_at(&mut name, at + (header.len() + from) as u64)?;
    Ok(name)
}

impl Members for Zip {
    fn next(&mut self) -> io::Result<Option<Member>> {
        self.packed.check()?;
        self.body = None;
        let opened = match &mut self.opened {
            Some(opened) => opened,
            none => none.insert(ZipDirectory::read(&self.packed)?),
        };
        let Some(entry) = opened.members.pop_front() else {
            return match opened.around.take() {
                Some(why) => Err(CompressionDamage::of_archive(why, true).into()),
                None => Ok(None),
            };
        };
        let name = name_at(&self.packed.file, entry.at)?;
        let Ok(found) = opened.archive.get_entry(entry.place) else {
            let closed = Some(
                "damaged: the file is not at the position that the directory of the archive declares",
            );
            return Ok(Some(Member {
                name,
                closed,
                without_mail: None,
            }));
        };
        let (start, end) = found.compressed_data_range();
        let behind = opened.starts.partition_point(|&other| other <= entry.start);
        let (before, behind) = opened.starts.split_at(behind);
        let is_alone = !before.ends_with(&[entry.start; 2]);
        if !is_alone || behind.first().is_none_or(|&next| end > next) {
            return Err(damaged("files in the archive overlap"));
        }
        if entry.closed.is_none() {
            let range = RangeReader::new(PackedReader::new(&self.packed), start..end);
            let body: Box<dyn Read + Send> = if entry.is_stored {
                Box::new(range)
            } else {
                let range = BufReader::with_capacity(64 << 10, range);
                Box::new(DeflateDecoder::new(range))
            };
            self.body = Some(found.verifying_reader(body));
        }
        Ok(Some(Member {
            name,
            closed: entry.closed,
            without_mail: None,
        }))
    }
}

impl Read for Zip {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (Some(body), Some(opened)) = (&mut self.body, &self.opened) else {
            return Ok(0);
        };
        let read =
            uninterrupted(|| body.read(into)).map_err(|error| match error.raw_os_error() {
                // An error with an errno comes from the operating system. Without an errno, the data are damaged.
                Some(_) => error,
                None => CompressionDamage::of_member(format!("damaged: {error}")).into(),
            })?;
        self.expanded += read as u64;
        match exceeded(self.most, self.expanded, opened.length) {
            Some(why) => Err(CompressionDamage::of_archive(why, false).into()),
            None => Ok(read),
        }
    }
}
