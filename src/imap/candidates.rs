//! Selects the messages that a command might change, by means of searches and message structures. No other message is
//! downloaded.
//!
//! The selection always includes every message that the command would change in a local copy of the mail. If the server cannot
//! tell, the message is selected. BODYSTRUCTURE is trusted to contain all parts of a message, and a message whose structure
//! cannot be parsed is selected. Searches are verified: [`listing`](super::listing) compares the number of results with EXISTS.
//! The structures of some messages that a search for header fields did not find show whether the server can search these fields
//! at all.

use super::account::FolderChoice;
use super::failure::ImapFailure;
use super::listing::{Criteria, FolderContents};
use super::session::{ImapSession, SelectResponse, Structure};
use super::structure::BodyPart;
use crate::engine::policy::TypePattern;

/// Maximum size of a part that replaces a detached attachment, in bytes. Its body quotes the header of the attachment, which
/// can be long.
const LONGEST_STUB: u64 = 256 << 10;

/// Maximum size in bytes of a part that replaces a detached attachment and whose body is blank. The blank lines may be
/// encoded, which needs some bytes.
const LONGEST_BLANK: u64 = 2 << 10;

/// Selection of messages for a command.
#[derive(Clone, Debug)]
pub(crate) enum Candidates {
    /// All messages.
    All,
    /// Messages with an attachment of at least `least` encoded bytes and one of these types. An empty list allows all types.
    Attachments { least: u64, types: Vec<TypePattern> },
    /// Messages with a part that refers to a detached attachment or to other content outside the message.
    References,
    /// Messages that `References` selects, and messages that contain HTML or CSS.
    Documents,
}

impl Candidates {
    /// Returns the search criteria. Messages with `\Deleted` are excluded.
    fn criteria(&self, choice: &FolderChoice) -> Criteria {
        let criteria = Criteria::of(choice).undeleted();
        match self {
            Self::All => criteria,
            // LARGER excludes messages of exactly the given size, so the limit is reduced by 1.
            Self::Attachments { least, .. } => {
                criteria.larger(u32::try_from(least.saturating_sub(1)).unwrap_or(u32::MAX))
            }
            // IMAP cannot search the header fields of MIME parts. The Content-Type of the message itself shows whether it has
            // parts.
            Self::References => criteria.with_headers(any(&MAY_REFER)),
            Self::Documents => {
                let all: Vec<&str> = MAY_REFER.into_iter().chain(DOCUMENTS).collect();
                criteria.with_headers(any(&all))
            }
        }
    }

    /// Lists the messages of the selected folder that might be changed. With `is_checked`, the structures of some other
    /// messages show whether the server can search header fields. Otherwise all messages are listed.
    pub(super) fn find(
        &self,
        session: &mut ImapSession,
        selected: &SelectResponse,
        choice: &FolderChoice,
        is_checked: bool,
    ) -> Result<FolderContents, ImapFailure> {
        let criteria = self.criteria(choice);
        let mut listing = session.list_messages(selected, &criteria)?;
        let wider = criteria.without_headers();
        if wider == criteria {
            return Ok(listing);
        }
        let has_days = choice.since.is_some() || choice.before.is_some();
        let mut others = match (choice.uid, has_days) {
            (Some(uid), _) => vec![uid],
            (None, false) => listing.all.clone(),
            (None, true) => session.list_messages(selected, &wider)?.uids,
        };
        others.retain(|uid| listing.uids.binary_search(uid).is_err());
        let mut is_overlooked = !is_checked;
        let sample = if is_checked {
            sample(&others)
        } else {
            Vec::new()
        };
        session.fetch_metadata(&sample, Structure::Wanted, &mut |metadata| {
            let is_deleted = |flag: &String| flag.eq_ignore_ascii_case("\\Deleted");
            is_overlooked |= self.should_be_found(metadata.structure.as_ref())
                && !metadata.flags.iter().any(is_deleted);
            Ok(())
        })?;
        if is_overlooked {
            listing.uids.extend(others);
            listing.uids.sort_unstable();
        }
        Ok(listing)
    }

