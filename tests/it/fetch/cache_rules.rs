//! `--cache` and RFC 9111: which responses of nginx may be stored, for how long, and which requests are sent then
//! (docs/cache.md).

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::filter::{Ran, filled, filter, filter_at, mail, open, reference};
use crate::common::programs::{Served, free_port, nginx_with, skipped};
use crate::common::raw::{Raw, ok};

const BODY: &[u8] = b"GIF89a what was kept";

/// Returns the lines in the log of nginx since the last call, sorted.
fn logged(server: &Served, expected: usize) -> Vec<String> {
    let log = server.folder.path().join("access");
    let begun = Instant::now();
    loop {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        // nginx writes the line after the client got the response, so it may come late.
        if lines.len() >= expected && begun.elapsed() > Duration::from_millis(150)
            || begun.elapsed() > Duration::from_secs(3)
        {
            fs::write(&log, "").unwrap();
            lines.sort();
            return lines;
        }
        sleep(Duration::from_millis(10));
    }
}

type Rule = (&'static str, &'static str, Option<u16>, Option<u16>, bool);

/// Name of a rule; the header fields that the server adds; the request that is sent a minute later and two hours later, `None`
/// if the cache has a fresh response; whether the response is stored at all.
const RULES: &[Rule] = &[
    (
        "max-age",
        "add_header Cache-Control max-age=3600;",
        None,
        Some(304),
        true,
    ),
    (
        "upper-case",
        "add_header Cache-Control MAX-AGE=3600;",
        None,
        Some(304),
        true,
    ),
    (
        "s-maxage",
        "add_header Cache-Control 'max-age=1, s-maxage=3600';",
        None,
        Some(304),
        true,
    ),
    (
        "must-revalidate",
        "add_header Cache-Control 'max-age=3600, must-revalidate';",
        None,
        Some(304),
        true,
    ),
    (
        "no-cache",
        "add_header Cache-Control 'no-cache, max-age=3600';",
        Some(304),
        Some(304),
        true,
    ),
    (
        "pragma",
        "add_header Pragma no-cache;",
        Some(304),
        Some(304),
        true,
    ),
    (
        "no-store",
        "add_header Cache-Control 'no-store, max-age=3600';",
        Some(200),
        Some(200),
        false,
    ),
    (
        "no-store-loud",
        "add_header Cache-Control No-Store;",
        Some(200),
        Some(200),
        false,
    ),
    (
        "private",
        "add_header Cache-Control 'private, max-age=3600';",
        Some(200),
        Some(200),
        false,
    ),
    (
        "two-fields",
        "add_header Cache-Control max-age=3600; add_header Cache-Control no-store;",
        Some(200),
        Some(200),
        false,
    ),
    (
        "expires",
        "add_header Expires 'Thu, 01 Jan 2099 00:00:00 GMT';",
        None,
        None,
        true,
    ),
    (
        "expired",
        "add_header Expires 'Thu, 01 Jan 1998 00:00:00 GMT';",
        Some(304),
        Some(304),
        true,
    ),
    (
        "no-date",
        "add_header Expires 0;",
        Some(304),
        Some(304),
        true,
    ),
    (
        "age",
        "add_header Cache-Control max-age=3600; add_header Age 3590;",
        Some(304),
        Some(304),
        true,
    ),
    // The sum with another age would overflow a duration.
    (
        "aged",
        "add_header Cache-Control max-age=3600; add_header Age 18446744073709551615;",
        Some(304),
        Some(304),
        true,
    ),
    (
        "etag",
        "add_header Cache-Control max-age=3600; add_header Last-Modified '';",
        None,
        Some(304),
        true,
    ),
    (
        "last-modified",
        "add_header Cache-Control max-age=3600; etag off;",
        None,
        Some(304),
        true,
    ),
    (
        "neither",
        "add_header Cache-Control max-age=3600; add_header Last-Modified ''; etag off; if_modified_since off;",
        None,
        Some(200),
        true,
    ),
    (
        "vary",
        "add_header Cache-Control max-age=3600; add_header Vary 'Accept, User-Agent';",
        None,
        Some(304),
        true,
    ),
    (
        "vary-all",
        "add_header Cache-Control max-age=3600; add_header Vary *;",
        Some(200),
        Some(200),
        true,
    ),
    (
        "cookie",
        "add_header Cache-Control max-age=3600; add_header Set-Cookie secret=1;",
        Some(304),
        Some(304),
        true,
    ),
    // The file was changed in 1996. It is fresh for a tenth of its age (RFC 9111 §4.2.2).
    ("old", "", None, None, true),
];

