//! A From field that looks like the separator of an mbox (`From : Ann`), or that a program quoted (`>From: Ann`), stays the
//! author of the mail in every format, and for `compare` and `merge`.

use std::fs;
use std::process::Command;

use crate::common::folder::Folder;
use crate::common::programs::has_python;

const SEPARATOR: &str = "From ann@example.org Mon Jan  6 10:01:00 2020\n";

/// Returns a mail whose header contains these lines instead of a From field.
fn mail(number: usize, lines: &str, body: &str) -> String {
    format!(
        "To: bob@example.org\n{lines}Subject: f{number}\nDate: Mon, 6 Jan 2020 10:01:00 +0000\n\
         Message-ID: <f{number}@example.org>\nMIME-Version: 1.0\n\n{body}"
    )
}

/// Returns the bytes of all files of a result.
fn all_of(folder: &Folder, name: &str) -> String {
    let mut directories = vec![folder.at(name)];
    let mut text = String::new();
    while let Some(path) = directories.pop() {
        if path.is_dir() {
            directories.extend(fs::read_dir(path).unwrap().map(|it| it.unwrap().path()));
        } else {
            text += &fs::read_to_string(path).unwrap();
        }
    }
    text
}

/// Removes a result in any format.
fn remove(folder: &Folder, name: &str) {
    let path = folder.at(name);
    if path.is_dir() {
        fs::remove_dir_all(path).unwrap();
    } else if path.exists() {
        fs::remove_file(path).unwrap();
    }
}

