//! `embody milter` as a service: signals, systemd, counters, the report, and errors in the command line.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::bounded::ended;
use crate::common::mail::with_url;
use crate::common::mail_system::{Became, MailSystem, packet};
use crate::common::milter::Milter;
use crate::common::mta::{House, eventually};
use crate::common::programs::{
    embody, fed, free_port, has_python, program, signalled, skipped, stderr,
};
use crate::common::raw::{Raw, ok};
use crate::common::reports;

fn socket(house: &House) -> PathBuf {
    house.path("milter.sock")
}

fn start(house: &House, options: &[&str]) -> Milter {
    let listen = format!("unix:{}", house.text("milter.sock"));
    Milter::start(house, &listen, options)
}

fn connect(house: &House) -> MailSystem {
    let mut mail_system = MailSystem::unix(&socket(house));
    mail_system.negotiate();
    mail_system
}

fn letter() -> Vec<u8> {
    with_url("data:,hello", "Content-Type: text/plain")
}

fn is_marked(message: &[u8]) -> bool {
    memchr::memmem::find(message, b"\nX-Embody: expanded=1 left=0 links=0\n").is_some()
}

#[test]
fn milter_fills_a_vanished_url_from_the_archive() {
    let captured = String::from_utf8(ok("text/plain", b"as it was then")).unwrap();
    let field = "\r\nMemento-Datetime: Thu, 01 May 2003 00:00:00 GMT\r\n";
    let archive = Raw::saying(captured.replacen("\r\n", field, 1));
    let port = archive.address.port().to_string();
    let template = archive.url("/web/{date}id_/{url}");
    let house = House::new();
    let options = [
        "--fetch=http",
        "--allow-net=127.0.0.0/8",
        "--allow-port",
        &port,
        "--archive",
        &template,
    ];
    let _milter = start(&house, &options);
    let mut mail_system = connect(&house);
    let letter = |day: &str| {
        let date = format!("Date: {day} May 2003 10:11:12 +0000\n").into_bytes();
        let letter = with_url("http://gone.example/a", "Content-Type: text/plain");
        [date, letter].concat()
    };
    for day in ["Fri, 02", "Sat, 03", "Fri, 02"] {
        let became = mail_system.filter("4archive", &letter(day)).message();
        let text = String::from_utf8(became).unwrap();
        assert!(text.contains("as it was then"), "{text}");
    }
    // A mail of another day may need another capture, so the archive gets a second request. A mail of the same day does not.
    let asked: Vec<String> = archive.heads();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked[0].starts_with("GET /web/20030502101112id_/http://gone.example/a "));
    assert!(asked[1].starts_with("GET /web/20030503101112id_/http://gone.example/a "));
}

