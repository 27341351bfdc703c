//! samples/recipes/exim.conf with Exim, which is in a directory of its own because Debian's packages of Exim and Postfix
//! exclude each other.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::common::mta::{House, Letter, NOBODY, Stand, deliver, is_root};
use crate::common::programs::skipped;

const ONE_SECOND: (&str, &str) = (
    "transport_filter_timeout = 120s",
    "transport_filter_timeout = 1s",
);

/// Path to which .ci/programs unpacks Exim.
const UNPACKED: &str = "/opt/embody-tests/exim/usr/sbin/exim4";

/// Returns the path of Exim, which EMBODY_EXIM can override.
fn exim() -> PathBuf {
    std::env::var_os("EMBODY_EXIM").map_or_else(|| UNPACKED.into(), PathBuf::from)
}

fn possible(test: &str) -> bool {
    let runs = Command::new(exim())
        .args(["-C", "/dev/null", "-bV"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !runs {
        skipped(test, "exim");
    }
    runs && is_root(test)
}

/// Exim with a configuration in which the recipe's transport delivers all mail.
struct Exim {
    house: House,
    configuration: PathBuf,
}

impl Exim {
    fn with(changes: &[(&str, &str)]) -> Self {
        let house = House::new();
        house.maildir_of("Maildir", Some(NOBODY));
        // Replaces a router that finds users and their home directories.
        let maildir = format!("{}\n  user = nobody", house.text("Maildir"));
        let here = [("$home/Maildir", maildir.as_str())];
        let recipe =
            fs::read_to_string(house.recipe("exim.conf", &[&here, changes].concat())).unwrap();
        let configuration = house.write(
            "exim",
            &format!(
                "exim_path = {1}\n\
                 spool_directory = {0}/spool\n\
                 log_file_path = {0}/spool/%slog\n\
                 primary_hostname = mail.example.test\n\
                 keep_environment =\n\
                 trusted_users = root\n\
                 never_users =\n\
                 begin routers\n\
                 everybody:\n  driver = accept\n  transport = maildir_home\n\
                 {recipe}",
                house.folder.path().display(),
                exim().display()
            ),
        );
        Self {
            house,
            configuration,
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(exim());
        command.arg("-C").arg(&self.configuration);
        command
    }

    /// Sends a letter, and tries once to deliver it. These are two steps: only the superuser may use another configuration and
    /// keep its privileges, and Exim drops them when it receives mail.
    fn send(&self, letter: &Letter) {
        let mut command = self.command();
        command.args(["-odq", "-oi", "-f", "alice@example.org", "bob@example.org"]);
        let output = deliver(&mut command, letter);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        self.run_queue("-q");
    }

    /// Returns the number of waiting messages.
    fn waiting(&self) -> usize {
        let output = self.command().arg("-bpc").output().unwrap();
        let number = String::from_utf8(output.stdout).unwrap();
        number.trim().parse().unwrap()
    }

    fn run_queue(&self, how: &str) {
        let output = self.command().arg(how).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    fn log(&self) -> String {
        fs::read_to_string(self.house.path("spool/mainlog")).unwrap_or_default()
    }

    #[track_caller]
    fn arrives(&self, letter: &Letter) {
        assert_eq!(self.waiting(), 0, "{}", self.log());
        letter.arrived_as(&self.house.only("Maildir"));
    }

    /// Sends a letter, asserts that it waits and is not delivered, repairs embody, and asserts that the letter is delivered.
    #[track_caller]
    fn waits_and_arrives(&self, stand: Stand) {
        let letter = Letter::data("data");
        self.house.stands(stand);
        self.send(&letter);
        let log = self.log();
        assert_eq!(self.waiting(), 1, "{stand:?}: {log}");
        assert!(log.contains("== bob@example.org"), "no deferral: {log}");
        assert!(self.house.delivered("Maildir").is_empty(), "{stand:?}");
        self.house.stands(Stand::Works);
        self.run_queue("-qff");
        self.arrives(&letter);
    }
}

#[test]
fn exim_delivers_what_embody_made() {
    if !possible("exim") {
        return;
    }
    let exim = Exim::with(&[]);
    for letter in exim.house.letters() {
        exim.send(&letter);
        exim.arrives(&letter);
    }
    assert_eq!(exim.house.http.count(), 1);
}

#[test]
fn exim_keeps_the_message_for_later_when_embody_fails() {
    if !possible("exim and an embody that fails") {
        return;
    }
    let exim = Exim::with(&[]);
    for stand in [Stand::Exits(75), Stand::DiesHalfWay, Stand::Missing] {
        exim.waits_and_arrives(stand);
    }
}

#[test]
fn exim_keeps_the_message_for_later_after_the_time_out() {
    if !possible("exim and an embody that hangs") {
        return;
    }
    Exim::with(&[ONE_SECOND]).waits_and_arrives(Stand::Hangs);
}

#[test]
fn without_a_retry_rule_exim_bounces_after_a_time_out_but_not_when_embody_fails() {
    if !possible("exim without a retry rule") {
        return;
    }
    let exim = Exim::with(&[("*  *  F,2h,15m; G,16h,1h,1.5; F,4d,6h", ""), ONE_SECOND]);
    for stand in [Stand::Exits(75), Stand::Missing] {
        exim.waits_and_arrives(stand);
    }
    exim.house.stands(Stand::Hangs);
    exim.send(&Letter::data("data"));
    let log = exim.log();
    assert!(log.contains("** bob@example.org"), "no bounce: {log}");
}
