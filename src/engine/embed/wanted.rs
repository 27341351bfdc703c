//! A URL that must be retrieved because a document shows its content.

use crate::engine::guide::PictureChoice;
use crate::engine::report::Refusal;
use crate::engine::{Content, Need};
use crate::link::wrapper::OriginalUrl;

/// Key of a URL to retrieve. URLs with the same key share one response and one row.
pub(super) type Key = (String, bool, Vec<String>, Option<String>);

#[derive(Clone, Debug)]
pub(super) struct PictureNeed {
    /// The URL to request, after `--map` rewrote it. Equivalent URLs have the same form here, so that one response serves all
    /// of them.
    pub(super) url: String,
    pub(super) source: String,
    pub(super) is_sheet: bool,
    /// Fallbacks, requested one after the other if `url` fails: http instead of https for a URL without a scheme, and
    /// the unwrapped original of a URL that a mail filter or a picture proxy wrapped.
    pub(super) otherwise: Vec<Instead>,
    /// Set if `url` is the unwrapped original of a wrapped URL. `source` is then the wrapped URL in the document.
    pub(super) original: Option<OriginalUrl>,
    /// Unwrapped original that the policy forbids to request, with the refusal.
    pub(super) refused_original: Option<Box<(OriginalUrl, Refusal)>>,
    /// Content that `compare` found in the new mail in place of the link. [`PictureChoice::Usual`] in every other run.
    pub(super) choice: PictureChoice,
}

/// A fallback URL, requested if another URL fails.
#[derive(Clone, Debug)]
pub(super) struct Instead {
    /// URL to request, after `--map` rewrote it (as [`PictureNeed::url`]).
    pub(super) url: String,
    pub(super) source: String,
    pub(super) original: Option<OriginalUrl>,
}

impl PictureNeed {
    pub(super) fn key(&self) -> Key {
        let otherwise = self.otherwise.iter().map(|instead| instead.url.clone());
        // Two wrapped URLs can have the same original, but their parts differ: each records the wrapped URL. So the
        // wrapped URL is part of the key.
        let source = self.original.as_ref().map(|_| self.source.clone());
        let url = self.url.clone();
        (url, self.is_sheet, otherwise.collect(), source)
    }

    pub(super) fn need(&self) -> Need {
        Need::of_url(&self.url, Some(self.accept()))
    }

    /// Returns the URLs that the part of the content records.
    pub(super) fn names(&self) -> SourceUrls<'_> {
        SourceUrls {
            url: &self.url,
            source: &self.source,
            direct: (self.original.as_ref()).map_or(&self.source, |unwrapped| &unwrapped.original),
        }
    }

    /// Returns the content that `compare` found in the new mail for this URL. `None` if the engine has to ask for it as
    /// usual.
    pub(super) fn answer(&self) -> Option<Result<Content, Refusal>> {
        let otherwise: Vec<&str> = self.otherwise.iter().map(|it| it.source.as_str()).collect();
        self.choice.answer(&self.source, &otherwise)
    }

    /// Returns the part that `compare` found in the new mail in place of the link, by its number, and whether the part has the
    /// URL of this link.
    pub(super) fn located(&self) -> Option<(usize, bool)> {
        let otherwise: Vec<&str> = self.otherwise.iter().map(|it| it.source.as_str()).collect();
        self.choice.located(&self.source, &otherwise)
    }

    pub(super) fn accept(&self) -> &'static str {
        if self.is_sheet { SHEET } else { "image/*" }
    }
}

pub(super) const SHEET: &str = "text/css";

/// The URLs of retrieved content.
#[derive(Clone, Copy)]
pub(super) struct SourceUrls<'n> {
    /// URL of the request, after `--map` rewrote it (as [`PictureNeed::url`]).
    pub(super) url: &'n str,
    /// The URL in the document, which becomes the Content-Location of the part.
    pub(super) source: &'n str,
    /// The URL of the content before `--map` changed it: `source`, or its original if `source` is wrapped.
    pub(super) direct: &'n str,
}
