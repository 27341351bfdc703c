//! Records of retrievals as evidence: the bytes of each request and response, and the mail that caused it. The format is WARC
//! (ISO 28500:2017, WARC/1.1), which web archives use. Such files are also read, as an archive.
//!
//! Writing: `recorder` gets the bytes of connections, `http` finds the end of a response in them, `write` compresses records,
//! `file` appends them, and `mail` records which mail used which responses. Reading: `volume`, `wacz` and `zstandard` find the
//! records in files, `captures` is the index of them, and `payload` extracts the content. `header` is used for both.
//!
//! Content of a file that embody writes:
//!
//! * Each record is a gzip member. Records are only appended, one at a time, so a run that is killed leaves at most one
//!   incomplete record, at the end.
//! * `warcinfo` is the first record of each process in a file.
//! * `response` and `request` contain the bytes above TLS, and refer to each other in WARC-Concurrent-To. Interim responses
//!   (1xx) and bytes after the end of the response are left out. With a proxy, the request is that to the source. Passwords are
//!   masked: an Authorization field contains its scheme and [`MASKED`].
//! * `revisit` (identical-payload-digest) replaces a `response` if this process has written the same payload before. It
//!   contains the header of the response. It is also written for a cached response whose record is known, with the time of that
//!   record in WARC-Refers-To-Date. A cached response without a record becomes a `resource`.
//! * `metadata` of the type `application/http; msgtype=response` is the response to HEAD. As a `response` it would be replayed
//!   as empty content.
//! * `resource` contains content from ftp, files and resolver programs.
//! * For each mail that used a record, there is a `resource` for each HTML text, with a URL below [`MAILS`], and a `metadata`
//!   record that lists these and the records. **A reader never returns a capture for a URL below [`MAILS`]**: any mail may
//!   contain such a URL and would get another person's mail. A response of a server or a proxy to such a URL is not recorded,
//!   because it would replace a mail.
//! * The response of a web archive has the URL of the archive, and keeps its Memento-Datetime field.
//! * WARC-Payload-Digest is the hash of all bytes after the header of the response, including the framing of chunks, as in
//!   warcio and pywb. All digests are SHA-256 in hexadecimal.

mod captures;
mod file;
// Some functions are used only by the code that reads records. Without it, the compiler would report them as unused.
#[allow(dead_code)]
mod header;
mod http;
mod mail;
mod payload;
mod recorder;
mod volume;
mod wacz;
mod write;
mod zstandard;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The text that replaces a password in a recorded request.
pub(crate) const MASKED: &str = "masked-by-embody";

/// Prefix of the URLs under which mails are recorded. No server can have this host name (RFC 2606), but the program pywb can
/// still replay URLs with this prefix.
pub(crate) const MAILS: &str = "http://mail.invalid/";

/// Returns whether a URL, as a URL parser writes it, begins with [`MAILS`]. The same URL with `https` also counts, because
/// programs that replay WARC files ignore the scheme.
fn is_of_mails(url: &str) -> bool {
    let behind = |url| str::split_once(url, "://").unwrap_or_default().1;
    url.starts_with("http") && behind(url).starts_with(behind(MAILS))
}

pub(crate) use captures::{Capture, Captures};
pub(crate) use file::RecordPlace;
pub(crate) use mail::RecordedMail;
pub(crate) use payload::ReplayResult;
#[cfg(any(test, feature = "internals"))]
pub use payload::contents;
pub(crate) use recorder::WarcRecorder;

/// Returns the id of a new record: a random UUID (RFC 9562 §5.4).
fn identifier() -> String {
    let mut octets = [0; 16];
    let provider = rustls::crypto::ring::default_provider();
    if provider.secure_random.fill(&mut octets).is_err() {
        // Without random numbers, the time and the process id make the id unique, which is sufficient.
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH);
        let mut hash = DefaultHasher::new();
        let text = (
            since.map_or(0, |since| since.as_nanos()),
            std::process::id(),
        );
        text.hash(&mut hash);
        octets = (u128::from(hash.finish()) << 64 | text.0).to_be_bytes();
    }
    let random = u128::from_be_bytes(octets);
    let number = random & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let digits = format!("{number:032x}");
    let (first, rest) = digits.split_at(8);
    let (second, rest) = rest.split_at(4);
    let (third, rest) = rest.split_at(4);
    let (fourth, fifth) = rest.split_at(4);
    format!("urn:uuid:{first}-{second}-{third}-{fourth}-{fifth}")
}
