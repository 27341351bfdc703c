//! `embody filter` with servers that fail, lie, respond slowly or send too much: the part is left unchanged, and the mail is
//! delivered before the deadline and with limited memory (P1 and P5 of docs/design.md; `--on-failure`).

use std::io::{Read as _, Write as _, repeat};
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::Duration;

use crate::common::filter::{Ran, filled, filter, mail, measured, open, reference};
use crate::common::programs::{free_port, ftp, nginx};
use crate::common::raw::{Raw, ok, redirect};
use flate2::Compression;
use flate2::write::GzEncoder;

const GIF: &[u8] = b"GIF89a\0";
const DEADLINE: Duration = Duration::from_secs(4);
const LIMITS: &str = "--timeout 1s --deadline 4s";
const MEGABYTE: u64 = 1 << 20;

/// 20 MiB of zeros in a gzip member of 20 KB.
static MEMBER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    std::io::copy(&mut repeat(0).take(20 * MEGABYTE), &mut encoder).unwrap();
    encoder.finish().unwrap()
});

/// Path, reason, and whether a later attempt may succeed.
const FAILURES: &[(&str, &str, bool)] = &[
    ("/404", "http-status", false),
    ("/410", "http-status", false),
    ("/403", "http-status", false),
    ("/204", "http-status", false),
    ("/206", "http-status", false),
    ("/408", "http-status", true),
    ("/429", "http-status", true),
    ("/500", "http-status", true),
    ("/503", "http-status", true),
    ("/wrong-type", "type-mismatch", false),
    ("/truncated", "incomplete-body", false),
    ("/truncated-chunks", "incomplete-body", false),
    ("/endless", "incomplete-body", false),
    ("/bomb", "too-large", false),
    ("/huge", "too-large", false),
    ("/no-http", "bad-response", false),
    ("/brotli", "bad-response", false),
    ("/drip", "timeout", true),
    ("/drip-head", "timeout", true),
    ("/never", "timeout", true),
    ("/hangs-up", "connection-failed", true),
    ("/loop", "too-many-redirects", false),
    ("/chain/9", "too-many-redirects", false),
    ("/to-file", "redirect-refused", false),
    ("/to-data", "redirect-refused", false),
    ("/to-ftp", "redirect-refused", false),
    ("/to-metadata", "private-address", false),
    ("/to-port", "port-not-allowed", false),
    ("/to-nobody", "userinfo-not-allowed", false),
];

fn hostile() -> Raw {
    Raw::http(|path, stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\n";
        let answer: Vec<u8> = match path {
            "/wrong-type" => ok("text/html", b"<p>"),
            "/truncated" => format!("{head}Content-Length: 100\r\n\r\nGIF89a").into(),
            "/truncated-chunks" => {
                format!("{head}Transfer-Encoding: chunked\r\n\r\n6\r\nGIF89a\r\n").into()
            }
            "/endless" => format!("{head}\r\nGIF89a").into(),
            "/bomb" => {
                // 510 members: 10 MB that would expand to 10 GB.
                let length = MEMBER.len() * 510;
                let head =
                    format!("{head}Content-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n");
                let _ = stream.write_all(head.as_bytes());
                (0..510)
                    .try_for_each(|_| stream.write_all(&MEMBER))
                    .unwrap_or_default();
                return;
            }
            "/huge" => format!("{head}Content-Length: 99999999999\r\n\r\nGIF89a").into(),
            "/no-http" => b"220 ready\r\n\r\n".to_vec(),
            "/brotli" => format!("{head}Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx").into(),
            "/drip" | "/drip-head" => {
                let head = format!("{head}Content-Length: 1000\r\n\r\n");
                let at = if path == "/drip" { head.len() } else { 0 };
                let _ = stream.write_all(&head.as_bytes()[..at]);
                for octet in &head.as_bytes().repeat(9)[at..] {
                    if stream.write_all(&[*octet]).is_err() {
                        return;
                    }
                    sleep(Duration::from_secs(1));
                }
                return;
            }
            "/never" => {
                sleep(Duration::from_secs(30));
                return;
            }
            "/hangs-up" => return,
            "/loop" => redirect("/loop?"),
            "/loop?" => redirect("/loop"),
            "/to-file" => redirect("file:///etc/passwd"),
            "/to-data" => redirect("data:image/gif,GIF89a"),
            "/to-ftp" => redirect("ftp://127.0.0.1/dot.gif"),
            "/to-metadata" => redirect("http://169.254.169.254/latest/meta-data/"),
            "/to-port" => redirect("http://127.0.0.1:1/"),
            "/to-nobody" => redirect("http://good@127.0.0.1/"),
            "/good" => ok("image/gif", GIF),
            _ => match path.strip_prefix("/chain/") {
                Some(left) => redirect(&format!("/chain/{}", left.parse::<u32>().unwrap() - 1)),
                None => {
                    let status = &path[1..];
                    format!("HTTP/1.1 {status} No\r\nContent-Type: image/gif\r\nContent-Length: 6\r\n\r\nGIF89a").into()
                }
            },
        };
        let _ = stream.write_all(&answer);
    })
}

