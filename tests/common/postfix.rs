//! Runs a separate Postfix, with its configuration, queue and log in a temporary directory, and SMTP on a free port of
//! 127.0.0.1.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::bounded::ended_within;
use super::mta::{House, eventually, is_root, wanted};
use super::programs::free_port;

/// Returns the number after `name` in the output of `id`.
fn number(name: &str, kind: &str) -> u32 {
    let output = match kind {
        "user" => Command::new("id").args(["-u", name]).output(),
        _ => Command::new("getent").args(["group", name]).output(),
    };
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let field = if kind == "user" { 0 } else { 2 };
    let number = text.trim().split(':').nth(field).unwrap_or_default();
    number
        .parse()
        .unwrap_or_else(|_| panic!("no {kind} {name}"))
}

/// A running master process with its child processes.
pub struct Postfix {
    master: Child,
    pub port: u16,
    folder: String,
}

impl Drop for Postfix {
    fn drop(&mut self) {
        // The master ends its child processes only if it gets SIGTERM.
        let pid = self.master.id().to_string();
        let _ = Command::new("kill").arg(pid).status();
        if ended_within(Duration::from_secs(60), &mut self.master).is_none() {
            eprintln!("Postfix did not end when it was asked, and was killed");
        }
        if std::thread::panicking() {
            eprintln!("what Postfix says:\n{}", self.log());
        }
    }
}

impl Postfix {
    /// Returns whether Postfix can run here. Otherwise prints that the test is skipped.
    pub fn possible(test: &str) -> bool {
        wanted(test, "postdrop").is_some() && is_root(test)
    }

    /// Starts Postfix with these additional lines in main.cf and these additional services in master.cf. `PORT` in them
    /// is replaced by the SMTP port.
    pub fn start(house: &House, main: &str, services: &str) -> Self {
        let port = free_port();
        let folder = house.text("postfix");
        directories(&folder);
        programs(&folder);
        fs::write(
            format!("{folder}/main.cf"),
            format!(
                "compatibility_level = 3.6\n\
                 queue_directory = {folder}/queue\n\
                 data_directory = {folder}/data\n\
                 command_directory = {folder}/bin\n\
                 maillog_file = {folder}/log\n\
                 maillog_file_prefixes = {folder}\n\
                 inet_interfaces = 127.0.0.1\n\
                 inet_protocols = ipv4\n\
                 mynetworks = 127.0.0.0/8\n\
                 myhostname = mail.example.test\n\
                 mydestination =\n\
                 alias_maps =\n\
                 alias_database =\n\
                 local_recipient_maps =\n\
                 virtual_mailbox_domains = example.org\n\
                 {}",
                main.replace("PORT", &port.to_string())
            ),
        )
        .unwrap();
        fs::write(
            format!("{folder}/master.cf"),
            format!(
                "pickup unix n - n 60 1 pickup\n\
                 cleanup unix n - n - 0 cleanup\n\
                 qmgr unix n - n 300 1 qmgr\n\
                 rewrite unix - - n - - trivial-rewrite\n\
                 bounce unix - - n - 0 bounce\n\
                 defer unix - - n - 0 bounce\n\
                 trace unix - - n - 0 bounce\n\
                 flush unix n - n 1000? 0 flush\n\
                 proxymap unix - - n - - proxymap\n\
                 showq unix n - n - - showq\n\
                 error unix - - n - - error\n\
                 retry unix - - n - - error\n\
                 virtual unix - n n - - virtual\n\
                 postlog unix-dgram n - n - 1 postlogd\n\
                 {}",
                services.replace("PORT", &port.to_string())
            ),
        )
        .unwrap();
        let printed = Command::new("postconf")
            .args(["-h", "daemon_directory"])
            .output()
            .unwrap();
        let daemons = String::from_utf8(printed.stdout).unwrap();
        let master = Command::new(Path::new(daemons.trim()).join("master"))
            .args(["-c", &folder])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self {
            master,
            port,
            folder,
        };
        eventually(60, "Postfix listens", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        server
    }

    fn queue(&self, option: &str) -> String {
        let output = Command::new(format!("{}/bin/postqueue", self.folder))
            .args(["-c", &self.folder, option])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Tries again to deliver all messages in the queue.
    pub fn flush(&self) {
        self.queue("-f");
    }

    /// Returns the number of messages in the queue.
    pub fn waiting(&self) -> usize {
        self.queue("-j").lines().count()
    }

    /// Returns the number of messages that were accepted but can no longer be delivered.
    pub fn corrupt(&self) -> usize {
        fs::read_dir(format!("{}/queue/corrupt", self.folder))
            .unwrap()
            .count()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(format!("{}/log", self.folder)).unwrap_or_default()
    }

    /// Waits until the log contains `word` this many times.
    #[track_caller]
    pub fn says(&self, word: &str, times: usize) {
        eventually(60, word, || self.log().matches(word).count() >= times);
    }
}

fn directories(folder: &str) {
    let (owner, group) = (number("postfix", "user"), number("postdrop", "group"));
    for name in ["bin", "queue", "queue/pid"] {
        fs::create_dir_all(format!("{folder}/{name}")).unwrap();
    }
    for name in [
        "active", "bounce", "corrupt", "defer", "deferred", "flush", "hold", "incoming", "private",
        "saved", "trace", "maildrop", "public",
    ] {
        let path = format!("{folder}/queue/{name}");
        fs::create_dir(&path).unwrap();
        chown(&path, Some(owner), None).unwrap();
    }
    let data = format!("{folder}/data");
    fs::create_dir(&data).unwrap();
    chown(&data, Some(owner), None).unwrap();
    // The copy of postdrop is not set-gid (see below), so other users must be able to write here.
    for (name, mode) in [("maildrop", 0o733), ("public", 0o711)] {
        let path = format!("{folder}/queue/{name}");
        chown(&path, Some(owner), Some(group)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// Copies programs without their set-gid bit. Set-gid programs reject a configuration that /etc/postfix/main.cf does
/// not name.
fn programs(folder: &str) {
    for name in ["postdrop", "postqueue"] {
        let copy = format!("{folder}/bin/{name}");
        super::programs::copy_program(&super::programs::program(name).unwrap(), copy.as_ref());
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::os::unix::fs::symlink(
        super::programs::program("postlog").unwrap(),
        format!("{folder}/bin/postlog"),
    )
    .unwrap();
}
