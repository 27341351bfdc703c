//! Checks the filter with any bytes: it always ends with a result, a second run changes nothing, growth is limited, and
//! every byte of the parts that were left unchanged is in its place. The check uses the spans of the input, and not the
//! edits of the filter.

use embody::engine::Content;
use embody::fetch::{Fetch, Request};
use embody::internals::mime::{self, ScanLimits};
use embody::policy::{Embed, Followed, Links, Policy, Protected, Scheme};
use embody::report::{Kind, Outcome, Reason, Refusal, Report};
use embody::{Expander, Mark, Span};
use memchr::memmem;

use super::scan::{spans, tiles};

/// Checks a message. The first byte chooses the policy, and the rest is the message.
pub fn check(data: &[u8]) {
    let Some((&choice, message)) = data.split_first() else {
        return;
    };
    let policy = policy(choice);
    let mark = if choice & 1 == 0 {
        Mark::Off
    } else {
        Mark::Field
    };
    let expander = expander_of(&policy, mark);
    let (output, report) = expanded(&expander, message);
    let (again, second) = expanded(&expander, &output);
    let mut reasons = report.rows.iter().filter_map(|row| row.reason);
    let reached_a_bound = reasons.any(Reason::is_bound);
    assert!(
        again == output || reached_a_bound,
        "twice is not once\n{report:?}\n{second:?}\n{}\n{}",
        output.escape_ascii(),
        again.escape_ascii()
    );
    for row in &report.rows {
        assert!(
            row.outcome != Outcome::Left || row.reason.is_some(),
            "{row:?}"
        );
    }
    let gained = output.len().saturating_sub(message.len()) as u64;
    if mark == Mark::Off {
        assert!(gained <= policy.limits().growth, "gained {gained}");
        let done = |outcome| report.rows.iter().any(|row| row.outcome == outcome);
        if !done(Outcome::Expanded) && !done(Outcome::Rewritten) {
            assert!(output == message, "changed without a row: {report:?}");
        }
    }
    tiles(&mime::scan(&output, &ScanLimits::default()), &output);
    let limits = policy.limits();
    let scan_limits = ScanLimits {
        depth: limits.depth,
        parts: limits.parts,
        header: limits.header,
    };
    kept(message, &output, &report, &scan_limits);
    let _ = expander.forecast(message, "fuzz");
}

fn expander_of(policy: &Policy, mark: Mark) -> Expander {
    let builder = Expander::builder(policy.clone()).fetch(Echo).mark(mark);
    builder.build().expect("nothing of the system is used")
}

fn expanded(expander: &Expander, message: &[u8]) -> (Vec<u8>, Report) {
    let expansion = expander
        .expand(message, "fuzz")
        .expect("the policy defers nothing");
    (
        expansion.output().into_bytes().into_owned(),
        expansion.report,
    )
}

fn policy(choice: u8) -> Policy {
    let mut policy = Policy::default();
    policy = policy.map_limits(|limits| limits.with_growth(1 << 20));
    if choice & 2 != 0 {
        policy = policy.with_accept_mismatch(true);
        policy = policy.with_follow(Followed::all());
    }
    if choice & 4 != 0 {
        policy = policy.map_limits(|limits| limits.with_growth(200));
        policy = policy.map_limits(|limits| limits.with_body(150));
    }
    if choice & 8 != 0 {
        policy = policy.map_limits(|limits| limits.with_depth(2));
        policy = policy.map_limits(|limits| limits.with_parts(5));
        policy = policy.map_limits(|limits| limits.with_header(200));
    }
    if choice & 16 != 0 {
        policy = policy.with_protected(Protected::Rewrite);
    }
    if choice & 32 != 0 {
        policy = policy.with_links(Links::Keep);
    }
    if choice & 64 != 0 {
        policy = policy.with_fetch([Scheme::Https, Scheme::Ftp]);
        policy = policy.with_embed(Embed {
            data: true,
            remote: true,
            pictures: true,
            styles: true,
            ..Embed::default()
        });
    }
    if choice & 128 != 0 {
        policy = policy.map_limits(|limits| limits.with_fetches(2));
    }
    policy
}

/// A fetcher whose content is in the URL: `https://host/TYPE/SUBTYPE/escaped-content`.
pub(super) struct Echo;

