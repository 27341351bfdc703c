//! Detaches and restores attachments: for any mail, restoring gives back the same bytes, and parts that embody did not
//! write, or that are forged, are left unchanged.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::common::mail::{assert_bytes, crlf};
use super::lengths::{self, Says, filled, number};
use crate::edit::Edits;
use crate::engine::policy::{Limits, Links, OnFailure, Policy};
use crate::engine::report::{Outcome, Reason, Report};
use crate::expand::Expander;
use crate::expand::detach::{Choice, Detacher, Settings, Stub};
use crate::fetch::store::{Key, Store, StoreError};

/// A store in memory.
#[derive(Debug, Default)]
pub(super) struct Memory(pub(super) Mutex<HashMap<String, Vec<u8>>>);

impl Store for Memory {
    fn put(&self, octets: &[u8]) -> Result<Key, StoreError> {
        let key = Key::of(octets);
        self.0
            .lock()
            .unwrap()
            .insert(key.to_string(), octets.to_vec());
        Ok(key)
    }

    fn flush(&self, _keys: &[Key]) -> Result<(), StoreError> {
        Ok(())
    }

    fn get(&self, key: &Key, _at_most: u64) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.lock().unwrap().get(&key.to_string()).cloned())
    }

    fn base_url(&self) -> String {
        "https://attachments.example.org/".to_owned()
    }
}

pub(super) fn detacher(store: &Arc<Memory>, form: Stub) -> Detacher {
    detacher_with(store, form, false)
}

pub(super) fn detacher_with(store: &Arc<Memory>, form: Stub, text: bool) -> Detacher {
    Detacher::new(settings(store, form, text))
}

pub(super) fn settings(store: &Arc<Memory>, form: Stub, text: bool) -> Settings {
    Settings {
        store: Some(Arc::clone(store) as Arc<dyn Store>),
        base_url: store.base_url(),
        choice: Choice {
            larger_than: 0,
            types: Vec::new(),
            takes_shown: false,
        },
        form,
        text,
        on_failure: OnFailure::Leave,
    }
}

pub(super) fn restorer(store: &Arc<Memory>) -> Expander {
    let policy = Policy {
        links: Links::Keep,
        limits: Limits {
            body: u64::MAX,
            growth: u64::MAX,
            fetches: u32::MAX,
            ..Limits::default()
        },
        ..Policy::default()
    };
    let builder = Expander::builder(policy).restoring();
    builder
        .store(Arc::clone(store) as Arc<dyn Store>)
        .build()
        .expect("nothing is opened")
}

pub(super) fn made(message: &[u8], edits: &Edits) -> Vec<u8> {
    edits.splice(message).into_bytes().into_owned()
}

/// Detaches the attachments, detaches again, and restores them.
pub(super) fn there_and_back(message: &[u8], form: Stub) -> (Vec<u8>, Report, Vec<u8>) {
    there_and_back_with(message, form, false)
}

pub(super) fn there_and_back_with(
    message: &[u8],
    form: Stub,
    text: bool,
) -> (Vec<u8>, Report, Vec<u8>) {
    let store = Arc::new(Memory::default());
    let detacher = detacher_with(&store, form, text);
    let detachment = detacher.detach(message, "test").unwrap();
    let detached = made(message, &detachment.edits);
    let again = detacher.detach(&detached, "test").unwrap();
    assert!(
        again.edits.is_empty(),
        "twice is once: {:?}",
        again.report.rows
    );
    let restored = restorer(&store).expand(&detached, "test").unwrap();
    let back = made(&detached, &restored.edits);
    if back != message {
        eprintln!(
            "{}\n{:?}",
            String::from_utf8_lossy(&detached),
            restored.report.rows
        );
    }
    (detached, detachment.report, back)
}

pub(super) fn base64(octets: usize, line: usize, newline: &str) -> String {
    let octets: Vec<u8> = (0..octets)
        .map(|index| (index * 7 + index / 256) as u8)
        .collect();
    let symbols = base64_simd::STANDARD.encode_to_string(octets);
    let lines: Vec<String> = symbols
        .as_bytes()
        .chunks(line)
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    lines.join(newline)
}

pub(super) fn mixed(part: &str) -> String {
    format!(
        "From: a@example.org\nTo: b@example.org\nMIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=\"b0\"\n\nThis is MIME.\n--b0\n\
         Content-Type: text/plain\n\nbefore\n--b0\n{part}\n--b0\nContent-Type: text/plain\n\nbehind\n--b0--\nend\n"
    )
}

