//! If no server responds in a run over mailboxes, the summary begins with this fact, and the status is 1. Causes are a missing
//! network, a wrong proxy, or a name that does not exist. `filter` delivers the mail in these cases, too.

use std::fs;
use std::io::Write as _;
use std::process::Output;

use crate::common::programs::{embody, fed, free_port, stderr};
use crate::common::raw::{Raw, redirect};
use crate::common::reports;

const NO_RESPONSE: &str = "embody: No server responded: ";

fn message(url: &str) -> String {
    format!(
        "Subject: one\nDate: Mon, 6 Jul 2015 10:00:00 +0000\nMIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\nContent-Type: text/plain\n\n\n"
    )
}

fn converted(urls: &[&str], options: &[&str]) -> (Output, bool) {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (
        folder.path().join("in.mbox"),
        folder.path().join("out.mbox"),
    );
    let mails = urls.iter().map(|url| {
        let mail = message(url);
        format!("From a@b Mon Jul  6 10:00:00 2015\n{mail}\n")
    });
    fs::write(&from, mails.collect::<String>()).unwrap();
    let mut command = embody();
    command.arg("convert").arg(&from).arg("--output").arg(&to);
    command.args([
        "--fetch",
        "http",
        "--allow-net",
        "127.0.0.0/8",
        "--no-resume",
    ]);
    let output = command.args(options).output().unwrap();
    (output, to.exists())
}

#[test]
fn convert_without_any_response_says_so_first_and_ends_with_1() {
    let port = free_port().to_string();
    let closed = format!("http://127.0.0.1:{port}/a");
    let proxy = format!("http://127.0.0.1:{port}");
    for (urls, options, words) in [
        (
            vec![&*closed, &*closed],
            vec!["--allow-port", &*port],
            "all 2 requests failed (2 on servers that did not accept a connection)",
        ),
        (
            vec!["http://www.example.com/a"],
            vec!["--proxy", &*proxy],
            "the only request failed (1 on servers",
        ),
        (
            vec!["http://no-such-host.invalid/a"],
            vec![],
            "on hosts whose names cannot be resolved",
        ),
    ] {
        let (output, is_written) = converted(&urls, &options);
        let said = stderr(&output);
        let first = said.lines().next().unwrap_or_default();
        assert!(first.starts_with(NO_RESPONSE), "{urls:?}: {said}");
        assert!(first.contains(words), "{urls:?}: {said}");
        assert!(first.contains("--proxy"), "{said}");
        assert_eq!(output.status.code(), Some(1), "{urls:?}: {said}");
        assert!(is_written, "the mail is kept as it is");
        let quiet: Vec<&str> = options.iter().copied().chain(["--quiet"]).collect();
        let (output, _) = converted(&urls, &quiet);
        assert_eq!(output.status.code(), Some(1), "{urls:?}");
        assert!(stderr(&output).starts_with(NO_RESPONSE), "{urls:?}");
    }
}

