//! Functions for tests with real mail programs: letters with their expected results, recipes with the paths of a test,
//! and an `embody` that works, fails, hangs or is missing.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use tempfile::TempDir;

use super::programs::{fed, program, skipped};
use super::raw::{Raw, ok};

/// The user id under which mail is delivered if root runs the tests.
pub const NOBODY: u32 = 65534;

/// Dovecot's delivery program.
pub const LDA: &str = "/usr/lib/dovecot/dovecot-lda";

/// A message as it is sent, and the expected result without the fields that the mail system adds at its top.
#[derive(Clone, Debug)]
pub struct Letter {
    pub name: String,
    pub sent: String,
    pub arrives: String,
}

impl Letter {
    fn new(name: &str, part: (&str, &str)) -> Self {
        let with = |part| {
            format!(
                "From: alice@example.org\n\
                 To: bob@example.org\n\
                 Subject: {name}  \n\
                 Date: Sat, 21 Nov 2026 00:00:00 +0000\n\
                 Message-ID: <{name}@example.org>\n\
                 X-Folded: one,\n\ttwo\n\
                 MIME-Version: 1.0\n\
                 Content-Type: multipart/mixed;\n boundary=b\n\
                 \n\
                 --b\n\
                 Content-Type: text/plain; charset=utf-8\n\
                 Content-Transfer-Encoding: 8bit\n\
                 \n\
                 trailing blanks \t \n.\n..\n--bb\n\u{fc}mlaut\n\n\
                 --b\n{part}\n--b--\n"
            )
        };
        Self {
            name: name.to_owned(),
            sent: with(part.0),
            arrives: with(part.1),
        }
    }

    /// Returns a letter with an external body in a `data:` URL.
    pub fn data(name: &str) -> Self {
        let sent = "Content-Type: message/external-body; access-type=URL; URL=\"data:,hello%0A\"\n\n\
            Content-Type: text/plain\n\n";
        let arrives = "Content-Type: text/plain\nContent-Transfer-Encoding: 7bit\n\nhello\n";
        Self::new(name, (sent, arrives))
    }

    /// Returns a letter with an external body at `url`, whose content is `remote\n`.
    pub fn http(name: &str, url: &str) -> Self {
        let sent = format!(
            "Content-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\n\
            Content-Type: text/plain\n\n"
        );
        let arrives = format!(
            "Content-Type: text/plain\nContent-Transfer-Encoding: 7bit\n\
            Content-Location: {url}\n\nremote\n"
        );
        Self::new(name, (&sent, &arrives))
    }

    /// Returns a letter with an external body of this many bytes in a folded `data:` URL.
    pub fn large(name: &str, octets: usize) -> Self {
        let content: Vec<u8> = (0..=255).cycle().take(octets).collect();
        let sent = format!(
            "Content-Type: message/external-body; access-type=URL;\n \
            URL=\"data:application/x-any;base64,\n{}\t\"\n\n\
            Content-Type: application/x-any\n\n",
            lines(&content, 40, "\t")
        );
        let arrives = format!(
            "Content-Type: application/x-any\nContent-Transfer-Encoding: base64\n\n{}",
            lines(&content, 76, "").trim_end()
        );
        Self::new(name, (&sent, &arrives))
    }

    /// Returns a letter with an external body at `url`, with this content of the type application/x-any.
    pub fn remote(name: &str, url: &str, content: &[u8]) -> Self {
        let sent = format!(
            "Content-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\n\
            Content-Type: application/x-any\n\n"
        );
        let arrives = format!(
            "Content-Type: application/x-any\nContent-Transfer-Encoding: base64\n\
            Content-Location: {url}\n\n{}",
            lines(content, 76, "").trim_end()
        );
        Self::new(name, (&sent, &arrives))
    }

    /// Returns a letter with several parts that needs no change.
    pub fn plain(name: &str) -> Self {
        let part = "Content-Type: text/plain\n\nFrom here on: message/external-body, data:,x\n";
        Self::new(name, (part, part))
    }

