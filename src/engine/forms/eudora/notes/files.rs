//! Names of files, in UTF-8 or in the charset of the computer on which Eudora ran.

use encoding_rs::{MACINTOSH, WINDOWS_1252};

use crate::platform::is_device;

pub(crate) fn decoded(name: &[u8], is_of_mac: bool) -> String {
    if let Ok(text) = std::str::from_utf8(name) {
        return text.to_owned();
    }
    let charset = if is_of_mac { MACINTOSH } else { WINDOWS_1252 };
    let (decoded, _) = charset.decode_without_bom_handling(name);
    decoded.into_owned()
}

/// Returns true if the name is safe: it cannot lead to another directory, and it is not a device of Windows.
pub(crate) fn is_file_name(name: &str) -> bool {
    let leads_elsewhere = |letter: char| letter == '\\' || letter.is_control();
    let is_dots = matches!(name, "" | "." | "..");
    !is_dots && !is_device(name) && !name.contains(leads_elsewhere)
}
