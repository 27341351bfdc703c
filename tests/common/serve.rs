//! Runs `embody serve` as a process, and sends requests to it without an HTTP library, so that a request can be malformed.

use std::fs;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::bounded::ended;
use super::mta::eventually;
use super::programs::{embody, signalled, signals_act};
use super::reports;

/// A running service. Dropping it ends the process by its id.
pub struct Service {
    child: Child,
    log: PathBuf,
    pub folder: tempfile::TempDir,
    pub port: u16,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the service wrote:\n{}", self.log());
        }
    }
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// Whether the body was complete.
    pub is_whole: bool,
}

impl Answer {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the body, and checks it against its schema.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        reports::object(&self.body)
    }

    /// Checks that this is a problem of RFC 9457 with this status, and returns its detail.
    #[track_caller]
    pub fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(
            self.field("content-type"),
            Some("application/problem+json"),
            "{self:?}"
        );
        let json = self.json();
        assert_eq!(json["status"], status);
        json["detail"].as_str().unwrap().to_owned()
    }
}

impl Service {
    /// Starts a service on a free port, with a store below its directory.
    pub fn start(options: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), options)
    }

    pub fn start_in(folder: tempfile::TempDir, options: &[&str]) -> Self {
        let path = folder.path().join("store");
        let store = path.to_str().unwrap().to_owned();
        let options: Vec<&str> = ["--store", &store].iter().chain(options).copied().collect();
        Self::with(folder, &options)
    }

    /// Starts a service without a store.
    pub fn bare(folder: tempfile::TempDir) -> Self {
        Self::with(folder, &[])
    }

    pub fn with(folder: tempfile::TempDir, options: &[&str]) -> Self {
        let log = folder.path().join("log");
        signals_act();
        let mut child = embody()
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(options)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut port = 0;
        eventually(60, "the service listens", || {
            let said = fs::read_to_string(&log).unwrap();
            assert!(child.try_wait().unwrap().is_none(), "{said}");
            let found = said.split_once("127.0.0.1:").map(|(_, rest)| rest);
            let digits = found.and_then(|rest| rest.split(['\n', ',']).next());
            port = digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
            port != 0 && said.ends_with('\n')
        });
        Self {
            child,
            log,
            folder,
            port,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        signalled(self.id(), name);
    }

    pub fn status(&mut self) -> Option<i32> {
        ended(&mut self.child).code()
    }

    /// Returns the largest memory of the process so far, in KiB.
    pub fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM"));
        let digits = line.unwrap().split_whitespace().nth(1).unwrap();
        digits.parse().unwrap()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        stream
            .set_write_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        stream
    }

    /// Sends a request with a body, and returns the response.
    pub fn post(&self, path: &str, body: &[u8]) -> Answer {
        self.ask("POST", path, &[], body)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], b"")
    }

    pub fn ask(&self, method: &str, path: &str, fields: &[&str], body: &[u8]) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !fields.iter().any(|field| field.starts_with("Host:")) {
            head += &format!("Host: 127.0.0.1:{}\r\n", self.port);
        }
        for field in fields {
            head += &format!("{field}\r\n");
        }
        if method == "POST" {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        self.say(
            &[format!("{head}\r\n").as_bytes(), body].concat(),
            method == "HEAD",
        )
    }

    /// Sends a request to a service that may be killed at any time.
    pub fn try_post(&self, path: &str, body: &[u8]) -> Option<Answer> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).ok()?;
        answer(&mut stream, false)
    }

    /// Sends these bytes, and returns the response.
    pub fn say(&self, request: &[u8], is_head: bool) -> Answer {
        let mut stream = self.connect();
        let mut writing = stream.try_clone().unwrap();
        // The service may respond before it has read the request.
        let request = request.to_vec();
        let writer = std::thread::spawn(move || {
            let _ = writing.write_all(&request);
        });
        let answer = answer(&mut stream, is_head).expect("a response");
        let _ = stream.shutdown(Shutdown::Both);
        writer.join().unwrap();
        answer
    }
}

/// Reads one response. Returns `None` if the connection is closed before the response has begun.
pub fn answer(stream: &mut TcpStream, is_head: bool) -> Option<Answer> {
    answer_of(&mut BufReader::new(stream), is_head)
}

pub fn answer_of(reader: &mut impl std::io::BufRead, is_head: bool) -> Option<Answer> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(0) | Err(_) => return None,
            Ok(_) if line == "\r\n" && head.starts_with("HTTP/1.1 100") => head.clear(),
            Ok(_) if line == "\r\n" => break,
            Ok(_) => head += &line,
        }
    }
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut answer = Answer {
        status,
        head,
        body: Vec::new(),
        is_whole: true,
    };
    if is_head || status == 304 {
        return Some(answer);
    }
    if let Some(length) = answer.field("content-length") {
        let mut body = vec![0; length.parse().unwrap()];
        answer.is_whole = reader.read_exact(&mut body).is_ok();
        answer.body = body;
        return Some(answer);
    }
    if answer.field("transfer-encoding") != Some("chunked") {
        let _ = reader.read_to_end(&mut answer.body);
        return Some(answer);
    }
    loop {
        let mut line = String::new();
        let length = match reader.read_line(&mut line) {
            Ok(length) if length > 0 => usize::from_str_radix(line.trim(), 16).unwrap(),
            _ => {
                answer.is_whole = false;
                return Some(answer);
            }
        };
        let mut chunk = vec![0; length + 2];
        if reader.read_exact(&mut chunk).is_err() {
            answer.is_whole = false;
            return Some(answer);
        }
        chunk.truncate(length);
        answer.body.extend_from_slice(&chunk);
        if length == 0 {
            return Some(answer);
        }
    }
}

/// Returns bytes that differ for each seed.
pub fn octets(length: usize, seed: usize) -> Vec<u8> {
    let mut state = seed as u32 + 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Returns a mail with an attachment of these bytes.
pub fn with_attachment(number: usize, content: &[u8]) -> Vec<u8> {
    let symbols = STANDARD.encode(content);
    let lines: String = symbols
        .as_bytes()
        .chunks(76)
        .map(|line| String::from_utf8_lossy(line) + "\r\n")
        .collect();
    format!(
        "From: a@example.org\r\nSubject: {number}\r\nMessage-ID: <{number}@example.org>\r\n\
        DKIM-Signature: v=1; a=rsa-sha256; d=example.org;\r\n\tb=abc\r\nDate:  Sat, 03 Jan 1996 01:05:34 -0500 (EST)\r\n\
        MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nText {number}\r\n--b\r\n\
        Content-Type: application/pdf; name=\"a.pdf\"\r\nContent-Transfer-Encoding: base64\r\n\
        Content-Disposition: attachment\r\n\r\n{lines}--b--\r\n"
    )
    .into_bytes()
}

/// Returns the files of a tar archive with their names, in order.
pub fn untarred(tar: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(tar);
    let mut files = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        files.push((name, content));
    }
    files
}

/// Returns the objects of a store.
pub fn objects(store: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![store.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') {
                folders.push(path);
            } else if name.len() == 64 {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
