//! The page of `embody inspect --html`: each of its commands changes the source that it names. Sections that are zero or empty
//! are left out.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::programs::{done, embody, embody_in, stderr};
use crate::common::raw::{self, Raw};
use crate::common::reports;

const GIF: &[u8] =
    b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// Returns a server with the pictures, the files of clouds and the attachments of lists.
fn server() -> Raw {
    Raw::http(|path, stream| {
        let answer = match path {
            _ if path.contains("attachment.pdf") => raw::ok(
                "application/pdf",
                &[&b"%PDF-1.4\n"[..], &[b'x'; 775]].concat(),
            ),
            _ if path.starts_with("/uc?") => raw::ok("video/webm", b"\x1aE\xdf\xa3 webm"),
            _ if path.starts_with("/text") => raw::ok("text/plain", b"hello\n"),
            _ => raw::ok("image/gif", GIF),
        };
        let _ = stream.write_all(&answer);
    })
}

/// Returns the options that direct requests for clouds and lists to the server of the test.
fn allowed(server: &Raw) -> Vec<String> {
    let port = server.address.port().to_string();
    let at = |host: &str| format!("{host}={}", server.url("/"));
    [
        "--allow-net",
        "127.0.0.0/8",
        "--allow-port",
        &port,
        "--map",
        &at("https://drive.google.com/"),
        "--map",
        &at("http://lists.example.org/"),
        "--map",
        &at("https://pictures.example/"),
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Returns a mail that contains something for each command. `number` makes it different from other mails.
fn mail(number: usize) -> String {
    format!(
        "From: Anna <a@sender{number}.example>\nDate: Mon, 06 Jul 2015 10:00:0{number} +0000\nSubject: {number}\nMIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/related; boundary=r\n\n\
         --r\nContent-Type: text/html\nContent-Base: https://a.example/\n\n\
         <a href=x>x</a><img src='https://pictures.example/{number}'>\n\
         <img src='https://t.invalid/{number}' width=1 height=1><img src='cid:{number}'>\n\
         --r\nContent-Type: image/gif\nContent-ID: <{number}>\nContent-Transfer-Encoding: base64\n\n{}\n--r--\n\
         --b\nContent-Type: message/external-body; access-type=URL; URL=\"https://pictures.example/text{number}\"\n\nContent-Type: text/plain\n\n\
         --b\nContent-Type: application/pdf\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename=a.pdf\n\n{}\n--b--\n",
        "QUJD\n".repeat(10),
        "QUJD\n".repeat(30_000)
    )
}

fn mbox_of(mails: &[String]) -> String {
    let mails = mails.iter().map(|mail| {
        let separator = "From a@b Mon Jul  6 10:00:00 2015";
        format!("{separator}\n{mail}\n")
    });
    mails.collect()
}

fn mbox(numbers: &[usize]) -> String {
    mbox_of(&numbers.iter().copied().map(mail).collect::<Vec<String>>())
}

fn html(body: &str) -> String {
    format!(
        "From: a@b.example\nDate: Mon, 06 Jul 2015 10:00:00 +0000\nMIME-Version: 1.0\nContent-Type: text/html\n\n{body}\n"
    )
}

/// Returns a file in Google Drive, as Gmail shows it.
fn drive() -> String {
    let link =
        "https://drive.google.com/file/d/1AbCdEfGhIjKlMnOpQrStUvWxYz012345/view?usp=drive_web";
    html(&format!(
        "<div class=\"gmail_chip gmail_drive_chip\" style=\"width:396px\"><a href=\"{link}\" target=\"_blank\">\
         <span dir=\"ltr\">coast.webm</span></a></div>"
    ))
}

/// Returns a mail with a note of Mailman. The directory in its URL is the digest of the Message-ID.
fn scrubbed() -> String {
    "From: ann at example.org (Ann)\nDate: Tue, 14 May 2024 12:00:01 +0200\nSubject: [team] new form\n\
     Message-ID: <1.team@mail.example.org>\n\nThe report.\n-------------- next part --------------\n\
     A non-text attachment was scrubbed...\nName: report.pdf\nType: application/pdf\nSize: 784 bytes\nDesc: not available\n\
     URL: <http://lists.example.org/pipermail/team/attachments/20240514/5a579ce7/attachment.pdf>\n"
        .to_owned()
}

fn python(folder: &Path, script: &str, name: &str) {
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
}

/// Creates a source with this name in a directory.
fn make(folder: &Path, name: &str) {
    let at = folder.join(name);
    let packed = |mbox: String, script: &str| {
        fs::write(folder.join("plain"), mbox).unwrap();
        python(folder, script, name);
        fs::remove_file(folder.join("plain")).unwrap();
    };
    let takeout = || mbox_of(&[mail(1), mail(2), drive()]);
    let ending = Path::new(name).extension().and_then(|it| it.to_str());
    match (name, ending.unwrap_or_default()) {
        (_, "zip") => packed(
            takeout(),
            "with zipfile.ZipFile(sys.argv[1], 'w') as file: file.write('plain', 'Takeout/Mail/Inbox.mbox')",
        ),
        (_, "tgz") => packed(
            takeout(),
            "with tarfile.open(sys.argv[1], 'w:gz') as file: file.add('plain', 'Takeout/Mail/Inbox.mbox')",
        ),
        (_, "gz") => packed(
            mbox(&[1, 2]),
            "open(sys.argv[1], 'wb').write(gzip.compress(open('plain', 'rb').read()))",
        ),
        (_, "maildir") => {
            for part in ["cur", "new", "tmp"] {
                fs::create_dir_all(at.join(part)).unwrap();
            }
            fs::write(at.join("cur/1.a.host:2,S"), mail(1)).unwrap();
        }
        (_, "mh") => {
            fs::create_dir(&at).unwrap();
            fs::write(at.join("1"), mail(1)).unwrap();
        }
        (_, "folder") => {
            fs::create_dir(&at).unwrap();
            fs::write(at.join("Inbox"), mbox(&[1, 2])).unwrap();
        }
        (_, "eml") => fs::write(at, mail(1)).unwrap(),
        ("drive.mbox", _) => fs::write(at, mbox_of(&[drive(), html("<p>x")])).unwrap(),
        ("list.mbox", _) => fs::write(at, mbox_of(&[scrubbed(), html("<p>x")])).unwrap(),
        ("data.mbox", _) => {
            let gif = "R0lGODlhCQAJAIAAAAAAAP///ywAAAAAAQABAAACAkQBADs=";
            let shown = html(&format!("<img src=\"data:image/gif;base64,{gif}\">"));
            fs::write(at, mbox_of(&[shown])).unwrap();
        }
        ("links.mbox", _) => {
            let link = "<a href='https://www.dropbox.com/scl/fi/abcdefghijklmnop/coast.png?rlkey=0123456789abcdef&dl=0'>coast.png</a>";
            fs::write(at, mbox_of(&[html(link)])).unwrap();
        }
        ("apple", _) => {
            let data = at.join("INBOX.mbox/0A0A/Data");
            fs::create_dir_all(data.join("Messages")).unwrap();
            fs::create_dir_all(data.join("Attachments/101/2")).unwrap();
            fs::write(data.join("Attachments/101/2/report.pdf"), "%PDF-1.4\n").unwrap();
            let mail = "From: a@b.example\nDate: Tue, 14 May 2024 10:00:00 +0000\nSubject: x\nMIME-Version: 1.0\n\
                Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nhello\n\
                --b\nContent-Type: application/pdf; name=report.pdf\nContent-Disposition: attachment; filename=report.pdf\n\
                Content-Transfer-Encoding: base64\nX-Apple-Content-Length: 13\n\n--b--\n";
            fs::write(
                data.join("Messages/101.partial.emlx"),
                format!(
                    "{}\n{mail}<?xml version=\"1.0\"?><plist><dict/></plist>\n",
                    mail.len()
                ),
            )
            .unwrap();
        }
        _ => fs::write(at, mbox(&[1, 2])).unwrap(),
    }
}

fn page_of(folder: &Path, options: &[String], sources: &[&str]) -> String {
    let mut arguments = vec!["inspect", "--html", "page.html"];
    arguments.extend(options.iter().map(String::as_str));
    arguments.push("--");
    arguments.extend(sources);
    done(&embody_in(folder, &arguments), 0);
    fs::read_to_string(folder.join("page.html")).unwrap()
}

fn decoded(html: &str) -> String {
    html.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

/// Returns the commands of a page, each with the title before it.
fn commands(page: &str) -> Vec<(String, String)> {
    let page = page.replace("<h2>", "<h3>").replace("</h2>", "</h3>");
    let pieces = page.split("<h3>").skip(1);
    let found = pieces.filter_map(|piece| {
        let (title, rest) = piece.split_once("</h3>")?;
        let (_, rest) = rest.split_once("<pre>")?;
        let (command, _) = rest.split_once("</pre>")?;
        // The title may be followed by another one before the command.
        Some((title.to_owned(), decoded(command)))
    });
    found.collect()
}

fn shell(folder: &Path, command: &str) -> std::process::Output {
    let program = embody().get_program().to_owned();
    let directory = Path::new(&program).parent().unwrap();
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap());
    Command::new("sh")
        .args(["-ec", command])
        .env("PATH", &path)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Returns whether a result is the same as that of a run that changes nothing.
fn is_like_copy(folder: &Path, source: &str, result: &str, format: &str) -> bool {
    let ending = Path::new(result).extension().and_then(|it| it.to_str());
    let copied = match ending {
        Some(ending @ ("mbox" | "eml")) => format!("copied.{ending}"),
        _ => "copied".to_owned(),
    };
    let command = format!(
        "rm -rf {copied}; embody convert --quiet --links keep --follow none {format} --output {copied} -- {}; diff -r {copied} {}",
        quoted(source),
        quoted(result)
    );
    let output = shell(folder, &command);
    let said = stderr(&output);
    assert!(
        matches!(output.status.code(), Some(0 | 1)) && said.is_empty(),
        "{command}: {said}"
    );
    output.status.success()
}

fn quoted(name: &str) -> String {
    format!("'{}'", name.replace('\'', "'\\''"))
}

/// Runs each command of the page, and returns their titles.
fn run_each(sources: &[&str], options: &[&str], server: &Raw) -> Vec<String> {
    let made = tempfile::tempdir().unwrap();
    sources.iter().for_each(|name| make(made.path(), name));
    let mut all = allowed(server);
    all.extend(options.iter().map(|it| (*it).to_owned()));
    let page = page_of(made.path(), &all, sources);
    let found = commands(&page);
    for (title, command) in &found {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = Command::new("cp");
        copy.args(["-R", "."]).arg(folder.path());
        assert!(copy.current_dir(made.path()).status().unwrap().success());
        let output = shell(folder.path(), command);
        let said = stderr(&output);
        let told = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{title}: {command}: {said}{told}"
        );
        if command.starts_with("embody inspect --json") {
            assert!(!output.stdout.is_empty(), "{command}");
            continue;
        }
        if command.starts_with("embody inspect --probe") {
            let probed = fs::read_to_string(folder.path().join("page.html")).unwrap();
            let answers = ["still there", "gone", "is still there"];
            assert!(answers.iter().any(|it| probed.contains(it)), "{probed}");
            continue;
        }
        let format = options.join(" ");
        let lines: Vec<&str> = command
            .lines()
            .filter(|it| !it.starts_with("embody compare"))
            .collect();
        // A step in two parts has two commands for each source. The last ones write the result.
        assert_eq!(lines.len() % sources.len(), 0, "{command}");
        let written = &lines[lines.len() - sources.len()..];
        for (line, source) in written.iter().zip(sources) {
            let (_, result) = line.split_once(" --output ").unwrap();
            // The name is expanded as a shell would expand it.
            let word = shell(folder.path(), &format!("set -- {result}; printf %s \"$1\""));
            let result = String::from_utf8(word.stdout).unwrap();
            assert!(folder.path().join(&result).exists(), "{line}: {said}");
            assert!(
                !is_like_copy(folder.path(), source, &result, &format),
                "{title}: {line} changes nothing: {said}"
            );
            // The source is unchanged.
            let same = shell(
                folder.path(),
                &format!(
                    "diff -r {} {}",
                    quoted(&format!("{}/{source}", made.path().display())),
                    quoted(&format!("./{source}"))
                ),
            );
            assert!(same.status.success(), "{line} changed {source}");
        }
    }
    found.into_iter().map(|it| it.0).collect()
}

#[test]
fn page_of_each_kind_of_source_has_commands_that_change_it() {
    let server = server();
    let sources: [(&[&str], &[&str]); 10] = [
        (&[], &["box"]),
        (&[], &["a b's.mbox"]),
        (&[], &["-rf"]),
        (&[], &["box.mbox.gz"]),
        (&[], &["takeout.zip"]),
        (&[], &["takeout.tgz"]),
        (&[], &["my.maildir"]),
        (&["--format", "mh"], &["my.mh"]),
        (&[], &["my.folder"]),
        (&[], &["box", "takeout-1.zip", "takeout-1.tgz", "my.folder"]),
    ];
    for (options, sources) in sources {
        let titles = run_each(sources, options, &server);
        for title in [
            "Next step: ",
            "Count the pictures and files that are gone",
            "Remove the trackers",
            "Make links work",
            "List them",
        ] {
            let is_there = titles.iter().any(|it| it.starts_with(title));
            assert!(is_there, "{sources:?} {title}: {titles:?}");
        }
        let all = titles.join("\n").to_lowercase();
        for title in [
            "keep the pictures",
            "put the missing attachments back",
            "make the mailbox smaller",
        ] {
            assert!(all.contains(title), "{sources:?} {title}: {titles:?}");
        }
    }
}

#[test]
fn page_of_special_mail_recommends_the_command_for_it() {
    let server = server();
    for (source, title) in [
        ("drive.mbox", "put the missing attachments back"),
        ("list.mbox", "put the missing attachments back"),
        ("apple", "put the missing attachments back"),
        ("data.mbox", "show pictures everywhere"),
    ] {
        let titles = run_each(&[source], &[], &server);
        let all = titles.join("\n").to_lowercase();
        assert!(all.contains(title), "{source}: {titles:?}");
    }
}

#[test]
fn page_names_the_store_that_was_named() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), "box");
    let detach = |options: &[&str]| {
        let options: Vec<String> = options.iter().map(|it| (*it).to_owned()).collect();
        commands(&page_of(folder.path(), &options, &["box"]))
            .into_iter()
            .map(|it| it.1)
            .find(|it| it.starts_with("embody detach"))
            .unwrap()
    };
    assert_eq!(
        detach(&[]),
        "embody detach box --output box-small.mbox --store mail-attachments --larger-than 100k"
    );
    fs::create_dir(folder.path().join("my store")).unwrap();
    let options = [
        "--store",
        "my store",
        "--base-url",
        "https://files.example/",
    ];
    let named = detach(&options);
    assert!(
        named.contains("my store' --base-url https://files.example/ --larger-than"),
        "{named}"
    );
}

