//! `embody compare` proves each change by making it again, and checks flags, keywords and numbers of messages.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use md5::{Digest as _, Md5};
use serde_json::Value;

use crate::common::folder::Folder;
use crate::common::programs::embody;
use crate::common::reports;

const FROM: &str = "From a@example.org Sat Jan  3 01:05:34 2015\n";

const HEADER: &str = "From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: plan\nDate: Mon, 2 Jan 2023 10:00:00 +0000\n\
    Message-ID: <1@example.org>\nMIME-Version: 1.0\n";

/// Runs `compare --json`, and returns the exit status and the lines.
fn compared(folder: &Folder, options: &str, old: &str, new: &str) -> (i32, Vec<Value>) {
    let output = embody()
        .current_dir(folder.path())
        .args(["compare", "--json"])
        .args(options.split_whitespace())
        .args([old, new])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(reports::object);
    (output.status.code().unwrap(), lines.collect())
}

/// Asserts that the comparison finds nothing, and returns its counts.
#[track_caller]
fn assert_whole(folder: &Folder, options: &str, old: &str, new: &str) -> Value {
    let (status, lines) = compared(folder, options, old, new);
    assert_eq!((status, lines.len()), (0, 1), "{old} {new}: {lines:#?}");
    counts(&lines)
}

/// Asserts that the comparison names one message, and returns the detail.
#[track_caller]
fn assert_named(folder: &Folder, outcome: &str, old: &str, new: &str) -> String {
    let (status, lines) = compared(folder, "", old, new);
    assert_eq!((status, lines.len()), (1, 2), "{old} {new}: {lines:#?}");
    counts(&lines);
    assert_eq!(lines[0]["outcome"], outcome, "{lines:#?}");
    lines[0]["detail"].as_str().unwrap_or_default().to_owned()
}

/// Returns the counts, which must add up.
#[track_caller]
fn counts(lines: &[Value]) -> Value {
    let counts = lines.last().unwrap()["compare"].clone();
    let of = |name: &str| counts[name].as_u64().unwrap();
    let sum = of("identical") + of("changed") + of("altered") + of("missing");
    assert_eq!(of("old"), sum, "{counts}");
    counts
}

fn base64(bytes: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(76)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    lines.join("\n")
}

const GIF: &[u8] =
    b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// Returns a mail with a picture in a `data:` URL, preformatted text and an attachment.
fn letter() -> String {
    let picture = base64(GIF).replace('\n', "");
    format!(
        "{HEADER}Content-Type: multipart/mixed; boundary=AAA\n\n--AAA\nContent-Type: multipart/alternative; boundary=BBB\n\n\
         --BBB\nContent-Type: text/plain\n\nplain\n\n--BBB\nContent-Type: text/html; charset=utf-8\nContent-Language: en\n\n\
         <pre>one\n  two</pre><img src=\"data:image/gif;base64,{picture}\">\n\n--BBB--\n\n--AAA\nContent-Type: application/octet-stream; name=a.bin\n\
         Content-Disposition: attachment; filename=a.bin\nContent-Transfer-Encoding: base64\n\n{}\n--AAA--\n",
        base64(&[7; 3000])
    )
}

fn maildir(folder: &Folder, name: &str, message: &str, mail: &str) {
    fs::create_dir_all(folder.at(name).join("cur")).unwrap();
    fs::create_dir_all(folder.at(name).join("new")).unwrap();
    fs::create_dir_all(folder.at(name).join("tmp")).unwrap();
    fs::write(folder.at(name).join("cur").join(message), mail).unwrap();
}

