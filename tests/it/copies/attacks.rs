//! Attacks of a sender whose mails are in the mailboxes of `--copies`, and mailboxes that change during the run.

use std::fs::{self, File};
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use md5::{Digest as _, Md5};
use sha2::Sha256;

use base64::Engine as _;

use super::{PDF, Place, STANDARD, attachment, deleted, mailman, whole, with_part};
use crate::common::programs::{embody, stderr};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the content of the attachment with one other byte: its name, type and size stay the same.
fn other_content() -> Vec<u8> {
    let mut content = PDF.to_vec();
    content[20] ^= 1;
    content
}

/// Returns the note that `embody detach` leaves, with this digest.
fn detached(digest: &str) -> String {
    format!(
        "Content-Type: message/external-body; access-type=URL;\n URL=\"file:///srv/store/{digest}\"\n\n\
         Content-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment; filename=a.pdf\n\
         Content-Transfer-Encoding: binary\n\
         X-Embody-Detached: sha256={digest};\n encoding=base64; line=76; tail=1\n\n"
    )
}

#[test]
fn content_of_the_same_name_and_size_is_not_used_if_the_mail_has_a_digest() {
    let sha256 = hex(&Sha256::digest(PDF));
    let md5 = STANDARD.encode(Md5::digest(PDF));
    let by_md5 = format!(
        "Content-Type: message/external-body; access-type=URL; URL=\"https://files.example.org/a.pdf\"; size={}\n\n\
         Content-Type: application/pdf; name=a.pdf\nContent-MD5: {md5}\n\n",
        PDF.len()
    );
    let forged = with_part("hello", &attachment(&other_content()));
    for note in [detached(&sha256), by_md5] {
        let mail = with_part("hello", &note);
        let (_, detail) = Place::with(&mail, &[&forged]).left();
        assert!(detail.contains("no mail with this content"), "{detail}");
        let (out, row) = Place::with(&mail, &[&forged, &whole()]).filled();
        assert_eq!(row["proved"], true, "{row:#}");
        assert!(out.contains(&STANDARD.encode(PDF)[..60]), "{out}");
    }
}

#[test]
fn digest_in_another_case_or_form_never_brings_other_content() {
    let sha256 = hex(&Sha256::digest(PDF));
    let forged = with_part("hello", &attachment(&other_content()));
    for digest in [
        sha256.to_uppercase(),
        sha256[..32].to_owned(),
        format!("{sha256}00"),
        format!("+{}", &sha256[1..]),
        hex(&Sha256::digest(b"")),
    ] {
        let place = Place::with(&with_part("hello", &detached(&digest)), &[&forged]);
        let (out, rows) = place.recovered();
        assert_eq!(out, place.read("in.eml"), "{digest}: {rows:#?}");
    }
    // Capital digits are the same number.
    let mail = with_part("hello", &detached(&sha256.to_uppercase()));
    let place = Place::with(&mail, &[&whole()]);
    let (out, rows) = place.recovered();
    assert!(
        out == mail || out.contains(&STANDARD.encode(PDF)[..60]),
        "{rows:#?}"
    );
}

#[test]
fn copy_whose_part_is_also_missing_gives_nothing() {
    let sha256 = hex(&Sha256::digest(PDF));
    let received =
        |mail: &str| format!("Received: from a by b; Mon, 6 May 2024 10:00:01 +0200\n{mail}");
    let mutt = format!(
        "Content-Type: message/external-body; access-type=x-mutt-deleted;\n\
         \texpiration=\"Mon, 6 May 2024 11:00:00 +0200\"; length=88\n\n{}\n",
        attachment(PDF).split_once("\n\n").unwrap().0
    );
    let mail = with_part("hello", &deleted());
    for copy in [
        received(&with_part("hello", &deleted())),
        received(&with_part("hello", &mutt)),
        received(&with_part("hello", &detached(&sha256))),
        received(&with_part(
            "hello",
            "Content-Type: text/plain\n\nA non-text attachment was scrubbed...\nName: a.pdf\nType: application/pdf\n\
             Size: 59 bytes\nDesc: not available\nURL: <http://lists.example.org/attachments/a.pdf>",
        )),
    ] {
        let (reason, detail) = Place::with(&mail, &[&copy]).left();
        assert_eq!(reason, "not-in-copies", "{detail}\n{copy}");
    }
    // The whole mail is still found among such copies.
    let scrubbed = received(&with_part("hello", &mutt));
    Place::with(&mail, &[&scrubbed, &whole()]).filled();
}

