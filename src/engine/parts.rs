//! Creates and writes new parts of mail.
//!
//! Boundaries are derived from the content, so the same content always gives the same bytes.

use std::borrow::Cow;

use crate::mime::entity::{self, push_field};
use crate::mime::media_type;
use crate::mime::transfer::{
    encode_base64, encode_text, has_boundary, is_eight_bit, with_newlines,
};
use crate::mime::{TransferEncoding, file_type, picture};
use crate::span::Newline;

const OCTETS: &str = "application/octet-stream";

/// A new part without inner parts, which is written into the message later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewLeaf<'a> {
    pub essence: String,
    pub parameters: Vec<(String, String)>,
    pub is_attachment: bool,
    pub name: Option<String>,
    /// Dates of the file, as parameters of Content-Disposition.
    pub dates: Vec<(String, String)>,
    pub content_id: Option<String>,
    pub location: Option<String>,
    pub body: NewBody<'a>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NewBody<'a> {
    /// Bytes that must not change, so they are written in base64.
    Bytes(Cow<'a, [u8]>),
    /// Text whose line endings are converted to those of the message.
    Text(Cow<'a, [u8]>),
    /// A message with LF line endings that needs no transfer encoding.
    Message(Vec<u8>),
    /// A signed entity with its own header, which is written byte for byte.
    Entity(Cow<'a, [u8]>),
}

impl<'a> NewLeaf<'a> {
    pub fn new(essence: &str, body: NewBody<'a>) -> Self {
        Self {
            essence: essence.to_owned(),
            parameters: Vec::new(),
            is_attachment: false,
            name: None,
            dates: Vec::new(),
            content_id: None,
            location: None,
            body,
        }
    }

    /// Creates a text part in UTF-8.
    pub fn text(essence: &str, text: String) -> Self {
        let charset = (!text.is_ascii()).then(|| ("charset".to_owned(), "utf-8".to_owned()));
        let mut leaf = Self::new(essence, NewBody::Text(Cow::Owned(text.into_bytes())));
        leaf.parameters.extend(charset);
        leaf
    }

    /// Creates an attachment. The media type is derived from the file name and the first bytes.
    pub fn file(name: &str, bytes: Vec<u8>) -> Self {
        let essence = guessed(Some(name), &bytes);
        let parameters = charset(essence, &bytes).into_iter().collect();
        Self {
            parameters,
            ..Self::new(essence, NewBody::Bytes(Cow::Owned(bytes)))
        }
        .attached(name)
    }

    pub fn bytes(&self) -> &[u8] {
        match &self.body {
            NewBody::Bytes(bytes) | NewBody::Text(bytes) | NewBody::Entity(bytes) => bytes,
            NewBody::Message(bytes) => bytes,
        }
    }

    /// Turns the part into an attachment, which mail programs do not display.
    #[must_use]
    pub fn attached(self, name: &str) -> Self {
        Self {
            is_attachment: true,
            name: Some(name.to_owned()),
            ..self
        }
    }
}

/// A new part of a message, or a multipart of new parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NewMimePart<'a> {
    Leaf(NewLeaf<'a>),
    /// A multipart: its subtype, its parameters and its parts.
    Multipart(&'static str, Vec<(String, String)>, Vec<Self>),
    /// An existing part that is copied without changes: its header, an empty line and its body.
    Raw(Vec<u8>),
}

impl<'a> NewMimePart<'a> {
    /// Combines parts into a multipart. A single part stays as it is. Returns `None` if there are no parts.
    pub fn joined(subtype: &'static str, mut parts: Vec<Self>) -> Option<Self> {
        match parts.len() {
            0 | 1 => parts.pop(),
            _ => Some(Self::Multipart(subtype, Vec::new(), parts)),
        }
    }

    /// Whether the part contains one of these boundary lines. It then cannot be inserted into the multipart that uses
    /// them.
    pub fn meets(&self, boundaries: &[&[u8]]) -> bool {
        match self {
            Self::Leaf(leaf) => match &leaf.body {
                NewBody::Message(bytes) => has_boundary(bytes, boundaries),
                NewBody::Entity(bytes) => has_boundary(bytes, boundaries),
                _ => false,
            },
            Self::Multipart(_, _, parts) => parts.iter().any(|part| part.meets(boundaries)),
            // The part is copied from between these boundary lines, so it contains none of them.
            Self::Raw(_) => false,
        }
    }

    /// Returns the transfer encoding that a multipart around this part must declare.
    fn domain(&self) -> Option<&'static str> {
        match self {
            Self::Leaf(_) => None,
            Self::Raw(bytes) if bytes.is_ascii() => None,
            Self::Raw(bytes) if is_eight_bit(bytes) => Some("8bit"),
            Self::Raw(_) => Some("binary"),
            // `binary` includes `8bit`, so a multipart with both must declare `binary`. That happens to be the
            // alphabetical maximum.
            Self::Multipart(_, _, parts) => parts.iter().filter_map(Self::domain).max(),
        }
    }

    /// Writes the header, an empty line, and the body, without a line ending after it.
    pub fn write(&self, newline: Newline, around: &[&[u8]]) -> Vec<u8> {
        let (fields, body) = self.written(newline, around);
        match self {
            Self::Raw(_)
            | Self::Leaf(NewLeaf {
                body: NewBody::Entity(_),
                ..
            }) => body,
            _ => [&fields, newline.bytes(), &body].concat(),
        }
    }

    /// Returns header fields and body separately. For a part that is copied unchanged, the header is empty and the body
    /// is the whole part.
    pub fn written(&self, newline: Newline, around: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
        let (subtype, parameters, parts) = match self {
            Self::Leaf(leaf) => return leaf.written(newline, around),
            Self::Raw(bytes) => return (Vec::new(), bytes.clone()),
            Self::Multipart(subtype, parameters, parts) => (subtype, parameters, parts),
        };
        let written: Vec<Vec<u8>> = parts.iter().map(|it| it.write(newline, around)).collect();
        let content = written.concat();
        let boundary = boundary(&content, newline, around);
        drop(content);
        let mut parameters = parameters.clone();
        parameters.insert(0, ("boundary".to_owned(), boundary.clone()));
        let essence = format!("multipart/{subtype}");
        let mut fields = media_type::write(&essence, &parameters);
        if let Some(domain) = self.domain() {
            let name = "Content-Transfer-Encoding";
            push_field(&mut fields, name, domain, Newline::CrLf);
        }
        let end = newline.bytes();
        let mut body = Vec::new();
        for part in written {
            body.extend_from_slice(&delimiter(&boundary, "", newline));
            body.extend_from_slice(&part);
            body.extend_from_slice(end);
        }
        body.extend_from_slice(&delimiter(&boundary, "--", newline));
        body.truncate(body.len() - end.len());
        (with_newlines(fields, newline), body)
    }
}

/// Returns the boundary of a new multipart. It is the same whether the message has LF or CRLF line endings.
pub(crate) fn boundary(content: &[u8], newline: Newline, around: &[&[u8]]) -> String {
    match newline {
        Newline::Lf => entity::boundary(content, content, around),
        Newline::CrLf => {
            let seed = with_newlines(content.to_vec(), Newline::Lf);
            entity::boundary(&seed, content, around)
        }
    }
}

/// Returns a boundary line with its line ending.
pub(crate) fn delimiter(boundary: &str, close: &str, newline: Newline) -> Vec<u8> {
    [
        b"--",
        boundary.as_bytes(),
        close.as_bytes(),
        newline.bytes(),
    ]
    .concat()
}

impl NewLeaf<'_> {
    fn written(&self, newline: Newline, around: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
        let (encoding, body) = match &self.body {
            NewBody::Entity(bytes) => return (Vec::new(), bytes.to_vec()),
            NewBody::Message(bytes) => {
                let body = with_newlines(bytes.clone(), newline);
                (TransferEncoding::SevenBit, body)
            }
            NewBody::Bytes(bytes) => {
                let encoded = encode_base64(bytes, newline);
                (encoded.encoding, encoded.body)
            }
            NewBody::Text(bytes) => {
                let encoded = if is_ascii_compatible(&self.parameters) {
                    encode_text(bytes.to_vec(), newline, around)
                } else {
                    encode_base64(bytes, newline)
                };
                (encoded.encoding, encoded.body)
            }
        };
        let mut fields = media_type::write(&self.essence, &self.parameters);
        if encoding != TransferEncoding::SevenBit {
            let name = "Content-Transfer-Encoding";
            push_field(&mut fields, name, encoding.as_str(), Newline::CrLf);
        }
        if self.is_attachment || self.name.is_some() {
            fields.extend_from_slice(if self.is_attachment {
                b"Content-Disposition: attachment".as_slice()
            } else {
                b"Content-Disposition: inline"
            });
            let name = self.name.clone().map(|name| ("filename".to_owned(), name));
            let parameters: Vec<_> = name.into_iter().chain(self.dates.clone()).collect();
            fields.extend_from_slice(&media_type::write_more(&parameters));
            fields.extend_from_slice(b"\r\n");
        }
        if let Some(id) = &self.content_id {
            push_field(&mut fields, "Content-ID", &format!("<{id}>"), Newline::CrLf);
        }
        if let Some(location) = &self.location {
            let field = entity::folded_url("Content-Location", location, Newline::CrLf);
            fields.extend_from_slice(&field);
        }
        (with_newlines(fields, newline), body)
    }
}

fn is_ascii_compatible(parameters: &[(String, String)]) -> bool {
    let mut charsets = parameters.iter().filter(|(name, _)| name == "charset");
    charsets.all(|(_, charset)| media_type::is_ascii_compatible(charset))
}

/// Returns the charset parameter for a text file in UTF-8.
pub(crate) fn charset(essence: &str, bytes: &[u8]) -> Option<(String, String)> {
    let is_marked = essence.starts_with("text/") && !bytes.is_ascii();
    let is_utf_8 = is_marked && str::from_utf8(bytes).is_ok();
    is_utf_8.then(|| ("charset".to_owned(), "utf-8".to_owned()))
}

/// Returns the media type of a file: from the first bytes if it is a picture, otherwise from the name.
pub(crate) fn guessed(name: Option<&str>, bytes: &[u8]) -> &'static str {
    let sniffed = picture::sniff(bytes).map(|kind| kind.essence);
    let is_pdf = bytes.starts_with(b"%PDF-");
    sniffed
        .or_else(|| file_type::of_name(name?))
        .or(is_pdf.then_some("application/pdf"))
        .unwrap_or(OCTETS)
}
