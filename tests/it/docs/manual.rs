//! `--help`, `embody man` and `embody completions`.

use std::collections::BTreeSet;
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

/// Returns the commands in the help of the program.
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

/// Returns the long options of each command, from the completions for bash.
fn options_of(command: &str) -> Vec<String> {
    let script = printed(&["completions", "bash"]);
    let start = format!("        embody__subcmd__{command})\n");
    let (_, block) = script.split_once(&start).expect(command);
    let (_, words) = block.split_once("opts=\"").unwrap();
    let (words, _) = words.split_once('"').unwrap();
    // The former name of --follow is hidden, and so is an option that the milter rejects.
    let is_hidden =
        |word: &str| word == "--shortcuts" || (command == "milter" && word == "--resolver");
    let names = words
        .split(' ')
        .filter(|word| word.starts_with("--") && !is_hidden(word));
    names.map(str::to_owned).collect()
}

/// Returns whether a help text or page contains this option, and not only one whose name begins with it.
fn has_option(text: &str, option: &str) -> bool {
    text.lines().any(|line| {
        let mut words = line.split([' ', ',', '=', '[']);
        line.trim_start().starts_with('-') && words.any(|word| word == option)
    })
}

#[test]
fn help_of_each_command_has_at_most_80_lines_and_the_short_help_40() {
    for command in commands() {
        for (level, most) in [("-h", 40), ("--help", 80)] {
            let help = printed(&[&command, level]);
            let lines = help.lines().count();
            assert!(lines <= most, "{command} {level}: {lines} lines\n{help}");
        }
        let help = printed(&[&command, "-h"]);
        let example = format!("Example: embody {command}");
        assert_eq!(help.matches(&example).count(), 1, "{help}");
    }
    let help = printed(&["-h"]);
    assert!(help.lines().count() <= 40 && help.contains("Examples: embody inspect --html"));
    assert!(printed(&["--help"]).lines().count() <= 80);
}

#[test]
fn help_of_all_levels_has_lines_of_at_most_80_columns() {
    for command in commands() {
        for level in ["-h", "--help", "--help-all"] {
            for line in printed(&[&command, level]).lines() {
                assert!(line.chars().count() <= 80, "{command} {level}: {line}");
            }
        }
    }
}

#[test]
fn help_all_and_the_manual_page_have_every_option_of_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let man = embody().arg("man").arg(folder.path()).output().unwrap();
    assert!(man.status.success());
    let mut seen = 0;
    for command in commands() {
        let all = printed(&[&command, "--help-all"]);
        let page = fs::read_to_string(folder.path().join(format!("embody-{command}.1")))
            .unwrap()
            .replace("\\-", "-")
            .replace("\\fB", "")
            .replace("\\fR", "");
        for option in options_of(&command) {
            assert!(has_option(&all, &option), "{command} --help-all: {option}");
            assert!(has_option(&page, &option), "{command}, page: {option}");
            seen += 1;
        }
    }
    assert!(seen > 400, "{seen}");
}

#[test]
fn each_level_of_help_has_the_options_of_the_one_before_and_names_the_next() {
    for command in commands() {
        let [short, long, all] = ["-h", "--help", "--help-all"].map(|it| printed(&[&command, it]));
        let options = options_of(&command);
        let shown = |help: &str| {
            let options = options.iter().filter(|it| has_option(help, it));
            options.cloned().collect::<BTreeSet<_>>()
        };
        assert!(shown(&short).is_subset(&shown(&long)), "{command}");
        assert!(shown(&long).is_subset(&shown(&all)), "{command}");
        if shown(&long) != shown(&all) {
            assert!(
                long.contains(&format!("embody {command} --help-all")),
                "{long}"
            );
        }
    }
    // Limits against malicious mail are only in the longest help.
    let [long, all] = ["--help", "--help-all"].map(|it| printed(&["convert", it]));
    assert!(!has_option(&long, "--max-parts") && has_option(&all, "--max-parts"));
    assert!(has_option(&long, "--proxy"));
}

#[test]
fn options_of_the_help_are_the_last_ones_of_each_help() {
    let mut programs: Vec<Vec<String>> = commands().into_iter().map(|it| vec![it]).collect();
    programs.push(Vec::new());
    for program in programs {
        for level in ["-h", "--help", "--help-all"] {
            let words: Vec<&str> = program.iter().map(String::as_str).chain([level]).collect();
            let help = printed(&words);
            let before_examples = help.split("\nExample").next().unwrap();
            // The lines of a description have a larger indentation.
            let options = before_examples.lines().filter(|line| {
                let option = line.trim_start();
                option.starts_with('-') && line.len() - option.len() <= 6
            });
            let words_of = options.filter_map(|line| line.split_whitespace().next());
            let named: Vec<&str> = words_of.collect();
            assert!(
                named.ends_with(&["-h,", "--help-all", "-V,"]),
                "{words:?}: {help}"
            );
        }
    }
}

