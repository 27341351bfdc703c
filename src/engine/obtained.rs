//! Obtains the content of one reference, and checks its type, size and digest (RFC 2017 §3.1, RFC 1864).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::content_source::{ContentSource, OCTETS};
use super::context::Context;
use crate::detail::{QUOTED, excerpt};
use crate::engine::Content;
use crate::engine::external_body::{BodyNote, ExternalBody, ReferenceShape, Referent};
use crate::engine::policy::{Policy, Scheme, size_in_words};
use crate::engine::report::{Reason, Refusal};
use crate::link::data::{DataUrl, DataUrlError};
use crate::mime::media_type::{DEFAULT_TYPE, is_page};
use crate::mime::transfer::canonical_text;
use crate::mime::{Limit, MediaType, MessageTree, PartId, PartKind, TransferEncoding, date};

pub(super) fn not_decoded(error: DataUrlError) -> Refusal {
    let reason = match error {
        DataUrlError::TooLarge { .. } => Reason::TooLarge,
        _ => Reason::BadDataUrl,
    };
    Refusal::lasting(reason, error.to_string())
}

pub(super) fn decode(body: &ExternalBody<'_>, policy: &Policy) -> Result<ContentSource, Refusal> {
    let Ok(Referent::Data(url)) = &body.target else {
        return Err(Refusal::lasting(
            Reason::BadDataUrl,
            "the reference is not a data: URL",
        ));
    };
    let url = DataUrl::parse(url).map_err(not_decoded)?;
    let media_type = url.media_type();
    let octets = url.decode(policy.limits.body).map_err(not_decoded)?;
    let source_type = media_type.declared_essence().map(str::to_owned);
    let parameters = media_type.parameters.as_slice();
    // A `data:` URL without a charset has the default `charset=US-ASCII`. This default is dropped if the external-body
    // part declares the type.
    let is_default = source_type.is_none()
        && body.declared.is_some()
        && matches!(parameters, [(name, value)] if name == "charset" && value == "US-ASCII");
    let parameters = if is_default { &[] } else { parameters };
    let octets = Content::of_message(octets);
    Ok(ContentSource {
        parameters: parameters.into(),
        source_type,
        ..ContentSource::of(media_type.essence.as_str(), octets)
    })
}

pub(super) fn decoded(tree: &MessageTree<'_>, part: PartId) -> Result<Content, Refusal> {
    let source = tree.part(part);
    let refuse = |reason, what| {
        let detail = format!("part {} {what}", tree.number(part));
        Err(Refusal::lasting(reason, detail))
    };
    if source.content == PartKind::Opaque(Limit::HeaderTooLarge) {
        return refuse(Reason::HeaderTooLarge, "has too large a header");
    }
    let is_encoded = matches!(
        source.encoding,
        TransferEncoding::Base64 | TransferEncoding::Binary
    );
    match source.encoding.decode(source.body.of(tree.original)) {
        // Transport may have converted the line endings of unencoded text (RFC 2045 §6.5), so they are normalised to
        // CRLF, as in transport.
        Some(octets) if source.essence.starts_with("text/") && !is_encoded => {
            Ok(Content::of_message(canonical_text(&octets).into_owned()))
        }
        Some(octets) => Ok(Content::of_message(octets.into_owned())),
        None => refuse(Reason::UndecodableBody, "cannot be decoded"),
    }
}

pub(super) fn copy(tree: &MessageTree<'_>, part: PartId, octets: Content) -> ContentSource {
    let source = tree.part(part);
    let field = tree.value(part, "Content-Type");
    let parameters = field.map(|value| all_parameters(&MediaType::parse(value)));
    ContentSource {
        source_type: field.map(|_| source.essence.clone()),
        parameters: parameters.unwrap_or_default().into(),
        ..ContentSource::of(source.essence.as_str(), octets)
    }
}

fn is_described(encoding: TransferEncoding) -> bool {
    encoding.is_encoded() && encoding != TransferEncoding::Unknown
}

pub(super) fn is_decoded(body: &ExternalBody<'_>, encoding: TransferEncoding) -> bool {
    is_described(encoding) && body.describes_stored_octets()
}

