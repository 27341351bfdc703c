//! samples/recipes/fdm.conf and getmailrc with fdm and getmail, which retrieve mail from an IMAP server.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::imap::Imap;
use crate::common::mta::{House, Letter, NOBODY, Stand, wanted};
use crate::common::programs::program;
use crate::common::raw::{Raw, ok};

/// A program that retrieves mail, with its recipe.
struct Fetcher {
    house: House,
    imap: Imap,
    command: Vec<String>,
    /// Arguments after the name of the recipe.
    last: Vec<String>,
    recipe: PathBuf,
    /// A recipe without a filter, for a program that adds text at the end of the header and of the message: it shows the
    /// program's result for a message that was complete from the start.
    unfiltered: Option<PathBuf>,
    user: u32,
}

impl Fetcher {
    fn fdm(changes: &[(&str, &str)]) -> Self {
        let (house, imap) = Self::home();
        let server = format!("imap server \"127.0.0.1\" port {}", imap.port);
        // fdm finds the home directory in the list of users.
        let lock = format!("set lock-file \"{}\"\nset max", house.text("home/lock"));
        let home = house.text("home");
        let here = [
            ("imaps server \"imap.example.org\"", server.as_str()),
            ("set max", &lock),
            ("%h", &home),
        ];
        let recipe = house.recipe("fdm.conf", &[&here, changes].concat());
        private(&recipe, NOBODY);
        Self {
            command: ["fdm", "-f"].map(str::to_owned).into(),
            recipe,
            unfiltered: None,
            last: vec!["fetch".to_owned()],
            user: NOBODY,
            house,
            imap,
        }
    }

    /// Runs getmail as the user of the test, because other users may not have access to the programs of Python.
    fn getmail(changes: &[(&str, &str)]) -> Self {
        let (house, imap) = Self::home();
        let server = format!("server = 127.0.0.1\nport = {}", imap.port);
        let here = [
            ("SimpleIMAPSSLRetriever", "SimpleIMAPRetriever"),
            ("server = imap.example.org", server.as_str()),
            ("~/Maildir/", "~/Maildir/\nuser = nobody"),
            ("\nignore_", "\nallow_root_commands = true\nignore_"),
        ];
        let filtered = [&here, changes].concat();
        let recipe = house.recipe("getmailrc", &filtered);
        private(&recipe, 0);
        // A copy whose filter has a name that getmail ignores.
        let text = fs::read_to_string(&recipe).unwrap();
        assert!(text.contains("[filter-1]"));
        let unfiltered = house.write("unfiltered", &text.replace("[filter-1]", "[other]"));
        private(&unfiltered, 0);
        let getmail = program("getmail").unwrap();
        let command = [
            getmail.to_str().unwrap(),
            "--getmaildir",
            &house.text("home"),
            "--rcfile",
        ];
        Self {
            command: command.map(str::to_owned).into(),
            recipe,
            unfiltered: Some(unfiltered),
            last: Vec::new(),
            user: 0,
            house,
            imap,
        }
    }

    /// Returns a home directory of the user nobody.
    fn home() -> (House, Imap) {
        let house = House::new();
        house.maildir_of("home/Maildir", Some(NOBODY));
        chown(house.path("home"), Some(NOBODY), Some(NOBODY)).unwrap();
        let imap = Imap::start(&house);
        (house, imap)
    }

    fn run(&self) -> Output {
        self.run_with(&self.recipe)
    }

    fn run_with(&self, recipe: &Path) -> Output {
        let home = self.house.path("home");
        Command::new(&self.command[0])
            .args(&self.command[1..])
            .arg(recipe)
            .args(&self.last)
            .env("HOME", &home)
            // The temporary directory of the test's user may not be accessible to this user.
            .env("TMPDIR", &home)
            .current_dir(home)
            .uid(self.user)
            .gid(self.user)
            .output()
            .unwrap()
    }

