//! Errors of the directory of `--cache` affect no mail, and a pause that one page requests affects no other page
//! (docs/cache.md).

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::bounded::finished;
use crate::common::filter::{filled, filter, mail, open, reference};
use crate::common::programs::{embody, skipped, stderr};
use crate::common::raw::{Raw, ok};

const BODY: &[u8] = b"GIF89a of a server";

fn options(server: &Raw, cache: &Path) -> String {
    format!(
        "{} --cache {}",
        open(&[server.address.port()]),
        cache.display()
    )
}

fn one(server: &Raw, path: &str) -> (Vec<u8>, Vec<u8>) {
    let url = server.url(path);
    (
        mail(&[reference(&url, "image/gif")]),
        mail(&[filled(Some(&url), "image/gif", BODY)]),
    )
}

fn fresh(media_type: &str, body: &[u8]) -> Vec<u8> {
    let answer = String::from_utf8(ok(media_type, body)).unwrap();
    let line = "\r\nCache-Control: max-age=3600\r\n";
    answer.replacen("\r\n", line, 1).into_bytes()
}

#[test]
fn cache_does_not_block_on_a_fifo_in_place_of_its_size_file() {
    let server = Raw::saying(fresh("image/gif", BODY));
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("c");
    let online = options(&server, &cache);
    filter(&format!("--cache {}", cache.display()), b"\n");
    let made = Command::new("mkfifo").arg(cache.join("size")).status();
    assert!(made.unwrap().success());
    let (before, after) = one(&server, "/a");
    fs::write(folder.path().join("in.eml"), &before).unwrap();
    for more in ["", " --cache-max 1M"] {
        let ran = Command::new("timeout")
            .args(["-k", "1", "20", env!("CARGO_BIN_EXE_embody"), "filter"])
            .args(format!("{online}{more}").split(' '))
            .arg(folder.path().join("in.eml"))
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
        assert!(ran.stdout == after);
    }
}

#[test]
fn a_disk_that_takes_no_new_cache_costs_no_mail() {
    const TEST: &str = "a_disk_that_takes_no_new_cache_costs_no_mail";
    let server = Raw::saying(fresh("image/gif", BODY));
    let (before, after) = one(&server, "/a");
    let folder = tempfile::tempdir().unwrap();
    let small = folder.path().join("small");
    fs::create_dir(&small).unwrap();
    fs::write(folder.path().join("in.eml"), &before).unwrap();
    // A private file system without any free space, and then a read-only one.
    for (mount, fill) in [
        ("size=16k,nr_inodes=2", true),
        ("size=64k,nr_inodes=2", false),
        ("size=64k,ro", false),
    ] {
        let name = |cache: &str| small.join(cache).display().to_string();
        for cache in [name("."), name("new")] {
            let script = format!(
                "mount -t tmpfs -o {mount} none {small}; {}; \"$0\" filter {} --cache {cache} {mail} > {out}; echo status $? >&2; \
                 ls -A {small} >&2",
                if fill {
                    format!("head -c 100k /dev/zero > {}/.tag-full", small.display())
                } else {
                    format!("true > {}/.tag-full", small.display())
                },
                open(&[server.address.port()]),
                small = small.display(),
                mail = folder.path().join("in.eml").display(),
                out = folder.path().join("out.eml").display(),
            );
            let ran = Command::new("unshare")
                .args(["--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_embody")])
                .stdin(Stdio::null())
                .output();
            let Ok(ran) = ran else {
                return skipped(TEST, "unshare");
            };
            let said = stderr(&ran);
            if !said.contains("status ") || said.contains("mount:") || said.contains("unshare:") {
                return skipped(TEST, "unshare --mount with the right to mount");
            }
            assert!(said.contains("status 0"), "{mount} {cache}: {said}");
            assert!(
                said.contains("cannot be written"),
                "{mount} {cache}: {said}"
            );
            assert!(fs::read(folder.path().join("out.eml")).unwrap() == after);
            let left = said.split("status 0").nth(1).unwrap();
            assert!(
                left.lines()
                    .all(|line| ["", ".tag-full", "new"].contains(&line)),
                "{said}"
            );
        }
    }
}

