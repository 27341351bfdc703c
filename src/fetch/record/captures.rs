//! The index of captures in WARC files of any program, compressed or not, in WACZ files, and in directories of them.
//!
//! All records are scanned once. This reads the files completely, and needs 48 bytes of memory for each capture.
//! Content is read when it is needed. Captures are found by URL, as a URL parser writes it. If a URL has no capture, a
//! capture counts whose URL differs only in http or https, or in a leading `www.`. Captures of embody are excepted,
//! because its files contain exactly the URLs that were requested.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::Path;
use std::sync::Arc;

use mail_parser::DateTime;
use url::Url;

use super::header::{RecordHeader, RecordType, names};
use super::volume::{WarcVolume, is_warc};
use super::zstandard::{self, is_zstandard};
use super::{is_of_mails, wacz};
use crate::error::Error;
use crate::fetch::{is_redirect, is_success};
use crate::platform::FileExt as _;

/// Maximum number of captures in the index. This many need 200 MB of memory.
const MOST: usize = 4_000_000;
/// Maximum number of captures of a URL that are tried for one reference.
const TRIES: usize = 8;
/// Line in the `warcinfo` record that identifies embody as the program that wrote the file.
const OURS: &str = "software: embody";

/// The kind of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CaptureKind {
    /// An HTTP response.
    Response,
    /// A record with content but without the header of a response, such as a file from ftp.
    Resource,
    /// The payload equals that of an earlier response, and is only in that record.
    Revisit,
    /// A capture without usable content: it is truncated, has no valid status, or answers a method other than GET.
    Useless,
}

/// An entry of the index: the position of one capture in the files, and the values by which the capture is found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capture {
    /// Two hashes of the capture's URL. `loose` is that of the simplified form (without scheme and `www.`), `exact` that of the
    /// whole URL.
    loose: u64,
    exact: u64,
    /// Seconds since 1970.
    pub(crate) at: i64,
    pub(super) offset: u64,
    /// Hash of the payload digest in the record. Zero if there is no digest.
    digest: u64,
    pub(super) volume: u32,
    /// Status of the response. 0 if the protocol has no status, as for a file from ftp.
    pub(crate) status: u16,
    pub(super) kind: CaptureKind,
    /// Whether embody wrote the record. embody also records responses that it refused, so the content of such a record
    /// is checked again by the rules for responses of servers.
    pub(super) is_ours: bool,
}

impl Capture {
    /// Returns whether the capture may have content, or may lead to content by a redirect or as a revisit of another capture.
    pub(crate) fn is_useful(&self) -> bool {
        let is_answer = self.status == 0 || is_success(self.status) || is_redirect(self.status);
        let is_unchanged = self.status == 304 && self.kind == CaptureKind::Revisit;
        self.kind != CaptureKind::Useless && (is_answer || is_unchanged)
    }
}

/// The index of all captures in a set of files.
#[derive(Debug)]
pub(crate) struct Captures {
    pub(super) volumes: Vec<WarcVolume>,
    /// Entries of the index, sorted by URL and time.
    captures: Vec<Capture>,
    /// Indexes of the captures with their own payload, sorted by its digest. A revisit record finds its payload in them.
    by_digest: Vec<u32>,
    hashes: RandomState,
    /// Messages about files that could not be read completely. The captures before the error are in the index.
    trouble: Vec<String>,
}

impl Captures {
    /// Opens a file or a directory and scans all records. In a directory, the files with the suffix of a WARC or WACZ file are
    /// read. Symbolic links and subdirectories are skipped.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Usage`] if a file has another format, and [`Error::Interrupted`].
    pub(crate) fn read(path: &Path, is_stopped: &dyn Fn() -> bool) -> Result<Self, Error> {
        let mut captures = Self {
            volumes: Vec::new(),
            captures: Vec::new(),
            by_digest: Vec::new(),
            hashes: RandomState::new(),
            trouble: Vec::new(),
        };
        captures.add_files(path)?;
        captures.scan(is_stopped)?;
        let key = |it: &Capture| (it.loose, it.exact, it.at, it.volume, it.offset);
        captures.captures.sort_unstable_by_key(key);
        let all = captures.captures.iter().enumerate();
        let with_payload = all.filter(|(_, it)| {
            it.digest != 0 && matches!(it.kind, CaptureKind::Response | CaptureKind::Resource)
        });
        captures.by_digest = with_payload
            .filter_map(|(index, _)| u32::try_from(index).ok())
            .collect();
        let found = &captures.captures;
        let digest = |index: &u32| found.get(*index as usize).map(|it| it.digest);
        captures.by_digest.sort_by_key(digest);
        Ok(captures)
    }