#[test]
fn part_of_a_failing_server_is_left_and_the_other_parts_are_filled() {
    let server = hostile();
    let options = format!(
        "{} {LIMITS} --max-in-flight 64",
        open(&[server.address.port()])
    );
    let good = server.url("/good");
    let mut before = Vec::new();
    let mut after = Vec::new();
    for (path, _, _) in FAILURES {
        before.extend([
            reference(&server.url(path), "image/gif"),
            reference(&good, "image/gif"),
        ]);
        after.extend([
            reference(&server.url(path), "image/gif"),
            filled(Some(&good), "image/gif", GIF),
        ]);
    }
    let name = "part_of_a_failing_server_is_left_and_the_other_parts_are_filled";
    let before = mail(&before);
    let ran = measured(name, &options, &before).unwrap_or_else(|| filter(&options, &before));
    ran.gives(&mail(&after));
    assert!(
        ran.took < DEADLINE + Duration::from_secs(1),
        "{:?}",
        ran.took
    );
    let reasons = ran.column("reason");
    let wanted: Vec<&str> = FAILURES
        .iter()
        .flat_map(|(_, reason, _)| [*reason, "-"])
        .collect();
    assert_eq!(reasons, wanted, "{}", ran.stderr);
    if let Some(peak) = ran.peak {
        println!(
            "{} failures side by side: peak {} MiB",
            FAILURES.len(),
            peak / MEGABYTE
        );
        // One body can reach --max-body, plus one piece. The others are small.
        assert!(peak < 75 * MEGABYTE, "{} MiB", peak / MEGABYTE);
    }
}

#[test]
fn deferring_delays_the_mail_for_temporary_failures_and_for_no_others() {
    let server = hostile();
    let options = format!(
        "{} {LIMITS} --on-failure defer",
        open(&[server.address.port()])
    );
    let good = server.url("/good");
    let mut deferred = 0;
    for (path, reason, temporary) in FAILURES {
        let before = mail(&[
            reference(&good, "image/gif"),
            reference(&server.url(path), "image/gif"),
        ]);
        let ran = filter(&options, &before);
        assert!(
            ran.took < DEADLINE + Duration::from_secs(1),
            "{path}: {:?}",
            ran.took
        );
        if *temporary {
            deferred += 1;
            assert_eq!(
                (ran.code, ran.stdout.len()),
                (Some(75), 0),
                "{path}: {}",
                ran.stderr
            );
            assert!(
                ran.stderr.contains("temporary failure"),
                "{path}: {}",
                ran.stderr
            );
        } else {
            ran.gives(&mail(&[
                filled(Some(&good), "image/gif", GIF),
                reference(&server.url(path), "image/gif"),
            ]));
            assert_eq!(ran.column("reason"), ["-", *reason], "{path}");
        }
    }
    assert_eq!(deferred, 8);
}

#[test]
fn refused_connection_is_temporary_and_forbidden_url_is_permanent() {
    let port = free_port();
    let before = mail(&[reference(&format!("http://127.0.0.1:{port}/"), "image/gif")]);
    let options = open(&[port]);
    filter(&options, &before).leaves(&before, &["connection-failed"]);
    let ran = filter(&format!("{options} --on-failure defer"), &before);
    assert_eq!(
        (ran.code, ran.stdout.len()),
        (Some(75), 0),
        "{}",
        ran.stderr
    );
    filter("--fetch http --on-failure defer", &before).leaves(&before, &["private-address"]);
    filter("--on-failure defer", &before).leaves(&before, &["scheme-not-allowed"]);
}

