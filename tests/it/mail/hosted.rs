//! Files that the sender put into a cloud: `--follow gmail,outlook,mail-drop,filelink,links,sympa`.

use std::collections::HashMap;

use embody::engine::Content;
use embody::fetch::{Fetch, Request};
use embody::policy::{Followed, Limits, Policy, Scheme};
use embody::report::{Outcome, Reason, Refusal, Report, Row};

use crate::common::filter::{filter, open};
use crate::common::mail::{assert_bytes, crlf, expander, python_leaves};
use crate::common::programs::{embody, fed};
use crate::common::raw::{Raw, ok};

const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n and so on\0\xff";
/// [`PICTURE`] in base64.
const ENCODED: &str = "iVBORw0KGgogYW5kIHNvIG9uAP8=";

const CHIP: &str = "<div class=\"gmail_chip gmail_drive_chip\" style=\"width:396px\"><a href=\"https://drive.google.com/file/d/1AbC/view?usp=drive_web\" target=\"_blank\" aria-label=\"coast.webm\"><img src=\"https://ssl.gstatic.com/icon.png\">&nbsp;<span dir=\"ltr\">coast.webm</span></a></div>";
const CHIP_LINK: &str = "https://drive.google.com/file/d/1AbC/view?usp=drive_web";
const CHIP_FILE: &str = "https://drive.google.com/uc?export=download&id=1AbC";
const DOCUMENT: &str = "<div class=\"gmail_chip gmail_drive_chip\"><a href=\"https://docs.google.com/document/d/1AbC/edit?usp=drive_web\"><span dir=\"ltr\">Plan</span></a></div>";
const OWA: &str = "<div id=\"OwaReferenceAttachments\" contenteditable=\"false\"><table><tbody><tr><td><div id=\"OwaReferenceAttachmentDescription\">Ann has shared a file. <a href=\"https://support.example/\">Help</a></div></td></tr><tr><td><a href=\"https://1drv.ms/u/s!Aa\"><div id=\"OwaReferenceAttachmentFileName2\"><a href=\"https://1drv.ms/u/s!Aa\">coast.edf</a></div></a></td></tr></tbody></table></div><div id=\"OwaReferenceAttachmentsEnd\"></div>";
const OWA_FILE: &str =
    "https://api.onedrive.com/v1.0/shares/u!aHR0cHM6Ly8xZHJ2Lm1zL3UvcyFBYQ/root/content";
const DROP: &str = "<div class=\"x-apple-maildropbanner\" data-size=\"9\"><a href=\"https://www.icloud.com/attachment/?u=https%3A%2F%2Fcvws.icloud-content.com%2FB%2FAa%2F%24%7Bf%7D%3Fo%3DAx%26v%3D1%26e%3D1763787120%26k%3D%24%7Buk%7D%26s%3Dsig&amp;uk=KEY&amp;f=coast%20film.mp4&amp;sz=26\">Click to Download</a></div><div class=\"x-apple-maildrop\" data-url=\"https://cvws.icloud-content.com/B/Aa/${f}?o=Ax\" data-filename=\"coast film.mp4\" data-size=\"0\"><a href=\"https://www.icloud.com/attachment/?u=https%3A%2F%2Fcvws.icloud-content.com%2FB%2FAa%2F%24%7Bf%7D%3Fo%3DAx%26v%3D1%26e%3D1763787120%26k%3D%24%7Buk%7D%26s%3Dsig&amp;uk=KEY&amp;f=coast%20film.mp4&amp;sz=26\">coast film.mp4</a></div>";
const DROP_FILE: &str =
    "https://cvws.icloud-content.com/B/Aa/coast%20film.mp4?o=Ax&v=1&e=1763787120&k=KEY&s=sig";
const FILE_LINK: &str = "<ul><li class=\"cloudAttachmentItem\" data-content-location=\"https://cloud.example.org/s/AbC\" data-service-name=\"Nextcloud\"><a href=\"https://cloud.example.org/s/AbC\" class=\"cloudfile-name\">coast.png</a><span>Size: <span class=\"cloudfile-size\">20 bytes</span></span><span>Link: <a class=\"cloudfile-link\" href=\"https://cloud.example.org/s/AbC\">https://cloud.example.org/s/AbC</a></span></li></ul>";
const FILE_LINK_FILE: &str = "https://cloud.example.org/s/AbC/download";
const DROPBOX: &str =
    "<a href=\"https://www.dropbox.com/scl/fi/ab/coast.png?rlkey=01&amp;dl=0\">the coast</a>";
