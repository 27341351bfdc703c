//! The rules for English that can be checked automatically: in README.md, CONTRIBUTING.md, the changelog of the current
//! version, docs/ and samples/README.md, and words that no message of the program contains.

use std::fs;
use std::path::{Path, PathBuf};

/// First words that make a sentence difficult to read: its subject comes late, or has no name.
const OPENINGS: [&str; 13] = [
    "What",
    "Who",
    "Whoever",
    "Whose",
    "Of",
    "Behind",
    "Beside",
    "None:",
    "Also",
    "Else",
    "Those",
    "One that",
    "These, which",
];

/// Words with a plainer alternative: "no network requests" for "nobody", "is" or "is kept" for "stands", "below" for "beneath",
/// "during the run" for "meanwhile", "again" for "anew", "untrusted input" or "the sender" for "a stranger".
const REPLACED: [&str; 16] = [
    "nobody",
    "none of",
    "whoever",
    "somebody",
    "anybody",
    "a stranger",
    "strangers",
    "stands",
    "lies",
    "goes",
    "stays behind",
    "beneath",
    "besides",
    "meanwhile",
    "anew",
    "another than",
];

/// Words that no message of the program contains. The first three are replaced with "byte" and "unusable".
const REPLACED_IN_MESSAGES: [&str; 4] = ["octet", "octets", "insane", "nobody was asked"];

/// Files in which "octets" is correct: a sentence in existing mail, and names of columns and JSON fields.
const OCTETS: [&str; 2] = ["engine/stub/listing.rs", "cli/survey/text.rs"];

/// Tables that quote the program and therefore contain its words: the reasons, the schemes, and the mailboxes whose rows are
/// names of test cases.
const QUOTED_TABLES: [(&str, &str); 3] = [
    ("docs/reasons.md", "| reason |"),
    ("docs/schemes.md", "| reference |"),
    ("docs/mailbox-internals.md", "| second message |"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// Returns the string literals in a line of code that contain a space, and are therefore sentences. Placeholders, `{...}`, are
/// removed.
fn sentences_of_code(line: &str) -> Vec<String> {
    let code = line.trim_start();
    let quoted = code.split('"').skip(1).step_by(2).map(str::to_owned);
    let words = quoted.map(|text| {
        let mut names = 0;
        let outside = |symbol: &char| {
            names += i32::from(*symbol == '{') - i32::from(*symbol == '}');
            names == 0
        };
        text.chars().filter(outside).collect::<String>()
    });
    words.filter(|text| text.trim().contains(' ')).collect()
}

/// Returns whether a text contains a word on its own.
fn holds(text: &str, word: &str) -> bool {
    let text = text.to_lowercase();
    let is_letter =
        |symbol: Option<char>| symbol.is_some_and(|it| it.is_alphanumeric() || "_-/".contains(it));
    text.match_indices(word).any(|(at, _)| {
        !is_letter(text[..at].chars().next_back())
            && !is_letter(text[at + word.len()..].chars().next())
    })
}

/// Replaces text in backticks with a letter, because the rules apply to sentences.
fn without_code(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    pieces
        .map(|(at, piece)| if at % 2 == 0 { piece } else { "x" })
        .collect()
}

/// Returns whether a line begins a paragraph, a list item, a table row or a heading.
fn begins_paragraph(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.trim_start_matches(|it: char| it.is_ascii_digit());
    line.is_empty()
        || ["* ", "- ", "|", "#", "<!--"]
            .iter()
            .any(|mark| line.starts_with(mark))
        || (number.len() < line.len() && number.starts_with(". "))
}

/// Returns the sentences of a page, without headings and code blocks. Each cell of a table is one text.
fn sentences(page: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for text in page.split("\n```").step_by(2) {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if begins_paragraph(line) {
                paragraphs.push(String::new());
            }
            let last = paragraphs.last_mut().expect("there is always one");
            last.push_str(line.trim());
            last.push(' ');
        }
        paragraphs.push(String::new());
    }
    let mut found = Vec::new();
    for paragraph in paragraphs {
        let paragraph = without_code(&paragraph);
        for cell in paragraph.split('|') {
            let ends = [". ", "? ", "! ", ": "];
            let mut rest = cell;
            while let Some(end) = ends.iter().filter_map(|end| rest.find(end)).min() {
                found.push(rest[..=end].to_owned());
                rest = &rest[end + 1..];
            }
            found.push(rest.to_owned());
        }
    }
    // A list item begins with its bullet, or with its number and a period.
    let is_mark = |it: char| it.is_whitespace() || "*#-()[]\"".contains(it);
    let trimmed = found
        .iter()
        .map(|text| text.trim_matches(is_mark).to_owned());
    trimmed.filter(|text| !text.is_empty()).collect()
}

fn opening(sentence: &str) -> Option<&'static str> {
    OPENINGS.into_iter().find(|opening| {
        sentence
            .strip_prefix(opening)
            .is_some_and(|rest| !rest.starts_with(|it: char| it.is_alphanumeric()))
    })
}

