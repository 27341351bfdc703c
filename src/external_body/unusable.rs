//! Why a reference cannot be followed, whatever the policy.

use crate::report::{Detail, Reason, Refusal, Setting};

pub(super) fn missing_url() -> Refusal {
    Refusal::lasting(Reason::MissingUrl, "there is no URL")
}

/// The parameter of that name is missing, or one of its RFC 2231 sections: `name*1`.
pub(super) fn missing_parameter(name: &str, section: Option<u32>) -> Refusal {
    let what = match section {
        None => format!("the parameter '{name}' is missing"),
        Some(section) => format!("the section {name}*{section} is missing"),
    };
    Refusal::lasting(Reason::MissingParameter, what)
}

/// The value of a parameter or a field was cut off: what is left of a `data:` URL would read as a whole one.
pub(super) fn cut_off(name: &str) -> Refusal {
    bad_value(format!(
        "'{name}' was cut off on the way: a closing quote or what follows is missing"
    ))
}

pub(super) fn bad_value(what: impl Into<Detail>) -> Refusal {
    Refusal::lasting(Reason::BadUrl, what)
}

/// The part is base64 or quoted-printable encoded (RFC 2046 §5.2.3 forbids that).
pub(super) fn encoded() -> Refusal {
    let detail = "the part has a Content-Transfer-Encoding that RFC 2046 forbids for it";
    Refusal::lasting(Reason::EncodedReference, detail)
}

pub(super) fn deleted() -> Refusal {
    let detail = "the attachment was deleted; there is nothing to retrieve";
    Refusal::lasting(Reason::Deleted, detail)
}

pub(super) fn too_many_notes() -> Refusal {
    let detail = Detail::from("it and the notes behind it are more than ").naming(Setting::Parts);
    Refusal::lasting(Reason::TooManyParts, detail)
}

/// The part holds more than a note, which would be lost.
pub(super) fn own_content(what: &str) -> Refusal {
    let detail = format!("it refers elsewhere, but {what}");
    Refusal::lasting(Reason::UnsupportedAccessType, detail)
}
