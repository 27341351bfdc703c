//! Pairs the references of the old mail with the new parts of the guide, in their order, so that the parts answer the
//! references.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};

use super::facts::Guide;
use super::line_endings::LineEndingSearch;
use super::names::{digits_of, not_in_mail};
use super::part::GuidePart;
use crate::engine::content::{CopiedPart, NotedDigests};
use crate::engine::external_body::reference::Insertion;
use crate::engine::external_body::{ReferenceShape, Referent, Scrap};
use crate::engine::forms::references;
use crate::engine::ledger::Ledger;
use crate::engine::needs::Answers;
use crate::engine::obtained::is_decoded;
use crate::engine::plan::{Plan, PlanItem, PlanStep};
use crate::engine::policy::Policy;
use crate::engine::report::{Provenance, Refusal};
use crate::engine::text_lines::unquoted_text;
use crate::engine::{Content, Need, Neighbour};
use crate::link::data::DataUrl;
use crate::mime::entity::uri;
use crate::mime::media_type::is_composite;
use crate::mime::transfer::{canonical_text, encode_base64, with_newlines};
use crate::mime::{MessageTree, TransferEncoding};
use crate::span::Newline;

fn plan_of<'t>(tree: &MessageTree<'t>, policy: &Policy, ledger: &Ledger) -> Plan<'t> {
    let room = ledger.room_for_urls();
    let reading = references::with_parts_in_files(policy.reading());
    Plan::of_references(tree, policy, &reading, None, room)
}

/// Returns the pages and messages that notes in the texts of a mail name: the name of each on its server, and its kind.
pub(in crate::engine) fn noted_pages(
    tree: &MessageTree<'_>,
    policy: &Policy,
) -> Vec<(String, Scrap)> {
    let plan = plan_of(
        tree,
        policy,
        &Ledger::new(&policy.limits, tree.original.len()),
    );
    let notes = plan
        .references
        .iter()
        .filter_map(|item| item.body.text_note.as_ref());
    let pages = notes.filter(|note| matches!(note.scrap, Scrap::Html | Scrap::Message));
    pages
        .map(|note| (note.stored_name.clone(), note.scrap))
        .collect()
}

/// Counts the references that a mail still has, by their digests.
pub(super) fn left_in(
    tree: &MessageTree<'_>,
    policy: &Policy,
    ledger: &mut Ledger,
) -> HashMap<u64, usize> {
    let plan = plan_of(tree, policy, ledger);
    let mut left = HashMap::new();
    for item in &plan.references {
        *left.entry(digest(tree, item)).or_default() += 1;
    }
    left
}

