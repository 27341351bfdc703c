//! Decompresses a file in memory.

use std::io::Read as _;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;

use super::failure::ViewError;

const GZIP: &[u8] = b"\x1f\x8b\x08";

/// Maximum size of a decompressed file, in bytes. A browser gives a page about this much memory.
const MOST: u64 = 1 << 30;
/// Maximum compression ratio of files that expand to more than [`UNJUDGED`] bytes. A small file that expands to
/// gigabytes is an attack.
const RATIO: u64 = 1000;
const UNJUDGED: u64 = 64 << 20;

/// Returns the decompressed content, and the file name without its compression suffix. The last value is a sentence
/// about damage, if the compressed data is incomplete.
pub(super) fn unpacked(
    bytes: Bytes,
    name: &str,
) -> Result<(Bytes, &str, Option<String>), ViewError> {
    if !bytes.starts_with(GZIP) {
        return Ok((bytes, name, None));
    }
    let most = MOST.min((bytes.len() as u64).saturating_mul(RATIO).max(UNJUDGED));
    let mut plain = Vec::new();
    let read = MultiGzDecoder::new(&*bytes)
        .take(most + 1)
        .read_to_end(&mut plain);
    if plain.len() as u64 > most {
        return Err(ViewError::new(
            "the compressed file is too large to open here; unpack the file first",
        ));
    }
    let damage = match read {
        Ok(_) => None,
        Err(_) if plain.is_empty() => {
            return Err(ViewError::new(
                "the compressed file is damaged; get another copy of the file",
            ));
        }
        Err(_) => {
            Some("the compressed file is damaged, so mails at its end may be missing".to_owned())
        }
    };
    let stem = match name
        .len()
        .checked_sub(3)
        .and_then(|at| name.split_at_checked(at))
    {
        Some((stem, suffix)) if suffix.eq_ignore_ascii_case(".gz") => stem,
        _ => name,
    };
    Ok((plain.into(), stem, damage))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn file_is_unpacked_and_loses_the_suffix() {
        let bytes = packed(b"Subject: x\n\n");
        let (plain, name, damage) = unpacked(bytes.into(), "a.eml.GZ").unwrap();
        assert_eq!(
            (&*plain, name, damage),
            (&b"Subject: x\n\n"[..], "a.eml", None)
        );
        let (plain, name, _) = unpacked(Bytes::from_static(b"Subject: x\n\n"), "a.gz").unwrap();
        assert_eq!((&*plain, name), (&b"Subject: x\n\n"[..], "a.gz"));
    }

    #[test]
    fn truncated_file_is_read_up_to_the_damage_which_is_reported() {
        let text: Vec<u8> = (0..50_000_u32).flat_map(|it| it.to_le_bytes()).collect();
        let mut bytes = packed(&text);
        bytes.truncate(bytes.len() / 2);
        let (plain, _, damage) = unpacked(bytes.into(), "a.gz").unwrap();
        assert!(!plain.is_empty() && plain.len() < text.len());
        assert!(damage.unwrap().contains("damaged"));
        assert!(unpacked(Bytes::from_static(b"\x1f\x8b\x08"), "a.gz").is_err());
    }

    #[test]
    fn small_file_that_expands_to_more_than_the_limit_is_refused() {
        // Zeros in two layers of gzip: 70 MB become about 70 KB, of which the ratio alone would allow all 70 MB.
        let zeros = vec![0; usize::try_from(UNJUDGED).unwrap() + (16 << 20)];
        let bytes = packed(&zeros);
        let is_beyond = (bytes.len() as u64).saturating_mul(RATIO) < zeros.len() as u64;
        assert_eq!(unpacked(bytes.into(), "a.gz").is_err(), is_beyond);
    }
}
