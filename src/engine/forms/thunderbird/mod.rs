//! Attachments that Thunderbird and related programs store outside of the mail. No document describes these forms, so the
//! following is what the programs write.
//! * *Detached*: `X-Mozilla-External-Attachment-URL` and `X-Mozilla-Altered: AttachmentDetached` in the header of the part.
//!   The body contains [`SENTENCE`] and the original header of the part. In older mail, the Content-Type of the part is
//!   `text/plain`. In newer mail it is the type of the attachment.
//! * If the attachment had no Content-Type, Thunderbird writes an empty line instead, and Betterbird writes an empty line
//!   elsewhere. For every reader, the header ends there. The lines after it are read as header fields only before
//!   [`SENTENCE`], and in the quoted header.
//! * *Enclosure*, from the feed reader: the URL field in a part with its own Content-Type. The body is a translated note.
//! * *Cloud file*: `X-Mozilla-Cloud-Part: cloudFile; url=...`, unquoted. The body is empty, or a page about the file.
//! * *Deleted*: `X-Mozilla-Altered: AttachmentDeleted`, or the type `text/x-moz-deleted`.
//!
//! If the body contains more than a note, the reference is not followed, because the body would be lost.

use std::borrow::Cow;

use crate::engine::external_body::note::NOTE_FIELD;
use crate::engine::external_body::reference::Facts;
use crate::engine::external_body::reference::{
    ReferenceReader, cut_off, deleted, encoded, missing_url, own_content, size_of, undecodable_name,
};
use crate::engine::external_body::url::read_url;
use crate::engine::external_body::{ExternalBody, ReferenceShape, Referent};
use crate::engine::forms::reference_form::{Needles, ReferenceForm};
use crate::engine::policy::Follow;
use crate::engine::report::{Kind, Refusal};
use crate::engine::search_words::{PrefilterWord, word};
use crate::mime::encoded_words::decoded_name;
use crate::mime::header::{self, SectionEnd};
use crate::mime::{Field, Fields, Header, MediaType, PartKind, TransferEncoding};
use crate::span::{Span, SpanLines, front, until};

pub(crate) const URL_FIELD: &str = "X-Mozilla-External-Attachment-URL";
pub(crate) const ALTERED_FIELD: &str = "X-Mozilla-Altered";
const CLOUD_FIELD: &str = "X-Mozilla-Cloud-Part";
const REFERENCE_FIELDS: [&str; 3] = [URL_FIELD, ALTERED_FIELD, CLOUD_FIELD];
const DELETED_ESSENCE: &str = "text/x-moz-deleted";

/// First line of the body of a detached part. Thunderbird does not translate it.
pub(crate) const SENTENCE: &[u8] = b"You deleted an attachment from this message. The original MIME headers for the attachment were:";

/// Maximum length of a note in bytes. The longest known note has about a hundred bytes.
const LONGEST_NOTE: usize = 2 << 10;

/// Fields that `embody detach` writes into the header of a part in Thunderbird's form. The original header is quoted in the
/// body, so `embody restore` replaces these fields by the original ones.
const WRITTEN_FIELDS: [&str; 5] = [
    "Content-Type",
    "Content-Disposition",
    URL_FIELD,
    ALTERED_FIELD,
    NOTE_FIELD,
];

/// Facts about attachments that Thunderbird detached into a file. A file with the name of the attachment may be in a directory
/// of `--attachments`.
static DETACHED: Facts = Facts {
    attachment_components: Some(1),
    may_be_in_copies: true,
    quotes_header: true,
    wrote_disposition: true,
    detach_fields: Some(&WRITTEN_FIELDS),
    ..of_thunderbird(ReferenceShape::Detached)
};

/// Facts about enclosures of news feeds, whose content is at a URL.
static ENCLOSURE: Facts = of_thunderbird(ReferenceShape::Enclosure);

