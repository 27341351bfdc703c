//! A run over mailboxes in which no server sent a response says so first, and its status is 1: without a network, with a wrong
//! proxy, with a name that does not exist. `filter` delivers the mail as always.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::process::Output;

use crate::common::programs::{embody, fed, stderr};
use crate::common::raw::Raw;

const NO_RESPONSE: &str = "embody: No server responded: ";

fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn message(url: &str) -> String {
    format!(
        "Subject: one\nMIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\nContent-Type: text/plain\n\n\n"
    )
}

fn converted(urls: &[&str], options: &[&str]) -> (Output, bool) {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (
        folder.path().join("in.mbox"),
        folder.path().join("out.mbox"),
    );
    let mails = urls.iter().map(|url| {
        let mail = message(url);
        format!("From a@b Mon Jul  6 10:00:00 2015\n{mail}\n")
    });
    fs::write(&from, mails.collect::<String>()).unwrap();
    let mut command = embody();
    command.arg("convert").arg(&from).arg("--output").arg(&to);
    command.args([
        "--fetch",
        "http",
        "--allow-net",
        "127.0.0.0/8",
        "--no-resume",
    ]);
    let output = command.args(options).output().unwrap();
    (output, to.exists())
}

#[test]
fn convert_without_any_response_says_so_first_and_ends_with_1() {
    let port = closed_port().to_string();
    let closed = format!("http://127.0.0.1:{port}/a");
    let proxy = format!("http://127.0.0.1:{port}");
    for (urls, options, words) in [
        (
            vec![&*closed, &*closed],
            vec!["--allow-port", &*port],
            "all 2 requests failed (2 on servers that did not accept a connection)",
        ),
        (
            vec!["http://www.example.com/a"],
            vec!["--proxy", &*proxy],
            "the only request failed (1 on servers",
        ),
        (
            vec!["http://no-such-host.invalid/a"],
            vec![],
            "on hosts that do not exist",
        ),
    ] {
        let (output, is_written) = converted(&urls, &options);
        let said = stderr(&output);
        let first = said.lines().next().unwrap_or_default();
        assert!(first.starts_with(NO_RESPONSE), "{urls:?}: {said}");
        assert!(first.contains(words), "{urls:?}: {said}");
        assert!(first.contains("--proxy"), "{said}");
        assert_eq!(output.status.code(), Some(1), "{urls:?}: {said}");
        assert!(is_written, "the mail is kept as it is");
        let quiet: Vec<&str> = options.iter().copied().chain(["--quiet"]).collect();
        let (output, _) = converted(&urls, &quiet);
        assert_eq!(output.status.code(), Some(1), "{urls:?}");
        assert!(stderr(&output).starts_with(NO_RESPONSE), "{urls:?}");
    }
}

#[test]
fn convert_with_one_response_ends_with_0() {
    let server = Raw::http(|_, stream| {
        let _ =
            stream.write_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
    let (port, open) = (closed_port().to_string(), server.address.port().to_string());
    let closed = format!("http://127.0.0.1:{port}/a");
    let options = ["--allow-port", &*port, "--allow-port", &*open];
    let (output, _) = converted(&[&closed, &server.url("/b")], &options);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!said.contains("No server responded"), "{said}");
    assert!(said.contains("1 gone (404)"), "{said}");
    // A mailbox that needs no server.
    let (output, _) = converted(&["data:,x"], &options);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn filter_without_any_response_delivers_the_mail() {
    let port = closed_port().to_string();
    let mail = message(&format!("http://127.0.0.1:{port}/a"));
    let mut command = embody();
    command.args(["filter", "--fetch", "http", "--allow-net", "127.0.0.0/8"]);
    command.args(["--allow-port", &port]);
    let output = fed(&mut command, mail.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(output.stdout, mail.as_bytes());
}