/// Returns the words of a page, without tags.
fn words(page: &str) -> Vec<String> {
    let (_, rest) = page.split_once("<body>").unwrap();
    let (body, _) = rest.split_once("<footer>").unwrap();
    let mut words = Vec::new();
    for piece in body.split('<').skip(1) {
        let text = piece.split_once('>').map_or("", |it| it.1).trim();
        if !text.is_empty() {
            words.push(decoded(text));
        }
    }
    words
}

#[test]
fn page_says_nothing_that_is_zero() {
    let server = server();
    for source in [
        "box",
        "my.maildir",
        "drive.mbox",
        "list.mbox",
        "data.mbox",
        "links.mbox",
        "empty.mbox",
    ] {
        let folder = tempfile::tempdir().unwrap();
        match source {
            "empty.mbox" => {
                let text = "From a@b Mon Jul  6 10:00:00 2015\nSubject: x\n\nhello\n\n";
                fs::write(folder.path().join(source), text).unwrap();
            }
            _ => make(folder.path(), source),
        }
        for options in [&[][..], &["--probe", "--fetch", "http,https"]] {
            let mut all = allowed(&server);
            all.extend(options.iter().map(|it| (*it).to_owned()));
            let page = page_of(folder.path(), &all, &[source]);
            for text in words(&page) {
                let zero = text.split([' ', ',', ';']).any(|word| word == "0");
                let is_command = text.contains("embody ");
                assert!(!zero || is_command, "{source} {options:?}: {text}");
            }
            for plural in [
                "1 messages",
                "1 pictures",
                "1 attachments",
                "1 trackers",
                " 1 are ",
            ] {
                assert!(!page.contains(plural), "{source}: {plural}: {page}");
            }
            // No heading is followed directly by another one or by the end of the page.
            let body = page.split_once("<body>").unwrap().1;
            for piece in body.split("</h2>\n").skip(1) {
                assert!(
                    !piece.starts_with("<h2>") && !piece.starts_with("</main>"),
                    "{page}"
                );
            }
        }
    }
}

