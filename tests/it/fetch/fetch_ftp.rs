//! ftp with pyftpdlib and with servers that lie (RFC 959, RFC 1738 §3.2).

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::common::programs::{free_port, ftp};
use crate::common::raw::Raw;
use crate::common::world::{Told, fetch, policy, refused, request};
use embody::fetch::{Fetch as _, Fetcher};
use embody::report::{Reason, Retry};

const TEXT: &[u8] = b"one\ntwo\n";

fn files() -> Vec<(&'static str, &'static [u8])> {
    vec![
        ("text.txt", TEXT),
        ("empty", b""),
        ("a/b c/d%e", b"deep"),
        ("caf\u{e9}", b"utf-8"),
        ("big", BIG),
    ]
}

const BIG: &[u8] = &[7; 300_000];

#[test]
fn a_file_comes_whole_by_its_segments() {
    let Some(server) = ftp("a_file_comes_whole_by_its_segments", &files(), "") else {
        return;
    };
    let policy = policy(&[server.port]);
    for (path, body) in [
        ("/text.txt", TEXT),
        ("/text.txt;type=i", TEXT),
        ("/text.txt;type=a", b"one\r\ntwo\r\n".as_slice()),
        ("/TEXT.TXT/../text.txt", TEXT),
        ("/empty", b""),
        ("/a/b%20c/d%25e", b"deep"),
        ("/a//b%20c/d%25e", b"deep"),
        ("/%2Fa/b%20c/d%25e", b"deep"),
        ("/a%2Fb%20c/d%25e", b"deep"),
        ("/caf%C3%A9", b"utf-8"),
        ("/caf\u{e9}#fragment", b"utf-8"),
        ("/big", BIG),
    ] {
        let url = format!("ftp://127.0.0.1:{}{path}", server.port);
        let got = fetch(&policy, &url).expect(&url);
        assert!(got.bytes() == body, "{url}: {} octets", got.bytes().len());
        assert_eq!(got.media_type, None);
    }
}

#[test]
fn the_server_sees_an_anonymous_user_and_binary() {
    // pyftpdlib logs every command to standard error, which is the log file.
    let extra = "import logging; logging.basicConfig(level=logging.DEBUG)";
    let Some(server) = ftp(
        "the_server_sees_an_anonymous_user_and_binary",
        &files(),
        extra,
    ) else {
        return;
    };
    let url = format!("ftp://127.0.0.1:{}/a/b%20c/d%25e", server.port);
    fetch(&policy(&[server.port]), &url).unwrap();
    let mut said = String::new();
    let begun = Instant::now();
    while !said.contains("226") && begun.elapsed() < Duration::from_secs(5) {
        said = std::fs::read_to_string(server.folder.path().join("log")).unwrap();
    }
    let commands: Vec<_> = said
        .lines()
        .filter_map(|line| line.split_once("<- ").map(|(_, command)| command))
        .collect();
    assert_eq!(
        commands,
        [
            "USER anonymous",
            "PASS ******",
            "CWD a",
            "CWD b c",
            "TYPE I",
            "EPSV",
            "RETR d%e"
        ],
        "{said}"
    );
}

#[test]
fn credentials_are_sent_when_they_are_allowed() {
    let Some(server) = ftp("credentials_are_sent_when_they_are_allowed", &files(), "") else {
        return;
    };
    let mut policy = policy(&[server.port]);
    let url = format!("ftp://user:p%40ss@127.0.0.1:{}/text.txt", server.port);
    assert_eq!(refused(&policy, &url).reason, Reason::UserinfoNotAllowed);
    policy = policy.with_allow_userinfo(true);
    let got = fetch(&policy, &url).unwrap();
    assert_eq!(got.bytes(), TEXT);
    assert!(!got.origin.url.contains("p%40ss"), "{}", got.origin.url);
    let wrong = url.replace("p%40ss", "wrong");
    assert_eq!(refused(&policy, &wrong).reason, Reason::FtpStatus);
}