/// Returns the pages, without tables that quote the program.
fn pages() -> Vec<(String, String)> {
    let mut names = vec![
        "README.md".to_owned(),
        "CONTRIBUTING.md".to_owned(),
        "samples/README.md".to_owned(),
    ];
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") {
            names.push(format!("docs/{name}"));
        }
    }
    let mut pages: Vec<(String, String)> = names
        .into_iter()
        .map(|name| (name.clone(), read(&name)))
        .collect();
    for (name, page) in &mut pages {
        for (_, header) in QUOTED_TABLES.iter().filter(|(of, _)| of == name) {
            let start = page.find(header).expect("the page has the table");
            let end = page[start..]
                .find("\n\n")
                .map_or(page.len(), |end| start + end);
            page.replace_range(start..end, "");
        }
    }
    let changelog = read("CHANGELOG.md");
    let newest = changelog
        .split("\n## ")
        .nth(1)
        .expect("a section of a version");
    pages.push(("CHANGELOG.md".to_owned(), newest.to_owned()));
    pages
}

#[test]
fn pages_begin_no_sentence_with_a_pronoun_and_use_plain_words() {
    let pages = pages();
    assert!(pages.len() > 25, "{} pages", pages.len());
    let (mut wrong, mut looked_at) = (Vec::new(), 0);
    for (name, page) in pages {
        for sentence in sentences(&page) {
            looked_at += 1;
            if let Some(opening) = opening(&sentence) {
                wrong.push(format!("{name}: begins with {opening:?}: {sentence}"));
            }
            for word in REPLACED.iter().filter(|word| holds(&sentence, word)) {
                wrong.push(format!("{name}: {word:?}: {sentence}"));
            }
        }
    }
    assert!(looked_at > 2000, "only {looked_at} sentences were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sentences_of_a_page_are_found_at_every_place() {
    let page = "# What is a heading\n\nOne. What is\nthis? `What code`.\n\n* **Those** are two.\n1. Of three\n\n| a | Who reads |\n\n```sh\nAlso code\n```\n\nBeside it.";
    let openings: Vec<_> = sentences(page)
        .iter()
        .filter_map(|it| opening(it))
        .collect();
    assert_eq!(openings, ["What", "Those", "Of", "Who", "Beside"]);
    assert!(holds("It stands here.", "stands") && !holds("It understands.", "stands"));
}

#[test]
fn messages_use_no_word_that_was_replaced() {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    assert!(files.len() > 200, "{}", files.len());
    let (mut wrong, mut looked_at) = (Vec::new(), 0);
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap();
        let allows_octets = OCTETS.iter().any(|it| path.ends_with(it));
        for line in code.lines() {
            // The comment of an option is its help text.
            let is_help = path.components().any(|it| it.as_os_str() == "args")
                && line.trim_start().starts_with("///");
            let texts = match line.trim_start().starts_with("//") {
                true if is_help => vec![line.to_owned()],
                true => Vec::new(),
                false => sentences_of_code(line),
            };
            looked_at += texts.len();
            for text in &texts {
                let words = REPLACED_IN_MESSAGES.iter();
                for word in words.filter(|word| holds(text, word)) {
                    if !(allows_octets && word.starts_with("octet")) {
                        wrong.push(format!("{}: {word}: {text}", path.display()));
                    }
                }
            }
        }
    }
    assert!(looked_at > 1000, "only {looked_at} sentences were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
