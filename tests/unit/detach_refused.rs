//! Stores that reject objects: these parts stay in the mail, the other ones are detached, and the rows contain the
//! reasons.

use std::sync::{Arc, Mutex};

use super::common::mail::assert_bytes;
use super::detach::{Memory, made, restorer, settings};
use crate::engine::Mode;
use crate::engine::detach::{Planner, Refused};
use crate::engine::policy::{OnFailure, Policy};
use crate::engine::report::{Outcome, Reason, Refusal};
use crate::error::Error;
use crate::expand::detach::{Detacher, Settings, Stub};
use crate::fetch::store::{Key, Store, StoreError};
use crate::mime::{ScanLimits, scan};

/// A store that rejects one content, or every flush. It records the calls.
#[derive(Debug)]
struct Choosy {
    memory: Arc<Memory>,
    refuses: Option<Key>,
    fails_to_flush: bool,
    is_temporary: bool,
    puts: Mutex<Vec<Key>>,
    flushes: Mutex<Vec<Vec<Key>>>,
}

impl Choosy {
    fn error(&self) -> StoreError {
        if self.is_temporary {
            StoreError::temporary("the disk is away")
        } else {
            StoreError::lasting("the disk is full of holes")
        }
    }
}

impl Store for Choosy {
    fn put(&self, octets: &[u8]) -> Result<Key, StoreError> {
        let key = Key::of(octets);
        self.puts.lock().unwrap().push(key);
        if self.refuses == Some(key) {
            Err(self.error())
        } else {
            self.memory.put(octets)
        }
    }

    fn flush(&self, keys: &[Key]) -> Result<(), StoreError> {
        self.flushes.lock().unwrap().push(keys.to_vec());
        if self.fails_to_flush {
            Err(self.error())
        } else {
            Ok(())
        }
    }

    fn get(&self, key: &Key, at_most: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.memory.get(key, at_most)
    }

    fn base_url(&self) -> String {
        self.memory.base_url()
    }
}

fn contents() -> [Vec<u8>; 3] {
    [b'a', b'b', b'c'].map(|letter| vec![letter; 3000])
}

fn mail() -> Vec<u8> {
    let encoded = |content: &Vec<u8>| {
        let text = base64_simd::STANDARD.encode_to_string(content);
        let lines: Vec<&str> = text
            .as_bytes()
            .chunks(76)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        format!(
            "Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n{}\n",
            lines.join("\n")
        )
    };
    let parts: Vec<String> = contents().iter().map(encoded).collect();
    format!(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n{}\n--b--\n",
        parts.join("\n--b\n")
    )
    .into_bytes()
}

fn choosy(refuses: Option<Key>, fails_to_flush: bool, is_temporary: bool) -> Arc<Choosy> {
    Arc::new(Choosy {
        memory: Arc::default(),
        refuses,
        fails_to_flush,
        is_temporary,
        puts: Mutex::default(),
        flushes: Mutex::default(),
    })
}

fn detacher(store: &Arc<Choosy>, on_failure: OnFailure) -> Detacher {
    Detacher::new(Settings {
        store: Some(Arc::clone(store) as Arc<dyn Store>),
        on_failure,
        ..settings(&store.memory, Stub::ExternalBody, false)
    })
}

fn outcomes(report: &crate::Report) -> Vec<(Outcome, Option<Reason>)> {
    report
        .rows
        .iter()
        .map(|row| (row.outcome, row.reason))
        .collect()
}

#[test]
fn a_content_that_the_store_refuses_stays_and_the_others_leave() {
    let [first, second, third] = contents().map(|content| Key::of(&content));
    let store = choosy(Some(second), false, false);
    let mail = mail();
    let detachment = detacher(&store, OnFailure::Leave)
        .detach(&mail, "test")
        .unwrap();
    let [one, two, three] = detachment.report.rows.as_slice() else {
        panic!("{:?}", detachment.report);
    };
    assert_eq!(
        (one.outcome, three.outcome),
        (Outcome::Detached, Outcome::Detached)
    );
    assert_eq!((two.outcome, two.bytes), (Outcome::Left, None));
    assert!(
        two.detail.to_string().contains("full of holes"),
        "{}",
        two.detail
    );
    let keys: Vec<Option<Key>> = detachment.attachments.iter().map(|it| it.key).collect();
    assert_eq!(keys, [Some(first), None, Some(third)]);
    // Each content is offered once, and only the detached objects are flushed.
    assert_eq!(*store.puts.lock().unwrap(), [first, second, third]);
    assert_eq!(*store.flushes.lock().unwrap(), [vec![first, third]]);
    let small = made(&mail, &detachment.edits);
    let restored = restorer(&store.memory).expand(&small, "test").unwrap();
    assert_bytes(&made(&small, &restored.edits), &mail, "restored");
}

