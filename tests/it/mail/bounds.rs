//! The maximum cost of a single mail (P5 of docs/design.md). For each limit of structure and growth, a mail far beyond it is
//! filtered. It must be output completely. References beyond the limit are left with the reason of the limit, and time and
//! memory must be proportional to the size of the mail.
//!
//! Limits of retrieval are tested in `fetch_cli_hostile.rs` and `fetch_hostile.rs` (redirects, sizes, deadlines, many bodies
//! together) and `fetch_bomb.rs` (decompression). Hostile documents are tested in `links_hostile.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::filter::{Ran, filter, mail, measured, reference};

const MEGABYTE: u64 = 1 << 20;

/// A generous limit: tests run without optimization, and in parallel. Quadratic time would be hours.
const TIME: Duration = Duration::from_secs(60);

/// The default of --max-growth. This much may be in memory before the limit is detected.
const MOST_GROWTH: u64 = 50 * MEGABYTE;

/// Returns the maximum memory: a fixed part for the process and for growth, and a share for each byte of the mail.
fn memory(mail: &[u8], share: u64) -> u64 {
    40 * MEGABYTE + MOST_GROWTH + share * mail.len() as u64
}

/// Runs the program on the mail with the default limits.
#[track_caller]
fn bounded(test: &str, mail: &[u8], share: u64) -> Ran {
    bounded_with(test, "", mail, share)
}

#[track_caller]
fn bounded_with(test: &str, options: &str, mail: &[u8], share: u64) -> Ran {
    let ran = measured(test, options, mail).unwrap_or_else(|| filter(options, mail));
    assert_eq!(ran.code, Some(0), "{test}: {:.300}", ran.stderr);
    assert!(ran.took < TIME, "{test}: {:?}", ran.took);
    if let Some(peak) = ran.peak {
        let most = memory(mail, share);
        assert!(
            peak < most,
            "{test}: {} MiB for a mail of {} MiB",
            peak / MEGABYTE,
            mail.len() as u64 / MEGABYTE
        );
    }
    ran
}

#[track_caller]
fn passes(test: &str, ran: &Ran, mail: &[u8]) {
    assert!(
        ran.stdout == mail,
        "{test}: {} octets of {}",
        ran.stdout.len(),
        mail.len()
    );
}

fn reasons(ran: &Ran) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for reason in ran.column("reason") {
        *counted.entry(reason).or_default() += 1;
    }
    counted
}

const REFERENCE: &str =
    "Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\n\n";

#[test]
fn message_nested_beyond_the_limit_passes_unchanged_in_bounded_memory() {
    let levels = 100_000;
    let multiparts: String = (0..levels)
        .map(|at| format!("Content-Type: multipart/mixed; boundary=b{at}\n\n--b{at}\n"))
        .collect();
    let messages = "Content-Type: message/rfc822\n\n".repeat(levels);
    let one_boundary = "Content-Type: multipart/mixed; boundary=b\n\n--b\n".repeat(levels);
    for (what, reason, nested) in [
        ("multiparts", "too-deep", multiparts),
        ("messages", "too-deep", messages),
        // A boundary line ends the part before it, so these are parts of one multipart.
        ("multiparts of one boundary", "too-many-parts", one_boundary),
    ] {
        let mail = format!("{nested}{REFERENCE}").into_bytes();
        let ran = bounded(what, &mail, 8);
        passes(what, &ran, &mail);
        assert_eq!(ran.column("reason"), [reason], "{what}");
    }
}

#[test]
fn references_beyond_the_part_limit_are_left_in_bounded_memory() {
    let many: Vec<String> = vec![REFERENCE.to_owned(); 30_000];
    let before = mail(&many);
    let ran = bounded("references", &before, 16);
    // References below the limit are filled. The others are unchanged.
    let after = String::from_utf8(ran.stdout.clone()).unwrap();
    let left = after.matches(REFERENCE).count();
    let filled = ran
        .column("outcome")
        .iter()
        .filter(|outcome| *outcome == "expanded")
        .count();
    assert!((9_990..10_000).contains(&filled), "{filled}");
    assert_eq!(left, many.len() - filled);
    assert_eq!(
        reasons(&ran).get("too-many-parts"),
        Some(&1),
        "{:?}",
        reasons(&ran)
    );

    let empty = mail(&vec!["\n".to_owned(); 500_000]);
    let with_one = [&empty[..], REFERENCE.as_bytes()].concat();
    let ran = bounded("empty parts", &with_one, 8);
    passes("empty parts", &ran, &with_one);
    assert_eq!(ran.column("reason"), ["too-many-parts"]);
}