const DROPBOX_FILE: &str = "https://www.dropbox.com/scl/fi/ab/coast.png?rlkey=01&dl=1";
const BOX: &str = "<a href=\"https://app.box.com/s/kab\">coast.png</a>";
const BOX_FILE: &str = "https://app.box.com/shared/static/kab.png";
const SYMPA: &str = "From: ann@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"=_s\"\n\n--=_s\nContent-Type: text/plain\n\nThe film.\n--=_s\nContent-Type: text/plain; format=flowed\nContent-Disposition: inline\n\nThe coast.mp4 file that was initially attached to this message has been stored on the mailing lists server:\nhttps://lists.example.org/sympa/attach/team/AbC/msg.0.bin\n--=_s--\n";
const SYMPA_FILE: &str = "https://lists.example.org/sympa/attach/team/AbC/msg.0.bin";

fn html(body: &str) -> Vec<u8> {
    format!(
        "From: ann@example.org\nSubject: a file\nMIME-Version: 1.0\nContent-Type: text/html; charset=UTF-8\nContent-Transfer-Encoding: 8bit\nX-More: yes\n\n<p>caf\u{e9}</p>{body}\n"
    )
    .into_bytes()
}

fn mixed(body: &str) -> Vec<u8> {
    format!(
        "From: ann@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b0\n\nbefore\n--b0\nContent-Type: text/html\n\n{body}\n--b0\nContent-Type: text/plain\nContent-Disposition: attachment\n\nanother\n--b0-- \nbehind\n"
    )
    .into_bytes()
}

/// Responses of clouds: for each URL, the final URL after redirects, a media type, and the content. Other URLs are 404.
#[derive(Clone, Default)]
struct Clouds(HashMap<String, (String, &'static str, Vec<u8>)>);

impl Clouds {
    fn with(mut self, url: &str, last: &str, essence: &'static str, octets: &[u8]) -> Self {
        let last = if last.is_empty() { url } else { last };
        self.0
            .insert(url.to_owned(), (last.to_owned(), essence, octets.to_vec()));
        self
    }

    fn file(url: &str) -> Self {
        Self::default().with(url, "", "image/png", PICTURE)
    }
}

impl Fetch for Clouds {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        match self.0.get(request.url()) {
            Some((last, essence, octets)) => Ok(Content::new(
                last,
                Some((*essence).to_owned()),
                octets.clone(),
            )),
            None => Err(Refusal::lasting(Reason::HttpStatus, "404")),
        }
    }
}

fn policy() -> Policy {
    Policy::default()
        .with_fetch([Scheme::Https])
        .with_follow(Followed::all())
}

fn run(policy: Policy, clouds: &Clouds, mail: &[u8]) -> (Vec<u8>, Report) {
    let expander = expander(policy, clouds.clone());
    let expansion = expander.expand(mail, "test").unwrap();
    let output = expansion.output().into_bytes().into_owned();
    (output, expansion.report)
}

/// Returns the rows about files in clouds.
fn rows(report: &Report) -> Vec<&Row> {
    let rows = report.rows.iter();
    rows.filter(|row| row.kind.as_str() == "hosted").collect()
}

fn told(mail: &[u8]) -> Vec<String> {
    let report = expander(policy(), Clouds::default()).forecast(mail, "test");
    let rows = rows(&report).into_iter().map(|row| {
        let hosted = row.hosted.as_ref().unwrap();
        let reason = row.reason.map_or("", Reason::as_str);
        format!(
            "{} {} {} {} {} {reason}",
            hosted.provider,
            hosted.name.as_deref().unwrap_or("-"),
            row.url.as_deref().unwrap_or("-"),
            row.bytes.map_or("-".to_owned(), |size| size.to_string()),
            hosted.expires.as_deref().unwrap_or("-"),
        )
        .trim_end()
        .to_owned()
    });
    rows.collect()
}

/// Returns the reason why a mail with one file was left unchanged.
#[track_caller]
fn reason(policy: Policy, clouds: &Clouds, mail: &[u8]) -> &'static str {
    let (output, report) = run(policy, clouds, mail);
    assert_bytes(&output, mail, "the mail");
    match rows(&report).as_slice() {
        [row] => row.reason.map_or("-", Reason::as_str),
        rows => panic!("{rows:?}"),
    }
}

