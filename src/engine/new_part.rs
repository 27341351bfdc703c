//! New parts whose content does not replace a part: they replace a note in a text, or become attachments.

use std::collections::HashMap;

use crate::engine::CopiedPart;
use crate::engine::content_source::{ContentSource, OCTETS};
use crate::engine::policy::Policy;
use crate::engine::report::Refusal;
use crate::mime::entity::{folded_url, push_field};
use crate::mime::media_type::{self, is_ascii_compatible, is_composite};
use crate::mime::transfer::{TransferEncoder, encode_base64, encode_text, with_newlines};
use crate::mime::{PartId, TransferEncoding};
use crate::span::{Newline, Span};

pub(in crate::engine) struct StoredContent {
    pub(in crate::engine) obtained: ContentSource,
    /// File name. A part with a name becomes an attachment. A part without a name becomes text of the mail.
    pub(in crate::engine) name: Option<String>,
    pub(in crate::engine) description: Option<String>,
    pub(in crate::engine) link: Option<String>,
    pub(in crate::engine) content_id: Option<String>,
    pub(in crate::engine) is_inline: bool,
    /// Header fields of the part in another copy of the mail, if the content was taken from there.
    pub(in crate::engine) fields: Option<Vec<u8>>,
}

pub(in crate::engine) struct PartText {
    pub(in crate::engine) part: PartId,
    /// Decoded text, to which the positions of the notes refer. `None` for unencoded text: positions then refer to the
    /// message.
    pub(in crate::engine) decoded: Option<Vec<u8>>,
    pub(in crate::engine) notes: Vec<Span>,
    pub(in crate::engine) boundary: Vec<u8>,
    /// True if a new multipart replaces the text. False if the text is already in a multipart/mixed, which gets the new
    /// parts.
    pub(in crate::engine) is_nested: bool,
    pub(in crate::engine) behind: HashMap<usize, Span>,
    pub(in crate::engine) is_whole: bool,
    /// Bytes that boundaries and fields of the new parts add. Counted once for each text, with its first note.
    pub(in crate::engine) overhead: i64,
}

/// Returns the bytes to which positions in a text refer, and the span of the text in them: the decoded text, or
/// otherwise the message.
pub(in crate::engine) fn place_of<'t>(
    decoded: Option<&'t Vec<u8>>,
    (entity, body): (&'t [u8], Span),
) -> (&'t [u8], Span) {
    let whole = |decoded: &'t Vec<u8>| (decoded.as_slice(), Span::new(0, decoded.len()));
    decoded.map_or((entity, body), whole)
}

pub(in crate::engine) struct NewPart {
    pub(in crate::engine) fields: Vec<u8>,
    pub(in crate::engine) body: Vec<u8>,
    pub(in crate::engine) is_base64: bool,
    pub(in crate::engine) number: usize,
    pub(in crate::engine) growth: i64,
}

impl NewPart {
    pub(in crate::engine) fn len(&self) -> usize {
        self.fields.len() + self.body.len()
    }

    pub(in crate::engine) fn append_to(&self, bytes: &mut Vec<u8>, newline: &[u8]) {
        for piece in [&self.fields, newline, &self.body] {
            bytes.extend_from_slice(piece);
        }
    }
}

impl StoredContent {
    pub(in crate::engine) fn nameless(obtained: ContentSource) -> Self {
        Self {
            obtained,
            name: None,
            description: None,
            link: None,
            content_id: None,
            is_inline: false,
            fields: None,
        }
    }

    /// Creates the new part from a part of another copy of the mail, with the header fields of that part. Its content
    /// is already the original attachment, so it is not converted.
    pub(in crate::engine) fn of_copy(
        copy: &CopiedPart,
        mut obtained: ContentSource,
        policy: &Policy,
    ) -> Result<Self, Refusal> {
        policy.judge_type(&obtained.essence)?;
        let mut fields = Some(copy.fields.clone());
        if is_composite(&obtained.essence) && obtained.essence != "message/rfc822" {
            obtained.notes.push(AS_A_FILE.to_owned());
            obtained.essence = OCTETS.to_owned();
            fields = None;
        }
        Ok(Self {
            fields,
            ..Self::nameless(obtained)
        })
    }

