//! The program as a mail system runs it: one process per message.
//!
//! `cargo bench --bench filter`: wall time of `embody filter` on a 4 KB message beside `cat` on the
//! same file, turn by turn; time and peak memory for a message with a 32 MB `data:` URL, beside the
//! `data-url` crate decoding the same URL in memory.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use embody::fetch::Nowhere;
use embody::{Expander, Policy};

const EMBODY: &str = env!("CARGO_BIN_EXE_embody");

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    small(folder.path());
    large(folder.path());
}

/// 4 KB: what start-up costs.
fn small(folder: &Path) {
    const TURNS: usize = 600;
    let with = folder.join("reference.eml");
    let without = folder.join("plain.eml");
    fs::write(&with, message("data:image/png;base64,", 2_600)).expect("a writable folder");
    let plain = format!(
        "Subject: x\n\n{}",
        "An ordinary line of mail text.\n".repeat(132)
    );
    fs::write(&without, plain).expect("a writable folder");
    let runs: [(&str, &str, &[&str], &Path); 4] = [
        ("cat, 4 KB", "cat", &[], &without),
        (
            "embody filter, nothing to do",
            EMBODY,
            &["filter", "--quiet"],
            &without,
        ),
        (
            "embody filter, one data: URL",
            EMBODY,
            &["filter", "--quiet"],
            &with,
        ),
        ("true", "true", &[], &without),
    ];
    let mut times = vec![Vec::with_capacity(TURNS); runs.len()];
    for _ in 0..TURNS {
        for ((_, program, arguments, input), times) in runs.iter().zip(&mut times) {
            let start = Instant::now();
            let status = Command::new(program)
                .args(*arguments)
                .stdin(File::open(input).expect("a message"))
                .stdout(Stdio::null())
                .status()
                .expect("a program");
            times.push(start.elapsed());
            assert!(status.success(), "{program}");
        }
    }
    println!(
        "whole processes, {TURNS} turns, medians\n\n| process | time | to cat |\n|---|---|---|"
    );
    let medians: Vec<Duration> = times.iter_mut().map(|times| median(times)).collect();
    for ((name, ..), time) in runs.iter().zip(&medians) {
        let ratio = time.as_secs_f64() / medians[0].as_secs_f64();
        println!(
            "| {name} | {:.0} us | {ratio:.2} |",
            time.as_secs_f64() * 1e6
        );
    }
}

/// A 32 MB URL: speed in the library, time and memory of the process.
fn large(folder: &Path) {
    const ROUNDS: usize = 9;
    let mail = message("data:image/png;base64,", 32 << 20);
    let url: String = {
        let start = mail
            .windows(5)
            .position(|five| five == b"data:")
            .expect("a URL");
        let end = start
            + mail[start..]
                .iter()
                .position(|&byte| byte == b'"')
                .expect("its end");
        String::from_utf8_lossy(&mail[start..end]).into_owned()
    };
    let policy = Policy {
        limits: embody::policy::Limits {
            body: 100 << 20,
            growth: 100 << 20,
            ..Default::default()
        },
        ..Policy::default()
    };
    let expander = Expander::new(policy, &Nowhere);
    let (mut ours, mut decode, mut peer) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let expansion = expander.expand(&mail, "bench").expect("never deferred");
        assert_eq!(expansion.report.expanded(), 1);
        ours = ours.min(start.elapsed());
        drop(black_box(expansion));
        let start = Instant::now();
        let parsed = embody::link::data::DataUrl::parse(url.as_bytes()).expect("a URL");
        black_box(parsed.decode(u64::MAX).expect("sound base64"));
        decode = decode.min(start.elapsed());
        let start = Instant::now();
        let parsed = data_url::DataUrl::process(&url).expect("a URL");
        black_box(parsed.decode_to_vec().expect("sound base64"));
        peer = peer.min(start.elapsed());
    }
    let ratio = |time: Duration| peer.as_secs_f64() / time.as_secs_f64();
    println!("\na 32 MB base64 data: URL in a folded parameter, best of {ROUNDS}\n");
    println!("| what | time | to data-url |\n|---|---|---|");
    println!("| data-url decodes the URL | {:.1} ms | 1 |", millis(peer));
    println!(
        "| embody decodes the URL | {:.1} ms | {:.1} times as fast |",
        millis(decode),
        ratio(decode)
    );
    println!(
        "| embody expands the message | {:.1} ms | {:.1} times as fast |",
        millis(ours),
        ratio(ours)
    );
    let file = folder.join("large.eml");
    fs::write(&file, &mail).expect("a writable folder");
    let (time, peak) = peak_memory(&file);
    println!(
        "\n`embody filter` on that message of {:.1} MB: {:.0} ms, peak memory {:.1} MB, {:.2} times its size",
        mail.len() as f64 / 1e6,
        millis(time),
        peak as f64 / 1e6,
        peak as f64 / mail.len() as f64
    );
}

/// Output appears only when it is whole, so the peak is reached when the first byte can be read.
fn peak_memory(file: &Path) -> (Duration, u64) {
    let start = Instant::now();
    let mut child = Command::new(EMBODY)
        .args([
            "filter",
            "--quiet",
            "--max-body",
            "100M",
            "--max-growth",
            "100M",
        ])
        .stdin(File::open(file).expect("a message"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("a program");
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut first = [0; 1];
    stdout.read_exact(&mut first).expect("a message");
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        .map_or(0, |kilobytes| kilobytes * 1024);
    std::io::copy(&mut stdout, &mut std::io::sink()).expect("the rest of it");
    assert!(child.wait().expect("an end").success());
    std::io::stdout().flush().expect("a place to print to");
    (start.elapsed(), peak)
}

/// A message whose image is a `data:` URL of about `octets`, folded as RFC 2017 §3.1 says.
fn message(scheme: &str, octets: usize) -> Vec<u8> {
    let mut mail = b"From: a@example.org\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nHello\n--b\nContent-Type: message/external-body; access-type=URL;\n URL=\"".to_vec();
    let mut url = scheme.as_bytes().to_vec();
    url.extend((0..octets / 4 * 4).map(|at| b"iVBORw0KGgoAAAANSUhEUgAA"[at * 7 % 24]));
    for (index, word) in url.chunks(40).enumerate() {
        if index > 0 {
            mail.extend_from_slice(b"\n ");
        }
        mail.extend_from_slice(word);
    }
    mail.extend_from_slice(b"\"\n\nContent-Type: image/png\n\n\n--b--\n");
    mail
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
