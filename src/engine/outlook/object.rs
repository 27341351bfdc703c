//! Reads OLE objects: compound files (MS-CFB) that often contain a file of another program.

use super::properties::without_end;
use crate::span::front;

/// The file inside an OLE object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct InnerFile {
    pub name: Option<Vec<u8>>,
    pub bytes: Vec<u8>,
}

/// The content of an OLE object, if a mail can contain it as a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum OleObject {
    /// The object wraps a file, which can be extracted.
    File(InnerFile),
    /// The compound file of the object is itself a document, with this media type and file extension.
    Document(&'static str, &'static str),
    /// The object has an unknown form, or is damaged.
    Unknown,
}

/// Streams by which files of office programs are recognised. An object with one of these streams can be opened as a
/// file.
#[cfg(feature = "outlook")]
const DOCUMENTS: &[(&str, &str, &str)] = &[
    ("/WordDocument", "application/msword", "doc"),
    ("/Workbook", "application/vnd.ms-excel", "xls"),
    ("/Book", "application/vnd.ms-excel", "xls"),
    (
        "/PowerPoint Document",
        "application/vnd.ms-powerpoint",
        "ppt",
    ),
    ("/VisioDocument", "application/vnd.visio", "vsd"),
];

#[cfg(feature = "outlook")]
pub(super) fn read(storage: &[u8]) -> OleObject {
    use std::io::{Cursor, Read as _};

    let Ok(mut file) = cfb::CompoundFile::open(Cursor::new(storage)) else {
        return OleObject::Unknown;
    };
    let mut stream = |name: &str| {
        let stream = file.open_stream(name).ok()?;
        // A declared length that exceeds the length of the whole file is wrong, so it is limited to that length.
        let most = u64::try_from(storage.len()).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        stream.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    if let Some(inner) = stream("/\u{1}Ole10Native").as_deref().and_then(native) {
        return OleObject::File(inner);
    }
    for name in ["/CONTENTS", "/Package"] {
        if let Some(bytes) = stream(name).filter(|bytes| !bytes.is_empty()) {
            return OleObject::File(InnerFile { name: None, bytes });
        }
    }
    let document = DOCUMENTS.iter().find(|row| file.exists(row.0));
    document.map_or(OleObject::Unknown, |(_, essence, extension)| {
        OleObject::Document(essence, extension)
    })
}

#[cfg(not(feature = "outlook"))]
pub fn read(_storage: &[u8]) -> OleObject {
    OleObject::Unknown
}

/// Reads the stream in which Windows packs a file: a label, paths and the content. Other programs write only the length and
/// the content.
#[cfg_attr(not(feature = "outlook"), allow(dead_code))]
fn native(stream: &[u8]) -> Option<InnerFile> {
    let (length, rest) = stream.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let rest = front(rest, length);
    packed(rest).or_else(|| {
        let bytes = rest.to_vec();
        (!rest.is_empty()).then_some(InnerFile { name: None, bytes })
    })
}

#[cfg_attr(not(feature = "outlook"), allow(dead_code))]
fn packed(rest: &[u8]) -> Option<InnerFile> {
    let rest = rest.strip_prefix(&[2, 0])?;
    let (label, rest) = c_string(rest)?;
    let (_, rest) = c_string(rest)?;
    let (_, rest) = rest.split_first_chunk::<4>()?;
    let (path_length, rest) = length(rest)?;
    let (_, rest) = rest.split_at_checked(path_length)?;
    let (content_length, rest) = length(rest)?;
    Some(InnerFile {
        name: Some(without_end(label).to_vec()),
        bytes: rest.get(..content_length)?.to_vec(),
    })
}

/// Splits off a length of four bytes. Returns the length and the remaining bytes.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    Some((usize::try_from(u32::from_le_bytes(*length)).ok()?, rest))
}

fn c_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(0, bytes)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}
