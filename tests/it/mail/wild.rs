//! Undocumented forms in which programs replace content: `samples/wild/`, and parts that are detached here as Thunderbird does
//! it, and must be restored exactly.

use std::path::PathBuf;

use crate::common::filter::{Ran, filter, open};
use crate::common::mail::{self, assert_bytes, crlf, samples_folder};
use crate::common::programs::embody;
use crate::common::raw::{Raw, ok};
use base64::Engine as _;
use embody::report::Reason;

/// The URLs in the samples that are mapped to the directory with their content.
const MAPPED: [&str; 6] = [
    "file:///C:/Users/me/Mail/",
    "https://radio.example.org/",
    "https://cloud.example.org/",
    "https://ida.sharepoint.example.org/",
    "ftp://ftp.ietf.example/internet-drafts/",
    "file:////fileserver/mail/",
];

fn wild() -> PathBuf {
    samples_folder().join("wild")
}

/// Returns options with which every reference of the samples leads to `samples/wild/files`.
fn options() -> String {
    let folder = wild().join("files");
    let files = folder.display();
    let maps = MAPPED.map(|from| format!(" --map {from}=file://{files}/"));
    format!("--fetch file --file-root {files}{}", maps.concat())
}

fn run(mail: &[u8]) -> Ran {
    filter(&options(), mail)
}

#[test]
fn every_sample_gives_its_expected_output_with_lf_and_crlf_and_is_stable() {
    let samples = mail::samples_in(&wild());
    assert!(samples.len() >= 10, "only {} samples", samples.len());
    for sample in samples {
        for twin in [|bytes: &[u8]| bytes.to_vec(), crlf] {
            let (before, after) = (twin(&sample.before), twin(&sample.after));
            let ran = run(&before);
            assert_bytes(&ran.stdout, &after, &sample.name);
            assert!(ran.column("outcome").contains(&"expanded".to_owned()));
            let again = run(&after);
            assert_bytes(&again.stdout, &after, &sample.name);
            assert!(again.rows.is_empty(), "{}: {:?}", sample.name, again.rows);
        }
    }
}

/// Without any permission, the samples are unchanged, and every reference has a row.
#[test]
fn by_default_the_samples_are_left_and_say_which_option_would_help() {
    let kinds = [
        ("detached.in.eml", "detached"),
        ("feed-enclosure.in.eml", "detached"),
        ("cloud-page.in.eml", "detached"),
        ("exchange-shortcut.in.eml", "shortcut"),
    ];
    for (name, kind) in kinds {
        let before = std::fs::read(wild().join(name)).unwrap();
        let ran = filter("", &before);
        ran.leaves(&before, &["scheme-not-allowed"]);
        assert_eq!(ran.column("kind"), [kind], "{name}");
        assert!(ran.stderr.contains("--fetch"), "{}", ran.stderr);
    }
}

#[test]
fn part_without_a_reference_or_with_more_than_a_note_is_unchanged() {
    let samples = mail::samples_in(&wild().join("untouched"));
    let readme = std::fs::read_to_string(samples_folder().join("README.md")).unwrap();
    let mut promised = 0;
    for sample in &samples {
        let name = sample.name.trim_end_matches(".in.eml");
        let line = readme
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")))
            .unwrap_or_else(|| panic!("{name} is not in samples/README.md"));
        let reason = Reason::ALL
            .iter()
            .find(|reason| line.contains(&format!("| `{}`", reason.as_str())));
        promised += usize::from(reason.is_some());
        for before in [sample.before.clone(), crlf(&sample.before)] {
            let reasons: Vec<&str> = reason.iter().map(|reason| reason.as_str()).collect();
            run(&before).leaves(&before, &reasons);
        }
    }
    assert!(samples.len() >= 7 && promised >= 3, "{}", samples.len());
}

#[test]
fn attached_shortcuts_are_followed_only_with_the_option() {
    let before = std::fs::read(wild().join("untouched/attached-shortcut.in.eml")).unwrap();
    let ran = filter(&format!("{} --follow shortcuts", options()), &before);
    assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
    let text = String::from_utf8(ran.stdout.clone()).unwrap();
    assert!(
        text.contains("Content-Disposition: attachment;\n filename=\"report\"\n"),
        "{text}"
    );
    filter(&format!("{} --follow shortcuts", options()), &ran.stdout).gives(&ran.stdout);
}

/// A part as a mail client made it, and its decoded content.
struct Original {
    header: String,
    body: String,
    content: Vec<u8>,
}