const PDF: &str = "Content-Type: application/pdf;\n name=\"a b.pdf\"\nContent-Description: a\n\tletter\n\
    Content-Transfer-Encoding: base64\nContent-Disposition: attachment;\n filename=\"a b.pdf\"\n\n";

#[test]
fn an_attachment_leaves_and_comes_back() {
    let mail = mixed(&format!("{PDF}{}\n", base64(5000, 76, "\n")));
    for form in [Stub::ExternalBody, Stub::Thunderbird] {
        for mail in [mail.clone().into_bytes(), crlf(mail.as_bytes())] {
            let (detached, report, back) = there_and_back(&mail, form);
            assert_eq!(report.detached(), 1, "{:?}", report.rows);
            assert!(
                detached.len() < 2000,
                "{}",
                String::from_utf8_lossy(&detached)
            );
            assert_bytes(&back, &mail, "there and back");
        }
    }
}

/// Generates the header fields before a body.
fn headers() -> impl Strategy<Value = (&'static str, String)> {
    let odd = prop_oneof![
        3 => Just("Content-Transfer-Encoding: base64\n"),
        1 => Just("content-transfer-encoding:\n\tBASE64 (so; it is 100%)\n"),
        1 => Just("Content-Transfer-Encoding : base64 \n"),
    ];
    let encoding = prop_oneof![
        6 => odd.prop_map(|field| ("base64", field)),
        1 => Just(("qp", "Content-Transfer-Encoding: quoted-printable\n")),
        1 => Just(("plain", "Content-Transfer-Encoding: 8bit\n")),
        1 => Just(("plain", "")),
    ];
    let fields = prop_oneof![
        2 => Just(("Content-Type: application/pdf; name=x\n", "Content-Disposition: attachment;\n filename=x\n")),
        1 => Just(("Content-type:application/x-zip\nX-Extra: \u{e9}\n", "Content-MD5: AAAAAAAAAAAAAAAAAAAAAA==\n")),
        1 => Just(("Content-Disposition: ATTACHMENT\nContent-Type: text/plain\n", "Content-ID: <a@b>\nLines: 5\n")),
        1 => Just(("Content-Disposition: attachment\n", "")),
        1 => Just(("Content-Type: image/png\n \n", "Content-Location: x/y\n")),
    ];
    (fields, encoding)
        .prop_map(|((front, back), (kind, encoding))| (kind, format!("{front}{encoding}{back}")))
}

fn bodies(kind: &'static str) -> BoxedStrategy<String> {
    let regular = (
        0_usize..4000,
        prop_oneof![Just(76_usize), Just(60), 1_usize..998],
        0_usize..4,
    )
        .prop_map(|(octets, line, tail)| base64(octets + 900, line, "\n") + &"\n".repeat(tail));
    let odd = prop_oneof![
        Just("QUJD\n\n".repeat(400)),
        Just(base64(3000, 76, "\n") + "\n-- \na list\n"),
        Just(base64(3000, 76, "\r\n") + "\n"),
        Just(base64(3000, 76, " \n")),
        Just("\n".to_owned() + &base64(3000, 76, "\n")),
        Just("=".repeat(2000)),
        Just(base64(5000, 10_000, "\n") + "\n\n"),
    ];
    let text = prop::collection::vec("(From |>From |--|--b0x|)[ -~\u{e9}]{0,90}[ \t]?", 40..60);
    match kind {
        "base64" => prop_oneof![5 => regular, 1 => odd].boxed(),
        "qp" => text
            .prop_map(|lines| {
                let text = lines.join("\n").replace("From ", "Frm ");
                let encoded = crate::mime::transfer::encode_text(
                    (text + "\u{e9}").into_bytes(),
                    crate::span::Newline::Lf,
                    &[],
                );
                String::from_utf8(encoded.body).unwrap()
            })
            .boxed(),
        _ => text
            .prop_map(|lines| lines.join("\n").replace("--b", "__b"))
            .boxed(),
    }
}

fn parts() -> impl Strategy<Value = String> {
    headers().prop_flat_map(|(kind, header)| {
        bodies(kind).prop_map(move |body| format!("{header}\n{body}"))
    })
}

