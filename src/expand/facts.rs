//! What a row says of content that was put in.

use super::answer::Came;
use super::content::Obtained;
use crate::report::{Kind, Outcome, Row};

pub(super) struct Facts {
    essence: String,
    octets: u64,
    sha256: Option<String>,
    location: Option<String>,
    came: Came,
    pub(super) notes: Vec<String>,
    /// Whether figures that the mail notes of it hold.
    pub(super) proved: bool,
}

impl Facts {
    pub(super) fn of(obtained: &Obtained) -> Self {
        Self {
            essence: obtained.essence.clone(),
            octets: obtained.octets.len() as u64,
            sha256: obtained.came.sha256(&obtained.octets),
            location: obtained.location.clone(),
            came: obtained.came.clone(),
            notes: obtained.notes.clone(),
            proved: false,
        }
    }

    pub(super) fn describe(&self, row: &mut Row) {
        row.outcome = match row.kind {
            Kind::Attachment => Outcome::Restored,
            _ => Outcome::Expanded,
        };
        row.reason = None;
        row.detail = format!("{} bytes of {}", self.octets, self.essence).into();
        if let Some(location) = &self.location {
            row.detail.push(format!(" from {location}"));
        }
        self.came.tell_of_content(self.sha256.clone(), row);
        for note in &self.notes {
            row.remark(note);
        }
        if self.proved {
            row.remark("proved: it has the length that the mail notes");
            row.proved = true;
        }
        row.media_type = Some(self.essence.clone());
        row.bytes = Some(self.octets);
    }

    /// Tells a row what a forecast knows from the message alone.
    pub(super) fn foresee(&self, row: &mut Row) {
        self.came.tell(None, row);
    }
}