pub(super) fn take(
    body: &ExternalBody<'_>,
    source: &Content,
    encoding: TransferEncoding,
    location: &str,
) -> Result<ContentSource, Refusal> {
    let mut notes = Vec::new();
    let content = if is_decoded(body, encoding) {
        // The header inside the external-body part describes the body as the source stores it (RFC 2046 §5.2.3), so the body
        // is decoded.
        let decoded = encoding.decode(source.bytes()).ok_or_else(|| {
            let encoding = encoding.as_str();
            let detail =
                format!("the mail declares that the content is encoded in {encoding}, but the retrieved content is not");
            Refusal::lasting(Reason::UndecodableBody, detail)
        })?;
        source.clone().with_bytes(decoded.into_owned())
    } else {
        if is_described(encoding) && body.facts.shape == ReferenceShape::ExternalBody {
            notes.push(format!(
                "the Content-Transfer-Encoding {} in the external-body part was ignored, because content from a URL is not encoded",
                encoding.as_str()
            ));
        }
        source.clone()
    };
    let media_type = source
        .media_type
        .as_deref()
        .filter(|value| names_a_type(value))
        .map(|value| MediaType::parse(value.as_bytes()));
    let has_server = |url: &str| Scheme::of_url(url).is_some_and(Scheme::has_server);
    let essence = media_type.as_ref().map(|named| named.essence.to_string());
    let parameters = media_type.as_ref().map(all_parameters);
    let named = essence.as_deref().unwrap_or(OCTETS);
    let obtained = ContentSource::of(named, content);
    Ok(ContentSource {
        source_type: essence,
        parameters: parameters.unwrap_or_default().into(),
        location: (has_server(&source.origin.url) && has_server(location))
            .then(|| location.to_owned()),
        notes,
        ..obtained
    })
}

/// Returns true if a Content-Type from a server contains a type. An empty or malformed value is treated as missing, and not as
/// text/plain.
fn names_a_type(value: &str) -> bool {
    let essence = value.split(';').next().unwrap_or_default();
    let is_whole = |(main, sub): (&str, &str)| !main.trim().is_empty() && !sub.trim().is_empty();
    essence.split_once('/').is_some_and(is_whole)
}

fn all_parameters(media_type: &MediaType<'_>) -> Vec<(String, String)> {
    media_type.decoded_parameters(32)
}

pub(super) fn admit(
    mut obtained: ContentSource,
    body: &ExternalBody<'_>,
    policy: &Policy,
    context: &Context,
) -> Result<ContentSource, Refusal> {
    policy.judge_size(obtained.content.len() as u64)?;
    if let Some(note) = body.note() {
        return admit_noted(obtained, body, note);
    }
    if let Some(source_type) = &obtained.source_type {
        policy.judge_type(source_type)?;
    }
    if !policy.accept_mismatch && is_page_instead(&obtained, body) {
        let detail = "the server returned a web page instead of the file";
        return Err(Refusal::lasting(Reason::TypeMismatch, detail));
    }
    if let Some(declared) = &body.declared {
        if let Some(source_type) = &obtained.source_type {
            let agree = source_type.eq_ignore_ascii_case(&declared.essence)
                || source_type == OCTETS
                || declared.essence == OCTETS;
            if !agree && !policy.accept_mismatch {
                let declared = excerpt(&declared.essence, QUOTED);
                let source_type = excerpt(source_type, QUOTED);
                let detail =
                    format!("the mail declares {declared}, but the content is {source_type}");
                return Err(Refusal::lasting(Reason::TypeMismatch, detail));
            }
        }
        obtained.essence = declared.essence.to_string();
    }
    policy.judge_type(&obtained.essence)?;
    if let Some(value) = &body.content_md5 {
        judge_digest(value, &obtained)?;
    }
    if let Some(note) = other_charset(body, &obtained) {
        obtained.notes.push(note);
    }
    let is_other = |size: &u64| *size != obtained.content.len() as u64;
    if let Some(size) = body.size.filter(is_other) {
        let who = match body.linked {
            Some(_) => "the mail declares",
            None => "the size parameter is",
        };
        obtained.notes.push(format!(
            "{who} {}, but the content has {} bytes",
            size_in_words(size),
            obtained.content.len()
        ));
    }
    if let Some(date) = expired_on(body, context) {
        obtained.notes.push(format!(
            "the content expired on {date} (expiration parameter)"
        ));
    }
    if obtained.essence.is_empty() {
        obtained.essence = DEFAULT_TYPE.to_owned();
    }
    Ok(obtained)
}

