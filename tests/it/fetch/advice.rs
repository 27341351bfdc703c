//! Advice in the lines about references whose content could not be retrieved, and in the summary of a mailbox
//! (docs/reasons.md).

use std::fs;
use std::io::Write as _;

use crate::common::filter::{filter, mail, open, reference};
use crate::common::programs::embody_in;
use crate::common::raw::Raw;
use crate::common::reports;

fn server() -> Raw {
    Raw::http(|path, stream| {
        let word = path.trim_start_matches('/');
        let answer = match word.strip_prefix("page-") {
            Some(subtype) => {
                let page = "\n<!DOCTYPE html><p>Not found";
                let (length, essence) = (page.len(), subtype.replace('-', "/"));
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: {essence}\r\nContent-Length: {length}\r\n\r\n{page}"
                )
            }
            None => format!("HTTP/1.1 {word} No\r\nContent-Length: 0\r\n\r\n"),
        };
        let _ = stream.write_all(answer.as_bytes());
    })
}

fn note(id: &str) -> Vec<u8> {
    let url =
        "http://lists.example.org/pipermail/team/attachments/20240514/5a579ce7/attachment.pdf";
    format!(
        "From: ann at example.org (Ann Example)\nDate: Tue, 14 May 2024 12:00:01 +0200\nSubject: [team] a mail\nMessage-ID: {id}\n\nSee\n-------------- next part --------------\nA non-text attachment was scrubbed...\nName: a.pdf\nType: application/pdf\nSize: 7 bytes\nDesc: not available\nURL: <{url}>\n"
    )
    .into_bytes()
}

const OWN: &str = "<1.team@mail.example.org>";

#[test]
fn line_about_content_that_was_not_retrieved_names_the_options_that_may_provide_it() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let copies = folder.path().join("copies.mbox");
    fs::write(&copies, "").unwrap();
    let cache = folder.path().join("cache");
    fs::create_dir(&cache).unwrap();
    let (copies, place) = (copies.display(), folder.path().display());
    let options = open(&[server.address.port()]);
    let body = |status: u16| mail(&[reference(&server.url(&format!("/{status}")), "image/gif")]);
    let picture_at = |path: &str| {
        format!(
            "From: a@example.org\nMIME-Version: 1.0\nContent-Type: text/html\n\n<img src=\"{}\" width=90 height=90>\n",
            server.url(path)
        )
        .into_bytes()
    };
    let picture = picture_at("/404");
    let offline = format!("{options} --offline --cache {}", cache.display());
    let online = "a run without --offline would request it from its server";
    let cases = [
        (
            body(404),
            options.clone(),
            "--archive URL|FILE or --copies MAILBOX may provide it",
        ),
        (
            body(410),
            format!("{options} --copies {copies}"),
            "--archive URL|FILE may provide it",
        ),
        (
            body(500),
            options.clone(),
            "--copies MAILBOX may provide it",
        ),
        (
            picture.clone(),
            format!("{options} --embed remote"),
            "--archive URL|FILE may provide it",
        ),
        (picture, format!("{offline} --embed remote"), online),
        (
            picture_at("/page-image-png"),
            format!("{options} --embed remote"),
            "--archive URL|FILE --archive-first may provide it",
        ),
        (
            picture_at("/page-text-html"),
            format!("{options} --embed remote"),
            "--archive URL|FILE --archive-first may provide it",
        ),
        (
            detached("file:///C:/Users/a.pdf"),
            String::new(),
            "--attachments DIR or --copies MAILBOX may provide it",
        ),
        (
            detached("file:///C:/Users/a.pdf"),
            format!("--fetch file --file-root {place}"),
            "--attachments DIR or --copies MAILBOX may provide it",
        ),
        (
            detached("file:///C:/Users/a.pdf"),
            format!("--attachments {place}"),
            "--copies MAILBOX may provide it",
        ),
        (
            body(404),
            offline.clone(),
            &format!("{online}, and --copies MAILBOX may provide it"),
        ),
        (
            note(OWN),
            format!("{offline} --follow mailman"),
            &format!("{online}, and --attachments DIR or --copies MAILBOX may provide it"),
        ),
        (
            note(OWN),
            format!("{offline} --follow mailman --attachments {place}"),
            &format!("{online}, and --copies MAILBOX may provide it"),
        ),
        (
            mail(&[reference(&format!("file://{place}/none"), "image/gif")]),
            format!("{options} --file-root {place}"),
            "--copies MAILBOX may provide it",
        ),
    ];
    for (mail, options, advice) in cases {
        let ran = filter(&options, &mail);
        assert!(
            ran.stderr.trim_end().ends_with(&format!("; {advice}")),
            "{options}: {}",
            ran.stderr
        );
        assert!(ran.rows[0].get("allowed_by").is_none(), "{:?}", ran.rows);
    }
    let page = filter(
        &format!("{options} --embed remote"),
        &picture_at("/page-image-png"),
    );
    assert!(
        page.stderr
            .contains("the server sent a web page instead of the picture"),
        "{}",
        page.stderr
    );
    // An option that would allow the reference is better than advice, and is in the report, too.
    let ran = filter("", &body(404));
    assert!(!ran.stderr.contains("may provide"), "{}", ran.stderr);
    let allowed = ran.rows[0]["allowed_by"].as_str().unwrap();
    assert!(allowed.starts_with("--fetch http "), "{allowed}");
    assert!(
        ran.stderr.contains(&format!("; {allowed} would allow it")),
        "{}",
        ran.stderr
    );
}

