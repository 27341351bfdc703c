//! Trackers whose picture is in the mail all the same.

use std::collections::HashMap;

use super::places::{Meaning, Place};
use super::wanted::Wanted;
use crate::link::url::{equivalence_key, without_fragment};
use crate::report::Reason;

/// Has those trackers of a document retrieved whose URL the document shows as well: it is asked for anyway, and a second
/// run would find it in the mail.
pub(super) fn shown_as_well(found: &mut [Place], urls: &[Wanted]) {
    let is_tracker = |place: &Place| match &place.meaning {
        Meaning::Refused(refusal) => refusal.reason == Reason::Tracker,
        _ => false,
    };
    if !found.iter().any(is_tracker) {
        return;
    }
    let asked: HashMap<String, usize> = found
        .iter()
        .filter_map(|place| match place.meaning {
            Meaning::Url(number) => Some((urls.get(number)?, number)),
            _ => None,
        })
        .filter(|(wanted, _)| !wanted.is_sheet)
        .map(|(wanted, number)| (equivalence_key(&wanted.source), number))
        .collect();
    for place in found.iter_mut().filter(|place| is_tracker(place)) {
        let url = place.shown.as_deref().unwrap_or_default();
        if let Some(&number) = asked.get(&equivalence_key(without_fragment(url))) {
            place.meaning = Meaning::Url(number);
        }
    }
}
