//! Maildirs with single compressed messages, as the zlib plugin of Dovecot writes them, with Dovecot itself as writer and
//! reader.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::mailboxes::{Expand, in_place, to};
use crate::common::programs::{fed, program, skipped, stderr};

const NEW: Expand = Expand("what was\nfetched");
const METHODS: [(&str, &[u8]); 4] = [
    ("gz", b"\x1f\x8b"),
    ("bz2", b"BZh"),
    ("zstd", b"\x28\xb5\x2f\xfd"),
    ("lz4", b"Dovecot-LZ4\x0d\x2a\x9b\xc5"),
];

/// Dovecot for a Maildir, without its server: doveadm saves and fetches messages.
struct Dovecot {
    folder: tempfile::TempDir,
    doveadm: PathBuf,
    user: u32,
}

impl Dovecot {
    fn new(test: &str) -> Option<Self> {
        let plugin = Path::new("/usr/lib/dovecot/modules/lib20_zlib_plugin.so").exists();
        let (Some(doveadm), true) = (program("doveadm"), plugin) else {
            skipped(test, "doveadm with Dovecot's zlib plugin");
            return None;
        };
        let user = rustix::process::getuid().as_raw();
        let dovecot = Self {
            folder: tempfile::tempdir().unwrap(),
            doveadm,
            // Dovecot does not read mail as root, so it runs as nobody.
            user: if user == 0 { 65534 } else { user },
        };
        if user == 0 {
            let owner = Some(dovecot.user);
            std::os::unix::fs::chown(dovecot.folder.path(), owner, owner).unwrap();
        }
        Some(dovecot)
    }

    fn maildir(&self) -> PathBuf {
        self.folder.path().join("Maildir")
    }

    fn run(&self, method: &str, arguments: &[&str], input: &[u8]) -> String {
        let folder = self.folder.path();
        let log = folder.join("log");
        let configuration = folder.join("conf");
        let text = format!(
            "mail_location = maildir:{}\nlog_path = {}\nfirst_valid_uid = 0\nfirst_valid_gid = 0\nbase_dir = {}\n\
             ssl = no\nmail_uid = {}\nmail_gid = {}\nprotocols = imap\nmail_privileged_group =\nmail_plugins = zlib\n\
             plugin {{\n  zlib_save = {method}\n  zlib_save_level = 6\n}}\nnamespace inbox {{\n  inbox = yes\n}}\n",
            self.maildir().display(),
            log.display(),
            folder.join("run").display(),
            self.user,
            self.user,
        );
        fs::write(&configuration, text).unwrap();
        let mut command = Command::new(&self.doveadm);
        command
            .arg("-c")
            .arg(&configuration)
            .args(arguments)
            .env("HOME", folder)
            .env("USER", "tester")
            .uid(self.user)
            .gid(self.user);
        let output = fed(&mut command, input);
        let logged = fs::read_to_string(&log).unwrap_or_default();
        assert!(output.status.success(), "{}{logged}", stderr(&output));
        assert!(
            !logged.contains("Error") && !logged.contains("Panic"),
            "{logged}"
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns every message as Dovecot returns it, sorted.
    fn messages(&self, method: &str) -> Vec<String> {
        let text = self.run(method, &["fetch", "text", "mailbox", "INBOX", "all"], b"");
        let mut all: Vec<String> = text
            .split("text:\n")
            .filter(|one| !one.is_empty())
            .map(|one| one.trim_end_matches("\x0c\n").replace("\r\n", "\n"))
            .collect();
        all.sort();
        all
    }

    /// Returns the files in `cur` and `new`.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let folders = ["cur", "new"].map(|name| self.maildir().join(name));
        let entries = folders
            .iter()
            .flat_map(|folder| fs::read_dir(folder).unwrap());
        entries
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect()
    }
}

fn message(number: usize) -> String {
    let mark = if number.is_multiple_of(3) {
        "EXPAND-ME\n"
    } else {
        ""
    };
    let lines: String = (0..number * 700)
        .map(|line| format!("line {line}\n"))
        .collect();
    format!(
        "From: a@example.org\nSubject: {number}\nMessage-ID: <{number}@example.org>\n\n{lines}{mark}"
    )
}

/// Returns the numbers after S= and W= in a file name.
fn sizes(path: &Path) -> (usize, usize) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let of = |letter: &str| {
        let field = name
            .split([',', ':'])
            .find_map(|field| field.strip_prefix(letter));
        field
            .unwrap_or_else(|| panic!("{letter} in {name}"))
            .parse()
            .unwrap()
    };
    (of("S="), of("W="))
}

