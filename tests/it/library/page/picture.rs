//! The picture of the page in README.md shows what the page shows now.

use super::super::module::{root, run};
use super::super::web::built;
use crate::common::programs::{has_python, program, skipped, stderr};

#[test]
fn picture_of_readme_shows_the_page() {
    let test = "picture_of_readme_shows_the_page";
    if !has_python(test, "zipfile, http.server", "python3") {
        return;
    }
    if program("chromium").is_none() {
        skipped(test, "chromium");
        return;
    }
    let Some(folder) = built(test) else { return };
    let mut check = std::process::Command::new("python3");
    check
        .arg("-B")
        .arg(root().join("docs/embed/screenshot"))
        .arg("--check")
        .arg("--page")
        .arg(folder.path().join("embody.html"));
    let output = run(&mut check);
    assert!(output.status.success(), "{}", stderr(&output));
}
