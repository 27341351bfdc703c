/// Finds the messages that a transform may change, with a function `next_touch` that finds only the first one in a run
/// of messages. `ends` contains the end of each message.
///
/// The length of a run doubles while no message is found, and starts again at one message after each hit. A rare search
/// word may make `next_touch` search far beyond a hit. Because of the doubling, this costs at most as much as the bytes
/// before the hit, so the total time is linear.
pub(crate) fn one_by_one(
    next_touch: impl Fn(&[u8]) -> Option<usize>,
    bytes: &[u8],
    ends: &[usize],
) -> Vec<usize> {
    let mut touched = Vec::new();
    let (mut next, mut start, mut run) = (0, 0, 1);
    while let Some(&first_end) = ends.get(next) {
        // The length of a run is a multiple of the size of the current message, so that a large message is not followed
        // by many others.
        let least = first_end - start;
        let (mut last, mut end) = (next, first_end);
        while let Some(&further) = ends.get(last + 1)
            && further - start <= least.saturating_mul(run)
        {
            (last, end) = (last + 1, further);
        }
        let searched = bytes.get(start..end).unwrap_or_default();
        match next_touch(searched) {
            None => {
                (next, start) = (last + 1, end);
                run = run.saturating_mul(2);
            }
            Some(at) => {
                let place = start + at.min(searched.len().saturating_sub(1));
                let found = ends.partition_point(|&end| end <= place);
                touched.push(found);
                (next, start) = (found + 1, ends.get(found).copied().unwrap_or(end));
                run = 1;
            }
        }
    }
    touched
}
