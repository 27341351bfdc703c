//! Random mail of many shapes, read by three programs. embody must always find the intended parts. If mail-parser or
//! Python's `email` finds other parts, the reason must be in this file.
//!
//! The samples are compared in samples.rs.

use std::collections::BTreeMap;

use super::common::mail::{self, Leaf, crlf, expand, our_leaves};
use super::common::trees;
use super::common::trees::{Made, Truth};

const MESSAGES: u64 = 1_500;

/// One message for a mail program: its bytes, its intended leaf parts, and its unusual features.
struct Case {
    bytes: Vec<u8>,
    truth: Vec<Truth>,
    with_crlf: bool,
    made: usize,
}

/// Returns each message before and after processing, with LF and with CRLF.
fn cases(made: &[Made]) -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, one) in made.iter().enumerate() {
        for with_crlf in [false, true] {
            let message = if with_crlf {
                crlf(&one.message)
            } else {
                one.message.clone()
            };
            let (output, _) = expand(&message);
            for (bytes, truth) in [(message, &one.before), (output, &one.after)] {
                cases.push(Case {
                    bytes,
                    truth: truth.clone(),
                    with_crlf,
                    made: index,
                });
            }
        }
    }
    cases
}

fn made() -> Vec<Made> {
    (0..MESSAGES).map(trees::message).collect()
}

fn meant(case: &Case) -> Vec<Leaf> {
    case.truth
        .iter()
        .map(|truth| truth.leaf(case.with_crlf))
        .collect()
}

#[test]
fn parts_are_read_as_intended_before_and_after_the_change() {
    let made = made();
    let (mut leaves, mut expanded) = (0, 0);
    for case in cases(&made) {
        let meant = meant(&case);
        let ours = our_leaves(&case.bytes);
        assert_eq!(
            ours,
            meant,
            "{:?}\n{}",
            made[case.made].features,
            String::from_utf8_lossy(&case.bytes)
        );
        leaves += meant.len();
        expanded += usize::from(
            case.truth
                .iter()
                .all(|one| one.essence != "message/external-body"),
        );
    }
    assert!(leaves > 7_500, "only {leaves} leaves");
    assert!(expanded > MESSAGES as usize * 2, "only {expanded}");
}

/// Compares the parts that a program finds with the intended ones. `accepted` lists the features of messages for which
/// a difference is allowed, with the reasons. Each difference needs such a feature, and each feature must cause a
/// difference.
fn compare(
    reader: &str,
    made: &[Made],
    cases: &[Case],
    read: impl Iterator<Item = (Vec<Leaf>, Vec<Leaf>)>,
    accepted: &[(&'static str, &str)],
) {
    let mut alone: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut same, mut together, mut wrong) = (0, 0, Vec::new());
    for (case, (theirs, meant)) in cases.iter().zip(read) {
        if theirs == meant {
            same += 1;
            continue;
        }
        let features = &made[case.made].features;
        let known: Vec<&str> = accepted
            .iter()
            .map(|(feature, _)| *feature)
            .filter(|feature| features.contains(feature))
            .collect();
        match known.as_slice() {
            [] => wrong.push(format!(
                "{features:?}\n  meant  {meant:?}\n  theirs {theirs:?}\n{}",
                String::from_utf8_lossy(&case.bytes)
            )),
            [one] => *alone.entry(one).or_default() += 1,
            _ => together += 1,
        }
    }
    println!(
        "{reader}: {same} of {} alike; {alone:?}, for several reasons {together}",
        cases.len()
    );
    assert!(
        wrong.is_empty(),
        "{reader}: {} differ\n{}",
        wrong.len(),
        wrong[..wrong.len().min(3)].join("\n")
    );
    assert!(same > cases.len() / 2, "{reader}: only {same} alike");
    for (feature, why) in accepted {
        assert!(
            alone.contains_key(feature),
            "{reader} agrees now: {feature}: {why}"
        );
    }
}

/// Differences of mail-parser 0.11, and the reasons why embody is right.
const MAIL_PARSER: [(&str, &str); 4] = [
    (
        "look-alikes",
        "it takes a line that only begins with a boundary for one (RFC 2046 §5.1.1)",
    ),
    (
        "message in a message",
        "a message whose whole body is a message: it panics, or loses the inner one",
    ),
    (
        "no parts",
        "a multipart that is closed before it began: it takes what follows for text",
    ),
    (
        "not closed",
        "an enclosing boundary ends an inner multipart (§5.1.2), for it only sometimes; base64 that \
         ends with the message is not decoded",
    ),
];

/// Differences of Python's `email`, and the reasons why embody is right.
const PYTHON: [(&str, &str); 3] = [
    (
        "comment",
        "it knows no comments in a media type (RFC 2045 §5.1), so a digest's parts are text",
    ),
    (
        "folded at once",
        "an encoding on the line behind its field's name is none to it (RFC 5322 §2.2.3)",
    ),
    (
        "no parts",
        "a multipart that is closed before it began: its preamble is a leaf to it",
    ),
];

#[test]
fn mail_parser_sees_the_same_parts_except_listed_differences() {
    let made = made();
    let cases = cases(&made);
    let read = cases.iter().map(|case| {
        let meant = case
            .truth
            .iter()
            .map(|truth| truth.leaf_in_utf8(case.with_crlf))
            .collect();
        // mail-parser (0.11) panics on some trees ("Invalid part ID"). The result is then empty.
        let read = std::panic::catch_unwind(|| mail::mail_parser_leaves(&case.bytes));
        (read.unwrap_or_default(), meant)
    });
    compare("mail-parser", &made, &cases, read, &MAIL_PARSER);
}

#[test]
fn python_sees_the_same_parts_except_listed_differences() {
    let made = made();
    let cases = cases(&made);
    let messages: Vec<Vec<u8>> = cases.iter().map(|case| case.bytes.clone()).collect();
    let Some(theirs) = mail::python_leaves(&messages) else {
        return;
    };
    let read = theirs.into_iter().zip(cases.iter().map(meant));
    compare("Python's email", &made, &cases, read, &PYTHON);
}

/// Other programs read the same parts as embody in the output for `samples/wild`.
#[test]
fn in_the_wild_samples_the_same_leaves_are_read() {
    let samples = mail::samples_in(&mail::samples_folder().join("wild"));
    let messages: Vec<Vec<u8>> = samples.iter().map(|sample| sample.after.clone()).collect();
    let python = mail::python_leaves(&messages);
    for (index, sample) in samples.iter().enumerate() {
        let ours = our_leaves(&sample.after);
        assert!(ours.len() > 1, "{}", sample.name);
        assert_eq!(
            mail::mail_parser_leaves(&sample.after),
            ours,
            "{}",
            sample.name
        );
        if let Some(python) = &python {
            assert_eq!(python[index], ours, "{}", sample.name);
        }
    }
}
