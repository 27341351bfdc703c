//! Which requests are accepted: tokens, web pages, sockets, and parameters that would widen the policy.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;

use crate::common::bounded::ended;
use crate::common::mta::eventually;
use crate::common::programs::{embody, signalled, stderr, unprivileged};
use crate::common::serve::{Service, answer_of};

const MAIL: &[u8] = b"Subject: x\n\n";

#[test]
fn every_path_but_healthz_needs_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, "0123456789abcdef\n").unwrap();
    let service = Service::start_in(folder, &["--token-file", "token"]);
    assert_eq!(service.get("/healthz").json()["status"], "ok");
    for path in ["/metrics", "/v1/openapi.json", "/v1/objects/x", "/nothing"] {
        let answer = service.get(path);
        assert!(answer.problem(401).contains("Bearer"), "{path}");
        assert_eq!(answer.field("www-authenticate"), Some("Bearer"));
    }
    for wrong in [
        "Authorization: Bearer 0123456789abcde",
        "Authorization: Bearer 0123456789abcdef0",
        "Authorization: Bearer 0123456789abcdeg",
        "Authorization: Bearer 1123456789abcdef",
        "Authorization: Basic 0123456789abcdef",
        "Authorization: 0123456789abcdef",
        "X-Token: 0123456789abcdef",
    ] {
        service
            .ask("POST", "/v1/filter", &[wrong], MAIL)
            .problem(401);
    }
    let right = ["Authorization: Bearer 0123456789abcdef"];
    let answer = service.ask("POST", "/v1/filter", &right, MAIL);
    assert_eq!((answer.status, &*answer.body), (200, MAIL));
    assert_eq!(service.ask("GET", "/metrics", &right, b"").status, 200);
}

