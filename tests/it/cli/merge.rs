//! `embody merge` keeps each mail once, as its most complete copy, and never merges two different mails.

use std::fs;
use std::path::Path;

use base64::Engine as _;

use crate::common::folder::Folder;
use crate::common::programs::stderr;
use crate::common::reports;

/// Helpers for the tests of merge.
pub(super) trait MergeFolder {
    fn maildir(&self, name: &str, mails: &[(&str, String)]);
    fn counts(&self, line: &str) -> serde_json::Value;
    fn assert_has_all_of(&self, source: &str, result: &str);
}

impl MergeFolder for Folder {
    fn maildir(&self, name: &str, mails: &[(&str, String)]) {
        for part in ["cur", "new", "tmp"] {
            fs::create_dir_all(self.at(name).join(part)).unwrap();
        }
        for (number, (flags, mail)) in mails.iter().enumerate() {
            let file = format!("cur/17000000{number:02}.{number}.host:2,{flags}");
            fs::write(self.at(name).join(file), mail).unwrap();
        }
    }

    #[track_caller]
    fn counts(&self, line: &str) -> serde_json::Value {
        let output = self.output(&format!("{line} --json --quiet"));
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        let value = reports::object(&output.stdout);
        value["merge"].clone()
    }

    #[track_caller]
    fn assert_has_all_of(&self, source: &str, result: &str) {
        self.run(&format!("compare --merged {source} {result}"));
    }
}

fn mails_in(mbox: &str) -> Vec<&str> {
    let mut mails: Vec<&str> = mbox.split("\nFrom a@example.org ").collect();
    mails.retain(|mail| !mail.is_empty());
    mails
}

pub(super) fn file(number: usize) -> Vec<u8> {
    let byte = |at: usize| (at * at + number * 31) as u8;
    (0..700 + number).map(byte).collect()
}

pub(super) fn base64(bytes: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(76)
        .map(|line| str::from_utf8(line).unwrap())
        .collect();
    lines.join("\n")
}

fn header(number: usize) -> String {
    format!(
        "From: Ann <ann@example.org>\nTo: me@example.net\nSubject: report {number}\n\
         Date: Mon, {} May 2024 10:00:00 +0200\nMessage-ID: <{number}@example.org>\n",
        28 - number % 28
    )
}

pub(super) fn with_part(number: usize, part: &str) -> String {
    format!(
        "{}Content-Type: multipart/mixed; boundary=b{number}\n\n--b{number}\n\nHello {number}\nFrom here.\n--b{number}\n{part}\n--b{number}--\n",
        header(number)
    )
}

pub(super) fn whole(number: usize) -> String {
    with_part(
        number,
        &format!(
            "Content-Type: application/pdf; name=a{number}.pdf\nContent-Transfer-Encoding: base64\n\n{}",
            base64(&file(number))
        ),
    )
}

fn cut(number: usize) -> String {
    let whole = whole(number);
    let end = whole.len() - 150 - number * 7;
    format!("{}\n", whole.get(..end).unwrap())
}

/// Returns a mail as Thunderbird leaves it after its attachment was deleted.
pub(super) fn deleted(number: usize) -> String {
    with_part(
        number,
        &format!(
            "Content-Type: text/x-moz-deleted; name=\"Deleted: a{number}.pdf\"\nContent-Transfer-Encoding: 8bit\n\
             X-Mozilla-Altered: AttachmentDeleted; date=\"Mon May 06 10:00:00 2024\"\n\n\
             You deleted an attachment from this message. The original MIME headers for the attachment were:\n\
             Content-Type: application/pdf; name=a{number}.pdf\nContent-Transfer-Encoding: base64\n"
        ),
    )
}

pub(super) fn text(number: usize, body: &str) -> String {
    format!("{}\n{body}\n", header(number))
}

const COUNT: usize = 12;

