//! Extracts the content of a capture: removes the header and the framing of chunks, decompresses, and verifies lengths and
//! digests.
//!
//! Incomplete content is refused: a truncated record, a wrong digest, a wrong length, chunks without an end, or a coding that
//! `fetch::coding` does not decode. WARC-Payload-Digest may include the framing of chunks or not, because programs differ, so
//! both are accepted.

use std::io::{self, Read};

use bytes::Bytes;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::captures::{Capture, CaptureKind, Captures, keys, seconds};
use super::header::{RecordHeader, names};
use crate::engine::policy::Policy;
use crate::engine::report::{Reason, Refusal};
use crate::fetch::{CodingMethod, field_text};
use crate::mime::picture_end;
use crate::span::split_once;

/// Maximum size, in bytes, of the parts of a block that are not content: the header and the framing of chunks.
const AROUND: u64 = 1 << 20;

/// The result of replaying a capture: its content, or the target of its redirect.
#[derive(Debug)]
pub(crate) enum ReplayResult {
    Content(Replay),
    /// Target of a redirect.
    Redirect(String),
}

/// The content of a capture, with its media type and the id of its record.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) media_type: Option<String>,
    pub(crate) body: Bytes,
    /// Id of the record.
    pub(crate) record: Option<String>,
}

/// A record in memory: its header, its block, and where the payload begins in the block.
struct HeldRecord {
    header: RecordHeader,
    block: Bytes,
    head: Head,
    /// Offset of the payload. `None` if the record is not an HTTP response.
    start: Option<usize>,
}

/// The header of an HTTP response.
#[derive(Default)]
struct Head {
    status: u16,
    fields: Vec<(String, Vec<u8>)>,
}

impl Captures {
    /// Returns the content of a capture of this URL, or the target of its redirect.
    ///
    /// # Errors
    /// [`Reason::NotArchived`] with the defect of the capture, and [`Reason::TooLarge`].
    pub(crate) fn replay(
        &self,
        capture: &Capture,
        url: &str,
        policy: &Policy,
    ) -> Result<ReplayResult, Refusal> {
        let held = self.held(capture, policy)?;
        let same = |uri: &str| {
            let (one, other) = (keys(uri), keys(url));
            one.zip(other).is_some_and(|(one, other)| one.1 == other.1)
        };
        if !held.header.uri().is_some_and(same) {
            return Err(refused("the file was changed after embody read its index"));
        }
        let record = held.header.id().map(str::to_owned);
        if matches!(held.head.status, 301 | 302 | 303 | 307 | 308) {
            let location = held
                .head
                .text("location")
                .ok_or_else(|| refused("the capture is a redirect without a Location field"))?;
            return Ok(ReplayResult::Redirect(location));
        }
        let own_type = held.head.text("content-type");
        let with_content = match capture.kind {
            CaptureKind::Revisit => self.meant(&held, policy)?,
            _ => held,
        };
        let media_type = match with_content.start {
            Some(_) => own_type.or_else(|| with_content.head.text("content-type")),
            // The record is a `resource` from ftp or from a file. The source declared no media type, so the media type in the
            // record is not used.
            None if !url.starts_with("http") => None,
            None => with_content
                .header
                .value(names::MEDIA_TYPE)
                .map(str::to_owned),
        };
        let body = with_content.content(capture.is_ours, policy)?;
        policy.judge_size(body.len() as u64)?;
        Ok(ReplayResult::Content(Replay {
            media_type,
            body,
            record,
        }))
    }

    fn held(&self, capture: &Capture, policy: &Policy) -> Result<HeldRecord, Refusal> {
        let volume = self
            .volumes
            .get(capture.volume as usize)
            .ok_or_else(|| refused("the file with the capture cannot be found"))?;
        let read = |why: io::Error| refused(&format!("{}: {why}", volume.name));
        let (header, block) = volume.record(capture.offset).map_err(read)?;
        let length = header.length().unwrap_or(u64::MAX);
        let most = policy.limits.body.saturating_mul(2).saturating_add(AROUND);
        if length > most {
            policy.judge_size(length)?;
        }
        let mut octets = Vec::new();
        block.take(most).read_to_end(&mut octets).map_err(read)?;
        if octets.len() as u64 != length {
            return Err(refused(
                "the record of the capture is shorter than the length in its header",
            ));
        }
        check(&header, names::BLOCK, &octets)?;
        let is_answer = octets.starts_with(b"HTTP/") && capture.kind != CaptureKind::Resource;
        let (head, start) = if is_answer {
            let (head, start) = Head::read(&octets);
            (head, Some(start))
        } else {
            (Head::default(), None)
        };
        Ok(HeldRecord {
            header,
            block: octets.into(),
            head,
            start,
        })
    }