/// Returns a server that sends the same status for each request, including CONNECT.
fn with_status(status: u16) -> Raw {
    Raw::http(move |_, stream| {
        let head = format!("HTTP/1.1 {status} No");
        let _ = write!(
            stream,
            "{head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
    })
}

/// The second request to the archive is not sent, because the first one failed a moment before.
#[test]
fn convert_without_any_response_from_servers_or_the_archive_says_so() {
    let port = free_port().to_string();
    let archive = format!("http://127.0.0.1:{port}/{{date}}id_/{{url}}");
    let urls = ["a", "b", "c"].map(|name| format!("http://127.0.0.1:{port}/{name}"));
    let options = [
        "--allow-port",
        &*port,
        "--archive",
        &*archive,
        "--archive-any",
        "--deadline",
        "5s",
    ];
    let (output, _) = converted(&urls.each_ref().map(String::as_str), &options);
    let said = stderr(&output);
    let expected = format!("{NO_RESPONSE}all 3 requests failed (3 on servers");
    assert!(said.starts_with(&expected), "{said}");
    assert!(!said.contains("gone") && !said.contains("busy"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
}

#[test]
fn proxy_that_only_sends_errors_counts_as_no_server() {
    for status in [403, 407, 502, 503, 504] {
        let server = with_status(status);
        let proxy = server.url("/");
        for url in ["http://www.example.com/a", "https://www.example.com/a"] {
            let options = [
                "--fetch",
                "http,https",
                "--proxy",
                proxy.trim_end_matches('/'),
            ];
            let (output, _) = converted(&[url, url], &options);
            let said = stderr(&output);
            assert!(said.starts_with(NO_RESPONSE), "{status} {url}: {said}");
            assert!(
                said.contains("all 2 requests failed"),
                "{status} {url}: {said}"
            );
            assert_eq!(output.status.code(), Some(1), "{status} {url}: {said}");
        }
    }
    // Without a proxy, the error is the response of the server itself. With a proxy, a 404 is passed on from the server.
    let server = with_status(503);
    let port = server.address.port().to_string();
    let (output, _) = converted(&[&server.url("/a")], &["--allow-port", &port]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let proxy = with_status(404);
    let options = ["--proxy", &*proxy.url("")];
    let (output, _) = converted(&["http://www.example.com/a"], &options);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn probe_without_any_response_says_so_and_ends_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let server = with_status(200);
    let (port, open) = (free_port().to_string(), server.address.port().to_string());
    let closed = format!("http://127.0.0.1:{port}/a");
    let mailbox = folder.path().join("in.mbox");
    for (urls, is_silent) in [
        (vec![closed.clone(), closed.clone()], true),
        (vec![closed.clone(), server.url("/b")], false),
        (vec!["data:,x".to_owned()], false),
    ] {
        let mails = urls.iter().map(|url| {
            let mail = message(url);
            format!("From a@b Mon Jul  6 10:00:00 2015\n{mail}\n")
        });
        fs::write(&mailbox, mails.collect::<String>()).unwrap();
        let single = folder.path().join("one.eml");
        fs::write(&single, message(&urls[0])).unwrap();
        for source in [&mailbox, &single] {
            let is_silent = is_silent || source == &single && urls[0] == closed;
            for command in [&["inspect"][..], &["convert", "--dry-run", "--in-place"]] {
                let mut run = embody();
                run.args(command).arg("--probe").arg(source);
                run.args(["--fetch", "http", "--allow-net", "127.0.0.0/8"]);
                run.args(["--allow-port", &port, "--allow-port", &open]);
                let output = run.output().unwrap();
                let said = stderr(&output);
                assert_eq!(
                    said.contains("No server responded: "),
                    is_silent,
                    "{command:?} {urls:?}: {said}"
                );
                let code = i32::from(is_silent);
                assert_eq!(
                    output.status.code(),
                    Some(code),
                    "{command:?} {urls:?}: {said}"
                );
            }
        }
    }
}

#[test]
fn convert_with_one_response_ends_with_0() {
    let server = Raw::http(|_, stream| {
        let _ =
            stream.write_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
    let (port, open) = (free_port().to_string(), server.address.port().to_string());
    let closed = format!("http://127.0.0.1:{port}/a");
    let options = ["--allow-port", &*port, "--allow-port", &*open];
    let (output, _) = converted(&[&closed, &server.url("/b")], &options);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!said.contains("No server responded"), "{said}");
    assert!(said.contains("1 gone (404)"), "{said}");
    // A mailbox whose references need no server.
    let (output, _) = converted(&["data:,x"], &options);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn filter_without_any_response_delivers_the_mail() {
    let port = free_port().to_string();
    let mail = message(&format!("http://127.0.0.1:{port}/a"));
    let mut command = embody();
    command.args(["filter", "--fetch", "http", "--allow-net", "127.0.0.0/8"]);
    command.args(["--allow-port", &port]);
    let output = fed(&mut command, mail.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(output.stdout, mail.as_bytes());
}

/// Returns an mbox with a message for each picture URL.
fn pictures(urls: &[&str]) -> String {
    let mails = urls.iter().map(|url| {
        format!(
            "From a@b Mon Jul  6 10:00:00 2015\nFrom: a@b\nDate: Mon, 6 Jul 2015 10:00:00 +0000\nMIME-Version: 1.0\n\
             Content-Type: text/html\n\n<img src=\"{url}\" width=90 height=90>\n\n"
        )
    });
    mails.collect()
}

#[test]
fn host_without_an_address_is_no_loss_unless_another_server_responded() {
    let server = with_status(404);
    let open = server.address.port().to_string();
    let here = server.url("/b.png");
    let nowhere = [
        "http://nothere1.invalid/a.png",
        "http://nothere2.invalid/a.png",
    ];
    for (urls, is_down) in [
        (nowhere.to_vec(), true),
        (vec![nowhere[0], &here, nowhere[1]], false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("in.mbox"), pictures(&urls)).unwrap();
        let run = |words: &[&str]| {
            let mut command = embody();
            command.args(words).current_dir(folder.path());
            command.args([
                "--fetch",
                "http",
                "--allow-net",
                "127.0.0.0/8",
                "--allow-port",
                &open,
            ]);
            command.output().unwrap()
        };
        let output = run(&[
            "embed", "in.mbox", "--output", "out.mbox", "--html", "run.html",
        ]);
        let said = stderr(&output);
        assert_eq!(said.contains("No server responded"), is_down, "{said}");
        assert!(
            !said.contains("do not exist") && !said.contains("gone (0"),
            "{said}"
        );
        let again = "; then run: embody embed out.mbox --output out-2.mbox";
        assert_eq!(said.contains(again), is_down, "{said}");
        let page = fs::read_to_string(at("run.html")).unwrap();
        assert_eq!(page.contains("no longer available"), !is_down, "{page}");
        assert_eq!(page.contains("does not exist any more"), !is_down, "{page}");
        assert!(
            page.contains("embody embed out.mbox --output out-2.mbox"),
            "{page}"
        );
        assert_eq!(page.contains("<h1>No server responded"), is_down, "{page}");
        assert_eq!(page.contains("try again later"), is_down, "{page}");
        assert_eq!(page.contains("web archive"), !is_down, "{page}");
        assert_eq!(said.contains("web archive"), !is_down, "{said}");

        let output = run(&["inspect", "--probe", "in.mbox", "--html", "survey.html"]);
        let text = String::from_utf8(output.stdout).unwrap();
        let page = fs::read_to_string(at("survey.html")).unwrap();
        for told in [&text, &page] {
            assert_eq!(told.contains("already gone"), !is_down, "{told}");
            assert_eq!(told.contains("No server responded, so"), is_down, "{told}");
            // The run that just failed is not recommended again.
            assert!(!told.contains("in-embedded.mbox"), "{told}");
        }
        assert_eq!(
            page.contains("embody inspect --probe --fetch"),
            is_down,
            "{page}"
        );
        assert_eq!(
            text.contains("2 without a response from the server"),
            is_down,
            "{text}"
        );
        let output = run(&["inspect", "--probe", "in.mbox", "--json", "--by", "host"]);
        let text = String::from_utf8(output.stdout).unwrap();
        let last = reports::object(text.lines().last().unwrap());
        let survey = &last["survey"];
        let (gone, silent) = if is_down { (0, 2) } else { (3, 0) };
        for answers in [
            &survey["answers"]["pictures"],
            &survey["answers"]["years"]["2015"],
        ] {
            assert_eq!(answers["gone"], gone, "{survey}");
            assert_eq!(answers["silent"], silent, "{survey}");
            assert!(answers.get("unresolved").is_none(), "{survey}");
        }
        assert_eq!(survey["probe"]["dead"], gone, "{survey}");
        let host = &survey["by"]["host"]["names"]["nothere1.invalid"];
        assert_eq!(host["dead"], i32::from(!is_down), "{survey}");
    }
}

/// Options for a run that may send requests to these ports of 127.0.0.1, and asks an archive on one of them.
fn archive_options(archive: &str, ports: &[&str]) -> Vec<String> {
    let ports = ports.iter().flat_map(|port| ["--allow-port", port]);
    let options = ["--archive", archive, "--archive-any", "--deadline", "5s"];
    options
        .into_iter()
        .chain(ports)
        .map(str::to_owned)
        .collect()
}

fn summary_and_status(urls: &[&str], options: &[String]) -> (String, Option<i32>) {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let (output, _) = converted(urls, &options);
    (stderr(&output), output.status.code())
}

#[test]
fn archive_that_has_no_capture_is_a_response_only_if_its_server_sent_it() {
    let closed = free_port().to_string();
    let source = format!("http://127.0.0.1:{closed}/a");
    let folder = tempfile::tempdir().unwrap();

    // Files of captures answer without a server.
    let captures = folder.path().join("captures.warc");
    fs::write(
        &captures,
        "WARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Date: 2015-07-06T10:00:00Z\r\nContent-Length: 0\r\n\r\n\r\n\r\n",
    )
    .unwrap();
    let of_files: Vec<String> = archive_options(captures.to_str().unwrap(), &[&closed])
        .into_iter()
        .filter(|it| it != "--archive-any")
        .collect();
    let (said, status) = summary_and_status(&[&source, &source], &of_files);
    assert!(said.starts_with(NO_RESPONSE), "{said}");
    assert!(said.contains("2 on servers that did not accept"), "{said}");
    assert!(!said.contains("web archive"), "{said}");
    assert_eq!(status, Some(1), "{said}");

    // The archive on a server says so itself, and its answer is stored in the cache.
    let server = with_status(404);
    let open = server.address.port().to_string();
    let template = server.url("/{date}id_/{url}");
    let mut of_server = archive_options(&template, &[&closed, &open]);
    let cache = folder.path().join("cache");
    of_server.extend(["--cache".to_owned(), cache.to_str().unwrap().to_owned()]);
    let (said, status) = summary_and_status(&[&source, &source], &of_server);
    assert!(!said.contains("No server responded"), "{said}");
    assert!(said.contains("2 gone and not in the archive"), "{said}");
    assert_eq!(status, Some(0), "{said}");
    let requests = server.count();
    assert!(requests > 0);

    // Now the cache answers for the archive, and no server responds.
    let (said, status) = summary_and_status(&[&source, &source], &of_server);
    assert_eq!(server.count(), requests);
    assert!(said.starts_with(NO_RESPONSE), "{said}");
    assert_eq!(status, Some(1), "{said}");
}

#[test]
fn undated_mail_for_which_the_archive_gets_no_request_is_no_response() {
    let closed = free_port().to_string();
    let server = with_status(404);
    let open = server.address.port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let mail = message(&format!("http://127.0.0.1:{closed}/a"));
    let undated = mail.replace("Date: Mon, 6 Jul 2015 10:00:00 +0000\n", "");
    let from = folder.path().join("in.mbox");
    fs::write(
        &from,
        format!("From a@b Mon Jul  6 10:00:00 2015\n{undated}\n"),
    )
    .unwrap();
    let mut command = embody();
    command
        .arg("convert")
        .arg(&from)
        .arg("--output")
        .arg(folder.path().join("out.mbox"));
    command.args(["--fetch", "http", "--allow-net", "127.0.0.0/8"]);
    command.args(archive_options(
        &server.url("/{date}id_/{url}"),
        &[&closed, &open],
    ));
    let output = command.output().unwrap();
    let said = stderr(&output);
    assert!(said.starts_with(NO_RESPONSE), "{said}");
    assert_eq!(
        (output.status.code(), server.count()),
        (Some(1), 0),
        "{said}"
    );
}

#[test]
fn redirect_to_a_host_that_does_not_respond_is_a_response() {
    let closed = free_port().to_string();
    let away = format!("http://127.0.0.1:{closed}/b");
    for location in ["http://nothere.invalid/b", &away] {
        let response = redirect(location);
        let server = Raw::http(move |_, stream| {
            let _ = stream.write_all(&response);
        });
        let open = server.address.port().to_string();
        let options = ["--allow-port", &closed, "--allow-port", &open];
        let (output, _) = converted(&[&server.url("/a")], &options);
        let said = stderr(&output);
        assert!(!said.contains("No server responded"), "{said}");
        assert_eq!(output.status.code(), Some(0), "{said}");
    }
}