/// Returns a folder with a Takeout, folders of Thunderbird and a Maildir of the same mails, each damaged in a different way.
pub(super) fn three_copies() -> Folder {
    let folder = Folder::new();
    let numbers = 0..COUNT;
    let takeout = numbers.clone().map(|number| {
        let labels = if number.is_multiple_of(2) { "Inbox,Work" } else { "Inbox,Unread" };
        let mail = if number.is_multiple_of(3) { cut(number) } else { whole(number) };
        format!("X-GM-THRID: {number}\nX-Gmail-Labels: {labels}\nReceived: from a by b; Mon, 6 May 2024 10:00:01 +0200\n{mail}")
    });
    folder.write_mbox("takeout.mbox", &takeout.collect::<Vec<_>>());
    let thunderbird = numbers.clone().map(|number| {
        let mail = if number % 3 == 1 { deleted(number) } else { whole(number) };
        let status = if number % 4 == 3 { "0005" } else { "0000" };
        format!("X-Mozilla-Status: {status}\nX-Mozilla-Status2: 00000000\nX-Mozilla-Keys: $label2\n{mail}")
    });
    folder.write_mbox("thunderbird.mbox", &thunderbird.collect::<Vec<_>>());
    let maildir = numbers.map(|number| {
        let mail = if number % 3 == 2 {
            cut(number)
        } else {
            whole(number)
        };
        let flags = if number % 4 == 1 { "RS" } else { "" };
        (flags, format!("Delivered-To: me@example.net\n{mail}"))
    });
    folder.maildir("maildir", &maildir.collect::<Vec<_>>());
    folder
}

