//! Checks WARC files, and files with other content: reading them gives contents or an error, contents stay within their
//! limit, and bytes after a complete record do not change its content.

use std::fs;

use embody::internals::record::contents;

/// Maximum length of one content, in bytes.
const MOST: u64 = 1 << 16;

/// A record with known content.
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
