//! `--embed` with malicious or malformed mails: counts, limits, structures. If time and memory matter, the program itself is
//! run.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::common::filter::{Ran, filter, measured};
use crate::common::mail::{Leaf, assert_bytes, crlf, mail_parser_leaves};
use crate::common::raw::{self, Raw};

/// Returns a GIF of 9 by 9 pixels. The bytes after its end make it unique.
fn gif(number: u32) -> Vec<u8> {
    let mut gif =
        b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;"
            .to_vec();
    gif.extend(number.to_be_bytes());
    gif
}

fn data(octets: &[u8]) -> String {
    format!("data:image/gif;base64,{}", STANDARD.encode(octets))
}

fn html(body: &str) -> Vec<u8> {
    format!("MIME-Version: 1.0\nContent-Type: text/html\n\n{body}\n").into_bytes()
}

fn embed(options: &str, mail: &[u8]) -> Ran {
    let ran = filter(&format!("--embed data,remote {options}"), mail);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran
}

/// Returns the memory that the program may need beside the copies of a mail, in bytes: that for any mail, and a copy of the
/// result.
fn beside(ran: &Ran) -> usize {
    ran.stdout.len() + (24 << 20)
}

/// Returns the bytes of the pictures in a mail.
fn pictures(mail: &[u8]) -> Vec<Vec<u8>> {
    let leaves = mail_parser_leaves(mail).into_iter();
    let is_picture = |leaf: &Leaf| leaf.essence.starts_with("image/");
    leaves.filter(is_picture).map(|leaf| leaf.octets).collect()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

#[test]
fn thousands_of_pictures_are_embedded_in_linear_time() {
    let mail = |count: u32| {
        let body: String = (0..count)
            .map(|number| format!("<img src='{}'>\n", data(&gif(number))))
            .collect();
        html(&body)
    };
    let (few, many) = (mail(625), mail(5_000));
    // The shortest of several runs, because the machine also runs other programs.
    let least = |mail: &[u8]| {
        let runs = (0..3).map(|_| embed("--quiet", mail).took);
        runs.min().unwrap_or_default()
    };
    let output = embed("--quiet", &many).stdout;
    assert_eq!(pictures(&output).len(), 5_000);
    let (eighth, whole) = (least(&few), least(&many));
    assert!(whole < eighth * 24, "{eighth:?} for an eighth of {whole:?}");
}

#[test]
fn a_large_picture_takes_little_memory() {
    let mut large = gif(1);
    large
        .extend((0..10_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8));
    for (what, octets) in [
        ("one", vec![large.clone()]),
        (
            "twenty",
            large
                .chunks(500_000)
                .map(|piece| [gif(2), piece.to_vec()].concat())
                .collect(),
        ),
    ] {
        // Lines in a mail are short, so the URL is folded.
        let folded = |url: String| {
            let lines: Vec<String> = url.as_bytes().chunks(76).map(text).collect();
            lines.join("\n")
        };
        let body: String = octets
            .iter()
            .map(|octets| format!("<img src='{}'>\n", folded(data(octets))))
            .collect();
        let mail = html(&body);
        let Some(ran) = measured(
            "a_large_picture_takes_little_memory",
            "--embed data --quiet",
            &mail,
        ) else {
            return;
        };
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(pictures(&ran.stdout), octets, "{what}");
        let gain = ran.stdout.len().saturating_sub(mail.len());
        let most = 4 * (mail.len() + gain) + beside(&ran);
        let peak = ran.peak.unwrap_or_default();
        assert!(
            peak < most as u64,
            "{what}: {peak} of {most} for {}",
            mail.len()
        );
    }
}

#[test]
fn style_sheets_in_style_sheets_take_little_memory() {
    // The content of the innermost style sheet is contained in each `data:` URL around it.
    let mut sheet = format!("a {{ color: red }} /*{}*/", "x".repeat(8_000_000));
    for _ in 0..12 {
        let escaped = sheet
            .replace('%', "%25")
            .replace(' ', "%20")
            .replace('(', "%28")
            .replace(')', "%29");
        sheet = format!("@import url(data:text/css,{escaped});");
    }
    let mail = html(&format!("<style>{sheet}</style>"));
    let options = "--embed data --embed-kinds image,style";
    let Some(ran) = measured(
        "style_sheets_in_style_sheets_take_little_memory",
        options,
        &mail,
    ) else {
        return;
    };
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.rows.last().unwrap()["reason"], "too-much-work");
    assert!(ran.rows.len() > 1, "{:?}", ran.rows);
    let gain = ran.stdout.len().saturating_sub(mail.len());
    let most = 4 * mail.len() + gain + beside(&ran);
    let peak = ran.peak.unwrap_or_default();
    assert!(peak < most as u64, "{peak} of {most} for {}", mail.len());
}

