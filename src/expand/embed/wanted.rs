//! What is to be retrieved because documents show it, trackers among it whose picture they show as well.

use std::collections::HashMap;

use super::places::{Meaning, Place};
use crate::link::url::{equivalence_key, without_fragment};
use crate::report::Reason;

/// The URL, whether it is a style sheet, and the URL that is asked for if this one fails.
pub(super) type Key = (String, bool, Option<String>);

#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Mapped, and the same for URLs that are equivalent: by each of them a part of the mail is found.
    pub(super) url: String,
    /// The same URL as documents mean it, its password masked.
    pub(super) source: String,
    pub(super) is_sheet: bool,
    /// The URL to ask for if this one fails: http, for a reference that names no scheme.
    pub(super) otherwise: Option<(String, String)>,
}

impl Wanted {
    pub(super) fn key(&self) -> Key {
        let otherwise = self.otherwise.as_ref().map(|(url, _)| url.clone());
        (self.url.clone(), self.is_sheet, otherwise)
    }

    /// The key of its answer among those of the session.
    pub(super) fn asked(&self) -> (String, Option<String>) {
        (self.url.clone(), Some(self.accept().to_owned()))
    }

    pub(super) fn accept(&self) -> &'static str {
        match self.is_sheet {
            true => SHEET,
            false => "image/*",
        }
    }
}

pub(super) const SHEET: &str = "text/css";

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
