//! The survey counts a picture once for each message that displays it, as `embed` does.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::programs::{embody_in, stderr};
use crate::common::reports;

const PICTURES: &str = "<div style=\"background: url(https://a.example/h.png)\"><img src=\"https://a.example/h.png\">\
    <img src=\"https://a.example/h.png#x\"><img src=\"HTTPS://A.example/h.png\"></div>\
    <img src=\"https://a.example/t.gif\" width=1 height=1><img src=\"https://a.example/t.gif\" width=1 height=1>\
    <img src=\"https://b.example/m.png\" width=1 height=1><img src=\"https://b.example/m.png\" width=99 height=99>\
    <img srcset=\"https://a.example/s1.png 1x, https://a.example/s2.png 2x\" src=\"https://a.example/s1.png\">\
    <img src=\"cid:lost@x\"><img src=\"cid:lost@x\">";

/// Returns the last line of `inspect --json`.
fn survey(folder: &Path, arguments: &[&str]) -> Value {
    let output = embody_in(folder, &[&["inspect", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let lines = reports::objects(&output.stdout);
    let last = lines.last().expect("the survey");
    assert_eq!(last["kind"], "survey");
    last["survey"].clone()
}

fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = embody_in(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output)
}

#[test]
fn picture_in_several_places_of_a_message_counts_once() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let one = format!("Subject: x\nMIME-Version: 1.0\nContent-Type: text/html\n\n{PICTURES}\n");
    let document = format!("--b\nContent-Type: text/html\n\n{PICTURES}\n");
    let two = format!(
        "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n{document}{document}--b--\n"
    );
    for (name, mail) in [("one.eml", &one), ("two.eml", &two)] {
        fs::write(at.join(name), mail).unwrap();
        let options = [
            "--by", "host", "--embed", "remote", "--fetch", "https", name,
        ];
        let counts = survey(at, &options);
        let pictures = &counts["pictures"];
        let numbers = ["remote", "trackers", "missing"].map(|it| pictures[it].as_u64());
        assert_eq!(numbers, [Some(4), Some(1), Some(1)], "{name}: {pictures}");
        assert_eq!(pictures["hosts"]["a.example"], 3, "{name}: {pictures}");
        assert_eq!(pictures["hosts"]["b.example"], 1, "{name}: {pictures}");
        assert_eq!(counts["trackers"]["companies"]["a.example"], 1, "{name}");
        let embed = &counts["embed"];
        let foreseen = ["remote", "distinct", "trackers"].map(|it| embed[it].as_u64());
        assert_eq!(foreseen, [Some(4), Some(4), Some(1)], "{name}: {embed}");
        let text = printed(at, &["inspect", name]);
        assert!(
            text.contains("\n4 pictures in this mail are only on the web.\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "\npictures     4 on 2 servers (trackers are not counted here), 1 missing"
            ),
            "{text}"
        );
        let plan = printed(at, &["embed", "--dry-run", name]);
        assert!(
            plan.contains("4 pictures would be retrieved; 1 more "),
            "{plan}"
        );
        assert!(
            plan.contains("1 tracking picture would not be touched."),
            "{plan}"
        );
    }
    // Two messages display the same picture, so each of them needs it.
    let mbox = format!("From a@b Sat Jan  3 01:05:34 1996\n{one}\n").repeat(2);
    fs::write(at.join("both.mbox"), mbox).unwrap();
    let both = survey(at, &["--embed", "remote", "--fetch", "https", "both.mbox"]);
    assert_eq!(both["pictures"]["remote"], 8);
    assert_eq!(
        (&both["embed"]["remote"], &both["embed"]["distinct"]),
        (&8.into(), &4.into())
    );
}

#[test]
fn json_of_one_message_ends_with_the_survey() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let mail = format!("Subject: x\nMIME-Version: 1.0\nContent-Type: text/html\n\n{PICTURES}\n");
    fs::write(at.join("one.eml"), &mail).unwrap();
    fs::write(at.join("two.eml"), &mail).unwrap();
    for (sources, messages) in [(&["one.eml"][..], 1), (&["one.eml", "two.eml"], 2)] {
        let counts = survey(at, sources);
        assert_eq!(counts["messages"], messages);
        assert_eq!(counts["files"]["read"], messages, "{counts}");
        assert_eq!(counts["pictures"]["remote"], 4 * messages);
    }
}
