//! The public types of the library are exactly those in `tests/it/docs/public_types.txt`.
//!
//! A change of the list affects users of the library and must be mentioned in the changelog.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

fn source(path: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let text = fs::read_to_string(folder.join(path)).unwrap();
    text.split("\n#[cfg(test)]\nmod ")
        .next()
        .unwrap()
        .to_owned()
}

/// Adds the types that a file makes public, by a definition or a re-export.
fn types(module: &str, text: &str, found: &mut BTreeSet<String>) {
    let mut add = |name: &str| {
        let is_type = name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
        if is_type {
            found.insert(format!("{module}{name}"));
        }
    };
    // A re-export ends with `;`, and a definition begins with `{`.
    for statement in text.split("\npub use ").skip(1) {
        let names = statement.split(';').next().unwrap();
        for name in names.split(|symbol: char| !(symbol.is_alphanumeric() || symbol == '_')) {
            add(name);
        }
    }
    for line in text.lines() {
        for word in ["pub struct ", "pub enum ", "pub trait ", "pub type "] {
            if let Some(rest) = line.trim_start().strip_prefix(word) {
                let name = rest.split(|symbol: char| !symbol.is_alphanumeric());
                add(name.into_iter().next().unwrap_or_default());
            }
        }
    }
}

#[test]
fn the_public_types_are_those_of_the_list() {
    let root = source("lib.rs");
    let mut found = BTreeSet::new();
    types("", &root, &mut found);
    let mut modules = BTreeMap::new();
    for line in root.lines() {
        if let Some(name) = line.strip_prefix("pub mod ") {
            let name = name.trim_end_matches(';');
            if name != "internals" {
                modules.insert(name.to_owned(), name.to_owned());
            }
        }
        // A module of a room that the library has at its root: `pub use fetch::cache;`.
        let handed = line.strip_prefix("pub use ").unwrap_or_default();
        let names = handed.trim_end_matches(';').split_once("::");
        for name in names.into_iter().flat_map(|(_, names)| names.split(',')) {
            let name = name.trim_matches(['{', '}', ' ']);
            if name.starts_with(char::is_lowercase) && !name.contains(':') {
                let room = handed.split("::").next().unwrap();
                modules.insert(name.to_owned(), format!("{room}/{name}"));
            }
        }
    }
    modules.remove("run as run_program");
    assert_eq!(
        Vec::from_iter(modules.keys()),
        [
            "cache", "detach", "engine", "fetch", "mailbox", "outlook", "policy", "report",
            "store", "view"
        ]
    );
    for (name, place) in &modules {
        let file = format!("{place}.rs");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let text = if folder.join(&file).is_file() {
            source(&file)
        } else {
            source(&format!("{place}/mod.rs"))
        };
        types(&format!("{name}::"), &text, &mut found);
        for line in text.lines() {
            let inner = line
                .strip_prefix("pub mod ")
                .unwrap_or_default()
                .trim_end_matches(';');
            let is_at_root = modules.values().any(|at| *at == format!("{place}/{inner}"));
            if !inner.is_empty() && !is_at_root {
                let text = source(&format!("{place}/{inner}/mod.rs"));
                types(&format!("{name}::{inner}::"), &text, &mut found);
            }
        }
    }
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/docs/public_types.txt");
    let listed = fs::read_to_string(list).unwrap();
    let now: Vec<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(
        now,
        Vec::from_iter(listed.lines()),
        "tests/it/docs/public_types.txt"
    );
}