#[test]
fn embody_and_dovecot_read_compressed_maildirs_of_each_other() {
    let test = "embody_and_dovecot_read_compressed_maildirs_of_each_other";
    for (method, magic) in METHODS {
        let Some(dovecot) = Dovecot::new(test) else {
            return;
        };
        for number in 0..12 {
            let text = message(number);
            dovecot.run(method, &["save", "-m", "INBOX"], text.as_bytes());
        }
        let before = dovecot.files();
        assert_eq!(before.len(), 12);
        assert!(
            before.values().all(|bytes| bytes.starts_with(magic)),
            "{method}"
        );
        let saved = dovecot.messages(method);
        let mut expected: Vec<String> = (0..12).map(message).collect();
        expected.sort();
        assert!(saved == expected, "{method}");
        let copy = dovecot.folder.path().join("copy");
        let beside = to(&dovecot.maildir(), &copy, &NEW).unwrap();
        let summary = in_place(&dovecot.maildir(), &NEW).unwrap();
        assert_eq!(
            (summary.messages, summary.changed, summary.damaged),
            (12, 4, 0)
        );
        assert_eq!(beside, summary);
        let after = dovecot.files();
        assert_eq!(after.len(), 12);
        let mut kept = 0;
        for (path, bytes) in &after {
            assert!(bytes.starts_with(magic), "{method}: {}", path.display());
            kept += usize::from(before.get(path) == Some(bytes));
            let place = path.strip_prefix(dovecot.maildir()).unwrap();
            assert!(
                fs::read(copy.join(place)).unwrap() == *bytes,
                "beside as in place"
            );
        }
        assert_eq!(kept, 8, "what does not change stays the same octets");
        let changed: Vec<String> = {
            let mut texts: Vec<String> = (0..12)
                .map(|number| message(number).replace("EXPAND-ME", NEW.0))
                .collect();
            texts.sort();
            texts
        };
        let mut lengths: Vec<(usize, usize)> = after.keys().map(|path| sizes(path)).collect();
        lengths.sort_unstable();
        let mut wanted: Vec<(usize, usize)> = changed
            .iter()
            .map(|text| (text.len(), text.len() + text.matches('\n').count()))
            .collect();
        wanted.sort_unstable();
        assert_eq!(lengths, wanted, "sizes are those of the plain messages");
        assert!(dovecot.messages(method) == changed, "{method}");
        let again = in_place(&dovecot.maildir(), &NEW).unwrap();
        assert_eq!((again.messages, again.changed), (12, 0));
        assert!(dovecot.files().keys().eq(after.keys()));
    }
}

#[test]
fn a_damaged_message_among_others_is_named_and_left_and_copied_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let maildir = folder.path().join("Maildir");
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(maildir.join(part)).unwrap();
    }
    let gz = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let good = gz(&message(3));
    let cut = &good[..good.len() - 9];
    let garbage = [good.as_slice(), b"x"].concat();
    fs::write(maildir.join("cur/1.a.host:2,S"), &good).unwrap();
    fs::write(maildir.join("cur/2.b.host:2,S"), cut).unwrap();
    fs::write(maildir.join("cur/3.c.host:2,S"), &garbage).unwrap();
    fs::write(maildir.join("new/4.d.host"), message(3)).unwrap();
    let mut command = crate::common::programs::embody();
    let output = command
        .args(["convert", "--in-place"])
        .arg(&maildir)
        .output()
        .unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let at = format!(
        "2.b.host:2,S: the end of the gzip data is missing, at byte {}",
        cut.len()
    );
    assert!(said.contains(&at), "{said}");
    assert!(
        said.contains("3.c.host:2,S: the file contains other data after"),
        "{said}"
    );
    let copy = folder.path().join("copy");
    let beside = to(&maildir, &copy, &NEW).unwrap();
    let summary = in_place(&maildir, &NEW).unwrap();
    assert_eq!(beside, summary);
    assert_eq!(
        (summary.messages, summary.changed, summary.damaged),
        (2, 2, 2)
    );
    for root in [&maildir, &copy] {
        assert!(fs::read(root.join("cur/2.b.host:2,S")).unwrap() == cut);
        assert!(fs::read(root.join("cur/3.c.host:2,S")).unwrap() == garbage);
        let new = fs::read(root.join("cur/1.a.host:2,S")).unwrap();
        assert!(new == gz(&message(3).replace("EXPAND-ME", NEW.0)));
    }
}

#[test]
fn one_message_of_a_maildir_goes_to_a_file_compressed_or_not_whatever_it_starts_with() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["cur", "new", "tmp"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    for text in ["Subject: x\n\nx\n", "no header\n\nx\n"] {
        let path = folder.path().join("cur/1.a.host:2,S");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(text.as_bytes()).unwrap();
        for content in [text.as_bytes().to_vec(), encoder.finish().unwrap()] {
            fs::write(&path, content).unwrap();
            for format in ["auto", "maildir"] {
                let target = folder.path().join("out.eml");
                let mut command = crate::common::programs::embody();
                command.args(["convert", "--format", format]).arg(&path);
                let output = command.arg("--output").arg(&target).output().unwrap();
                assert!(output.status.success(), "{format}: {}", stderr(&output));
                assert_eq!(fs::read_to_string(&target).unwrap(), text);
                fs::remove_file(&target).unwrap();
            }
        }
    }
}