#[test]
fn hup_reads_the_configuration_and_opens_the_report_again_and_connections_stay() {
    let house = House::new();
    let report = house.path("report");
    let milter = start(&house, &["--report", report.to_str().unwrap()]);
    let mut mail_system = connect(&house);
    assert!(!is_marked(
        &mail_system.filter("4first", &letter()).message()
    ));
    let lines = || fs::read_to_string(&report).unwrap_or_default();
    eventually(60, "the report", || {
        lines().contains("\"source\":\"4first\"")
    });
    fs::rename(&report, house.path("report.1")).unwrap();
    house.write("embody.toml", "mark = true\nquiet = true\n");
    milter.signal("HUP");
    eventually(60, "the new options hold", || {
        is_marked(&mail_system.filter("4second", &letter()).message())
    });
    eventually(60, "the report", || {
        lines().contains("\"source\":\"4second\"")
    });
    assert!(!lines().contains("4first"));
    assert!(!reports::objects(lines()).is_empty());

    // A configuration with an error is not applied.
    for wrong in [
        "mark = 1\n",
        "marks = true\n",
        "mark = true",
        "deadline = \"500s\"\n",
    ] {
        let seen = milter.log().len();
        house.write(
            "embody.toml",
            &wrong.replace("mark = true", "mark = true\nmark = true"),
        );
        milter.signal("HUP");
        eventually(60, "it is said", || milter.log()[seen..].ends_with('\n'));
        let said = milter.log()[seen..].to_owned();
        let begins = "embody: reload failed; keeping the previous configuration: ";
        assert!(said.starts_with(begins), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(is_marked(
            &mail_system.filter("4third", &letter()).message()
        ));
    }
}

#[test]
fn the_report_names_the_option_that_would_allow_what_was_left() {
    let house = House::new();
    let report = house.path("report");
    let hosts = "--allow-host=b.example";
    let _milter = start(&house, &[hosts, "--report", report.to_str().unwrap()]);
    let letter = with_url("http://a.example/", "Content-Type: text/plain");
    connect(&house).filter("4http", &letter);
    let lines = || fs::read_to_string(&report).unwrap_or_default();
    eventually(60, "the report", || lines().ends_with('\n'));
    let said = "\"detail\":\"a.example is not allowed by --allow-host\"";
    assert!(lines().contains(said), "{}", lines());
    reports::objects(lines());
}

#[test]
fn start_reload_and_stop_each_log_one_line() {
    let house = House::new();
    house.write("embody.toml", "");
    let port = free_port();
    let metrics = format!("inet:{port}");
    let mut milter = start(&house, &["--metrics", &metrics]);
    let path = house.text("milter.sock");
    let mut expected = format!(
        "embody: version {} listens on unix:{path}; metrics on inet:127.0.0.1:{port}\n",
        env!("CARGO_PKG_VERSION")
    );
    eventually(60, "the start", || milter.log() == expected);
    milter.signal("HUP");
    expected.push_str("embody: configuration reloaded\n");
    eventually(60, "the reload", || milter.log() == expected);
    milter.signal("TERM");
    assert_eq!(milter.status(), Some(0));
    expected.push_str("embody: stopped by SIGTERM\n");
    assert_eq!(milter.log(), expected);

    // With --quiet, only errors are logged.
    let seen = milter.log().len();
    let mut milter = start(&house, &["--quiet"]);
    milter.signal("HUP");
    milter.signal("INT");
    assert_eq!(milter.status(), Some(0));
    assert_eq!(milter.log()[seen..], *"");
}

#[test]
fn a_socket_has_the_group_and_the_mode_that_are_named() {
    let groups = fs::read_to_string("/etc/group").unwrap();
    let fields = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        Some((name, fields.nth(1)?.parse::<u32>().ok()?))
    };
    let house = House::new();
    let made = |milter: &Milter| {
        let _ = milter.id();
        let made = fs::metadata(socket(&house)).unwrap();
        (made.gid(), made.mode() & 0o777)
    };
    // A group of this process. The superuser may use any group.
    let own = fs::metadata(house.folder.path()).unwrap();
    let is_ours = |gid: u32| own.uid() == 0 || gid == own.gid();
    let mut named = groups
        .lines()
        .filter_map(fields)
        .filter(|(_, gid)| is_ours(*gid));
    let (name, gid) = named.next_back().unwrap();
    for group in [name, gid.to_string()] {
        let options = ["--socket-group", &group, "--socket-mode", "0620"];
        // If an option is repeated, the last value is used.
        let milter = start(&house, &options);
        assert_eq!(made(&milter), (gid, 0o620), "{group}");
        assert_ne!(connect(&house).filter("1", &letter()).message(), letter());
    }
    for (group, word) in [
        ("no such group", "/etc/group"),
        ("4294967295", "/etc/group"),
        ("", "/etc/group"),
    ] {
        let listen = format!("unix:{}", house.text("other.sock"));
        let output = embody()
            .args(["milter", "--listen", &listen, "--socket-group", group])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
        assert!(!house.path("other.sock").exists());
    }
}

/// Parses the counters with the Python client of Prometheus, and prints them.
const READER: &str = r"
import sys
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict
text = sys.stdin.read()
families = list(text_string_to_metric_families(text))
assert len({(family.name, family.type) for family in families}) == len(families)
for family in families:
    assert family.name.startswith('embody_milter_') and family.documentation and family.type != 'unknown', family
    for sample in family.samples:
        labels = ','.join(f'{name}={value}' for name, value in sorted(sample.labels.items()))
        print(family.type, sample.name, labels, float(sample.value))
# The reader of OpenMetrics, which names counters otherwise, holds the histogram: buckets that grow, the last of them all.
histogram = [line for line in text.splitlines(True) if 'processing_seconds' in line]
assert len(histogram) > 10
list(strict(''.join(histogram) + '# EOF\n'))
";

