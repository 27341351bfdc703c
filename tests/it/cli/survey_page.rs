//! What the page of `embody inspect --html` says beyond the survey's numbers: its commands do what they say with the very
//! source that was looked at, and what stands several times is counted.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::programs::{done, embody, embody_in, stderr};

/// A mail of which each command has something to do. `number` makes it another one.
fn mail(number: usize) -> String {
    format!(
        "From: Somebody <a@sender{number}.example>\nDate: Mon, 06 Jul 2015 10:00:0{number} +0000\nSubject: {number}\nMIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/related; boundary=r\n\n\
         --r\nContent-Type: text/html\nContent-Base: https://a.example/\n\n\
         <a href=x>x</a><img src='https://pictures.invalid/{number}'><img src=\"data:image/gif;base64,R0lGODlhCQAJAIAAAAAAAP///ywAAAAAAQABAAACAkQBADs=\">\n\
         <img src='https://t.invalid/{number}' width=1 height=1><img src='cid:{number}'>\n\
         --r\nContent-Type: image/gif\nContent-ID: <{number}>\nContent-Transfer-Encoding: base64\n\n{}\n--r--\n\
         --b\nContent-Type: message/external-body; access-type=URL; URL=\"https://gone.invalid/{number}\"\n\nContent-Type: text/plain\n\n\
         --b\nContent-Type: application/pdf\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename=a.pdf\n\n{}\n--b--\n",
        "QUJD\n".repeat(10),
        "QUJD\n".repeat(30_000)
    )
}

fn mbox(numbers: &[usize]) -> String {
    let mails = numbers.iter().map(|&number| {
        let separator = "From a@b Mon Jul  6 10:00:00 2015";
        format!("{separator}\n{}\n", mail(number))
    });
    mails.collect()
}

/// Makes a source of this name in a folder.
fn make(folder: &Path, name: &str) {
    let at = folder.join(name);
    let packed = |script: &str| {
        fs::write(folder.join("plain"), mbox(&[1, 2])).unwrap();
        let output = Command::new("python3")
            .args([
                "-c",
                &format!("import sys, gzip, zipfile, tarfile\n{script}"),
                name,
            ])
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        fs::remove_file(folder.join("plain")).unwrap();
    };
    let ending = Path::new(name).extension().and_then(|it| it.to_str());
    match ending.unwrap_or_default() {
        "zip" => packed(
            "with zipfile.ZipFile(sys.argv[1], 'w') as file: file.write('plain', 'Takeout/Mail/Inbox.mbox')",
        ),
        "tgz" => packed(
            "with tarfile.open(sys.argv[1], 'w:gz') as file: file.add('plain', 'Takeout/Mail/Inbox.mbox')",
        ),
        "gz" => packed("open(sys.argv[1], 'wb').write(gzip.compress(open('plain', 'rb').read()))"),
        "maildir" => {
            for part in ["cur", "new", "tmp"] {
                fs::create_dir_all(at.join(part)).unwrap();
            }
            fs::write(at.join("cur/1.a.host:2,S"), mail(1)).unwrap();
        }
        "mh" => {
            fs::create_dir(&at).unwrap();
            fs::write(at.join("1"), mail(1)).unwrap();
        }
        "folder" => {
            fs::create_dir(&at).unwrap();
            fs::write(at.join("Inbox"), mbox(&[1, 2])).unwrap();
        }
        "eml" => fs::write(at, mail(1)).unwrap(),
        _ => fs::write(at, mbox(&[1, 2])).unwrap(),
    }
}

/// The commands of the page about these sources.
fn commands(folder: &Path, options: &[&str], sources: &[&str]) -> Vec<String> {
    let mut arguments = vec!["inspect", "--html", "page.html"];
    arguments.extend(options);
    arguments.push("--");
    arguments.extend(sources);
    done(&embody_in(folder, &arguments), 0);
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    fs::remove_file(folder.join("page.html")).unwrap();
    let pieces = page.split("<pre>").skip(1);
    let commands = pieces.map(|piece| piece.split_once("</pre>").unwrap().0);
    let decoded = |command: &str| {
        let command = command.replace("&lt;", "<").replace("&gt;", ">");
        let command = command.replace("&quot;", "\"").replace("&#39;", "'");
        command.replace("&amp;", "&")
    };
    commands.map(decoded).collect()
}