/// Generates complete messages of several shapes, with LF.
pub(super) fn messages() -> impl Strategy<Value = String> {
    let whole = (parts(), 0_usize..4, any::<bool>()).prop_map(|(part, front, lengths)| {
        let (header, body) = part.split_once("\n\n").unwrap_or((&part, ""));
        let mut fields: Vec<String> = Vec::new();
        let names = [
            "Received: a\n b\n",
            "From: a@example.org\n",
            "Subject: x\n",
            "MIME-Version: 1.0\n",
            "X-A: b\n",
        ];
        // The fields of the content are between the other fields.
        let mut others = names.iter();
        fields.extend(others.by_ref().take(front).map(ToString::to_string));
        for line in header.split_inclusive('\n') {
            let is_fold = line.starts_with([' ', '\t']);
            if !is_fold {
                fields.extend(others.next().map(ToString::to_string));
            }
            fields.push(line.to_owned());
        }
        let mut header = fields.concat();
        if !header.ends_with('\n') {
            header.push('\n');
        }
        if lengths {
            header.push_str(&format!(
                "Content-Length: {}\nLines:  {}\n",
                body.len(),
                body.len() / 3
            ));
        }
        format!("{header}\n{body}")
    });
    let several = (prop::collection::vec(parts(), 1..4), any::<bool>(), 0_usize..3).prop_map(|(parts, closed, tail)| {
        let body: Vec<String> = parts.iter().map(|part| format!("--b0\n{part}\n")).collect();
        let close = if closed { "--b0--" } else { "" };
        let body = format!("{}{close}{}", body.concat(), "\n".repeat(tail));
        let lines = body.matches('\n').count();
        format!(
            "From: a@example.org\nContent-Length: {}\nLines: {lines}\nContent-Type: multipart/mixed; boundary=b0\n\n{body}",
            body.len()
        )
    });
    let whole = whole.boxed();
    let forwarded = whole.clone().prop_map(|inner| {
        let inner = inner.replace("--b0", "__b0");
        format!(
            "Subject: f\nContent-Type: multipart/mixed; boundary=b0\n\n--b0\nContent-Type: message/rfc822\n\n{inner}\n--b0--\n"
        )
    });
    prop_oneof![whole, several, forwarded]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn restored_mail_equals_the_original(message in messages(), as_crlf: bool, thunderbird: bool, text: bool) {
        let mail = if as_crlf { crlf(message.as_bytes()) } else { message.into_bytes() };
        let form = if thunderbird { Stub::Thunderbird } else { Stub::ExternalBody };
        let (detached, report, back) = there_and_back_with(&mail, form, text);
        prop_assert_eq!(mail.escape_ascii().to_string(), back.escape_ascii().to_string(), "{:?}", report.rows);
        for line in detached.split(|&byte| byte == b'\n') {
            if !mail.windows(line.len().max(1)).any(|there| there == line) {
                prop_assert!(line.len() < 900);
            }
        }
    }

    #[test]
    fn a_forged_note_changes_nothing_or_says_why(
        place in 0_usize..2000, byte in any::<u8>(), more in "[ -~]{0,20}", thunderbird: bool,
    ) {
        let mail = mixed(&format!("{PDF}{}\n", base64(5000, 76, "\n"))).into_bytes();
        let store = Arc::new(Memory::default());
        let form = if thunderbird { Stub::Thunderbird } else { Stub::ExternalBody };
        let detachment = detacher(&store, form).detach(&mail, "test").unwrap();
        let mut forged = made(&mail, &detachment.edits);
        let place = place % forged.len();
        forged[place] = byte;
        forged.splice(place..place, more.bytes());
        let restored = restorer(&store).expand(&forged, "test").unwrap();
        if restored.report.restored() == 0 {
            prop_assert!(restored.edits.is_empty());
        }
        for row in &restored.report.rows {
            prop_assert!(row.outcome == Outcome::Restored || row.reason.is_some());
        }
    }
}

/// Checks that the generated mails really contain attachments that leave. Otherwise the property test would prove
/// nothing.
#[test]
fn generated_mails_contain_attachments_that_are_detached() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut reasons: HashMap<&str, usize> = HashMap::new();
    for _ in 0..200 {
        let mail = messages().new_tree(&mut runner).unwrap().current();
        let store = Arc::new(Memory::default());
        let detachment = detacher(&store, Stub::ExternalBody)
            .detach(mail.as_bytes(), "test")
            .unwrap();
        for row in detachment.report.rows {
            *reasons
                .entry(row.reason.map_or("detached", Reason::as_str))
                .or_default() += 1;
        }
    }
    assert!(reasons["detached"] > 150, "{reasons:?}");
    assert!(reasons["not-restorable"] > 20, "{reasons:?}");
}

