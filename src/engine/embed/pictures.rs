//! Stores each embedded content once, with the new part that contains it and the multipart to which this part is added.

use std::borrow::Cow;
use std::collections::HashMap;

use super::names::{DIGITS, Names};
use crate::engine::Content;
use crate::engine::external_body::ExternalBody;
use crate::engine::obtained::not_decoded;
use crate::engine::plan::documents::RELATED;
use crate::engine::plan::protection;
use crate::engine::policy::{Policy, Trackers};
use crate::engine::report::{Reason, Refusal};
use crate::engine::source_field;
use crate::engine::wrapped;
use crate::link::data::DataUrl;
use crate::link::label as link_label;
use crate::link::svg::is_harmless_svg;
use crate::link::value::Role;
use crate::mime::charset::Charset;
use crate::mime::entity::{folded_url, push_field, sha256};
use crate::mime::picture::{self, FileType};
use crate::mime::transfer::{append_base64, base64_length, with_newlines};
use crate::mime::{PartId, PartKind, TransferEncoding, Tree};
use crate::span::Newline;

pub(crate) const BLANK_PICTURE: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";

pub(super) const SVG: &str = "image/svg+xml";

const LABEL: usize = 40;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Container {
    /// The document is in an existing multipart/related. New parts are inserted before its last boundary line, which begins at
    /// `end`.
    Extended {
        related: PartId,
        end: usize,
    },
    Wrapped(PartId),
}

impl Container {
    /// Finds the multipart/related that new parts of `document` are added to. The search ends at the nearest alternative or
    /// message that contains the document: parts outside of it would not belong to the document.
    pub(super) fn of(tree: &Tree<'_>, document: PartId) -> Result<Self, Refusal> {
        let refuse = |reason, detail: &str| Err(Refusal::lasting(reason, detail));
        for above in tree.ancestors(document) {
            let entity = tree.part(above);
            let PartKind::Multipart(multipart) = &entity.content else {
                break;
            };
            if entity.essence == RELATED {
                let Some(close) = multipart.close else {
                    let detail = "the boundary line that ends the multipart/related of the document is missing";
                    return refuse(Reason::IncompleteBody, detail);
                };
                return Ok(Self::Extended {
                    related: above,
                    end: wrapped::before_close(tree.original, close),
                });
            }
            if entity.essence == "multipart/alternative" {
                break;
            }
        }
        let entity = tree.part(document);
        if !entity.essence.ends_with("html") && !entity.essence.ends_with("xhtml+xml") {
            return refuse(
                Reason::NoBase,
                "the style sheet is not inside a multipart/related, where its pictures could be inserted",
            );
        }
        if entity.separator.is_empty() || tree.is_cut_off(document) {
            return refuse(
                Reason::IncompleteBody,
                "the header or the end of the document is missing",
            );
        }
        Ok(Self::Wrapped(document))
    }
}

pub(super) fn source(
    answer: &Content,
    (url, source): (&str, &str),
    policy: &Policy,
) -> (String, Vec<u8>) {
    // If `--map` rewrote the URL, the message gets the original URL. The rewritten URL belongs to the configuration of this
    // computer.
    let last = if answer.is_direct(policy, url) {
        source
    } else {
        &answer.origin.url
    };
    let field = policy
        .provenance
        .then(|| source_field::of(answer, source, last))
        .flatten();
    (source.to_owned(), field.unwrap_or_default())
}

pub(super) struct Picture {
    pub(super) content: Content,
    pub(super) kind: FileType,
    charset: Option<String>,
    source: Option<(String, Vec<u8>)>,
    hash: String,
    /// The hash from which Content-IDs are made. Usually this is the hash of the bytes. If a charset was declared, it is part
    /// of the hash, because the same bytes can have different meanings in two charsets.
    identity: String,
    /// The Content-ID in each container, as soon as it is computed. The boolean is true if the container already has a part
    /// with this id and these bytes.
    content_ids: HashMap<Container, (String, bool)>,
}

pub(super) struct Pictures<'p> {
    pub(super) tree: &'p Tree<'p>,
    pub(super) policy: &'p Policy,
    pictures: Vec<Picture>,
    known: HashMap<(String, &'static str, Option<String>), usize>,
    blank: Option<usize>,
    names: Option<Names>,
}

