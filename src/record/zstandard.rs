//! WARC files that are compressed with zstd: a frame a record, and in front of them a dictionary in a skippable frame, itself compressed or
//! not (the IIPC's "Zstandard Compression for WARC Files" 1.0). They are read from a temporary file.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};

use zstd::stream::read::Decoder;

use super::volume::unpacked;
use crate::platform::FileExt as _;

const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const DICTIONARY: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];

/// Octets of a dictionary; those in use have up to one megabyte.
const LONGEST: u64 = 16 << 20;
/// The largest window that is decoded, as zstd(1) has it: 128 MiB.
const WINDOW_LOG: u32 = 27;

/// Whether a file begins so.
pub(super) fn is_zstandard(start: &[u8]) -> bool {
    start.starts_with(&FRAME) || start.starts_with(&DICTIONARY)
}

/// What is in a file of this length, as far as it can be read, its length, and why it goes no further.
///
/// # Errors
/// A dictionary that cannot be read, and a temporary file that cannot be written.
pub(super) fn records(file: &File, length: u64) -> io::Result<(File, u64, Option<io::Error>)> {
    let mut source = file.try_clone()?;
    let mut start = [0; 8];
    source.read_exact_at(&mut start, 0)?;
    let (magic, size) = start.split_at(4);
    let mut dictionary = Vec::new();
    if magic == DICTIONARY {
        let size = size
            .iter()
            .rev()
            .fold(0, |all, it| all << 8 | u64::from(*it));
        source.seek(SeekFrom::Start(8))?;
        (&source)
            .take(size.min(LONGEST))
            .read_to_end(&mut dictionary)?;
        if dictionary.len() as u64 != size {
            return Err(io::Error::other(
                "the dictionary of the compressed data is incomplete or too long",
            ));
        }
        if dictionary.starts_with(&FRAME) {
            let mut inside = Vec::new();
            let decoder = Decoder::new(dictionary.as_slice())?;
            decoder.take(LONGEST).read_to_end(&mut inside)?;
            dictionary = inside;
        }
    } else {
        source.rewind()?;
    }
    let mut decoder = Decoder::with_dictionary(BufReader::new(source), &dictionary)?;
    decoder.window_log_max(WINDOW_LOG)?;
    unpacked(decoder, length)
}