    #[track_caller]
    fn arrives(&self, letter: &Letter) {
        let output = self.run();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let mail = self.house.only("home/Maildir");
        match &self.unfiltered {
            None => letter.arrived_as(&mail),
            Some(recipe) => {
                let already = Letter {
                    sent: letter.arrives.clone(),
                    ..letter.clone()
                };
                self.imap.receives(&already);
                let output = self.run_with(recipe);
                assert_eq!(output.status.code(), Some(0), "{output:?}");
                let delivered = String::from_utf8(self.house.only("home/Maildir")).unwrap();
                let arrives = delivered.split_once("\nFrom: ").unwrap().1.to_owned();
                assert!(arrives.contains(letter.arrives.split_once("\n\n").unwrap().1));
                let expected = Letter { arrives, ..already };
                expected.arrived_as(&mail);
            }
        }
        assert_eq!(self.imap.holds(), 0);
    }

    #[track_caller]
    fn all_arrive(&self) {
        for letter in self.house.letters() {
            self.imap.receives(&letter);
            self.arrives(&letter);
        }
        assert_eq!(self.house.http.count(), 1);
    }

    /// Asserts that a mail is kept on the server while embody fails, and is delivered afterwards.
    #[track_caller]
    fn waits_and_arrives(&self, stand: Stand) {
        let letter = Letter::data("data");
        self.imap.receives(&letter);
        self.house.stands(stand);
        let output = self.run();
        // fdm prints an error, but exits with 0.
        assert!(!output.stderr.is_empty(), "{stand:?}: {output:?}");
        assert!(self.house.delivered("home/Maildir").is_empty());
        assert_eq!(self.imap.holds(), 1, "{stand:?}: {output:?}");
        self.house.stands(Stand::Works);
        self.arrives(&letter);
    }
}

fn private(file: &Path, user: u32) {
    chown(file, Some(user), Some(user)).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

fn possible(test: &str, name: &str) -> bool {
    wanted(test, name).is_some() && Imap::possible(test)
}

const FAILURES: [Stand; 3] = [Stand::Exits(75), Stand::DiesHalfWay, Stand::Missing];

#[test]
fn fdm_delivers_what_embody_made() {
    if possible("fdm", "fdm") {
        Fetcher::fdm(&[]).all_arrive();
    }
}

#[test]
fn fdm_leaves_the_message_on_the_server_when_embody_fails() {
    if possible("fdm and an embody that fails", "fdm") {
        let fdm = Fetcher::fdm(&[]);
        for stand in FAILURES {
            fdm.waits_and_arrives(stand);
        }
    }
}

#[test]
fn fdm_leaves_the_message_on_the_server_after_the_time_out() {
    if possible("fdm and an embody that hangs", "fdm") {
        let limit = ("timeout -k 10 60", "timeout -k 1 1");
        Fetcher::fdm(&[limit]).waits_and_arrives(Stand::Hangs);
    }
}

#[test]
fn getmail_delivers_what_embody_made() {
    if possible("getmail", "getmail") {
        Fetcher::getmail(&[]).all_arrive();
    }
}

#[test]
fn getmail_leaves_the_message_on_the_server_when_embody_fails() {
    if possible("getmail and an embody that fails", "getmail") {
        let getmail = Fetcher::getmail(&[]);
        for stand in FAILURES {
            getmail.waits_and_arrives(stand);
        }
    }
}

#[test]
fn getmail_leaves_the_message_on_the_server_after_the_time_out() {
    if possible("getmail and an embody that hangs", "getmail") {
        let limit = ("\"-k\", \"5\", \"50\"", "\"-k\", \"1\", \"1\"");
        Fetcher::getmail(&[limit]).waits_and_arrives(Stand::Hangs);
    }
}

#[test]
fn fdm_leaves_a_message_that_outgrows_its_maximum_size_on_the_server() {
    if !possible("fdm and a message that grows", "fdm") {
        return;
    }
    let content = vec![b'x'; 5000];
    let http = Raw::saying(ok("application/x-any", &content));
    let letter = Letter::remote("grows", &http.url("/large"), &content);
    for (limit, fits) in [("2K", false), ("100M", true)] {
        let fdm = Fetcher::fdm(&[("maximum-size 100M", &format!("maximum-size {limit}"))]);
        fdm.house.may_ask(http.address.port());
        fdm.imap.receives(&letter);
        if fits {
            fdm.arrives(&letter);
        } else {
            fdm.run();
            assert_eq!(fdm.imap.holds(), 1);
            assert!(fdm.house.delivered("home/Maildir").is_empty());
        }
    }
}
