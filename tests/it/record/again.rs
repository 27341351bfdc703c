//! A run that records, and later runs with the record as an archive: the mail is the same, and no requests are sent.

use std::fs;
use std::io::Write as _;

use super::warcs::gzip;
use crate::common::programs::{embody_in, stderr};
use crate::common::raw::{Raw, ok};

const GIF: &[u8] =
    b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

const MAILS: usize = 400;
const URLS: usize = 1000;
const HOSTS: usize = 50;

/// Returns responses of every kind, depending on the number in the path.
fn answer(path: &str) -> Vec<u8> {
    let number: usize = path.trim_matches('/').parse().unwrap_or(0);
    let body = [GIF, b"x".repeat(number).as_slice()].concat();
    let said = |fields: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\nConnection: close\r\n{fields}\r\n"
        );
        [head.as_bytes(), body].concat()
    };
    let chunks = |body: &[u8]| {
        let chunks = body.chunks(20).flat_map(|chunk| {
            [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat()
        });
        chunks.chain(*b"0\r\n\r\n").collect::<Vec<u8>>()
    };
    let moved = |to: usize| {
        format!("HTTP/1.1 302 Found\r\nLocation: /{to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
    };
    let status = |status: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
            .into_bytes()
    };
    match number % 12 {
        0 => status("404 Not Found"),
        1 => status("500 Trouble"),
        2 => moved(number + 1),
        3 => said("Transfer-Encoding: chunked\r\n", &chunks(&body)),
        4 => {
            let packed = gzip(&body);
            said(
                &format!(
                    "Content-Encoding: gzip\r\nContent-Length: {}\r\n",
                    packed.len()
                ),
                &packed,
            )
        }
        5 => said(
            "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
            &chunks(&gzip(&body)),
        ),
        // Truncated; without a marked end; in a coding that was not requested.
        6 => said(&format!("Content-Length: {}\r\n", body.len() + 9), &body),
        7 => said("", &body),
        8 => said(
            &format!("Content-Encoding: br\r\nContent-Length: {}\r\n", body.len()),
            &body,
        ),
        9 => ok("text/html", b"<p>no picture</p>"),
        // Responses with the same content.
        10 => ok("image/gif", GIF),
        _ => ok("image/gif", &body),
    }
}

#[test]
fn a_later_run_over_the_record_gives_the_same_mail_and_asks_nobody() {
    let servers: Vec<Raw> = (1..=HOSTS)
        .map(|host| {
            Raw::http_at(&format!("127.0.0.{host}"), |path, stream| {
                let _ = stream.write_all(&answer(path));
            })
        })
        .collect();
    let count = || servers.iter().map(Raw::count).sum::<usize>();
    let folder = tempfile::tempdir().unwrap();
    let mut mbox = String::new();
    for mail in 0..MAILS {
        // Some mails have no date.
        let date = match mail % 9 {
            0 => String::new(),
            _ => format!(
                "Date: {} May {} 12:00:00 +0000\n",
                mail % 28 + 1,
                1996 + mail % 28
            ),
        };
        let pictures = (0..6).map(|at| {
            let number = (mail * 6 + at) % URLS;
            let url = servers[number % HOSTS].url(&format!("/{number}"));
            format!("<img src=\"{url}\">")
        });
        let pictures: String = pictures.collect();
        mbox.push_str(&format!(
            "From a@example.org Fri May  2 12:00:00 2003\n{date}Subject: {mail}\nContent-Type: text/html\n\n<p>{mail}</p>{pictures}\n\n"
        ));
    }
    fs::write(folder.path().join("in.mbox"), mbox).unwrap();
    let ports: Vec<String> = servers
        .iter()
        .map(|it| it.address.port().to_string())
        .collect();
    let allowed_ports = ports.join(",");
    let run = |more: &[&str]| {
        let options = [
            "embed",
            "in.mbox",
            "--fetch",
            "http",
            "--allow-net",
            "127.0.0.0/8",
            "--allow-port",
            &allowed_ports,
            "--trackers",
            "fetch",
        ];
        let ran = embody_in(folder.path(), &[&options, more].concat());
        assert!(ran.status.success(), "{more:?}: {}", stderr(&ran));
    };
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    run(&["--output", "live.mbox", "--record", "a.warc.gz"]);
    let asked = count();
    assert!(asked > URLS, "{asked} requests");
    let live = read("live.mbox");
    assert!(live.len() > 2 * read("in.mbox").len());
    let replay = ["--archive", "a.warc.gz", "--archive-first", "--offline"];
    run(&[&["--output", "again.mbox"], &replay[..]].concat());
    assert!(read("again.mbox") == live);
    // With the record in a directory, without the first option, and with provenance fields, whose values come from the record.
    fs::create_dir(folder.path().join("records")).unwrap();
    fs::rename(
        folder.path().join("a.warc.gz"),
        folder.path().join("records/a.warc.gz"),
    )
    .unwrap();
    run(&[
        "--output",
        "folder.mbox",
        "--archive",
        "records",
        "--offline",
    ]);
    assert!(read("folder.mbox") == live);
    for name in ["one.mbox", "two.mbox"] {
        run(&[
            "--output",
            name,
            "--archive",
            "records",
            "--offline",
            "--provenance",
        ]);
    }
    let one = String::from_utf8(read("one.mbox")).unwrap();
    assert!(one.as_bytes() == read("two.mbox"));
    assert!(
        one.contains("X-Embody-Source: <http://") && one.contains(" record=\"<urn:uuid:"),
        "{one}"
    );
    assert_eq!(count(), asked, "somebody was asked");
}