#[test]
fn each_change_of_an_embedded_and_detached_mail_is_named_with_its_place() {
    let folder = Folder::new();
    folder.write("old.eml", letter());
    folder.run("embed old.eml --output embedded.eml");
    folder.run("detach --store store --larger-than 1k embedded.eml --output new.eml");
    assert_whole(&folder, "", "old.eml", "embedded.eml");
    assert_whole(&folder, "", "old.eml", "new.eml");
    folder.run("restore --store store new.eml --output back.eml");
    assert_whole(&folder, "", "new.eml", "back.eml");
    assert_whole(&folder, "", "old.eml", "back.eml");
    let new = folder.read("new.eml");
    for (from, to, place) in [
        ("one\n  two", "one\ntwo", "line"),
        ("Content-Language: en\n", "", "Content-Language"),
        ("multipart/mixed", "multipart/alternative", "Content-Type"),
        ("multipart/alternative", "multipart/mixed", "Content-Type"),
        ("image/gif", "text/html", "Content-Type"),
        ("name=a.bin", "name=b.bin", "Content-Type"),
        ("line=76", "line=60", "X-Embody-Detached"),
        ("size=3000", "size=9000", "Content-Type"),
        ("MIME-Version: 1.0\n", "", "MIME-Version"),
        ("R0lGOD", "R0lGOE", ""),
        ("src=\"cid:", "src=\"cid:0", "line"),
        ("Subject: plan", "Subject: plane", "Subject"),
        ("\nplain\n", "\nplain\n\n", ""),
    ] {
        let changed = new.replacen(from, to, 1);
        assert_ne!(changed, new, "{from}");
        folder.write("changed.eml", changed);
        let detail = assert_named(&folder, "altered", "old.eml", "changed.eml");
        assert!(detail.contains(place), "{from}: {detail}");
    }
}

