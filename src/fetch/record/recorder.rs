//! Creates records of requests and responses, and appends them to a file. An error does not stop the run: responses that could
//! not be recorded are counted, and reported at the end.

use std::collections::HashMap;
use std::io::{self, Cursor, Read, Seek as _, SeekFrom, Write as _};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use tempfile::SpooledTempFile;
use ureq::http::header;

use super::file::{RecordFile, RecordPlace};
use super::header::{RecordHeader, RecordType, digest, names};
use super::http::{ResponseParser, masked};
use super::write::{HELD, RecordMember};
use super::{MASKED, identifier, is_of_mails};
use crate::engine::Content;
use crate::engine::report::Reason;
use crate::error::{Error, unpoisoned};
use crate::fetch::{
    ExchangeRecorder, ExchangeRequest, FetchMethod, FetchResponse, RecordedExchange, Recorder,
    USER_AGENT, is_success, text,
};

const RESPONSE: &str = "application/http; msgtype=response";
const REQUEST: &str = "application/http; msgtype=request";
pub(super) const FIELDS: &str = "application/warc-fields";

const SAME_PAYLOAD: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
const NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// Maximum number of payloads that are remembered, to write a short record if the same payload arrives again. Beyond this
/// number, all are forgotten, to limit the memory.
const PAYLOADS: usize = 100_000;

/// Maximum number of bytes that are recorded of one request.
const LONGEST_REQUEST: usize = 1 << 20;

/// Maximum number of URLs in the list of responses that could not be recorded.
const NAMED: usize = 1000;

/// Writes all requests and their responses to WARC files, as evidence.
#[derive(Clone, Debug)]
pub(crate) struct WarcRecorder(pub(super) Arc<RecorderParts>);

#[derive(Debug)]
pub(super) struct RecorderParts {
    place: RecordPlace,
    state: Mutex<RecorderState>,
}

#[derive(Default, Debug)]
struct RecorderState {
    file: Option<RecordFile>,
    /// For each payload digest, the record that contains the payload. Later responses with the same payload refer to
    /// it.
    payloads: HashMap<String, RecordedExchange>,
    /// Number of responses that could not be written. The next fields are the first error and the URLs of these responses.
    missing: u64,
    why: Option<String>,
    urls: Vec<String>,
}

impl WarcRecorder {
    /// Creates a recorder. The file is created when the first record is written.
    pub(crate) fn new(place: RecordPlace) -> Self {
        Self(Arc::new(RecorderParts {
            place,
            state: Mutex::default(),
        }))
    }

    /// Opens or creates the file now, so that an error is reported before the run starts.
    ///
    /// # Errors
    /// [`Error::Write`] if the file cannot be written, or ends with an incomplete record.
    pub(crate) fn open(&self) -> Result<(), Error> {
        let shared = &self.0;
        let path = shared.place.path().display();
        let begun = shared.state().append(&shared.place, Vec::new());
        begun.map_err(Error::cannot_write(format!("the record {path}")))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.place.path()
    }

    /// Returns a message about the responses that could not be recorded so far. Returns `None` if all were recorded.
    #[cfg(all(unix, feature = "milter"))]
    pub(crate) fn trouble(&self) -> Option<String> {
        let state = self.0.state();
        let why = state.why.as_ref()?;
        Some(self.lacks(state.missing, why))
    }

    fn lacks(&self, missing: u64, why: &str) -> String {
        let path = self.path().display();
        match missing {
            1 => format!("the record {path} is incomplete, 1 response is missing: {why}"),
            missing => {
                format!("the record {path} is incomplete, {missing} responses are missing: {why}")
            }
        }
    }

    /// Ends a run. If responses could not be recorded, writes a record about them, if possible, and returns a message about
    /// them.
    pub(crate) fn finish(&self) -> Option<String> {
        let (missing, why, urls) = {
            let mut state = self.0.state();
            let urls = std::mem::take(&mut state.urls);
            (state.missing, state.why.take()?, urls)
        };
        let mut text = format!("missing: {missing}\r\nwhy: {why}\r\n");
        for url in &urls {
            text.push_str(&format!("url: {}\r\n", line(url)));
        }
        let mut header = self.0.header(RecordType::Metadata, "urn:x-embody:missing");
        header.add(names::MEDIA_TYPE, FIELDS);
        // Failing to write this record is not an error: the returned message contains the same facts.
        let _ = self
            .0
            .member(header, text.as_bytes())
            .and_then(|member| self.0.state().append(&self.0.place, vec![member]));
        Some(self.lacks(missing, &why))
    }
}