#[test]
fn part_stays_unchanged_if_a_real_web_server_answers_with_an_error() {
    let Some(server) = nginx(
        "part_stays_unchanged_if_a_real_web_server_answers_with_an_error",
        &[],
    ) else {
        return;
    };
    for (path, code) in [
        ("/gone", 0),
        ("/none", 0),
        ("/missing", 0),
        ("/busy", 75),
        ("/many", 75),
    ] {
        let before = mail(&[reference(
            &format!("http://127.0.0.1:{}{path}", server.port),
            "image/gif",
        )]);
        let options = open(&[server.port]);
        filter(&options, &before).leaves(&before, &["http-status"]);
        let ran = filter(&format!("{options} --on-failure defer"), &before);
        assert_eq!(ran.code, Some(code), "{path}: {}", ran.stderr);
        assert_eq!(ran.stdout.is_empty(), code == 75, "{path}");
    }
}

#[test]
fn part_stays_unchanged_if_the_ftp_file_is_missing() {
    let files: &[(&str, &[u8])] = &[("dot.gif", GIF)];
    let Some(server) = ftp("part_stays_unchanged_if_the_ftp_file_is_missing", files, "") else {
        return;
    };
    let url = |path: &str| format!("ftp://127.0.0.1:{}{path}", server.port);
    let before = mail(
        &["/missing", "/", "/dot.gif", "/a%0d%0aDELE%20dot.gif"]
            .map(|path| reference(&url(path), "image/gif")),
    );
    let ran = filter(&open(&[server.port]), &before);
    assert_eq!(
        ran.column("reason"),
        ["ftp-status", "unsupported-scheme", "-", "bad-url"]
    );
    assert_eq!(ran.code, Some(0));
}

#[test]
fn many_slow_servers_together_end_at_the_deadline() {
    let never = Raw::http(|_, _| sleep(Duration::from_secs(30)));
    let urls: Vec<_> = (0..20)
        .map(|number| never.url(&format!("/{number}")))
        .collect();
    let parts: Vec<_> = urls.iter().map(|url| reference(url, "image/gif")).collect();
    let before = mail(&parts);
    let options = format!(
        "{} --timeout 1s --deadline 2s --max-in-flight 2",
        open(&[never.address.port()])
    );
    let ran = filter(&options, &before);
    ran.gives(&before);
    // With two requests at a time, each of a second, all of them would take ten seconds.
    assert!(ran.took < Duration::from_secs(8), "{:?}", ran.took);
    let reasons = ran.column("reason");
    assert!(
        reasons
            .iter()
            .all(|reason| reason == "timeout" || reason == "deadline"),
        "{reasons:?}"
    );
    assert!(
        reasons
            .iter()
            .filter(|reason| *reason == "deadline")
            .count()
            >= 16,
        "{reasons:?}"
    );
    // Requests whose time was over before their turn are not sent.
    assert!(never.count() <= 6, "{}", never.count());
}

/// Prints how much memory a measured run used, and asserts that it is less than this number of megabytes.
#[track_caller]
fn peaks_below(ran: &Ran, megabytes: u64, what: &str) {
    let peak = ran.peak.unwrap() / MEGABYTE;
    println!("{what}: peak {peak} MiB, {:?}", ran.took);
    assert!(peak < megabytes, "{what}: {peak} MiB");
}