fn detached_pdf(form: Stub) -> (Arc<Memory>, Vec<u8>, String) {
    let mail = mixed(&format!("{PDF}{}\n", base64(5000, 76, "\n"))).into_bytes();
    let store = Arc::new(Memory::default());
    let detachment = detacher(&store, form).detach(&mail, "test").unwrap();
    let detached = String::from_utf8(made(&mail, &detachment.edits)).unwrap();
    (store, mail, detached)
}

#[track_caller]
fn is_left(store: &Arc<Memory>, mail: &str, reason: Reason) {
    let restored = restorer(store).expand(mail.as_bytes(), "test").unwrap();
    assert!(restored.edits.is_empty(), "{mail}");
    let reasons: Vec<_> = restored.report.rows.iter().map(|row| row.reason).collect();
    assert_eq!(
        reasons,
        [Some(reason)],
        "{mail}\n{:?}",
        restored.report.rows
    );
}

#[test]
fn a_note_that_is_not_as_it_was_written_leaves_the_part() {
    let (store, _, detached) = detached_pdf(Stub::ExternalBody);
    let digest = detached.split("sha256=").nth(1).unwrap()[..64].to_owned();
    let other = Key::of(b"other").to_string();
    is_left(
        &store,
        &detached.replace(&digest, &other),
        Reason::NotInStore,
    );
    for (from, to) in [
        ("encoding=base64", "encoding=base85"),
        ("line=76", "line=77777"),
        ("tail=1", "tail=99999"),
        ("tail=1", "tail=1; at=5,5,5,5"),
        ("md5=added", "md5=gone"),
        ("md5=added", "cte=Bcc%3A%20x"),
        ("Content-Transfer-Encoding: binary\n", ""),
        (
            "Content-Description: a\n",
            "Content-Transfer-Encoding: binary\nContent-Description: a\n",
        ),
        (
            "Content-Type: application/pdf;",
            "Content-Type: multipart/mixed;",
        ),
        (
            "Content-Description: a\n",
            "X-Mozilla-Altered: AttachmentDetached\n",
        ),
        ("md5=added\n\n", "md5=added\n\nmore\n"),
        ("Content-Description: a\n", "Content-Description: \0a\n"),
    ] {
        assert!(detached.contains(from), "{from}");
        is_left(&store, &detached.replace(from, to), Reason::BadNote);
    }
    // The content of another object, stored under the right name.
    store
        .0
        .lock()
        .unwrap()
        .insert(digest, b"something else".to_vec());
    is_left(&store, &detached, Reason::DigestMismatch);
}

#[test]
fn fields_that_came_on_the_way_stay() {
    let mail = format!(
        "From: a@example.org\nContent-Type: application/pdf\nSubject: x\nContent-Transfer-Encoding: base64\nX-Last: y\n\n{}\n",
        base64(3000, 76, "\n")
    );
    for form in [Stub::ExternalBody, Stub::Thunderbird] {
        let store = Arc::new(Memory::default());
        let detachment = detacher(&store, form)
            .detach(mail.as_bytes(), "test")
            .unwrap();
        let detached = made(mail.as_bytes(), &detachment.edits);
        let received = [b"Received: on the way\n".as_slice(), &detached].concat();
        let restored = restorer(&store).expand(&received, "test").unwrap();
        let expected = format!("Received: on the way\n{mail}");
        assert_bytes(
            &made(&received, &restored.edits),
            expected.as_bytes(),
            "with what came",
        );
        // A system that converts LF to CRLF converts the whole mail.
        let twin = crlf(&detached);
        let restored = restorer(&store).expand(&twin, "test").unwrap();
        assert_bytes(
            &made(&twin, &restored.edits),
            &crlf(mail.as_bytes()),
            "the twin",
        );
    }
}