fn rules_mail(server: &Served) -> (Vec<u8>, Vec<u8>) {
    let url = |name: &str| format!("http://127.0.0.1:{}/rules/{name}.gif", server.port);
    let before: Vec<String> = RULES
        .iter()
        .map(|(name, ..)| reference(&url(name), "image/gif"))
        .collect();
    let after: Vec<String> = RULES
        .iter()
        .map(|(name, ..)| filled(Some(&url(name)), "image/gif", BODY))
        .collect();
    (mail(&before), mail(&after))
}

fn rules_server(test: &str) -> Option<Served> {
    let locations: String = RULES
        .iter()
        .map(|(name, fields, ..)| {
            format!("location = /rules/{name}.gif {{ access_log access plain; {fields} alias root/old.gif; }}\n")
        })
        .collect();
    let server = nginx_with(test, &[("old.gif", BODY)], &locations)?;
    let file = fs::File::open(server.folder.path().join("root/old.gif")).unwrap();
    let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(820_454_400);
    file.set_modified(long_ago).unwrap();
    Some(server)
}

#[test]
fn cache_obeys_each_directive_of_the_server() {
    const TEST: &str = "cache_obeys_each_directive_of_the_server";
    let Some(server) = rules_server(TEST) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let options = format!(
        "{} --cache {}",
        open(&[server.port]),
        folder.path().join("c").display()
    );
    let (before, after) = rules_mail(&server);
    let line = |(name, status): (&str, u16)| format!("{status} /rules/{name}.gif");
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    filter(&options, &before).gives(&after);
    let all = RULES.iter().map(|(name, ..)| line((name, 200))).collect();
    assert_eq!(logged(&server, RULES.len()), sorted(all));

    let Some(ran) = filter_at(TEST, "+60", &options, &before) else {
        return;
    };
    ran.gives(&after);
    let asked = sorted(
        RULES
            .iter()
            .filter_map(|row| Some(line((row.0, row.2?))))
            .collect(),
    );
    assert_eq!(logged(&server, asked.len()), asked, "a minute later");

    let ran = filter_at(TEST, "+2h", &options, &before);
    ran.unwrap().gives(&after);
    let asked = sorted(
        RULES
            .iter()
            .filter_map(|row| Some(line((row.0, row.3?))))
            .collect(),
    );
    assert_eq!(logged(&server, asked.len()), asked, "two hours later");

    // A clock that is set back does not make a response fresh forever.
    let ran = filter_at(TEST, "-300d", &options, &before);
    ran.unwrap().gives(&after);
    assert_eq!(logged(&server, RULES.len()).len(), RULES.len());

    drop(server);
    let ran = filter(&format!("{options} --offline"), &before);
    for (row, (name, _, _, _, is_kept)) in ran.rows.iter().zip(RULES) {
        let outcome = row["outcome"].as_str().unwrap();
        assert_eq!(outcome == "expanded", *is_kept, "{name}: {row}");
        if !is_kept {
            assert_eq!(row["reason"], "offline", "{name}");
        }
    }
}

#[test]
fn no_store_response_is_cached_if_the_user_insists() {
    let Some(server) = rules_server("no_store_response_is_cached_if_the_user_insists") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let options = format!(
        "{} --cache {} --cache-ignore no-store",
        open(&[server.port]),
        folder.path().join("c").display()
    );
    let (before, after) = rules_mail(&server);
    filter(&options, &before).gives(&after);
    drop(server);
    filter(&format!("{options} --offline"), &before).gives(&after);
}

/// Returns a mail with one part from a server, before and after it is filled.
fn one(server: &Raw, path: &str) -> (Vec<u8>, Vec<u8>) {
    let url = server.url(path);
    (
        mail(&[reference(&url, "image/gif")]),
        mail(&[filled(Some(&url), "image/gif", BODY)]),
    )
}