#[test]
fn name_with_a_path_is_another_name_and_no_file_is_written() {
    let mail = with_part("hello", &deleted());
    for name in [
        "../a.pdf",
        "/tmp/a.pdf",
        "x\\a.pdf",
        "a.pdf\u{202e}",
        "A.PDF",
    ] {
        let copy = whole().replace("a.pdf", name);
        let (reason, detail) = Place::with(&mail, &[&copy]).left();
        assert_eq!(reason, "not-in-copies", "{name}: {detail}");
    }
    // The user's own mail has the path, too. It stays a name in the header.
    let name = "../../above.pdf";
    let place = Place::with(
        &mail.replace("a.pdf", name),
        &[&whole().replace("a.pdf", name)],
    );
    let (out, _) = place.filled();
    assert!(out.contains(name), "{out}");
    assert!(!place.path("../above.pdf").exists() && !place.path("../../above.pdf").exists());
}

#[test]
fn content_with_boundary_lines_adds_no_part() {
    let text = "first line\n--b\nContent-Type: text/html\n\n<p>forged</p>\n--b--\nlast line\n";
    let part = format!(
        "Content-Type: application/x-log; name=a.log\nContent-Transfer-Encoding: 7bit\n\n{text}"
    );
    // The copy has another boundary, so the lines are text there.
    let copy = mailman::original(&["HERE"])
        .replace("boundary=b\n", "boundary=other\n")
        .replace("--b", "--other")
        .replace("HERE", &part);
    let note = mailman::note("a.log", text.len()).replace("application/pdf", "application/x-log");
    let (out, _) = Place::with(&mailman::scrubbed(&[&note]), &[&copy]).filled();
    assert!(
        !out.contains("text/html") && !out.contains("forged"),
        "{out}"
    );
    assert!(out.contains(&STANDARD.encode(text)[..60]), "{out}");
}

#[test]
fn part_with_other_fields_than_the_note_is_not_used() {
    let mail = with_part("hello", &deleted());
    for field in [
        "Content-Description: pay to this account",
        "Content-Location: http://example.com/",
        "Content-ID: <x@example.org>",
    ] {
        let part = attachment(PDF).replacen('\n', &format!("\n{field}\n"), 1);
        let (reason, detail) = Place::with(&mail, &[&with_part("hello", &part)]).left();
        assert_eq!(reason, "not-in-copies", "{field}: {detail}");
    }
}

#[test]
fn header_of_a_part_counts_as_growth() {
    // A note of Mailman says nothing about other fields, so the part of a copy can have any number of them.
    let fields = (0..4_000).map(|number| format!("X-Field-{number}: {}\n", "x".repeat(60)));
    let part =
        mailman::pdf("a.pdf", PDF).replacen('\n', &format!("\n{}", fields.collect::<String>()), 1);
    let mail = mailman::scrubbed(&[&mailman::note("a.pdf", PDF.len())]);
    let place = Place::with(&mail, &[&mailman::original(&[&part])]);
    place.filled();
    for name in ["out.eml", "rows.jsonl"] {
        fs::remove_file(place.path(name)).unwrap();
    }
    place.run(
        "recover --offline in.eml --copies mail --output out.eml --report rows.jsonl --max-growth 100k",
        0,
    );
    assert_eq!(place.rows()[0]["reason"], "growth-limit");
    assert_eq!(place.read("out.eml"), mail);
}

