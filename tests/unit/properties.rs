//! Properties of every message, tested with random mail: valid and malformed multiparts, with references that work and
//! others that do not.

use std::sync::OnceLock;

use super::common::checks::scan::spans;
use super::common::mail::{crlf, expander};
use embody::fetch::NoFetch;
use embody::mime::{self, ScanLimits};
use embody::report::Outcome;
use embody::{Expander, Mark, Policy};
use proptest::prelude::*;

/// A node of a random message.
#[derive(Clone, Debug)]
enum Node {
    Text(String),
    External {
        parameters: String,
        outer: String,
        phantom: String,
    },
    Multipart {
        subtype: &'static str,
        boundary: String,
        parts: Vec<Node>,
        closed: bool,
    },
    Message(Box<Node>),
}

impl Node {
    fn write(&self, out: &mut String) {
        match self {
            Self::Text(text) => out.push_str(&format!("Content-Type: text/plain\n\n{text}")),
            Self::External {
                parameters,
                outer,
                phantom,
            } => out.push_str(&format!(
                "{outer}Content-Type: message/external-body; {parameters}\n\n{phantom}"
            )),
            Self::Message(inner) => {
                out.push_str("Content-Type: message/rfc822\n\nSubject: inner\nMIME-Version: 1.0\n");
                inner.write(out);
            }
            Self::Multipart {
                subtype,
                boundary,
                parts,
                closed,
            } => {
                out.push_str(&format!(
                    "Content-Type: multipart/{subtype}; boundary=\"{boundary}\"\n\n"
                ));
                for part in parts {
                    out.push_str(&format!("\n--{boundary}\n"));
                    part.write(out);
                }
                if *closed {
                    out.push_str(&format!("\n--{boundary}--\n"));
                }
            }
        }
    }
}

/// Returns a complete message inside a data: URL. The message itself contains a reference.
fn inside_url(url: &str, padding: usize) -> String {
    let inner = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=in\n\n--in\n\n{}\n--in\n\
         Content-ID: <in@x>\nContent-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\n\n--in--\n",
        "p".repeat(padding)
    );
    let escaped: String = inner
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
    format!("access-type=URL; URL=\"data:message/rfc822,{escaped}\"")
}

fn parameters() -> impl Strategy<Value = String> {
    let plain = prop_oneof![
        Just("data:,short"),
        Just("data:text/plain,two%0Alines%0A"),
        Just("data:text/plain;charset=utf-8,%C3%A4"),
        Just("data:image/png;base64,iVBO\n Rw0K"),
        Just("data:text/plain;base64,*"),
        Just("data:text/plain"),
        Just("cid:a@x"),
        Just("cid:b@x"),
        Just("cid:in@x"),
        Just("http://example.org/"),
        Just("data:text/plain,--b%0A--c--%0A"),
        Just("data:text/plain,a%0D%0Ab%0D%0Ac%0D%0Ad"),
        Just("<URL:data:text/html,%3Cp%3E>"),
    ];
    prop_oneof![
        6 => plain.prop_map(|url| format!("access-type=URL; URL=\"{url}\"")),
        2 => (1usize..400).prop_map(|length| {
            format!("access-type=URL; URL=\"data:application/x,{}\"", "x".repeat(length))
        }),
        1 => Just("access-type=content-id".to_owned()),
        1 => Just("access-type=mail-server; server=a".to_owned()),
        1 => Just("access-type=URL".to_owned()),
        1 => Just("access-type=URL; URL*1=plain; URL*0=\"data:text/\"; URL*2=\",x\"".to_owned()),
        1 => (0usize..300).prop_map(|padding| inside_url("data:,deep", padding)),
        1 => (0usize..300).prop_map(|padding| inside_url(&format!("cid:{}", "a@x"), padding)),
        1 => (0usize..300).prop_map(|padding| inside_url(&format!("data:application/x,{}", "y".repeat(padding)), 3)),
    ]
}

fn external() -> impl Strategy<Value = Node> {
    let outer = prop_oneof![
        4 => Just(""),
        1 => Just("Content-ID: <a@x>\n"),
        1 => Just("Content-ID: <b@x>\n"),
        1 => Just("Content-Transfer-Encoding: 7bit\n"),
        1 => Just("Content-Transfer-Encoding: base64\n"),
    ];
    let phantom = prop_oneof![
        3 => Just(""),
        3 => Just("Content-Type: text/plain\n"),
        1 => Just("Content-Type: image/png\n"),
        1 => Just("Content-Type: application/octet-stream\n"),
        1 => Just("Content-Type: text/plain\nContent-ID: <a@x>\n\nphantom body"),
        1 => Just("\n"),
        1 => Just("Content-Description: folded\n  twice\nContent-Transfer-Encoding: base64\n"),
        1 => Just("Content-MD5: AAAAAAAAAAAAAAAAAAAAAA==\n"),
        1 => Just("not a field"),
    ];
    (parameters(), outer, phantom).prop_map(|(parameters, outer, phantom)| Node::External {
        parameters,
        outer: outer.to_owned(),
        phantom: phantom.to_owned(),
    })
}