#[test]
fn flags_and_keywords_of_changed_mail_are_compared() {
    let folder = Folder::new();
    maildir(&folder, "old", "1.a.host:2,FRSa", &letter());
    fs::write(folder.at("old/dovecot-keywords"), "0 $Work\n").unwrap();
    folder.run("embed old --output new");
    assert_whole(&folder, "", "old", "new");
    let renamed = |name: &str| {
        let cur = folder.at("new/cur");
        let file = fs::read_dir(&cur).unwrap().next().unwrap().unwrap().path();
        fs::rename(file, cur.join(name)).unwrap();
    };
    renamed("1.a.host:2,Sa");
    let detail = assert_named(&folder, "lost-flags", "old", "new");
    assert_eq!(detail, "replied, flagged");
    renamed("1.a.host:2,FRS");
    let detail = assert_named(&folder, "lost-flags", "old", "new");
    assert_eq!(detail, "keyword $Work");
    // A format that cannot store flags has lost nothing that it could have.
    folder.run("embed old --output single --output-format eml");
    let file = fs::read_dir(folder.at("single"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let name = Path::new("single").join(file.file_name());
    assert_whole(&folder, "", "old", &name.display().to_string());
}

#[test]
fn flags_in_files_next_to_the_messages_are_compared() {
    let folder = Folder::new();
    let mh = |name: &str, sequences: &str| {
        folder.write(&format!("{name}/1"), letter());
        folder.write(&format!("{name}/.mh_sequences"), sequences);
    };
    mh("mh", "unseen:\nflagged: 1\nwork: 1\n");
    mh("mh-less", "unseen:\nwork: 1\n");
    mh("mh-unread", "unseen: 1\nflagged: 1\nwork: 1\n");
    assert_eq!(
        assert_named(&folder, "lost-flags", "mh", "mh-less"),
        "flagged"
    );
    assert_eq!(
        assert_named(&folder, "lost-flags", "mh", "mh-unread"),
        "read"
    );
    folder.run("convert mh --output of-mh --output-format maildir");
    assert_whole(&folder, "", "mh", "of-mh");
    let apple = |name: &str, flags: u32| {
        let list = format!(
            "<?xml version=\"1.0\"?><plist><dict><key>flags</key><integer>{flags}</integer></dict></plist>\n"
        );
        let mail = letter();
        let path = format!("{name}/INBOX.mbox/Messages/1.emlx");
        folder.write(&path, format!("{}\n{mail}{list}", mail.len()));
    };
    apple("apple", 1 | 4 | 16);
    apple("apple-less", 1 | 4);
    assert_eq!(
        assert_named(&folder, "lost-flags", "apple", "apple-less"),
        "flagged"
    );
    folder.run("convert apple --output of-apple --output-format maildir");
    assert_whole(&folder, "", "apple", "of-apple");
    let backup = |name: &str, flags: &str| {
        let mbox = format!("{FROM}{}", letter());
        let index = format!(
            "{{\"version\":3,\"uid_validity\":1,\"messages\":[{{\"uid\":1,\"offset\":0,\"length\":{},\"flags\":[{flags}]}}]}}",
            mbox.len()
        );
        folder.write(&format!("{name}/INBOX.mbox"), mbox);
        folder.write(&format!("{name}/INBOX.imap"), index);
    };
    backup("backup", "\"Seen\",\"Answered\"");
    backup("backup-less", "\"Seen\"");
    assert_eq!(
        assert_named(&folder, "lost-flags", "backup", "backup-less"),
        "replied"
    );
    // A letter without a name in `dovecot-keywords` is a keyword, too.
    maildir(&folder, "letter", "1.a.host:2,Sa", &letter());
    maildir(&folder, "letterless", "1.a.host:2,S", &letter());
    assert_eq!(
        assert_named(&folder, "lost-flags", "letter", "letterless"),
        "keyword letter-a"
    );
    // A copy in a format without flags does not excuse the other one.
    maildir(&folder, "flagged", "1.a.host:2,FS", &letter());
    maildir(&folder, "mixed/a", "1.a.host:2,S", &letter());
    folder.write("mixed/copy.eml", letter());
    assert_eq!(
        assert_named(&folder, "lost-flags", "flagged", "mixed"),
        "flagged"
    );
}

#[test]
fn text_that_looks_like_a_field_of_a_mailbox_is_compared() {
    let folder = Folder::new();
    let text = "Hello,\nStatus: all of it is broken\nFrom tomorrow on it costs 5\nLines: none\n";
    for end in ["", "\nmore\n"] {
        let old = format!("{HEADER}{text}{end}");
        folder.write("old.eml", &old);
        for line in text.lines().skip(1) {
            folder.write("new.eml", old.replace(&format!("{line}\n"), ""));
            assert_named(&folder, "altered", "old.eml", "new.eml");
        }
    }
}

#[test]
fn temporary_file_has_no_content_of_single_messages() {
    let folder = Folder::new();
    let mail = letter().replace("\nplain\n", &"a line of text\n".repeat(10_000));
    maildir(&folder, "old", "1.a.host:2,S", &mail);
    folder.run("embed old --output new");
    let counts = assert_whole(&folder, "", "old", "new");
    assert_eq!(counts["changed"], 1);
    assert!(counts["temporary"].as_u64().unwrap() < 1000, "{counts}");
}

/// The names of some file systems are in an old charset.
#[cfg(target_os = "linux")]
#[test]
fn changed_mail_in_a_directory_whose_name_is_not_utf_8_is_found() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let folder = Folder::new();
    let old = folder.path().join(OsStr::from_bytes(b"caf\xe9"));
    for (part, name, mail) in [
        ("box", "in.mbox", format!("{FROM}{}\n", letter())),
        ("md/cur", "1.a.host:2,S", letter().replace("<1@", "<2@")),
    ] {
        fs::create_dir_all(old.join(part)).unwrap();
        fs::write(old.join(part).join(name), mail).unwrap();
    }
    for part in ["md/new", "md/tmp"] {
        fs::create_dir_all(old.join(part)).unwrap();
    }
    let run = |arguments: &[&OsStr]| {
        let output = embody()
            .current_dir(folder.path())
            .args(arguments)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{printed}");
        printed
    };
    let text = OsStr::new;
    run(&[
        text("embed"),
        old.as_os_str(),
        text("--output"),
        text("new"),
    ]);
    let printed = run(&[text("compare"), old.as_os_str(), text("new")]);
    assert!(
        printed.contains("2 with changes that embody makes"),
        "{printed}"
    );
}

#[test]
fn deleted_mark_may_be_lost_only_in_a_merged_mailbox() {
    let folder = Folder::new();
    maildir(&folder, "a", "1.a.host:2,ST", &letter());
    maildir(&folder, "b", "1.b.host:2,S", &letter());
    folder.run("merge a b --flat --output both");
    assert_whole(&folder, "--merged", "a", "both");
    assert_whole(&folder, "--merged", "b", "both");
    assert_eq!(assert_named(&folder, "lost-flags", "a", "both"), "deleted");
}

#[test]
fn labels_of_each_copy_must_be_in_a_merged_mailbox() {
    let folder = Folder::new();
    let with = |labels: &str| format!("{FROM}{labels}{}\n", letter());
    for field in ["X-Gmail-Labels", "X-Label"] {
        folder.write(
            "work.mbox",
            with(&format!("{field}: Work,=?UTF-8?Q?Bo=C3=AEte?=\n")),
        );
        folder.write("play.mbox", with(&format!("{field}: Play\n")));
        folder.write("none.mbox", with(""));
        folder.run("merge work.mbox play.mbox none.mbox --output all.mbox");
        for old in ["work.mbox", "play.mbox", "none.mbox"] {
            assert_whole(&folder, "--merged", old, "all.mbox");
        }
        for (old, new, labels) in [
            ("work.mbox", "play.mbox", "label Work, label Boîte"),
            ("play.mbox", "none.mbox", "label Play"),
        ] {
            let (status, lines) = compared(&folder, "--merged", old, new);
            assert_eq!(status, 1, "{field}: {lines:#?}");
            counts(&lines);
            assert_eq!(lines[0]["outcome"], "lost-flags", "{lines:#?}");
            assert_eq!(lines[0]["detail"], labels, "{lines:#?}");
        }
        fs::remove_file(folder.at("all.mbox")).unwrap();
    }
}

#[test]
fn two_copies_of_a_mail_need_two_messages() {
    let folder = Folder::new();
    let reference = format!(
        "{HEADER}Content-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n--b\nContent-Type: message/external-body; access-type=URL;\n URL=\"data:text/plain,note\"\n\nContent-Type: text/plain\n\n--b--\n"
    );
    folder.write("open.eml", &reference);
    folder.run("convert open.eml --output whole.eml");
    let whole = folder.read("whole.eml");
    folder.write("old.mbox", format!("{FROM}{reference}\n{FROM}{whole}\n"));
    folder.run("convert old.mbox --output new.mbox");
    let counts = assert_whole(&folder, "", "old.mbox", "new.mbox");
    assert_eq!(
        (counts["identical"].as_u64(), counts["changed"].as_u64()),
        (Some(1), Some(1))
    );
    folder.write("less.mbox", format!("{FROM}{whole}\n"));
    let (status, lines) = compared(&folder, "", "old.mbox", "less.mbox");
    assert_eq!((status, lines.len()), (1, 2), "{lines:#?}");
    counts_of(&lines);
}

fn counts_of(lines: &[Value]) {
    assert_eq!(counts(lines)["identical"], 1, "{lines:#?}");
}

#[test]
fn changes_are_proved_after_conversion_to_each_format_and_back() {
    let folder = Folder::new();
    let quoted = letter().replace("\nplain\n", "\n>From here\n>>From there\n");
    folder.write(
        "old.mbox",
        format!("{FROM}{quoted}\n{FROM}{}\n", letter().replace("<1@", "<2@")),
    );
    folder.run("embed old.mbox --output embedded.mbox");
    folder.run("convert old.mbox --output zipped.mbox.gz --links keep --follow none");
    for (format, end) in [
        ("mbox", ""),
        ("mbox", ".gz"),
        ("mbox", ".zst"),
        ("maildir", ""),
        ("eml", ""),
        ("thunderbird", ""),
    ] {
        let there = format!("there-{format}{end}");
        let (back, less) = (
            format!("back-{format}{end}"),
            format!("less-{format}{end}-md"),
        );
        folder.run(&format!(
            "convert embedded.mbox --output-format {format} --output {there}"
        ));
        assert_whole(&folder, "", "old.mbox", &there);
        assert_whole(&folder, "", "zipped.mbox.gz", &there);
        folder.run(&format!(
            "convert {there} --output-format mbox --output {back}"
        ));
        assert_whole(&folder, "", "old.mbox", &back);
        folder.run(&format!(
            "detach --store store --larger-than 1k {there} --output-format maildir --output {less}"
        ));
        assert_whole(&folder, "", "old.mbox", &less);
        assert_whole(&folder, "--merged", "old.mbox", &less);
    }
}

#[test]
fn text_without_a_header_is_found_in_each_format_and_after_the_way_back() {
    let folder = Folder::new();
    for text in [
        "Hello text\nmore\n",
        "Hello\n\nmore\n",
        "\nHello\n",
        "\r\nHello\r\n",
        "\n\nFrom x\n",
        "Subject: a\nText without an empty line\n",
    ] {
        folder.write("old.eml", text);
        for format in ["mboxrd", "mboxo", "mboxcl2", "maildir", "mh", "thunderbird"] {
            for made in ["there", "back"] {
                let _ = fs::remove_dir_all(folder.at(made));
                let _ = fs::remove_file(folder.at(made));
            }
            folder.run(&format!(
                "convert old.eml --output-format {format} --output there"
            ));
            assert_whole(&folder, "", "old.eml", "there");
            folder.run("convert there --output-format eml --output back");
            assert_whole(&folder, "", "old.eml", "back");
        }
    }
    // The empty line makes a text of the field.
    folder.write("header.eml", "Subject: text\n\nx\n");
    folder.write("text.eml", "\nSubject: text\n\nx\n");
    assert_eq!(compared(&folder, "", "header.eml", "text.eml").0, 1);
}

#[test]
fn message_without_id_or_of_no_bytes_is_found() {
    let folder = Folder::new();
    let without_id = letter().replace("Message-ID: <1@example.org>\n", "");
    folder.write(
        "old.mbox",
        format!("{FROM}{without_id}\n{FROM}\n{FROM}{}\n", letter()),
    );
    folder.run("embed old.mbox --output new --output-format maildir");
    assert_whole(&folder, "", "old.mbox", "new");
}

#[test]
fn message_that_two_copies_can_become_counts_for_the_one_without_another_result() {
    let folder = Folder::new();
    let picture = base64(GIF).replace('\n', "");
    let copy = format!(
        "{HEADER}Content-Type: text/html; charset=utf-8\n\n<base href=\"https://example.org/a/\"><a href=\"b.html\">x</a>\
         <img src=\"data:image/gif;base64,{picture}\">\n"
    );
    folder.write("a.eml", &copy);
    folder.run("convert a.eml --output b.eml");
    folder.run("convert --embed data --links keep a.eml --output kept.eml");
    folder.run("convert --embed data b.eml --output resolved.eml");
    let mbox = |names: [&str; 2]| {
        let mails = names.map(|name| format!("{FROM}{}\n", folder.read(name)));
        mails.concat()
    };
    folder.write("old.mbox", mbox(["a.eml", "b.eml"]));
    for new in [["resolved.eml", "kept.eml"], ["kept.eml", "resolved.eml"]] {
        folder.write("new.mbox", mbox(new));
        let counts = assert_whole(&folder, "", "old.mbox", "new.mbox");
        assert_eq!(counts["changed"], 2, "{counts}");
        assert!(counts["temporary"].as_u64().unwrap() > 100, "{counts}");
    }
    // Only the copy with relative links can have become this message.
    folder.write("new.mbox", mbox(["kept.eml", "kept.eml"]));
    let (status, lines) = compared(&folder, "", "old.mbox", "new.mbox");
    assert_eq!(status, 1);
    assert_eq!(counts(&lines)["changed"], 1, "{lines:#?}");
}

/// Returns an mbox of messages with one Message-ID, and with a picture in a `data:` URL.
fn crowd(numbers: impl Iterator<Item = usize>, text: impl Fn(usize) -> String) -> String {
    let picture = base64(GIF).replace('\n', "");
    let message = |number| {
        let text = text(number);
        format!(
            "{FROM}{HEADER}Content-Type: text/html\n\n<p>{text}<img src=\"data:image/gif;base64,{picture}\">\n\n"
        )
    };
    numbers.map(message).collect()
}

#[test]
fn many_changed_messages_with_one_message_id_are_found_in_each_run() {
    let folder = Folder::new();
    let count = 60;
    // Without `is_distinct`, two messages each are identical, and nothing shows from which of them a message of NEW was made.
    for is_distinct in [true, false] {
        let text = |number: usize| format!("no. {}", if is_distinct { number } else { number / 2 });
        let (old, new) = (
            format!("{is_distinct}.mbox"),
            format!("{is_distinct}-new.mbox"),
        );
        folder.write(&old, crowd(0..count, text));
        folder.run(&format!("convert --embed data {old} --output {new}"));
        for options in ["", "", "--merged"] {
            let counts = assert_whole(&folder, options, &old, &new);
            assert_eq!(counts["changed"], count, "{counts}");
        }
        // Additional messages of NEW change nothing, and messages that were lost are named.
        let made = folder.read(&new);
        let mut messages: Vec<&str> = made.split(FROM).skip(1).collect();
        messages.drain(20..35);
        let others = crowd(0..20, |number| format!("other {number}"));
        let fewer: String = messages.iter().map(|it| format!("{FROM}{it}")).collect();
        folder.write("fewer.mbox", others + &fewer);
        let (status, lines) = compared(&folder, "", &old, "fewer.mbox");
        assert_eq!((status, lines.len()), (1, 16), "{:?}", lines.last());
        assert_eq!(counts(&lines)["altered"], 15);
        let indexes = lines.iter().filter_map(|line| line["index"].as_u64());
        assert_eq!(indexes.collect::<Vec<_>>(), (21..36).collect::<Vec<_>>());
    }
}

#[test]
fn many_altered_messages_with_one_message_id_are_not_called_missing() {
    let folder = Folder::new();
    folder.write("old.mbox", crowd(0..50, |number| format!("old {number}")));
    folder.write("new.mbox", crowd(0..40, |number| format!("new {number}")));
    let (status, lines) = compared(&folder, "", "old.mbox", "new.mbox");
    assert_eq!((status, lines.len()), (1, 51));
    let counts = counts(&lines);
    assert_eq!(
        (&counts["altered"], &counts["missing"]),
        (&50.into(), &0.into())
    );
}

/// Returns a part that refers to content, and the part that a run writes in its place.
fn reference(access: &str, fields: &str, content: &str) -> (String, String) {
    let fields = format!("Content-Type: text/plain\n{fields}");
    let location = access
        .split_once("URL=\"http")
        .map_or_else(String::new, |(_, rest)| {
            let url = rest.trim_end_matches('"');
            format!("Content-Location: http{url}\n")
        });
    (
        format!("Content-Type: message/external-body;\n access-type={access}\n\n{fields}\n"),
        format!("{fields}Content-Transfer-Encoding: 7bit\n{location}\n{content}"),
    )
}

/// Returns a multipart with these parts.
fn multipart<'p>(subtype: &str, boundary: &str, parts: impl Iterator<Item = &'p str>) -> String {
    let parts: String = parts
        .map(|part| format!("--{boundary}\n{part}\n"))
        .collect();
    format!("Content-Type: multipart/{subtype}; boundary=\"{boundary}\"\n\n{parts}--{boundary}--\n")
}

