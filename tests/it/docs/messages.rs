//! Texts for users: the sentences in the source and the help of every command contain no words that readers had to read twice,
//! and do not begin with a word without a reference. Commit subjects have the required form.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::programs::embody;

/// Words that sounded translated to readers, and their replacements.
const WORDS: [(&str, &str); 21] = [
    (
        "nobody",
        "the thing itself as the subject, as in 'no request is made'",
    ),
    ("none of", "not one of, or the thing itself"),
    ("whoever", "a program that, a user who"),
    ("somebody", "another user, the sender"),
    ("anybody", "every user, every program"),
    ("stranger", "the sender, untrusted input"),
    ("strangers", "senders"),
    ("beside", "next to"),
    ("besides", "also, in addition to"),
    ("beneath", "below"),
    ("behind", "after"),
    ("in front of", "before"),
    ("anew", "again"),
    ("meanwhile", "during the run"),
    ("another than", "different from"),
    ("at fault", "name the file and the error"),
    ("stands", "is, occurs"),
    ("lies", "is"),
    ("goes", "is removed, is written"),
    ("insane", "unusable"),
    ("asked for", "requested, retrieved"),
];

/// Words that must not begin a sentence, because the noun is missing.
const BEGINNINGS: [&str; 8] = [
    "what", "who", "whoever", "whose", "behind", "beside", "none", "else",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
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

/// Returns the string literals of a file without its tests. Each `{...}` is replaced with a letter.
fn literals(source: &str) -> Vec<String> {
    let tests = source
        .find("\n#[cfg(test)]\nmod ")
        .or_else(|| source.find("\n#[cfg(all(test"));
    let mut rest = &source[..tests.unwrap_or(source.len())];
    let mut found = Vec::new();
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let before = rest[..at].chars().next_back();
        rest = &rest[at..];
        if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if let Some(text) = rest.strip_prefix('"') {
            let is_raw = before == Some('r');
            let mut escaped = false;
            let end = text.find(|symbol: char| {
                let ends = symbol == '"' && !escaped;
                escaped = symbol == '\\' && !escaped && !is_raw;
                ends
            });
            let end = end.unwrap_or(text.len());
            if before != Some('b') {
                found.push(plain(&text[..end]));
            }
            rest = text.get(end + 1..).unwrap_or_default();
        } else if rest.starts_with("'\"'") || rest.starts_with("'/'") {
            rest = &rest[3..];
        } else {
            rest = &rest[1..];
        }
    }
    found
}

/// Returns a literal without line breaks and placeholders.
fn plain(literal: &str) -> String {
    let mut text = String::new();
    let mut depth = 0;
    let mut lines = literal.split("\\\n");
    let joined = lines.next().unwrap_or_default().to_owned()
        + &lines.map(str::trim_start).collect::<String>();
    for symbol in joined.chars() {
        match symbol {
            '{' => {
                depth += 1;
                text.push('X');
            }
            '}' => depth -= 1,
            _ if depth <= 0 => text.push(symbol),
            _ => {}
        }
    }
    text
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part =
        |symbol: Option<char>| symbol.is_some_and(|it| it.is_alphanumeric() || "_-/".contains(it));
    text.match_indices(word).any(|(at, _)| {
        !is_part(text[..at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next())
    })
}

fn faults(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let words = WORDS
        .iter()
        .filter(|(word, _)| has_word(&lower, word))
        .map(|(word, instead)| format!("'{word}' (write: {instead})"));
    let sentences = lower.split(". ").flat_map(|it| it.split("; "));
    let beginnings = sentences.filter_map(|sentence| {
        let first = sentence.split([' ', ':']).next()?;
        BEGINNINGS
            .contains(&first)
            .then(|| format!("a sentence begins with '{first}'"))
    });
    words.chain(beginnings).collect()
}

#[test]
fn sentences_of_the_source_have_no_word_that_readers_stumble_over() {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for path in files {
        // The survey contains headings and table cells, which are not sentences.
        let is_survey = path.components().any(|it| it.as_os_str() == "survey");
        if is_survey {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        for text in literals(&source) {
            if !text.trim().contains(' ') {
                continue;
            }
            seen += 1;
            for fault in faults(&text) {
                wrong.push(format!("{}: {fault}: {text}", path.display()));
            }
        }
    }
    assert!(seen > 1_200, "only {seen} sentences were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn help_of_every_command_has_no_word_that_readers_stumble_over() {
    let printed = |arguments: &[&str]| {
        let output = embody().args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let list = printed(&["-h"]);
    let (_, commands) = list.split_once("Commands:\n").unwrap();
    let mut wrong = Vec::new();
    let mut seen = 0;
    let names = commands
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap());
    for command in names.filter(|name| *name != "help") {
        let help = printed(&[command, "--help-all"]);
        seen += 1;
        for line in help.lines() {
            for fault in faults(line.trim()) {
                wrong.push(format!("{command} --help-all: {fault}: {line}"));
            }
        }
    }
    assert!(seen > 12, "{seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn literals_are_found_in_code_and_not_in_comments() {
    let source = "// \"a b\"\nlet x = \"one \\\"two\\\"\"; let y = '\"'; // it's\nf(\"three \\\n    four {a:?} five\", b\"six seven\");\n#[cfg(test)]\nmod tests { \"eight nine\" }\n";
    assert_eq!(literals(source), ["one \\\"two\\\"", "three four X five"]);
    assert_eq!(faults("the file goes there; what is left").len(), 2);
    assert!(faults("the file beside-x is kept").is_empty());
}

/// The first commit from which on all subjects follow the rule.
const FIRST: &str = "cli: give help three levels, short options and --note-format";

#[test]
fn commit_subjects_name_an_area_and_what_the_change_does() {
    let printed = Command::new("git")
        .args(["log", "--no-merges", "--format=%s"])
        .current_dir(root())
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    let log = String::from_utf8_lossy(&printed);
    // A source package has no history.
    if !log.lines().any(|subject| subject == FIRST) {
        return;
    }
    for subject in log.lines().take_while(|subject| *subject != FIRST) {
        let (area, words) = subject.split_once(": ").expect(subject);
        assert!(subject.chars().count() <= 72, "{subject}");
        assert!(area.chars().all(|it| !it.is_uppercase()), "{subject}");
        assert!(words.starts_with(char::is_lowercase), "{subject}");
        assert!(!words.ends_with('.'), "{subject}");
        let first = words.split(' ').next().unwrap_or_default();
        assert!(!BEGINNINGS.contains(&first), "{subject}");
    }
}
