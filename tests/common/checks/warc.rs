//! Files of records, and of other octets: nothing in them makes reading fail otherwise than with an error, contents are within their limit, and what
//! stands behind a whole record takes nothing away from it.

use std::fs;

use embody::internals::record::contents;

/// Octets of one content at most.
const MOST: u64 = 1 << 16;

/// A record whose content is known.
pub const GOOD: &[u8] = b"WARC/1.1\r\nWARC-Type: resource\r\nWARC-Date: 1996-01-01T00:00:00Z\r\nWARC-Target-URI: http://good.example/\r\n\
    Content-Type: text/plain\r\nContent-Length: 4\r\n\r\ngood\r\n\r\n";

pub fn check(data: &[u8]) {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let read = |octets: &[u8]| {
        fs::write(file.path(), octets).expect("it is written");
        contents(file.path(), MOST).unwrap_or_default()
    };
    for (_, content) in read(data) {
        assert!(content.len() as u64 <= MOST);
    }
    let behind = read(&[GOOD, data].concat());
    let good = ("http://good.example/".to_owned(), b"good".to_vec());
    assert!(behind.contains(&good), "{behind:?}");
}
