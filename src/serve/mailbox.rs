//! Requests with a whole mailbox. Several formats can be read only from a file, so the mailbox is spooled. The response
//! is streamed: only a few messages are in memory at a time.

use std::fs::File;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::UNIX_EPOCH;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::StatusCode;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use serde::Serialize;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::accept::accepts;
use super::backend::{MailboxMessage, MailboxSink, SharedSink};
use super::body::{BodyReader, Piece, RequestBody, Response};
use super::problem::Problem;
use super::shared::ServeState;
use crate::engine::report::rfc3339;
use crate::error::unpoisoned;
use crate::key::Key;
use crate::stop::Stop;

/// Size of the pieces of the response, in bytes.
const PIECE: usize = 64 << 10;

/// Maximum number of queued pieces: of the response while the client is slow, and of the request while the disk is
/// slow.
const WAITING: usize = 4;

/// Maximum length of the name of a directory in the archive, in bytes.
const LONGEST_NAME: usize = 200;

pub(super) async fn answer(
    shared: &Arc<ServeState>,
    parameters: Vec<(String, String)>,
    parts: &Parts,
    body: &mut Incoming,
) -> Result<Response, Problem> {
    shared.backend.check_mailbox(&parameters)?;
    let is_lines = accepts(parts, "application/x-ndjson");
    let mut reading = BodyReader::new(body, Problem::too_large_mailbox, shared.limits.max_mailbox);
    reading.check_announced()?;
    let taken = Arc::clone(&shared.mailboxes).try_acquire_owned();
    let place = taken.map_err(|_| {
        let detail = "other mailboxes are being read; send the request again later";
        Problem::passing(StatusCode::TOO_MANY_REQUESTS, 10, detail)
    })?;
    let (to_spool, spooled) = channel(WAITING);
    let (to_client, mut from_thread) = channel(WAITING);
    let sharing = Arc::clone(shared);
    let begun = thread::Builder::new()
        .name("mailbox".to_owned())
        .spawn(move || {
            let last = run(&sharing, &parameters, spooled, &to_client, is_lines);
            // Frees the slot before the last piece is sent, so that the client's next request finds a free one.
            drop(place);
            // An error means that the client is gone, and with it the need for a response.
            if let Some(last) = last {
                let _ = to_client.blocking_send(last);
            }
        });
    begun.map_err(|error| {
        let detail = format!("cannot start a thread ({error}); send the request again later");
        Problem::passing(StatusCode::SERVICE_UNAVAILABLE, 10, detail)
    })?;
    while let Some(bytes) = reading.next().await? {
        if to_spool.send(Some(bytes)).await.is_err() {
            break;
        }
    }
    let _ = to_spool.send(None).await;
    match from_thread.recv().await {
        Some(Piece::Bytes(first)) => {
            let mut response = Response::new(RequestBody::Stream {
                first: Some(first),
                rest: from_thread,
            });
            let kind = if is_lines {
                "application/x-ndjson"
            } else {
                "application/x-tar"
            };
            let fields = response.headers_mut();
            fields.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            Ok(response)
        }
        Some(Piece::Failed(problem)) => Err(problem),
        Some(Piece::End) | None => Err(Problem::defect()),
    }
}

/// Spools the mailbox, sends its messages, and returns the last piece of the response. An incomplete request is
/// dropped. If this returns [`Piece::Failed`] after the response has begun, the client gets a truncated response.
fn run(
    shared: &ServeState,
    parameters: &[(String, String)],
    spooled: Receiver<Option<Bytes>>,
    to_client: &Sender<Piece>,
    is_lines: bool,
) -> Option<Piece> {
    let done = catch_unwind(AssertUnwindSafe(|| {
        deliver(shared, parameters, spooled, to_client, is_lines)
    }));
    match done {
        Ok(Ok(is_delivered)) => is_delivered.then_some(Piece::End),
        Ok(Err(problem)) => Some(Piece::Failed(problem)),
        Err(_) => Some(Piece::Failed(Problem::defect())),
    }
}