#[test]
fn prometheus_reads_what_is_counted() {
    if !has_python(
        "prometheus_reads_what_is_counted",
        "prometheus_client",
        "prometheus_client",
    ) {
        return;
    }
    let content = [b'x'; 1000];
    let http = Raw::saying(ok("text/plain", &content));
    let gone = Raw::saying("HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let busy = Raw::saying("HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let house = House::new();
    let open = [&http, &gone, &busy].map(|server| server.address.port().to_string());
    house.write(
        "embody.toml",
        &format!(
            "fetch = [\"http\"]\nallow-net = [\"127.0.0.0/8\"]\nallow-port = [{}]\n",
            open.join(", ")
        ),
    );
    let port = free_port();
    let metrics = format!("inet:{port}");
    let milter = start(&house, &["--metrics", &metrics]);
    let read = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (_, text) = text.split_once("\r\n\r\n").unwrap();
        let output = fed(
            Command::new("python3").args(["-c", READER]),
            text.as_bytes(),
        );
        assert!(output.status.success(), "{}\n{text}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let has = |told: &str, line: &str| told.lines().any(|one| one == line);
    let before = read();
    for line in [
        concat!(
            "gauge embody_milter_build_info version=",
            env!("CARGO_PKG_VERSION"),
            " 1.0"
        ),
        "histogram embody_milter_processing_seconds_bucket le=0.001 0.0",
        "histogram embody_milter_processing_seconds_bucket le=+Inf 0.0",
        "counter embody_milter_references_left_total reason=timeout 0.0",
        "counter embody_milter_retrievals_total outcome=retrieved 0.0",
    ] {
        assert!(has(&before, line), "{line}:\n{before}");
    }
    let mut mail_system = connect(&house);
    let letters = [
        (http.url("/x"), 3),
        (gone.url("/x"), 1),
        (busy.url("/x"), 1),
        ("https://www.example.org/".to_owned(), 1),
    ];
    for (url, times) in &letters {
        for _ in 0..*times {
            mail_system
                .filter("1", &with_url(url, "Content-Type: text/plain"))
                .message();
        }
    }
    // The counters are kept when the options are reloaded.
    milter.signal("HUP");
    eventually(60, "the reload", || milter.log().contains("reloaded"));
    eventually(60, "all is counted", || {
        has(
            &read(),
            "counter embody_milter_messages_total outcome=unchanged 3.0",
        )
    });
    let after = read();
    for line in [
        "counter embody_milter_messages_total outcome=changed 3.0",
        "counter embody_milter_references_expanded_total  3.0",
        // Two of the references were filled from memory.
        "counter embody_milter_retrievals_total outcome=retrieved 1.0",
        "counter embody_milter_retrievals_total outcome=refused 1.0",
        "counter embody_milter_retrievals_total outcome=failed 1.0",
        "counter embody_milter_retrieved_bytes_total  1000.0",
        "counter embody_milter_references_left_total reason=http-status 2.0",
        "counter embody_milter_references_left_total reason=scheme-not-allowed 1.0",
        "counter embody_milter_references_left_total reason=timeout 0.0",
        "histogram embody_milter_processing_seconds_count  6.0",
        "histogram embody_milter_processing_seconds_bucket le=+Inf 6.0",
        "histogram embody_milter_processing_seconds_bucket le=240 6.0",
        "gauge embody_milter_connections  1.0",
    ] {
        assert!(has(&after, line), "{line}:\n{after}");
    }
}

#[test]
fn term_lets_a_message_under_way_be_answered_and_ends_with_0() {
    for signal in ["TERM", "INT"] {
        let house = House::new();
        let http = Raw::http(|_, stream| {
            thread::sleep(Duration::from_secs(2));
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nremote",
            );
        });
        house.may_ask(http.address.port());
        let mut milter = start(&house, &[]);
        let mut idle = connect(&house);
        let mut busy = connect(&house);
        let letter = with_url(&http.url("/x"), "Content-Type: text/plain");
        thread::scope(|scope| {
            let answer = scope.spawn(|| busy.filter("1", &letter));
            eventually(60, "it asks", || http.count() == 1);
            milter.signal(signal);
            assert!(idle.is_closed());
            assert!(memchr::memmem::find(&answer.join().unwrap().message(), b"remote").is_some());
        });
        assert_eq!(milter.status(), Some(0));
        assert!(!socket(&house).exists());
    }
}

#[test]
fn what_was_done_is_logged_with_the_queue_id_and_counted() {
    let house = House::new();
    house.write("embody.toml", "");
    let port = free_port();
    let milter = start(
        &house,
        &[
            "--metrics",
            &format!("inet:{port}"),
            "--max-message",
            "100k",
        ],
    );
    let mut mail_system = connect(&house);
    mail_system.filter("4ABC\n\x1b", &letter()).message();
    let refused = with_url("https://www.example.org/x", "Content-Type: text/plain");
    assert_eq!(
        mail_system.filter("4DEF", &refused),
        Became::Message(refused)
    );
    let plain = b"Subject: nothing\n\nhello\n";
    mail_system.filter("4GHI", plain).message();
    let large = [letter(), vec![b'x'; 200_000]].concat();
    mail_system.filter("4JKL", &large).message();
    eventually(60, "all is logged", || milter.log().contains("4JKL"));
    let log = milter.log();
    for line in [
        "embody: 4ABC??: part 2: expanded",
        "embody: 4ABC??: 1 reference expanded, 0 references unchanged, 0 links changed, ",
        "embody: 4DEF: part 2: unchanged: scheme-not-allowed",
        "embody: 4DEF: 0 references expanded, 1 reference unchanged, 0 links changed, ",
        "embody: 4JKL: the message was not changed: the message has more than 102400 bytes, which is --max-message",
    ] {
        assert!(log.contains(line), "{line}:\n{log}");
    }
    assert!(!log.contains("4GHI"), "{log}");

    let asked = |request: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let text = asked("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    for line in [
        "# TYPE embody_milter_messages_total counter",
        "embody_milter_messages_total{outcome=\"changed\"} 1",
        "embody_milter_messages_total{outcome=\"unchanged\"} 2",
        "embody_milter_messages_total{outcome=\"too_large\"} 1",
        "embody_milter_references_expanded_total 1",
        "embody_milter_references_left_total{reason=\"scheme-not-allowed\"} 1",
        "embody_milter_connections 1",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line}:\n{text}");
    }
    for request in [
        "GET / HTTP/1.1\r\n\r\n",
        "POST /metrics HTTP/1.1\r\n\r\n",
        "\r\n\r\n",
    ] {
        assert!(asked(request).starts_with("HTTP/1.1 404 "));
    }
    // A client that sends too much is disconnected.
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let written = stream.write_all(&vec![b'x'; 1 << 20]);
    let read = stream.read(&mut [0]);
    assert!(written.is_err() || !matches!(read, Ok(1)));
    assert!(asked("GET /metrics HTTP/1.1\r\n\r\n").contains("200 OK"));
}

