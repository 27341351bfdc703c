//! The program as a mail system runs it: one process per message.
//!
//! `cargo bench --bench filter`: wall time of `embody filter` on a 4 KB message beside `cat` on the
//! same file, turn by turn; time and peak memory for a message with a 32 MB `data:` URL, beside the
//! `data-url` crate decoding the same URL in memory, and beside others doing the whole of it: crates
//! for parsing, decoding and building in the library, Python's email as a process.

mod figure;

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use embody::policy::Limits;
use embody::{Expander, Policy};
use figure::{Figure, Goal, quick, short, skipped};
use mail_builder::mime::MimePart;
use mail_parser::{MessageParser, MimeHeaders as _};

/// Base64 symbols of the large URL, without folds: an output that holds its content has more octets.
const SYMBOLS: usize = 32 << 20;

const EMBODY: &str = env!("CARGO_BIN_EXE_embody");

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    small(folder.path());
    large(folder.path());
}

/// 4 KB: what start-up costs.
fn small(folder: &Path) {
    let turns = if quick() { 300 } else { 600 };
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
    let mut times = vec![Vec::with_capacity(turns); runs.len()];
    for _ in 0..turns {
        for ((_, program, arguments, input), times) in runs.iter().zip(&mut times) {
            let start = Instant::now();
            let status = Command::new(program)
                .args(*arguments)
                // What cargo sets for benches makes the loader look for each library in its folders first.
                .env_remove("LD_LIBRARY_PATH")
                .stdin(File::open(input).expect("a message"))
                .stdout(Stdio::null())
                .status()
                .expect("a program");
            times.push(start.elapsed());
            assert!(status.success(), "{program}");
        }
    }
    println!(
        "whole processes, {turns} turns, medians\n\n| process | time | to cat |\n|---|---|---|"
    );
    let medians: Vec<Duration> = times.iter_mut().map(|times| median(times)).collect();
    for ((name, ..), time) in runs.iter().zip(&medians) {
        let ratio = time.as_secs_f64() / medians[0].as_secs_f64();
        println!(
            "| {name} | {:.0} us | {ratio:.2} |",
            time.as_secs_f64() * 1e6
        );
    }
    for (what, time) in [
        ("embody filter, 4 KB, nothing to do", medians[1]),
        ("embody filter, 4 KB, one data: URL", medians[2]),
    ] {
        Figure::say(
            what,
            &format!("{} ms", short(millis(time))),
            &format!("cat, {} ms", short(millis(medians[0]))),
            time.as_secs_f64() / medians[0].as_secs_f64(),
            Goal::AtMost(1.5),
        );
    }
}

