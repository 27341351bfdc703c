//! URLs are requested exactly as the mail contains them, byte for byte, and the option that a refusal names permits the
//! retrieval.

use crate::common::filter::{Ran, filled, filter, mail, open, reference};
use crate::common::raw::{Raw, ok, redirect};

/// Returns a mail with one external body with these parameters.
fn external(parameters: &[u8]) -> Vec<u8> {
    let front = b"MIME-Version: 1.0\nContent-Type: message/external-body; ";
    [front, parameters, b"\n\nContent-Type: text/plain\n\n"].concat()
}

fn first_lines(server: &Raw) -> Vec<String> {
    let heads = server.heads();
    let first = |head: &String| head.lines().next().unwrap_or_default().to_owned();
    heads.iter().map(first).collect()
}

#[test]
fn an_octet_that_is_no_utf8_is_asked_for_as_it_is() {
    let server = Raw::saying(ok("text/plain", b"x\n"));
    let options = open(&[server.address.port()]);
    let front = format!("access-type=URL; URL=\"{}", server.url("/t?lat"));
    let plain = external(&[front.as_bytes(), b"\xe9\""].concat());
    assert_eq!(filter(&options, &plain).column("outcome"), ["expanded"]);
    // Here the parameter declares its charset.
    let port = server.address.port();
    let coded = format!("access-type=URL; URL*=iso-8859-1''http%3a//127.0.0.1%3a{port}/r%e9");
    filter(&options, &external(coded.as_bytes()));
    // Valid UTF-8 is sent as browsers send it.
    let utf8 = format!("access-type=URL; URL=\"{}\"", server.url("/\u{e9}"));
    filter(&options, &external(utf8.as_bytes()));
    assert_eq!(
        first_lines(&server),
        [
            "GET /t?lat%E9 HTTP/1.1",
            "GET /r%C3%A9 HTTP/1.1",
            "GET /%C3%A9 HTTP/1.1"
        ]
    );
}

#[test]
fn a_picture_whose_url_holds_octets_of_no_known_charset_is_not_asked_for() {
    let server = Raw::saying(ok("image/gif", b"GIF89a"));
    let options = format!("{} --embed remote", open(&[server.address.port()]));
    let front = format!("Content-Type: text/html\n\n<img src=\"{}", server.url("/t"));
    let mail = [front.as_bytes(), b"\xe9\">\n"].concat();
    let ran = filter(&options, &mail);
    ran.leaves(&mail, &["bad-url"]);
    assert_eq!(server.count(), 0);
}

#[test]
fn file_names_and_content_ids_are_compared_byte_by_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let root = path.to_str().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        let name = [root.as_bytes(), b"/a\xe9"].concat();
        let path = std::ffi::OsStr::from_bytes(&name);
        if std::fs::write(path, b"that file\n").is_ok() {
            let front = format!("access-type=LOCAL-FILE; name=\"{root}/a");
            let mail = external(&[front.as_bytes(), b"\xe9\""].concat());
            let ran = filter(&format!("--fetch file --file-root {root}"), &mail);
            assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
        }
    }
    // Two ids that differ only in bytes that are not valid UTF-8.
    let mail = [
        b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n" as &[u8],
        b"Content-Type: message/external-body; access-type=URL; URL=\"cid:a%E9@x\"\n\n",
        b"Content-Type: text/plain\n\n--b\nContent-ID: <a\xff@x>\n\nanother\n--b--\n",
    ]
    .concat();
    let ran = filter("", &mail);
    assert_eq!(ran.column("outcome"), ["left"]);
    assert_eq!(ran.stdout, mail);
}

#[test]
fn size_parameter_beyond_64_bits_exceeds_every_limit() {
    let server = Raw::saying(ok("text/plain", b"x\n"));
    let options = open(&[server.address.port()]);
    let mail = |size: &str| {
        let url = server.url("/");
        let parameters = format!("access-type=URL; URL=\"{url}\"; size={size}");
        external(parameters.as_bytes())
    };
    for size in ["18446744073709551616", "99999999999999999999999999"] {
        let mail = mail(size);
        let ran = filter(&options, &mail);
        ran.leaves(&mail, &["too-large"]);
        assert_eq!(ran.column("bytes"), ["-"], "{}", ran.stderr);
        let detail = &ran.column("detail")[0];
        assert!(
            detail.starts_with("the content has 18446744073709551615 bytes or more; "),
            "{detail}"
        );
    }
    assert_eq!(server.count(), 0);
    assert_eq!(
        filter(&options, &mail("many")).column("outcome"),
        ["expanded"]
    );
}