#[test]
fn copies_that_were_damaged_in_different_ways_become_whole_mails_with_all_flags() {
    let folder = three_copies();
    let said = folder.run("merge takeout.mbox thunderbird.mbox maildir --output all.mbox");
    assert!(
        said.contains("36 messages in 3 sources, 12 mails in the result."),
        "{said}"
    );
    assert!(
        said.contains("4 parts are missing in incomplete copies that embody merge left out"),
        "{said}"
    );
    assert!(said.contains("8 copies are cut off"), "{said}");
    let result = folder.read("all.mbox");
    let mails = mails_in(&result);
    assert_eq!(mails.len(), COUNT);
    let mut dates = Vec::new();
    for mail in &mails {
        let id = mail.split("Message-ID: <").nth(1).unwrap();
        let number: usize = id.split('@').next().unwrap().parse().unwrap();
        assert!(mail.contains(&base64(&file(number))), "{number}");
        assert!(
            mail.trim_end().ends_with(&format!("--b{number}--")),
            "{number}"
        );
        assert_eq!(mail.matches("Message-ID").count(), 1);
        // The merged mail has the labels and keywords of all copies.
        let label = if number.is_multiple_of(2) {
            "Work"
        } else {
            "Unread"
        };
        assert!(
            mail.contains(&format!("X-Gmail-Labels: Inbox,{label}\n")),
            "{mail}"
        );
        assert!(mail.contains("X-Mozilla-Keys: $label2\n"), "{mail}");
        // In a Takeout, every mail without the label Unread was read.
        let mozilla = mail.split("X-Mozilla-Status: ").nth(1).map(|it| &it[..4]);
        let is_read = mail.contains("Status: R")
            || matches!(mozilla, Some("0001" | "0005" | "0003" | "0007"));
        assert_eq!(
            is_read,
            number.is_multiple_of(2) || number % 4 == 3 || number % 4 == 1,
            "{mail}"
        );
        let is_flagged = mail.contains("X-Status: F") || matches!(mozilla, Some("0005"));
        assert_eq!(is_flagged, number % 4 == 3, "{mail}");
        let is_answered = mail.contains("X-Status: A") || matches!(mozilla, Some("0003"));
        assert_eq!(is_answered, number % 4 == 1, "{mail}");
        dates.push(28 - number % 28);
    }
    assert!(dates.is_sorted(), "{dates:?}");
    for source in ["takeout.mbox", "thunderbird.mbox", "maildir"] {
        folder.assert_has_all_of(source, "all.mbox");
    }
    // Without `--merged`, two thirds of the mails count as different.
    let output = folder.output("compare thunderbird.mbox all.mbox");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn merging_the_result_changes_nothing_with_or_without_its_sources() {
    let folder = three_copies();
    for (format, name) in [
        ("mbox", "all.mbox"),
        ("maildir", "all"),
        ("eml", "eml"),
        ("thunderbird", "bird"),
    ] {
        for order in ["date", "first"] {
            let options = format!("--output-format {format} --order {order} --quiet");
            let name = format!("{order}-{name}");
            folder.run(&format!(
                "merge takeout.mbox thunderbird.mbox maildir {options} --output {name}"
            ));
            folder.run(&format!("merge {name} {options} --output again-{name}"));
            folder.run(&format!(
                "merge {name} takeout.mbox thunderbird.mbox maildir {options} --output with-{name}"
            ));
            let [one, again, with] =
                ["", "again-", "with-"].map(|prefix| tree(&folder.at(&format!("{prefix}{name}"))));
            assert!(!one.is_empty());
            assert!(one == again, "{name}");
            assert!(one == with, "{name}");
        }
    }
}

/// Returns the contents of all files, with their names.
pub(super) fn tree(path: &Path) -> Vec<(String, String)> {
    if path.is_file() {
        return vec![(String::new(), fs::read_to_string(path).unwrap())];
    }
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                folders.push(entry)
            } else {
                let name = entry.strip_prefix(path).unwrap().to_str().unwrap();
                files.push((name.to_owned(), fs::read_to_string(&entry).unwrap()));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn forged_copy_in_any_source_is_kept_next_to_the_original() {
    let original = whole(1);
    let forged = [
        original.replace("Hello", "Pay"),
        original.replace("ann@", "eve@"),
        original.replace("--b1--", "--b1\n\nPay.\n--b1--"),
        format!("Reply-To: eve@example.com\n{original}"),
        with_part(
            1,
            &format!(
                "Content-Type: application/pdf; name=a1.pdf\nContent-Transfer-Encoding: base64\n\n{}",
                base64(&file(2))
            ),
        ),
    ];
    for (number, forged) in forged.iter().enumerate() {
        assert_ne!(*forged, original);
        let folder = Folder::new();
        folder.write_mbox("good.mbox", std::slice::from_ref(&original));
        // More Received fields, a larger size and an earlier position do not prove that a copy is genuine.
        folder.write_mbox("bad.mbox", &[format!("Received: a\nReceived: b\n{forged}")]);
        for (order, sources) in ["good.mbox bad.mbox", "bad.mbox good.mbox"]
            .iter()
            .enumerate()
        {
            let name = format!("all-{order}.mbox");
            let counts = folder.counts(&format!("merge {sources} --output {name}"));
            assert_eq!(counts["kept"], 2, "{number}: {counts}");
            folder.assert_has_all_of("good.mbox", &name);
            folder.assert_has_all_of("bad.mbox", &name);
        }
    }
}

#[test]
fn incomplete_copy_that_fits_two_mails_stays() {
    let folder = Folder::new();
    let forged = with_part(
        1,
        &format!(
            "Content-Type: application/pdf; name=a1.pdf\nContent-Transfer-Encoding: base64\n\n{}",
            base64(&file(2))
        ),
    );
    folder.write_mbox("a.mbox", &[deleted(1)]);
    folder.write_mbox("b.mbox", &[whole(1)]);
    folder.write_mbox("c.mbox", &[forged]);
    let counts = folder.counts("merge a.mbox b.mbox --output two.mbox");
    assert_eq!(
        (counts["kept"].as_u64(), counts["filled"].as_u64()),
        (Some(1), Some(1))
    );
    let counts = folder.counts("merge a.mbox b.mbox c.mbox --output three.mbox");
    assert_eq!(
        (counts["kept"].as_u64(), counts["ambiguous"].as_u64()),
        (Some(3), Some(1))
    );
    assert_eq!(counts["filled"], 0);
}

#[test]
fn mail_is_in_every_folder_that_has_it_and_one_mailbox_has_it_once() {
    let folder = Folder::new();
    folder.maildir("one", &[("S", whole(1))]);
    folder.maildir("one/.Work.2023", &[("", deleted(2)), ("", whole(3))]);
    folder.write_mbox("two/Work.sbd/2023", &[whole(2)]);
    folder.write_mbox("two/Lists", &[deleted(1), whole(2)]);
    folder.write_mbox("alone.mbox", &[whole(4)]);
    // The name of a file says that one mailbox is wanted.
    let said = folder.run("merge one two --output-format mbox --output all.mbox");
    assert!(said.contains("the sources have several folders"), "{said}");
    assert!(folder.at("all.mbox").is_file());
    folder.run("merge one two alone.mbox --output all --output-format mbox");
    let ids = |name: &str| {
        let text = folder.read(name);
        let mut ids: Vec<String> = text
            .split("Message-ID: <")
            .skip(1)
            .map(|it| it[..1].to_owned())
            .collect();
        assert_eq!(text.matches("text/x-moz-deleted").count(), 0, "{name}");
        ids.sort();
        ids.join("")
    };
    let names: Vec<String> = tree(&folder.at("all"))
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        names,
        ["INBOX.mbox", "Lists.mbox", "Work.2023.mbox", "alone.mbox"]
    );
    assert_eq!(ids("all/INBOX.mbox"), "1");
    assert_eq!(ids("all/Lists.mbox"), "12");
    assert_eq!(ids("all/Work.2023.mbox"), "23");
    assert_eq!(ids("all/alone.mbox"), "4");
    folder.run("merge one two alone.mbox --output bird --output-format thunderbird");
    assert_eq!(ids("bird.sbd/Work.sbd/2023"), "23");
    folder.run("merge one two alone.mbox --output flat.mbox --output-format mbox --flat");
    assert_eq!(ids("flat.mbox"), "1234");
}

#[test]
fn merge_of_an_mh_folder_makes_a_maildir_as_the_help_says() {
    let folder = Folder::new();
    folder.maildir("one", &[("S", whole(1))]);
    folder.run("convert one --output-format mh --output mh");
    folder.write_mbox("two.mbox", &[whole(2)]);
    for (line, is_maildir) in [
        ("merge mh two.mbox --output first", true),
        ("merge two.mbox mh --output second", false),
    ] {
        folder.run(line);
        let result = line.rsplit(' ').next().unwrap();
        assert_eq!(folder.at(result).join("cur").is_dir(), is_maildir, "{line}");
        folder.assert_has_all_of("mh", result);
    }
}

#[test]
fn mail_in_many_folders_and_sources_is_in_all_of_them() {
    let folder = Folder::new();
    let count = 130;
    let long = vec!["a folder with a long name that goes on and on"; 30].join("/");
    for number in 0..count {
        folder.write_mbox(&format!("a/Folder{number}"), &[whole(1)]);
    }
    folder.write_mbox(&format!("a/{long}/Deep"), &[whole(1)]);
    let said = folder.run("merge a --output all --output-format mbox");
    assert!(said.contains("1 mail in the result"), "{said}");
    let files = tree(&folder.at("all"));
    assert_eq!(files.len(), count + 1, "{said}");
    for (name, content) in files {
        assert_eq!(content.matches("Message-ID: <1@").count(), 1, "{name}");
    }
    let sources: Vec<String> = (0..count).map(|it| format!("a/Folder{it}")).collect();
    let line = format!("merge {} --output flat.mbox --flat", sources.join(" "));
    let counts = folder.counts(&line);
    assert_eq!(counts["kept"], 1);
    assert_eq!(counts["widespread"], 1);
    assert_eq!(counts["pairs"].as_array().unwrap().len(), 0);
}

#[cfg(unix)]
#[test]
fn file_of_a_source_that_is_not_read_is_named() {
    let folder = Folder::new();
    folder.write_mbox("a/one.mbox", &[whole(1)]);
    folder.write_mbox("elsewhere.mbox", &[whole(2)]);
    folder.write("a/notes.txt", "no mail");
    std::os::unix::fs::symlink(folder.at("elsewhere.mbox"), folder.at("a/link.mbox")).unwrap();
    let output = folder.output("merge a --output all.mbox");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for name in ["link.mbox", "1 without mail"] {
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn copy_that_lacks_an_attachment_does_not_prove_the_whole_mail() {
    let folder = Folder::new();
    let large = base64(&file(1).repeat(10));
    let part = format!(
        "Content-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment\nContent-Transfer-Encoding: base64\n\n{large}"
    );
    folder.write_mbox("whole.mbox", &[with_part(1, &part)]);
    folder.run("detach --quiet --store store --larger-than 1 whole.mbox --output light.mbox");
    assert_ne!(folder.read("light.mbox"), folder.read("whole.mbox"));
    // The note of a detached attachment contains its digest, so it stands for the attachment.
    folder.run("compare whole.mbox light.mbox");
    folder.run("compare --merged whole.mbox light.mbox");
    folder.run("compare --merged light.mbox whole.mbox");
    let empty = part.replace(&large, "");
    folder.write_mbox("empty.mbox", &[with_part(1, &empty)]);
    for line in ["compare", "compare --merged"] {
        let output = folder.output(&format!("{line} whole.mbox empty.mbox"));
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    }
}

#[test]
fn deleted_mail_is_deleted_only_if_all_copies_are() {
    let folder = Folder::new();
    folder.maildir("a", &[("ST", whole(1)), ("T", whole(2))]);
    folder.maildir(
        "b",
        &[
            ("F", format!("Delivered-To: b\n{}", whole(1))),
            ("ST", format!("Delivered-To: b\n{}", whole(2))),
        ],
    );
    folder.run("merge a b --output all --order first");
    let names = tree(&folder.at("all")).into_iter().map(|(name, _)| name);
    let flags: Vec<String> = names
        .map(|name| name.split(":2,").nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(flags, ["FS", "ST"]);
}

#[test]
fn mails_without_message_id_and_with_the_same_text_are_one() {
    let folder = Folder::new();
    let bare = |number: usize, body: &str| {
        let mail = text(number, body);
        mail.replace(&format!("Message-ID: <{number}@example.org>\n"), "")
    };
    folder.write_mbox("a.mbox", &[bare(1, "a"), bare(1, "b"), bare(2, "a")]);
    folder.write_mbox(
        "b.mbox",
        &[format!("Received: x\n{}", bare(1, "a")), bare(1, "c")],
    );
    let counts = folder.counts("merge a.mbox b.mbox --output all.mbox");
    assert_eq!(counts["kept"], 4, "{counts}");
}

#[test]
fn many_mails_with_one_message_id_take_linear_time_and_none_is_lost() {
    let folder = Folder::new();
    let count = 3000;
    let mails: Vec<String> = (0..count)
        .map(|number| text(1, &format!("mail {number}")))
        .collect();
    folder.write_mbox("a.mbox", &mails);
    let again: Vec<String> = mails
        .iter()
        .map(|mail| format!("Status: RO\n{mail}"))
        .collect();
    folder.write_mbox("b.mbox", &again);
    let begun = std::time::Instant::now();
    let counts = folder.counts("merge a.mbox b.mbox --output all.mbox");
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
    assert_eq!(counts["kept"], count);
    assert_eq!(counts["identical"], count);
    assert_eq!(counts["uncompared"], count - 64);
}

#[test]
fn dry_run_counts_the_same_and_writes_nothing() {
    let folder = three_copies();
    let line = "merge takeout.mbox thunderbird.mbox maildir --output all.mbox";
    let before = tree(folder.path());
    let mut forecast = folder.counts(&format!("{line} --dry-run"));
    // Only a preview counts the parts that `recover --copies` would fill.
    let fillable = forecast.as_object_mut().unwrap().remove("fillable");
    assert_eq!(fillable, Some(4.into()));
    let said = folder.run(&format!("{line} --dry-run"));
    assert!(
        said.contains("dry run, no result was written: 36 messages"),
        "{said}"
    );
    assert!(!said.contains("embody compare"), "{said}");
    assert_eq!(tree(folder.path()), before);
    assert_eq!(folder.counts(line), forecast);
    assert_eq!(forecast["pairs"].as_array().unwrap().len(), 3);
}

#[test]
fn results_that_exist_and_sources_that_cannot_be_read_are_refused() {
    let folder = Folder::new();
    folder.write_mbox("a.mbox", &[whole(1)]);
    folder.write_mbox("there.mbox", &[whole(2)]);
    let there = folder.read("there.mbox");
    for (line, status, why) in [
        (
            "merge a.mbox --output there.mbox",
            1,
            "the destination already exists",
        ),
        ("merge a.mbox - --output all.mbox", 2, "standard input"),
        ("merge a.mbox --output -", 2, "standard output"),
        (
            "merge a.mbox missing.mbox --output all.mbox",
            1,
            "missing.mbox",
        ),
        (
            "merge a.mbox --output missing/all.mbox",
            1,
            "create it first",
        ),
        (
            "merge a.mbox --output all.mbox --output-format maildir",
            2,
            "name a new directory",
        ),
        ("merge a.mbox --output all.mbox --folder x", 2, "imaps:"),
    ] {
        let output = folder.output(line);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{line}: {}",
            stderr(&output)
        );
        assert!(stderr(&output).contains(why), "{line}: {}", stderr(&output));
        assert!(!folder.at("all.mbox").exists(), "{line}");
    }
    assert_eq!(folder.read("there.mbox"), there);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn damaged_source_is_named_and_the_rest_is_merged() {
    let folder = Folder::new();
    folder.write_mbox("a.mbox", &[whole(1)]);
    folder.write_mbox("b.mbox", &[whole(2), whole(3)]);
    folder.run("convert b.mbox --output b.mbox.gz");
    let mut packed = fs::read(folder.at("b.mbox.gz")).unwrap();
    packed.truncate(packed.len() - 9);
    fs::write(folder.at("torn.mbox.gz"), packed).unwrap();
    let output = folder.output("merge a.mbox torn.mbox.gz --output all.mbox");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("torn.mbox.gz") && said.contains("missing or incomplete in the result"),
        "{said}"
    );
    assert!(folder.read("all.mbox").contains("<1@example.org>"));
}
