//! `--archive` with whole mails and pywb: pictures from the time of the mail, and how many are lost (docs/archive.md).

use std::fs;
use std::io::Write as _;

use serde_json::{Value, json};

use crate::common::filter::{Ran, filter, reference};
use crate::common::mail::{Leaf, mail_parser_leaves};
use crate::common::programs::{embody, stderr};
use crate::common::pywb::{Capture, GIF, Nearest, TEXT, archive, asked, pywb};
use crate::common::raw::{Raw, ok};
use crate::common::reports;

/// A URL on a host that is gone.
const URL: &str = "http://gone.example/dir/a.txt";

/// A picture of 9 by 9 pixels. The bytes after its end make it unique.
fn gif(name: &str) -> Vec<u8> {
    let gif =
        b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    [gif.as_slice(), name.as_bytes()].concat()
}

fn pictures(mail: &[u8]) -> Vec<Vec<u8>> {
    let leaves = mail_parser_leaves(mail).into_iter();
    let is_picture = |leaf: &Leaf| leaf.essence.starts_with("image/");
    leaves.filter(is_picture).map(|leaf| leaf.octets).collect()
}

#[test]
fn a_mail_of_2003_comes_out_whole_with_the_pictures_of_2003() {
    const TEST: &str = "a_mail_of_2003_comes_out_whole_with_the_pictures_of_2003";
    let urls = ["a", "b", "c"].map(|name| format!("http://pictures.gone.example/{name}.gif"));
    let moved = "http://other.gone.example/c.gif";
    let old = ["a", "b", "c"].map(|name| gif(&format!("{name} of 2003")));
    let new = gif("of 2020, when somebody else has the name");
    let to = [("Location", moved)];
    let mut captures = vec![
        Capture::of(&urls[0], "20030620000000", GIF, &old[0]),
        Capture {
            is_gzip: true,
            ..Capture::of(&urls[1], "20030401000000", GIF, &old[1])
        },
        Capture {
            status: "302 Found",
            ..Capture::of(&urls[2], "20030510000000", &to, b"")
        },
        Capture::of(moved, "20030511000000", GIF, &old[2]),
    ];
    for url in &urls {
        captures.push(Capture::of(url, "20200101000000", GIF, &new));
    }
    let html = format!(
        "Received: from a by b; Fri, 2 May 2003 12:11:12 +0200\nDate: Fri, 02 May 2003 10:11:12 +0000\nMIME-Version: 1.0\nContent-Type: text/html\n\n\
         <p><img src=\"{}\"><img src=\"{}\"><img src=\"{}\"></p>\n",
        urls[0], urls[1], urls[2]
    );
    let mut whole: Option<Ran> = None;
    for nearest in [Nearest::AtOnce, Nearest::Redirect] {
        let Some(server) = pywb(TEST, &captures, nearest) else {
            return;
        };
        let options = format!("{} --embed remote", archive(&server));
        let ran = filter(&options, html.as_bytes());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(pictures(&ran.stdout), old, "{}", ran.stderr);
        let text = String::from_utf8(ran.stdout.clone()).unwrap();
        assert!(!text.contains("<img src=\"http"), "{text}");
        for url in &urls {
            assert!(
                text.contains(&format!("Content-Location: {url}\n")),
                "{text}"
            );
        }
        assert!(
            !ran.column("outcome").contains(&"left".to_owned()),
            "{}",
            ran.stderr
        );
        let times = ran.column("archive");
        for time in [
            "2003-06-20T00:00:00Z",
            "2003-04-01T00:00:00Z",
            "2003-05-11T00:00:00Z",
        ] {
            assert!(times.contains(&time.to_owned()), "{times:?}");
        }
        // Again, from a cache, while the archive is unavailable.
        let folder = tempfile::tempdir().unwrap();
        let cached = format!("{options} --cache {}", folder.path().join("c").display());
        assert!(filter(&cached, html.as_bytes()).stdout == ran.stdout);
        let count = asked(&server).len();
        assert!(filter(&cached, html.as_bytes()).stdout == ran.stdout);
        assert_eq!(asked(&server).len(), count, "captures do not change");
        drop(server);
        let offline = filter(&format!("{cached} --offline"), html.as_bytes());
        assert!(offline.stdout == ran.stdout, "{}", offline.stderr);
        // The result is the same for each way in which an archive marks the nearest capture, and in the second run.
        if let Some(other) = &whole {
            assert!(other.stdout == ran.stdout);
        }
        let second = filter(&options, &ran.stdout);
        assert!(second.stdout == ran.stdout);
        whole = Some(ran);
    }
    assert!(whole.is_some());
}

#[test]
fn a_probe_counts_what_is_in_the_archive_and_what_is_lost() {
    const TEST: &str = "a_probe_counts_what_is_in_the_archive_and_what_is_lost";
    let live = Raw::http(|path, stream| {
        let answer = match path {
            "/alive.gif" => ok("image/gif", b"GIF89a"),
            "/trouble.gif" => {
                b"HTTP/1.1 500 Trouble\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
            }
            _ => {
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
            }
        };
        let _ = stream.write_all(&answer);
    });
    let gone = live.url("/gone.gif");
    let captures = [
        Capture::of(&gone, "20030501000000", GIF, &[b'x'; 100]),
        Capture::of(URL, "20030501000000", TEXT, b"of May"),
    ];
    let Some(server) = pywb(TEST, &captures, Nearest::Redirect) else {
        return;
    };
    let pictures = ["alive", "gone", "lost", "trouble"]
        .map(|name| format!("<img src=\"{}\">", live.url(&format!("/{name}.gif"))));
    let message = format!(
        "From a@b Fri May  2 10:11:12 2003\nDate: Fri, 02 May 2003 10:11:12 +0000\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
         --b\nContent-Type: text/html\n\n{}<img src=\"https://x.refused.example/x\">\n\n--b\n{}--b--\n\n",
        pictures.concat(),
        reference(URL, "text/plain"),
    );
    let folder = tempfile::tempdir().unwrap();
    let mailbox = folder.path().join("box");
    fs::write(&mailbox, message).unwrap();
    let inspect = |more: &[&str]| {
        let options = format!(
            "{} --allow-port {} --deny-host *.refused.example",
            archive(&server),
            live.address.port()
        );
        let output = embody()
            .args(["inspect", "--probe", "--by", "host"])
            .args(options.split(' '))
            .args(more)
            .arg(&mailbox)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    for more in [&["--json"][..], &["--json", "--archive-first"]] {
        let said = inspect(more);
        let lines: Vec<Value> = said.lines().map(reports::object).collect();
        let survey = &lines
            .iter()
            .find(|line| line.get("survey").is_some())
            .unwrap()["survey"];
        let expected =
            json!({"alive": 1, "dead": 4, "refused": 1, "unasked": 0, "archived": 2, "lost": 1});
        assert_eq!(survey["probe"], expected, "{said}");
        let host = &survey["by"]["host"]["names"]["127.0.0.1"];
        assert_eq!(
            (&host["archived"], &host["lost"]),
            (&json!(1), &json!(1)),
            "{said}"
        );
    }
    let text = inspect(&[]);
    assert!(text.contains("the archive has 2 and lacks 1"), "{text}");
}