/// Returns whether all messages and the report were sent. If not, the client is gone.
fn deliver(
    shared: &ServeState,
    parameters: &[(String, String)],
    mut spooled: Receiver<Option<Bytes>>,
    to_client: &Sender<Piece>,
    is_lines: bool,
) -> Result<bool, Problem> {
    let full = |error: io::Error| Problem::spool(&error);
    let folder = shared.backend.spool().map_err(full)?;
    let path = folder.path().join("mailbox");
    let mut file = File::create_new(&path).map_err(full)?;
    loop {
        match spooled.blocking_recv() {
            Some(Some(bytes)) => file.write_all(&bytes).map_err(full)?,
            Some(None) => break,
            None => return Ok(false),
        }
    }
    drop(file);
    let writer = Arc::new(Mutex::new(Writer::new(to_client.clone(), is_lines)));
    let sink: SharedSink = writer.clone();
    let report = shared
        .backend
        .mailbox(&path, parameters, &Stop::default(), sink)?;
    let mut writer = unpoisoned(writer.lock());
    shared.counters.delivered(writer.number);
    Ok(writer.finish(&report).is_ok())
}

/// Sends bytes to the client in pieces, and waits while the client is not reading.
struct MailboxChannel {
    sender: Sender<Piece>,
    waiting: Vec<u8>,
}

impl MailboxChannel {
    fn send(&mut self, piece: Piece) -> io::Result<()> {
        let sent = self.sender.blocking_send(piece);
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for MailboxChannel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(PIECE);
        self.waiting.extend_from_slice(&bytes[..length]);
        if self.waiting.len() >= PIECE {
            self.flush()?;
        }
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.send(Piece::Bytes(waiting.into()))
    }
}

enum Form {
    Tar(Box<tar::Builder<MailboxChannel>>),
    Lines(MailboxChannel),
}

/// Writes the messages of a mailbox as a tar archive, or as a JSON line for each message.
struct Writer {
    form: Form,
    number: u64,
}

#[derive(Serialize)]
struct Line<'m> {
    kind: &'static str,
    folder: &'m [String],
    flags: &'m [String],
    labels: &'m [String],
    date: Option<String>,
    sha256: String,
    bytes: usize,
    content: String,
}

impl Writer {
    fn new(sender: Sender<Piece>, is_lines: bool) -> Self {
        let channel = MailboxChannel {
            sender,
            waiting: Vec::new(),
        };
        let form = if is_lines {
            Form::Lines(channel)
        } else {
            Form::Tar(Box::new(tar::Builder::new(channel)))
        };
        Self { form, number: 0 }
    }

    fn finish(&mut self, report: &[u8]) -> io::Result<()> {
        let channel = match &mut self.form {
            Form::Lines(channel) => {
                channel.write_all(report)?;
                channel.write_all(b"\n")?;
                channel
            }
            Form::Tar(tar) => {
                append(tar, "report.json", 0, report)?;
                tar.finish()?;
                tar.get_mut()
            }
        };
        channel.flush()
    }
}

impl MailboxSink for Writer {
    fn message(&mut self, message: &MailboxMessage<'_>) -> io::Result<()> {
        self.number += 1;
        match &mut self.form {
            Form::Tar(tar) => {
                let folders = message.folder.iter().map(|name| safe(name) + "/");
                let name = format!("{}{:06}.eml", folders.collect::<String>(), self.number);
                let since = message
                    .date
                    .and_then(|date| date.duration_since(UNIX_EPOCH).ok());
                let seconds = since.map_or(0, |since| since.as_secs());
                append(tar, &name, seconds, message.content)
            }
            Form::Lines(channel) => {
                let line = Line {
                    kind: "message",
                    folder: message.folder,
                    flags: &message.flags,
                    labels: message.labels,
                    date: message.date.map(rfc3339),
                    sha256: Key::of(message.content).to_string(),
                    bytes: message.content.len(),
                    content: STANDARD.encode(message.content),
                };
                serde_json::to_writer(&mut *channel, &line)?;
                channel.write_all(b"\n")
            }
        }
    }
}

fn append(
    tar: &mut tar::Builder<MailboxChannel>,
    name: &str,
    seconds: u64,
    content: &[u8],
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o600);
    header.set_mtime(seconds);
    tar.append_data(&mut header, Path::new(name), content)
}

/// Returns the name of a folder as the name of a directory. Names come from mailboxes, so they are untrusted input.
fn safe(name: &str) -> String {
    let is_unsafe = |symbol: char| symbol.is_control() || matches!(symbol, '/' | '\\');
    let mut safe = name.replace(is_unsafe, "_");
    if safe.chars().all(|symbol| symbol == '.') {
        safe = "_".repeat(safe.len().max(1));
    }
    while safe.len() > LONGEST_NAME {
        safe.pop();
    }
    safe
}
