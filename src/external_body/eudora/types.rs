//! What a file is, by the end of its name, or by what the Mac noted of it. Types that hold parts are none of a file's.

/// By extension, in lower case.
const EXTENSIONS: &[(&str, &str)] = &[
    ("aif", "audio/aiff"),
    ("aiff", "audio/aiff"),
    ("asc", "text/plain"),
    ("au", "audio/basic"),
    ("avi", "video/x-msvideo"),
    ("bmp", "image/bmp"),
    ("c", "text/plain"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("doc", "application/msword"),
    (
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    ("eps", "application/postscript"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("hqx", "application/mac-binhex40"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ics", "text/calendar"),
    ("jpe", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("log", "text/plain"),
    ("mid", "audio/midi"),
    ("mov", "video/quicktime"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("mpeg", "video/mpeg"),
    ("mpg", "video/mpeg"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("p7s", "application/pkcs7-signature"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("ppt", "application/vnd.ms-powerpoint"),
    (
        "pptx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    ("ps", "application/postscript"),
    ("rtf", "application/rtf"),
    ("sit", "application/x-stuffit"),
    ("svg", "image/svg+xml"),
    ("tex", "text/x-tex"),
    ("tgz", "application/gzip"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("txt", "text/plain"),
    ("vcf", "text/vcard"),
    ("wav", "audio/wav"),
    ("wmv", "video/x-ms-wmv"),
    ("xls", "application/vnd.ms-excel"),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    ("xml", "text/xml"),
    ("zip", "application/zip"),
];

/// By the type that the Mac noted.
const MACINTOSH: &[(&[u8; 4], &str)] = &[
    (b"AIFF", "audio/aiff"),
    (b"BMPf", "image/bmp"),
    (b"EPSF", "application/postscript"),
    (b"GIFf", "image/gif"),
    (b"JPEG", "image/jpeg"),
    (b"MPEG", "video/mpeg"),
    (b"MooV", "video/quicktime"),
    (b"PDF ", "application/pdf"),
    (b"PNGf", "image/png"),
    (b"SIT!", "application/x-stuffit"),
    (b"SLD8", "application/vnd.ms-powerpoint"),
    (b"TEXT", "text/plain"),
    (b"TIFF", "image/tiff"),
    (b"ttro", "text/plain"),
    (b"W6BN", "application/msword"),
    (b"W8BN", "application/msword"),
    (b"WAVE", "audio/wav"),
    (b"WDBN", "application/msword"),
    (b"XLS8", "application/vnd.ms-excel"),
    (b"ZIP ", "application/zip"),
];

pub fn of_extension(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    let extension = extension.to_ascii_lowercase();
    let found = EXTENSIONS.iter().find(|(known, _)| *known == extension);
    found.map(|(_, essence)| *essence)
}

pub fn of_macintosh(kind: [u8; 4]) -> Option<&'static str> {
    let found = MACINTOSH.iter().find(|(known, _)| **known == kind);
    found.map(|(_, essence)| *essence)
}