#[test]
fn each_hosted_file_is_found_by_its_markup_and_look_alikes_are_ignored() {
    let quoted = |mark: &str| {
        mark.replace("gmail_", "m_-12gmail_")
            .replace("Owa", "x_Owa")
    };
    let unsure = DROP
        .replace("maildrop\"", "maildrop x\"")
        .replace("maildropbanner", "x");
    let soup =
        "<div class='gmail_chip'><a href='https://drive.google.com/file/d/1AbC/view'>a</a></div>";
    let once = [&format!("google-drive coast.webm {CHIP_FILE} - -")[..]];
    for (body, expected) in [
        (CHIP.to_owned(), &once[..]),
        (CHIP.repeat(3), &once),
        (
            CHIP.to_owned() + OWA,
            &[once[0], &format!("onedrive coast.edf {OWA_FILE} - -")],
        ),
        (CHIP.replace("aria-label=\"coast.webm\"", ""), &once),
        (
            DOCUMENT.to_owned(),
            &[
                "google-drive Plan https://docs.google.com/document/d/1AbC/edit?usp=drive_web - - online-document",
            ],
        ),
        (
            OWA.to_owned(),
            &[&format!("onedrive coast.edf {OWA_FILE} - -")],
        ),
        (
            DROP.to_owned(),
            &[&format!(
                "mail-drop coast film.mp4 {DROP_FILE} 26 2025-11-22T04:52:00Z"
            )],
        ),
        (
            DROP.replace("f=coast%20film", "f=coast%2520film"),
            &[&format!(
                "mail-drop coast film.mp4 {DROP_FILE} 26 2025-11-22T04:52:00Z"
            )],
        ),
        (
            FILE_LINK.to_owned(),
            &[&format!("nextcloud coast.png {FILE_LINK_FILE} 20 -")],
        ),
        (
            FILE_LINK.replace("li>", "div>").replace("<li", "<div"),
            &[&format!("nextcloud coast.png {FILE_LINK_FILE} 20 -")],
        ),
        (
            DROPBOX.to_owned(),
            &[&format!("dropbox coast.png {DROPBOX_FILE} - -")],
        ),
        (BOX.to_owned(), &[&format!("box coast.png {BOX_FILE} - -")]),
        (format!("<blockquote type=cite>{CHIP}</blockquote>"), &[]),
        (format!("<blockquote>{OWA}{DROPBOX}</blockquote>"), &[]),
        (quoted(CHIP), &[]),
        (quoted(OWA), &[]),
        (unsure, &[]),
        // A link without other markup.
        (
            soup.to_owned(),
            &[&format!("google-drive - {CHIP_FILE} - -")],
        ),
        (CHIP.replace("drive.google.com", "drive.example.com"), &[]),
        (CHIP.replace("https:", "javascript:"), &[]),
        (
            format!("<!-- {CHIP} --><script>{CHIP}</script><!--[if mso]>{CHIP}<![endif]-->"),
            &[],
        ),
    ] {
        assert_eq!(told(&html(&body)), expected, "{body}");
    }
    assert_eq!(
        told(SYMPA.as_bytes()),
        [format!("sympa coast.mp4 {SYMPA_FILE} - -")]
    );
    for none in [
        String::from_utf8(html(CHIP))
            .unwrap()
            .replace("text/html", "text/plain"),
        String::from_utf8(html(CHIP))
            .unwrap()
            .replace("X-More: yes", "Content-Disposition: attachment"),
        SYMPA.replace("inline", "attachment"),
        SYMPA.replace("; format=flowed", ""),
        SYMPA
            .replace("https:", "Regards\nhttps:")
            .replace(".bin", ".bin\nAnn"),
    ] {
        assert_eq!(told(none.as_bytes()), [""; 0], "{none}");
    }
}

