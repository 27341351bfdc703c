//! Why a reference cannot be followed, whatever the policy.

use super::{ExternalBody, Reading};
use crate::report::{Detail, Reason, Refusal, Setting};

pub(super) fn missing_url() -> Refusal {
    Refusal::lasting(Reason::MissingUrl, "there is no URL")
}

/// Or one of its RFC 2231 sections is: `name*1`.
pub(super) fn missing_parameter(name: &str, section: Option<u32>) -> Refusal {
    let what = match section {
        None => format!("the parameter '{name}' is missing"),
        Some(section) => format!("the section {name}*{section} is missing"),
    };
    Refusal::lasting(Reason::MissingParameter, what)
}

/// What is left of a `data:` URL would read as a whole one.
pub(super) fn cut_off(name: &str) -> Refusal {
    bad_value(format!(
        "'{name}' was cut off on the way: a closing quote or what follows is missing"
    ))
}

pub(super) fn bad_value(what: impl Into<Detail>) -> Refusal {
    Refusal::lasting(Reason::BadUrl, what)
}

pub(super) fn encoded() -> Refusal {
    let detail = "the part has a Content-Transfer-Encoding that RFC 2046 forbids for it";
    Refusal::lasting(Reason::EncodedReference, detail)
}

pub(super) fn deleted() -> Refusal {
    let detail = "the attachment was deleted; there is nothing to retrieve";
    Refusal::lasting(Reason::Deleted, detail)
}

/// Of more notes than are read, one stays to say so.
pub(super) fn limit_notes(bodies: &mut Vec<ExternalBody<'_>>, reading: &Reading) {
    bodies.truncate(reading.most_notes.saturating_add(1));
    if let Some(last) = bodies.get_mut(reading.most_notes) {
        let detail =
            Detail::from("it and the notes behind it are more than ").naming(Setting::Parts);
        last.target = Err(Refusal::lasting(Reason::TooManyParts, detail));
    }
}

/// The content would be lost.
pub(super) fn own_content(what: &str) -> Refusal {
    let detail = format!("it refers elsewhere, but {what}");
    Refusal::lasting(Reason::UnsupportedAccessType, detail)
}
