//! Reads and writes one record in a file: a line of JSON, and its SHA-256 hash. A truncated file lacks a matching hash and is
//! treated as if it did not exist. The record of a URL is a [`CacheEntry`].

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::folder::CacheFolder;
use crate::engine::policy::Policy;
use crate::engine::report::Refusal;
use crate::fetch::{ExchangeRequest, RecordedExchange, ResponseSource};
use crate::key::Key;
use crate::platform::disk::layout::Area;

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

const MOST_ADDRESSES: usize = 64;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct CacheEntry {
    url: String,
    accept: String,
    trust: String,
    pub(super) answer: Option<KeptAnswer>,
    pub(super) gone: Option<AbsentEntry>,
}

/// A response in the cache: a response with the status 200 or 203, or a redirect.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct KeptAnswer {
    /// Time when the server sent the content or last confirmed it with the status 304, in seconds since 1970.
    pub(super) at: u64,
    /// Time of the original response, in seconds since 1970. A later 304 changes `at`, but not this time. `None` as
    /// long as both times are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first: Option<u64>,
    pub(super) status: u16,
    pub(super) asked: Vec<(String, String)>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<EntryBody>,
    pub(super) from: ResponseSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) recorded: Option<RecordedExchange>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct EntryBody {
    pub(super) sha256: String,
    pub(super) octets: u64,
}

/// A stored 404 or 410.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct AbsentEntry {
    pub(super) at: u64,
    pub(super) until: u64,
    pub(super) status: u16,
    pub(super) from: ResponseSource,
}

pub(super) fn from(source: &ResponseSource) -> Option<ResponseSource> {
    let is_known = match source {
        ResponseSource::Server(addresses) => (1..=MOST_ADDRESSES).contains(&addresses.len()),
        ResponseSource::Proxy => true,
        ResponseSource::Kept { .. } => false,
    };
    is_known.then(|| source.clone())
}

pub(super) fn judge(from: &ResponseSource, policy: &Policy) -> Result<(), Refusal> {
    match from {
        ResponseSource::Server(addresses) => addresses
            .iter()
            .try_for_each(|&it| policy.judge_address(it)),
        // Behind a proxy, the server's address is unknown and cannot be checked. The proxy is part of the entry's key,
        // so only a run with the same proxy uses the response.
        ResponseSource::Proxy | ResponseSource::Kept { .. } => Ok(()),
    }
}

impl CacheEntry {
    fn key(&self) -> Key {
        // The line feeds separate the values, and no value contains a line feed. So different values never produce the same
        // key.
        Key::of(format!("GET\n{}\n{}\n{}", self.url, self.accept, self.trust).as_bytes())
    }

    pub(super) fn load(folder: &CacheFolder, asked: &ExchangeRequest<'_>, trust: &str) -> Self {
        let empty = Self {
            url: asked.target.request_url(),
            accept: asked.accept.to_owned(),
            trust: trust.to_owned(),
            answer: None,
            gone: None,
        };
        folder
            .read(Area::Keys, &empty.key(), LONGEST)
            .and_then(|octets| read::<Self>(&octets))
            .filter(|entry| {
                let known = (&entry.url, &entry.accept, &entry.trust);
                known == (&empty.url, &empty.accept, &empty.trust)
            })
            .unwrap_or(empty)
    }

    pub(super) fn store(&self, folder: &CacheFolder) {
        let is_known = self.answer.is_some() || self.gone.is_some();
        match written(self).filter(|_| is_known) {
            Some(octets) => {
                folder.write(Area::Keys, &self.key(), &octets);
            }
            // If the new entry is too long to store, the old one is removed, because it is no longer valid.
            None => folder.remove(Area::Keys, &self.key()),
        }
    }
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
