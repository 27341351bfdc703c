//! A forecast is what a run then does: where nobody has to be asked, they have the same rows. And the rows of one
//! report count the parts of the message as it came.

use embody::Policy;
use embody::mime::{self, Content, ScanLimits};
use embody::policy::{Embed, Limits};
use embody::report::{Forecast, Kind, Outcome};
use proptest::prelude::*;

use super::common::mail::expander;
use super::embed::{data, gif};

/// A policy under which nobody is asked.
fn policy(message: Option<u64>, growth: u64) -> Policy {
    let embed = Embed {
        data: true,
        pictures: true,
        styles: true,
        ..Embed::default()
    };
    let limits = Limits {
        message,
        growth,
        ..Limits::default()
    };
    Policy {
        embed,
        limits,
        ..Policy::default()
    }
}

fn piece() -> impl Strategy<Value = String> {
    let one = data(&gif(9, 9, 1));
    let two = data(&gif(9, 9, 2));
    prop::sample::select(vec![
        format!("<img src='{one}'>\n"),
        format!("<img src=\"{one}\">"),
        format!("<img src=x srcset='{two} 2x'>\n"),
        format!("<p style=\"background: url({two})\">"),
        "<img src=p.gif>\n".to_owned(),
        "<img src='cid:p@x'>".to_owned(),
        "<img src='data:image/gif;base64,R0lG*'>\n".to_owned(),
        "<a href=rel>x</a>\n".to_owned(),
        "<a href=3D\"https://h.example/\">x</a>\n".to_owned(),
        "<base href='http://b.example/'>\n".to_owned(),
        "<link rel=stylesheet href='data:text/css,b{background:url(data:image/gif;base64,R0lGODlhAQABAAAAACw=)}'>\n"
            .to_owned(),
        "<link rel=stylesheet href=s.css>\n".to_owned(),
        "x".repeat(940),
    ])
}

fn leaf() -> impl Strategy<Value = String> {
    let html = (
        prop::collection::vec(piece(), 0..6),
        prop::sample::select(vec!["", "Content-Base: http://p.example/\n"]),
        prop::sample::select(vec!["", "; charset=utf-16", "; charset=utf-8"]),
    )
        .prop_map(|(pieces, base, charset)| {
            format!(
                "{base}Content-Type: text/html{charset}\n\n{}",
                pieces.concat()
            )
        });
    prop_oneof![
        6 => html,
        1 => Just("Content-Type: text/plain\n\nhi\n".to_owned()),
        2 => Just("Content-Type: image/gif\nContent-ID: <p@x>\nContent-Location: p.gif\n\nGIF89a\n".to_owned()),
        1 => Just("Content-Type: text/css\nContent-Location: s.css\n\nb { background: url(p.gif) }\n".to_owned()),
        1 => Just(
            "Content-Type: message/external-body; access-type=URL; URL=\"data:text/html,<img src=p.gif>\"\n\nContent-Type: text/html\n\n"
                .to_owned()
        ),
    ]
}

/// An entity; its boundaries are not those inside it.
fn entity() -> impl Strategy<Value = String> {
    leaf().prop_recursive(3, 8, 3, |inner| {
        let kinds = vec![
            "related",
            "related",
            "alternative",
            "mixed",
            "signed",
            "encrypted",
            "report",
        ];
        let multipart = (
            prop::sample::select(kinds),
            prop::collection::vec(inner.clone(), 1..4),
            prop::bool::weighted(0.9),
        )
            .prop_map(|(kind, parts, is_closed)| {
                let most = parts.iter().map(String::len).sum::<usize>();
                let boundary = format!("b{most}");
                let parts: String = parts
                    .iter()
                    .map(|part| format!("--{boundary}\n{part}\n"))
                    .collect();
                let close = if is_closed { format!("--{boundary}--\n") } else { String::new() };
                format!("Content-Type: multipart/{kind}; boundary={boundary}\n\n{parts}{close}")
            });
        prop_oneof![
            4 => multipart,
            1 => inner.prop_map(|inner| format!("Content-Type: message/rfc822\n\nSubject: s\n{inner}")),
        ]
    })
}

type Told = (String, Kind, &'static str, Option<&'static str>, String);

