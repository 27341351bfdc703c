//! Builds WARC files from text, as another program would write them.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

/// Default date of captures.
pub(super) const DATE: &str = "2003-05-02T10:00:00Z";
/// Date field of a mail from that day.
pub(super) const MAIL_DATE: &str = "Date: Fri, 02 May 2003 12:00:00 +0000\n";
pub(super) const URL: &str = "http://gone.example/dir/a.txt";
/// Options for a run without requests.
pub(super) const OFFLINE: &str = "--fetch http,https,ftp --archive-first --offline --archive";

/// Returns a record with its digests. Each of the further fields must end with CRLF.
pub(super) fn record(kind: &str, url: &str, date: &str, more: &str, block: &[u8]) -> Vec<u8> {
    let id = &sha256(&[kind.as_bytes(), url.as_bytes(), date.as_bytes(), block].concat())[..12];
    let header = format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{id}>\r\nWARC-Date: {date}\r\n\
         WARC-Target-URI: {url}\r\nWARC-Block-Digest: sha256:{}\r\n{more}Content-Length: {}\r\n\r\n",
        sha256(block),
        block.len()
    );
    [header.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// Returns the bytes of a response.
pub(super) fn answer(status: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    [
        format!("HTTP/1.1 {status}\r\n{fields}\r\n").as_bytes(),
        body,
    ]
    .concat()
}

/// Returns the response with a text.
pub(super) fn text(body: &str) -> Vec<u8> {
    let fields = format!(
        "Content-Type: text/plain\r\nContent-Length: {}\r\n",
        body.len()
    );
    answer("200 OK", &fields, body.as_bytes())
}

pub(super) fn response(url: &str, date: &str, answer: &[u8]) -> Vec<u8> {
    record(
        "response",
        url,
        date,
        "Content-Type: application/http; msgtype=response\r\n",
        answer,
    )
}

/// Compresses each record as a gzip member.
pub(super) fn members(records: &[Vec<u8>]) -> Vec<u8> {
    records.iter().flat_map(|record| gzip(record)).collect()
}

pub(super) fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(octets).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn sha256(octets: &[u8]) -> String {
    let digits = Sha256::digest(octets);
    digits.iter().map(|octet| format!("{octet:02x}")).collect()
}
