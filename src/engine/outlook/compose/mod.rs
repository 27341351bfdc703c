//! Converts Outlook items to parts of mail.
//!
//! [`of`] returns the content of an item: its texts, its files, and a sentence for each value that cannot be converted.

mod attachment;
mod body;
mod contents;

use std::collections::HashSet;

use self::attachment::{is_type, name, object};
use self::body::{bodies, is_mail, referred, signed};
use super::properties::{
    AttachmentContent, OutlookAttachment, OutlookItem, Property, PropertyUse, id,
};
use super::{calendar, header, report};
use crate::engine::parts::{NewBody, NewLeaf, charset, guessed};
use crate::mime::media_type::is_composite;
use crate::mime::transfer::with_newlines;
use crate::span::Newline;

pub use self::body::RTF_BODY;
pub use self::contents::ItemParts;

/// Returns the content of an item as parts of mail.
pub fn of<'a>(item: &OutlookItem<'a>) -> ItemParts<'a> {
    let mut contents = ItemParts::default();
    let class = item.class();
    if let Some(entity) = signed(item, &class) {
        contents.attachments.push(entity);
        return contents;
    }
    if !is_mail(&class) {
        let what = format!(
            "everything except the text and the attachments, because the item of the class {class:?} is not a mail"
        );
        contents.unmapped.push(what);
    }
    bodies(item, &mut contents);
    match report::of(item, &class) {
        Ok(None) => {}
        Ok(Some(read)) => {
            if contents.text.is_none() && contents.html.is_none() && contents.rtf_text.is_none() {
                contents.text = Some(NewLeaf::text("text/plain", read.text));
            }
            contents.report = Some(read.report);
        }
        Err(()) => contents
            .unmapped
            .push("the report, which does not name a recipient".to_owned()),
    }
    let description = contents
        .text
        .as_ref()
        .or(contents.rtf_text.as_ref())
        .map(|leaf| String::from_utf8_lossy(leaf.bytes()).into_owned());
    match calendar::of(item, description.as_deref()) {
        Ok(None) => {}
        Ok(Some(calendar)) => {
            let mut leaf = NewLeaf::text("text/calendar", calendar.text);
            leaf.parameters.retain(|(name, _)| name != "charset");
            for (name, value) in [("method", calendar.method), ("charset", "utf-8")] {
                leaf.parameters.push((name.to_owned(), value.to_owned()));
            }
            contents.calendar = Some(leaf);
            let missing = calendar.missing.into_iter().map(str::to_owned);
            contents.unmapped.extend(missing);
        }
        Err(()) => contents
            .unmapped
            .push("the meeting, which has no start time".to_owned()),
    }
    let referred = contents
        .html
        .as_ref()
        .map(|html| referred(html.bytes()))
        .unwrap_or_default();
    for (index, attachment) in item.attachments.iter().enumerate() {
        match leaf(item, attachment, &mut contents.unmapped) {
            Ok(leaf) => {
                let is_shown = [
                    leaf.content_id.as_ref().map(|id| format!("cid:{id}")),
                    leaf.location.clone(),
                ]
                .into_iter()
                .flatten()
                .any(|url| referred.contains(&url));
                if is_shown {
                    contents.pictures.push(NewLeaf {
                        is_attachment: false,
                        ..leaf
                    })
                } else {
                    contents.attachments.push(leaf)
                }
            }
            Err(why) => {
                let name = name(item, attachment).unwrap_or_else(|| format!("{}", index + 1));
                contents.unmapped.push(format!("attachment {name}: {why}"));
            }
        }
    }
    let lists = std::iter::once(&item.properties)
        .chain(&item.recipients)
        .chain(item.attachments.iter().map(|it| &it.properties));
    let mut named = HashSet::new();
    for property in lists.flat_map(|list| &list.0) {
        tell(property, &mut contents, &mut named);
    }
    contents
}

