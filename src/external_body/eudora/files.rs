//! Names of files in UTF-8 or in the charset of the machine that Eudora ran on; and what the files are.

use encoding_rs::{MACINTOSH, WINDOWS_1252};

use crate::platform::is_device;

/// By the ends of names, or by the types that the Mac noted. Types that hold parts are none of a file's.
const TYPES: &[(&str, &str, &str)] = &[
    ("audio/aiff", "aif aiff", "AIFF"),
    ("text/plain", "asc c log txt", "TEXT ttro"),
    ("audio/basic", "au", ""),
    ("video/x-msvideo", "avi", ""),
    ("image/bmp", "bmp", "BMPf"),
    ("text/css", "css", ""),
    ("text/csv", "csv", ""),
    ("application/msword", "doc", "W6BN W8BN WDBN"),
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
    ("application/vnd.ms-powerpoint", "ppt", "SLD8"),
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

pub fn type_of_file(name: &str, macintosh: Option<[u8; 4]>) -> Option<&'static str> {
    let extension = name.rsplit_once('.').unwrap_or_default().1;
    let extension = extension.to_ascii_lowercase();
    let kind = macintosh.unwrap_or_default();
    let kind = kind.strip_suffix(b" ").unwrap_or(&kind);
    let is_named = |(_, extensions, _): &&(&str, &str, &str)| {
        let mut extensions = extensions.split(' ');
        extensions.any(|it| it == extension)
    };
    let is_noted = |(.., kinds): &&(&str, &str, &str)| {
        let mut kinds = kinds.split(' ');
        kinds.any(|it| it.as_bytes() == kind)
    };
    let named = TYPES.iter().find(is_named);
    let found = named.or_else(|| TYPES.iter().find(is_noted));
    found.map(|(essence, ..)| *essence)
}

pub fn decoded(name: &[u8], is_of_mac: bool) -> String {
    if let Ok(text) = std::str::from_utf8(name) {
        return text.to_owned();
    }
    let charset = if is_of_mac { MACINTOSH } else { WINDOWS_1252 };
    let (decoded, _) = charset.decode_without_bom_handling(name);
    decoded.into_owned()
}

/// The name leads nowhere else, and is no device of Windows.
pub fn is_file_name(name: &str) -> bool {
    let leads_elsewhere = |letter: char| letter == '\\' || letter.is_control();
    let is_dots = matches!(name, "" | "." | "..");
    !is_dots && !is_device(name) && !name.contains(leads_elsewhere)
}