#[test]
fn probed_page_begins_with_the_share_that_is_gone() {
    let server = Raw::http(|path, stream| {
        let answer = match path {
            "/1" => {
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
            }
            "/busy" => {
                b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
            }
            _ => raw::ok("image/gif", GIF),
        };
        let _ = stream.write_all(&answer);
    });
    let folder = tempfile::tempdir().unwrap();
    let mails = ["1", "2", "3", "busy"].map(|name| {
        let year = if name == "1" { 2001 } else { 2015 };
        html(&format!("<img src='https://pictures.example/{name}'>"))
            .replace("2015", &year.to_string())
    });
    fs::write(folder.path().join("box"), mbox_of(&mails)).unwrap();
    let mut options = allowed(&server);
    options.extend(["--probe", "--fetch", "http,https"].map(str::to_owned));
    let page = page_of(folder.path(), &options, &["box"]);
    assert!(
        page.contains(
            "<h1>A quarter of the pictures that this mail loads from the web are already gone.</h1>"
        ),
        "{page}"
    );
    assert!(
        page.contains("Of 4 pictures, 2 are still there, 1 is gone and 1 could not be checked, because the server did not respond."),
        "{page}"
    );
    assert!(
        page.contains("title=\"2001: 1 picture, 1 of them not available\""),
        "{page}"
    );
    let mut arguments = vec!["inspect", "--json"];
    arguments.extend(options.iter().map(String::as_str));
    arguments.push("box");
    let said = printed(folder.path(), &arguments);
    let last = reports::object(said.lines().last().unwrap());
    let answers = &last["survey"]["answers"];
    assert_eq!(
        answers["pictures"],
        json!({"alive": 2, "gone": 1, "silent": 1, "denied": 0, "refused": 0, "unasked": 0})
    );
    assert_eq!(answers["years"]["2001"]["gone"], 1, "{answers}");
    assert_eq!(last["survey"]["probe"]["dead"], 2);
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
    let last = reports::object(said.lines().last().unwrap());
    last["survey"].clone()
}