#[test]
fn other_address_without_token_is_refused_with_status_2() {
    for (listen, options) in [
        ("0.0.0.0:0", &[][..]),
        ("[::]:0", &[]),
        ("127.0.0.1:0", &["--token-file", "/dev/null"]),
        ("127.0.0.1", &[]),
        ("127.0.0.1:0", &["--spool", "/nonexistent"]),
    ] {
        let output = embody()
            .args(["serve", "--listen", listen])
            .args(options)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(2),
            "{listen} {options:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn requests_of_web_pages_are_refused() {
    let service = Service::start(&["--allow-host-header", "embody,other.example:80"]);
    let port = service.port;
    let ask = |fields: &[&str]| service.ask("POST", "/v1/filter", fields, MAIL);
    assert!(
        ask(&["Origin: http://evil.example"])
            .problem(403)
            .contains("Origin")
    );
    ask(&["Origin: null"]).problem(403);
    ask(&[&format!("Origin: http://127.0.0.1:{port}")]).problem(403);
    ask(&["Origin:"]).problem(403);
    // A picture in a page causes a request without Origin.
    let object = format!("/v1/objects/{}", "0".repeat(64));
    for site in ["cross-site", "same-site", "same-origin", "None, cross-site"] {
        let field = format!("Sec-Fetch-Site: {site}");
        let answer = service.ask("GET", &object, &[&field], b"");
        assert!(answer.problem(403).contains("web pages"), "{site}");
    }
    let entered = service.ask("GET", "/metrics", &["Sec-Fetch-Site: none"], b"");
    assert_eq!(entered.status, 200, "{entered:?}");
    for host in [
        "evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1:1",
        &format!("127.0.0.1:+{port}"),
        &format!("localhost.:{port}"),
        &format!("[::ffff:127.0.0.1]:{port}"),
        &format!("user@127.0.0.1:{port}"),
        "127.0.0.2",
        "",
        "[::1",
        "other.example",
    ] {
        let answer = ask(&[&format!("Host: {host}")]);
        assert!(
            answer.problem(421).contains("--allow-host-header"),
            "{host}"
        );
    }
    for host in [
        "embody".to_owned(),
        "embody:9997".to_owned(),
        format!("localhost:{port}"),
        format!("LOCALHOST:{port}"),
        "other.example:80".to_owned(),
    ] {
        assert_eq!(ask(&[&format!("Host: {host}")]).status, 200, "{host}");
    }
    ask(&["Host: embody", "Host: embody"]).problem(400);
    let none = b"POST /v1/filter HTTP/1.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    service.say(none, false).problem(400);
    let absolute =
        b"GET http://evil.example/metrics HTTP/1.1\r\nHost: embody\r\nConnection: close\r\n\r\n";
    service.say(absolute, false).problem(421);
    let old = b"GET /metrics HTTP/1.0\r\n\r\n";
    service.say(old, false).problem(421);
}

#[test]
fn unix_socket_is_private_and_replaces_a_stale_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("embody.sock");
    drop(UnixListener::bind(&path).unwrap());
    let start = || {
        embody()
            .arg("serve")
            .arg(format!("--listen=unix:{}", path.display()))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut child = start();
    eventually(60, "the service listens", || {
        UnixStream::connect(&path).is_ok()
    });
    let metadata = fs::metadata(&path).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream
        .write_all(b"POST /v1/filter HTTP/1.1\r\nHost: any.name\r\nContent-Length: 12\r\n\r\nSubject: x\n\n")
        .unwrap();
    let answer = answer_of(&mut std::io::BufReader::new(&stream), false).unwrap();
    assert_eq!((answer.status, &*answer.body), (200, MAIL));
    let second = start().wait_with_output().unwrap();
    assert_eq!(second.status.code(), Some(1), "{}", stderr(&second));
    assert!(
        stderr(&second).contains("another process"),
        "{}",
        stderr(&second)
    );
    drop(stream);
    signalled(child.id(), "TERM");
    assert_eq!(ended(&mut child).code(), Some(0));
    assert!(!path.exists());
}

#[test]
fn parameters_that_would_widen_the_policy_are_refused_and_named() {
    let service = Service::start(&[]);
    for (verb, query, name) in [
        ("filter", "allow-net=10.0.0.0/8", "allow-net"),
        ("filter", "file-root=/", "file-root"),
        ("restore", "store=/etc", "store"),
        ("detach", "store=/etc", "store"),
        ("detach", "base-url=https://evil.example/", "base-url"),
        ("recover", "resolver=cat", "resolver"),
        ("recover", "attachments=/", "attachments"),
        ("filter", "config=/etc/passwd", "config"),
        ("filter", "report=/tmp/x", "report"),
        ("filter", "fetch=https", "fetch"),
        ("filter", "links=keep&fetch=https", "fetch"),
        ("filter", "max-body=1T", "max-body"),
        ("filter", "larger-than=1k", "larger-than"),
        ("filter", "max%2Dbody=1T", "max-body"),
        ("filter", "nonsense", "nonsense"),
        ("filter", "links=nonsense", "links"),
        ("filter", "%00=1", "%00"),
        ("filter", "links=%ff", "links"),
        ("messages", "output=/tmp/x", "output"),
        ("messages", "format=nonsense", "format"),
        ("messages", "max-expanded=1000T", "max-expanded"),
    ] {
        let answer = service.post(&format!("/v1/{verb}?{query}"), MAIL);
        let detail = answer.problem(400);
        assert_eq!(answer.json()["parameter"], name, "{query}: {detail}");
    }
    let answer = service.get("/metrics?x=1");
    assert!(answer.problem(400).contains('x'));
}

#[test]
fn methods_and_paths_that_do_not_exist_are_named() {
    let service = Service::start(&[]);
    for (method, path, allowed) in [
        ("GET", "/v1/filter", "POST"),
        ("PUT", "/v1/messages", "POST"),
        ("DELETE", "/metrics", "GET, HEAD"),
        ("POST", "/healthz", "GET, HEAD"),
        ("OPTIONS", "/v1/filter", "POST"),
    ] {
        let answer = service.ask(method, path, &[], b"");
        assert_eq!(answer.status, 405, "{method} {path}");
        assert_eq!(answer.field("allow"), Some(allowed));
    }
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v1/nothing",
        "/v1/filter/",
        "//v1/filter",
        "/V1/filter",
    ] {
        assert!(
            service
                .post(path, MAIL)
                .problem(404)
                .contains("openapi.json"),
            "{path}"
        );
    }
}

#[test]
fn service_names_the_files_and_directories_that_its_user_cannot_use() {
    let test = "service_names_the_files_and_directories_that_its_user_cannot_use";
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for name in ["store", "spool"] {
        fs::create_dir(at(name)).unwrap();
        fs::set_permissions(at(name), Permissions::from_mode(0o555)).unwrap();
    }
    fs::write(at("token"), "0123456789abcdef\n").unwrap();
    fs::set_permissions(at("token"), Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let start = |options: &[&str]| {
        let mut command = unprivileged(test, folder.path())?;
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(options)
            .env("TMPDIR", folder.path())
            .stderr(fs::File::create(at("log")).unwrap());
        Some(command.spawn().unwrap())
    };
    let Some(mut refused) = start(&["--token-file", &at("token")]) else {
        return;
    };
    assert_eq!(ended(&mut refused).code(), Some(1));
    let log = || fs::read_to_string(at("log")).unwrap();
    assert!(
        log().contains("make it readable for the user id"),
        "{}",
        log()
    );
    let mut service = start(&["--store", &at("store"), "--spool", &at("spool")]).unwrap();
    eventually(60, "the warnings", || log().contains("/v1/messages fails"));
    assert!(log().contains("of --store (Permission denied"), "{}", log());
    assert!(log().contains("so /v1/detach fails"), "{}", log());
    signalled(service.id(), "TERM");
    assert_eq!(ended(&mut service).code(), Some(0), "{}", log());
}