#[test]
fn content_with_the_digest_is_used_whatever_type_and_name_its_mail_gives_it() {
    let md5 = STANDARD.encode(Md5::digest(PDF));
    let by_md5 = format!(
        "Content-Type: message/external-body; access-type=URL; URL=\"https://files.example.org/a.pdf\"\n\n\
         Content-Type: application/pdf; name=a.pdf\nContent-MD5: {md5}\n\n"
    );
    // Another sender has the same file, and gives it other fields, so that it would not be accepted.
    let other = |number: usize| {
        let part = attachment(PDF)
            .replace("application/pdf", "text/html")
            .replace("a.pdf", "evil.exe");
        with_part(
            &format!("mail {number}"),
            &format!("Content-Description: pay\n{part}"),
        )
        .replace("<1@", &format!("<{number}@"))
    };
    let others: Vec<String> = (2..12).map(other).collect();
    let copies: Vec<&str> = others.iter().map(String::as_str).collect();
    for note in [by_md5, detached(&hex(&Sha256::digest(PDF)))] {
        let mail = with_part("hello", &note);
        let (out, _) = Place::with(&mail, &copies).filled();
        assert!(out.contains("application/pdf; name=a.pdf"), "{out}");
        assert!(
            !out.contains("evil") && !out.contains("text/html") && !out.contains("pay"),
            "{out}"
        );
    }
}

