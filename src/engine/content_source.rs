//! Content obtained for a reference, together with the metadata from its source, such as the media type.

use std::rc::Rc;

use crate::engine::Content;
use crate::engine::report::{Kind, Outcome, Row};
use crate::mime::MediaType;

pub(super) const OCTETS: &str = "application/octet-stream";

#[derive(Clone, Debug)]
pub(super) struct ContentSource {
    pub(super) source_type: Option<String>,
    /// Media type that the mail declares, otherwise the one that the source declares, otherwise a default.
    pub(super) essence: String,
    pub(super) parameters: Rc<[(String, String)]>,
    pub(super) content: Content,
    pub(super) location: Option<String>,
    pub(super) source_field: Option<Rc<[u8]>>,
    /// Remarks for the row of the report. They do not affect whether the content is inserted.
    pub(super) notes: Vec<String>,
}

impl ContentSource {
    pub(super) fn of(essence: impl Into<String>, content: Content) -> Self {
        Self {
            source_type: None,
            essence: essence.into(),
            parameters: Rc::default(),
            content,
            location: None,
            source_field: None,
            notes: Vec::new(),
        }
    }

    /// Returns content that was found in a copy of the mail. It keeps the media type and the parameters of the copied part.
    pub(super) fn of_copy(content: Content) -> Self {
        let named = content.media_type.clone();
        let media_type = named.as_deref().map(|it| MediaType::parse(it.as_bytes()));
        let essence = media_type.as_ref().map(|it| it.essence.to_string());
        let parameters = media_type.map(|it| it.decoded_parameters(32));
        Self {
            source_type: essence.clone(),
            parameters: parameters.unwrap_or_default().into(),
            ..Self::of(essence.unwrap_or_else(|| OCTETS.to_owned()), content)
        }
    }

    pub(super) fn describe(&self, row: &mut Row) {
        row.outcome = match row.kind {
            Kind::Attachment => Outcome::Restored,
            _ => Outcome::Expanded,
        };
        row.reason = None;
        row.detail = format!("{} bytes of {}", self.content.len(), self.essence).into();
        if let Some(location) = &self.location {
            row.detail.push(format!(" from {location}"));
        }
        self.content.describe(row);
        if let Some(copy) = &self.content.origin.copy {
            let place = format!(", from message {} of {}", copy.index, copy.source);
            row.detail.push(place);
            row.proved = copy.is_proved;
        }
        for note in &self.notes {
            row.remark(note);
        }
        row.media_type = Some(self.essence.clone());
        row.bytes = Some(self.content.len() as u64);
    }
}
