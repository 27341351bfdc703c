//! Evidence: what went over the wire for which mail, as WARC (ISO 28500:2017, WARC/1.1), which web archives keep and read.
//!
//! `header` knows the header of a record, for what writes and what reads; `exchange` takes what goes over a connection, `http` finds in
//! it where an answer ends, `write` makes records of it, `file` appends them, `mail` says which mail used what.
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
//! * What an archive answered stands under the URL of the archive, with its Memento-Datetime.
//! * WARC-Payload-Digest is over what stands behind the head of the answer, as it came, chunks included, as warcio and pywb have it. All
//!   digests are SHA-256 in hexadecimal digits.

mod header;

/// Stands in place of a password.
pub(crate) const MASKED: &str = "masked-by-embody";

/// What the URLs of mails begin with (RFC 2606: no server has this name); pywb replays what is beneath it.
pub(crate) const MAILS: &str = "http://mail.invalid/";

pub(crate) use header::{RecordHeader, RecordType, digest, names};
