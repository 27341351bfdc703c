//! Words that CONTRIBUTING.md lists as replaced stand in no sentence that a user reads.

use std::fs;
use std::path::{Path, PathBuf};

/// Where "octets" is right: the sentence that stands in mails already, and the names of columns and fields.
const OCTETS: [&str; 2] = ["external_body/listing.rs", "cli/survey/text.rs"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The first column of the table.
fn replaced() -> Vec<String> {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let (_, table) = text.split_once("| not | but |\n|---|---|\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap().to_owned());
    let words = cells.flat_map(|cell| {
        cell.split(',')
            .map(str::trim)
            .map(str::to_lowercase)
            .collect::<Vec<_>>()
    });
    words.collect()
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

/// What stands in quotes in a line of code, with a blank in it, so a sentence and no name; `{...}` holds names.
fn sentences(line: &str) -> Vec<String> {
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

/// Whether a word stands in a text, and not in another word.
fn holds(text: &str, word: &str) -> bool {
    let text = text.to_lowercase();
    let is_letter =
        |symbol: Option<char>| symbol.is_some_and(|it| it.is_alphanumeric() || "_-/".contains(it));
    text.match_indices(word).any(|(at, _)| {
        !is_letter(text[..at].chars().next_back())
            && !is_letter(text[at + word.len()..].chars().next())
    })
}

#[test]
fn no_sentence_has_a_word_that_was_replaced() {
    let replaced = replaced();
    assert!(replaced.len() > 8, "{replaced:?}");
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    assert!(files.len() > 200, "{}", files.len());
    let (mut wrong, mut looked_at) = (Vec::new(), 0);
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap();
        let allows_octets = OCTETS.iter().any(|it| path.ends_with(it));
        for line in code.lines() {
            // The comment of an option is its help.
            let is_help = path.components().any(|it| it.as_os_str() == "args")
                && line.trim_start().starts_with("///");
            let said = match line.trim_start().starts_with("//") {
                true if is_help => vec![line.to_owned()],
                true => Vec::new(),
                false => sentences(line),
            };
            looked_at += said.len();
            for (said, word) in said
                .iter()
                .flat_map(|said| replaced.iter().map(move |word| (said, word)))
            {
                if holds(said, word) && !(allows_octets && word.starts_with("octet")) {
                    wrong.push(format!("{}: {word}: {said}", path.display()));
                }
            }
        }
    }
    assert!(looked_at > 1000, "only {looked_at} sentences were found");
    for page in [
        "README.md",
        "docs/README.md",
        "docs/mailboxes.md",
        "docs/embed.md",
        "docs/references.md",
    ] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for word in replaced.iter().filter(|word| !word.starts_with("octet")) {
            if holds(&text, word) {
                wrong.push(format!("{page}: {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
