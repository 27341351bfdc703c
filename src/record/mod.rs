//! Evidence: what went over the wire for which mail, as WARC (ISO 28500:2017, WARC/1.1), which web archives keep and read; and the
//! way back: `volume`, `wacz` and `zstandard` find the records of files, `captures` knows what each captured, `payload` reads its content.
//!
//! `header` knows the header of a record, for what writes and what reads. `recorder` takes what goes over connections, `http` finds in it where
//! an answer ends, `write` makes members of it, `file` appends them, `mail` says which mail used what.
//!
//! What stands in a file of ours:
//!
//! * One gzip member a record. A file is only appended to, a record at a time, so that a run that is killed leaves at most one torn
//!   record at the end, and never before it.
//! * `warcinfo` first, once for each process and file.
//! * `response` and `request`, each naming the other in WARC-Concurrent-To: the octets above TLS. Interim answers (1xx) and what stands
//!   behind the end of the message are left out. The request is that to the source, also through a proxy. Passwords are
//!   masked: of Authorization there is the scheme, and [`MASKED`].
//! * `revisit` (identical-payload-digest) where the same payload was written before by this process, with the head of the answer; and for
//!   what the cache gave, where it knows the record: WARC-Refers-To-Date is the time of that. What the cache had before there was a record is a
//!   `resource`.
//! * `metadata` of type `application/http; msgtype=response` for the answer to HEAD, which would replay as an empty one.
//! * `resource` for what came by ftp, from files and from a resolver.
//! * For each mail that used a record: a `resource` of each HTML text, under [`MAILS`], and one `metadata` that names them and the records.
//!   **A reader never answers a request for a URL beneath [`MAILS`]**: any mail may name one, and it would get another person's mail.
//!   What a server or a proxy says under such a URL is not recorded: it would stand in place of a mail.
//! * What an archive answered stands under the URL of the archive, with its Memento-Datetime.
//! * WARC-Payload-Digest is over what stands behind the head of the answer, as it came, chunks included, as warcio and pywb have it. All
//!   digests are SHA-256 in hexadecimal digits.

mod captures;
mod file;
// What reads records uses the rest of it.
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

/// Stands in place of a password.
pub(crate) const MASKED: &str = "masked-by-embody";

/// What the URLs of mails begin with (RFC 2606: no server has this name); pywb replays what is beneath it.
pub(crate) const MAILS: &str = "http://mail.invalid/";

/// Whether a URL, as a parser writes it, is beneath [`MAILS`]; by https as well, since replaying makes no difference.
fn is_of_mails(url: &str) -> bool {
    let behind = |url| str::split_once(url, "://").unwrap_or_default().1;
    url.starts_with("http") && behind(url).starts_with(behind(MAILS))
}

pub(crate) use captures::{Capture, Captures};
pub(crate) use file::RecordPlace;
pub(crate) use mail::Mailed;
pub(crate) use payload::Replayed;
#[cfg(any(test, feature = "internals"))]
pub use payload::contents;
pub(crate) use recorder::WarcRecorder;

/// The name of a new record: a random UUID (RFC 9562 §5.4).
fn identifier() -> String {
    let mut octets = [0; 16];
    let provider = rustls::crypto::ring::default_provider();
    if provider.secure_random.fill(&mut octets).is_err() {
        // It has to be another one, and no more.
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
    let number = u128::from_be_bytes(octets);
    let number = number & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let digits = format!("{number:032x}");
    let (first, rest) = digits.split_at(8);
    let (second, rest) = rest.split_at(4);
    let (third, rest) = rest.split_at(4);
    let (fourth, fifth) = rest.split_at(4);
    format!("urn:uuid:{first}-{second}-{third}-{fourth}-{fifth}")
}
