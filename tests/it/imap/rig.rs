//! IMAP servers: Dovecot, Cyrus, Courier and pymap, each on a free port of 127.0.0.1, with its mail in a temporary directory.
//! The user is "me", the password "secret". They end with the test.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::client::Client;
use crate::common::bounded::ended_within;
use crate::common::mta::{NOBODY, eventually, is_root};
use crate::common::programs::{free_port, program, skipped};

/// Directory to which `.ci/peers` unpacks Cyrus and Courier, whose packages exclude that of Dovecot.
const UNPACKED: &str = "/opt/embody-tests";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Dovecot,
    /// Dovecot with a quota of this size in kB for "me".
    DovecotWithQuota(u64),
    Cyrus,
    Courier,
    Pymap,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Dovecot, Self::Cyrus, Self::Courier, Self::Pymap];

    /// Returns the number of mails for a test with a large folder. Courier reads the names of all files of the folder for each
    /// command, so its time grows with the square of the number of mails: two thousand need more than 40 minutes.
    pub(super) fn many_mails(self) -> usize {
        match self {
            Self::Courier => 500,
            _ => 2000,
        }
    }
}

pub(super) struct Server {
    pub(super) kind: Kind,
    pub(super) port: u16,
    child: Child,
    folder: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        // The servers end their child processes on SIGTERM, but not on SIGKILL.
        let _ = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        if ended_within(Duration::from_secs(30), &mut self.child).is_none() {
            eprintln!(
                "{:?} did not end when it was asked, and was killed",
                self.kind
            );
        }
        if std::thread::panicking() {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            let from = log.len().saturating_sub(4000);
            eprintln!(
                "what {:?} says:\n{}",
                self.kind,
                log.get(from..).unwrap_or(&log)
            );
        }
    }
}

impl Server {
    /// Starts a server. Returns `None` and prints that the test is skipped if the program is missing.
    pub(super) fn start(test: &str, kind: Kind) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        // The servers access this directory as other users.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let port = free_port();
        let mut command = match kind {
            Kind::Dovecot => dovecot(test, folder.path(), port, None)?,
            Kind::DovecotWithQuota(limit) => dovecot(test, folder.path(), port, Some(limit))?,
            Kind::Cyrus => cyrus(test, folder.path(), port)?,
            Kind::Courier => courier(test, folder.path(), port)?,
            Kind::Pymap => pymap(test, port)?,
        };
        let log = || {
            fs::File::options()
                .create(true)
                .append(true)
                .open(folder.path().join("log"))
        };
        // When Cyrus ends, it signals its whole process group.
        let child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log().unwrap())
            .stderr(log().unwrap())
            .spawn()
            .unwrap();
        let server = Self {
            kind,
            port,
            child,
            folder,
        };
        eventually(60, "the server listens", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        if kind == Kind::Cyrus {
            Client::login(port, "admin").say("CREATE user/me");
        }
        if kind == Kind::Pymap {
            // The demonstration mode of pymap contains mail, which is removed.
            let mut client = server.client();
            client.say("SELECT INBOX");
            client.say("STORE 1:* +FLAGS.SILENT (\\Deleted)");
            client.say("EXPUNGE");
        }
        Some(server)
    }

    /// Returns the URL of a folder, or of the account if the name is empty.
    pub(super) fn url(&self, folder: &str) -> String {
        url(self.port, folder)
    }

    pub(super) fn client(&self) -> Client {
        Client::login(self.port, "me")
    }

    /// Returns the Maildir of INBOX in Dovecot.
    pub(super) fn maildir(&self) -> PathBuf {
        self.folder.path().join("home/Maildir")
    }

    /// Returns the name of a top-level folder on the server.
    pub(super) fn folder(&self, name: &str) -> String {
        match self.kind {
            Kind::Courier => format!("INBOX.{name}"),
            _ => name.to_owned(),
        }
    }
}

/// Returns the URL of a folder on the server or proxy at this port.
pub(super) fn url(port: u16, folder: &str) -> String {
    format!("imap://me@127.0.0.1:{port}/{folder}")
}