#[test]
fn hosted_files_are_not_followed_by_default_and_inspect_names_the_option() {
    let clouds = Clouds::file(CHIP_FILE);
    let plain = Policy::default().with_fetch([Scheme::Https]);
    let (output, report) = run(plain, &clouds, &html(CHIP));
    assert_eq!((output, report.rows.len()), (html(CHIP), 0));
    for (mail, form, provider) in [
        (html(CHIP), "gmail", "coast.webm at google-drive"),
        (html(OWA), "outlook", "coast.edf at onedrive"),
        (
            html(DROP),
            "mail-drop",
            "coast film.mp4 at mail-drop, 26 bytes, until 2025-11-22",
        ),
        (
            html(FILE_LINK),
            "filelink",
            "coast.png at nextcloud, 20 bytes",
        ),
        (html(DROPBOX), "links", "coast.png at dropbox"),
        (SYMPA.as_bytes().to_vec(), "sympa", "coast.mp4 at sympa"),
    ] {
        let output = fed(embody().arg("inspect"), &mail);
        let text = String::from_utf8(output.stdout).unwrap();
        for words in [
            provider,
            &format!("--follow {form} --fetch https would allow it"),
        ] {
            assert!(text.contains(words), "{text}");
        }
    }
}

#[test]
fn single_part_mail_becomes_the_first_part_of_a_multipart_unchanged() {
    let (output, report) = run(policy(), &Clouds::file(CHIP_FILE), &html(CHIP));
    let text = String::from_utf8(output.clone()).unwrap();
    let boundary = text
        .split("boundary=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let expected = format!(
        "From: ann@example.org\nSubject: a file\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{boundary}\"\nContent-Transfer-Encoding: 8bit\nX-More: yes\n\n\
         --{boundary}\nContent-Type: text/html; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n\n<p>caf\u{e9}</p>{CHIP}\n\n\
         --{boundary}\nContent-Type: image/png\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment;\n filename=\"coast.webm\"\nContent-Location: {CHIP_LINK}\n\n{ENCODED}\n--{boundary}--\n"
    );
    assert_bytes(&output, expected.as_bytes(), "the mail");
    let rows = rows(&report);
    assert_eq!(
        (rows[0].outcome, rows[0].bytes),
        (Outcome::Expanded, Some(20))
    );
    let (again, report) = run(policy(), &Clouds::file(CHIP_FILE), &output);
    assert_bytes(&again, &output, "twice");
    assert_eq!(report.rows.len(), 0);
    let (windows, _) = run(policy(), &Clouds::file(CHIP_FILE), &crlf(&html(CHIP)));
    let text = String::from_utf8(windows.clone()).unwrap();
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    let Some(leaves) = python_leaves(&[output, windows]) else {
        return;
    };
    for leaves in leaves {
        assert_eq!((leaves.len(), &leaves[1].octets[..]), (2, PICTURE));
    }
}

#[test]
fn a_multipart_gets_one_part_more_at_its_end() {
    for mail in [mixed(CHIP), crlf(&mixed(CHIP))] {
        let (output, _) = run(policy(), &Clouds::file(CHIP_FILE), &mail);
        let newline = if mail.ends_with(b"\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        let with_lf = format!(
            "--b0\nContent-Type: image/png\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment;\n filename=\"coast.webm\"\nContent-Location: {CHIP_LINK}\n\n{ENCODED}\n"
        );
        let part = with_lf.replace('\n', newline);
        let mut expected = String::from_utf8(mail.clone()).unwrap();
        expected.insert_str(expected.find("--b0--").unwrap(), &part);
        assert_bytes(&output, expected.as_bytes(), "the mail");
        let (again, _) = run(policy(), &Clouds::file(CHIP_FILE), &output);
        assert_bytes(&again, &output, "twice");
    }
    // A multipart/alternative or multipart/related becomes a part itself.
    for kind in ["alternative", "related"] {
        let mail = String::from_utf8(mixed(CHIP))
            .unwrap()
            .replace("mixed", kind);
        let (output, _) = run(policy(), &Clouds::file(CHIP_FILE), mail.as_bytes());
        let output = String::from_utf8(output).unwrap();
        let (_, body) = mail.split_once("\n\n").unwrap();
        let inner = format!("Content-Type: multipart/{kind}; boundary=b0\n\n{body}\n--=_embody_");
        assert!(output.contains(&inner), "{output}");
    }
}