#[test]
fn no_sentence_of_a_help_begins_with_also_or_what() {
    for command in commands() {
        for level in ["-h", "--help", "--help-all"] {
            for line in printed(&[&command, level]).lines() {
                for word in ["Also ", "What "] {
                    let begins = line.trim_start().starts_with(word)
                        || line.contains(&format!("  {word}"))
                        || line.contains(&format!(". {word}"));
                    assert!(!begins, "{command} {level}: {line}");
                }
            }
        }
    }
}

#[test]
fn no_section_of_a_help_occurs_twice() {
    for command in commands() {
        let all = printed(&[&command, "--help-all"]);
        let sections: Vec<&str> = all
            .lines()
            .filter(|line| line.ends_with(':') && !line.starts_with(' '))
            .collect();
        let different: BTreeSet<&str> = sections.iter().copied().collect();
        assert_eq!(sections.len(), different.len(), "{command}: {sections:?}");
    }
}

#[test]
fn short_options_mean_the_long_ones() {
    let mut seen = 0;
    for command in commands() {
        let all = printed(&[&command, "--help-all"]);
        for (short, long) in [
            ("-o", "--output"),
            ("-n", "--dry-run"),
            ("-q", "--quiet"),
            ("-v", "--verbose"),
            ("-j", "--jobs"),
        ] {
            let has_both = has_option(&all, short);
            assert_eq!(has_both, has_option(&all, long), "{command} {short}");
            assert_eq!(
                has_both,
                all.contains(&format!("{short}, {long}")),
                "{command}"
            );
            seen += usize::from(has_both);
        }
    }
    assert_eq!(seen, 38);
}

#[test]
fn no_help_names_an_option_that_is_off_or_empty_by_default() {
    for command in commands() {
        let all = printed(&[&command, "--help-all"]);
        assert!(!all.contains("[default: off]"), "{command}: {all}");
        assert!(!all.contains("[default: none]"), "{command}: {all}");
    }
}