#[test]
fn what_was_retrieved_is_held_no_longer_than_it_is_needed() {
    let server = Raw::http(|path, stream| {
        use std::io::Write as _;
        let number = path.trim_start_matches('/').parse().unwrap_or(0);
        let mut picture = gif(number);
        picture.resize(1 << 20, 7);
        let _ = stream.write_all(&raw::ok("image/gif", &picture));
    });
    let body: String = (0..30)
        .map(|number| format!("<img src='{}'>", server.url(&format!("/{number}"))))
        .collect();
    let options = format!(
        "--embed remote --fetch http --allow-net 127.0.0.0/8 --allow-port {}",
        server.address.port()
    );
    let mail = html(&body);
    let test = "what_was_retrieved_is_held_no_longer_than_it_is_needed";
    let Some(ran) = measured(test, &options, &mail) else {
        return;
    };
    assert_eq!(pictures(&ran.stdout).len(), 30, "{}", ran.stderr);
    // The growth is held twice while the message is assembled. By then, the retrieved content was released.
    let most = 4 * mail.len() + 2 * ran.stdout.len() + beside(&ran);
    let peak = ran.peak.unwrap_or_default();
    assert!(peak < most as u64, "{peak} of {most}");
}

#[test]
fn thirty_megabyte_picture_is_embedded_only_with_a_raised_limit() {
    let mut large = gif(1);
    large.resize(30 << 20, 7);
    let mail = html(&format!(
        "<img src='{}'><img src='{}'>",
        data(&large),
        data(&gif(2))
    ));
    let ran = embed("", &mail);
    assert_eq!(ran.column("reason"), ["too-large", "-"], "{}", ran.stderr);
    assert_eq!(pictures(&ran.stdout), [gif(2)]);
    let ran = embed("--max-body 40M --max-growth 60M", &mail);
    assert!(pictures(&ran.stdout) == [large, gif(2)]);
}

#[test]
fn a_slow_server_costs_no_more_than_the_deadline_and_the_rest_is_embedded() {
    /// Time of an answer. A run that waited for one would take longer than [`MOST`].
    const SLOW: Duration = Duration::from_secs(120);
    /// Maximum time of the run. It is much longer than the deadline, because the machine can be busy with other tests.
    const MOST: Duration = Duration::from_secs(60);
    let server = Raw::http(|path, stream| {
        use std::io::Write as _;
        if !path.ends_with('0') {
            std::thread::sleep(SLOW);
        }
        let number = path.trim_start_matches('/').parse().unwrap_or(0);
        let _ = stream.write_all(&raw::ok("image/gif", &gif(number)));
    });
    let body: String = (0..1_000)
        .map(|number| format!("<img src='{}'>", server.url(&format!("/{number}"))))
        .chain([format!("<img src='{}'>", data(&gif(5_000)))])
        .collect();
    let options = format!(
        "--fetch http --allow-net 127.0.0.0/8 --allow-port {} --deadline 5s",
        server.address.port()
    );
    let begun = Instant::now();
    let ran = embed(&options, &html(&body));
    assert!(begun.elapsed() < MOST, "{:?}", begun.elapsed());
    assert!(server.count() <= 32, "{}", server.count());
    let reasons = ran.column("reason");
    assert_eq!(reasons.len(), 1_001);
    let count = |word: &str| {
        reasons
            .iter()
            .filter(|reason| reason.as_str() == word)
            .count()
    };
    assert_eq!(count("too-many-fetches"), 1_000 - 32);
    // The references at the front of the queue, and those inside the mail.
    let done = count("-");
    assert!(
        done >= 2 && done + count("deadline") + count("timeout") == 33,
        "{reasons:?}"
    );
    assert_eq!(pictures(&ran.stdout).len(), done);
    assert_eq!(pictures(&ran.stdout).last(), Some(&gif(5_000)));
}