#[test]
fn a_mail_stays_whole_if_the_store_cannot_make_its_objects_durable() {
    let store = choosy(None, true, false);
    let mail = mail();
    let detachment = detacher(&store, OnFailure::Leave)
        .detach(&mail, "test")
        .unwrap();
    assert_bytes(&made(&mail, &detachment.edits), &mail, "nothing left");
    assert!(detachment.objects.is_empty());
    assert_eq!(detachment.report.gained, 0);
    assert!(
        outcomes(&detachment.report)
            .iter()
            .all(|it| it.0 == Outcome::Left)
    );
    assert_eq!(store.flushes.lock().unwrap().len(), 1);
}

#[test]
fn a_failure_that_may_be_over_later_defers_the_mail_if_the_user_wants_that() {
    let [first, ..] = contents().map(|content| Key::of(&content));
    for (refuses, fails_to_flush) in [(Some(first), false), (None, true)] {
        let store = choosy(refuses, fails_to_flush, true);
        let failed = detacher(&store, OnFailure::Defer).detach(&mail(), "test");
        let Err(Error::Deferred(detail)) = failed else {
            panic!("{failed:?}");
        };
        assert!(detail.to_string().contains("the disk is away"), "{detail}");
        let store = choosy(refuses, fails_to_flush, true);
        let left = detacher(&store, OnFailure::Leave)
            .detach(&mail(), "test")
            .unwrap();
        assert!(left.temporary.is_some());
    }
}

#[test]
fn same_mail_and_refusals_give_the_same_detach_plan() {
    let mail = mail();
    let memory = Arc::new(Memory::default());
    let Settings {
        choice, base_url, ..
    } = settings(&memory, Stub::ExternalBody, false);
    let planner = Planner::new(choice, base_url, Mode::Run);
    let all = planner.plan(&mail, "test", &Refused::new());
    let keys: Vec<Key> = all.objects.iter().map(|object| object.key).collect();
    assert_eq!(keys, contents().map(|content| Key::of(&content)));
    for (object, content) in all.objects.iter().zip(contents()) {
        assert_eq!(object.length, 3000);
        assert_eq!(object.content(&mail).unwrap(), content);
        // In another message, these positions contain other bytes, or do not exist.
        assert!(object.content(mail.get(..50).unwrap()).is_err());
    }
    // The planner has the default limits. With `other`, the whole mail is one part, so the planner must parse it again.
    let default = Policy::default().limits.scan();
    let other = ScanLimits {
        depth: 0,
        ..default
    };
    let trees = [default, other].map(|limits| (scan(&mail, &limits), limits));
    assert_eq!(trees[1].0.ids().count(), 1);
    let [parsed, parsed_with_other_limits] = trees
        .each_ref()
        .map(|(tree, limits)| planner.plan_parsed((tree, limits), "test", &Refused::new()));
    let again = planner.plan(&mail, "test", &Refused::new());
    for plan in [again, parsed, parsed_with_other_limits] {
        assert_bytes(
            &made(&mail, &plan.edits),
            &made(&mail, &all.edits),
            "the same plan",
        );
    }
    let refusal = || Refusal::lasting(Reason::FileNotReadable, "no");
    let refused: Refused = keys.iter().map(|key| (*key, refusal())).collect();
    let none = planner.plan(&mail, "test", &refused);
    assert!(none.objects.is_empty() && none.edits.is_empty());
    let reasons = vec![(Outcome::Left, Some(Reason::FileNotReadable)); 3];
    assert_eq!(outcomes(&none.report), reasons);
}

#[test]
fn a_content_of_two_parts_is_offered_once_even_if_the_store_refuses_it() {
    let [first, second, _] = contents();
    let as_base64 = |content: &[u8]| base64_simd::STANDARD.encode_to_string(content);
    let lines = |text: String| {
        let lines = text.as_bytes().chunks(76).map(<[u8]>::to_vec);
        lines.collect::<Vec<_>>().join(&b'\n')
    };
    let [one, other] = [&first, &second].map(|content| lines(as_base64(content)));
    // The third part gets the content of the second one.
    let text = String::from_utf8(mail()).unwrap();
    let third = String::from_utf8(lines(as_base64(&contents()[2]))).unwrap();
    let twice = text.replace(&third, &String::from_utf8(other).unwrap());
    assert!(twice.contains(&String::from_utf8(one).unwrap()));
    let store = choosy(Some(Key::of(&second)), false, false);
    let detachment = detacher(&store, OnFailure::Leave)
        .detach(twice.as_bytes(), "test")
        .unwrap();
    let expected = [Key::of(&first), Key::of(&second)];
    assert_eq!(*store.puts.lock().unwrap(), expected);
    let left = outcomes(&detachment.report);
    let kinds: Vec<Outcome> = left.iter().map(|it| it.0).collect();
    assert_eq!(kinds, [Outcome::Detached, Outcome::Left, Outcome::Left]);
}
