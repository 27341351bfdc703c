//! The simulated servers, and the budgets of faults with which the model is explored.

use super::server::{CODES, DISTINCT_CODES, Deduplication, Nature, Place};
use super::{Budget, Download, Model};
use crate::imap::machine::Rule;

fn budget(faults: u8, client: u8, kills: u8, restores: u8) -> Budget {
    Budget {
        faults,
        client,
        kills,
        restores,
    }
}

fn model(nature: Nature) -> Model {
    Model {
        nature,
        without: None,
        budget: budget(1, 1, 1, 0),
        codes: &CODES,
        has_empty_snapshot: false,
        is_old_journal: false,
        has_rival: false,
        loses_store: false,
        download: Download::Right,
    }
}

#[track_caller]
fn holds(name: &str, model: &Model) {
    if let Err(why) = model.explore() {
        panic!("{name}: {why}");
    }
}

/// Returns the simulated servers to explore, with their names. Only combinations of properties that real servers have
/// are included.
fn natures() -> Vec<(String, Nature)> {
    let plain = Nature::default();
    let condstore = Nature {
        has_condstore: true,
        ..plain
    };
    let gmail = Nature {
        is_gmail: true,
        has_trash: true,
        ..plain
    };
    let replace = Nature {
        is_full: true,
        has_replace: true,
        ..plain
    };
    vec![
        ("plain".into(), plain),
        ("CONDSTORE".into(), condstore),
        ("Gmail".into(), gmail),
        (
            "trash".into(),
            Nature {
                has_trash: true,
                ..plain
            },
        ),
        (
            "no APPENDUID".into(),
            Nature {
                gives_no_uid: true,
                ..plain
            },
        ),
        (
            "other bytes".into(),
            Nature {
                alters: true,
                ..plain
            },
        ),
        (
            "another date".into(),
            Nature {
                changes_date: true,
                ..plain
            },
        ),
        (
            "no date".into(),
            Nature {
                gives_no_date: true,
                ..plain
            },
        ),
        (
            "quota".into(),
            Nature {
                is_full: true,
                ..plain
            },
        ),
        ("REPLACE".into(), replace),
        (
            "REPLACE, other bytes".into(),
            Nature {
                alters: true,
                ..replace
            },
        ),
        (
            "REPLACE, no APPENDUID".into(),
            Nature {
                gives_no_uid: true,
                ..replace
            },
        ),
        (
            "REPLACE, and the server alters the new message and the restored old message".into(),
            Nature {
                alters: true,
                alters_original: true,
                ..replace
            },
        ),
        (
            "REPLACE, no APPENDUID, other bytes".into(),
            Nature {
                gives_no_uid: true,
                alters: true,
                ..replace
            },
        ),
        (
            "neighbours".into(),
            Nature {
                has_neighbours: true,
                ..plain
            },
        ),
    ]
}

/// Returns the simulated servers that take a new message with the same Message-ID for the old one.
fn deduplicating() -> Vec<(String, Nature)> {
    let mut all = Vec::new();
    for deduplicates in [Deduplication::KeepsOld, Deduplication::KeepsNew] {
        for is_quiet in [false, true] {
            for gives_no_uid in [false, true] {
                let nature = Nature {
                    deduplicates: Some(deduplicates),
                    is_quiet,
                    gives_no_uid,
                    ..Nature::default()
                };
                let name = format!("{deduplicates:?}, quiet {is_quiet}, no UID {gives_no_uid}");
                all.push((name, nature));
            }
        }
    }
    all
}

/// Returns the simulated servers whose UIDs are the places of the messages.
fn shifting() -> Vec<(String, Nature)> {
    let places = [Place::First, Place::BeforeOld, Place::AfterOld, Place::Last];
    let of = |place| {
        let nature = Nature {
            shifts: Some(place),
            has_neighbours: true,
            ..Nature::default()
        };
        (format!("UIDs are places, new mail {place:?}"), nature)
    };
    places.map(of).to_vec()
}

fn explored(name: &str, nature: Nature, budgets: &[(u8, u8, u8)]) {
    for (faults, client, kills) in budgets {
        let budget = budget(*faults, *client, *kills, 0);
        let model = Model {
            budget,
            ..model(nature)
        };
        let name =
            format!("{name}, {faults} faults, {client} actions of another client, {kills} kills");
        holds(&name, &model);
    }
}

/// With the budgets that contain neither faults nor crashes, the second client also moves messages during the run.
#[test]
fn no_server_loses_or_doubles_a_message() {
    for (name, nature) in natures() {
        let budgets = [(1, 1, 0), (1, 0, 1), (0, 1, 1), (0, 1, 0), (0, 2, 0)];
        explored(&name, nature, &budgets);
    }
}

/// All combinations of a fault, an action of the second client and a crash. Refusals have only the codes to which the machine
/// reacts in different ways.
#[test]
fn no_server_loses_or_doubles_a_message_if_fault_client_and_crash_coincide() {
    for (name, nature) in natures() {
        let model = Model {
            codes: &DISTINCT_CODES,
            budget: budget(1, 1, 1, 0),
            ..model(nature)
        };
        holds(&name, &model);
    }
}

/// As above, but with all response codes. This takes too long for every test run, so only `.ci/peers` runs it.
#[test]
#[ignore = "400,000 states"]
fn no_server_loses_or_doubles_a_message_if_any_fault_client_and_crash_coincide() {
    for (name, nature) in natures() {
        explored(&name, nature, &[(1, 1, 1)]);
    }
}

