//! samples/recipes/postfix-delivery and postfix-content-filter with Postfix.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use crate::common::mta::{House, LDA, Letter, NOBODY, Stand, eventually, many, wanted};
use crate::common::postfix::Postfix;
use crate::common::raw::{Raw, ok};
use crate::common::smtp::Smtp;

/// Creates the files of the test, with a Maildir for nobody, and embody-then with these changes.
fn house(changes: &[(&str, &str)]) -> House {
    let house = House::new();
    house.maildir_of("Maildir", Some(NOBODY));
    let then = house.recipe("embody-then", changes);
    fs::set_permissions(then, fs::Permissions::from_mode(0o755)).unwrap();
    house
}

fn recipe(house: &House, name: &str, changes: &[(&str, &str)]) -> String {
    fs::read_to_string(house.recipe(name, changes)).unwrap()
}

/// Starts Postfix with delivery through the pipe. Dovecot's program delivers to the only user.
fn delivery(house: &House, changes: &[(&str, &str)]) -> Postfix {
    house.write(
        "dovecot.conf",
        &format!(
            "protocols =\nssl = no\nfirst_valid_uid = 1\nmail_location = maildir:{}\nlog_path = /dev/stderr\n",
            house.text("Maildir")
        ),
    );
    let main = recipe(house, "postfix-delivery/main.cf", changes);
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

/// Starts Postfix with its program for virtual mailboxes, which delivers the output of the filter.
fn content_filter(house: &House, changes: &[(&str, &str)]) -> Postfix {
    let main = recipe(house, "postfix-content-filter/main.cf", changes);
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

/// Sends letters that embody changes, and one that it does not change, and asserts that all arrive.
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
    eventually(60, "the mail arrives", || {
        !house.delivered("Maildir").is_empty()
    });
    letter.arrived_as(&house.only("Maildir"));
    eventually(60, "the queue is empty", || postfix.waiting() == 0);
}

/// Sends a letter, asserts that it waits and is not delivered, repairs embody, and asserts that the letter arrives.
#[track_caller]
fn waits_and_arrives(house: &House, postfix: &Postfix, what: &str, repair: impl Fn()) {
    let deferred = postfix.log().matches("status=deferred").count();
    let letter = Letter::data("data");
    Smtp::connect(postfix.port).send(&letter);
    postfix.says("status=deferred", deferred + 1);
    assert_eq!(postfix.waiting(), 1, "{what}");
    assert!(house.delivered("Maildir").is_empty(), "{what}");
    repair();
    // Repeated, because a message that is just moving to the deferred queue is not flushed.
    eventually(60, "the mail arrives", || {
        postfix.flush();
        !house.delivered("Maildir").is_empty()
    });
    arrives(house, postfix, &letter);
}

/// Asserts that mail waits, whatever the failure is.
#[track_caller]
fn all_wait(house: &House, postfix: &Postfix) {
    for stand in [Stand::Exits(75), Stand::DiesHalfWay, Stand::Missing] {
        house.stands(stand);
        let repair = || house.stands(Stand::Works);
        waits_and_arrives(house, postfix, &format!("{stand:?}"), repair);
    }
    let (then, aside) = (house.path("embody-then"), house.path("aside"));
    fs::rename(&then, &aside).unwrap();
    let repair = || fs::rename(&aside, &then).unwrap();
    waits_and_arrives(house, postfix, "no embody-then", repair);
}

/// Returns whether the programs are installed, and the test may change users.
fn possible(test: &str) -> bool {
    Postfix::possible(test) && wanted(test, LDA).is_some()
}

#[test]
fn the_delivery_hook_delivers_what_embody_made_or_waits() {
    if !possible("the delivery hook") {
        return;
    }
    let house = house(&[]);
    let postfix = delivery(&house, &[]);
    all_arrive(&house, &postfix);
    all_wait(&house, &postfix);
}

#[test]
fn the_content_filter_hands_back_what_embody_made_or_waits() {
    if !possible("the content filter") {
        return;
    }
    let house = house(&[]);
    let postfix = content_filter(&house, &[]);
    all_arrive(&house, &postfix);
    Smtp::connect(postfix.port).send_from("", &Letter::data("bounce"));
    arrives(&house, &postfix, &Letter::data("bounce"));
    // The message is in the queue twice, before and after the filter, both times with an empty sender.
    let queued = postfix.log().matches("from=<>, size=").count();
    assert_eq!(queued, 2, "{}", postfix.log());
    all_wait(&house, &postfix);
}

#[test]
fn when_embody_hangs_the_mail_waits() {
    if !possible("Postfix and an embody that hangs") {
        return;
    }
    let waits = |start: fn(&House, &[(&str, &str)]) -> Postfix| {
        let house = house(&[("timeout -k 10 120", "timeout -k 1 1")]);
        let postfix = start(&house, &[]);
        house.stands(Stand::Hangs);
        let repair = || house.stands(Stand::Works);
        waits_and_arrives(&house, &postfix, "hangs", repair);
    };
    // The tests run in parallel, because most of their time is waiting.
    thread::scope(|scope| {
        scope.spawn(|| waits(delivery));
        scope.spawn(|| waits(content_filter));
    });
}

#[test]
fn postfix_bounces_what_exceeds_its_own_limit() {
    if !possible("Postfix's own limit") {
        return;
    }
    let house = house(&[]);
    let line = "header_size_limit = 10240000";
    let limit = format!("{line}\nembody_time_limit = 1s");
    let postfix = delivery(&house, &[(line, &limit)]);
    house.stands(Stand::Hangs);
    Smtp::connect(postfix.port).send(&Letter::data("data"));
    // This is why embody-then has a limit: it must be reached before that of Postfix.
    postfix.says("status=bounced", 1);
}

fn send(postfix: &Postfix, letters: &[Letter]) {
    let mut session = Smtp::connect(postfix.port);
    for letter in letters {
        session.send(letter);
    }
}

/// Asserts that each letter was delivered once and correctly. Bounces would be in the same Maildir, so there are none.
#[track_caller]
fn each_once(house: &House, letters: &[Letter]) {
    let mut delivered = HashMap::new();
    for mail in house.delivered("Maildir") {
        let text = String::from_utf8_lossy(&mail).into_owned();
        let id = text
            .split("\nMessage-ID: <")
            .nth(1)
            .and_then(|rest| rest.split('@').next())
            .unwrap_or_else(|| panic!("a mail of ours has this id in front: {text}"));
        let before = delivered.insert(id.to_owned(), mail);
        assert!(before.is_none(), "{id} arrived twice");
    }
    for letter in letters {
        let mail = delivered
            .remove(&letter.name)
            .unwrap_or_else(|| panic!("{} did not arrive", letter.name));
        letter.arrived_as(&mail);
    }
    assert!(delivered.is_empty(), "{:?}", delivered.keys());
}

#[test]
fn a_thousand_messages_through_the_delivery_hook_arrive_once() {
    if !possible("a thousand messages") {
        return;
    }
    let house = house(&[]);
    let postfix = delivery(&house, &[]);
    let letters = many(&house, 1000);
    thread::scope(|scope| {
        for part in letters.chunks(250) {
            scope.spawn(|| send(&postfix, part));
        }
    });
    eventually(120, "the queue is empty", || postfix.waiting() == 0);
    each_once(&house, &letters);
    assert!(!postfix.log().contains("status=deferred"));
}

#[test]
fn two_hundred_messages_through_an_embody_that_dies_at_random_arrive_once() {
    if !possible("two hundred messages") {
        return;
    }
    let house = house(&[]);
    let postfix = delivery(&house, &[]);
    let letters = many(&house, 200);
    house.stands(Stand::Fickle);
    send(&postfix, &letters);
    postfix.says("status=", letters.len());
    let failed = postfix.log().matches("status=deferred").count();
    assert!(failed > 20, "only {failed} of the deliveries failed");
    house.stands(Stand::Works);
    eventually(60, "the queue is empty", || {
        postfix.flush();
        postfix.waiting() == 0
    });
    each_once(&house, &letters);
}

#[test]
fn without_the_line_of_the_recipe_postfix_cuts_off_a_large_data_url() {
    if !possible("Postfix and a large data: URL") {
        return;
    }
    let letter = Letter::large("large", 200_000);
    let house = house(&[]);
    let postfix = delivery(&house, &[("header_size_limit", "# header_size_limit")]);
    Smtp::connect(postfix.port).send(&letter);
    postfix.says("status=sent", 1);
    let mail = house.only("Maildir");
    assert!(mail.len() < letter.arrives.len() * 3 / 4);
}

#[test]
fn message_that_grows_beyond_the_size_limit_of_the_mail_system_is_delivered() {
    if !possible("Postfix and a message that grows") {
        return;
    }
    let content = vec![b'x'; 9_000_000];
    let http = Raw::saying(ok("application/x-any", &content));
    let url = http.url("/large");
    let letter = Letter::remote("grows", &url, &content);
    assert!(letter.arrives.len() > 10_240_000);
    let without = [("message_size_limit", "# message_size_limit")];
    let sent_with = |changes| {
        let house = house(&[]);
        house.may_ask(http.address.port());
        let postfix = content_filter(&house, changes);
        Smtp::connect(postfix.port).send(&letter);
        (house, postfix)
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let (house, postfix) = sent_with(&[]);
            arrives(&house, &postfix, &letter);
        });
        scope.spawn(|| {
            let (_house, postfix) = sent_with(&without);
            postfix.says("status=deferred", 1);
        });
    });
}
