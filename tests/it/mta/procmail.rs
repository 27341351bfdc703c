//! samples/recipes/procmailrc with procmail.

use std::process::{Command, Output};

use crate::common::mta::{House, Letter, Stand, deliver, wanted};

fn procmail(house: &House, changes: &[(&str, &str)], letter: &Letter) -> Output {
    let recipe = house.recipe("procmailrc", changes);
    deliver(
        Command::new("procmail")
            .arg("VERBOSE=on")
            .arg(format!("LOGFILE={}", house.text("log")))
            .arg(format!("DEFAULT={}/", house.text("Maildir")))
            .arg(recipe),
        letter,
    )
}

#[track_caller]
fn arrives(house: &House, changes: &[(&str, &str)], letter: &Letter) {
    let output = procmail(house, changes, letter);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    letter.arrived_as(&house.only("Maildir"));
}

#[test]
fn procmail_delivers_what_embody_made() {
    if wanted("procmail", "procmail").is_none() {
        return;
    }
    let house = House::new();
    for letter in house.letters() {
        arrives(&house, &[], &letter);
    }
    assert_eq!(house.http.count(), 1);
}

#[test]
fn procmail_delivers_the_message_as_it_came_when_embody_fails() {
    if wanted("procmail", "procmail").is_none() {
        return;
    }
    let house = House::new();
    let letter = Letter::data("data").unfiltered();
    for stand in [Stand::Exits(75), Stand::DiesHalfWay, Stand::Missing] {
        house.stands(stand);
        arrives(&house, &[], &letter);
    }
}

#[test]
fn procmail_delivers_the_message_as_it_came_after_the_time_out() {
    if wanted("procmail", "procmail").is_none() {
        return;
    }
    let house = House::new();
    house.stands(Stand::Hangs);
    arrives(
        &house,
        &[("TIMEOUT=120", "TIMEOUT=1")],
        &Letter::data("data").unfiltered(),
    );
}

#[test]
fn procmail_defers_on_failure_with_the_optional_last_lines_of_the_recipe() {
    if wanted("procmail", "procmail").is_none() {
        return;
    }
    let house = House::new();
    let changes = [(
        "\n#:0 e\n#{\n#  EXITCODE=75\n#  HOST=stop.here\n#}",
        "\n:0 e\n{\n  EXITCODE=75\n  HOST=stop.here\n}",
    )];
    let limit = ("TIMEOUT=120", "TIMEOUT=1");
    for stand in [
        Stand::Exits(75),
        Stand::DiesHalfWay,
        Stand::Missing,
        Stand::Hangs,
    ] {
        house.stands(stand);
        let output = procmail(&house, &[changes[0], limit], &Letter::data("data"));
        assert_eq!(output.status.code(), Some(75), "{output:?}");
        assert!(house.delivered("Maildir").is_empty());
    }
    house.stands(Stand::Works);
    arrives(&house, &changes, &Letter::data("data"));
}
