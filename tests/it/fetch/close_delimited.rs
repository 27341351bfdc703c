//! Content that ends when the connection is closed (RFC 9112 §6.3, item 8): a picture that marks its own end is accepted. All
//! other content may be truncated and is refused.

use std::io::Write as _;
use std::sync::Mutex;

use embody::fetch::{Fetch as _, Fetcher};
use embody::report::Reason;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::common::filter::{filled, filter, mail, reference};
use crate::common::raw::Raw;
use crate::common::world::{policy, request};

const HEADS: [&str; 3] = [
    "HTTP/1.0 200 OK\r\nContent-Type: image/png\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\r\n",
];

const GIF: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";

fn png() -> Vec<u8> {
    let mut octets = Vec::new();
    let encoder = png::Encoder::new(&mut octets, 3, 1);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[1, 2, 3]).unwrap();
    writer.finish().unwrap();
    octets
}

/// A JPEG with two scans, a restart marker, a stuffed 0xff byte, and a thumbnail with its own end marker inside a segment.
fn jpeg() -> Vec<u8> {
    let mut octets = b"\xff\xd8\xff\xe1\x00\x08\xff\xd8\xff\xda\xff\xd9".to_vec();
    octets.extend(b"\xff\xc2\x00\x0b\x08\x00\x01\x00\x01\x01\x01\x11\x00");
    for _ in 0..2 {
        octets.extend(b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\x12\xff\x00\xff\xd0\x34");
    }
    octets.extend(b"\xff\xff\xd9");
    octets
}

/// A WebP with a chunk of odd length and its padding.
fn webp() -> Vec<u8> {
    b"RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00".to_vec()
}

fn pictures() -> [Vec<u8>; 4] {
    [png(), GIF.to_vec(), jpeg(), webp()]
}

/// Returns the results of requests to a server that sends these bodies, one on each connection.
fn fetched(bodies: Vec<Vec<u8>>) -> Vec<Result<Vec<u8>, Reason>> {
    let count = bodies.len();
    let bodies = Mutex::new(bodies.into_iter());
    let server = Raw::http(move |_, stream| {
        let body = bodies.lock().unwrap().next().unwrap();
        let _ = stream.write_all(&body);
    });
    let fetcher = Fetcher::new(policy(&[server.address.port()])).unwrap();
    (0..count)
        .map(|number| {
            let got = fetcher.fetch(&request(&server.url(&format!("/{number}"))));
            got.map(|got| got.bytes().to_vec())
                .map_err(|refusal| refusal.reason)
        })
        .collect()
}

#[test]
fn picture_without_a_length_is_whole_if_it_ends_itself() {
    for picture in pictures() {
        let bodies = HEADS.map(|head| [head.as_bytes(), &picture].concat());
        for got in fetched(bodies.to_vec()) {
            assert_eq!(got.as_ref(), Ok(&picture));
        }
        // Scripts may print line endings after the picture.
        let body = [&picture[..], b"\r\n\n"].concat();
        let sent = [HEADS[0].as_bytes(), &body].concat();
        assert_eq!(fetched(vec![sent]), [Ok(body)]);
    }
}

#[test]
fn picture_without_a_length_is_refused_if_it_is_cut_anywhere() {
    for picture in pictures() {
        let cut = |end: usize| [HEADS[end % 3].as_bytes(), &picture[..end]].concat();
        let got = fetched((0..picture.len()).map(cut).collect());
        for (end, got) in got.into_iter().enumerate() {
            assert_eq!(got, Err(Reason::IncompleteBody), "{end}");
        }
    }
}

#[test]
fn content_without_a_length_that_marks_no_end_is_refused() {
    let with = |body: &[u8]| [HEADS[1].as_bytes(), body].concat();
    let more = [&jpeg()[..], &jpeg()].concat();
    let mut several = jpeg();
    several.splice(2..2, *b"\xff\xe2\x00\x06MPF\0");
    for body in [
        &b""[..],
        b"hello",
        b"<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'/>",
        b"RIFF\x04\x00\x00\x00WAVE",
        b"BM\x3a\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00",
        &more,
        &several,
    ] {
        assert_eq!(
            fetched(vec![with(body)]),
            [Err(Reason::IncompleteBody)],
            "{body:?}"
        );
    }
}

#[test]
fn compressed_picture_without_a_length_is_whole_if_both_end() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(GIF).unwrap();
    let packed = encoder.finish().unwrap();
    let head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n";
    let sent = |end: usize| [&head[..], &packed[..end]].concat();
    assert_eq!(fetched(vec![sent(packed.len())]), [Ok(GIF.to_vec())]);
    let cut = fetched((0..packed.len()).map(sent).collect());
    assert!(cut.iter().all(Result::is_err));
}

/// The same rule applies if a recorded response is replayed.
#[test]
fn picture_without_a_length_is_replayed_from_the_record() {
    let whole = [HEADS[0].as_bytes(), GIF].concat();
    for (answer, is_whole) in [(&whole[..], true), (&whole[..whole.len() - 1], false)] {
        let server = Raw::saying(answer);
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("x.warc.gz").display().to_string();
        let url = server.url("/dot.gif");
        let before = mail(&[reference(&url, "image/png")]);
        let after = mail(&[filled(Some(&url), "image/png", GIF)]);
        let options = format!(
            "--fetch http --allow-net 127.0.0.0/8 --allow-port {}",
            server.address.port()
        );
        let live = filter(&format!("{options} --record {record}"), &before);
        let offline = format!("{options} --offline --archive {record}");
        let replayed = || filter(&offline, &before);
        if is_whole {
            live.gives(&after);
            replayed().gives(&after);
        } else {
            live.leaves(&before, &["incomplete-body"]);
            replayed().leaves(&before, &["not-archived"]);
        }
    }
}
