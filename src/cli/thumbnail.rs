//! The picture on the page about a run. It is one of the pictures that the run retrieved, so no further request is
//! made.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::engine::report::Refusal;
use crate::engine::{Answer, Content, Mode};
use crate::error::unpoisoned;
use crate::fetch::{Fetch, Request};
use crate::mime::picture::sniff;

/// Maximum size of the picture, in bytes. As a data: URL, it is a third longer.
const LARGEST: usize = 24 << 10;

/// Minimum width and height of the picture, in pixels. Smaller pictures are usually icons and lines.
const SHORTEST: u32 = 64;

/// Maximum width and height of the picture, in pixels.
const LONGEST: u32 = 2000;

/// Media types that every browser displays. SVG is not included, because it is a document and can be expensive to
/// render.
const TYPES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];

/// Selects the largest suitable picture of all content that a run retrieves. The choice does not depend on the order of
/// the responses.
#[derive(Clone, Default, Debug)]
pub(super) struct ThumbnailChoice(Arc<Mutex<Option<Thumbnail>>>);

#[derive(Debug)]
struct Thumbnail {
    /// Number of pixels. The SHA-256 decides between pictures with the same number.
    rank: (u64, String),
    media_type: &'static str,
    content: Content,
}

impl Thumbnail {
    /// Returns `None` if the content is not a picture, or if its type or size is not suitable.
    fn of(content: &Content) -> Option<Self> {
        let bytes: &[u8] = content.bytes();
        let kind = (bytes.len() <= LARGEST).then(|| sniff(bytes))??;
        let (width, height) = kind.size?;
        let is_suitable = TYPES.contains(&kind.essence)
            && width.min(height) >= SHORTEST
            && width.max(height) <= LONGEST
            && width.max(height) / width.min(height) < 3;
        is_suitable.then(|| Self {
            rank: (
                u64::from(width) * u64::from(height),
                content.sha256().to_owned(),
            ),
            media_type: kind.essence,
            content: content.clone(),
        })
    }
}

impl ThumbnailChoice {
    /// Wraps a source of content, so that each retrieved picture is considered for the page.
    pub(super) fn watching(&self, source: Arc<dyn Fetch>) -> Arc<dyn Fetch> {
        Arc::new(WatchedFetch {
            source,
            choice: self.clone(),
        })
    }

    fn consider(&self, content: &Content) {
        let Some(thumbnail) = Thumbnail::of(content) else {
            return;
        };
        let mut best = unpoisoned(self.0.lock());
        if best.as_ref().is_none_or(|best| best.rank < thumbnail.rank) {
            *best = Some(thumbnail);
        }
    }

    /// Returns the picture as a data: URL.
    pub(super) fn url(&self) -> Option<String> {
        let kept = unpoisoned(self.0.lock());
        let best = kept.as_ref()?;
        let bytes: &[u8] = best.content.bytes();
        Some(format!(
            "data:{};base64,{}",
            best.media_type,
            STANDARD.encode(bytes)
        ))
    }
}

struct WatchedFetch {
    source: Arc<dyn Fetch>,
    choice: ThumbnailChoice,
}

impl Fetch for WatchedFetch {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        let content = self.source.fetch(request)?;
        self.choice.consider(&content);
        Ok(content)
    }

    fn answer(&self, request: &Request, mode: Mode) -> Result<Answer, Refusal> {
        let answer = self.source.answer(request, mode)?;
        if let Answer::Content(content) = &answer {
            self.choice.consider(content);
        }
        Ok(answer)
    }

    fn heeds_date(&self) -> bool {
        self.source.heeds_date()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png((width, height): (u32, u32), length: usize) -> Content {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.resize(length, 0);
        Content::of_message(bytes)
    }

    #[test]
    fn largest_suitable_picture_is_chosen_in_any_order() {
        let html = Content::of_message(b"<svg width=\"90\" height=\"90\"/>".to_vec());
        let mut pictures = [
            png((600, 100), 100),
            png((1, 1), 100),
            png((200, 150), 100),
            png((100, 100), 100),
            png((500, 500), LARGEST + 1),
            png((3000, 2500), 100),
            html,
        ];
        let expected = png((200, 150), 100);
        for _ in 0..2 {
            let choice = ThumbnailChoice::default();
            assert_eq!(choice.url(), None);
            pictures.iter().for_each(|it| choice.consider(it));
            let bytes: &[u8] = expected.bytes();
            let url = format!("data:image/png;base64,{}", STANDARD.encode(bytes));
            assert_eq!(choice.url(), Some(url));
            pictures.reverse();
        }
    }
}
