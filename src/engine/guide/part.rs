//! A part of the guide, and the forms in which its content may have been retrieved.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::names::{DIGITS, digits_of};
use super::source::SourceFacts;
use super::stand_in::StandIn;
use crate::engine::Content;
use crate::engine::content::NotedDigests;
use crate::engine::external_body::{identifier, newline_of};
use crate::engine::report::Provenance;
use crate::mime::exact::FieldText;
use crate::mime::header::unfold;
use crate::mime::media_type::MediaType;
use crate::mime::transfer::with_newlines;
use crate::mime::{MessageTree, PartId, PartKind, TransferEncoding};
use crate::span::Newline;

/// A part of the mail that an earlier run wrote.
#[derive(Debug)]
pub(in crate::engine) struct GuidePart {
    pub(in crate::engine) number: String,
    pub(super) parent: Option<PartId>,
    /// Message that contains the part.
    pub(super) message: PartId,
    pub(in crate::engine) essence: String,
    pub(in crate::engine) content_id: Option<String>,
    /// Content-Location without white space.
    pub(in crate::engine) location: Option<String>,
    base: Option<String>,
    media_type: Option<String>,
    /// File name, decoded.
    pub(in crate::engine) name: Option<String>,
    pub(super) source: Option<SourceFacts>,
    /// The fields of the part without its transfer encoding, with CRLF line endings.
    pub(super) fields: Vec<u8>,
    /// Whether the part is new: no part of the old mail is the same.
    pub(in crate::engine) is_new: bool,
    pub(in crate::engine) is_multipart: bool,
    body: Bytes,
    encoding: TransferEncoding,
    newline: Newline,
    decoded: OnceLock<Content>,
    /// Content with the digests of a stored object, if the body is only a placeholder for that object (see `StandIn`).
    standing: OnceLock<Content>,
    exact: OnceLock<Option<Content>>,
}

/// Returns the URL in a field, without white space.
pub(super) fn url_of(tree: &MessageTree<'_>, part: PartId, name: &str) -> Option<String> {
    let value = tree.value(part, name)?;
    let mut text = String::from_utf8_lossy(value).into_owned();
    text.retain(|symbol| !symbol.is_whitespace());
    Some(text)
}

impl GuidePart {
    pub(super) fn read(tree: &MessageTree<'_>, part: PartId, mail: &Bytes, is_new: bool) -> Self {
        let entity = tree.part(part);
        let value = tree.value(part, "Content-Type");
        let named = |field, parameter| {
            let value = tree.value(part, field)?;
            MediaType::parse(value).name(parameter).text()
        };
        let own = tree.fields(part).iter(tree.original);
        let fields = own
            .filter(|field| !field.is(tree.original, "Content-Transfer-Encoding"))
            .flat_map(|field| field.whole.of(tree.original).to_vec());
        let media_type = value.map(|value| String::from_utf8_lossy(&unfold(value)).into_owned());
        Self {
            number: tree.number(part),
            parent: entity.parent,
            message: tree.message_of(part),
            essence: entity.essence.clone(),
            content_id: tree.value(part, "Content-ID").map(identifier),
            location: url_of(tree, part, "Content-Location"),
            base: url_of(tree, part, "Content-Base"),
            media_type,
            name: named("Content-Disposition", "filename")
                .or_else(|| named("Content-Type", "name")),
            source: SourceFacts::read(tree, part),
            fields: with_newlines(fields.collect(), Newline::CrLf),
            is_new,
            is_multipart: matches!(entity.content, PartKind::Multipart(_)),
            body: mail.slice(entity.body.start..entity.body.end),
            encoding: entity.encoding,
            newline: newline_of(tree, part),
            decoded: OnceLock::new(),
            standing: OnceLock::new(),
            exact: OnceLock::new(),
        }
    }

    /// Returns the content as the server sent it, reconstructed from the part.
    pub(in crate::engine) fn content(&self) -> Content {
        let decode = || {
            let octets = if self.is_multipart {
                None
            } else {
                self.encoding.decode(&self.body)
            };
            let octets =
                octets.map_or_else(|| self.body.clone(), |it| Bytes::from(it.into_owned()));
            Content::new("", self.media_type.clone(), octets)
        };
        let standing = self.standing.get();
        standing
            .unwrap_or_else(|| self.decoded.get_or_init(decode))
            .clone()
    }

    /// If the body of the part is one of the placeholders `stand_ins`, its content gets the digests of the real object.
    pub(super) fn stand_in(&self, stand_ins: &[StandIn]) {
        if stand_ins.is_empty() {
            return;
        }
        let content = self.content();
        if let Some(found) = stand_ins.iter().find(|it| it.bytes() == content.bytes()) {
            let _ = self.standing.set(found.content(content.media_type));
        }
    }

    /// Returns the content with the provenance that the part records. `url` is the URL after redirects.
    pub(in crate::engine) fn retrieved(&self, url: &str) -> Content {
        let mut content = self.content();
        content.origin.url = url.into();
        content.origin.from = Provenance::Network;
        match &self.source {
            Some(source) => source.describe(&mut content),
            // The earlier run did not use `--provenance`, so the part has no X-Embody-Source field.
            None => {
                content.noted = Some(Arc::new(NotedDigests {
                    is_without_source: true,
                    ..NotedDigests::default()
                }));
            }
        }
        content
    }

    /// Returns the URL that the part records for its content: Content-Location, or Content-Base if the reference itself
    /// already had a Content-Location (`has_location`).
    pub(super) fn url(&self, has_location: bool) -> &str {
        let field = if has_location {
            &self.base
        } else {
            &self.location
        };
        field.as_deref().unwrap_or_default()
    }

    pub(super) fn is_base64(&self) -> bool {
        self.encoding == TransferEncoding::Base64
    }

    pub(super) fn is_printable_text(&self) -> bool {
        self.encoding == TransferEncoding::QuotedPrintable && self.essence.starts_with("text/")
    }

    /// Returns the content in both forms that `embody detach` may have stored: decoded, and exactly as it is in the
    /// mail.
    pub(super) fn forms(&self) -> impl Iterator<Item = Content> + '_ {
        let exact = || {
            let (octets, _) = FieldText::read(&self.body, self.encoding, self.newline)?;
            Some(Content::new("", None, octets))
        };
        let plain = (!self.is_multipart).then(|| self.content());
        let exact = move || self.exact.get_or_init(exact).clone();
        plain
            .into_iter()
            .chain(std::iter::once_with(exact).flatten())
    }

    /// Returns the digests in the file name and in the Content-ID of an embedded style sheet.
    pub(super) fn identity(&self) -> Option<(String, String)> {
        let identity = digits_of(self.content_id.as_deref()?)?;
        let hash = self.name.as_deref()?.strip_suffix(".css")?;
        let is_hash = hash.len() == DIGITS && hash.bytes().all(|it| it.is_ascii_hexdigit());
        is_hash.then(|| (hash.to_owned(), identity.to_owned()))
    }

    /// Returns the charset that the part declares.
    pub(super) fn charset(&self) -> Option<String> {
        self.content().charset()
    }
}
