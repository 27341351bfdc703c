//! Attachments that Mailman removed and stored on its server: restores the content from what Mailman stored, and creates the
//! new part.

use std::borrow::Cow;
use std::collections::HashMap;

use super::obtained::{OCTETS, Obtained};
use crate::engine::CopiedPart;
use crate::engine::external_body::{ExternalBody, Scrap, Scrubbed, unescaped};
use crate::engine::policy::Policy;
use crate::engine::report::{Reason, Refusal};
use crate::mime::entity::{folded_url, push_field};
use crate::mime::media_type::{self, is_composite};
use crate::mime::media_type::{is_ascii_compatible, is_page};
use crate::mime::transfer::{Encoded, encode_base64, encode_text, with_newlines};
use crate::mime::{PartId, TransferEncoding};
use crate::span::{Newline, Span};

pub(super) struct Stored {
    pub(super) obtained: Obtained,
    /// File name. A part with a name becomes an attachment. A part without a name becomes text of the mail.
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) link: Option<String>,
    pub(super) content_id: Option<String>,
    pub(super) is_inline: bool,
    /// Header fields of the part in another copy of the mail, if the content was taken from there.
    pub(super) fields: Option<Vec<u8>>,
}

pub(super) struct Text {
    pub(super) part: PartId,
    /// The decoded text. The positions of Mailman's notes refer to it. `None` if the text is not encoded, so that the positions
    /// refer to the message.
    pub(super) decoded: Option<Vec<u8>>,
    pub(super) notes: Vec<Span>,
    pub(super) boundary: Vec<u8>,
    /// True if the text is replaced by a new multipart. False if it is in a multipart/mixed and is divided there.
    pub(super) is_nested: bool,
    pub(super) behind: HashMap<usize, Span>,
    pub(super) is_whole: bool,
    /// Number of bytes that the boundaries and fields of the new parts add. They are counted only once for each text: with its
    /// first note.
    pub(super) overhead: i64,
}

/// Returns the bytes that contain a text, and its position: in the decoded text if there is one, otherwise in the message.
pub(super) fn place_of<'t>(
    decoded: Option<&'t Vec<u8>>,
    (entity, body): (&'t [u8], Span),
) -> (&'t [u8], Span) {
    let whole = |decoded: &'t Vec<u8>| (decoded.as_slice(), Span::new(0, decoded.len()));
    decoded.map_or((entity, body), whole)
}

pub(super) struct NewPart {
    pub(super) fields: Vec<u8>,
    pub(super) body: Vec<u8>,
    pub(super) is_base64: bool,
    pub(super) number: usize,
    pub(super) growth: i64,
}

impl NewPart {
    pub(super) fn len(&self) -> usize {
        self.fields.len() + self.body.len()
    }

    pub(super) fn append_to(&self, bytes: &mut Vec<u8>, newline: &[u8]) {
        for piece in [&self.fields, newline, &self.body] {
            bytes.extend_from_slice(piece);
        }
    }
}