impl Fetch for Echo {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        let path = request.url().splitn(4, '/').nth(3).unwrap_or_default();
        let mut steps = path.splitn(3, '/');
        let (Some(main), Some(sub), Some(content)) = (steps.next(), steps.next(), steps.next())
        else {
            return Err(Refusal::temporary(Reason::HttpStatus, "503"));
        };
        let named = !main.is_empty() && request.url().starts_with("https:");
        Ok(Content::new(
            request.url(),
            named.then(|| format!("{main}/{sub}")),
            percent_encoding::percent_decode_str(content).collect::<Vec<u8>>(),
        ))
    }
}

/// Checks that everything outside the parts in the report is in the output, in order. The bytes between two such parts
/// must be in one piece, and the first and last bytes must be at the ends.
fn kept(message: &[u8], output: &[u8], report: &Report, limits: &ScanLimits) {
    let changed = |row: &&embody::report::Row| row.outcome != Outcome::Left;
    let numbers: Vec<&str> = report
        .rows
        .iter()
        .filter(changed)
        .map(|row| row.part.as_str())
        .collect();
    // If a rival was removed, the parts after it have other numbers.
    let renumbered = report
        .rows
        .iter()
        .any(|row| row.reason == Some(Reason::RivalExpanded));
    if renumbered {
        return;
    }
    let tree = mime::scan(message, limits);
    let within = |number: &str, above: &str| {
        number
            .strip_prefix(above)
            .is_some_and(|rest| above.is_empty() || rest.is_empty() || rest.starts_with('.'))
    };
    let touched: Vec<Span> = tree
        .ids()
        .filter(|&id| {
            let number = tree.number(id);
            numbers.iter().any(|above| within(&number, above))
        })
        .map(|id| tree.part(id).span)
        .collect();
    // The following changes are outside of these parts: a Content-ID for the target of a `cid:` link, the field of the
    // mark, and the parts of pictures.
    let is_embedded =
        |row: &embody::report::Row| row.kind == Kind::Embed && row.outcome != Outcome::Left;
    let is_divided =
        report.links() > 0 || output_is_marked(output) || report.rows.iter().any(is_embedded);
    let mut runs: Vec<Span> = Vec::new();
    let mut next_touched = touched.iter().peekable();
    for tile in spans(&tree) {
        while next_touched
            .next_if(|span| span.end <= tile.start)
            .is_some()
        {}
        let inside = |span: &&Span| span.contains(tile);
        let field = tile.of(message);
        if touched.iter().any(|span| inside(&span)) || is_mark(field) || is_digest(field) {
            continue;
        }
        match runs.last_mut() {
            Some(run) if run.end == tile.start && !is_divided => run.end = tile.end,
            _ => runs.push(tile),
        }
    }
    let mut at = 0;
    for run in &runs {
        let bytes = run.of(message);
        let rest = &output[at..];
        let found = memmem::find(rest, bytes).unwrap_or_else(|| {
            panic!(
                "lost: \"{}\"\n{report:?}\nin  \"{}\"\nout \"{}\"",
                bytes.escape_ascii(),
                message.escape_ascii(),
                output.escape_ascii()
            )
        });
        if run.start == 0 {
            assert_eq!(found, 0, "the start moved: \"{}\"", output.escape_ascii());
        }
        at += found + bytes.len();
    }
    let last = runs.last().filter(|run| run.end == message.len());
    if let Some(last) = last.filter(|_| !output_is_marked(output)) {
        assert!(
            output.ends_with(last.of(message)),
            "the end changed: \"{}\"",
            output.escape_ascii()
        );
    }
}

fn is_mark(tile: &[u8]) -> bool {
    tile.get(..9)
        .is_some_and(|name| name.eq_ignore_ascii_case(b"x-embody:"))
}

/// Returns whether this is a Content-MD5 field. Such a field around a change is removed.
fn is_digest(tile: &[u8]) -> bool {
    tile.get(..12)
        .is_some_and(|name| name.eq_ignore_ascii_case(b"content-md5:"))
}

fn output_is_marked(output: &[u8]) -> bool {
    memmem::find(output, b"X-Embody: expanded=").is_some()
}