#[test]
fn systemd_hands_over_a_socket_and_is_told_when_all_is_ready() {
    if program("python3").is_none() {
        return skipped("socket activation", "python3");
    }
    let house = House::new();
    let told = UnixDatagram::bind(house.path("notify")).unwrap();
    told.set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    // Does what systemd does: the socket listens before the process starts, and is its third file descriptor.
    let script = "import os, socket, sys\n\
        s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(8)\n\
        os.dup2(s.fileno(), 3)\n\
        os.set_inheritable(3, True)\n\
        os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1', NOTIFY_SOCKET=sys.argv[2])\n\
        os.execv(sys.argv[3], [sys.argv[3], 'milter', '--config', sys.argv[4]])\n";
    let mut child = Command::new("python3")
        .args(["-c", script])
        .arg(socket(&house))
        .arg(house.path("notify"))
        .arg(house.path("embody.real"))
        .arg(house.path("embody.toml"))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let word = || {
        let mut buffer = [0; 200];
        let length = told.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    assert!(word().contains("READY=1"));
    let mut mail_system = connect(&house);
    assert_ne!(mail_system.filter("1", &letter()).message(), letter());
    signalled(child.id(), "HUP");
    let reloading = word();
    assert!(
        reloading.contains("RELOADING=1") && reloading.contains("MONOTONIC_USEC="),
        "{reloading}"
    );
    assert!(word().contains("READY=1"));
    signalled(child.id(), "TERM");
    assert!(word().contains("STOPPING=1"));
    assert_eq!(ended(&mut child).code(), Some(0));
    // The socket belongs to systemd, so it is not removed.
    assert!(socket(&house).exists());
}

#[test]
fn milter_that_cannot_listen_reports_the_reason_and_removes_no_socket() {
    let house = House::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let file = house.write("file", "text");
    let first = start(&house, &[]);
    let path = house.text("milter.sock");
    for (listen, status, word) in [
        (
            format!("inet:{}", taken.local_addr().unwrap().port()),
            1,
            "cannot listen on inet:127.0.0.1:",
        ),
        (format!("unix:{}", file.display()), 1, "not a socket"),
        (format!("unix:{path}"), 1, "another process listens"),
        ("unix:relative".to_owned(), 2, "--listen"),
    ] {
        let output = embody()
            .args(["milter", "--listen", &listen])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    }
    for (options, word) in [
        (vec![], "no address to listen on"),
        (vec!["--listen", "inet:1", "--deadline", "241s"], "300 s"),
        (vec!["--listen", "inet:1", "--socket-mode", "9"], "0660"),
    ] {
        let output = embody().arg("milter").args(options).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    }
    assert_eq!(fs::read(&file).unwrap(), b"text");
    assert!(UnixStream::connect(&path).is_ok());
    drop(first);
    // The killed process left its socket, on which no process listens.
    assert!(socket(&house).exists());
    let _second = start(&house, &[]);
    assert_ne!(connect(&house).filter("1", &letter()).message(), letter());
}

/// 64 connections, each with several messages. One message is sent in pieces, and one is aborted.
#[test]
fn sixty_four_connections_are_served_at_once() {
    let house = House::new();
    let _milter = start(&house, &[]);
    let expected = connect(&house).filter("1", &letter()).message();
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                let mut mail_system = connect(&house);
                for number in 0..20 {
                    mail_system.send(&packet(b'L', b"X-Of-Another\0 message\0"));
                    mail_system.send(&packet(b'A', b""));
                    let came = mail_system.filter(&number.to_string(), &letter()).message();
                    assert_eq!(came, expected);
                }
            });
        }
    });
}

