//! The texts of an item: plain text, HTML and RTF, or the content of a signed mail.

use std::borrow::Cow;
use std::collections::HashSet;

use percent_encoding::percent_decode;

use super::super::properties::{AttachmentContent, OutlookItem, PropertyValue, id, without_end};
use super::super::report;
use super::super::rtf::{self, RtfOrigin};
use super::super::{calendar, codepage, compressed_rtf};
use super::contents::ItemParts;
use crate::engine::parts::{NewBody, NewLeaf};
use crate::link::html::{Syntax, locate_in};
use crate::mime::MediaType;
use crate::mime::transfer::is_eight_bit;

const RTF: &str = "application/rtf";
/// File name of an RTF body that becomes an attachment.
pub const RTF_BODY: &str = "message.rtf";

/// Returns true if the class of an item is a kind of mail. Contacts, tasks and notes store their content in properties for
/// which mail has no place.
pub(super) fn is_mail(class: &str) -> bool {
    let is = |known: &str| {
        let rest = class.strip_prefix(known);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    class.is_empty()
        || class == "ipm"
        || is("ipm.note")
        || is("ipm.post")
        || calendar::is_meeting(class)
        || report::is_report(class)
}

/// Returns the original MIME entity of a signed or encrypted mail, which Outlook stores as the only attachment of the
/// item. The item's own text is only a substitute for programs that do not support signed mail, so it is ignored.
pub(super) fn signed<'a>(item: &OutlookItem<'a>, class: &str) -> Option<NewLeaf<'a>> {
    let [attachment] = item.attachments.as_slice() else {
        return None;
    };
    let AttachmentContent::File(bytes) = &attachment.content else {
        return None;
    };
    if class == "ipm.note.smime.multipartsigned" {
        let read = crate::mime::Header::of_message(bytes, 64 << 10);
        let value = read.fields.value(bytes, "Content-Type")?;
        let is_signed = MediaType::parse(value).essence == "multipart/signed";
        let is_fit = bytes.is_ascii() && is_eight_bit(bytes);
        return (is_signed && is_fit)
            .then(|| NewLeaf::new("multipart/signed", NewBody::Entity(bytes.clone())));
    }
    if class != "ipm.note.smime" {
        return None;
    }
    let mut leaf = NewLeaf::new("application/pkcs7-mime", NewBody::Bytes(bytes.clone()));
    leaf.is_attachment = true;
    leaf.name = Some("smime.p7m".to_owned());
    Some(leaf)
}

pub(super) fn bodies<'a>(item: &OutlookItem<'a>, contents: &mut ItemParts<'a>) {
    if let Some(text) = item.text(id::BODY) {
        contents.text = Some(NewLeaf::text("text/plain", lines(&text)));
    }
    contents.html = html(item);
    let Some(compressed) = item.properties.bytes(id::RTF).filter(|it| !it.is_empty()) else {
        return;
    };
    // The RTF was generated from the HTML, so it is not needed.
    if contents.html.is_some() {
        return;
    }
    let (rtf, damage) = match compressed_rtf::decompress(compressed) {
        Ok((rtf, damage)) => (rtf, damage),
        Err(_) => {
            let what = "the RTF body, which has an unknown compression";
            contents.unmapped.push(what.to_owned());
            return;
        }
    };
    let Some(body) = rtf::read(&rtf) else {
        if !rtf.is_empty() {
            contents
                .unmapped
                .push("the RTF body, which does not contain RTF".to_owned());
        }
        return;
    };
    if damage.is_some() || body.damage.is_some() && body.source != RtfOrigin::Rtf {
        contents
            .unmapped
            .push("the RTF body, which is damaged".to_owned());
    }
    match body.source {
        RtfOrigin::Html => contents.html = Some(NewLeaf::text("text/html", body.text)),
        RtfOrigin::Text => {
            if contents.text.is_none() {
                contents.text = Some(NewLeaf::text("text/plain", body.text));
            }
        }
        RtfOrigin::Rtf => {
            if contents.text.is_none() && !body.text.trim().is_empty() {
                contents.rtf_text = Some(NewLeaf::text("text/plain", body.text));
            }
            let leaf = NewLeaf::new(RTF, NewBody::Bytes(Cow::Owned(rtf)));
            contents.attachments.push(leaf.attached(RTF_BODY));
        }
    }
}

/// Replaces all line endings by LF.
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

pub(super) fn html<'a>(item: &OutlookItem<'a>) -> Option<NewLeaf<'a>> {
    let page = item
        .properties
        .integer(id::INTERNET_CODEPAGE)
        .and_then(|page| u32::try_from(page).ok());
    match item.properties.value(id::HTML)? {
        PropertyValue::Text(text) if !text.is_empty() => {
            Some(NewLeaf::text("text/html", text.clone()))
        }
        PropertyValue::Bytes(bytes) | PropertyValue::Narrow(bytes) => {
            let end = without_end(bytes).len();
            let bytes = match bytes {
                Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(..end)?),
                Cow::Owned(bytes) => Cow::Owned(bytes.get(..end)?.to_vec()),
            };
            if bytes.is_empty() {
                return None;
            }
            let charset = match page.or(Some(item.page)).and_then(codepage::label) {
                _ if bytes.is_ascii() => None,
                Some(label) if page.is_some() => Some(label),
                _ if str::from_utf8(&bytes).is_ok() => Some("utf-8".into()),
                label => label,
            };
            let mut leaf = NewLeaf::new("text/html", NewBody::Text(bytes));
            leaf.parameters
                .extend(charset.map(|it| ("charset".to_owned(), it.into_owned())));
            Some(leaf)
        }
        _ => None,
    }
}

/// Returns the URLs in the HTML. Percent escapes are decoded in `cid:` URLs, so that these can be compared with
/// Content-IDs.
pub(super) fn referred(html: &[u8]) -> HashSet<String> {
    let links = locate_in(html, Syntax::Html).links;
    let urls = links.iter().map(|link| {
        let decoded = link.decoded(html);
        let url = decoded.trim_ascii();
        let comparable = match url.split_at_checked(b"cid:".len()) {
            Some((scheme, id)) if scheme.eq_ignore_ascii_case(b"cid:") => {
                [b"cid:".to_vec(), percent_decode(id).collect()].concat()
            }
            _ => url.to_vec(),
        };
        String::from_utf8_lossy(&comparable).into_owned()
    });
    urls.collect()
}