/// Returns a mail with an attachment that Thunderbird detached into this file.
fn detached(url: &str) -> Vec<u8> {
    let part = format!(
        "Content-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment; filename=a.pdf\nX-Mozilla-External-Attachment-URL: {url}\nX-Mozilla-Altered: AttachmentDetached; date=\"Mon Jul 06 10:00:00 2015\"\n\nYou deleted an attachment from this message. The original MIME headers for the attachment were:\nContent-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment; filename=a.pdf\nContent-Transfer-Encoding: base64\n\n\n"
    );
    mail(&[part])
}

#[test]
fn content_that_expired_and_was_not_retrieved_is_named_as_expired() {
    let server = server();
    let options = open(&[server.address.port()]);
    for (date, is_past) in [
        ("Fri, 1 Jan 2021 00:00:00 +0000", true),
        ("Fri, 1 Jan 2999 00:00:00 +0000", false),
        ("soon", false),
    ] {
        let expiration = format!("access-type=URL; expiration=\"{date}\";");
        let part =
            reference(&server.url("/404"), "image/gif").replace("access-type=URL;", &expiration);
        let ran = filter(&options, &mail(&[part]));
        assert_eq!(ran.rows[0]["reason"], "http-status");
        let words = format!("; the mail says that the content expired on {date} <");
        assert_eq!(ran.stderr.contains(&words), is_past, "{}", ran.stderr);
    }
}

#[test]
fn summary_of_a_mailbox_contains_each_advice_once_with_the_number_of_references() {
    let folder = tempfile::tempdir().unwrap();
    let mut mailbox = Vec::new();
    for _ in 0..30 {
        mailbox.extend_from_slice(b"From a@example.org Sat Jan  3 01:05:34 1996\n");
        mailbox.extend_from_slice(&note(OWN));
        mailbox.push(b'\n');
    }
    fs::write(folder.path().join("in.mbox"), mailbox).unwrap();
    let run = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        String::from_utf8(embody_in(folder.path(), &words).stderr).unwrap()
    };
    let said = run("recover in.mbox --offline --output out.mbox");
    let advice = "\nthe content of 30 references: a run without --offline would request it from its server, and --attachments DIR or --copies MAILBOX may provide it\n";
    assert_eq!(said.matches(advice).count(), 1, "{said}");
    assert_eq!(said.matches("--copies").count(), 1, "{said}");
    let said = run("recover in.mbox --offline --quiet --output quiet.mbox");
    assert!(!said.contains("--copies"), "{said}");
}

