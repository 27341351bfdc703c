//! `embody embed` is `convert`, or `filter` for a single message, with different defaults.

use std::fs;

use crate::common::programs::{embody, fed, stderr};
use crate::common::raw::{Raw, ok};

/// A picture of 9 by 9 pixels.
const GIF: &[u8] =
    b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

const MBOX: &str = "From a@b Sat Jan  3 01:05:34 1996\nSubject: x\n\nx\n\n";

/// Returns a mail with a picture on the server and one in a `data:` URL.
fn mail(server: &Raw) -> Vec<u8> {
    format!(
        "Subject: pictures\nMIME-Version: 1.0\nContent-Type: text/html\n\n\
         <img src=\"{}\" width=9 height=9><img src=\"data:image/gif;base64,R0lGODlhAgABAIAAAAAAAP///ywAAAAAAgABAAACAkQBADs=\">\n",
        server.url("/a.gif")
    )
    .into_bytes()
}

#[test]
fn embed_gives_the_same_result_as_filter_or_convert_with_its_options() {
    let server = Raw::saying(ok("image/gif", GIF));
    let network = format!(
        "--allow-net 127.0.0.0/8 --allow-port {}",
        server.address.port()
    );
    let mail = mail(&server);
    let run = |line: &str, input: &[u8]| {
        let output = fed(embody().args(line.split_whitespace()), input);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        output.stdout
    };
    let embedded = run(&format!("embed {network}"), &mail);
    let preset = "--embed data,remote --fetch http,https";
    assert_eq!(embedded, run(&format!("filter {preset} {network}"), &mail));
    assert_eq!(memchr::memmem::find_iter(&embedded, b"cid:").count(), 2);

    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let mbox = [b"From a@b Sat Jan  3 01:05:34 1996\n", &*mail, b"\n"].concat();
    fs::write(at("in"), mbox.repeat(2)).unwrap();
    run(
        &format!("embed {network} {} --output {}", at("in"), at("one")),
        b"",
    );
    run(
        &format!(
            "convert {preset} {network} {} --output {}",
            at("in"),
            at("other")
        ),
        b"",
    );
    let result = fs::read(at("one")).unwrap();
    assert_eq!(result, fs::read(at("other")).unwrap());
    assert_eq!(memchr::memmem::find_iter(&result, b"cid:").count(), 4);
    run(&format!("embed {network} --in-place {}", at("in")), b"");
    assert_eq!(result, fs::read(at("in")).unwrap());

    // Explicit options override the defaults, and a dry run sends no requests.
    let asked = server.count();
    assert_eq!(
        run(&format!("embed --embed data {network}"), &mail),
        run("filter --embed data", &mail)
    );
    fs::write(at("in"), &mbox).unwrap();
    run(
        &format!("embed {network} --dry-run {} --in-place", at("in")),
        b"",
    );
    assert_eq!(server.count(), asked);
    assert_eq!(fs::read(at("in")).unwrap(), mbox);
}

#[test]
fn unsupported_option_of_a_preset_is_refused_with_the_status_of_its_command() {
    for (line, status, word) in [
        ("embed a.eml b.eml", 2, "write --output before its name"),
        (
            "embed box",
            75,
            "embed reads only one message; name --output or --in-place",
        ),
        (
            "embed --jobs 2",
            75,
            "work only with --output or --in-place",
        ),
        ("embed --no-such-option", 75, "--no-such-option"),
        ("embed --output new", 2, "name mboxes, Maildirs or messages"),
        (
            "embed in --output new --on-failure defer",
            2,
            "--on-failure",
        ),
        ("embed in --output new --in-place", 2, "--in-place"),
        (
            "embed box --fetch ftp --output new",
            2,
            "add --fetch http,https",
        ),
        (
            "convert --embed remote box --output new",
            2,
            "add --fetch http,https",
        ),
        (
            "convert --embed remote box --in-place",
            2,
            "add --fetch http,https",
        ),
        (
            "restore --store none box --output new",
            2,
            "the store none does not exist; check its name",
        ),
        ("restore --store none", 75, "the store none does not exist"),
        ("store check none", 2, "the store none does not exist"),
        ("store gc none box", 2, "the store none does not exist"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("box"), MBOX.repeat(2)).unwrap();
        let mut command = embody();
        let output = fed(
            command.args(line.split(' ')).current_dir(folder.path()),
            b"",
        );
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{line}: {said}");
        assert!(said.contains(word), "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}");
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{line}: {left:?}");
    }
    // These commands send no requests, and a filter outputs its mail.
    for line in [
        "convert --embed remote --dry-run box --output new",
        "inspect --embed remote box",
        "filter --embed remote",
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("box"), MBOX.repeat(2)).unwrap();
        let mut command = embody();
        command.args(line.split(' ')).current_dir(folder.path());
        let output = fed(&mut command, b"Subject: x\n\nx\n");
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
    }
}
