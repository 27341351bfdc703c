//! The fields of a row about the origin of content: source, URL, time and hash (docs/reasons.md).

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::common::filter::{filter, mail, open, reference};
use crate::common::programs::{embody, fed};
use crate::common::raw::{Raw, ok, redirect};
use crate::common::reports;

/// A picture of 9 by 9 pixels, and one of 1 by 1.
const PICTURE: &[u8] =
    b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
const TINY: &[u8] =
    b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

fn server() -> Raw {
    Raw::http(|path, stream| {
        let refused = |status: &str| {
            format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .into_bytes()
        };
        let kept = |answer: Vec<u8>| {
            let answer = String::from_utf8_lossy(&answer).into_owned();
            answer
                .replacen("\r\n", "\r\nCache-Control: max-age=600\r\n", 1)
                .into_bytes()
        };
        let answer = match path {
            "/from" => kept(redirect("/to")),
            "/to" => kept(ok("text/plain", b"remote")),
            "/picture" | "/again" => ok("image/gif", PICTURE),
            "/tiny" => ok("image/gif", TINY),
            "/page" => ok("text/html", b"<p>sign in"),
            "/forbidden" => refused("403 Forbidden"),
            "/busy" => refused("503 Busy"),
            _ => refused("404 Not Found"),
        };
        let _ = stream.write_all(&answer);
    })
}

/// Returns the fields of a row about the origin of the content, and whether there is a time.
fn provenance(row: &Value) -> Value {
    let time = row["retrieved_at"].as_str();
    assert!(
        time.is_none_or(|time| time.len() == 20 && time.ends_with('Z')),
        "{row}"
    );
    json!([
        row["from"],
        row["status"],
        row["final_url"],
        row["sha256"],
        time.is_some()
    ])
}

fn hash(octets: &[u8]) -> String {
    let digits = Sha256::digest(octets);
    digits.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[test]
fn a_row_says_where_content_came_from_and_with_which_status_it_was_refused() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.txt");
    fs::write(&file, "of a file").unwrap();
    let before = mail(&[
        reference(&server.url("/from#part"), "text/plain"),
        reference(&server.url("/page"), "image/gif"),
        reference(&server.url("/gone"), "text/plain"),
        reference(&server.url("/forbidden"), "text/plain"),
        reference(&server.url("/busy"), "text/plain"),
        reference("data:,here", "text/plain"),
        reference(&format!("file://{}", file.display()), "text/plain"),
        reference("gopher://a.example/", "text/plain"),
    ]);
    let root = folder.path().display();
    let options = format!("{} --file-root {root}", open(&[server.address.port()]));
    let ran = filter(&options, &before);
    let said: Vec<Value> = ran.rows.iter().map(provenance).collect();
    let none = |status: Value| json!(["none", status, null, null, false]);
    let (to, page) = (server.url("/to"), server.url("/page"));
    let expected = [
        json!(["network", 200, to, hash(b"remote"), true]),
        // The content was retrieved, but has the wrong type.
        json!(["network", 200, page, hash(b"<p>sign in"), true]),
        none(json!(404)),
        none(json!(403)),
        none(json!(503)),
        json!(["message", null, null, null, false]),
        json!([
            "file",
            null,
            format!("file://{}", file.display()),
            hash(b"of a file"),
            true
        ]),
        none(Value::Null),
    ];
    assert_eq!(said, expected, "{:#?}", ran.rows);
}

#[test]
fn what_the_cache_has_keeps_the_time_at_which_its_server_gave_it() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let before = mail(&[reference(&server.url("/from"), "text/plain")]);
    let options = format!(
        "{} --cache {}",
        open(&[server.address.port()]),
        cache.display()
    );
    let first = filter(&options, &before);
    assert_eq!(first.column("from"), ["network"], "{}", first.stderr);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    for more in ["", " --offline"] {
        let second = filter(&format!("{options}{more}"), &before);
        assert!(second.stdout == first.stdout);
        assert_eq!(second.column("from"), ["cache"], "{}", second.stderr);
        for same in ["retrieved_at", "final_url", "status", "sha256"] {
            assert_eq!(second.column(same), first.column(same), "{same}");
        }
    }
    assert_eq!(server.heads().len(), 2);
    assert_eq!(first.column("final_url"), [server.url("/to")]);
}

