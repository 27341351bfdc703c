//! Detects the type of a file by its bytes: pictures and their sizes, audio and video, and fonts.
//!
//! Pictures are not decoded: a file that starts like a picture counts as one, even if it is incomplete. Some formats
//! begin with only two or four bytes that can also begin a text (`BM`, the zeros of an icon). In these formats, the
//! fields after them are checked as well.
//!
//! Any input is accepted. Time and memory are constant, except that lists of boxes and segments are read once.

use std::borrow::Cow;

use crate::span::{front, rest_or_empty};
use encoding_rs::{Encoding, UTF_8};
use imagesize::ImageType;
use memchr::{memchr, memmem};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileType {
    pub essence: &'static str,
    pub extension: &'static str,
    /// Width and height in pixels, if the file contains them.
    pub size: Option<(u32, u32)>,
}

impl FileType {
    fn new(essence: &'static str, extension: &'static str) -> Self {
        Self {
            essence,
            extension,
            size: None,
        }
    }
}

/// Maximum length of the brand list that is read, in bytes. Brands name the formats of an MP4, HEIC or AVIF file and
/// are at its start.
const BRANDS_LIMIT: usize = 256;

pub fn sniff(octets: &[u8]) -> Option<FileType> {
    let kind = match imagesize::image_type(octets) {
        Ok(ImageType::Gif) if matches!(octets.get(..6), Some(b"GIF87a" | b"GIF89a")) => {
            FileType::new("image/gif", "gif")
        }
        Ok(ImageType::Png) if octets.starts_with(b"\x89PNG\r\n\x1a\n") => {
            FileType::new("image/png", "png")
        }
        Ok(ImageType::Jpeg) => FileType::new("image/jpeg", "jpg"),
        Ok(ImageType::Webp) => FileType::new("image/webp", "webp"),
        Ok(ImageType::Tiff) => FileType::new("image/tiff", "tif"),
        Ok(ImageType::Heif(_)) => brands(octets)?.find_map(of_brand)?,
        Ok(ImageType::Bmp) => return bitmap(octets),
        Ok(ImageType::Ico) if is_icon(octets, 1) => {
            FileType::new("image/vnd.microsoft.icon", "ico")
        }
        _ if is_icon(octets, 2) => return Some(cursor(octets)),
        _ => return of_jpeg_committee(octets).or_else(|| svg(octets)),
    };
    let size = imagesize::blob_size(octets).ok();
    let size =
        size.and_then(|size| sides(size.width.try_into().ok()?, size.height.try_into().ok()?));
    Some(FileType { size, ..kind })
}

/// Detects audio and video: mp4, webm, ogg, mp3, wav.
pub fn sniff_media(octets: &[u8]) -> Option<FileType> {
    if let Some(mut brands) = brands(octets) {
        return match brands.next()? {
            b"qt  " => Some(FileType::new("video/quicktime", "mov")),
            b"M4A " | b"M4B " | b"F4A " => Some(FileType::new("audio/mp4", "m4a")),
            b"mif1" | b"msf1" => None,
            brand if of_brand(brand).is_some() => None,
            // Files with other brands, such as 3GP or only `mp42`, are also video.
            _ => Some(FileType::new("video/mp4", "mp4")),
        };
    }
    match octets {
        [0x1a, 0x45, 0xdf, 0xa3, head @ ..] => {
            // DocType, which contains the word `webm`, is among the first elements of the header (RFC 8794 §11.2.4), so
            // only the first 64 bytes are searched.
            memmem::find(front(head, 64), b"\x42\x82\x84webm")
                .map(|_| FileType::new("video/webm", "webm"))
        }
        [b'O', b'g', b'g', b'S', 0, page @ ..] => {
            // The name of the codec is at offset 28 of the file, after the first page header (RFC 3533 §6). The first five
            // bytes are not in `page`, so the offset there is 23.
            let codec = page.get(23..);
            let is_video = codec.is_some_and(|codec| codec.starts_with(b"\x80theora"));
            Some(if is_video {
                FileType::new("video/ogg", "ogv")
            } else {
                FileType::new("audio/ogg", "ogg")
            })
        }
        riff if riff.starts_with(b"RIFF") && riff.get(8..12) == Some(b"WAVE") => {
            Some(FileType::new("audio/wav", "wav"))
        }
        [b'I', b'D', b'3', version, _, flags, ..] if *version < 0xff && flags & 0x0f == 0 => {
            Some(FileType::new("audio/mpeg", "mp3"))
        }
        // A frame of MPEG layer III with a valid bit rate and sampling rate.
        [0xff, 0xe2 | 0xe3 | 0xf2 | 0xf3 | 0xfa | 0xfb, rates, _, ..]
            if !matches!(rates >> 4, 0 | 15) && (rates >> 2) & 3 != 3 =>
        {
            Some(FileType::new("audio/mpeg", "mp3"))
        }
        _ => None,
    }
}

