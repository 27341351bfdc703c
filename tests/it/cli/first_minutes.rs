//! The first minutes of a new user: wrong sources, options that were forgotten, and the next step after each run.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::common::programs::{embody, embody_in, fed, stderr};
use crate::common::raw::{self, Raw};

const GIF: &[u8] =
    b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

const NOTICE: &str = "pictures on the web stay on their servers";

/// Returns a mail that displays these pictures.
fn mail(urls: &[&str]) -> String {
    let pictures = urls
        .iter()
        .map(|url| format!("<img src=\"{url}\" width=90 height=90>"));
    format!(
        "From: a@b.example\nDate: Mon, 6 Jul 2015 10:00:00 +0000\nSubject: x\nMIME-Version: 1.0\nContent-Type: text/html\n\n{}\n",
        pictures.collect::<String>()
    )
}

/// Returns a mail with an attachment of 171 kB, which `detach` moves by default.
fn large_mail() -> String {
    let content = format!("{}\n", "QUJD".repeat(19)).repeat(3000);
    format!(
        "From: a@b.example\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: application/pdf\n\
         Content-Disposition: attachment; filename=a.pdf\nContent-Transfer-Encoding: base64\n\n{content}--x--\n"
    )
}

fn mbox(mails: &[String]) -> String {
    let mails = mails
        .iter()
        .map(|mail| format!("From a@b Mon Jul  6 10:00:00 2015\n{mail}\n"));
    mails.collect()
}

#[test]
fn url_as_a_source_is_named_as_a_url() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("box"), mbox(&[mail(&[])])).unwrap();
    for (url, advice) in [
        (
            "https://user:secret@mail.example/a.mbox",
            "download the file first",
        ),
        ("file:///srv/a.mbox", "without file://"),
    ] {
        for arguments in [
            &["inspect", url][..],
            &["embed", url, "--output", "x"],
            &["convert", url, "--output", "x"],
            &["filter", url],
            &["compare", url, "box"],
            &["merge", url, "box", "--output", "x"],
        ] {
            let output = embody_in(folder.path(), arguments);
            let said = stderr(&output);
            assert!(!output.status.success(), "{arguments:?}");
            assert!(said.contains(advice), "{arguments:?}: {said}");
            assert!(!said.contains("No such file"), "{arguments:?}: {said}");
            assert!(!said.contains("secret"), "{arguments:?}: {said}");
        }
    }
}

#[test]
fn missing_source_gives_an_error_and_no_summary_of_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["inspect", "none"][..],
        &["inspect", "--json", "none"],
        &["inspect", "--html", "page.html", "none"],
        &["inspect", "--duplicates", "none"],
        &["convert", "none", "--output", "x"],
        &["detach", "--store", "s", "none", "--output", "x"],
    ] {
        let output = embody_in(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
        assert_eq!(stderr(&output).lines().count(), 1, "{output:?}");
    }
    assert!(!folder.path().join("page.html").exists());
}

#[test]
fn run_that_meets_pictures_without_the_option_says_so_once() {
    let folder = tempfile::tempdir().unwrap();
    let picture = mail(&["https://pictures.example/a.gif"]);
    let encoded = picture
        .replace("<img", "=3Cimg")
        .replace("src=\"", "src=3D\"")
        .replace("\n\n", "\nContent-Transfer-Encoding: quoted-printable\n\n");
    let plain = "Subject: x\n\nhello\n".to_owned();
    let pixel = picture.replace("=90", "=1");
    for (message, options, is_said) in [
        (&picture, &["--fetch", "http,https"][..], true),
        (&encoded, &["--fetch", "http"], true),
        (&picture, &["--fetch", "https", "--embed", "data"], true),
        (&picture, &["--fetch", "https", "--quiet"], false),
        (&picture, &[], false),
        (&picture, &["--verbose"], true),
        (&pixel, &["--verbose"], false),
        (&picture, &["--verbose", "--embed", "data,remote"], false),
        (&picture, &["--fetch", "ftp"], false),
        (&pixel, &["--fetch", "https"], false),
        (&plain, &["--fetch", "https"], false),
    ] {
        let mut command = embody();
        let output = fed(command.arg("filter").args(options), message.as_bytes());
        assert_eq!(output.stdout, message.as_bytes(), "{options:?}");
        let said = stderr(&output);
        assert_eq!(said.contains(NOTICE), is_said, "{options:?}: {said}");
        let fetches = !options.contains(&"--fetch");
        assert_eq!(
            said.contains("--embed data,remote --fetch http,https"),
            is_said && fetches,
            "{said}"
        );
    }
    let mails = [plain, picture.clone(), picture.clone(), picture];
    fs::write(folder.path().join("box"), mbox(&mails)).unwrap();
    for (options, count) in [(&["--fetch", "https"][..], 1), (&[], 0)] {
        let arguments = [
            &["convert", "box", "--output", "new", "--no-resume"],
            options,
        ]
        .concat();
        let said = stderr(&embody_in(folder.path(), &arguments));
        assert_eq!(said.matches(NOTICE).count(), count, "{options:?}: {said}");
        assert_eq!(
            fs::read(folder.path().join("new")).unwrap(),
            fs::read(folder.path().join("box")).unwrap()
        );
        fs::remove_file(folder.path().join("new")).unwrap();
    }
}

