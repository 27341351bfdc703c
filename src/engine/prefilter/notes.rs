//! Finds the messages of a mailbox that contain a match of a search. One search reads a block of many messages, which is faster
//! than a search for each message.

use std::ops::Range;

pub(super) fn add_messages(
    search: impl Fn(usize) -> Option<usize>,
    ends: &[usize],
    matters: impl Fn(Range<usize>) -> bool,
    found: &mut Vec<usize>,
) {
    let (mut start, mut number) = (0, 0);
    while let Some(at) = search(start) {
        number += ends[number..].partition_point(|&end| end <= at);
        let Some(&end) = ends.get(number) else {
            break;
        };
        let before = number.checked_sub(1).and_then(|before| ends.get(before));
        if matters(before.copied().unwrap_or_default()..end) {
            found.push(number);
        }
        (start, number) = (end, number + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_by_a_word_in_them_and_each_only_once() {
        let two = b"one word|none|word, word|";
        let mut found = Vec::new();
        let search = |from| Some(from + memchr::memmem::find(two.get(from..)?, b"word")?);
        add_messages(search, &[9, 14, two.len()], |_| true, &mut found);
        assert_eq!(found, [0, 2]);
    }
}