    /// Checks whether the files can be opened and have the right format. Reads only the first bytes.
    ///
    /// # Errors
    /// The errors of [`Captures::read`].
    pub(crate) fn check(path: &Path) -> Result<(), Error> {
        let failed = Error::cannot_read(path.display());
        if fs::metadata(path).map_err(&failed)?.is_dir() {
            return fs::read_dir(path).map(|_| ()).map_err(failed);
        }
        let file = open(path).map_err(&failed)?;
        let mut start = [0; 5];
        let read = io::Read::read(&mut &file, &mut start).map_err(failed)?;
        let start = &start[..read];
        let is_known = [&b"\x1f\x8b"[..], b"WARC/", b"PK\x03\x04"];
        // A file shorter than the magic number may be truncated, so a matching prefix is enough.
        let is_one = |it: &&[u8]| start.starts_with(it) || it.starts_with(start);
        if is_known.iter().any(is_one) || is_zstandard(start) {
            Ok(())
        } else {
            Err(no_captures(path))
        }
    }

    /// Returns the messages about files that could not be read completely, as one sentence.
    pub(crate) fn trouble(&self) -> Option<String> {
        let first = self.trouble.first()?;
        Some(match self.trouble.len() {
            1 => first.clone(),
            count => format!("{first} (and {} more files have errors)", count - 1),
        })
    }

    /// Returns the captures to try for a URL: captures that may have content or lead to it, and whose time satisfies
    /// `holds`. The capture nearest to the time `at` is first. Of two equally near captures, the earlier is first. Also
    /// returns the nearest capture of any kind, for the message if all of them fail.
    pub(crate) fn near(
        &self,
        url: &str,
        at: i64,
        holds: impl Fn(i64) -> bool,
    ) -> (Vec<Capture>, Option<Capture>) {
        let Some((exact, loose)) = self.hashed(url) else {
            return (Vec::new(), None);
        };
        let all = &self.captures;
        let start = all.partition_point(|it| it.loose < loose);
        let end = all.partition_point(|it| it.loose <= loose);
        let similar = &all[start..end];
        let distance = |it: &Capture| (it.at.abs_diff(at), it.at, it.volume, it.offset);
        let nearest = |those: &mut dyn Iterator<Item = &Capture>| {
            let mut nearest: Vec<Capture> = Vec::new();
            for capture in those.filter(|it| it.is_useful() && holds(it.at)) {
                let place = nearest.partition_point(|it| distance(it) < distance(capture));
                if place < TRIES {
                    nearest.truncate(TRIES - 1);
                    nearest.insert(place, *capture);
                }
            }
            nearest
        };
        let same = || similar.iter().filter(|it| it.exact == exact);
        let mut found = nearest(&mut same());
        if found.is_empty() && !same().any(|it| it.is_ours) {
            found = nearest(&mut similar.iter().filter(|it| !it.is_ours));
        }
        (found, same().min_by_key(|it| distance(it)).copied())
    }

    /// Returns the captures that may have content, with their URLs.
    #[cfg(any(test, feature = "internals"))]
    pub(super) fn useful(&self) -> impl Iterator<Item = (&Capture, String)> {
        let useful = self.captures.iter().filter(|it| it.is_useful());
        useful.filter_map(|capture| {
            let volume = self.volumes.get(capture.volume as usize)?;
            let (header, _) = volume.record(capture.offset).ok()?;
            Some((capture, header.uri()?.to_owned()))
        })
    }

    /// Returns a capture whose payload has this digest according to its record.
    pub(super) fn with_digest(&self, digest: &str) -> Option<&Capture> {
        let digest = self.hashes.hash_one(digest);
        let at = |index: u32| self.captures.get(index as usize);
        let is_before = |index: &u32| at(*index).is_some_and(|it| it.digest < digest);
        let start = self.by_digest.partition_point(is_before);
        at(*self.by_digest.get(start)?).filter(|it| it.digest == digest)
    }

