/// Returns the indexes of the messages that a transform may change. `ends` contains the end of each message in `bytes`.
/// `next_touch` returns only the first place that the transform may change, so it is called for one group of messages
/// after the other.
///
/// The size of a group doubles while no message is found, and starts again at one message after each found message.
/// `next_touch` may search far beyond the place that it returns, if one of its words is rare. The bytes after the found
/// message are then searched again. Because groups start small, these bytes are at most as many as the bytes that were
/// already done, so the total time is linear.
pub(crate) fn one_by_one(
    next_touch: impl Fn(&[u8]) -> Option<usize>,
    bytes: &[u8],
    ends: &[usize],
) -> Vec<usize> {
    let mut touched = Vec::new();
    let (mut next, mut start, mut times) = (0, 0, 1);
    while let Some(&first_end) = ends.get(next) {
        // A group is limited by its bytes, as a multiple of the size of its first message, and not by its number of
        // messages. Otherwise, it could contain large messages that are searched again after a hit in a small one.
        let least = first_end - start;
        let (mut last, mut end) = (next, first_end);
        while let Some(&further) = ends.get(last + 1)
            && further - start <= least.saturating_mul(times)
        {
            (last, end) = (last + 1, further);
        }
        let searched = &bytes[start..end];
        match next_touch(searched) {
            None => {
                (next, start) = (last + 1, end);
                times = times.saturating_mul(2);
            }
            Some(at) => {
                let place = start + at.min(searched.len().saturating_sub(1));
                let found = ends.partition_point(|&end| end <= place);
                touched.push(found);
                (next, start) = (found + 1, ends.get(found).copied().unwrap_or(end));
                times = 1;
            }
        }
    }
    touched
}