/// Detects fonts: woff, woff2, ttf, otf.
pub fn sniff_font(octets: &[u8]) -> Option<FileType> {
    // A font starts with a table directory: the number of tables, three other numbers, and the name of the first table
    // (OpenType, `otff`). The number must be positive and the name printable.
    let has_tables = || {
        let tables = matches!(octets.get(4..6), Some([0, count]) if *count > 0);
        let is_printable = |name: &[u8]| name.iter().all(|byte| matches!(byte, b' '..=b'~'));
        tables && octets.get(12..16).is_some_and(is_printable)
    };
    match octets.get(..4)? {
        b"wOFF" => Some(FileType::new("font/woff", "woff")),
        b"wOF2" => Some(FileType::new("font/woff2", "woff2")),
        b"OTTO" if has_tables() => Some(FileType::new("font/otf", "otf")),
        [0, 1, 0, 0] | b"true" if has_tables() => Some(FileType::new("font/ttf", "ttf")),
        _ => None,
    }
}

/// Returns whether the bytes start like a known binary format: a picture, audio, video, a font, a document or an
/// archive (WHATWG MIME Sniffing, §6). Text never does.
#[cfg_attr(not(feature = "http"), allow(dead_code))]
pub fn is_recognised(octets: &[u8]) -> bool {
    // gzip is not in this list. A server can use gzip as content coding under a name that is not known. Content that
    // starts like gzip is then probably still compressed, and must not be taken for a file.
    const OTHERS: [&[u8]; 5] = [
        b"%PDF-",
        b"%!PS-Adobe-",
        b"PK\x03\x04",
        b"Rar!\x1a\x07",
        b"7z\xbc\xaf\x27\x1c",
    ];
    OTHERS.iter().any(|magic| octets.starts_with(magic))
        || sniff(octets).is_some()
        || sniff_font(octets).is_some()
        || sniff_media(octets).is_some()
}

/// Detects JPEG XL (ISO 18181-2) and JPEG 2000 (ISO 15444-1), in a container or as a bare codestream. Their sizes are not read.
fn of_jpeg_committee(octets: &[u8]) -> Option<FileType> {
    // The codestream of JPEG XL has only two bytes of signature, which a text could begin with, too.
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    let is_codestream = |rest: &[u8]| rest.len() > 8 && !front(rest, 64).iter().all(is_text);
    const SIGNATURE: &[u8] = b"\r\n\x87\n";
    match octets {
        [0xff, b'\n', rest @ ..] if is_codestream(rest) => Some(FileType::new("image/jxl", "jxl")),
        [0xff, 0x4f, 0xff, 0x51, ..] => Some(FileType::new("image/j2c", "j2c")),
        [0, 0, 0, 12, name @ ..] if name.get(4..8) == Some(SIGNATURE) => match name.get(..4)? {
            b"JXL " => Some(FileType::new("image/jxl", "jxl")),
            b"jP  " => Some(match name.get(16..20) {
                Some(b"jpx ") => FileType::new("image/jpx", "jpx"),
                Some(b"jpm ") => FileType::new("image/jpm", "jpm"),
                _ => FileType::new("image/jp2", "jp2"),
            }),
            _ => None,
        },
        _ => None,
    }
}

/// Detects a metafile of Windows: WMF with and without the placeable header ([MS-WMF] §2.3.2), and EMF ([MS-EMF] §2.3.4.2).
pub fn sniff_metafile(octets: &[u8]) -> Option<&'static str> {
    match octets {
        [0xd7, 0xcd, 0xc6, 0x9a, ..] => Some("WMF"),
        // WMF header: type (memory or disk), its length of nine words, and the version of Windows.
        [1 | 2, 0, 9, 0, 0, 1 | 3, ..] => Some("WMF"),
        [1, 0, 0, 0, ..] if octets.get(40..44) == Some(b" EMF") => Some("EMF"),
        _ => None,
    }
}

