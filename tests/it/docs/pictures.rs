//! The pictures in README.md show the mail and the page that the program writes now.

use std::path::Path;
use std::process::Command;

use crate::common::programs::{embody, has_python, stderr};

#[test]
fn pictures_of_readme_show_what_the_program_writes() {
    let test = "pictures_of_readme_show_what_the_program_writes";
    if !has_python(test, "zipfile, http.server", "python3") {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("python3")
        .arg("-B")
        .arg(root.join("docs/embed/screenshot"))
        .arg("--check")
        .arg("--embody")
        .arg(embody().get_program())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}