fn originals() -> Vec<Original> {
    let octets: Vec<u8> = (0..=255).cycle().take(1000).collect();
    let base64 = |octets: &[u8]| {
        let encoded = base64::engine::general_purpose::STANDARD.encode(octets);
        let lines: Vec<_> = encoded.as_bytes().chunks(76).collect();
        String::from_utf8(lines.join(&b'\n')).unwrap()
    };
    let text = "one\ntwo = 2\n\n--no boundary\n";
    let original = |header: &str, body: &str, content: &[u8]| Original {
        header: header.to_owned(),
        body: body.to_owned(),
        content: content.to_vec(),
    };
    vec![
        original(
            "Content-Type: image/gif; name=\"a b.gif\"\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename=\"a b.gif\"\n",
            &base64(&octets),
            &octets,
        ),
        original(
            "content-type: Application/Octet-Stream;\n\tname=dump.bin\nX-Attachment-Id: f_1\nContent-transfer-encoding: BASE64\nContent-ID: <x@y>\n",
            &base64(&octets),
            &octets,
        ),
        original(
            "Content-Type: text/plain; name=\"notes.txt\"\nContent-Disposition: attachment;\n filename*0=\"no\";\n filename*1=\"tes.txt\"\n",
            text,
            text.as_bytes(),
        ),
        original(
            "Content-Type: text/plain; charset=us-ascii; name=x\nContent-Transfer-Encoding: 7bit\nContent-Disposition: inline; filename=x\nContent-Description: (none)\n",
            text,
            text.as_bytes(),
        ),
        original(
            "Content-Type: text/x-log; charset=utf-8\nContent-Transfer-Encoding: 8bit\nContent-Disposition: attachment; filename=x\n",
            "gr\u{fc}n\n",
            "gr\u{fc}n\n".as_bytes(),
        ),
        original(
            "Content-Type: text/csv; charset=iso-8859-1\nContent-Disposition: attachment; filename=x\nContent-Transfer-Encoding: quoted-printable\n",
            "gr=FCn;1=3D1\n",
            b"gr\xfcn;1=1\n",
        ),
        original(
            "Content-Type: application/json; name=\"x.json\"\nContent-Transfer-Encoding: 7bit\n",
            "{\n \"a\": 1\n}",
            b"{\n \"a\": 1\n}",
        ),
        original(
            "Content-Type: application/x-lines\nContent-Transfer-Encoding: quoted-printable\n",
            "a=3Db=0D=0Ac=0Ad",
            b"a=b\r\nc\nd",
        ),
        original(
            "Content-Disposition: attachment; filename=x\n",
            text,
            text.as_bytes(),
        ),
        original(
            "Content-Type: text/html; charset=\"us-ascii\"; name=page.html\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename=page.html\n",
            &base64(b"<a href=\"x\">x</a>"),
            b"<a href=\"x\">x</a>",
        ),
        original(
            "Content-Type: message/rfc822\nContent-Transfer-Encoding: 8bit\nContent-Disposition: attachment; filename=\"x.eml\"\n",
            "Subject: x\n\nx\n",
            b"Subject: x\n\nx\n",
        ),
        original(
            "Content-Type: application/x-empty\nContent-Transfer-Encoding: base64\n",
            "",
            b"",
        ),
    ]
}

/// The two forms in which Thunderbird has written notes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    /// The note is text/plain.
    Older,
    /// The note keeps the Content-Type of the part. An empty line replaces a missing one.
    Newer,
}