    /// Returns the record with the payload of a revisit record: the record with the URL and time that the revisit names, or a
    /// record with the same digest.
    fn meant(&self, revisit: &HeldRecord, policy: &Policy) -> Result<HeldRecord, Refusal> {
        let header = &revisit.header;
        let lost = || refused("the capture refers to a record that is not in these files");
        let digest = header.value(names::PAYLOAD);
        let uri = header
            .value(names::REFERS_TO_URI)
            .map(|uri| uri.trim_matches(['<', '>']))
            .or_else(|| header.uri());
        let date = header.value(names::REFERS_TO_DATE).and_then(seconds);
        let by_date = uri.zip(date).and_then(|(uri, date)| {
            let is_meant =
                |it: &&Capture| matches!(it.kind, CaptureKind::Response | CaptureKind::Resource);
            let (near, _) = self.near(uri, date, |at| at == date);
            near.iter().find(is_meant).copied()
        });
        let by_digest = || digest.and_then(|digest| self.with_digest(digest)).copied();
        let capture = by_date.or_else(by_digest).ok_or_else(lost)?;
        let held = self.held(&capture, policy)?;
        if let Some(digest) = digest {
            held.check_payload(digest)?;
        }
        Ok(held)
    }
}

impl HeldRecord {
    fn payload(&self) -> Bytes {
        self.block.slice(self.start.unwrap_or(0)..)
    }

    /// Returns the payload. Returns an error if its digest is not the one in the record.
    fn checked(&self) -> Result<Bytes, Refusal> {
        if let Some(digest) = self.header.value(names::PAYLOAD) {
            self.check_payload(digest)?;
        }
        Ok(self.payload())
    }

    fn check_payload(&self, digest: &str) -> Result<(), Refusal> {
        let payload = self.payload();
        match judged(digest, &payload) {
            Some(false) => {
                let chunks = self.is_chunked().unwrap_or(false);
                let within = chunks.then(|| unchunked(&payload)).and_then(Result::ok);
                match within.and_then(|within| judged(digest, &within)) {
                    Some(true) => Ok(()),
                    _ => Err(wrong_digest(names::PAYLOAD)),
                }
            }
            Some(true) | None => Ok(()),
        }
    }

    /// Returns the content. embody also records responses that it refused, for example truncated ones, so in its own
    /// records the end of the content must be marked, as in a response of a server.
    fn content(&self, is_ours: bool, policy: &Policy) -> Result<Bytes, Refusal> {
        let payload = self.checked()?;
        if self.start.is_none() {
            return Ok(payload);
        }
        let mut is_marked = true;
        let body = if self.is_chunked()? {
            Bytes::from(unchunked(&payload)?)
        } else {
            let length = self.head.text("content-length");
            let said = length.map(|length| length.parse::<u64>());
            match said {
                Some(Ok(said)) if said == payload.len() as u64 => {}
                Some(_) => {
                    return Err(refused(
                        "the length of the captured content differs from its Content-Length field",
                    ));
                }
                None => is_marked = !is_ours && !payload.is_empty(),
            }
            payload
        };
        let coding =
            CodingMethod::of(self.head.all("content-encoding")).map_err(|why| refused(&why))?;
        let content = if coding.is_compressed() {
            inflated(coding.decoder(&*body), policy)?
        } else {
            body
        };
        let media_type = self.head.all("content-type").next();
        coding
            .check(&content, media_type)
            .map_err(|why| refused(&why))?;
        if !is_marked && !picture_end::ends_itself(&content) {
            return Err(refused(
                "the record of the capture does not show where the content ends",
            ));
        }
        Ok(content)
    }

    fn is_chunked(&self) -> Result<bool, Refusal> {
        let mut codings = self.head.all("transfer-encoding");
        let coding = codings.next().unwrap_or_default().trim_ascii();
        match (codings.next(), coding.to_ascii_lowercase().as_slice()) {
            (None, b"" | b"identity") => Ok(false),
            (None, b"chunked") => Ok(true),
            _ => Err(refused(
                "the capture has a Transfer-Encoding other than chunked",
            )),
        }
    }
}

impl Head {
    /// Parses the header of a response. Returns it, and the offset of the payload.
    fn read(block: &[u8]) -> (Self, usize) {
        let mut head = Self {
            status: super::captures::status(block).unwrap_or(0),
            fields: Vec::new(),
        };
        let mut start = 0;
        for (number, line) in block.split_inclusive(|octet| *octet == b'\n').enumerate() {
            start += line.len();
            let line = line.trim_ascii_end();
            if line.is_empty() {
                break;
            }
            let field = split_once(b':', line);
            match (line.first(), head.fields.last_mut(), field) {
                _ if number == 0 => {}
                (Some(b' ' | b'\t'), Some((_, value)), _) => {
                    value.push(b' ');
                    value.extend_from_slice(line.trim_ascii());
                }
                (_, _, Some((name, value))) => {
                    let name = String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase();
                    head.fields.push((name, value.trim_ascii().to_owned()));
                }
                _ => {}
            }
        }
        (head, start)
    }

