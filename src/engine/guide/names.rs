//! Ids of embedded content, and the refusal for content that a guide lacks.

use crate::engine::report::{Reason, Refusal};

/// Number of hexadecimal digits in the ids of embedded content.
pub(in crate::engine) const DIGITS: usize = 32;

pub(in crate::engine) const DOMAIN: &str = "@embody";

/// Returns the hash digits of a Content-ID that has the form of embody's ids. The form does not prove that embody wrote the
/// id: a sender who knows which picture will be embedded can write the same id.
pub(in crate::engine) fn digits_of(content_id: &str) -> Option<&str> {
    let (digits, further) = content_id.strip_suffix(DOMAIN)?.split_at_checked(DIGITS)?;
    let is_ours = digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && (further.is_empty() || further.starts_with('.'));
    is_ours.then_some(digits)
}

/// Returns the number that embody appends to an id if the message already contains it, or 0.
pub(super) fn ordinal_of(content_id: &str) -> u32 {
    let front = content_id.strip_suffix(DOMAIN).unwrap_or_default();
    let number = front.split_once('.').map(|(_, number)| number);
    number.and_then(|it| it.parse().ok()).unwrap_or_default()
}

/// Returns the refusal for content that the mail does not contain. Links to such content stay unchanged.
pub(in crate::engine) fn not_in_mail() -> Refusal {
    let detail = "the new mail, which compare checks, does not contain this content";
    Refusal::lasting(Reason::Offline, detail)
}
