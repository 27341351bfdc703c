//! One record in a file: a line of JSON, and its SHA-256 in a second line, so that a torn or damaged file is no record.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::disk::Key;

pub(super) const LONGEST: u64 = 64 << 10;

pub(super) fn written(record: &impl Serialize) -> Option<Vec<u8>> {
    let mut text = serde_json::to_vec(record).ok()?;
    let hash = Key::of(&text);
    text.extend_from_slice(format!("\n\"{hash}\"\n").as_bytes());
    (text.len() as u64 <= LONGEST).then_some(text)
}

pub(super) fn read<R: DeserializeOwned>(octets: &[u8]) -> Option<R> {
    let behind = octets.strip_suffix(b"\"\n")?;
    let (text, hash) = behind.split_at_checked(behind.len().checked_sub(66)?)?;
    let hash = std::str::from_utf8(hash.strip_prefix(b"\n\"")?).ok()?;
    if Key::parse(hash)? != Key::of(text) {
        return None;
    }
    serde_json::from_slice(text).ok()
}

pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_with_one_other_octet_is_none() {
        let record = vec!["https://www.example.org/".to_owned(), "é \" \\".to_owned()];
        let octets = written(&record).expect("it is short");
        assert_eq!(read::<Vec<String>>(&octets), Some(record));
        for at in 0..octets.len() {
            for bit in 0..8 {
                let mut other = octets.clone();
                other[at] ^= 1 << bit;
                assert_eq!(read::<Vec<String>>(&other), None, "octet {at}, bit {bit}");
            }
            assert_eq!(read::<Vec<String>>(&octets[..at]), None, "cut at {at}");
        }
        assert_eq!(read::<Vec<String>>(&[&octets[..], b"\n"].concat()), None);
        assert_eq!(read::<u64>(&octets), None);
    }

    #[test]
    fn a_record_that_is_too_long_is_not_written() {
        assert!(written(&"x".repeat(70_000)).is_none());
    }
}