#[test]
fn each_command_of_the_page_works_on_the_source_that_it_names() {
    let program = embody().get_program().to_owned();
    let program = Path::new(&program).parent().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.display());
    let one: [(&[&str], &[&str]); 11] = [
        (&[], &["box"]),
        (&[], &["a b's.mbox"]),
        (&[], &["-rf"]),
        (&[], &["box.mbox.gz"]),
        (&[], &["takeout.zip"]),
        (&[], &["takeout.tgz"]),
        (&[], &["my.maildir"]),
        (&["--format", "mh"], &["my.mh"]),
        (&[], &["my.folder"]),
        (&[], &["a.eml"]),
        (&[], &["box", "takeout-1.zip", "takeout-1.tgz", "my.folder"]),
    ];
    for (options, sources) in one {
        let made = tempfile::tempdir().unwrap();
        sources.iter().for_each(|name| make(made.path(), name));
        let found = commands(made.path(), options, sources);
        // Detach, embed, data:, trackers, links, references, rows.
        assert_eq!(found.len(), 7, "{sources:?}: {found:#?}");
        for command in &found {
            let folder = tempfile::tempdir().unwrap();
            let mut copy = Command::new("cp");
            copy.args(["-R", "."]).arg(folder.path());
            assert!(copy.current_dir(made.path()).status().unwrap().success());
            let names = |folder: &Path| -> BTreeSet<String> {
                let entries = fs::read_dir(folder).unwrap();
                entries
                    .map(|it| it.unwrap().file_name().into_string().unwrap())
                    .collect()
            };
            let before = names(folder.path());
            let output = Command::new("sh")
                .args(["-ec", command])
                .env("PATH", &path)
                .current_dir(folder.path())
                .output()
                .unwrap();
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(0), "{command}: {said}");
            let after = names(folder.path());
            if command.starts_with("embody inspect") {
                assert!(!output.stdout.is_empty() && after == before, "{command}");
                continue;
            }
            // The mail as it was is there for each source: beside the result, or as its backup.
            let is_changed = |name: &&str| {
                let source = folder.path().join(name);
                let same = |one: &Path, other: &Path| {
                    let packed = name.ends_with("gz") || name.ends_with("zip");
                    packed || one.is_dir() || fs::read(one).unwrap() == fs::read(other).unwrap()
                };
                !same(&source, &made.path().join(name))
            };
            for name in sources {
                let backup = after.iter().find(|it| {
                    it.starts_with(name) && it.contains(".before-") && !before.contains(*it)
                });
                let result = after.difference(&before).count();
                assert!(result >= 1, "{command}: {after:?}");
                assert!(backup.is_some() || !is_changed(name), "{command}: {name}");
            }
            // Once more, as people do: nothing is overwritten.
            let again = Command::new("sh")
                .args(["-ec", command])
                .env("PATH", &path)
                .current_dir(folder.path())
                .output()
                .unwrap();
            assert!(again.status.code().is_some(), "{command}");
            assert!(names(folder.path()).is_superset(&before), "{command}");
        }
    }
}

#[test]
fn the_commands_name_the_store_that_was_named_and_no_path_of_root() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), "box");
    let usual = commands(folder.path(), &[], &["box"]);
    assert_eq!(
        usual[0],
        "embody detach --larger-than 100k --store mail-attachments --in-place --backup .before-detach box"
    );
    assert!(!usual.iter().any(|it| it.contains(" /")), "{usual:?}");
    fs::create_dir(folder.path().join("my store")).unwrap();
    let options = [
        "--store",
        "my store",
        "--base-url",
        "https://files.example/",
    ];
    let named = commands(folder.path(), &options, &["box"]);
    assert!(
        named[0].contains("my store' --base-url https://files.example/ --in-place"),
        "{named:?}"
    );
}

fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = embody_in(folder, arguments);
    done(&output, 0);
    String::from_utf8(output.stdout).unwrap()
}

fn survey(folder: &Path, options: &[&str], sources: &[&str]) -> Value {
    let mut arguments = vec!["inspect", "--json"];
    arguments.extend(options);
    arguments.extend(sources);
    let said = printed(folder, &arguments);
    let last: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    last["survey"].clone()
}

