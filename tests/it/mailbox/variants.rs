//! `--output-format mboxrd`, `mboxo` and `mboxcl2`: the same messages are read from each of them, by embody and by Python.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::common::mail::assert_bytes;
use crate::common::programs::{done, embody_in, has_python, program};

/// Bodies of mails. Some lines start with `From `, as in the archives of Mailman 2, which are not quoted.
const BODIES: [&str; 7] = [
    "text\n",
    "From here on\n>From an answer\n>>From an answer to it\nFrom: no such line\n From me\n",
    "text\n\nFrom anna at x.example  Mon Jun 10 06:13:20 2024\nno header follows\n",
    "",
    "\n\n",
    "From the first line\n",
    "the last line\nFrom  \n",
];

/// Returns a Maildir with the bodies, and the contents of its messages.
fn maildir() -> (TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(folder.path().join("md").join(part)).unwrap();
    }
    let mails: Vec<String> = BODIES
        .iter()
        .enumerate()
        .map(|(number, body)| {
            let newline = if number == 2 { "\r\n" } else { "\n" };
            let length = match number {
                1 => "Content-Length: 3\n",
                _ => "",
            };
            format!("Subject: {number}\nFrom: a@x.example\n{length}\n{body}").replace('\n', newline)
        })
        .collect();
    for (number, mail) in mails.iter().enumerate() {
        let name = format!("md/new/170000000{number}.M1P2.host");
        fs::write(folder.path().join(name), mail).unwrap();
    }
    (folder, mails)
}

fn convert(folder: &Path, from: &str, format: &str, to: &str) {
    let arguments = [
        "convert",
        "-q",
        from,
        "--output-format",
        format,
        "--output",
        to,
    ];
    done(&embody_in(folder, &arguments), 0);
}

/// Returns the messages of a mailbox, in order, without Content-Length.
fn messages(folder: &Path, from: &str) -> Vec<String> {
    let to = format!("{from}.eml-files");
    convert(folder, from, "eml", &to);
    let mut names: Vec<_> = fs::read_dir(folder.join(&to))
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    names.sort();
    let read = names.iter().map(|name| fs::read_to_string(name).unwrap());
    read.map(|text| {
        let (header, body) = text
            .split_once("\r\n\r\n")
            .or_else(|| text.split_once("\n\n"))
            .unwrap_or((&text, ""));
        let lines = header
            .lines()
            .filter(|line| !line.starts_with("Content-Length"));
        let header: Vec<&str> = lines.collect();
        format!("{}|{body}", header.join("|"))
    })
    .collect()
}

#[test]
fn messages_of_each_mbox_variant_are_read_back() {
    let (folder, mails) = maildir();
    let at = folder.path();
    let expected = messages(at, "md");
    assert_eq!(expected.len(), mails.len());
    for format in ["mboxrd", "mboxcl2", "mboxo"] {
        let name = format!("{format}.mbox");
        convert(at, "md", format, &name);
        let text = fs::read_to_string(at.join(&name)).unwrap();
        let found = messages(at, &name);
        let quoted = |text: &str| {
            text.replace(">From an", "From an")
                .replace(">From an", "From an")
        };
        if format == "mboxo" {
            // A `>` of the sender is not distinguished from one that was added.
            assert_eq!(
                found.iter().map(|it| quoted(it)).collect::<Vec<_>>(),
                expected.iter().map(|it| quoted(it)).collect::<Vec<_>>()
            );
        } else {
            assert_eq!(found, expected, "{format}");
        }
        let (rd, o) = (
            text.contains("\n>>From an answer\n"),
            text.contains("\n>From here on\n"),
        );
        let lengths = text.matches("Content-Length:").count();
        let is_right = match format {
            "mboxrd" => rd && o && lengths == 1,
            "mboxo" => !rd && o && lengths == 1,
            _ => !rd && !o && lengths == mails.len(),
        };
        assert!(is_right, "{format}\n{text}");
        done(&embody_in(at, &["compare", "-q", "md", &name]), 0);
        // The same variant, written again.
        let again = format!("again-{name}");
        convert(at, &name, format, &again);
        if format != "mboxo" {
            assert_bytes(&fs::read(at.join(again)).unwrap(), text.as_bytes(), format);
        }
    }
}

#[test]
fn python_counts_the_messages_of_a_clean_mbox() {
    let test = "python_counts_the_messages_of_a_clean_mbox";
    if !has_python(test, "mailbox", "python3") {
        return;
    }
    let (folder, mails) = maildir();
    let at = folder.path();
    // An archive of Mailman 2: lines in bodies that start with `From ` are not quoted.
    let list: String = mails
        .iter()
        .map(|mail| {
            format!(
                "From anna at x.example  Mon Jun 10 06:13:20 2024\n{}\n",
                mail.replace("\r\n", "\n")
            )
        })
        .collect();
    fs::write(at.join("list.mbox"), list).unwrap();
    let count = |name: &str| {
        let code = "import mailbox, sys\nprint(len(mailbox.mbox(sys.argv[1], create=False)))";
        let python = program("python3").unwrap();
        let output = std::process::Command::new(python)
            .args(["-c", code])
            .arg(at.join(name))
            .output()
            .unwrap();
        done(&output, 0);
        String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse::<usize>()
            .unwrap()
    };
    for format in ["mboxrd", "mboxo"] {
        convert(at, "md", format, format);
        assert_eq!(count(format), mails.len(), "{format}");
    }
    convert(at, "list.mbox", "mboxrd", "clean.mbox");
    assert!(count("list.mbox") > count("clean.mbox"));
    assert_eq!(count("clean.mbox"), messages(at, "list.mbox").len());
    done(
        &embody_in(at, &["compare", "-q", "list.mbox", "clean.mbox"]),
        0,
    );
}

#[test]
fn text_without_header_gets_one_in_mboxcl2() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(at.join("md").join(part)).unwrap();
    }
    fs::write(
        at.join("md/new/1700000001.M1P2.host"),
        "no header\nFrom here\n",
    )
    .unwrap();
    fs::write(
        at.join("md/new/1700000002.M1P2.host"),
        "Subject: only a header\n",
    )
    .unwrap();
    fs::write(
        at.join("md/new/1700000003.M1P2.host"),
        "Subject: x\n\nFrom there\n",
    )
    .unwrap();
    convert(at, "md", "mboxcl2", "out.mbox");
    let text = fs::read_to_string(at.join("out.mbox")).unwrap();
    assert!(
        text.contains("\nContent-Length: 20\n\nno header\nFrom here\n"),
        "{text}"
    );
    assert!(
        text.contains("\nSubject: only a header\nContent-Length: 0\n"),
        "{text}"
    );
    assert_eq!(messages(at, "out.mbox").len(), 3);
}

#[test]
fn merge_writes_the_variant_that_is_named() {
    let (folder, _) = maildir();
    let at = folder.path();
    for (format, line) in [
        ("mboxrd", "\n>>From an answer\n"),
        ("mboxo", "\n>From an answer\n"),
        ("mboxcl2", "\nContent-Length: "),
    ] {
        let arguments = [
            "merge",
            "-q",
            "md",
            "--output-format",
            format,
            "--output",
            format,
        ];
        done(&embody_in(at, &arguments), 0);
        assert!(
            fs::read_to_string(at.join(format)).unwrap().contains(line),
            "{format}"
        );
    }
    let wrong = embody_in(
        at,
        &[
            "convert",
            "md",
            "--output-format",
            "mboxcl",
            "--output",
            "x",
        ],
    );
    assert!(done(&wrong, 2).contains("mboxcl2"));
}