fn node() -> impl Strategy<Value = Node> {
    let text = prop_oneof![
        Just(String::new()),
        Just("hello\n".to_owned()),
        Just("--bx\n --b\n--b x\n".to_owned()),
        Just("Content-Type: message/external-body\n\n".to_owned()),
        (0usize..500).prop_map(|length| "t".repeat(length)),
    ]
    .prop_map(Node::Text);
    let leaf = prop_oneof![2 => text, 5 => external()];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let subtype = prop_oneof![
            5 => Just("mixed"),
            3 => Just("alternative"),
            1 => Just("digest"),
            1 => Just("signed"),
            1 => Just("report"),
        ];
        let boundary = prop_oneof![Just("b"), Just("c"), Just("bb"), Just("in"), Just("b c")];
        prop_oneof![
            4 => (subtype, boundary, prop::collection::vec(inner.clone(), 0..5), prop::bool::weighted(0.9))
                .prop_map(|(subtype, boundary, parts, closed)| Node::Multipart {
                    subtype,
                    boundary: boundary.to_owned(),
                    parts,
                    closed,
                }),
            1 => inner.prop_map(|inner| Node::Message(Box::new(inner))),
        ]
    })
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    (node(), prop::bool::weighted(0.1), 0usize..4).prop_map(|(node, cut, front)| {
        let mut text = [
            "",
            "MIME-Version: 1.0\n",
            "From a@x Sat Jan  1 00:00:00 2000\nA: b\n",
            "X-Embody: old\n",
        ][front]
            .to_owned();
        node.write(&mut text);
        if cut {
            text.truncate(text.len() / 4 * 3);
        }
        text.into_bytes()
    })
}

/// Generates policies with tight limits and unusual options. The promises must be true with each of them.
fn policy() -> impl Strategy<Value = Policy> {
    let growth = prop_oneof![3 => Just(50u64 << 20), 1 => 0u64..30, 2 => 30u64..700];
    let body = prop_oneof![3 => Just(25u64 << 20), 1 => 0u64..400];
    let depth = prop_oneof![3 => Just(64usize), 1 => 0usize..4];
    let parts = prop_oneof![3 => Just(10_000usize), 1 => 1usize..8];
    let header = prop_oneof![3 => Just(64usize << 20), 1 => 20usize..600];
    let mismatch = any::<bool>();
    (growth, body, depth, parts, header, mismatch).prop_map(
        |(growth, body, depth, parts, header, mismatch)| {
            let mut policy = Policy::default();
            policy.limits.growth = growth;
            policy.limits.body = body;
            policy.limits.depth = depth;
            policy.limits.parts = parts;
            policy.limits.header = header;
            if mismatch {
                policy.accept_mismatch = true;
            }
            policy
        },
    )
}

fn expand(policy: &Policy, mark: Mark, message: &[u8]) -> (Vec<u8>, embody::Report) {
    let builder = Expander::builder(policy.clone()).mark(mark);
    let expander = builder.build().unwrap();
    let expansion = expander.expand(message, "test").unwrap();
    (
        expansion.output().into_bytes().into_owned(),
        expansion.report,
    )
}

/// Returns whether a limit stopped the run. A later run may then continue.
fn reached_a_bound(report: &embody::Report) -> bool {
    let mut reasons = report.rows.iter().filter_map(|row| row.reason);
    reasons.any(embody::report::Reason::is_bound)
}

