//! Runs a separate Dovecot, which serves one mailbox over IMAP on a free port of 127.0.0.1.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::bounded::ended_within;
use super::mta::{House, Letter, NOBODY, eventually, is_root, wanted};
use super::programs::free_port;

/// A running server, with the user "me" and the password "secret".
pub struct Imap {
    server: Child,
    pub port: u16,
    mailbox: PathBuf,
    log: PathBuf,
}

impl Drop for Imap {
    fn drop(&mut self) {
        // Dovecot ends its child processes only if it gets SIGTERM.
        let pid = self.server.id().to_string();
        let _ = Command::new("kill").arg(pid).status();
        if ended_within(Duration::from_secs(60), &mut self.server).is_none() {
            eprintln!("Dovecot did not end when it was asked, and was killed");
        }
        if std::thread::panicking() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            eprintln!("what Dovecot says:\n{log}");
        }
    }
}

impl Imap {
    /// Returns whether Dovecot can run here. Otherwise it prints that the test is skipped.
    pub fn possible(test: &str) -> bool {
        let parts = ["dovecot", "/usr/lib/dovecot/imap"];
        parts.iter().all(|name| wanted(test, name).is_some()) && is_root(test)
    }

    /// Starts a server with an empty mailbox.
    pub fn start(house: &House) -> Self {
        let port = free_port();
        let folder = house.text("dovecot");
        house.maildir_of("dovecot/mailbox", Some(NOBODY));
        let configuration = house.write(
            "dovecot/conf",
            &format!(
                "protocols = imap\n\
                 base_dir = {folder}/run\n\
                 state_dir = {folder}/state\n\
                 log_path = {folder}/log\n\
                 ssl = no\n\
                 disable_plaintext_auth = no\n\
                 first_valid_uid = 1\n\
                 default_internal_user = nobody\n\
                 default_internal_group = nogroup\n\
                 default_login_user = nobody\n\
                 mail_location = maildir:{folder}/mailbox\n\
                 passdb {{\n  driver = static\n  args = password=secret\n}}\n\
                 userdb {{\n  driver = static\n  args = uid={NOBODY} gid={NOBODY} home={folder}/home\n}}\n\
                 service imap-login {{\n  chroot =\n\
                 inet_listener imap {{\n  address = 127.0.0.1\n  port = {port}\n}}\n\
                 inet_listener imaps {{\n  port = 0\n}}\n}}\n\
                 service anvil {{\n  chroot =\n}}\n\
                 service stats {{\n  chroot =\n}}\n"
            ),
        );
        let server = Command::new("dovecot")
            .arg("-F")
            .arg("-c")
            .arg(configuration)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let imap = Self {
            server,
            port,
            mailbox: house.path("dovecot/mailbox"),
            log: house.path("dovecot/log"),
        };
        eventually(60, "Dovecot listens", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        imap
    }

    /// Adds a letter to the mailbox.
    pub fn receives(&self, letter: &Letter) {
        let file = self
            .mailbox
            .join("new")
            .join(format!("1.{}.host", letter.name));
        fs::write(&file, &letter.sent).unwrap();
        std::os::unix::fs::chown(file, Some(NOBODY), Some(NOBODY)).unwrap();
    }

    /// Returns the number of messages in the mailbox.
    pub fn holds(&self) -> usize {
        let count = |folder| fs::read_dir(self.mailbox.join(folder)).unwrap().count();
        count("new") + count("cur")
    }
}