/// A 32 MB URL: speed in the library, time and memory of the process.
fn large(folder: &Path) {
    let rounds = if quick() { 7 } else { 9 };
    let mail = message("data:image/png;base64,", SYMBOLS);
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
    let limits = Limits::default()
        .with_body(100 << 20)
        .with_growth(100 << 20);
    let expander = Expander::new(Policy::default().with_limits(limits)).expect("nothing is opened");
    let (mut ours, mut decode, mut peer) = (Duration::MAX, Duration::MAX, Duration::MAX);
    let mut crates = Duration::MAX;
    for _ in 0..rounds {
        let start = Instant::now();
        let expansion = expander.expand(&mail, "bench").expect("never deferred");
        assert_eq!(expansion.report.expanded(), 1);
        ours = ours.min(start.elapsed());
        drop(black_box(expansion));
        let start = Instant::now();
        let parsed = embody::internals::link::data::DataUrl::parse(url.as_bytes()).expect("a URL");
        black_box(parsed.decode(u64::MAX).expect("sound base64"));
        decode = decode.min(start.elapsed());
        let start = Instant::now();
        let parsed = data_url::DataUrl::process(&url).expect("a URL");
        black_box(parsed.decode_to_vec().expect("sound base64"));
        peer = peer.min(start.elapsed());
        let start = Instant::now();
        let built = black_box(by_crates(&mail));
        crates = crates.min(start.elapsed());
        assert!(built.len() > SYMBOLS, "{} octets", built.len());
    }
    let ratio = |time: Duration| peer.as_secs_f64() / time.as_secs_f64();
    println!("\na 32 MB base64 data: URL in a folded parameter, best of {rounds}\n");
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
    println!(
        "| mail-parser, data-url and mail-builder do that | {:.1} ms | {:.1} times as fast |",
        millis(crates),
        ratio(crates)
    );
    Figure::say(
        "expanding a message with that URL, library",
        &format!("{} ms", short(millis(ours))),
        &format!(
            "mail-parser, data-url, mail-builder, {} ms",
            short(millis(crates))
        ),
        crates.as_secs_f64() / ours.as_secs_f64(),
        Goal::More,
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
    Figure::say(
        "embody filter, 35 MB message, peak memory",
        &format!("{} MB", short(peak as f64 / 1e6)),
        &format!("the message, {} MB", short(mail.len() as f64 / 1e6)),
        peak as f64 / mail.len() as f64,
        Goal::AtMost(4.0),
    );
    processes(&file);
}

/// `embody filter` and Python's email, from file to file, as whole processes.
fn processes(file: &Path) {
    let what = "embody filter, 35 MB message, whole process";
    let out = file.with_extension("out");
    let timed = |program: &str, arguments: &[&str]| -> Option<Duration> {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let start = Instant::now();
            let status = Command::new(program)
                .args(arguments)
                .stdin(File::open(file).expect("a message"))
                .stdout(File::create(&out).expect("a writable folder"))
                .status()
                .ok()?;
            best = best.min(start.elapsed());
            assert!(status.success(), "{program}");
            let written = fs::metadata(&out).expect("an output").len();
            assert!(written > SYMBOLS as u64, "{program}: {written} octets");
        }
        Some(best)
    };
    let ours = timed(EMBODY, &FILTER).expect("our own program");
    let Some(python) = timed("python3", &["-c", PYTHON]) else {
        return skipped(what, "python3 not found");
    };
    println!(
        "as whole processes: embody filter {:.0} ms, Python's email {:.0} ms",
        millis(ours),
        millis(python)
    );
    Figure::say(
        what,
        &format!("{} ms", short(millis(ours))),
        &format!("Python's email, {} ms", short(millis(python))),
        python.as_secs_f64() / ours.as_secs_f64(),
        Goal::More,
    );
}

/// What a script would do with the standard library, without any of the checks.
const PYTHON: &str = "
import base64, email, email.generator, sys
message = email.message_from_binary_file(sys.stdin.buffer)
for part in message.walk():
    if part.get_content_type() == 'message/external-body':
        url = ''.join(part.get_param('url').split())
        content = base64.b64decode(url.split(',', 1)[1])
        phantom = part.get_payload(0)
        del part['Content-Type']
        for name, value in phantom.items():
            part[name] = value
        part['Content-Transfer-Encoding'] = 'base64'
        part.set_payload(base64.encodebytes(content).decode('ascii'))
        break
email.generator.BytesGenerator(sys.stdout.buffer, mangle_from_=False, maxheaderlen=0).flatten(message)
";

/// The same message by crates: parsed, the URL decoded, and the whole built anew. What
/// surrounds the part is known here, which a filter would have to copy: an advantage for them.
fn by_crates(mail: &[u8]) -> Vec<u8> {
    let message = MessageParser::default().parse(mail).expect("a message");
    let url: String = message
        .parts
        .iter()
        .filter_map(|part| part.content_type()?.attribute("url"))
        .flat_map(|url| url.split_ascii_whitespace())
        .collect();
    let decoded = data_url::DataUrl::process(&url).expect("a URL");
    let (content, _) = decoded.decode_to_vec().expect("sound base64");
    mail_builder::MessageBuilder::new()
        .from("a@example.org")
        .subject("x")
        .body(MimePart::new(
            "multipart/mixed",
            vec![
                MimePart::new("text/plain", "Hello"),
                MimePart::new("image/png", content),
            ],
        ))
        .write_to_vec()
        .expect("memory can be written to")
}

const FILTER: [&str; 6] = [
    "filter",
    "--quiet",
    "--max-body",
    "100M",
    "--max-growth",
    "100M",
];

/// Output appears only when it is whole, so the peak is reached when the first byte can be read.
fn peak_memory(file: &Path) -> (Duration, u64) {
    let start = Instant::now();
    let mut child = Command::new(EMBODY)
        .args(FILTER)
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
