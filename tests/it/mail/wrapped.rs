//! Wrapped links on the command line: captures of the original, `--unwrap` in mailboxes, and the counts of the survey. The rules
//! are in `tests/unit/wrapped.rs`.

use std::fs;

use crate::common::programs::{done, embody, embody_in, fed, stderr};
use crate::common::reports;

const GIF: &[u8] =
    b"GIF89a\x09\0\x09\0\x80\0\0\x01\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
const PROXY: &str = "https://ci3.googleusercontent.com/meips/AbC=s0-d-e1-ft";

fn mbox() -> String {
    format!(
        "From a@x.example Mon Jun 10 06:13:20 2024\nFrom: a@x.example\nSubject: x\nDate: Sun, 1 Mar 2020 10:00:00 +0000\nMIME-Version: 1.0\nContent-Type: text/html\n\n<img src=\"{PROXY}#https://h.example/o.gif\">\n<a href=\"https://google.com/url?q=https://h.example/\">x</a>\n\nFrom a@x.example Mon Jun 10 06:13:20 2024\nFrom: a@x.example\nSubject: y\n\nhttps://urldefense.com/v3/__https://h.example/*a__;Iw!!o!s$ and https://urldefense.com/v3/__https://h.example/b__;!!o!s$\n\n"
    )
}

#[test]
fn capture_of_the_original_is_embedded_if_the_proxy_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("in.mbox"), mbox()).unwrap();
    let response = [
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\nContent-Length: {}\r\n\r\n",
            GIF.len()
        )
        .as_bytes(),
        GIF,
    ]
    .concat();
    let header = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:11111111-1111-4111-8111-111111111111>\r\nWARC-Date: 2020-03-01T10:00:00Z\r\nWARC-Target-URI: https://h.example/o.gif\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n",
        response.len()
    );
    fs::write(
        at.join("a.warc"),
        [header.as_bytes(), &response, b"\r\n\r\n"].concat(),
    )
    .unwrap();
    let output = embody_in(
        at,
        &[
            "embed",
            "-v",
            "in.mbox",
            "--offline",
            "--archive",
            "a.warc",
            "--output",
            "out.mbox",
        ],
    );
    done(&output, 0);
    assert!(
        stderr(&output).contains(
            "from https://h.example/o.gif, the original of the URL that gmail-proxy wrapped"
        ),
        "{}",
        stderr(&output)
    );
    let text = fs::read_to_string(at.join("out.mbox")).unwrap();
    assert!(
        text.contains(&format!("Content-Location: {PROXY}\n")),
        "{text}"
    );
    done(&embody_in(at, &["compare", "in.mbox", "out.mbox"]), 0);
}

#[test]
fn unwrap_changes_every_message_of_a_mailbox_and_the_survey_counts_links_by_service() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("in.mbox"), mbox()).unwrap();
    let survey = |name: &str| {
        let output = embody_in(at, &["inspect", "--json", name]);
        done(&output, 0);
        let text = String::from_utf8(output.stdout).unwrap();
        let survey = reports::object(text.lines().last().unwrap());
        survey["survey"]["links"]["wrapped"].clone()
    };
    assert_eq!(
        survey("in.mbox"),
        serde_json::json!({"gmail-proxy": 1, "google": 1, "proofpoint": 2})
    );
    let output = embody_in(
        at,
        &["convert", "in.mbox", "--unwrap", "--output", "out.mbox"],
    );
    done(&output, 0);
    assert!(
        stderr(&output).contains("4 wrapped links were replaced with the original URL."),
        "{}",
        stderr(&output)
    );
    let text = fs::read_to_string(at.join("out.mbox")).unwrap();
    assert!(
        text.contains(
            "<img src=\"https://h.example/o.gif\">\n<a href=\"https://h.example/\">x</a>\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("\nhttps://h.example/#a and https://h.example/b\n"),
        "{text}"
    );
    assert_eq!(survey("out.mbox"), serde_json::json!({}));
    let output = embody_in(at, &["compare", "in.mbox", "out.mbox"]);
    done(&output, 0);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        told.contains("4 wrapped links replaced with their originals"),
        "{told}"
    );
    let mail = mbox()
        .split_inclusive('\n')
        .skip(1)
        .take(7)
        .collect::<String>();
    let filtered = fed(embody().args(["filter", "-q", "--unwrap"]), mail.as_bytes());
    done(&filtered, 0);
    assert!(String::from_utf8_lossy(&filtered.stdout).contains("src=\"https://h.example/o.gif\""));
}
