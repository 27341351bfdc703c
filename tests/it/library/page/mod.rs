//! The page `embody.html` in Chromium and Firefox, opened from `file:`. A server on 127.0.0.1 records all requests.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::web::built;
use crate::common::page_driver::{InstalledBrowser, PageDriver, browsers};

mod access;
mod handling;
mod hostile;
mod package;
mod picture;
mod reading;
mod safety;

/// Time in which a page makes the requests that it makes.
const SETTLED: Duration = Duration::from_secs(2);

/// Recorded for a connection without a request.
const CONNECTION: &str = "(connection)";

const IS_READY: &str = "document.documentElement.hasAttribute('data-ready')";

/// A server that records the paths of all requests. It answers each with an empty document.
struct Recorder {
    port: u16,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let paths = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&paths);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let recorded = Arc::clone(&recorded);
                std::thread::spawn(move || answer(stream, &recorded));
            }
        });
        Self { port, paths }
    }

    /// Returns the paths that were requested, and forgets them.
    fn taken(&self) -> Vec<String> {
        let mut paths = std::mem::take(&mut *self.paths.lock().unwrap());
        paths.sort();
        paths.dedup();
        paths
    }
}

fn answer(mut stream: TcpStream, paths: &Mutex<Vec<String>>) {
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok();
    let mut request = [0; 4096];
    let read = stream.read(&mut request).unwrap_or(0);
    let text = String::from_utf8_lossy(&request[..read]);
    // A connection without a request counts as well: a preconnect tells the sender that the mail was opened.
    let path = text.split_ascii_whitespace().nth(1).unwrap_or(CONNECTION);
    paths.lock().unwrap().push(path.to_owned());
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

/// Returns the page and the installed browsers. Returns `None` and prints a message if the page cannot be built.
fn page_and_browsers(test: &str) -> Option<(String, Vec<InstalledBrowser>)> {
    let browsers = browsers(test);
    if browsers.is_empty() {
        return None;
    }
    static PAGE: OnceLock<Option<String>> = OnceLock::new();
    let page = PAGE.get_or_init(|| {
        let folder = built(test)?;
        Some(fs::read_to_string(folder.path().join("embody.html")).unwrap())
    });
    Some((page.clone()?, browsers))
}

/// Returns the document after the page showed its mail.
fn shown(browser: &InstalledBrowser, page: &str) -> String {
    document(&mut *browser.opened(page, IS_READY))
}

fn document(driver: &mut dyn PageDriver) -> String {
    // A request may follow the display.
    std::thread::sleep(SETTLED);
    let document = driver.value("document.documentElement.outerHTML");
    document.as_str().unwrap().to_owned()
}

/// Returns the page with files in it, which it opens at once.
fn with_files(page: &str, files: &[(&str, &[u8])]) -> String {
    let block: String = files
        .iter()
        .map(|(name, bytes)| {
            let encoded = STANDARD.encode(bytes);
            format!("<script type=\"text/plain\" class=\"mail\" data-name=\"{name}\">{encoded}</script>\n")
        })
        .collect();
    let at = page.rfind("<script>").unwrap();
    format!("{}{block}{}", &page[..at], &page[at..])
}

fn with_mail(page: &str, mail: &[u8]) -> String {
    with_files(page, &[("mail.eml", mail)])
}

fn mail_of(html: &str) -> String {
    format!(
        "From: Mallory <m@example.org>\nSubject: a hostile mail\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n{html}"
    )
}
