//! `--offline`, and the policy for stored responses: the same bytes without a network, and no content that the current policy
//! would refuse (docs/cache.md).

use std::fs;
use std::io::Write as _;

use crate::common::filter::{filled, filter, mail, open, reference};
use crate::common::programs::{embody, stderr};
use crate::common::raw::{Raw, ok, redirect};

const BODY: &[u8] = b"GIF89a from another time";

fn server() -> Raw {
    Raw::http(|path, stream| {
        let answer = match path {
            "/busy" => b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec(),
            "/gone" => b"HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n".to_vec(),
            "/over" => String::from_utf8(redirect("/there"))
                .unwrap()
                .replacen("\r\n", "\r\nCache-Control: max-age=60\r\n", 1)
                .into_bytes(),
            path => {
                let body = [BODY, path.as_bytes()].concat();
                ok("image/gif", &body)
            }
        };
        let _ = stream.write_all(&answer);
    })
}

#[test]
fn a_mailbox_is_the_same_twice_with_the_network_gone() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let here = |name: &str| folder.path().join(name);
    let mut mailbox = Vec::new();
    let paths = ["/a", "/b", "/over", "/gone", "/busy", "/c"];
    for (number, path) in paths.iter().cycle().take(60).enumerate() {
        let url = server.url(path);
        let parts = [
            reference(&url, "image/gif"),
            reference(&format!("{}{}", server.url("/n"), number % 7), "image/gif"),
        ];
        mailbox.extend_from_slice(b"From a@example.org Sat Jan  3 01:05:34 1996\n");
        mailbox.extend_from_slice(&mail(&parts));
        mailbox.extend_from_slice(b"\n\n");
    }
    fs::write(here("in.mbox"), &mailbox).unwrap();
    let options = open(&[server.address.port()]);
    let convert = |to: &str, cache: &str, more: &[&str]| {
        let mut command = embody();
        command
            .args(["convert", "--quiet"])
            .arg(here("in.mbox"))
            .arg("--output")
            .arg(here(to))
            .args(options.split(' '))
            .arg("--cache")
            .arg(here(cache))
            .args(more);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        fs::read(here(to)).unwrap()
    };
    let live = convert("live.mbox", "c", &[]);
    assert!(live.len() > mailbox.len());
    let count = server.count();
    let first = convert("first.mbox", "c", &["--offline"]);
    let second = convert("second.mbox", "c", &["--offline"]);
    assert_eq!(server.count(), count, "somebody was asked");
    assert!(first == second);
    assert!(first == live, "what was put in then is put in now");
    // Another machine with a copy of the same cache.
    let copied = std::process::Command::new("cp")
        .args(["-r"])
        .args([here("c"), here("d")])
        .status();
    assert!(copied.unwrap().success());
    assert!(convert("third.mbox", "d", &["--offline"]) == live);
    // An empty cache contains no responses.
    fs::create_dir(here("e")).unwrap();
    assert!(convert("fourth.mbox", "e", &["--offline"]) == mailbox);
}

#[test]
fn offline_run_defers_nothing_and_reports_every_reference() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("there.gif");
    fs::write(&file, BODY).unwrap();
    let options = format!(
        "{} --on-failure defer --cache {} --file-root {}",
        open(&[server.address.port()]),
        folder.path().join("c").display(),
        folder.path().display()
    );
    let busy = mail(&[reference(&server.url("/busy"), "image/gif")]);
    assert_eq!(filter(&options, &busy).code, Some(75));
    let offline = format!("{options} --offline");
    filter(&offline, &busy).leaves(&busy, &["offline"]);
    let gone = mail(&[reference(&server.url("/gone"), "image/gif")]);
    filter(&options, &gone).leaves(&gone, &["http-status"]);
    filter(&offline, &gone).leaves(&gone, &["http-status"]);
    // Content from ftp is not stored. A local file needs no network.
    let ftp = mail(&[reference("ftp://127.0.0.1/a.gif", "image/gif")]);
    filter(&offline, &ftp).leaves(&ftp, &["offline"]);
    let local = mail(&[reference(
        &format!("file://{}", file.display()),
        "image/gif",
    )]);
    filter(&offline, &local).gives(&mail(&[filled(None, "image/gif", BODY)]));
    // A missing directory is an error, and is not created.
    let ran = filter(
        &format!("--offline --cache {}/typo", folder.path().display()),
        &gone,
    );
    assert_eq!(ran.code, Some(75), "{}", ran.stderr);
    assert!(!folder.path().join("typo").exists());
    // Without a cache, `--offline` is an error, which delays mail in a filter.
    let ran = filter("--offline", &gone);
    assert_eq!(ran.code, Some(75));
    assert!(ran.stdout.is_empty());
    let inspect = embody().args(["inspect", "--offline"]).output().unwrap();
    assert_eq!(inspect.status.code(), Some(2));
    let restore = embody()
        .args([
            "restore",
            "--store",
            "https://store.invalid/",
            "--offline",
            "--cache",
        ])
        .arg(folder.path().join("c"))
        .output()
        .unwrap();
    assert!(!restore.status.success());
    assert!(stderr(&restore).contains("--offline makes no requests"));
}