#[test]
fn every_cloud_gives_its_file_and_the_octets_are_those_that_came() {
    for (mail, url, name) in [
        (html(CHIP), CHIP_FILE, "coast.webm"),
        (html(OWA), OWA_FILE, "coast.edf"),
        (html(DROP), DROP_FILE, "coast film.mp4"),
        (html(FILE_LINK), FILE_LINK_FILE, "coast.png"),
        (html(DROPBOX), DROPBOX_FILE, "coast.png"),
        (html(BOX), BOX_FILE, "coast.png"),
        (SYMPA.as_bytes().to_vec(), SYMPA_FILE, "coast.mp4"),
    ] {
        let (output, report) = run(policy(), &Clouds::file(url), &mail);
        let text = String::from_utf8(output.clone()).unwrap();
        assert!(text.contains(&format!("filename=\"{name}\"")), "{text}");
        assert_eq!(rows(&report)[0].outcome, Outcome::Expanded, "{report:?}");
        let (again, report) = run(policy(), &Clouds::default(), &output);
        assert_bytes(&again, &output, name);
        assert_eq!(report.rows.len(), 0, "{report:?}");
        let pages = [
            ("", "web-page"),
            ("https://login.microsoftonline.com/x", "sign-in"),
        ];
        for (last, expected) in pages {
            let pages = Clouds::default().with(url, last, "text/html", b"<html>");
            let found = reason(policy(), &pages, &mail);
            let is_past = url == DROP_FILE;
            assert_eq!(found, if is_past { "expired" } else { expected }, "{name}");
        }
        let led = Clouds::default().with(url, "https://dl.example.com/x", "image/png", PICTURE);
        let (led, report) = run(policy(), &led, &mail);
        assert_eq!(rows(&report)[0].outcome, Outcome::Expanded, "{report:?}");
        let (again, _) = run(policy(), &Clouds::default(), &led);
        assert_bytes(&again, &led, name);
        let text = b"a\r\nb\n\n-- \nc \n.\n";
        let lines = Clouds::default().with(url, "", "text/plain", text);
        let (lines, _) = run(policy(), &lines, &mail);
        let Some(leaves) = python_leaves(&[output, lines]) else {
            return;
        };
        assert!(
            leaves[0].iter().any(|leaf| leaf.octets == PICTURE),
            "{leaves:?}"
        );
        let with_lf: Vec<u8> = text.iter().copied().filter(|&byte| byte != b'\r').collect();
        let expected = with_lf.trim_ascii_end();
        assert!(
            leaves[1].iter().any(|leaf| leaf.octets == expected),
            "{leaves:?}"
        );
    }
    let (output, _) = run(policy(), &Clouds::file(SYMPA_FILE), SYMPA.as_bytes());
    let output = String::from_utf8(output).unwrap();
    let expected = format!(
        "--=_s\nContent-Type: image/png\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment;\n filename=\"coast.mp4\"\nContent-Location: {SYMPA_FILE}\n\n{ENCODED}\n--=_s--\n"
    );
    assert!(output.ends_with(&expected), "{output}");
    assert!(!output.contains("initially"), "{output}");
}

#[test]
fn web_page_in_place_of_the_file_is_refused_with_the_reason_of_the_page() {
    let page = |last, octets: &str| {
        Clouds::default().with(CHIP_FILE, last, "text/html", octets.as_bytes())
    };
    for (last, octets, expected) in [
        ("", "<html>Here is your file", "web-page"),
        ("https://accounts.google.com/v3/signin", "<html>", "sign-in"),
        ("https://login.live.com/login.srf", "", "sign-in"),
        ("", "<form><input type=\"password\">", "sign-in"),
        (
            "",
            "<title>Google Drive - Virus scan warning</title>",
            "scan-page",
        ),
        ("", "<p>This link has expired.", "expired"),
    ] {
        assert_eq!(
            reason(policy(), &page(last, octets), &html(CHIP)),
            expected,
            "{octets}"
        );
    }
    assert_eq!(
        reason(policy(), &Clouds::default(), &html(CHIP)),
        "http-status"
    );
    // The file has expired.
    assert_eq!(reason(policy(), &Clouds::default(), &html(DROP)), "expired");
    let sympa = Clouds::default().with(SYMPA_FILE, "", "text/html", b"<html>");
    assert_eq!(reason(policy(), &sympa, SYMPA.as_bytes()), "web-page");
    // The link announced an HTML file.
    let promised = html(&CHIP.replace("coast.webm", "page.HTML"));
    let (output, report) = run(
        policy(),
        &page("", "<html>a page that has expired"),
        &promised,
    );
    assert_ne!(output, promised, "{report:?}");
    let gate = page("https://accounts.google.com/", "<html>");
    assert_eq!(reason(policy(), &gate, &promised), "sign-in");
    let form = page("", "<html><input type=\"password\">");
    assert_eq!(reason(policy(), &form, &promised), "sign-in");
}

