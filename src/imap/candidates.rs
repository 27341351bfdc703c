//! Which messages a verb might change, told by the server: by searches, and by the structure of what they find. The others are
//! not downloaded.
//!
//! Each choice is a superset of what the verb changes in the same mails: where a server cannot tell, a message is read. It is
//! taken from the server on trust that BODYSTRUCTURE has the parts that a message has. A message whose structure cannot be read
//! is a candidate. Searches are checked: [`listing`](super::listing) compares their number with EXISTS, and the structure of some
//! messages that a search for header fields did not find shows whether the server searches these fields at all.

use super::account::Choice;
use super::failure::ImapFailure;
use super::listing::{Criteria, Listing};
use super::session::{ImapSession, Selected, Structure};
use super::structure::BodyPart;
use crate::engine::policy::TypePattern;

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
    fn criteria(&self, choice: &Choice) -> Criteria {
        let criteria = Criteria::of(choice).undeleted();
        match self {
            Self::All => criteria,
            // LARGER means more than that.
            Self::Attachments { least, .. } => {
                criteria.larger(u32::try_from(least.saturating_sub(1)).unwrap_or(u32::MAX))
            }
            // No server searches fields of parts, but that a message has parts its own header says.
            Self::References => criteria.with_headers(any(&MAY_REFER)),
            Self::Documents => {
                let all: Vec<&str> = MAY_REFER.into_iter().chain(DOCUMENTS).collect();
                criteria.with_headers(any(&all))
            }
        }
    }

    /// The messages of the selected folder that have to be looked at.
    pub(super) fn find(
        &self,
        session: &mut ImapSession,
        selected: &Selected,
        choice: &Choice,
    ) -> Result<Listing, ImapFailure> {
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
        let mut is_overlooked = false;
        session.fetch_metadata(&sample(&others), Structure::Wanted, &mut |metadata| {
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
                parts.any(|part| may_refer(part) || is_document(part) || may_be_tnef(part))
            }
        }
    }
}

impl Candidates {
    /// Whether a search for header fields has to find a message of this structure, and the verb might change it.
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

/// Messages that a search for header fields did not find, and whose structure shows whether it should have. Indexes of servers
/// lack new mail for a while, or never have these fields: half of the sample are the newest messages, the others are spread over
/// the folder.
fn sample(uids: &[u32]) -> Vec<u32> {
    let (older, newest) = uids.split_at(uids.len().saturating_sub(SAMPLE / 2));
    let step = older.len().div_ceil(SAMPLE / 2).max(1);
    older.iter().step_by(step).chain(newest).copied().collect()
}

/// Messages of a sample. Asking for their structure takes about as many bytes as 100 mails have.
const SAMPLE: usize = 1000;

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

/// The first bytes tell it where the type does not.
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
    use crate::mime::{self, PartId, Tree};
    use crate::{Expander, edit::Edits};

    /// What a server says of the parts that our scanner finds.
    fn structure(tree: &Tree<'_>, id: PartId) -> BodyPart {
        let part = tree.part(id);
        let encoding = tree.value(id, "Content-Transfer-Encoding");
        let encoding = String::from_utf8_lossy(encoding.unwrap_or(b"7bit"));
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

    /// Whether a server finds a message by its own Content-Type, and the fields that a search names.
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
                match is_coded && size > 100 {
                    true => format!("{text}Content-Transfer-Encoding: base64\r\n\r\n{}", line.repeat(size / 78)),
                    false => format!("{text}\r\n{body}{}", "word ".repeat(size % 700)),
                }
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
    fn a_search_asks_for_what_the_url_and_the_options_mean() {
        let choice = Choice {
            uid: Some(7),
            since: Some("3-Jan-2020".into()),
            ..Choice::default()
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
            Candidates::All.criteria(&Choice::default()).search(),
            "UNDELETED"
        );
        let search = Candidates::Documents.criteria(&Choice::default()).search();
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