fn cached(server: &Raw, folder: &Path) -> String {
    format!(
        "{} --cache {}",
        open(&[server.address.port()]),
        folder.join("c").display()
    )
}

fn status(line: &str, fields: &str) -> String {
    format!("HTTP/1.1 {line}\r\n{fields}Content-Length: 0\r\nConnection: close\r\n\r\n")
}

/// Runs the program at this time of the clock. Returns the output, and the number of requests to the server.
fn asked(
    test: &str,
    clock: &str,
    server: &Raw,
    options: &str,
    mail: &[u8],
) -> Option<(Ran, usize)> {
    let before = server.count();
    let ran = filter_at(test, clock, options, mail)?;
    Some((ran, server.count() - before))
}

#[test]
fn url_that_is_gone_is_not_requested_again_for_a_day() {
    const TEST: &str = "url_that_is_gone_is_not_requested_again_for_a_day";
    for (fields, clock, again) in [
        ("", "+23h", 0),
        ("", "+25h", 1),
        ("Cache-Control: max-age=60\r\n", "+30", 0),
        ("Cache-Control: max-age=60\r\n", "+2m", 1),
        ("Cache-Control: max-age=99999999\r\n", "+25h", 1),
        ("Cache-Control: no-store\r\n", "+1", 1),
        ("Cache-Control: no-cache\r\n", "+1", 1),
    ] {
        for line in ["404 Not Found", "410 Gone"] {
            let server = Raw::saying(status(line, fields));
            let folder = tempfile::tempdir().unwrap();
            let options = cached(&server, folder.path());
            let (before, _) = one(&server, "/gone");
            filter(&options, &before).leaves(&before, &["http-status"]);
            let Some((ran, asked)) = asked(TEST, clock, &server, &options, &before) else {
                return;
            };
            ran.leaves(&before, &["http-status"]);
            assert_eq!(asked, again, "{line} {fields:?} {clock}");
        }
    }
}

#[test]
fn content_that_vanished_from_the_server_is_still_served_offline() {
    const TEST: &str = "content_that_vanished_from_the_server_is_still_served_offline";
    let is_gone = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = std::sync::Arc::clone(&is_gone);
    let server = Raw::http(move |_, stream| {
        let answer = if seen.load(std::sync::atomic::Ordering::SeqCst) {
            status("404 Not Found", "").into_bytes()
        } else {
            ok("image/gif", BODY)
        };
        let _ = stream.write_all(&answer);
    });
    let folder = tempfile::tempdir().unwrap();
    let options = cached(&server, folder.path());
    let (before, after) = one(&server, "/");
    filter(&options, &before).gives(&after);
    is_gone.store(true, std::sync::atomic::Ordering::SeqCst);
    filter(&options, &before).leaves(&before, &["http-status"]);
    // The stored response is stale, and the server has responded with 404 since. With --offline the old content is still
    // available.
    filter(&format!("{options} --offline"), &before).gives(&after);
    is_gone.store(false, std::sync::atomic::Ordering::SeqCst);
    filter(&options, &before).leaves(&before, &["http-status"]);
    if let Some((ran, _)) = asked(TEST, "+25h", &server, &options, &before) {
        ran.gives(&after);
    }
}

#[test]
fn a_pause_that_a_server_asks_for_is_kept() {
    const TEST: &str = "a_pause_that_a_server_asks_for_is_kept";
    for (line, fields, clock, again) in [
        ("429 Too Many Requests", "Retry-After: 600\r\n", "+9m", 0),
        ("429 Too Many Requests", "Retry-After: 600\r\n", "+11m", 1),
        ("503 Service Unavailable", "Retry-After: 600\r\n", "+9m", 0),
        // The maximum pause is an hour.
        (
            "503 Service Unavailable",
            "Retry-After: Thu, 01 Jan 2099 00:00:00 GMT\r\n",
            "+59m",
            0,
        ),
        (
            "503 Service Unavailable",
            "Retry-After: Thu, 01 Jan 2099 00:00:00 GMT\r\n",
            "+61m",
            1,
        ),
        ("503 Service Unavailable", "Retry-After: soon\r\n", "+1", 1),
        ("503 Service Unavailable", "", "+1", 1),
        ("500 Internal Server Error", "Retry-After: 600\r\n", "+1", 1),
    ] {
        let server = Raw::saying(status(line, fields));
        let folder = tempfile::tempdir().unwrap();
        let options = cached(&server, folder.path());
        let (before, _) = one(&server, "/first");
        filter(&options, &before).leaves(&before, &["http-status"]);
        let Some((ran, asked)) = asked(TEST, clock, &server, &options, &before) else {
            return;
        };
        ran.leaves(&before, &["http-status"]);
        assert_eq!(asked, again, "{line} {fields:?} {clock}");
        // The stored failure is still a temporary one.
        let ran = filter(&format!("{options} --on-failure defer"), &before);
        assert_eq!(ran.code, Some(75), "{}", ran.stderr);
    }
}

