//! Media types of files, determined by the extension of the name or by the file type of a Macintosh.

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
