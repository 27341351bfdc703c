//! A small server that sends exactly the bytes of a test, even if they break the protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A server on a free port of 127.0.0.1, which runs until the test ends.
pub struct Raw {
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Raw {
    /// Starts a server that calls `handle` for each connection, in a separate thread.
    pub fn connections(handle: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        Self::connections_at("127.0.0.1", handle)
    }

    fn connections_at(host: &str, handle: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        let handle = Arc::new(handle);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::SeqCst);
                let handle = Arc::clone(&handle);
                thread::spawn(move || handle(stream));
            }
        });
        Self {
            address,
            connections,
            heads: Arc::default(),
        }
    }

    /// Starts a server that reads one request head for each connection, calls `answer` with its path, and closes the
    /// connection.
    pub fn http(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        Self::http_at("127.0.0.1", answer)
    }

    /// Starts the same server at another address of this machine.
    pub fn http_at(
        host: &str,
        answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&heads);
        let server = Self::connections_at(host, move |mut stream| {
            let Some(head) = head(&stream) else { return };
            let path = head.split(' ').nth(1).unwrap_or("").to_owned();
            seen.lock().unwrap().push(head);
            answer(&path, &mut stream);
        });
        Self { heads, ..server }
    }

    /// Starts a server that sends the same response to each request.
    pub fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::http(move |_, stream| {
            let _ = stream.write_all(&answer);
        })
    }

    /// Starts a proxy that connects every port of `host` to one server, and rejects all other hosts. Clients use
    /// CONNECT, or requests in absolute form, which the proxy forwards in origin form (RFC 9112 §3.2).
    pub fn proxy(host: &'static str, to: SocketAddr) -> Self {
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&heads);
        let proxy = Self::connections(move |mut client| {
            let Some(asked) = exact_head(&mut client) else {
                return;
            };
            seen.lock().unwrap().push(asked.clone());
            let (method, target) = asked.split_once(' ').unwrap();
            let authority = match method {
                "CONNECT" => Some(target),
                _ => target.strip_prefix("http://"),
            };
            let port = authority.and_then(|authority| authority.strip_prefix(host));
            let Some(rest) = port.filter(|rest| rest.starts_with([':', '/'])) else {
                let _ = client.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
                return;
            };
            let mut server = TcpStream::connect(to).unwrap();
            if method == "CONNECT" {
                let _ = client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n");
            } else {
                let (line, fields) = rest.split_once("\r\n").unwrap();
                let path = line.find('/').map_or("/ HTTP/1.1", |at| &line[at..]);
                let mut head = format!("{method} {path}\r\nConnection: close\r\n");
                for field in fields.lines().filter(|field| {
                    !field
                        .to_ascii_lowercase()
                        .starts_with("proxy-authorization:")
                }) {
                    head.push_str(&format!("{field}\r\n"));
                }
                let _ = server.write_all(head.as_bytes());
            }
            let (mut from_client, mut to_server) =
                (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
            let _ = std::io::copy(&mut server, &mut client);
            let _ = client.shutdown(std::net::Shutdown::Both);
        });
        Self { heads, ..proxy }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Returns the request heads that were received so far.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// Reads a request head, including its empty line.
pub fn head(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    Some(head)
}

/// Reads a request head, and no byte after it.
pub fn exact_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut octet = [0];
        stream.read_exact(&mut octet).ok()?;
        head.push(octet[0]);
    }
    String::from_utf8(head).ok()
}

/// Returns a response with status 200 and a Content-Length.
pub fn ok(media_type: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(body);
    answer
}

/// Returns a response with status 302 and this location.
pub fn redirect(location: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .into_bytes()
}
