//! Names of folders: how they are displayed, their bytes on the wire, and matching with the wildcards of LIST.

use crate::mailbox::modified_utf7::decoded;

/// Returns the name of a folder for display. A name that is not modified UTF-7 is returned unchanged. Bytes that are not UTF-8
/// are decoded as windows-1252, the encoding that servers with such names most likely use.
pub(crate) fn shown(name: &str) -> String {
    let name = decoded(name).unwrap_or_else(|| name.to_owned());
    if !name.contains(is_raw) {
        return name;
    }
    let byte = |symbol: char| u8::try_from(u32::from(symbol) - RAW).unwrap_or(b'?');
    let mut plain = String::with_capacity(name.len());
    for symbol in name.chars() {
        if is_raw(symbol) {
            plain.push_str(
                &encoding_rs::WINDOWS_1252
                    .decode_without_bom_handling(&[byte(symbol)])
                    .0,
            )
        } else {
            plain.push(symbol)
        }
    }
    plain
}

/// Distance between a byte that is not valid UTF-8 and the private use character (U+F780 to U+F7FF) that represents
/// this byte in the name of a folder.
const RAW: u32 = 0xf700;

fn is_raw(symbol: char) -> bool {
    matches!(symbol, '\u{f780}'..='\u{f7ff}')
}

/// Converts the name of a folder from the bytes that the server sent. Bytes that are not UTF-8 become private use characters,
/// so that [`to_wire`] returns the same bytes. This is necessary because a server finds a folder only by its exact name.
pub(crate) fn from_wire(bytes: &[u8]) -> String {
    let mut name = String::with_capacity(bytes.len());
    let push_raw = |name: &mut String, bytes: &[u8]| {
        name.extend(
            bytes
                .iter()
                .filter_map(|byte| char::from_u32(RAW + u32::from(*byte))),
        );
    };
    for chunk in bytes.utf8_chunks() {
        for symbol in chunk.valid().chars() {
            if is_raw(symbol) {
                // The name itself contains one of the private use characters that represent bytes. Each byte of its
                // UTF-8 form is represented separately, because [`to_wire`] would turn the single character into a
                // single byte.
                push_raw(&mut name, symbol.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                name.push(symbol);
            }
        }
        push_raw(&mut name, chunk.invalid());
    }
    name
}

/// Converts the name of a folder to the bytes for the server. Private use characters from [`from_wire`] become the
/// original bytes again, and all other characters become UTF-8.
pub(crate) fn to_wire(name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len());
    for symbol in name.chars() {
        match u8::try_from(u32::from(symbol).wrapping_sub(RAW)) {
            Ok(byte) if is_raw(symbol) => bytes.push(byte),
            _ => bytes.extend_from_slice(symbol.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// Name of the folder that each account has. Servers may spell it with other letters, such as `Inbox` (RFC 3501 §5.1).
pub(super) const INBOX: &str = "INBOX";

pub(super) fn is_inbox(name: &str) -> bool {
    name.eq_ignore_ascii_case(INBOX)
}

/// Returns whether a name matches a pattern of LIST: `*` matches any characters, and `%` matches any characters except the
/// delimiter. `INBOX` is matched without regard to case.
pub(crate) fn fits(pattern: &str, name: &str, delimiter: Option<char>) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    spread(&mut reached, &pattern);
    let is_inbox = is_inbox(name);
    for symbol in name.chars() {
        // Positions in the pattern that can be reached after this character, as one flag for each position. A wildcard
        // matches texts of any length, so several positions are possible.
        let mut next = vec![false; pattern.len() + 1];
        for (at, wanted) in pattern.iter().enumerate() {
            if !reached[at] {
                continue;
            }
            match wanted {
                '*' => next[at] = true,
                '%' => next[at] |= Some(symbol) != delimiter,
                wanted => {
                    let is_same =
                        *wanted == symbol || is_inbox && wanted.eq_ignore_ascii_case(&symbol);
                    next[at + 1] |= is_same;
                }
            }
        }
        spread(&mut next, &pattern);
        reached = next;
    }
    reached.last().copied().unwrap_or_default()
}

/// Marks the position after each reached wildcard as reached too, because a wildcard also matches an empty text.
fn spread(reached: &mut [bool], pattern: &[char]) {
    for (at, symbol) in pattern.iter().enumerate() {
        if reached[at] && matches!(symbol, '*' | '%') {
            reached[at + 1] = true;
        }
    }
}

/// Returns whether a pattern typed by the user matches a folder. The pattern can be in UTF-8 or in the spelling of the server,
/// and can use the delimiter of the server or slashes.
pub(crate) fn means(typed: &str, name: &str, delimiter: Option<char>) -> bool {
    let plain = shown(name);
    let with_slashes = |name: &str| match delimiter {
        Some(delimiter) if delimiter != '/' && !name.contains('/') => {
            Some(name.replace(delimiter, "/"))
        }
        _ => None,
    };
    fits(typed, &plain, delimiter)
        || fits(typed, name, delimiter)
        || with_slashes(&plain).is_some_and(|name| fits(typed, &name, Some('/')))
        || with_slashes(name).is_some_and(|name| fits(typed, &name, Some('/')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn folder_patterns_match_as_in_the_list_command() {
        for (pattern, name, delimiter, is_meant) in [
            ("*", "a/b", '/', true),
            ("%", "a/b", '/', false),
            ("%/%", "a/b", '/', true),
            ("a*", "a/b/c", '/', true),
            ("*c", "a/b/c", '/', true),
            ("a%c", "a/b/c", '/', false),
            ("inbox", "INBOX", '/', true),
            ("Archive", "archive", '/', false),
            ("Archive/2020", "Archive.2020", '.', true),
            ("Archive.2020", "Archive.2020", '.', true),
            ("Archive/%", "Archive.2020.x", '.', false),
            ("Entwürfe", "Entw&APw-rfe", '/', true),
            ("Entw&APw-rfe", "Entw&APw-rfe", '/', true),
            ("", "a", '/', false),
        ] {
            assert_eq!(
                means(pattern, name, Some(delimiter)),
                is_meant,
                "{pattern} {name}"
            );
        }
        let long = "a".repeat(5000);
        assert!(!fits(&"*a".repeat(200), &format!("{long}b"), None));
    }

    proptest! {
        #[test]
        fn bytes_of_a_name_come_back_from_its_text(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xef), Just(0x9e), Just(0x80)], 0..20),
        ) {
            let name = from_wire(&bytes);
            prop_assert_eq!(to_wire(&name), bytes);
            let _ = shown(&name);
        }

        #[test]
        fn any_folder_name_and_list_pattern_are_handled_without_a_panic(name in ".*", pattern in "[a*%&-]{0,9}") {
            let _ = decoded(&name);
            let _ = means(&pattern, &name, Some('a'));
        }
    }
}