fn digest(tree: &MessageTree<'_>, item: &PlanItem<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match &item.body.text_note {
        Some(note) => (&note.stored_name, &item.shown_url).hash(&mut hasher),
        None => {
            let part = tree.part(item.body.part);
            let bytes = part.span.of(tree.original).to_vec();
            with_newlines(bytes, Newline::Lf)
                .trim_ascii()
                .hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Score of a part whose URL or digest matches a reference.
const CERTAIN: u32 = 8;
/// Score of a part of which at least the type matches a reference.
const PROBABLE: u32 = 2;

impl Guide {
    /// Answers each reference with the new part that an earlier run inserted for it. `given` contains the indexes of
    /// the parts that already answer a reference.
    pub(in crate::engine) fn answer_references(
        &self,
        tree: &MessageTree<'_>,
        items: &mut [PlanItem<'_>],
        given: &mut HashSet<usize>,
        answers: &mut Answers,
    ) {
        for item in items.iter_mut() {
            let is_decided_here = matches!(item.step, PlanStep::Decode | PlanStep::Copy(_));
            if is_decided_here && self.references.contains_key(&digest(tree, item)) {
                item.step = PlanStep::Leave(not_in_mail());
            }
        }
        let items = &*items;
        self.set_decoded_apart(items, given);
        // Pairs with a high score first. Otherwise, a reference that no run filled, and that matches no part well, could take
        // the part of another reference.
        for least in [CERTAIN, PROBABLE, 0] {
            for item in items {
                let Some(need) = need_of(item) else { continue };
                let is_answered = answers.get(&need).is_some();
                if is_answered
                    && item
                        .copy
                        .as_ref()
                        .is_none_or(|copy| answers.get(copy).is_some())
                {
                    continue;
                }
                if let Some(note) = item.body.note() {
                    let object = self.object(&note.sha256).ok_or_else(not_in_mail);
                    answers.insert(need, object.map(Into::into));
                    continue;
                }
                let found = self.part_for(tree, item, given, least);
                if found.is_none() && least > 0 {
                    continue;
                }
                let part = found.and_then(|at| self.parts.get(at));
                given.extend(found);
                let (content, copy) = match part {
                    None => (Err(not_in_mail()), Err(not_in_mail())),
                    Some(part) => {
                        let (content, copy) = answer(tree, item, part, &self.line_endings);
                        let copy = copy.and_then(|copy| {
                            let is_copy = self.can_be_copied(part, &item.body);
                            is_copy.then_some(copy).ok_or_else(not_in_mail)
                        });
                        (content, copy)
                    }
                };
                // The copy is the only need of a deleted attachment.
                let is_copy_alone = item.copy.as_ref() == Some(&need);
                if let Some(copied) = &item.copy {
                    answers.insert(copied.clone(), copy.map(Into::into));
                }
                if !is_answered && !is_copy_alone {
                    answers.insert(need, content.map(Into::into));
                }
            }
        }
    }

    /// Adds to `given` the parts with the content of `data:` URLs. The repeated run decodes these URLs itself, so the parts
    /// answer no other reference.
    fn set_decoded_apart(&self, items: &[PlanItem<'_>], given: &mut HashSet<usize>) {
        let decoded = items
            .iter()
            .filter(|item| matches!(item.step, PlanStep::Decode));
        let mut urls = decoded
            .filter_map(|item| match &item.body.target {
                Ok(Referent::Data(url)) => Some((DataUrl::parse(url).ok()?, &item.body.content_id)),
                _ => None,
            })
            .peekable();
        if urls.peek().is_none() {
            return;
        }
        // A part with a Content-Location contains what another URL referred to.
        let mut bearers: HashMap<(u64, &Option<String>), Vec<usize>> = HashMap::new();
        for (at, part) in self.parts.iter().enumerate().rev() {
            let may_be_decoded = part.is_new && !part.is_multipart && part.location.is_none();
            if may_be_decoded && !given.contains(&at) {
                let digest = digest_of_octets(part.content().bytes());
                let bearer = bearers.entry((digest, &part.content_id));
                bearer.or_default().push(at);
            }
        }
        for (url, content_id) in urls {
            let Ok(octets) = url.decode(self.mail.len() as u64) else {
                continue;
            };
            let parts = bearers.get_mut(&(digest_of_octets(&octets), content_id));
            given.extend(parts.and_then(Vec::pop));
        }
    }

    /// Returns the index of the part that an earlier run inserted for a reference, if its score is at least `least`.
    fn part_for(
        &self,
        tree: &MessageTree<'_>,
        item: &PlanItem<'_>,
        given: &HashSet<usize>,
        least: u32,
    ) -> Option<usize> {
        let body = &item.body;
        let is_attached = matches!(body.facts.insertion, Insertion::Attachment);
        if !is_attached && self.references.contains_key(&digest(tree, item)) {
            return None;
        }
        let declared = body.declared.as_ref().map(|declared| &*declared.essence);
        let url = item.shown_url.as_deref().map(uri);
        // For a linked file, the Content-Location of the part is the link in the mail, and not the URL that was
        // requested.
        let link = body.linked.as_ref().map(|file| file.link.clone());
        let location = link.or_else(|| url.clone());
        let text = body.text_note.as_ref().and_then(|_| {
            let entity = tree.part(body.part);
            entity.encoding.decode(entity.body.of(tree.original))
        });
        let score = |part: &GuidePart| -> Option<u32> {
            let is_at = part.location.is_some() && part.location == location;
            let is_named = part.source.as_ref().map(|source| &source.named) == url.as_ref();
            if is_attached {
                return (is_at && part.is_new).then_some(8);
            }
            let is_type = declared.is_none_or(|declared| {
                declared.is_empty() || part.essence.eq_ignore_ascii_case(declared)
            });
            if !part.is_new || !is_type && body.text_note.is_none() {
                return None;
            }
            // The new part keeps the Content-ID in the fields of the reference.
            let has_other_id = body.content_id.is_some() && body.content_id != part.content_id;
            if body.facts.shape == ReferenceShape::ExternalBody && has_other_id {
                return None;
            }
            // A run gives an id to a picture that it embeds, and not to content that it inserts in the place of a reference.
            let has_id_of_picture = part.content_id.as_deref().and_then(digits_of).is_some();
            if has_id_of_picture && body.content_id != part.content_id {
                return None;
            }
            let (from, to) = (
                url.as_deref().map(origin),
                part.location.as_deref().map(origin),
            );
            if let (Some(from), Some(to)) = (from, to)
                && from.is_web != to.is_web
            {
                return None;
            }
            let is_whole = declared.is_some_and(is_composite);
            if part.is_multipart && !is_whole {
                return None;
            }
            let is_here = part.number == item.number;
            // A note in a text has the number of the text, not that of the part that replaces the note.
            let is_of_part = is_whole && body.text_note.is_none();
            if is_of_part || matches!(body.facts.insertion, Insertion::Body(_)) {
                return is_here.then_some(8).or(Some(1));
            }
            let content = part.content();
            // An empty part may be a piece of the text that consists of empty lines, or an empty document from a server.
            let is_empty = content.bytes().trim_ascii().is_empty();
            let is_of_text = part.essence == tree.part(body.part).essence;
            if text.is_some() && is_empty && is_of_text && part.name.is_none() {
                return Some(0);
            }
            if let Some(text) = &text
                && !is_empty
                && part.name.is_none()
                && part.essence.starts_with("text/")
                && is_piece(text, content.bytes())
            {
                return None;
            }
            let octets = content.bytes();
            let is_noted = body.content_md5.is_some_and(|value| is_md5(value, octets));
            let is_size = body.size == Some(octets.len() as u64);
            // A page of Mailman whose original could not be restored has the name that it has on the server.
            let stored_name = body.text_note.as_ref().map(|note| &note.stored_name);
            let has_name = body.file_name.is_some() && body.file_name == part.name
                || stored_name.is_some() && stored_name == part.name.as_ref();
            Some(
                u32::from(is_noted) * 16
                    + u32::from(is_at || is_named) * 8
                    + u32::from(is_size) * 4
                    + u32::from(is_here || has_name) * 3
                    + u32::from(from.is_some() && from == to) * 2
                    + u32::from(is_type)
                    + 1,
            )
        };
        let mut best: Option<(u32, usize)> = None;
        for (at, part) in self.parts.iter().enumerate() {
            if given.contains(&at) {
                continue;
            }
            if let Some(score) = score(part)
                && best.is_none_or(|(most, _)| score > most)
            {
                best = Some((score, at));
            }
        }
        // Another part is no answer to a reference that a later run filled.
        let (score, at) = best.filter(|(_, at)| !self.is_later(*at))?;
        (score >= least).then_some(at)
    }
}

/// Returns a digest of content, which is independent of line endings and of the quoting of `From ` lines. It only selects
/// candidates, so it need not be collision-resistant.
fn digest_of_octets(octets: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    unquoted_text(octets).trim_ascii_end().hash(&mut hasher);
    hasher.finish()
}

/// Scheme and host of a URL, to judge redirects: a redirect usually stays on its host, and always stays on http or
/// https.
#[derive(Clone, Copy, PartialEq, Eq)]
struct UrlOrigin<'u> {
    is_web: bool,
    host: &'u str,
}

fn origin(url: &str) -> UrlOrigin<'_> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    UrlOrigin {
        is_web: scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"),
        host: rest.split('/').next().unwrap_or_default(),
    }
}

fn need_of(item: &PlanItem<'_>) -> Option<Need> {
    match &item.step {
        PlanStep::Retrieve(need) => Some(need.clone()),
        PlanStep::Read { folder, name } => Some(Need::Neighbour(Neighbour::OfMessage {
            folder: folder.clone(),
            name: name.clone(),
        })),
        PlanStep::Leave(_) => item.copy.clone(),
        PlanStep::Decode | PlanStep::Copy(_) => None,
    }
}

/// Whether a run may change content of this type when it inserts it.
fn is_changed(essence: &str) -> bool {
    let mut kinds = ["text/", "message/", "multipart/", "application/xhtml"].iter();
    kinds.any(|kind| essence.starts_with(kind))
}

type Answered = Result<Content, Refusal>;

/// Returns a pair for `part`: its content as the response of a server, and its content as a part of another copy of the
/// mail. One of the two is always a refusal, because a part from a server has a Content-Location and a part of a copy
/// has none.
fn answer(
    tree: &MessageTree<'_>,
    item: &PlanItem<'_>,
    part: &GuidePart,
    line_endings: &LineEndingSearch,
) -> (Answered, Answered) {
    let body = &item.body;
    let phantom = &body.phantom.fields;
    let has_location = phantom.value(tree.original, "Content-Location").is_some()
        || tree.value(body.part, "Content-Location").is_some();
    let is_linked = |link: &str| part.location.as_deref() == Some(&*uri(link));
    let url = match (&body.linked, &item.shown_url) {
        (Some(file), Some(requested)) if is_linked(&file.link) => requested.clone(),
        _ => part.url(has_location).to_owned(),
    };
    let mut content = part.retrieved(&url);
    if part.source.is_none() {
        content.origin.url = url.as_str().into();
    }
    if item.copy.is_some() && url.is_empty() {
        content.origin.from = Provenance::Copy;
        content.origin.copy = Some(Arc::new(CopiedPart {
            source: String::new(),
            index: 0,
            fields: part.fields.clone(),
            is_proved: false,
        }));
        return (Err(not_in_mail()), Ok(content));
    }
    let encoding = TransferEncoding::of(phantom.value(tree.original, "Content-Transfer-Encoding"));
    let converted: Option<Vec<u8>> = match &body.text_note {
        _ if is_decoded(body, encoding) => match encoding {
            TransferEncoding::Base64 => Some(encode_base64(content.bytes(), Newline::CrLf).body),
            _ => Some(crate::mime::quoted_printable::encode(
                content.bytes(),
                Newline::CrLf,
            )),
        },
        // A page whose original could not be restored, and a file that is no message, are inserted as they are.
        Some(note) if note.scrap == Scrap::Message && part.essence == "message/rfc822" => {
            stored_message(&content, note.message_size.or(body.size))
        }
        // Base64 keeps the line endings of a text. They are often the reason why base64 was chosen.
        Some(_) if part.essence.starts_with("text/") && !part.is_base64() => {
            Some(with_newlines(content.bytes().to_vec(), Newline::Lf))
        }
        _ => None,
    };
    // X-Embody-Source contains the digest of the bytes from the server. In a text, line endings may have been converted
    // since.
    let noted = part
        .source
        .as_ref()
        .and_then(|source| source.sha256.clone());
    let is_known = noted.as_deref() == Some(content.sha256());
    let with = |newline| with_newlines(content.bytes().to_vec(), newline);
    let exact = noted.as_ref().filter(|_| !is_known).and_then(|sha256| {
        let mut forms = [Newline::CrLf, Newline::Lf].into_iter().map(with);
        forms.find(|form| crate::mime::entity::sha256(form) == *sha256)
    });
    // The digest in the reference is that of the bytes from the server, whose line endings the run may have converted to
    // those of the mail.
    let digested = body.content_md5.and_then(|md5| {
        if is_md5(md5, content.bytes()) {
            return None;
        }
        // The mail can be in an mbox, which quotes lines that start with `From `.
        let mut unquoted = unquoted_text(content.bytes());
        if content.bytes().ends_with(b"\n") {
            unquoted.push(b'\n');
        }
        let both = [content.bytes(), &*unquoted];
        let mut forms = both.into_iter().flat_map(|octets| {
            [Newline::CrLf, Newline::Lf].map(|newline| with_newlines(octets.to_vec(), newline))
        });
        let found = forms.find(|form| is_md5(md5, form));
        let is_converted = part.essence.starts_with("text/") && !part.is_base64();
        found.or_else(|| {
            let wanted = md5_value(md5).filter(|_| is_converted)?;
            let mut both = both.into_iter();
            both.find_map(|octets| line_endings.find(octets, &wanted))
        })
    });
    let is_digested_here = body.content_md5.is_some_and(|md5| {
        let digest = Md5::digest(content.bytes());
        md5_value(md5).is_some_and(|wanted| digest.as_slice() == wanted.as_slice())
    });
    // A run writes text as quoted-printable only if base64 would be longer. With CRLF line endings base64 is longer, so
    // the repeated run chooses quoted-printable for this text, too.
    let is_longest = part.is_printable_text() && !is_known;
    let longest = || (is_longest && !is_digested_here).then(|| with(Newline::CrLf));
    let octets = converted.or(exact).or(digested).or_else(longest);
    // `with_bytes` discards the digests, and those of a placeholder cannot be computed from its bytes. It is therefore called
    // only if the bytes change.
    if let Some(octets) = octets.filter(|octets| content.bytes() != octets) {
        content = content.with_bytes(octets);
    }
    // The bytes from the server are no longer in the mail: the run changed mixed line endings, relative links of a
    // document, references in a message, or markup that Mailman had escaped.
    let is_other = noted
        .as_deref()
        .is_some_and(|sha256| content.sha256() != sha256);
    if is_other && is_changed(&part.essence) {
        content.noted = Some(Arc::new(NotedDigests {
            sha256: noted,
            ..NotedDigests::default()
        }));
    }
    (Ok(content), Err(not_in_mail()))
}

/// Returns an attached message in the form in which Mailman stores it: escaped, and after a separator line. This line
/// is padded so that the total size is the one in the note.
fn stored_message(content: &Content, size: Option<u64>) -> Option<Vec<u8>> {
    let message = with_newlines(content.bytes().to_vec(), Newline::Lf);
    let length = usize::try_from(size?).ok()?.checked_sub(message.len())?;
    let mut stored = b"From ".to_vec();
    stored.resize(length.checked_sub(1)?.max(5), b'x');
    stored.push(b'\n');
    stored.extend_from_slice(&message);
    let mut escaped = Vec::with_capacity(stored.len());
    for byte in stored {
        match byte {
            b'<' => escaped.extend_from_slice(b"&lt;"),
            b'>' => escaped.extend_from_slice(b"&gt;"),
            b'"' => escaped.extend_from_slice(b"&quot;"),
            b'&' => escaped.extend_from_slice(b"&amp;"),
            _ => escaped.push(byte),
        }
    }
    Some(escaped)
}

/// Whether `piece` is a piece of `text`, as is left when notes are cut out of it. Line endings and the quoting of `From
/// ` lines may differ, because the texts can be from different mailboxes.
fn is_piece(text: &[u8], piece: &[u8]) -> bool {
    let piece = unquoted_text(piece);
    memchr::memmem::find(&unquoted_text(text), piece.trim_ascii()).is_some()
}

fn md5_value(value: &[u8]) -> Option<Vec<u8>> {
    let mut value = value.to_vec();
    value.retain(|byte| !byte.is_ascii_whitespace());
    STANDARD.decode(value).ok()
}

fn is_md5(value: &[u8], octets: &[u8]) -> bool {
    let Some(wanted) = md5_value(value) else {
        return false;
    };
    let forms = [Cow::Borrowed(octets), canonical_text(octets)];
    forms
        .iter()
        .any(|form| Md5::digest(form).as_slice() == wanted.as_slice())
}
