//! Messages larger than a window: they pass in pieces, and what matters in one is found and worked on all the same.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::common::mailboxes::Expand;
use embody::mailbox::{
    Effect, Locking, Message, Options, Progress, Stop, Summary, Transform, convert_in_place,
    convert_to,
};
use embody::{Edits, Error};
use proptest::prelude::*;

const FROM: &str = "From a@b Thu Jan  1 00:00:00 1970\nSubject: x\n\n";
const NEEDLE: &str = "EXPAND-ME";

/// Puts something in the place of the first needle of each message.
struct Fill {
    with: Expand,
    /// Whether it can tell that a piece does not matter.
    by_pieces: bool,
    /// The most bytes that it was shown in messages.
    most: AtomicUsize,
    numbers: Mutex<Vec<u64>>,
}

impl Fill {
    fn new(with: &'static str, by_pieces: bool) -> Self {
        Self {
            with: Expand(with),
            by_pieces,
            most: AtomicUsize::new(0),
            numbers: Mutex::default(),
        }
    }

    /// The numbers of the messages that it was given, sorted.
    fn numbers(&self) -> Vec<u64> {
        let mut numbers = std::mem::take(&mut *self.numbers.lock().unwrap());
        numbers.sort_unstable();
        numbers
    }
}

impl Transform for Fill {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        self.most.fetch_max(bytes.len(), Ordering::Relaxed);
        self.with.next_touch(bytes)
    }

    fn may_touch(&self, piece: &[u8], _: bool) -> bool {
        !self.by_pieces || self.with.next_touch(piece).is_some()
    }

    fn transform(&self, message: &Message<'_>) -> Result<Edits, Error> {
        self.numbers.lock().unwrap().push(message.number);
        self.with.transform(message)
    }
}

/// What a run says has come, message by message.
#[derive(Default)]
struct Come(Mutex<(u64, u64)>);

impl Progress for Come {
    fn advance(&self, bytes: u64, messages: u64) {
        let mut come = self.0.lock().unwrap();
        *come = (come.0 + bytes, come.1 + messages);
    }
}

/// What becomes of `mbox`, in every way in which it can be written.
fn converted(mbox: &[u8], window: usize, fill: &Fill) -> (Vec<u8>, Summary, Vec<u64>) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("in"), mbox).unwrap();
    let options = Options {
        window,
        ..Options::default()
    };
    let come = Come::default();
    let to = |out: &Path, options: &Options| {
        convert_to(&path("in"), out, options, fill, &come, &Stop::default()).unwrap()
    };
    let summary = to(&path("out"), &options);
    assert_eq!(
        *come.0.lock().unwrap(),
        (summary.bytes_in, summary.messages)
    );
    let numbers = fill.numbers();
    let out = fs::read(path("out")).unwrap();
    assert_eq!(summary.bytes_out, out.len() as u64);
    let rehearsed = to(
        &path("none"),
        &Options {
            effect: Effect::DryRun,
            ..options.clone()
        },
    );
    assert_eq!((rehearsed, fill.numbers()), (summary, numbers.clone()));
    for locking in [Locking::Throughout, Locking::AtBothEnds] {
        fs::write(path("in"), mbox).unwrap();
        let options = Options {
            locking,
            ..options.clone()
        };
        let in_place =
            convert_in_place(&path("in"), &options, fill, &(), &Stop::default()).unwrap();
        assert_eq!((in_place, fill.numbers()), (summary, numbers.clone()));
        assert!(fs::read(path("in")).unwrap() == out, "{locking:?}");
    }
    (out, summary, numbers)
}

/// Messages by their lengths, and where in them the needles are.
fn mailbox(messages: &[(usize, Vec<usize>)]) -> Vec<u8> {
    let mut mbox = Vec::new();
    for (length, needles) in messages {
        let start = mbox.len();
        mbox.extend_from_slice(FROM.as_bytes());
        let body = "An ordinary line of text.\n".repeat(length / 26 + 1);
        mbox.extend_from_slice(body.as_bytes());
        for needle in needles {
            let at = start + FROM.len() + needle % length.saturating_sub(NEEDLE.len()).max(1);
            mbox[at..at + NEEDLE.len()].copy_from_slice(NEEDLE.as_bytes());
        }
        mbox.push(b'\n');
    }
    mbox
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn they_become_what_they_would_if_they_were_held_whole(
        messages in proptest::collection::vec(
            (20_usize..12_000, prop_oneof![
                3 => Just(Vec::new()),
                1 => proptest::collection::vec(0_usize..12_000, 1..3),
            ]),
            1..9,
        ),
        window in 1024_usize..3000,
        with in prop_oneof![Just("!"), Just(NEEDLE), Just("much more than there was, by some words\n")],
    ) {
        let mbox = mailbox(&messages);
        let whole = converted(&mbox, 1 << 20, &Fill::new(with, false));
        let in_pieces = converted(&mbox, window, &Fill::new(with, true));
        prop_assert!(whole == in_pieces);
    }
}

