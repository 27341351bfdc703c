//! Proofs of mail that several runs changed, and of what a proof must not ignore.

use std::collections::HashMap;

use super::prove::{all_kinds, detached, drive, gif, letter, proved, restored};
use crate::engine::detach::Stub;
use crate::engine::policy::{Embed, Followed, Policy, Scheme, Trackers};
use crate::engine::report::{Reason, Refusal};
use crate::engine::{Content, Engine, Need};
use crate::mime::transfer::with_newlines;
use crate::span::Newline;

const HEADER: &str = "From: Ann <ann@example.org>\nSubject: plan\nDate: Mon, 2 Jan 2023 10:00:00 +0000\nMessage-ID: <1@example.org>\n\
    MIME-Version: 1.0\n";

fn refused() -> Result<Content, Refusal> {
    Err(Refusal::lasting(Reason::HttpStatus, "404"))
}

/// Returns a large file for each URL, or a picture if the link displays one.
fn served(need: &Need) -> Result<Content, Refusal> {
    let url = need
        .url()
        .filter(|url| url.starts_with("https") && !url.contains("gone"));
    let Some(url) = url else {
        return refused();
    };
    let mark = url
        .bytes()
        .fold(7_u8, |sum, byte| sum.wrapping_mul(31) ^ byte);
    let (essence, mut bytes) = match url.rsplit('.').next() {
        Some("gif") => ("image/gif", gif(9, mark)),
        Some("txt") => ("text/plain; charset=utf-8", b"gr\xc3\xbcn\nand\r\n".to_vec()),
        // Without CRLF, base64 would be as short as quoted-printable.
        Some("short") => ("text/plain; charset=utf-8", b"caf\xc3\xa9\r\n".to_vec()),
        Some("eml") => (
            "message/rfc822",
            b"Subject: inner\nMIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL; URL=\"https://files.example.net/i.pdf\"\n\nContent-Type: application/pdf\n\n".to_vec(),
        ),
        Some("html") => (
            "text/html; charset=utf-8",
            b"<p>a page</p><a href=\"other.html\">x</a>\n".to_vec(),
        ),
        _ => ("application/pdf", b"%PDF-1.4\n\0".to_vec()),
    };
    if !essence.starts_with("text/") {
        bytes.extend([mark; 3000]);
    }
    let last = url.replace("?from=1", "?to=2");
    Ok(Content::new(last, Some(essence.to_owned()), bytes))
}

fn engine(change: impl FnOnce(Policy) -> Policy) -> Engine {
    let policy = Policy::default()
        .with_fetch(Scheme::ALL)
        .with_follow(Followed::all());
    Engine::new(change(policy))
}

fn embedding() -> Engine {
    engine(|policy| policy.with_embed(all_kinds(Trackers::Fetch)))
}

/// Returns mails with references to files and pictures.
fn mails() -> Vec<(&'static str, Vec<u8>)> {
    let external = |url: &str, fields: &str| {
        format!(
            "--AAA\nContent-Type: message/external-body; access-type=URL; URL=\"https://files.example.net/{url}\"\n\n{fields}\n\n\n"
        )
    };
    let texts = [
        (
            "references",
            format!(
                "{HEADER}Content-Type: multipart/mixed; boundary=AAA\n\n--AAA\nContent-Type: text/plain\n\nx\n\n{}{}{}{}{}{}--AAA--\n",
                external("a.pdf", "Content-Type: application/pdf"),
                external(
                    "b.pdf",
                    "Content-Type: application/pdf; name=b.pdf\nContent-Disposition: attachment; filename=b.pdf"
                ),
                external("c.txt", "Content-Type: text/plain; charset=utf-8"),
                external("d.html", "Content-Type: text/html; charset=utf-8"),
                external("e.short", "Content-Type: text/plain; charset=utf-8"),
                external("f.eml", "Content-Type: message/rfc822"),
            ),
        ),
        (
            "rivals and a redirect",
            format!(
                "{HEADER}Content-Type: multipart/alternative; boundary=AAA\n\n\
                 --AAA\nContent-Type: message/external-body; access-type=local-file; name=\"/srv/a.pdf\"\n\nContent-Type: application/pdf\n\n\n{}{}--AAA--\n",
                external("gone.pdf", "Content-Type: application/pdf"),
                external("a.pdf?from=1", "Content-Type: application/pdf"),
            ),
        ),
        (
            "whole message",
            format!(
                "{HEADER}Content-Type: message/external-body; access-type=URL; URL=\"https://files.example.net/w.pdf\"\n\n\
                 Content-Type: application/pdf\nContent-ID: <w@example.org>\n\n"
            ),
        ),
        (
            "pictures",
            format!(
                "{HEADER}Content-Type: text/html; charset=utf-8\n\n<img src=\"https://img.example.net/a.gif\"><img src=\"https://img.example.net/b.gif\">\
                 <img src=\"https://img.example.net/c.gif\"><img src=\"https://img.example.net/a.gif\">\n"
            ),
        ),
        ("letter", String::from_utf8(letter()).unwrap()),
    ];
    let twice = texts.into_iter().flat_map(|(name, text)| {
        let crlf = with_newlines(text.clone().into_bytes(), Newline::CrLf);
        [(name, text.into_bytes()), (name, crlf)]
    });
    twice.collect()
}

