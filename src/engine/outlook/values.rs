//! Encoding of values in `.msg` and `.pst` files, and the names of named properties.

use std::borrow::Cow;
use std::collections::HashMap;

use super::codepage;
use super::properties::{Guid, OutlookItem, Properties, Property, PropertyName, PropertyValue, id};
use super::tnef::wide;

/// Types of properties (MS-OXCDATA 2.11.1).
pub(super) mod kind {
    pub(crate) const NARROW: u16 = 0x001e;
    pub(crate) const WIDE: u16 = 0x001f;
    pub(crate) const BYTES: u16 = 0x0102;
    pub(crate) const OBJECT: u16 = 0x000d;
    pub(crate) const MANY: u16 = 0x1000;
}

/// Returns the length in bytes of a value of this type, or `None` if the length varies.
pub(super) fn width(kind: u16) -> Option<usize> {
    Some(match kind {
        0x02 | 0x0b => 2,
        0x03 | 0x04 | 0x0a => 4,
        0x05 | 0x06 | 0x07 | 0x14 | 0x40 => 8,
        0x48 => 16,
        _ => return None,
    })
}

/// Reads a value of at most eight bytes. Returns `None` if the type is longer or unknown, or if bytes are missing.
pub(super) fn fixed<'a>(kind: u16, bytes: &[u8]) -> Option<PropertyValue<'a>> {
    let short = || Some(i16::from_le_bytes(*bytes.first_chunk()?));
    let long = || Some(i32::from_le_bytes(*bytes.first_chunk()?));
    let quad = || Some(i64::from_le_bytes(*bytes.first_chunk()?));
    Some(match kind {
        0x00 | 0x01 => PropertyValue::Null,
        0x02 => PropertyValue::Integer(short()?.into()),
        0x03 | 0x0a => PropertyValue::Integer(long()?.into()),
        0x04 => PropertyValue::Float(f32::from_bits(long()? as u32).into()),
        0x05 | 0x07 => PropertyValue::Float(f64::from_bits(quad()? as u64)),
        0x06 | 0x14 => PropertyValue::Integer(quad()?),
        0x0b => PropertyValue::Bool(*bytes.first()? != 0),
        0x40 => PropertyValue::Time(quad()?),
        _ => return None,
    })
}

/// Decodes a value whose bytes are outside of the property list. Returns `None` if the type is unknown.
pub(super) fn stored(kind: u16, bytes: Cow<'_, [u8]>) -> Option<PropertyValue<'_>> {
    Some(match kind {
        kind::NARROW => PropertyValue::Narrow(bytes),
        kind::WIDE => PropertyValue::Text(wide(&bytes)),
        kind::BYTES | kind::OBJECT | 0x48 => PropertyValue::Bytes(bytes),
        _ => fixed(kind, &bytes)?,
    })
}

/// Named properties: the name for each id that this file assigned.
#[derive(Default, Debug)]
pub(super) struct PropertyIds(HashMap<u16, (Guid, PropertyName)>);

impl PropertyIds {
    /// Reads the three lists that contain the names of properties. `.msg` and `.pst` files have the same layout (MS-OXMSG
    /// 2.2.3.1, MS-PST 2.4.7). If an entry cannot be read, its property has no name.
    pub(super) fn read(guids: &[u8], entries: &[u8], strings: &[u8]) -> Self {
        let mut names = HashMap::new();
        for (entry, _) in entries.as_chunks::<8>().0.iter().zip(0..0x8000) {
            let [a, b, c, d, e, f, g, h] = *entry;
            let number = u32::from_le_bytes([a, b, c, d]);
            let kind = u16::from_le_bytes([e, f]);
            let Some(id) = 0x8000_u16.checked_add(u16::from_le_bytes([g, h])) else {
                continue;
            };
            let set = match kind >> 1 {
                1 => Some(MAPI),
                2 => Some(super::properties::STRINGS),
                index => {
                    let at = usize::from(index).checked_sub(3);
                    at.and_then(|at| guids.as_chunks::<16>().0.get(at).copied())
                }
            };
            let name = match kind & 1 {
                0 => Some(PropertyName::Number(number)),
                _ => text(strings, number).map(PropertyName::Text),
            };
            if let (Some(set), Some(name)) = (set, name) {
                names.entry(id).or_insert((set, name));
            }
        }
        Self(names)
    }

    pub(super) fn of(&self, id: u16) -> Option<(Guid, PropertyName)> {
        self.0.get(&id).cloned()
    }

    pub(super) fn property<'a>(&self, id: u16, value: PropertyValue<'a>) -> Property<'a> {
        let name = (id >= 0x8000).then(|| self.of(id)).flatten();
        Property { id, name, value }
    }
}

/// `{00020328-0000-0000-C000-000000000046}`, the set of properties that have a fixed number.
const MAPI: Guid = *b"\x28\x03\x02\0\0\0\0\0\xc0\0\0\0\0\0\0\x46";

/// Reads a UTF-16 string with its length.
fn text(strings: &[u8], at: u32) -> Option<String> {
    let rest = strings.get(usize::try_from(at).ok()?..)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    Some(wide(rest.get(..length)?))
}

/// Sets the code page of the item's texts. Programs often declare a wrong code page, so several are tried in this order:
///
/// * the one that the item declares for mail on the internet,
/// * the one that the item declares for its own texts,
/// * the charset in the header of the mail,
/// * the system code page of Windows for the language of the first one, because Outlook can store texts in the code page of the
///   system,
/// * the system code page of Windows for the locale of the item.
///
/// The item gets the first code page in which every text is valid, or Windows-1252 if no code page fits.
pub(super) fn set_page(item: &mut OutlookItem<'_>) {
    let properties = &item.properties;
    let page = |id| {
        let page = properties.integer(id)?;
        u32::try_from(page).ok().filter(|page| *page != 1200)
    };
    let header = properties
        .text(id::TRANSPORT_HEADERS, codepage::WESTERN)
        .and_then(|header| codepage::of_label(&charset_in(&header)?));
    let (internet, own) = (page(id::INTERNET_CODEPAGE), page(id::MESSAGE_CODEPAGE));
    let locale = properties
        .integer(id::LOCALE)
        .and_then(|id| codepage::of_locale(u32::try_from(id).ok()?));
    let of_system = internet.and_then(codepage::of_system);
    let narrow: Vec<&[u8]> = texts(properties)
        .chain(item.recipients.iter().flat_map(texts))
        .collect();
    let is_fit = |page: &u32| narrow.iter().all(|text| codepage::decode(*page, text).1);
    let candidates = [internet, own, header, of_system, locale];
    item.page = candidates
        .into_iter()
        .flatten()
        .find(is_fit)
        .unwrap_or(codepage::WESTERN);
}

fn texts<'p>(properties: &'p Properties<'_>) -> impl Iterator<Item = &'p [u8]> {
    properties
        .0
        .iter()
        .filter_map(|property| match &property.value {
            // The HTML declares its own charset, so it is no evidence for the code page.
            PropertyValue::Narrow(bytes) if property.id != id::HTML => Some(bytes.as_ref()),
            _ => None,
        })
}

/// Returns the charset of the Content-Type field in a header.
fn charset_in(header: &str) -> Option<Vec<u8>> {
    let bytes = super::header::without_title(header.trim_start()).as_bytes();
    let read = crate::mime::Header::of_message(bytes, bytes.len());
    let value = read.fields.value(bytes, "Content-Type")?;
    let charset = crate::mime::MediaType::parse(value).parameter("charset")?;
    Some(charset.into_owned())
}
