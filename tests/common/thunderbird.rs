//! Runs Thunderbird with a script that prints the displayed content and then ends it. `.ci/peers` installs Thunderbird
//! (310 MB).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::programs::{copy_program, program};

/// Directory of Thunderbird on Debian.
const INSTALLED: &str = "/usr/lib/thunderbird";

/// Makes Thunderbird read a configuration file without restrictions. Thunderbird ignores the first line.
const CONFIGURED: &str = "//
pref(\"general.config.filename\", \"told.cfg\");
pref(\"general.config.obscure_value\", 0);
pref(\"general.config.sandbox_enabled\", false);
";

const PREFERENCES: &str = r#"
user_pref("mail.shell.checkDefaultClient", false);
user_pref("app.update.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("browser.dom.window.dump.enabled", true);
"#;

/// Returns whether Thunderbird is installed. Otherwise prints that the test is skipped.
pub fn is_installed(test: &str, required: &str) -> bool {
    if program("thunderbird").is_some() && Path::new(INSTALLED).is_dir() {
        return true;
    }
    let may_miss = std::env::var_os(required).is_none();
    assert!(may_miss, "there is no Thunderbird in {INSTALLED}");
    eprintln!("skipped: {test} ({INSTALLED} not found)");
    false
}

/// Returns a copy of the installed program with another configuration and a profile with these preferences.
pub fn installed(folder: &Path, preferences: &str, script: &str) -> PathBuf {
    let ours = folder.join("thunderbird");
    fs::create_dir_all(ours.join("defaults")).unwrap();
    let linked = |from: &Path, to: &Path| std::os::unix::fs::symlink(from, to).unwrap();
    for entry in fs::read_dir(INSTALLED).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        // The program searches for its other files in its own directory.
        match name.to_str().unwrap() {
            "defaults" => {}
            "thunderbird" | "thunderbird-bin" => copy_program(&path, &ours.join(name)),
            _ => linked(&path, &ours.join(name)),
        }
    }
    let defaults = Path::new(INSTALLED).join("defaults");
    for entry in fs::read_dir(&defaults).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        if name != "pref" {
            linked(&path, &ours.join("defaults").join(name));
        }
    }
    let pref = ours.join("defaults/pref");
    fs::create_dir(&pref).unwrap();
    for entry in fs::read_dir(defaults.join("pref")).unwrap() {
        let path = entry.unwrap().path();
        linked(&path, &pref.join(path.file_name().unwrap()));
    }
    fs::write(pref.join("told.js"), CONFIGURED).unwrap();
    fs::write(ours.join("told.cfg"), script).unwrap();
    let profile = folder.join("profile");
    fs::create_dir_all(&profile).unwrap();
    fs::write(
        profile.join("prefs.js"),
        PREFERENCES.to_owned() + preferences,
    )
    .unwrap();
    ours.join("thunderbird")
}

/// Returns the lines that the script printed, and the other output.
pub fn said(program: &Path, folder: &Path) -> (Vec<Value>, String) {
    let ran = Command::new("timeout")
        .args(["-k", "5", "240"])
        .arg(program)
        .args(["--headless", "--no-remote", "--profile"])
        .arg(folder.join("profile"))
        .env("HOME", folder)
        .env("MOZ_CRASHREPORTER_DISABLE", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let rows = said
        .lines()
        .filter_map(|line| line.strip_prefix("shown: "))
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    (rows, String::from_utf8_lossy(&ran.stderr).into_owned())
}