    /// Returns whether a message with this structure might be changed.
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
            // A part that mail clients display is not a stub of a detached attachment, because `detach` never removes
            // displayed text.
            Self::References => {
                let mut parts = whole.all().into_iter();
                parts.any(|part| may_refer(part) && !is_shown(part))
            }
            Self::Documents => {
                let mut parts = whole.all().into_iter();
                parts.any(|part| may_refer(part) || is_document(part) || may_be_tnef(part))
            }
        }
    }
}

impl Candidates {
    /// Whether the search should have found this message: it might be changed, and has one of the Content-Types that
    /// were searched for. If it was not found, the server does not search header fields reliably.
    fn should_be_found(&self, structure: Option<&BodyPart>) -> bool {
        let Some(whole) = structure else {
            return false;
        };
        let is_of_type = is_composite(whole)
            || !whole.media_type.starts_with("text/")
            || matches!(self, Self::Documents) && is_document(whole);
        is_of_type && self.include(structure)
    }
}

/// Returns a sample of messages that a search for header fields did not find. Their structures show whether the server searches
/// these fields. Some servers never index them, and others index new mail late. So half of the sample are the newest messages,
/// and the other half is spread over the folder.
fn sample(uids: &[u32]) -> Vec<u32> {
    let (older, newest) = uids.split_at(uids.len().saturating_sub(SAMPLE / 2));
    let step = older.len().div_ceil(SAMPLE / 2).max(1);
    older.iter().step_by(step).chain(newest).copied().collect()
}

/// Number of messages in a sample. Requesting their structures takes about as many bytes as 100 messages.
const SAMPLE: usize = 1000;

/// Search keys for messages that may contain a reference to external content. Each such message matches at least one
/// key: it has parts, or it is not text, or a header field shows that its content was detached.
const MAY_REFER: [&str; 5] = [
    "HEADER Content-Type multipart",
    "HEADER Content-Type message",
    "(HEADER Content-Type \"\" NOT HEADER Content-Type text)",
    "HEADER X-Mozilla-External-Attachment-URL \"\"",
    "HEADER X-Embody-Detached \"\"",
];

const DOCUMENTS: [&str; 2] = ["HEADER Content-Type html", "HEADER Content-Type css"];

/// Combines search keys with OR.
fn any(keys: &[&str]) -> String {
    let ors = " OR".repeat(keys.len().saturating_sub(1));
    format!("{ors} {}", keys.join(" "))
}

/// Returns whether a part may have at least `least` bytes, the minimum size of an attachment to detach. The announced size
/// is increased a little, because servers count differently: a server that stores line endings as LF may omit the CR, and
/// the last line ending may or may not belong to the part.
fn is_large(part: &BodyPart, least: u64) -> bool {
    part.children.is_empty() && part.size + part.size / 32 + 4 >= least
}

/// Returns whether a part may have one of the types. `text/plain` always matches, because servers report a malformed type as
/// text. A composite part always matches, because the server may not have parsed its contents.
fn may_be_of(part: &BodyPart, types: &[TypePattern]) -> bool {
    let essence = part.media_type.as_str();
    types.is_empty()
        || types.iter().any(|pattern| pattern.matches(essence))
        || essence == "text/plain"
        || is_composite(part)
}

/// Returns whether a part may be a reference: an external body, or a part that replaces a detached attachment. A
/// replacement has the type of the attachment or a text type, and its body is blank or is text without an encoding.
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

/// Returns whether a part may be TNEF (`winmail.dat`). Its first bytes identify it even if the type is a general one.
fn may_be_tnef(part: &BodyPart) -> bool {
    matches!(
        part.media_type.as_str(),
        "application/ms-tnef" | "application/vnd.ms-tnef" | "application/octet-stream"
    )
}