impl Original {
    fn value(&self, name: &str) -> Option<String> {
        let unfolded = self.header.replace("\n ", " ").replace("\n\t", " ");
        unfolded.lines().find_map(|line| {
            let (field, value) = line.split_once(": ")?;
            field.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    }

    /// Returns the note that Thunderbird leaves (MimeMultipart::ParseLine of comm-central).
    fn detached(&self, shape: Shape, url: &str) -> String {
        let typed = match shape {
            Shape::Older => "Content-Type: text/plain;\n name=\"x\"\n".to_owned(),
            Shape::Newer => {
                let typed = self.value("Content-Type");
                typed.map_or("\n".to_owned(), |value| format!("Content-Type: {value}\n"))
            }
        };
        format!(
            "{typed}Content-Disposition: attachment; filename=\"x\"\n\
             X-Mozilla-External-Attachment-URL: {url}\n\
             X-Mozilla-Altered: AttachmentDetached; date=\"Wed Oct 06 17:28:24 2010\"\n\n\
             You deleted an attachment from this message. The original MIME headers for the attachment were:\n\
             {}\n",
            self.header
        )
    }
}

#[test]
fn what_thunderbird_detached_comes_back_with_its_header_and_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for (index, original) in originals().iter().enumerate() {
        let file = folder.path().join(format!("{index} ü"));
        std::fs::write(&file, &original.content).unwrap();
        let url = format!("file://{}/{index}%20%C3%BC", folder.path().display());
        let around = |part: &str| {
            format!(
                "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"=_b\"\n\n--=_b\n\nsee below\n--=_b\n{part}\n--=_b--\n"
            )
        };
        let wanted = around(&format!("{}\n{}", original.header, original.body));
        for shape in [Shape::Older, Shape::Newer] {
            let has_type = original.value("Content-Type").is_some();
            if shape == Shape::Older && !has_type {
                // The older form of such a part cannot be distinguished from a note whose quoted header lacks the type.
                continue;
            }
            let detached = around(&original.detached(shape, &url));
            for twin in [|bytes: &[u8]| bytes.to_vec(), crlf] {
                let options = format!("--fetch file --file-root {}", folder.path().display());
                let ran = filter(&options, &twin(detached.as_bytes()));
                let (output, wanted) = (ran.stdout, twin(wanted.as_bytes()));
                assert_bytes(&output, &wanted, &format!("{index} {shape:?}"));
                compared += 1;
            }
        }
    }
    assert!(compared > 30, "{compared}");
}

/// Returns a mail with the part between two others.
fn mixed(part: &str) -> Vec<u8> {
    crate::common::filter::mail(&[
        "Content-Type: text/plain\n\nbefore\n".to_owned(),
        part.to_owned(),
        "Content-Type: text/plain\n\nbehind\n".to_owned(),
    ])
}

#[test]
fn part_filled_over_http_gets_its_content_type_and_content_location() {
    let server = Raw::http(|path, stream| {
        use std::io::Write as _;
        let answer = match path {
            "/x.pdf" => ok("application/pdf", b"%PDF"),
            _ => ok("text/html", b"<p>please sign in</p>"),
        };
        let _ = stream.write_all(&answer);
    });
    let options = open(&[server.address.port()]);
    let shortcut = |path: &str| {
        let text = format!("[InternetShortcut]\r\nURL={}\r\n", server.url(path));
        let file = base64::engine::general_purpose::STANDARD.encode(text);
        mixed(&format!(
            "Content-Type: message/external-body; name=\"x.pdf.URL\"\nContent-Transfer-Encoding: base64\n\n{file}\n"
        ))
    };
    filter(&options, &shortcut("/x.pdf")).gives(&mixed(&format!(
        "Content-Type: application/pdf; name=\"x.pdf\"\nContent-Transfer-Encoding: base64\nContent-Location: {}\n\nJVBERg==\n",
        server.url("/x.pdf")
    )));

    let encoded = String::from_utf8(shortcut("/x.pdf"))
        .unwrap()
        .replace("x.pdf.URL", "=?utf-8?B?QmVyaWNodCBmw7xyLnVybA==?=");
    let named = String::from_utf8(filter(&options, encoded.as_bytes()).stdout).unwrap();
    let field = "Content-Type: application/pdf; name*=UTF-8''Bericht%20f%C3%BCr\n";
    assert!(named.contains(field), "{named}");

    let page = |path: &str| {
        mixed(&format!(
            "Content-Type: text/html; name=\"x.pdf.html\"\nContent-Disposition: attachment; filename=\"x.pdf.html\"; size=9\nX-Mozilla-Cloud-Part: cloudFile; url={}\n\n<p>a page about x.pdf</p>\n",
            server.url(path)
        ))
    };
    filter(&options, &page("/x.pdf")).gives(&mixed(&format!(
        "Content-Type: application/pdf; name=\"x.pdf\"\nContent-Transfer-Encoding: base64\nContent-Location: {}\nContent-Disposition: attachment;\n filename=\"x.pdf\"\n\nJVBERg==\n",
        server.url("/x.pdf")
    )));
    let cloud_file = mixed(&format!(
        "Content-Type: application/octet-stream\nX-Mozilla-Cloud-Part: cloudFile; url={}\n\n",
        server.url("/sign-in")
    ));
    filter(&options, &cloud_file).leaves(&cloud_file, &["type-mismatch"]);
    let refused = page("/sign-in");
    filter(&options, &refused).leaves(&refused, &["type-mismatch"]);
    let ran = filter(&format!("{options} --accept-mismatch"), &refused);
    assert_eq!(ran.column("outcome")[0], "expanded", "{}", ran.stderr);
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(text.contains("filename=\"x.pdf.html\""), "{text}");

    let detached = |path: &str| {
        mixed(&format!(
            "Content-Type: application/pdf\nX-Mozilla-External-Attachment-URL: {}\nX-Mozilla-Altered: AttachmentDetached; date=\"x\"\n\nYou deleted an attachment from this message. The original MIME headers for the attachment were:\nContent-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n\n",
            server.url(path)
        ))
    };
    filter(&options, &detached("/x.pdf")).gives(&mixed(&format!(
        "Content-Type: application/pdf\nContent-Transfer-Encoding: base64\nContent-Location: {}\n\nJVBERg==\n",
        server.url("/x.pdf")
    )));
    let refused = detached("/sign-in");
    filter(&options, &refused).leaves(&refused, &["type-mismatch"]);
}

#[test]
fn url_map_makes_an_old_ietf_announcement_retrievable() {
    let server = Raw::saying(ok("text/plain", b"An Internet-Draft\n"));
    let announcement = |offers: &str| {
        format!(
            "Subject: I-D Action: draft-x-00.txt\nMIME-Version: 1.0\nContent-Type: Multipart/Mixed; Boundary=\"NextPart\"\n\n--NextPart\n\nA new Internet-Draft.\n--NextPart\nContent-Type: Multipart/Alternative; Boundary=\"OtherAccess\"\n\n--OtherAccess\n{offers}--OtherAccess--\n\n--NextPart--\n"
        )
        .into_bytes()
    };
    let before = announcement(
        "Content-Type: Message/External-body; access-type=\"mail-server\";\n\tserver=\"mailserv@ietf.org\"\n\nContent-Type: text/plain\nContent-ID: <2020@ietf.org>\n\nENCODING mime\nFILE /internet-drafts/draft-x-00.txt\n\n--OtherAccess\nContent-Type: Message/External-body; name=\"draft-x-00.txt\";\n\tsite=\"ftp.ietf.org\"; access-type=\"anon-ftp\";\n\tdirectory=\"internet-drafts\"\n\nContent-Type: text/plain\nContent-ID: <2020@ietf.org>\n\n",
    );
    let options = format!(
        "--fetch http --allow-net 127.0.0.0/8 --allow-port {} --map ftp://ftp.ietf.org/internet-drafts/={}",
        server.address.port(),
        server.url("/archive/id/")
    );
    let after = announcement(
        "Content-Type: text/plain\nContent-ID: <2020@ietf.org>\nContent-Transfer-Encoding: 7bit\nContent-Location: ftp://ftp.ietf.org/internet-drafts/draft-x-00.txt\n\nAn Internet-Draft\n\n",
    );
    let ran = filter(&options, &before);
    ran.gives(&after);
    assert_eq!(ran.column("outcome"), ["rewritten", "expanded"]);
    assert!(server.heads()[0].starts_with("GET /archive/id/draft-x-00.txt "));
    filter(&options, &crlf(&before)).gives(&crlf(&after));
    filter(&options, &after).gives(&after);
    // Without the map, ftp would be used, which is not allowed. Nothing changes.
    let left = filter("--fetch http", &before);
    left.leaves(&before, &["unsupported-access-type", "scheme-not-allowed"]);
}

#[test]
fn inspect_shows_detached_parts_and_shortcuts_by_kind() {
    for (name, shown) in [
        ("detached", "detached of image/png"),
        (
            "detached-stray-line-in-header",
            "detached of application/pdf",
        ),
        ("feed-enclosure", "detached of audio/ogg"),
        ("cloud-page", "detached"),
        ("exchange-shortcut", "shortcut"),
        ("untouched/deleted", "detached of image/png"),
    ] {
        let output = embody()
            .arg("inspect")
            .args(options().split_whitespace())
            .arg(wild().join(format!("{name}.in.eml")))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let kind = format!("      {shown}\n");
        assert!(output.status.success() && text.contains(&kind), "{text}");
        let outcome = match name {
            "untouched/deleted" => "unchanged: deleted: ",
            _ => "would-fetch",
        };
        assert!(text.contains(outcome), "{text}");
    }
}

/// The quick search for mails with references finds these forms, too.
#[test]
fn convert_fills_detached_parts_and_shortcuts_in_a_mailbox() {
    let folder = tempfile::tempdir().unwrap();
    let (source, dest) = (
        folder.path().join("in.mbox"),
        folder.path().join("out.mbox"),
    );
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let line = b"From ida@example.org Fri Aug  7 09:30:00 2020\n";
    let plain = b"Subject: plain\nX-Mozilla-Status: 0001\n\nnothing to do\n";
    let samples = mail::samples_in(&wild());
    for sample in &samples {
        // Names of fields are case-insensitive.
        let text = String::from_utf8(sample.before.clone()).unwrap();
        let shouted = text.replace("X-Mozilla-", "x-MOZILLA-").into_bytes();
        for (mail, result) in [
            (plain.as_slice(), plain.as_slice()),
            (&shouted, &sample.after),
        ] {
            before.extend([line, mail, b"\n"].concat());
            after.extend([line, result, b"\n"].concat());
        }
    }
    std::fs::write(&source, &before).unwrap();
    let output = embody()
        .arg("convert")
        .args(options().split_whitespace())
        .arg(&source)
        .arg("--output")
        .arg(&dest)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_bytes(&std::fs::read(&dest).unwrap(), &after, "the mailbox");
}