    fn all<'h>(&'h self, name: &'h str) -> impl Iterator<Item = &'h [u8]> {
        let fields = self.fields.iter().filter(move |(known, _)| known == name);
        fields.map(|(_, value)| value.as_slice())
    }

    /// Returns the value of the first field with this name, if it is not empty.
    fn text(&self, name: &str) -> Option<String> {
        let text = field_text(self.all(name).next()?);
        let value = text.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }
}

/// Removes the framing of chunks (RFC 9112 §7.1). Returns an error if the last chunk is missing.
fn unchunked(chunks: &[u8]) -> Result<Vec<u8>, Refusal> {
    let torn = || refused("the chunks of the captured response are damaged or incomplete");
    let mut content = Vec::new();
    let mut rest = chunks;
    loop {
        let end = memchr::memchr(b'\n', rest).ok_or_else(torn)?;
        let (line, behind) = rest.split_at(end + 1);
        let size_field = line
            .split(|octet| *octet == b';')
            .next()
            .unwrap_or_default()
            .trim_ascii();
        let is_hex =
            |digits: &&str| !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_hexdigit());
        let digits = std::str::from_utf8(size_field)
            .ok()
            .filter(is_hex)
            .ok_or_else(torn)?;
        let size = usize::from_str_radix(digits, 16).map_err(|_| torn())?;
        if size == 0 {
            // Trailer fields may follow the last chunk. They are ignored, because the content is complete.
            return Ok(content);
        }
        let (chunk, behind) = behind.split_at_checked(size).ok_or_else(torn)?;
        content.extend_from_slice(chunk);
        let line_end = behind
            .strip_prefix(b"\r\n")
            .or_else(|| behind.strip_prefix(b"\n"));
        rest = line_end.ok_or_else(torn)?;
    }
}

fn inflated(source: impl Read, policy: &Policy) -> Result<Bytes, Refusal> {
    let mut content = Vec::new();
    let most = policy.limits.body.saturating_add(1);
    source
        .take(most)
        .read_to_end(&mut content)
        .map_err(|why| refused(&format!("the captured content is damaged: {why}")))?;
    policy.judge_size(content.len() as u64)?;
    Ok(content.into())
}

/// Compares a digest field with the hash of the bytes. A field with an unsupported hash is ignored.
fn check(header: &RecordHeader, name: &'static str, octets: &[u8]) -> Result<(), Refusal> {
    let said = header.value(name).and_then(|digest| judged(digest, octets));
    match said {
        Some(false) => Err(wrong_digest(name)),
        Some(true) | None => Ok(()),
    }
}

fn wrong_digest(name: &str) -> Refusal {
    refused(&format!(
        "the content of the capture does not match its {name}"
    ))
}

/// Returns whether the bytes have this digest (`sha1:BASE32`, `sha256:HEX`), or `None` if its hash is not supported.
fn judged(digest: &str, octets: &[u8]) -> Option<bool> {
    let (name, value) = digest.split_once(':')?;
    let hash = match name.trim().to_ascii_lowercase().replace('-', "").as_str() {
        "md5" => Md5::digest(octets).to_vec(),
        "sha1" => Sha1::digest(octets).to_vec(),
        "sha256" => Sha256::digest(octets).to_vec(),
        "sha512" => Sha512::digest(octets).to_vec(),
        _ => return None,
    };
    let value = value.trim();
    let digits: String = hash.iter().map(|octet| format!("{octet:02x}")).collect();
    let is_base32 = value
        .trim_end_matches('=')
        .eq_ignore_ascii_case(&base32(&hash));
    Some(is_base32 || value.eq_ignore_ascii_case(&digits))
}

/// Encodes in base32 without padding (RFC 4648 §6).
fn base32(octets: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bit = |at: usize| {
        let octet = octets.get(at / 8).copied().unwrap_or(0);
        usize::from(octet >> (7 - at % 8) & 1)
    };
    let letter = |at: usize| (at..at + 5).fold(0, |value, at| value << 1 | bit(at));
    let letters = (0..octets.len() * 8).step_by(5).map(letter);
    letters
        .filter_map(|value| LETTERS.get(value).map(|it| char::from(*it)))
        .collect()
}

fn refused(why: &str) -> Refusal {
    Refusal::lasting(Reason::NotArchived, why.to_owned())
}

/// Returns all contents in a file, with their URLs, for the checks in `tests/common`.
///
/// # Errors
/// The errors of [`Captures::read`].
#[cfg(any(test, feature = "internals"))]
pub fn contents(
    path: &std::path::Path,
    most: u64,
) -> Result<Vec<(String, Vec<u8>)>, crate::error::Error> {
    let captures = Captures::read(path, &|| false)?;
    let mut policy = Policy::default();
    policy.limits.body = most;
    let contents = captures.useful().filter_map(|(capture, url)| {
        match captures.replay(capture, &url, &policy) {
            Ok(ReplayResult::Content(replay)) => Some((url, replay.body.to_vec())),
            _ => None,
        }
    });
    Ok(contents.collect())
}
