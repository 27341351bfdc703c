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
        let status = path.trim_start_matches('/');
        let answer = format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n");
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
    let picture = format!(
        "From: a@example.org\nMIME-Version: 1.0\nContent-Type: text/html\n\n<img src=\"{}\" width=90 height=90>\n",
        server.url("/404")
    )
    .into_bytes();
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
    let json = inspect(&["--json", "other.eml"]);
    let objects = reports::objects(&json);
    let missing = &objects.last().unwrap()["survey"]["missing"];
    assert_eq!(
        (&missing[0]["way"], &missing[0]["count"]),
        (&"doubtful".into(), &1.into()),
        "{missing}"
    );
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
    let (said, printed) = run(&["filter", "--verbose", "html.eml"]);
    assert_eq!(printed, html);
    assert!(said.contains("; --follow links would allow it\n"), "{said}");
    let (said, _) = run(&["filter", "html.eml"]);
    assert_eq!(said, "");
}