#[test]
fn text_with_a_digest_is_proved_after_its_line_endings_were_converted() {
    // MD5 of "--b" and LF: the server stores the text with LF, and the mail has CRLF.
    let digest = "Content-MD5: YDtZBf+IlODlu2kEntn1bg==\n";
    let (old, new) = reference("URL; URL=\"http://example.org/b.txt\"", digest, "--b\n");
    let folder = Folder::new();
    for (name, part) in [("old.eml", &old), ("new.eml", &new)] {
        let mail = format!("{HEADER}{}", multipart("mixed", "A", [&**part].into_iter()));
        fs::write(folder.path().join(name), mail.replace('\n', "\r\n")).unwrap();
    }
    assert_eq!(
        assert_whole(&folder, "", "old.eml", "new.eml")["changed"],
        1
    );
    let other = fs::read_to_string(folder.path().join("new.eml")).unwrap();
    fs::write(
        folder.path().join("other.eml"),
        other.replace("--b\r\n\r\n", "--c\r\n\r\n"),
    )
    .unwrap();
    assert_named(&folder, "altered", "old.eml", "other.eml");
}

#[test]
fn text_with_lf_and_crlf_and_a_digest_is_proved_if_its_line_endings_change_once() {
    let folder = Folder::new();
    for (stored, is_proved) in [
        ("one\r\ntwo\r\n\nthree\n", true),
        ("one\ntwo\r\nthree\r\n", true),
        ("one\ntwo\r\nthree\nfour\n", true),
        ("one\r\ntwo\nthree\r\nfour", true),
        ("one\r\ntwo\nthree\r\nfour\nfive\r\n", false),
    ] {
        let digest = format!("Content-MD5: {}\n", base64(&Md5::digest(stored)));
        let access = "URL; URL=\"http://example.org/b.txt\"";
        let bare = stored.replace('\r', "");
        let (old, new) = reference(access, &digest, &bare);
        for newline in ["\n", "\r\n"] {
            for (name, part) in [("old.eml", &old), ("new.eml", &new)] {
                let mail = format!("{HEADER}{}", multipart("mixed", "A", [&**part].into_iter()));
                folder.write(name, mail.replace('\n', newline));
            }
            let outcome = compared(&folder, "", "old.eml", "new.eml");
            assert_eq!(outcome.0 == 0, is_proved, "{stored:?}: {:#?}", outcome.1);
            let changed = folder.read("new.eml").replace("three", "thrice");
            folder.write("changed.eml", changed);
            assert_named(&folder, "altered", "old.eml", "changed.eml");
        }
    }
}