#[test]
fn of_many_large_bodies_those_that_fit_come_and_memory_stays_bounded() {
    static BODY: LazyLock<Vec<u8>> = LazyLock::new(|| ok("image/gif", &vec![b'x'; 20 << 20]));
    let server = Raw::http(|_, stream| {
        let _ = stream.write_all(&BODY);
    });
    let parts: Vec<_> = (0..30)
        .map(|number| reference(&server.url(&format!("/{number}")), "image/gif"))
        .chain([reference("data:image/gif,GIF89a%00", "image/gif")])
        .collect();
    let before = mail(&parts);
    let large = vec![b'x'; 20 << 20];
    let mut after = parts;
    after[0] = filled(Some(&server.url("/0")), "image/gif", &large);
    after[30] = filled(None, "image/gif", GIF);
    let name = "of_many_large_bodies_those_that_fit_come_and_memory_stays_bounded";
    let options = format!(
        "{} --max-in-flight 2 --max-growth 50M",
        open(&[server.address.port()])
    );
    let Some(ran) = measured(name, &options, &before) else {
        return;
    };
    ran.gives(&mail(&after));
    let reasons = ran.column("reason");
    assert!(
        reasons[1..30].iter().all(|reason| reason == "growth-limit"),
        "{reasons:?}"
    );
    assert!(
        ran.stderr.contains("--max-growth SIZE would allow it"),
        "{}",
        ran.stderr
    );
    // The limit of 50 MB is reached with the third body. The second thread may retrieve one more.
    assert!(
        (3..=5).contains(&server.count()),
        "{} were asked for",
        server.count()
    );
    peaks_below(&ran, 50 + 2 * 25 + 50, "30 bodies of 20 MiB");
    // A later run retrieves the rest.
    after[1] = filled(Some(&server.url("/1")), "image/gif", &large);
    let again = filter(&options, &ran.stdout);
    assert!(again.stdout == mail(&after), "{:.300}", again.stderr);
}

#[test]
fn memory_for_a_body_referenced_a_thousand_times_is_bounded() {
    let server = Raw::saying(ok("image/gif", &vec![b'x'; 20 << 20]));
    let before = mail(&vec![reference(&server.url("/"), "image/gif"); 1000]);
    let name = "memory_for_a_body_referenced_a_thousand_times_is_bounded";
    let Some(ran) = measured(name, &open(&[server.address.port()]), &before) else {
        return;
    };
    assert_eq!(ran.code, Some(0));
    let reasons = ran.column("reason");
    assert_eq!(reasons.len(), 1000);
    assert!(reasons[1..].iter().all(|reason| reason == "growth-limit"));
    assert!(ran.stdout.len() < before.len() + (50 << 20));
    assert_eq!(server.count(), 1);
    peaks_below(&ran, 200, "20 MiB meant 1000 times");
}

#[test]
fn redirects_with_large_bodies_and_long_locations_cost_little() {
    static BODY: LazyLock<Vec<u8>> = LazyLock::new(|| vec![b'x'; 20 << 20]);
    let server = Raw::http(|path, stream| {
        let length = BODY.len();
        let number: usize = path[1..].split('?').next().unwrap().parse().unwrap();
        let next = format!("/{}?{}", number + 1, "y".repeat(8_000));
        let head =
            format!("HTTP/1.1 302 Found\r\nLocation: {next}\r\nContent-Length: {length}\r\n\r\n");
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&BODY);
    });
    let before = mail(&[reference(&server.url("/0"), "image/gif")]);
    let name = "redirects_with_large_bodies_and_long_locations_cost_little";
    let port = server.address.port();
    for (redirects, asked) in [(5, 6), (300, 301)] {
        let asked_before = server.count();
        let options = format!(
            "{} --max-redirects {redirects} --timeout 60s",
            open(&[port])
        );
        let Some(ran) = measured(name, &options, &before) else {
            return;
        };
        ran.leaves(&before, &["too-many-redirects"]);
        assert_eq!(server.count() - asked_before, asked);
        peaks_below(&ran, 40, &format!("{redirects} redirects"));
        assert!(ran.took < Duration::from_secs(50), "{:?}", ran.took);
    }
}

#[test]
fn a_bomb_alone_stops_at_the_limit_in_little_memory() {
    let server = hostile();
    let before = mail(&[reference(&server.url("/bomb"), "image/gif")]);
    let name = "a_bomb_alone_stops_at_the_limit_in_little_memory";
    let Some(ran) = measured(name, &open(&[server.address.port()]), &before) else {
        return;
    };
    ran.leaves(&before, &["too-large"]);
    peaks_below(&ran, 25 + 50, "10 GB bomb");
}
