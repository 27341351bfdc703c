//! The sample clients in `samples/serve`. Each detaches and restores 1,000 mails, and reads a mailbox of Outlook.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::programs::{has_python, program, skipped, stderr};
use crate::common::pst::{Form, Message, Pst};
use crate::common::serve::{Service, objects, octets, with_attachment};

const MAILS: usize = 1000;

/// Runs a client with a token, mails and a mailbox.
fn run(mut client: Command) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("token"), "0123456789abcdef\n").unwrap();
    let service = Service::start_in(folder, &["--token-file", "token"]);
    fs::create_dir(service.path("mails")).unwrap();
    for number in 0..MAILS {
        let mail = with_attachment(number, &octets(1500 + number, number));
        fs::write(service.path("mails").join(number.to_string()), mail).unwrap();
    }
    let mut pst = Pst::in_memory(Form {
        version: 23,
        encoding: 1,
    });
    let mails = ["one", "two", "three"].map(|name| Message::mail(name, "text"));
    pst.folder(None, "Inbox", &mails);
    fs::write(service.path("m.pst"), pst.bytes()).unwrap();
    let output = client
        .env("EMBODY_TOKEN", "0123456789abcdef")
        .arg(format!("http://127.0.0.1:{}", service.port))
        .arg(service.path("mails"))
        .arg(service.path("m.pst"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&format!("{MAILS} mails restored")), "{text}");
    assert!(text.contains("3 messages read"), "{text}");
    assert_eq!(objects(&service.path("store")).len(), MAILS);
}

fn sample(name: &str) -> std::path::PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("samples/serve")
        .join(name);
    let lines = fs::read_to_string(&path).unwrap().lines().count();
    assert!(lines <= 60, "{name} has {lines} lines");
    path
}

#[test]
fn python_client_restores_each_mail_and_reads_a_pst() {
    let test = "python_client_restores_each_mail_and_reads_a_pst";
    let path = sample("client.py");
    if has_python(test, "urllib.request", "python3") {
        let mut python = Command::new("python3");
        python.arg(path);
        run(python);
    }
}

#[test]
fn node_client_restores_each_mail_and_reads_a_pst() {
    let test = "node_client_restores_each_mail_and_reads_a_pst";
    let path = sample("client.mjs");
    let Some(node) = program("node") else {
        return skipped(test, "node");
    };
    let mut node = Command::new(node);
    node.arg(path);
    run(node);
}

#[test]
fn go_client_restores_each_mail_and_reads_a_pst() {
    let test = "go_client_restores_each_mail_and_reads_a_pst";
    let path = sample("client.go");
    let Some(go) = program("go") else {
        return skipped(test, "go");
    };
    let cache = tempfile::tempdir().unwrap();
    let mut go = Command::new(go);
    go.env("GOCACHE", cache.path()).args(["run"]).arg(path);
    run(go);
}