fn made(folder: &Path, names: &[&str]) {
    for name in names {
        let path = folder.join(name);
        fs::create_dir_all(&path).unwrap();
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

fn unpacked(test: &str, server: &str, file: &str) -> Option<PathBuf> {
    let path = Path::new(UNPACKED).join(server).join(file);
    if !path.is_file() {
        // The programs are installed only by .ci/peers.
        if std::env::var("EMBODY_REQUIRE_IMAP").as_deref() == Ok("1") {
            panic!(
                "{test}: {} not found, and EMBODY_REQUIRE_IMAP=1",
                path.display()
            );
        }
        eprintln!("skipped: {test} ({} not found)", path.display());
        return None;
    }
    is_root(test).then_some(path)
}

fn dovecot(test: &str, folder: &Path, port: u16, limit: Option<u64>) -> Option<Command> {
    for name in ["dovecot", "/usr/lib/dovecot/imap"] {
        if program(name).is_none() {
            skipped(test, name);
            return None;
        }
    }
    if !is_root(test) {
        return None;
    }
    made(folder, &["home"]);
    let here = folder.display();
    let quota = limit.map_or(String::new(), |limit| {
        format!(
            "mail_plugins = quota\n\
             protocol imap {{\n  mail_plugins = quota imap_quota\n}}\n\
             plugin {{\n  quota = count:all\n  quota_vsizes = yes\n  quota_rule = *:storage={limit}k\n  \
             quota_grace = 0\n}}\n"
        )
    });
    let configuration = format!(
        "protocols = imap\n\
         base_dir = {here}/run\n\
         state_dir = {here}/state\n\
         log_path = {here}/log\n\
         ssl = no\n\
         disable_plaintext_auth = no\n\
         first_valid_uid = 1\n\
         default_internal_user = nobody\n\
         default_internal_group = nogroup\n\
         default_login_user = nobody\n\
         mail_location = maildir:{here}/home/Maildir\n\
         mail_max_userip_connections = 1000\n\
         namespace inbox {{\n  inbox = yes\n  separator = /\n\
         mailbox Trash {{\n  auto = create\n  special_use = \\Trash\n}}\n}}\n\
         passdb {{\n  driver = static\n  args = password=secret\n}}\n\
         userdb {{\n  driver = static\n  args = uid={NOBODY} gid={NOBODY} home={here}/home\n}}\n\
         service imap-login {{\n  chroot =\n  service_count = 0\n\
         inet_listener imap {{\n  address = 127.0.0.1\n  port = {port}\n}}\n\
         inet_listener imaps {{\n  port = 0\n}}\n}}\n\
         service anvil {{\n  chroot =\n}}\n\
         service stats {{\n  chroot =\n}}\n{quota}"
    );
    let file = folder.join("conf");
    fs::write(&file, configuration).unwrap();
    let mut command = Command::new("dovecot");
    command.arg("-F").arg("-c").arg(file);
    Some(command)
}

fn cyrus(test: &str, folder: &Path, port: u16) -> Option<Command> {
    let master = unpacked(test, "cyrus", "usr/lib/cyrus/bin/master")?;
    let programs = master.parent().unwrap().display();
    made(
        folder,
        &[
            "conf",
            "conf/db",
            "conf/socket",
            "conf/proc",
            "conf/lock",
            "conf/log",
            "spool",
        ],
    );
    let here = folder.display();
    let imapd = format!(
        "configdirectory: {here}/conf\n\
         partition-default: {here}/spool\n\
         defaultpartition: default\n\
         unixhierarchysep: yes\n\
         altnamespace: yes\n\
         virtdomains: no\n\
         admins: admin\n\
         sasl_mech_list: PLAIN LOGIN\n\
         sasl_pwcheck_method: alwaystrue\n\
         allowplaintext: yes\n\
         cyrus_user: nobody\n\
         cyrus_group: nogroup\n\
         proc_path: {here}/conf/proc\n\
         mboxname_lockpath: {here}/conf/lock\n\
         duplicatesuppression: no\n\
         expunge_mode: immediate\n\
         duplicate_db_path: {here}/conf/db/deliver.db\n\
         statuscache_db_path: {here}/conf/db/statuscache.db\n\
         tls_sessions_db_path: {here}/conf/db/tls.db\n"
    );
    fs::write(folder.join("imapd.conf"), imapd).unwrap();
    let services = format!(
        "START {{\n  recover cmd=\"{programs}/ctl_cyrusdb -C {here}/imapd.conf -r\"\n}}\n\
         SERVICES {{\n  imap cmd=\"{programs}/imapd -C {here}/imapd.conf\" \
         listen=\"127.0.0.1:{port}\" prefork=0 proto=tcp4\n}}\nEVENTS {{\n}}\n"
    );
    fs::write(folder.join("cyrus.conf"), services).unwrap();
    let mut command = Command::new(master);
    command
        .args(["-D", "-C", &format!("{here}/imapd.conf")])
        .args(["-M", &format!("{here}/cyrus.conf")])
        .args(["-p", &format!("{here}/pid"), "-L", &format!("{here}/log")])
        .env(
            "LD_LIBRARY_PATH",
            format!("{UNPACKED}/cyrus/usr/lib/x86_64-linux-gnu"),
        );
    Some(command)
}

fn courier(test: &str, folder: &Path, port: u16) -> Option<Command> {
    let imapd = unpacked(test, "courier", "usr/bin/imapd")?;
    made(
        folder,
        &[
            "home",
            "home/Maildir",
            "home/Maildir/cur",
            "home/Maildir/new",
            "home/Maildir/tmp",
        ],
    );
    let front = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/imap/courier.py");
    let libraries = format!("{UNPACKED}/courier/usr/lib");
    let mut command = Command::new("python3");
    command
        .arg(front)
        .arg(imapd)
        .arg(folder.join("home/Maildir"))
        .arg(port.to_string())
        .env(
            "LD_LIBRARY_PATH",
            format!("{libraries}/x86_64-linux-gnu:{libraries}"),
        );
    Some(command)
}

fn pymap(test: &str, port: u16) -> Option<Command> {
    let Some(program) = program("pymap") else {
        skipped(test, "pymap");
        return None;
    };
    let mut command = Command::new(program);
    command
        .args(["--host", "127.0.0.1", "--port", &port.to_string()])
        .args(["--no-tls", "--no-service", "admin", "dict", "--demo-data"])
        .args(["--demo-user", "me", "--demo-password", "secret"]);
    Some(command)
}
