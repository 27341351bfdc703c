//! An account in Thunderbird: the same mail with the same flags, keywords and threads after `detach` and after `restore`, in a
//! profile that contains the mail from before.

use std::path::Path;

use serde_json::Value;

use super::mails::{fill, run};
use super::rig::{Kind, Server};
use crate::common::thunderbird;

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
"#;

/// Returns the facts of each message by its Message-ID, and the sum of the sizes.
fn shown(program: &Path, folder: &Path) -> (Vec<Value>, u64) {
    let (mut rows, errors) = thunderbird::said(program, folder);
    let sizes = rows.iter().map(|row| {
        let size = row["size"].as_u64();
        size.unwrap_or_else(|| panic!("{row}: {errors}"))
    });
    let sum = sizes.sum();
    rows.sort_by_key(|row| row["id"].to_string());
    (rows, sum)
}

#[test]
fn thunderbird_shows_the_same_mails_flags_and_threads_after_detach_and_after_restore() {
    let test = "thunderbird_shows_the_same_mails_flags_and_threads_after_detach_and_after_restore";
    if !thunderbird::is_installed(test, "EMBODY_REQUIRE_IMAP") {
        return;
    }
    let Some(server) = Server::start(test, Kind::Dovecot) else {
        return;
    };
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let mut client = server.client();
    client.say("CREATE Archive");
    fill(&mut client, "Archive", 40, 8000, true);
    let port = format!(
        "user_pref(\"mail.server.server1.port\", {});\n",
        server.port
    );
    let preferences = PREFERENCES.to_owned() + &port;
    let program = thunderbird::installed(folder, &preferences, include_str!("thunderbird.js"));
    let (before, size) = shown(&program, folder);
    assert_eq!(before.len(), 40);
    // Some mails are replies, and some have flags and keywords.
    let differs = |name: &str| before.iter().any(|row| row[name] != before[0][name]);
    assert!(
        ["parent", "flags", "keywords", "references"]
            .into_iter()
            .all(differs)
    );
    // Removes the facts that detaching changes.
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
