//! Classifies header fields. Servers, mailing lists and mail clients add some fields or change them, so copies of one mail
//! differ in them, and they are ignored. Footers of lists are handled in [`list`](super::list).
//!
//! The table in docs/merge.md lists these fields. Each row of the table has a test in `tests.rs`.

use super::spelling::text;
use crate::mime::date;
use crate::mime::header::unfold;

/// The role of a header field when two mails are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// A field that servers, mailing lists and mail clients add or change. It is ignored.
    Transport,
    /// A field that describes the content. The content itself is compared instead.
    Content,
    /// A field that the author wrote. It must be the same.
    Author,
}

/// Names of transport fields in lower case. A name that ends with a hyphen is a prefix.
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

/// Returns the role of a field. `name` must be in lower case.
pub(super) fn role(name: &[u8]) -> Role {
    let is = |known: &str| {
        if known.ends_with('-') {
            name.starts_with(known.as_bytes())
        } else {
            name == known.as_bytes()
        }
    };
    if name.starts_with(b"content-") && name != b"content-length" || name == b"mime-version" {
        Role::Content
    } else if TRANSPORT.iter().any(|known| is(known)) {
        Role::Transport
    } else {
        Role::Author
    }
}

/// Returns whether Pipermail, the archive of Mailman, keeps the field in the monthly text of a list.
pub(super) fn is_kept_by_pipermail(name: &[u8]) -> bool {
    matches!(
        name,
        b"from" | b"date" | b"subject" | b"in-reply-to" | b"references" | b"message-id"
    )
}

/// Returns a date in seconds, so that its time zone and comments are ignored. A date in an unusual format is compared as text.
pub(super) fn date_text(value: &[u8]) -> Vec<u8> {
    match date::usual_seconds(&unfold(value)) {
        Some(seconds) => seconds.to_string().into_bytes(),
        None => text(value),
    }
}
