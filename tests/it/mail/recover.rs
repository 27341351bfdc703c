//! `embody recover` with everything that can stand for an attachment, in mail as real programs wrote it (`recover/`). Python
//! parses the result.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::common::programs::{embody, fed, has_python, stderr};
use crate::common::raw::{Raw, ok};

/// Prints the attachments of each message of an mbox, or of the files in a directory: name, type, and the start of the SHA-1.
const ATTACHMENTS: &str = "
import email, hashlib, mailbox, os, sys
place = sys.argv[1]
if os.path.isdir(place):
    names = sorted(os.path.join(top, name) for top, _, names in os.walk(place) for name in names if name.endswith('.emlx'))
    mails = [email.message_from_bytes(open(name, 'rb').read().split(b'\\n', 1)[1]) for name in names]
else:
    mails = mailbox.mbox(place)
for mail in mails:
    found = []
    for part in mail.walk():
        if part.is_multipart() or not part.get_filename():
            continue
        octets = part.get_payload(decode=True)
        found.append(f'{part.get_filename()} {part.get_content_type()} {len(octets)} {hashlib.sha1(octets).hexdigest()[:8]}')
    print('; '.join(found))
";

/// The expected sizes and hashes of `coast.png` and `report.pdf`.
const COAST: &str = "70 4a5eb717";

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mail/recover");
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(from).arg(folder.path().join("mail"));
        assert!(copy.status().unwrap().success());
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, line: &str) -> Output {
        let mut command = embody();
        command
            .args(line.split(' '))
            .current_dir(self.folder.path());
        fed(&mut command, b"")
    }

    #[track_caller]
    fn done(&self, line: &str, status: i32) -> String {
        let output = self.run(line);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{line}: {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty(), "{line}");
        stderr(&output)
    }

    fn attachments(&self, name: &str) -> Vec<String> {
        let output = Command::new("python3")
            .args(["-c", ATTACHMENTS])
            .arg(self.path(name))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

const LIST: &str = "recover mail/mailman/2024-May.txt";
const FOUND: &str = "--attachments mail/mailman/private/team";

#[test]
fn recover_of_a_list_archive_with_its_folder_gives_every_file_without_a_network() {
    let test = "recover_of_a_list_archive_with_its_folder_gives_every_file_without_a_network";
    if !has_python(test, "mailbox", "python3") {
        return;
    }
    let place = Place::new();
    let said = place.done(&format!("{LIST} {FOUND} --offline --output new"), 0);
    assert!(
        said.contains(
            "9 messages read, 6 changed.\n9 attachments put into the mail. 1 could not be: "
        ),
        "{said}"
    );
    assert!(!said.contains("not found below"), "{said}");
    let found = place.attachments("new");
    assert_eq!(found.len(), 9, "{found:?}");
    let coast = format!("coast.png image/png {COAST}");
    assert!(
        found[0].starts_with(&format!("{coast}; report 2.pdf application/pdf 784 ")),
        "{found:?}"
    );
    assert!(
        found[1].starts_with(&format!("{coast}; {coast}")),
        "{found:?}"
    );
    assert!(found[4].contains(COAST), "{found:?}");
    // A quoted note, a text about notes, and a file that no longer exists.
    assert_eq!(found[5..8], ["", "", ""], "{found:?}");
    assert!(found[8].contains(COAST), "{found:?}");
    // The enclosed message, the text that was a whole body, and the page whose escaping was undone.
    let text = fs::read(place.path("new")).unwrap();
    for part in [
        "Content-Type: message/rfc822",
        "<p>Hello &amp; good\tday, 1 < 2</p>",
    ] {
        let at = memchr::memmem::find(&text, part.as_bytes());
        assert!(at.is_some(), "{part}: {}", String::from_utf8_lossy(&text));
    }
    // A second run, and a run in place.
    let said = place.done(&format!("recover new {FOUND} --offline --output again"), 0);
    assert!(said.contains("0 changed"), "{said}");
    assert_eq!(fs::read(place.path("again")).unwrap(), text);
    place.done(&format!("{LIST} {FOUND} --offline --in-place"), 0);
    assert_eq!(
        fs::read(place.path("mail/mailman/2024-May.txt")).unwrap(),
        text
    );
}

#[test]
fn recover_with_a_folder_that_has_none_of_the_files_says_so_with_status_1() {
    let place = Place::new();
    let before = fs::read(place.path("mail/mailman/2024-May.txt")).unwrap();
    let path = place.path("mail/apple");
    let folder = path.display();
    let said = place.done(
        &format!("{LIST} --attachments mail/apple --offline --output new"),
        1,
    );
    assert!(
        said.contains(&format!("\n9 files were not found below {folder}.\n")),
        "{said}"
    );
    assert_eq!(fs::read(place.path("new")).unwrap(), before);
    let quiet = format!("{LIST} --attachments mail/apple --offline --quiet --in-place");
    let said = place.done(&quiet, 1);
    assert_eq!(
        said,
        format!("embody: 9 files were not found below {folder}.\n")
    );
    // One of nine files exists: the directory is correct, and the missing files are counted.
    fs::remove_dir_all(place.path("mail/mailman/private/team/attachments/20240514/5a579ce7"))
        .unwrap();
    let said = place.done(&format!("{LIST} {FOUND} --offline --output some"), 0);
    assert!(said.contains("\n3 files were not found below "), "{said}");
    // Without a directory, no message about one is printed. `convert` keeps its exit status.
    let said = place.done(&format!("{LIST} --offline --output none"), 0);
    assert!(!said.contains("not found below"), "{said}");
    let convert = LIST.replace(
        "recover",
        "convert --follow mailman --attachments mail/apple --output other",
    );
    let said = place.done(&convert, 0);
    assert!(said.contains("files were not found below "), "{said}");
}

#[test]
fn recover_asks_the_server_for_what_the_folder_lacks() {
    let place = Place::new();
    let png = fs::read(
        place.path("mail/mailman/private/team/attachments/20240514/5a579ce7/attachment.png"),
    )
    .unwrap();
    fs::remove_file(
        place.path("mail/mailman/private/team/attachments/20240514/8a24f584/attachment.png"),
    )
    .unwrap();
    let server = Raw::saying(ok("image/png", &png));
    let network = format!(
        "--allow-net 127.0.0.0/8 --allow-port {} --map http://lists.example.org/={}",
        server.address.port(),
        server.url("/"),
    );
    let said = place.done(&format!("{LIST} {FOUND} {network} --output new"), 0);
    assert!(
        said.contains("9 attachments put into the mail. 1 could not be: "),
        "{said}"
    );
    assert_eq!(server.count(), 1);
    // A dry run sends no requests.
    let said = place.done(
        &format!("{LIST} {FOUND} {network} --dry-run --output dry"),
        0,
    );
    assert!(said.contains("nothing was written or retrieved"), "{said}");
    assert_eq!(server.count(), 1);
}

#[test]
fn recover_of_apple_mail_and_eudora_takes_what_is_beside_the_mailbox() {
    let test = "recover_of_apple_mail_and_eudora_takes_what_is_beside_the_mailbox";
    if !has_python(test, "mailbox", "python3") {
        return;
    }
    let place = Place::new();
    let said = place.done("recover mail/apple --offline --output apple", 0);
    assert!(
        said.contains("3 attachments put into the mail. 1 could not be: "),
        "{said}"
    );
    assert!(said.contains("missing         1  \"not there\""), "{said}");
    let found = place.attachments("apple");
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].contains("report.pdf application/pdf 784 "),
        "{found:?}"
    );
    assert!(found[0].contains("short.txt text/plain 12 "), "{found:?}");
    let said = place.done(
        "recover mail/eudora-win/In.mbx --offline --output eudora",
        0,
    );
    assert!(
        said.contains("3 attachments put into the mail. 1 could not be: "),
        "{said}"
    );
    let found = place.attachments("eudora");
    let pictures = found.iter().map(|line| line.matches(COAST).count());
    assert_eq!(pictures.collect::<Vec<_>>(), [2, 1, 0, 0], "{found:?}");
}