/// Returns the size if both sides are positive. In some formats, 0 means that the size is elsewhere: a GIF can store it
/// in its frames.
fn sides(width: u32, height: u32) -> Option<(u32, u32)> {
    (width > 0 && height > 0).then_some((width, height))
}

/// Returns the picture format for a brand of an ISO base media file (ISO 14496-12 §4.3).
fn of_brand(brand: &[u8]) -> Option<FileType> {
    match brand {
        b"avif" | b"avis" => Some(FileType::new("image/avif", "avif")),
        b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx" => {
            Some(FileType::new("image/heic", "heic"))
        }
        _ => None,
    }
}

fn brands(octets: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let declared = octets.first_chunk().copied().map(u32::from_be_bytes)?;
    let size = (declared as usize).min(BRANDS_LIMIT).min(octets.len());
    let file_type = octets.get(4..size)?.strip_prefix(b"ftyp")?;
    let major = file_type.get(..4)?;
    // The compatible brands follow the major brand and its version, which have four bytes each. A short header has none.
    let compatible = rest_or_empty(file_type, 8).chunks_exact(4);
    Some(std::iter::once(major).chain(compatible))
}

/// Detects a bitmap and its size. The oldest header stores width and height in two bytes each, all others in signed
/// numbers of four bytes. A negative height means that the rows are stored from top to bottom.
fn bitmap(octets: &[u8]) -> Option<FileType> {
    let number = |at: usize| {
        let octets = octets.get(at..)?.first_chunk().copied()?;
        Some(u32::from_le_bytes(octets))
    };
    let size = match number(14)? {
        12 => number(18).and_then(|both| sides(both & 0xffff, both >> 16)),
        // A header of OS/2 2.x can have any length in this range, because it can end after any of its fields.
        16..=64 | 108 | 124 => number(18)
            .zip(number(22))
            .and_then(|(width, height)| sides(width, height.cast_signed().unsigned_abs())),
        _ => return None,
    };
    Some(FileType {
        size,
        ..FileType::new("image/bmp", "bmp")
    })
}

/// Returns whether the file is an icon (`kind` 1) or a cursor (`kind` 2). Both begin with a list that has 16 bytes for
/// each picture. The bytes before the list can also begin other files, so the first entry is checked: its picture must
/// not be empty, and must be stored after the list.
fn is_icon(octets: &[u8], kind: u8) -> bool {
    let [0, 0, found, 0, count, more, ..] = octets else {
        return false;
    };
    let number = |at: usize| {
        let octets = octets.get(at..)?.first_chunk().copied()?;
        Some(u32::from_le_bytes(octets))
    };
    let list = 6 + 16 * u32::from(u16::from_le_bytes([*count, *more]));
    *found == kind
        && list > 6
        && number(14).is_some_and(|length| length > 0)
        && number(18).is_some_and(|start| start >= list)
}

/// Returns the type of a cursor with the size of its first picture. A width or height of 256 is stored as 0.
fn cursor(octets: &[u8]) -> FileType {
    let side = |at: usize| match octets.get(at).copied().unwrap_or(0) {
        0 => 256,
        side => u32::from(side),
    };
    FileType {
        size: sides(side(6), side(7)),
        ..FileType::new("image/x-icon", "cur")
    }
}

