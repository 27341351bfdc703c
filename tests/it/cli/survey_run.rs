//! The page about a run: what was saved, what is lost permanently, and what a further run may retrieve.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::programs::{done, embody, embody_in, stderr};
use crate::common::raw::{self, Raw};

const GIF: &[u8] =
    b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

fn status(status: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
}

/// Returns a server on which some files are gone, and others are busy until `is_well` is set.
fn server(is_well: &Arc<AtomicBool>) -> Raw {
    let is_well = Arc::clone(is_well);
    Raw::http(move |path, stream| {
        let answer = match path {
            _ if path.starts_with("/gone") => status("404 Not Found"),
            _ if path.starts_with("/page") => raw::ok("text/html", b"<!DOCTYPE html><p>Welcome"),
            _ if path.starts_with("/closed") => status("403 Forbidden"),
            _ if path.starts_with("/busy") && !is_well.load(Ordering::SeqCst) => {
                status("503 Service Unavailable")
            }
            _ if path.ends_with(".txt") => raw::ok("text/plain", &b"hello\n".repeat(2000)),
            _ => raw::ok("image/gif", GIF),
        };
        let _ = stream.write_all(&answer);
    })
}

fn mbox(server: &Raw) -> String {
    let names = ["fine.gif", "gone.gif", "page.gif", "closed.gif", "busy.gif"];
    let pictures = names.map(|name| format!("<img src=\"{}\">", server.url(&format!("/{name}"))));
    let reference = |name: &str| {
        format!(
            "--b\nContent-Type: message/external-body; access-type=URL; URL=\"{}\"\n\nContent-Type: text/plain\nContent-Disposition: attachment; filename={}\n\n",
            server.url(name),
            name.trim_start_matches('/')
        )
    };
    format!(
        "From a@b Mon Jul  6 10:00:00 2015\nDate: Mon, 06 Jul 2015 10:00:00 +0000\nSubject: <b>bold</b>\nMIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n{}\n{}{}--b--\n\n",
        pictures.concat(),
        reference("/fine.txt"),
        reference("/gone.txt")
    )
}

fn options(server: &Raw) -> Vec<String> {
    let port = server.address.port().to_string();
    ["--allow-net", "127.0.0.0/8", "--allow-port", &port]
        .map(str::to_owned)
        .to_vec()
}

fn run(folder: &Path, server: &Raw, arguments: &[&str]) {
    let options = options(server);
    let mut all = arguments.to_vec();
    all.extend(options.iter().map(String::as_str));
    done(&embody_in(folder, &all), 0);
}

fn command(page: &str) -> String {
    let (_, rest) = page.split_once("<pre>").unwrap();
    rest.split_once("</pre>").unwrap().0.replace("&#39;", "'")
}

fn shell(folder: &Path, command: &str) {
    let program = embody().get_program().to_owned();
    let directory = Path::new(&program).parent().unwrap();
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-ec", command])
        .env("PATH", &path)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {}", stderr(&output));
}

#[test]
fn page_about_embed_says_what_is_saved_lost_and_to_try_again() {
    let is_well = Arc::new(AtomicBool::new(false));
    let server = server(&is_well);
    for way in [&["--output", "kept.mbox"][..], &["--in-place"]] {
        is_well.store(false, Ordering::SeqCst);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("box"), mbox(&server)).unwrap();
        let arguments = [&["embed", "box", "--html", "run.html"], way].concat();
        run(folder.path(), &server, &arguments);
        let page = fs::read_to_string(folder.path().join("run.html")).unwrap();
        for text in [
            "<h1>1 attachment is back in the mail, 1 picture is now part of the mail and 3 are no longer available.</h1>",
            "<b>2</b><span>saved, ",
            "<b>3</b><span>no longer available</span>",
            "<b>1</b><span>to try again</span>",
            "The server does not have the file any more (404)",
            "The server returned a web page or other content instead of the picture or file",
            "The server answered with status 503",
            "The server answered with status 403",
            "&lt;b&gt;bold&lt;/b&gt;",
            "gone.txt",
        ] {
            assert!(page.contains(text), "{text}: {page}");
        }
        assert!(!page.contains("<b>bold") && page.contains("default-src 'none'"));
        let result = if way.len() == 1 { "box" } else { "kept.mbox" };
        let before = fs::read_to_string(folder.path().join(result)).unwrap();
        assert!(before.contains("/busy.gif\">"), "{before}");
        // Later the server responds, and the command on the page retrieves the missing files.
        is_well.store(true, Ordering::SeqCst);
        let again = command(&page);
        assert!(
            again.starts_with(&format!("embody embed {result} ")),
            "{again}"
        );
        shell(folder.path(), &again);
        let result = if way.len() == 1 { "box" } else { "kept-2.mbox" };
        let after = fs::read_to_string(folder.path().join(result)).unwrap();
        assert!(!after.contains("/busy.gif\">"), "{after}");
        // If there is nothing to retry, the next step is the comparison.
        if way.len() == 2 {
            let arguments = [
                "embed",
                "box",
                "--output",
                "other.mbox",
                "--html",
                "run.html",
            ];
            run(folder.path(), &server, &arguments);
            let page = fs::read_to_string(folder.path().join("run.html")).unwrap();
            assert_eq!(command(&page), "embody compare box other.mbox");
            shell(folder.path(), &command(&page));
        }
    }
}

