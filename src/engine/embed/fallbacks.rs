//! Gives the URL of an embedded picture to the other options and candidates of the same image that no server has.
//!
//! Options and candidates that were not requested keep their URLs: the policy does not allow the request, or a limit was
//! reached. So do those whose server did not respond this time. Their pictures may still exist, and the mail would lose the
//! only reference to them.

use std::collections::{HashMap, HashSet};

use super::places::{LinkUse, PicturePlace};
use crate::engine::plan::documents::Fallbacks;
use crate::engine::report::{Reason, Refusal, Retry};

/// Places whose picture was requested and is not available, by their ordinal.
pub(super) type Lost = HashSet<usize>;

/// Returns whether a server responded to the request for the picture of a place, and does not have it.
pub(super) fn is_lost(place: &PicturePlace, refusal: &Refusal) -> bool {
    let is_response = matches!(
        refusal.reason,
        Reason::HttpStatus
            | Reason::FtpStatus
            | Reason::NotArchived
            | Reason::NotAnImage
            | Reason::TypeMismatch
            | Reason::WebPage
            | Reason::TooManyRedirects
    );
    matches!(place.meaning, LinkUse::Url(_)) && refusal.retry == Retry::Never && is_response
}

/// Handles the options of an `image-set()` that are lost: they get the URL of the first embedded option. Otherwise a mail
/// client could request them from the network.
pub(super) fn point_options(
    found: &[PicturePlace],
    lost: &Lost,
    urls: &mut HashMap<usize, String>,
    fallbacks: &mut Fallbacks,
) {
    for options in found.chunk_by(|one, next| one.image_set == next.image_set) {
        let is_set = options.first().is_some_and(|one| one.image_set.is_some());
        let first = options.iter().find_map(|option| urls.get(&option.ordinal));
        if let Some(url) = first.filter(|_| is_set).cloned() {
            point((options.iter(), lost), (&url, None), urls, fallbacks);
        }
    }
}

pub(super) fn point<'f>(
    (places, lost): (impl Iterator<Item = &'f PicturePlace>, &Lost),
    (url, width): (&str, Option<u32>),
    urls: &mut HashMap<usize, String>,
    fallbacks: &mut Fallbacks,
) {
    for place in places.filter(|place| lost.contains(&place.ordinal)) {
        urls.entry(place.ordinal).or_insert_with(|| {
            fallbacks.insert(place.ordinal, width);
            url.to_owned()
        });
    }
}
