//! Replaces dead alternatives of an embedded image: candidates of a `srcset` and options of an `image-set()` that their
//! server no longer has get the URL of the embedded picture.
//!
//! Alternatives that were not requested, because of the policy or a limit, keep their URLs. So do those whose server
//! did not respond this time: the picture may still exist, and the mail contains the only reference to it.

use std::collections::{HashMap, HashSet};

use super::places::{LinkUse, PicturePlace};
use crate::engine::plan::documents::Fallbacks;
use crate::engine::report::{Reason, Refusal, Retry};

/// Dead places, by their ordinal: the picture was requested, and its server does not have it.
pub(super) type Lost = HashSet<usize>;

/// Whether the request for a picture failed for good: the server responded, and does not have the picture.
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

/// Points the dead options of each `image-set()` to the first embedded option. Otherwise a mail client could request
/// them from the network.
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
