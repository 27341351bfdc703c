//! `GET /metrics`, for Prometheus: as little HTTP/1.1 as that needs. One request at a time, each bounded in octets
//! and time; any other request is answered 404.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::counters::Counters;
use super::listen::Address;

/// Octets of a request that are read.
const LONGEST: usize = 8 << 10;

/// How long a client may take.
const PATIENCE: Duration = Duration::from_secs(5);

pub fn bind(address: &Address) -> io::Result<TcpListener> {
    match address {
        Address::Inet(name) => Address::bind_port(name),
        Address::Unix(_) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "metrics are asked for over inet",
        )),
    }
}

pub(super) fn serve(listener: &TcpListener, counters: &Counters) {
    loop {
        match listener.accept() {
            // The client may be gone.
            Ok((stream, _)) => drop(answer(&stream, counters)),
            // No more files may be open, say: it may pass.
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn answer(mut stream: &TcpStream, counters: &Counters) -> io::Result<()> {
    let begun = Instant::now();
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut buffer = [0; 1 << 10];
    while memchr::memmem::find(&request, b"\r\n\r\n").is_none() {
        let left = PATIENCE.saturating_sub(begun.elapsed());
        if left.is_zero() || request.len() > LONGEST {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            length => request.extend_from_slice(buffer.get(..length).unwrap_or_default()),
        }
    }
    let path = request.strip_prefix(b"GET ").map(|rest| {
        let end = rest
            .iter()
            .position(|octet| matches!(octet, b' ' | b'?' | b'\r'));
        rest.get(..end.unwrap_or(0)).unwrap_or_default()
    });
    let (status, text) = match path {
        Some(b"/metrics") => ("200 OK", counters.text()),
        _ => ("404 Not Found", "only GET /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
        Content-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}
