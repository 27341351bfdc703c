//! Runs pywb, which replays web archives, with WARC files that a test writes.

use std::fs;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tempfile::TempDir;

use super::filter::open;
use super::programs::{Served, free_port, has_python, serving, wait_for};

/// A response of a server, stored in an archive.
#[derive(Clone, Debug)]
pub struct Capture<'c> {
    pub url: &'c str,
    /// Time of the capture, as 14 digits.
    pub stamp: &'c str,
    pub status: &'c str,
    pub headers: &'c [(&'c str, &'c str)],
    pub body: &'c [u8],
    /// Whether the server compressed the response with gzip.
    pub is_gzip: bool,
}

impl<'c> Capture<'c> {
    /// Returns a capture with status 200.
    pub fn of(
        url: &'c str,
        stamp: &'c str,
        headers: &'c [(&'c str, &'c str)],
        body: &'c [u8],
    ) -> Self {
        Self {
            url,
            stamp,
            status: "200 OK",
            headers,
            body,
            is_gzip: false,
        }
    }
}

/// Whether pywb sends the nearest capture immediately, or a redirect to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nearest {
    AtOnce,
    Redirect,
}

const WRITE: &str = r"
import base64, gzip, io, json, os, sys
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter
from pywb.indexer import cdxindexer
os.mkdir('archive')
with open('archive/test.warc.gz', 'wb') as out:
    writer = WARCWriter(out, gzip=True)
    for it in json.load(open('captures.json')):
        body = base64.b64decode(it['body'])
        headers = [tuple(field) for field in it['headers']]
        if it['gzip']:
            body = gzip.compress(body, mtime=0)
            headers.append(('Content-Encoding', 'gzip'))
        headers.append(('Content-Length', str(len(body))))
        head = StatusAndHeaders(it['status'], headers, protocol='HTTP/1.1')
        s = it['stamp']
        date = f'{s[:4]}-{s[4:6]}-{s[6:8]}T{s[8:10]}:{s[10:12]}:{s[12:]}Z'
        record = writer.create_warc_record(it['url'], 'response', payload=io.BytesIO(body),
            http_headers=head, warc_headers_dict={'WARC-Date': date})
        writer.write_record(record)
cdxindexer.main(['-s', '-j', '-o', 'index.cdxj', '-d', 'archive', 'archive/test.warc.gz'])
";

/// Starts pywb with these captures in its collection `web`.
pub fn pywb(test: &str, captures: &[Capture<'_>], nearest: Nearest) -> Option<Served> {
    if !has_python(test, "pywb.apps.cli, warcio", "pywb") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let captures: Vec<_> = captures
        .iter()
        .map(|it| {
            json!({"url": it.url, "stamp": it.stamp, "status": it.status, "headers": it.headers,
                   "body": STANDARD.encode(it.body), "gzip": it.is_gzip})
        })
        .collect();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("captures.json", &json!(captures).to_string());
    let redirect = nearest == Nearest::Redirect;
    write(
        "config.yaml",
        &format!(
            "collections:\n  web:\n    index_paths: ./index.cdxj\n    archive_paths: ./archive/\nredirect_to_exact: {redirect}\n"
        ),
    );
    Some(started(folder, WRITE))
}

/// Runs a script that prepares a directory, and starts pywb with this directory.
pub fn started(folder: TempDir, prepare: &str) -> Served {
    let python = |script: &str| {
        let mut command = Command::new("python3");
        command
            .args(["-c", script])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    };
    let prepared = python(prepare).output().unwrap();
    assert!(prepared.status.success(), "{prepared:?}");
    let port = free_port();
    let log = folder.path().join("log");
    let mut child = python("from pywb.apps.cli import wayback; wayback()")
        .args(["-p", &port.to_string(), "-b", "127.0.0.1"])
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    wait_for(port, &mut child, &log);
    serving(child, port, folder)
}

/// Returns the paths of the requests to pywb, without its requests to itself.
pub fn asked(pywb: &Served) -> Vec<String> {
    let log = fs::read_to_string(pywb.folder.path().join("log")).unwrap();
    let lines = log
        .lines()
        .filter(|line| line.contains("\"GET /web/2") || line.contains("\"GET /web/cdx"));
    lines
        .filter_map(|line| Some(line.split_once("GET ")?.1.split(' ').next()?.to_owned()))
        .collect()
}

pub const TEXT: &[(&str, &str)] = &[("Content-Type", "text/plain")];
pub const GIF: &[(&str, &str)] = &[("Content-Type", "image/gif")];
pub const HTML: &[(&str, &str)] = &[("Content-Type", "text/html")];

/// Returns the options of embody for this archive.
pub fn archive(server: &Served) -> String {
    let port = server.port;
    format!(
        "{} --archive http://127.0.0.1:{port}/web/{{date}}id_/{{url}}",
        open(&[port])
    )
}
