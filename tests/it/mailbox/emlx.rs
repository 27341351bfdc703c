//! Files of Apple Mail, and pages saved by browsers (docs/mailboxes.md, "Apple Mail").

use std::fs;

use tempfile::TempDir;

use crate::common::mailboxes::{Expand, Look, in_place, to};
use crate::common::programs::{embody_in, stderr};

const LIST: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">\n<dict>\n\t<key>flags</key>\n\t\
                    <integer>8590195713</integer>\n</dict>\n</plist>\n";
const NEW: &str = "what was\nfetched";

fn message(body: &str) -> String {
    format!("From: a@example.org\nSubject: x\n\n{body}\n")
}

fn emlx(message: &str) -> String {
    format!("{:<10}\n{message}{LIST}", message.len())
}

/// Creates a mailbox with the directories of Mail on macOS 10.12 and later.
fn mailbox() -> TempDir {
    let place = TempDir::new().unwrap();
    let data = place.path().join("INBOX.mbox/11-22/Data");
    for (name, text) in [
        ("Messages/1.emlx", emlx(&message("EXPAND-ME"))),
        ("Messages/20.partial.emlx", emlx(&message("x"))),
        ("3/Messages/3001.emlx", emlx(&message("EXPAND-ME"))),
        ("Attachments/1/2/forwarded.eml", message("EXPAND-ME")),
        ("../Info.plist", LIST.to_owned()),
        (
            "../../Exported.mbox/mbox",
            format!(
                "From a@b Thu Jan  1 00:00:00 1970\n{}",
                message("EXPAND-ME")
            ),
        ),
        (
            "../../Exported.mbox/table_of_contents",
            "\0\0\0\x01".to_owned(),
        ),
    ] {
        let path = data.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    place
}

#[test]
fn a_mailbox_changes_in_its_messages_only_and_the_counts_are_right() {
    let place = mailbox();
    let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    let source = place.path().join("INBOX.mbox");
    let summary = to(&source, &place.path().join("same"), &Look).unwrap();
    assert_eq!((summary.messages, summary.changed), (4, 0));
    // Two files without mail, and a directory of attachments.
    assert_eq!(summary.skipped_files, 3);
    let new = place.path().join("new");
    assert_eq!(to(&source, &new, &Expand(NEW)).unwrap().changed, 3);
    let data = "new/11-22/Data";
    assert_eq!(
        read(&format!("{data}/Messages/1.emlx")),
        emlx(&message(NEW))
    );
    assert_eq!(
        read(&format!("{data}/3/Messages/3001.emlx")),
        emlx(&message(NEW))
    );
    assert_eq!(
        read(&format!("{data}/Messages/20.partial.emlx")),
        emlx(&message("x"))
    );
    assert!(!place.path().join(data).join("Attachments").exists());
    assert!(read("new/Exported.mbox/mbox").contains(NEW));
}

#[test]
fn a_result_is_what_its_name_says() {
    let place = TempDir::new().unwrap();
    let source = place.path().join("1.emlx");
    fs::write(&source, emlx(&message("EXPAND-ME"))).unwrap();
    for (name, expected) in [("2.emlx", emlx(&message(NEW))), ("2.eml", message(NEW))] {
        let out = place.path().join(name);
        assert_eq!(to(&source, &out, &Expand(NEW)).unwrap().changed, 1);
        assert_eq!(fs::read_to_string(out).unwrap(), expected);
    }
    let printed = embody_in(place.path(), &["convert", "1.emlx", "--output", "-"]);
    assert_eq!(
        String::from_utf8(printed.stdout).unwrap(),
        message("EXPAND-ME")
    );
    let packed = embody_in(
        place.path(),
        &["convert", "1.emlx", "--output", "3.emlx.gz"],
    );
    assert!(packed.status.success(), "{}", stderr(&packed));
    for (name, expected) in [
        ("4.emlx", emlx(&message("EXPAND-ME"))),
        ("4.eml", message("EXPAND-ME")),
    ] {
        let plain = embody_in(place.path(), &["convert", "3.emlx.gz", "--output", name]);
        assert!(plain.status.success(), "{}", stderr(&plain));
        assert_eq!(
            fs::read_to_string(place.path().join(name)).unwrap(),
            expected
        );
    }
    let output = embody_in(place.path(), &["inspect", "1.emlx"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("text/plain"), "{shown}");
}

#[test]
fn attachments_folder_is_skipped_if_the_source_is_inside_the_mailbox() {
    let place = mailbox();
    let within = place.path().join("INBOX.mbox/11-22/Data");
    let output = embody_in(
        &within,
        &["convert", "--output", "../new", "--verbose", "."],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("Attachments: skipped"));
    assert!(
        !place
            .path()
            .join("INBOX.mbox/11-22/new/Attachments")
            .exists()
    );
}

#[test]
fn emlx_with_an_impossible_byte_count_is_reported_and_unchanged() {
    let place = TempDir::new().unwrap();
    let text = message("EXPAND-ME");
    // The property list differs from those of Mail, so its bytes may belong to the mail.
    let list = LIST.replace("flags", "x");
    for (name, count) in [
        ("short", text.len() - 3),
        ("long", text.len() + 3),
        ("longest", 99_999),
        // With this length, the property list would be treated as the end of the message.
        ("list", text.len() + list.len()),
    ] {
        let source = place.path().join(format!("{name}.emlx"));
        let file = format!("{count}\n{text}{list}");
        fs::write(&source, &file).unwrap();
        let summary = in_place(&source, &Expand(NEW)).unwrap();
        assert_eq!((summary.damaged, summary.changed), (1, 0), "{name}");
        assert_eq!(fs::read_to_string(&source).unwrap(), file);
        let out = place.path().join(format!("{name}.out"));
        assert_eq!(to(&source, &out, &Expand(NEW)).unwrap().damaged, 1);
        assert_eq!(
            fs::read_to_string(out).unwrap(),
            file,
            "nothing of it is lost"
        );
        for command in [vec!["inspect"], vec!["convert", "--in-place"]] {
            let source = source.to_str().unwrap();
            let said = embody_in(place.path(), &[command.as_slice(), &[source]].concat());
            assert_eq!(said.status.code(), Some(1), "{command:?}");
            assert!(stderr(&said).contains("first line"), "{}", stderr(&said));
        }
    }
}

#[test]
fn what_detach_moves_restore_puts_back_octet_for_octet() {
    let place = TempDir::new().unwrap();
    let attachment =
        "JVBERi0xLjQKJVBERi0xLjQKJVBERi0xLjQKJVBERi0xLjQKJVBERi0xLjQKJVBERi0xLjQKJVBE\n".repeat(40);
    let text = emlx(&format!(
        "From: a@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n--b\n\
         Content-Type: application/pdf; name=x.pdf\nContent-Disposition: attachment; filename=x.pdf\n\
         Content-Transfer-Encoding: base64\n\n{attachment}--b--\n"
    ));
    let source = place.path().join("1.emlx");
    fs::write(&source, &text).unwrap();
    for (arguments, is_there) in [
        (
            vec![
                "detach",
                "--larger-than",
                "1K",
                "--in-place",
                "--store",
                "store",
                "1.emlx",
            ],
            false,
        ),
        (
            vec!["restore", "--in-place", "--store", "store", "1.emlx"],
            true,
        ),
    ] {
        let done = embody_in(place.path(), &arguments);
        assert!(done.status.success(), "{}", stderr(&done));
        let now = fs::read_to_string(&source).unwrap();
        assert!(now.ends_with(LIST));
        assert_eq!(now == text, is_there, "{now}");
        assert_eq!(now.contains("X-Embody-Detached"), !is_there);
    }
}

#[test]
fn what_a_browser_saved_is_a_message_whatever_field_is_first() {
    let place = TempDir::new().unwrap();
    let page = "Content-Location: http://www.example.org/a/\nX-Saved: yes\n\n";
    for name in ["page.mht", "PAGE.MHTML", "page.txt"] {
        fs::write(place.path().join(name), page).unwrap();
    }
    fs::write(
        place.path().join("picture.mht"),
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    )
    .unwrap();
    let summary = in_place(place.path(), &Look).unwrap();
    assert_eq!((summary.messages, summary.skipped_files), (2, 2));
}
