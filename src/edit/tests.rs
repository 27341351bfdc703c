use super::*;
use proptest::prelude::*;

#[test]
fn no_edits_borrow_the_input() {
    let edits = Edits::new();
    let output = edits.splice(b"abc").into_bytes();
    assert!(matches!(output, Cow::Borrowed(b"abc")));
}

#[test]
fn a_group_that_overlaps_is_refused_whole() {
    let mut edits = Edits::new();
    edits
        .add(vec![Edit::replace(Span::new(2, 4), b"x".to_vec())])
        .expect("the first group");
    let group = vec![
        Edit::insert(0, b"y".to_vec()),
        Edit::remove(Span::new(3, 5)),
    ];
    assert!(edits.add(group).is_err());
    assert_eq!(edits.splice(b"abcdef").into_bytes().as_ref(), b"abxef");
}

#[test]
fn edit_after_the_end_of_the_message_loses_no_bytes_but_panics() {
    let edits = || Edits::of([Edit::insert(5, b"x".to_vec())]).expect("one edit");
    let spliced = std::panic::catch_unwind(|| edits().splice(b"abc").into_bytes().into_owned());
    let together = std::panic::catch_unwind(|| edits().put_together(b"abc").0);
    assert!(spliced.is_err() && together.is_err());
}

proptest! {
    #[test]
    fn bytes_outside_edits_are_copied_from_the_input(
        original in proptest::collection::vec(any::<u8>(), 0..60),
        cuts in proptest::collection::vec((0usize..60, 0usize..6, "[a-c]{0,3}"), 0..8),
    ) {
        let edits = some_edits(original.len(), cuts);
        let list: Vec<Edit> = edits.iter().cloned().collect();
        let output = edits.splice(&original);
        prop_assert_eq!(output.len(), output.clone().into_bytes().len());
        let growth: i64 = list.iter().map(Edit::growth).sum();
        prop_assert_eq!(output.len() as i64, original.len() as i64 + growth);
        let output = output.into_bytes();
        let (mut from, mut to) = (0, 0);
        for edit in &list {
            let kept = &original[from..edit.span.start];
            prop_assert_eq!(kept, &output[to..to + kept.len()]);
            to += kept.len() + edit.replacement.len();
            from = edit.span.end;
        }
        prop_assert_eq!(&original[from..], &output[to..]);
    }
}

fn some_edits(length: usize, cuts: Vec<(usize, usize, String)>) -> Edits {
    let (mut edits, mut added) = (Edits::new(), 0);
    for (start, extent, text) in cuts {
        let start = start.min(length);
        let end = (start + extent).min(length);
        // A rejected edit, which overlaps an earlier one, is not counted.
        added += usize::from(
            edits
                .add(vec![Edit::replace(Span::new(start, end), text)])
                .is_ok(),
        );
        assert_eq!(edits.len(), added);
    }
    edits
}

proptest! {
    #[test]
    fn edits_of_edited_text_are_edits_of_the_original(
        original in proptest::collection::vec(any::<u8>(), 0..60),
        first in proptest::collection::vec((0usize..60, 0usize..6, "[a-c]{0,9}"), 0..8),
        second in proptest::collection::vec((0usize..90, 0usize..12, "[d-f]{0,3}"), 0..8),
    ) {
        let first = some_edits(original.len(), first);
        let between = first.splice(&original).into_bytes().into_owned();
        let second = some_edits(between.len(), second);
        let expected = second.splice(&between).into_bytes().into_owned();
        let joined = first.then(original.len(), second);
        for pair in joined.iter().collect::<Vec<_>>().windows(2) {
            prop_assert!(pair[0].span.end <= pair[1].span.start);
        }
        let output = joined.splice(&original).into_bytes().into_owned();
        prop_assert_eq!(output, expected);
    }
}

proptest! {
    #[test]
    fn the_order_in_which_edits_are_added_counts_at_one_place_only(
        groups in proptest::collection::vec(
            proptest::collection::vec((0usize..20, 0usize..3, "[a-c]{0,2}"), 1..4), 0..12,
        ),
    ) {
        let original = b"0123456789abcdefghijkl";
        let mut edits = Edits::new();
        // A simple, slow reference implementation. [`Edits`] must give the same result.
        let mut plain: Vec<Edit> = Vec::new();
        for group in groups {
            let group: Group = group
                .into_iter()
                .map(|(start, length, text)| Edit::replace(Span::new(start, start + length), text))
                .collect();
            let mut all = plain.clone();
            all.extend(group.clone());
            all.sort_by_key(|edit| (edit.span.start, edit.span.end));
            let is_apart = all.windows(2).all(|pair| pair[0].span.end <= pair[1].span.start);
            prop_assert_eq!(edits.add(group).is_ok(), is_apart);
            if is_apart {
                plain = all;
            }
            let now: Vec<Edit> = edits.iter().cloned().collect();
            prop_assert_eq!(&now, &plain);
            prop_assert_eq!(edits.len(), plain.len());
        }
        let output = edits.splice(original).into_bytes().into_owned();
        let (together, _) = edits.clone().put_together(original);
        prop_assert_eq!(&output[..], together.as_deref().unwrap_or(original));
        prop_assert_eq!(edits.into_iter().collect::<Vec<_>>(), plain);
    }
}

/// A writer that accepts at most three bytes per call, returns `Interrupted` before each of these calls, and is full
/// after `room` bytes.
struct Faulty {
    taken: Vec<u8>,
    room: usize,
    interrupted: bool,
}

impl Write for Faulty {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.taken.len() == self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let most = bytes.len().min(3).min(self.room - self.taken.len());
        self.taken.extend_from_slice(&bytes[..most]);
        Ok(most)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn interrupted_and_short_writes_lose_nothing_and_a_full_disk_is_an_error() {
    let original = b"0123456789".repeat(5);
    let edited = || {
        let mut edits = Edits::new();
        let group = vec![
            Edit::insert(0, b"front".to_vec()),
            Edit::replace(Span::new(10, 30), b"instead".to_vec()),
        ];
        edits.add(group).expect("they are apart");
        edits
    };
    let whole = edited().splice(&original).into_bytes().into_owned();
    for room in 0..=whole.len() {
        let mut writer = Faulty {
            taken: Vec::new(),
            room,
            interrupted: false,
        };
        let outcome = edited().splice(&original).write_to(&mut writer);
        assert_eq!(outcome.is_ok(), room == whole.len(), "room for {room}");
        assert_eq!(writer.taken, whole[..room]);
    }
}
