//! Media types of files, determined by the extension of the name or by the file type of a Macintosh, and the difference between
//! text and other files, determined by the bytes.

use super::picture;
use crate::span::front;

/// Media type, extensions, and Macintosh file types. There are no multipart and message types, because files do not have them.
const TYPES: &[(&str, &str, &str)] = &[
    ("audio/aiff", "aif aiff", "AIFF"),
    ("text/plain", "asc c log txt", "TEXT ttro"),
    ("audio/basic", "au", ""),
    ("video/x-msvideo", "avi", ""),
    ("image/bmp", "bmp", "BMPf"),
    ("text/css", "css", ""),
    ("text/csv", "csv", ""),
    ("application/msword", "doc dot", "W6BN W8BN WDBN"),
    (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "docx",
        "",
    ),
    ("application/postscript", "eps ps", "EPSF"),
    ("image/gif", "gif", "GIFf"),
    ("application/gzip", "gz tgz", ""),
    ("application/mac-binhex40", "hqx", ""),
    ("text/html", "htm html", ""),
    ("text/calendar", "ics", ""),
    ("image/jpeg", "jpe jpeg jpg", "JPEG"),
    ("audio/midi", "mid", ""),
    ("video/quicktime", "mov", "MooV"),
    ("audio/mpeg", "mp3", ""),
    ("video/mp4", "mp4", ""),
    ("video/mpeg", "mpeg mpg", "MPEG"),
    ("application/vnd.oasis.opendocument.text", "odt", ""),
    ("application/pkcs7-signature", "p7s", ""),
    ("application/pdf", "pdf", "PDF"),
    ("image/png", "png", "PNGf"),
    ("application/vnd.ms-powerpoint", "pps ppt", "SLD8"),
    (
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "pptx",
        "",
    ),
    ("application/rtf", "rtf", ""),
    ("application/x-stuffit", "sit", "SIT!"),
    ("image/svg+xml", "svg", ""),
    ("text/x-tex", "tex", ""),
    ("image/tiff", "tif tiff", "TIFF"),
    ("text/vcard", "vcf", ""),
    ("audio/wav", "wav", "WAVE"),
    ("video/x-ms-wmv", "wmv", ""),
    ("application/vnd.ms-excel", "xls", "XLS8"),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xlsx",
        "",
    ),
    ("text/xml", "xml", ""),
    ("application/zip", "zip", "ZIP"),
];

/// Returns the media type for the extension of a name.
pub fn of_name(name: &str) -> Option<&'static str> {
    let extension = name
        .rsplit_once('.')
        .unwrap_or_default()
        .1
        .to_ascii_lowercase();
    let found = TYPES.iter().find(|(_, extensions, _)| {
        let mut extensions = extensions.split(' ');
        extensions.any(|it| it == extension)
    });
    found.map(|(essence, ..)| *essence)
}

/// Returns the media type for a Macintosh file type, which has four characters, such as `TEXT` or `PDF `.
pub fn of_macintosh(kind: [u8; 4]) -> Option<&'static str> {
    let kind = kind.strip_suffix(b" ").unwrap_or(&kind);
    let found = TYPES.iter().find(|(.., kinds)| {
        let mut kinds = kinds.split(' ');
        !kind.is_empty() && kinds.any(|it| it.as_bytes() == kind)
    });
    found.map(|(essence, ..)| *essence)
}

/// First bytes of files that are not text, although some of them begin with readable characters.
const SIGNATURES: [&[u8]; 16] = [
    b"%PDF-",
    b"%!PS",
    b"{\\rtf",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"\x1f\x8b",
    b"\x1f\x9d",
    b"BZh",
    b"\xfd7zXZ",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a",
    b"\x28\xb5\x2f\xfd",
    b"\x04\x22\x4d\x18",
    b"\xd0\xcf\x11\xe0",
    b"x\x9f>\x22",
    b"\x7fELF",
];

/// Number of bytes that are examined.
const EXAMINED: usize = 16 << 10;

/// Returns whether a file is not text: a picture, sound, an archive, an office document, a PDF, or any other file with bytes
/// that text does not contain. Text is in any charset, including UTF-16 and ISO-2022, and HTML is text.
pub fn is_binary(octets: &[u8]) -> bool {
    const TAR: &[u8] = b"ustar";
    let start = front(octets, EXAMINED);
    let trimmed = start.trim_ascii_start();
    let is_svg = |kind: &picture::FileType| kind.essence == "image/svg+xml";
    SIGNATURES.iter().any(|it| trimmed.starts_with(it))
        || start.get(257..).is_some_and(|rest| rest.starts_with(TAR))
        || picture::sniff(start).is_some_and(|kind| !is_svg(&kind))
        || picture::sniff_media(start).is_some()
        || picture::sniff_font(start).is_some()
        || has_controls(start)
}

/// Whether the bytes contain NULs, or more control characters than text would. False for UTF-16, in which NULs are
/// normal.
fn has_controls(start: &[u8]) -> bool {
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") || is_utf_16(start) {
        return false;
    }
    // ISO-2022 uses escape, shift-in and shift-out. Old texts contain backspaces and end with Control-Z.
    let is_control = |byte: &&u8| matches!(byte, 1..=7 | 0x10..=0x19 | 0x1c..=0x1f | 0x7f);
    start.contains(&0) || start.iter().filter(is_control).count() * 20 > start.len()
}

/// Returns whether every other byte is a NUL, as in UTF-16 without a byte order mark.
fn is_utf_16(start: &[u8]) -> bool {
    let pairs = front(start, 64).as_chunks::<2>().0;
    let all = |at: usize| pairs.iter().all(|pair| pair[at] == 0 && pair[1 - at] != 0);
    !pairs.is_empty() && (all(0) || all(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_any_charset_is_no_binary_file_and_every_other_format_is_one() {
        let wide = |text: &str| {
            text.encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<u8>>()
        };
        for text in [
            &b""[..],
            b"<html><body>Hi</body></html>\n",
            b"<!-- comment -->\n<p>a fragment",
            b"\xef\xbb\xbf<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'/>",
            b"<svg xmlns='http://www.w3.org/2000/svg'></svg>",
            b"just text, caf\xe9 in Latin-1",
            b"\x1b$B%a\x1b(B and more",
            b"\xcf\xf0\xe8\xe2\xe5\xf2",
            b"Percent %PDF- and PK in the text",
            b"old text\x1a",
            &[b"\xff\xfe", &wide("<html>")[..]].concat(),
            &wide("<html><body>Hi"),
        ] {
            assert!(!is_binary(text), "{}", text.escape_ascii());
        }
        let tar = [&[b'a'; 257][..], b"ustar  "].concat();
        for file in [
            &b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\n"[..],
            b"\r\n%PDF-1.4\n",
            b"%!PS-Adobe-3.0\n",
            b"{\\rtf1 text}",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
            b"GIF89a\x01\0\x01\0",
            b"\xff\xd8\xff\xe0\0\x10JFIF",
            b"PK\x03\x04mimetypeapplication/vnd.oasis",
            b"\x1f\x8b\x08",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
            b"BZh91AY",
            b"ID3\x03\0\0\0",
            b"MZ\x90\0\x03",
            b"text with a NUL \0",
            b"\x01\x02\x03\x04\x05",
            &tar,
        ] {
            assert!(is_binary(file), "{}", file.escape_ascii());
        }
    }
}