impl RecorderParts {
    fn state(&self) -> MutexGuard<'_, RecorderState> {
        unpoisoned(self.state.lock())
    }

    pub(super) fn header(&self, kind: RecordType, url: &str) -> RecordHeader {
        let mut header = RecordHeader::new(kind, &identifier(), SystemTime::now());
        header.add(names::URI, url);
        header
    }

    /// Creates a record with a block in memory.
    pub(super) fn member(&self, header: RecordHeader, block: &[u8]) -> io::Result<RecordMember> {
        let mut header = header;
        header.add(names::BLOCK, &digest(&Sha256::digest(block)));
        RecordMember::new(&header, block.len() as u64, block, false)
    }

    /// Appends all records about a URL, or none. An error is counted. Returns whether the records were written.
    pub(super) fn write(&self, url: &str, members: io::Result<Vec<RecordMember>>) -> bool {
        let mut state = self.state();
        let written = members.and_then(|members| state.append(&self.place, members));
        if let Err(why) = &written {
            state.missing += 1;
            state.why.get_or_insert_with(|| why.to_string());
            if state.urls.len() < NAMED {
                state.urls.push(url.to_owned());
            }
        }
        written.is_ok()
    }

    /// Returns the record in which this process has already written the same payload.
    fn known(&self, payload: &str) -> Option<RecordedExchange> {
        self.state().payloads.get(payload).cloned()
    }

    fn remember(&self, recorded: &RecordedExchange) {
        let payloads = &mut self.state().payloads;
        if payloads.len() >= PAYLOADS {
            payloads.clear();
        }
        payloads.insert(recorded.payload.clone(), recorded.clone());
    }
}

impl RecorderState {
    fn append(&mut self, place: &RecordPlace, members: Vec<RecordMember>) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(RecordFile::open(place)?),
        };
        if let Some(next) = file.succeeded(place)? {
            *file = next;
        }
        let mut members = members;
        if !file.is_begun {
            members.insert(0, warcinfo(&file.path)?);
        }
        file.append(&mut members)?;
        file.is_begun = true;
        Ok(())
    }
}

/// Creates the record that describes the program and the conventions of the records after it.
fn warcinfo(path: &Path) -> io::Result<RecordMember> {
    let mut header = RecordHeader::new(RecordType::Warcinfo, &identifier(), SystemTime::now());
    if let Some(name) = path.file_name() {
        header.add(names::FILE_NAME, &name.to_string_lossy());
    }
    header.add(names::MEDIA_TYPE, FIELDS);
    let text = format!(
        "software: {USER_AGENT}\r\nformat: WARC File Format 1.1\r\n\
         conformsTo: https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n\
         description: what mail referred to, and the mail that did; in requests, passwords are {MASKED}\r\n"
    );
    header.add(names::BLOCK, &digest(&Sha256::digest(text.as_bytes())));
    RecordMember::new(&header, text.len() as u64, text.as_bytes(), false)
}

/// Replaces control characters, so that the text stays on one line.
pub(super) fn line(text: &str) -> String {
    text.replace(|letter: char| letter.is_control(), " ")
}

impl Recorder for WarcRecorder {
    fn begin(&self, asked: &ExchangeRequest<'_>) -> Box<dyn ExchangeRecorder> {
        Box::new(WireExchange {
            shared: Arc::clone(&self.0),
            url: asked.target.request_url(),
            is_head: asked.how == FetchMethod::Head,
            at: SystemTime::now(),
            address: None,
            sent: Vec::new(),
            answered: ResponseParser::new(asked.how == FetchMethod::Head),
            content: PayloadBuffer::new(),
            is_closed: false,
        })
    }

    fn kept(
        &self,
        asked: &ExchangeRequest<'_>,
        answer: &FetchResponse,
    ) -> Option<RecordedExchange> {
        let shared = &self.0;
        let url = asked.target.request_url();
        let Some(first) = &answer.recorded else {
            // A run without a recorder stored the response in the cache, so no record has its content. It is recorded
            // now.
            return (is_success(answer.status) && asked.how == FetchMethod::Whole)
                .then(|| {
                    let media_type = text(&answer.headers, &header::CONTENT_TYPE);
                    shared.resource(&url, media_type.as_deref(), &answer.body, None)
                })
                .flatten();
        };
        let mut header = shared.header(RecordType::Revisit, &url);
        refer(&mut header, first);
        header.add(names::PROFILE, SAME_PAYLOAD);
        header.add(names::MEDIA_TYPE, RESPONSE);
        // Only a status line: the header fields are in the earlier record, to which this one refers.
        let block = format!("HTTP/1.1 {} From the cache\r\n\r\n", answer.status);
        let recorded = recorded(&header, &url, &first.payload);
        let member = shared.member(header, block.as_bytes());
        let written = shared.write(&url, member.map(|member| vec![member]));
        written.then_some(recorded)
    }

