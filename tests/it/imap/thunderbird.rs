//! What Thunderbird shows of an account: the same mail with the same flags, keywords and threads, after detach and after
//! restore, in a profile that knows the mail from before.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::mails::{fill, run};
use super::rig::{Kind, Server};
use crate::common::programs::{copy_program, program};

/// Where Debian has it.
const INSTALLED: &str = "/usr/lib/thunderbird";

/// Has it read its configuration from a file, which may do all that Thunderbird may. The first line is not read.
const CONFIGURED: &str = "//
pref(\"general.config.filename\", \"told.cfg\");
pref(\"general.config.obscure_value\", 0);
pref(\"general.config.sandbox_enabled\", false);
";

const PREFERENCES: &str = r#"
user_pref("mail.accountmanager.accounts", "account1");
user_pref("mail.account.account1.server", "server1");
user_pref("mail.account.account1.identities", "id1");
user_pref("mail.identity.id1.useremail", "me@example.org");
user_pref("mail.identity.id1.valid", true);
user_pref("mail.server.server1.type", "imap");
user_pref("mail.server.server1.hostname", "127.0.0.1");
user_pref("mail.server.server1.userName", "me");
user_pref("mail.server.server1.socketType", 0);
user_pref("mail.server.server1.authMethod", 3);
user_pref("mail.server.server1.using_subscription", false);
user_pref("mail.server.server1.login_at_startup", false);
user_pref("mail.server.server1.check_all_folders_for_new", false);
user_pref("mail.server.server1.autosync_offline_stores", false);
user_pref("mail.server.server1.offline_download", false);
user_pref("mail.shell.checkDefaultClient", false);
user_pref("app.update.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("browser.dom.window.dump.enabled", true);
"#;

/// The program as it is installed, but with another configuration, and a profile with the account.
fn installed(folder: &Path, port: u16) -> PathBuf {
    let ours = folder.join("thunderbird");
    fs::create_dir_all(ours.join("defaults")).unwrap();
    let linked = |from: &Path, to: &Path| std::os::unix::fs::symlink(from, to).unwrap();
    for entry in fs::read_dir(INSTALLED).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        // A program looks for the rest where it is itself.
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
    let preferences = ours.join("defaults/pref");
    fs::create_dir(&preferences).unwrap();
    for entry in fs::read_dir(defaults.join("pref")).unwrap() {
        let path = entry.unwrap().path();
        linked(&path, &preferences.join(path.file_name().unwrap()));
    }
    fs::write(preferences.join("told.js"), CONFIGURED).unwrap();
    fs::write(ours.join("told.cfg"), include_str!("thunderbird.js")).unwrap();
    let profile = folder.join("profile");
    fs::create_dir(&profile).unwrap();
    let port = format!("user_pref(\"mail.server.server1.port\", {port});\n");
    fs::write(profile.join("prefs.js"), PREFERENCES.to_owned() + &port).unwrap();
    ours.join("thunderbird")
}

/// Each message, by its Message-ID, and the sum of the sizes.
fn shown(program: &Path, folder: &Path) -> (Vec<Value>, u64) {
    let ran = Command::new("timeout")
        .args(["-k", "5", "120"])
        .arg(program)
        .args(["--headless", "--no-remote", "--profile"])
        .arg(folder.join("profile"))
        .env("HOME", folder)
        .env("MOZ_CRASHREPORTER_DISABLE", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let rows = said.lines().filter_map(|line| line.strip_prefix("shown: "));
    let mut rows: Vec<Value> = rows.map(|row| serde_json::from_str(row).unwrap()).collect();
    let sizes = rows.iter().map(|row| {
        let size = row["size"].as_u64();
        size.unwrap_or_else(|| panic!("{row}: {}", String::from_utf8_lossy(&ran.stderr)))
    });
    let sum = sizes.sum();
    rows.sort_by_key(|row| row["id"].to_string());
    (rows, sum)
}

/// `.ci/peers` installs it: 310 MB.
#[test]
fn thunderbird_shows_the_same_mails_flags_and_threads_after_detach_and_after_restore() {
    let test = "thunderbird_shows_the_same_mails_flags_and_threads_after_detach_and_after_restore";
    if program("thunderbird").is_none() || !Path::new(INSTALLED).is_dir() {
        let may_miss = std::env::var_os("EMBODY_REQUIRE_IMAP").is_none();
        assert!(may_miss, "there is no Thunderbird in {INSTALLED}");
        return eprintln!("skipped: {test} ({INSTALLED} not found)");
    }
    let Some(server) = Server::start(test, Kind::Dovecot) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut client = server.client();
    client.say("CREATE Archive");
    fill(&mut client, "Archive", 40, 8000, true);
    let program = installed(folder, server.port);
    let (before, size) = shown(&program, folder);
    assert_eq!(before.len(), 40);
    // Some are replies, and some have flags and keywords.
    let differs = |name: &str| before.iter().any(|row| row[name] != before[0][name]);
    assert!(
        ["parent", "flags", "keywords", "references"]
            .into_iter()
            .all(differs)
    );
    // But for what detaching changes.
    let lasting = |rows: &[Value]| -> Vec<Value> {
        let mut rows = rows.to_vec();
        for row in &mut rows {
            let row = row.as_object_mut().unwrap();
            row.retain(|name, _| name != "size" && name != "sha256");
        }
        rows
    };
    run(folder, "detach", &server.url("Archive"));
    let (between, smaller) = shown(&program, folder);
    assert_eq!(lasting(&between), lasting(&before));
    assert!(smaller * 2 < size, "{smaller} of {size}");
    run(folder, "restore", &server.url("Archive"));
    assert_eq!(shown(&program, folder), (before, size));
}
