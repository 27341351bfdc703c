//! Resolves references with the rules of browsers, and compares the results with the crate `url`: for http, https, ftp
//! and file bases, parsing the result gives the same URL as `Url::join`. One run tests 100,000 cases.

use super::common::checks::resolve::{Agreement, agrees, is_drive_only, is_file};
use embody::link::url::{
    Relation, absolute_as_browser, relation, resolve_as_browser, with_blanks_escaped,
};
use embody::policy::{Policy, Scheme};
use embody::report::Reason;
use url::Url;

const CASES: usize = 100_000;

/// Pieces with a meaning for a URL parser, and a few without.
const PIECES: &[&str] = &[
    "a",
    "b.html",
    "img",
    "x;p=1",
    "é",
    "日本",
    "%41",
    "%",
    "%2",
    "%zz",
    "%2e",
    "%2E",
    ".%2e",
    "%2e%2E",
    ".",
    "..",
    "...",
    "/",
    "/",
    "/",
    "//",
    "///",
    "./",
    "../",
    "../../",
    "/..",
    "/.",
    "\\",
    "\\\\",
    "\\..\\",
    "/\\",
    "?",
    "#",
    "?q",
    "#f",
    "?a=b/../c",
    "?\\",
    "#\\",
    ":",
    ":80",
    ":443",
    ":x",
    "@",
    "u@",
    "u:p@",
    ";",
    "&",
    "=",
    "+",
    "~",
    "|",
    "C:",
    "C|",
    "c:/",
    "/C:",
    "/C|/",
    "D|",
    "h",
    "h.example",
    "H",
    "1.2.3.4",
    "[::1]",
    "localhost",
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\u{0}",
    "\u{1}",
    "\u{1f}",
    "\u{7f}",
    "\u{a0}",
    "\"",
    "<",
    ">",
    "`",
    "{",
    "^",
    "[",
    "]",
    "'",
    "http:",
    "https:",
    "ftp:",
    "file:",
    "HTTP:",
    "http://",
    "https://h",
    "file://",
    "file:///",
    "mailto:",
    "x:",
    "cid:a@b",
    "javascript:",
    "data:,",
    "1:",
    "ht\ttp:",
];

const BASE_STARTS: &[&str] = &[
    "http://h",
    "https://h.example",
    "ftp://h",
    "file://",
    "file:///",
    "http://h/a/b/c",
    "http://u:p@h:8080/a/b?q#f",
    "https://h/a/b/",
    "ftp://u@h/a/b;type=a",
    "file:///a/b/c.html",
    "file://host/share/x",
    "file:///C:/a/b",
    "file:/a/b",
    "file:a",
    "http:h/a",
    "HTTP:\\\\H\\a\\b",
    "http:////h//a",
    " \thttp://h/a\n/b ",
    "http://é.example/ü/",
    "http://h/a/..",
    "http://h/a/%2e",
    "http://h?q",
    "http://h#f",
    "http://h/ #f",
    "http://h//",
    "file:///a//b/..",
    "https://h:443/a/b/c/d;p?q",
    "file://localhost/a/b",
    "file:////a/b",
    "http://h/C:/x/y",
    "ftp://[::1]:21/",
    "https://1.2.3.4/x",
];

/// A small random generator (xorshift64*) with a fixed seed, so that every run is the same.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let mixed = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(mixed).unwrap_or_default() % bound
    }

    fn text(&mut self, most: usize) -> String {
        (0..self.below(most + 1))
            .map(|_| PIECES[self.below(PIECES.len())])
            .collect()
    }
}

#[test]
fn resolved_url_equals_the_join_of_the_url_crate() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut cases, mut joined, mut refused, mut uncertain, mut file) = (0, 0, 0, 0, 0);
    let mut panicked = 0;
    let mut wrong = Vec::new();
    while cases < CASES {
        let start = BASE_STARTS[random.below(BASE_STARTS.len())];
        let base_text = format!("{start}{}", random.text(3));
        let Ok(base) = Url::parse(&base_text) else {
            continue;
        };
        if !["http", "https", "ftp", "file"].contains(&base.scheme()) {
            continue;
        }
        let reference = random.text(7);
        cases += 1;
        file += usize::from(base.scheme() == "file");
        // The crate (2.5.8) fails its own debug assertion for a file base that ends with a drive letter, such as
        // `file:///C:`, and a reference that begins with dots.
        let Ok(agreement) = std::panic::catch_unwind(|| agrees(&base_text, &base, &reference))
        else {
            assert!(is_drive_only(&base), "{base} {reference:?}");
            panicked += 1;
            continue;
        };
        match agreement {
            Ok(Agreement::Joined) => joined += 1,
            Ok(Agreement::Refused) => refused += 1,
            Ok(Agreement::Uncertain) => uncertain += 1,
            Err(difference) => wrong.push(format!(
                "base {base_text:?} reference {reference:?}: {difference}"
            )),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(25)].join("\n")
    );
    eprintln!(
        "{cases} cases ({file} file): {joined} joined, {refused} refused, {uncertain} uncertain, \
         {panicked} panics of the oracle"
    );
    assert!(joined > CASES / 2 && refused > CASES / 50 && file > CASES / 10);
    assert!(
        uncertain + panicked < CASES / 10,
        "{uncertain} and {panicked} panics of the oracle"
    );
}

