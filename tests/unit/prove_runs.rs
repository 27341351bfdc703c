//! Proofs of mail that several runs changed, and of what a proof must not ignore.

use std::collections::HashMap;

use super::prove::{all_kinds, detached, drive, gif, letter, proved, restored};
use crate::engine::detach::Stub;
use crate::engine::policy::{Followed, Policy, Scheme, Trackers};
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
