//! Messages that are truncated at any byte: an incomplete reference is not followed.

use std::collections::BTreeSet;

use crate::common::mail::{changed_samples, expand, expand_with};
use embody::Policy;
use embody::policy::Followed;
use embody::report::{Outcome, Report};

/// Returns a multipart with this part as its first, and text after it.
fn mixed(part: &str) -> String {
    format!(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n{part}\n--b\n\ntext\n--b--\n"
    )
}

fn contents(report: &Report) -> BTreeSet<(String, Option<u64>)> {
    let rows = report.rows.iter();
    rows.filter(|row| row.outcome == Outcome::Expanded)
        .map(|row| (row.part.clone(), row.bytes))
        .collect()
}

/// Asserts that a truncated message is filled only with content with which the complete message is filled.
#[track_caller]
fn whole_or_nothing(policy: &Policy, message: &[u8], what: &str) {
    let (_, whole) = expand_with(policy.clone(), message);
    let allowed = contents(&whole);
    assert!(!allowed.is_empty(), "{what}: {whole:?}");
    for length in 0..message.len() {
        let beginning = &message[..length];
        let (output, report) = expand_with(policy.clone(), beginning);
        let got = contents(&report);
        assert!(
            got.is_subset(&allowed),
            "{what}, {length} octets: {report:?}"
        );
        if got.is_empty() {
            assert_eq!(output, beginning, "{what}, {length} octets");
        }
    }
}

#[test]
fn no_reference_is_filled_with_a_part_of_its_content() {
    let samples = changed_samples();
    assert!(samples.len() > 10);
    for sample in samples {
        whole_or_nothing(&Policy::default(), &sample.before, &sample.name);
    }
}

#[test]
fn truncated_reference_of_any_form_gives_its_whole_content_or_nothing() {
    let policy = Policy::default().with_follow(Followed::all());
    for part in [
        "Content-Type: message/external-body; access-type=URL; URL=data:,0123456789\n\nContent-Type: text/plain\n",
        "Content-Type: message/external-body; URL=data:,0123456789 ; access-type=URL\n\n",
        "Content-Type: message/external-body; access-type=URL; URL*0=data:,; URL*1=\"0123\"; URL*2=\"4567\"\n\n",
        "Content-Type: message/external-body; access-type=URL; URL*=''data:,0123456789\n\n",
        "Content-Type: text/plain\nX-Mozilla-External-Attachment-URL: data:,0123456789\n\nnote\n",
        "Content-Type: text/plain\nX-Mozilla-Cloud-Part: cloudFile; url=data:,0123456789\n\nnote\n",
        "Content-Type: text/plain\nX-Mozilla-Cloud-Part: cloudFile; url=\"data:,0123456789\"\n\nnote\n",
        "Content-Type: message/external-body; name=\"a.url\"\n\n[InternetShortcut]\nURL=data:,0123456789\n",
        "Content-Type: application/internet-shortcut\n\n[InternetShortcut]\nURL=data:,0123456789\n",
        "Content-Type: application/internet-shortcut\nContent-Transfer-Encoding: quoted-printable\n\n[InternetShortcut]\nURL=3Ddata:,0123456789\n",
    ] {
        whole_or_nothing(&policy, mixed(part).as_bytes(), part);
    }
}

#[test]
fn a_part_that_is_not_closed_is_not_copied() {
    let reference = "Content-Type: message/external-body; access-type=URL; URL=\"cid:a@b\"\n\n";
    let mail = mixed(reference).replace("--b\n\ntext", "--b\nContent-ID: <a@b>\n\ntext");
    whole_or_nothing(&Policy::default(), mail.as_bytes(), "a copy");
    let open = mail.trim_end().trim_end_matches("--b--");
    let (output, report) = expand(open.as_bytes());
    assert_eq!(output, open.as_bytes());
    let reasons: Vec<_> = report.rows.iter().filter_map(|row| row.reason).collect();
    assert_eq!(reasons, [embody::report::Reason::IncompleteBody]);
}

#[test]
fn a_header_that_ends_behind_a_quoted_url_needs_no_body() {
    let mail = b"Content-Type: message/external-body; access-type=URL; URL=\"data:,0123456789\"\n";
    let (output, report) = expand(mail);
    assert_eq!(report.expanded(), 1, "{report:?}");
    assert!(output.ends_with(b"\n\n0123456789"));
}
