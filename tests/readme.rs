//! What README.md says of the code is what the code says.

use std::path::Path;

use crate::common::programs::embody;
use embody::report::Reason;

const README: &str = include_str!("../README.md");

#[test]
fn every_reason_is_in_the_readme_with_its_meaning_and_remedy() {
    assert!(!Reason::ALL.is_empty());
    for reason in Reason::ALL {
        let remedy = match reason.remedy() {
            "" => String::new(),
            remedy => format!("`{remedy}`"),
        };
        let row = format!(
            "| `{}` | {} | {remedy} |",
            reason.as_str(),
            reason.meaning()
        );
        assert!(README.contains(&row), "README.md lacks the row\n{row}");
    }
    let rows = README
        .lines()
        .skip_while(|line| !line.starts_with("| reason |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .count();
    assert_eq!(
        rows,
        Reason::ALL.len(),
        "a row of the README is no reason any more"
    );
}

#[test]
fn every_long_option_of_the_readme_exists() {
    let help = |command: &str| {
        let output = embody()
            .args([command, "--help"])
            .output()
            .expect("embody can be run");
        String::from_utf8(output.stdout).expect("help is text")
    };
    let known = ["filter", "convert", "inspect"].map(help).concat();
    let section = README
        .split("## Options")
        .nth(1)
        .and_then(|behind| behind.split("\n## ").next())
        .expect("the README has a section on options");
    let mut seen = 0;
    for word in section.split(|symbol: char| !symbol.is_ascii_alphanumeric() && symbol != '-') {
        if word.len() > 3 && word.starts_with("--") && !word.starts_with("---") {
            assert!(known.contains(word), "{word} is no option");
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen} options found");
}

/// Recipes and their names beneath samples/recipes.
fn recipes(folder: &Path, beneath: &str, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).expect("the recipes are there") {
        let path = entry.expect("a folder can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{beneath}{name}");
        if path.is_dir() {
            recipes(&path, &format!("{name}/"), found);
        } else {
            let text = std::fs::read_to_string(&path).expect("a recipe is text");
            found.push((name, text));
        }
    }
}

#[test]
fn the_readme_shows_each_recipe_as_it_is_without_its_comments() {
    let section = README
        .split("\n## In the mail system\n")
        .nth(1)
        .and_then(|behind| behind.split("\n## ").next())
        .expect("the README has a section on mail systems");
    let mut shown: Vec<String> = section
        .split("\n```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.split_once('\n'))
        .map(|(_language, text)| text.to_owned())
        .collect();
    let mut found = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/recipes");
    recipes(&folder, "", &mut found);
    assert!(found.len() >= 10, "{} recipes", found.len());
    for (name, text) in found {
        let named = format!("`samples/recipes/{name}`");
        assert!(section.contains(&named), "README.md does not name {named}");
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| {
                let comment = line.trim_start().starts_with('#') && !line.starts_with("#!");
                !comment && !line.trim().is_empty()
            })
            .collect();
        let lines = lines.join("\n");
        let place = shown.iter().position(|block| *block == lines);
        let place = place.unwrap_or_else(|| panic!("README.md does not show {name} as\n{lines}"));
        shown.swap_remove(place);
    }
    assert!(shown.is_empty(), "these are no recipes: {shown:#?}");
}

#[test]
fn the_tables_of_access_types_and_schemes_are_what_the_program_prints() {
    let output = embody().arg("schemes").output().expect("embody can be run");
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).expect("the tables are text");
    let section = README
        .split("## Access types and URL schemes\n")
        .nth(1)
        .and_then(|behind| behind.split("\n## ").next())
        .expect("the README has a section on access types");
    let (_, tables) = section
        .split_once("| reference |")
        .expect("the section has a table");
    assert_eq!(format!("| reference |{tables}"), printed);
}

/// Names in backticks, in order.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn the_walks_of_contributing_name_what_is_there() {
    const CONTRIBUTING: &str = include_str!("../CONTRIBUTING.md");
    let walks = CONTRIBUTING
        .split("\n## ")
        .filter(|part| part.starts_with("Add "));
    let mut names = 0;
    for step in walks.flat_map(|walk| walk.split("\n1. ").flat_map(steps)) {
        // A name belongs to the file before it.
        let mut file: Option<(&str, String)> = None;
        for name in quoted(step) {
            let is_path = ["src/", "tests/"].iter().any(|room| name.starts_with(room));
            if is_path {
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
                let text = std::fs::read_to_string(path);
                file = Some((name, text.unwrap_or_else(|why| panic!("{name}: {why}"))));
            } else if let Some((path, text)) = &file {
                let word = name.trim_end_matches('!');
                assert!(text.contains(word), "{path} has no {name}");
                names += 1;
            }
        }
    }
    assert!(names > 20, "{names} names found");
}

/// The numbered steps of a walk.
fn steps(walk: &str) -> impl Iterator<Item = &str> {
    walk.split("\n2. ")
        .flat_map(|part| part.split("\n3. "))
        .flat_map(|part| part.split("\n4. "))
        .flat_map(|part| part.split("\n5. "))
}
