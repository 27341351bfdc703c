//! README.md, CONTRIBUTING.md and docs/ describe the program correctly.
//!
//! The commands in README.md and docs/ are run unchanged: `sh` blocks line by line, and `console` blocks line by line after
//! their `$ `, with a comparison of the output. For commands that cannot be run in a test, `ELSEWHERE` names the place where
//! they are run. Any other command fails the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::programs::embody;

/// A command that is not run here, the file that runs it, and the line there. For a benchmark, that it is built.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "cargo run -- filter samples/postcard.in.eml",
        ".ci/run",
        "target/debug/embody filter samples/postcard.in.eml | cmp - samples/postcard.out.eml",
    ),
    ("cargo test", ".ci/run", "EMBODY_REQUIRE_ALL=1 cargo test"),
    (
        "cargo test fuzz_replay::",
        ".ci/run",
        "EMBODY_REQUIRE_ALL=1 cargo test",
    ),
    (
        "cargo bench --features internals --bench micro",
        ".ci/run",
        "cargo clippy --all-targets --features internals",
    ),
    (
        "cargo install --locked --path .",
        ".ci/run",
        "cargo install --locked --path .",
    ),
    (
        "cargo install --profile dist --locked --path .",
        ".ci/packages",
        "cargo build --profile dist --locked",
    ),
    (
        "tests/peers/check",
        ".ci/run",
        "tests/peers/check --embody \"$installed/bin/embody\"",
    ),
    (
        "embody inspect --html report.html takeout.zip",
        "tests/it/docs/first_screen.rs",
        "fn commands_of_the_first_screen_on_a_takeout_succeed",
    ),
    (
        "embody embed whole.mbox --output kept.mbox",
        "tests/it/docs/first_screen.rs",
        "fn commands_of_the_first_screen_on_a_takeout_succeed",
    ),
    (
        "embody compare takeout.zip kept.mbox",
        "tests/it/docs/first_screen.rs",
        "fn commands_of_the_first_screen_on_a_takeout_succeed",
    ),
    (
        "embody recover takeout.zip --output whole.mbox",
        "tests/it/docs/first_screen.rs",
        "fn commands_of_the_first_screen_on_a_takeout_succeed",
    ),
    (
        "embody detach --store attachments kept.mbox --output small.mbox",
        "tests/it/docs/first_screen.rs",
        "fn commands_of_the_first_screen_on_a_takeout_succeed",
    ),
    (
        "embody restore --store attachments small.mbox --output back.mbox",
        "tests/it/docs/first_screen.rs",
        "fn commands_of_the_first_screen_on_a_takeout_succeed",
    ),
    // The command changes another package. The features of the library are compiled one by one.
    (
        "cargo add --path ../embody",
        ".ci/run",
        "cargo clippy --lib --no-default-features --features",
    ),
    // Large packages that a developer installs.
    (
        ".ci/peers",
        ".ci/peers",
        "tests/peers/embed --embody target/debug/embody",
    ),
    // This command would need a public host. The test runs it with a local one.
    (
        "embody filter --fetch https --allow-host '*.example.org' < in.eml > out.eml",
        "tests/it/fetch/fetch_cli.rs",
        "fn http_and_https_bring_the_body_compressed_and_redirected",
    ),
    // The program runs until it is stopped.
    (
        "embody milter --config /etc/embody/milter.toml --listen unix:/var/spool/postfix/embody/milter.sock --socket-group postfix",
        "tests/it/mta/milter.rs",
        "fn postfix_settings_on_the_milter_page_work_as_pasted",
    ),
    (
        "cargo bench --features internals --bench micro",
        ".ci/run",
        "cargo clippy --all-targets",
    ),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(super) fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// Returns README.md and the pages in docs/, by name.
fn pages() -> Vec<(String, String)> {
    let mut names = vec!["README.md".to_owned()];
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") {
            names.push(format!("docs/{name}"));
        }
    }
    assert!(names.len() >= 9, "{names:?}");
    names.sort();
    let text = |name: String| (name.clone(), read(&name));
    names.into_iter().map(text).collect()
}

/// Returns the code blocks of a page: language and text.
pub(super) fn blocks(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks.map(|block| block.split_once('\n').expect("a block has lines"))
}

/// Returns the texts in backticks outside code blocks.
fn quoted(page: &str) -> impl Iterator<Item = &str> {
    let outside = page.split("\n```").step_by(2);
    outside.flat_map(|text| text.split('`').skip(1).step_by(2))
}