#[test]
fn processes_that_make_a_cache_at_one_time_all_use_it() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let cache = folder.path().join(round.to_string());
        let running: Vec<_> = (0..4)
            .map(|_| {
                embody()
                    .args(["filter", "--cache"])
                    .arg(&cache)
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for child in running {
            let ended = finished(child);
            assert!(ended.status.success(), "{}", stderr(&ended));
        }
    }
}

/// Returns a server with the responses that a path names, which may request a pause.
fn pausing(fields: &'static str) -> Raw {
    Raw::http(move |path, stream| {
        let answer = match path.split('/').nth(1) {
            Some("429") => format!(
                "HTTP/1.1 429 Too Many Requests\r\n{fields}Content-Length: 0\r\nConnection: close\r\n\r\n"
            )
            .into_bytes(),
            _ => ok("image/gif", BODY),
        };
        let _ = stream.write_all(&answer);
    })
}

#[test]
fn host_is_blocked_only_after_three_of_its_urls_were_paused() {
    let server = pausing("Retry-After: 600\r\n");
    let folder = tempfile::tempdir().unwrap();
    let online = options(&server, &folder.path().join("c"));
    let (paused, _) = one(&server, "/429/1");
    filter(&online, &paused).leaves(&paused, &["http-status"]);
    // The page gets no request, and the message contains the end of the pause and the file to remove.
    let count = server.count();
    let ran = filter(&online, &paused);
    ran.leaves(&paused, &["http-status"]);
    assert_eq!(server.count(), count);
    let rest = ran.stderr.split("delete ").nth(1).unwrap_or_default();
    let file = rest.split([' ', ')', ';']).next().unwrap_or_default();
    assert!(
        ran.stderr.contains("embody tries again after 20"),
        "{}",
        ran.stderr
    );
    assert!(Path::new(file).is_file(), "{}", ran.stderr);
    // Other pages get requests.
    let (before, after) = one(&server, "/other");
    filter(&online, &before).gives(&after);
    // After the file was removed, the page gets a request.
    fs::remove_file(file).unwrap();
    filter(&online, &paused).leaves(&paused, &["http-status"]);
    // After three pages with a pause, the whole host gets no requests.
    for page in ["/429/2", "/429/3"] {
        let (paused, _) = one(&server, page);
        filter(&online, &paused).leaves(&paused, &["http-status"]);
    }
    let count = server.count();
    let (before, _) = one(&server, "/yet/another");
    filter(&online, &before).leaves(&before, &["http-status"]);
    assert_eq!(server.count(), count);
}

#[test]
fn what_an_archive_captured_asks_for_no_pause() {
    let server = pausing("Retry-After: 600\r\nMemento-Datetime: Thu, 01 May 2003 00:00:00 GMT\r\n");
    let folder = tempfile::tempdir().unwrap();
    let online = options(&server, &folder.path().join("c"));
    for page in 1..=4 {
        let (paused, _) = one(&server, &format!("/429/{page}"));
        let count = server.count();
        filter(&online, &paused).leaves(&paused, &["http-status"]);
        filter(&online, &paused).leaves(&paused, &["http-status"]);
        assert_eq!(server.count(), count + 2);
    }
}

#[test]
fn response_that_cannot_be_inserted_is_not_cached() {
    let server = Raw::saying(fresh("text/html", &[b'.'; 50_000]));
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("c");
    let online = options(&server, &cache);
    let (before, _) = one(&server, "/page");
    for count in 1..=2 {
        filter(&online, &before).leaves(&before, &["type-mismatch"]);
        assert_eq!(server.count(), count);
        assert!(!cache.join("bodies").exists());
    }
    // With --accept-mismatch, the response is used and stored.
    let mismatch = format!("{online} --accept-mismatch");
    for _ in 0..2 {
        assert_eq!(filter(&mismatch, &before).column("outcome"), ["expanded"]);
        assert_eq!(server.count(), 3);
    }
}
