//! A second run over the output of `--embed` changes nothing (docs/design.md, P4): with trackers that are left, blanked
//! or retrieved, with the mark, and in damaged mail.

use embody::fetch::Canned;
use embody::policy::Trackers;
use embody::report::{Outcome, Reason};
use embody::{Expander, Mark, Policy, Report};
use proptest::prelude::*;

use super::common::mail::{assert_bytes, crlf, with_url};
use super::common::named::assert_each_names_a_part;
use super::embed::{cids, data, gif, html, policy};

/// Pictures on the server, of which two are tiny. `gone` does not exist.
const SERVED: [(&str, u8, u8); 6] = [
    ("x.png", 9, 1),
    ("1.png", 9, 2),
    ("2.png", 9, 3),
    ("same.png", 9, 1),
    ("tiny.png", 1, 4),
    ("dot.png", 3, 5),
];

fn world() -> Canned {
    let css = "b { background: url(x.png) } @import 'https://a.example/t.css';";
    let world = Canned::new()
        .with("https://a.example/s.css", Some("text/css"), css)
        .with(
            "https://a.example/t.css",
            Some("text/css"),
            "i { background: url(2.png) }",
        );
    SERVED.iter().fold(world, |world, &(name, side, number)| {
        let url = format!("https://a.example/{name}");
        world.with(&url, Some("image/gif"), gif(side, side, number))
    })
}

fn expander(policy: &Policy, mark: Mark) -> Expander {
    let builder = Expander::builder(policy.clone()).fetch(world()).mark(mark);
    builder.build().unwrap()
}

/// Returns the mail after one run, and checks that a second run changes nothing, with and without the mark.
#[track_caller]
fn once(policy: &Policy, mail: &[u8]) -> (Vec<u8>, Report) {
    for mark in [Mark::Field, Mark::Off] {
        let expander = expander(policy, mark);
        let expansion = expander.expand(mail, "test").unwrap();
        let output = expansion.output().into_bytes().into_owned();
        assert_each_names_a_part(mail, &output);
        let bound = |row: &embody::report::Row| row.reason.is_some_and(Reason::is_bound);
        if !expansion.report.rows.iter().any(bound) {
            let again = expander.expand(&output, "test").unwrap();
            assert_bytes(&again.output().into_bytes(), &output, "twice is once");
        }
        if mark == Mark::Off {
            return (output, expansion.report);
        }
    }
    unreachable!("the second way returns")
}

fn with(trackers: Trackers) -> Policy {
    let mut policy = policy();
    policy.embed.trackers = trackers;
    policy.embed.styles = true;
    policy
}

const HIDDEN: [&str; 5] = [
    "width=1 height=1",
    "style=\"display:none\"",
    "style='width:0;height:0'",
    "hidden=''",
    "style='visibility:hidden'",
];

#[test]
fn url_that_is_displayed_and_hidden_is_one_picture_in_either_order() {
    let shown = "<img src=\"https://a.example/x.png\">";
    for hidden in HIDDEN {
        let hidden = format!("<img src=\"https://a.example/x.png\" {hidden}>");
        for body in [
            format!("{shown}{hidden}"),
            format!("{hidden}{shown}"),
            format!("{hidden}<td background='https://a.example/x.png'>"),
            format!("{hidden}<img srcset='https://a.example/x.png 2x'>"),
        ] {
            for trackers in [Trackers::Leave, Trackers::Blank, Trackers::Fetch] {
                let (output, report) = once(&with(trackers), html(&body).as_bytes());
                let text = String::from_utf8(output).unwrap();
                let ids = cids(&text);
                assert_eq!(ids.len(), 2, "{text}");
                // The mail contains the picture, so it is not requested again.
                assert!(!text.contains("=\"https://a.example"), "{text}");
                assert_eq!(ids[0] == ids[1], trackers != Trackers::Blank);
                let left = |row: &&embody::report::Row| row.outcome == Outcome::Left;
                assert_eq!(report.rows.iter().filter(left).count(), 0, "{report:?}");
            }
        }
    }
}