#[test]
fn huge_header_field_and_many_fields_are_read_in_bounded_memory() {
    let large = "QUJD".repeat(17 << 20);
    let before = mail(&[
        reference(&format!("data:image/gif;base64,{large}"), "image/gif"),
        REFERENCE.to_owned(),
    ]);
    let ran = bounded("a large field", &before, 4);
    assert_eq!(
        reasons(&ran).get("header-too-large"),
        Some(&1),
        "{:?}",
        reasons(&ran)
    );

    let fields = "X:y\n".repeat(500_000);
    let before = format!("{fields}{REFERENCE}").into_bytes();
    let ran = bounded("many fields", &before, 40);
    let after = format!("{fields}Content-Type: text/plain;charset=US-ASCII\n").into_bytes();
    assert!(ran.stdout.starts_with(fields.as_bytes()));
    assert!(ran.stdout.len() >= after.len() - 10);
    assert_eq!(ran.column("outcome"), ["expanded"]);
}

#[test]
fn many_parameters_sections_and_comments_are_read_in_bounded_memory() {
    let many: String = (0..100_000).map(|at| format!("; p{at}=v")).collect();
    let sections: String = (1..100_000)
        .rev()
        .map(|at| format!("; URL*{at}=v"))
        .collect();
    for (what, outcome, parameters) in [
        (
            "parameters",
            "expanded",
            format!("{many}; access-type=URL; URL=\"data:,x\""),
        ),
        (
            "sections",
            "expanded",
            format!("; access-type=URL; URL*0=\"data:,\"{sections}"),
        ),
        (
            "comments",
            "left",
            format!(
                "; {}; access-type=URL; URL=\"data:,x\"",
                "(".repeat(300_000)
            ),
        ),
        (
            "data: URL parameters",
            "expanded",
            format!(
                "; access-type=URL; URL=\"data:text/plain{},x\"",
                ";a=b".repeat(100_000)
            ),
        ),
    ] {
        let before = mail(&[format!(
            "Content-Type: message/external-body{parameters}\n\n\n"
        )]);
        let ran = bounded(what, &before, 100);
        assert_eq!(
            ran.column("outcome"),
            [outcome],
            "{what}: {:?}",
            reasons(&ran)
        );
        if outcome == "left" {
            passes(what, &ran, &before);
        }
    }
}

#[test]
fn huge_srcset_is_resolved_in_bounded_memory_or_left_at_the_growth_limit() {
    let candidates = "i.png 1x,".repeat(20_000);
    let base = "Content-Base: http://www.example.org/\nContent-Type: text/html\n\n";
    let before = format!("{base}<img srcset=\"{candidates}\">").into_bytes();
    let after = candidates.replace("i.png", "http://www.example.org/i.png");
    let ran = bounded("candidates", &before, 100);
    passes(
        "candidates",
        &ran,
        format!("{base}<img srcset=\"{after}\">").as_bytes(),
    );

    let ran = bounded_with("beyond growth", "--max-growth 256K", &before, 100);
    passes("beyond growth", &ran, &before);
    assert_eq!(ran.column("reason"), ["growth-limit"]);
}

#[test]
fn references_are_filled_up_to_the_growth_limit_in_bounded_memory() {
    let large = format!(
        "Content-ID: <a@x>\n\n{}\n",
        "a line of text\n".repeat(70_000)
    );
    let copies = vec![
        "Content-Type: message/external-body; access-type=URL; URL=\"cid:a@x\"\n\n\n"
            .to_owned();
        1_000
    ];
    let before = mail(&[copies, vec![large]].concat());
    let ran = bounded("copies", &before, 16);
    assert!(ran.stdout.len() as u64 <= before.len() as u64 + MOST_GROWTH);
    // References are filled as far as they fit, in the order of the message.
    let outcomes = ran.column("outcome");
    let expanded = outcomes
        .iter()
        .filter(|outcome| *outcome == "expanded")
        .count();
    assert!((45..=50).contains(&expanded), "{expanded}");
    assert!(
        outcomes[..expanded]
            .iter()
            .all(|outcome| outcome == "expanded")
    );
    assert_eq!(reasons(&ran).get("growth-limit"), Some(&(1_000 - expanded)));
}

#[test]
fn body_beyond_the_size_limit_is_left_in_bounded_memory() {
    let before = mail(&[
        reference(&format!("data:,{}", "x".repeat(30 << 20)), "text/plain"),
        REFERENCE.to_owned(),
    ]);
    let ran = bounded("a body", &before, 6);
    assert_eq!(
        reasons(&ran).get("too-large"),
        Some(&1),
        "{:?}",
        reasons(&ran)
    );
}

/// A mail in which each part has the base URL of the message.
#[test]
fn long_base_url_of_many_documents_stays_within_the_growth_limit() {
    let header = format!(
        "Content-Base: http://www.example.org/{}\n",
        "p".repeat(8_000)
    );
    for (what, link, documents) in [("no links", "#x", 0), ("links", "x", 4_000)] {
        let parts = vec![format!("Content-Type: text/html\n\n<a href={link}>\n"); 4_000];
        let before = [header.as_bytes(), &mail(&parts)].concat();
        let ran = bounded_with(what, "--max-growth 20K", &before, 100);
        assert!(ran.stdout.len() <= before.len() + (20 << 10), "{what}");
        let reasons = reasons(&ran);
        let refused: usize = ["growth-limit", "too-much-work"]
            .into_iter()
            .filter_map(|reason| reasons.get(reason))
            .sum();
        let outcomes = ran.column("outcome");
        let done = outcomes
            .iter()
            .take_while(|outcome| *outcome == "rewritten")
            .count();
        assert_eq!(done + refused, documents, "{what}: {reasons:?}");
        assert!(documents == 0 || refused > 3_000, "{what}: {refused}");
    }
}

