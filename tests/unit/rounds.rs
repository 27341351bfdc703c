//! The result for a message does not depend on how its content arrives: in which order, in how many rounds, or in the first
//! round already. The driver of this crate and a program that calls the engine are compared with random mail.

use std::collections::BTreeSet;

use embody::engine::{Answers, Context, Engine, EngineOutcome, Need};
use embody::fetch::{Canned, Fetch, Request};
use embody::policy::{Embed, Scheme};
use embody::{Expander, Policy, Report};
use proptest::prelude::*;
use std::time::{Duration, SystemTime};

const CONTENTS: usize = 8;

fn url(number: usize) -> String {
    format!("http://host{number}.example.org/file")
}

/// A part of a message.
#[derive(Clone, Debug)]
enum Part {
    Text,
    /// A reference to the content with this number.
    Reference(usize),
    /// A reference with its content.
    Data(usize),
    /// A reference to another part of the message, which has the Content-ID of this number.
    ContentId(usize),
    /// References that offer the same attachment.
    Rivals(Vec<usize>),
    /// A document that displays the pictures with these numbers.
    Document(Vec<usize>),
}

/// The response of a server to a request for a URL.
#[derive(Clone, Debug)]
enum Body {
    Absent,
    Text(usize),
    Message(Vec<Part>),
    Multipart(Vec<Part>),
}

impl Part {
    fn written(&self) -> String {
        let reference = |url: &str, phantom: &str| {
            format!(
                "Content-Type: message/external-body; access-type=URL;\n URL=\"{url}\"\n\n{phantom}\n"
            )
        };
        match self {
            Self::Text => "\nA line of text.\n".to_owned(),
            Self::Reference(number) => reference(
                &url(*number),
                &format!("Content-ID: <{number}@example.org>\n"),
            ),
            Self::Data(length) => reference(
                &format!("data:,{}", "x".repeat(*length)),
                "Content-Type: text/plain\n",
            ),
            Self::ContentId(number) => reference(&format!("cid:{number}@example.org"), ""),
            Self::Rivals(numbers) => {
                let phantom = "Content-ID: <rival@example.org>\n";
                let parts: String = numbers
                    .iter()
                    .map(|number| format!("--r\n{}", reference(&url(*number), phantom)))
                    .collect();
                format!("Content-Type: multipart/alternative; boundary=r\n\n{parts}--r--\n")
            }
            Self::Document(numbers) => {
                let pictures: String = numbers
                    .iter()
                    .map(|number| format!("<img src=\"{}\">\n", url(*number)))
                    .collect();
                format!("Content-Type: text/html\n\n{pictures}")
            }
        }
    }
}

fn multipart(boundary: &str, parts: &[Part]) -> String {
    let written: String = parts
        .iter()
        .map(|part| format!("--{boundary}\n{}", part.written()))
        .collect();
    format!("Content-Type: multipart/mixed; boundary={boundary}\n\n{written}--{boundary}--\n")
}

fn part() -> impl Strategy<Value = Part> {
    let number = || 0..CONTENTS;
    prop_oneof![
        1 => Just(Part::Text),
        4 => number().prop_map(Part::Reference),
        3 => (0usize..300).prop_map(Part::Data),
        1 => number().prop_map(Part::ContentId),
        2 => prop::collection::vec(number(), 2..4).prop_map(Part::Rivals),
        1 => prop::collection::vec(number(), 1..3).prop_map(Part::Document),
    ]
}

fn body() -> impl Strategy<Value = Body> {
    let parts = || prop::collection::vec(part(), 1..4);
    prop_oneof![
        2 => Just(Body::Absent),
        3 => (0usize..400).prop_map(Body::Text),
        3 => parts().prop_map(Body::Message),
        2 => parts().prop_map(Body::Multipart),
    ]
}

