//! `examples/async.rs`: a program that drives the engine with tokio writes the same mail as the program `embody`.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::common::programs::{embody, fed, skipped, stderr};
use crate::common::raw::Raw;

const GIF: &[u8] = b"GIF89a\x08\0\x08\0\x80\0\0\xff\0\0\0\0\0!\xf9\x04\0\0\0\0\0,\0\0\0\0\x08\0\x08\0\0\x02\x07\x84\x8f\xa9\xcb\xed\x5d\0;";

/// Returns the path of the example, which `cargo test` builds.
fn example(test: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_embody")).with_file_name("examples/async");
    if program.is_file() {
        return Some(program);
    }
    skipped(test, "examples/async (cargo build --examples)");
    None
}

fn filled(program: &Path, server: &Raw, mail: &[u8]) -> Output {
    let port = server.address.port().to_string();
    let output = fed(Command::new(program).args(["127.0.0.1/32", &port]), mail);
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

fn filtered(server: &Raw, mail: &[u8]) -> Output {
    let port = server.address.port().to_string();
    let mut program = embody();
    program.args(["filter", "--fetch", "http,https", "--embed", "data,remote"]);
    program.args(["--allow-net", "127.0.0.1/32", "--allow-port", &port]);
    let output = fed(&mut program, mail);
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

#[track_caller]
fn assert_same(example: &Output, program: &Output) {
    assert_eq!(
        String::from_utf8_lossy(&example.stdout),
        String::from_utf8_lossy(&program.stdout)
    );
}

fn say(stream: &mut TcpStream, head: &str, body: &[u8]) {
    let head = format!("HTTP/1.1 {head}\r\n\r\n").into_bytes();
    let _ = stream.write_all(&[&head, body].concat());
}

fn answer(path: &str, stream: &mut TcpStream) {
    let length = GIF.len();
    match path {
        "/one.gif" | "/two.gif?x=1" => {
            let head = format!("200 OK\r\nContent-Type: image/gif\r\nContent-Length: {length}");
            say(stream, &head, GIF);
        }
        "/chunked.txt" => {
            let head = "200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked";
            say(stream, head, b"2\r\nA \r\na\r\nbrief note\r\n0\r\n\r\n");
        }
        "/moved.txt" => say(stream, "302 Found\r\nLocation: chunked.txt", b""),
        "/circle.txt" => say(stream, "302 Found\r\nLocation: circle.txt", b""),
        "/away.txt" => say(stream, "302 Found\r\nLocation: http://10.0.0.1/a.txt", b""),
        "/page.html" => {
            let page = b"<img src=/one.gif> <a href=other.html>other</a>";
            let head = "200 OK\r\nContent-Type: text/html\r\nContent-Length: ";
            say(stream, &format!("{head}{}", page.len()), page);
        }
        "/unmarked.txt" => say(stream, "200 OK\r\nContent-Type: text/plain", b"part of it"),
        "/cut.txt" => say(stream, "200 OK\r\nContent-Length: 100", b"part of it"),
        "/large.txt" => say(stream, "200 OK\r\nContent-Length: 30000000", b"part of it"),
        "/busy.txt" => say(stream, "503 Busy\r\nContent-Length: 4", b"busy"),
        "/nonsense.txt" => {
            let _ = stream.write_all(b"\0\0\0 no HTTP\r\n\r\n");
        }
        _ => say(stream, "404 Not Found\r\nContent-Length: 4", b"none"),
    }
}

/// Returns a page with pictures, and a part for each of these file names.
fn mail(server: &Raw, names: &[&str]) -> Vec<u8> {
    let host = server.address;
    let mut mail = format!(
        "Date: Tue, 14 May 2024 09:12:03 +0200\nMIME-Version: 1.0\n\
        Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n\
        <p><img src=\"http://{host}/one.gif\"> <img src=\"http://{host}/two.gif?x=1\">\n\
        <img src=\"http://{host}/none.gif\"> <img src=\"http://10.0.0.1/private.gif\">\n"
    );
    for name in names {
        let media_type = match name.rsplit('.').next() {
            Some("html") => "text/html",
            Some("gif") => "image/gif",
            _ => "text/plain",
        };
        mail += &format!(
            "--b\nContent-Type: message/external-body; access-type=URL;\n URL=\"http://{host}/{name}\"\n\n\
            Content-Type: {media_type}\n\n"
        );
    }
    (mail + "--b--\n").into_bytes()
}

#[test]
fn example_with_answers_of_all_kinds_writes_what_filter_writes() {
    let test = "example_with_answers_of_all_kinds_writes_what_filter_writes";
    let Some(program) = example(test) else { return };
    let server = Raw::http(answer);
    let names = [
        "chunked.txt",
        "moved.txt",
        "circle.txt",
        "away.txt",
        "page.html",
        "one.gif",
        "unmarked.txt",
        "cut.txt",
        "large.txt",
        "busy.txt",
        "nonsense.txt",
        "none.txt",
    ];
    let mail = mail(&server, &names);
    let output = filled(&program, &server, &mail);
    assert_same(&output, &filtered(&server, &mail));
    let written = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(written.matches("A brief note").count(), 2, "{written}");
    // Two pictures of the page, one of the page that was retrieved, and a part.
    assert!(
        written.matches("Content-Type: image/gif").count() >= 3,
        "{written}"
    );
    let said = stderr(&output);
    // The last seven references, two with invalid URLs, and two pictures of the mail.
    assert_eq!(said.lines().count(), 10, "{said}");
}

#[test]
fn example_with_a_limit_of_growth_writes_what_filter_writes() {
    let test = "example_with_a_limit_of_growth_writes_what_filter_writes";
    let Some(program) = example(test) else { return };
    // 20 MB each: two bodies fit below the limit of 50 MiB.
    let body = b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd\r\n"
        .repeat(20_000_000 / 64);
    let server = Raw::http(move |path, stream| {
        if path == "/1.txt" {
            // The first request gets its response last.
            std::thread::sleep(Duration::from_millis(300));
        }
        let head = format!(
            "200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}",
            body.len()
        );
        say(stream, &head, &body);
    });
    let mail = mail(&server, &["1.txt", "2.txt", "3.txt", "4.txt"]);
    let output = filled(&program, &server, &mail);
    assert!(output.stdout == filtered(&server, &mail).stdout);
    // Two texts, with LF as line ending.
    assert!(output.stdout.len() > 39_000_000, "{}", output.stdout.len());
    assert!(stderr(&output).contains("grow"), "{}", stderr(&output));
}

#[test]
fn example_without_network_fills_the_samples() {
    let test = "example_without_network_fills_the_samples";
    let Some(program) = example(test) else { return };
    let server = Raw::http(answer);
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    for name in [
        "postcard",
        "gif-in-html",
        "nested-in-forwarded",
        "retrieved-message",
    ] {
        let mail = fs::read(samples.join(format!("{name}.in.eml"))).unwrap();
        let expected = fs::read(samples.join(format!("{name}.out.eml"))).unwrap();
        assert!(
            filled(&program, &server, &mail).stdout == expected,
            "{name}"
        );
    }
    assert_eq!(server.count(), 0);
}

/// The server responds only after it got all requests.
#[test]
fn example_retrieves_the_needs_of_a_round_at_the_same_time() {
    let test = "example_retrieves_the_needs_of_a_round_at_the_same_time";
    let Some(program) = example(test) else { return };
    let (requested, all) = (Mutex::new(0), Condvar::new());
    let server = Raw::http(move |_, stream| {
        let mut count = requested.lock().unwrap();
        *count += 1;
        all.notify_all();
        let late = Duration::from_secs(15);
        let (count, _) = all
            .wait_timeout_while(count, late, |count| *count < 4)
            .unwrap();
        if *count < 4 {
            say(stream, "404 Alone\r\nContent-Length: 0", b"")
        } else {
            say(stream, "200 OK\r\nContent-Length: 8", b"together")
        }
    });
    let host = server.address;
    let mut mail = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n".to_owned();
    for number in 0..4 {
        mail += &format!(
            "--b\nContent-Type: message/external-body; access-type=URL; URL=\"http://{host}/{number}\"\n\n\
            Content-Type: text/plain\n\n"
        );
    }
    mail += "--b--\n";
    let output = filled(&program, &server, mail.as_bytes());
    let written = String::from_utf8_lossy(&output.stdout);
    assert_eq!(written.matches("together").count(), 4, "{written}");
}

/// 127.0.0.1 is not a public address, so it is refused.
#[test]
fn example_without_an_allowed_network_requests_nothing() {
    let test = "example_without_an_allowed_network_requests_nothing";
    let Some(program) = example(test) else { return };
    let server = Raw::http(answer);
    let host = format!("localhost:{}", server.address.port());
    let mail = String::from_utf8(mail(&server, &["chunked.txt"])).unwrap();
    for mail in [mail.replace(&server.address.to_string(), &host), mail] {
        let output = fed(&mut Command::new(&program), mail.as_bytes());
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), mail);
    }
    assert_eq!(server.count(), 0);
}
