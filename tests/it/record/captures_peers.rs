//! `--archive FILE` with files of other programs: warcio, wget and pywb write them, and warcio reads the same content from
//! them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::warcs::OFFLINE;
use crate::common::filter::{filled, filter, mail, reference};
use crate::common::mail::{Leaf, mail_parser_leaves};
use crate::common::programs::{has_python, program, skipped};
use crate::common::raw::{Raw, ok};

/// Writes records of many kinds, and what warcio itself reads from them.
const WRITE: &str = r"
import gzip, io, json, zlib
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter
body = bytes(range(256)) * 300
def chunked(octets):
    pieces = [octets[at:at + 1000] for at in range(0, len(octets), 1000)]
    return b''.join(b'%x\r\n%s\r\n' % (len(piece), piece) for piece in pieces) + b'0\r\n\r\n'
cases = {
    'plain': ([], body),
    'long': ([('Content-Length', str(len(body)))], body),
    'chunked': ([('Transfer-Encoding', 'chunked')], chunked(body)),
    'gzip': ([('Content-Encoding', 'gzip')], gzip.compress(body, mtime=0)),
    'both': ([('Content-Encoding', 'gzip'), ('Transfer-Encoding', 'chunked')], chunked(gzip.compress(body, mtime=0))),
    'zlib': ([('Content-Encoding', 'deflate')], zlib.compress(body)),
}
for version in '1.0', '1.1':
    for packed in False, True:
        name = f'{version}-{packed}.warc'
        with open(name, 'wb') as out:
            writer = WARCWriter(out, gzip=packed, warc_version=version)
            writer.write_record(writer.create_warcinfo_record(name, {'software': 'warcio'}))
            for case, (headers, octets) in cases.items():
                head = StatusAndHeaders('200 OK', [('Content-Type', 'application/octet-stream')] + headers, protocol='HTTP/1.1')
                url = f'http://gone.example/{case}'
                answer = writer.create_warc_record(url, 'response', payload=io.BytesIO(octets), http_headers=head)
                asked = writer.create_warc_record(url, 'request', http_headers=StatusAndHeaders('GET / HTTP/1.1', [], is_http_request=True))
                writer.write_request_response_pair(asked, answer)
                again = writer.create_revisit_record(f'http://gone.example/{case}/again', answer.rec_headers['WARC-Payload-Digest'],
                    url, answer.rec_headers['WARC-Date'], http_headers=head)
                writer.write_record(again)
            writer.write_record(writer.create_warc_record('http://gone.example/resource', 'resource',
                payload=io.BytesIO(body), warc_content_type='application/octet-stream'))
        read = {}
        for record in ArchiveIterator(open(name, 'rb')):
            if record.rec_type in ('response', 'resource'):
                read[record.rec_headers['WARC-Target-URI']] = record.content_stream().read().hex()
        json.dump(read, open(name + '.json', 'w'))
";

fn octets(mail: &[u8]) -> Vec<Vec<u8>> {
    let leaves = mail_parser_leaves(mail).into_iter();
    leaves.map(|leaf: Leaf| leaf.octets).collect()
}

#[test]
fn warcio_reads_the_same_from_what_it_writes() {
    const TEST: &str = "warcio_reads_the_same_from_what_it_writes";
    if !has_python(TEST, "warcio", "warcio") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let python = Command::new("python3")
        .args(["-c", WRITE])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(python.status.success(), "{python:?}");
    for name in [
        "1.0-False.warc",
        "1.0-True.warc",
        "1.1-False.warc",
        "1.1-True.warc",
    ] {
        let file = folder.path().join(name);
        let json = fs::read_to_string(folder.path().join(format!("{name}.json"))).unwrap();
        let read: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&json).unwrap();
        assert_eq!(read.len(), 7);
        for (url, content) in read {
            let both = [url.clone(), format!("{url}/again")];
            let urls = &both[..if url.ends_with("resource") { 1 } else { 2 }];
            let parts: Vec<String> = urls
                .iter()
                .map(|url| reference(url, "application/octet-stream"))
                .collect();
            let ran = filter(&format!("{OFFLINE} {}", file.display()), &mail(&parts));
            let got: Vec<String> = octets(&ran.stdout)
                .iter()
                .map(|octets| octets.iter().map(|octet| format!("{octet:02x}")).collect())
                .collect();
            assert_eq!(
                got,
                vec![content.as_str().unwrap().to_owned(); urls.len()],
                "{name}: {url}: {}",
                ran.stderr
            );
        }
    }
}

#[test]
fn what_wget_records_is_given_back() {
    const TEST: &str = "what_wget_records_is_given_back";
    if program("wget").is_none() {
        return skipped(TEST, "wget");
    }
    let server = Raw::http(|path, stream| {
        use std::io::Write as _;
        let _ = match path {
            "/moved" => stream.write_all(b"HTTP/1.1 302 Found\r\nLocation: /text\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
            "/chunks" => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nof \r\n5\r\nchunk\r\n0\r\n\r\n"),
            "/gone" => stream.write_all(b"HTTP/1.1 404 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"),
            _ => stream.write_all(&ok("text/plain", b"of a server")),
        };
    });
    let folder = tempfile::tempdir().unwrap();
    let urls = ["/text", "/moved", "/chunks", "/gone"].map(|path| server.url(path));
    Command::new("wget")
        .args([
            "-q",
            "--no-proxy",
            "--warc-file",
            "a",
            "--warc-cdx",
            "-O",
            "/dev/null",
        ])
        .args(&urls)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    let file = folder.path().join("a.warc.gz");
    assert!(Path::new(&file).exists());
    let parts = urls.each_ref().map(|url| reference(url, "text/plain"));
    let options = format!(
        "--allow-net 127.0.0.0/8 --allow-port {} {OFFLINE} {}",
        server.address.port(),
        file.display()
    );
    let ran = filter(&options, &mail(&parts));
    let with = |url: &String, text: &str| filled(Some(url), "text/plain", text.as_bytes());
    ran.gives(&mail(&[
        with(&urls[0], "of a server"),
        with(&urls[0], "of a server"),
        with(&urls[2], "of chunk"),
        parts[3].clone(),
    ]));
    assert_eq!(ran.column("reason"), ["-", "-", "-", "not-archived"]);
}
