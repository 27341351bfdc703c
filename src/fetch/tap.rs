//! What goes over connections, for a [`Recorder`]: the octets above TLS, of one exchange at a time. ureq works in the thread that
//! asks it, so the exchange of a thread is known to the connections that it uses, also to those that were kept from an earlier one.

use std::cell::RefCell;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::exchange::{Answer, Asked, Recorded};
use super::request::Retrieved;
use crate::report::Reason;

/// The longest pause between two pieces of content that is read for the record alone.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) trait Recorder: Send + Sync + fmt::Debug {
    fn begin(&self, asked: &Asked<'_>) -> Box<dyn Recording>;

    /// Notes an answer that a cache gave.
    fn kept(&self, asked: &Asked<'_>, answer: &Answer) -> Option<Recorded>;

    /// Notes content that came otherwise than by http.
    fn content(&self, retrieved: &Retrieved, address: Option<IpAddr>) -> Option<Arc<str>>;
}

/// One request and its answer while they go over the wire.
pub(crate) trait Recording {
    fn sent(&mut self, octets: &[u8]);

    fn received(&mut self, octets: &[u8]);

    /// Notes that the other side sends no more.
    fn closed(&mut self);

    /// Begins again on a new connection, to this address if it is known.
    fn connected(&mut self, address: Option<IpAddr>);

    /// Writes it down as far as it came. `why` says why no more was read.
    fn finish(self: Box<Self>, why: Option<Reason>) -> Option<Recorded>;
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

pub(super) struct Current {
    /// The connection that is listened to; none yet.
    pub(super) connection: Option<u64>,
    pub(super) recording: Box<dyn Recording>,
    /// Until when content is read for the record alone.
    lingers: Option<Instant>,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

pub(super) fn with_current<T>(act: impl FnOnce(&mut Current) -> T) -> Option<T> {
    CURRENT.with(|current| current.borrow_mut().as_mut().map(act))
}

pub(super) fn is_recorded() -> bool {
    with_current(|_| ()).is_some()
}

/// Listens to a new connection, which gets this number.
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

/// The exchange of this thread. What was not finished is written down when this goes.
pub(super) struct Listening(bool);

impl Listening {
    pub(super) fn begin(recorder: Option<&dyn Recorder>, asked: &Asked<'_>) -> Self {
        let current = recorder.map(|recorder| Current {
            connection: None,
            recording: recorder.begin(asked),
            lingers: None,
        });
        let is_on = current.is_some();
        CURRENT.set(current);
        Self(is_on)
    }

    pub(super) fn is_on(&self) -> bool {
        self.0
    }

    /// From now on content is read for the record alone: no pause between its pieces may be long.
    pub(super) fn linger(&self, time: Duration) {
        with_current(|current| current.lingers = Instant::now().checked_add(time));
    }

    pub(super) fn finish(mut self, why: Option<Reason>) -> Option<Recorded> {
        self.end(why)
    }

    pub(super) fn forget(mut self) {
        self.0 = false;
        CURRENT.set(None);
    }

    fn end(&mut self, why: Option<Reason>) -> Option<Recorded> {
        let current = std::mem::take(&mut self.0).then(|| CURRENT.take());
        current.flatten()?.recording.finish(why)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.end(None);
    }
}
