//! Reads files of `--record` with warcio, and replays them with pywb.

use std::fs;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::programs::{Served, has_python};
use super::pywb::started;

/// A WARC record: its fields and its block.
#[derive(Clone, Debug)]
pub struct Record {
    pub kind: String,
    pub url: String,
    fields: Vec<(String, String)>,
    pub block: Vec<u8>,
}

impl Record {
    pub fn values(&self, name: &str) -> Vec<&str> {
        let fields = self.fields.iter();
        fields
            .filter(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
            .collect()
    }

    pub fn value(&self, name: &str) -> Option<&str> {
        self.values(name).first().copied()
    }

    pub fn id(&self) -> &str {
        self.value("WARC-Record-ID").unwrap()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.block).into_owned()
    }
}

const READ: &str = r"
import base64, json, sys
from warcio.archiveiterator import ArchiveIterator
with open(sys.argv[1], 'rb') as file:
    for record in ArchiveIterator(file, no_record_parse=True):
        print(json.dumps({'fields': record.rec_headers.headers, 'kind': record.rec_type,
            'block': base64.b64encode(record.raw_stream.read()).decode()}), flush=True)
";

/// Returns the records that warcio reads from a file, up to the first error. Returns `None` if warcio is not installed.
pub fn records(test: &str, file: &Path) -> Option<Vec<Record>> {
    if !has_python(test, "warcio", "warcio") {
        return None;
    }
    let read = Command::new("python3")
        .args(["-c", READ])
        .arg(file)
        .output()
        .unwrap();
    let text = String::from_utf8(read.stdout).unwrap();
    let records = text.lines().map(|line| {
        let record: Value = serde_json::from_str(line).unwrap();
        let fields: Vec<(String, String)> =
            serde_json::from_value(record["fields"].clone()).unwrap();
        let url = fields.iter().find(|(name, _)| name == "WARC-Target-URI");
        Record {
            kind: record["kind"].as_str().unwrap().to_owned(),
            url: url.map_or(String::new(), |(_, url)| url.clone()),
            block: STANDARD.decode(record["block"].as_str().unwrap()).unwrap(),
            fields,
        }
    });
    Some(records.collect())
}

/// Checks that `warcio check` finds no error in a file.
#[track_caller]
pub fn check(file: &Path) {
    let checked = Command::new("python3")
        .args(["-c", "from warcio.cli import main; main()", "check"])
        .arg(file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(
        checked.status.success() && said.is_empty(),
        "{}: {said}{}",
        file.display(),
        String::from_utf8_lossy(&checked.stderr)
    );
}

const INDEX: &str = r"
from pywb.indexer import cdxindexer
cdxindexer.main(['-s', '-j', '-o', 'index.cdxj', '-d', 'archive', 'archive'])
";

/// Starts pywb with these files in its collection `web`.
pub fn replaying(test: &str, files: &[&Path]) -> Option<Served> {
    if !has_python(test, "pywb.apps.cli, warcio", "pywb") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("archive")).unwrap();
    for (number, file) in files.iter().enumerate() {
        let name = format!("archive/{number}.warc.gz");
        fs::copy(file, folder.path().join(name)).unwrap();
    }
    fs::write(
        folder.path().join("config.yaml"),
        "collections:\n  web:\n    index_paths: ./index.cdxj\n    archive_paths: ./archive/\nredirect_to_exact: false\n",
    )
    .unwrap();
    Some(started(folder, INDEX))
}

const GET: &str = r"
import base64, gzip, http.client, json, sys
for url in sys.argv[2:]:
    connection = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=60)
    connection.request('GET', '/web/2099id_/' + url)
    answer = connection.getresponse()
    body = answer.read()
    if answer.getheader('Content-Encoding') == 'gzip':
        body = gzip.decompress(body)
    print(json.dumps([answer.status, base64.b64encode(body).decode()]))
";

/// Returns the statuses and the decompressed contents that pywb replays for these URLs.
pub fn replayed(pywb: &Served, urls: &[String]) -> Vec<(u64, Vec<u8>)> {
    let got = Command::new("python3")
        .args(["-c", GET, &pywb.port.to_string()])
        .args(urls)
        .output()
        .unwrap();
    assert!(got.status.success(), "{got:?}");
    let text = String::from_utf8(got.stdout).unwrap();
    let answers = text.lines().map(|line| {
        let (status, body): (u64, String) = serde_json::from_str(line).unwrap();
        (status, STANDARD.decode(body).unwrap())
    });
    answers.collect()
}
