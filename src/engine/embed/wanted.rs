//! What is to be retrieved because documents show it.

use crate::engine::Need;

pub(super) type Key = (String, bool, Option<String>);

#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Mapped, and the same for URLs that are equivalent: by each of them a part of the mail is found.
    pub(super) url: String,
    pub(super) source: String,
    pub(super) is_sheet: bool,
    /// Asked for if this one fails: http, for a reference that names no scheme.
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
        match self.is_sheet {
            true => SHEET,
            false => "image/*",
        }
    }
}

pub(super) const SHEET: &str = "text/css";