#[test]
fn decoded_data_url_is_not_taken_for_the_content_of_another_reference() {
    // The run decodes the data: URL, and uses one of two references with the same Content-ID.
    let id = |id: &str| format!("Content-ID: <{id}@example.org>\n");
    let file = "LOCAL-FILE; name=\"/srv/a.txt\"";
    let data = reference("URL; URL=\"data:,kept\"", &id("1"), "kept");
    let web = reference(
        "URL; URL=\"http://example.org/a.txt\"",
        &id("2"),
        "A text.\n",
    );
    let (left, _) = reference(file, &id("2"), "");
    let (kept, _) = reference(file, &id("3"), "");
    let mail = |first: &str, others: &[&str]| {
        let choices = [
            multipart("alternative", "B", [first].into_iter()),
            multipart("alternative", "C", others.iter().copied()),
        ];
        let parts = choices.iter().map(String::as_str);
        format!("{HEADER}{}", multipart("mixed", "A", parts))
    };
    let folder = Folder::new();
    fs::write(
        folder.path().join("old.eml"),
        mail(&data.0, &[&left, &web.0, &kept]),
    )
    .unwrap();
    fs::write(
        folder.path().join("new.eml"),
        mail(&data.1, &[&web.1, &kept]),
    )
    .unwrap();
    assert_eq!(
        assert_whole(&folder, "", "old.eml", "new.eml")["changed"],
        1
    );
}

