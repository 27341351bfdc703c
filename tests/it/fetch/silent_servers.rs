//! Servers that do not respond delay neither the messages after theirs nor the rest of the run.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::programs::embody;

/// A GIF of 16 by 16 pixels, which is too large for a tracking picture.
const PICTURE: &[u8] =
    b"GIF89a\x10\0\x10\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x10\0\x10\0\0\x02\x02D\x01\0;";

/// Starts a server that calls `serve` for each connection, in a thread of its own, after the first bytes of the request
/// arrived. Returns the port.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let read = stream.read(&mut [0; 4096]);
                if read.is_ok_and(|read| read > 0) {
                    serve(stream);
                }
            });
        }
    });
    port
}

fn mail(subject: usize, picture: Option<&str>, length: usize) -> String {
    let image = picture.map(|url| format!("<img src={url}>\n"));
    format!(
        "From a@b Mon Jan  1 10:00:00 2024\nSubject: {subject}\nMIME-Version: 1.0\nContent-Type: text/html\n\n{}{}\n",
        image.unwrap_or_default(),
        "some text of a mail\n".repeat(length / 20)
    )
}

fn embed(folder: &Path, mailbox: &str, ports: &[u16], options: &[&str]) -> (Output, String) {
    fs::write(folder.join("box"), mailbox).unwrap();
    let mut command = embody();
    command
        .current_dir(folder)
        .args(["embed", "box", "--output", "new", "--report", "rows"])
        .args(["--fetch", "http", "--allow-net", "127.0.0.0/8"])
        .args(options);
    for port in ports {
        command.arg("--allow-port").arg(port.to_string());
    }
    let output = command.output().unwrap();
    (output, fs::read_to_string(folder.join("rows")).unwrap())
}

#[test]
fn a_host_that_times_out_three_times_in_a_row_is_not_asked_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let port = server(move |stream| {
        count.fetch_add(1, Ordering::SeqCst);
        thread::sleep(Duration::from_secs(60));
        drop(stream);
    });
    let url = |number: usize| format!("http://127.0.0.1:{port}/{number}.png");
    let mails = (0..9).map(|number| mail(number, Some(&url(number)), 100));
    let mailbox: String = mails.collect();
    let folder = tempfile::tempdir().unwrap();
    let options = ["--timeout", "1s", "--max-in-flight", "1"];
    let (output, rows) = embed(folder.path(), &mailbox, &[port], &options);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(asked.load(Ordering::SeqCst), 3, "{said}");
    let count = |reason: &str| rows.matches(&format!("\"reason\":\"{reason}\"")).count();
    assert_eq!(
        (count("timeout"), count("host-unresponsive")),
        (3, 6),
        "{rows}"
    );
    assert!(
        said.contains("6 on hosts that timed out three times in a row"),
        "{said}"
    );
    // No server responded in this run, so the status is 1.
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(
        fs::read_to_string(folder.path().join("new")).unwrap(),
        mailbox
    );
}

/// The archive accepts connections and never responds. The messages after the third one do not wait for it.
#[test]
fn archive_that_times_out_three_times_in_a_row_is_not_waited_for() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let archive = server(move |stream| {
        count.fetch_add(1, Ordering::SeqCst);
        thread::sleep(Duration::from_secs(60));
        drop(stream);
    });
    let source = server(|mut stream| {
        let answer = "HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let url = |number: usize| format!("http://127.0.0.1:{source}/{number}.png");
    let dated = |number| {
        let date = "Date: Mon, 1 Jan 2024 10:00:00 +0000\nSubject: ";
        mail(number, Some(&url(number)), 100).replacen("Subject: ", date, 1)
    };
    let mailbox: String = (0..9).map(dated).collect();
    let folder = tempfile::tempdir().unwrap();
    let template = format!("http://127.0.0.1:{archive}/{{date}}id_/{{url}}");
    let options = [
        "--archive",
        &template,
        "--archive-any",
        "--timeout",
        "1s",
        "--max-in-flight",
        "1",
    ];
    let (output, rows) = embed(folder.path(), &mailbox, &[source, archive], &options);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(asked.load(Ordering::SeqCst), 3, "{said}");
    assert_eq!(rows.matches("\"status\":404").count(), 9, "{rows}");
    assert_eq!(
        rows.matches("the archive cannot be used: ").count(),
        9,
        "{rows}"
    );
    let immediate = "the archive could not be reached a short time ago";
    assert_eq!(rows.matches(immediate).count(), 6, "{rows}");
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn url_with_a_temporary_failure_is_requested_once_per_run() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let port = server(move |mut stream| {
        count.fetch_add(1, Ordering::SeqCst);
        let answer = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let url = format!("http://127.0.0.1:{port}/logo.png");
    let mailbox: String = (0..9).map(|number| mail(number, Some(&url), 100)).collect();
    let folder = tempfile::tempdir().unwrap();
    let (_, rows) = embed(folder.path(), &mailbox, &[port], &[]);
    assert_eq!(rows.matches("\"status\":503").count(), 9, "{rows}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[test]
fn messages_after_waiting_ones_are_filled() {
    const WAITING: usize = 4;
    // Each server responds only after all of them got a request: if the messages after the first were not read, all would time
    // out.
    let state = Arc::new((Mutex::new(0_usize), Condvar::new()));
    let servers = (0..WAITING).map(|_| {
        let state = Arc::clone(&state);
        server(move |mut stream| {
            let (asked, changed) = &*state;
            let mut asked = asked.lock().unwrap();
            *asked += 1;
            changed.notify_all();
            let all = changed.wait_while(asked, |asked| *asked < WAITING).unwrap();
            drop(all);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                PICTURE.len()
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(PICTURE).unwrap();
        })
    });
    let ports: Vec<u16> = servers.collect();
    // There are 9 MB between two pictures, more than all windows together.
    let mails = (0..10 * WAITING).map(|number| {
        let port = ports.get(number / 10).filter(|_| number % 10 == 0);
        let url = port.map(|port| format!("http://127.0.0.1:{port}/a.gif"));
        mail(number, url.as_deref(), 900_000)
    });
    let mailbox: String = mails.collect();
    let folder = tempfile::tempdir().unwrap();
    let (output, rows) = embed(folder.path(), &mailbox, &ports, &["--timeout", "30s"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let saved = rows.matches("\"outcome\":\"expanded\"").count();
    assert_eq!(saved, WAITING, "{rows}");
    let new = fs::read_to_string(folder.path().join("new")).unwrap();
    for number in 0..10 * WAITING {
        let subject = format!("\nSubject: {number}\n");
        assert_eq!(new.matches(&subject).count(), 1, "{number}");
    }
    let texts = |mailbox: &str| mailbox.matches("some text of a mail\n").count();
    assert_eq!(texts(&new), texts(&mailbox));
}