#[test]
fn tracker_displayed_by_another_document_is_still_a_tracker() {
    let hidden = "<img src='https://a.example/x.png' width=1 height=1>";
    let shown = "<img src='https://a.example/x.png'>";
    let written = "<link rel=stylesheet href='https://a.example/s.css'>";
    let part = |body: &str| format!("--r\nContent-Type: text/html\n\n{body}\n");
    for parts in [
        [part(hidden), part(shown)],
        [part(shown), part(hidden)],
        [part(&format!("{hidden}{written}")), part("x")],
    ] {
        let mail = format!(
            "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=r\n\n{}--r--\n",
            parts.concat()
        );
        for mail in [mail.as_bytes().to_vec(), crlf(mail.as_bytes())] {
            let (output, report) = once(&with(Trackers::Leave), &mail);
            let text = String::from_utf8(output).unwrap();
            assert!(text.contains(hidden), "{text}");
            let trackers = report
                .rows
                .iter()
                .filter(|row| row.reason == Some(Reason::Tracker));
            assert_eq!(trackers.count(), 1);
        }
    }
    // If the sender enclosed the picture, it is displayed and not requested.
    let located = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=r\n\n{}--r\nContent-Type: image/gif\n\
         Content-Location: https://a.example/x.png\nContent-ID: <a@b>\n\nGIF89a\n--r--\n",
        part(hidden)
    );
    let (output, _) = once(&with(Trackers::Leave), located.as_bytes());
    assert_eq!(cids(&String::from_utf8(output).unwrap()), ["a@b"]);
}

/// If a document has no place for a new part, it does not refer to pictures that the run adds elsewhere. The next run
/// then gives the same result.
#[test]
fn a_document_in_a_related_without_an_end_is_left_as_a_whole() {
    let document = "Content-Type: text/html\n\n<img src='https://a.example/1.png'>";
    let unclosed = |around: &str, inside: &str| {
        format!(
            "From: a@b\nMIME-Version: 1.0\nContent-Type: multipart/{around}; boundary=x\n\n--x\n\
             Content-Type: multipart/{inside}; boundary=y\n\n--y\n{document}\n--x\n{document}\n--x--\n"
        )
    };
    for inside in ["related", "related; type=\"text/html\""] {
        for around in ["related", "mixed"] {
            let (output, report) =
                once(&with(Trackers::Leave), unclosed(around, inside).as_bytes());
            let text = String::from_utf8(output).unwrap();
            assert_eq!(
                text.matches("<img src='https://a.example/1.png'>").count(),
                1,
                "{text}"
            );
            assert_eq!(report.rows[0].reason, Some(Reason::IncompleteBody));
        }
    }
    // In a multipart of another kind, the document belongs to the outer multipart/related.
    let (output, _) = once(
        &with(Trackers::Leave),
        unclosed("related", "mixed").as_bytes(),
    );
    let text = String::from_utf8(output).unwrap();
    assert_eq!(
        (cids(&text).len(), text.matches("image/gif").count()),
        (2, 1),
        "{text}"
    );
}

