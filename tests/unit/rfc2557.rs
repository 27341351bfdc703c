//! RFC 2557: HTML with its pictures in one message, in the shapes of §9, with the Content-Base of RFC 2110 and of the
//! draft. The messages are in `samples/mhtml`.

use super::common::mail::{self, assert_bytes, crlf, expand, mhtml_samples, our_leaves};
use embody::Policy;
use embody::fetch::NoFetch;
use embody::mime::{self, ScanLimits};

/// The expected links of every sample, in order. `part 2` means the `cid:` URL of this part. They were derived from the
/// documents, and not from the output.
const LINKS: &[(&str, &[&str])] = &[
    (
        // §9.1, with a base.
        "alone-with-base",
        &[
            "http://www.example.org/pilots/tides.html",
            "http://www.example.org/charts/",
            "http://mirror.example.org/wind",
            "#below",
            "mailto:harbour@example.org",
        ],
    ),
    (
        // §9.2: mail programs compare the absolute link with the Content-Location, so nothing has to be changed.
        "absolute-location",
        &[
            "http://www.example.org/images/flag.png",
            "http://www.example.org/harbour.html",
        ],
    ),
    (
        // §9.3
        "relative-with-base",
        &[
            "part 2",
            "part 2",
            "part 3",
            "http://www.example.org/harbour.html",
        ],
    ),
    // §9.4: without a base, links to content outside of the message stay relative.
    ("relative-without-base", &["part 2", "harbour.html"]),
    // §9.5
    ("content-id", &["part 2"]),
    (
        // §9.6: a link may refer to an outer part. A link into an inner aggregate may refer only to the aggregate as a
        // whole.
        "nested",
        &[
            "part 2",
            "http://www.example.org/images/pennant.png",
            "part 3#today",
            "part 2",
            "part 3.2",
            "part 1",
            "http://www.example.org/pilots.html",
        ],
    ),
    ("nested-nearest-first", &["part 2", "part 3.2"]),
    (
        "base-of-the-message",
        &["part 2", "http://www.example.org/pilots/tides.html"],
    ),
    (
        "base-of-the-multipart",
        &[
            "part 1.2",
            "http://www.example.org/pilots/tides.html",
            "http://outside.example.org/tides.html",
        ],
    ),
    (
        "base-of-the-part",
        &["part 2", "http://www.example.org/images/tides.html"],
    ),
    (
        "innermost-base",
        &[
            "http://message.example.org/x",
            "http://multipart.example.org/x",
            "http://part.example.org/x",
            "http://document.example.org/",
            "http://document.example.org/x",
            "http://message.example.org/here/x",
            "deeper/",
            "http://message.example.org/here/deeper/x",
            "http://message.example.org/x",
        ],
    ),
    (
        "base-in-the-document",
        &[
            "http://www.example.org/images/",
            "part 1.2",
            "http://www.example.org/tides.html",
        ],
    ),
    // §4.4: white space, encoded words and wrapped lines in the field.
    ("folded-location", &["part 2", "part 3", "part 4"]),
    (
        "equal-locations",
        &[
            "part 2",
            "part 2",
            "part 2",
            "http://www.example.org/Flag.png",
        ],
    ),
    (
        "quoted-printable",
        &["part 2", "http://www.example.org/caf=e9.html?a=1&amp;b=2"],
    ),
    (
        "base64",
        &["part 2", "http://www.example.org/caf=e9.html?a=1&amp;b=2"],
    ),
    ("alternative-inside", &["part 2"]),
    (
        "style-sheet",
        &[
            "part 2",
            "http://www.example.org/style/print.css",
            "part 3",
            "http://www.example.org/style/sea.png",
        ],
    ),
];

/// Samples that stay unchanged.
const UNTOUCHED: &[&str] = &["absolute-location", "content-id"];

fn name(sample: &mail::Sample) -> &str {
    sample.name.trim_end_matches(".in.eml")
}

#[test]
fn every_mhtml_sample_gives_its_expected_output() {
    for sample in mhtml_samples() {
        let (output, report) = expand(&sample.before);
        assert_bytes(&output, &sample.after, &sample.name);
        let untouched = UNTOUCHED.contains(&name(&sample));
        assert_eq!(sample.before == sample.after, untouched, "{}", sample.name);
        assert_eq!(report.links() == 0, untouched, "{}", sample.name);
    }
}

