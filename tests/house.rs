//! The house: which module may use which, and how large a file may grow.
//!
//! Imports point down the numbers, or stay within a module. The table is that of docs/design.md in
//! numbers.

use std::fs;
use std::path::{Path, PathBuf};

/// Room and level.
const MODULES: &[(&str, u8)] = &[
    ("span", 0),
    ("error", 0),
    // Edits know nothing but spans; what maps decoded bodies back makes them.
    ("edit", 0),
    ("mime", 1),
    ("link", 1),
    ("external_body", 1),
    ("report", 2),
    ("policy", 2),
    ("plan", 3),
    ("fetch", 3),
    ("expand", 4),
    ("mailbox", 4),
    ("cli", 5),
];

/// Arrows within a level, or up, that are wanted.
const ALSO: &[(&str, &str)] = &[
    // An edit is a span and what stands there instead.
    ("edit", "span"),
    // References are read from parts, and phantom headers are headers.
    ("external_body", "mime"),
    ("external_body", "link"),
    // Bases and links stand in header fields and parts.
    ("link", "mime"),
    // A refusal names its reason.
    ("policy", "report"),
];

/// What mailboxes may know: messages are bytes to them.
const MAILBOX_USES: &[&str] = &["span", "error"];

const LONGEST_FILE: usize = 600;

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|suffix| suffix == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 10, "only {} files", found.len());
    found
}

/// The module a file belongs to; none for lib.rs and main.rs.
fn module_of(path: &Path) -> Option<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let inside = path.strip_prefix(source).unwrap();
    let first = inside.components().next().unwrap();
    let name = first.as_os_str().to_string_lossy();
    let name = name.strip_suffix(".rs").unwrap_or(&name);
    (!matches!(name, "lib" | "main")).then(|| name.to_owned())
}

fn level(module: &str) -> u8 {
    MODULES
        .iter()
        .find(|(name, _)| *name == module)
        .unwrap_or_else(|| panic!("the module '{module}' is not in the table"))
        .1
}

/// The code without comments; doc-links may point anywhere.
fn code(text: &str) -> String {
    text.lines()
        .map(|line| {
            let trimmed = line.trim_start();
            let comment = trimmed.starts_with("//");
            if comment { "" } else { line }
        })
        .map(|line| line.split(" // ").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

/// The modules named as `crate::module` or in `crate::{module::..., module}`.
fn modules_used(code: &str) -> Vec<String> {
    let mut used = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        // `$crate::` and `::crate::` name nothing else; other words that end so do not exist.
        let rest = &code[at + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut name = String::new();
            for symbol in list.chars() {
                match symbol {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => used.push(first_word(&std::mem::take(&mut name))),
                    _ if depth == 0 => name.push(symbol),
                    _ => {}
                }
            }
            used.push(first_word(&name));
        } else {
            used.push(first_word(rest));
        }
    }
    used.retain(|name| !name.is_empty());
    used
}

fn first_word(text: &str) -> String {
    text.trim_start()
        .chars()
        .take_while(|symbol| symbol.is_alphanumeric() || *symbol == '_')
        .collect()
}

#[test]
fn imports_point_down() {
    let mut arrows = 0;
    let mut wrong = Vec::new();
    for path in sources() {
        let Some(module) = module_of(&path) else {
            continue;
        };
        for used in modules_used(&code(&fs::read_to_string(&path).unwrap())) {
            if used == module {
                continue;
            }
            // Re-exports of lib.rs: the type's module is meant.
            let used = match used.as_str() {
                "Error" => "error".to_owned(),
                "Span" => "span".to_owned(),
                "Policy" => "policy".to_owned(),
                "Report" => "report".to_owned(),
                "Expander" | "Expansion" | "Mark" => "expand".to_owned(),
                _ => used,
            };
            arrows += 1;
            let allowed = if module == "mailbox" {
                MAILBOX_USES.contains(&used.as_str())
            } else {
                level(&used) < level(&module) || ALSO.contains(&(module.as_str(), used.as_str()))
            };
            if !allowed {
                wrong.push(format!("{}: {module} uses {used}", path.display()));
            }
        }
    }
    assert!(
        arrows > 30,
        "only {arrows} uses of another module were found"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_is_in_the_table_and_every_row_is_a_module() {
    let modules: Vec<String> = sources()
        .iter()
        .filter_map(|path| module_of(path))
        .collect();
    for module in &modules {
        level(module);
    }
    for (name, _) in MODULES {
        // Until it is written, mailbox may be missing.
        let there = modules.iter().any(|module| module == name);
        assert!(there || *name == "mailbox", "there is no module '{name}'");
    }
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<String> = sources()
        .iter()
        .map(|path| {
            let lines = fs::read_to_string(path).unwrap().lines().count();
            (path, lines)
        })
        .filter(|(_, lines)| *lines > LONGEST_FILE)
        .map(|(path, lines)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn no_test_file_is_forgotten() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let list = fs::read_to_string(tests.join("all.rs")).unwrap();
    let mut files = 0;
    for entry in fs::read_dir(tests).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.extension().is_some_and(|suffix| suffix == "rs") && name != "all" {
            let line = format!("\nmod {name};\n");
            assert!(list.contains(&line), "tests/all.rs does not name {name}");
            files += 1;
        }
    }
    assert!(files > 50, "{files} files");
}

#[test]
fn only_the_command_line_prints_or_exits() {
    let mut wrong = Vec::new();
    for path in sources() {
        if module_of(&path).is_none_or(|module| module == "cli") {
            continue;
        }
        let text = code(&fs::read_to_string(&path).unwrap());
        for word in [
            "println!",
            "eprintln!",
            "print!(",
            "process::exit",
            "stdout()",
            "stderr()",
        ] {
            if text.contains(word) {
                wrong.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn comments_are_no_arrows_and_lists_are_read() {
    let text = "use crate::span::Span; // see crate::cli\n/// [`x`](crate::expand)\nuse crate::{\n    mime::{self, Tree},\n    plan, report::Row,\n};\nfn f() { crate::fetch::g() }\n";
    assert_eq!(
        modules_used(&code(text)),
        ["span", "mime", "plan", "report", "fetch"]
    );
}