#[test]
fn second_run_keeps_the_mark_and_removes_marks_of_another_form() {
    let reference = with_url("data:text/plain,hi", "Content-Type: text/plain\n");
    let left = with_url("https://a.example/gone", "Content-Type: text/plain\n");
    let both = [&reference[..], b"\n"].concat();
    let picture = html("<img src='https://a.example/x.png'><img src='https://a.example/gone'>");
    let tracker = html("<img src='https://a.example/x.png' width=1 height=1>");
    for (mail, mark) in [
        (&reference[..], "expanded=1 left=0 links=0"),
        (&left[..], "expanded=0 left=1 links=0"),
        (&both[..], "expanded=1 left=0 links=0"),
        (picture.as_bytes(), "expanded=1 left=1 links=0"),
        (tracker.as_bytes(), "expanded=0 left=1 links=0"),
    ] {
        for mail in [mail.to_vec(), crlf(mail)] {
            let expander = expander(&with(Trackers::Leave), Mark::Field);
            let run = |mail: &[u8]| {
                let expansion = expander.expand(mail, "test").unwrap();
                expansion.output().into_bytes().into_owned()
            };
            let output = run(&mail);
            let text = String::from_utf8(output.clone()).unwrap();
            assert_eq!(text.matches("X-Embody: ").count(), 1, "{text}");
            assert!(
                text.contains(&format!("X-Embody: {mark}")),
                "{mark}: {text}"
            );
            assert_bytes(&run(&output), &output, "the second run");
            // Marks of other programs are removed. A field in the form of embody's mark is kept, but only once.
            for more in [
                "x-embody: trust me\n",
                "X-EMBODY: expanded=9\n",
                "X-Embody:\n",
            ] {
                let forged = [more.as_bytes(), &output].concat();
                assert_bytes(&run(&forged), &output, more);
            }
            let place = text.find("X-Embody: ").unwrap();
            let field = text[place..].split_inclusive('\n').next().unwrap();
            let twice = [&output[..place], field.as_bytes(), &output[place..]].concat();
            assert_bytes(&run(&twice), &output, "two of them");
            // If this run changes the message, its own mark replaces the old one.
            let stale = [b"X-Embody: expanded=77 left=7 links=7\n".as_slice(), &mail].concat();
            let again = String::from_utf8(run(&stale)).unwrap();
            let is_changed = !mark.starts_with("expanded=0");
            assert_eq!(again.contains("expanded=77"), !is_changed, "{again}");
        }
    }
}

/// A mail for which version 0.1.1 needed two runs.
#[test]
fn mail_that_once_needed_two_runs_is_complete_after_one_run() {
    let mail = format!(
        "From: a@b\nContent-Location: https://a.example/d/\nContent-Type: multipart/related; boundary=\"x1\"\n\npre\n--x1\n\
         Content-Type: multipart/related; boundary=\"x2\"; type=\"text/html\"\n\n--x2\nContent-Type: multipart/mixed; boundary=\"x3\"\n\n\
         --x3\nContent-Type: text/html\n\n<p><img src=\"{0}\">\n--x3--\n\n--x2\nContent-Type: multipart/mixed; boundary=\"B4\"\n\n--B4\n\
         Content-Type: text/html\n\n<link rel=stylesheet href=\"s.css\"><img src=\"{0}\">\n\n--B4\nContent-Type: text/html\n\
         Content-Base: https://a.example/\n\n<link rel=stylesheet href=\"s.css\">\n\n--x2\nContent-Location: https://a.example/d/x.html\n\
         Content-Type: text/html\n\n<img src=\"https://a.example/2.png\"><img src=\"https://a.example/1.png\">\n--x1\n\
         Content-Type: text/html\n\n<img src=\"https://a.example/2.png\"><img src=\"https://a.example/1.png\">\n--x1 \n\
         Content-Type: message/rfc822\n\nFrom: q@r\nContent-Type: text/html\nContent-ID: <i1@x>\n\n<img src=\"{0}\">\n--x1--",
        data(&gif(9, 9, 8))
    );
    for trackers in [Trackers::Leave, Trackers::Blank, Trackers::Fetch] {
        once(&with(trackers), mail.as_bytes());
    }
}

/// Generates a picture or link that a document displays, in different forms.
fn shown() -> impl Strategy<Value = String> {
    let names: Vec<&str> = SERVED
        .iter()
        .map(|served| served.0)
        .chain(["gone"])
        .collect();
    let bases = vec![
        "https://a.example/",
        "//a.example/",
        "",
        "HTTPS://A.EXAMPLE:443/",
    ];
    let roles = vec![
        "<img src='{}'>",
        "<img src=\"{}\" width=1 height=1>",
        "<img src='{}' style='display:none'>",
        "<td background={}>",
        "<p style=\"background:url({})\">",
        "<style>b { background: url('{}') }</style>",
        "<img srcset='{} 1x, https://a.example/2.png 2x'>",
        "<img src='https://a.example/x.png' srcset='{} 2x'>",
        "<b style=\"background: image-set('{}' 1x, 'https://a.example/gone' 2x)\">",
        "<a href='{}'>link</a>",
        "<link rel=stylesheet href='{}'>",
        "<video poster={}>",
        "<svg><image href='{}'/></svg>",
        "<!--[if mso]><v:fill src='{}'><![endif]-->",
        "<img src='{}#part'>",
        "<object data='{}'>",
    ];
    let sheets = vec!["s.css", "t.css"];
    let url = (
        prop::sample::select(bases),
        prop_oneof![4 => prop::sample::select(names), 1 => prop::sample::select(sheets)],
    );
    let remote = url.prop_map(|(base, name)| format!("{base}{name}"));
    let local = (1..4_u8).prop_map(|number| data(&gif(9, 9, number)));
    let url = prop_oneof![5 => remote, 1 => local];
    (prop::sample::select(roles), url).prop_map(|(role, url)| role.replace("{}", &url))
}

