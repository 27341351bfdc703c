//! `--follow rtf-body`: RTF that replaces the HTML or the text of a mail.

use crate::common::filter::filter;
use crate::common::tnef::from_html;

fn mail(text: &str, rtf: &str) -> String {
    let text = match text {
        "" => String::new(),
        text => format!("--b\nContent-Type: text/plain\n\n{text}\n"),
    };
    format!(
        "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n{text}--b\nContent-Type: application/rtf\n\
         Content-Disposition: attachment; filename=\"rtf-body.rtf\"\n\n{rtf}\n--b--\n"
    )
}

fn opened(mail: &str) -> String {
    let ran = filter("--follow rtf-body", mail.as_bytes());
    assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
    assert_eq!(ran.column("kind"), ["rtf"]);
    let again = filter("--follow rtf-body", &ran.stdout);
    assert!(again.stdout == ran.stdout, "{}", again.stderr);
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn rtf_from_html_becomes_html_next_to_the_text() {
    let mail = mail("Hello", &from_html("<p>Hello \\'e4</p>"));
    filter("", mail.as_bytes()).gives(mail.as_bytes());
    let text = opened(&mail);
    assert!(
        text.contains("boundary=b\n\n--b\nContent-Type: multipart/alternative;"),
        "{text}"
    );
    assert!(text.contains("charset=\"utf-8\"\nContent-Transfer-Encoding: quoted-printable\n\n<p>Hello =C3=A4</p>\n--=_embody_"), "{text}");
    assert!(!text.contains("rtf"), "{text}");
}

#[test]
fn rtf_made_from_text_is_removed_if_the_mail_has_the_text() {
    let rtf = "{\\rtf1\\ansi\\fromtext{\\fonttbl{\\f0 A;}}Hello\\par world\\par}";
    let text = opened(&mail("Hello world", rtf));
    assert!(
        text.ends_with("boundary=b\n\n--b\nContent-Type: text/plain\n\nHello world\n--b--\n"),
        "{text}"
    );
    let text = opened(&mail("", rtf));
    assert!(
        text.ends_with("boundary=b\n\n--b\nContent-Type: text/plain\n\nHello\nworld\n\n--b--\n"),
        "{text}"
    );
}

#[test]
fn rtf_that_encapsulates_nothing_stays_and_gives_text_to_a_mail_without_any() {
    let rtf = "{\\rtf1\\ansi{\\fonttbl{\\f0 A;}}Hello {\\b bold}\\par}";
    let with_text = mail("Hello", rtf);
    filter("--follow rtf-body", with_text.as_bytes()).leaves(with_text.as_bytes(), &[]);
    let text = opened(&mail("", rtf));
    assert!(text.contains("\n\nHello bold\n\n--b\n"), "{text}");
    assert!(text.contains(rtf), "{text}");
    let cut = mail(
        "Hello",
        "{\\rtf1\\ansi\\fromhtml1 {\\*\\htmltag64 <p>}Hello",
    );
    let text = opened(&cut);
    assert!(
        text.contains("<p>Hello") && text.contains("rtf-body.rtf"),
        "{text}"
    );
}
