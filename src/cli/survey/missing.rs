//! Content that the mail lacks: its name for users, and the way to add it to the mail.

use serde::Serialize;

use super::super::tally::RowTally;
use crate::engine::forms::hosted::Provider;
use crate::engine::report::{Kind, Outcome, Provenance, Reason, Row, Setting};
use crate::link::url::UrlReference;

/// The source from which the content of a reference can be added to the mail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RecoveryWay {
    /// In the mail itself, in a file next to the mailbox, or in a mailbox of `--copies`. No network is needed.
    Here,
    /// Over http or https.
    Web,
    Ftp,
    /// In a directory that the user must name.
    Directory,
    /// In the store into which `detach` moved it.
    Store,
    /// In cloud storage, if the text of the mail only links to it. Only `--follow links` retrieves it.
    Link,
    /// In the file or page to which an attached `.url` file links. Only `--follow shortcuts` retrieves it.
    Shortcut,
    /// In cloud storage, if a plain text links to it. embody does not follow such links.
    Text,
    /// On the server of a Mailman list, if the hash in the note belongs to another mail. The attachment is probably that of
    /// the other mail, so embody does not retrieve it.
    Doubtful,
    /// In the mail itself, in a form that most mail programs cannot open. embody opens it, with `--follow` if the command
    /// does not open it by default.
    Packed,
    /// In the mail itself, in a form that embody recognises and cannot open either, for example because it is damaged.
    Unopened,
    /// In other mails: the mail is a piece of a divided mail (RFC 2046, 5.2.2). embody does not join the pieces.
    Piece,
    /// In a signed or encrypted part, which embody leaves unchanged without `--signed rewrite`.
    Protected,
    /// The content is lost.
    Never,
}

/// Pieces of divided mails.
pub(super) const PIECE: (RecoveryWay, MissingNames) = (
    RecoveryWay::Piece,
    MissingNames {
        one: "piece of a divided mail (message/partial), which embody does not join",
        many: "pieces of divided mails (message/partial), which embody does not join",
    },
);

/// Notes of Mailman that do not prove that they belong to the mail.
pub(super) const DOUBTFUL: (RecoveryWay, MissingNames) = (
    RecoveryWay::Doubtful,
    MissingNames {
        one: "note of Mailman with the hash of another mail, which embody does not follow",
        many: "notes of Mailman with the hash of another mail, which embody does not follow",
    },
);

/// Returns the source and the names of a file in cloud storage to which a plain text links.
pub(super) fn linked_by_text(provider: &Provider) -> (RecoveryWay, MissingNames) {
    let [one, many] = provider.files;
    (RecoveryWay::Text, MissingNames { one, many })
}

/// Values of `--follow` that open [`Packed`](RecoveryWay::Packed) content.
pub(super) const PACKED: &str = "winmail,rtf-body,msg,uuencode";

/// Number of references, by the source of their content and by their name in the singular and the plural.
pub(super) type Missing = RowTally<(RecoveryWay, MissingNames)>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct MissingNames {
    pub one: &'static str,
    pub many: &'static str,
}

pub(super) fn sum(missing: &Missing, ways: &[RecoveryWay]) -> u64 {
    let of = missing.classes().filter(|(key, _)| ways.contains(&key.0));
    of.map(|(_, count)| count).sum()
}

/// Returns the words of `--follow` for the content to which the mail only links.
pub(super) fn follow_words(missing: &Missing) -> String {
    let words = [
        (RecoveryWay::Link, "links"),
        (RecoveryWay::Shortcut, "shortcuts"),
    ];
    let used = words.iter().filter(|(way, _)| sum(missing, &[*way]) > 0);
    used.map(|(_, word)| *word).collect::<Vec<_>>().join(",")
}

/// Returns the source and the name of missing content. `None` if the row is not about content outside of the mail.
pub(super) fn of(row: &Row) -> Option<(RecoveryWay, MissingNames)> {
    let named = named(row)?;
    Some((way(row), named))
}