/// Returns the From fields of the messages of an mbox, as Python's modules read them.
fn authors_of_python(folder: &Folder, mbox: &str) -> Vec<String> {
    let script = "import mailbox, sys\nfor m in mailbox.mbox(sys.argv[1]): print(m.get_all('From'), repr(m.get_payload()))";
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(folder.at(mbox))
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn from_field_with_a_blank_before_its_colon_stays_the_author_in_every_format() {
    let body = "hi\nFrom here on, text\nFrom : no field\n";
    let folder = Folder::new();
    for (what, lines) in [
        ("one blank", "From : Ann <ann@example.org>\n"),
        ("two blanks and a fold", "From  : Ann\n <ann@example.org>\n"),
        ("a blank and a tab", "From \t: Ann <ann@example.org>\n"),
        ("CR LF", "From : Ann <ann@example.org>\n"),
    ] {
        let newline = if what == "CR LF" { "\r\n" } else { "\n" };
        for first in [true, false] {
            let text = mail(1, lines, body);
            let text = if first {
                text.replacen("To: bob@example.org\n", "", 1)
            } else {
                text
            };
            folder.write("in.eml", text.replace('\n', newline));
            for form in ["mbox", "thunderbird", "maildir", "eml"] {
                remove(&folder, "out");
                folder.run(&format!(
                    "convert in.eml --output-format {form} --output out"
                ));
                folder.run("compare in.eml out");
                let out = all_of(&folder, "out").replace('\r', "");
                assert!(!out.contains(">From : Ann"), "{what}, {form}: {out}");
                let is_quoted =
                    out.contains("\n>From here on") && out.contains("\n>From : no field");
                assert_eq!(
                    is_quoted,
                    ["mbox", "thunderbird"].contains(&form),
                    "{what}, {form}: {out}"
                );
                if is_quoted {
                    assert!(out.contains("\nFrom: Ann"), "{what}, {form}: {out}");
                    let mbox = ["out/in", "out"]
                        .into_iter()
                        .find(|it| folder.at(it).is_file())
                        .unwrap();
                    if has_python("from_field", "mailbox", "python3") {
                        let authors = authors_of_python(&folder, mbox);
                        assert_eq!(authors.len(), 1, "{what}: {authors:?}");
                        assert!(authors[0].starts_with("['Ann"), "{what}: {authors:?}");
                    }
                    // The mailbox becomes the same mail again.
                    remove(&folder, "back");
                    folder.run("convert out --output-format maildir --output back");
                    folder.run("compare in.eml back");
                    assert!(all_of(&folder, "back").contains("\nFrom : no field"));
                } else {
                    assert!(out.contains(&lines[..8]), "{what}, {form}: {out}");
                }
            }
        }
    }
}

#[test]
fn from_field_with_a_blank_survives_labels_merge_and_detached_attachments() {
    let part = format!(
        "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nFrom : text\n--b\nContent-Type: message/rfc822\n\n\
         From : Bob <bob@example.org>\nSubject: inner\n\nFrom : inner text\n--b\n\
         Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: base64\n\n{}--b--\n",
        "AAAA\n".repeat(3000)
    );
    let text = mail(
        1,
        "From : Ann <ann@example.org>\nX-Gmail-Labels: Work\n",
        "",
    )
    .trim_end()
    .to_owned()
        + "\n"
        + &part;
    let folder = Folder::new();
    folder.write("in.eml", &text);
    folder.run("convert in.eml --by-label --output-format mbox --output labels");
    folder.run("merge in.eml --output merged.mbox");
    folder.run("detach --store store in.eml --output-format mbox --output light.mbox");
    folder.run("restore --store store light.mbox --output restored.mbox");
    folder.run("convert in.eml --output-format maildir --output md");
    folder.run("detach --store store md --output-format mbox --output light2.mbox");
    folder.run("restore --store store light2.mbox --in-place");
    for name in [
        "labels",
        "merged.mbox",
        "light.mbox",
        "restored.mbox",
        "light2.mbox",
    ] {
        let out = all_of(&folder, name);
        assert!(out.contains("\nFrom: Ann <"), "{name}: {out}");
        assert!(!out.contains("From : Ann"), "{name}: {out}");
        assert!(out.contains("\n>From : text"), "{name}: {out}");
        assert!(out.contains("\n>From : Bob"), "{name}: {out}");
        assert!(out.contains("\n>From : inner text"), "{name}: {out}");
        if !name.starts_with("light.") {
            folder.run(&format!("compare in.eml {name}"));
        }
    }
}

#[test]
fn from_field_with_a_blank_in_an_mbox_that_stays_an_mbox_is_not_changed() {
    let mbox = format!(
        "{SEPARATOR}{}\n",
        mail(1, "From : Ann <ann@example.org>\n", "hi\n")
    );
    let folder = Folder::new();
    folder.write("in.mbox", &mbox);
    folder.run("convert in.mbox --output out.mbox");
    folder.run("convert in.mbox --in-place");
    assert_eq!(folder.read("out.mbox"), mbox);
    assert_eq!(folder.read("in.mbox"), mbox);
}

#[test]
fn text_without_a_header_is_quoted_and_read_back() {
    let folder = Folder::new();
    for text in [
        "Hello\nFrom : me\n\nFrom here\n",
        "\nFrom : me\n",
        "Hello\nFrom : me\n",
    ] {
        let mbox = format!("{SEPARATOR}{}\n", text.replace("From ", ">From "));
        folder.write("in.mbox", mbox);
        for name in ["md", "out"] {
            remove(&folder, name);
        }
        folder.run("convert in.mbox --output-format maildir --output md");
        assert!(all_of(&folder, "md").starts_with(text), "{text}");
        folder.run("convert md --output-format mbox --output out");
        assert!(all_of(&folder, "out").contains("\n>From : me"), "{text}");
        folder.run("compare in.mbox md");
        folder.run("compare md out");
    }
}

#[test]
fn quoted_from_field_becomes_the_from_field_of_the_result() {
    let body = ">From: quoted text\n>From here\n";
    let folder = Folder::new();
    for quoted in [
        ">From: Ann <ann@example.org>\n",
        ">From : Ann <ann@example.org>\n",
        ">From: Ann\n <ann@example.org>\n",
        ">>From: Ann <ann@example.org>\n",
    ] {
        let mbox = |lines: &str| {
            format!(
                "{SEPARATOR}{}\n{SEPARATOR}{}\n",
                mail(1, lines, body),
                mail(2, lines, body)
            )
        };
        folder.write("INBOX.mbox", mbox(quoted));
        folder.write(
            "orig.mbox",
            mbox(
                &quoted
                    .replace('>', "")
                    .replace("@example.org\n", "@example.org>\n")
                    .replace(" :", ":"),
            ),
        );
        for form in ["maildir", "eml", "thunderbird"] {
            remove(&folder, "out");
            folder.run(&format!(
                "convert INBOX.mbox --output-format {form} --output out"
            ));
            let out = all_of(&folder, "out");
            assert_eq!(
                out.matches("\nFrom: Ann").count(),
                2,
                "{quoted}, {form}: {out}"
            );
            assert_eq!(
                out.matches("From: quoted text").count(),
                2,
                "{quoted}, {form}: {out}"
            );
            assert_eq!(
                out.matches(">From: quoted text").count(),
                2,
                "{quoted}, {form}: {out}"
            );
            folder.run("compare INBOX.mbox out");
        }
        for (sources, first) in [
            ("orig.mbox INBOX.mbox", "orig"),
            ("INBOX.mbox orig.mbox", "INBOX"),
        ] {
            remove(&folder, "all.mbox");
            let said = folder.run(&format!("merge {sources} --output all.mbox"));
            assert!(
                said.contains("4 messages in 2 sources, 2 mails in the result"),
                "{first}: {said}"
            );
            let out = all_of(&folder, "all.mbox");
            assert_eq!(
                out.matches("\nFrom: Ann").count(),
                2,
                "{quoted}, {first}: {out}"
            );
            folder.run("compare --merged orig.mbox all.mbox");
            folder.run("compare --merged INBOX.mbox all.mbox");
        }
    }
}

#[test]
fn quoted_from_field_next_to_a_from_field_and_in_a_body_stays() {
    let folder = Folder::new();
    let text = mail(
        1,
        ">From: Bob <bob@example.org>\nFrom: Ann <ann@example.org>\n",
        ">From: x\n",
    );
    folder.write("in.mbox", format!("{SEPARATOR}{text}\n"));
    folder.run("convert in.mbox --output-format maildir --output md");
    assert_eq!(all_of(&folder, "md"), text);
    let other = text.replace(">From: Bob <bob@example.org>\n", "");
    folder.write("other.mbox", format!("{SEPARATOR}{other}\n"));
    let said = folder.run("merge in.mbox other.mbox --output all.mbox");
    assert!(said.contains("2 mails in the result"), "{said}");
}