    /// Returns a letter with one text and no parts. Its header already shows that it needs no change.
    pub fn text(name: &str) -> Self {
        let text = format!(
            "From: alice@example.org\nTo: bob@example.org\nSubject: {name}\n\
            Date: Sat, 21 Nov 2026 00:00:00 +0000\nMessage-ID: <{name}@example.org>\n\
            MIME-Version: 1.0\nContent-Type: text/plain\n\nFrom here on: message/external-body\n"
        );
        Self {
            name: name.to_owned(),
            sent: text.clone(),
            arrives: text,
        }
    }

    /// Returns the same letter with the result that is expected without a filter.
    pub fn unfiltered(&self) -> Self {
        Self {
            arrives: self.sent.clone(),
            ..self.clone()
        }
    }

    /// Checks that a delivered file ends with the expected result.
    #[track_caller]
    pub fn arrived_as(&self, delivered: &[u8]) {
        assert!(
            delivered.ends_with(self.arrives.as_bytes()),
            "{}: expected\n{:.5000}\nbeneath what the mail system adds, but this arrived:\n{:.5000}",
            self.name,
            self.arrives,
            String::from_utf8_lossy(delivered)
        );
    }
}

/// Returns the content as base64, in lines of this width.
fn lines(content: &[u8], width: usize, before: &str) -> String {
    let base64 = BASE64_STANDARD.encode(content);
    let lines = base64.as_bytes().chunks(width);
    let text = lines.map(|line| std::str::from_utf8(line).unwrap());
    text.map(|line| format!("{before}{line}\n")).collect()
}

/// The program that is installed in the place of embody.
#[derive(Clone, Copy, Debug)]
pub enum Stand {
    Works,
    Missing,
    /// Exits with this status without reading its input.
    Exits(u8),
    /// Writes half of the message and is then killed.
    DiesHalfWay,
    /// Waits for a minute.
    Hangs,
    /// Works, or exits with 75, or is killed during its output, depending on its process id.
    Fickle,
}

/// A directory for one test: the recipe with the paths of the test, embody, its configuration, and the mailbox.
pub struct House {
    pub folder: TempDir,
    pub http: Raw,
}

