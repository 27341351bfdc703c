//! `convert --dry-run` and `inspect` send no requests. With `--probe`, they ask servers whether the content is available (HEAD,
//! then GET), with the same policy, and report it.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Output;

use crate::common::programs::{embody, fed, stderr};
use crate::common::raw::{Raw, ok};
use crate::common::reports;
use tempfile::TempDir;

struct Mailbox {
    folder: TempDir,
    options: String,
}

impl Mailbox {
    /// Writes a message with a reference to each of these URLs, a `data:` URL, and a link to click.
    fn with(urls: &[String], options: String) -> Self {
        let parts: String = urls
            .iter()
            .map(String::as_str)
            .chain(["data:,x"])
            .map(|url| {
                format!(
                    "--b\nContent-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\n\
                     Content-Type: text/plain\n\n\n"
                )
            })
            .collect();
        let link = urls.first().map_or("", String::as_str);
        let mail = format!(
            "From a@b Sat Jan  1 00:00:00 2022\nMIME-Version: 1.0\n\
             Content-Type: multipart/mixed; boundary=b\n\n{parts}\
             --b\nContent-Type: text/html\n\n<a href=\"{link}clicked\">x</a>\n--b--\n\n"
        );
        let mailbox = Self {
            folder: tempfile::tempdir().unwrap(),
            options,
        };
        fs::write(mailbox.path("box"), mail).unwrap();
        mailbox
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, command: &str) -> Output {
        let mut program = embody();
        let mut words = command.split(' ');
        program.arg(words.next().unwrap()).arg(self.path("box"));
        program.args(words).args(self.options.split(' '));
        let output = program.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        output
    }

    /// Returns the outcome or reason of each external body from `inspect`.
    fn inspected(&self, more: &str) -> Vec<(String, String)> {
        let output = self.run(&format!("inspect --json{more}"));
        rows(&String::from_utf8(output.stdout).unwrap())
    }

    /// Returns the same from `convert --dry-run`, and its output.
    fn dry(&self, more: &str) -> (Vec<(String, String)>, String) {
        let before = fs::read(self.path("box")).unwrap();
        let report = self.path("report");
        let _ = fs::remove_file(&report);
        let output = self.run(&format!(
            "convert --in-place --dry-run --report {}{more}",
            report.display()
        ));
        assert_eq!(fs::read(self.path("box")).unwrap(), before);
        let rows = rows(&fs::read_to_string(report).unwrap());
        (rows, stderr(&output))
    }
}

fn rows(report: &str) -> Vec<(String, String)> {
    // The last line of `inspect` summarizes all rows.
    let objects = reports::objects(report);
    let rows = objects
        .iter()
        .filter(|row| row["kind"] != "survey")
        .map(|row| {
            let reason = row.get("reason").filter(|reason| !reason.is_null());
            let word = reason.unwrap_or(&row["outcome"]).as_str().unwrap();
            (word.to_owned(), row["detail"].as_str().unwrap().to_owned())
        });
    rows.collect()
}

fn words(rows: &[(String, String)]) -> Vec<&str> {
    rows.iter().map(|(word, _)| word.as_str()).collect()
}

fn open(server: &Raw) -> String {
    format!(
        "--fetch http --allow-net 127.0.0.0/8 --allow-port {}",
        server.address.port()
    )
}

#[test]
fn without_probe_nobody_is_asked() {
    let server = Raw::saying(ok("text/plain", b"hello"));
    let mailbox = Mailbox::with(&[server.url("/a")], open(&server));
    let (dry, said) = mailbox.dry("");
    assert_eq!(words(&dry), ["would-fetch", "would-expand"]);
    assert!(said.contains("nothing was written or retrieved"), "{said}");
    assert!(
        said.contains(
            "1 message read, 1 would be changed.\n1 attachment would be put into the mail."
        ),
        "{said}"
    );
    assert_eq!(
        words(&mailbox.inspected("")),
        ["would-fetch", "would-expand"]
    );
    assert_eq!(server.count(), 0);
}