#[test]
fn declared_size_mismatch_is_reported_and_type_and_size_limits_apply() {
    let (output, report) = run(policy(), &Clouds::file(DROP_FILE), &html(DROP));
    assert_ne!(output, html(DROP));
    let detail = &rows(&report)[0].detail;
    assert!(
        detail.contains("the mail declares 26 bytes, but the content has 20 bytes"),
        "{detail}"
    );
    let limited = |body| policy().with_limits(Limits::default().with_body(body));
    assert_eq!(
        reason(limited(25), &Clouds::file(DROP_FILE), &html(DROP)),
        "too-large"
    );
    assert_eq!(
        reason(limited(19), &Clouds::file(CHIP_FILE), &html(CHIP)),
        "too-large"
    );
    let only = policy().with_allow_types(["text/*".parse().unwrap()]);
    assert_eq!(
        reason(only, &Clouds::file(CHIP_FILE), &html(CHIP)),
        "type-not-allowed"
    );
    let closed = policy().with_deny_hosts(["drive.google.com".parse().unwrap()]);
    assert_eq!(
        reason(closed, &Clouds::file(CHIP_FILE), &html(CHIP)),
        "host-not-allowed"
    );
    let grown = policy().with_limits(Limits::default().with_growth(100));
    assert_eq!(
        reason(grown, &Clouds::file(CHIP_FILE), &html(CHIP)),
        "growth-limit"
    );
    let few = policy().with_limits(Limits::default().with_parts(2));
    assert_eq!(
        reason(few, &Clouds::file(CHIP_FILE), &html(CHIP)),
        "too-many-parts"
    );
    // The response of the cloud may declare a charset.
    let latin = Clouds::default().with(CHIP_FILE, "", "text/plain; charset=ISO-8859-1", b"\xe9");
    let (output, _) = run(policy(), &latin, &html(CHIP));
    let output = String::from_utf8(output).unwrap();
    let expected =
        "Content-Type: text/plain; charset=\"ISO-8859-1\"\nContent-Transfer-Encoding: base64\n";
    assert!(output.contains(expected), "{output}");
    // A message is attached as a file.
    let message = Clouds::default().with(CHIP_FILE, "", "message/rfc822", b"Subject: x\n\ny\n");
    let (output, _) = run(policy(), &message, &html(CHIP));
    let output = String::from_utf8(output).unwrap();
    assert!(
        output.contains("Content-Type: application/octet-stream"),
        "{output}"
    );
}

#[test]
fn signed_mail_and_broken_mail_are_left_and_a_message_in_a_message_gets_its_own() {
    let signed = String::from_utf8(mixed(CHIP))
        .unwrap()
        .replace("mixed", "signed");
    assert_eq!(
        reason(policy(), &Clouds::file(CHIP_FILE), signed.as_bytes()),
        "signed"
    );
    let open = String::from_utf8(mixed(CHIP))
        .unwrap()
        .replace("--b0--", "--b0 x");
    assert_eq!(
        reason(policy(), &Clouds::file(CHIP_FILE), open.as_bytes()),
        "incomplete-body"
    );
    let inner = String::from_utf8(html(CHIP)).unwrap();
    let front =
        "Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: message/rfc822\n\n";
    let digest = format!("{front}{inner}\n--o\n\nx\n--o--\n");
    let (output, report) = run(policy(), &Clouds::file(CHIP_FILE), digest.as_bytes());
    let output = String::from_utf8(output).unwrap();
    assert_eq!(rows(&report).len(), 1);
    assert!(
        output.starts_with(front) && output.ends_with("--\n--o\n\nx\n--o--\n"),
        "{output}"
    );
    // Both messages get a part, although the inner one ends where the outer one ends.
    let both = format!("Content-Type: message/rfc822\n\n{inner}");
    let (output, _) = run(policy(), &Clouds::file(CHIP_FILE), both.as_bytes());
    let Some(leaves) = python_leaves(&[output]) else {
        return;
    };
    assert_eq!(leaves[0].len(), 2, "{leaves:?}");
}

