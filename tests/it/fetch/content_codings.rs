//! Content-Encoding values that servers send by mistake, and `deflate` (RFC 9110 §8.4, Fetch §2.2.4). The same rules apply to a
//! server, the cache, a record, and the record used as an archive.

use std::fs;
use std::io::Write as _;

use embody::report::Reason;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use crate::common::filter::{filled, filter, mail, reference};
use crate::common::raw::Raw;
use crate::common::world::{fetch, policy};

const PICTURE: &[u8] = b"GIF89a\x09\x00\x09\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";

/// Values that occur in practice and are not registered content codings.
const NO_CODINGS: [&str; 12] = [
    "UTF-8",
    "none",
    "binary",
    "8bit",
    "7bit",
    "base64",
    "aws-chunked",
    "image/png",
    "iso-8859-1",
    "aws-chunked,gzip",
    "utf-8\r\nContent-Encoding: gzip",
    "gr\u{fc}n",
];

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zlib(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn bare(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn response(coding: &str, body: &[u8]) -> Vec<u8> {
    response_of("image/gif", coding, body)
}

fn response_of(media_type: &str, coding: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nCache-Control: max-age=600\r\nContent-Encoding: {coding}\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn content(coding: &str, body: &[u8]) -> Result<Vec<u8>, Reason> {
    let server = Raw::saying(response(coding, body));
    fetch(&policy(&[server.address.port()]), &server.url("/"))
        .map(|got| got.bytes().to_vec())
        .map_err(|refusal| refusal.reason)
}

#[test]
fn content_encoding_that_is_no_coding_leaves_a_picture_as_it_is() {
    for coding in NO_CODINGS {
        assert_eq!(content(coding, PICTURE), Ok(PICTURE.to_vec()), "{coding}");
        // The bytes do not show their type, so they are refused.
        for body in [&b"of the month of May"[..], b"\x1b\x2e\x00\xf8\x8d\x94"] {
            assert_eq!(content(coding, body), Err(Reason::BadResponse), "{coding}");
        }
        let packed = gzip(PICTURE);
        assert_eq!(
            content(coding, &packed),
            Err(Reason::BadResponse),
            "{coding}"
        );
    }
}

const STYLES: &[u8] = b"body { color: red }\n";
const PAGE: &[u8] = b"<!doctype html>\n<p>Hello</p>\n";

#[test]
fn content_encoding_that_is_no_coding_leaves_text_of_its_type_as_it_is() {
    let content = |media_type: &str, coding: &str, body: &[u8]| {
        let server = Raw::saying(response_of(media_type, coding, body));
        fetch(&policy(&[server.address.port()]), &server.url("/"))
            .map(|got| got.bytes().to_vec())
            .map_err(|refusal| refusal.reason)
    };
    for coding in NO_CODINGS {
        for (media_type, body) in [
            ("text/css", STYLES),
            ("text/html; charset=utf-8", PAGE),
            ("application/xhtml+xml", PAGE),
            ("image/svg+xml", b"<x:y xmlns:x='z'/>"),
            ("text/plain; charset=iso-8859-1", b"of the month of M\xe4rz"),
        ] {
            let is_text = coding != "base64";
            let found = content(media_type, coding, body);
            assert_eq!(found.is_ok(), is_text, "{coding} {media_type}: {found:?}");
            if let Ok(found) = found {
                assert_eq!(found, body, "{coding} {media_type}");
            }
            // With another media type the bytes are not recognized, and compressed text is not text.
            for (media_type, body) in [
                ("image/gif", body.to_vec()),
                (media_type, gzip(body)),
                (media_type, zlib(body)),
            ] {
                let found = content(media_type, coding, &body);
                assert_eq!(found, Err(Reason::BadResponse), "{coding} {media_type}");
            }
        }
    }
}

#[test]
fn content_encoding_that_is_no_coding_is_ignored_for_text_in_cache_and_record_too() {
    for (media_type, body) in [("text/css", STYLES), ("text/html", PAGE)] {
        let server = Raw::saying(response_of(media_type, "utf-8", body));
        let folder = tempfile::tempdir().unwrap();
        let (cache, record) = (folder.path().join("cache"), folder.path().join("x.warc.gz"));
        let url = server.url("/text");
        let before = mail(&[reference(&url, media_type)]);
        let options = format!(
            "--fetch http --allow-net 127.0.0.0/8 --allow-port {}",
            server.address.port()
        );
        let (cache, record) = (cache.display(), record.display());
        let first = filter(
            &format!("{options} --cache {cache} --record {record}"),
            &before,
        );
        assert_eq!(first.column("outcome"), ["expanded"], "{}", first.stderr);
        assert_eq!(server.count(), 1);
        for again in [
            format!("--cache {cache}"),
            format!("--cache {cache} --offline"),
            format!("--offline --archive {record}"),
        ] {
            filter(&format!("{options} {again}"), &before).gives(&first.stdout);
        }
        assert_eq!(server.count(), 1, "{media_type}");
    }
}

#[test]
fn content_encoding_that_was_not_requested_is_refused() {
    for coding in [
        "br",
        "zstd",
        "compress",
        "dcz",
        "utf-8, br",
        "gzip, gzip",
        "gzip, deflate",
    ] {
        assert_eq!(
            content(coding, PICTURE),
            Err(Reason::BadResponse),
            "{coding}"
        );
    }
    // The declared coding is decoded, even if the bytes are in another one.
    assert_eq!(content("gzip", PICTURE), Err(Reason::BadResponse));
    assert_eq!(content("deflate", PICTURE), Err(Reason::BadResponse));
}

#[test]
fn content_encoding_of_empty_members_and_identity_is_ignored() {
    let text = b"of the month of May";
    for coding in [
        "gzip,",
        ", gzip",
        "identity, x-gzip",
        "\r\nContent-Encoding: gzip",
    ] {
        assert_eq!(content(coding, &gzip(text)), Ok(text.to_vec()), "{coding}");
    }
    for coding in ["", ",", "Identity", "identity, identity"] {
        assert_eq!(content(coding, text), Ok(text.to_vec()), "{coding}");
    }
}

#[test]
fn deflate_with_and_without_a_zlib_header_is_decoded_and_never_cut() {
    let text = b"of the month of May".repeat(9);
    for packed in [zlib(&text), bare(&text)] {
        assert_eq!(content("deflate", &packed), Ok(text.clone()));
        for end in 0..packed.len() {
            assert!(content("Deflate", &packed[..end]).is_err(), "{end}");
        }
    }
}

#[test]
fn deflate_is_bounded_by_the_size_of_what_comes_out() {
    let zeros = vec![0; 3 << 20];
    for packed in [zlib(&zeros), bare(&zeros)] {
        let server = Raw::saying(response("deflate", &packed));
        let mut policy = policy(&[server.address.port()]);
        policy = policy.map_limits(|limits| limits.with_body(1 << 20));
        let refusal = fetch(&policy, &server.url("/")).unwrap_err();
        assert_eq!(refusal.reason, Reason::TooLarge);
    }
}

/// The external body is filled from the server, from the cache, and from the record of the first run.
#[test]
fn content_encoding_that_is_no_coding_is_ignored_in_cache_and_record_too() {
    for (coding, body) in [
        ("utf-8", PICTURE.to_vec()),
        ("aws-chunked", PICTURE.to_vec()),
        ("deflate", zlib(PICTURE)),
        ("deflate", bare(PICTURE)),
    ] {
        let server = Raw::saying(response(coding, &body));
        let folder = tempfile::tempdir().unwrap();
        let (cache, record) = (folder.path().join("cache"), folder.path().join("x.warc.gz"));
        let url = server.url("/dot.gif");
        let before = mail(&[reference(&url, "image/gif")]);
        let after = mail(&[filled(Some(&url), "image/gif", PICTURE)]);
        let options = format!(
            "--fetch http --allow-net 127.0.0.0/8 --allow-port {}",
            server.address.port()
        );
        let (cache, record) = (cache.display(), record.display());
        filter(
            &format!("{options} --cache {cache} --record {record}"),
            &before,
        )
        .gives(&after);
        assert_eq!(server.count(), 1);
        filter(&format!("{options} --cache {cache}"), &before).gives(&after);
        filter(&format!("{options} --cache {cache} --offline"), &before).gives(&after);
        let archived = format!("--offline --archive {record}");
        filter(&format!("{options} {archived}"), &before).gives(&after);
        assert_eq!(server.count(), 1, "{coding}");
        assert!(fs::metadata(folder.path().join("x.warc.gz")).is_ok());
    }
}
