//! The layers of the source: which module may use which, and that no file imports a file that imports it.
//!
//! Imports lead from a higher level to a lower one, or stay within a module, and never form a cycle. The table is that of
//! docs/design.md with numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules, and their levels.
const MODULES: &[(&str, u8)] = &[
    // Files at the top level, which all modules use.
    ("span", 0),
    ("from_field", 0),
    ("mailbox_field", 0),
    ("prologue", 0),
    ("detail", 0),
    ("error", 0),
    ("key", 0),
    ("metrics", 0),
    ("stop", 0),
    // An edit contains a span and the bytes that replace it.
    ("edit", 0),
    // Differences between operating systems, and directories that embody writes. No mail.
    ("platform", 1),
    ("pool", 1),
    ("mime", 1),
    ("link", 1),
    ("spool", 2),
    ("engine", 3),
    ("fetch", 4),
    ("outlook", 4),
    ("expand", 5),
    ("milter", 5),
    ("serve", 5),
    ("mailbox", 5),
    ("merge", 6),
    ("copies", 6),
    ("imap", 6),
    ("view", 6),
    ("cli", 7),
];

/// Allowed imports within a level or to a higher one.
const ALSO: &[(&str, &str)] = &[
    // A malformed key is an error of the command line.
    ("key", "error"),
    ("edit", "span"),
    ("from_field", "span"),
    ("mailbox_field", "span"),
    ("prologue", "span"),
    // A stopped run ends with an error.
    ("stop", "error"),
    // Errors contain sentences in which settings are named.
    ("error", "detail"),
    // Bases and links are in header fields and parts.
    ("link", "mime"),
    // Expanding and detaching are operations on each message of a mailbox.
    ("expand", "mailbox"),
    // A milter is an expander behind a socket.
    ("milter", "expand"),
];

/// Modules that `mailbox` may use: it treats a message as a sequence of bytes.
const MAILBOX_USES: &[&str] = &[
    "span",
    "prologue",
    "from_field",
    "mailbox_field",
    "detail",
    "error",
    "platform",
    "edit",
    "key",
    "stop",
    "pool",
    // Mailboxes of Outlook contain no mail, but properties of which the engine makes mail.
    "engine",
    "outlook",
];

/// Files that are only compiled for tests. They are in src/ because the items that they test are private.
const OF_TESTS: &[&str] = &[
    "engine/forms/eudora/notes/tests.rs",
    "engine/prefilter/tests.rs",
    "imap/model/check.rs",
    "imap/model/mod.rs",
    "imap/model/server.rs",
    "mailbox/forms/lie.rs",
];

/// Words that no file of the engine or of the view contains: they have no I/O, no threads and no clock. The traits of `std::io` are allowed,
/// because the readers of Outlook's formats accept any bytes that can be read at an offset, and open no files.
const IMPURE: &[&str] = &[
    "std::fs",
    "stdin()",
    "stdout()",
    "stderr()",
    "std::net",
    "std::process",
    "std::thread",
    "Instant",
    "SystemTime::now",
    "answer_all",
    "dyn Fetch",
];

#[test]
fn engine_and_view_have_no_io_and_no_thread_and_no_clock() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = 0;
    for path in sources() {
        let name = path.strip_prefix(&source).unwrap();
        if !(name.starts_with("engine") || name.starts_with("view")) {
            continue;
        }
        seen += 1;
        let file = fs::read_to_string(&path).unwrap();
        let code = code(file.split("#[cfg(test)]").next().unwrap_or_default());
        for word in IMPURE {
            assert!(!code.contains(word), "{} uses {word}", name.display());
        }
    }
    assert!(seen > 60, "{seen}");
}

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|suffix| suffix == "rs")
                && !OF_TESTS.iter().any(|name| path.ends_with(name))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 10, "only {} files", found.len());
    found
}

/// Returns the module of a file, or `None` for lib.rs and main.rs.
fn module_of(path: &Path) -> Option<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let inside = path.strip_prefix(source).unwrap();
    let first = inside.components().next().unwrap();
    let file = first.as_os_str().to_string_lossy();
    let name = file.strip_suffix(".rs").unwrap_or(&file);
    (!matches!(name, "lib" | "main" | "internals")).then(|| name.to_owned())
}

