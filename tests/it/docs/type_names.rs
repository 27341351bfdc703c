//! The names of the types in src/: each denotes one type, and is a noun.
//!
//! A search for such a name finds one type, and a `use` line is clear without the path of the module.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Names of more than one type, with the reason.
const SHARED: &[(&str, &str)] = &[
    ("CacheFolder", "one for each kind of system"),
    ("Encoder", "one with and one without the feature archives"),
    ("NewFile", "one for each kind of system"),
    ("PstFolder", "one with and one without the feature outlook"),
    ("RunFolder", "one for each kind of system"),
    ("Sidecars", "one with and one without the feature file"),
    ("Stream", "one for each kind of system"),
];

/// Names that end like a participle or a gerund, with the reason.
const VERBS: &[(&str, &str)] = &[
    ("Canned", "public: fetch::Canned"),
    ("Followed", "public: policy::Followed"),
    ("Protected", "public: policy::Protected"),
    ("Spliced", "public: Spliced"),
    ("Unproven", "public: engine::prove::Unproven"),
];

/// Last words that are nouns, although they end like verbs.
const NOUNS: &[&str] = &[
    "Embed", "Encoding", "Heading", "Mapping", "Need", "Quoting", "Screen", "Seed", "Setting",
    "String", "Token",
];

/// Irregular participles.
const PARTICIPLES: &[&str] = &[
    "Built", "Cut", "Done", "Found", "Gone", "Held", "Kept", "Known", "Left", "Lost", "Made",
    "Met", "Paid", "Put", "Read", "Said", "Sent", "Shown", "Told",
];

/// Returns the last word of a name: `Pair` of `MailPair`.
fn last_word(name: &str) -> &str {
    let start = name.rfind(|c: char| c.is_ascii_uppercase()).unwrap_or(0);
    &name[start..]
}

fn is_noun(name: &str) -> bool {
    let word = last_word(name);
    let verb = word.ends_with("ed") || word.ends_with("en") || word.ends_with("ing");
    NOUNS.contains(&word) || (!verb && !PARTICIPLES.contains(&word))
}

/// Returns the name of the type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().peekable();
    if words.peek()?.starts_with("pub") {
        // `pub(in crate::engine)` consists of two words.
        while !matches!(
            words.peek(),
            None | Some(&"struct" | &"enum" | &"trait" | &"union")
        ) {
            words.next();
        }
    }
    if !matches!(words.next()?, "struct" | "enum" | "trait" | "union") {
        return None;
    }
    let name = words.next()?;
    let end = name
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(name.len());
    Some(&name[..end]).filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// Adds the types that the files below `directory` define, without those of tests.
fn collect(directory: &Path, types: &mut BTreeMap<String, Vec<String>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            // The model of a server contains types of a test.
            if !matches!(name, "tests" | "model") {
                collect(&path, types);
            }
        } else if name.ends_with(".rs")
            && !matches!(name, "tests.rs" | "lie.rs" | "canned.rs" | "internals.rs")
        {
            let file = fs::read_to_string(&path).unwrap();
            let code = file
                .split("\n#[cfg(test)]\nmod ")
                .next()
                .unwrap_or_default();
            for name in code.lines().filter_map(defined) {
                types
                    .entry(name.to_owned())
                    .or_default()
                    .push(path.display().to_string());
            }
        }
    }
}

#[test]
fn each_type_has_a_name_of_its_own_that_is_a_noun() {
    let mut types = BTreeMap::new();
    collect(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut types,
    );
    assert!(types.len() > 700, "{} types", types.len());
    let listed = |list: &[(&str, &str)], name: &str| list.iter().any(|(listed, _)| *listed == name);
    let mut faults = Vec::new();
    for (name, places) in &types {
        if places.len() > 1 && !listed(SHARED, name) {
            faults.push(format!(
                "{name} is the name of {} types: {places:?}",
                places.len()
            ));
        }
        if !is_noun(name) && !listed(VERBS, name) {
            faults.push(format!("{name} is not a noun: {places:?}"));
        }
    }
    for (name, _) in SHARED {
        if types.get(*name).is_none_or(|places| places.len() < 2) {
            faults.push(format!("{name} does not need an exception any more"));
        }
    }
    for (name, _) in VERBS {
        if !types.contains_key(*name) {
            faults.push(format!("{name} does not exist any more"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn definitions_are_found_and_verbs_are_recognised() {
    assert_eq!(
        defined("pub(in crate::engine) struct Leaf<'m> {"),
        Some("Leaf")
    );
    assert_eq!(defined("    enum Kind {"), Some("Kind"));
    assert_eq!(defined("pub trait Fetch: Send {"), Some("Fetch"));
    assert_eq!(defined("// struct of a file"), None);
    for (name, noun) in [
        ("Kept", false),
        ("FolderRead", false),
        ("Detaching", false),
        ("Altered", false),
        ("MailPair", true),
        ("PstEncoding", true),
        ("PictureNeed", true),
    ] {
        assert_eq!(is_noun(name), noun, "{name}");
    }
}