const fn of_thunderbird(shape: ReferenceShape) -> Facts {
    Facts::of_whole_part(shape, Kind::Detached, Some(Follow::Thunderbird))
}

/// Facts about files that Thunderbird uploaded to cloud storage. The mail contains a page about the file, whose name is the
/// name of the file followed by `.html`.
static CLOUD_FILE: Facts = Facts {
    suffix: Some(".html"),
    has_web_page: true,
    ..of_thunderbird(ReferenceShape::CloudFile)
};

/// Returns true for fields that make a part a reference. They are removed when the content is inserted.
fn is_reference_field(original: &[u8], field: &Field) -> bool {
    REFERENCE_FIELDS.iter().any(|name| field.is(original, name))
}

/// Attachments that Thunderbird stored outside of the mail.
pub(crate) struct Thunderbird;

impl ReferenceForm for Thunderbird {
    fn needles(&self) -> Needles {
        // Words in the header that Thunderbird gives to a part whose content is stored elsewhere. The last one is in the media
        // type of an attachment that the user deleted.
        static WORDS: [PrefilterWord; 4] = [
            word("x-mozilla-external-attachment-url", 1),
            word("x-mozilla-altered", 1),
            word("x-mozilla-cloud-part", 1),
            word("x-moz-deleted", 1),
        ];
        Needles::Words(&WORDS)
    }

    fn of_part<'a>(&self, reader: &ReferenceReader<'a, '_>) -> Option<ExternalBody<'a>> {
        reader.thunderbird()
    }

    fn reference_fields(&self) -> &'static [&'static str] {
        &REFERENCE_FIELDS
    }
}