#[test]
fn damaged_and_large_messages_and_labels_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let labelled = |number: usize, labels: &str| {
        mail(number).replacen("From: ", &format!("X-Gmail-Labels: {labels}\nFrom: "), 1)
    };
    let unclosed = mail(3).replace("\n--b--\n", "\n");
    let zeros = "Subject: zeros\n\nhel\0lo\n".to_owned();
    let mails = [
        labelled(1, "Inbox,Family"),
        labelled(2, "\"a, b\",Family"),
        unclosed,
        zeros,
    ];
    fs::write(folder.path().join("box"), mbox_of(&mails)).unwrap();
    let found = survey(folder.path(), &[], &["box"]);
    assert_eq!(found["broken"]["unclosed"]["count"], 1, "{found}");
    assert_eq!(
        found["broken"]["unclosed"]["first"],
        json!([{"source": "box", "index": 3}])
    );
    assert_eq!(found["broken"]["nul"]["first"][0]["index"], 4);
    assert_eq!(found["broken"]["cut"]["count"], 0);
    assert_eq!(found["labels"]["Family"], 2);
    assert_eq!(found["labels"]["a, b"], 1);
    let largest: Vec<u64> = found["largest"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["index"].as_u64().unwrap())
        .collect();
    assert_eq!(largest, [2, 1, 3, 4]);
    assert_eq!(found["largest"][0]["subject"], "2");
    let page = page_of(folder.path(), &[], &["box"]);
    for text in [
        "<p>1 message lacks its last boundary line, so its end is probably missing: number 3.</p>",
        "<p>1 message contains NUL bytes, which some mail programs cannot show: number 4.</p>",
        "<bdi>Family</bdi>",
        "<h2>The largest messages</h2>",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
}

