//! Clients that are slow, malformed or too many. All of them are bounded, and do not delay others.

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::common::serve::{Service, answer, answer_of, octets, with_attachment};

const MAIL: &[u8] = b"Subject: x\n\n";

fn head(service: &Service, fields: &str) -> String {
    format!(
        "POST /v1/filter HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{fields}\r\n\r\n",
        service.port
    )
}

#[test]
fn client_that_sends_a_byte_a_second_gets_a_408() {
    let service = Service::start(&[]);
    let mut slow = service.connect();
    slow.write_all(head(&service, "Content-Length: 1000").as_bytes())
        .unwrap();
    let begun = Instant::now();
    let mut reading = slow.try_clone().unwrap();
    let waiting = std::thread::spawn(move || answer(&mut reading, false));
    while !waiting.is_finished() {
        let _ = slow.write_all(b"x");
        assert_eq!(service.post("/v1/filter", MAIL).status, 200);
        assert!(begun.elapsed() < Duration::from_secs(60), "it still waits");
        std::thread::sleep(Duration::from_secs(1));
    }
    let answer = waiting.join().unwrap().unwrap();
    answer.problem(408);
    assert_eq!(answer.field("connection"), Some("close"));
}

#[test]
fn header_that_never_ends_closes_the_connection() {
    let service = Service::start(&[]);
    let mut slow = service.connect();
    slow.write_all(b"POST /v1/filter HT").unwrap();
    let begun = Instant::now();
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest);
    assert!(begun.elapsed() < Duration::from_secs(60));
    let mut endless = service.connect();
    endless
        .write_all(head(&service, "").trim_end().as_bytes())
        .unwrap();
    for _ in 0..200 {
        if endless.write_all(&[b'x'; 1000]).is_err() {
            break;
        }
    }
    let mut rest = String::new();
    let _ = endless.read_to_string(&mut rest);
    assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 4"), "{rest}");
}

