//! `detach` and `restore` in place: every message has the same bytes, flags, keywords and date afterwards.

use std::collections::BTreeMap;

use super::client::{Held, lasting};
use super::mails::{fill, rows, run};
use super::rig::{Kind, Server};

/// Detaches from an account and restores it.
fn there_and_back(test: &str, kind: Kind, count: usize, size: usize) {
    let Some(server) = Server::start(test, kind) else {
        return;
    };
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let mut client = server.client();
    let name = server.folder("Archive");
    client.say(&format!("CREATE \"{name}\""));
    // pymap does not accept keywords of users.
    fill(&mut client, &name, count, size, kind != Kind::Pymap);
    let before = client.all(&name);
    assert_eq!(before.len(), count);
    let url = server.url("Archive");
    let url = if kind == Kind::Courier {
        server.url("INBOX/Archive")
    } else {
        url
    };
    run(folder, "detach", &url);
    let between = client.all(&name);
    let octets = |all: &[Held]| all.iter().map(|held| held.size).sum::<usize>();
    assert_eq!(between.len(), count, "{kind:?}");
    // Three of four kinds have an attachment.
    assert!(
        octets(&between) < octets(&before) * 3 / 10 + count * 1500,
        "{kind:?}: {} of {}",
        octets(&between),
        octets(&before)
    );
    let kept = |all: &[Held]| -> Vec<_> {
        let mut all: Vec<_> = all
            .iter()
            .map(|held| (held.date.clone(), held.flags.clone()))
            .collect();
        all.sort();
        all
    };
    assert_eq!(kept(&between), kept(&before), "{kind:?}");
    // A second run changes nothing.
    run(folder, "detach", &url);
    assert_eq!(client.all(&name), between, "{kind:?}");
    let written = rows(folder);
    let by_uid: BTreeMap<u64, u64> = written
        .iter()
        .filter(|row| row["outcome"] == "detached")
        .map(|row| {
            (
                row["uid"].as_u64().unwrap(),
                row["new_uid"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(by_uid.len(), count - count.div_ceil(4), "{kind:?}");
    // The order of the messages is unchanged.
    assert!(by_uid.values().is_sorted(), "{kind:?}: {by_uid:?}");
    for (old, new) in by_uid {
        assert!(before.iter().any(|held| u64::from(held.uid) == old));
        assert!(between.iter().any(|held| u64::from(held.uid) == new));
        assert!(!between.iter().any(|held| u64::from(held.uid) == old));
    }
    run(folder, "restore", &url);
    let written = rows(folder);
    let left: Vec<_> = written
        .iter()
        .filter(|row| row["outcome"] == "left")
        .collect();
    assert!(left.is_empty(), "{kind:?}: {left:?}");
    let after = client.all(&name);
    assert_eq!(lasting(&after), lasting(&before), "{kind:?}");
    let journal = std::fs::read_dir(folder.join("state"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(journal.metadata().unwrap().len(), 0, "{kind:?}");
}

const TEST: &str = "what_was_detached_comes_back_with_flags_keywords_and_dates";

#[test]
fn what_was_detached_comes_back_with_flags_keywords_and_dates() {
    for kind in Kind::ALL {
        there_and_back(TEST, kind, 40, 8000);
    }
}

/// Run by `.ci/peers`.
#[test]
#[ignore = "2,000 mails on three servers and 500 on Courier"]
fn thousands_of_mails_come_back_from_each_server() {
    for kind in Kind::ALL {
        let begun = std::time::Instant::now();
        let count = kind.many_mails();
        there_and_back(
            "thousands_of_mails_come_back_from_each_server",
            kind,
            count,
            20_000,
        );
        eprintln!(
            "{kind:?}: {count} mails there and back, {:?}",
            begun.elapsed()
        );
    }
}