#[test]
fn trackers_are_counted_by_registrable_domain() {
    let folder = tempfile::tempdir().unwrap();
    let pixels: String = [
        "a.t.example.co.uk",
        "b.example.co.uk",
        "t.example.com",
        "127.0.0.1",
    ]
    .iter()
    .map(|host| format!("<img src='https://{host}/x' width=1 height=1>"))
    .collect();
    fs::write(folder.path().join("box"), mbox_of(&[html(&pixels)])).unwrap();
    let found = survey(folder.path(), &[], &["box"]);
    assert_eq!(
        found["trackers"]["companies"],
        json!({"127.0.0.1": 1, "example.co.uk": 2, "example.com": 1})
    );
    let page = page_of(folder.path(), &[], &["box"]);
    assert!(page.contains("<bdi>example.co.uk</bdi>"), "{page}");
}

#[test]
fn mail_under_two_labels_is_counted_as_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let with = |fields: &str| mbox(&[3]).replacen("Subject", &format!("{fields}Subject"), 1);
    // Fields that a mailbox adds do not make a mail different. A field of the sender does.
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
        // If the copy is counted, its size includes the field that the mailbox added.
        assert!(
            found >= octets as u64 && found <= octets as u64 + 100,
            "{found} {octets}"
        );
    }
    let lines = printed(folder.path(), &["inspect", "Inbox", "Starred"]);
    assert!(
        lines.contains("copies       3 duplicates of other messages in this mail, "),
        "{lines}"
    );
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
        // Archives of mailing lists hide addresses in this way.
        "From: f at One.example (Somebody)",
        "From: Anna <g at one.example>",
        "From: look at this",
        "From: we met at two.example (x)",
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
        [("none", 6), ("one.example", 4), ("two.example", 1)]
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
    let page = page_of(folder.path(), &[], &["box"]);
    let plot = |title: &str| {
        let (_, plot) = page.split_once(&format!("aria-label=\"{title}\"")).unwrap();
        plot.split_once("<h").unwrap().0.to_owned()
    };
    assert!(plot("Mail by domain of the sender").contains("sender1.example"));
    assert!(
        page.contains("<td><bdi>PDF documents</bdi><td>2<td>"),
        "{page}"
    );
}
