//! The messages in `samples/`: the output of each is its `.out.eml`, with LF and with CRLF, and other programs read the
//! same parts in the output as embody.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::common::mail::{
    self, assert_bytes, changed_samples, crlf, expand, our_leaves, untouched_samples,
};
use embody::Policy;
use embody::fetch::NoFetch;
use embody::report::Outcome;

#[test]
fn every_sample_gives_its_expected_output() {
    for sample in changed_samples() {
        let (output, report) = expand(&sample.before);
        assert_bytes(&output, &sample.after, &sample.name);
        assert!(report.expanded() > 0, "{}: {report:?}", sample.name);
        assert_ne!(sample.before, sample.after, "{}", sample.name);
    }
}

#[test]
fn crlf_version_of_a_sample_gives_the_crlf_version_of_the_output() {
    for sample in changed_samples() {
        let (output, _) = expand(&crlf(&sample.before));
        assert_bytes(&output, &crlf(&sample.after), &sample.name);
    }
}

#[test]
fn second_run_over_a_sample_changes_nothing() {
    for sample in changed_samples() {
        for after in [sample.after.clone(), crlf(&sample.after)] {
            let (output, report) = expand(&after);
            assert_bytes(&output, &after, &sample.name);
            assert_eq!(report.expanded(), 0, "{}", sample.name);
        }
    }
}

#[test]
fn unchanged_sample_is_returned_without_a_copy() {
    let expander = mail::expander(Policy::default(), NoFetch);
    for sample in untouched_samples() {
        for message in [sample.before.clone(), crlf(&sample.before)] {
            let expansion = expander.expand(&message, "test").unwrap();
            let output = expansion.output().into_bytes();
            assert_bytes(&output, &message, &sample.name);
            assert!(matches!(output, Cow::Borrowed(_)), "{}", sample.name);
            let left =
                |row: &embody::report::Row| row.outcome == Outcome::Left && row.reason.is_some();
            assert!(expansion.report.rows.iter().all(left), "{}", sample.name);
        }
    }
}

/// `samples/README.md` lists the reasons, and the rows must contain them.
#[test]
fn report_reasons_of_the_samples_match_their_readme() {
    let readme = std::fs::read_to_string(mail::samples_folder().join("README.md")).unwrap();
    let mut promised = 0;
    for sample in untouched_samples() {
        let name = sample.name.trim_end_matches(".in.eml");
        let line = readme
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")))
            .unwrap_or_else(|| panic!("{name} is not in samples/README.md"));
        let Some(reason) = embody::report::Reason::ALL
            .iter()
            .find(|reason| line.contains(&format!("| `{}`", reason.as_str())))
        else {
            continue;
        };
        promised += 1;
        let (_, report) = expand(&sample.before);
        let reasons: Vec<_> = report.rows.iter().filter_map(|row| row.reason).collect();
        assert_eq!(reasons, [*reason], "{name}");
    }
    assert!(promised > 15, "only {promised} reasons were compared");
    for sample in changed_samples() {
        let name = sample.name.trim_end_matches(".in.eml");
        assert!(readme.contains(&format!("| `{name}` |")), "{name}");
    }
}

/// Returns the samples in which Python's `email` finds other leaf parts than embody, with the reason why embody is
/// right.
fn python_disagrees() -> BTreeMap<&'static str, &'static str> {
    BTreeMap::from([(
        "eight-bit-header",
        "its boundary never matches raw 8-bit octets",
    )])
}

#[test]
fn python_reads_the_same_leaves() {
    let samples: Vec<_> = changed_samples()
        .into_iter()
        .chain(untouched_samples())
        .collect();
    let messages: Vec<Vec<u8>> = samples
        .iter()
        .flat_map(|sample| [sample.after.clone(), crlf(&sample.after)])
        .collect();
    let Some(read) = mail::python_leaves(&messages) else {
        return;
    };
    let accepted = python_disagrees();
    let mut differing = Vec::new();
    for (index, (message, theirs)) in messages.iter().zip(read).enumerate() {
        let name = samples[index / 2].name.trim_end_matches(".in.eml");
        let ours = our_leaves(message);
        if ours != theirs && !accepted.contains_key(name) {
            differing.push(format!("{name}:\n  ours   {ours:?}\n  theirs {theirs:?}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// Returns the samples in which mail-parser finds other leaf parts than embody, with the reason why embody is right.
fn mail_parser_disagrees() -> BTreeMap<&'static str, &'static str> {
    BTreeMap::from([
        (
            "boundary-look-alikes",
            "it takes --foobar for the boundary foo",
        ),
        (
            "eight-bit-header",
            "its boundary never matches raw 8-bit octets",
        ),
        (
            "text-charset-added",
            "it gives text as UTF-8, whatever its charset",
        ),
        (
            "truncated-in-base64",
            "it gives up decoding base64 that was cut off",
        ),
    ])
}

#[test]
fn mail_parser_reads_the_same_leaves() {
    let accepted = mail_parser_disagrees();
    let mut differing = Vec::new();
    for sample in changed_samples().into_iter().chain(untouched_samples()) {
        let name = sample.name.trim_end_matches(".in.eml");
        for message in [sample.after.clone(), crlf(&sample.after)] {
            let ours = our_leaves(&message);
            let theirs = mail::mail_parser_leaves(&message);
            if ours != theirs && !accepted.contains_key(name) {
                differing.push(format!("{name}:\n  ours   {ours:?}\n  theirs {theirs:?}"));
            }
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
