//! The npm package in a Worker of a page.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use super::super::web::built;
use crate::common::page_driver::browsers;

const WORKER: &str = r#"
import { EmbodyError, openMail } from "./embody-mail/index.js";

onmessage = async ({ data: { bytes, name } }) => {
  try {
    const file = await openMail(bytes, name);
    const mail = file.mail(0);
    postMessage(`${file.format}: ${mail.field("Subject")}: ${mail.parts.map((part) => part.name).join()}`);
  } catch (error) {
    postMessage(`${error instanceof EmbodyError}: ${error.message}`);
  }
};
"#;

const PAGE: &str = r#"<!doctype html><meta charset="utf-8"><script>
const mail = "Subject: =?utf-8?q?Caf=C3=A9?=\nMIME-Version: 1.0\nContent-Type: application/pdf; name=menu.pdf\n\n%PDF-";
const worker = new Worker("worker.js", { type: "module" });
const answers = (window.answers = []);
worker.onmessage = ({ data }) => answers.push(data);
worker.onerror = ({ message }) => answers.push(message);
for (const [name, text] of [["a.eml", mail], ["a.txt", "Dear all,\n"]]) {
  const bytes = new TextEncoder().encode(text).buffer;
  worker.postMessage({ bytes, name }, [bytes]);
}
</script>"#;

/// Serves the files of a directory. Returns the URL of the directory.
fn served(folder: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let folder = folder.to_path_buf();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let folder = folder.clone();
            std::thread::spawn(move || answer(stream, &folder));
        }
    });
    format!("http://127.0.0.1:{port}")
}

fn answer(mut stream: TcpStream, folder: &Path) {
    let mut request = [0; 4096];
    let read = stream.read(&mut request).unwrap_or(0);
    let text = String::from_utf8_lossy(&request[..read]);
    let requested = text.split_ascii_whitespace().nth(1).unwrap_or("/");
    let path: PathBuf = folder.join(requested.trim_start_matches('/'));
    let media_type = match path.extension().and_then(|it| it.to_str()) {
        Some("js") => "text/javascript",
        Some("html") => "text/html",
        _ => "application/wasm",
    };
    let (status, content) = match fs::read(&path) {
        Ok(content) => ("200 OK", content),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let header = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        content.len()
    );
    let _ = stream.write_all(&[header.as_bytes(), &content].concat());
}

#[test]
fn package_opens_files_in_a_worker_of_a_page() {
    let test = "package_opens_files_in_a_worker_of_a_page";
    let browsers = browsers(test);
    if browsers.is_empty() {
        return;
    }
    let Some(folder) = built(test) else { return };
    fs::write(folder.path().join("worker.js"), WORKER).unwrap();
    fs::write(folder.path().join("page.html"), PAGE).unwrap();
    let url = served(folder.path());
    for browser in browsers {
        let mut driver =
            browser.opened_from(&format!("{url}/page.html"), "window.answers.length === 2");
        let value = driver.value("answers.sort().join('\\n')");
        let answers = value.as_str().unwrap();
        let name = driver.name();
        assert!(answers.contains("eml: Café: menu.pdf"), "{name}: {answers}");
        assert!(
            answers.contains("true: the file is not a mail"),
            "{name}: {answers}"
        );
    }
}
