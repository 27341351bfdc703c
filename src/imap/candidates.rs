//! Which messages a verb might change, told by the server: by searches, and by the structure of what they find. The others are
//! not downloaded.
//!
//! Each choice is a superset of what the verb changes in the same mails: where a server cannot tell, a message is read. Two
//! things are taken from the server on trust: that SEARCH finds what RFC 3501 says, and that BODYSTRUCTURE has the parts that
//! a message has. A message whose structure cannot be read is a candidate.

use super::account::Choice;
use super::structure::BodyPart;
use crate::policy::TypePattern;

/// Octets of a part that stands for an attachment elsewhere, at most: its body quotes the header that the attachment had.
const LONGEST_STUB: u64 = 256 << 10;

/// The same where the body is blank, which may be encoded.
const LONGEST_BLANK: u64 = 2 << 10;

/// What a verb looks for.
#[derive(Clone, Debug)]
pub(crate) enum Candidates {
    /// All messages.
    All,
    /// Attachments of so many octets, as they are encoded, and of these types; none: of all.
    Attachments { least: u64, types: Vec<TypePattern> },
    /// Parts that refer to what was detached, or else to a body elsewhere.
    References,
    /// The same, and documents in HTML or CSS.
    Documents,
}

impl Candidates {
    /// The criteria of SEARCH; no message that is `\Deleted` is among them.
    pub(super) fn criteria(&self, choice: &Choice) -> String {
        let mut criteria = String::from("UNDELETED");
        if let Some(uid) = choice.uid {
            criteria.push_str(&format!(" UID {uid}"));
        }
        for (word, day) in [("SINCE", &choice.since), ("BEFORE", &choice.before)] {
            if let Some(day) = day {
                criteria.push_str(&format!(" {word} {day}"));
            }
        }
        match self {
            Self::All => {}
            // LARGER means more than that.
            Self::Attachments { least, .. } => {
                let size = u32::try_from(least.saturating_sub(1)).unwrap_or(u32::MAX);
                criteria.push_str(&format!(" LARGER {size}"));
            }
            // No server searches fields of parts, but that a message has parts its own header says.
            Self::References => criteria.push_str(&any(&MAY_REFER)),
            Self::Documents => {
                let all: Vec<&str> = MAY_REFER.into_iter().chain(DOCUMENTS).collect();
                criteria.push_str(&any(&all));
            }
        }
        criteria
    }

    /// Whether a message of this structure might be changed.
    pub(super) fn include(&self, structure: Option<&BodyPart>) -> bool {
        let Some(whole) = structure else {
            return true;
        };
        match self {
            Self::All => true,
            Self::Attachments { least, types } => {
                let mut parts = whole.all().into_iter();
                parts.any(|part| is_large(part, *least) && may_be_of(part, types))
            }
            // Text that the mail shows is never detached.
            Self::References => {
                let mut parts = whole.all().into_iter();
                parts.any(|part| may_refer(part) && !is_shown(part))
            }
            Self::Documents => {
                let mut parts = whole.all().into_iter();
                parts.any(|part| may_refer(part) || is_document(part))
            }
        }
    }
}

/// One of these is true of each message in which a part may refer to something: a message with parts in it, one that is no
/// text, and what was detached from a message without parts.
const MAY_REFER: [&str; 5] = [
    "HEADER Content-Type multipart",
    "HEADER Content-Type message",
    "(HEADER Content-Type \"\" NOT HEADER Content-Type text)",
    "HEADER X-Mozilla-External-Attachment-URL \"\"",
    "HEADER X-Embody-Detached \"\"",
];

const DOCUMENTS: [&str; 2] = ["HEADER Content-Type html", "HEADER Content-Type css"];

/// A search for messages of which one of several things is true.
fn any(keys: &[&str]) -> String {
    let ors = " OR".repeat(keys.len().saturating_sub(1));
    format!("{ors} {}", keys.join(" "))
}

/// Servers that keep mail with LF may count lines otherwise, and whether the last line end belongs to a part is read in two
/// ways.
fn is_large(part: &BodyPart, least: u64) -> bool {
    part.children.is_empty() && part.size + part.size / 32 + 4 >= least
}

/// Text is what a damaged type is read as, and what is composed may hold anything that the server did not look into.
fn may_be_of(part: &BodyPart, types: &[TypePattern]) -> bool {
    let essence = part.media_type.as_str();
    types.is_empty()
        || types.iter().any(|pattern| pattern.matches(essence))
        || essence == "text/plain"
        || is_composite(part)
}

/// External bodies, and what stands for an attachment, whose type is that of the attachment, or text. It is a note as it is,
/// or blank.
fn may_refer(part: &BodyPart) -> bool {
    let longest = match part.encoding.as_str() {
        "base64" | "quoted-printable" => LONGEST_BLANK,
        _ => LONGEST_STUB,
    };
    part.children.is_empty() && (is_composite(part) || part.size <= longest)
}

fn is_composite(part: &BodyPart) -> bool {
    let is_of = |kind| part.media_type.starts_with(kind);
    is_of("message/") || is_of("multipart/")
}

fn is_shown(part: &BodyPart) -> bool {
    let is_text =
        part.media_type.starts_with("text/") || part.media_type == "application/xhtml+xml";
    is_text && part.disposition.as_deref() != Some("attachment")
}

fn is_document(part: &BodyPart) -> bool {
    matches!(
        part.media_type.as_str(),
        "text/html" | "text/css" | "application/xhtml+xml"
    )
}