    fn add_files(&mut self, path: &Path) -> Result<(), Error> {
        let failed = |why| Error::cannot_read(path.display())(why);
        if !fs::metadata(path).map_err(failed)?.is_dir() {
            Self::check(path)?;
            return self.add(path).map_err(failed);
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let shown = name.to_string_lossy();
            // A symbolic link may lead to any file, so it is skipped.
            let is_file = entry.file_type().map_err(failed)?.is_file();
            if is_file && (is_warc(&shown) || shown.to_ascii_lowercase().ends_with(".wacz")) {
                names.push(name);
            }
        }
        names.sort();
        for name in names {
            let path = path.join(name);
            if let Err(why) = self.add(&path) {
                self.trouble.push(format!("{}: {why}", path.display()));
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path) -> io::Result<()> {
        let file = Arc::new(open(path)?);
        let length = file.metadata()?.len();
        let name = path.display().to_string();
        if let Some(volume) = WarcVolume::of(name.clone(), Arc::clone(&file), (0, length))? {
            self.volumes.push(volume);
            return Ok(());
        }
        let mut start = [0; 4];
        if file.read_at(&mut start, 0)? == 4 && is_zstandard(&start) {
            let (unpacked, length, why) = zstandard::records(&file, length)?;
            if let Some(why) = why {
                self.trouble.push(format!(
                    "{name}: {why}; only the records before this error are used"
                ));
            }
            let volume = WarcVolume::of(name.clone(), Arc::new(unpacked), (0, length))?;
            let none = || io::Error::other("the file contains no records");
            self.volumes.push(volume.ok_or_else(none)?);
            return Ok(());
        }
        for volume in wacz::volumes(&name, &file, length)? {
            match volume {
                Ok(volume) => self.volumes.push(volume),
                Err(why) => self.trouble.push(why),
            }
        }
        Ok(())
    }

    fn scan(&mut self, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        for (number, volume) in (0..).zip(std::mem::take(&mut self.volumes)) {
            let mut scan = volume.scan();
            let mut seen = ScanState::default();
            loop {
                if is_stopped() {
                    return Err(Error::Interrupted);
                }
                let offset = scan.at();
                match scan.next() {
                    Ok(None) => break,
                    Ok(Some(found)) => self.take(
                        number,
                        (found.offset, &found.header, found.start),
                        &mut seen,
                    ),
                    Err(why) => {
                        let name = &volume.name;
                        let why = format!(
                            "{name}: {why}, at byte {offset}; only the records before this error are used"
                        );
                        self.trouble.push(why);
                        break;
                    }
                }
                if self.captures.len() >= MOST {
                    let what = format!(
                        "{}: the archive files contain more than {MOST} captures; name fewer files",
                        volume.name
                    );
                    return Err(Error::Usage(what.into()));
                }
            }
            self.volumes.push(volume);
        }
        Ok(())
    }

    /// Adds a record to the index if it is a capture.
    fn take(
        &mut self,
        volume: u32,
        (offset, header, start): (u64, &RecordHeader, &[u8]),
        seen: &mut ScanState,
    ) {
        let kind = match header.kind() {
            Some(RecordType::Warcinfo) => {
                let lines = start.split(|octet| *octet == b'\n');
                seen.is_ours = lines.map(<[u8]>::trim_ascii).any(|line| {
                    line.get(..OURS.len())
                        .is_some_and(|it| it.eq_ignore_ascii_case(OURS.as_bytes()))
                });
                return;
            }
            Some(RecordType::Request) => return self.take_request(header, start, seen),
            Some(RecordType::Response) => CaptureKind::Response,
            Some(RecordType::Resource) => CaptureKind::Resource,
            Some(RecordType::Revisit) => CaptureKind::Revisit,
            _ => return,
        };
        let Some((exact, loose)) = header.uri().and_then(|uri| self.hashed(uri)) else {
            return;
        };
        let Some(at) = header.value(names::DATE).and_then(seconds) else {
            return;
        };
        let status = status(start);
        let is_answer = kind == CaptureKind::Response;
        let is_useless = header.value(names::TRUNCATED).is_some()
            || seen.asks_otherwise(header)
            || (is_answer && status.is_none());
        let digest = header.value(names::PAYLOAD);
        seen.last = Some((self.captures.len(), header.id().map(str::to_owned)));
        self.captures.push(Capture {
            loose,
            exact,
            at,
            offset,
            digest: digest.map_or(0, |digest| self.hashes.hash_one(digest)),
            volume,
            status: match kind {
                CaptureKind::Resource => 0,
                _ => status.unwrap_or(0),
            },
            kind: if is_useless {
                CaptureKind::Useless
            } else {
                kind
            },
            is_ours: seen.is_ours,
        });
    }

    /// Handles the record of a request, which is adjacent to its response. If the method is not GET, the response is
    /// not the content of the URL, and its capture is marked as useless.
    fn take_request(&mut self, header: &RecordHeader, start: &[u8], seen: &mut ScanState) {
        let is_other = !start.starts_with(b"GET ");
        let concurrent = header.value(names::CONCURRENT).map(unbracketed);
        if is_other
            && let Some((index, Some(id))) = &seen.last
            && concurrent == Some(id)
            && let Some(capture) = self.captures.get_mut(*index)
        {
            capture.kind = CaptureKind::Useless;
        }
        let id = header.id().map(str::to_owned);
        seen.other_request = is_other.then(|| (id, concurrent.map(str::to_owned)));
    }

    fn hashed(&self, url: &str) -> Option<(u64, u64)> {
        let (exact, loose) = keys(url)?;
        Some((self.hashes.hash_one(exact), self.hashes.hash_one(loose)))
    }
}

/// The state that a scan keeps between records: a request and its response are separate records.
#[derive(Default)]
struct ScanState {
    is_ours: bool,
    /// Index of the capture that was read last, and its record id. The next record may contain its request.
    last: Option<(usize, Option<String>)>,
    /// Last request that was not a GET: its record id, and the id of its response. That response is useless, because it
    /// is not the content of the URL.
    other_request: Option<(Option<String>, Option<String>)>,
}

impl ScanState {
    fn asks_otherwise(&self, answer: &RecordHeader) -> bool {
        let Some((request, named)) = &self.other_request else {
            return false;
        };
        let concurrent = answer.value(names::CONCURRENT).map(unbracketed);
        let is_same =
            |one: &Option<String>, other: Option<&str>| one.is_some() && one.as_deref() == other;
        is_same(request, concurrent) || is_same(named, answer.id())
    }
}

/// Returns the URL as a URL parser writes it, without fragment and password, and its simplified form without scheme and `www.`.
/// Returns `None` for a URL with a scheme other than http, https, ftp and file. Also returns `None` for a URL that begins with
/// [`MAILS`](super::MAILS), because such URLs name recorded mails: any mail could refer to one and get another person's mail.
pub(super) fn keys(url: &str) -> Option<(String, String)> {
    let mut url = Url::parse(url).ok()?;
    if !matches!(url.scheme(), "http" | "https" | "ftp" | "file") {
        return None;
    }
    url.set_fragment(None);
    let _ = url.set_password(None);
    let exact = String::from(url);
    if is_of_mails(&exact) {
        return None;
    }
    let behind = exact
        .strip_prefix("https://")
        .or_else(|| exact.strip_prefix("http://"));
    let loose = match behind {
        Some(behind) => behind.strip_prefix("www.").unwrap_or(behind).to_owned(),
        None => exact.clone(),
    };
    Some((exact, loose))
}

/// Opens a regular file. Opening a named pipe would block.
fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("the path does not lead to a regular file"));
    }
    File::open(path)
}