#[test]
fn crlf_version_of_a_sample_gives_the_crlf_version_of_the_output() {
    for sample in mhtml_samples() {
        let (output, _) = expand(&crlf(&sample.before));
        assert_bytes(&output, &crlf(&sample.after), &sample.name);
    }
}

#[test]
fn second_run_over_an_mhtml_sample_changes_nothing() {
    let expander = mail::expander(Policy::default(), NoFetch);
    for sample in mhtml_samples() {
        for after in [sample.after.clone(), crlf(&sample.after)] {
            let expansion = expander.expand(&after, "test").unwrap();
            assert_bytes(&expansion.output().into_bytes(), &after, &sample.name);
            assert_eq!(expansion.report.links(), 0, "{}", sample.name);
        }
    }
}

#[test]
fn links_of_each_sample_output_equal_the_expected_list() {
    let samples = mhtml_samples();
    assert_eq!(samples.len(), LINKS.len());
    for sample in &samples {
        let (_, expected) = LINKS
            .iter()
            .find(|(listed, _)| *listed == name(sample))
            .unwrap_or_else(|| panic!("{} is not in the table", sample.name));
        for message in [sample.after.clone(), crlf(&sample.after)] {
            assert_eq!(&links(&message), expected, "{}", sample.name);
        }
    }
}

#[test]
fn the_readme_of_the_samples_names_each() {
    let readme = std::fs::read_to_string(mail::samples_folder().join("README.md")).unwrap();
    for sample in mhtml_samples() {
        let line = format!("| `mhtml/{}` |", name(&sample));
        assert!(readme.contains(&line), "{line}");
    }
}

#[test]
fn other_programs_read_the_same_leaves() {
    let samples = mhtml_samples();
    let messages: Vec<Vec<u8>> = samples
        .iter()
        .flat_map(|sample| [sample.after.clone(), crlf(&sample.after)])
        .collect();
    // mail-parser converts text to UTF-8 from every charset.
    let latin = ["base64", "quoted-printable"];
    for (message, sample) in messages.iter().step_by(2).zip(&samples) {
        if latin.contains(&name(sample)) {
            continue;
        }
        assert_eq!(
            our_leaves(message),
            mail::mail_parser_leaves(message),
            "{}",
            sample.name
        );
    }
    let Some(read) = mail::python_leaves(&messages) else {
        return;
    };
    for (message, theirs) in messages.iter().zip(read) {
        assert_eq!(our_leaves(message), theirs);
    }
}

/// Returns the links of all documents. A `cid:` URL is replaced by the number of its part.
fn links(message: &[u8]) -> Vec<String> {
    let tree = mime::scan(message, &ScanLimits::default());
    let mut found = Vec::new();
    for part in tree.ids() {
        if !["text/html", "text/css"].contains(&tree.part(part).essence.as_str()) {
            continue;
        }
        let body = tree.part(part).body.of(message);
        let document = tree.part(part).encoding.decode(body).unwrap();
        found.extend(values(&String::from_utf8_lossy(&document)));
    }
    let named = |link: String| {
        let Some(rest) = link.strip_prefix("cid:") else {
            return link;
        };
        let (id, fragment) = rest.find('#').map_or((rest, ""), |at| rest.split_at(at));
        let id = format!("<{id}>");
        let bearers: Vec<String> = tree
            .ids()
            .filter(|&part| {
                let value = tree.value(part, "Content-ID");
                value.is_some_and(|value| value.trim_ascii() == id.as_bytes())
            })
            .map(|part| tree.number(part))
            .collect();
        assert_eq!(bearers.len(), 1, "{id} is the id of {bearers:?}");
        format!("part {}{fragment}", bearers[0])
    };
    found.into_iter().map(named).collect()
}

/// Returns the values in `src="..."`, `href="..."`, `url(...)` and `@import "..."`.
fn values(document: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (start, end) in [
        ("src=\"", '"'),
        ("href=\"", '"'),
        ("url(\"", '"'),
        ("url(", ')'),
        ("@import \"", '"'),
    ] {
        for (at, _) in document.match_indices(start) {
            let rest = &document[at + start.len()..];
            if !rest.starts_with('"') {
                found.push((at, rest.split(end).next().unwrap().to_owned()));
            }
        }
    }
    found.sort();
    found.into_iter().map(|(_, value)| value).collect()
}