#[test]
fn a_tracker_that_nobody_asked_is_blanked_and_one_that_was_asked_says_so() {
    let server = server();
    let html = format!(
        "Content-Type: text/html\n\n<img src=\"{}\"><img src=\"{}\"><img src=\"{}\" width=1 height=1>\n\
         <img src=\"{}\"><img src=\"data:image/gif;base64,R0lGODlhCQAJAIAAAAAAAP///ywAAAAAAQABAAACAkQBADs=\">\n",
        server.url("/picture"),
        server.url("/again"),
        server.url("/tracker"),
        server.url("/tiny")
    );
    let options = format!(
        "{} --embed data,remote --trackers blank",
        open(&[server.address.port()])
    );
    let ran = filter(&format!("{options} --mark"), html.as_bytes());
    assert_eq!(
        ran.column("outcome"),
        ["expanded", "expanded", "blanked", "blanked", "expanded"],
        "{}",
        ran.stderr
    );
    assert!(!server.heads().iter().any(|head| head.contains("/tracker")));
    let said: Vec<Value> = ran.rows.iter().map(provenance).collect();
    let expected = [
        json!(["network", 200, server.url("/picture"), hash(PICTURE), true]),
        // Equal bytes become a single part, but each URL has a row.
        json!(["network", 200, server.url("/again"), hash(PICTURE), true]),
        json!(["none", null, null, null, false]),
        json!(["network", 200, server.url("/tiny"), hash(TINY), true]),
        json!(["message", null, null, null, false]),
    ];
    assert_eq!(said, expected, "{:#?}", ran.rows);
    let output = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(output.contains("X-Embody: expanded=5 left=0"), "{output}");
    // `inspect` reports the same, but sends no requests.
    let asked = server.heads().len();
    let inspect = fed(
        embody()
            .args(["inspect", "--json"])
            .args(options.split(' ')),
        html.as_bytes(),
    );
    let rows = String::from_utf8(inspect.stdout).unwrap();
    let outcomes: Vec<Value> = rows
        .lines()
        .map(reports::object)
        .filter(|row| row.get("survey").is_none())
        .map(|row| row["outcome"].clone())
        .collect();
    assert_eq!(
        outcomes,
        [
            "would-fetch",
            "would-fetch",
            "would-blank",
            "would-fetch",
            "would-expand"
        ]
    );
    let last = reports::object(rows.lines().last().unwrap());
    assert_eq!(last["survey"]["embed"]["trackers"], 1, "{last}");
    assert_eq!(server.heads().len(), asked);
}

#[test]
fn restored_attachment_has_the_field_with_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store").display().to_string();
    let content = "a line of text\n".repeat(1000);
    let before = format!(
        "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\nContent-Disposition: attachment\n\n{content}\n--b--\n"
    );
    let rows = |arguments: &[&str], input: &[u8]| {
        let mut command = embody();
        command
            .args(arguments)
            .args(["--store", &store, "--report", "-", "--quiet"]);
        let output = fed(&mut command, input);
        assert!(output.status.success(), "{output:?}");
        let row = reports::object(&output.stderr);
        (row, output.stdout)
    };
    let (row, left) = rows(&["detach", "--larger-than", "100"], before.as_bytes());
    assert_eq!(
        (&row["from"], &row["sha256"]),
        (&json!("message"), &json!(hash(content.as_bytes())))
    );
    let (row, back) = rows(&["restore"], &left);
    assert!(back == before.as_bytes());
    assert_eq!(
        provenance(&row),
        json!(["store", null, null, hash(content.as_bytes()), true]),
        "{row}"
    );
}

#[test]
fn many_documents_that_show_one_url_of_a_long_redirect_cost_no_more_than_the_work_that_is_allowed()
{
    let long = format!("/{}", "x".repeat(7_000));
    let to = long.clone();
    let server = Raw::http(move |path, stream| {
        let answer = match path {
            "/a" => redirect(&to),
            _ => ok("image/gif", TINY),
        };
        let _ = stream.write_all(&answer);
    });
    let mut parts = String::new();
    for _ in 0..4_000 {
        let _ = write!(
            parts,
            "--b\nContent-Type: text/html\n\n<img src={}>\n",
            server.url("/a")
        );
    }
    let before = format!("Content-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n");
    let options = open(&[server.address.port()]);
    let ran = filter(
        &format!("{options} --embed remote --max-work 30 --max-growth 1M"),
        before.as_bytes(),
    );
    assert!(ran.rows.len() >= 4_000);
    let row = ran
        .rows
        .iter()
        .find(|row| row["reason"] == "tracker")
        .unwrap();
    assert_eq!(
        row["final_url"].as_str().map(str::len),
        Some(server.url(&long).len())
    );
    let told: usize = ran
        .rows
        .iter()
        .filter_map(|row| row["final_url"].as_str())
        .map(str::len)
        .sum();
    assert!(told <= 30 * (before.len() + 100) + (1 << 20), "{told}");
}
