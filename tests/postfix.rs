//! samples/recipes/postfix-delivery and postfix-content-filter with Postfix itself.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use common::mta::{House, Letter, Stand, eventually, wanted};
use common::postfix::{NOBODY, Postfix};
use common::smtp::Smtp;

const LDA: &str = "/usr/lib/dovecot/dovecot-lda";

/// The house, with a Maildir for nobody.
fn house() -> House {
    let house = House::new();
    house.maildir_of("Maildir", NOBODY);
    let then = house.recipe("embody-then", &[]);
    fs::set_permissions(then, fs::Permissions::from_mode(0o755)).unwrap();
    house
}

fn recipe(house: &House, name: &str, changes: &[(&str, &str)]) -> String {
    fs::read_to_string(house.recipe(name, changes)).unwrap()
}

/// Delivery through the pipe; Dovecot's program delivers, to the one user there is.
fn delivery(house: &House, time_limit: &str) -> Postfix {
    house.write(
        "dovecot.conf",
        &format!(
            "protocols =\nssl = no\nfirst_valid_uid = 1\nmail_location = maildir:{}\nlog_path = /dev/stderr\n",
            house.text("Maildir")
        ),
    );
    let main = recipe(
        house,
        "postfix-delivery/main.cf",
        &[("embody_time_limit = 120s", time_limit)],
    );
    let lda = format!("{LDA} -c {} -f ${{sender}}", house.text("dovecot.conf"));
    let master = recipe(
        house,
        "postfix-delivery/master.cf",
        &[
            ("user=vmail", "user=nobody"),
            (&format!("{LDA} -f ${{sender}} -d ${{recipient}}"), &lda),
        ],
    );
    let smtpd = "127.0.0.1:PORT inet n - n - - smtpd\n";
    Postfix::start(house, &main, &format!("{smtpd}{master}"))
}

/// Postfix's own program for virtual mailboxes delivers what the filter hands back.
fn content_filter(house: &House, time_limit: &str) -> Postfix {
    let main = recipe(
        house,
        "postfix-content-filter/main.cf",
        &[("embody_time_limit = 120s", time_limit)],
    );
    let master = recipe(
        house,
        "postfix-content-filter/master.cf",
        &[
            (
                "smtp      inet  n       -       y",
                "127.0.0.1:PORT inet n - n",
            ),
            ("user=embody", "user=nobody"),
        ],
    );
    let mailboxes = format!(
        "virtual_mailbox_base = {}\n\
         virtual_mailbox_maps = static:Maildir/\n\
         virtual_uid_maps = static:{NOBODY}\n\
         virtual_gid_maps = static:{NOBODY}\n",
        house.folder.path().display()
    );
    Postfix::start(house, &format!("{main}{mailboxes}"), &master)
}

/// Each of the letters that there is something to do with, and one that there is not.
#[track_caller]
fn all_arrive(house: &House, postfix: &Postfix) {
    for letter in house.letters() {
        Smtp::connect(postfix.port).send(&letter);
        arrives(house, postfix, &letter);
    }
    assert_eq!(house.http.count(), 1);
}

#[track_caller]
fn arrives(house: &House, postfix: &Postfix, letter: &Letter) {
    eventually(20, "the mail arrives", || {
        !house.delivered("Maildir").is_empty()
    });
    letter.arrived_as(&house.only("Maildir"));
    eventually(20, "the queue is empty", || postfix.waiting() == 0);
}

/// Waits, is not delivered, and arrives when embody works again.
#[track_caller]
fn waits_and_arrives(house: &House, postfix: &Postfix, stand: Stand) {
    let deferred = postfix.log().matches("status=deferred").count();
    house.stands(stand);
    let letter = Letter::data("data");
    Smtp::connect(postfix.port).send(&letter);
    postfix.says("status=deferred", deferred + 1);
    assert_eq!(postfix.waiting(), 1, "{stand:?}");
    assert!(house.delivered("Maildir").is_empty(), "{stand:?}");
    if !matches!(stand, Stand::Works) {
        house.stands(Stand::Works);
    }
    postfix.flush();
    arrives(house, postfix, &letter);
}

#[test]
fn the_delivery_hook_delivers_what_embody_made() {
    let test = "the delivery hook";
    if !Postfix::possible(test) || wanted(test, LDA).is_none() {
        return;
    }
    let house = house();
    let postfix = delivery(&house, "embody_time_limit = 120s");
    all_arrive(&house, &postfix);
    for stand in [Stand::Exits(75), Stand::DiesHalfWay, Stand::Missing] {
        waits_and_arrives(&house, &postfix, stand);
    }
}