#[test]
fn sizes_are_in_bytes_and_the_help_says_what_their_letters_mean() {
    let mut with_sizes = 0;
    for command in commands() {
        let help = printed(&[&command, "--help-all"]);
        let words = help.replace("application/octet-stream", "");
        assert!(!words.contains("octet"), "{command}: {words}");
        assert!(!words.contains("KB"), "{command}: {words}");
        let has_sizes = words.contains("<SIZE>");
        with_sizes += usize::from(has_sizes);
        assert_eq!(words.contains("powers of two"), has_sizes, "{command}");
    }
    assert!(with_sizes >= 6, "{with_sizes}");
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
        for section in ["EXAMPLES", "\"EXIT STATUS\"", "FILES", "\"SEE ALSO\""] {
            assert!(page.contains(&format!("\n.SH {section}\n.TP\n")), "{page}");
        }
        let footer = concat!("\"embody ", env!("CARGO_PKG_VERSION"), "\"");
        let title = page.lines().find(|line| line.starts_with(".TH ")).unwrap();
        assert!(title.contains(footer), "{title}");
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

/// Returns each option of a page with the text after it.
fn options(lines: &[&str], is_option: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut options: Vec<(String, String)> = Vec::new();
    for line in lines {
        if is_option(line) {
            options.push(((*line).to_owned(), String::new()));
        } else if let Some((_, words)) = options.last_mut() {
            words.push_str(line.trim());
            words.push(' ');
        }
    }
    options
}

#[test]
fn every_option_has_its_description_on_every_page() {
    let folder = tempfile::tempdir().unwrap();
    let man = embody().arg("man").arg(folder.path()).output().unwrap();
    assert!(man.status.success());
    let mut seen = 0;
    for command in commands() {
        let help = printed(&["help", &command]);
        assert_eq!(help, printed(&[&command, "--help"]));
        let help = printed(&[&command, "--help-all"]);
        let (before, _) = help.split_once("Examples:\n").unwrap();
        let lines: Vec<&str> = before.lines().collect();
        let mut found = options(&lines, |line| {
            line.starts_with("  ") && !line.starts_with("        ")
        });
        let page = fs::read_to_string(folder.path().join(format!("embody-{command}.1"))).unwrap();
        let (_, behind) = page.split_once("\n.SH OPTIONS\n").unwrap();
        let (before, _) = behind.split_once("\n.SH EXAMPLES\n").unwrap();
        let page = before.replace("\\-", "-").replace("\\fB", "");
        let lines: Vec<&str> = page.lines().filter(|line| *line != ".TP").collect();
        found.extend(options(&lines, |line| {
            line.starts_with("--")
                || line.starts_with("-h")
                || line.starts_with("-V")
                || line.starts_with('[')
        }));
        for (name, words) in found {
            assert!(words.trim().len() > 4, "{command}: {name} has no text");
            // clap prints the default twice if the text names it, too.
            let defaults = words.matches("[default: ").count();
            assert!(defaults <= 1, "{command}: {name} {words}");
            seen += 1;
        }
    }
    assert!(seen > 150, "{seen} options on all pages");
}

#[test]
fn help_begins_with_what_the_list_of_commands_says_and_nothing_else() {
    let list = printed(&["--help"]).replace("\n               ", " ");
    for command in commands() {
        let help = printed(&["help", &command]);
        let (about, rest) = help.split_once("\n\n").unwrap();
        assert!(rest.starts_with("Usage: "), "{help}");
        let listed = list
            .lines()
            .find(|line| line.trim().starts_with(&format!("{command} ")))
            .unwrap();
        assert!(listed.ends_with(about), "{listed}\n{about}");
        assert!(!help.contains('`'), "a comment, not help: {help}");
    }
}

#[test]
fn program_without_arguments_prints_the_short_help_as_a_usage_error() {
    let output = embody().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert_eq!(String::from_utf8_lossy(&output.stderr), printed(&["-h"]));
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
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    for (words, wanted) in [
        ("filter --max-f", "--max-fetches"),
        ("filter --fetch ht", "http https"),
        ("inspect --signed r", "rewrite"),
        ("convert --output fol", "folder"),
    ] {
        let (before, word) = words.rsplit_once(' ').unwrap();
        let previous = before.rsplit(' ').next().unwrap();
        let last = words.split(' ').count();
        let asked = format!(
            "{script}\nCOMP_WORDS=(embody {words}); COMP_CWORD={last}; \
            _embody embody {word} {previous}; echo \"${{COMPREPLY[*]}}\"; complete -p embody"
        );
        let mut bash = Command::new("bash");
        let Ok(output) = bash
            .args(["-c", &asked])
            .current_dir(folder.path())
            .output()
        else {
            return;
        };
        let said = String::from_utf8_lossy(&output.stdout);
        let (completed, declared) = said.split_once('\n').unwrap();
        assert_eq!(completed, wanted, "{words}: {output:?}");
        // With this option, bash appends a slash to a directory instead of a space.
        assert!(declared.contains("-o filenames"), "{declared}");
    }
}

#[test]
fn each_shell_offers_the_schemes() {
    for (shell, words) in [
        ("bash", "http https ftp file"),
        ("zsh", "(http https ftp file)"),
        ("fish", "-l fetch"),
    ] {
        let script = printed(&["completions", shell]);
        let line = script.lines().find(|line| line.contains(words)).unwrap();
        assert!(
            shell != "fish" || line.ends_with("-r -f -a \"http\\t''"),
            "{line}"
        );
    }
}

#[test]
fn help_lists_commands_by_task() {
    let names = commands();
    let first: Vec<&str> = names.iter().take(7).map(String::as_str).collect();
    assert_eq!(
        first,
        [
            "inspect", "recover", "embed", "compare", "merge", "filter", "milter"
        ]
    );
    assert!(has_option(&printed(&["embed", "--help"]), "--archive"));
}

#[test]
fn synopsis_of_a_page_has_no_list_of_options() {
    let folder = tempfile::tempdir().unwrap();
    let man = embody().arg("man").arg(folder.path()).output().unwrap();
    assert!(man.status.success());
    for command in commands() {
        let page = fs::read_to_string(folder.path().join(format!("embody-{command}.1"))).unwrap();
        let (_, rest) = page.split_once("\n.SH SYNOPSIS\n").unwrap();
        let line = rest.lines().next().unwrap();
        let start = format!("\\fBembody {command}\\fR");
        assert!(line.starts_with(&start), "{line}");
        assert!(line.len() < 120, "{line}");
    }
}

#[test]
fn completions_have_the_values_of_options() {
    let script = printed(&["completions", "zsh"]);
    for (option, values) in [
        ("--trackers", "(leave blank fetch)"),
        ("--embed-kinds", "(image font media style)"),
        (
            "--output-format",
            "(auto mbox mboxrd mboxo mboxcl2 maildir mh eml thunderbird)",
        ),
    ] {
        let start = format!("{option}=");
        let mut lines = script.lines().filter(|line| line.contains(&start));
        assert!(lines.any(|line| line.contains(values)), "{option}");
    }
    let follow = script.lines().find(|line| line.contains("--follow="));
    assert!(
        follow.is_some_and(|line| line.contains("mailman-digests") && line.contains("all none"))
    );
}
