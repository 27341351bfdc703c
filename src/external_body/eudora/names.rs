//! Names of files in notes: in UTF-8, or in the charset of the machine that Eudora ran on.

use crate::mime::charset::WINDOWS_1252;

/// What stands for the octets from 0x80 on in MacRoman.
const MACINTOSH: &str = "ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø¿¡¬√ƒ≈∆«»…\u{a0}ÀÃÕŒœ–—“”‘’÷◊ÿŸ⁄€‹›ﬁﬂ‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\u{f8ff}ÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ";

pub fn decoded(name: &[u8], is_of_mac: bool) -> String {
    if let Ok(text) = std::str::from_utf8(name) {
        return text.to_owned();
    }
    let table: Vec<char> = match is_of_mac {
        true => MACINTOSH.chars().collect(),
        false => WINDOWS_1252.chars().collect(),
    };
    let letter = |&octet: &u8| match octet.checked_sub(0x80) {
        Some(index) => table
            .get(usize::from(index))
            .copied()
            .unwrap_or(octet.into()),
        None => octet.into(),
    };
    name.iter().map(letter).collect()
}

/// Whether this may be the name of a file in a folder: it leads nowhere else, and is no device of Windows.
pub fn is_file_name(name: &str) -> bool {
    const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_ascii_lowercase();
    let port = stem
        .strip_prefix("com")
        .or_else(|| stem.strip_prefix("lpt"));
    let is_port =
        port.is_some_and(|digit| digit.len() == 1 && digit.as_bytes()[0].is_ascii_digit());
    let leads_elsewhere = |letter: char| letter == '\\' || letter.is_control();
    let is_dots = matches!(name, "" | "." | "..");
    !is_dots && !is_port && !DEVICES.contains(&stem.as_str()) && !name.contains(leads_elsewhere)
}