#[test]
fn reference_that_no_run_filled_does_not_get_a_part_with_another_content_id() {
    // The server of both files redirected the second one, so the new part has another URL.
    let id = |id: &str| format!("Content-ID: <{id}@example.org>\n");
    let gone = reference("URL; URL=\"http://example.org/gone.txt\"", &id("1"), "").0;
    let (moved, _) = reference("URL; URL=\"http://example.org/a.txt\"", &id("2"), "");
    let (_, found) = reference(
        "URL; URL=\"http://example.org/b.txt\"",
        &id("2"),
        "A text.\n",
    );
    let data = reference("URL; URL=\"data:,kept\"", &id("1"), "kept");
    let mail = |choice: &[&str], other: &str| {
        let choice = multipart("alternative", "B", choice.iter().copied());
        format!(
            "{HEADER}{}",
            multipart("mixed", "A", [&*choice, other].into_iter())
        )
    };
    let folder = Folder::new();
    fs::write(
        folder.path().join("old.eml"),
        mail(&[&gone, &data.0], &moved),
    )
    .unwrap();
    fs::write(folder.path().join("new.eml"), mail(&[&data.1], &found)).unwrap();
    assert_eq!(
        assert_whole(&folder, "", "old.eml", "new.eml")["changed"],
        1
    );
}