#[test]
fn a_mail_under_two_labels_is_counted_as_one_that_stands_twice() {
    let folder = tempfile::tempdir().unwrap();
    let with = |fields: &str| mbox(&[3]).replacen("Subject", &format!("{fields}Subject"), 1);
    // What a mailbox wrote itself makes no other mail; a field of the sender does.
    let other = with("X-Sender-Field: 1\n");
    let inbox = [
        mbox(&[1, 2]),
        with("X-Gmail-Labels: Inbox\nStatus: RO\n"),
        other,
    ];
    fs::write(folder.path().join("Inbox"), inbox.concat()).unwrap();
    let starred = [mbox(&[2]), with("X-Mozilla-Status: 0001\n"), with("")];
    fs::write(folder.path().join("Starred"), starred.concat()).unwrap();
    let alone = survey(folder.path(), &[], &["Inbox"]);
    let none = json!({"count": 0, "octets": 0});
    assert_eq!(
        alone["repeated"],
        json!({"count": 0, "octets": 0, "uncompared": none})
    );
    for sources in [&["Inbox", "Starred"][..], &["."]] {
        let both = survey(folder.path(), &[], sources);
        assert_eq!(both["messages"], 7);
        let repeated = &both["repeated"];
        assert_eq!(repeated["count"], 3, "{repeated}");
        let octets = mail(2).len() + 2 * mail(3).len();
        let found = repeated["octets"].as_u64().unwrap();
        // The field that a mailbox wrote counts where its mail is the copy.
        assert!(
            found >= octets as u64 && found <= octets as u64 + 100,
            "{found} {octets}"
        );
    }
    let lines = printed(folder.path(), &["inspect", "Inbox", "Starred"]);
    assert!(lines.contains("repeated     3 messages, with "), "{lines}");
}

#[test]
fn senders_are_counted_by_domain_and_inline_pictures_apart() {
    let folder = tempfile::tempdir().unwrap();
    let froms = [
        "From: \"x@wrong.example\" <a@One.example> (comment@two.example)",
        "From: b@one.example, c@two.example",
        "From: =?utf-8?q?=40three=2Eexample?= <d@two.example>",
        "From: undisclosed",
        "From: <e@[127.0.0.1]>",
        "From: <script>@<b>.example",
        "X: y",
    ];
    let text: String = froms
        .iter()
        .map(|from| format!("From a@b Mon Jul  6 10:00:00 2015\n{from}\n\nx\n\n"))
        .collect();
    fs::write(folder.path().join("senders"), text).unwrap();
    let found = survey(folder.path(), &["--by", "sender"], &["senders"]);
    let names = found["by"]["sender"]["names"].as_object().unwrap();
    let counts: Vec<(&str, u64)> = names
        .iter()
        .map(|(name, it)| (name.as_str(), it["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        counts,
        [("none", 4), ("one.example", 2), ("two.example", 1)]
    );
    let lines = printed(folder.path(), &["inspect", "--by", "sender", "senders"]);
    assert!(lines.contains("one.example"), "{lines}");

    fs::write(folder.path().join("box"), mbox(&[1, 2])).unwrap();
    let found = survey(folder.path(), &["--by", "type"], &["box"]);
    assert_eq!(found["attachments"]["count"], 4);
    assert_eq!(
        found["attachments"]["inline"],
        json!({"count": 2, "octets": 2 * 50})
    );
    let types = &found["by"]["type"]["names"];
    assert_eq!(
        (
            &types["image/gif"]["inline"],
            &types["application/pdf"]["inline"]
        ),
        (&json!(2), &json!(0))
    );
    done(
        &embody_in(folder.path(), &["inspect", "--html", "page.html", "box"]),
        0,
    );
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    let plot = |title: &str| {
        let (_, plot) = page.split_once(&format!("aria-label=\"{title}\"")).unwrap();
        plot.split_once("</svg>").unwrap().0.to_owned()
    };
    assert!(plot("Mail by domain of the sender").contains("sender1.example"));
    let types = plot("Attachments by type");
    assert!(
        types.contains("application/pdf") && !types.contains("image/gif"),
        "{types}"
    );
    assert!(plot("Bytes of mail by year").contains("2015"), "{page}");
}
