//! What goes over connections, for a [`Recorder`]: the octets above TLS, of one exchange at a time.
//!
//! ureq works in the thread that asks it, so the exchange of a thread is known to the connections that it uses, also to those that
//! were kept from an earlier one. [`Tap`] stands in front of all that connects, also of the proxy: it sees requests as the source gets
//! them, and no Proxy-Authorization. The connection to a proxy on which CONNECT is sent passes here, too; it gives way to the
//! one within it, which is made later.
//!
//! A thread that records nothing has connections that are handed through as they are.

use std::cell::RefCell;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};

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

struct Current {
    /// The connection that is listened to; none yet.
    connection: Option<u64>,
    recording: Box<dyn Recording>,
    /// Until when content is read for the record alone.
    lingers: Option<Instant>,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

fn with_current<T>(act: impl FnOnce(&mut Current) -> T) -> Option<T> {
    CURRENT.with(|current| current.borrow_mut().as_mut().map(act))
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

    /// Nothing of it is written down.
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

/// A connector whose connections tell what goes over them.
#[derive(Debug)]
pub(super) struct Tap<C>(pub(super) C);

impl<C> Connector for Tap<C>
where
    C: Connector<Out = Box<dyn Transport>>,
{
    type Out = Box<dyn Transport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<()>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let is_recorded = CURRENT.with(|current| current.borrow().is_some());
        if !is_recorded {
            return self.0.connect(details, chained);
        }
        let (transport, address) = match details.config.proxy() {
            Some(_) => (self.0.connect(details, chained)?, None),
            None => self.one_by_one(details)?,
        };
        let connection = NEXT.fetch_add(1, Ordering::Relaxed);
        with_current(|current| {
            current.connection = Some(connection);
            current.recording.connected(address);
        });
        Ok(transport.map(|transport| {
            Box::new(Tapped {
                transport,
                connection,
                address,
            }) as Box<dyn Transport>
        }))
    }
}

impl<C> Tap<C>
where
    C: Connector<Out = Box<dyn Transport>>,
{
    /// Connects to one address after the other, so that it is known which of them it is. Each has half of what the ones before it left,
    /// the last one all, much as ureq has it.
    #[allow(clippy::type_complexity)]
    fn one_by_one(
        &self,
        details: &ConnectionDetails<'_>,
    ) -> Result<(Option<Box<dyn Transport>>, Option<IpAddr>), ureq::Error> {
        let addresses: Vec<_> = details.addrs.iter().copied().collect();
        let begun = Instant::now();
        for (tried, address) in addresses.iter().enumerate() {
            let mut one = details.resolver.empty();
            one.push(*address);
            let mut timeout = details.timeout;
            let is_last = tried + 1 == addresses.len();
            if !timeout.after.is_not_happening() {
                let left = timeout.after.saturating_sub(begun.elapsed());
                let part = if is_last { left } else { left / 2 };
                timeout.after = part.max(Duration::from_millis(10)).into();
            }
            let connected = self.0.connect(
                &ConnectionDetails {
                    uri: details.uri,
                    addrs: one,
                    config: details.config,
                    request_level: details.request_level,
                    resolver: details.resolver,
                    now: details.now,
                    timeout,
                    current_time: details.current_time.clone(),
                    run_connector: details.run_connector.clone(),
                    register_shutdown: details.register_shutdown.clone(),
                },
                None,
            );
            match connected {
                Err(_) if !is_last => {}
                connected => return connected.map(|transport| (transport, Some(address.ip()))),
            }
        }
        self.0
            .connect(details, None)
            .map(|transport| (transport, None))
    }
}

struct Tapped {
    transport: Box<dyn Transport>,
    connection: u64,
    address: Option<IpAddr>,
}

impl Tapped {
    fn if_heard(&mut self, act: impl FnOnce(&mut Current, &mut dyn Transport)) {
        with_current(|current| {
            if current.connection == Some(self.connection) {
                act(current, &mut *self.transport);
            }
        });
    }
}

impl Transport for Tapped {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.transport.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        let (connection, address) = (self.connection, self.address);
        with_current(|current| {
            // A connection that was kept: nothing is new on it yet.
            if current.connection.is_none() {
                current.connection = Some(connection);
                current.recording.connected(address);
                let early = self.transport.buffers().input();
                current.recording.received(early);
            }
        });
        self.if_heard(|current, transport| {
            let sent = transport.buffers().output().get(..amount);
            current.recording.sent(sent.unwrap_or_default());
        });
        self.transport.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        let mut timeout = timeout;
        self.if_heard(|current, _| {
            if let Some(until) = current.lingers {
                let left = until.saturating_duration_since(Instant::now());
                let patience = left.min(PATIENCE).max(Duration::from_millis(1));
                timeout.per_read = Some(patience.into());
            }
        });
        let known = self.transport.buffers().input().len();
        let came = self.transport.await_input(timeout);
        self.if_heard(|current, transport| {
            let new = transport.buffers().input().get(known..);
            current.recording.received(new.unwrap_or_default());
            if !matches!(came, Ok(true) | Err(ureq::Error::Timeout(_))) {
                current.recording.closed();
            }
        });
        came
    }

    fn is_open(&mut self) -> bool {
        self.transport.is_open()
    }

    fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }
}

impl fmt::Debug for Tapped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tapped").finish_non_exhaustive()
    }
}