#[test]
fn digest_of_a_text_decides_how_its_lines_were_stored() {
    // MD5 of "From here\nend\n".
    let digest = format!(
        "Content-MD5: {}\n",
        base64(&Md5::digest(b"From here\nend\n"))
    );
    let access = "URL; URL=\"http://example.org/b.txt\"";
    let (old, _) = reference(access, &digest, "");
    let (_, new) = reference(access, &digest, ">From here\nend\n");
    let folder = Folder::new();
    for (name, part) in [("old.mbox", &old), ("new.mbox", &new)] {
        let mail = format!(
            "{FROM}{HEADER}{}\n",
            multipart("mixed", "A", [&**part].into_iter())
        );
        fs::write(folder.path().join(name), mail).unwrap();
    }
    assert_eq!(
        assert_whole(&folder, "", "old.mbox", "new.mbox")["changed"],
        1
    );
}

#[test]
fn data_url_and_another_url_with_the_same_content_are_proved() {
    let web = reference("URL; URL=\"http://example.org/a.txt\"", "", "same");
    let data = reference("URL; URL=\"data:,same\"", "", "same");
    let folder = Folder::new();
    for (name, parts) in [
        ("old.eml", [&web.0, &data.0]),
        ("new.eml", [&web.1, &data.1]),
    ] {
        let parts = multipart("mixed", "A", parts.into_iter().map(String::as_str));
        fs::write(folder.path().join(name), format!("{HEADER}{parts}")).unwrap();
    }
    assert_eq!(
        assert_whole(&folder, "", "old.eml", "new.eml")["changed"],
        1
    );
}