#[test]
fn what_is_no_file_is_refused() {
    let Some(server) = ftp("what_is_no_file_is_refused", &files(), "") else {
        return;
    };
    let policy = policy(&[server.port]);
    for (path, reason) in [
        ("/nothing", Reason::FtpStatus),
        ("/nothing/text.txt", Reason::FtpStatus),
        ("/a", Reason::FtpStatus),
        ("/a/", Reason::UnsupportedScheme),
        ("/", Reason::UnsupportedScheme),
        ("/a;type=d", Reason::UnsupportedScheme),
        ("/text.txt%0d%0aDELE%20text.txt", Reason::BadUrl),
        ("/text.txt%00", Reason::BadUrl),
    ] {
        let url = format!("ftp://127.0.0.1:{}{path}", server.port);
        let refusal = refused(&policy, &url);
        assert_eq!(
            (refusal.reason, refusal.retry),
            (reason, Retry::Never),
            "{url}"
        );
    }
    let tight = policy.map_limits(|limits| limits.with_body(BIG.len() as u64 - 1));
    let url = format!("ftp://127.0.0.1:{}/big", server.port);
    let begun = Instant::now();
    assert_eq!(refused(&tight, &url).reason, Reason::TooLarge);
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn ftp_host_is_refused_if_any_resolved_address_is_forbidden() {
    let Some(server) = ftp(
        "ftp_host_is_refused_if_any_resolved_address_is_forbidden",
        &files(),
        "",
    ) else {
        return;
    };
    let names = Told::of(&[
        ("good.example", &["127.0.0.1"]),
        ("both.example", &["127.0.0.1", "10.0.0.1"]),
    ]);
    let world = Fetcher::with_names(policy(&[server.port]), names).unwrap();
    let ask = |host: &str| world.fetch(&request(&format!("ftp://{host}:{}/text.txt", server.port)));
    assert_eq!(ask("good.example").unwrap().bytes(), TEXT);
    assert_eq!(
        ask("both.example").unwrap_err().reason,
        Reason::PrivateAddress
    );
}

/// A server that supports USER, PASS and TYPE, with `data` and `finale` as further responses.
struct Liar {
    control: Raw,
    commands: Arc<Mutex<Vec<String>>>,
}

fn liar(
    epsv: impl Fn() -> String + Send + Sync + 'static,
    pasv: impl Fn() -> String + Send + Sync + 'static,
    finale: &'static str,
) -> Liar {
    let commands: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&commands);
    let control = Raw::connections(move |stream| {
        let mut out = &stream;
        let _ = out.write_all(b"220 here\r\n");
        for line in BufReader::new(&stream).lines().map_while(Result::ok) {
            let answer = match line.split(' ').next().unwrap_or("") {
                "USER" => "331 more".to_owned(),
                "PASS" => "230 in".to_owned(),
                "TYPE" => "200 yes".to_owned(),
                "EPSV" => epsv(),
                "PASV" => pasv(),
                "RETR" => format!("150 coming\r\n{finale}"),
                _ => "500 what".to_owned(),
            };
            heard.lock().unwrap().push(line);
            if out.write_all(format!("{answer}\r\n").as_bytes()).is_err() {
                return;
            }
        }
    });
    Liar { control, commands }
}

/// Starts a data connection that sends `body`. Returns its port, and the number of clients.
fn data(body: &'static [u8]) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counter.fetch_add(1, Ordering::SeqCst);
            let _ = stream.write_all(body);
        }
    });
    (port, count)
}

fn pasv(address: [u8; 4], port: u16) -> String {
    let [a, b, c, d] = address;
    format!(
        "227 Entering ({a},{b},{c},{d},{},{})",
        port >> 8,
        port & 255
    )
}

