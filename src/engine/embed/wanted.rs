//! A URL that must be retrieved because a document shows its content.

use crate::engine::Need;

pub(super) type Key = (String, bool, Option<String>);

#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// The URL to request, after `--map` rewrote it. Equivalent URLs have the same form here, so that one response serves all
    /// of them.
    pub(super) url: String,
    pub(super) source: String,
    pub(super) is_sheet: bool,
    /// The URL to request if `url` fails: http instead of https, for a reference without a scheme.
    pub(super) otherwise: Option<(String, String)>,
}

impl Wanted {
    pub(super) fn key(&self) -> Key {
        let otherwise = self.otherwise.as_ref().map(|(url, _)| url.clone());
        (self.url.clone(), self.is_sheet, otherwise)
    }

    pub(super) fn need(&self) -> Need {
        Need::of_url(&self.url, Some(self.accept()))
    }

    pub(super) fn accept(&self) -> &'static str {
        if self.is_sheet { SHEET } else { "image/*" }
    }
}

pub(super) const SHEET: &str = "text/css";