#[test]
fn quoted_printable_and_base64_are_read() {
    use base64::Engine as _;
    let text = String::from_utf8(html(CHIP)).unwrap();
    let (header, body) = text.split_once("\n\n").unwrap();
    let quoted: String = body
        .bytes()
        .enumerate()
        .map(|(at, byte)| match byte {
            b'\n' => "\n".to_owned(),
            byte if byte == b'=' || !byte.is_ascii() => format!("={byte:02X}"),
            byte if at % 61 == 60 => format!("={byte:02X}=\n"),
            byte => char::from(byte).to_string(),
        })
        .collect();
    let encoded = base64::engine::general_purpose::STANDARD.encode(body);
    for (encoding, body) in [("quoted-printable", quoted), ("base64", encoded)] {
        let mail = format!("{}\n\n{body}\n", header.replace("8bit", encoding));
        let (output, report) = run(policy(), &Clouds::file(CHIP_FILE), mail.as_bytes());
        assert_eq!(rows(&report).len(), 1, "{mail}");
        let output = String::from_utf8(output).unwrap();
        assert!(output.contains(&body), "{output}");
        assert!(output.contains(&format!("Content-Transfer-Encoding: {encoding}\n")));
    }
}

#[test]
fn a_thousand_links_are_as_many_requests_as_the_limit_allows() {
    let chips: String = (0..1000)
        .map(|at| CHIP.replace("1AbC", &format!("{at}x")))
        .collect();
    let (_, report) = run(policy(), &Clouds::default(), &html(&chips));
    let of = |reason| {
        rows(&report)
            .iter()
            .filter(|row| row.reason == Some(reason))
            .count()
    };
    assert_eq!(
        (of(Reason::HttpStatus), of(Reason::TooManyFetches)),
        (32, 968)
    );
    let (output, report) = run(
        policy(),
        &Clouds::file(CHIP_FILE),
        &html(&CHIP.repeat(1000)),
    );
    assert_eq!(rows(&report).len(), 1);
    assert_eq!(
        String::from_utf8(output)
            .unwrap()
            .matches("Content-Location")
            .count(),
        1
    );
}

/// Filled content is scanned for references in the same run, so a second run changes nothing.
#[test]
fn retrieved_html_may_display_files() {
    let page = "data:text/html,".to_owned()
        + &CHIP
            .replace('%', "%25")
            .replace('"', "%22")
            .replace(' ', "%20")
            .replace('<', "%3C")
            .replace('>', "%3E");
    let mail = format!(
        "MIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL;\n URL=\"{page}\"\n\nContent-Type: text/html\n\n"
    );
    let (output, report) = run(policy(), &Clouds::file(CHIP_FILE), mail.as_bytes());
    assert_eq!(rows(&report).len(), 1, "{report:?}");
    let (again, _) = run(policy(), &Clouds::file(CHIP_FILE), &output);
    assert_bytes(&again, &output, "twice");
}

#[test]
fn a_server_is_asked_by_the_policy_of_all_retrievals() {
    let server = Raw::http(|path, stream| {
        use std::io::Write as _;
        let _ = stream.write_all(&match path {
            "/uc?export=download&id=1AbC" => ok("image/png", PICTURE),
            _ => ok("text/html", b"<html>"),
        });
    });
    let options = format!(
        "{} --map https://drive.google.com/={}",
        open(&[server.address.port()]),
        server.url("/")
    );
    let mail = html(CHIP);
    filter(&options, &mail).leaves(&mail, &[]);
    let ran = filter(&format!("{options} --follow gmail"), &mail);
    assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
    assert_eq!(ran.column("from"), ["network"]);
    assert_eq!(ran.rows[0]["hosted"]["provider"], "google-drive");
    assert_eq!(ran.rows[0]["hosted"]["link"], CHIP_LINK);
    filter(&format!("{options} --follow gmail"), &ran.stdout).gives(&ran.stdout);
    filter("--follow gmail", &mail).leaves(&mail, &["scheme-not-allowed"]);
}

#[test]
fn a_folder_of_attachments_has_what_sympa_kept() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("AbC")).unwrap();
    std::fs::write(folder.path().join("AbC/msg.0.bin"), PICTURE).unwrap();
    let options = format!("--follow sympa --attachments {}", folder.path().display());
    let ran = filter(&options, SYMPA.as_bytes());
    assert_eq!(ran.column("from"), ["file"], "{}", ran.stderr);
}
