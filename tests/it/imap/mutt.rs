//! An account in mutt: the same mail with the same flags and references after `detach` and after `restore`.

use std::path::Path;
use std::process::Command;

use super::mails::{fill, run};
use super::rig::{Kind, Server};
use crate::common::programs::{program, skipped};

/// Makes mutt copy all messages of a folder to an mbox file, on a terminal of its own. It writes flags as Status fields.
const COPIED: &str = r#"
import os, pty, sys
port, folder, out, home = sys.argv[1:]
url = f"imap://me@127.0.0.1:{port}/{folder}"
with open(f"{home}/muttrc", "w") as file:
    file.write(f'''set imap_pass=secret ssl_starttls=no ssl_force_tls=no imap_authenticators=login
set folder={home} spoolfile="{url}" confirmcreate=no confirmappend=no quit=yes move=no mark_old=no mbox_type=mbox
''')
keys = f"<tag-pattern>~A<enter><tag-prefix><copy-message><kill-line>{out}<enter><exit>"
process, terminal = pty.fork()
if process == 0:
    os.environ.update(HOME=home, TERM="xterm")
    os.execvp("mutt", ["mutt", "-R", "-n", "-F", f"{home}/muttrc", "-f", url, "-e", f'push "{keys}"'])
try:
    while os.read(terminal, 65536):
        pass
except OSError:
    pass
os.waitpid(process, 0)
"#;

/// Returns Message-ID, references and flags of all mails as mutt shows them, and their total size in bytes.
fn shown(server: &Server, home: &Path, name: &str) -> (Vec<[String; 4]>, u64) {
    let out = home.join(name);
    let status = Command::new("timeout")
        .args(["60", "python3", "-c", COPIED])
        .args([&server.port.to_string(), "Archive"])
        .args([&out, home])
        .status()
        .unwrap();
    assert!(status.success());
    let text = String::from_utf8_lossy(&std::fs::read(&out).unwrap()).into_owned();
    let mailbox = format!("\n{text}");
    // Some of the mails also contain a line that begins with "From ".
    let mails = mailbox.split("\nFrom a@").skip(1).map(|mail| {
        let header = mail.split("\n\n").next().unwrap().replace("\n ", " ");
        let field = |name: &str| {
            let start = format!("{name}: ");
            let line = header.lines().find_map(|line| line.strip_prefix(&start));
            line.unwrap_or_default().to_owned()
        };
        ["Message-ID", "References", "Status", "X-Status"].map(field)
    });
    let mut mails: Vec<_> = mails.collect();
    mails.sort();
    (mails, text.len() as u64)
}

#[test]
fn mutt_shows_the_same_mails_flags_and_threads_after_detach_and_after_restore() {
    let test = "mutt_shows_the_same_mails_flags_and_threads_after_detach_and_after_restore";
    for name in ["mutt", "python3"] {
        if program(name).is_none() {
            return skipped(test, name);
        }
    }
    let Some(server) = Server::start(test, Kind::Dovecot) else {
        return;
    };
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let mut client = server.client();
    client.say("CREATE Archive");
    fill(&mut client, "Archive", 40, 8000, false);
    let (before, size) = shown(&server, folder, "before");
    assert_eq!(before.len(), 40);
    assert!(before.iter().any(|[.., state]| state.contains('F')));
    run(folder, "detach", &server.url("Archive"));
    let (between, smaller) = shown(&server, folder, "between");
    assert_eq!(between, before);
    assert!(smaller * 2 < size, "{smaller} of {size}");
    run(folder, "restore", &server.url("Archive"));
    assert_eq!(shown(&server, folder, "after"), (before, size));
}