/// Runs a command on the mailbox `box`, with requests allowed to these ports.
fn run(folder: &Path, arguments: &[&str], ports: &[u16]) -> (String, String) {
    let ports = ports.iter().map(u16::to_string).collect::<Vec<_>>();
    let mut all = arguments.to_vec();
    if !ports.is_empty() {
        all.extend(["--allow-net", "127.0.0.1"]);
    }
    for port in &ports {
        all.extend(["--allow-port", port]);
    }
    let output = embody_in(folder, &all);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    (text, stderr(&output))
}

#[test]
fn refusals_by_policy_name_all_ports_and_networks_at_once() {
    let servers = [0, 1].map(|_| {
        Raw::http(|_, stream| {
            let _ = stream.write_all(&raw::ok("image/gif", GIF));
        })
    });
    let urls = servers.each_ref().map(|server| server.url("/a.gif"));
    let mut ports = servers.each_ref().map(|server| server.address.port());
    ports.sort_unstable_by_key(u16::to_string);
    let folder = tempfile::tempdir().unwrap();
    let mails = urls.each_ref().map(|url| mail(&[url]));
    fs::write(folder.path().join("box"), mbox(&mails)).unwrap();
    let options = format!(
        "--allow-net 127.0.0.1/32 --allow-port {},{}",
        ports[0], ports[1]
    );
    let embed = ["embed", "box", "--output", "new.mbox", "--no-resume"];
    let (_, said) = run(folder.path(), &embed, &[]);
    assert!(said.contains(&options), "{said}");
    let (text, _) = run(folder.path(), &["inspect", "--probe", "box"], &[]);
    assert!(
        text.contains(&format!("  embody inspect --probe {options} box")),
        "{text}"
    );
    // The recommended options are sufficient.
    let (text, _) = run(folder.path(), &["inspect", "--probe", "box"], &ports);
    assert!(text.contains("answers      2 still there\n"), "{text}");
    assert!(text.contains("Next step: keep the pictures"), "{text}");
}

#[test]
fn gone_pictures_have_the_whole_command_for_a_web_archive() {
    let server = Raw::http(|_, stream| {
        let _ =
            stream.write_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
    let ports = [server.address.port()];
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("box"),
        mbox(&[mail(&[&server.url("/a.gif")])]),
    )
    .unwrap();
    const ARCHIVE: &str = "--archive 'https://web.archive.org/web/{date}id_/{url}'";
    let (text, _) = run(folder.path(), &["inspect", "--probe", "box"], &ports);
    assert!(
        text.contains("Next step: look in a web archive for the content that is gone"),
        "{text}"
    );
    assert!(
        text.contains("  embody embed box --output box-archived.mbox --archive"),
        "{text}"
    );
    // Large attachments are less important than pictures that are gone.
    let large = large_mail();
    fs::write(
        folder.path().join("large"),
        mbox(&[mail(&[&server.url("/a.gif")]), large]),
    )
    .unwrap();
    let (text, _) = run(folder.path(), &["inspect", "--probe", "large"], &ports);
    assert!(
        text.contains("Next step: look in a web archive for the content that is gone"),
        "{text}"
    );
    let embed = ["embed", "box", "--output", "new.mbox", "--no-resume"];
    let (_, said) = run(folder.path(), &embed, &ports);
    assert!(
        said.contains("embody embed new.mbox --output new-2.mbox") && said.contains(ARCHIVE),
        "{said}"
    );
}

#[test]
fn files_to_which_the_text_links_are_in_a_row_named_links() {
    let folder = tempfile::tempdir().unwrap();
    let link =
        "<a href=\"https://www.dropbox.com/s/0123456789abcde/report.pdf?dl=0\">report.pdf</a>";
    let linked = mail(&[]).replace("\n\n\n", &format!("\n\n{link}\n"));
    fs::write(folder.path().join("box"), mbox(&[linked])).unwrap();
    let (text, _) = run(folder.path(), &["inspect", "box"], &[]);
    assert!(text.contains("\nlinks        1 file in Dropbox"), "{text}");
    assert!(!text.contains("\nmissing "), "{text}");
}

#[test]
fn recover_names_links_to_cloud_files_that_it_does_not_follow() {
    let folder = tempfile::tempdir().unwrap();
    let link = |number: u32| {
        format!(
            "<a href=\"https://www.dropbox.com/s/0123456789abcd{number}/report.pdf?dl=0\">report.pdf</a>"
        )
    };
    let linked = |links: &str| mail(&[]).replace("\n\n\n", &format!("\n\n{links}\n"));
    let mails = [
        linked(&link(1)),
        linked("<a href=\"https://www.example.org/\">x</a>"),
        linked(&(link(2) + &link(3))),
    ];
    let before = mbox(&mails);
    fs::write(folder.path().join("box"), &before).unwrap();
    let recover = ["recover", "box", "--output", "new"];
    let (_, said) = run(folder.path(), &recover, &[]);
    assert!(
        said.contains("3 could not be: 3 not followed (--follow links)."),
        "{said}"
    );
    assert!(
        said.contains("--follow links would allow 3 more references."),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("new")).unwrap(),
        before
    );
    // Other commands do not look for attachments, so they do not name the links.
    let embed = ["embed", "box", "--output", "embedded"];
    let (_, said) = run(folder.path(), &embed, &[]);
    assert!(!said.contains("--follow links"), "{said}");
}