fn level(module: &str) -> u8 {
    MODULES
        .iter()
        .find(|(name, _)| *name == module)
        .unwrap_or_else(|| panic!("the module '{module}' is not in the table"))
        .1
}

/// Returns the code without comments, because links in documentation may lead to any module.
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

/// Returns the modules that are named as `crate::module` or in `crate::{module::..., module}`.
fn modules_used(code: &str) -> Vec<String> {
    let mut used = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        // `$crate::` and `::crate::` have the same meaning. No other path ends with these characters.
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
fn modules_import_only_from_lower_layers() {
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
            // A re-export in lib.rs is replaced with the module of the type.
            let used = match used.as_str() {
                "Error" => "error".to_owned(),
                "Span" => "span".to_owned(),
                "Policy" | "Report" | "Lengths" | "Mark" => "engine".to_owned(),
                "Expander" => "expand".to_owned(),
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

/// The modules as files: `link::css` is `src/link/css.rs`, and the empty name is `lib.rs`.
#[derive(Default)]
struct Modules {
    /// The code of each module without its tests.
    code: BTreeMap<String, String>,
    /// Names that a module re-exports with `pub use`: module and name, and the original path.
    doors: BTreeMap<(String, String), String>,
}

impl Modules {
    fn read() -> Self {
        let mut modules = Self::default();
        for path in sources() {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
            let inside = path.strip_prefix(source).unwrap().with_extension("");
            let steps: Vec<_> = inside.iter().map(|step| step.to_string_lossy()).collect();
            let path_of_module = steps.join("::");
            let name = match path_of_module
                .strip_suffix("::mod")
                .unwrap_or(&path_of_module)
            {
                "main" => continue,
                "lib" | "internals" => "",
                other => other,
            };
            let file = fs::read_to_string(&path).unwrap();
            let text = file.split("\n#[cfg(test)]\nmod ").next().unwrap();
            if modules.code.get(name).is_none_or(String::is_empty) {
                modules.code.insert(name.to_owned(), code(text));
            }
        }
        for (module, text) in modules.code.clone() {
            for used in uses(&text) {
                if used.is_door
                    && let Some(path) = modules.absolute(&module, &used.path)
                {
                    modules.doors.insert((module.clone(), used.name), path);
                }
            }
        }
        modules
    }

    /// Returns the path from the root of the crate, or `None` for a path in another crate.
    fn absolute(&self, module: &str, path: &str) -> Option<String> {
        let mut at: Vec<&str> = module.split("::").filter(|step| !step.is_empty()).collect();
        let mut steps: Vec<&str> = path.split("::").collect();
        match *steps.first()? {
            "crate" => at.clear(),
            "self" => {}
            "super" => {
                while steps.get(1) == Some(&"super") {
                    steps.remove(0);
                    at.pop();
                }
                at.pop();
            }
            first => {
                let child = [at.as_slice(), &[first]].concat().join("::");
                if !self.code.contains_key(&child) {
                    return None;
                }
                at.push(first);
            }
        }
        Some([at.as_slice(), &steps[1..]].concat().join("::"))
    }

    /// Returns the file that defines the item at a path, through all re-exports.
    fn file_of(&self, path: &str) -> String {
        let steps: Vec<&str> = path.split("::").filter(|step| !step.is_empty()).collect();
        let longest = (0..=steps.len())
            .rev()
            .find(|&length| self.code.contains_key(&steps[..length].join("::")))
            .unwrap_or(0);
        let module = steps[..longest].join("::");
        match steps.get(longest) {
            Some(name) => match self.doors.get(&(module.clone(), (*name).to_owned())) {
                Some(meant) => self.file_of(meant),
                None => module,
            },
            None => module,
        }
    }

    /// Returns the files that a file uses.
    fn used_by(&self, module: &str) -> BTreeSet<String> {
        let text = &self.code[module];
        let body: String = text
            .split_inclusive(';')
            .filter(|statement| !is_use(statement))
            .collect();
        let mut used = BTreeSet::new();
        let mut add = |path: &str| {
            if let Some(path) = self.absolute(module, path) {
                let file = self.file_of(&path);
                if file != module {
                    used.insert(file);
                }
            }
        };
        for each in uses(text) {
            // A name that is only re-exported does not count as used.
            if !each.is_door || words(&body).any(|word| word == each.name) {
                add(&each.path);
            }
        }
        for path in
            body.split(|symbol: char| !(symbol.is_alphanumeric() || symbol == '_' || symbol == ':'))
        {
            if path.contains("::") {
                add(path.trim_matches(':'));
            }
        }
        used
    }
}

/// A name that a `use` statement imports.
struct Used {
    path: String,
    name: String,
    is_door: bool,
}

fn is_use(statement: &str) -> bool {
    !uses(statement).is_empty()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|symbol: char| !(symbol.is_alphanumeric() || symbol == '_'))
}

fn uses(text: &str) -> Vec<Used> {
    let mut found = Vec::new();
    for statement in text.split(';') {
        let Some((before, tree)) = statement.rsplit_once("use ") else {
            continue;
        };
        let visibility = before.lines().last().unwrap_or_default().trim();
        if !visibility.is_empty() && !visibility.starts_with("pub") {
            continue;
        }
        let mut names = Vec::new();
        leaves("", tree, &mut names);
        for (path, name) in names {
            found.push(Used {
                path,
                name,
                is_door: !visibility.is_empty(),
            });
        }
    }
    found
}

/// Adds the paths of a use tree, each with its local name.
fn leaves(prefix: &str, tree: &str, found: &mut Vec<(String, String)>) {
    let tree = tree.trim();
    let joined = |step: &str| match prefix {
        "" => step.to_owned(),
        prefix => format!("{prefix}::{step}"),
    };
    if let Some((path, list)) = tree.split_once('{') {
        let prefix = match path.trim().trim_end_matches("::") {
            "" => prefix.to_owned(),
            path => joined(path),
        };
        let list = list.trim_end().trim_end_matches('}');
        let mut depth = 0;
        let items = list.split(|symbol| {
            match symbol {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            symbol == ',' && depth == 0
        });
        for item in items.filter(|item| !item.trim().is_empty()) {
            leaves(&prefix, item, found);
        }
        return;
    }
    let (path, name) = match tree.split_once(" as ") {
        Some((path, name)) => (path.trim(), name.trim()),
        None => (tree, tree.rsplit("::").next().unwrap_or_default()),
    };
    match path {
        "self" => {
            let name = prefix.rsplit("::").next().unwrap_or_default();
            found.push((prefix.to_owned(), name.to_owned()));
        }
        path => found.push((joined(path), name.to_owned())),
    }
}

/// Returns the groups of files that import each other.
fn circles(arrows: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reached = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut waiting = vec![from];
        while let Some(file) = waiting.pop() {
            for next in arrows.get(file).into_iter().flatten() {
                if reached.insert(next.clone()) {
                    waiting.push(next);
                }
            }
        }
        reached
    };
    let all: BTreeMap<&String, BTreeSet<String>> =
        arrows.keys().map(|file| (file, reached(file))).collect();
    let mut knots = BTreeSet::new();
    for (file, reached) in &all {
        let knot: Vec<String> = reached
            .iter()
            .filter(|other| all.get(other).is_some_and(|back| back.contains(*file)))
            .cloned()
            .collect();
        if knot.len() > 1 {
            knots.insert(knot);
        }
    }
    knots.into_iter().collect()
}

#[test]
fn no_file_uses_what_uses_it() {
    let modules = Modules::read();
    let arrows: BTreeMap<String, BTreeSet<String>> = modules
        .code
        .keys()
        .filter(|module| !module.is_empty())
        .map(|module| (module.clone(), modules.used_by(module)))
        .collect();
    let count: usize = arrows.values().map(BTreeSet::len).sum();
    assert!(count > 300, "only {count} uses of another file were found");
    let mut wrong = String::new();
    for knot in circles(&arrows) {
        wrong.push_str(&format!("{} files:\n", knot.len()));
        for file in &knot {
            let within: Vec<&str> = arrows[file]
                .iter()
                .filter(|used| knot.contains(used))
                .map(String::as_str)
                .collect();
            wrong.push_str(&format!("  {file} uses {}\n", within.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn no_sub_room_uses_what_uses_it() {
    let modules = Modules::read();
    let sub_room = |module: &str| {
        let mut steps = module.split("::");
        let room = steps.next()?;
        Some((room.to_owned(), format!("{room}::{}", steps.next()?)))
    };
    let mut rooms: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    // The tests of a module may use what uses the module.
    let is_test = |module: &&String| module.ends_with("::tests");
    for module in modules.code.keys().filter(|module| !is_test(module)) {
        let Some((room, from)) = sub_room(module) else {
            continue;
        };
        for used in modules.used_by(module) {
            if let Some((other, to)) = sub_room(&used)
                && other == room
                && to != from
            {
                let arrows = rooms.entry(room.clone()).or_default();
                arrows.entry(from.clone()).or_default().insert(to.clone());
                arrows.entry(to).or_default();
            }
        }
    }
    let mut wrong = String::new();
    for (room, arrows) in &rooms {
        for knot in circles(arrows) {
            wrong.push_str(&format!("{} sub-rooms of {room}:\n", knot.len()));
            for from in &knot {
                let within: Vec<&String> =
                    arrows[from].iter().filter(|to| knot.contains(to)).collect();
                wrong.push_str(&format!("  {from} uses {within:?}\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn import_cycles_are_found_through_reexports_and_full_paths() {
    let mut modules = Modules::default();
    for (name, text) in [
        ("", "mod a; mod b;"),
        (
            "a",
            "mod c;\nmod d;\npub use c::{C, E as F};\nfn f() { d::g() }",
        ),
        ("a::c", "use super::super::b::{self, B};\nuse std::fmt;"),
        ("a::d", "use crate::b;"),
        ("b", "use crate::a::{\n    F,\n};"),
    ] {
        modules.code.insert(name.to_owned(), text.to_owned());
    }
    for used in uses(&modules.code["a"].clone()) {
        let path = modules.absolute("a", &used.path).unwrap();
        modules.doors.insert(("a".to_owned(), used.name), path);
    }
    let files = |module: &str| modules.used_by(module).into_iter().collect::<Vec<_>>();
    assert_eq!(files("a"), ["a::d"]);
    assert_eq!(files("a::c"), ["b"]);
    assert_eq!(files("b"), ["a::c"]);
    let arrows = ["a", "a::c", "a::d", "b"]
        .map(|module| (module.to_owned(), modules.used_by(module)))
        .into();
    assert_eq!(circles(&arrows), [["a::c", "b"]]);
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
        // `mailbox` may be missing.
        let there = modules.iter().any(|module| module == name);
        assert!(there || *name == "mailbox", "there is no module '{name}'");
    }
}

/// Files outside `engine/forms/X/` that may name the form X: the path or its beginning, and the forms, `None` for all of them.
/// Each comment is the reason. No other file names a form, so that a form can be added or changed in its own directory.
const NAME_FORMS: &[(&str, Option<&[&str]>)] = &[
    // The tables of all forms.
    ("engine/forms/mod.rs", None),
    ("engine/forms/references.rs", None),
    // The variants of `ReferenceShape`, by which a reference names its facts.
    ("engine/external_body/reference.rs", None),
    // The words of the option `--follow`, and what users select together.
    ("engine/policy/follow.rs", None),
    // The kinds of rows, whose names users read in reports.
    ("engine/report.rs", None),
    // What a person reads about each kind of rows.
    ("view/references.rs", None),
    // The formats of files, one of which is called msg.
    ("view/", Some(&["eudora", "msg"])),
    // Only a session can look up the files of a Eudora message, and ask for a file again if a server returned a page.
    ("engine/unflatten.rs", Some(&["eudora"])),
    ("engine/session/", Some(&["hosted"])),
    // A row of Sympa has the kind and the facts of a file on a server, because `hosted` is the field of the row.
    ("engine/forms/sympa/", Some(&["hosted"])),
    // `embody detach` can write a part in the form of Thunderbird.
    ("engine/detach/", Some(&["thunderbird"])),
    // The comparison of mails has a table of the words of each form. It must know notes that embody cannot fill.
    ("engine/same/", None),
    // A proof reads the files next to a mailbox from the new mail.
    ("engine/prove/", Some(&["apple", "eudora", "thunderbird"])),
    // Readers of the file formats of Outlook, one of which is called msg.
    ("engine/outlook/", Some(&["msg"])),
    ("outlook/", Some(&["msg"])),
    // Files next to a mailbox: how each program names its directories, and which message of a Eudora mailbox has a file.
    ("fetch/beside.rs", Some(&["apple", "eudora"])),
    ("fetch/eudora.rs", Some(&["eudora"])),
    ("fetch/mod.rs", Some(&["eudora"])),
    ("expand/expander.rs", Some(&["eudora"])),
    ("expand/mailbox.rs", Some(&["apple", "eudora"])),
    // The formats of mailboxes that are named after their programs.
    ("mailbox/", Some(&["apple", "eudora", "msg", "thunderbird"])),
    // Options and pages call formats of mailboxes and kinds of rows by their names.
    ("cli/", None),
];

/// Returns the code of a file without its tests, comments and string literals.
fn code_without_texts(file: &str) -> String {
    let file = file.split("\n#[cfg(test)]\nmod ").next().unwrap();
    let code = code(file)
        .replace("\\\\", "")
        .replace("\\\"", "")
        .replace("'\"'", "");
    let pieces: Vec<&str> = code.split('"').step_by(2).collect();
    pieces.join("\"\"")
}

/// Returns a name in snake case between underscores: `EudoraFile` becomes `_eudora_file_`.
fn snake(name: &str) -> String {
    let mut snake = String::from("_");
    let mut is_after_lower = false;
    for symbol in name.chars() {
        if symbol.is_uppercase() && is_after_lower {
            snake.push('_');
        }
        is_after_lower = !symbol.is_uppercase();
        snake.extend(symbol.to_lowercase());
    }
    snake.push('_');
    snake
}

/// Returns the names of the directories in `engine/forms/`.
fn forms() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/forms");
    let entries = fs::read_dir(root).unwrap().map(|entry| entry.unwrap());
    let directories = entries.filter(|entry| entry.path().is_dir());
    let forms: Vec<String> = directories
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(forms.len() > 10, "only {} forms", forms.len());
    forms
}

/// Returns the forms that the code of a file names, alone or as a part of a longer name.
fn forms_named<'f>(forms: &'f [String], code: &str) -> BTreeSet<&'f str> {
    let names: BTreeSet<String> = words(code).map(snake).collect();
    let is_named = |form: &&str| {
        let form = format!("_{form}_");
        names.iter().any(|name| name.contains(&form))
    };
    forms.iter().map(String::as_str).filter(is_named).collect()
}

#[test]
fn no_file_outside_the_directory_of_a_form_names_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let all = forms();
    let (mut wrong, mut used) = (Vec::new(), BTreeSet::new());
    for path in sources() {
        let inside = path
            .strip_prefix(&root)
            .unwrap()
            .display()
            .to_string()
            .replace('\\', "/");
        let code = code_without_texts(&fs::read_to_string(&path).unwrap());
        for form in forms_named(&all, &code) {
            let exception = NAME_FORMS.iter().find(|(start, forms)| {
                inside.starts_with(start) && forms.is_none_or(|forms| forms.contains(&form))
            });
            match exception {
                _ if inside.starts_with(&format!("engine/forms/{form}/")) => {}
                Some((start, _)) => {
                    used.insert((*start, form));
                }
                None => wrong.push(format!("{inside} names {form}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (start, forms) in NAME_FORMS {
        let needed = match forms {
            // Not every file that may name all forms names each of them.
            None => used.iter().any(|(file, _)| file == start),
            Some(forms) => forms.iter().all(|form| used.contains(&(*start, *form))),
        };
        assert!(needed, "the exception for {start} is not used: {forms:?}");
    }
}

#[test]
fn forms_are_named_in_code_and_not_in_texts_or_comments() {
    let file = "//! eudora\nuse x::{EudoraFile}; // sympa\nf(\"mailman \\\" apple\", '\"', of_thunderbird, OneRtfBody, msgs);\n#[cfg(test)]\nmod tests { hosted }";
    let forms = forms();
    let named: Vec<_> = forms_named(&forms, &code_without_texts(file))
        .into_iter()
        .collect();
    assert_eq!(named, ["eudora", "rtf_body", "thunderbird"]);
}

/// Files that may name formats of mailboxes: the path or its beginning, and the formats, `None` for all of them. Each comment is
/// the reason. All other files ask the table `mailbox::forms::format`, so that a new format of results needs only a
/// writer and its rows.
const NAME_FORMATS: &[(&str, Option<&[&str]>)] = &[
    // The table of the properties, and the table of the writers.
    ("mailbox/forms/format.rs", None),
    ("mailbox/place/delivery/formats/mod.rs", None),
    // The format in which each kind of sources is written.
    ("mailbox/forms/kind.rs", None),
    ("mailbox/result_form.rs", Some(&["Maildir", "Mh"])),
    // How a source is recognised if the user named its format.
    ("mailbox/start.rs", None),
    ("mailbox/find/", Some(&["Maildir", "Mh"])),
    ("mailbox/partial.rs", Some(&["Maildir"])),
    ("mailbox/source.rs", Some(&["Eml", "Maildir"])),
    ("cli/filter.rs", Some(&["Eml"])),
    // Maildirs that are copied to Maildirs.
    ("mailbox/maildir.rs", Some(&["Maildir"])),
    // The result of `merge` if no option names its format, and results that are only counted.
    ("mailbox/collect.rs", Some(&["Maildir", "Mbox"])),
    ("cli/merge/mod.rs", Some(&["Mbox"])),
    // A message proposes an mbox.
    ("mailbox/result.rs", Some(&["Mbox"])),
    // Mail on servers, and mail that is sent to a server, is written to Maildirs.
    ("cli/remote.rs", Some(&["Maildir"])),
    ("cli/serve/mailbox.rs", Some(&["Maildir"])),
];

/// Returns the variants of `Format`, without `Auto`: no format.
fn formats() -> Vec<String> {
    let table = include_str!("../../../src/mailbox/forms/format.rs");
    let body = table.split("pub enum Format {").nth(1).unwrap();
    let variants = body.split('}').next().unwrap().lines().map(str::trim);
    let named = variants.filter_map(|line| line.strip_suffix(','));
    named
        .filter(|name| name.chars().all(char::is_alphanumeric) && *name != "Auto")
        .map(str::to_owned)
        .collect()
}

/// Returns the words after `Format::` in code.
fn formats_named(code: &str) -> BTreeSet<&str> {
    let uses = code.match_indices("Format::").filter(|(at, _)| {
        let before = code[..*at].chars().next_back();
        !before.is_some_and(|it| it.is_alphanumeric() || it == '_')
    });
    uses.filter_map(|(at, path)| words(&code[at + path.len()..]).next())
        .collect()
}

#[test]
fn only_the_table_names_formats_of_mailboxes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let variants = formats();
    assert!(variants.len() > 5, "{variants:?}");
    let table = include_str!("../../../src/mailbox/forms/format.rs");
    let list = table.split("const ALL").nth(1).unwrap();
    let all = list.split("];").next().unwrap();
    let (mut wrong, mut used) = (Vec::new(), BTreeSet::new());
    for variant in &variants {
        assert!(all.contains(&format!("Self::{variant},")), "{variant}");
    }
    for path in sources()
        .into_iter()
        .filter(|path| !path.ends_with("tests.rs"))
    {
        let inside = path
            .strip_prefix(&root)
            .unwrap()
            .display()
            .to_string()
            .replace('\\', "/");
        let code = code_without_texts(&fs::read_to_string(&path).unwrap());
        assert!(!code.contains("use crate::mailbox::Format::"), "{inside}");
        let named = formats_named(&code);
        for variant in variants.iter().filter(|it| named.contains(it.as_str())) {
            let exception = NAME_FORMATS.iter().find(|(start, formats)| {
                inside.starts_with(start)
                    && formats.is_none_or(|formats| formats.contains(&variant.as_str()))
            });
            match exception {
                Some((start, _)) => {
                    used.insert((*start, variant.as_str()));
                }
                None => wrong.push(format!("{inside} names Format::{variant}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (start, formats) in &NAME_FORMATS[1..] {
        let needed = match formats {
            None => used.iter().any(|(file, _)| file == start),
            Some(formats) => formats.iter().all(|it| used.contains(&(*start, *it))),
        };
        assert!(needed, "the exception for {start} is not used: {formats:?}");
    }
}

#[test]
fn formats_of_mailboxes_are_found_in_paths() {
    let code = "Format::Mh | mailbox::Format::Eml => FileFormat::Mbox, NotMail::Format(Maildir)";
    let named: Vec<_> = formats_named(code).into_iter().collect();
    assert_eq!(named, ["Eml", "Mh"]);
}

/// Returns the body of the first function with this name, in the type `within` if there is one.
fn body_of(file: &str, within: Option<&str>, name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = fs::read_to_string(root.join(file)).unwrap();
    let start = within.map_or(0, |within| {
        let headed = source.match_indices("\nimpl").map(|(at, _)| at);
        let head = |at: usize| source[at + 1..].split('{').next().unwrap_or_default();
        let mut of_type = headed.filter(|&at| words(head(at)).any(|word| word == within));
        of_type.next().unwrap_or_else(|| panic!("{file}: {within}"))
    });
    let from = |at: usize| source[start..].find(&format!("fn {name}{}", ["(", "<"][at]));
    let at = start
        + from(0)
            .into_iter()
            .chain(from(1))
            .min()
            .unwrap_or_else(|| panic!("{file}: {name}"));
    let indent = at - source[..at].rfind('\n').map_or(0, |end| end + 1);
    let close = format!(
        "\n{}}}\n",
        if indent >= 4 && within.is_some() {
            "    "
        } else {
            ""
        }
    );
    let end = source[at..].find(&close).unwrap_or(source.len() - at);
    source[at..at + end].to_owned()
}

#[test]
fn call_chains_in_the_design_page_exist_in_the_code_and_are_short() {
    let page = include_str!("../../../docs/design.md");
    let section = page
        .split("## The function calls from main to a reference")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let ways: Vec<&str> = section.split("\n1. ").skip(1).collect();
    assert_eq!(ways.len(), 2);
    for (way, most) in ways.into_iter().zip([18, 18]) {
        let calls: Vec<(&str, &str)> = way
            .lines()
            .filter_map(|line| {
                let mut names = line.split('`').skip(1).step_by(2);
                let (file, call) = (names.next()?, names.next()?);
                (file.ends_with(".rs") && line.ends_with(&format!("`: `{call}`")))
                    .then_some((file, call))
            })
            .collect();
        assert!((10..=most).contains(&calls.len()), "{calls:?}");
        let mut before = String::new();
        for pair in calls.windows(2) {
            let (within, name) = match pair[0].1.split_once("::") {
                Some((within, name)) => (Some(within), name),
                None => (None, pair[0].1),
            };
            let body = body_of(pair[0].0, within, name);
            let next = pair[1].1.rsplit("::").next().unwrap();
            // A closure may be passed to the function that calls it.
            let calls = |body: &str| {
                ["", "_program"]
                    .iter()
                    .any(|more| body.contains(&format!("{next}{more}(")))
            };
            assert!(calls(&body) || calls(&before), "{pair:?}");
            before = body;
        }
    }
}

#[test]
fn no_test_file_is_forgotten() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut folders: Vec<PathBuf> = fs::read_dir(tests.join("it"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    assert!(folders.len() > 5, "{} subjects", folders.len());
    folders.push(tests.join("unit"));
    let mut files = 0;
    for folder in folders {
        let list = fs::read_to_string(folder.join("mod.rs")).unwrap();
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if path.extension().is_some_and(|suffix| suffix == "rs") && name != "mod" {
                // The line may begin with `pub(crate)`.
                let line = format!("mod {name};\n");
                assert!(
                    list.contains(&line),
                    "{} does not name {name}",
                    folder.display()
                );
                files += 1;
            }
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

/// Files outside `cli` that contain names of options in strings.
const NAME_OPTIONS: &[&str] = &[
    // The advice about a self-extracting script names options of the script.
    "mailbox/not_mail.rs",
    // The text that identifies a cache of an earlier version contains the name of an option.
    "platform/disk/layout.rs",
    // Clients of the service get these sentences, and tell the user who starts it.
    "serve/problem.rs",
];

/// Returns the string literals of a file without its tests.
fn texts(file: &str) -> Vec<String> {
    let file = file.split("\n#[cfg(test)]\nmod ").next().unwrap();
    let code: String = file
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    code.replace("\\\\", "")
        .replace("\\\"", "")
        .replace("'\"'", "")
        .split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Returns whether a text contains a word such as `--max-body`. `\n--b` is a boundary line.
fn names_an_option(text: &str) -> bool {
    text.match_indices("--").any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + 2..].chars();
        before.is_none_or(|symbol| " (`".contains(symbol))
            && after
                .next()
                .is_some_and(|symbol| symbol.is_ascii_lowercase())
            && after
                .next()
                .is_some_and(|symbol| symbol.is_ascii_lowercase())
    })
}

#[test]
fn code_never_ignores_a_refused_edit() {
    let mut wrong = Vec::new();
    for path in sources() {
        let text = code(&fs::read_to_string(&path).unwrap());
        let adds = |line: &str| line.contains("edits.add(") || line.contains("Edits::of(");
        let is_tests = path.ends_with("tests.rs");
        let passed_over = |line: &str| line.contains("let _ =") || line.contains(".ok();");
        let lines = text
            .lines()
            .filter(|line| adds(line) && passed_over(line) && !is_tests);
        wrong.extend(lines.map(|line| format!("{}: {}", path.display(), line.trim())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_command_line_names_options() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut wrong, mut named) = (Vec::new(), 0);
    for path in sources() {
        let inside = path.strip_prefix(&root).unwrap().display().to_string();
        let all = texts(&fs::read_to_string(&path).unwrap());
        let found = all.iter().filter(|text| names_an_option(text));
        if module_of(&path).is_some_and(|module| module == "cli") {
            named += found.count();
        } else if !NAME_OPTIONS.contains(&inside.as_str()) {
            wrong.extend(found.map(|text| format!("{inside}: {text}")));
        } else {
            assert!(found.count() > 0, "{inside} names none");
        }
    }
    assert!(
        named > 50,
        "only {named} texts of the command line name an option"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn checker_finds_option_names_only_in_string_literals() {
    let file = "/// `--range`\nf(\"a (--cache)\", \"\\n--b\", '\"', \"it\\\"s --quiet\"); // --x\n#[cfg(test)]\nmod t \"--ab\"";
    let texts = texts(file);
    let found: Vec<&String> = texts.iter().filter(|text| names_an_option(text)).collect();
    assert_eq!(found, ["a (--cache)", "its --quiet"]);
}

#[test]
fn import_checker_ignores_comments_and_reads_use_lists() {
    let text = "use crate::span::Span; // see crate::cli\n/// [`x`](crate::expand)\nuse crate::{\n    mime::{self, Tree},\n    plan, report::Row,\n};\nfn f() { crate::fetch::g() }\n";
    assert_eq!(
        modules_used(&code(text)),
        ["span", "mime", "plan", "report", "fetch"]
    );
}