fn named(row: &Row) -> Option<MissingNames> {
    let (one, many) = match row.kind {
        Kind::Link | Kind::Wrapped | Kind::Embed => return None,
        // The content of the file was already put into the mail, so nothing is missing.
        Kind::Tnef | Kind::Rtf | Kind::Msg if row.reason == Some(Reason::AlreadyInMail) => {
            return None;
        }
        Kind::Tnef => (
            "winmail.dat of Outlook, which most mail programs cannot open",
            "winmail.dat Outlook files, which most mail programs cannot open",
        ),
        Kind::Apple => (
            "attachment that Apple Mail keeps in its own file",
            "attachments that Apple Mail keeps in their own files",
        ),
        Kind::Eudora => (
            "attachment that Eudora keeps in its own file",
            "attachments that Eudora keeps in their own files",
        ),
        Kind::Mailman => (
            "attachment that Mailman removed",
            "attachments that Mailman removed",
        ),
        Kind::YahooGroups => (
            "attachment that Yahoo Groups removed",
            "attachments that Yahoo Groups removed",
        ),
        Kind::Detached if matches!(row.reason, Some(Reason::Deleted | Reason::NotInCopies)) => (
            "attachment that was deleted in Thunderbird",
            "attachments that were deleted in Thunderbird",
        ),
        Kind::Detached => (
            "attachment that Thunderbird detached",
            "attachments that Thunderbird detached",
        ),
        Kind::Attachment => (
            "attachment that embody detached",
            "attachments that embody detached",
        ),
        Kind::Rtf => (
            "text that is only in an RTF attachment",
            "texts that are only in RTF attachments",
        ),
        Kind::Msg => (
            "attached mail that only Outlook can read",
            "attached mails that only Outlook can read",
        ),
        Kind::Uuencode => ("text with uuencoded files", "texts with uuencoded files"),
        Kind::Shortcut => ("shortcut to a web address", "shortcuts to web addresses"),
        Kind::ExternalBody => (
            "attachment that the mail only refers to",
            "attachments that the mail only refers to",
        ),
        Kind::Hosted => match row.hosted.as_deref().map_or("", |it| it.provider) {
            "sympa" => (
                "attachment that Sympa keeps on its server",
                "attachments that Sympa keeps on its server",
            ),
            word => Provider::of(word).map_or(("file in a cloud", "files in clouds"), |provider| {
                provider.files.into()
            }),
        },
    };
    Some(MissingNames { one, many })
}

fn way(row: &Row) -> RecoveryWay {
    let followed_by = match row.reason {
        Some(Reason::NotFollowed) => row.detail.split(' ').next(),
        _ => None,
    };
    match (row.kind, row.reason) {
        _ if row.from == Provenance::Copy => return RecoveryWay::Here,
        (Kind::Attachment, _) => return RecoveryWay::Store,
        (_, Some(Reason::Signed | Reason::Encrypted)) => return RecoveryWay::Protected,
        (
            _,
            Some(Reason::Deleted | Reason::NotInCopies | Reason::OnlineDocument | Reason::Expired),
        ) => return RecoveryWay::Never,
        _ if followed_by == Some("links") => return RecoveryWay::Link,
        _ if followed_by == Some("shortcuts") => return RecoveryWay::Shortcut,
        (Kind::Tnef | Kind::Rtf | Kind::Msg | Kind::Uuencode, reason) => {
            let is_opened = matches!(row.outcome, Outcome::WouldExpand | Outcome::Expanded);
            return if is_opened || reason == Some(Reason::NotFollowed) {
                RecoveryWay::Packed
            } else {
                RecoveryWay::Unopened
            };
        }
        _ if matches!(row.outcome, Outcome::WouldExpand | Outcome::Expanded) => {
            return RecoveryWay::Here;
        }
        _ => {}
    }
    let reference = UrlReference::split(row.url.as_deref().unwrap_or_default());
    let is = |scheme| reference.has_scheme(scheme);
    let names_directory = || row.detail.settings().any(|it| it == Setting::Attachments);
    if is("http") || is("https") {
        return RecoveryWay::Web;
    }
    if is("ftp") {
        return RecoveryWay::Ftp;
    }
    match row.kind {
        // A row without a URL, because the options did not allow this kind of reference: `followed_by` is then the
        // value for `--follow`. The content of mailing lists and cloud storage is on the web, so the URL is not needed
        // here.
        Kind::Mailman | Kind::Hosted if followed_by.is_some() => RecoveryWay::Web,
        Kind::Detached => RecoveryWay::Directory,
        _ if names_directory() => RecoveryWay::Directory,
        _ => RecoveryWay::Never,
    }
}
