//! The different pictures that one message displays. A newsletter often displays one picture in several places, for example
//! as an `<img>` and as the background of a table cell, and the server gets one request for it.

use std::collections::HashMap;
use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;

use super::sum::Survey;
use crate::engine::plan::documents::DocumentText;
use crate::expand::LookTarget;
use crate::link::url::{browser_key, without_fragment};

/// The pictures of one message in the order in which it displays them. Hosts beyond the limit of the survey are not listed,
/// so the order decides which hosts the survey lists.
#[derive(Default)]
pub(super) struct ShownPictures {
    pictures: Vec<ShownPicture>,
    /// Indices of the pictures by the hash of their URL, without the fragment.
    known: HashMap<u64, usize>,
}

enum ShownPicture {
    InMail,
    Missing,
    Data(usize),
    /// The host, and whether each place of the picture hides it, as a tracker is hidden.
    Web(String, bool),
    Elsewhere,
}

impl ShownPictures {
    /// Adds a place that displays a picture.
    pub(super) fn add(&mut self, shown: &DocumentText<'_>, target: &LookTarget<'_>) {
        let hidden = shown.link.hidden;
        let (url, picture) = match target {
            LookTarget::Web { host, .. } => {
                let urls = shown.candidates();
                let url = urls.first().map_or(&*shown.absolute, String::as_str);
                let key = browser_key(without_fragment(url));
                (Some(key), ShownPicture::Web(host.clone(), hidden))
            }
            LookTarget::Part => (None, ShownPicture::InMail),
            LookTarget::MissingPart => (None, ShownPicture::Missing),
            LookTarget::Data(octets) => (None, ShownPicture::Data(*octets)),
            LookTarget::Scheme(_) | LookTarget::Nowhere => (None, ShownPicture::Elsewhere),
        };
        let url = url.as_deref().unwrap_or(&shown.absolute);
        let next = self.pictures.len();
        let hash = FixedState::default().hash_one(url);
        let index = *self.known.entry(hash).or_insert(next);
        match self.pictures.get_mut(index) {
            Some(ShownPicture::Web(_, is_tracker)) => *is_tracker &= hidden,
            Some(_) => {}
            None => self.pictures.push(picture),
        }
    }

    /// Adds the pictures to the counts of `survey`.
    pub(super) fn count_in(self, survey: &mut Survey) {
        for picture in self.pictures {
            let pictures = &mut survey.pictures;
            match picture {
                ShownPicture::InMail => pictures.in_mail += 1,
                ShownPicture::Missing => pictures.missing += 1,
                ShownPicture::Data(octets) => {
                    pictures.data += 1;
                    pictures.data_octets += octets as u64;
                }
                ShownPicture::Web(host, true) => {
                    pictures.trackers += 1;
                    survey.hosts.of(&host).trackers += 1;
                }
                ShownPicture::Web(host, false) => {
                    pictures.remote += 1;
                    survey.hosts.of(&host).pictures += 1;
                }
                ShownPicture::Elsewhere => pictures.elsewhere += 1,
            }
        }
    }
}