#[test]
fn parts_that_recover_took_from_copies_are_proved() {
    let folder = Folder::new();
    let content = b"%PDF-1.4 a file of some bytes, and one more line of them\n\0\x01";
    let fields =
        "Content-Type: application/pdf;\n name=\"a.pdf\"\nContent-Transfer-Encoding: base64\n";
    let whole = format!("{fields}\n{}\n", base64(content));
    let mutt = format!(
        "Content-Type: message/external-body; access-type=x-mutt-deleted;\n expiration=\"Mon, 6 May 2024 10:00:00 +0200\"; length={}\n\n{fields}\n",
        content.len()
    );
    let thunderbird = format!(
        "Content-Type: text/x-moz-deleted; name=\"Deleted: a.pdf\"\nX-Mozilla-Altered: AttachmentDeleted; date=\"Mon May 06 10:00:00 2024\"\n\n\
         You deleted an attachment from this message. The original MIME headers for the attachment were:\n{fields}\n"
    );
    let mail = |part: &str| {
        let text = "Content-Type: text/plain\n\nhello\n";
        format!(
            "{HEADER}{}",
            multipart("mixed", "A", [text, part].into_iter())
        )
    };
    folder.write("whole.eml", mail(&whole));
    for (name, note) in [("mutt", mutt), ("thunderbird", thunderbird)] {
        let new = format!("{name}-new.eml");
        folder.write("old.eml", mail(&note));
        folder.run(&format!(
            "recover old.eml --copies whole.eml --offline --output {new}"
        ));
        let counts = assert_whole(&folder, "", "old.eml", &new);
        assert_eq!(
            (&counts["changed"], &counts["unchecked"]),
            (&1.into(), &1.into())
        );
        let text = folder.read(&new);
        for (from, to) in [
            ("a.pdf", "b.pdf"),
            ("application/pdf", "application/zip"),
            (
                "Content-Transfer-Encoding: base64\n",
                "Content-Transfer-Encoding: base64\nContent-Description: x\n",
            ),
            ("\nhello\n", "\nhallo\n"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{name}: {from}");
            folder.write("changed.eml", changed);
            assert_named(&folder, "altered", "old.eml", "changed.eml");
        }
    }
}

#[test]
fn copies_of_a_mail_with_different_flags_keep_them() {
    let folder = Folder::new();
    // With many copies, only some pairs are compared.
    for count in [2, 3, 20] {
        let (old, new, other) = (
            format!("old{count}"),
            format!("new{count}"),
            format!("other{count}"),
        );
        let flags = |number: usize| ["F", "R", ""][number.min(2)];
        for number in 0..count {
            let name = format!("{number:03}.a.host:2,{}", flags(number));
            maildir(&folder, &old, &name, &letter());
        }
        folder.run(&format!("embed {old} --output {new}"));
        assert_whole(&folder, "", &old, &new);
        let single = format!("single{count}");
        folder.run(&format!(
            "embed {old} --output {single} --output-format eml"
        ));
        let entry = fs::read_dir(folder.at(&single)).unwrap().next().unwrap();
        let mail = fs::read_to_string(entry.unwrap().path()).unwrap();
        // The same messages in another order.
        for number in 0..count.min(8) {
            let name = format!("{number:03}.a.host:2,{}", flags(count.min(8) - 1 - number));
            maildir(&folder, &other, &name, &mail);
        }
        if count <= 8 {
            assert_whole(&folder, "", &old, &other);
        }
    }
    // Two messages of NEW have the flags together.
    maildir(&folder, "one", "1.a.host:2,FR", &letter());
    folder.run("embed one --output made");
    let made = fs::read_dir(folder.at("made/cur"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let mail = fs::read_to_string(made.path()).unwrap();
    maildir(&folder, "both", "1.a.host:2,F", &mail);
    maildir(&folder, "both", "2.a.host:2,R", &mail);
    assert_whole(&folder, "", "one", "both");
    fs::remove_file(folder.at("both/cur/2.a.host:2,R")).unwrap();
    assert_eq!(
        assert_named(&folder, "lost-flags", "one", "both"),
        "replied"
    );
}