#[test]
fn detach_that_finds_nothing_large_names_a_smaller_size() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("box"), mbox(&[mail(&[])])).unwrap();
    let arguments = ["detach", "--store", "s", "box", "--output", "new"];
    let (_, said) = run(folder.path(), &arguments, &[]);
    assert!(said.contains("No attachment has 102 kB or more."), "{said}");
    assert!(said.contains("--larger-than 10k"), "{said}");
}

#[test]
fn detach_says_which_attachments_are_too_small_for_every_size() {
    let folder = tempfile::tempdir().unwrap();
    let pdf = "From: a@example.org\nSubject: s\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nhi\n--b\nContent-Type: application/pdf; name=a.pdf\n\n%PDF-1.4\n--b--\n";
    fs::write(folder.path().join("box"), mbox(&[pdf.to_owned()])).unwrap();
    for (size, advice) in [
        (
            "1",
            "No attachment has 1 kB or more. A smaller attachment always stays",
        ),
        (
            "1k",
            "No attachment has 1 kB or more. A smaller attachment always stays",
        ),
        ("3k", "--larger-than 1k;"),
    ] {
        let arguments = [
            "detach",
            "--larger-than",
            size,
            "--store",
            "s",
            "box",
            "--output",
            "-",
        ];
        let (_, said) = run(folder.path(), &arguments, &[]);
        assert!(said.contains(advice), "{size}: {said}");
    }
}

#[test]
fn probe_needs_no_fetch_in_inspect_and_is_refused_in_convert() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("box"),
        mbox(&[mail(&["http://nowhere.invalid/a.gif"])]),
    )
    .unwrap();
    let (text, said) = run(folder.path(), &["inspect", "--probe", "box"], &[]);
    assert!(said.contains("No server responded"), "{said}");
    assert!(text.contains("Next step: ask again"), "{text}");
    let convert = ["convert", "--dry-run", "--probe", "--in-place", "box"];
    let output = embody_in(folder.path(), &convert);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("add --fetch http,https"));
}

#[test]
fn directory_without_output_gets_the_option_that_processes_mailboxes() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("Mail")).unwrap();
    for (command, advice) in [
        (
            "embed",
            "name --output or --in-place, as in --output new.mbox",
        ),
        (
            "recover",
            "name --output or --in-place, as in --output new.mbox",
        ),
        ("filter", "use embody convert"),
    ] {
        let output = embody_in(folder.path(), &[command, "Mail"]);
        let expected =
            format!("embody: Mail: a directory, but {command} reads only one message; {advice}\n");
        assert_eq!(stderr(&output), expected);
        assert_eq!(output.status.code(), Some(75));
    }
}

#[test]
fn second_file_that_does_not_exist_is_taken_for_the_result() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.mbox"), mbox(&[mail(&[])])).unwrap();
    let output = embody_in(folder.path(), &["embed", "in.mbox", "new.mbox"]);
    let said = stderr(&output);
    assert!(
        said.ends_with("if new.mbox is the result, write --output before its name\n"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(2));
    let output = embody_in(folder.path(), &["embed", "in.mbox", "in.mbox"]);
    assert!(
        stderr(&output).contains("for several sources"),
        "{output:?}"
    );
}

#[test]
fn restore_from_another_store_says_that_the_store_may_be_wrong() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.mbox"), mbox(&[large_mail()])).unwrap();
    let run = |arguments: &[&str]| stderr(&embody_in(folder.path(), arguments));
    let said = run(&[
        "detach",
        "--store",
        "one",
        "in.mbox",
        "--output",
        "small.mbox",
    ]);
    assert!(said.contains("1 attachment moved"), "{said}");
    fs::create_dir(folder.path().join("two")).unwrap();
    let said = run(&[
        "restore",
        "--store",
        "two",
        "small.mbox",
        "--output",
        "back.mbox",
    ]);
    let advice = "The store does not contain these attachments: check that --store names";
    assert!(said.contains(advice), "{said}");
    let said = run(&[
        "restore",
        "--store",
        "one",
        "small.mbox",
        "--output",
        "back2.mbox",
    ]);
    assert!(
        said.contains("1 attachment put back") && !said.contains(advice),
        "{said}"
    );
}