#[test]
fn the_directory_of_ftp_may_be_left_out() {
    for (parameters, url) in [
        ("site=ftp.example.org; name=b", "ftp://ftp.example.org/b"),
        (
            "site=ftp.example.org; name=b; mode=image",
            "ftp://ftp.example.org/b;type=i",
        ),
    ] {
        for access in ["FTP", "ANON-FTP"] {
            let mail = external(format!("access-type={access}; {parameters}").as_bytes());
            let ran = filter("", &mail);
            ran.leaves(&mail, &["scheme-not-allowed"]);
            assert_eq!(ran.column("url"), [url]);
        }
    }
    for parameters in ["site=ftp.example.org; directory=a", "name=b; directory=a"] {
        let mail = external(format!("access-type=FTP; {parameters}").as_bytes());
        filter("", &mail).leaves(&mail, &["missing-parameter"]);
    }
}

fn says(ran: &Ran, reason: &str, words: &str) {
    assert_eq!(ran.column("reason"), [reason], "{}", ran.stderr);
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    assert!(!ran.stderr.contains("would allow it"), "{}", ran.stderr);
}

#[test]
fn refusal_by_a_deny_option_names_that_option_and_suggests_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("hosts");
    std::fs::write(&list, "127.0.0.1\n").unwrap();
    let server = Raw::saying(ok("image/gif", b"GIF89a"));
    let port = server.address.port();
    let options = open(&[port]);
    let at = |host: &str| mail(&[reference(&format!("http://{host}:{port}/"), "image/gif")]);
    let address = at("127.0.0.1");
    for (deny, setting) in [
        ("--deny-host 127.0.0.1".to_owned(), "denied by --deny-host "),
        (
            format!("--deny-host-file {}", list.display()),
            "denied by --deny-host-file ",
        ),
    ] {
        let ran = filter(&format!("{options} {deny}"), &address);
        says(&ran, "host-not-allowed", setting);
        let ran = filter(&format!("{options} {deny}"), &at("localhost"));
        says(
            &ran,
            "host-not-allowed",
            "localhost is this machine, and 127.0.0.1 is denied by",
        );
    }
    let ran = filter(&format!("{options} --deny-type image/*"), &address);
    says(
        &ran,
        "type-not-allowed",
        "image/gif is denied by --deny-type",
    );
    let ran = filter(&format!("{options} --allow-type text/*"), &address);
    assert!(
        ran.stderr
            .contains("image/gif is not allowed by --allow-type"),
        "{}",
        ran.stderr
    );
    assert_eq!(server.count(), 0);
}

#[test]
fn refused_redirect_loop_or_relative_file_name_suggests_no_option() {
    let server = Raw::saying(redirect("/there"));
    let options = open(&[server.address.port()]);
    let before = mail(&[reference(&server.url("/"), "image/gif")]);
    let ran = filter(&options, &before);
    says(&ran, "too-many-redirects", "the redirects form a loop");
    let ran = filter(&format!("{options} --max-redirects 0"), &before);
    let said = "more redirects than --max-redirects, 0";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("--max-redirects N would allow it"),
        "{}",
        ran.stderr
    );
    for name in ["passwd", "~/x"] {
        let mail = external(format!("access-type=LOCAL-FILE; name=\"{name}\"").as_bytes());
        says(
            &filter("", &mail),
            "outside-file-root",
            "is not an absolute path",
        );
    }
}

#[test]
fn a_time_of_0_is_no_limit() {
    let server = Raw::saying(ok("image/gif", b"GIF89a"));
    let options = open(&[server.address.port()]);
    let before = mail(&[reference(&server.url("/"), "image/gif")]);
    let after = mail(&[filled(Some(&server.url("/")), "image/gif", b"GIF89a")]);
    for none in ["--deadline 0", "--timeout 0", "--deadline 0 --timeout 0s"] {
        let options = format!("{options} --on-failure defer {none}");
        filter(&options, &before).gives(&after);
    }
}