impl<'a> ReferenceReader<'a, '_> {
    fn thunderbird(&self) -> Option<ExternalBody<'a>> {
        let own = self.tree.fields(self.part);
        let mut fields = own.iter(self.tree.original);
        let is_named = fields.any(|field| is_reference_field(self.tree.original, &field));
        let is_deleted = self.tree.part(self.part).essence == DELETED_ESSENCE;
        let body = self.tree.part(self.part).body.of(self.tree.original);
        let start = front(body, 16);
        if !is_named && !is_deleted && !is_of_part(start.trim_ascii_start()) {
            return None;
        }
        let quotation = self.quotation();
        let strays = quotation.as_ref().map(|(strays, ..)| strays);
        let field = |name| {
            let find = |fields: &Fields| fields.first(self.tree.original, name);
            find(own).or_else(|| strays.and_then(find))
        };
        let altered =
            field(ALTERED_FIELD).map(|field| first_word(field.value.of(self.tree.original)));
        let is = |word: &str| {
            altered.is_some_and(|altered| altered.eq_ignore_ascii_case(word.as_bytes()))
        };
        if is("AttachmentDeleted") || is_deleted {
            return Some(match quotation {
                // The user deleted the attachment, and only its original header is left. The part still counts as a
                // reference: if another copy of the mail has the attachment, the content gets this header again.
                Some((_, quoted, true)) if self.tree.part(self.part).children.is_empty() => {
                    let target = Err(deleted());
                    ExternalBody::with(self.tree, self.part, &DETACHED, target, quoted)
                }
                _ => self.unusable(deleted()),
            });
        }
        // The fields of a detached part are at the start of the body instead of in the header (`strays`). A text or a message
        // that quotes a detached part begins in the same way. So the part is a reference only if the fields say that it was
        // detached, and if it is not a message.
        if strays.is_some_and(|strays| !strays.is_empty())
            && (self.tree.is_message(self.part) || !is("AttachmentDetached"))
        {
            return None;
        }
        let unless_cut_off = |field: &Field, target| {
            if self.tree.ends_in(field) {
                Err(cut_off("URL"))
            } else {
                target
            }
        };
        if let Some(url) = field(URL_FIELD) {
            let target = unless_cut_off(&url, url_of_field(url.value.of(self.tree.original)));
            return Some(match quotation {
                Some((_, quoted, is_all)) => self.detached(target, quoted, is_all),
                None => self.beside_a_note(&ENCLOSURE, target),
            });
        }
        if is("AttachmentDetached") {
            return Some(self.unusable(missing_url()));
        }
        // The field `X-Mozilla-Cloud-Part` begins with `cloudFile` if the file was uploaded. It begins with another
        // word in a draft whose file is not uploaded yet; such a part is not a reference.
        let cloud_field = field(CLOUD_FIELD)?;
        let cloud = cloud_field.value.of(self.tree.original);
        if !first_word(cloud).eq_ignore_ascii_case(b"cloudFile") {
            return None;
        }
        let (target, name) = cloud_part(cloud);
        let target = unless_cut_off(&cloud_field, target);
        let mut body = self.beside_a_note(&CLOUD_FILE, target);
        body.file_name = name;
        Some(body)
    }

    fn detached(
        &self,
        target: Result<Referent<'a>, Refusal>,
        quoted: Header,
        is_all: bool,
    ) -> ExternalBody<'a> {
        let entity = self.tree.part(self.part);
        let target = match &entity.content {
            _ if !is_all => Err(own_content(
                "the body contains more than the header of the detached attachment",
            )),
            PartKind::Multipart(_) if !entity.children.is_empty() => {
                Err(own_content("the part contains other parts"))
            }
            // A body in quoted-printable may have escape sequences in the quoted header, so it is refused. A body in base64
            // never gets here: it cannot contain the sentence, which has blanks.
            _ if entity.encoding == TransferEncoding::QuotedPrintable => Err(encoded()),
            _ => target,
        };
        let mut body = ExternalBody::with(self.tree, self.part, &DETACHED, target, quoted);
        if body.declared.is_none() {
            // If the quoted header has no type, the type of the part is used, or the default type (RFC 2045 §5.2).
            let own = self.tree.value(self.part, "Content-Type");
            body.declared = Some(MediaType::parse(own.unwrap_or_default()));
        }
        body
    }

    /// Reads a part whose header describes the external content, and whose body is only a note about it. The content
    /// will replace this note.
    fn beside_a_note(
        &self,
        facts: &'static Facts,
        target: Result<Referent<'a>, Refusal>,
    ) -> ExternalBody<'a> {
        let entity = self.tree.part(self.part);
        let is_page = facts.shape == ReferenceShape::CloudFile
            && entity.essence == "text/html"
            && self.tree.has_disposition(self.part, "attachment");
        let fits = entity.body.len() <= LONGEST_NOTE && !entity.encoding.is_encoded();
        let target = if self.tree.is_message(self.part) {
            Err(own_content("the part is a whole message"))
        } else if entity.content != PartKind::Leaf {
            Err(own_content("the part contains other parts or a message"))
        } else if !fits && !is_page && !entity.body.of(self.tree.original).trim_ascii().is_empty() {
            Err(own_content(
                "the body contains more than a note about the detached attachment",
            ))
        } else {
            target
        };
        // The body is a web page about the file, and the header describes this page. So the header says nothing about
        // the type of the file.
        let phantom = if is_page {
            Header::none_at(entity.body.start)
        } else {
            self.own_type()
        };
        let mut body = ExternalBody::with(self.tree, self.part, facts, target, phantom);
        body.size = body.declared.as_ref().and_then(size_of);
        body
    }

    fn unusable(&self, why: Refusal) -> ExternalBody<'a> {
        let header = self.own_type();
        ExternalBody::with(self.tree, self.part, &DETACHED, Err(why), header)
    }

    fn own_type(&self) -> Header {
        let own = self.tree.fields(self.part);
        let field = own.first(self.tree.original, "Content-Type");
        let none = || Fields::none_at(self.tree.part(self.part).body.start);
        let fields = field.as_ref().map_or_else(none, Fields::one);
        self.phantom(fields, SectionEnd::Regular)
    }

    pub(in crate::engine) fn phantom(&self, fields: Fields, end: SectionEnd) -> Header {
        let at = self.tree.part(self.part).body.start;
        let start = fields.wholes().next().map_or(at, |whole| whole.start);
        let last = fields.last(self.tree.original);
        let until = last.map_or(at, |field| field.whole.end);
        Header {
            span: Span::new(start, until),
            agreed_end: until,
            separator: Span::empty_at(until),
            fields,
            end,
            ..Header::none_at(start)
        }
    }

    /// Finds the original header that Thunderbird quotes in the body. Returns the fields before [`SENTENCE`] (an empty line
    /// separated them from the header of the part), the quoted header after it, and true if the body contains nothing else.
    fn quotation(&self) -> Option<(Fields, Header, bool)> {
        const STRAY_BLOCKS: usize = 2;
        let body = self.tree.part(self.part).body;
        let mut at = body.start;
        let mut strays = Fields::none_at(body.start);
        for _ in 0..=STRAY_BLOCKS {
            at = self.behind_empty_lines(at, body.end);
            let line = SpanLines::new(self.tree.original, Span::new(at, body.end)).next()?;
            if line.content.of(self.tree.original).trim_ascii_end() == SENTENCE {
                let (quoted, is_all) = self.quoted_header(line.whole.end, body.end);
                return Some((strays, quoted, is_all));
            }
            let block = self.block(at, body.end)?;
            strays.append(&block.fields);
            at = block.separator.end;
        }
        None
    }

    fn block(&self, at: usize, end: usize) -> Option<Header> {
        let known = |field: Field| is_of_part(field.name.of(self.tree.original));
        let block = self.header(at, end);
        let is_closed = block.end == SectionEnd::Regular && !block.separator.is_empty();
        (is_closed && !block.fields.is_empty() && block.fields.iter(self.tree.original).all(known))
            .then_some(block)
    }

    fn quoted_header(&self, from: usize, end: usize) -> (Header, bool) {
        let mut at = self.behind_empty_lines(from, end);
        let mut fields = Fields::none_at(at);
        let mut last = SectionEnd::Regular;
        while at < end {
            let block = self.header(at, end);
            last = block.end;
            // A field without a name is a continuation line after an empty line. It continues no field, so the quoted header
            // ends before it.
            let is_named = |field: Field| !field.name.is_empty();
            let is_whole = block.fields.iter(self.tree.original).all(is_named);
            if block.end != SectionEnd::Regular || !is_whole {
                break;
            }
            if !fields.append(&block.fields) {
                last = SectionEnd::TooLarge;
                break;
            }
            at = self.behind_empty_lines(block.separator.end, end);
        }
        (self.phantom(fields, last), at >= end)
    }

    fn header(&self, at: usize, end: usize) -> Header {
        let within = Span::new(at, end);
        Header::read(self.tree.original, within, self.reading.header_limit)
    }

    fn behind_empty_lines(&self, at: usize, end: usize) -> usize {
        SpanLines::new(self.tree.original, Span::new(at, end))
            .find(|line| !line.content.of(self.tree.original).trim_ascii().is_empty())
            .map_or(end, |line| line.whole.start)
    }
}

