//! The commands that README.md shows are run here as they stand there, and print what it says.
//!
//! `sh` blocks are run line by line, `console` blocks line by line behind their `$ ` and compared
//! with what is shown. The few that cannot be run in a test say in `ELSEWHERE` who runs them;
//! whatever is in neither set fails.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::programs::embody;

const README: &str = include_str!("../README.md");

/// A command that is not run here, who runs it, and the line that does; none where a person does.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "cargo run --release -- filter samples/postcard.in.eml",
        ".ci/run",
        "cargo run --release --quiet -- filter samples/postcard.in.eml | cmp - samples/postcard.out.eml",
    ),
    ("cargo test", ".ci/run", "EMBODY_REQUIRE_ALL=1 cargo test"),
    (
        "cargo install --locked --path .",
        ".ci/run",
        "cargo install --locked --path .",
    ),
    (
        "tests/peers/check",
        ".ci/run",
        "tests/peers/check --embody target/release/embody",
    ),
    // Its host is the whole world's: with one of our own it is tried there.
    (
        "embody filter --fetch https --allow-host '*.example.org' < in.eml > out.eml",
        "tests/fetch_cli.rs",
        "fn http_and_https_bring_the_body_compressed_and_redirected",
    ),
    // Takes minutes and an idle machine; that each bench can be built is clippy's to see.
    (
        "cargo bench --bench figures",
        ".ci/run",
        "cargo clippy --all-targets",
    ),
    (
        "cargo bench --bench NAME",
        ".ci/run",
        "cargo clippy --all-targets",
    ),
];

/// One command and what README shows of its output.
#[derive(Debug)]
struct Shown {
    command: String,
    output: Option<String>,
}

/// The commands in blocks of that language; programs (`#!`) are shown, not run.
fn commands() -> Vec<Shown> {
    let mut found = Vec::new();
    let mut blocks = README.split("\n```").skip(1).step_by(2);
    for block in &mut blocks {
        let (language, text) = block.split_once('\n').expect("a block has lines");
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
            "sh" | "text" | "toml" => {}
            other => panic!("a block of {other:?}: is it run?"),
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

#[test]
fn the_commands_run_and_print_what_is_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder can be made");
    let here = folder.path();
    copy(&root.join("samples"), &here.join("samples"));
    let built = Path::new(env!("CARGO_BIN_EXE_embody"));
    let built = built.parent().expect("the program is in a folder");
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
        // inspect asks nobody; what retrieves from strangers has no place in a test.
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
            assert_eq!(printed, shown, "{command}");
            compared += 1;
        }
    }
    assert!(compared >= 5, "{compared} outputs compared");

    // What the commands left behind is what the text around them promises.
    let read = |name: &str| fs::read(here.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
    assert_eq!(read("filled.eml"), read("samples/postcard.out.eml"));
    assert_eq!(read("same.eml"), read("samples/untouched/https.in.eml"));
    assert_eq!(read("whole.eml"), read("samples/wild/detached.out.eml"));
    assert_eq!(read("new.mbox"), read("mine.mbox"));
    assert_eq!(read("mine.mbox.old"), read("samples/mailbox.mbox"));
    assert_ne!(read("new.mbox"), read("mine.mbox.old"));
    let before = fs::read(root.join("samples/mailbox.mbox")).expect("the sample is there");
    assert_eq!(
        read("samples/mailbox.mbox"),
        before,
        "a reader's samples stay"
    );
    let page = read("home/.local/share/man/man1/embody.1");
    assert!(page.windows(3).any(|word| word == b".TH"));
    assert!(!read("home/.local/share/bash-completion/completions/embody").is_empty());
}

#[test]
fn a_command_that_is_not_run_here_is_in_the_readme_and_run_where_the_list_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shown = commands();
    for (command, file, line) in ELSEWHERE {
        assert!(
            shown.iter().any(|shown| shown.command == *command)
                || README.contains(&format!("`{command}`")),
            "README.md does not show {command} any more"
        );
        let text =
            fs::read_to_string(root.join(file)).unwrap_or_else(|why| panic!("{file}: {why}"));
        assert!(text.contains(line), "{file} does not run {line}");
    }
}

/// Texts in backticks outside of blocks.
fn quoted() -> Vec<&'static str> {
    README
        .split("\n```")
        .step_by(2)
        .flat_map(|text| text.split('`').skip(1).step_by(2))
        .collect()
}

#[test]
fn commands_within_the_text_and_the_summary_exist() {
    let help = |command: &str| {
        let ran = embody()
            .args([command, "--help"])
            .output()
            .expect("embody can be run");
        assert!(ran.status.success(), "embody {command} is no command");
        String::from_utf8(ran.stdout).expect("help is text")
    };
    // The summary of commands is the one block of text whose lines all name the program.
    let summary = README
        .split("\n```text\n")
        .find(|block| block.starts_with("embody filter"))
        .and_then(|block| block.split("\n```").next())
        .expect("README.md has a summary of commands");
    let mut named = Vec::new();
    for text in summary
        .lines()
        .flat_map(|line| line.split(", "))
        .chain(quoted())
    {
        let Some(text) = text.strip_prefix("embody ") else {
            assert!(
                !text.starts_with("cargo ") || is_elsewhere(text),
                "{text}: who runs it?"
            );
            continue;
        };
        let mut words = text.split_whitespace();
        let command = words.next().unwrap_or_default();
        if command == "|" {
            continue; // A pipe is talked about.
        }
        let help = help(command);
        for option in words.filter(|word| word.starts_with("--")) {
            assert!(help.contains(option), "embody {command} has no {option}");
        }
        named.push(command);
    }
    for command in [
        "filter",
        "convert",
        "inspect",
        "schemes",
        "man",
        "completions",
    ] {
        assert!(
            named.contains(&command),
            "README.md does not name {command}"
        );
    }
}

#[test]
fn before_and_after_are_the_sample() {
    let (before, after) = README
        .split_once("\nAfter, what `embody filter` writes:\n")
        .expect("README.md shows what is written");
    let sample = |name: &str| {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("samples")
            .join(name);
        fs::read_to_string(file).expect("the sample is there")
    };
    for (shown, sample) in [
        (before, sample("postcard.in.eml")),
        (after, sample("postcard.out.eml")),
    ] {
        let block = shown
            .split("\n```text\n")
            .nth(1)
            .and_then(|block| block.split("\n```").next())
            .expect("README.md shows a part");
        // Each line is one of the sample's, in its order; one that is shortened says so by dots.
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
        assert!(seen >= 7, "{seen} lines");
    }
}