/// The rows of a forecast and of a run.
fn told(policy: Policy, mail: &[u8]) -> (Vec<Told>, Vec<Told>) {
    let expander = expander(policy, embody::fetch::NoFetch);
    let forecast = expander.forecast(mail, "test");
    let run = expander.expand(mail, "test").unwrap().report;
    let forecast = forecast.rows.into_iter().map(|row| {
        let outcome = match row.outcome {
            Forecast::WouldExpand => "expanded",
            Forecast::WouldRewrite => "rewritten",
            Forecast::Left => "left",
            _ => "another",
        };
        let reason = row.reason.map(|reason| reason.as_str());
        let url = row.url.unwrap_or_default();
        (row.part, row.kind, outcome, reason, url)
    });
    let run = run.rows.into_iter().map(|row| {
        let outcome = match row.outcome {
            Outcome::Expanded => "expanded",
            Outcome::Rewritten => "rewritten",
            Outcome::Left => "left",
            _ => "another",
        };
        let reason = row.reason.map(|reason| reason.as_str());
        let url = row.url.unwrap_or_default();
        (row.part, row.kind, outcome, reason, url)
    });
    (forecast.collect(), run.collect())
}

/// The numbers of all leaves.
fn leaves(mail: &[u8]) -> Vec<String> {
    let tree = mime::scan(mail, &ScanLimits::default());
    let leaves = tree
        .ids()
        .filter(|part| tree.part(*part).content == Content::Leaf);
    leaves.map(|part| tree.number(part)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn where_nobody_has_to_be_asked_a_run_does_what_was_foretold(
        entity in entity(),
        message in prop::option::of(500..6_000_u64),
        growth in prop::sample::select(vec![50 << 20, 2_000, 600]),
    ) {
        let mail = format!("From: a@b\nMIME-Version: 1.0\n{entity}");
        let (forecast, run) = told(policy(message, growth), mail.as_bytes());
        prop_assert_eq!(&forecast, &run);
        let leaves = leaves(mail.as_bytes());
        for (part, kind, ..) in &run {
            prop_assert!(
                !matches!(kind, Kind::Embed | Kind::Link) || leaves.contains(part),
                "{} of {:?}", part, leaves
            );
        }
    }
}

#[test]
fn a_document_has_one_number_in_all_rows_wherever_it_stands() {
    let html = format!(
        "Content-Type: text/html\nContent-Base: http://b.example/\n\n<a href=x><img src=\"{}\">",
        data(&gif(9, 9, 1))
    );
    let plain = "Content-Type: text/plain\n\nhi";
    for (mail, number) in [
        (format!("From: a@b\n{html}"), "1"),
        (
            format!(
                "Content-Type: multipart/mixed; boundary=q\n\n--q\n{plain}\n--q\n{html}\n--q--\n"
            ),
            "2",
        ),
        (
            format!(
                "Content-Type: multipart/mixed; boundary=q\n\n--q\n{plain}\n--q\nContent-Type: message/rfc822\n\n{html}\n--q--\n"
            ),
            "2.1",
        ),
        (
            format!("Content-Type: multipart/related; boundary=q\n\n--q\n{html}\n--q--\n"),
            "1",
        ),
    ] {
        let (forecast, run) = told(policy(None, 50 << 20), mail.as_bytes());
        assert_eq!(forecast, run);
        let rows: Vec<_> = run
            .iter()
            .map(|(part, kind, ..)| (part.as_str(), *kind))
            .collect();
        assert_eq!(
            rows,
            [(number, Kind::Embed), (number, Kind::Link)],
            "{mail}"
        );
    }
}

#[test]
fn a_part_that_is_shown_is_no_link_as_well_and_counts_against_the_limits() {
    let mail = |more: &str| {
        format!(
            "Content-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\n<img src=\"p\">\n--b\n\
             Content-Type: image/png\nContent-Location: p\n\nabc{more}\n--b--\n"
        )
    };
    let (forecast, run) = told(policy(None, 50 << 20), mail("").as_bytes());
    assert_eq!(forecast, run);
    assert_eq!(run.len(), 1, "{run:?}");
    assert_eq!((run[0].1, run[0].2), (Kind::Embed, "expanded"));
    let long = mail(&"x".repeat(1_500));
    let (forecast, run) = told(policy(Some(1_500), 50 << 20), long.as_bytes());
    assert_eq!(forecast, run);
    assert!(
        run.iter().all(|row| row.3 == Some("message-limit")),
        "{run:?}"
    );
}
