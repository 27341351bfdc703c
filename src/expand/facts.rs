//! What a row says of content that was put in.

use super::answer::Times;
use super::content::Obtained;
use crate::report::{Kind, Outcome, Row};

/// What a row says of content that was put in.
pub(super) struct Facts {
    essence: String,
    octets: u64,
    location: Option<String>,
    times: Times,
    pub(super) notes: Vec<String>,
}

impl Facts {
    pub(super) fn of(obtained: &Obtained) -> Self {
        Self {
            essence: obtained.essence.clone(),
            octets: obtained.octets.len() as u64,
            location: obtained.location.clone(),
            times: obtained.times,
            notes: obtained.notes.clone(),
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
        row.tell_capture(self.times.captured);
        for note in &self.notes {
            row.remark(note);
        }
        row.media_type = Some(self.essence.clone());
        row.bytes = Some(self.octets);
        row.ms = self.times.milliseconds;
    }
}