#[test]
fn absolute_reference_resolves_alike_under_every_base() {
    let mut random = Random(7);
    let mut absolute = 0;
    for _ in 0..20_000 {
        let reference = random.text(5);
        let bases = ["http://h/a/b", "https://other/x?y", "ftp://f/", "x://y/z"];
        for base in bases {
            if relation(Some(base), &reference) == Relation::Absolute {
                absolute += 1;
                let Ok(ours) = resolve_as_browser(base, &reference) else {
                    assert!(is_file(&reference), "{base} {reference:?}");
                    continue;
                };
                let alone = Url::parse(&reference).ok();
                assert_eq!(Url::parse(&ours).ok(), alone, "{base} {reference:?}");
            }
        }
    }
    assert!(absolute > 2_000);
}

/// With and without a base: requests use the URL that browsers parse, and references that browsers cannot parse are
/// refused.
#[test]
fn requested_url_equals_the_one_that_browsers_parse() {
    let policy = Policy {
        fetch: [Scheme::Http, Scheme::Https].into(),
        allow_userinfo: true,
        ..Policy::default()
    };
    let mut random = Random(0x1234_5678_9abc_def1);
    let (mut equal, mut refused) = (0, 0);
    for case in 0..CASES {
        let base = [
            "https://h.example/a/b?q",
            "http://h/a b/",
            "thismessage:/",
            "ftp://f/x",
        ][case % 4];
        let scheme = base.split_inclusive(':').next();
        let written = [
            ["", "https:", "http:/", "https:\\"][random.below(4)],
            &random.text(6),
        ]
        .concat();
        let reference = written.trim_ascii().replace(['\t', '\n', '\r'], "");
        let resolved = match relation(scheme, &reference) {
            Relation::Absolute => absolute_as_browser(reference.as_str().into()).into_owned(),
            Relation::Relative => match resolve_as_browser(base, &reference) {
                Ok(absolute) => absolute,
                Err(_) => continue,
            },
            Relation::SameDocument => continue,
        };
        let ours = with_blanks_escaped(&resolved);
        let theirs = Url::parse(base).unwrap().join(&reference);
        if theirs
            .as_ref()
            .is_ok_and(|url| !url.scheme().starts_with("http"))
            || !(ours.starts_with("http:") || ours.starts_with("https:"))
        {
            continue;
        }
        let judged = policy.judge_url(&ours);
        match (&theirs, Url::parse(&ours)) {
            (Ok(theirs), Ok(parsed)) => {
                assert_eq!(theirs, &parsed, "{base} {reference:?}");
                let is_understood =
                    !matches!(&judged, Err(refusal) if refusal.reason == Reason::BadUrl);
                assert!(is_understood, "{base} {reference:?}: {judged:?}");
                equal += 1;
            }
            // The crate rejects `///x`, although the standard reads x as the host.
            (Err(_), Ok(_)) => assert!(
                reference.contains("//") || reference.contains('\\'),
                "{base} {reference:?}"
            ),
            (Err(_), Err(_)) => {
                assert!(judged.is_err(), "{base} {reference:?}");
                refused += 1;
            }
            (Ok(_), Err(why)) => panic!("{base} {reference:?}: {ours:?}: {why}"),
        }
    }
    assert!(
        equal > CASES / 4 && refused > CASES / 100,
        "{equal}, {refused}"
    );
}

#[test]
fn a_result_resolves_to_itself() {
    let mut random = Random(99);
    for _ in 0..20_000 {
        let base = BASE_STARTS[random.below(BASE_STARTS.len())];
        let reference = random.text(6);
        if let Ok(ours) = resolve_as_browser(base, &reference)
            && Url::parse(&ours).is_ok()
            && let Ok(again) = resolve_as_browser("https://elsewhere/", &ours)
        {
            assert_eq!(
                Url::parse(&again),
                Url::parse(&ours),
                "{base} {reference:?}"
            );
        }
    }
}