fn no_captures(path: &Path) -> Error {
    let what = format!(
        "{}: this is not a WARC file, a WACZ file or a directory of such files",
        path.display()
    );
    Error::Usage(what.into())
}

/// Returns the status of an HTTP response.
pub(super) fn status(block: &[u8]) -> Option<u16> {
    let line = block.split(|octet| *octet == b'\n').next()?;
    let mut words = line.strip_prefix(b"HTTP/")?.split(|octet| *octet == b' ');
    let digits = words.nth(1)?.trim_ascii();
    let status = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (100..1000).contains(&status).then_some(status)
}

fn unbracketed(value: &str) -> &str {
    let inner = value.strip_prefix('<').and_then(|it| it.strip_suffix('>'));
    inner.unwrap_or(value)
}

/// Parses a date (ISO 28500:2017 §5.4), from a year alone to fractions of a second, in UTC. Returns seconds since 1970.
pub(super) fn seconds(date: &str) -> Option<i64> {
    let mut digits: Vec<u8> = Vec::new();
    for octet in date.trim().bytes() {
        match octet {
            b'0'..=b'9' => digits.push(octet),
            b'-' | b':' | b'T' | b't' => {}
            b'.' | b'Z' | b'z' => break,
            _ => return None,
        }
    }
    // A shortened date, such as a year alone, means the beginning of that time: January, the first day, midnight.
    let rest = b"00000101000000".get(digits.len()..)?;
    if digits.len() < 4 || !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.extend_from_slice(rest);
    let part = |from: usize, to: usize| std::str::from_utf8(digits.get(from..to)?).ok();
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    let whole = format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z");
    let date = DateTime::parse_rfc3339(&whole).filter(DateTime::is_valid)?;
    Some(date.to_timestamp())
}