/// Returns true for names of fields that Thunderbird writes into the header of a part.
fn is_of_part(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with(b"content-") || name.starts_with(b"x-mozilla-")
}

/// Returns the text before the first `;`: `AttachmentDetached` of `AttachmentDetached; date="..."`.
fn first_word(value: &[u8]) -> &[u8] {
    until(b';', value).trim_ascii()
}

/// Reads the URL in a header field. Blanks become `%20`, because some programs do not escape blanks in file names. A line
/// ending and the blanks after it are a fold, and are removed.
fn url_of_field(value: &[u8]) -> Result<Referent<'_>, Refusal> {
    let value = value.trim_ascii();
    if !value.iter().any(u8::is_ascii_whitespace) {
        return read_url(Cow::Borrowed(value));
    }
    let mut url = Vec::with_capacity(value.len());
    for line in SpanLines::new(value, Span::new(0, value.len())) {
        for &byte in line.content.of(value).trim_ascii() {
            match byte {
                b' ' => url.extend_from_slice(b"%20"),
                byte => url.push(byte),
            }
        }
    }
    read_url(Cow::Owned(url))
}

/// Splits the value `cloudFile; url=URL; provider=...` into the URL and the parameters after it. The URL is not quoted and can
/// contain `;`, so it ends where a known parameter begins. Thunderbird writes a blank before each parameter, other programs
/// write none. So if `url` follows a blank, a parameter must follow a blank too, and otherwise it must not.
fn split_cloud_part(value: &[u8]) -> Option<(&[u8], &[u8])> {
    const BEHIND: [&[u8]; 6] = [b"provider", b"file", b"name", b"data", b"size", b"mime"];
    const LONGEST: usize = BEHIND[0].len();
    let rest = memchr::memchr(b';', value).and_then(|at| value.get(at + 1..))?;
    let is_spaced = rest.first().is_some_and(u8::is_ascii_whitespace);
    let (name, url) = rest.trim_ascii_start().split_at_checked(4)?;
    if !name.eq_ignore_ascii_case(b"url=") {
        return None;
    }
    if let Some(quoted) = url.strip_prefix(b"\"") {
        let end = memchr::memchr(b'"', quoted).unwrap_or(quoted.len());
        return quoted.split_at_checked(end);
    }
    let begins_parameter = |at: &usize| {
        let behind = &url[at + 1..];
        let named = behind.trim_ascii_start();
        // Searches no further than the longest parameter name: a hostile value can contain a million semicolons and no
        // `=`, which would make the search quadratic.
        let end = memchr::memchr2(b'=', b'*', front(named, LONGEST + 1));
        let name = &named[..end.unwrap_or(0)];
        (named.len() < behind.len()) == is_spaced
            && BEHIND.iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    let end = memchr::memchr_iter(b';', url)
        .find(begins_parameter)
        .unwrap_or(url.len());
    let (url, behind) = url.split_at_checked(end)?;
    let url = url.trim_ascii_end();
    let bare = url.strip_suffix(b";").filter(|_| !is_spaced);
    Some((bare.unwrap_or(url), behind))
}

fn cloud_part(value: &[u8]) -> (Result<Referent<'_>, Refusal>, Option<String>) {
    let Some((url, behind)) = split_cloud_part(value) else {
        return (Err(missing_url()), None);
    };
    match name_behind(behind) {
        Ok(name) => (url_of_field(url), name),
        Err(refusal) => (Err(refusal), None),
    }
}

/// Returns the file name in the parameter `name`. Up to version 91, Thunderbird wrote the name only into this parameter,
/// without quotation marks and as the last one. Returns `Ok(None)` if there is no name, and an error if it cannot be decoded.
fn name_behind(behind: &[u8]) -> Result<Option<String>, Refusal> {
    const NAME: &[u8] = b"name=";
    let value = memchr::memchr_iter(b';', behind).find_map(|at| {
        let named = behind.get(at + 1..)?.trim_ascii_start();
        let (name, value) = named.split_at_checked(NAME.len())?;
        name.eq_ignore_ascii_case(NAME).then_some(value)
    });
    let Some(value) = value else { return Ok(None) };
    let decoded = decoded_name(&header::unfold(value)).ok_or_else(|| undecodable_name(None))?;
    let is_of_name = |symbol: &char| !symbol.is_control() && *symbol != '"';
    let unquoted: String = decoded.chars().filter(is_of_name).collect();
    let name = unquoted.trim();
    Ok((!name.is_empty()).then(|| name.to_owned()))
}

#[cfg(test)]
mod tests;