#[test]
fn survey_names_the_directory_of_a_list_and_counts_notes_with_the_hash_of_another_mail() {
    let folder = tempfile::tempdir().unwrap();
    let quoted = String::from_utf8(note("<other@example.org>"))
        .unwrap()
        .replace("\nA non", "\n> A non")
        .replace("\nURL", "\n> URL");
    fs::write(folder.path().join("own.eml"), note(OWN)).unwrap();
    fs::write(folder.path().join("other.eml"), note("<other@example.org>")).unwrap();
    fs::write(folder.path().join("quoted.eml"), quoted).unwrap();
    let inspect = |words: &[&str]| {
        let output = embody_in(folder.path(), &[&["inspect"], words].concat());
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let own = inspect(&["own.eml"]);
    assert!(
        own.contains("(if you have the files, name their directory with --attachments)"),
        "{own}"
    );
    let other = inspect(&["other.eml"]);
    assert!(!other.contains("Nothing is missing"), "{other}");
    assert!(
        other.contains("missing      1 note of Mailman with the hash of another mail, which embody does not follow\n"),
        "{other}"
    );
    // Mailman did not keep this file, so neither the server nor a directory has it, and only another copy of the mail does.
    let removed = format!(
        "Message-ID: {OWN}\n\nSee\n-------------- next part --------------\nHTML attachment scrubbed and removed\n"
    );
    fs::write(folder.path().join("removed.eml"), removed).unwrap();
    let removed = inspect(&["removed.eml"]);
    assert!(
        removed.contains("; --copies MAILBOX may provide it\n"),
        "{removed}"
    );
    for other in ["--attachments", "--follow", "embody recover"] {
        assert!(!removed.contains(other), "{removed}");
    }
    let json = inspect(&["--json", "other.eml"]);
    let objects = reports::objects(&json);
    let missing = &objects.last().unwrap()["survey"]["missing"];
    assert_eq!(
        (&missing[0]["way"], &missing[0]["count"]),
        (&"doubtful".into(), &1.into()),
        "{missing}"
    );
    // The commands that follow notes of Mailman name such a note, too, if they are verbose.
    let doubt = "embody: 1 note of Mailman names an attachment of another mail, or the Message-ID of this mail was changed; embody does not follow it\n";
    for (words, is_said) in [
        (&["recover", "--verbose", "other.eml"][..], true),
        (
            &["filter", "--verbose", "--follow", "mailman", "other.eml"],
            true,
        ),
        (&["filter", "--verbose", "other.eml"], false),
        (&["recover", "other.eml"], false),
        (&["recover", "--verbose", "quoted.eml"], false),
        (&["recover", "--verbose", "--offline", "own.eml"], false),
    ] {
        let output = embody_in(folder.path(), words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.contains(doubt), is_said, "{words:?}: {said}");
    }
    let quoted = inspect(&["quoted.eml"]);
    assert!(quoted.contains("Nothing is missing"), "{quoted}");
}

#[test]
fn links_of_a_plain_text_to_files_in_clouds_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let drive = "https://drive.google.com/file/d/1AbCdEfGhIjKlMnOpQrStUvWxYz012345/view";
    let dropbox = "https://www.dropbox.com/s/abcdefghijklmno/report.pdf?dl=0";
    let text = format!(
        "From: a@example.org\nMIME-Version: 1.0\nContent-Type: text/plain\n\nSee {drive} and <{dropbox}>,\nagain {dropbox}\nand https://we.tl/t-AbCdEfGhIj.\nhttps://example.org/x\n"
    );
    let html = format!(
        "From: a@example.org\nMIME-Version: 1.0\nContent-Type: text/html\n\n<a href=\"{dropbox}\">report.pdf</a>\n"
    );
    fs::write(folder.path().join("text.eml"), &text).unwrap();
    fs::write(folder.path().join("html.eml"), &html).unwrap();
    let run = |words: &[&str]| {
        let output = embody_in(folder.path(), words);
        assert!(output.status.success());
        let [said, printed] = [output.stderr, output.stdout];
        (
            String::from_utf8(said).unwrap(),
            String::from_utf8(printed).unwrap(),
        )
    };
    let (_, printed) = run(&["inspect", "text.eml"]);
    let listed = format!(
        "    link in plain text, which embody does not follow: report.pdf at dropbox <{dropbox}>\n"
    );
    assert_eq!(printed.matches(&listed).count(), 1, "{printed}");
    assert!(
        printed.contains("links        1 file in Dropbox; 1 file in Google Drive; 1 file in WeTransfer, linked in plain texts, which embody does not follow\n"),
        "{printed}"
    );
    let (_, json) = run(&["inspect", "--json", "text.eml"]);
    let lines = reports::objects(&json);
    let links: Vec<_> = lines
        .iter()
        .filter(|line| line["kind"] == "text-link")
        .map(|line| {
            let field = |name: &str| line[name].as_str().map(str::to_owned);
            (
                field("part"),
                field("provider"),
                field("link"),
                field("name"),
            )
        })
        .collect();
    let link = |provider: &str, link: &str, name: Option<&str>| {
        let [part, provider, link] = ["1", provider, link].map(|it| Some(it.to_owned()));
        (part, provider, link, name.map(str::to_owned))
    };
    assert_eq!(
        links,
        [
            link("google-drive", drive, None),
            link("dropbox", dropbox, Some("report.pdf")),
            link("wetransfer", "https://we.tl/t-AbCdEfGhIj", None),
        ]
    );
    let page = folder.path().join("page.html");
    run(&["inspect", "--html", "page.html", "text.eml"]);
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("in cloud storage, linked in a plain text, which embody does not follow"),
        "the page does not list the links"
    );
    // A verbose filter names what it does not follow, and passes the mail on unchanged.
    let (said, printed) = run(&["filter", "--verbose", "text.eml"]);
    assert_eq!(printed, text);
    assert!(
        said.contains(&format!("part 1: link in plain text, which embody does not follow: report.pdf at dropbox <{dropbox}>\n")),
        "{said}"
    );
    let file = dropbox.replace("dl=0", "dl=1");
    let (said, printed) = run(&["filter", "--verbose", "html.eml"]);
    assert_eq!(printed, html);
    assert!(
        said.contains(&format!("not-followed: links to cloud files are not followed; report.pdf at dropbox <{file}>; --follow links --fetch https would allow it\n")),
        "{said}"
    );
    let (said, _) = run(&["filter", "--verbose", "--fetch", "https", "html.eml"]);
    assert!(
        said.contains(">; --follow links would allow it\n"),
        "{said}"
    );
    // No option allows a denied host.
    let denied = [
        "filter",
        "--verbose",
        "--deny-host",
        "www.dropbox.com",
        "html.eml",
    ];
    let (said, _) = run(&denied);
    assert!(!said.contains("would allow it"), "{said}");
    let (said, _) = run(&["filter", "html.eml"]);
    assert_eq!(said, "");
    // `recover` names the link itself, so a verbose run must not name it again.
    let (said, _) = run(&["recover", "--verbose", "html.eml"]);
    assert_eq!(said.matches("not-followed").count(), 1, "{said}");
}
