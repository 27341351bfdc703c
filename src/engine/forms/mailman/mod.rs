//! Attachments that Mailman 2 removed from a mail before it archived, digested or delivered the mail
//! (Mailman/Handlers/Scrubber.py). No document describes the notes it writes, so the following is what the program does.
//! * The mail becomes a single text: the texts of its parts and the notes, with [separators](separator) between them. The text
//!   can consist of a single note: up to 2.1.34, Mailman removed every text with a Content-Disposition but no charset.
//! * A note ends with a URL of the form `.../attachments/YYYYMMDD/HHHHHHHH/NAME.EXT`. HHHHHHHH are the first and the last four
//!   digits of the SHA-1 of the Message-ID. This shows that a note belongs to this mail and is not quoted from another one.
//! * NAME and EXT, and the media type that the server derives from them, are unreliable. The note contains the type and the
//!   size.
//!
//! The notes in a digest belong to other mails. Each mail in the digest has its own Message-ID.

mod escape;
mod needles;
mod separator;
mod shape;
mod stored;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

use memchr::memmem::{self, Finder};
use sha1::{Digest as _, Sha1};

pub(crate) use self::separator::divided;
use self::shape::MailmanNote;
use crate::engine::external_body::reference::{Facts, Insertion};
use crate::engine::external_body::reference::{
    declared_charset, deleted, limit_notes, text_in, undecodable_name,
};
use crate::engine::external_body::texts::{extension_of, file_name_in, text_of_part};
use crate::engine::external_body::{ExternalBody, ReferenceShape, Referent, Scrap, TextNote};
use crate::engine::forms::reference_form::{Needles, ReferenceForm};
use crate::engine::policy::{Follow, ReferenceParse};
use crate::engine::report::Kind;
use crate::mime::{Header, MediaType, MessageTree, PartId, PartKind};
use crate::span::{Span, SpanLines, last_line};

/// Facts about notes that Mailman left in a text in place of an attachment. Files on different lists often have the same name,
/// so a file in `--attachments` must also be in a directory with the right name, which is a hash. Servers guess the media types
/// of these files, so a request for such a file names no media type.
static FACTS: Facts = Facts {
    insertion: Insertion::Note(stored::attachment),
    may_be_in_copies: true,
    attachment_components: Some(2),
    server_knows_type: false,
    ..Facts::of_whole_part(
        ReferenceShape::Mailman,
        Kind::Mailman,
        Some(Follow::Mailman),
    )
};

/// The notes of Mailman.
pub(crate) struct Mailman;

impl ReferenceForm for Mailman {
    fn needles(&self) -> Needles {
        Needles::Body(&[Follow::Mailman, Follow::MailmanDigests], needles::search)
    }

    fn in_texts<'a>(
        &self,
        tree: &MessageTree<'a>,
        reading: &ReferenceParse,
        known: &HashSet<PartId>,
    ) -> Vec<ExternalBody<'a>> {
        scrubbed(tree, reading, known)
    }

    fn is_in_text(&self, tree: &MessageTree<'_>, text: &[u8]) -> bool {
        holds_notes(tree, text)
    }
}

/// Returns the notes that Mailman left in the texts of a message, in place of attachments. The parts in `known` are skipped,
/// because they are references themselves.
pub(crate) fn scrubbed<'a>(
    tree: &MessageTree<'a>,
    reading: &ReferenceParse,
    known: &HashSet<PartId>,
) -> Vec<ExternalBody<'a>> {
    let [is_read, reads_digests] =
        [Follow::Mailman, Follow::MailmanDigests].map(|form| reading.forms.contains(form));
    if !is_read && !reads_digests {
        return Vec::new();
    }
    let own = own_hashes(tree);
    let is_text = |&part: &PartId| is_text_of_mail(tree, part) && !known.contains(&part);
    let mut bodies = Vec::new();
    for part in tree.ids().filter(is_text) {
        let Some(text) = text_of_part(tree, part) else {
            continue;
        };
        let text = &*text;
        let declared = declared_charset(tree, part);
        let label = declared.as_deref();
        let entity = tree.part(part);
        let origin = (!entity.encoding.is_encoded()).then_some(entity.body.start);
        let blocks = if reads_digests {
            blocks(text)
        } else {
            Vec::new()
        };
        let block_at = |at: usize| {
            let behind = blocks.partition_point(|(start, _)| *start <= at);
            behind.checked_sub(1).and_then(|before| blocks.get(before))
        };
        let is_own = |hash: &str| is_read && proves(&own, hash);
        let proves = |at: usize, hash: &str| {
            is_own(hash) || block_at(at).is_some_and(|(_, block)| proves(block, hash))
        };
        // One note more than the limit is kept. `limit_notes` refuses this additional note, and its row in the report
        // says that the limit was exceeded.
        let room = (reading.most_notes + 1).saturating_sub(bodies.len());
        let mut notes = shape::notes(text, room, proves);
        if is_read {
            notes.extend(removed(text));
            notes.sort_by_key(|note| note.span.start);
        }
        bodies.extend(notes.into_iter().map(|note| {
            let (hash, _) = shape::stored_name(&note.url).unwrap_or_default();
            let is_in_digest = note.scrap != Scrap::Removed && !is_own(hash);
            described(tree, (part, label), origin.unwrap_or(0), note, is_in_digest)
        }));
    }
    limit_notes(&mut bodies, reading);
    bodies
}

