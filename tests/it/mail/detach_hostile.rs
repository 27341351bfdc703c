//! Mails of an attacker for `detach` and `restore`: names that lead to other files, nested references, very many parts, and one
//! object that is named very often.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::common::mail::assert_bytes;
use crate::common::objects::{beneath, digits};
use crate::common::programs::{embody, fed, stderr};

/// A working directory with a store.
struct Work(tempfile::TempDir);

impl Work {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    #[track_caller]
    fn run(&self, arguments: &str, mail: &[u8]) -> Output {
        let mut command = embody();
        command
            .args(arguments.split(' '))
            .current_dir(self.0.path());
        let output = fed(&mut command, mail);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        output
    }

    /// Adds an object to the store, as `detach` does. Returns its path in the store.
    fn object(&self, content: &[u8]) -> String {
        let path = beneath(content);
        let file = self.path("store").join(&path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
        path
    }
}

fn mixed(parts: &[String]) -> Vec<u8> {
    let parts: String = parts.iter().map(|part| format!("--b\n{part}\n")).collect();
    format!("From: a@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n")
        .into_bytes()
}

fn base64(octets: &[u8]) -> String {
    let symbols = STANDARD.encode(octets);
    let lines: Vec<&str> = symbols
        .as_bytes()
        .chunks(76)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    lines.join("\n")
}

fn attachment(header: &str, octets: &[u8]) -> String {
    format!(
        "{header}\nContent-Transfer-Encoding: base64\n\n{}",
        base64(octets)
    )
}

/// Returns the part that embody leaves in place of an attachment.
fn left(url: &str, sha256: &str, essence: &str) -> String {
    format!(
        "Content-Type: message/external-body; access-type=URL;\n size=5; URL=\"\n {url}\"\n\n\
         Content-Type: {essence}\nContent-Transfer-Encoding: binary\n\
         X-Embody-Detached: sha256={sha256};\n encoding=base64; line=76\n"
    )
}

/// File names are only text in the header. An object is identified only by its hash.
#[test]
fn attachment_name_with_a_path_creates_no_file_outside_the_store() {
    let work = Work::new();
    let mail = mixed(
        &[
            "../../../../etc/passwd",
            "/etc/passwd",
            "..",
            ".lock",
            ".tmp",
        ]
        .map(|name| {
            let octets = name.as_bytes().repeat(1000);
            attachment(
                &format!(
                    "Content-Type: application/x-any; name=\"{name}\"\n\
                 Content-Disposition: attachment; filename=\"{name}\""
                ),
                &octets,
            )
        }),
    );
    fs::create_dir(work.path("inner")).unwrap();
    let detached = work.run("detach --store inner/store --larger-than 1k", &mail);
    assert_eq!(
        String::from_utf8_lossy(&detached.stdout)
            .matches("X-Embody-Detached")
            .count(),
        5
    );
    let names: Vec<_> = fs::read_dir(work.path("inner")).unwrap().collect();
    assert_eq!(names.len(), 1);
    assert_eq!(fs::read_dir(work.path("")).unwrap().count(), 1);
    let back = work.run("restore --store inner/store", &detached.stdout);
    assert_bytes(&back.stdout, &mail, "there and back");
}

/// A forged reference to a path outside the store.
#[test]
fn a_reference_that_leads_out_of_the_store_is_left() {
    let work = Work::new();
    work.object(b"abc");
    fs::write(work.path("secret"), "secret").unwrap();
    let secret = digits(b"secret");
    let outside = format!("file://{}", work.path("secret").display());
    let base = "https://files.example.org/store/";
    for url in [
        outside.clone(),
        format!("{base}../secret"),
        format!("{base}%2e%2e/secret"),
        format!("{base}..%2fsecret"),
        format!("{base}ab/../../secret"),
        "https://files.example.org/secret".to_owned(),
    ] {
        for sha256 in [secret.as_str(), "../secret", "..%2fsecret"] {
            let mail = mixed(&[left(&url, sha256, "application/x-any")]);
            for arguments in [
                "restore --store store".to_owned(),
                format!("filter --links keep --store store --base-url {base}"),
            ] {
                let output = work.run(&arguments, &mail);
                assert_bytes(&output.stdout, &mail, &format!("{arguments}: {url}"));
                assert!(stderr(&output).contains("unchanged: "), "{url}");
            }
        }
    }
}

/// External bodies inside external bodies, including those of embody.
#[test]
fn a_reference_in_a_reference_is_not_detached_and_not_restored_as_ours() {
    let work = Work::new();
    let object = work.object(b"abc");
    let url = format!("https://files.example.org/{object}");
    let inner = left(&url, &digits(b"abc"), "application/x-any");
    // A part of embody never replaces a multipart or a message, so this part was not written by embody.
    for essence in [
        "message/external-body; access-type=URL; URL=\"data:,x\"",
        "message/rfc822",
    ] {
        let mail = mixed(&[left(&url, &digits(b"abc"), essence)]);
        let output = work.run("restore --store store", &mail);
        assert_bytes(&output.stdout, &mail, essence);
        assert!(
            stderr(&output).contains("unchanged: bad-note"),
            "{}",
            stderr(&output)
        );
    }
    // A reference with a long phantom body, and one inside another reference.
    let long = format!("{inner}\n{}", "x\n".repeat(100_000));
    let nested = format!(
        "Content-Type: message/external-body; access-type=URL; URL=\"https://www.example.org/\"\n\n{inner}\n{}",
        base64(&[7; 200_000])
    );
    for part in [long, nested] {
        let mail = mixed(&[part]);
        let output = work.run("detach --store store", &mail);
        assert_bytes(&output.stdout, &mail, "nothing leaves");
        let output = work.run("restore --store store", &mail);
        assert_bytes(&output.stdout, &mail, "nothing comes back");
    }
    // A detached mail that is attached to a mail and detached again is restored in two steps, and each step is exact.
    let first = mixed(&[attachment("Content-Type: image/png", &[9; 200_000])]);
    let once = work.run("detach --store store", &first).stdout;
    let carrier = mixed(&[attachment(
        "Content-Type: application/octet-stream; name=x.eml",
        &[once.as_slice(), &[b'\n'; 100_000]].concat(),
    )]);
    let twice = work.run("detach --store store", &carrier).stdout;
    assert!(twice.len() < 1000);
    let back = work.run("restore --store store", &twice).stdout;
    assert_bytes(&back, &carrier, "the carrier, and nothing in it");
}

/// A line that begins with "From " would start a new message in an mbox. An attachment with such lines is restored correctly or
/// left detached.
#[test]
fn an_attachment_with_separator_lines_is_whole_in_every_mailbox() {
    let work = Work::new();
    let text = "From a@example.org Sat Jan  1 00:00:00 2000\nSubject: x\n\nFrom the start\n>From\n"
        .repeat(50);
    let parts = [
        attachment("Content-Type: application/x-any", text.as_bytes()),
        format!(
            "Content-Type: application/x-any\n\n{}",
            text.replace("From ", ">From ")
        ),
        format!(
            "Content-Type: application/x-any\nContent-Transfer-Encoding: quoted-printable\n\n{}",
            text.replace("From ", "=46rom ")
        ),
    ];
    let message = String::from_utf8(mixed(&parts)).unwrap();
    let mbox = format!("From b@example.org Sat Jan  1 00:00:00 2000\n{message}\n").repeat(3);
    fs::write(work.path("mbox"), &mbox).unwrap();
    work.run("detach --store store --larger-than 1k --in-place mbox", b"");
    let detached = fs::read_to_string(work.path("mbox")).unwrap();
    assert_eq!(detached.matches("X-Embody-Detached").count() % 3, 0);
    assert!(detached.matches("X-Embody-Detached").count() >= 3);
    assert_eq!(detached.matches("\nFrom ").count(), 2, "three messages");
    work.run("restore --store store --in-place mbox", b"");
    assert_bytes(
        &fs::read(work.path("mbox")).unwrap(),
        mbox.as_bytes(),
        "the mbox",
    );
}

/// As many parts as the limit permits, and more.
#[test]
fn ten_thousand_small_attachments_leave_and_come_back() {
    let work = Work::new();
    let part = |number: usize| {
        let octets: Vec<u8> = (0..900)
            .map(|index| ((index * number) >> 3) as u8)
            .collect();
        attachment("Content-Type: image/png", &octets)
    };
    // A third of the parts have the same content as others.
    let parts: Vec<String> = (0..10_500).map(|number| part(number % 60)).collect();
    let mail = mixed(&parts);
    let detached = work.run("detach --store store --larger-than 1k", &mail);
    let count = String::from_utf8_lossy(&detached.stdout)
        .matches("X-Embody-Detached")
        .count();
    assert!((9_990..=10_000).contains(&count), "{count}");
    let back = work.run("restore --store store", &detached.stdout);
    assert_bytes(&back.stdout, &mail, "all of them");
}

/// A sender who knows the hash of an attachment can name it any number of times.
#[test]
fn one_object_that_is_named_many_times_comes_back_within_a_limit() {
    let work = Work::new();
    let octets: Vec<u8> = (0..100_000_usize).map(|index| (index >> 3) as u8).collect();
    let object = work.object(&octets);
    let part = left(
        &format!("https://files.example.org/{object}"),
        &digits(&octets),
        "image/png",
    );
    let mail = mixed(&vec![part; 1000]);
    let text = base64(&octets);
    let back = |output: &Output| {
        String::from_utf8_lossy(&output.stdout)
            .matches(&text)
            .count()
    };
    let output = work.run("restore --store store --max-growth 2M", &mail);
    let gained = output.stdout.len() - mail.len();
    assert!((1_900_000..=2 << 20).contains(&gained), "{gained}");
    assert_eq!(back(&output), 15);
    assert!(
        stderr(&output).contains("growth-limit"),
        "{}",
        stderr(&output)
    );
    // With a higher limit, all references are restored.
    let output = work.run("restore --store store --max-growth 200M", &mail);
    assert_eq!(back(&output), 1000);
}