#[test]
fn the_front_page_is_short_and_begins_with_a_command() {
    let readme = read("README.md");
    let lines = readme.lines().count();
    let words = readme.split_whitespace().count();
    assert!(lines <= 110 && words <= 900, "{lines} lines, {words} words");
    let first = blocks(&readme).next();
    assert!(first.is_some_and(|(_, command)| command.starts_with("embody inspect --html")));
    let screen: String = readme.lines().take(40).collect();
    for name in [
        "Google Takeout",
        "Gmail",
        "Thunderbird",
        "Apple Mail",
        "Maildir",
        "mbox",
        "Mailman",
        "Postfix",
        "procmail",
    ] {
        assert!(
            screen.contains(name),
            "the first screen does not say {name}"
        );
    }
}

#[test]
fn the_table_of_access_types_and_schemes_is_what_the_program_prints() {
    let output = embody().arg("schemes").output().expect("embody can be run");
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).expect("the tables are text");
    let page = read("docs/schemes.md");
    let table = page.find("| reference |").expect("the page has a table");
    let (first, second) = printed.split_once("\n\n").expect("two tables");
    let (table, _) = page[table..].split_once("\n\n").expect("text behind it");
    assert_eq!(table, first);
    assert!(
        second.contains("| who learns of a retrieval (2.4) |"),
        "{second}"
    );
}

/// Adds the recipes in samples/recipes, with their names.
fn recipes(folder: &Path, beneath: &str, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("the recipes are there") {
        let path = entry.expect("a folder can be read").path();
        let file_name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{beneath}{file_name}");
        if path.is_dir() {
            recipes(&path, &format!("{name}/"), found);
        } else {
            let text = fs::read_to_string(&path).expect("a recipe is text");
            found.push((name, text));
        }
    }
}

#[test]
fn pages_show_each_recipe_file_without_its_comments() {
    let page = read("docs/recipes.md") + &read("docs/milter.md");
    // Commands that a user types are run with those of the other pages.
    let is_typed = |(language, text): &(&str, &str)| *language == "sh" && !text.starts_with("#!");
    // Output of embody, and the command that printed it.
    let is_output = |text: &str| text.starts_with("embody: ") || text.starts_with("embody milter ");
    let is_recipe = |block: &(&str, &str)| !is_typed(block) && !is_output(block.1);
    let mut shown: Vec<&str> = blocks(&page)
        .filter(is_recipe)
        .map(|(_, text)| text)
        .collect();
    let mut found = Vec::new();
    recipes(&root().join("samples/recipes"), "", &mut found);
    assert!(found.len() >= 10, "{} recipes", found.len());
    for (name, text) in found {
        let named = format!("`samples/recipes/{name}`");
        assert!(page.contains(&named), "{named} is not named");
        let is_shown = |line: &&str| {
            let line_begins = |word| line.trim_start().starts_with(word);
            let comment = line_begins("dnl ") || (line_begins("#") && !line.starts_with("#!"));
            !comment && !line.trim().is_empty()
        };
        let lines: Vec<&str> = text.lines().filter(is_shown).collect();
        let block = lines.join("\n");
        let place = shown.iter().position(|other| *other == block);
        shown.swap_remove(place.unwrap_or_else(|| panic!("{name} is not shown as\n{block}")));
    }
    assert!(shown.is_empty(), "these are no recipes: {shown:#?}");
}

/// A command, and its expected output.
#[derive(Debug)]
struct Shown {
    command: String,
    output: Option<String>,
}

/// Returns the commands in code blocks. Scripts (`#!`) are not run.
fn commands() -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    for (name, page) in pages() {
        for (language, text) in blocks(&page) {
            match language {
                "sh" if !text.starts_with("#!") => {
                    assert!(!text.contains("\\\n"), "one command, one line: {text}");
                    found.extend(text.lines().map(|line| Shown {
                        command: line.to_owned(),
                        output: None,
                    }));
                }
                "console" => {
                    for line in text.lines() {
                        if let Some(command) = line.strip_prefix("$ ") {
                            found.push(Shown {
                                command: command.to_owned(),
                                output: Some(String::new()),
                            });
                        } else {
                            let last = found.last_mut().expect("a command comes first");
                            let output = last.output.get_or_insert_default();
                            output.push_str(line);
                            output.push('\n');
                        }
                    }
                }
                // tests/it/cli/python.rs runs the blocks in Python. Those in Rust are also in the documentation of the library,
                // whose examples are tests. tests/it/serve/contract.rs uses the block in YAML.
                "sh" | "text" | "toml" | "python" | "rust" | "yaml" => {}
                other => panic!("{name}: a block of {other:?}: is it run?"),
            }
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the copy can be made");
    for entry in fs::read_dir(from).expect("samples can be read") {
        let entry = entry.expect("samples can be read");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a sample can be copied");
        }
    }
}

fn is_elsewhere(command: &str) -> bool {
    ELSEWHERE.iter().any(|(listed, _, _)| *listed == command)
}

