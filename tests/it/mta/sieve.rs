//! samples/recipes/sieve with Dovecot's delivery program and Pigeonhole.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::common::mta::{House, LDA, Letter, NOBODY, Stand, deliver, is_super_user, wanted};

const PLUGIN: &str = "/usr/lib/dovecot/modules/sieve/lib90_sieve_extprograms_plugin.so";
const PROGRAMS: &str = "/usr/local/lib/dovecot/sieve-filter";
const SCRIPT: &str = "/etc/dovecot/sieve/embody.sieve";

fn possible(test: &str) -> bool {
    [LDA, PLUGIN, "sievec"]
        .iter()
        .all(|name| wanted(test, name).is_some())
}

/// Creates the files of the recipe, with a user whose own script moves mail to another folder.
fn house(changes_of_program: &[(&str, &str)]) -> House {
    let house = House::new();
    let user = is_super_user().then_some(NOBODY);
    house.maildir_of("Maildir", user);
    house.maildir_of("Maildir/.sorted", user);
    let program = house.recipe("sieve/embody", changes_of_program);
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let script = house.recipe("sieve/embody.sieve", &[]);
    let recipe = house.recipe(
        "sieve/dovecot.conf",
        &[
            (PROGRAMS, &house.text("sieve")),
            (SCRIPT, script.to_str().unwrap()),
        ],
    );
    let own = house.write(
        "own.sieve",
        "require \"fileinto\";\nif header :contains \"subject\" [\"data\", \"http\", \"plain\", \"large\"] {\n  fileinto \"sorted\";\n}\n",
    );
    let configuration = house.write(
        "dovecot.conf",
        &format!(
            "protocols =\nssl = no\nfirst_valid_uid = 1\nmail_location = maildir:{}\n\
             namespace {{\n  inbox = yes\n  separator = .\n}}\n\
             log_path = /dev/stderr\n\
             protocol lda {{\n  mail_plugins = $mail_plugins sieve\n}}\n\
             plugin {{\n  sieve = file:{}\n}}\n\
             !include {}\n",
            house.text("Maildir"),
            own.display(),
            recipe.display()
        ),
    );
    for script in [script, own] {
        let compiled = Command::new("sievec")
            .arg("-c")
            .arg(&configuration)
            .arg(script)
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{compiled:?}");
    }
    house
}

/// Asserts that a letter is in the folder that the user's own script selects.
#[track_caller]
fn arrives(house: &House, letter: &Letter) {
    let mut lda = Command::new(LDA);
    lda.arg("-c")
        .arg(house.path("dovecot.conf"))
        .env("HOME", house.folder.path())
        .env_remove("USER");
    if is_super_user() {
        lda.uid(NOBODY).gid(NOBODY);
    }
    let output = deliver(&mut lda, letter);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    letter.arrived_as(&house.only("Maildir/.sorted"));
    assert!(house.delivered("Maildir").is_empty());
}

#[test]
fn sieve_delivers_what_embody_made() {
    if !possible("sieve") {
        return;
    }
    let house = house(&[]);
    for letter in house.letters() {
        arrives(&house, &letter);
    }
    assert_eq!(house.http.count(), 1);
}

#[test]
fn sieve_goes_on_with_the_message_as_it_came_when_embody_fails() {
    if !possible("sieve and an embody that fails") {
        return;
    }
    let house = house(&[]);
    let letter = Letter::data("data").unfiltered();
    for stand in [Stand::Exits(75), Stand::DiesHalfWay, Stand::Missing] {
        house.stands(stand);
        arrives(&house, &letter);
    }
    fs::remove_file(house.path("sieve/embody")).unwrap();
    arrives(&house, &letter);
}

#[test]
fn sieve_goes_on_with_the_message_as_it_came_after_the_time_out() {
    if !possible("sieve and an embody that hangs") {
        return;
    }
    let house = house(&[("timeout -k 10 60", "timeout -k 1 1")]);
    house.stands(Stand::Hangs);
    arrives(&house, &Letter::data("data").unfiltered());
}
