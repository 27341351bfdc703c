//! Finds the WARC files in a WACZ file (version 1.1.1): a ZIP archive with WARC files below `archive/`. Its index and its list
//! of pages are not read, because the records contain the same information.
//!
//! A WARC file that is stored uncompressed is read in place. One that is compressed with deflate is decompressed into a
//! temporary file.

use std::fs::File;
use std::io::{self, BufReader};
use std::sync::Arc;

use flate2::bufread::DeflateDecoder;
use rawzip::{
    CompressionMethod, RECOMMENDED_BUFFER_SIZE, RangeReader, ReaderAt, ZipArchive,
    ZipArchiveEntryWayfinder, ZipLocator,
};

use super::volume::{WarcVolume, is_warc, unpacked};
use crate::platform::FileExt as _;

/// Maximum number of files in a WACZ file, so that a hostile file cannot fill the memory. A WACZ contains a few dozen.
const MEMBERS: usize = 10_000;

/// The WACZ file. The WARC files in it are read through the same open file.
#[derive(Clone)]
struct WaczFile(Arc<File>);

impl ReaderAt for WaczFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(into, offset)
    }
}

struct WaczEntry {
    name: String,
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    is_closed: bool,
}

/// Returns the WARC files in a WACZ in the order of their names. A file that cannot be read is an error in the list.
///
/// # Errors
/// The file is not a ZIP archive, or is damaged.
pub(super) fn volumes(
    name: &str,
    file: &Arc<File>,
    length: u64,
) -> io::Result<Vec<Result<WarcVolume, String>>> {
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let archive = ZipLocator::new()
        .locate_in_reader(WaczFile(Arc::clone(file)), &mut buffer, length)
        .map_err(|(_, why)| damaged(&why))?;
    let mut entries = Vec::new();
    let mut directory = archive.entries(&mut buffer);
    let mut count = 0;
    while let Some(entry) = directory.next_entry().map_err(|why| damaged(&why))? {
        count += 1;
        if count > MEMBERS {
            return Err(damaged(&format!(
                "the WACZ archive contains more than {MEMBERS} files"
            )));
        }
        let path = String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned();
        if !path.starts_with("archive/") || !is_warc(&path) {
            continue;
        }
        let flags = entry.flags();
        entries.push(WaczEntry {
            name: format!("{name}: {path}"),
            place: entry.wayfinder(),
            method: entry.compression_method(),
            is_closed: flags.is_encrypted() || flags.has_strong_encryption(),
        });
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    let mut taken: Vec<(u64, u64)> = Vec::new();
    let mut volumes = Vec::new();
    for entry in entries {
        let place = range(&archive, &entry);
        let volume = place.and_then(|(start, end)| {
            // Overlapping entries are refused: otherwise a small file with thousands of entries for the same bytes would take
            // very long to read.
            let overlaps = |other: &(u64, u64)| start < other.1 && other.0 < end;
            if taken.iter().any(overlaps) {
                return Err("the file overlaps another file in the archive".to_owned());
            }
            taken.push((start, end));
            let read = volume(&entry, file, (start, end)).map_err(|why| why.to_string())?;
            read.ok_or_else(|| "the file is not a WARC file".to_owned())
        });
        volumes.push(volume.map_err(|why| format!("{}: {why}", entry.name)));
    }
    Ok(volumes)
}

fn range(archive: &ZipArchive<WaczFile>, entry: &WaczEntry) -> Result<(u64, u64), String> {
    if entry.is_closed {
        return Err("the file is encrypted".to_owned());
    }
    let found = archive
        .get_entry(entry.place)
        .map_err(|why| why.to_string())?;
    Ok(found.compressed_data_range())
}

fn volume(
    entry: &WaczEntry,
    file: &Arc<File>,
    (start, end): (u64, u64),
) -> io::Result<Option<WarcVolume>> {
    let name = entry.name.clone();
    if entry.method == CompressionMethod::STORE {
        return WarcVolume::of(name, Arc::clone(file), (start, end));
    }
    if entry.method != CompressionMethod::DEFLATE {
        return Err(io::Error::other(
            "the file is compressed with a method that embody cannot read",
        ));
    }
    let range = RangeReader::new(WaczFile(Arc::clone(file)), start..end);
    let inflated = DeflateDecoder::new(BufReader::new(range));
    let (unpacked, length, why) = unpacked(inflated, end - start)?;
    if let Some(why) = why {
        return Err(why);
    }
    WarcVolume::of(name, Arc::new(unpacked), (0, length))
}

fn damaged(why: &impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}