/// Detects SVG that is not compressed. Before `<svg` or `<prefix:svg`, only a BOM, white space, an XML declaration,
/// comments, processing instructions and a document type are allowed.
fn svg(octets: &[u8]) -> Option<FileType> {
    // UTF-16 is decoded only if it can be SVG, that is, if it begins with `<` or white space. Other files are not
    // decoded.
    let wide = match octets {
        [0xff, 0xfe, b'<' | b'\t' | b'\n' | b'\r' | b' ', 0, ..]
        | [0xfe, 0xff, 0, b'<' | b'\t' | b'\n' | b'\r' | b' ', ..] => in_utf_8(octets)?,
        _ => Cow::Borrowed(octets),
    };
    let octets = &*wide;
    let mut rest = octets.strip_prefix(b"\xef\xbb\xbf").unwrap_or(octets);
    let attributes = loop {
        rest = rest.trim_ascii_start();
        rest = if let Some(comment) = rest.strip_prefix(b"<!--") {
            behind(comment, b"-->")?
        } else if let Some(instruction) = rest.strip_prefix(b"<?") {
            behind(instruction, b"?>")?
        } else if let Some(declaration) = rest.strip_prefix(b"<!DOCTYPE") {
            behind_document_type(declaration)?
        } else {
            break root(rest)?;
        };
    };
    let side = |name| plain_number(attribute(attributes, name)?);
    let size = side(b"width")
        .zip(side(b"height"))
        .and_then(|(width, height)| sides(width, height));
    Some(FileType {
        size,
        ..FileType::new("image/svg+xml", "svg")
    })
}

/// Returns the text after the name of the root element, or `None` if the element is not `svg`. The name can have a
/// prefix (`x:svg`), which the element must then declare as a namespace.
fn root(text: &[u8]) -> Option<&[u8]> {
    let tag = text.strip_prefix(b"<")?;
    let ends = |byte: &u8| b" \t\r\n/>".contains(byte);
    let (name, attributes) = tag.split_at(tag.iter().position(ends)?);
    if name == b"svg" {
        return Some(attributes);
    }
    let prefix = name.strip_suffix(b":svg")?;
    let is_prefix = !prefix.is_empty() && !prefix.contains(&b':');
    attribute(attributes, &[b"xmlns:", prefix].concat()).filter(|_| is_prefix)?;
    Some(attributes)
}

/// Converts UTF-16 with a BOM to UTF-8, and returns all other text unchanged. Returns `None` if the UTF-16 is malformed.
pub fn in_utf_8(octets: &[u8]) -> Option<Cow<'_, [u8]>> {
    match Encoding::for_bom(octets) {
        Some((encoding, length)) if encoding != UTF_8 => {
            let content = octets.get(length..)?;
            let text = encoding.decode_without_bom_handling_and_without_replacement(content)?;
            Some(text.into_owned().into_bytes().into())
        }
        _ => Some(Cow::Borrowed(octets)),
    }
}

fn behind<'a>(text: &'a [u8], end: &[u8]) -> Option<&'a [u8]> {
    text.get(memmem::find(text, end)? + end.len()..)
}

/// Returns the text after a document type, which can contain declarations in brackets (the internal subset).
fn behind_document_type(text: &[u8]) -> Option<&[u8]> {
    let end = memchr(b'>', text)?;
    match memchr(b'[', text.get(..end)?) {
        None => text.get(end + 1..),
        Some(bracket) => {
            // The subset ends at the first `]` that is followed by `>`. Values of entities and comments can contain
            // other `]`.
            let subset = text.get(bracket..)?;
            memchr::memchr_iter(b']', subset).find_map(|at| {
                let after = subset.get(at + 1..)?;
                after.trim_ascii_start().strip_prefix(b">")
            })
        }
    }
}

fn attribute<'a>(tag: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let mut rest = tag;
    loop {
        rest = rest.trim_ascii_start();
        let equals = rest.iter().position(|byte| matches!(byte, b'=' | b'>'))?;
        let (name, value) = rest.split_at(equals);
        let value = value.strip_prefix(b"=")?.trim_ascii_start();
        let (&quote, value) = value.split_first()?;
        if !matches!(quote, b'"' | b'\'') {
            return None;
        }
        let (value, behind) = value.split_at(memchr(quote, value)?);
        if name.trim_ascii_end() == wanted {
            return Some(value);
        }
        rest = behind.get(1..)?;
    }
}

/// Parses a number of pixels, without a unit or with `px`, and rounds it up.
fn plain_number(value: &[u8]) -> Option<u32> {
    let value = value.trim_ascii();
    let number = value.strip_suffix(b"px").unwrap_or(value);
    let is_number = number.iter().all(|byte| b"0123456789.".contains(byte));
    let number: f64 = std::str::from_utf8(number).ok()?.parse().ok()?;
    let fits = is_number && number <= f64::from(u32::MAX);
    fits.then_some(number.ceil() as u32)
}