/// Replaces the time that a run took, such as ` in 0.1 s`.
fn without_seconds(text: &str) -> String {
    let lines = text.split('\n').map(|line| match line.rsplit_once(" in ") {
        Some((before, time)) if time.ends_with(" s.") || time.ends_with(" s") => {
            format!("{before} in TIME")
        }
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_commands_run_and_print_what_is_shown() {
    // A mail contains the path of its store, so the sizes in the pages depend on the length of the path.
    let folder = tempfile::tempdir_in("/tmp").expect("a folder can be made");
    let here = folder.path();
    copy(&root().join("samples"), &here.join("samples"));
    let built = Path::new(env!("CARGO_BIN_EXE_embody"))
        .parent()
        .expect("the program is in a folder");
    let path = format!("{}:/usr/bin:/bin", built.display());

    let mut compared = 0;
    for Shown { command, output } in commands() {
        if is_elsewhere(&command) {
            assert!(output.is_none(), "nobody compares the output of {command}");
            continue;
        }
        let program = command.split(' ').next().unwrap_or_default();
        assert!(
            ["embody", "cp", "mkdir"].contains(&program),
            "{command}: neither run here nor listed in ELSEWHERE"
        );
        // `inspect` sends no requests. Other commands that retrieve from the internet cannot be run in a test.
        let asks = command.matches("--fetch ").count() != command.matches("--fetch file ").count();
        assert!(
            !asks || command.starts_with("embody inspect "),
            "{command}: retrieves, so it belongs into ELSEWHERE"
        );
        let ran = Command::new("sh")
            .args(["-c", &format!("exec 2>&1; {command}")])
            .current_dir(here)
            .env("HOME", here.join("home"))
            .env("PATH", &path)
            .stdin(Stdio::null())
            .output()
            .expect("sh can be run");
        let printed = String::from_utf8(ran.stdout).expect("embody prints text");
        assert!(ran.status.success(), "{command}: {printed}");
        if let Some(shown) = output {
            // A busy machine takes longer than the page says.
            assert_eq!(
                without_seconds(&printed),
                without_seconds(&shown),
                "{command}"
            );
            compared += 1;
        }
    }
    assert!(compared >= 5, "{compared} outputs compared");

    // The files that the commands created are those that the text describes.
    let read = |name: &str| fs::read(here.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
    assert_eq!(read("filled.eml"), read("samples/postcard.out.eml"));
    assert_eq!(read("same.eml"), read("samples/untouched/https.in.eml"));
    assert_eq!(read("whole.eml"), read("samples/wild/detached.out.eml"));
    let attached = read("samples/detach/attachment.in.eml");
    assert!(read("small.eml").len() < attached.len());
    assert_eq!(read("back.eml"), attached);
    assert_eq!(read("new.mbox"), read("mine.mbox"));
    assert_eq!(read("mine.mbox.old"), read("samples/mailbox.mbox"));
    assert_ne!(read("new.mbox"), read("mine.mbox.old"));
    let attached = read("samples/detach/attachment.in.eml");
    assert_eq!(read("export.eml"), attached);
    assert!(read("detached.eml").len() < attached.len());
    let before = fs::read(root().join("samples/mailbox.mbox")).expect("the sample is there");
    let after = read("samples/mailbox.mbox");
    assert_eq!(after, before, "a reader's samples stay");
    let page = read("home/.local/share/man/man1/embody.1");
    assert!(page.windows(3).any(|word| word == b".TH"));
}

#[test]
fn a_command_that_is_not_run_here_is_shown_and_run_where_the_list_says() {
    let shown = commands();
    let pages = pages();
    for (command, file, line) in ELSEWHERE {
        let is_quoted = |(_, page): &(String, String)| quoted(page).any(|text| text == *command);
        let is_shown = shown.iter().any(|shown| shown.command == *command);
        assert!(
            is_shown || pages.iter().any(is_quoted),
            "no page shows {command} any more"
        );
        assert!(read(file).contains(line), "{file} does not run {line}");
    }
}

fn help(command: &str) -> String {
    let ran = embody()
        .args([command, "--help-all"])
        .output()
        .expect("embody can be run");
    assert!(ran.status.success(), "embody {command} is no command");
    String::from_utf8(ran.stdout).expect("help is text")
}

#[test]
fn commands_and_options_in_the_text_of_pages_exist() {
    let all = [
        "filter", "convert", "embed", "recover", "inspect", "split", "detach", "restore", "store",
        "milter", "compare", "merge", "serve",
    ]
    .map(help)
    .concat();
    let mut named = Vec::new();
    let mut options = 0;
    for (name, page) in pages() {
        for text in quoted(&page) {
            let mut words = text.split_whitespace().filter(|word| *word != "help");
            let first = words.clone().next();
            if let Some(option) = first.filter(|word| word.len() > 2 && word.starts_with("--")) {
                assert!(all.contains(option), "{name}: {option} is no option");
                options += 1;
            }
            if text.starts_with("cargo ") {
                assert!(is_elsewhere(text), "{name}: {text}: who runs it?");
            }
            if words.next() != Some("embody") {
                continue;
            }
            let Some(command) = words.next().filter(|word| *word != "|") else {
                continue; // The program itself, or a pipe that is talked about.
            };
            let help = help(command);
            for option in words.filter(|word| word.starts_with("--")) {
                assert!(help.contains(option), "embody {command} has no {option}");
            }
            named.push(command.to_owned());
        }
    }
    assert!(options > 30, "{options} options found");
    let commands = "filter convert inspect detach restore store schemes man completions";
    for command in commands.split(' ') {
        assert!(named.iter().any(|named| named == command), "{command}");
    }
}

#[test]
fn before_and_after_on_the_front_page_match_the_sample() {
    let page = read("docs/README.md");
    let mut shown = blocks(&page).filter(|(language, _)| *language == "text");
    for sample in ["samples/postcard.in.eml", "samples/postcard.out.eml"] {
        let (_, block) = shown.next().expect("docs/README.md shows a part");
        // Each line is a line of the sample, in order. A shortened line contains dots.
        let sample = read(sample);
        let mut lines = sample.lines();
        let mut seen = 0;
        for line in block.lines() {
            let found = match line.split_once("...") {
                Some((start, _)) => lines.any(|other| other.starts_with(start)),
                None => lines.any(|other| other == line),
            };
            assert!(found, "the sample has no such line here: {line}");
            seen += 1;
        }
        assert!(seen >= 4, "{seen} lines");
    }
}

/// Returns the identifier of a heading in links.
fn anchor(heading: &str) -> String {
    let is_dropped = |sign: char| !sign.is_alphanumeric() && !" -".contains(sign);
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .replace(is_dropped, "")
        .replace(' ', "-")
}

/// Returns the files in a directory of the repository.
fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn sections_that_comments_name_exist() {
    let mut named = 0;
    for file in files("src").into_iter().chain(files("tests")) {
        let Ok(text) = fs::read_to_string(&file) else {
            continue; // Mail in bytes that are no text.
        };
        // A comment may have a line break between the page and the section.
        let text = text.replace("\n//! ", " ");
        for citation in text.split("docs/").skip(1) {
            let Some((page, rest)) = citation.split_once(", \"") else {
                continue;
            };
            let is_page = page.ends_with(".md") && !page.contains([' ', '/', '"']);
            let Some((section, _)) = rest.split_once('"').filter(|_| is_page) else {
                continue;
            };
            let is_heading = |line: &str| line.trim_start_matches('#') == format!(" {section}");
            let page = format!("docs/{page}");
            let exists = read(&page).lines().any(is_heading);
            assert!(exists, "{} names {page}, {section:?}", file.display());
            named += 1;
        }
    }
    assert!(named > 10, "{named} sections");
}

#[test]
fn files_and_links_that_are_named_exist() {
    let sources = files("src");
    let (mut paths, mut links) = (0, 0);
    let contributing = ("CONTRIBUTING.md".to_owned(), read("CONTRIBUTING.md"));
    for (name, page) in pages().into_iter().chain([contributing]) {
        for text in quoted(&page).filter(|text| !text.contains([' ', '*'])) {
            let folders = [
                "src/",
                "tests/",
                "benches/",
                "docs/",
                "examples/",
                "samples/",
                ".ci/",
            ];
            if folders.iter().any(|folder| text.starts_with(folder)) {
                assert!(root().join(text).exists(), "{name} names {text}");
                paths += 1;
            } else if text.ends_with(".rs") {
                let is_there = sources.iter().any(|source| source.ends_with(text));
                assert!(is_there, "{name} names {text}");
                paths += 1;
            }
        }
        let beside = root().join(&name);
        for target in page.split("](").skip(1) {
            let target = target.split(')').next().unwrap_or_default();
            let (file, section) = target.split_once('#').unwrap_or((target, ""));
            let linked = beside.with_file_name("").join(file);
            assert!(linked.exists(), "{name} links {target}");
            if !section.is_empty() {
                let linked = fs::read_to_string(linked).expect("a page is text");
                let is_linked = |line: &str| line.starts_with('#') && anchor(line) == section;
                assert!(linked.lines().any(is_linked), "{name} links {target}");
            }
            links += 1;
        }
    }
    assert!(paths > 50 && links > 10, "{paths} paths, {links} links");
}