#[test]
fn signed_encrypted_report_and_text_parts_are_not_detached() {
    let body = base64(3000, 76, "\n");
    let around = |outer: &str, part: &str| {
        format!("Content-Type: {outer}; boundary=b0\n\n--b0\n{part}\n--b0--\n")
    };
    let plain = "Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n";
    for (mail, reason) in [
        (
            around("multipart/signed", &format!("{plain}{body}")),
            Some(Reason::Signed),
        ),
        (
            around("multipart/encrypted", &format!("{plain}{body}")),
            Some(Reason::Encrypted),
        ),
        (
            around("multipart/report", &format!("{plain}{body}")),
            Some(Reason::InsideReport),
        ),
        (
            around(
                "multipart/mixed",
                &format!("{}{body}", plain.replace("/pdf", "/pkcs7-mime")),
            ),
            Some(Reason::Encrypted),
        ),
        (
            around(
                "multipart/mixed",
                &format!("{}{body}", plain.replace("application/pdf", "text/html")),
            ),
            None,
        ),
        (
            around(
                "multipart/mixed",
                &format!(
                    "{}{body}",
                    plain.replace("application/pdf", "message/rfc822")
                ),
            ),
            None,
        ),
        (
            around(
                "multipart/mixed",
                &format!("{}{body}", plain.replace("base64", "x-other")),
            ),
            Some(Reason::NotRestorable),
        ),
    ] {
        let store = Arc::new(Memory::default());
        let detachment = detacher(&store, Stub::ExternalBody)
            .detach(mail.as_bytes(), "test")
            .unwrap();
        assert!(detachment.edits.is_empty(), "{mail}");
        let reasons: Vec<_> = detachment
            .report
            .rows
            .iter()
            .map(|row| row.reason)
            .collect();
        match reason {
            Some(reason) => assert_eq!(reasons, [Some(reason)], "{mail}"),
            None => assert!(reasons.is_empty(), "{mail}"),
        }
    }
}

#[test]
fn two_attachments_with_one_content_both_come_back() {
    let part = format!(
        "--b0\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\n{}\n",
        base64(3000, 76, "\n")
    );
    let mail = format!("Content-Type: multipart/alternative; boundary=b0\n\n{part}{part}--b0--\n");
    let (_, report, back) = there_and_back(mail.as_bytes(), Stub::ExternalBody);
    assert_eq!(report.detached(), 2);
    assert_bytes(&back, mail.as_bytes(), "both");
}

#[test]
fn detach_updates_a_right_content_length_and_keeps_a_wrong_one() {
    let body = base64(3000, 76, "\n") + "\n";
    let mail = |length: usize| {
        format!(
            "Content-Type: image/png\nContent-Length: {length}\nContent-Transfer-Encoding: base64\n\n{body}"
        )
    };
    for (length, is_true) in [(body.len(), true), (17, false)] {
        let mail = mail(length);
        let (detached, _, back) = there_and_back(mail.as_bytes(), Stub::ExternalBody);
        assert_bytes(&back, mail.as_bytes(), "counts");
        let detached = String::from_utf8(detached).unwrap();
        let behind = detached.split_once("\n\n").unwrap().1;
        let says = format!("Content-Length: {}\n", behind.len());
        assert_eq!(detached.contains(&says), is_true, "{detached}");
    }
}

/// Returns a message inside a message with an attachment. `says` determines the values of its length fields.
fn counted(says: Says) -> Vec<u8> {
    let lengths = "Content-Length:\nLines:\n";
    let body = base64(3000, 76, "\n");
    let mail = format!(
        "Subject: f\n{lengths}Content-Type: multipart/mixed; boundary=b0\n\n--b0\nContent-Type: message/rfc822\n{lengths}\n\
         Subject: s\n{lengths}Content-Type: multipart/mixed; boundary=b1\n\n--b1\n{lengths}\ntext\n--b1\n\
         Content-Type: image/png\nContent-Transfer-Encoding: base64\n{lengths}\n{body}\n--b1--\n\n--b0--\n"
    );
    filled(mail.as_bytes(), says)
}

#[test]
fn lengths_of_what_is_around_an_attachment_are_true_while_it_is_away_if_they_were() {
    for says in [Says::Body, Says::More, Says::Wrong] {
        for form in [Stub::ExternalBody, Stub::Thunderbird] {
            for text in [false, true] {
                for mail in [counted(says), filled(&crlf(&counted(says)), says)] {
                    let (detached, report, back) = there_and_back_with(&mail, form, text);
                    assert_eq!(report.detached(), 1, "{:?}", report.rows);
                    assert_bytes(&back, &mail, "lengths");
                    let (tree, all) = lengths::fields(&detached);
                    assert!(all.len() >= 8, "{}", String::from_utf8_lossy(&detached));
                    let essence = |part| tree.part(part).essence.as_str();
                    let around =
                        |part| !matches!(essence(part), "message/external-body" | "image/png");
                    for (part, is_lines, value, _) in all.iter().filter(|told| around(told.0)) {
                        let wanted = if says == Says::More { says } else { Says::Body };
                        let count = number(&tree, *part, *is_lines, wanted);
                        let is_true = *value == count.to_string();
                        assert_eq!(is_true, says != Says::Wrong, "{says:?}, {value}");
                    }
                }
            }
        }
    }
}