/// Documents that are each below the limit, and together far beyond it.
#[test]
fn many_growing_documents_are_changed_only_up_to_the_growth_limit() {
    let header = format!(
        "Content-Base: http://www.example.org/{}/\n",
        "p".repeat(1_000)
    );
    let document = format!("Content-Type: text/html\n\n{}\n", "<a href=x>".repeat(100));
    let before = [header.as_bytes(), &mail(&vec![document; 100])].concat();
    let ran = bounded_with("documents", "--max-growth 4M", &before, 100);
    // Documents are changed as far as they fit, in the order of the message.
    let done = (4 << 20) / (100 * ("http://www.example.org//".len() + 1_000));
    let outcomes = ran.column("outcome");
    assert_eq!(outcomes.len(), 100);
    assert!(
        outcomes[..done]
            .iter()
            .all(|outcome| outcome == "rewritten")
    );
    assert!(outcomes[done..].iter().all(|outcome| outcome == "left"));
    // After the limit of work was reached, further documents are not read.
    let reasons = reasons(&ran);
    let left: usize = ["growth-limit", "too-much-work"]
        .into_iter()
        .filter_map(|reason| reasons.get(reason))
        .sum();
    assert_eq!(left, 100 - done, "{reasons:?}");
    let most = 40 * MEGABYTE;
    assert!(ran.peak.is_none_or(|peak| peak < most), "{:?}", ran.peak);
}

/// Memory in addition to four times the mail and its growth: the process itself, in a build without optimization. A message
/// without references needs 24.7 MB. The peak differs from run to run, and more on a busy machine.
const PROCESS: u64 = 30 * MEGABYTE;

/// The structures with the largest memory per byte: the data for each link or field is many times as large as the link or
/// field.
#[test]
fn memory_is_four_times_the_mail_and_what_it_gains() {
    let octets = 2 << 20;
    let many = |unit: &str| unit.repeat(octets / unit.len());
    let based = "Content-Base: http://www.example.org/\nContent-Type: text/html\n";
    let quoted = "Content-Transfer-Encoding: quoted-printable\n";
    let reference = REFERENCE.trim_end();
    let blanks = format!("<a{} href=x>\n", " b".repeat(490));
    for (what, mail) in [
        ("links", format!("{based}\n{}", many("<a src=x>"))),
        ("a list", format!("{based}\n<a ping=\"{}\">", many("x "))),
        (
            "candidates",
            format!("{based}\n<img srcset=\"{}\">", many("x, ")),
        ),
        (
            "one link",
            format!("{based}\n<img srcset=\"{}\">", many("x")),
        ),
        (
            "a style sheet",
            format!("{based}\n<style>{}", many("url(x)")),
        ),
        ("line ends", format!("{based}\n<a ping=\"{}\">", many("\r"))),
        ("NUL", format!("{based}\n<a ping=\"{}\">", many("\0"))),
        (
            "references",
            format!("{based}\n<a ping=\"{}\">", many("&nGt;")),
        ),
        (
            "long lines",
            format!(
                "{based}\n{}",
                many(&format!("{}\n", "<a id=b href=x>".repeat(60)))
            ),
        ),
        ("blanks", format!("{based}\n{}", many(&blanks))),
        (
            "quoted-printable",
            format!("{based}{quoted}\n{}", many("<a href=3Dx>=\n")),
        ),
        (
            "phantom fields",
            format!("{reference}\n\n{}\n", many("a:\n")),
        ),
        (
            "fields that go",
            format!("{reference}\n{}\nA:b\n\n", many("Content-Type:\n")),
        ),
    ] {
        for options in ["--max-header 1G", "--max-header 1G --max-growth 1G"] {
            let before = mail.as_bytes();
            let Some(ran) = measured(what, options, before) else {
                return;
            };
            assert_eq!(ran.code, Some(0), "{what}: {:.300}", ran.stderr);
            assert!(ran.took < TIME, "{what}: {:?}", ran.took);
            let gained = (ran.stdout.len() as u64).saturating_sub(before.len() as u64);
            let most = PROCESS + 4 * before.len() as u64 + gained;
            assert!(
                ran.peak.is_none_or(|peak| peak < most),
                "{what}, {options}: {:?} of {most} octets",
                ran.peak
            );
            // If the default limit of growth refused nothing, a run with a higher limit does the same.
            if !reasons(&ran).contains_key("growth-limit") {
                break;
            }
        }
    }
}
