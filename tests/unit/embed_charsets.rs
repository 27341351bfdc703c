//! URLs in documents that are not in UTF-8: the path is escaped in UTF-8, and the query in the charset of the document
//! (URL Standard §4.4). The expected URLs are those that Chromium requests for the same documents.

use embody::fetch::Canned;
use embody::report::{Kind, Outcome, Reason};

use super::common::mail::assert_bytes;
use super::embed::{cids, gif, policy, run};
use super::links;

fn mail(charset: &str, body: &[u8]) -> Vec<u8> {
    let header = format!(
        "MIME-Version: 1.0\nContent-Type: text/html{charset}\nContent-Transfer-Encoding: 8bit\n\n"
    );
    [header.as_bytes(), body].concat()
}

/// Returns an image whose URL is absolute.
fn image(reference: &[u8]) -> Vec<u8> {
    [b"<img src=\"https://h.example/", reference, b"\">"].concat()
}

#[track_caller]
fn requests(charset: &str, body: &[u8], expected: &[&str]) {
    let world = expected.iter().fold(Canned::new(), |world, url| {
        world.with(url, Some("image/gif"), gif(9, 9, 1))
    });
    let (output, report) = run(policy(), &world, &mail(charset, body));
    let requested: Vec<String> = world
        .asked()
        .into_iter()
        .map(|request| url::Url::parse(request.url()).unwrap().to_string())
        .collect();
    let parsed: Vec<String> = expected
        .iter()
        .map(|url| url::Url::parse(url).unwrap().to_string())
        .collect();
    assert_eq!(requested, parsed, "{charset} {:?}", report.rows);
    let text = String::from_utf8_lossy(&output).into_owned();
    assert!(
        !cids(&text).is_empty(),
        "{charset}: {text} {:?}",
        report.rows
    );
}

#[test]
fn url_in_a_declared_charset_has_its_path_in_utf_8_and_its_query_in_the_charset() {
    let rows: [(&str, &[u8], &str); 15] = [
        (
            "iso-8859-1",
            b"gr\xf6\xdfe.png?n=gr\xf6\xdfe",
            "größe.png?n=gr%F6%DFe",
        ),
        (
            "iso-8859-1",
            b"gr&ouml;&#223;e.png?n=gr&ouml;&#223;e&hearts;",
            "größe.png?n=gr%F6%DFe%26%239829%3B",
        ),
        // These bytes are two characters here, although they would be one character in UTF-8.
        ("iso-8859-1", b"\xc3\xb6.png?\xc3\xb6", "Ã¶.png?%C3%B6"),
        ("latin1", b"\xb1.png?\xb1", "±.png?%B1"),
        ("windows-1252", b"\x80\x9f.png?\x80\x81", "€Ÿ.png?%80%81"),
        ("iso-8859-2", b"\xb1.png?\xb1", "ą.png?%B1"),
        ("koi8-r", b"\xc1.png?\xc1", "а.png?%C1"),
        (
            "Shift_JIS",
            b"\x95\\\x8e\xa6.png?\x95\\\x8e\xa6",
            "表示.png?%95\\%8E%A6",
        ),
        (
            "Shift_JIS",
            b"\x95\\.png?\x95\\&eacute;",
            "表.png?%95\\%26%23233%3B",
        ),
        (
            "gb18030",
            b"\xd6\xd0\xa2\xe3.png?\xd6\xd0\xa8\xa6&hearts;",
            "中€.png?%D6%D0%A8%A6%817%AC3",
        ),
        ("euc-jp", b"\xc9\xbd.png?\xc9\xbd", "表.png?%C9%BD"),
        ("big5", b"\xa5\x5c.png?\xa5\x5c", "功.png?%A5\\"),
        ("euc-kr", b"\xb0\xa1.png?\xb0\xa1", "가.png?%B0%A1"),
        ("utf-8", b"gr\xc3\xb6.png?gr\xc3\xb6", "grö.png?grö"),
        // Escaped bytes stay unchanged.
        (
            "iso-8859-1",
            b"gr%F6%DFe.png?%C3%B6",
            "gr%F6%DFe.png?%C3%B6",
        ),
    ];
    for (charset, reference, url) in rows {
        let url = format!("https://h.example/{url}");
        requests(&format!("; charset={charset}"), &image(reference), &[&url]);
        // Without a charset in the header, the charset in `<meta>` is used.
        if charset != "utf-8" {
            let meta = format!("<meta charset={charset}>");
            requests("", &[meta.as_bytes(), &image(reference)].concat(), &[&url]);
        }
    }
}