#[test]
fn client_that_stops_reading_holds_no_place_of_others() {
    let service = Service::start(&["--jobs", "1", "--max-queue", "1"]);
    let mail = with_attachment(1, &octets(8 << 20, 1));
    let mut stopped = Vec::new();
    for _ in 0..6 {
        let mut stream = service.connect();
        let head = head(&service, &format!("Content-Length: {}", mail.len()));
        stream.write_all(head.as_bytes()).unwrap();
        // If the queue is full, the service refuses the message before it has read all of it.
        let _ = stream.write_all(&mail);
        stopped.push(stream);
        let begun = Instant::now();
        while service.post("/v1/filter", MAIL).status != 200 {
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_thousand_connections_are_bounded_and_named() {
    let service = Service::start(&["--max-connections", "50"]);
    let mut open: Vec<TcpStream> = (0..1000).map(|_| service.connect()).collect();
    let mut refused = 0;
    let mut last = service.connect();
    if let Some(answer) = answer(&mut last, false) {
        assert!(answer.problem(503).contains("--max-connections"));
        refused += 1;
    }
    for stream in &mut open[60..90] {
        if let Some(answer) = answer(stream, false) {
            answer.problem(503);
            refused += 1;
        }
    }
    assert!(refused > 0);
    drop(open);
    drop(last);
    let begun = Instant::now();
    while service.ask("POST", "/v1/filter", &[], MAIL).status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let service = Service::start(&[]);
    let mut stream = service.connect();
    let mut all = Vec::new();
    for number in 0..50 {
        let mail = format!("Subject: {number}\n\n");
        let head = head(&service, &format!("Content-Length: {}", mail.len()));
        all.extend_from_slice(head.as_bytes());
        all.extend_from_slice(mail.as_bytes());
    }
    stream.write_all(&all).unwrap();
    let mut reader = BufReader::new(stream);
    for number in 0..50 {
        let answer = answer_of(&mut reader, false).unwrap();
        assert_eq!(answer.text(), format!("Subject: {number}\n\n"));
    }
}

#[test]
fn malformed_framing_is_refused_and_never_processed() {
    let service = Service::start(&[]);
    for (fields, body) in [
        ("Content-Length: -1", "x"),
        ("Content-Length: 5x", "hello"),
        ("Content-Length: 99999999999999999999999", "x"),
        ("Content-Length: 3\r\nContent-Length: 4", "abcd"),
        ("Content-Length: 4\r\nTransfer-Encoding: identity", "abcd"),
        ("Transfer-Encoding: chunked", "zz\r\nabc\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked", "3\r\nabcdef\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked", "-3\r\nabc\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked", "ffffffffffffffffff\r\nabc"),
        ("Transfer-Encoding: chunked", "ffffffffffffffff\r\nabc"),
        ("Transfer-Encoding: chunked", "0x3\r\nabc\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked", " 3\r\nabc\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked", "3\nabc\n0\n\n"),
        ("Transfer-Encoding: chunked", "3\r\nab"),
        ("Transfer-Encoding: gzip, chunked", "3\r\nabc\r\n0\r\n\r\n"),
        (
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
            "3\r\nabc\r\n0\r\n\r\n",
        ),
        (
            "Transfer-Encoding: chunked, chunked",
            "3\r\nabc\r\n0\r\n\r\n",
        ),
        ("Content-Encoding: gzip\r\nContent-Length: 3", "abc"),
        ("Content-Length: +3", "abc"),
        ("Content-Length: 3, 3", "abc"),
        ("Content-Length : 3", "abc"),
        ("X: a\r\n b\r\nContent-Length: 3", "abc"),
        (
            "Transfer-Encoding: chunked, identity",
            "3\r\nabc\r\n0\r\n\r\n",
        ),
        ("Expect: nonsense\r\nContent-Length: 3", "abc"),
        ("Bad Field: x\r\nContent-Length: 3", "abc"),
    ] {
        let mut stream = service.connect();
        stream.write_all(head(&service, fields).as_bytes()).unwrap();
        let _ = stream.write_all(body.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let answer = answer(&mut stream, false);
        assert!(
            answer
                .as_ref()
                .is_none_or(|it| (400..500).contains(&it.status)),
            "{fields}: {answer:?}"
        );
    }
    // A body that is cut off gives no mail.
    let mut stream = service.connect();
    stream
        .write_all(head(&service, "Content-Length: 100").as_bytes())
        .unwrap();
    stream.write_all(MAIL).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let answer = answer(&mut stream, false);
    assert!(answer.is_none_or(|answer| answer.status == 400));
    let metrics = service.get("/metrics").text();
    assert!(
        !metrics.contains("embody_serve_messages_total{"),
        "{metrics}"
    );
}

#[test]
fn expect_continue_is_answered_before_the_body_and_refusals_do_not_wait() {
    let service = Service::start(&["--max-request", "1k"]);
    let mut stream = service.connect();
    stream
        .write_all(head(&service, "Expect: 100-continue\r\nContent-Length: 12").as_bytes())
        .unwrap();
    let mut line = [0; 25];
    stream.read_exact(&mut line).unwrap();
    assert_eq!(&line, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(MAIL).unwrap();
    assert_eq!(answer(&mut stream, false).unwrap().body, MAIL);
    let mut stream = service.connect();
    stream
        .write_all(head(&service, "Expect: 100-continue\r\nContent-Length: 5000").as_bytes())
        .unwrap();
    let refused = answer(&mut stream, false).unwrap();
    assert!(refused.problem(413).contains("--max-request"));
}

#[test]
fn refused_body_is_read_to_its_end_if_it_is_short() {
    let service = Service::start(&["--max-request", "1k"]);
    let mut stream = service.connect();
    let long = vec![b'x'; 100_000];
    for _ in 0..3 {
        let head = head(&service, &format!("Content-Length: {}", long.len()));
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&long).unwrap();
        answer(&mut stream, false).unwrap().problem(413);
    }
    // A longer one ends the connection, and the client still gets the response.
    let longer = vec![b'x'; 3 << 20];
    let answer = service.post("/v1/filter", &longer);
    answer.problem(413);
    assert_eq!(answer.field("connection"), Some("close"));
}

#[test]
fn messages_beyond_the_queue_get_a_429() {
    let service = Service::start(&["--jobs", "1", "--max-queue", "0"]);
    // A request whose body has not arrived completely takes the only place.
    let mut slow = service.connect();
    slow.write_all(head(&service, "Content-Length: 13").as_bytes())
        .unwrap();
    slow.write_all(MAIL).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let answer = service.post("/v1/filter", MAIL);
    assert!(answer.problem(429).contains("--max-queue"));
    assert!(answer.field("retry-after").is_some());
    assert_eq!(service.get("/healthz").status, 200);
    slow.write_all(b"x").unwrap();
    let done = crate::common::serve::answer(&mut slow, false).unwrap();
    assert_eq!(done.status, 200);
    assert_eq!(service.post("/v1/filter", MAIL).status, 200);
}
