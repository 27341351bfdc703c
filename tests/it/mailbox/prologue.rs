//! Text before the header of a mail: lines of other programs, separators, empty lines and byte order marks. The header
//! behind it is read, and another format gets the mail without it.

use std::fs;
use std::path::Path;

use crate::common::archives::{tar, zip};
use crate::common::folder::Folder;
use crate::common::programs::{done, embody_in, fed, stderr};

const BANNER: &str = "Microsoft Mail Internet Headers Version 2.0\n";

const SEPARATOR: &str = "From ann@example.org Mon Jan  6 10:00:00 2020\n";

/// Texts that programs put before a header.
const PROLOGUES: [&str; 12] = [
    BANNER,
    "+OK 1234 octets\n",
    "#! rnews 1234\n",
    "HTTP/1.1 200 OK\n",
    "HTTP/1.1 200 OK\nContent-Type: message/rfc822\nServer: x\n\n",
    "MAIL FROM:<ann@example.org> SIZE=28451\nRCPT TO:<bob@example.org>\nDATA\n",
    "\n\n",
    " \n",
    "\u{feff}",
    "\u{feff}\nMicrosoft Mail Internet Headers Version 2.0\n",
    ">From - Mon Jan  6 10:00:00 2020\n",
    ">From - Mon Jan  6 10:00:00 2020\n>From ann@example.org\n",
];

fn mail(subject: &str) -> String {
    format!(
        "From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: {subject}\nDate: Mon, 6 Jan 2020 10:01:00 +0000\n\
         MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n\
         <img src=\"data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7\">\n\n--b\n\
         Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: base64\n\
         Content-Disposition: attachment; filename=a.pdf\n\nJVBERi0xLjQK\n--b--\n"
    )
}

/// Returns the only message of a Maildir.
fn message(maildir: &Path) -> Vec<u8> {
    let found = messages(maildir);
    assert_eq!(found.len(), 1, "{}", maildir.display());
    found.into_iter().next().unwrap()
}