    /// Creates a new attachment. `link` is the link in the mail by which the content was found.
    pub(in crate::engine) fn attachment(
        name: Option<String>,
        link: Option<String>,
        mut obtained: ContentSource,
    ) -> Self {
        if is_composite(&obtained.essence) {
            obtained.notes.push(AS_A_FILE.to_owned());
            obtained.essence = OCTETS.to_owned();
        }
        Self {
            name,
            link,
            ..Self::nameless(obtained)
        }
    }

    /// Encodes the content. Text stays readable unless its bytes must be `exact` or it contains CRs.
    pub(in crate::engine) fn encode(
        &self,
        exact: bool,
        newline: Newline,
        boundaries: &[&[u8]],
    ) -> TransferEncoder {
        let octets = self.obtained.content.bytes();
        let mut parameters = self.obtained.parameters.iter();
        let charset = parameters.find(|(name, _)| name == "charset");
        let is_readable = charset.is_none_or(|(_, charset)| is_ascii_compatible(charset));
        let is_text = self.obtained.essence.starts_with("text/") && is_readable;
        if is_text && !exact && memchr::memchr(b'\r', octets).is_none() {
            encode_text(octets.to_vec(), newline, boundaries)
        } else {
            encode_base64(octets, newline)
        }
    }

    pub(in crate::engine) fn written(&self, encoded: TransferEncoder, newline: Newline) -> NewPart {
        let essence = &self.obtained.essence;
        // For a linked file, the charset of the response is declared. Mailing list servers only guess the charset, so
        // theirs is ignored.
        let charset = self
            .obtained
            .parameters
            .iter()
            .find(|(name, _)| self.link.is_some() && name == "charset")
            .map(|(_, charset)| &**charset)
            .or_else(|| charset_of(self.obtained.content.bytes()))
            .filter(|_| essence.starts_with("text/"))
            .map(|charset| ("charset".to_owned(), charset.to_owned()));
        let mut fields = match &self.fields {
            Some(fields) => fields.clone(),
            None => media_type::write(essence, charset.as_slice()),
        };
        if encoded.encoding != TransferEncoding::SevenBit {
            let encoding = encoded.encoding.as_str();
            let name = "Content-Transfer-Encoding";
            push_field(&mut fields, name, encoding, Newline::CrLf);
        }
        if self.name.is_some() || self.link.is_some() {
            fields.extend_from_slice(if self.is_inline {
                b"Content-Disposition: inline".as_slice()
            } else {
                b"Content-Disposition: attachment"
            });
            let name = self.name.clone().map(|name| ("filename".to_owned(), name));
            fields.extend_from_slice(&media_type::write_more(name.as_slice()));
            fields.extend_from_slice(b"\r\n");
        }
        if let Some(description) = &self.description {
            fields.extend_from_slice(&media_type::write_text("Content-Description", description));
        }
        if let Some(id) = &self.content_id {
            push_field(&mut fields, "Content-ID", &format!("<{id}>"), Newline::CrLf);
        }
        if let Some(link) = &self.link {
            fields.extend_from_slice(&folded_url("Content-Location", link, Newline::CrLf));
        }
        fields.extend_from_slice(self.obtained.source_field.as_deref().unwrap_or_default());
        NewPart {
            fields: with_newlines(fields, newline),
            is_base64: encoded.encoding == TransferEncoding::Base64,
            body: encoded.body,
            number: 0,
            growth: 0,
        }
    }
}

pub(in crate::engine) const AS_A_FILE: &str = "the mail declares a multipart or a message, which content from a URL cannot replace; the content was inserted as a plain file";
/// Returns the charset to declare for text whose charset is unknown (RFC 1428), or `None` for ASCII.
pub(in crate::engine) fn charset_of(text: &[u8]) -> Option<&'static str> {
    match std::str::from_utf8(text) {
        _ if text.is_ascii() => None,
        Ok(_) => Some("utf-8"),
        Err(_) => Some("unknown-8bit"),
    }
}