fn tell(property: &Property<'_>, contents: &mut ItemParts<'_>, named: &mut HashSet<&'static str>) {
    if property.is_empty() {
        return;
    }
    match property.becomes() {
        Some(PropertyUse::Unmapped(name)) => {
            if named.insert(name) {
                contents.properties.push(name);
            }
        }
        Some(_) => {}
        None => contents.unknown += 1,
    }
}

fn leaf<'a>(
    item: &OutlookItem<'a>,
    attachment: &OutlookAttachment<'a>,
    unmapped: &mut Vec<String>,
) -> Result<NewLeaf<'a>, String> {
    let properties = &attachment.properties;
    let text = |id| properties.text(id, item.page);
    let name = name(item, attachment);
    let mut leaf = match &attachment.content {
        AttachmentContent::None => {
            let path = text(id::LONG_PATH_NAME).or_else(|| text(id::PATH_NAME));
            return Err(match (properties.integer(id::METHOD), path) {
                (Some(2..=4 | 7), Some(path)) => {
                    format!(
                        "the content is not in the file, which contains only a reference to {path}"
                    )
                }
                _ => "the content is not in the file".to_owned(),
            });
        }
        AttachmentContent::Item(inner) => {
            let (message, missing) = message(inner);
            let called = name.as_deref().unwrap_or("without a name");
            let missing = missing.iter().map(|what| format!("in {called}: {what}"));
            unmapped.extend(missing);
            let mut leaf = NewLeaf::new("message/rfc822", NewBody::Message(message));
            leaf.name = name.map(|name| {
                if name.to_ascii_lowercase().ends_with(".eml") {
                    name
                } else {
                    format!("{name}.eml")
                }
            });
            leaf
        }
        AttachmentContent::Storage(storage) => return Ok(object(item, storage, name)),
        AttachmentContent::File(bytes) => {
            // The file is written in base64. Programs parse `message/*`, `multipart/*` and TNEF parts instead of
            // offering them as files, so such a declared type is replaced by one guessed from the file.
            let essence = text(id::MIME_TAG)
                .filter(|tag| is_type(tag))
                .map(|tag| tag.to_ascii_lowercase())
                .filter(|it| !is_composite(it) && it != "application/ms-tnef")
                .unwrap_or_else(|| guessed(name.as_deref(), bytes).to_owned());
            let mut leaf = NewLeaf::new(&essence, NewBody::Bytes(bytes.clone()));
            leaf.parameters.extend(charset(&essence, bytes));
            leaf.name = name;
            leaf
        }
    };
    leaf.is_attachment = true;
    for (parameter, id) in [
        ("creation-date", id::CREATION_TIME),
        ("modification-date", id::MODIFICATION_TIME),
    ] {
        if let Some(time) = properties.time(id).and_then(header::seconds) {
            leaf.dates.push((parameter.to_owned(), header::date(time)));
        }
    }
    let token = |id| {
        let text = text(id)?;
        let token = text.trim().trim_start_matches('<').trim_end_matches('>');
        let is_plain = |it: char| it.is_ascii_graphic() && it != '<' && it != '>';
        let is_fit = !token.is_empty() && token.len() < 500 && token.chars().all(is_plain);
        is_fit.then(|| token.to_owned())
    };
    leaf.content_id = token(id::CONTENT_ID);
    leaf.location = token(id::CONTENT_LOCATION);
    Ok(leaf)
}

/// Converts an item to a message with LF line endings. Also returns one sentence for each piece of content that could not be
/// written into the message.
pub fn message(item: &OutlookItem<'_>) -> (Vec<u8>, Vec<String>) {
    let mut contents = of(item);
    let unmapped = std::mem::take(&mut contents.unmapped);
    let mut header = header::of(item);
    header.extend_from_slice(b"MIME-Version: 1.0\r\n");
    let mut written = with_newlines(header, Newline::Lf);
    written.extend_from_slice(&contents.whole().write(Newline::Lf, &[]));
    (written, unmapped)
}
