//! Accepts connections, up to a limit, and ends them when the service is stopped.

use std::convert::Infallible;
use std::future::{Future as _, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::access::{AccessToken, HostNames};
use super::backend::Backend;
use super::connection::{Patient, Unread};
use super::counters::ServeCounters;
use super::listen::{Listener, ServeSocket};
use super::problem::Problem;
use super::route;
use super::shared::{ServeLimits, ServeState};
use super::workers::Workers;
use crate::metrics::add;
use crate::platform::SocketFile;

/// Maximum time in which the header of a request must arrive, and maximum time between two requests of a connection.
const HEADER: Duration = Duration::from_secs(30);

/// Maximum size of the header of a request, in bytes.
const LONGEST_HEADER: usize = 64 << 10;

/// Maximum number of mailboxes that are read at the same time. Each of them needs a thread, and space in the spool.
const MAILBOXES: usize = 2;

const LOOK_UP: Duration = Duration::from_millis(5);

/// A running service.
pub(crate) struct Server {
    shared: Arc<ServeState>,
    /// Socket files, which are removed with this value.
    _files: Vec<SocketFile>,
}

impl Server {
    /// Starts to accept connections.
    ///
    /// # Errors
    /// The system cannot start threads, or cannot watch the sockets.
    pub(crate) fn start(
        backend: Arc<dyn Backend>,
        listeners: Vec<Listener>,
        (token, names): (Option<AccessToken>, HostNames),
        limits: ServeLimits,
    ) -> io::Result<Self> {
        let shared = Arc::new(ServeState {
            backend,
            limits,
            token,
            names,
            workers: Workers::start(limits.jobs, limits.max_queue)?,
            mailboxes: Arc::new(Semaphore::new(MAILBOXES)),
            counters: ServeCounters::default(),
            stopping: watch::Sender::new(false),
            begun: AtomicUsize::new(0),
        });
        let runtime = runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let mut files = Vec::new();
        for listener in listeners {
            files.extend(listener.file);
            let shared = Arc::clone(&shared);
            let _context = runtime.enter();
            match listener.socket {
                ServeSocket::Tcp(socket) => {
                    let at = listener.at.map(Arc::new);
                    let socket = TcpListener::from_std(socket)?;
                    runtime.spawn(async move {
                        loop {
                            match socket.accept().await {
                                Ok((stream, _)) => {
                                    // Without TCP_NODELAY, responses are only slower, so an error is ignored.
                                    let _ = stream.set_nodelay(true);
                                    open(&shared, stream, at.clone());
                                }
                                Err(error) => failed(&shared, &error).await,
                            }
                        }
                    });
                }
                ServeSocket::Unix(socket) => {
                    let socket = UnixListener::from_std(socket)?;
                    runtime.spawn(async move {
                        loop {
                            match socket.accept().await {
                                Ok((stream, _)) => open(&shared, stream, None),
                                Err(error) => failed(&shared, &error).await,
                            }
                        }
                    });
                }
            }
        }
        let mut stopped = shared.stopping.subscribe();
        thread::Builder::new()
            .name("connections".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    // The channel closes when the server is dropped, which ends this runtime.
                    while stopped.changed().await.is_ok() {}
                });
            })?;
        Ok(Self {
            shared,
            _files: files,
        })
    }

    /// Stops accepting requests, and waits until the open connections have their responses. Returns the number of
    /// connections that are still open after `patience`.
    pub(crate) fn stop(&self, patience: Duration) -> usize {
        let begun = Instant::now();
        self.shared.stopping.send_replace(true);
        loop {
            let open = self.shared.begun.load(Ordering::SeqCst);
            if open == 0 || begun.elapsed() >= patience {
                return open;
            }
            thread::sleep(LOOK_UP);
        }
    }
}

async fn failed(shared: &ServeState, error: &io::Error) {
    shared
        .backend
        .trouble(&format!("cannot accept a connection: {error}"));
    // Some errors, such as too many open files, are temporary. The pause keeps the loop from using a whole core in the
    // meantime.
    sleep(Duration::from_millis(100)).await;
}

/// Counts an open connection until it is dropped.
struct ConnectionGuard {
    shared: Arc<ServeState>,
    is_begun: bool,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.shared.counters.open.fetch_sub(1, Ordering::Relaxed);
        if self.is_begun {
            self.shared.begun.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

type At = Option<Arc<(String, SocketAddr)>>;

fn open<S>(shared: &Arc<ServeState>, stream: S, at: At)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    add(&shared.counters.connections, 1);
    let open = shared.counters.open.fetch_add(1, Ordering::Relaxed);
    let is_begun = !shared.is_stopping();
    if is_begun {
        shared.begun.fetch_add(1, Ordering::SeqCst);
    }
    let counted = ConnectionGuard {
        shared: Arc::clone(shared),
        is_begun,
    };
    if open >= shared.limits.max_connections {
        add(&shared.counters.full, 1);
        // Well-behaved clients never reach twice the limit. Above it, not even an error response is sent, because each
        // response needs memory.
        if open < shared.limits.max_connections.saturating_mul(2) {
            tokio::spawn(refuse(stream, counted));
        }
        return;
    }
    tokio::spawn(serve(stream, at, counted));
}

/// Tells a client that too many connections are open, without reading its request.
async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(stream: S, counted: ConnectionGuard) {
    let most = counted.shared.limits.max_connections;
    let json = Problem::connections(most).json();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n\
        connection: close\r\ncontent-length: {}\r\n\r\n",
        json.len()
    );
    let text = [head.as_bytes(), json.as_slice()].concat();
    let unread = Unread::default();
    unread.set();
    let mut stream = pin!(Patient::new(stream, unread));
    let said = async {
        let written = poll_fn(|context| stream.as_mut().poll_write(context, &text)).await;
        if written.is_ok_and(|length| length == text.len()) {
            let _ = poll_fn(|context| stream.as_mut().poll_shutdown(context)).await;
        }
    };
    let _ = timeout(Duration::from_secs(3), said).await;
}

async fn serve<S>(stream: S, at: At, counted: ConnectionGuard)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shared = &counted.shared;
    let unread = Unread::default();
    let stream = TokioIo::new(Patient::new(stream, unread.clone()));
    let service = service_fn(|request| {
        let (shared, at, unread) = (Arc::clone(shared), at.clone(), unread.clone());
        async move {
            let response = route::answer(&shared, at.as_deref(), &unread, request).await;
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER)
        .max_buf_size(LONGEST_HEADER);
    let mut connection = pin!(builder.serve_connection(stream, service));
    let mut stopping = shared.stopping.subscribe();
    let mut stopped = pin!(stopping.wait_for(|is_stopping| *is_stopping));
    // A connection opened during shutdown gets status 503, and is then closed.
    let mut is_told = !counted.is_begun;
    poll_fn(|context| {
        if !is_told && stopped.as_mut().poll(context).is_ready() {
            is_told = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(context).map(drop)
    })
    .await;
}