/// Files that mail clients put into clouds are attached. Links that the sender wrote are kept as links.
#[test]
fn recover_of_one_message_takes_files_of_clouds_and_leaves_links() {
    let place = Place::new();
    let content = b"\x89PNG\r\n\x1a\n and so on\0\xff";
    let server = Raw::saying(ok("application/octet-stream", content));
    let hosts = [
        "drive.google.com",
        "api.onedrive.com",
        "cvws.icloud-content.com",
        "cloud.example.org",
        "lists.example.org",
        "www.dropbox.com",
        "app.box.com",
    ];
    let maps = hosts.map(|host| format!(" --map https://{host}/={}", server.url("/")));
    let network = format!(
        "--allow-net 127.0.0.0/8 --allow-port {}{}",
        server.address.port(),
        maps.concat()
    );
    let mut names: Vec<_> = fs::read_dir(place.path("mail/hosted")).unwrap().collect();
    names.sort_by_key(|entry| entry.as_ref().unwrap().file_name());
    assert_eq!(names.len(), 11);
    for entry in names {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let before = fs::read(&path).unwrap();
        let is_file = matches!(
            &*name,
            "filelink-html.eml"
                | "gmail-drive-chip.eml"
                | "mail-drop.eml"
                | "owa-onedrive.eml"
                | "sympa-urlized.eml"
        );
        let asked = server.count();
        let mut command = embody();
        command
            .arg("recover")
            .args(network.split(' '))
            .args(["--max-body", "200M"]);
        let output = fed(&mut command, &before);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        assert_eq!(
            output.stdout != before,
            is_file,
            "{name}: {}",
            stderr(&output)
        );
        assert_eq!(server.count() - asked, usize::from(is_file), "{name}");
        let encoded = memchr::memmem::find_iter(&output.stdout, b"iVBORw0KGgogYW5kIHNvIG9uAP8=");
        assert_eq!(encoded.count(), usize::from(is_file), "{name}");
        // Without a network, the result is the same, and the mail is output.
        let mut command = embody();
        let output = fed(
            command
                .args(["recover", "--offline"])
                .args(network.split(' ')),
            &before,
        );
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        assert_eq!(output.stdout, before, "{name}");
    }
    assert_eq!(server.count(), 5);
    // Explicit words replace the default forms.
    for (words, count) in [("-gmail", 0), ("none", 0), ("none,gmail", 1), ("links", 1)] {
        let asked = server.count();
        let line = format!("recover --follow {words} {network} mail/hosted/gmail-drive-chip.eml");
        assert_eq!(place.run(&line).status.code(), Some(0), "{words}");
        assert_eq!(server.count() - asked, count, "{words}");
    }
}

#[test]
fn recover_that_cannot_work_is_refused_with_the_status_of_its_command() {
    let place = Place::new();
    for (line, status, word) in [
        ("recover a.eml b.eml", 2, "write --output before its name"),
        (
            LIST,
            75,
            "recover reads only one message; name --output or --in-place",
        ),
        ("recover --no-such-option", 75, "--no-such-option"),
        (
            "recover --output new",
            2,
            "name mboxes, Maildirs or messages",
        ),
        ("recover x --output new --in-place", 2, "--in-place"),
        (
            "recover x --output new --on-failure defer",
            2,
            "--on-failure",
        ),
        ("recover x --output new --attachments nothing", 1, "nothing"),
        (
            "convert --offline --fetch https x --output new",
            2,
            "--offline makes no requests",
        ),
    ] {
        let said = place.done(line, status);
        assert!(said.contains(word), "{line}: {said}");
        assert!(!place.path("new").exists(), "{line}");
    }
}