/// Refusals have only the codes to which the machine reacts in different ways, because the codes of two refusals would multiply
/// the states by 64. The tests above try all codes. In a release build, the test needs 54 s and 130 MB.
#[test]
#[ignore = "6,100,000 states: run it in a release build"]
fn no_server_loses_or_doubles_a_message_if_one_event_happens_twice() {
    for (name, nature) in natures() {
        for (faults, client, kills) in [(2, 1, 1), (1, 2, 1), (1, 1, 2)] {
            let model = Model {
                codes: &DISTINCT_CODES,
                budget: budget(faults, client, kills, 0),
                ..model(nature)
            };
            let name = format!(
                "{name}, {faults} faults, {client} actions of another client, {kills} kills"
            );
            holds(&name, &model);
        }
    }
}

#[test]
fn a_server_restored_from_a_snapshot_loses_and_doubles_nothing() {
    for (has_empty_snapshot, is_old_journal) in [(false, false), (true, false), (false, true)] {
        let restored = Model {
            has_empty_snapshot,
            is_old_journal,
            budget: budget(0, 1, 1, 1),
            ..model(Nature::default())
        };
        holds("restored", &restored);
    }
}

#[test]
fn old_message_stays_if_the_store_is_lost_after_a_crash() {
    for (name, nature) in natures() {
        for (faults, client) in [(0, 1), (1, 0)] {
            let model = Model {
                loses_store: true,
                budget: budget(faults, client, 1, 0),
                ..model(nature)
            };
            holds(&format!("{name}, the store is lost"), &model);
        }
    }
}

#[test]
fn a_server_that_takes_the_new_message_for_the_old_one_loses_nothing() {
    for (name, nature) in deduplicating() {
        explored(&name, nature, &[(1, 0, 0), (0, 1, 0), (0, 0, 1)]);
    }
}

#[test]
fn a_server_whose_uids_are_places_loses_nothing() {
    for (name, nature) in shifting() {
        explored(&name, nature, &[(1, 0, 0), (0, 0, 1)]);
    }
}

#[test]
fn content_of_another_message_under_the_uid_of_the_old_one_removes_neither() {
    let neighbours = Nature {
        has_neighbours: true,
        ..Nature::default()
    };
    for download in [Download::OtherContent, Download::OtherUid] {
        for (faults, kills) in [(1, 0), (0, 1)] {
            let model = Model {
                budget: budget(faults, 0, kills, 0),
                download,
                ..model(neighbours)
            };
            holds("wrong download", &model);
        }
    }
}

/// Explores two runs with journals of their own on several servers.
fn explore_two_runs(budgets: &[(u8, u8)]) {
    let plain = Nature::default();
    let condstore = Nature {
        has_condstore: true,
        ..plain
    };
    let no_uid = Nature {
        gives_no_uid: true,
        ..plain
    };
    for nature in [plain, condstore, no_uid] {
        for (faults, kills) in budgets {
            let model = Model {
                budget: budget(*faults, 1, *kills, 0),
                has_rival: true,
                ..model(nature)
            };
            holds(&format!("two runs, {faults} faults, {kills} kills"), &model);
        }
    }
}

#[test]
fn two_runs_with_journals_of_their_own_report_each_doubled_message() {
    explore_two_runs(&[(1, 0), (0, 1)]);
}

#[test]
#[ignore = "run it in a release build"]
fn two_runs_report_each_doubled_message_if_two_faults_or_crashes_coincide() {
    explore_two_runs(&[(1, 1), (2, 0), (0, 2)]);
}

/// Shows that each rule of [`Machine`] is needed: the test switches off one rule at a time, and the model must then
/// find lost or duplicated mail.
#[test]
fn model_finds_lost_or_doubled_mail_if_a_rule_is_omitted() {
    let plain = Nature::default();
    let deduplicating = |deduplicates| Nature {
        deduplicates: Some(deduplicates),
        ..plain
    };
    let neighbours = Nature {
        has_neighbours: true,
        ..plain
    };
    for (rule, nature, budget) in [
        (Rule::MarkedCopy, plain, budget(0, 1, 1, 0)),
        (Rule::Digest, plain, budget(0, 1, 1, 1)),
        (Rule::Unknown, plain, budget(1, 0, 0, 0)),
        (
            Rule::Absence,
            deduplicating(Deduplication::KeepsOld),
            budget(0, 0, 0, 0),
        ),
        (
            Rule::Absence,
            deduplicating(Deduplication::KeepsNew),
            budget(0, 0, 0, 0),
        ),
        (Rule::WrongUid, neighbours, budget(1, 1, 0, 0)),
        (Rule::Resume, plain, budget(1, 0, 0, 0)),
        (Rule::Twins, plain, budget(0, 1, 0, 0)),
        (Rule::Elsewhere, plain, budget(0, 1, 0, 0)),
        (Rule::Objects, plain, budget(0, 0, 1, 0)),
    ] {
        let whole = Model {
            budget,
            has_rival: rule == Rule::Twins,
            loses_store: rule == Rule::Objects,
            ..model(nature)
        };
        whole.explore().unwrap();
        let without = Model {
            without: Some(rule),
            ..whole
        };
        without.explore().unwrap_err();
    }
    for download in [Download::OtherContent, Download::OtherUid] {
        let wrong_download = Model {
            budget: budget(0, 0, 0, 0),
            without: Some(Rule::Identity),
            download,
            ..model(neighbours)
        };
        wrong_download.explore().unwrap_err();
    }
}