impl House {
    /// Creates a house with an embody that works, and that may send requests only to the local http server.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The mail programs access this directory as other users.
        let readable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), readable).unwrap();
        let http = Raw::saying(ok("text/plain", b"remote\n"));
        let house = Self { folder, http };
        let built = Path::new(env!("CARGO_BIN_EXE_embody"));
        let copy = house.path("embody.real");
        if fs::hard_link(built, &copy).is_err() {
            super::programs::copy_program(built, &copy);
        }
        house.stands(Stand::Works);
        house.may_ask(house.http.address.port());
        house
    }

    /// Sets the port of the local http server to which embody may send requests.
    pub fn may_ask(&self, port: u16) {
        self.write(
            "embody.toml",
            &format!(
                "fetch = [\"http\"]\nallow-net = [\"127.0.0.0/8\"]\nallow-port = [{port}]\nquiet = true\n"
            ),
        );
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub fn letters(&self) -> [Letter; 4] {
        [
            Letter::large("large", 200_000),
            Letter::data("data"),
            Letter::http("http", &self.http.url("/remote.txt")),
            Letter::plain("plain"),
        ]
    }

    /// Replaces embody by another program, in one step, because mail may be delivered at this moment.
    pub fn stands(&self, what: Stand) {
        let place = self.path("embody");
        let beside = self.path("embody.new");
        let script = match what {
            Stand::Missing => {
                fs::remove_file(place).unwrap();
                return;
            }
            Stand::Works => {
                symlink(self.path("embody.real"), &beside).unwrap();
                fs::rename(beside, place).unwrap();
                return;
            }
            Stand::Exits(status) => format!("exit {status}"),
            Stand::DiesHalfWay => "head -c 40; kill -9 $$".to_owned(),
            Stand::Hangs => "exec sleep 60".to_owned(),
            Stand::Fickle => format!(
                "case $(($$ % 3)) in\n\
                 0) exit 75 ;;\n\
                 1) {} \"$@\" | head -c 40; kill -9 $$ ;;\n\
                 esac\n\
                 exec {} \"$@\"",
                self.text("embody.real"),
                self.text("embody.real")
            ),
        };
        let beside = self.script("embody.new", &format!("#!/bin/sh\n{script}\n"));
        fs::rename(beside, place).unwrap();
    }

    /// Writes the recipe of this name in samples/recipes, with the paths of embody and its configuration in this house,
    /// and with `changes`. Each change must have an effect.
    pub fn recipe(&self, name: &str, changes: &[(&str, &str)]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("samples/recipes")
            .join(name);
        let mut text = fs::read_to_string(source).unwrap();
        for (from, to) in changes {
            assert!(text.contains(from), "{name} has no {from}");
            text = text.replace(from, to);
        }
        text = text
            .replace("/usr/local/bin/embody", &self.text("embody"))
            .replace("/etc/embody.toml", &self.text("embody.toml"));
        self.write(name, &text)
    }

    /// Creates an empty Maildir in which this user may write.
    pub fn maildir_of(&self, name: &str, user: Option<u32>) {
        let maildir = self.path(name);
        let folders = ["cur", "new", "tmp"].map(|folder| maildir.join(folder));
        for folder in &folders {
            fs::create_dir_all(folder).unwrap();
        }
        for folder in folders.iter().chain([&maildir]) {
            chown(folder, user, user).unwrap();
        }
    }

    /// Returns the delivered files of a Maildir in this directory, sorted by name.
    pub fn delivered(&self, maildir: &str) -> Vec<Vec<u8>> {
        let Ok(folder) = fs::read_dir(self.path(maildir).join("new")) else {
            return Vec::new();
        };
        let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.iter().map(|file| fs::read(file).unwrap()).collect()
    }

    /// Empties the Maildir and returns its only message.
    #[track_caller]
    pub fn only(&self, maildir: &str) -> Vec<u8> {
        let mut all = self.delivered(maildir);
        assert_eq!(all.len(), 1, "one message should have arrived");
        for file in fs::read_dir(self.path(maildir).join("new")).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        all.remove(0)
    }
}

/// Runs a mail program with a letter on its standard input.
pub fn deliver(program: &mut Command, letter: &Letter) -> Output {
    fed(program, letter.sent.as_bytes())
}

/// Checks repeatedly until the condition is true. `seconds` is a generous time for an idle machine. A busy machine has ten times
/// as long.
#[track_caller]
pub fn eventually(seconds: u64, what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < Duration::from_secs(10 * seconds),
            "{what}: not within {} s",
            10 * seconds
        );
        thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the path of the program. If it is not installed, prints that the test is skipped, and returns `None`.
pub fn wanted(test: &str, name: &str) -> Option<PathBuf> {
    let found = program(name);
    if found.is_none() {
        skipped(test, name);
    }
    found
}

/// Returns whether root runs the tests, which servers with their own users need. Otherwise prints that the test is
/// skipped.
pub fn is_root(test: &str) -> bool {
    if !is_super_user() {
        skipped(test, "the right to change users");
    }
    is_super_user()
}

pub fn is_super_user() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns numbered letters: a third with a `data:` URL, a third with an http URL, and a third that need no change.
pub fn many(house: &House, count: usize) -> Vec<Letter> {
    (0..count)
        .map(|number| match number % 3 {
            0 => Letter::data(&format!("data{number}")),
            1 => Letter::http(&format!("http{number}"), &house.http.url("/remote.txt")),
            _ => Letter::plain(&format!("plain{number}")),
        })
        .collect()
}