impl Stored {
    pub(super) fn nameless(obtained: Obtained) -> Self {
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

    /// Creates the new part from content of another copy of the mail. It gets the header fields that its part has in the copy.
    /// Mailman never escaped this content, so nothing is unescaped.
    fn of_copy(
        copy: &CopiedPart,
        mut obtained: Obtained,
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

    pub(super) fn of(
        body: &ExternalBody<'_>,
        scrubbed: &Scrubbed,
        mut obtained: Obtained,
        policy: &Policy,
    ) -> Result<Self, Refusal> {
        if let Some(copy) = obtained.content.origin.copy.clone() {
            return Self::of_copy(&copy, obtained, policy);
        }
        let octets = obtained.content.bytes();
        if !policy.accept_mismatch && is_page_instead(&obtained, scrubbed) {
            let detail = "the server returned a web page instead of the file";
            return Err(Refusal::lasting(Reason::TypeMismatch, detail));
        }
        let has_size = |octets: &[u8]| {
            let size = body.size.or(scrubbed.message_size);
            size.is_none_or(|size| size == octets.len() as u64)
        };
        let declared = body.declared.as_ref();
        let declared = declared.map_or(OCTETS, |declared| &*declared.essence);
        let is_message = |octets: &[u8]| has_size(octets) && octets.starts_with(ENVELOPE);
        let mut name = body.file_name.clone();
        let mut remark = None;
        let (essence, was) = match (scrubbed.scrap, unescaped(scrubbed.scrap, octets)) {
            (Scrap::Message, Some(was)) if is_message(&was) => {
                (declared, Some(without_first_line(was.into_owned())))
            }
            // Some translations of Mailman write the fields of a message (From, Date) into notes for other attachments,
            // too. This content does not begin like a stored message but has the right size, so it is a plain file.
            (Scrap::Message, _) if has_size(octets) => (OCTETS, None),
            (Scrap::Message, None) if octets.starts_with(ENVELOPE) => {
                remark = Some(ESCAPED);
                name = Some(scrubbed.stored_name.clone());
                ("text/html", None)
            }
            (Scrap::Html, None) => {
                remark = Some(ESCAPED);
                name = Some(scrubbed.stored_name.clone());
                (declared, None)
            }
            (Scrap::Html, Some(Cow::Owned(was))) => (declared, Some(was)),
            (Scrap::File, _) if has_size(octets) && is_composite(declared) => {
                remark = Some(AS_A_FILE);
                (OCTETS, None)
            }
            (Scrap::File, _) if has_size(octets) => (declared, None),
            (Scrap::Html | Scrap::Text, _) => (declared, None),
            (Scrap::File | Scrap::Message | Scrap::Removed, _) => {
                let size = body.size.or(scrubbed.message_size).unwrap_or_default();
                let found = octets.len();
                let detail =
                    format!("the mail notes a size of {size} bytes, but the content has {found}");
                return Err(Refusal::lasting(Reason::SizeMismatch, detail));
            }
        };
        policy.judge_type(essence)?;
        obtained.essence = essence.to_owned();
        if let Some(was) = was {
            obtained.content = obtained.content.with_bytes(was);
        }
        obtained.notes.extend(remark.map(str::to_owned));
        Ok(Self {
            name,
            description: scrubbed.description.clone(),
            ..Self::nameless(obtained)
        })
    }

    pub(super) fn hosted(body: &ExternalBody<'_>, mut obtained: Obtained) -> Self {
        if is_composite(&obtained.essence) {
            obtained.notes.push(AS_A_FILE.to_owned());
            obtained.essence = OCTETS.to_owned();
        }
        let hosted = body.hosted.as_deref();
        Self {
            name: body.file_name.clone(),
            link: hosted.map(|hosted| hosted.link.clone()),
            ..Self::nameless(obtained)
        }
    }

    /// Encodes the content. Text stays readable unless its bytes must be `exact` or it contains CRs.
    pub(super) fn encode(&self, exact: bool, newline: Newline, boundaries: &[&[u8]]) -> Encoded {
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

    pub(super) fn written(&self, encoded: Encoded, newline: Newline) -> NewPart {
        let essence = &self.obtained.essence;
        // The server of a mailing list only guesses the charset, so its charset is ignored. For a link to cloud storage, the
        // charset of the response is used.
        let mut said = self.obtained.parameters.iter();
        let said = said.find(|(name, _)| self.link.is_some() && name == "charset");
        let charset = said.map(|(_, charset)| &**charset);
        let charset = charset.or_else(|| charset_of(self.obtained.content.bytes()));
        let charset = charset.filter(|_| essence.starts_with("text/"));
        let charset = charset.map(|charset| ("charset".to_owned(), charset.to_owned()));
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
            fields.extend_from_slice(match self.is_inline {
                true => b"Content-Disposition: inline".as_slice(),
                false => b"Content-Disposition: attachment",
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

/// First word of a stored message. Mailman writes this line before the message.
const ENVELOPE: &[u8] = b"From ";
const AS_A_FILE: &str =
    "the declared type is a multipart or a message; the content was inserted as a plain file";
const ESCAPED: &str = "escaped: the original could not be restored, so the page that Mailman stored, with escaped markup, was inserted";

fn without_first_line(mut message: Vec<u8>) -> Vec<u8> {
    let end = memchr::memchr(b'\n', &message).map_or(message.len(), |end| end + 1);
    message.drain(..end);
    message
}

/// Returns true if the server sent a page for signing in instead of the file. This is HTML although neither the note nor the
/// name says so, or HTML with the password form of a private archive.
fn is_page_instead(obtained: &Obtained, scrubbed: &Scrubbed) -> bool {
    let is_html = obtained.source_type.as_deref().is_some_and(is_page);
    let extension = scrubbed.stored_name.rsplit('.').next().unwrap_or_default();
    let is_named_so = ["html", "htm", "shtml", "mht"].contains(&extension);
    let is_expected = scrubbed.scrap == Scrap::Html || is_named_so;
    is_html && (!is_expected || asks_for_password(obtained.content.bytes()))
}

fn asks_for_password(page: &[u8]) -> bool {
    const LONGEST: usize = 64 << 10;
    let page = page.get(..page.len().min(LONGEST)).unwrap_or_default();
    let page = page.to_ascii_lowercase();
    let holds = |words: &str| memchr::memmem::find(&page, words.as_bytes()).is_some();
    holds("<form") && holds("/private/") && holds("password")
}

/// Returns the charset to declare for text with an unknown charset, or `None` for ASCII (RFC 1428).
pub(super) fn charset_of(text: &[u8]) -> Option<&'static str> {
    match std::str::from_utf8(text) {
        _ if text.is_ascii() => None,
        Ok(_) => Some("utf-8"),
        Err(_) => Some("unknown-8bit"),
    }
}
