//! The sockets and threads of the server: one thread for each connection, up to a limit.
//!
//! Connections above the limit get threads that store no message, and reply to each message that it must be sent again
//! later. Above twice the limit, connections are closed immediately. A connection takes the current expander and
//! journal at the start of each message, so both can be replaced while the server runs.
//!
//! One further thread tells the mail systems that a message takes longer. Messages do not get their own threads,
//! because a mail of a few KiB is finished before another thread would start.
//!
//! A server that is being shut down accepts no connections. It closes connections between two messages immediately, and
//! the others after the reply to their message.

use std::collections::HashMap;
use std::io::{self, BufReader, BufWriter, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::codec::{self, MilterReply, PacketError};
use super::counters::{Counters, serve};
use super::draft::{IncomingMail, MilterDraft};
use super::listen::{MilterListener, MilterStream};
use super::service::{FilterVerdict, judge};
use super::session::{MilterSession, SessionStep};
use crate::engine::report::Report;
use crate::error::unpoisoned;
use crate::expand::Expander;
use crate::metrics::add;

/// Time between two progress packets for one message. A thread checks every [`TICK`] whether a packet is due, so the
/// time can be longer by one tick.
const PROGRESS_EVERY: Duration = Duration::from_secs(9);

const TICK: Duration = Duration::from_secs(1);

/// Maximum time that a connection may be idle between two messages. libmilter has the same limit.
const BETWEEN: Duration = Duration::from_secs(7210);

/// Maximum time without a packet from the mail system inside a message.
const WITHIN: Duration = Duration::from_secs(600);

/// Size of the read buffer, in bytes. A body arrives in several packets, and with a large buffer one system call reads
/// several of them.
const READ_AT_ONCE: usize = 256 << 10;

pub trait ServerLog: Send + Sync {
    /// Records the outcome for one message. `message` is empty if the message was not stored, and its queue id is empty
    /// if the mail system did not send one. `elapsed` includes the time of retrievals.
    fn processed(
        &self,
        message: &IncomingMail,
        verdict: &FilterVerdict,
        report: &Report,
        elapsed: Duration,
    );
    fn says(&self, line: &str);
}

pub struct MilterWork {
    pub expander: Expander,
    pub journal: Arc<dyn ServerLog>,
    pub connections: usize,
}

pub struct MilterServer {
    work: RwLock<Arc<MilterWork>>,
    counters: Arc<Counters>,
    connections: Mutex<ConnectionCount>,
    ended: Condvar,
    /// Writing a byte to this socket wakes the server, so that it stops accepting connections.
    wake: UnixStream,
    woken: UnixStream,
}

#[derive(Debug, Default)]
struct ConnectionCount {
    next: u64,
    open: HashMap<u64, OpenConnection>,
    is_draining: bool,
}

#[derive(Debug)]
struct OpenConnection {
    stream: MilterStream,
    is_within_message: bool,
    progress: Option<Instant>,
}

impl MilterServer {
    pub fn new(work: MilterWork, counters: Arc<Counters>) -> io::Result<Self> {
        let (wake, woken) = UnixStream::pair()?;
        Ok(Self {
            work: RwLock::new(Arc::new(work)),
            counters,
            connections: Mutex::default(),
            ended: Condvar::new(),
            wake,
            woken,
        })
    }

    pub fn replace(&self, work: MilterWork) {
        *unpoisoned(self.work.write()) = Arc::new(work);
    }

    fn work(&self) -> Arc<MilterWork> {
        Arc::clone(&*unpoisoned(self.work.read()))
    }

    fn connections(&self) -> MutexGuard<'_, ConnectionCount> {
        unpoisoned(self.connections.lock())
    }

    pub fn start(
        self: &Arc<Self>,
        listeners: Vec<MilterListener>,
        metrics: Option<TcpListener>,
    ) -> io::Result<()> {
        for listener in &listeners {
            rustix::io::ioctl_fionbio(listener, true)?;
        }
        let server = Arc::clone(self);
        let accepting = thread::Builder::new().name("accept".to_owned());
        accepting.spawn(move || server.accept(&listeners))?;
        let server = Arc::downgrade(self);
        let telling = thread::Builder::new().name("progress".to_owned());
        telling.spawn(move || Self::tell_progress(&server))?;
        if let Some(metrics) = metrics {
            let server = Arc::clone(self);
            let telling = thread::Builder::new().name("metrics".to_owned());
            telling.spawn(move || serve(&metrics, &server.counters))?;
        }
        Ok(())
    }

    fn accept(self: &Arc<Self>, listeners: &[MilterListener]) {
        let mut all: Vec<PollFd<'_>> = listeners
            .iter()
            .map(|it| PollFd::new(it, PollFlags::IN))
            .chain([PollFd::new(&self.woken, PollFlags::IN)])
            .collect();
        loop {
            let _ = poll(&mut all, None);
            if self.connections().is_draining {
                return;
            }
            let ready = listeners.iter().zip(&all);
            for (listener, _) in ready.filter(|(_, it)| !it.revents().is_empty()) {
                match listener.accept().and_then(|stream| self.open(stream)) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => {
                        // Some errors, such as too many open files, are temporary. The pause keeps the loop from using
                        // a whole core in the meantime.
                        let what = format!("cannot accept a connection: {error}");
                        self.work().journal.says(&what);
                        thread::sleep(Duration::from_millis(100));
                    }
                }
            }
        }
    }

    fn tell_progress(server: &Weak<Self>) {
        loop {
            thread::sleep(TICK);
            let Some(server) = server.upgrade() else {
                return;
            };
            let now = Instant::now();
            for open in server.connections().open.values_mut() {
                if open.progress.is_some_and(|due| due <= now) {
                    open.progress = Some(now + PROGRESS_EVERY);
                    open.stream
                        .say_without_waiting(&MilterReply::Progress.packet());
                }
            }
        }
    }

    fn open(self: &Arc<Self>, stream: MilterStream) -> io::Result<()> {
        let most = self.work().connections;
        let (number, is_full) = {
            let mut connections = self.connections();
            let count = connections.open.len();
            let is_full = count >= most;
            add(&self.counters.connections, 1);
            add(&self.counters.full, u64::from(is_full));
            // There are already twice as many connections as allowed, so this one is closed without a reply. The mail
            // system then does what it is configured to do if the filter is missing.
            if count >= most.saturating_mul(2) {
                return Ok(());
            }
            connections.next += 1;
            let number = connections.next;
            let open = OpenConnection {
                stream: stream.try_clone()?,
                is_within_message: false,
                progress: None,
            };
            connections.open.insert(number, open);
            add(&self.counters.open, 1);
            (number, is_full)
        };
        // Dropping `MilterConnection` removes the connection from the list, even after a panic or an early return.
        let connection = MilterConnection {
            server: Arc::clone(self),
            number,
            stream,
            session: MilterSession::new(is_full),
        };
        let serving = thread::Builder::new().name("connection".to_owned());
        serving.spawn(move || connection.serve()).map(|_| ())
    }

    /// Closes the connections that are between two messages, and waits for the others. Returns the number of
    /// connections that are still open after `patience`.
    pub fn drain(&self, patience: Duration) -> usize {
        let mut connections = self.connections();
        // One byte is sufficient to wake the server, so only the first call writes one. The server reads no further
        // bytes, so many of them would fill the socket and block the writer.
        if !std::mem::replace(&mut connections.is_draining, true) {
            let _ = (&self.wake).write_all(b"!");
        }
        for open in connections.open.values() {
            if !open.is_within_message {
                open.stream.shut();
            }
        }
        let waiting = |connections: &mut ConnectionCount| !connections.open.is_empty();
        let ended = &self.ended;
        let waited = ended.wait_timeout_while(connections, patience, waiting);
        let (connections, _) = unpoisoned(waited);
        connections.open.len()
    }
}

