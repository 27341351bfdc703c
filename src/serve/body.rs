//! The bodies of requests, which are read within limits, and the bodies of responses.

use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Read as _};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::{Body as _, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout_at};

use super::problem::Problem;

pub(super) type Response = hyper::Response<RequestBody>;

/// Time in which the body of a request must begin to arrive.
const GRACE: Duration = Duration::from_secs(20);

/// Minimum average speed of the body of a request, in bytes per second, after [`GRACE`]. A slower client occupies a place
/// that another client needs.
const SLOWEST: u64 = 16 << 10;

/// Maximum number of bytes of a refused body that are still read. A client that is sending cannot read the response
/// before.
const DRAINED: u64 = 1 << 20;

/// Number of bytes of a file that are read at a time.
const PIECE: u64 = 64 << 10;

/// A piece of a response body, produced by another thread.
#[derive(Debug)]
pub(super) enum Piece {
    Bytes(Bytes),
    /// End of a complete response. If the channel closes without it, the connection is cut off, so that the client
    /// notices that the response is incomplete.
    End,
    /// The request failed before the response began.
    Failed(Problem),
}

#[derive(Debug)]
pub(super) enum RequestBody {
    Memory(Bytes),
    File {
        file: File,
        left: u64,
    },
    Stream {
        first: Option<Bytes>,
        rest: Receiver<Piece>,
    },
    Done,
}

impl RequestBody {
    pub(super) fn of(bytes: impl Into<Bytes>) -> Self {
        Self::Memory(bytes.into())
    }
}

impl hyper::body::Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        let data = |bytes| Poll::Ready(Some(Ok(Frame::data(bytes))));
        match this {
            Self::Done => Poll::Ready(None),
            Self::Memory(bytes) => {
                let bytes = std::mem::take(bytes);
                *this = Self::Done;
                if bytes.is_empty() {
                    return Poll::Ready(None);
                }
                data(bytes)
            }
            Self::File { left: 0, .. } => Poll::Ready(None),
            Self::File { file, left } => {
                let length = PIECE.min(*left);
                let mut bytes = Vec::with_capacity(PIECE as usize);
                let read = file.take(length).read_to_end(&mut bytes);
                *left -= length;
                match read {
                    Ok(_) if bytes.len() as u64 == length => data(bytes.into()),
                    Ok(_) => Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into()))),
                    Err(error) => Poll::Ready(Some(Err(error))),
                }
            }
            Self::Stream { first, rest } => {
                if let Some(first) = first.take() {
                    return data(first);
                }
                match rest.poll_recv(context) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(Some(Piece::Bytes(bytes))) => data(bytes),
                    Poll::Ready(Some(Piece::End)) => {
                        *this = Self::Done;
                        Poll::Ready(None)
                    }
                    Poll::Ready(Some(Piece::Failed(_)) | None) => {
                        *this = Self::Done;
                        Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())))
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Done | Self::File { left: 0, .. } => true,
            Self::Memory(bytes) => bytes.is_empty(),
            Self::File { .. } | Self::Stream { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Done => SizeHint::with_exact(0),
            Self::Memory(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::File { left, .. } => SizeHint::with_exact(*left),
            Self::Stream { .. } => SizeHint::default(),
        }
    }
}

/// Returns the response that reports a problem.
pub(super) fn refusal(problem: &Problem) -> Response {
    let mut response = Response::new(RequestBody::of(problem.json()));
    *response.status_mut() = problem.status;
    let fields = response.headers_mut();
    let kind = HeaderValue::from_static("application/problem+json");
    fields.insert(CONTENT_TYPE, kind);
    if let Some((name, value)) = problem.field() {
        fields.insert(name, value);
    }
    response
}

/// Reads the pieces of a body, within a maximum size and a minimum speed.
pub(super) struct BodyReader<'b> {
    body: &'b mut Incoming,
    begun: Instant,
    pub(super) length: u64,
    at_most: u64,
    too_large: fn(u64) -> Problem,
}

impl<'b> BodyReader<'b> {
    /// `too_large` creates the error for a body of more than `at_most` bytes.
    pub(super) fn new(body: &'b mut Incoming, too_large: fn(u64) -> Problem, at_most: u64) -> Self {
        Self {
            body,
            begun: Instant::now(),
            length: 0,
            at_most,
            too_large,
        }
    }

    /// Returns the announced length, or 0 if it is unknown.
    pub(super) fn announced(&self) -> u64 {
        self.body.size_hint().lower()
    }

    /// Returns an error if the announced length is too large. No byte is read.
    pub(super) fn check_announced(&self) -> Result<(), Problem> {
        if self.announced() > self.at_most {
            return Err((self.too_large)(self.at_most));
        }
        Ok(())
    }

    /// Returns the next piece, or `None` at the end of a complete body.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let earned = Duration::from_secs(self.length / SLOWEST);
            let due = self.begun + GRACE + earned;
            let frame = poll_fn(|context| Pin::new(&mut *self.body).poll_frame(context));
            let bytes = match timeout_at(due, frame).await {
                Err(_) => {
                    let detail = "the body of the request arrives too slowly; send it at 16 KiB per second or faster";
                    return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, detail));
                }
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => {
                    let detail = format!(
                        "the body of the request is incomplete or malformed ({error}); send it again completely"
                    );
                    return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
                }
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => bytes,
                    // Trailers are ignored: the service uses none.
                    Err(_) => continue,
                },
            };
            self.length += bytes.len() as u64;
            if self.length > self.at_most {
                return Err((self.too_large)(self.at_most));
            }
            return Ok(Some(bytes));
        }
    }
}

/// Reads the rest of a refused body, up to [`DRAINED`] bytes. Returns whether the body ended.
pub(super) async fn drain(body: &mut Incoming) -> bool {
    if body.is_end_stream() {
        return true;
    }
    let mut reading = BodyReader::new(body, Problem::too_large_message, DRAINED);
    if reading.check_announced().is_err() {
        // The body is longer than the limit, so reading a part of it would only delay the response.
        return false;
    }
    loop {
        match reading.next().await {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}
