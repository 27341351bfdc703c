//! A decompression bomb: 10 MB that expand to 10 GB (P5). The test has a process of its own, because it measures the memory of
//! the whole process.

use std::io::{Read as _, Write as _, repeat};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::common::programs::again;
use crate::common::raw::Raw;
use crate::common::world::{fetch, policy, refused};
use embody::report::Reason;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Returns a gzip member with this number of zeros.
fn member(zeros: u64) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    std::io::copy(&mut repeat(0).take(zeros), &mut encoder).unwrap();
    encoder.finish().unwrap()
}

#[cfg(target_os = "linux")]
fn peak_of_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}

const ALONE: &str = "EMBODY_TEST_BOMB";

#[test]
#[cfg(target_os = "linux")]
fn a_bomb_of_10_gb_stops_at_the_limit_in_little_time_and_memory() {
    if std::env::var_os(ALONE).is_none() {
        let output = again(
            "fetch::fetch_bomb::a_bomb_of_10_gb_stops_at_the_limit_in_little_time_and_memory",
        )
        .env(ALONE, "1")
        .output()
        .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("bomb: peak "), "{said}");
        return;
    }
    const MEMBER: u64 = 20 << 20;
    let member = member(MEMBER);
    let members = 10_000_000 / member.len() as u64;
    let unpacked = members * MEMBER;
    assert!(
        unpacked > 10_000_000_000,
        "the bomb holds {unpacked} octets"
    );
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    let server = Raw::http(move |_, stream| {
        let length = members * member.len() as u64;
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n"
        );
        let _ = stream.write_all(head.as_bytes());
        for _ in 0..members {
            if stream.write_all(&member).is_err() {
                return;
            }
            counter.fetch_add(member.len() as u64, Ordering::Relaxed);
        }
    });
    let policy = policy(&[server.address.port()]);
    assert_eq!(policy.limits().body, 25 << 20);
    let begun = Instant::now();
    let refusal = refused(&policy, &server.url("/"));
    assert_eq!(refusal.reason, Reason::TooLarge, "{refusal:?}");
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    let peak = peak_of_memory();
    assert!(
        peak < policy.limits().body + (50 << 20),
        "{} MiB",
        peak >> 20
    );
    println!("bomb: peak {} MiB, {:?}", peak >> 20, begun.elapsed());

    // If the limit permits the size, the same kind of content is accepted.
    let small = self::member(1 << 20);
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        small.len() * 3
    )
    .into_bytes();
    answer.extend_from_slice(&small.repeat(3));
    let server = Raw::saying(answer);
    let policy = crate::common::world::policy(&[server.address.port()]);
    assert_eq!(
        fetch(&policy, &server.url("/")).unwrap().bytes().len(),
        3 << 20
    );
}
