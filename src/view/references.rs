//! Explains the references of a mail in words for a user without a command line.

use super::look::LookResult;
use super::parts::safe_name;
use crate::detail::words;
#[cfg(feature = "outlook")]
use crate::engine::forms::msg;
use crate::engine::forms::winmail;
use crate::engine::report::{Kind, Outcome, Provenance, Reason, Row};

words! {
    /// State of a reference after the run.
    #[derive(serde::Serialize)]
    #[serde(rename_all = "kebab-case")]
    #[non_exhaustive]
    pub enum ReferenceState {
        Included "included" "The content was in the mail, in a format that few programs show. The content is shown, and the repaired mail contains the content in a format that all programs show.";
        Filled "filled" "The user chose a file for the reference. The repaired mail contains this file.";
        Missing "missing" "The content is not in the mail.";
        Remote "remote" "A picture on the web, which was not loaded.";
        Tracker "tracker" "A hidden picture that tells the sender that the mail was read. The picture was not loaded.";
        Kept "kept" "The part stays as it is, or a file was opened and also stays attached, because not everything in the file could be read.";
    }
}

/// Content that the mail refers to but does not contain, or contains in a form that few programs show.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct ReferenceView {
    /// Number of the part with the reference, as in IMAP.
    pub part: String,
    /// The form in which the mail refers to the content.
    pub kind: Kind,
    /// State of the reference after the run.
    pub state: ReferenceState,
    /// Explanation of the state, in a sentence for the user.
    pub explanation: String,
    /// Name of the file, if it is known.
    pub name: Option<String>,
    /// The URL of the content, with the password masked. It comes from the sender, so it can lead anywhere.
    pub url: Option<String>,
    /// The media type of the content, as `type/subtype`.
    pub media_type: Option<String>,
    /// Size of the content in bytes, if it is known.
    pub size: Option<u64>,
    /// Whether [`MailView::fill`](super::MailView::fill) can put a chosen file in its place.
    pub can_fill: bool,
}

/// Converts a finding of the engine. Returns `None` for rows that do not concern the user: links that were made
/// absolute.
pub(super) fn reference(finding: &LookResult) -> Option<ReferenceView> {
    let row = &finding.row;
    if row.kind == Kind::Link {
        return None;
    }
    let state = state(finding);
    let hosted = row.hosted.as_deref();
    let from_link = || hosted.and_then(|it| it.name.clone());
    let named = row.name.clone().or_else(from_link);
    let from_url = || row.url.as_deref().and_then(name_in_url);
    Some(ReferenceView {
        part: row.part.clone(),
        kind: row.kind,
        state,
        explanation: explanation(row, state),
        name: named.map(|name| safe_name(&name)).or_else(from_url),
        url: row.url.clone().or_else(|| hosted.map(|it| it.link.clone())),
        media_type: row.media_type.clone(),
        size: row.bytes,
        can_fill: finding.need.is_some(),
    })
}

fn state(finding: &LookResult) -> ReferenceState {
    let row = &finding.row;
    if finding.is_filled() {
        return ReferenceState::Filled;
    }
    match (row.outcome, row.reason) {
        (Outcome::Left, Some(Reason::Tracker)) => ReferenceState::Tracker,
        (Outcome::Left, _) if finding.need.is_some() && row.kind == Kind::Embed => {
            ReferenceState::Remote
        }
        (Outcome::Left, _) if finding.need.is_some() => ReferenceState::Missing,
        (Outcome::Left, _) => ReferenceState::Kept,
        _ if unread(row).is_some() => ReferenceState::Kept,
        _ => ReferenceState::Included,
    }
}

/// Returns what could not be read in a file that was opened. The file then stays in the mail.
fn unread(row: &Row) -> Option<&str> {
    let starts = [
        winmail::KEPT,
        #[cfg(feature = "outlook")]
        msg::KEPT,
    ];
    starts.iter().find_map(|start| {
        let (_, why) = row.detail.split_once(start)?;
        (row.outcome != Outcome::Left).then_some(why)
    })
}

/// Returns the name of the file in a URL: the last component of its path.
fn name_in_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once(':')?;
    if scheme.eq_ignore_ascii_case("data") || scheme.eq_ignore_ascii_case("cid") {
        return None;
    }
    let hierarchy = rest.split(['?', '#']).next().unwrap_or_default();
    let path = match hierarchy.strip_prefix("//") {
        Some(authority) => authority.split_once('/')?.1,
        None => hierarchy,
    };
    let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = percent_encoding::percent_decode_str(last).decode_utf8_lossy();
    let is_file = name.contains('.') && !name.trim().is_empty();
    is_file.then(|| safe_name(&name))
}