struct MilterConnection {
    server: Arc<MilterServer>,
    number: u64,
    stream: MilterStream,
    session: MilterSession,
}

impl Drop for MilterConnection {
    fn drop(&mut self) {
        let mut connections = self.server.connections();
        connections.open.remove(&self.number);
        self.server.counters.open.fetch_sub(1, Ordering::Relaxed);
        self.server.ended.notify_all();
    }
}

impl MilterConnection {
    fn serve(mut self) {
        // Only malformed packets are logged. Other errors mean that the mail system closed the connection or is too
        // slow.
        if let Err(why) = self.run()
            && why.get_ref().is_some_and(|it| it.is::<PacketError>())
        {
            add(&self.server.counters.malformed, 1);
            let what = format!("closed a connection, because the mail system sent {why}");
            self.server.work().journal.says(&what);
        }
        self.stream.shut();
    }

    fn run(&mut self) -> io::Result<()> {
        let mut work = self.server.work();
        let mut reader = BufReader::with_capacity(READ_AT_ONCE, &self.stream);
        let mut packet = Vec::new();
        self.stream.read_within(BETWEEN)?;
        while codec::read_packet(&mut reader, &mut packet)? {
            if !self.session.is_within_message() {
                work = self.server.work();
            }
            let step = self.session.take(&packet, &work.expander)?;
            let is_answered = matches!(step, SessionStep::Refused | SessionStep::Judge(..));
            match step {
                SessionStep::Wait => {}
                SessionStep::Say(reply) => self.say(reply)?,
                SessionStep::Refused => {
                    self.say(MilterReply::TryLater)?;
                    add(&self.server.counters.later, 1);
                }
                SessionStep::Judge(draft, if_not_held) => self.judge(&work, draft, if_not_held)?,
                SessionStep::Close => return Ok(()),
            }
            if !self.goes_on(is_answered)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn goes_on(&self, is_answered: bool) -> io::Result<bool> {
        let is_within_message = self.session.is_within_message();
        let mut connections = self.server.connections();
        let is_draining = connections.is_draining;
        let mut is_other = false;
        if let Some(open) = connections.open.get_mut(&self.number) {
            is_other = open.is_within_message != is_within_message;
            open.is_within_message = is_within_message;
        }
        drop(connections);
        if is_other {
            self.stream
                .read_within(if is_within_message { WITHIN } else { BETWEEN })?;
        }
        Ok(is_within_message || !(is_draining && (is_answered || is_other)))
    }

    fn say(&self, reply: MilterReply<'_>) -> io::Result<()> {
        (&self.stream).write_all(&reply.packet())
    }

    fn judge(
        &self,
        work: &MilterWork,
        draft: MilterDraft,
        if_not_held: MilterReply<'_>,
    ) -> io::Result<()> {
        let begun = Instant::now();
        let queue_id = draft.message.queue_id.clone();
        let (message, verdict, report) = match draft.finish() {
            Ok(message) => {
                self.progress(Some(begun + PROGRESS_EVERY));
                let keeps_blanks = self.session.keeps_blanks();
                let (verdict, report) = judge(&work.expander, &message, keeps_blanks);
                self.progress(None);
                (message, verdict, report)
            }
            Err(left) => {
                let message = IncomingMail {
                    queue_id,
                    ..IncomingMail::default()
                };
                (message, FilterVerdict::Unchanged(left), Report::default())
            }
        };
        let elapsed = begun.elapsed();
        let said = if message.bytes.is_empty() {
            self.say(if_not_held)
        } else {
            let mut writer = BufWriter::with_capacity(codec::CHUNK + 64, &self.stream);
            let written = verdict.write(&message, &mut writer);
            written.and_then(|()| writer.flush())
        };
        self.server.counters.processed(&verdict, &report, elapsed);
        let journal = &work.journal;
        journal.processed(&message, &verdict, &report, elapsed);
        said
    }

    /// Sets the time of the next progress packet. `None` stops progress packets, because the server sends the changes after
    /// the end of the message, and Postfix accepts no progress packet between changes.
    fn progress(&self, due: Option<Instant>) {
        if let Some(open) = self.server.connections().open.get_mut(&self.number) {
            open.progress = due;
        }
    }
}