fn source(bodies: &[Body]) -> Canned {
    let bodies = bodies.iter().enumerate();
    bodies.fold(Canned::new(), |source, (number, body)| {
        let boundary = format!("inside{number}");
        let (media_type, body) = match body {
            Body::Absent => return source,
            Body::Text(length) => ("text/plain".to_owned(), "y".repeat(*length)),
            Body::Message(parts) => (
                "message/rfc822".to_owned(),
                format!("MIME-Version: 1.0\n{}", multipart(&boundary, parts)),
            ),
            Body::Multipart(parts) => {
                let whole = multipart(&boundary, parts);
                let body = whole.split_once("\n\n").unwrap().1.to_owned();
                (format!("multipart/mixed; boundary={boundary}"), body)
            }
        };
        source.with(&url(number), Some(&media_type), body)
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    let growth = prop_oneof![2 => Just(50u64 << 20), 1 => 100u64..3_000];
    let fetches = prop_oneof![2 => Just(32u32), 1 => 0u32..6];
    let depth = prop_oneof![2 => Just(64usize), 1 => 1usize..5];
    let work = 1u64..6;
    (growth, fetches, depth, work, any::<bool>()).prop_map(
        |(growth, fetches, depth, work, embeds)| {
            let embed = Embed {
                remote: embeds,
                pictures: true,
                ..Embed::default()
            };
            Policy::default()
                .with_fetch([Scheme::Http])
                .with_embed(embed)
                .map_limits(|limits| {
                    limits
                        .with_growth(growth)
                        .with_fetches(fetches)
                        .with_depth(depth)
                        .with_work(work)
                })
        },
    )
}

/// The output, and the rows without their sentences: a sentence can contain numbers that depend on the order of answers.
type Result = (String, Vec<String>);

fn result(output: Vec<u8>, report: &Report) -> Result {
    let rows = report.rows.iter().map(|row| {
        format!(
            "{} {:?} {:?} {:?} {:?} {:?}",
            row.part, row.kind, row.outcome, row.reason, row.url, row.bytes
        )
    });
    (
        String::from_utf8_lossy(&output).into_owned(),
        rows.collect(),
    )
}

/// Calls the engine until nothing is needed. `choose` returns the needs of a batch that are answered before the next call.
fn rounds(
    engine: &Engine,
    message: &[u8],
    source: &Canned,
    mut answers: Answers,
    mut choose: impl FnMut(Vec<Need>) -> Vec<Need>,
) -> Result {
    let context = Context::new("test", SystemTime::UNIX_EPOCH);
    for _ in 0..1_000 {
        let mut outcome: EngineOutcome<'_> = engine.run(message, &context, answers);
        let Some(needs) = outcome.needs.take() else {
            return result(outcome.output().into_bytes().into_owned(), &outcome.report);
        };
        answers = outcome.answers;
        for need in choose(needs.batch) {
            answer(&mut answers, source, need);
        }
    }
    panic!("the engine still needs content after 1,000 rounds");
}

fn answer(answers: &mut Answers, source: &Canned, need: Need) {
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let request = Request {
        need: need.clone(),
        deadline,
        date: None,
    };
    let found = source.fetch(&request);
    answers.insert(need, found.map(Into::into));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("PROPTEST_CASES").map_or(300, |cases| cases.parse().unwrap()), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn result_does_not_depend_on_how_content_arrives(
        parts in prop::collection::vec(part(), 1..6),
        bodies in prop::collection::vec(body(), CONTENTS),
        policy in policy(),
        seed in any::<usize>(),
    ) {
        let text = format!("MIME-Version: 1.0\n{}", multipart("outer", &parts));
        let message = text.as_bytes();
        let source = source(&bodies);
        let expander = Expander::builder(policy.clone()).fetch(source.clone()).build().unwrap();
        let expansion = expander.expand(message, "test").unwrap();
        let expected = result(expansion.output().into_bytes().into_owned(), &expansion.report);

        let engine = Engine::new(policy);
        let batches = rounds(&engine, message, &source, Answers::new(), |batch| batch);
        prop_assert_eq!(&batches, &expected, "in batches, each round from the start");

        let mut state = seed;
        let one = |mut batch: Vec<Need>| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let chosen = (state >> 33) % batch.len();
            vec![batch.swap_remove(chosen)]
        };
        let single = rounds(&engine, message, &source, Answers::new(), one);
        prop_assert_eq!(&single, &expected, "one need at a time");

        // All content that was needed is known from the start, as with a cache.
        let mut answers = Answers::new();
        let mut names = BTreeSet::new();
        for request in source.asked() {
            if names.insert(request.url().to_owned()) {
                answer(&mut answers, &source, request.need.clone());
            }
        }
        let warm = rounds(&engine, message, &source, answers, |batch| batch);
        prop_assert_eq!(&warm, &expected, "all content from the start");
    }
}
