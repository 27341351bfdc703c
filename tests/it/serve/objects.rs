//! Requests for detached attachments.

use std::fs;

use sha2::{Digest as _, Sha256};

use crate::common::mail::assert_bytes;
use crate::common::serve::{Service, objects, octets, with_attachment};

fn hex(content: &[u8]) -> String {
    let digits = Sha256::digest(content);
    digits.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Starts a service whose store has this attachment, and returns the path of the object.
fn stored(content: &[u8]) -> (Service, String) {
    let service = Service::start(&[]);
    let mail = with_attachment(1, content);
    let answer = service.post("/v1/detach?larger-than=1", &mail);
    assert_eq!(answer.field("embody-changed"), Some("1"), "{answer:?}");
    let path = format!("/v1/objects/{}", hex(content));
    (service, path)
}

#[test]
fn object_has_its_type_and_tag_and_is_sent_in_ranges() {
    let content = [&b"%PDF-1.4\n"[..], &octets(300_000, 1)].concat();
    let (service, path) = stored(&content);
    let answer = service.get(&path);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_bytes(&answer.body, &content, "the object");
    assert_eq!(answer.field("content-type"), Some("application/pdf"));
    assert_eq!(answer.field("accept-ranges"), Some("bytes"));
    assert_eq!(answer.field("content-disposition"), Some("attachment"));
    assert_eq!(answer.field("x-content-type-options"), Some("nosniff"));
    let tag = answer.field("etag").unwrap().to_owned();
    assert_eq!(tag, format!("\"{}\"", hex(&content)));
    let head = service.ask("HEAD", &path, &[], b"");
    assert_eq!(head.status, 200);
    assert_eq!(head.field("content-length"), Some("300009"));
    assert_eq!(head.field("etag"), Some(&*tag));
    for (range, expected, field) in [
        ("bytes=0-8", &content[..9], "bytes 0-8/300009"),
        (
            "bytes=100000-199999",
            &content[100_000..200_000],
            "bytes 100000-199999/300009",
        ),
        (
            "bytes=-5",
            &content[300_004..],
            "bytes 300004-300008/300009",
        ),
        (
            "bytes=300000-",
            &content[300_000..],
            "bytes 300000-300008/300009",
        ),
    ] {
        let answer = service.ask("GET", &path, &[&format!("Range: {range}")], b"");
        assert_eq!(answer.status, 206, "{range}");
        assert_eq!(answer.field("content-range"), Some(field));
        assert_bytes(&answer.body, expected, range);
    }
    let beyond = service.ask("GET", &path, &["Range: bytes=300009-"], b"");
    beyond.problem(416);
    assert_eq!(beyond.field("content-range"), Some("bytes */300009"));
    let known = service.ask("GET", &path, &[&format!("If-None-Match: {tag}")], b"");
    assert_eq!((known.status, known.body.len()), (304, 0));
    let other = service.ask("GET", &path, &["If-None-Match: \"x\""], b"");
    assert_eq!(other.status, 200);
    let changed = ["If-Range: \"x\"", "Range: bytes=0-1"];
    assert_eq!(service.ask("GET", &path, &changed, b"").status, 200);
}

#[test]
fn names_that_are_not_sha256_are_refused_and_missing_objects_named() {
    let (service, path) = stored(&octets(2000, 2));
    fs::write(service.path("secret"), "x").unwrap();
    let name = path.rsplit('/').next().unwrap();
    for wrong in [
        "",
        "..",
        "../../etc/passwd",
        "%2e%2e/secret",
        "..%2f..%2fsecret",
        &name[1..],
        &format!("{name}0"),
        &format!("{name}/"),
        &format!("{name}%00"),
        &format!("%00{name}"),
        &name
            .to_uppercase()
            .replace(|it: char| it.is_ascii_digit(), "A"),
        &format!("{}/{}/{name}", &name[..2], &name[2..4]),
        ".lock",
    ] {
        let answer = service.get(&format!("/v1/objects/{wrong}"));
        assert!(answer.problem(400).contains("SHA-256"), "{wrong}");
    }
    let missing = service.get(&format!("/v1/objects/{}", "0".repeat(64)));
    assert!(missing.problem(404).contains("store"), "{missing:?}");
    // hyper refuses a NUL in the request itself.
    let raw = service.say(b"GET /v1/objects/\0 HTTP/1.1\r\nHost: x\r\n\r\n", false);
    assert_eq!(raw.status, 400);
}

#[test]
fn damaged_object_is_an_error_and_is_not_sent() {
    let (service, path) = stored(&octets(5000, 3));
    let file = &objects(&service.path("store"))[0];
    fs::remove_file(file).unwrap();
    fs::write(file, octets(5000, 4)).unwrap();
    let answer = service.get(&path);
    assert!(answer.problem(500).contains("does not match"), "{answer:?}");
    let range = service.ask("GET", &path, &["Range: bytes=0-3"], b"");
    range.problem(500);
}

#[test]
fn service_without_store_names_the_option() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::bare(folder);
    for answer in [
        service.get(&format!("/v1/objects/{}", "0".repeat(64))),
        service.post("/v1/detach", b"Subject: x\n\n"),
        service.post("/v1/restore", b"Subject: x\n\n"),
    ] {
        assert!(answer.problem(404).contains("--store"), "{answer:?}");
    }
}

#[test]
fn garbage_collection_can_run_next_to_a_service() {
    let (service, path) = stored(&octets(5000, 5));
    std::thread::sleep(std::time::Duration::from_secs(2));
    let output = crate::common::programs::embody()
        .args(["store", "check"])
        .arg(service.path("store"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let output = crate::common::programs::embody()
        .args(["store", "gc", "--delete"])
        .arg(service.path("store"))
        .arg(service.path("store"))
        .output();
    drop(output);
    // The service opens the store again for the next message.
    let mail = with_attachment(6, &octets(5000, 6));
    let answer = service.post("/v1/detach?larger-than=1", &mail);
    assert_eq!(answer.field("embody-changed"), Some("1"));
    assert!([200, 404].contains(&service.get(&path).status));
}
