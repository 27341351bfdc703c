//! A statement does not reuse the name of the statement before it: `let words = text.split(',');` followed by
//! `let words = words.filter(..);` makes a reader follow two values with one name. Such a chain is one expression, or
//! each value has a name of its own.

use std::fs;
use std::path::{Path, PathBuf};

/// Chains that read better than one expression or a second name: the file, and the name.
const ALLOWED: &[(&str, &str)] = &[];

/// A `let` of one name: its indentation and the name, and the text after `=`.
fn binding(line: &str) -> Option<(usize, &str, &str)> {
    let statement = line.trim_start();
    let indent = line.len() - statement.len();
    let pattern = statement.strip_prefix("let ")?;
    let named = pattern.strip_prefix("mut ").unwrap_or(pattern);
    let end = named.find(|letter: char| !is_in_name(letter))?;
    let (name, rest) = named.split_at(end);
    let (kind, value) = rest.split_once(" = ")?;
    let is_simple = kind.is_empty() || kind.starts_with(": ");
    (is_simple && !name.is_empty()).then_some((indent, name, value))
}

fn is_in_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Returns the numbers of the lines on which a `let` uses and replaces the name of the statement before it, and the name.
fn chains(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut before: Option<(usize, &str)> = None;
    for (number, line) in text.lines().enumerate() {
        let statement = line.trim_start();
        let indent = line.len() - statement.len();
        if let Some((indent, name, value)) = binding(line) {
            let is_used = value
                .split(|letter| !is_in_name(letter))
                .any(|word| word == name);
            if before == Some((indent, name)) && is_used {
                found.push((number + 1, name));
            }
            before = Some((indent, name));
        } else if before.is_some_and(|(outer, _)| indent <= outer)
            && !statement.is_empty()
            && !statement.starts_with(['}', ')', ']', '.'])
            && !statement.starts_with("//")
        {
            before = None;
        }
    }
    found
}

/// Returns the Rust files in src/ and tests/.
fn sources() -> Vec<PathBuf> {
    let mut folders = ["src", "tests"]
        .map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join(name))
        .to_vec();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a directory can be read") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|suffix| suffix == "rs") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 500, "only {} files", found.len());
    found
}

#[test]
fn no_let_repeats_the_name_of_the_let_before_it() {
    let mut used = Vec::new();
    let mut found = Vec::new();
    for path in sources() {
        let text = fs::read_to_string(&path).expect("a source file is text");
        let path = path.display().to_string();
        for (line, name) in chains(&text) {
            match ALLOWED
                .iter()
                .find(|(file, allowed)| path.ends_with(file) && *allowed == name)
            {
                Some(allowed) => used.push(allowed),
                None => found.push(format!("{path}:{line}: {name}")),
            }
        }
    }
    assert!(
        found.is_empty(),
        "write one expression, or give the second value its own name:\n{}",
        found.join("\n")
    );
    let unused: Vec<_> = ALLOWED
        .iter()
        .filter(|allowed| !used.contains(allowed))
        .collect();
    assert!(unused.is_empty(), "remove from the list: {unused:?}");
}

#[test]
fn chains_are_found_and_other_statements_are_not() {
    let chain = "    let words = text\n        .split(' ');\n    // A comment.\n    let words: Vec<_> = words.collect();\n";
    assert_eq!(chains(chain), [(4, "words")]);
    for other in [
        "    let words = text.split(' ');\n    use_of(words);\n    let words = words.collect();\n",
        "    let words = text.split(' ');\n    let word = words.next();\n",
        "    let word = first();\n    let word = second();\n",
        "    let word = first();\n    if true {\n        let word = word + 1;\n    }\n",
    ] {
        assert_eq!(chains(other), [], "{other}");
    }
}