fn messages(maildir: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = ["cur", "new"]
        .iter()
        .flat_map(|part| fs::read_dir(maildir.join(part)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort_by_key(|path| path.file_name().unwrap().to_owned());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn mail_behind_a_prologue_is_read_and_another_format_gets_it_without_the_prologue() {
    for prologue in PROLOGUES {
        for ending in ["\n", "\r\n"] {
            let folder = Folder::new();
            let plain = mail("plan").replace('\n', ending);
            let text = [prologue, &mail("plan")].concat().replace('\n', ending);
            let separator = SEPARATOR.replace('\n', ending);
            folder.write("one.eml", &text);
            folder.write("box", [separator.as_str(), &text, ending].concat());
            folder.write("md/cur/1.1.h:2,S", &text);
            folder.write("md/new/.keep", "");
            let apple = format!(
                "{}\n{text}<?xml version=\"1.0\"?>\n<plist><dict><key>flags</key><integer>1</integer></dict></plist>\n",
                text.len()
            );
            folder.write("mail/1.emlx", apple);
            folder.write("mh/1", &text);
            folder.write("mh/.mh_sequences", "");
            for source in ["one.eml", "box", "md", "mail", "mh"] {
                let what = format!("{source} {text:?}");
                let said = folder.run(&format!("inspect --json {source}"));
                assert!(said.is_empty(), "{what}: {said}");
                let output = folder.output(&format!("inspect --json {source}"));
                let seen = String::from_utf8(output.stdout).unwrap();
                assert!(
                    seen.contains("a.pdf") || seen.contains("\"attachments\""),
                    "{what}: {seen}"
                );
                let (form, target) = match source {
                    "md" => ("mbox", "to.mbox"),
                    _ => ("maildir", "to"),
                };
                let said = folder.run(&format!(
                    "convert --output-format {form} {source} --output {target}"
                ));
                // The separator becomes that of the mbox.
                let is_kept = source == "md" && prologue.matches("From ").count() == 1;
                let is_told = said.contains("began with text before");
                assert_eq!(is_told, !is_kept, "{what}: {said}");
                match source {
                    "md" => {
                        let made = folder.read(target);
                        let (_, content) = made.split_once('\n').unwrap();
                        assert!(
                            content.trim_start().starts_with("From: Ann"),
                            "{what}: {made}"
                        );
                        assert!(!content.contains("Microsoft"), "{what}: {made}");
                    }
                    _ => assert!(message(&folder.at(target)) == plain.as_bytes(), "{what}"),
                }
                folder.run(&format!("compare {source} {target}"));
                folder.run(&format!("compare {target} {source}"));
                let path = folder.at(target);
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
            for (source, file) in [("one.eml", ""), ("box", ""), ("md", "/cur/1.1.h:2,S")] {
                folder.run(&format!("convert {source} --output same"));
                let (old, new) = (format!("{source}{file}"), format!("same{file}"));
                let same = fs::read(folder.at(&old)).unwrap() == fs::read(folder.at(&new)).unwrap();
                assert!(same, "{source} {text:?}");
                folder.run(&format!("embed --embed data {source} --output filled"));
                let octets = fs::read(folder.at(&format!("filled{file}"))).unwrap();
                let filled = String::from_utf8(octets).unwrap();
                assert!(filled.contains("cid:"), "{source} {filled:?}");
                let start = match source {
                    "box" => separator.clone() + &text[..text.len() - plain.len()],
                    _ => text[..text.len() - plain.len()].to_owned(),
                };
                assert!(
                    filled.starts_with(&(start + "From: Ann")),
                    "{source} {filled:?}"
                );
                for made in ["same", "filled"].map(|name| folder.at(name)) {
                    let _ = fs::remove_file(&made).or_else(|_| fs::remove_dir_all(&made));
                }
            }
            folder.run("merge --output all.mbox one.eml box md");
            assert_eq!(
                folder.read("all.mbox").matches("\nSubject: plan").count(),
                1
            );
        }
    }
}

#[test]
fn message_of_an_archive_becomes_an_entry_of_an_mbox_without_its_prologue() {
    for prologue in PROLOGUES {
        let folder = Folder::new();
        let text = [prologue, &mail("plan")].concat();
        let other = mail("other");
        let members = [("one.eml", text.as_bytes()), ("two.eml", other.as_bytes())];
        folder.write("a.zip", zip(&members));
        folder.write(
            "a.tar",
            tar(&members.map(|(name, text)| (name, b'0', text))),
        );
        for source in ["a.zip", "a.tar"] {
            for form in ["mbox", "maildir"] {
                let target = format!("{source}.{form}");
                let said = folder.run(&format!(
                    "convert --output-format {form} {source} --output {target}"
                ));
                assert!(
                    said.contains("1 message began with text before its header"),
                    "{text:?}: {said}"
                );
                folder.run(&format!("compare {source} {target}"));
                folder.run(&format!("compare {target} {source}"));
            }
            let made = folder.read(&format!("{source}.mbox"));
            let entries = made.split("From mboxrd@z").skip(1);
            let is_mail = |entry: &str| entry.split_once('\n').unwrap().1.starts_with("From: Ann");
            assert_eq!(entries.filter(|entry| is_mail(entry)).count(), 2, "{made}");
        }
    }
}

#[test]
fn filter_keeps_the_prologue_and_processes_the_mail_behind_it() {
    for prologue in PROLOGUES {
        let text = [prologue, &mail("plan")].concat();
        let mut command = crate::common::programs::embody();
        let output = fed(command.args(["filter", "--embed", "data"]), text.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let made = String::from_utf8(output.stdout).unwrap();
        let start = [prologue, "From: Ann"].concat();
        assert!(
            made.starts_with(&start) && made.contains("cid:"),
            "{made:?}"
        );
    }
}

#[test]
fn prologue_in_an_archive_or_a_compressed_file_is_read_as_elsewhere() {
    let text = [SEPARATOR, BANNER, &mail("plan"), "\n"].concat();
    let folder = Folder::new();
    folder.write("a.zip", zip(&[("box", text.as_bytes())]));
    folder.write("a.tar", tar(&[("box", b'0', text.as_bytes())]));
    folder.write("one.eml", [BANNER, &mail("plan")].concat());
    folder.run("convert one.eml --output one.eml.gz");
    for source in ["a.zip", "a.tar", "one.eml.gz"] {
        folder.run(&format!(
            "convert --output-format maildir {source} --output md"
        ));
        assert!(
            message(&folder.at("md")) == mail("plan").as_bytes(),
            "{source}"
        );
        fs::remove_dir_all(folder.at("md")).unwrap();
    }
}

#[test]
fn text_that_begins_with_the_words_of_a_banner_is_no_mail() {
    let folder = Folder::new();
    for (name, text) in [
        (
            "a",
            "Microsoft Mail Internet Headers Version 2.0\nare lines of Exchange.\n",
        ),
        (
            "b",
            "HTTP/1.1 200 OK\nDate: x\nContent-Type: text/html\n\n<p>From: a</p>\n",
        ),
        ("c", "+OK, said Ann\n\nFrom: a\n"),
        ("d", "\n\n\nSubject: x\n\n"),
        ("e", "\u{feff}title: x\n"),
    ] {
        folder.write(name, text);
        let output = folder.output(&format!("convert {name} --output out"));
        assert_ne!(
            output.status.code(),
            Some(0),
            "{text:?}: {}",
            stderr(&output)
        );
        assert!(!folder.at("out").exists());
    }
}

#[test]
fn mboxes_with_byte_order_marks_one_after_the_other_keep_their_messages_apart() {
    let one = |name: &str, ending: &str| {
        let text = format!("\u{feff}{SEPARATOR}{}\n", mail(name));
        text.replace('\n', ending)
    };
    for ending in ["\n", "\r\n"] {
        let folder = Folder::new();
        let all = ["one", "two", "three"]
            .map(|name| one(name, ending))
            .concat();
        folder.write("box", &all);
        folder.run("convert box --output same");
        assert!(folder.read("same") == all);
        let said = folder.run("convert --output-format maildir box --output md");
        assert!(said.contains("3 messages read"), "{said}");
        let expected = ["one", "two", "three"].map(|name| mail(name).replace('\n', ending));
        let found = messages(&folder.at("md"));
        assert!(
            found
                .iter()
                .map(Vec::as_slice)
                .eq(expected.iter().map(String::as_bytes))
        );
        folder.run("compare box md");
        folder.run("convert --embed data --in-place box");
        let filled = folder.read("box");
        assert_eq!(filled.matches('\u{feff}').count(), 3);
        assert_eq!(filled.matches("cid:").count(), 3);
        let zipped = ["one", "two"].map(|name| one(name, ending));
        folder.write(
            "a.zip",
            zip(&[("a", zipped[0].as_bytes()), ("b", zipped[1].as_bytes())]),
        );
        folder.run("convert --output-format maildir a.zip --output zipped");
        assert_eq!(messages(&folder.at("zipped")).len(), 2);
    }
}

#[test]
fn text_that_looks_like_a_marked_separator_stays_in_its_message() {
    let folder = Folder::new();
    let text = format!(
        "{}\u{feff}{SEPARATOR}Subject: in the text\n\nmore\n",
        mail("one")
    );
    folder.write("md/cur/1.1.h:2,S", &text);
    folder.write("md/new/.keep", "");
    folder.run("convert --output-format mbox md --output box");
    folder.run("convert --output-format maildir box --output again");
    let again = String::from_utf8(message(&folder.at("again"))).unwrap();
    assert_eq!(again.replace("Status: RO\n", ""), text);
    folder.run("compare md box");
    folder.run("compare box again");
}

#[test]
fn mbox_behind_a_banner_is_refused_by_name() {
    let folder = Folder::new();
    let text = format!("HTTP/1.1 200 OK\nServer: x\n\n{SEPARATOR}{}\n", mail("one"));
    folder.write("box", text);
    let output = embody_in(folder.path(), &["convert", "box", "--output", "out"]);
    let said = done(&output, output.status.code().unwrap());
    assert_ne!(output.status.code(), Some(0));
    assert!(said.contains("lines before the first"), "{said}");
}