#[test]
fn cut_off_multipart_is_left_and_each_nested_document_gets_its_picture() {
    let one = data(&gif(1));
    let part = format!("Content-Type: text/html\n\n<img src='{one}'>\n");
    // The multipart/related is not closed, so parts that are added after it might be treated as its epilogue.
    let cut =
        format!("MIME-Version: 1.0\nContent-Type: multipart/related; boundary=r\n\n--r\n{part}");
    let ran = embed("", cut.as_bytes());
    assert_bytes(&ran.stdout, cut.as_bytes(), "cut off");
    assert_eq!(ran.column("reason"), ["incomplete-body"]);
    // The mail already contains the boundary that embody would use.
    let first = embed("", &html(&format!("<img src='{one}'>"))).stdout;
    let boundary = text(&first)
        .split("boundary=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    let collides = html(&format!("<img src='{one}'>\n--{boundary}\n--{boundary}--"));
    let ran = embed("", &collides);
    assert_eq!(pictures(&ran.stdout), [gif(1)], "{}", text(&ran.stdout));
    assert!(!text(&ran.stdout).contains(&format!("boundary=\"{boundary}\"")));
    // Nested multiparts, with the same picture in two branches.
    let inner = format!("Content-Type: message/rfc822\n\nMIME-Version: 1.0\n{part}");
    let nested = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=m\n\n--m\n{part}\n--m\n{inner}\n--m\n{part}\n--m--\n"
    );
    let ran = embed("", nested.as_bytes());
    let output = text(&ran.stdout);
    assert_eq!(
        output.matches("multipart/related").count(),
        pictures(&ran.stdout).len(),
        "{output}"
    );
    assert_eq!(output.matches("src='cid:").count(), 3, "{output}");
    // Each multipart/related has its own copy: mail clients search a Content-ID in the multipart around the document, and the
    // forwarded message may be saved on its own.
    assert_eq!(pictures(&ran.stdout), [gif(1), gif(1), gif(1)], "{output}");
    let forwarded = output.split("message/rfc822").nth(1).unwrap();
    assert!(
        forwarded
            .split("--m")
            .next()
            .unwrap()
            .contains("Content-ID"),
        "{output}"
    );
}

#[test]
fn cid_urls_that_are_there_stay() {
    let mail = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=r\n\n--r\nContent-Type: text/html\n\n\
         <img src='cid:a@b'><img src='cid:nobody@b'><img src='{}'>\n--r\nContent-Type: image/gif\n\
         Content-ID: <a@b>\nContent-Transfer-Encoding: base64\n\n{}\n--r--\n",
        data(&gif(1)),
        STANDARD.encode(gif(2))
    );
    let ran = embed("", mail.as_bytes());
    let output = text(&ran.stdout);
    assert!(
        output.contains("<img src='cid:a@b'><img src='cid:nobody@b'><img src='cid:"),
        "{output}"
    );
    assert_eq!(pictures(&ran.stdout), [gif(2), gif(1)]);
    assert_eq!(ran.rows.len(), 1, "{:?}", ran.rows);
}

#[test]
fn content_ids_do_not_depend_on_line_ends_in_any_transfer_encoding() {
    let ids = |output: &[u8]| -> Vec<String> {
        let output = text(output);
        let lines = output
            .lines()
            .filter(|line| line.starts_with("Content-ID") || line.contains("boundary="));
        lines.map(|line| line.trim().to_owned()).collect()
    };
    for encoding in ["7bit", "8bit", "binary"] {
        let letter = if encoding == "7bit" { "a" } else { "\u{e4}" };
        let mail = format!(
            "MIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: {encoding}\n\n<p>{letter}\n<img src='{}'>\n",
            data(&gif(1))
        );
        let (lf, twin) = (
            embed("", mail.as_bytes()).stdout,
            embed("", &crlf(mail.as_bytes())).stdout,
        );
        assert_eq!(pictures(&lf), [gif(1)]);
        assert_eq!(ids(&lf), ids(&twin), "{encoding}");
        assert_bytes(&twin, &crlf(&lf), encoding);
        assert!(text(&lf).contains(letter));
    }
}