#[test]
fn charset_of_a_url_is_that_of_the_bom_then_of_the_mail_then_of_the_document() {
    let utf_8 = [
        b"\xef\xbb\xbf".as_slice(),
        &image(b"gr\xc3\xb6.png?gr\xc3\xb6"),
    ]
    .concat();
    requests(
        "; charset=iso-8859-1",
        &utf_8,
        &["https://h.example/grö.png?grö"],
    );
    let both = [
        b"<meta charset=iso-8859-2>".as_slice(),
        &image(b"\xb1.png?\xb1"),
    ]
    .concat();
    requests(
        "; charset=iso-8859-1",
        &both,
        &["https://h.example/±.png?%B1"],
    );
    // Programs declare us-ascii if they do not know the charset.
    requests(
        "; charset=us-ascii",
        &both,
        &["https://h.example/ą.png?%B1"],
    );
    requests(
        "; charset=x-nobody-knows-it",
        &both,
        &["https://h.example/ą.png?%B1"],
    );
    let own = [
        b"<meta charset=x-user-defined>".as_slice(),
        &image(b"\xb1.png?\xb1"),
    ]
    .concat();
    requests("", &own, &["https://h.example/±.png?%B1"]);
}

#[test]
fn url_in_style_and_candidates_is_read_in_the_charset_of_the_document() {
    for (body, url) in [
        (
            &b"<style>b{background:url(\"https://h.example/gr\xf6.png?n=gr\xf6\")}</style><b>x</b>"
                [..],
            "https://h.example/grö.png?n=gr%F6",
        ),
        (
            b"<style>i{background:url(https://h.example/gr\\f6 .png?n=gr\\f6 )}</style><i>x</i>",
            "https://h.example/grö.png?n=gr%F6",
        ),
        (
            b"<div style=\"background:url(https://h.example/gr\xf6.png?n=gr\xf6)\">x</div>",
            "https://h.example/grö.png?n=grö",
        ),
        (
            b"<img srcset=\"https://h.example/gr\xf6.png?\xf6 1x\">",
            "https://h.example/grö.png?%F6",
        ),
        (
            b"<base href=\"https://h.example/caf\xe9/\"><img src=\"gr\xf6.png?\xf6\">",
            "https://h.example/café/grö.png?%F6",
        ),
        (
            b"<base href=\"https://h.example/caf\xe9/\"><img src=\"x.png\">",
            "https://h.example/café/x.png",
        ),
    ] {
        requests("; charset=iso-8859-1", body, &[url]);
    }
}

#[test]
fn url_whose_charset_is_unknown_or_whose_bytes_are_invalid_is_left_with_the_true_reason() {
    for (charset, reference, words) in [
        ("", &b"gr\xf6.png"[..], "declares no charset"),
        ("; charset=us-ascii", b"gr\xf6.png", "declares no charset"),
        (
            "; charset=utf-8",
            b"gr\xf6.png",
            "not valid in the charset UTF-8",
        ),
        (
            "; charset=shift_jis",
            b"\x95.png",
            "not valid in the charset Shift_JIS",
        ),
        (
            "; charset=windows-1253",
            b"\xaa.png",
            "not valid in the charset windows-1253",
        ),
    ] {
        let mail = mail(charset, &image(reference));
        let (output, report) = run(policy(), &Canned::new(), &mail);
        assert_bytes(&output, &mail, charset);
        let row = report
            .rows
            .iter()
            .find(|row| row.kind == Kind::Embed)
            .unwrap();
        assert_eq!(
            (row.outcome, row.reason),
            (Outcome::Left, Some(Reason::BadUrl))
        );
        assert!(row.detail.contains(words), "{:?}", row.detail);
    }
}

/// The bytes of a link stay. A character reference in a query is escaped in the charset of the document.
#[test]
fn relative_link_is_resolved_in_the_charset_of_its_document() {
    for (charset, before, after) in [
        ("iso-8859-1", &b"gr\xf6?\xf6"[..], &b"gr\xf6?\xf6"[..]),
        ("iso-8859-1", b"gr&ouml;?gr&ouml;", b"gr%C3%B6?gr%F6"),
        ("iso-8859-1", b"?gr%C3%B6", b"?gr%C3%B6"),
        ("iso-8859-5", b"x?&ouml;#&ouml;", b"x?%26%23246%3B#%C3%B6"),
        ("utf-8", b"gr&ouml;?gr&ouml;", b"gr%C3%B6?gr%C3%B6"),
        ("utf-8", b"gr\xc3\xb6?\xc3\xb6", b"gr\xc3\xb6?\xc3\xb6"),
    ] {
        let document = |front: &str, link: &[u8]| {
            let header = format!(
                "MIME-Version: 1.0\n{}Content-Type: text/html; charset={charset}\n\n<a href=\"{front}",
                links::BASE
            );
            [
                header.as_bytes(),
                link,
                b"\"><a href=\"",
                front.as_bytes(),
                b"y\">",
            ]
            .concat()
        };
        let front = if before.starts_with(b"?") {
            "http://www.example.org/a/b/c"
        } else {
            "http://www.example.org/a/b/"
        };
        let (output, _) = links::run(&document("", before));
        let text = String::from_utf8_lossy(&output).into_owned();
        let link = [b"<a href=\"", front.as_bytes(), after, b"\">"].concat();
        assert!(
            memchr::memmem::find(&output, &link).is_some(),
            "{charset}: {text}"
        );
        assert_bytes(&links::run(&output).0, &output, "twice");
    }
}