/// A restored length field could not be distinguished from one that was right in the original.
#[test]
fn attachment_is_kept_if_detach_would_make_a_wrong_inner_length_right() {
    let mail = counted(Says::Wrong);
    let (detached, ..) = there_and_back(&mail, Stub::ExternalBody);
    let (tree, all) = lengths::fields(&detached);
    let (_, before) = lengths::fields(&mail);
    for (index, says) in [(2, Says::Body), (4, Says::Body), (2, Says::More)] {
        let (part, is_lines, ..) = all[index];
        // The number has the same count of digits, so the lengths around it do not change.
        let count = number(&tree, part, is_lines, says);
        let (_, _, value, span) = &before[index];
        let count = format!("{count:>width$}", width = value.len());
        let mut mail = mail.clone();
        let end = span.end;
        mail.splice(end - value.len()..end, count.into_bytes());
        let (_, report, _) = there_and_back(&mail, Stub::ExternalBody);
        assert_eq!(report.detached(), 0, "{index}, {says:?}");
        assert_eq!(report.rows[0].reason, Some(Reason::NotRestorable));
    }
}

#[test]
fn the_text_about_attachments_is_kept_true_and_goes_with_the_last_of_them() {
    let large = format!("{PDF}{}\n", base64(5000, 76, "\n"));
    let small = format!(
        "{}{}\n",
        PDF.replace("a b.pdf", "=?utf-8?Q?gr=C3=BCn?="),
        base64(2000, 76, "\n")
    );
    let mail = mixed(&format!("{large}\n--b0\n{small}"));
    for mail in [mail.clone().into_bytes(), crlf(mail.as_bytes())] {
        let store = Arc::new(Memory::default());
        let first = Detacher::new(Settings {
            choice: Choice {
                larger_than: 5000,
                types: Vec::new(),
                takes_shown: false,
            },
            ..settings(&store, Stub::ExternalBody, true)
        });
        let detachment = first.detach(&mail, "test").unwrap();
        let once = made(&mail, &detachment.edits);
        let text = String::from_utf8_lossy(&once).replace('\r', "");
        assert!(
            text.contains(
                "were moved to:\n\n- a b.pdf, 5000 octets\n  https://attachments.example.org/"
            ),
            "{text}"
        );
        // A second attachment is detached later. The text must then name both.
        let detachment = detacher(&store, Stub::ExternalBody)
            .detach(&once, "test")
            .unwrap();
        let twice = made(&once, &detachment.edits);
        let text = String::from_utf8_lossy(&twice).replace('\r', "");
        assert!(
            text.contains("- gr=C3=BCn, 2000 octets") && text.contains("- a b.pdf, 5000"),
            "{text}"
        );
        // One attachment is restored. The text must then name the other one.
        let key = Key::of(
            store
                .0
                .lock()
                .unwrap()
                .values()
                .find(|octets| octets.len() == 2000)
                .unwrap(),
        );
        let kept = store.0.lock().unwrap().remove(&key.to_string()).unwrap();
        let restored = restorer(&store).expand(&twice, "test").unwrap();
        let half = made(&twice, &restored.edits);
        let text = String::from_utf8_lossy(&half).replace('\r', "");
        assert!(
            text.contains("- gr=C3=BCn, 2000 octets") && !text.contains("- a b.pdf"),
            "{text}"
        );
        store.0.lock().unwrap().insert(key.to_string(), kept);
        let restored = restorer(&store).expand(&half, "test").unwrap();
        assert_bytes(&made(&half, &restored.edits), &mail, "all back");
        // A text that another program changed must stay unchanged.
        let edited = String::from_utf8_lossy(&twice)
            .replace("were moved to", "have moved to")
            .into_bytes();
        let restored = restorer(&store).expand(&edited, "test").unwrap();
        let back = made(&edited, &restored.edits);
        assert!(String::from_utf8_lossy(&back).contains("have moved to"));
        assert_eq!(restored.report.restored(), 2);
    }
}