/// Returns a small number of cases, because debug builds are slow. `PROPTEST_CASES` sets a larger number.
fn config() -> ProptestConfig {
    static CASES: OnceLock<u32> = OnceLock::new();
    let cases = *CASES.get_or_init(|| {
        std::env::var("PROPTEST_CASES")
            .ok()
            .and_then(|cases| cases.parse().ok())
            .unwrap_or(400)
    });
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn second_run_changes_nothing_unless_the_first_reached_a_limit(message in message(), policy in policy(), marked in any::<bool>()) {
        let mark = if marked { Mark::Field } else { Mark::Off };
        let (once, first) = expand(&policy, mark, &message);
        let (twice, second) = expand(&policy, mark, &once);
        prop_assert!(
            once == twice || reached_a_bound(&first),
            "policy {:?}\n--- in\n{}\n--- once\n{}\n--- twice\n{}\n{:?}\n{:?}",
            policy.limits,
            String::from_utf8_lossy(&message),
            String::from_utf8_lossy(&once),
            String::from_utf8_lossy(&twice),
            first,
            second,
        );
    }

    #[test]
    fn what_is_left_is_as_it_came(message in message(), policy in policy()) {
        let (output, report) = expand(&policy, Mark::Off, &message);
        for row in &report.rows {
            prop_assert_eq!(row.outcome == Outcome::Left, row.reason.is_some() && row.outcome != Outcome::Rewritten, "{:?}", row);
        }
        if report.expanded() == 0 {
            prop_assert_eq!(&output, &message);
        } else {
            prop_assert_ne!(&output, &message);
        }
    }

    #[test]
    fn growth_stays_below_its_limit(message in message(), policy in policy()) {
        let (output, _) = expand(&policy, Mark::Off, &message);
        let gained = output.len().saturating_sub(message.len()) as u64;
        prop_assert!(gained <= policy.limits.growth, "gained {} of {}", gained, policy.limits.growth);
    }

    #[test]
    fn crlf_version_of_a_message_gives_the_crlf_version_of_the_result(message in message()) {
        // Without any line ending, it is unknown which kind the message uses.
        prop_assume!(message.contains(&b'\n'));
        let (output, report) = expand(&Policy::default(), Mark::Off, &message);
        let (twin, twin_report) = expand(&Policy::default(), Mark::Off, &crlf(&message));
        let outcomes = |report: &embody::Report| -> Vec<_> {
            report.rows.iter().map(|row| (row.part.clone(), row.outcome, row.reason)).collect()
        };
        prop_assert_eq!(outcomes(&report), outcomes(&twin_report));
        prop_assert_eq!(
            String::from_utf8_lossy(&twin).into_owned(),
            String::from_utf8_lossy(&crlf(&output)).into_owned()
        );
    }

    #[test]
    fn message_is_unchanged_if_inspect_predicts_no_change(message in message(), policy in policy()) {
        let expander = expander(policy.clone(), NoFetch);
        let forecast = expander.forecast(&message, "test");
        let (output, _) = expand(&policy, Mark::Off, &message);
        if forecast.rows.iter().all(|row| row.outcome == Outcome::Left) {
            prop_assert_eq!(output, message);
        }
    }

    #[test]
    fn spans_tile_the_message_before_and_after(message in message()) {
        let (output, _) = expand(&Policy::default(), Mark::Off, &message);
        for bytes in [message, output] {
            let tree = mime::scan(&bytes, &ScanLimits::default());
            let mut at = 0;
            for tile in spans(&tree) {
                prop_assert_eq!(tile.start, at);
                at = tile.end;
            }
            prop_assert_eq!(at, bytes.len());
        }
    }

    #[test]
    fn random_bytes_are_returned_unchanged(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let (output, _) = expand(&Policy::default(), Mark::Field, &bytes);
        prop_assert_eq!(output, bytes);
    }

    #[test]
    fn second_run_over_random_mail_words_changes_nothing(words in prop::collection::vec(prop::sample::select(vec![
        "Content-Type: ", "message/external-body", ";", " access-type=URL", " URL=", "\"", "data:,x", "\n", "\r\n", "\n\n",
        "--b", "--", "multipart/mixed; boundary=b\n\n", "Content-ID: <a@x>\n", "cid:a@x", " ", "\t", "(", ")", "*0=", "*1*=''", "%", "\0", "\u{e4}",
        "text/html\n\n<a href=x>", "Content-Transfer-Encoding: base64\n",
    ]), 0..60)) {
        let message = words.concat().into_bytes();
        let (once, _) = expand(&Policy::default(), Mark::Off, &message);
        let (twice, _) = expand(&Policy::default(), Mark::Off, &once);
        prop_assert_eq!(once, twice);
    }
}

fn mail_of(parameters: &[String]) -> Vec<u8> {
    let mut mail = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n".to_owned();
    for parameters in parameters {
        mail.push_str(&format!(
            "--b\nContent-Type: message/external-body; {parameters}\n\n\n"
        ));
    }
    mail.push_str("--b--\n");
    mail.into_bytes()
}