#[test]
fn page_about_each_command_says_what_it_did() {
    let is_well = Arc::new(AtomicBool::new(true));
    let server = server(&is_well);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("box"), mbox(&server)).unwrap();
    let arguments = [
        "recover",
        "box",
        "--output",
        "whole.mbox",
        "--html",
        "run.html",
    ];
    run(folder.path(), &server, &arguments);
    let page = fs::read_to_string(folder.path().join("run.html")).unwrap();
    assert!(
        page.contains("<h1>1 attachment is back in the mail and 1 is no longer available.</h1>"),
        "{page}"
    );
    assert_eq!(command(&page), "embody compare box whole.mbox");
    shell(folder.path(), &command(&page));
    let (_, gone) = page.split_once("<h2>No longer available</h2>").unwrap();
    assert!(
        command(gone).contains("embody recover whole.mbox --output whole-2.mbox")
            && command(gone).contains("--archive 'https://"),
        "{page}"
    );
    let arguments = [
        "detach",
        "whole.mbox",
        "--output",
        "small.mbox",
        "--store",
        "store",
    ];
    let more = ["--larger-than", "1", "--html", "run.html"];
    done(
        &embody_in(folder.path(), &[&arguments[..], &more].concat()),
        0,
    );
    let page = fs::read_to_string(folder.path().join("run.html")).unwrap();
    assert!(page.contains("now in the store"), "{page}");
    let arguments = [
        "restore",
        "small.mbox",
        "--output",
        "back.mbox",
        "--store",
        "store",
    ];
    done(
        &embody_in(
            folder.path(),
            &[&arguments[..], &["--html", "run.html"]].concat(),
        ),
        0,
    );
    let page = fs::read_to_string(folder.path().join("run.html")).unwrap();
    assert!(page.contains("back in the mail"), "{page}");
}

#[test]
fn page_lists_attachments_behind_a_sign_in_apart_from_those_that_are_gone() {
    let server = server(&Arc::new(AtomicBool::new(true)));
    let folder = tempfile::tempdir().unwrap();
    let mail = mbox(&server).replace("/fine.txt", "/closed.txt");
    fs::write(folder.path().join("box"), mail).unwrap();
    let arguments = ["recover", "box", "--output", "new", "--html", "run.html"];
    run(folder.path(), &server, &arguments);
    let page = fs::read_to_string(folder.path().join("run.html")).unwrap();
    let (gone, denied) = page
        .split_once("<h2>Behind a sign-in</h2>")
        .expect("a section");
    assert!(
        gone.contains("gone.txt") && !gone.contains("closed.txt"),
        "{page}"
    );
    assert!(
        denied.contains("closed.txt") && !denied.contains("gone.txt"),
        "{page}"
    );
}

#[test]
fn page_that_cannot_be_written_is_refused_before_the_run() {
    let is_well = Arc::new(AtomicBool::new(true));
    let server = server(&is_well);
    let folder = tempfile::tempdir().unwrap();
    let mail = mbox(&server);
    fs::write(folder.path().join("box"), &mail).unwrap();
    fs::write(folder.path().join("other"), "hello").unwrap();
    for page in ["box", "other", "none/run.html"] {
        let arguments = ["embed", "box", "--output", "kept.mbox", "--html", page];
        let output = embody_in(folder.path(), &arguments);
        assert!(!output.status.success(), "{page}");
        assert!(!folder.path().join("kept.mbox").exists(), "{page}");
    }
    assert!(server.heads().is_empty());
    assert_eq!(fs::read_to_string(folder.path().join("box")).unwrap(), mail);
    for arguments in [
        &["embed", "--html", "run.html", "box"][..],
        &["embed", "box", "--output", "x", "--html", "-"],
        &[
            "embed",
            "box",
            "--output",
            "x",
            "--dry-run",
            "--html",
            "run.html",
        ],
    ] {
        let output = embody_in(folder.path(), arguments);
        assert!(!output.status.success(), "{arguments:?}");
    }
}