/// Returns whether the part is a text of the mail itself. Mailman writes its notes into such a text, so attachments and enclosed
/// messages are not searched.
fn is_text_of_mail(tree: &MessageTree<'_>, part: PartId) -> bool {
    let entity = tree.part(part);
    entity.essence == "text/plain"
        && entity.content == PartKind::Leaf
        && !tree.has_disposition(part, "attachment")
        && tree.message_of(part) == PartId::ROOT
}

fn holds_notes(tree: &MessageTree<'_>, text: &[u8]) -> bool {
    let proves = proof(tree, text);
    !shape::notes(text, 1, |_, hash| proves(hash)).is_empty() || removed(text).next().is_some()
}

/// Returns the function that returns true for a hash of the mail, or of a mail in a digest.
fn proof(tree: &MessageTree<'_>, text: &[u8]) -> impl Fn(&str) -> bool + use<> {
    let own = own_hashes(tree);
    let blocks = blocks(text);
    move |hash| proves(&own, hash) || blocks.iter().any(|(_, block)| proves(block, hash))
}

/// Returns the number of notes in a part whose hash is not that of the mail. Either the note was copied from another mail, or the
/// Message-ID was changed after Mailman wrote the note. embody does not follow such notes.
#[cfg(feature = "cli")]
pub(crate) fn notes_without_proof(tree: &MessageTree<'_>, part: PartId, most: usize) -> usize {
    let text = is_text_of_mail(tree, part).then(|| text_of_part(tree, part));
    let Some(Some(text)) = text else {
        return 0;
    };
    if memmem::find(&text, b"://").is_none() {
        return 0;
    }
    let proves = proof(tree, &text);
    shape::notes(&text, most, |_, hash| !proves(hash)).len()
}

fn own_hashes(tree: &MessageTree<'_>) -> Vec<u32> {
    let id = tree.value(PartId::ROOT, "Message-ID");
    hashes(id.unwrap_or_default())
}

fn described<'a>(
    tree: &MessageTree<'a>,
    (part, label): (PartId, Option<&[u8]>),
    origin: usize,
    note: MailmanNote<'_>,
    is_in_digest: bool,
) -> ExternalBody<'a> {
    let media_type = match note.scrap {
        Scrap::File if note.media_type.contains(&b'/') => note.media_type,
        Scrap::File => b"application/octet-stream",
        Scrap::Html | Scrap::Removed => b"text/html",
        Scrap::Message => b"message/rfc822",
        Scrap::Text => b"text/plain",
    };
    let stored_name = note.url.rsplit('/').next().unwrap_or_default().to_owned();
    let [name, description] = [note.name, note.description].map(|octets| text_in(label, octets));
    let target = match note.scrap {
        Scrap::Removed => Err(deleted()),
        _ if name.is_none() || description.is_none() => Err(undecodable_name(label)),
        _ => Ok(Referent::Url(note.url)),
    };
    let [name, description] = [name, description].map(Option::unwrap_or_default);
    let mut body = ExternalBody::bare(tree, part, &FACTS, target);
    body.declared = Some(MediaType::parse(media_type).bare());
    // The size in the note is compared with that of the file. For an enclosed message this is impossible: the note contains the
    // size before Mailman escaped the message, and the file contains the escaped message.
    body.size = note.size.filter(|_| note.scrap == Scrap::File);
    body.file_name = file_name(&name).filter(|_| name != description);
    if is_in_digest {
        body.selected_by = Some(Follow::MailmanDigests);
    }
    body.text_note = Some(TextNote {
        note: note.span.shifted(origin),
        scrap: note.scrap,
        stored_name,
        description: (name != description && !is_nothing(&description))
            .then(|| description.into_owned()),
        message_size: note.size.filter(|_| note.scrap == Scrap::Message),
        is_in_digest,
    });
    body
}

// The search for removed HTML is prepared only once: most texts are short, and preparing the search takes longer than
// the search itself.
static REMOVED: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new("HTML attachment scrubbed and removed"));

