//! A forecast gives the same rows as the run, if no requests are needed. The rows of a report use the part numbers of
//! the original message.

use embody::Policy;
use embody::engine::Content;
use embody::fetch::{Bytes, Fetch, Request};
use embody::mime::{self, PartKind, ScanLimits};
use embody::policy::{Embed, Limits, Scheme};
use embody::report::{Kind, Outcome, Reason, Refusal, Report, Row};
use proptest::prelude::*;

use super::common::mail::{self, crlf, expander};
use super::embed::{data, gif};

/// Returns a policy that allows no requests.
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

/// Generates an entity whose boundary differs from those inside it.
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

/// Returns the rows of a forecast and of a run.
fn told(policy: Policy, mail: &[u8]) -> (Vec<Told>, Vec<Told>) {
    let expander = expander(policy, embody::fetch::NoFetch);
    let forecast = expander.forecast(mail, "test");
    let run = expander.expand(mail, "test").unwrap().report;
    let told = |row: Row| {
        let outcome = row.outcome.would().as_str();
        let reason = row.reason.map(|reason| reason.as_str());
        let url = row.url.unwrap_or_default();
        (row.part, row.kind, outcome, reason, url)
    };
    let rows = |report: Report| report.rows.into_iter().map(told).collect();
    (rows(forecast), rows(run))
}

/// Returns the numbers of all leaf parts.
fn leaves(mail: &[u8]) -> Vec<String> {
    let tree = mime::scan(mail, &ScanLimits::default());
    let leaves = tree
        .ids()
        .filter(|part| tree.part(*part).content == PartKind::Leaf);
    leaves.map(|part| tree.number(part)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn run_without_requests_has_the_predicted_rows(
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

/// Returns a policy that allows all requests.
fn asking() -> Policy {
    let mut policy = policy(None, 50 << 20);
    policy.embed.remote = true;
    policy.fetch = [Scheme::Http, Scheme::Https].into();
    policy
}

fn remote_piece() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "<base href='https://a.example/b/'>\n".to_owned(),
        "<img src=https://a.example/1>\n".to_owned(),
        "<img src=\"//a.example/2\">".to_owned(),
        "<img src=3><img src='3'>\n".to_owned(),
        "<img src='/a=b&amp;c=d'>\n".to_owned(),
        "<img src=4 srcset='5 2x, 6 3x'>\n".to_owned(),
        "<img srcset='7 2x,8'>\n".to_owned(),
        "<p style='background:url(9)'>\n".to_owned(),
        "<style>a{b:image-set('10' 1x,'11' 2x)}</style>\n".to_owned(),
        "<link rel=stylesheet href=s.css>\n".to_owned(),
        "<style>@import 'data:text/css,a{b:url(https://a.example/12)}';</style>\n".to_owned(),
        "<img src=13 width=1 height=1>\n".to_owned(),
        "<a href=relative>x</a>\n".to_owned(),
        format!("<img src=\"{}\">", data(&gif(9, 9, 1))),
        "x".repeat(900),
    ])
}

fn remote_mail() -> impl Strategy<Value = String> {
    let choices = (
        prop::collection::vec(remote_piece(), 1..6),
        prop::sample::select(vec!["", "Content-Base: http://p.example/\n"]),
        prop::sample::select(vec!["", "Content-Transfer-Encoding: quoted-printable\n"]),
    );
    let html = choices.prop_map(|(pieces, base, encoding)| {
        let text = pieces.concat();
        let body = match encoding {
            "" => text,
            _ => text.replace('=', "=3D"),
        };
        format!("{base}{encoding}Content-Type: text/html\n\n{body}")
    });
    let reference = "Content-Type: message/external-body; access-type=URL; URL=\"https://a.example/h\"\n\nContent-Type: text/html\n\n";
    let located = "Content-Type: image/gif\nContent-Location: http://p.example/3\n\nGIF89a\n";
    let sheet = "Content-Type: text/css\nContent-Location: http://p.example/s.css\n\nb { background: url(14) }\n";
    let part = prop_oneof![
        8 => html,
        1 => Just(reference.to_owned()),
        1 => Just(located.to_owned()),
        1 => Just(sheet.to_owned()),
    ];
    let kinds = vec!["related", "mixed", "alternative", "signed"];
    (prop::sample::select(kinds), prop::collection::vec(part, 1..5)).prop_map(|(kind, parts)| {
        let parts: String = parts.iter().map(|part| format!("--q\n{part}\n")).collect();
        format!("From: a@b\nContent-Length: 7\nMIME-Version: 1.0\nContent-Type: multipart/{kind}; boundary=q\n\n{parts}--q--\n")
    })
}

/// Answers requests with pictures, style sheets and HTML, or not at all, depending on the bits of the number.
#[derive(Clone, Copy, Debug)]
struct Some32(u32);

impl Fetch for Some32 {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        let number = request
            .url()
            .bytes()
            .fold(0_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte))
            % 32;
        if self.0 & (1 << number) == 0 {
            return Err(Refusal::lasting(Reason::HttpStatus, "404"));
        }
        let (media_type, body) = match request.need.accept() {
            Some("text/css") => ("text/css", b"a { b: url(15) }".to_vec()),
            Some("text/html") => ("text/html", b"<img src=16><a href=y>".to_vec()),
            _ => ("image/gif", gif(9, 9, number as u8)),
        };
        Ok(Content::new(
            request.url(),
            Some(media_type.to_owned()),
            Bytes::from(body),
        ))
    }
}