/// Generates a document. Its last tag, comment or style sheet may be unclosed.
fn document() -> impl Strategy<Value = String> {
    let ends = vec![
        "",
        "",
        "",
        "<img src='https://a.example/x.png'",
        "<!-- <img src='x.png'>",
        "<style>b { color: red",
    ];
    let base = vec!["", "", "<base href='https://a.example/'>"];
    (
        prop::sample::select(base),
        prop::collection::vec(shown(), 0..6),
        prop::sample::select(ends),
    )
        .prop_map(|(base, shown, end)| format!("{base}{}{end}", shown.join("\n")))
}

/// Generates a mail of documents in multiparts, some of which have no end, and of parts with a Content-Location.
fn mail() -> impl Strategy<Value = String> {
    let fields = vec![
        "",
        "",
        "Content-Base: https://a.example/\n",
        "Content-Location: https://a.example/d/\n",
        "Content-Location: 1.png\n",
        "Content-MD5: x\n",
    ];
    let leaf = (prop::sample::select(fields.clone()), document())
        .prop_map(|(fields, document)| format!("{fields}Content-Type: text/html\n\n{document}\n"));
    let located = (0..SERVED.len(), any::<bool>()).prop_map(|(number, named)| {
        let id = if named { "Content-ID: <own@x>\n" } else { "" };
        format!(
            "Content-Type: image/gif\nContent-Location: https://a.example/{}\n{id}\nGIF89a\n",
            SERVED[number].0
        )
    });
    let leaf = prop_oneof![5 => leaf, 1 => located];
    let mark = std::cell::Cell::new(0_u32);
    let part = leaf.prop_recursive(3, 8, 3, move |inner| {
        mark.set(mark.get() + 1);
        let boundary = format!("b{}", mark.get());
        let kinds = vec!["related", "related", "alternative", "mixed"];
        let fields = fields.clone();
        let multipart = (
            prop::sample::select(kinds),
            prop::sample::select(fields),
            prop::collection::vec(inner.clone(), 1..4),
            prop::bool::weighted(0.8),
        )
            .prop_map(move |(kind, fields, parts, is_closed)| {
                let parts: String = parts
                    .iter()
                    .map(|part| format!("--{boundary}\n{part}"))
                    .collect();
                let close = if is_closed {
                    format!("--{boundary}--\n")
                } else {
                    String::new()
                };
                format!(
                    "{fields}Content-Type: multipart/{kind}; boundary={boundary}\n\n{parts}{close}"
                )
            });
        let message =
            inner.prop_map(|inner| format!("Content-Type: message/rfc822\n\nFrom: c@d\n{inner}"));
        prop_oneof![4 => multipart, 1 => message]
    });
    part.prop_map(|part| format!("From: a@b\nMIME-Version: 1.0\n{part}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn embedding_twice_is_embedding_once(
        mail in mail(),
        trackers in prop::sample::select(vec![Trackers::Leave, Trackers::Blank, Trackers::Fetch]),
        styles: bool,
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        let mut policy = with(trackers);
        policy.embed.styles = styles;
        let mut mail = mail.into_bytes();
        if let Some(at) = cut {
            mail.truncate(at.index(mail.len()));
        }
        once(&policy, &mail);
    }
}
