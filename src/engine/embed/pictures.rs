//! Stores each embedded content once, with the new part that contains it.

use std::collections::HashMap;

use super::check::{admitted, charset, decoded, label};
use super::container::Container;
use super::names::{DIGITS, PictureNames};
use super::wanted::{SHEET, SourceUrls};
use crate::engine::forms::references;
use crate::engine::policy::{Policy, Trackers};
use crate::engine::protection::protection;
use crate::engine::report::{Reason, Refusal};
use crate::engine::{Content, source_field};
use crate::link::value::LinkRole;
use crate::mime::entity::{folded_url, push_field, sha256};
use crate::mime::picture::FileType;
use crate::mime::transfer::{append_base64, base64_length, with_newlines};
use crate::mime::{MessageTree, PartId, TransferEncoding};
use crate::span::Newline;

pub(super) const BLANK_PICTURE: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";

pub(super) fn source(
    answer: &Content,
    names: SourceUrls<'_>,
    policy: &Policy,
) -> (String, Vec<u8>) {
    // If `--map` rewrote the URL, the message gets the original URL. The rewritten URL belongs to the configuration of this
    // computer.
    let last = if answer.is_direct(policy, names.url) {
        names.direct
    } else {
        &answer.origin.url
    };
    let field = policy
        .provenance
        .then(|| source_field::of(answer, names.source, last))
        .flatten();
    (names.source.to_owned(), field.unwrap_or_default())
}

pub(super) struct Picture {
    pub(super) content: Content,
    pub(super) kind: FileType,
    charset: Option<String>,
    source: Option<(String, Vec<u8>)>,
    hash: String,
    /// Hash from which the Content-ID is made: usually the hash of the bytes. A declared charset is hashed too, because
    /// the same bytes can mean different things in two charsets.
    identity: String,
    /// The Content-ID in each container, as soon as it is computed. The boolean is true if the container already has a part
    /// with this id and these bytes.
    content_ids: HashMap<Container, (String, bool)>,
}

pub(super) struct Pictures<'p> {
    pub(super) tree: &'p MessageTree<'p>,
    pub(super) policy: &'p Policy,
    pictures: Vec<Picture>,
    known: HashMap<(String, &'static str, Option<String>), usize>,
    blank: Option<usize>,
    names: Option<PictureNames>,
}