fn explanation(row: &Row, state: ReferenceState) -> String {
    match state {
        ReferenceState::Filled => {
            "You chose a file for this reference. The repaired mail contains this file.".to_owned()
        }
        ReferenceState::Remote => {
            "The mail shows this picture from the web. The picture was not loaded, because loading it would tell the sender that the mail was opened.".to_owned()
        }
        ReferenceState::Tracker => {
            "This picture is invisible, and only tells the sender that the mail was opened. The picture was not loaded.".to_owned()
        }
        ReferenceState::Missing => missing(row).to_owned(),
        ReferenceState::Included => included(row).to_owned(),
        ReferenceState::Kept => kept(row),
    }
}

fn missing(row: &Row) -> &'static str {
    match row.kind {
        Kind::Hosted => {
            "The sender put this file into cloud storage, and only a link to it into the mail."
        }
        Kind::Detached => {
            "A mail program moved this attachment out of the mail, into a file on a computer or a server."
        }
        Kind::Mailman => {
            "The mailing list removed this attachment, and put a link to it into the mail."
        }
        Kind::Apple | Kind::Eudora => {
            "The mail program kept this attachment in a file of its own, next to the mailbox."
        }
        Kind::Attachment => "embody moved this attachment out of the mail, into a store.",
        _ => "The mail contains only the address of this file.",
    }
}

fn included(row: &Row) -> &'static str {
    match row.kind {
        Kind::Tnef => {
            "The text or the attachments were in a winmail.dat of Outlook. embody shows this content, and the repaired mail contains it."
        }
        Kind::Uuencode => {
            "The text of the mail contained encoded files (uuencode). These files are attachments now, also in the repaired mail."
        }
        Kind::Rtf => "The text of the mail was in an RTF file. embody shows this text here.",
        Kind::Msg => "An attached message of Outlook (.msg) is a mail now, which can be opened.",
        Kind::Embed => "The picture is in the HTML itself.",
        _ if row.from == Provenance::Message => {
            "The content was in the mail, in a format that few programs show. embody shows the content here, and the repaired mail contains it."
        }
        _ => "The repaired mail contains this file.",
    }
}

fn kept(row: &Row) -> String {
    if let Some(why) = unread(row) {
        let shown = included(row);
        return format!(
            "{shown} The file also stays attached, because not everything in it could be read: {why}."
        );
    }
    let sentence = match row.reason {
        Some(Reason::Signed) => {
            "The part is signed. A change would break the signature, so the part stays as it is."
        }
        Some(Reason::Encrypted) => {
            "The part is encrypted, so it can only be read with the key of its recipient."
        }
        Some(Reason::Deleted) => {
            "This attachment was deleted from the mail. Only a note about the attachment is left."
        }
        Some(Reason::SchemeNotAllowed) => {
            "The mail contains only the address of this file, for example its path on the computer of the sender."
        }
        Some(Reason::DamagedFile) => "The file is damaged, and nothing in it can be read.",
        Some(Reason::AlreadyInMail) => {
            "Everything that can be read from this file is in the mail already. The file stays attached, because the file also contains data that cannot be read."
        }
        Some(Reason::InsideReport) => {
            "The part belongs to a report, such as a bounce, which stays as it is."
        }
        Some(Reason::BadDataUrl) => {
            "The address contains the content itself (a data: URL), but the content is damaged."
        }
        Some(
            Reason::NoAccessType
            | Reason::UnknownAccessType
            | Reason::UnsupportedAccessType
            | Reason::MissingUrl
            | Reason::MissingParameter,
        ) => "The mail refers to a file, but does not say where the file is.",
        Some(Reason::TooManyFetches | Reason::TooMuchWork | Reason::GrowthLimit) => {
            "The mail refers to more files than embody shows for one mail."
        }
        Some(Reason::TooDeep | Reason::TooManyParts) => {
            "The mail has more parts, or more levels of nested parts, than embody examines. The remaining parts stay as they are."
        }
        _ => return format!("The part stays as it is: {}.", &*row.detail),
    };
    sentence.to_owned()
}

#[cfg(test)]
mod tests {
    use super::name_in_url;

    #[test]
    fn name_of_a_file_is_the_end_of_the_path_in_the_url() {
        for (url, expected) in [
            ("https://www.example.org/a/b.pdf?x=/y.doc#z", Some("b.pdf")),
            ("https://www.example.org/a%20b.pdf", Some("a b.pdf")),
            ("file:///C:/Users/ada/notes.txt", Some("notes.txt")),
            ("ftp://ftp.example.org/pub/x.tar.gz", Some("x.tar.gz")),
            ("https://www.example.org/", None),
            ("https://www.example.org", None),
            ("https://www.example.org/track", None),
            ("data:text/plain,a.b", None),
            ("nothing", None),
        ] {
            assert_eq!(name_in_url(url).as_deref(), expected, "{url}");
        }
    }
}
