//! The names of attachments, their media types, and the files in OLE objects.

use std::borrow::Cow;

use super::super::codepage;
use super::super::object::{self, OleObject};
use super::super::properties::{OutlookAttachment, OutlookItem, id};
use crate::engine::parts::{NewBody, NewLeaf, guessed};
use crate::mime::picture;

/// Returns the last component of a path without control characters. Returns `None` if this is not a valid file name.
fn file_name(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let printable: String = last.chars().filter(|letter| !letter.is_control()).collect();
    let name = printable.trim();
    (!name.is_empty() && name != "." && name != "..").then(|| name.to_owned())
}

pub(super) fn name(item: &OutlookItem<'_>, attachment: &OutlookAttachment<'_>) -> Option<String> {
    let text = |id| attachment.properties.text(id, item.page);
    let names = [
        id::LONG_FILE_NAME,
        id::LONG_PATH_NAME,
        id::FILE_NAME,
        id::PATH_NAME,
    ];
    let name = names.into_iter().find_map(|id| file_name(&text(id)?));
    let display = || {
        // The name of an attached item is its subject. A slash or a colon in a subject does not separate directories, so it is
        // replaced.
        let name = text(id::DISPLAY_NAME)?.replace(['/', '\\', ':'], "_");
        file_name(&name)
    };
    let name = name.or_else(display)?;
    let extension = text(id::EXTENSION)
        .filter(|_| !name.contains('.'))
        .filter(|it| it.starts_with('.') && file_name(it).is_some());
    Some(name + &extension.unwrap_or_default())
}

pub(super) fn is_type(tag: &str) -> bool {
    let is_token = |word: &str| {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "!#$&-^_.+".contains(it);
        !word.is_empty() && word.len() < 100 && word.chars().all(is_plain)
    };
    let words = tag.split_once('/');
    words.is_some_and(|(main, sub)| is_token(main) && is_token(sub))
}

/// Converts an OLE object. If it contains a file that can be extracted, the part is that file. Otherwise the part is the
/// compound file itself.
pub(super) fn object<'a>(
    item: &OutlookItem<'_>,
    storage: &Cow<'a, [u8]>,
    name: Option<String>,
) -> NewLeaf<'a> {
    match object::read(storage) {
        OleObject::File(inner) => {
            let inner_name = inner.name.as_deref().and_then(|name| {
                let page = item.page;
                file_name(&codepage::decode(page, name).0)
            });
            let essence = guessed(inner_name.as_deref(), &inner.bytes);
            let mut name = inner_name.or(name).unwrap_or_else(|| "object".to_owned());
            if !name.contains('.')
                && let Some(kind) = picture::sniff(&inner.bytes)
            {
                name = format!("{name}.{}", kind.extension);
            }
            NewLeaf::new(essence, NewBody::Bytes(Cow::Owned(inner.bytes))).attached(&name)
        }
        OleObject::Document(essence, extension) => {
            let mut name = name.unwrap_or_else(|| "object".to_owned());
            if !name.contains('.') {
                name = format!("{name}.{extension}");
            }
            NewLeaf::new(essence, NewBody::Bytes(storage.clone())).attached(&name)
        }
        OleObject::Unknown => {
            NewLeaf::new("application/x-ole-storage", NewBody::Bytes(storage.clone()))
                .attached(&name.unwrap_or_else(|| "object.ole".to_owned()))
        }
    }
}
