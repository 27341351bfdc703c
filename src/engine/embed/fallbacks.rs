//! Gives the URL of an embedded picture to the other options and candidates of the same image, which were not embedded.

use std::collections::HashMap;

use super::places::Place;
use crate::engine::plan::documents::Fallbacks;

/// Handles the options of an `image-set()` that were not embedded: they get the URL of the first embedded option. Otherwise a
/// mail client could request them from the network.
pub(super) fn point_options(
    found: &[Place],
    urls: &mut HashMap<usize, String>,
    fallbacks: &mut Fallbacks,
) {
    for options in found.chunk_by(|one, next| one.image_set == next.image_set) {
        let is_set = options.first().is_some_and(|one| one.image_set.is_some());
        let first = options.iter().find_map(|option| urls.get(&option.ordinal));
        if let Some(url) = first.filter(|_| is_set).cloned() {
            point(options.iter(), (&url, None), urls, fallbacks);
        }
    }
}

pub(super) fn point<'f>(
    places: impl Iterator<Item = &'f Place>,
    (url, width): (&str, Option<u32>),
    urls: &mut HashMap<usize, String>,
    fallbacks: &mut Fallbacks,
) {
    for place in places {
        urls.entry(place.ordinal).or_insert_with(|| {
            fallbacks.insert(place.ordinal, width);
            url.to_owned()
        });
    }
}
