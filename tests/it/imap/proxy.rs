//! A proxy that counts the bytes of connections and may cut a connection.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;

/// Listens on a free port of 127.0.0.1 until the program ends.
pub(super) struct Proxy {
    pub(super) port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    to_server: AtomicU64,
    from_server: AtomicU64,
    /// Number of bytes after which the connection is cut. No connection is cut if it is negative.
    left: AtomicI64,
}

impl Proxy {
    pub(super) fn to(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            left: AtomicI64::new(i64::MAX),
            ..Shared::default()
        });
        let proxy = Self {
            port,
            shared: Arc::clone(&shared),
        };
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { continue };
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                    continue;
                };
                let _ = client.set_nodelay(true);
                let _ = server.set_nodelay(true);
                let ends = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let there = Arc::clone(&shared);
                thread::spawn(move || pass(ends.0, ends.1, &there, |it| &it.to_server));
                let back = Arc::clone(&shared);
                thread::spawn(move || pass(server, client, &back, |it| &it.from_server));
            }
        });
        proxy
    }

    /// Returns the numbers of bytes to the server and from it.
    pub(super) fn traffic(&self) -> (u64, u64) {
        let of = |count: &AtomicU64| count.load(Ordering::SeqCst);
        (of(&self.shared.to_server), of(&self.shared.from_server))
    }

    /// Cuts the connection after this number of further bytes, at any position. Later connections are not cut.
    pub(super) fn cut_after(&self, octets: u64) {
        let octets = i64::try_from(octets).unwrap();
        self.shared.left.store(octets, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, shared: &Shared, count: fn(&Shared) -> &AtomicU64) {
    let mut piece = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        let size = i64::try_from(length).unwrap();
        let left = shared.left.fetch_sub(size, Ordering::SeqCst);
        let is_cut = left < size;
        let most = usize::try_from(left.clamp(0, size)).unwrap();
        count(shared).fetch_add(most as u64, Ordering::SeqCst);
        if to.write_all(&piece[..most]).is_err() {
            break;
        }
        if is_cut {
            shared.left.store(i64::MAX, Ordering::SeqCst);
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
