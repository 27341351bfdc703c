//! Copies the bytes of connections, after TLS was removed, to a [`Recorder`], which writes WARC files.
//!
//! ureq does the whole exchange in the thread of the caller. A thread-local variable therefore contains the exchange that is
//! being recorded, and each connection, even a reused one, passes its bytes to the exchange of its thread.

use std::cell::RefCell;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::exchange::{ExchangeRequest, FetchResponse, RecordedExchange};
use crate::engine::Content;
use crate::engine::report::Reason;

/// Longest wait for the next bytes of a response whose content is not used. Such a response is read to its end only to record
/// it.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) trait Recorder: Send + Sync + fmt::Debug {
    fn begin(&self, asked: &ExchangeRequest<'_>) -> Box<dyn ExchangeRecorder>;

    fn kept(&self, asked: &ExchangeRequest<'_>, answer: &FetchResponse)
    -> Option<RecordedExchange>;

    fn content(&self, retrieved: &Content, address: Option<IpAddr>) -> Option<Arc<str>>;
}

pub(crate) trait ExchangeRecorder {
    fn sent(&mut self, octets: &[u8]);

    fn received(&mut self, octets: &[u8]);

    fn closed(&mut self);

    fn connected(&mut self, address: Option<IpAddr>);

    fn finish(self: Box<Self>, why: Option<Reason>) -> Option<RecordedExchange>;
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

pub(super) struct Current {
    pub(super) connection: Option<u64>,
    pub(super) recording: Box<dyn ExchangeRecorder>,
    lingers: Option<Instant>,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

pub(super) fn with_current<T>(act: impl FnOnce(&mut Current) -> T) -> Option<T> {
    CURRENT.with(|current| current.borrow_mut().as_mut().map(act))
}

pub(super) fn is_recorded() -> bool {
    with_current(|_| ()).is_some()
}

pub(super) fn connected(address: Option<IpAddr>) -> u64 {
    let connection = NEXT.fetch_add(1, Ordering::Relaxed);
    with_current(|current| {
        current.connection = Some(connection);
        current.recording.connected(address);
    });
    connection
}

impl Current {
    pub(super) fn patience(&self) -> Option<ureq::unversioned::transport::time::Duration> {
        let left = self.lingers?.saturating_duration_since(Instant::now());
        Some(left.min(PATIENCE).max(Duration::from_millis(1)).into())
    }
}

/// The recording of one exchange in this thread. Dropping the value finishes the recording, so that an exchange that failed is
/// recorded, too.
pub(super) struct ExchangeTap;

impl ExchangeTap {
    pub(super) fn begin(recorder: Option<&dyn Recorder>, asked: &ExchangeRequest<'_>) -> Self {
        CURRENT.set(recorder.map(|recorder| Current {
            connection: None,
            recording: recorder.begin(asked),
            lingers: None,
        }));
        Self
    }

    /// Shortens the time limit of reads for the rest of this response: its content is not used but only recorded.
    pub(super) fn linger(&self, time: Duration) {
        with_current(|current| current.lingers = Instant::now().checked_add(time));
    }

    pub(super) fn forget(self) {
        CURRENT.set(None);
    }

    pub(super) fn finish(&self, why: Option<Reason>) -> Option<RecordedExchange> {
        CURRENT.take()?.recording.finish(why)
    }
}

impl Drop for ExchangeTap {
    fn drop(&mut self) {
        self.finish(None);
    }
}
