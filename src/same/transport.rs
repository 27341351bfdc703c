//! The fields that servers, lists and mail programs add to a mail or change, so that copies of one mail differ in them. The texts
//! that lists add are in [`list`](super::list).
//!
//! The table of docs/merge.md lists them. Each row has a test in `tests.rs`.

use super::spelling::text;
use crate::mime::date;
use crate::mime::header::unfold;

/// The role of a header field for the question whether two mails are copies of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Servers, lists and mail programs add the field or change it.
    Transport,
    /// Describes the content of the mail, which is compared instead.
    Content,
    /// The author wrote the field.
    Author,
}

/// Names in lower case. A name that ends with a hyphen stands for all names that start with it.
const TRANSPORT: [&str; 40] = [
    "apparently-to",
    "approved-by",
    "arc-",
    "archived-at",
    "auto-submitted",
    "authentication-results",
    "authentication-results-original",
    "autoforwarded",
    "bounces-to",
    "cancel-lock",
    "content-length",
    "delivered-to",
    "delivery-date",
    "dkim-filter",
    "dkim-signature",
    "domainkey-signature",
    "envelope-to",
    "errors-to",
    "injection-date",
    "injection-info",
    "lines",
    "list-",
    "mailing-list",
    "message-id",
    "nntp-posting-date",
    "nntp-posting-host",
    "old-return-path",
    "original-recipient",
    "path",
    "precedence",
    "received",
    "received-spf",
    "require-recipient-valid-since",
    "return-path",
    "spamdiagnosticmetadata",
    "spamdiagnosticoutput",
    "status",
    "x-",
    "x400-",
    "xref",
];

/// `name` is in lower case.
pub(super) fn role(name: &[u8]) -> Role {
    let is = |known: &str| match known.ends_with('-') {
        true => name.starts_with(known.as_bytes()),
        false => name == known.as_bytes(),
    };
    if name.starts_with(b"content-") && name != b"content-length" || name == b"mime-version" {
        Role::Content
    } else if TRANSPORT.iter().any(|known| is(known)) {
        Role::Transport
    } else {
        Role::Author
    }
}

/// Fields that Pipermail keeps in the monthly text of a list, and no others.
pub(super) fn is_kept_by_pipermail(name: &[u8]) -> bool {
    matches!(
        name,
        b"from" | b"date" | b"subject" | b"in-reply-to" | b"references" | b"message-id"
    )
}

/// Returns a date in seconds, so that its zone and its comments do not count. A date in another form than the usual one is
/// compared as text.
pub(super) fn date_text(value: &[u8]) -> Vec<u8> {
    match date::usual_seconds(&unfold(value)) {
        Some(seconds) => seconds.to_string().into_bytes(),
        None => text(value),
    }
}