#[track_caller]
fn assert_proved(name: &str, old: &[u8], new: &[u8]) {
    if let Err(why) = proved(old, new) {
        panic!("{name}: {why}\n{}", String::from_utf8_lossy(new));
    }
}

#[test]
fn content_that_one_run_retrieved_and_a_later_run_detached_is_proved_without_the_store() {
    for (name, old) in mails() {
        for engine in [embedding(), engine(|policy| policy)] {
            let whole = drive(&engine, &old, &served);
            for how in [(Stub::ExternalBody, false), (Stub::Thunderbird, true)] {
                let mut store = HashMap::new();
                let new = detached(&whole, how, &mut store);
                assert_proved(name, &old, &new);
                assert_proved(name, &new, &restored(&new, &store));
                for (from, to) in [
                    ("line=76", "line=72"),
                    ("encoding=base64", "encoding=identity"),
                    ("application/pdf; name=b.pdf", "application/pdf; name=c.pdf"),
                    ("cid:", "cid:0"),
                ] {
                    let changed = String::from_utf8_lossy(&new).replacen(from, to, 1);
                    if changed.as_bytes() != new {
                        assert!(proved(&old, changed.as_bytes()).is_err(), "{name}: {from}");
                    }
                }
            }
        }
    }
}

#[test]
fn files_of_each_type_that_one_run_embedded_and_a_later_run_detached_are_proved() {
    let files: [(&str, &str, &[u8]); 13] = [
        ("png", "image/png", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x09\0\0\0\x09\x08\x02\0\0\0\0\0\0\0\0\0\0\x05IDAT12345"),
        ("webp", "image/webp", b"RIFF\x34\0\0\0WEBPVP8L\x05\0\0\0\x2f\x08\0\x02\0"),
        ("tif", "image/tiff", b"II*\0\x08\0\0\0\0\0"),
        ("avif", "image/avif", b"\0\0\0\x18ftypavif\0\0\0\0mif1avif\0\0\0\x20meta"),
        ("heic", "image/heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic\0\0\0\x20meta"),
        ("jxl", "image/jxl", b"\0\0\0\x0cJXL \r\n\x87\n\0\0\0\x09jxlc\0"),
        ("jp2", "image/jp2", b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjp2 \0\0\0\0jp2 \0\0\0\0jp2c"),
        ("bmp", "image/bmp", b"BM\xff\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x09\0\0\0\x09\0\0\0\x01\0\x18\0"),
        ("ico", "image/vnd.microsoft.icon", b"\0\0\x01\0\x01\0\x09\x09\0\0\x01\0\x20\0\xff\0\0\0\x16\0\0\0"),
        ("svg", "image/svg+xml", b"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"><text>"),
        ("utf8.svg", "image/svg+xml", "<svg xmlns=\"http://www.w3.org/2000/svg\"><text>gr\u{fc}n".as_bytes()),
        ("mp4", "video/mp4", b"\0\0\0\x10ftypmp42\0\0\0\0"),
        ("ogg", "audio/ogg", b"OggS\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x1e\x01vorbis"),
    ];
    for (name, essence, start) in files {
        let serve = |need: &Need| {
            let url = need.url().unwrap_or_default();
            let mut bytes = start.to_vec();
            let is_svg = essence == "image/svg+xml";
            bytes.extend(std::iter::repeat_n(if is_svg { b'x' } else { 0xff }, 1100));
            if is_svg {
                bytes.extend(b"</text></svg>\n");
            }
            Ok(Content::new(url, Some(essence.to_owned()), bytes))
        };
        let link = match essence.split('/').next() {
            Some("image") => "<img src",
            Some("video") => "<video src",
            _ => "<audio src",
        };
        let old = format!(
            "{HEADER}Content-Type: text/html; charset=utf-8\n\n<p>{link}=\"https://img.example.net/a.{name}\"> y\n"
        );
        let whole = drive(&embedding(), old.as_bytes(), &serve);
        assert_ne!(whole, old.as_bytes(), "{name}");
        for how in [(Stub::ExternalBody, false), (Stub::Thunderbird, true)] {
            let mut store = HashMap::new();
            let new = detached(&whole, how, &mut store);
            if store.is_empty() {
                // Text is only detached if it is an attachment.
                assert!(essence.starts_with("image/svg"), "{name}");
                continue;
            }
            assert_proved(name, old.as_bytes(), &new);
        }
    }
}

#[test]
fn pictures_that_later_runs_embedded_before_others_are_proved() {
    let without = |names: &'static [&'static str]| {
        move |need: &Need| match need.url() {
            Some(url) if names.iter().any(|name| url.ends_with(name)) => refused(),
            _ => served(need),
        }
    };
    for (name, old) in mails() {
        let first = drive(&embedding(), &old, &without(&["a.gif", "b.gif", "one.gif"]));
        let second = drive(&embedding(), &first, &without(&["a.gif"]));
        let third = drive(&embedding(), &second, &served);
        assert_proved(name, &old, &second);
        assert_proved(name, &old, &third);
        assert_proved(name, &first, &third);
        assert_proved(
            name,
            &old,
            &detached(&third, (Stub::ExternalBody, false), &mut HashMap::new()),
        );
    }
}

#[test]
fn runs_with_and_without_provenance_are_proved() {
    for (name, old) in mails() {
        let recovered = drive(&engine(|policy| policy), &old, &served);
        let noted = embedding_with_provenance();
        assert_proved(name, &old, &drive(&noted, &recovered, &served));
        let noted_first = drive(
            &engine(|policy| policy.with_provenance(true)),
            &old,
            &served,
        );
        assert_proved(name, &old, &noted_first);
        assert_proved(name, &old, &drive(&embedding(), &noted_first, &served));
    }
}

fn embedding_with_provenance() -> Engine {
    engine(|policy| {
        let embed = all_kinds(Trackers::Fetch);
        policy.with_embed(embed).with_provenance(true)
    })
}

#[test]
fn url_of_a_detached_attachment_must_name_its_object() {
    let old = letter();
    for how in [(Stub::ExternalBody, false), (Stub::Thunderbird, false)] {
        let new = detached(&old, how, &mut HashMap::new());
        let text = String::from_utf8(new).unwrap();
        assert_proved("unchanged", &old, text.as_bytes());
        let at = text.find("attachments.example.org/store/").unwrap();
        let (front, back) = text.split_at(at);
        let end = back.find(['"', '\n']).unwrap();
        // The folds of an external body are in the URL, so it ends at the quotation mark.
        let end = match how.0 {
            Stub::ExternalBody => back.find('"').unwrap(),
            _ => end,
        };
        let last = if back.as_bytes()[end - 1] == b'0' {
            "1"
        } else {
            "0"
        };
        let other = format!("{front}{}{last}{}", &back[..end - 1], &back[end..]);
        assert!(proved(&old, other.as_bytes()).is_err(), "{other}");
        let moved = text.replace(
            "https://attachments.example.org/store",
            "https://example.net/files",
        );
        if how.0 == Stub::Thunderbird {
            assert_proved("another server", &old, moved.as_bytes());
        }
    }
    let new = detached(&old, (Stub::ExternalBody, false), &mut HashMap::new());
    let text = String::from_utf8(new).unwrap();
    for (from, to) in [
        ("access-type=URL;\n", "access-type=URL; \n"),
        ("access-type=URL;\n size", "access-type=url;\n size"),
        (" size=", "  size="),
        (" size=", " SIZE="),
        ("URL=\"\n", "URL=\"\n size=1; URL=\"\n"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        assert!(proved(&old, changed.as_bytes()).is_err(), "{from}");
    }
    let folded = text.replacen("attachments.example", "attach\n ments.example", 1);
    assert_proved("folded", &old, folded.as_bytes());
}

#[test]
fn digits_of_a_boundary_are_content_outside_of_boundaries() {
    let boundary = |digit: char| format!("=_embody_{}", digit.to_string().repeat(24));
    let mail = |real: char, text: char| {
        let (real, text) = (boundary(real), boundary(text));
        format!(
            "{HEADER}Content-Type: multipart/mixed; boundary=\"{real}\"\n\n--{real}\nContent-Type: text/plain\n\n\
             see {text}\n-- {text}\n boundary={text}\n\n--{real}--\n"
        )
        .into_bytes()
    };
    assert_proved("renamed", &mail('a', 'b'), &mail('c', 'b'));
    assert!(proved(&mail('a', 'b'), &mail('a', 'c')).is_err());
    let plain = |text: char| format!("{HEADER}\n--{}\n", boundary(text)).into_bytes();
    assert!(proved(&plain('a'), &plain('b')).is_err());
}

#[test]
fn blanks_after_inserted_base64_are_no_spelling_of_it() {
    let (_, old) = mails().swap_remove(6);
    let new = drive(&embedding(), &old, &served);
    let text = String::from_utf8(new).unwrap();
    let (front, back) = text.rsplit_once("\n--=_embody").unwrap();
    let with = |more: &str| format!("{front}{more}\n--=_embody{back}");
    assert_proved("empty line", &old, with("\n").as_bytes());
    assert!(proved(&old, with(" ").as_bytes()).is_err());
    assert!(proved(&old, with("\n\t\n").as_bytes()).is_err());
}

#[test]
fn style_sheet_without_its_picture_is_not_proved() {
    let old = format!(
        "{HEADER}Content-Type: text/html; charset=utf-8\n\n<link rel=stylesheet href=\"https://css.example.net/a.css\"><p>x</p>\n"
    );
    let serve = |need: &Need| match need.url() {
        Some(url) if url.ends_with(".css") => Ok(Content::new(
            url,
            Some("text/css".to_owned()),
            &b"a { background: url(one.gif) }\nb { background: url(two.gif) }\n"[..],
        )),
        _ => served(need),
    };
    let new = String::from_utf8(drive(&embedding(), old.as_bytes(), &serve)).unwrap();
    assert_proved("whole", old.as_bytes(), new.as_bytes());
    let at = new.find("Content-Type: image/gif").unwrap();
    let start = new[..at].rfind("--=_embody").unwrap();
    let end = at + new[at..].find("--=_embody").unwrap();
    let without = format!("{}{}", &new[..start], &new[end..]);
    assert!(
        proved(old.as_bytes(), without.as_bytes()).is_err(),
        "{without}"
    );
}

#[test]
fn empty_document_from_a_server_is_proved() {
    for content in ["", "\n", " \r\n"] {
        for essence in ["text/html", "text/plain", "text/css"] {
            let old = format!(
                "{HEADER}Content-Type: multipart/mixed; boundary=AAA\n\n--AAA\nContent-Type: text/plain\n\nx\n\n\
                 --AAA\nContent-Type: message/external-body; access-type=URL; URL=\"https://files.example.net/a\"\n\n\
                 Content-Type: {essence}; charset=utf-8\n\n\n--AAA--\n"
            );
            let serve = |need: &Need| match need.url() {
                Some(url) => Ok(Content::new(url, Some(essence.to_owned()), content)),
                None => refused(),
            };
            let new = drive(&embedding(), old.as_bytes(), &serve);
            assert_ne!(new, old.as_bytes());
            assert_proved(essence, old.as_bytes(), &new);
        }
    }
}

/// Encodes a file with uuencode.
fn uuencoded(name: &str, bytes: &[u8]) -> String {
    let symbol = |value: u8| match value & 63 {
        0 => '`',
        value => char::from(32 + value),
    };
    let mut text = format!("begin 644 {name}\n");
    for line in bytes.chunks(45) {
        text.push(symbol(u8::try_from(line.len()).unwrap()));
        for group in line.chunks(3) {
            let [one, two, three] = [0, 1, 2].map(|at| group.get(at).copied().unwrap_or_default());
            for value in [one >> 2, one << 4 | two >> 4, two << 2 | three >> 6, three] {
                text.push(symbol(value));
            }
        }
        text.push('\n');
    }
    text.push_str("`\nend\n");
    text
}

#[test]
fn large_file_that_one_run_unpacked_and_a_later_run_detached_is_proved() {
    let file: Vec<u8> = (0..900_000_u32)
        .map(|at| at.to_le_bytes()[usize::from(at % 3 == 0)])
        .collect();
    let old = format!(
        "{HEADER}Content-Type: text/plain\n\nhello\n\n{}",
        uuencoded("a.bin", &file)
    );
    let whole = drive(&engine(|policy| policy), old.as_bytes(), &served);
    let mut store = HashMap::new();
    let new = detached(&whole, (Stub::ExternalBody, false), &mut store);
    assert_eq!(store.into_values().collect::<Vec<_>>(), [file]);
    assert_proved("uuencode", old.as_bytes(), &new);
}

/// Returns a mail in which Mailman left notes in place of pages, messages and texts.
fn scrubbed() -> Vec<u8> {
    let url = |name: &str| {
        format!("<https://lists.example.org/pipermail/x/attachments/20240514/50f524a0/{name}>")
    };
    let mut text = format!("{HEADER}\nsee below\n");
    for name in [
        "plain.html",
        "escaped.html",
        "utf8.html",
        "latin1.html",
        "escaped-utf8.html",
        "escaped-latin1.html",
        "greek.html",
        "bytes.html",
        "long.html",
        "crlf.html",
    ] {
        let part = "-------------- next part --------------\n";
        let note = format!(
            "{part}An HTML attachment was scrubbed...\nURL: {}\n",
            url(name)
        );
        text.push_str(&note);
    }
    let message = stored_message(false);
    for (name, size) in [("message.htm", message.len()), ("escaped.htm", 5)] {
        let note = format!(
            "-------------- next part --------------\nAn embedded message was scrubbed...\nFrom: Bob <bob@example.org>\n\
             Subject: inner\nDate: Mon, 2 Jan 2023 10:00:00 +0000\nSize: {size}\nURL: {}\n",
            url(name)
        );
        text.push_str(&note);
    }
    text.into_bytes()
}

/// Returns a message as Mailman stores it. Its markup can be escaped, but not in a way that can be undone.
fn stored_message(is_damaged: bool) -> String {
    let entity = if is_damaged { "&eacute;" } else { "" };
    format!(
        "From bob Mon Jan  2 10:00:00 2023\nFrom: Bob\nSubject: inner\n\nhello {entity}{}\n",
        "and a line\n".repeat(90)
    )
}

/// Returns what Mailman stored for the notes of [`scrubbed`].
fn stored(need: &Need) -> Result<Content, Refusal> {
    let url = need.url().unwrap_or_default();
    let page = |text: &str| format!("<tt>\n{text}\n</tt>\n").into_bytes();
    let word = "a word and another one, ".repeat(50);
    let lines = word.replace(", ", ",<br>\n");
    let bytes = match url.rsplit('/').next().unwrap_or_default() {
        "plain.html" => page(&lines.replace(' ', "&nbsp;")),
        "escaped.html" => page(&format!("{lines}&#64;")),
        "utf8.html" => "<p>gr\u{fc}n and a line\n".repeat(40).into_bytes(),
        "latin1.html" => b"<p>gr\xfcn and a line\n".repeat(40),
        "escaped-utf8.html" => page(&format!("{lines}\u{fc}&#64;")),
        "escaped-latin1.html" => [&page(&format!("{lines}&#64;"))[..], b"\xfc\n"].concat(),
        "greek.html" => "<p>\u{3b1}\u{3b2}\u{3b3}\u{3b4}\u{3b5}</p>\n"
            .repeat(60)
            .into_bytes(),
        "bytes.html" => b"\xe1\xe2\xe3\xe4\xe5\xe6\xe7\n".repeat(90),
        "long.html" => format!("<p>{word}</p>\n").into_bytes(),
        "crlf.html" => b"<p>a line\r\n".repeat(90),
        "message.htm" => stored_message(false).into_bytes(),
        "escaped.htm" => stored_message(true).into_bytes(),
        _ => return refused(),
    };
    Ok(Content::new(url, Some("text/html".to_owned()), bytes))
}

#[test]
fn pages_of_mailman_that_one_run_retrieved_and_a_later_run_detached_are_proved() {
    let old = scrubbed();
    for old in [old.clone(), with_newlines(old, Newline::CrLf)] {
        let noted = engine(|policy| policy.with_provenance(true));
        for engine in [embedding(), engine(|policy| policy), noted] {
            let whole = drive(&engine, &old, &stored);
            assert_eq!(
                String::from_utf8_lossy(&whole).matches("filename=").count(),
                4
            );
            assert_proved("recovered", &old, &whole);
            for how in [(Stub::ExternalBody, false), (Stub::Thunderbird, true)] {
                let mut store = HashMap::new();
                let new = detached(&whole, how, &mut store);
                assert_proved("detached", &old, &new);
                assert_proved("restored", &new, &restored(&new, &store));
                for (from, to) in [
                    ("unknown-8bit", "utf-8"),
                    ("filename=\"escaped.html\"", "filename=\"plain.html\""),
                    ("encoding=quoted-printable", "encoding=base64; line=76"),
                    ("see below", "see above"),
                ] {
                    let changed = String::from_utf8_lossy(&new).replacen(from, to, 1);
                    assert_ne!(changed.as_bytes(), new, "{from}");
                    assert!(proved(&old, changed.as_bytes()).is_err(), "{from}");
                }
            }
        }
    }
}

/// Returns a mail with a note of Mailman, and the mail in which another part is in its place.
fn filled(note: &str, part: &str) -> [String; 2] {
    let header = HEADER.trim_end();
    let old = format!(
        "{header}\nContent-Type: text/plain; charset=utf-8\n\nhello\n-------------- next part --------------\n{note}\
         URL: <http://lists.example.org/pipermail/dev/attachments/20230102/50f524a0/attachment.pdf>\n"
    );
    let new = format!(
        "{header}\nContent-Type: multipart/mixed; boundary=\"=_embody_253566b833547c81ece99e26\"\n\n\
         --=_embody_253566b833547c81ece99e26\nContent-Type: text/plain; charset=utf-8\n\nhello\n\n\
         --=_embody_253566b833547c81ece99e26\n{part}--=_embody_253566b833547c81ece99e26--\n"
    );
    [old, new]
}

#[test]
fn content_from_a_copy_must_have_the_name_the_type_and_the_size_in_the_note() {
    let note = |size: usize| {
        format!(
            "A non-text attachment was scrubbed...\nName: report.pdf\nType: application/pdf\nSize: {size} bytes\nDesc: not available\n"
        )
    };
    let named = |essence: &str, name: &str| {
        format!(
            "Content-Type: {essence}\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment;\n filename=\"{name}\"\n\n"
        )
    };
    let pdf = "JVBERi0xLjQK";
    let right = format!("{}{pdf}\n", named("application/pdf", "report.pdf"));
    let [old, new] = filled(&note(9), &right);
    assert_proved("copy", old.as_bytes(), new.as_bytes());
    for (what, size, part) in [
        (
            "no content",
            500,
            "Content-Type: text/plain\n\n\n".to_owned(),
        ),
        ("another size", 10, right.clone()),
        ("another byte more", 9, right.replace("LjQK", "LjQKCg==")),
        ("another name", 9, right.replace("report.pdf", "order.pdf")),
        (
            "another type",
            9,
            right.replace("application/pdf", "image/png"),
        ),
    ] {
        let [old, new] = filled(&note(size), &part);
        assert!(
            proved(old.as_bytes(), new.as_bytes()).is_err(),
            "{what}\n{new}"
        );
    }
}

#[test]
fn page_between_notes_that_a_run_left_is_proved() {
    let url = |name: &str| {
        format!("<https://lists.example.org/pipermail/x/attachments/20240514/50f524a0/{name}>")
    };
    let file = |size: usize, name: &str| {
        format!(
            "Ein Dateianhang mit Bin\u{e4}rdaten wurde abgetrennt...\nDateiname   : k\u{fc}ste.png\nDateityp    : image/png\n\
             Dateigr\u{f6}\u{df}e  : {size} bytes\nBeschreibung: nicht verf\u{fc}gbar\nURL         : {}\n",
            url(name)
        )
    };
    let next = "-------------- n\u{e4}chster Teil --------------\n";
    let old = format!(
        "{HEADER}\n{}{next}An HTML attachment was scrubbed...\nURL: {}\n{next}{}{next}A footer\n",
        file(310, "attachment-0000.pdf"),
        url("attachment-0001.html"),
        file(460, "attachment-0002.png")
    );
    let in_latin1: Vec<u8> = old
        .chars()
        .map(|it| u8::try_from(u32::from(it)).unwrap())
        .collect();
    let serve = |need: &Need| match need.url() {
        Some(url) if url.ends_with("html") => {
            let page = &b"<title>page</title><p>x</p>\n"[..];
            Ok(Content::new(url, Some("text/html".to_owned()), page))
        }
        _ => refused(),
    };
    for old in [in_latin1, old.into_bytes()] {
        let new = drive(&engine(|policy| policy), &old, &serve);
        assert_ne!(new, old);
        assert_proved("page", &old, &new);
    }
}

#[test]
fn picture_whose_id_no_link_names_is_not_proved() {
    let (_, old) = mails().swap_remove(6);
    let new = String::from_utf8(drive(&embedding(), &old, &served)).unwrap();
    assert_proved("unchanged", &old, new.as_bytes());
    let (front, back) = new.split_once("Content-ID: <").unwrap();
    let (id, end) = back.split_once('>').unwrap();
    for other in [
        id.to_uppercase(),
        format!("0{id}"),
        "a@example.org".to_owned(),
    ] {
        let renamed = format!("{front}Content-ID: <{other}>{end}");
        assert!(proved(&old, renamed.as_bytes()).is_err(), "{other}");
        // The first link has the new id, and a later one still has the old id.
        let link = |id: &str| format!("cid:{id}");
        let first = renamed.replacen(&link(id), &link(&other), 1);
        assert!(proved(&old, first.as_bytes()).is_err(), "{other}");
        let all = renamed.replace(&link(id), &link(&other));
        assert_proved("another program", &old, all.as_bytes());
    }
}

#[test]
fn page_after_a_text_of_empty_lines_is_proved() {
    let note = "An HTML attachment was scrubbed...\nURL: <https://lists.example.org/pipermail/x/attachments/20240514/50f524a0/attachment.html>\n";
    for lines in ["\n", "\n\n\n\n", " \n\t\n"] {
        let old = format!("{HEADER}\n{lines}-------------- next part --------------\n{note}");
        let serve = |need: &Need| {
            let page = b"<center>\n<p>a page</p>\n\n</center>\n\n".to_vec();
            Ok(Content::new(
                need.url().unwrap_or_default(),
                Some("text/html".to_owned()),
                page,
            ))
        };
        for engine in [engine(|policy| policy), embedding_with_provenance()] {
            let new = drive(&engine, old.as_bytes(), &serve);
            assert_ne!(new, old.as_bytes());
            assert_proved(lines, old.as_bytes(), &new);
        }
    }
}

#[test]
fn linked_file_that_a_run_added_after_another_run_had_embedded_pictures_is_proved() {
    for end in ["", "\n", "\n\n"] {
        let old = format!(
            "{HEADER}Content-Type: text/html; charset=utf-8\n\n<img src=\"https://img.example.net/a.gif\">\n\
             <a href=\"https://drive.google.com/file/d/0123456789AbC/view\">x</a>{end}"
        );
        let first = drive(&embedding_alone(), old.as_bytes(), &served);
        let second = drive(&engine(|policy| policy), &first, &served);
        assert!(first != old.as_bytes() && second != first);
        assert_proved("first", old.as_bytes(), &first);
        assert_proved("second", old.as_bytes(), &second);
    }
}

#[test]
fn reference_that_a_run_filled_while_only_pictures_of_data_urls_were_embedded_is_proved() {
    use base64::Engine as _;

    let picture = base64::engine::general_purpose::STANDARD.encode(gif(9, 1));
    let own = engine(|policy| {
        policy.with_embed(Embed {
            remote: false,
            ..all_kinds(Trackers::Fetch)
        })
    });
    // The order of the pictures shows that the one in the `data:` URL was embedded first. It is no answer to the reference.
    let document = format!(
        "Content-Type: text/html; charset=utf-8\n\n<img src=\"https://img.example.net/a.gif\"><img src=\"data:image/gif;base64,{picture}\">\n"
    );
    for fields in [
        "Content-Transfer-Encoding: binary\n",
        "Content-Type: application/pdf\n",
    ] {
        let file = format!(
            "Content-Type: message/external-body; access-type=URL;\n URL=\"https://files.example.net/f.pdf\"\n\n{fields}\n"
        );
        let old = format!("{HEADER}{}", multipart(&[&document, &file]));
        for is_served in [true, false] {
            let serve = |need: &Need| if is_served { served(need) } else { refused() };
            let first = drive(&own, old.as_bytes(), &serve);
            let second = drive(&embedding(), &first, &served);
            assert_proved("first", old.as_bytes(), &first);
            assert_proved("second", old.as_bytes(), &second);
        }
    }
}

#[test]
fn two_parts_with_one_id_are_not_proved() {
    let picture = |name: &str| {
        format!(
            "Content-Type: image/gif\nContent-Location: http://example.org/d/{name}.gif\nContent-Transfer-Encoding: base64\n\nR0lGODlh{name}\n"
        )
    };
    let document = "Content-Type: text/html\nContent-Location: http://example.org/d/\n\n<img src=\"AAAA.gif\"><img src=\"BBBB.gif\">\n";
    let parts = multipart(&[document, &picture("AAAA"), &picture("BBBB")]);
    let old = format!("{HEADER}{}", parts.replace("mixed", "related"));
    let new = drive(&engine(|policy| policy), old.as_bytes(), &|_| refused());
    assert_proved("ids", old.as_bytes(), &new);
    let text = String::from_utf8(new).unwrap();
    let ids: Vec<&str> = text
        .split("src=\"cid:")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    let [one, two] = *ids else {
        panic!("{text}");
    };
    let other = text.replace(one, &format!("00{}", &one[2..]));
    assert_proved("other digits", old.as_bytes(), other.as_bytes());
    for changed in [text.replace(two, one), text.replacen(two, one, 1)] {
        assert_ne!(changed, text);
        assert!(
            proved(old.as_bytes(), changed.as_bytes()).is_err(),
            "{changed}"
        );
    }
}

#[test]
fn linked_files_that_successive_runs_found_in_another_order_are_proved() {
    let file = |id: &str| {
        format!("<a href=\"https://drive.google.com/file/d/{id}456789AbC/view\">x</a>\n")
    };
    let picture = "<img src=\"https://img.example.net/a.gif\">\n";
    let html = |text: &str| format!("Content-Type: text/html; charset=utf-8\n\n{text}");
    let only = |id: &'static str| {
        move |need: &Need| match need.url() {
            Some(url) if url.contains(id) => served(need),
            _ => refused(),
        }
    };
    let links = [file("0123"), file("1123"), file("2123")].concat();
    for body in [
        multipart(&[&html(&links)]),
        multipart(&[&html(&format!("{picture}{links}")), &html(picture)]),
        html(&links),
    ] {
        let old = format!("{HEADER}{body}");
        for id in ["0123", "1123", "2123"] {
            let first = drive(&engine(|policy| policy), old.as_bytes(), &only(id));
            for then in [engine(|policy| policy), embedding()] {
                let second = drive(&then, &first, &served);
                assert!(first != old.as_bytes() && second != first);
                assert_proved(id, old.as_bytes(), &second);
            }
        }
    }
}

/// Embeds pictures, and follows no references.
fn embedding_alone() -> Engine {
    let policy = Policy::default().with_fetch(Scheme::ALL);
    Engine::new(policy.with_embed(all_kinds(Trackers::Fetch)))
}

#[test]
fn results_of_older_versions_are_proved() {
    let samples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let files = [
        include_str!("prove_older.txt"),
        include_str!("prove_0_3_0.txt"),
    ];
    let mut count = 0;
    for result in files.iter().flat_map(|file| file.split("\n@@@ ").skip(1)) {
        let (name, new) = result.split_once('\n').unwrap();
        let (sample, _) = name.split_once(" @@@ ").unwrap();
        let old = std::fs::read(samples.join(sample)).unwrap();
        assert_proved(name, &old, new.as_bytes());
        count += 1;
    }
    assert_eq!(count, 16 + 39);
}

#[test]
fn pictures_that_another_program_embedded_are_proved_with_their_urls() {
    let (_, old) = mails().swap_remove(6);
    let ours = String::from_utf8(drive(&embedding(), &old, &served)).unwrap();
    let boundary = ours
        .split("boundary=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let ids: Vec<&str> = ours
        .split("Content-ID: <")
        .skip(1)
        .map(|rest| rest.split('>').next().unwrap())
        .collect();
    assert_eq!(ids.len(), 3);
    let mut other = ours
        .replace(boundary, "EEE")
        .replace("; type=\"text/html\";\n boundary=\"EEE\"", "; boundary=EEE");
    for (number, id) in ids.iter().enumerate() {
        let name = format!("filename=\"{}.gif\"", &id[..32]);
        other = other
            .replace(&format!("; {name}"), "")
            .replace(id, &format!("{number}@e"));
    }
    other = other.replace(
        "Content-ID: <0@e>\nContent-Disposition: inline\n",
        "Content-Disposition: inline\nContent-ID: <0@e>\n",
    );
    assert!(!other.contains("embody"), "{other}");
    assert_proved("other ids", &old, other.as_bytes());
    assert_proved(
        "CRLF",
        &old,
        &with_newlines(other.clone().into_bytes(), Newline::CrLf),
    );
    for (from, to) in [
        ("cid:0@e", "cid:1@e"),
        (
            "https://img.example.net/a.gif\nContent-Tr",
            "https://img.example.com/a.gif\nContent-Tr",
        ),
        ("image/gif", "text/html"),
        ("Content-Location: https://img.example.net/b.gif\n", ""),
        (
            "Content-Disposition: inline\n",
            "Content-Disposition: inline\nContent-Description: x\n",
        ),
        (
            "Content-Disposition: inline\n",
            "Content-Disposition: attachment\n",
        ),
        (
            "Content-Disposition: inline\n",
            "Content-Disposition: inlined\n",
        ),
        ("multipart/related", "multipart/mixed"),
        ("charset=utf-8", "charset=koi8-r"),
        ("\n\n--EEE", "\n\nmore\n--EEE"),
        ("boundary=EEE\n\n", "boundary=EEE\n\npreamble\n"),
    ] {
        let changed = other.replacen(from, to, 1);
        assert_ne!(changed, other, "{from}");
        assert!(proved(&old, changed.as_bytes()).is_err(), "{from}");
    }
}

/// Returns mails that show one picture several times: in `data:` URLs and at different addresses.
fn mails_with_one_picture() -> Vec<String> {
    use base64::Engine as _;

    let data = format!(
        "data:image/gif;base64,{}",
        base64::engine::general_purpose::STANDARD.encode(gif(9, 1))
    );
    let img = |url: &str| format!("<img src=\"{url}\">\n");
    let (one, two) = (
        img("https://img.example.net/one.gif"),
        img("https://img.example.net/two.gif"),
    );
    let own = img(&data);
    let other = img("https://img.example.net/other.gif");
    let style = format!("<p style=\"background: url({data})\">x</p>\n");
    let html = |texts: &[&str]| {
        format!(
            "Content-Type: text/html; charset=utf-8\n\n<p>{}</p>\n",
            texts.concat()
        )
    };
    let mut bodies: Vec<String> = [
        vec![&own, &one],
        vec![&one, &own],
        vec![&one, &two],
        vec![&two, &own, &one, &other],
        vec![&other, &one, &style, &two],
    ]
    .iter()
    .map(|texts| html(&texts.iter().map(|it| it.as_str()).collect::<Vec<_>>()))
    .collect();
    let inner = |body: &str| {
        format!("Content-Type: message/rfc822\n\nSubject: inner\nMIME-Version: 1.0\n{body}")
    };
    for (first, second) in [(&own, &one), (&one, &own), (&one, &two)] {
        let (first, second) = (html(&[first]), html(&[second, &other]));
        bodies.push(multipart(&[&first, &second]));
        bodies.push(multipart(&[&first, &inner(&second)]));
        bodies.push(multipart(&[&inner(&first), &inner(&second)]));
    }
    bodies
        .iter()
        .map(|body| format!("{HEADER}{body}"))
        .collect()
}

fn multipart(parts: &[&str]) -> String {
    let parts: String = parts
        .iter()
        .map(|part| format!("--AAA\n{part}\n"))
        .collect();
    format!("Content-Type: multipart/mixed; boundary=AAA\n\n{parts}--AAA--\n")
}

#[test]
fn picture_that_successive_runs_found_at_several_urls_is_proved() {
    let only = |data, remote| {
        engine(|policy| {
            policy.with_embed(Embed {
                data,
                remote,
                ..all_kinds(Trackers::Fetch)
            })
        })
    };
    let (own, remote, all) = (only(true, false), only(false, true), only(true, true));
    let serve = |missing: &'static str| {
        move |need: &Need| {
            let Some(url) = need.url().filter(|url| !url.ends_with(missing)) else {
                return refused();
            };
            let mark = u8::from(url.ends_with("other.gif")) + 1;
            Ok(Content::new(
                url,
                Some("image/gif".to_owned()),
                gif(9, mark),
            ))
        }
    };
    let runs = [
        (&own, "/"),
        (&remote, "/"),
        (&remote, "one.gif"),
        (&remote, "two.gif"),
        (&all, "two.gif"),
        (&all, "/"),
    ];
    let mut failed = Vec::new();
    for (number, old) in mails_with_one_picture().iter().enumerate() {
        for (at, (first, without)) in runs.iter().enumerate() {
            let one = drive(first, old.as_bytes(), &serve(without));
            for (then, (second, without)) in runs.iter().enumerate().step_by(2) {
                let two = drive(second, &one, &serve(without));
                let three = drive(&all, &two, &serve("/"));
                for new in [&one, &two, &three] {
                    if let Err(why) = proved(old.as_bytes(), new) {
                        failed.push(format!("mail {number}, runs {at} and {then}: {why}"));
                    }
                }
                if then > 0 {
                    continue;
                }
                let text = String::from_utf8(three).unwrap();
                for (from, to) in [
                    ("one.gif\nContent-Transfer", "three.gif\nContent-Transfer"),
                    ("two.gif\nContent-Transfer", "three.gif\nContent-Transfer"),
                    ("\nR0lGOD", "\nR0lGOE"),
                    ("=\"cid:", "=\"cid:0"),
                ] {
                    let changed = text.replacen(from, to, 1);
                    if changed != text {
                        let found = proved(old.as_bytes(), changed.as_bytes());
                        assert!(found.is_err(), "mail {number}: {from}\n{changed}");
                    }
                }
            }
        }
    }
    failed.dedup();
    assert!(
        failed.is_empty(),
        "{}:\n{}",
        failed.len(),
        failed.join("\n")
    );
}
