//! Flags and keywords that programs store outside of messages survive each conversion, or are named (docs/mailboxes.md,
//! "Convert between formats").

use std::fs;
use std::path::Path;

use crate::common::folder::Folder;
use crate::common::programs::embody_in;
use crate::common::programs::stderr;

fn mail(subject: &str) -> String {
    format!(
        "From: Ann <a@example.org>\nSubject: {subject}\nMessage-ID: <{subject}@example.org>\n\nText.\n"
    )
}

/// Returns the names of all files below a directory, in order.
fn names(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                found.push(path.strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// Returns the flags of each message of a Maildir, in the order of the names: the directory, the capital letters, and the
/// names of the keywords.
fn flags(maildir: &Path) -> Vec<String> {
    let keywords = fs::read_to_string(maildir.join("dovecot-keywords")).unwrap_or_default();
    let name = |letter: char| {
        let number = u32::from(letter) - u32::from('a');
        let start = format!("{number} ");
        let line = keywords.lines().find(|line| line.starts_with(&start));
        line.unwrap_or("? ?").split_once(' ').unwrap().1.to_owned()
    };
    let of = |path: &String| {
        let (part, name_of_file) = path.split_once('/')?;
        let info = name_of_file.split_once(":2,").map_or("", |(_, info)| info);
        let capitals: String = info.chars().filter(char::is_ascii_uppercase).collect();
        let letters = info.chars().filter(char::is_ascii_lowercase);
        let words: Vec<String> = letters.map(name).collect();
        matches!(part, "cur" | "new").then(|| format!("{part} {capitals} {}", words.join(" ")))
    };
    names(maildir).iter().filter_map(of).collect()
}

/// Creates a Maildir of Dovecot with keywords, and a subfolder in which the letters mean other keywords.
fn dovecot(folder: &Folder) {
    for name in ["cur", "new", "tmp", ".Sub/cur", ".Sub/new", ".Sub/tmp"] {
        fs::create_dir_all(folder.at("Maildir").join(name)).unwrap();
    }
    for (name, content) in [
        ("dovecot-keywords", "0 $Forwarded\n1 Invoices\n".to_owned()),
        ("cur/1578304801.M1P1.h,S=90:2,FSab", mail("one")),
        ("cur/1578304802.M2P1.h:2,S", mail("two")),
        ("new/1578304803.M3P1.h", mail("three")),
        (".Sub/dovecot-keywords", "0 Other\n".to_owned()),
        (".Sub/cur/1578304804.M4P1.h:2,a", mail("four")),
    ] {
        folder.write(&format!("Maildir/{name}"), content);
    }
}

#[test]
fn copy_of_a_maildir_has_the_keywords_of_each_folder() {
    let folder = Folder::new();
    dovecot(&folder);
    folder.run("convert Maildir --output copy");
    assert_eq!(
        folder.read("copy/dovecot-keywords"),
        "0 $Forwarded\n1 Invoices\n"
    );
    assert_eq!(folder.read("copy/.Sub/dovecot-keywords"), "0 Other\n");
    let expected = ["cur FS $Forwarded Invoices", "cur S ", "new  "];
    assert_eq!(flags(&folder.at("copy")), expected);
}

#[test]
fn keywords_of_a_maildir_are_kept_in_each_format_and_come_back() {
    let folder = Folder::new();
    dovecot(&folder);
    folder.run("convert Maildir --output-format mbox --output mboxes");
    let inbox = folder.read("mboxes/INBOX.mbox");
    assert!(
        inbox.contains("\nX-Keywords: $Forwarded Invoices\n"),
        "{inbox}"
    );
    assert_eq!(inbox.matches("X-Keywords").count(), 1);
    let sub = folder.read("mboxes/Sub.mbox");
    assert!(sub.contains("\nX-Keywords: Other\n"), "{sub}");
    folder.run("convert Maildir --output-format thunderbird --output tb");
    let thunderbird = folder.read("tb/Maildir.sbd/Inbox");
    let keys = "X-Mozilla-Status: 1005\nX-Mozilla-Status2: 00000000\nX-Mozilla-Keys: Invoices ";
    assert!(thunderbird.contains(keys), "{thunderbird}");
    for source in ["mboxes/INBOX.mbox", "tb/Maildir.sbd/Inbox"] {
        folder.run(&format!(
            "convert {source} --output-format maildir --output back"
        ));
        let found = flags(&folder.at("back"));
        let one = found.iter().find(|it| it.contains("Invoices")).unwrap();
        assert!(
            one.starts_with("cur FPS ") && found.len() == 3,
            "{source}: {found:?}"
        );
        fs::remove_dir_all(folder.at("back")).unwrap();
    }
    folder.run("merge Maildir mboxes/INBOX.mbox --flat --output-format maildir --output merged");
    let merged = flags(&folder.at("merged"));
    assert_eq!(merged.len(), 4, "{merged:?}");
    for words in ["FPS $Forwarded Invoices", "cur  Other"] {
        assert!(merged.iter().any(|it| it.contains(words)), "{merged:?}");
    }
}

#[test]
fn keywords_of_a_header_become_letters() {
    let many: Vec<String> = (0..30).map(|number| format!("k{number}")).collect();
    let long = format!("X-Keywords: {}", many.join(" "));
    for (header, expected) in [
        (
            "Status: RO\nX-Status: A\nX-Keywords: $Forwarded Invoices      ",
            "cur PRS $Forwarded Invoices",
        ),
        ("X-Keywords: one\n\ttwo", "cur  one two"),
        ("X-Keywords: one,two, three", "cur  one two three"),
        (
            "X-Mozilla-Status: 0001\nX-Mozilla-Status2: 00000000\nX-Mozilla-Keys: $label1 invoices   ",
            "cur S $label1 invoices",
        ),
        (
            "X-Mozilla-Status: 1003\nX-Mozilla-Status2: 00800000",
            "cur PRS $MDNSent",
        ),
        // Before X-Mozilla-Keys, Thunderbird stored the number of a label in these bits.
        (
            "X-Mozilla-Status: 0001\nX-Mozilla-Status2: 06000000",
            "cur S $label3",
        ),
        ("X-Keywords: good bad(er", "cur  good"),
        (&long, "cur  k0 k1 k2"),
    ] {
        let folder = Folder::new();
        folder.write(
            "in.mbox",
            format!("From a Mon Jan  6 10:00:00 2020\n{header}\n{}\n", mail("x")),
        );
        let done = folder.output("convert in.mbox --output-format maildir --output md");
        assert!(done.status.success());
        let found = flags(&folder.at("md"));
        assert!(
            found.len() == 1 && found[0].starts_with(expected),
            "{header}: {found:?}"
        );
        let said = stderr(&done);
        let is_lost = header.contains("bad(") || header.contains("k29");
        assert_eq!(said.contains("not kept"), is_lost, "{said}");
        if header.contains("k29") {
            assert!(
                said.contains("1  keyword k26, because a Maildir can store only 26"),
                "{said}"
            );
        }
    }
}

#[test]
fn flags_that_eml_files_cannot_store_are_named_once_with_their_number() {
    let folder = Folder::new();
    dovecot(&folder);
    folder.write("Maildir/cur/1578304805.M5P1.h:2,Sz", mail("five"));
    let done = folder.output("convert Maildir --output-format eml --output eml");
    assert!(done.status.success());
    let said = stderr(&done);
    for line in [
        "3  flag read, because .eml files have no flags",
        "1  flag flagged, because",
        "1  flag forwarded, because",
        "1  keyword Invoices, because",
        "1  keyword Other, because",
        "1  keyword letter z, because the file dovecot-keywords does not explain it",
    ] {
        assert_eq!(said.matches(line).count(), 1, "{line}: {said}");
    }
    // A field that the message already has keeps its flag.
    let status = format!(
        "From a Mon Jan  6 10:00:00 2020\nStatus: RO\n{}\n",
        mail("x")
    );
    folder.write("in.mbox", status);
    let done = folder.output("convert in.mbox --output-format eml --output kept");
    assert!(!stderr(&done).contains("not kept"));
}

/// Creates a Maildir of Courier. The keywords of one message are in the list, and those of another one in a file.
fn courier(folder: &Folder) {
    for name in ["cur", "new", "tmp", "courierimapkeywords"] {
        fs::create_dir_all(folder.at("Maildir").join(name)).unwrap();
    }
    let inline = "From: a@example.org\nSubject: x\nContent-Type: message/external-body; access-type=URL;\n URL=\"data:,hi\"\n\nContent-Type: text/plain\n\n";
    let list = format!(
        "$Forwarded\nwork\n\n1578304801.M1P1.h,S={}:0 1\n",
        inline.len()
    );
    for (name, content) in [
        ("courierimapkeywords/:list", list),
        (
            "courierimapkeywords/1578304802.M2P1.h",
            "private\n".to_owned(),
        ),
        (
            &*format!("cur/1578304801.M1P1.h,S={}:2,S", inline.len()),
            inline.to_owned(),
        ),
        ("cur/1578304802.M2P1.h:2,", mail("two")),
    ] {
        folder.write(&format!("Maildir/{name}"), content);
    }
}

#[test]
fn keywords_of_courier_are_read_and_follow_new_file_names() {
    let folder = Folder::new();
    courier(&folder);
    folder.run("convert Maildir --output-format mbox --output out.mbox");
    let mbox = folder.read("out.mbox");
    for keywords in ["\nX-Keywords: $Forwarded work\n", "\nX-Keywords: private\n"] {
        assert!(mbox.contains(keywords), "{mbox}");
    }
    // The size in the name of the first message changes with its content.
    folder.run("convert Maildir --output copy");
    let list = folder.read("copy/courierimapkeywords/:list");
    let name = names(&folder.at("copy/cur"))[0].clone();
    let base = name.split_once(":2,").unwrap().0.to_owned();
    assert!(
        !folder
            .read(&format!("copy/cur/{name}"))
            .contains("external-body")
    );
    assert!(list.contains(&format!("\n{base}:")), "{base}: {list}");
    folder.run("convert copy --output-format maildir --output again");
    folder.run("convert Maildir --in-place");
    for maildir in ["copy", "Maildir"] {
        let line = format!("convert {maildir} --output-format mbox --output {maildir}.mbox");
        folder.run(&line);
        let mbox = folder.read(&format!("{maildir}.mbox"));
        assert!(
            mbox.contains("X-Keywords: $Forwarded work\n"),
            "{maildir}: {mbox}"
        );
    }
}

#[test]
fn flags_behind_any_character_in_place_of_the_colon_are_read() {
    for separator in ["_", "=", "-", "\u{f03a}", "\u{ff1a}", "%3A", "", ";", "!"] {
        let folder = Folder::new();
        for part in ["cur", "new", "tmp"] {
            fs::create_dir_all(folder.at("Maildir").join(part)).unwrap();
        }
        let name = format!("1578304801.M1P1.h{separator}2,FRS");
        folder.write(&format!("Maildir/cur/{name}"), mail("one"));
        folder.write("Maildir/cur/1578304802.M2P1.h", mail("two"));
        folder.run("convert Maildir --output-format mbox --output out.mbox");
        let mbox = folder.read("out.mbox");
        assert!(
            mbox.contains("Status: RO\nX-Status: AF\n"),
            "{separator:?}: {mbox}"
        );
        assert_eq!(mbox.matches("X-Status").count(), 1);
        // A copy keeps the name, unless the user wants a Maildir for other programs.
        folder.run("convert Maildir --output copy");
        assert!(folder.at(&format!("copy/cur/{name}")).exists());
        folder.run("convert Maildir --output-format maildir --output md");
        let is_known = [";", "!"].contains(&separator);
        let kept = folder.at(&format!("md/cur/{name}")).exists();
        let common = folder.at("md/cur/1578304801.M1P1.h:2,FRS").exists();
        assert_eq!((kept, common), (is_known, !is_known), "{separator:?}");
    }
}

#[test]
fn maildir_of_thunderbird_becomes_a_maildir_with_flags_in_its_names() {
    let folder = Folder::new();
    fs::create_dir_all(folder.at("Inbox/tmp")).unwrap();
    let of = |status: &str, keys: &str| {
        format!(
            "From - Mon Jan  6 10:00:00 2020\nX-Mozilla-Status: {status}\nX-Mozilla-Status2: 00000000\nX-Mozilla-Keys: {keys}   \n{}",
            mail("x")
        )
    };
    folder.write("Inbox/cur/1578304800.eml", of("0005", "$label1 work"));
    folder.write("Inbox/cur/1578304801123456", of("0003", ""));
    folder.write("Inbox/cur/1578304802.M2P1.h:2,F", mail("server"));
    folder.run("convert Inbox --output-format maildir --output md");
    assert_eq!(
        names(&folder.at("md/cur")),
        [
            "1578304800:2,FSab",
            "1578304801123456:2,RS",
            "1578304802.M2P1.h:2,F"
        ]
    );
    assert_eq!(folder.read("md/dovecot-keywords"), "0 $label1\n1 work\n");
    assert!(
        folder
            .read("md/cur/1578304800:2,FSab")
            .starts_with("X-Mozilla-Status")
    );
    // Without another format, the result is for the same program, and nothing changes.
    folder.run("convert Inbox --output copy");
    assert_eq!(
        folder.read("copy/cur/1578304800.eml"),
        of("0005", "$label1 work")
    );
    folder.run("convert Inbox --output-format mbox --output out.mbox");
    let mbox = folder.read("out.mbox");
    assert_eq!(mbox.matches("X-Mozilla-Status: 0003").count(), 1, "{mbox}");
    folder.run("merge Inbox --output-format maildir --output merged");
    let merged = flags(&folder.at("merged"));
    assert!(
        merged.iter().any(|it| it == "cur FRS $label1 work"),
        "{merged:?}"
    );
}

/// Creates a backup of imap-backup with three messages.
fn backup(folder: &Folder) {
    let messages: Vec<String> = ["one", "two", "three"]
        .map(|name| {
            format!(
                "From a@example.org Mon Jan  6 10:00:00 2020\n{}\n",
                mail(name)
            )
        })
        .to_vec();
    let mut offset = 0;
    let flags = [
        "\"Seen\", \"Flagged\", \"$Forwarded\"",
        "",
        "\"Seen\", \"Answered\", \"work\"",
    ];
    let rows = (1..).zip(messages.iter().zip(flags)).map(|(uid, (message, flags))| {
        let length = message.len();
        let row = format!("{{\"uid\": {uid}, \"offset\": {offset}, \"length\": {length}, \"flags\": [{flags}]}}");
        offset += length;
        row
    });
    let rows = rows.collect::<Vec<_>>().join(", ");
    let index =
        format!("{{\"version\": 3.1, \"uid_validity\": 1577836800, \"messages\": [{rows}]}}");
    folder.write("backup/INBOX.mbox", messages.concat());
    folder.write("backup/INBOX.imap", index);
}

#[test]
fn flags_of_imap_backup_are_read_and_a_copy_keeps_its_index() {
    let folder = Folder::new();
    backup(&folder);
    folder.run("convert backup --output-format maildir --output md");
    assert_eq!(
        flags(&folder.at("md/INBOX")),
        ["cur FPS $Forwarded", "cur  ", "cur RS work"]
    );
    folder.run("merge backup/INBOX.mbox --output-format maildir --output merged");
    assert!(flags(&folder.at("merged")).contains(&"cur RS work".to_owned()));
    folder.run("convert backup --output copy");
    folder.run("convert copy --output-format maildir --output from-copy");
    assert_eq!(
        flags(&folder.at("from-copy/INBOX")),
        flags(&folder.at("md/INBOX"))
    );
    let refused = folder.output("convert backup/INBOX.mbox --in-place");
    assert!(
        stderr(&refused).contains("the index of imap-backup"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn copy_with_changed_messages_has_an_index_of_their_new_places() {
    let folder = Folder::new();
    let inline = "From: a@example.org\nSubject: x\nContent-Type: message/external-body; access-type=URL;\n URL=\"data:,hi\"\n\nContent-Type: text/plain\n\n";
    let from = "From a@example.org Mon Jan  6 10:00:00 2020\n";
    let (first, second) = (
        format!("{from}{inline}\n"),
        format!("{from}{}\n", mail("two")),
    );
    let (one, two) = (first.len(), second.len());
    folder.write("backup/INBOX.mbox", first + &second);
    let index = format!(
        "{{\"version\": 3, \"uid_validity\": 1, \"messages\": [{{\"uid\": 1, \"offset\": 0, \"length\": {one}, \"flags\": []}}, {{\"uid\": 2, \"offset\": {one}, \"length\": {two}, \"flags\": [\"Seen\"]}}]}}"
    );
    folder.write("backup/INBOX.imap", index);
    folder.run("convert backup --output copy");
    assert_ne!(
        folder.read("copy/INBOX.mbox"),
        folder.read("backup/INBOX.mbox")
    );
    folder.run("convert copy --output-format maildir --output md");
    assert_eq!(flags(&folder.at("md/INBOX")), ["cur  ", "cur S "]);
}

#[test]
fn keyword_that_becomes_a_tag_of_thunderbird_is_not_lost() {
    let folder = Folder::new();
    for part in ["new", "tmp"] {
        fs::create_dir_all(folder.at("Maildir").join(part)).unwrap();
    }
    folder.write("Maildir/cur/1.M1P1.h:2,Sa", mail("one"));
    folder.write("Maildir/cur/2.M2P1.h:2,Sab", mail("both"));
    folder.write("Maildir/dovecot-keywords", "0 $Important\n1 $label1\n");
    folder.run("convert Maildir --output-format thunderbird --output tb");
    folder.run("compare Maildir tb");
    // Without the tag, the keyword is lost.
    let mbox = folder.read("tb/Maildir").replacen("$label1", "       ", 1);
    folder.write("tb/Maildir", mbox);
    let compared = folder.output("compare Maildir tb");
    assert_eq!(compared.status.code(), Some(1));
}

#[test]
fn index_of_imap_backup_that_does_not_match_is_named_and_not_used() {
    let folder = Folder::new();
    backup(&folder);
    let index = folder.read("backup/INBOX.imap");
    for wrong in [
        index.replace("\"offset\": 0", "\"offset\": 1"),
        index.replace("\"version\": 3.1", "\"version\": 2"),
        index.replace("\"uid_validity\"", "\"x\""),
        "{\"version\": 3.1, \"uid_validity\": 1, \"messages\": []}".to_owned(),
        index[..index.len() - 1].to_owned(),
    ] {
        folder.write("backup/INBOX.imap", &wrong);
        let done = folder.output("convert backup --output-format maildir --output md --verbose");
        assert!(done.status.success());
        assert!(
            stderr(&done).contains("the index of imap-backup does not match"),
            "{wrong}"
        );
        // The index is one file, although two lines name it.
        let skipped = "1 file contains no mail and was skipped.";
        assert!(stderr(&done).contains(skipped), "{}", stderr(&done));
        assert_eq!(flags(&folder.at("md/INBOX")), ["new  "; 3], "{wrong}");
        fs::remove_dir_all(folder.at("md")).unwrap();
    }
}

/// Creates an export of Proton: mail in the inbox, in a folder with a label, and starred unread mail.
fn proton(folder: &Folder) {
    let labels = "{\"Version\": 1, \"Payload\": [{\"ID\": \"0\", \"Name\": \"Inbox\", \"Type\": 4}, {\"ID\": \"w==\", \"Name\": \"Work\", \"Type\": 3, \"Path\": \"Work\"}, {\"ID\": \"l==\", \"Name\": \"To do\", \"Type\": 1, \"Path\": \"To do\"}]}";
    folder.write("mail/labels.json", labels);
    for (name, ids, more) in [
        (
            "a==",
            "\"0\", \"5\", \"15\"",
            "\"Unread\": 0, \"IsReplied\": 1",
        ),
        (
            "b==",
            "\"w==\", \"l==\", \"5\"",
            "\"Unread\": 0, \"IsForwarded\": 1",
        ),
        ("c==", "\"0\", \"10\", \"5\"", "\"Unread\": 1"),
    ] {
        folder.write(&format!("mail/{name}.eml"), mail(name));
        let state = format!(
            "{{\"Version\": 1, \"Payload\": {{\"ID\": \"{name}\", \"LabelIDs\": [{ids}], \"Time\": 1578304860, {more}}}}}"
        );
        folder.write(&format!("mail/{name}.metadata.json"), state);
    }
}

#[test]
fn mail_of_proton_keeps_its_flags_folders_and_labels() {
    let folder = Folder::new();
    proton(&folder);
    let done = folder.output("convert mail --output-format maildir --output md");
    let said = stderr(&done);
    assert!(
        said.contains("1  folder Work, because the result is one mailbox"),
        "{said}"
    );
    let mut found = flags(&folder.at("md"));
    found.sort();
    assert_eq!(found, ["cur F ", "cur PS To_do", "cur RS "]);
    folder.run("convert mail --by-label=all --output-format maildir --output by");
    let of = |name: &str| flags(&folder.at("by").join(name));
    assert_eq!(of("Work"), ["cur PS "]);
    assert_eq!(of("To do"), ["cur PS "]);
    assert_eq!(of("INBOX").len(), 2);
    folder.run("convert mail --output copy");
    assert_eq!(names(&folder.at("copy")), names(&folder.at("mail")));
    folder.run("merge mail --output-format maildir --output merged");
    assert!(flags(&folder.at("merged")).contains(&"cur RS ".to_owned()));
}

#[test]
fn mail_of_proton_without_a_valid_state_is_read() {
    for broken in ["labels.json", "a==.metadata.json"] {
        for content in [
            None,
            Some(""),
            Some("{"),
            Some("{\"Version\": 1, \"Payload\": 3}"),
        ] {
            let folder = Folder::new();
            proton(&folder);
            match content {
                Some(content) => _ = folder.write(&format!("mail/{broken}"), content),
                None => fs::remove_file(folder.at(&format!("mail/{broken}"))).unwrap(),
            }
            folder.run("convert mail --output-format maildir --output md");
            assert_eq!(flags(&folder.at("md")).len(), 3, "{broken} {content:?}");
            folder.run("convert mail --by-label --output-format maildir --output by");
        }
    }
}

#[test]
fn sequences_of_an_mh_folder_become_flags_and_keywords() {
    let folder = Folder::new();
    for number in 1..=4 {
        folder.write(&format!("inbox/{number}"), mail(&number.to_string()));
    }
    folder.write(
        "inbox/.mh_sequences",
        "cur: 2\nunseen: 3-4\nreplied: 1\nflagged: 2 4\ntodo: 4\n",
    );
    folder.run("convert inbox --output-format maildir --output md");
    let mut found = flags(&folder.at("md"));
    found.sort();
    assert_eq!(found, ["cur  ", "cur F todo", "cur FS ", "cur RS "]);
}

#[test]
fn flags_of_evolution_are_read_unless_a_status_field_is_newer() {
    for (header, expected) in [
        ("X-Evolution: 00000001-0010", "cur S "),
        ("X-Evolution: 0000002a-0019;tag", "cur FRS "),
        ("X-Evolution: 0000002a-0000", "cur  "),
        ("X-Evolution: 0000002a-0010\nStatus: O", "cur  "),
        ("X-Evolution: 12", "new  "),
    ] {
        let folder = Folder::new();
        let mbox = format!("From a Mon Jan  6 10:00:00 2020\n{header}\n{}\n", mail("x"));
        folder.write("Inbox", mbox);
        folder.run("convert Inbox --output-format maildir --output md");
        assert_eq!(flags(&folder.at("md")), [expected], "{header}");
        // Other programs do not read the field of Evolution, so an mbox gets Status fields.
        folder.run("convert md --output-format mbox --output out.mbox");
        let has_status = folder.read("out.mbox").contains("\nStatus: ");
        assert_eq!(has_status, expected.starts_with("cur"), "{header}");
        folder.run("compare Inbox md");
        folder.run("compare Inbox out.mbox");
    }
}

#[test]
fn folded_line_before_the_first_field_does_not_become_a_part_of_a_new_field() {
    for first in [" X: y\n", "\tX\n\tY\n", " X: y\nX-Mozilla-Status: 0001\n"] {
        let folder = Folder::new();
        let content = format!("{first}{}", mail("one"));
        folder.write("Maildir/cur/1578304801.M1P1.h:2,PS", &content);
        folder.write("Maildir/new/.keep", "");
        folder.write("mails/1.eml", &content);
        let folded = first.split("X-Mozilla").next().unwrap();
        for (source, format) in [
            ("Maildir", "mbox"),
            ("Maildir", "thunderbird"),
            ("mails", "thunderbird"),
            ("mails/1.eml", "thunderbird"),
        ] {
            folder.run(&format!(
                "convert {source} --output-format {format} --output out"
            ));
            folder.run(&format!("compare {source} out"));
            let found = names(folder.path());
            let name = found.iter().find(|name| name.starts_with("out")).unwrap();
            let mbox = folder.read(name);
            let (_, mail) = mbox.split_once('\n').unwrap();
            assert!(
                mail.starts_with(&format!("{folded}X-Mozilla-Status: ")),
                "{mbox}"
            );
            let out = folder.at("out");
            if out.is_dir() {
                fs::remove_dir_all(out).unwrap();
            } else {
                fs::remove_file(out).unwrap();
            }
        }
    }
}

/// Files of a directory are read at the same time. What is said about them must not depend on that.
#[test]
fn flags_that_are_not_used_are_named_whether_files_are_read_in_turn_or_at_the_same_time() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    fs::create_dir(folder.join("export")).unwrap();
    for number in 1..=3 {
        let mail = format!("From: ann@example.org\nSubject: {number}\n\nText.\n");
        fs::write(folder.join(format!("export/{number}.eml")), mail).unwrap();
        fs::write(
            folder.join(format!("export/{number}.metadata.json")),
            "not json",
        )
        .unwrap();
    }
    for jobs in ["1", "4"] {
        let name = format!("out-{jobs}.mbox");
        let arguments = [
            "convert",
            "export",
            "--jobs",
            jobs,
            "--output-format",
            "mbox",
            "-o",
            &name,
        ];
        let output = embody_in(folder, &arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains("3  flags and labels, because the file of Proton"),
            "--jobs {jobs}: {said}"
        );
    }
}