#[test]
fn a_word_on_the_edge_of_a_piece_is_found() {
    for at in 400..1700 {
        let small = mailbox(&[(40, vec![])]);
        let mut large = mailbox(&[(4100, vec![])]);
        large[FROM.len() + at..][..NEEDLE.len()].copy_from_slice(NEEDLE.as_bytes());
        let mbox = [small.as_slice(), &large, &small].concat();
        let folder = tempfile::tempdir().unwrap();
        let (source, out) = (folder.path().join("in"), folder.path().join("out"));
        fs::write(&source, &mbox).unwrap();
        let options = Options {
            window: 1024,
            ..Options::default()
        };
        let fill = Fill::new("!", true);
        convert_to(&source, &out, &options, &fill, &(), &Stop::default()).unwrap();
        assert_eq!(fill.numbers(), [2]);
        let expected = String::from_utf8(mbox).unwrap().replace(NEEDLE, "!");
        assert!(fs::read_to_string(out).unwrap() == expected, "{at}");
    }
}

#[test]
fn a_large_message_in_which_nothing_matters_is_not_held() {
    let mbox = mailbox(&[(100, vec![]), (500_000, vec![]), (100, vec![20])]);
    let fill = Fill::new("!", true);
    let (_, summary, numbers) = converted(&mbox, 4096, &fill);
    assert_eq!((summary.messages, numbers), (3, vec![3]));
    assert!(fill.most.load(Ordering::Relaxed) <= 2 * 4096);
}

#[test]
fn one_that_turns_out_to_be_larger_than_the_bound_is_passed_on() {
    let large = mailbox(&[(30_000, vec![20_000])]);
    let small = mailbox(&[(30, vec![5])]);
    let mbox = [small.as_slice(), &large, &small].concat();
    let folder = tempfile::tempdir().unwrap();
    let (source, out) = (folder.path().join("in"), folder.path().join("out"));
    fs::write(&source, &mbox).unwrap();
    for max_message in [3000, 25_000] {
        let options = Options {
            window: 2048,
            max_message,
            ..Options::default()
        };
        let fill = Fill::new("!", true);
        let summary = convert_to(&source, &out, &options, &fill, &(), &Stop::default()).unwrap();
        let counts = (summary.messages, summary.changed, summary.oversized);
        assert_eq!((counts, fill.numbers()), ((3, 2, 1), vec![1, 3]));
        let new = String::from_utf8(small.clone())
            .unwrap()
            .replace(NEEDLE, "!");
        let expected = [new.as_bytes(), &large, new.as_bytes()].concat();
        assert!(fs::read(&out).unwrap() == expected);
        fs::remove_file(&out).unwrap();
    }
}

/// Makes the mailbox shorter when it is first asked about a piece with a needle in it.
struct Shortens<'m> {
    fill: Fill,
    mailbox: &'m Path,
    to: &'m [u8],
    is_done: AtomicBool,
}

impl Transform for Shortens<'_> {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        self.fill.next_touch(bytes)
    }

    fn may_touch(&self, piece: &[u8], is_start: bool) -> bool {
        let may_touch = self.fill.may_touch(piece, is_start);
        if may_touch && !self.is_done.swap(true, Ordering::Relaxed) {
            fs::write(self.mailbox, self.to).unwrap();
        }
        may_touch
    }

    fn transform(&self, message: &Message<'_>) -> Result<Edits, Error> {
        self.fill.transform(message)
    }
}

#[test]
fn one_that_is_gone_when_it_is_read_again_is_no_end_of_the_run() {
    let (small, large) = ((100, vec![30]), (9000, vec![8000]));
    let folder = tempfile::tempdir().unwrap();
    let mailbox_file = folder.path().join("box");
    fs::write(&mailbox_file, mailbox(&[small.clone(), large])).unwrap();
    let left = mailbox(&[small]);
    let transform = Shortens {
        fill: Fill::new("!", true),
        mailbox: &mailbox_file,
        to: &left,
        is_done: AtomicBool::new(false),
    };
    let options = Options {
        window: 2048,
        jobs: 1,
        locking: Locking::AtBothEnds,
        ..Options::default()
    };
    let stop = Stop::default();
    let summary = convert_in_place(&mailbox_file, &options, &transform, &(), &stop).unwrap();
    assert!(transform.is_done.into_inner());
    assert_eq!((summary.messages, summary.changed), (1, 1));
    let expected = String::from_utf8(left.clone())
        .unwrap()
        .replace(NEEDLE, "!");
    assert!(fs::read_to_string(&mailbox_file).unwrap() == expected);
}
