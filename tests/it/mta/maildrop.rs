//! samples/recipes/mailfilter with maildrop.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use crate::common::mta::{House, Letter, Stand, deliver, wanted};

fn maildrop(house: &House, changes: &[(&str, &str)], letter: &Letter) -> Output {
    let recipe = house.recipe("mailfilter", changes);
    let rules = fs::read_to_string(&recipe).unwrap();
    let maildir = house.text("Maildir");
    fs::write(&recipe, format!("DEFAULT=\"{maildir}\"\n{rules}")).unwrap();
    fs::set_permissions(&recipe, fs::Permissions::from_mode(0o600)).unwrap();
    for folder in ["cur", "new", "tmp"] {
        fs::create_dir_all(house.path("Maildir").join(folder)).unwrap();
    }
    deliver(Command::new("maildrop").arg(recipe), letter)
}

#[track_caller]
fn arrives(house: &House, changes: &[(&str, &str)], letter: &Letter) {
    let output = maildrop(house, changes, letter);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    letter.arrived_as(&house.only("Maildir"));
}

#[test]
fn maildrop_delivers_what_embody_made() {
    if wanted("maildrop", "maildrop").is_none() {
        return;
    }
    let house = House::new();
    for letter in house.letters() {
        arrives(&house, &[], &letter);
    }
    assert_eq!(house.http.count(), 1);
}

#[test]
fn maildrop_delivers_the_message_as_it_came_when_embody_fails() {
    if wanted("maildrop", "maildrop").is_none() {
        return;
    }
    let house = House::new();
    let letter = Letter::data("data").unfiltered();
    for stand in [Stand::Exits(75), Stand::DiesHalfWay, Stand::Missing] {
        house.stands(stand);
        arrives(&house, &[], &letter);
    }
}

const ONE_SECOND: (&str, &str) = ("timeout -k 10 60", "timeout -k 1 1");

#[test]
fn maildrop_delivers_the_message_as_it_came_after_the_time_out() {
    if wanted("maildrop", "maildrop").is_none() {
        return;
    }
    let house = House::new();
    house.stands(Stand::Hangs);
    let letter = Letter::data("data").unfiltered();
    arrives(&house, &[ONE_SECOND], &letter);
}

#[test]
fn maildrop_defers_without_the_exception() {
    if wanted("maildrop", "maildrop").is_none() {
        return;
    }
    let house = House::new();
    let changes = [("exception {", ""), ("\n}", ""), ONE_SECOND];
    for stand in [
        Stand::Exits(75),
        Stand::DiesHalfWay,
        Stand::Missing,
        Stand::Hangs,
    ] {
        house.stands(stand);
        let output = maildrop(&house, &changes, &Letter::data("data"));
        assert_eq!(output.status.code(), Some(75), "{stand:?}: {output:?}");
        assert!(house.delivered("Maildir").is_empty());
    }
    house.stands(Stand::Works);
    arrives(&house, &changes[..2], &Letter::data("data"));
}