#[test]
fn a_probe_asks_the_cache_first() {
    let server = Raw::saying(String::from_utf8(ok("image/gif", BODY)).unwrap().replacen(
        "\r\n",
        "\r\nCache-Control: max-age=3600\r\n",
        1,
    ));
    let folder = tempfile::tempdir().unwrap();
    let before = mail(&[reference(&server.url("/"), "image/gif")]);
    fs::write(folder.path().join("m.eml"), &before).unwrap();
    let options = format!(
        "{} --cache {}",
        open(&[server.address.port()]),
        folder.path().join("c").display()
    );
    let inspect = |more: &str| {
        let output = embody()
            .arg("inspect")
            .args(options.split(' '))
            .arg(more)
            .arg(folder.path().join("m.eml"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    inspect("--json");
    assert!(
        !folder.path().join("c").exists(),
        "nobody is asked, and nothing made"
    );
    assert!(inspect("--probe").contains("the server responded to HEAD"));
    assert!(
        inspect("--offline").contains("unchanged: offline"),
        "{}",
        inspect("--offline")
    );
    assert_eq!(server.count(), 1);
    filter(&options, &before);
    assert_eq!(server.count(), 2);
    for more in ["--probe", "--offline"] {
        let said = inspect(more);
        assert!(
            said.contains("the cache contains a response: image/gif, 24 bytes"),
            "{said}"
        );
    }
    assert_eq!(server.count(), 2);
}

#[test]
fn a_policy_that_became_narrower_gets_no_content() {
    let server = server();
    let port = server.address.port();
    let folder = tempfile::tempdir().unwrap();
    let cache = format!("--cache {}", folder.path().join("c").display());
    let all = format!("{} {cache}", open(&[port]));
    let over = mail(&[reference(&server.url("/over"), "image/gif")]);
    let body = [BODY, b"/there"].concat();
    let after = mail(&[filled(Some(&server.url("/there")), "image/gif", &body)]);
    filter(&all, &over).gives(&after);
    filter(&format!("{all} --offline"), &over).gives(&after);
    let opened = format!("--allow-net 127.0.0.0/8 --allow-port {port}");
    for (options, reason) in [
        (format!("--fetch https {opened}"), "scheme-not-allowed"),
        (
            format!("--fetch http --allow-port {port}"),
            "private-address",
        ),
        (
            "--fetch http --allow-net 127.0.0.0/8".to_owned(),
            "port-not-allowed",
        ),
        (
            format!("--fetch http {opened} --deny-host 127.0.0.1"),
            "host-not-allowed",
        ),
        (
            format!("--fetch http {opened} --max-redirects 0"),
            "too-many-redirects",
        ),
        (format!("--fetch http {opened} --max-body 10"), "too-large"),
        (
            format!("--fetch http {opened} --deny-type image/*"),
            "type-not-allowed",
        ),
        (
            format!("--fetch http {opened} --max-growth 10"),
            "growth-limit",
        ),
        (
            format!("--fetch http {opened} --max-fetches 0"),
            "too-many-fetches",
        ),
    ] {
        filter(&format!("{options} {cache} --offline"), &over).leaves(&over, &[reason]);
        filter(&format!("{options} {cache}"), &over).leaves(&over, &[reason]);
    }
}

/// The name in the URL is not sufficient: the stored addresses from which the response came are checked, too.
#[test]
fn the_addresses_that_an_answer_came_from_are_judged_again() {
    let server = server();
    let port = server.address.port();
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("c");
    let url = format!("http://localhost:{port}/a");
    let before = mail(&[reference(&url, "image/gif")]);
    let body = [BODY, b"/a"].concat();
    let after = mail(&[filled(Some(&url), "image/gif", &body)]);
    let both = format!(
        "--fetch http --allow-port {port} --allow-net 127.0.0.0/8 --cache {}",
        cache.display()
    );
    filter(&both, &before).gives(&after);
    filter(&format!("{both} --offline"), &before).gives(&after);
    // The name alone would be allowed, because one of its two addresses is. The response came from the other one.
    let six = format!(
        "--fetch http --allow-port {port} --allow-net ::1/128 --cache {} --offline",
        cache.display()
    );
    filter(&six, &before).leaves(&before, &["private-address"]);
}

#[test]
fn checks_of_the_content_hold_for_what_is_kept() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let options = format!(
        "{} --cache {}",
        open(&[server.address.port()]),
        folder.path().join("c").display()
    );
    let digest = |md5: &str| {
        mail(&[format!(
            "Content-Type: message/external-body; access-type=URL;\n URL=\"{}\"\n\nContent-Type: image/gif\nContent-MD5: {md5}\n\n\n",
            server.url("/a")
        )])
    };
    let good = mail(&[reference(&server.url("/a"), "image/gif")]);
    assert_eq!(filter(&options, &good).column("outcome"), ["expanded"]);
    let wrong = digest("AAAAAAAAAAAAAAAAAAAAAA==");
    filter(&format!("{options} --offline"), &wrong).leaves(&wrong, &["digest-mismatch"]);
    // A request for another media type may get another response, so the stored one is not used.
    let other = mail(&[reference(&server.url("/a"), "image/png")]);
    filter(&format!("{options} --offline"), &other).leaves(&other, &["offline"]);
    filter(&options, &other).leaves(&other, &["type-mismatch"]);
    // The response of a wrong type was not stored.
    filter(&format!("{options} --offline"), &other).leaves(&other, &["offline"]);
}