/// Returns the maximum growth of a message that `inspect` predicts, with pictures of `body` bytes.
fn most(report: &Report, body: u64) -> i64 {
    let fetches = report
        .rows
        .iter()
        .filter(|row| row.outcome == Outcome::WouldFetch);
    let each = |row: &Row| {
        let is_picture = row.kind == Kind::Embed && row.media_type.is_none();
        let url = row.url.as_ref().map_or(0, String::len) as u64;
        if is_picture {
            800 + 4 * url + body * 3 / 2
        } else {
            50 << 20
        }
    };
    report.gained.max(0) + fetches.map(each).sum::<u64>() as i64
}

type Links = (String, bool, Option<u64>, Option<&'static str>);

/// Returns the part, whether it was left, the number of links and the reason, for each row about links.
fn links(rows: &[Row]) -> Vec<Links> {
    let links = rows.iter().filter(|row| row.kind == Kind::Link);
    let said = |row: &Row| {
        let reason = row.reason.map(|reason| reason.as_str());
        (
            row.part.clone(),
            row.outcome == Outcome::Left,
            row.links,
            reason,
        )
    };
    links.map(said).collect()
}

/// Checks that a run has the size and the links that its forecast predicts.
fn check_forecast(mail: &[u8], answers: u32) {
    let expander = expander(asking(), Some32(answers));
    let forecast = expander.forecast(mail, "test");
    let expansion = expander.expand(mail, "test").unwrap();
    let gained = expansion.output().len() as i64 - mail.len() as i64;
    assert_eq!(expansion.report.gained, gained);
    let most = most(&forecast, 60);
    let shown = String::from_utf8_lossy(mail);
    assert!(
        gained <= most,
        "{gained} of {most}: {:?}\n{shown}",
        forecast.rows
    );
    // Content that can be a document brings further links.
    let is_picture = |row: &&Row| row.kind == Kind::Embed && row.media_type.is_none();
    let mut fetches = forecast
        .rows
        .iter()
        .filter(|row| row.outcome == Outcome::WouldFetch);
    // The pictures of one document can make a line of the next document too long. Such a picture is then a part of the
    // mail, and the link in the next document refers to it. A forecast cannot predict this.
    let rows = &expansion.report.rows;
    let is_too_long =
        |row: &Row| row.kind == Kind::Embed && row.reason == Some(Reason::LineTooLong);
    let fits = !rows.iter().any(is_too_long);
    if answers == u32::MAX && fits && fetches.all(|row| is_picture(&row)) {
        assert_eq!(
            links(&forecast.rows),
            links(&expansion.report.rows),
            "{shown}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn growth_is_at_most_the_forecast_and_pictures_add_no_links(
        mail in remote_mail(),
        answers in prop_oneof![Just(u32::MAX), any::<u32>(), Just(0)],
    ) {
        check_forecast(mail.as_bytes(), answers);
    }
}

#[test]
fn forecasts_of_all_samples_are_right() {
    let samples = [
        mail::changed_samples(),
        mail::untouched_samples(),
        mail::mhtml_samples(),
    ];
    let mut count = 0;
    for sample in samples.into_iter().flatten() {
        for answers in [u32::MAX, 0x5555_aaaa, 0] {
            check_forecast(&sample.before, answers);
            check_forecast(&crlf(&sample.before), answers);
        }
        count += 1;
    }
    assert!(count > 50, "{count}");
}

/// A link for which no request is made does not become a link to rewrite. A link whose request fails does.
#[test]
fn a_picture_that_would_be_embedded_is_no_link_that_would_be_rewritten() {
    let mail = "MIME-Version: 1.0\nContent-Base: https://a.example/\nContent-Type: text/html\n\n<img src=1><img src=2 width=1 height=1>\n";
    let expander = expander(asking(), Some32(u32::MAX));
    let forecast = expander.forecast(mail.as_bytes(), "test");
    let outcomes: Vec<_> = forecast
        .rows
        .iter()
        .map(|row| (row.kind, row.outcome))
        .collect();
    // The tracker is left, and its link is resolved.
    let expected = [
        (Kind::Embed, Outcome::WouldFetch),
        (Kind::Embed, Outcome::Left),
        (Kind::Link, Outcome::WouldRewrite),
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(forecast.rows[2].links, Some(1));
}

#[test]
fn rows_of_one_document_have_the_same_part_number() {
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
fn displayed_part_is_not_also_a_link_and_counts_against_limits() {
    let mail = |more: &str| {
        format!(
            "Content-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\n<img src=\"p\">\n--b\n\
             Content-Type: image/png\nContent-Location: p\n\nabc{more}\n--b--\n"
        )
    };
    let (forecast, run) = told(policy(None, 50 << 20), mail("").as_bytes());
    assert_eq!(forecast, run);
    assert_eq!(run.len(), 1, "{run:?}");
    assert_eq!((run[0].1, run[0].2), (Kind::Embed, "would-expand"));
    let long = mail(&"x".repeat(1_500));
    let (forecast, run) = told(policy(Some(1_500), 50 << 20), long.as_bytes());
    assert_eq!(forecast, run);
    assert!(
        run.iter().all(|row| row.3 == Some("message-limit")),
        "{run:?}"
    );
}
