//! WARC files that are compressed with zstd (the IIPC's "Zstandard Compression for WARC Files" 1.0).
//!
//! Each record is a frame. A skippable frame before the first record can contain a dictionary, which may be compressed itself.
//! The file is decompressed into a temporary file, from which the records are read.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};

use zstd::stream::read::Decoder;

use super::volume::unpacked;
use crate::platform::FileExt as _;

const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const DICTIONARY: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];

/// Maximum length of a dictionary, in bytes. Dictionaries in existing files have up to one megabyte.
const LONGEST: u64 = 16 << 20;
/// Largest accepted window, as a binary logarithm: 2^27 bytes (128 MiB), as in zstd(1). Larger windows would need too
/// much memory.
const WINDOW_LOG: u32 = 27;

/// Returns whether a file that begins with `start` is compressed with zstd.
pub(super) fn is_zstandard(start: &[u8]) -> bool {
    start.starts_with(&FRAME) || start.starts_with(&DICTIONARY)
}

/// Decompresses a file of this length as far as possible. Returns the temporary file, its length, and the error that ended the
/// decompression early.
///
/// # Errors
/// The dictionary cannot be read, or the temporary file cannot be written.
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