    fn content(&self, retrieved: &Content, address: Option<IpAddr>) -> Option<Arc<str>> {
        let media_type = retrieved.media_type.as_deref();
        let url = &retrieved.origin.url;
        let recorded = self.0.resource(url, media_type, retrieved.bytes(), address);
        recorded.map(|recorded| recorded.id.into())
    }
}

impl RecorderParts {
    fn resource(
        &self,
        url: &str,
        media_type: Option<&str>,
        body: &[u8],
        address: Option<IpAddr>,
    ) -> Option<RecordedExchange> {
        if is_of_mails(url) {
            return None;
        }
        let mut header = self.header(RecordType::Resource, url);
        if let Some(address) = address {
            header.add(names::ADDRESS, &address.to_string());
        }
        let media_type = media_type.unwrap_or("application/octet-stream");
        header.add(names::MEDIA_TYPE, media_type);
        let payload = digest(&Sha256::digest(body));
        header.add(names::PAYLOAD, &payload);
        let recorded = recorded(&header, url, &payload);
        let member = self.member(header, body);
        let written = self.write(url, member.map(|member| vec![member]));
        written.then_some(recorded)
    }
}

fn recorded(header: &RecordHeader, url: &str, payload: &str) -> RecordedExchange {
    RecordedExchange {
        id: header.id().unwrap_or_default().to_owned(),
        url: url.to_owned(),
        date: header.value(names::DATE).unwrap_or_default().to_owned(),
        payload: payload.to_owned(),
    }
}

fn refer(header: &mut RecordHeader, first: &RecordedExchange) {
    header.add(names::REFERS_TO, &format!("<{}>", first.id));
    header.add(names::REFERS_TO_URI, &first.url);
    header.add(names::REFERS_TO_DATE, &first.date);
    header.add(names::PAYLOAD, &first.payload);
}

/// Content that is still arriving. It is in memory, or in a temporary file if it is long.
struct PayloadBuffer {
    octets: SpooledTempFile,
    length: u64,
    hash: Sha256,
    failure: Option<io::Error>,
}

impl PayloadBuffer {
    fn new() -> Self {
        Self {
            octets: SpooledTempFile::new(HELD),
            length: 0,
            hash: Sha256::new(),
            failure: None,
        }
    }

    fn push(&mut self, octets: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.octets.write_all(octets).err();
            self.hash.update(octets);
            self.length += octets.len() as u64;
        }
    }
}

/// An HTTP exchange that is being recorded.
struct WireExchange {
    shared: Arc<RecorderParts>,
    url: String,
    is_head: bool,
    at: SystemTime,
    address: Option<IpAddr>,
    sent: Vec<u8>,
    answered: ResponseParser,
    content: PayloadBuffer,
    is_closed: bool,
}

impl ExchangeRecorder for WireExchange {
    fn sent(&mut self, octets: &[u8]) {
        let room = LONGEST_REQUEST.saturating_sub(self.sent.len());
        let taken = octets.get(..octets.len().min(room));
        self.sent.extend_from_slice(taken.unwrap_or_default());
    }

    fn received(&mut self, octets: &[u8]) {
        let content = self.answered.take(octets);
        self.content.push(content);
    }

    fn closed(&mut self) {
        self.is_closed = true;
        self.answered.close();
    }

    fn connected(&mut self, address: Option<IpAddr>) {
        self.address = address;
        self.sent.clear();
        self.answered = ResponseParser::new(self.is_head);
        self.content = PayloadBuffer::new();
        self.is_closed = false;
    }

    fn finish(mut self: Box<Self>, why: Option<Reason>) -> Option<RecordedExchange> {
        if self.sent.is_empty() || is_of_mails(&self.url) {
            return None;
        }
        let shared = Arc::clone(&self.shared);
        let response = self.response(why);
        let (response, recorded) = match response.transpose() {
            Ok(response) => response.unzip(),
            Err(why) => {
                shared.write(&self.url, Err(why));
                return None;
            }
        };
        let id = recorded.as_ref().map(|(recorded, _)| recorded.id.as_str());
        let request = self.request(id);
        let members = request.map(|request| response.into_iter().chain([request]).collect());
        let is_written = shared.write(&self.url, members);
        let (recorded, is_first) = recorded.filter(|_| is_written)?;
        if is_first {
            shared.remember(&recorded);
        }
        Some(recorded)
    }
}