#[test]
fn thousands_of_mails_with_the_same_digest_or_message_id_take_little_time() {
    let sha256 = hex(&Sha256::digest(PDF));
    let place = Place::with(&with_part("hello", &detached(&sha256)), &[]);
    let mails = |mail: &dyn Fn(usize) -> String| -> String {
        let framed = (0..3000)
            .map(|number| format!("From a@b Mon May  6 08:00:00 2024\n{}\n", mail(number)));
        framed.collect()
    };
    let same_digest = mails(&|number| {
        whole()
            .replace("hello", &format!("hello {number}"))
            .replace("<1@", &format!("<{number}@"))
    });
    place.write("mail/many.mbox", same_digest);
    let begun = Instant::now();
    place.filled();
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    // As many different mails with the Message-ID of this one.
    let place = Place::with(&with_part("hello", &deleted()), &[&whole()]);
    place.write(
        "mail/many.mbox",
        mails(&|number| whole().replace("hello", &format!("hello {number}"))),
    );
    let begun = Instant::now();
    let (reason, _) = place.left();
    assert_eq!(reason, "copies-differ");
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn many_missing_parts_of_one_large_copy_take_little_time() {
    let content = |number: usize| format!("{number} {}", "some text\n".repeat(1000)).into_bytes();
    let count = 1500;
    let join = |part: &dyn Fn(usize) -> String| {
        with_part(
            "hello",
            &(0..count).map(part).collect::<Vec<_>>().join("\n--b\n"),
        )
    };
    let copy = join(&|number| attachment(&content(number)));
    let mail = join(&|number| detached(&hex(&Sha256::digest(content(number)))));
    let place = Place::with(&mail, &[&copy]);
    let begun = Instant::now();
    place.run(
        "recover --offline in.eml --copies mail --output out.eml --report rows.jsonl --max-growth 1G",
        0,
    );
    let elapsed = begun.elapsed();
    let rows = place.rows();
    let filled = rows.iter().filter(|row| row["from"] == "copy").count();
    assert_eq!(filled, count, "{:#?}", rows.last());
    assert!(elapsed < Duration::from_secs(20), "{elapsed:?}");
}

/// Waits until a process does nothing for half a second: it then waits for its input.
#[cfg(target_os = "linux")]
fn wait_until_idle(process: u32) {
    let mut idle = 0;
    let begun = Instant::now();
    while idle < 25 {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let is_idle = stat
            .rsplit(')')
            .next()
            .unwrap()
            .trim_start()
            .starts_with('S');
        idle = if is_idle { idle + 1 } else { 0 };
    }
}

/// Starts a run that reads the mailboxes of copies and then waits for the mail on standard input. Changes the copies with `change`,
/// passes the mail, and returns the result, and the reason and the sentence of the row.
#[cfg(target_os = "linux")]
fn with_change(copy: &str, change: impl FnOnce(&Place)) -> (String, String) {
    let place = Place::with("", &[]);
    let framed = |mail: &str| format!("From a@b Mon May  6 08:00:00 2024\n{mail}\n");
    let other = "Subject: other\nMessage-ID: <3@example.org>\n\nhello\n";
    place.write("mail/copies.mbox", framed(other) + &framed(copy));
    let mut child = embody()
        .current_dir(place.path(""))
        .args([
            "recover",
            "--offline",
            "--copies",
            "mail",
            "--report",
            "rows.jsonl",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until_idle(child.id());
    change(&place);
    let mut source = child.stdin.take().unwrap();
    source
        .write_all(with_part("hello", &deleted()).as_bytes())
        .unwrap();
    drop(source);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows = place.rows();
    let [row] = rows.as_slice() else {
        panic!("{rows:#?}")
    };
    (
        String::from_utf8(output.stdout).unwrap(),
        format!("{} {}", row["reason"], row["detail"]),
    )
}

#[cfg(target_os = "linux")]
#[test]
fn mailbox_of_copies_that_changes_during_the_run_gives_no_other_content() {
    let original = STANDARD.encode(PDF);
    let forged = STANDARD.encode(other_content());
    assert_eq!(original.len(), forged.len());
    // The first line of the base64 in the result.
    let line = |base64: &str| base64[..60].to_owned();
    let (out, why) = with_change(&whole(), |_| {});
    assert!(out.contains(&line(&original)), "{why}\n{out}");
    // Other content in the same place.
    let (out, why) = with_change(&whole(), |place| {
        let text = place.read("mail/copies.mbox").replace(&original, &forged);
        let mut file = File::options()
            .write(true)
            .open(place.path("mail/copies.mbox"))
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    });
    assert!(
        !out.contains(&line(&forged)) && out.contains("You deleted an attachment"),
        "{out}"
    );
    assert!(
        why.contains("the mailbox was changed") && why.contains("copies.mbox"),
        "{why}"
    );
    // A mail before it is removed, so that all mails move.
    let (out, why) = with_change(&whole(), |place| {
        let text = place.read("mail/copies.mbox");
        let mut file = File::options()
            .write(true)
            .open(place.path("mail/copies.mbox"))
            .unwrap();
        file.write_all(&text.as_bytes()[30..]).unwrap();
    });
    assert!(out.contains("You deleted an attachment"), "{why}\n{out}");
    let (out, why) = with_change(&whole(), |place| {
        let file = File::options()
            .write(true)
            .open(place.path("mail/copies.mbox"))
            .unwrap();
        file.set_len(100).unwrap();
    });
    assert!(
        out.contains("You deleted an attachment") && why.contains("can no longer be read"),
        "{why}\n{out}"
    );
    // The old file stays open, so its content is still the one that was read.
    let (out, why) = with_change(&whole(), |place| {
        let text = place.read("mail/copies.mbox").replace(&original, &forged);
        place.write("new", text);
        fs::rename(place.path("new"), place.path("mail/copies.mbox")).unwrap();
    });
    assert!(
        out.contains(&line(&original)) && !out.contains(&line(&forged)),
        "{why}\n{out}"
    );
    let (out, _) = with_change(&whole(), |place| {
        fs::remove_file(place.path("mail/copies.mbox")).unwrap()
    });
    assert!(out.contains(&line(&original)), "{out}");
}