fn is_document(part: &BodyPart) -> bool {
    matches!(
        part.media_type.as_str(),
        "text/html" | "text/css" | "application/xhtml+xml"
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::engine::policy::Policy;
    use crate::engine::report::Outcome;
    use crate::expand::detach::{Choice as Sizes, Detacher, Settings, Stub};
    use crate::fetch::store::Folder;
    use crate::mime::{self, MessageTree, PartId};
    use crate::{Expander, edit::Edits};

    /// Returns the structure that a server would report for the parts that the MIME scanner finds.
    fn structure(tree: &MessageTree<'_>, id: PartId) -> BodyPart {
        let part = tree.part(id);
        let field = tree.value(id, "Content-Transfer-Encoding");
        let encoding = String::from_utf8_lossy(field.unwrap_or(b"7bit"));
        let disposition = String::from_utf8_lossy(tree.disposition(id)).into_owned();
        let is_multipart = part.essence.starts_with("multipart/");
        BodyPart {
            media_type: part.essence.clone(),
            encoding: encoding.trim().to_lowercase(),
            size: if is_multipart {
                0
            } else {
                part.body.len() as u64
            },
            disposition: Some(disposition.to_lowercase()).filter(|it| !it.is_empty()),
            children: part
                .children
                .iter()
                .map(|id| structure(tree, *id))
                .collect(),
            ..BodyPart::default()
        }
    }

    fn of(message: &[u8]) -> BodyPart {
        let tree = mime::scan(message, &Policy::default().limits.scan());
        let root = tree.ids().next().unwrap();
        structure(&tree, root)
    }

    /// Returns whether a server would find the message by its Content-Type and the other fields in the search.
    fn is_found(candidates: &Candidates, message: &[u8]) -> bool {
        let end = memchr::memmem::find(message, b"\r\n\r\n").unwrap_or(message.len());
        let header = String::from_utf8_lossy(&message[..end])
            .replace("\r\n ", " ")
            .to_lowercase();
        let field = |name: &str| {
            let start = format!("{name}:");
            let line = header.lines().find(|line| line.starts_with(&start));
            line.map(|line| line[start.len()..].to_owned())
        };
        let kind = field("content-type");
        let says = |word: &str| kind.as_deref().is_some_and(|kind| kind.contains(word));
        let may_refer = says("multipart")
            || says("message")
            || kind.is_some() && !says("text")
            || field("x-mozilla-external-attachment-url").is_some()
            || field("x-embody-detached").is_some();
        match candidates {
            Candidates::All => true,
            Candidates::Attachments { least, .. } => message.len() as u64 >= *least,
            Candidates::References => may_refer,
            Candidates::Documents => may_refer || says("html") || says("css"),
        }
    }

    fn leaf() -> impl Strategy<Value = String> {
        let types = prop::sample::select(vec![
            "text/plain",
            "text/html",
            "text/css",
            "text/csv",
            "application/pdf",
            "application/xhtml+xml",
            "image/png",
            "Image/PNG; name=\"a.png\"",
            "message/external-body; access-type=URL; URL=\"data:,x\"",
            "",
        ]);
        let dispositions =
            prop::sample::select(vec!["", "attachment", "inline", "Attachment; filename=a"]);
        let bodies = prop::sample::select(vec![
            "Content-Type: text/plain\r\n\r\n",
            "short\r\n",
            "<a href=\"x.html\">x</a><base href=\"http://example.org/\"><img src=\"data:image/png;base64,AAAA\">",
        ]);
        (types, dispositions, bodies, 0_usize..6000, proptest::bool::ANY).prop_map(
            |(kind, disposition, body, size, is_coded)| {
                let mut text = String::new();
                if !kind.is_empty() {
                    text.push_str(&format!("Content-Type: {kind}\r\n"));
                }
                if !disposition.is_empty() {
                    text.push_str(&format!("Content-Disposition: {disposition}\r\n"));
                }
                let line = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMjM0\r\n";
                if is_coded && size > 100 { format!("{text}Content-Transfer-Encoding: base64\r\n\r\n{}", line.repeat(size / 78)) } else { format!("{text}\r\n{body}{}", "word ".repeat(size % 700)) }
            },
        )
    }

    fn entity() -> impl Strategy<Value = String> {
        leaf().prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                (prop::collection::vec(inner.clone(), 1..4), 0_u32..1000).prop_map(|(parts, number)| {
                    let parts: String =
                        parts.iter().map(|part| format!("--b{number}\r\n{part}\r\n")).collect();
                    format!("Content-Type: multipart/mixed;\r\n boundary=b{number}\r\n\r\n{parts}--b{number}--\r\n")
                }),
                inner.prop_map(|part| format!("Content-Type: message/rfc822\r\n\r\nSubject: in\r\n{part}")),
            ]
        })
    }

    fn changed(edits: &Edits, message: &[u8]) -> Option<Vec<u8>> {
        (!edits.is_empty()).then(|| edits.splice(message).into_bytes().into_owned())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn what_a_verb_would_change_is_among_the_candidates(
            entity in entity(),
            least in 1024_u64..5000,
            is_typed in proptest::bool::ANY,
            is_old_form in proptest::bool::ANY,
        ) {
            let message = format!("Subject: x\r\nMIME-Version: 1.0\r\n{entity}").into_bytes();
            let types: Vec<TypePattern> = is_typed.then(|| "image/*".parse().unwrap()).into_iter().collect();
            let folder = tempfile::tempdir().unwrap();
            let store = Arc::new(Folder::open(folder.path()).unwrap());
            let detacher = Detacher::new(Settings {
                choice: Sizes { larger_than: least, types: types.clone(), takes_shown: true },
                form: if is_old_form { Stub::Thunderbird } else { Stub::ExternalBody },
                ..Settings::new(store)
            });
            let detached = detacher.detach(&message, "").unwrap();
            if let Some(without) = changed(&detached.edits, &message) {
                let candidates = Candidates::Attachments { least, types };
                prop_assert!(is_found(&candidates, &message));
                prop_assert!(candidates.include(Some(&of(&message))));
                prop_assert!(is_found(&Candidates::References, &without));
                prop_assert!(Candidates::References.include(Some(&of(&without))));
            }
            let expander = Expander::new(Policy::default()).unwrap();
            let report = expander.forecast(&message, "");
            if report.rows.iter().any(|row| row.outcome != Outcome::Left) {
                prop_assert!(is_found(&Candidates::Documents, &message));
                prop_assert!(Candidates::Documents.include(Some(&of(&message))));
            }
        }
    }

    #[test]
    fn search_criteria_follow_the_url_and_the_options() {
        let choice = FolderChoice {
            uid: Some(7),
            since: Some("3-Jan-2020".into()),
            ..FolderChoice::default()
        };
        let attachments = Candidates::Attachments {
            least: 1000,
            types: Vec::new(),
        };
        assert_eq!(
            attachments.criteria(&choice).search(),
            "UNDELETED UID 7 SINCE 3-Jan-2020 LARGER 999"
        );
        assert_eq!(
            Candidates::All.criteria(&FolderChoice::default()).search(),
            "UNDELETED"
        );
        let search = Candidates::Documents
            .criteria(&FolderChoice::default())
            .search();
        assert_eq!(search.matches("OR ").count(), 6);
    }

    #[test]
    fn a_sample_has_the_newest_messages_and_some_of_all_others() {
        for count in [0, 1, SAMPLE / 2, SAMPLE, SAMPLE + 1, 123_456] {
            let uids: Vec<u32> = (1..).take(count).collect();
            let sample = sample(&uids);
            assert!(sample.len() <= SAMPLE && sample.is_sorted(), "{count}");
            assert_eq!(sample.len() == count, count <= SAMPLE, "{count}");
            assert!(sample.ends_with(&uids[count.saturating_sub(SAMPLE / 2)..]));
        }
    }
}