/// Returns the date in the `expiration` parameter if it is in the past.
fn expired_on<'b>(body: &'b ExternalBody<'_>, context: &Context) -> Option<&'b str> {
    let date = body.expiration.as_deref()?.trim();
    let is_past = |seconds| context.is_past(seconds);
    date::seconds(date.as_bytes())
        .is_some_and(is_past)
        .then_some(date)
}

/// Adds to the refusal that the content expired, if the mail says so.
pub(super) fn or_expired(refusal: Refusal, body: &ExternalBody<'_>, context: &Context) -> Refusal {
    match expired_on(body, context) {
        Some(date) => Refusal {
            detail: (refusal.detail).then(format!(
                "; the mail says that the content expired on {}",
                excerpt(date, QUOTED)
            )),
            ..refusal
        },
        None => refusal,
    }
}

/// Accepts the content of a detached attachment if its SHA-256 matches the note of `embody detach`. No other check is needed.
fn admit_noted(
    mut obtained: ContentSource,
    body: &ExternalBody<'_>,
    note: &BodyNote,
) -> Result<ContentSource, Refusal> {
    let (wanted, found) = (&note.sha256, obtained.content.sha256());
    if found != wanted {
        let detail = format!(
            "the SHA-256 of the detached attachment was {wanted}, but the SHA-256 of this content is {found}"
        );
        return Err(Refusal::lasting(Reason::DigestMismatch, detail));
    }
    let declared = body.declared.as_ref().map(|declared| &declared.essence);
    obtained.essence = declared.map_or_else(|| DEFAULT_TYPE.to_owned(), ToString::to_string);
    obtained.location = None;
    Ok(obtained)
}

/// Returns a remark for the report if server and mail declare different charsets. The charset of the mail is used.
fn other_charset(body: &ExternalBody<'_>, obtained: &ContentSource) -> Option<String> {
    let charset = body.declared.as_ref()?.parameter("charset")?;
    let declared = String::from_utf8_lossy(&charset);
    let mut parameters = obtained.parameters.iter();
    let (_, named) = parameters.find(|(name, _)| name == "charset")?;
    let same = declared.trim().eq_ignore_ascii_case(named.trim());
    (!same).then(|| {
        format!(
            "the server declares the charset {named}; the charset of the mail, {declared}, was kept"
        )
    })
}

/// Whether the server returned a web page about the file instead of the file. Such a page is never accepted as the
/// declared type: it would replace the link to the file, and the link would be lost.
fn is_page_instead(obtained: &ContentSource, body: &ExternalBody<'_>) -> bool {
    let declared = body.declared.as_ref();
    body.facts.has_web_page
        && is_page(&obtained.essence)
        && !declared.is_some_and(|declared| is_page(&declared.essence))
}

/// Compares the content with a Content-MD5 field (RFC 1864 §2). The digest of a text is computed with CRLF line endings, but
/// many programs use the bytes as they are, so both are accepted.
fn judge_digest(value: &[u8], obtained: &ContentSource) -> Result<(), Refusal> {
    let refuse = |detail: String| Err(Refusal::lasting(Reason::DigestMismatch, detail));
    let mut trimmed = value.to_vec();
    trimmed.retain(|byte| !byte.is_ascii_whitespace());
    let Ok(wanted) = STANDARD.decode(&trimmed) else {
        return refuse("the Content-MD5 field does not contain base64".to_owned());
    };
    let same = |digest: &[u8; 16]| digest.as_slice() == wanted.as_slice();
    let is_text = obtained.essence.starts_with("text/");
    if same(obtained.content.md5()) || (is_text && same(obtained.content.canonical_md5())) {
        return Ok(());
    }
    refuse(format!(
        "the Content-MD5 field is {}, but the MD5 of the content is {}",
        String::from_utf8_lossy(&trimmed),
        STANDARD.encode(obtained.content.md5())
    ))
}