impl<'p> Pictures<'p> {
    pub(super) fn new(tree: &'p Tree<'p>, policy: &'p Policy) -> Self {
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

    pub(super) fn of_data(&mut self, url: &str, role: Role) -> Result<usize, Refusal> {
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
        urls: (&str, &str),
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
        let named = (declared.as_deref().unwrap_or_default(), label);
        let charset = charset(&kind, octets.bytes(), named)?;
        let source = source(answer, urls, policy);
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
        let hash = content.sha256().to_owned();
        let number = self.pictures.len();
        let key = (hash.clone(), kind.essence, charset.clone());
        let known = *self.known.entry(key).or_insert(number);
        if known != number {
            return known;
        }
        let identity = match &charset {
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
    pub(super) fn new_part(&mut self, container: Container, picture: usize, shown: usize) -> New {
        let newline = self.tree.newline;
        let (content_id, _) = self.identity(container, picture);
        New {
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
        let names = self.names.get_or_insert_with(|| Names::of(tree));
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

/// Percent-encodes the blanks in the data of a `data:` URL, because browsers treat them as data. [`DataUrl`] removes unencoded
/// blanks, because it also reads URLs from folded header parameters.
fn spaces_kept(url: &str) -> Cow<'_, str> {
    let trimmed = url.trim_matches(|symbol: char| symbol <= ' ');
    match trimmed.split_once(',') {
        Some((front, data)) if memchr::memchr(b' ', data.as_bytes()).is_some() => {
            Cow::Owned(format!("{front},{}", data.replace(' ', "%20")))
        }
        _ => Cow::Borrowed(url),
    }
}

pub(super) struct New {
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

impl New {
    pub(super) fn len(&self) -> usize {
        self.header.len() + self.body
    }

    pub(super) fn append_to(&self, bytes: &mut Vec<u8>, pictures: &Pictures<'_>, newline: Newline) {
        bytes.extend_from_slice(&self.header);
        append_base64(pictures.octets(self.shown), newline, bytes);
    }
}

pub(super) fn decoded(
    url: &str,
    policy: &Policy,
) -> Result<(Vec<u8>, String, Option<String>), Refusal> {
    let url = spaces_kept(url);
    let parsed = DataUrl::parse(url.as_bytes()).map_err(not_decoded)?;
    let media_type = parsed.media_type();
    let octets = parsed.decode(policy.limits.body).map_err(not_decoded)?;
    let label = label(media_type.parameter("charset"));
    Ok((octets, media_type.essence, label))
}

/// Returns true if the body of `part` consists of `octets`, and every mail client decodes it in the same way.
fn holds(tree: &Tree<'_>, policy: &Policy, part: PartId, octets: &[u8]) -> bool {
    let entity = tree.part(part);
    protection(tree, part, policy).is_none()
        && ExternalBody::read(tree, part, &policy.reading()).is_none()
        && entity
            .encoding
            .decode(entity.body.of(tree.original))
            .is_some_and(|held| *held == *octets)
}

/// Returns the charset that the source declared for an SVG, or `None` if the SVG needs no declaration. A charset that is not a
/// superset of ASCII is refused: its bytes can be other markup than the markup that was checked, and could be harmful.
fn charset(
    kind: &FileType,
    octets: &[u8],
    (declared, label): (&str, Option<String>),
) -> Result<Option<String>, Refusal> {
    let Some(label) = label.filter(|_| kind.essence == SVG && declared == SVG) else {
        return Ok(None);
    };
    let is_utf_8 = label.eq_ignore_ascii_case("utf-8") || label.eq_ignore_ascii_case("utf8");
    match Charset::of_label(label.as_bytes()) {
        // XML without an encoding declaration is UTF-8 by default, so the charset parameter is not needed.
        _ if is_utf_8 && link_label::in_xml_declaration(octets).is_none() => Ok(None),
        None => Ok(None),
        Some(Charset::Superset) => Ok(Some(label)),
        Some(_) => {
            let detail =
                format!("the SVG has the charset {label}, which is not a superset of ASCII");
            Err(Refusal::lasting(Reason::CharsetNotSupported, detail))
        }
    }
}

pub(super) fn label(named: Option<&str>) -> Option<String> {
    let named = named?.trim();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+".contains(&byte);
    let is_label = !named.is_empty() && named.len() <= LABEL && named.bytes().all(is_name);
    is_label.then(|| named.to_owned())
}

/// Returns the refusal for a URL that shows only a part of an SVG. Browsers do not find a `cid:` URL with a fragment, and
/// without the fragment they would show another picture.
pub(super) fn part_of_svg() -> Refusal {
    let detail = "the URL selects a part of an SVG by its fragment (#...), and browsers do not support cid: URLs with a fragment";
    Refusal::lasting(Reason::NotAnImage, detail)
}

fn admitted(
    octets: &[u8],
    declared: Option<&str>,
    role: Option<Role>,
    policy: &Policy,
) -> Result<FileType, Refusal> {
    policy.judge_size(octets.len() as u64)?;
    let is_wanted = |wanted: Role| role.is_none_or(|role| role == wanted);
    let fonts = policy.embed.fonts && is_wanted(Role::Font);
    let media = policy.embed.media && is_wanted(Role::Media);
    let found = picture::sniff(octets)
        .or_else(|| picture::sniff_font(octets).filter(|_| fonts))
        .or_else(|| picture::sniff_media(octets).filter(|_| media));
    let Some(kind) = found else {
        return Err(match declared {
            Some(declared) if declared.starts_with("image/") => {
                let detail = format!(
                    "the content is declared as {declared}, but the bytes are of a different type"
                );
                Refusal::lasting(Reason::TypeMismatch, detail)
            }
            _ => {
                let detail = "the content is not a picture in a known format";
                Refusal::lasting(Reason::NotAnImage, detail)
            }
        });
    };
    if kind.essence == SVG && !is_harmless_svg(octets) {
        let detail = "the SVG contains scripts, event handlers or references to other files";
        return Err(Refusal::lasting(Reason::NotAnImage, detail));
    }
    policy.judge_type(kind.essence)?;
    Ok(kind)
}
