//! The attachments and pictures that mail holds, one by one, for `inspect --json`. docs/survey.md has every field.

use serde::Serialize;

use crate::external_body::file_name;
use crate::mime::{PartId, Tree};
use crate::plan::documents::Showing;
use crate::store::Key;

/// A part with content that is not text of the mail.
#[derive(Serialize, Debug)]
pub struct Listed {
    /// What rows call its message.
    pub message: String,
    part: String,
    kind: &'static str,
    media_type: String,
    name: Option<String>,
    /// Octets of its content, decoded; none if it cannot be decoded, as is the hash.
    bytes: Option<u64>,
    sha256: Option<String>,
    /// In lower case.
    disposition: Option<String>,
    /// The first document that shows it or refers to it.
    shown_by: Option<String>,
}

impl Listed {
    /// What is known of a part: why the mail shows it, if it does, and its hash.
    pub fn of(
        tree: &Tree<'_>,
        part: PartId,
        (shown, key): (Option<Showing>, Option<&Key>),
    ) -> Self {
        let entity = tree.part(part);
        let octets = entity.encoding.decode(entity.body.of(tree.original));
        let key = match (key, &octets) {
            (Some(known), Some(_)) => Some(*known),
            (_, octets) => octets.as_deref().map(Key::of),
        };
        let disposition = String::from_utf8_lossy(tree.disposition(part));
        Self {
            message: String::new(),
            part: tree.number(part),
            kind: "part",
            media_type: entity.essence.clone(),
            name: file_name(tree.original, tree.fields(part)),
            bytes: octets.map(|octets| octets.len() as u64),
            sha256: key.map(|key| key.to_string()),
            disposition: (!disposition.is_empty()).then(|| disposition.to_ascii_lowercase()),
            shown_by: match shown {
                Some(Showing::By(document)) => Some(tree.number(document)),
                _ => None,
            },
        }
    }
}