impl<'p> Pictures<'p> {
    pub(super) fn new(tree: &'p MessageTree<'p>, policy: &'p Policy) -> Self {
        Self {
            tree,
            policy,
            pictures: Vec::new(),
            known: HashMap::new(),
            blank: None,
            names: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.pictures.len()
    }

    pub(super) fn of_data(&mut self, url: &str, role: LinkRole) -> Result<usize, Refusal> {
        let policy = self.policy;
        let (octets, declared, label) = decoded(url, policy)?;
        let octets = Content::of_message(octets);
        let kind = admitted(octets.bytes(), Some(&declared), Some(role), policy)?;
        let charset = charset(&kind, octets.bytes(), (&declared, label))?;
        Ok(self.add_text(octets, (kind, charset), None))
    }

    pub(super) fn of_answer(
        &mut self,
        answer: &Content,
        names: SourceUrls<'_>,
    ) -> Result<usize, Refusal> {
        let policy = self.policy;
        let declared = answer.essence();
        let label = label(answer.charset().as_deref());
        let octets = answer.clone();
        let kind = admitted(octets.bytes(), declared.as_deref(), None, policy)?;
        let is_tiny = |(width, height)| width <= 3 && height <= 3;
        if kind.size.is_some_and(is_tiny) {
            match policy.embed.trackers {
                Trackers::Fetch => {}
                Trackers::Blank => return Ok(self.blank()),
                Trackers::Leave => {
                    let detail = "the retrieved picture is at most 3 by 3 pixels";
                    return Err(Refusal::lasting(Reason::Tracker, detail));
                }
            }
        }
        let declared_as = (declared.as_deref().unwrap_or_default(), label);
        let charset = charset(&kind, octets.bytes(), declared_as)?;
        let source = source(answer, names, policy);
        Ok(self.add_text(octets, (kind, charset), Some(source)))
    }

    pub(super) fn blank(&mut self) -> usize {
        let kind = FileType {
            essence: "image/gif",
            extension: "gif",
            size: Some((1, 1)),
        };
        let octets = Content::of_message(BLANK_PICTURE);
        let number = self.add_text(octets, (kind, None), None);
        self.blank = Some(number);
        number
    }

    pub(super) fn is_blank(&self, number: usize) -> bool {
        self.blank == Some(number)
    }

    pub(super) fn add_text(
        &mut self,
        content: Content,
        (kind, charset): (FileType, Option<String>),
        source: Option<(String, Vec<u8>)>,
    ) -> usize {
        let noted = content.noted.clone().filter(|_| kind.essence == SHEET);
        let (hash, preset) = match noted.as_deref().and_then(|noted| noted.identity.clone()) {
            Some((hash, identity)) => (hash, Some(identity)),
            None => (content.sha256().to_owned(), None),
        };
        let number = self.pictures.len();
        let key = (hash.clone(), kind.essence, charset.clone());
        let known = *self.known.entry(key).or_insert(number);
        if known != number {
            return known;
        }
        let identity = match &charset {
            _ if let Some(preset) = preset => preset,
            Some(charset) => sha256(format!("{hash}\n{}\n{charset}", kind.essence).as_bytes()),
            None => hash.clone(),
        };
        self.pictures.push(Picture {
            content,
            kind,
            charset,
            source,
            hash,
            identity,
            content_ids: HashMap::new(),
        });
        number
    }

    pub(super) fn get(&self, number: usize) -> Option<&Picture> {
        self.pictures.get(number)
    }

    pub(super) fn is(&self, number: usize, essence: &str) -> bool {
        let picture = self.get(number);
        picture.is_some_and(|picture| picture.kind.essence == essence)
    }

    pub(super) fn text(&self, number: usize) -> Option<(Content, Option<String>)> {
        let picture = self.pictures.get(number)?;
        Some((picture.content.clone(), picture.charset.clone()))
    }

    pub(super) fn source_length(&self, number: usize) -> usize {
        let picture = self.pictures.get(number);
        let source = picture.and_then(|picture| picture.source.as_ref());
        // The URL is written percent-encoded, and each byte can become three. So this is an upper bound.
        source.map_or(0, |(url, field)| url.len() * 3 + field.len())
    }

    /// Describes a new part that has the Content-ID of `picture` and the bytes of `shown`. `picture` and `shown` differ
    /// only for a style sheet whose URLs were rewritten.
    pub(super) fn new_part(
        &mut self,
        container: Container,
        picture: usize,
        shown: usize,
    ) -> NewPicture {
        let newline = self.tree.newline;
        let (content_id, _) = self.identity(container, picture);
        NewPicture {
            picture,
            shown,
            header: self.header(picture, &content_id, newline),
            body: base64_length(self.octets(shown).len(), newline),
            content_id,
        }
    }

    fn header(&self, number: usize, content_id: &str, newline: Newline) -> Vec<u8> {
        let Some(picture) = self.pictures.get(number) else {
            return Vec::new();
        };
        let name = &picture.hash[..DIGITS];
        let media_type = match &picture.charset {
            Some(charset) => format!("{}; charset=\"{charset}\"", picture.kind.essence),
            None => picture.kind.essence.to_owned(),
        };
        let disposition = format!("inline; filename=\"{name}.{}\"", picture.kind.extension);
        let encoding = TransferEncoding::Base64.as_str();
        let mut header = Vec::new();
        push_field(&mut header, "Content-Type", &media_type, newline);
        let content_id = format!("<{content_id}>");
        push_field(&mut header, "Content-ID", &content_id, newline);
        push_field(&mut header, "Content-Disposition", &disposition, newline);
        if let Some((url, field)) = &picture.source {
            header.extend_from_slice(&folded_url("Content-Location", url, newline));
            header.extend_from_slice(&with_newlines(field.clone(), newline));
        }
        push_field(&mut header, "Content-Transfer-Encoding", encoding, newline);
        header.extend_from_slice(newline.bytes());
        header
    }

    pub(super) fn octets(&self, number: usize) -> &[u8] {
        let picture = self.pictures.get(number);
        picture.map_or(&[], |picture| picture.content.bytes())
    }

    /// Returns the Content-ID for a content in a container, and `true` if a part with this id already contains it. A sender
    /// can write ids of embody's form, so an existing part is used only if its bytes and type are equal. Otherwise a new id is
    /// made.
    pub(super) fn identity(&mut self, container: Container, number: usize) -> (String, bool) {
        let (tree, policy) = (self.tree, self.policy);
        let Some(picture) = self.pictures.get_mut(number) else {
            return (String::new(), false);
        };
        if let Some(known) = picture.content_ids.get(&container) {
            return known.clone();
        }
        let names = self.names.get_or_insert_with(|| PictureNames::of(tree));
        let digits = &picture.identity[..DIGITS];
        let (place, related) = match container {
            Container::Extended { related, .. } => (related, Some(related)),
            Container::Wrapped(document) => (document, None),
        };
        let message = tree.message_of(place);
        let held = related.and_then(|related| {
            let mut known = names.of_ours((message, related), digits);
            let octets = picture.content.bytes();
            known.find(|&(part, _)| {
                tree.part(part).essence == picture.kind.essence && holds(tree, policy, part, octets)
            })
        });
        let known = match held {
            Some((_, content_id)) => (content_id.to_owned(), true),
            None => (names.new_id(message, digits), false),
        };
        picture.content_ids.insert(container, known.clone());
        known
    }
}

pub(super) struct NewPicture {
    pub(super) content_id: String,
    /// Index in [`Pictures`] of the picture or style sheet from which the Content-ID of the part is derived.
    pub(super) picture: usize,
    /// Index in [`Pictures`] of the content that is written into the part. `shown` differs from `picture` only if the
    /// content is a style sheet whose URLs were rewritten.
    pub(super) shown: usize,
    pub(super) header: Vec<u8>,
    /// Length of the body in base64, in bytes.
    pub(super) body: usize,
}

impl NewPicture {
    pub(super) fn len(&self) -> usize {
        self.header.len() + self.body
    }

    pub(super) fn append_to(&self, bytes: &mut Vec<u8>, pictures: &Pictures<'_>, newline: Newline) {
        bytes.extend_from_slice(&self.header);
        append_base64(pictures.octets(self.shown), newline, bytes);
    }
}

/// Returns true if the body of `part` consists of `octets`, and every mail client decodes it in the same way.
fn holds(tree: &MessageTree<'_>, policy: &Policy, part: PartId, octets: &[u8]) -> bool {
    let entity = tree.part(part);
    protection(tree, part, policy).is_none()
        && references::read(tree, part, &policy.reading()).is_none()
        && entity
            .encoding
            .decode(entity.body.of(tree.original))
            .is_some_and(|held| *held == *octets)
}