/// The mail has the maximum number of header fields, one of which changes. The memory must be at most four times the size of
/// the mail.
#[test]
fn memory_is_bounded_by_the_mail_however_many_fields_it_has() {
    let house = House::new();
    let milter = start(&house, &["--quiet", "--mark"]);
    let peak = || {
        let status = fs::read_to_string(format!("/proc/{}/status", milter.id())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kilo: usize = line.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kilo << 10)
    };
    let mut mail_system = connect(&house);
    mail_system.filter("1", &letter()).message();
    let Some(before) = peak() else {
        return skipped("memory of many fields", "/proc");
    };
    let own = "Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\nContent-Type: text/plain\n\n";
    let mail = ["a:\n".repeat(1_000_000), own.to_owned()]
        .concat()
        .into_bytes();
    let came = mail_system.filter("2", &mail).message();
    assert!(is_marked(&came) && came.ends_with(b"\n\nx"));
    let gained = peak().unwrap() - before;
    // Buffers, stacks and reserves of the allocator have a fixed size for every mail.
    let most = 4 * mail.len() + (8 << 20);
    assert!(gained < most, "{gained} octets, more than {most}");
}

/// The command of the systemd unit, with paths of this test.
#[test]
fn command_of_the_systemd_unit_starts() {
    let unit = include_str!("../../../docs/milter/embody.service");
    let command = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="))
        .unwrap();
    let configuration = include_str!("../../../samples/recipes/milter/milter.toml");
    let house = House::new();
    house.write("milter.toml", configuration);
    let mut words = command
        .replace("/usr/bin/embody", &house.text("embody.real"))
        .replace("/etc/embody/milter.toml", &house.text("milter.toml"))
        .split(' ')
        .map(str::to_owned)
        .collect::<Vec<_>>();
    let program = words.remove(0);
    assert_eq!(program, house.text("embody.real"));
    words.extend([
        "--listen".to_owned(),
        format!("unix:{}", socket(&house).display()),
    ]);
    let mut child = Command::new(program).args(words).spawn().unwrap();
    eventually(60, "it listens", || {
        UnixStream::connect(socket(&house)).is_ok()
    });
    assert_ne!(connect(&house).filter("1", &letter()).message(), letter());
    let id = child.id().to_string();
    assert!(Command::new("kill").arg(id).status().unwrap().success());
    assert_eq!(ended(&mut child).code(), Some(0));
    assert!(unit.contains("\nType=notify\n") && unit.contains("kill -HUP"));
}
