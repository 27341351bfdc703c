//! `--help`, `embody man` and `embody completions`.

use std::fs;
use std::process::Command;

use crate::common::programs::embody;

fn printed(arguments: &[&str]) -> String {
    let output = embody()
        .args(arguments)
        .env_remove("COLUMNS")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    assert!(!output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that the program's own help lists.
fn commands() -> Vec<String> {
    let help = printed(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let names: Vec<String> = list
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .filter(|name| name != "help")
        .collect();
    assert!(names.contains(&"filter".to_owned()), "{names:?}");
    names
}

#[test]
fn the_short_help_of_each_command_fits_a_screen_and_has_an_example() {
    for command in commands() {
        let help = printed(&[&command, "-h"]);
        assert!(help.lines().count() <= 24, "{help}");
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
        assert_eq!(
            help.matches(&format!("Example: embody {command}")).count(),
            1,
            "{help}"
        );
    }
    let help = printed(&["-h"]);
    assert!(help.lines().count() <= 24 && help.contains("Example: embody filter"));
}

#[test]
fn the_long_help_says_all_options_within_80_columns() {
    let help = printed(&["filter", "--help"]);
    for option in [
        "--fetch",
        "--map",
        "--allow-net",
        "--max-header",
        "--config",
    ] {
        assert!(help.contains(option), "{option}");
    }
    for line in help.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn a_page_is_printed_or_one_for_each_command_is_written() {
    let printed = printed(&["man"]);
    assert!(printed.contains(".TH embody 1"), "{printed}");

    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man/man1");
    let output = embody().arg("man").arg(&pages).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(fs::read_to_string(pages.join("embody.1")).unwrap(), printed);
    for command in commands() {
        let page = fs::read_to_string(pages.join(format!("embody-{command}.1"))).unwrap();
        assert!(page.contains("Example: embody"), "{page}");
        assert!(
            printed.contains(&format!("embody\\-{command}(1)")),
            "{printed}"
        );
    }
    let written = fs::read_dir(&pages).unwrap().count();
    assert_eq!(
        written,
        commands().len() + 1,
        "no page is there that nothing names"
    );
}

#[test]
fn a_page_that_cannot_be_written_is_trouble() {
    let output = embody().args(["man", "/dev/null/man1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn completions_know_the_options() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        assert!(script.contains("allow-host"), "{shell}");
    }
}

#[test]
fn bash_takes_its_completions() {
    let script = printed(&["completions", "bash"]);
    let asked = format!(
        "{script}\nCOMP_WORDS=(embody filter --max-f); COMP_CWORD=2; \
        _embody embody --max-f filter; echo \"${{COMPREPLY[*]}}\""
    );
    let Ok(output) = Command::new("bash").args(["-c", &asked]).output() else {
        return;
    };
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "--max-fetches",
        "{output:?}"
    );
}