#[test]
fn pasv_cannot_send_us_to_another_host() {
    // Another address of this machine, which counts its clients. No server listens on this port at the address of the ftp
    // server.
    let stolen = free_port();
    let elsewhere = TcpListener::bind(("127.0.0.2", stolen)).unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let server = liar(
        || "500 no EPSV".to_owned(),
        move || pasv([127, 0, 0, 2], stolen),
        "226 done",
    );
    let url = format!("ftp://127.0.0.1:{}/f", server.control.address.port());
    let refusal = refused(&policy(&[server.control.address.port()]), &url);
    assert_eq!(refusal.reason, Reason::ConnectionFailed, "{refusal:?}");
    assert!(elsewhere.accept().is_err(), "somebody came");

    // The same lie with a port that is open at the ftp server. This port is used.
    let (port, count) = data(b"hello");
    let server = liar(
        || "500 no EPSV".to_owned(),
        move || pasv([10, 0, 0, 1], port),
        "226 done",
    );
    let url = format!("ftp://127.0.0.1:{}/f", server.control.address.port());
    let got = fetch(&policy(&[server.control.address.port()]), &url).unwrap();
    assert_eq!(
        (&**got.bytes(), count.load(Ordering::SeqCst)),
        (b"hello".as_slice(), 1)
    );
    let commands = server.commands.lock().unwrap().clone();
    assert_eq!(
        commands,
        [
            "USER anonymous",
            "PASS embody@",
            "TYPE I",
            "EPSV",
            "PASV",
            "RETR f"
        ]
    );
}

#[test]
fn a_transfer_that_was_not_declared_complete_is_no_body() {
    for finale in ["426 aborted", "451 local error", "550 gone"] {
        let (port, _) = data(b"hello");
        let server = liar(move || format!("229 ok (|||{port}|)"), String::new, finale);
        let url = format!("ftp://127.0.0.1:{}/f", server.control.address.port());
        let refusal = refused(&policy(&[server.control.address.port()]), &url);
        assert_eq!(
            refusal.reason,
            Reason::IncompleteBody,
            "{finale}: {refusal:?}"
        );
    }
}

#[test]
fn a_server_that_wants_nobody_now_is_temporary() {
    let server = Raw::connections(|mut stream| {
        let _ = stream.write_all(b"421 too many users\r\n");
    });
    let url = format!("ftp://{}/f", server.address);
    let refusal = refused(&policy(&[server.address.port()]), &url);
    assert_eq!(
        (refusal.reason, refusal.retry),
        (Reason::FtpStatus, Retry::Later)
    );
    let server = Raw::connections(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let refusal = refused(
        &policy(&[server.address.port()]),
        &format!("ftp://{}/f", server.address),
    );
    assert_eq!(refusal.reason, Reason::BadResponse, "{refusal:?}");
}

#[test]
fn a_slow_server_is_left_in_time_on_both_connections() {
    fn drip(stream: &mut TcpStream, text: &[u8]) {
        for octet in text.iter().cycle().take(100_000) {
            if stream.write_all(&[*octet]).is_err() {
                return;
            }
            sleep(Duration::from_millis(50));
        }
    }
    let greeting = Raw::connections(|mut stream| drip(&mut stream, b"220-more to come\r\n"));
    let mute = Raw::connections(|stream| {
        sleep(Duration::from_secs(60));
        drop(stream);
    });
    let dripping = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = dripping.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in dripping.incoming().flatten() {
            thread::spawn(move || drip(&mut stream, b"x"));
        }
    });
    let slow_data = liar(move || format!("229 ok (|||{port}|)"), String::new, "");
    // All responses arrive immediately, but the content stops in the middle while the connection stays open.
    let stalling = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = stalling.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut open = Vec::new();
        for mut stream in stalling.incoming().flatten() {
            let _ = stream.write_all(b"first half");
            open.push(stream);
        }
    });
    let stalled = liar(
        move || format!("229 ok (|||{port}|)"),
        String::new,
        "226 done",
    );
    let (port, _) = data(b"hello");
    let no_finale = liar(
        move || format!("229 ok (|||{port}|)"),
        String::new,
        "226-wait",
    );
    for server in [
        &greeting,
        &mute,
        &slow_data.control,
        &stalled.control,
        &no_finale.control,
    ] {
        let mut policy = policy(&[server.address.port()]);
        policy = policy.map_limits(|limits| limits.with_timeout(Duration::from_secs(1)));
        let begun = Instant::now();
        let refusal = refused(&policy, &format!("ftp://{}/f", server.address));
        let took = begun.elapsed();
        assert_eq!(
            (refusal.reason, refusal.retry),
            (Reason::Timeout, Retry::Later)
        );
        assert!(
            took > Duration::from_millis(900) && took < Duration::from_secs(20),
            "{took:?}"
        );
    }
}
