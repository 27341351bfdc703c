//! Flags and keywords on their way through all formats, deleted messages, and the message with the state of UW IMAP.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::common::programs::{done, embody_in, has_python, program, stderr};

/// Returns the standard output of a successful run.
fn printed(output: &Output) -> String {
    done(output, 0);
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn convert(folder: &Path, from: &str, format: &str, to: &str) -> String {
    let arguments = ["convert", from, "--output-format", format, "--output", to];
    let output = embody_in(folder, &arguments);
    done(&output, 0);
    stderr(&output)
}

/// Returns the part, the flag letters and the keywords of each message of a Maildir, sorted by the subject of the message.
fn state(maildir: &Path) -> Vec<(String, String)> {
    let names = fs::read_to_string(maildir.join("dovecot-keywords")).unwrap_or_default();
    let name_of = |letter: char| {
        let number = u32::from(letter) - u32::from('a');
        let line = names
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{number} ")));
        line.unwrap_or("?").to_owned()
    };
    let mut found = Vec::new();
    for part in ["cur", "new"] {
        for entry in fs::read_dir(maildir.join(part)).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let subject = text
                .lines()
                .find_map(|line| line.strip_prefix("Subject: "))
                .unwrap()
                .to_owned();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let letters = name.split_once(":2,").map_or("", |(_, letters)| letters);
            let mut keywords: Vec<String> = letters
                .chars()
                .filter(char::is_ascii_lowercase)
                .map(name_of)
                .collect();
            // The flag P is the same as this keyword.
            keywords.retain(|name| name != "$Forwarded");
            keywords.sort();
            let flags: String = letters.chars().filter(char::is_ascii_uppercase).collect();
            found.push((subject, format!("{part} {flags} {}", keywords.join(" "))));
        }
    }
    found.sort();
    found
}

/// Writes a Maildir with all kinds of flags and keywords.
fn maildir(at: &Path) {
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(at.join("md").join(part)).unwrap();
    }
    fs::write(
        at.join("md/dovecot-keywords"),
        "0 $MDNSent\n1 Work\n2 $label1\n",
    )
    .unwrap();
    for (number, letters) in [
        "",
        "S",
        "FS",
        "RS",
        "PS",
        "DS",
        "ST",
        "DFPRSTabc",
        "Sb",
        "c",
    ]
    .iter()
    .enumerate()
    {
        let name = format!("md/cur/17000000{number:02}.M1P2.host:2,{letters}");
        fs::write(at.join(name), format!("Subject: {number}\n\ntext\n")).unwrap();
    }
}

/// A mail with all kinds of flags and keywords goes around the circle of six formats and comes back with all of them, or the
/// format's page says what it cannot hold and the run names it.
#[test]
fn flags_and_keywords_survive_the_circle_of_formats_or_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    maildir(at);
    let expected = state(&at.join("md"));
    for formats in [
        &["mboxrd", "mh", "thunderbird", "mboxcl2", "mh", "mboxo"][..],
        &["thunderbird", "mboxrd", "mh"],
        &["mh", "mh", "mboxo"],
    ] {
        let mut from = "md".to_owned();
        for (number, format) in formats.iter().enumerate() {
            let to = format!("{from}-{number}{format}");
            let said = convert(at, &from, format, &to);
            assert!(!said.contains("not kept"), "{to}: {said}");
            from = to;
        }
        let back = format!("{from}-back");
        let said = convert(at, &from, "maildir", &back);
        assert!(!said.contains("not kept"), "{said}");
        let found = if at.join(&back).join("cur").is_dir() {
            at.join(&back)
        } else {
            // The result for Thunderbird is a directory of folders.
            let entries = fs::read_dir(at.join(&back)).unwrap();
            entries
                .map(|it| it.unwrap().path())
                .find(|it| it.join("cur").is_dir())
                .unwrap()
        };
        assert_eq!(state(&found), expected, "{formats:?}");
    }
    let said = convert(at, "md", "eml", "files");
    for what in [
        "flag read",
        "flag flagged",
        "flag replied",
        "flag forwarded",
        "flag draft",
        "flag deleted",
        "keyword Work",
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
}

#[test]
fn keyword_that_no_sequence_can_store_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mail = "From a@x.example Mon Jun 10 06:13:20 2024\nSubject: x\nStatus: RO\nX-Keywords: cur a:b fine\n\ntext\n\n";
    fs::write(at.join("in.mbox"), mail).unwrap();
    let said = convert(at, "in.mbox", "mh", "mh");
    assert!(
        said.contains("keyword cur")
            && said.contains("keyword a:b")
            && !said.contains("keyword fine"),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(at.join("mh/.mh_sequences")).unwrap(),
        "unseen:\nfine: 1\n"
    );
    assert!(at.join("mh/1").is_file());
}