#[test]
fn a_port_where_nobody_listens_is_not_asked_for_an_hour() {
    const TEST: &str = "a_port_where_nobody_listens_is_not_asked_for_an_hour";
    let port = free_port();
    let folder = tempfile::tempdir().unwrap();
    let options = format!(
        "{} --cache {}",
        open(&[port]),
        folder.path().join("c").display()
    );
    for scheme in ["http", "ftp"] {
        let (first, second) = (
            format!("{scheme}://127.0.0.1:{port}/a"),
            format!("{scheme}://127.0.0.1:{port}/b"),
        );
        let [first, second] = [first, second].map(|url| mail(&[reference(&url, "image/gif")]));
        let _ = fs::remove_dir_all(folder.path().join("c"));
        let ran = filter(&options, &first);
        ran.leaves(&first, &["connection-failed"]);
        // Now a server listens on the port, but sends no valid response.
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        std::thread::spawn(move || drop(listener.accept()));
        let ran = filter(&options, &second);
        ran.leaves(&second, &["connection-failed"]);
        assert!(
            ran.stderr.contains("recorded in the cache"),
            "{}",
            ran.stderr
        );
        let ran = filter(&format!("{options} --on-failure defer"), &second);
        assert_eq!(ran.code, Some(75));
        let Some(ran) = filter_at(TEST, "+61m", &options, &second) else {
            return;
        };
        assert!(
            !ran.stderr.contains("recorded in the cache"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_name_without_an_address_is_not_looked_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let options = format!(
        "--fetch http,https --cache {}",
        folder.path().join("c").display()
    );
    let first = mail(&[reference("http://nobody.invalid/a", "image/gif")]);
    let ran = filter(&options, &first);
    // Without a network, a resolver cannot return "not found", so nothing is stored.
    if ran.stderr.contains("name-not-found") && fs::read_dir(folder.path().join("c/hosts")).is_ok()
    {
        let other = mail(&[reference("https://nobody.invalid/b", "image/gif")]);
        let ran = filter(&options, &other);
        ran.leaves(&other, &["name-not-found"]);
        assert!(
            ran.stderr.contains("recorded in the cache"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_host_that_takes_no_connection_costs_its_time_once() {
    let Some((_silent, port)) = silent("a_host_that_takes_no_connection_costs_its_time_once")
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let options = format!(
        "{} --timeout 1s --cache {}",
        open(&[port]),
        folder.path().join("c").display()
    );
    let url = |name: &str| format!("http://127.0.0.1:{port}/{name}");
    let [first, second] = ["a", "b"].map(|name| mail(&[reference(&url(name), "image/gif")]));
    filter(&options, &first).leaves(&first, &["timeout"]);
    // With this time limit, another attempt would take long.
    let patient = options.replace("--timeout 1s", "--timeout 40s");
    let ran = filter(&patient, &second);
    ran.leaves(&second, &["timeout"]);
    assert!(ran.took < Duration::from_secs(20), "{:?}", ran.took);
    assert!(
        ran.stderr.contains("recorded in the cache"),
        "{}",
        ran.stderr
    );
}

/// Returns a port that neither accepts nor rejects connections, because its queue is full, until the first value is dropped.
fn silent(test: &str) -> Option<(Ended, u16)> {
    let script = "import socket, time\n\
        listener = socket.socket(); listener.bind(('127.0.0.1', 0)); listener.listen(0)\n\
        waiting = []\n\
        for _ in range(8):\n    \
            client = socket.socket(); client.setblocking(False); waiting.append(client)\n    \
            client.connect_ex(listener.getsockname())\n\
        print(listener.getsockname()[1], flush=True)\n\
        time.sleep(60)";
    let python = Command::new("python3")
        .args(["-c", script])
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut python) = python else {
        skipped(test, "python3");
        return None;
    };
    let mut line = String::new();
    let stdout = python.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    Some((Ended(python), line.trim().parse().unwrap()))
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn expired_deadline_or_timeout_does_not_mark_the_host_as_failed() {
    let server = Raw::http(|_, stream| {
        sleep(Duration::from_millis(600));
        let _ = stream.write_all(&ok("image/gif", BODY));
    });
    let folder = tempfile::tempdir().unwrap();
    let options = cached(&server, folder.path());
    let (before, after) = one(&server, "/");
    filter(&format!("{options} --deadline 100ms"), &before).leaves(&before, &["deadline"]);
    filter(&format!("{options} --timeout 200ms"), &before).leaves(&before, &["timeout"]);
    filter(&options, &before).gives(&after);
}

#[test]
fn each_redirect_has_its_own_cache_entry() {
    let server = Raw::http(|path, stream| {
        let moved = |line: &str, fields: &str, to: &str| {
            status(line, &format!("{fields}Location: {to}\r\n")).into_bytes()
        };
        let answer = match path {
            "/for-ever" => moved(
                "301 Moved Permanently",
                "Cache-Control: max-age=3600\r\n",
                "/b",
            ),
            "/now" => moved("302 Found", "", "/b"),
            "/now-and-later" => moved("302 Found", "Cache-Control: max-age=3600\r\n", "/b"),
            _ => String::from_utf8(ok("image/gif", BODY))
                .unwrap()
                .replacen("\r\n", "\r\nCache-Control: max-age=3600\r\n", 1)
                .into_bytes(),
        };
        let _ = stream.write_all(&answer);
    });
    for (path, first, second, offline) in [
        ("/for-ever", 2, 0, true),
        ("/now", 1, 1, false),
        ("/now-and-later", 1, 0, true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let options = cached(&server, folder.path());
        let before = mail(&[reference(&server.url(path), "image/gif")]);
        let after = mail(&[filled(Some(&server.url("/b")), "image/gif", BODY)]);
        // The target of the redirect may be stored because of another mail.
        if first == 1 {
            let b = mail(&[reference(&server.url("/b"), "image/gif")]);
            filter(&options, &b).gives(&after);
        }
        let count = server.count();
        filter(&options, &before).gives(&after);
        assert_eq!(server.count() - count, first, "{path}");
        filter(&options, &before).gives(&after);
        assert_eq!(server.count() - count - first, second, "{path}");
        let ran = filter(&format!("{options} --offline"), &before);
        if offline {
            ran.gives(&after)
        } else {
            ran.leaves(&before, &["offline"])
        }
        // Fewer redirects are allowed in this run.
        filter(&format!("{options} --max-redirects 0"), &before)
            .leaves(&before, &["too-many-redirects"]);
    }
}

#[test]
fn response_to_a_request_with_credentials_is_not_cached() {
    let server = Raw::http(|path, stream| {
        let answer = match path {
            "/to-b" => status("301 Moved Permanently", "Location: /b\r\n").into_bytes(),
            _ => ok("image/gif", BODY),
        };
        let _ = stream.write_all(&answer);
    });
    let folder = tempfile::tempdir().unwrap();
    let options = format!(
        "{} --allow-userinfo --cache-ignore no-store",
        cached(&server, folder.path())
    );
    for path in ["/", "/to-b"] {
        let url = server.url(path);
        let secret = url.replacen("//", "//me:secret@", 1);
        let [secret, open] = [&secret, &url].map(|url| mail(&[reference(url, "image/gif")]));
        for _ in 0..2 {
            let count = server.count();
            assert_eq!(filter(&options, &secret).column("outcome"), ["expanded"]);
            assert!(server.count() > count);
        }
        assert!(!folder.path().join("c/keys").exists(), "{path}");
        filter(&format!("{options} --offline"), &secret).leaves(&secret, &["offline"]);
        filter(&format!("{options} --offline"), &open).leaves(&open, &["offline"]);
    }
}