/// Limits apply in the order of the document, also inside retrieved content. Repeated runs of the program finish the
/// work.
#[test]
fn growth_is_granted_in_the_order_of_the_document() {
    let copied = "Content-ID: <big@x>\n\n".to_owned() + &"x".repeat(500);
    let plain = "access-type=URL; URL=\"cid:big@x\"".to_owned();
    let inner = inside_url(
        "data:,yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
        0,
    );
    let mut mail = mail_of(&[inner, plain]);
    let end = mail.len() - 6;
    mail.splice(end..end, format!("--b\n{copied}\n").into_bytes());
    let mut counts = Vec::new();
    for limit in (0..1_600).step_by(50) {
        let mut policy = Policy::default();
        policy.limits.growth = limit;
        let (mut output, report) = expand(&policy, Mark::Off, &mail);
        let gained = output.len().saturating_sub(mail.len()) as u64;
        assert!(gained <= limit, "limit {limit}: {gained}");
        counts.push(report.expanded());
        let mut last = report;
        for _ in 0..4 {
            let (next, report) = expand(&policy, Mark::Off, &output);
            assert!(
                next == output || reached_a_bound(&last),
                "limit {limit}: {last:?}"
            );
            (output, last) = (next, report);
        }
    }
    assert!(counts.is_sorted(), "{counts:?}");
    assert!(counts[0] < 3 && counts.last() == Some(&3), "{counts:?}");
}

/// The total length of URLs that a long base makes absolute is limited. References above the limit are left, each with
/// a row. A later reference that is short again is filled in.
#[test]
fn absolute_urls_much_longer_than_the_mail_are_left_in_the_order_of_the_document() {
    let mut parameters = vec!["access-type=URL; URL=x".to_owned(); 2_000];
    parameters.push("access-type=URL; URL=\"data:,y\"".to_owned());
    let base = format!("Content-Base: http://h.example/{}/\n", "p".repeat(8_000));
    let mail = [base.into_bytes(), mail_of(&parameters)].concat();
    let policy = Policy::default().with_fetch([embody::policy::Scheme::Http]);
    let expander = Expander::builder(policy).fetch(NoFetch).build().unwrap();
    let report = expander.expand(&mail, "test").unwrap().report;
    assert_eq!((report.rows.len(), report.expanded()), (2_001, 1));
    let reasons: Vec<&str> = report
        .rows
        .iter()
        .filter_map(|row| Some(row.reason?.as_str()))
        .collect();
    let too_much = reasons.iter().position(|reason| *reason == "too-much-work");
    let first = too_much.expect("16 MB of URLs are too much for 150 kB of mail");
    assert!((50..500).contains(&first), "{first}");
    assert!(
        reasons[first..]
            .iter()
            .all(|reason| *reason == "too-much-work")
    );
}

/// A source with content for every URL, some of which contains further references.
struct Library;

impl embody::fetch::Fetch for Library {
    fn fetch(
        &self,
        request: &embody::fetch::Request,
    ) -> Result<embody::engine::Content, embody::report::Refusal> {
        let name = request.url().rsplit('/').next().unwrap_or_default();
        let (media_type, body) = match name.strip_prefix("letter-") {
            Some(next) => (
                "message/rfc822",
                format!(
                    "Content-Type: message/external-body; access-type=URL; URL=\"https://example.org/{next}\"\n\n\n"
                ),
            ),
            None => ("text/plain", name.to_owned()),
        };
        Ok(embody::engine::Content::new(
            request.url(),
            Some(media_type.to_owned()),
            body,
        ))
    }
}

#[test]
fn retrievals_are_granted_level_by_level_and_a_later_run_goes_on() {
    let parameters: Vec<String> = ["a", "letter-b", "letter-letter-c", "a"]
        .iter()
        .map(|name| format!("access-type=URL; URL=\"https://example.org/{name}\""))
        .collect();
    let mail = mail_of(&parameters);
    let outcome = |limit, mail: &[u8]| {
        let mut policy = Policy::default();
        policy.fetch.insert(embody::policy::Scheme::Https);
        policy.limits.fetches = limit;
        let expander = expander(policy, Library);
        let expansion = expander.expand(mail, "test").unwrap();
        let expanded = expansion.report.expanded();
        (expansion.output().into_bytes().into_owned(), expanded)
    };
    let (whole, _) = outcome(6, &mail);
    for (limit, expected) in [0, 2, 3, 4, 5, 6, 7].into_iter().enumerate() {
        let limit = u32::try_from(limit).unwrap();
        let (mut output, expanded) = outcome(limit, &mail);
        assert_eq!(expanded, expected, "limit {limit}");
        if limit > 0 {
            for _ in 0..7 {
                output = outcome(limit, &output).0;
            }
            assert!(output == whole, "limit {limit}");
        }
    }
}