#[test]
fn python_reads_the_sequences_of_a_new_mh_folder() {
    let test = "python_reads_the_sequences_of_a_new_mh_folder";
    if !has_python(test, "mailbox", "python3") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    maildir(at);
    convert(at, "md", "mh", "mh");
    let code = "import mailbox, sys\nb = mailbox.MH(sys.argv[1], create=False)\nprint(len(b), sorted((k, sorted(v)) for k, v in b.get_sequences().items()))";
    let output = std::process::Command::new(program("python3").unwrap())
        .args(["-c", code])
        .arg(at.join("mh"))
        .output()
        .unwrap();
    let text = printed(&output);
    assert_eq!(
        text.trim(),
        "10 [('$MDNSent', [8]), ('$label1', [8, 10]), ('Work', [8, 9]), ('deleted', [7, 8]), ('draft', [6, 8]), ('flagged', [3, 8]), ('forwarded', [5, 8]), ('replied', [4, 8]), ('unseen', [1, 10])]"
    );
}

/// A mailbox of Thunderbird with a deleted message, which is still in the file.
const THUNDERBIRD: &str = "From - Mon Jun 10 06:13:20 2024\nX-Mozilla-Status: 0001\nX-Mozilla-Status2: 00000000\nSubject: kept\n\ntext\n\nFrom - Mon Jun 10 06:13:21 2024\nX-Mozilla-Status: 0009\nX-Mozilla-Status2: 00000000\nSubject: deleted\n\ntext\n\n";

#[test]
fn deleted_messages_are_left_out_only_with_skip_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("Inbox"), THUNDERBIRD).unwrap();
    for (number, format) in ["auto", "mboxrd", "maildir", "eml", "mh"]
        .iter()
        .enumerate()
    {
        let to = format!("out{number}");
        let output = embody_in(
            at,
            &[
                "convert",
                "Inbox",
                "--skip-deleted",
                "--output-format",
                format,
                "--output",
                &to,
            ],
        );
        done(&output, 0);
        assert!(
            stderr(&output).contains("1 message is marked as deleted and was left out"),
            "{format} {}",
            stderr(&output)
        );
        let listed = embody_in(at, &["inspect", "--messages", &to]);
        let text = printed(&listed);
        assert!(
            text.contains("Subject: kept") && !text.contains("Subject: deleted"),
            "{format} {text}"
        );
    }
    done(
        &embody_in(at, &["convert", "-q", "Inbox", "--output", "same"]),
        0,
    );
    assert_eq!(fs::read_to_string(at.join("same")).unwrap(), THUNDERBIRD);
    let refused = embody_in(at, &["convert", "Inbox", "--skip-deleted", "--in-place"]);
    done(&refused, 2);
}

const UW_IMAP: &str = "From MAILER-DAEMON Mon Jun 10 06:13:20 2024\nDate: 10 Jun 2024 06:13:20 +0000\nFrom: Mail System Internal Data <MAILER-DAEMON@x.example>\nSubject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA\nMessage-ID: <1718000000@x.example>\nX-IMAP: 1718000000 0000000002 Work\nStatus: RO\n\nThis text is part of the internal format of your mail folder, and is not\na real message.\n\n";

#[test]
fn state_of_uw_imap_is_not_converted_and_compare_ignores_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mail =
        "From a@x.example Mon Jun 10 06:13:21 2024\nFrom: a@x.example\nSubject: mail\n\ntext\n\n";
    fs::write(at.join("in.mbox"), format!("{UW_IMAP}{mail}")).unwrap();
    for format in ["maildir", "mboxrd", "eml", "mh", "thunderbird"] {
        let said = convert(at, "in.mbox", format, format);
        assert!(
            said.contains("1 message is not mail, but the state"),
            "{format} {said}"
        );
        if format != "thunderbird" {
            done(&embody_in(at, &["compare", "in.mbox", format]), 0);
            let text = printed(&embody_in(at, &["inspect", "--messages", format]));
            assert!(
                text.contains("Subject: mail") && !text.contains("FOLDER INTERNAL"),
                "{text}"
            );
        }
    }
    done(
        &embody_in(at, &["convert", "-q", "in.mbox", "--output", "same.mbox"]),
        0,
    );
    assert_eq!(
        fs::read_to_string(at.join("same.mbox")).unwrap(),
        format!("{UW_IMAP}{mail}")
    );
    done(&embody_in(at, &["compare", "in.mbox", "same.mbox"]), 0);
    // Not the first message, or a bounce with the field of the mailbox: these are mail.
    let bounce = UW_IMAP
        .replace(
            "DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA",
            "Undelivered Mail",
        )
        .replace("This text", "> This text");
    for (name, text, count) in [
        ("second", format!("{mail}{UW_IMAP}"), 2),
        ("bounce", format!("{bounce}{mail}"), 2),
    ] {
        fs::write(at.join(name), text).unwrap();
        let to = format!("{name}-eml");
        convert(at, name, "eml", &to);
        assert_eq!(fs::read_dir(at.join(&to)).unwrap().count(), count, "{name}");
        done(&embody_in(at, &["compare", name, &to]), 0);
    }
}