/// The words are those in docs/reasons.md.
#[test]
fn dry_run_predicts_the_result_for_every_kind_of_source() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let message = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
        --b\nContent-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\n\
        Content-Type: text/plain\n\n\n\
        --b\nContent-Type: text/html\nContent-Base: http://example.org/\n\n<a href=\"x\">x</a>\n--b--\n";
    for part in ["md/cur", "md/new", "md/tmp"] {
        fs::create_dir_all(at(part)).unwrap();
    }
    fs::write(at("md/cur/1.a.b:2,S"), message).unwrap();
    fs::write(at("m.eml"), message).unwrap();
    let mbox = format!("From a@b Sat Jan  1 00:00:00 2022\n{message}\n");
    fs::write(at("box"), &mbox).unwrap();
    let as_file = [&["box"][..], &["m.eml"], &["md"]];
    let in_place = as_file.map(|sources| (sources, &["--in-place"][..]));
    let beside = [&["box"][..], &["m.eml"], &["md"], &["-"]]
        .map(|sources| (sources, &["--output", "new"][..]));
    for (sources, to) in in_place.into_iter().chain(beside) {
        let mut command = embody();
        command.arg("convert").args(sources).args(to);
        command.args(["--dry-run", "--report", "rows", "--verbose"]);
        let _ = fs::remove_file(at("rows"));
        let output = fed(command.current_dir(folder.path()), mbox.as_bytes());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{sources:?} {to:?}: {said}");
        let rows = fs::read_to_string(at("rows")).unwrap();
        let outcomes: Vec<String> = rows
            .lines()
            .map(reports::object)
            .map(|row: serde_json::Value| row["outcome"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(outcomes, ["would-expand", "would-rewrite"], "{sources:?}");
        assert!(
            said.contains("1 would be changed.\n1 attachment would be put into the mail.\n1 link would be made absolute."),
            "{sources:?} {to:?}: {said}"
        );
        assert!(!said.contains(": expanded"), "{said}");
        assert!(!at("new").exists());
    }
}

#[test]
fn a_probe_asks_each_source_once_and_never_a_link() {
    let server = Raw::http(|path, stream| {
        let answer = match path {
            "/gone" => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
            "/large" => b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n".to_vec(),
            _ => {
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n".to_vec()
            }
        };
        let _ = stream.write_all(&answer);
    });
    let urls = ["/a", "/gone", "/large"].map(|path| server.url(path));
    let mailbox = Mailbox::with(&urls, open(&server));
    let (dry, said) = mailbox.dry(" --probe");
    assert_eq!(
        words(&dry),
        ["would-fetch", "http-status", "too-large", "would-expand"]
    );
    assert!(
        dry[0]
            .1
            .contains("the server responded to HEAD: text/plain, 5 bytes"),
        "{dry:?}"
    );
    assert!(said.contains("servers were only asked"), "{said}");
    let asked: Vec<String> = server
        .heads()
        .iter()
        .filter_map(|head| head.split(" HTTP").next().map(str::to_owned))
        .collect();
    let mut sorted = asked.clone();
    sorted.sort();
    // Before a server is reported to lack the content, a GET request is sent, because every server supports it.
    assert_eq!(
        sorted,
        ["GET /gone", "HEAD /a", "HEAD /gone", "HEAD /large"]
    );
    assert_eq!(
        words(&mailbox.inspected(" --probe")),
        ["would-fetch", "http-status", "too-large", "would-expand"]
    );
}

#[test]
fn a_server_without_head_is_asked_by_get_and_its_content_is_left_there() {
    let server = Raw::connections(|mut stream| {
        let head = crate::common::raw::head(&stream).unwrap_or_default();
        if head.starts_with("HEAD ") {
            let _ = stream.write_all(b"HTTP/1.1 501 What\r\nContent-Length: 0\r\n\r\n");
        } else {
            // The rest of the body never arrives, so a program that reads it waits too long.
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\nx");
            std::thread::sleep(std::time::Duration::from_secs(30));
        }
    });
    let mailbox = Mailbox::with(&[server.url("/")], open(&server) + " --timeout 5s");
    let (dry, _) = mailbox.dry(" --probe");
    assert_eq!(words(&dry), ["would-fetch", "would-expand"]);
    assert!(
        dry[0]
            .1
            .contains("the server responded to GET: no type, 9000 bytes"),
        "{dry:?}"
    );
}

#[test]
fn a_probe_asks_nobody_whom_the_policy_does_not_allow() {
    let server = Raw::saying(ok("text/plain", b"hello"));
    for options in [
        "--fetch https",
        "--fetch http",
        "--fetch http --allow-net 127.0.0.0/8",
    ] {
        let mailbox = Mailbox::with(&[server.url("/a")], options.to_owned());
        let (dry, _) = mailbox.dry(" --probe");
        assert!(
            dry[0].0.ends_with("-not-allowed") || dry[0].0 == "private-address",
            "{dry:?}"
        );
        assert_eq!(mailbox.inspected(" --probe")[0].0, dry[0].0);
    }
    let redirecting = Raw::saying(crate::common::raw::redirect("http://10.0.0.1/"));
    let mailbox = Mailbox::with(&[redirecting.url("/")], open(&redirecting));
    assert_eq!(mailbox.dry(" --probe").0[0].0, "private-address");
    assert_eq!(server.count(), 0);
}

#[test]
fn convert_probes_only_in_a_dry_run() {
    let output = embody()
        .args(["convert", "--in-place", "--probe", "/nonexistent"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}