impl WireExchange {
    fn header(&self, kind: RecordType) -> RecordHeader {
        let mut header = RecordHeader::new(kind, &identifier(), self.at);
        header.add(names::URI, &self.url);
        if let Some(address) = self.address {
            header.add(names::ADDRESS, &address.to_string());
        }
        header
    }

    fn request(&self, response: Option<&str>) -> io::Result<RecordMember> {
        let mut header = self.header(RecordType::Request);
        header.add(names::MEDIA_TYPE, REQUEST);
        if let Some(id) = response {
            header.add(names::CONCURRENT, &format!("<{id}>"));
        }
        let (told, is_masked) = masked(&self.sent, MASKED);
        if is_masked {
            header.add("X-Embody-Masked", "Authorization");
        }
        self.shared.member(header, &told)
    }

    /// Creates the record of the response. Also returns its id, URL, date and payload, with which a later record can
    /// refer to it, and true if later records may refer to it. Returns `None` if no byte of a response arrived.
    #[allow(clippy::type_complexity)]
    fn response(
        &mut self,
        why: Option<Reason>,
    ) -> Option<io::Result<(RecordMember, (RecordedExchange, bool))>> {
        let answered = &self.answered;
        if answered.head.is_empty() {
            return None;
        }
        if let Some(failure) = self.content.failure.take() {
            return Some(Err(failure));
        }
        let status = answered.status();
        let payload = digest(&self.content.hash.clone().finalize());
        let is_whole = answered.is_whole();
        let has_payload = self.content.length > 0 && status.is_some_and(is_success) && is_whole;
        let first = has_payload.then(|| self.shared.known(&payload)).flatten();
        let kind = match (&first, status) {
            _ if self.is_head => RecordType::Metadata,
            (Some(_), _) | (None, Some(304)) => RecordType::Revisit,
            (None, _) => RecordType::Response,
        };
        let mut header = self.header(kind);
        header.add(names::MEDIA_TYPE, RESPONSE);
        let mut payload = payload;
        match (&first, kind) {
            (Some(first), _) => {
                refer(&mut header, first);
                header.add(names::PROFILE, SAME_PAYLOAD);
                payload.clone_from(&first.payload);
            }
            (None, RecordType::Revisit) => header.add(names::PROFILE, NOT_MODIFIED),
            (None, RecordType::Response) if answered.has_head() => {
                header.add(names::PAYLOAD, &payload);
            }
            (None, _) => {}
        }
        if !is_whole {
            header.add(names::TRUNCATED, truncated(why, self.is_closed));
        }
        let mut block = Sha256::new_with_prefix(&answered.head);
        let head = Cursor::new(&answered.head);
        let length = answered.head.len() as u64;
        let member = if first.is_some() {
            header.add(names::BLOCK, &digest(&block.finalize()));
            RecordMember::new(&header, length, head, false)
        } else {
            let content = &mut self.content;
            let hashed = content.octets.seek(SeekFrom::Start(0)).and_then(|_| {
                io::copy(&mut content.octets, &mut block)?;
                content.octets.seek(SeekFrom::Start(0))
            });
            if let Err(why) = hashed {
                return Some(Err(why));
            }
            header.add(names::BLOCK, &digest(&block.finalize()));
            let length = length + content.length;
            let is_packed = answered.is_packed();
            RecordMember::new(&header, length, head.chain(&mut content.octets), is_packed)
        };
        let is_first = has_payload && first.is_none() && !self.is_head;
        let recorded = recorded(&header, &self.url, &payload);
        Some(member.map(|member| (member, (recorded, is_first))))
    }
}

/// Returns the value of WARC-Truncated: why the response is incomplete (ISO 28500:2017 §5.13).
fn truncated(why: Option<Reason>, is_closed: bool) -> &'static str {
    match why {
        Some(Reason::TooLarge) => "length",
        Some(Reason::Timeout | Reason::Deadline) => "time",
        _ if is_closed => "disconnect",
        Some(Reason::ConnectionFailed) => "disconnect",
        _ => "unspecified",
    }
}