/// Finds the lines that Mailman wrote in place of HTML that it did not store. They contain no URL, so they can be recognized
/// only by their words, and only the English ones are known.
fn removed(text: &[u8]) -> impl Iterator<Item = MailmanNote<'_>> {
    let length = REMOVED.needle().len();
    let is_alone = move |&at: &usize| {
        let before = &text[at.saturating_sub(128)..at];
        let (is_line, above) = match before.strip_suffix(b"\n") {
            Some(above) => (true, above),
            None => (before.is_empty(), before),
        };
        let is_edge = before.is_empty() || separator::at_end(last_line(above)).is_some();
        let behind = &text[at + length..];
        let is_end = behind.is_empty() || behind.starts_with(b"\n") || behind.starts_with(b"\r\n");
        is_line && is_edge && is_end
    };
    let places = REMOVED.find_iter(text).filter(is_alone);
    places
        .map(move |at| MailmanNote::bare(Span::new(at, at + length), Scrap::Removed, String::new()))
}

/// Returns the hashes that Mailman may have computed from a Message-ID. The URL in a note contains such a hash, which
/// proves that the note belongs to this mail. The hashes are those of the whole value, of the id without the text
/// around it, and of the id with its `@` restored, because digests replace the `@` by a word.
fn hashes(value: &[u8]) -> Vec<u32> {
    let value = crate::mime::header::unfold(value);
    let mut ids: Vec<Cow<'_, [u8]>> = vec![Cow::Borrowed(&value)];
    let open = memchr::memchr(b'<', &value);
    let close = memchr::memrchr(b'>', &value);
    if let (Some(open), Some(close)) = (open, close)
        && let Some(id) = value.get(open..=close).filter(|id| id.len() < value.len())
    {
        ids.push(Cow::Borrowed(id));
    }
    let mut words = value.split(u8::is_ascii_whitespace);
    let [user, word, host, more] = [(); 4].map(|()| words.next());
    if let (Some(user), Some(_), Some(host), None) = (user, word, host, more) {
        ids.push(Cow::Owned([user, b"@".as_slice(), host].concat()));
    }
    ids.retain(|id| !id.is_empty());
    ids.iter().map(|id| hash(id)).collect()
}

fn proves(known: &[u32], hash: &str) -> bool {
    u32::from_str_radix(hash, 16).is_ok_and(|hash| known.contains(&hash))
}

fn hash(id: &[u8]) -> u32 {
    let [first, second, .., third, last]: [u8; 20] = Sha1::digest(id).into();
    u32::from_be_bytes([first, second, third, last])
}

/// Returns the start of each mail in a digest (RFC 1153), with the hashes of its Message-ID.
fn blocks(text: &[u8]) -> Vec<(usize, Vec<u32>)> {
    let mut blocks = Vec::new();
    for at in memmem::find_iter(text, b"\n\nMessage: ") {
        let start = at + 2;
        let within = Span::new(start, text.len());
        let header = Header::read(text, within, LONGEST_BLOCK_HEADER);
        let id = header.fields.value(text, "Message-ID").unwrap_or_default();
        blocks.push((start, hashes(id)));
    }
    // A line of hyphens ends each mail in a digest. It is added to the list without hashes, because the text between
    // this line and the next mail belongs to neither mail.
    let ends = SpanLines::new(text, Span::new(0, text.len()))
        .filter(|line| line.content.of(text) == BETWEEN_BLOCKS)
        .map(|line| (line.whole.start, Vec::new()));
    blocks.extend(ends);
    blocks.sort_by_key(|(start, _)| *start);
    blocks
}

const LONGEST_BLOCK_HEADER: usize = 16 << 10;
const BETWEEN_BLOCKS: &[u8] = b"------------------------------";

/// Returns the file name in a note. "No name" exists in Mailman's 38 translations, so a name is accepted only if it has
/// an extension or is a single ASCII word.
fn file_name(name: &str) -> Option<String> {
    let is_word = name.is_ascii() && !name.contains(|symbol: char| symbol.is_ascii_whitespace());
    let is_name = !is_nothing(name) && (is_word || extension_of(name).is_some());
    file_name_in(name).filter(|_| is_name)
}

fn is_nothing(value: &str) -> bool {
    value.is_empty() || NOTHING.contains(&value)
}

/// Words that Mailman writes in different languages if a file has no name or no description.
const NOTHING: [&str; 37] = [
    "Negalima",
    "[žádný popis není k dispozici]",
    "ei saatavilla",
    "ez dago erabilgarri",
    "hiện không có",
    "ikke tilg&aelig;ngelig",
    "ikke tilgjengelig",
    "ikke tilgængelig",
    "indisponibil(ă)",
    "inte tillgänglig",
    "kullanılamıyor",
    "nem elérhető",
    "ni na voljo",
    "nicht verfügbar",
    "nie je k dispozícii",
    "nie znany",
    "niet beschikbaar",
    "nije dostupno",
    "no disponible",
    "non disponibile",
    "non disponible",
    "non dispoñíbel",
    "not available",
    "nun disponible",
    "não disponível",
    "pole teada",
    "δεν είναι διαθέσιμο",
    "відсутній",
    "није доступно",
    "отсутствует",
    "לא זמין",
    "غير متوفرة",
    "موجود نیست",
    "〔無法取得〕",
    "不可用",
    "無し",
    "이용할 수 없숩니다.",
];
