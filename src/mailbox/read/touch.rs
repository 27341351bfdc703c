/// Asks `next_touch`, which only tells where the next message is, about runs of messages, which end at `ends`.
///
/// The runs double while nothing is found and start again at one message behind a find. So what is searched in vain beyond a
/// find (by a needle that is rare) was paid for by the bytes before it, and the whole is linear however the finds lie.
pub(crate) fn one_by_one(
    next_touch: impl Fn(&[u8]) -> Option<usize>,
    bytes: &[u8],
    ends: &[usize],
) -> Vec<usize> {
    let mut touched = Vec::new();
    let (mut next, mut start, mut run) = (0, 0, 1);
    while let Some(&first_end) = ends.get(next) {
        // Runs are counted in bytes of the message at hand: a large one is not followed by many.
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
