//! Modified UTF-7 (RFC 3501 §5.1.3), in which IMAP servers write the names of folders, also as names of Maildirs.

use base64::Engine as _;
use base64::alphabet::IMAP_MUTF7;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

const BASE64: GeneralPurpose = GeneralPurpose::new(&IMAP_MUTF7, NO_PAD);

/// Encodes a name in modified UTF-7.
pub(crate) fn encoded(name: &str) -> String {
    let mut coded = String::with_capacity(name.len());
    let mut units: Vec<u8> = Vec::new();
    let flush = |units: &mut Vec<u8>, coded: &mut String| {
        if !units.is_empty() {
            coded.push('&');
            coded.push_str(&BASE64.encode(&units));
            coded.push('-');
            units.clear();
        }
    };
    for symbol in name.chars() {
        if matches!(symbol, ' '..='~') {
            flush(&mut units, &mut coded);
            coded.push(symbol);
            if symbol == '&' {
                coded.push('-');
            }
        } else {
            let mut two = [0; 2];
            let of_symbol = symbol.encode_utf16(&mut two).iter();
            units.extend(of_symbol.flat_map(|unit| unit.to_be_bytes()));
        }
    }
    flush(&mut units, &mut coded);
    coded
}

/// Decodes a name from modified UTF-7. Returns `None` if the name is malformed.
pub(crate) fn decoded(name: &str) -> Option<String> {
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, behind)) = rest.split_once('&') {
        plain.push_str(before);
        let (coded, behind) = behind.split_once('-')?;
        if coded.is_empty() {
            plain.push('&');
        } else {
            let octets = BASE64.decode(coded).ok()?;
            let (pairs, []) = octets.as_chunks::<2>() else {
                return None;
            };
            let units = pairs.iter().map(|pair| u16::from_be_bytes(*pair));
            for symbol in char::decode_utf16(units) {
                plain.push(symbol.ok()?);
            }
        }
        rest = behind;
    }
    plain.push_str(rest);
    Some(plain)
}

/// Returns the name of a folder whose directory has the name `name`. Courier and Dovecot write directory names in
/// modified UTF-7. Dovecot can also be set to write UTF-8 (`mailbox_list_utf8`), so a name with other characters than
/// those of modified UTF-7 stays unchanged, and a malformed one too.
///
/// Courier also encodes dots and slashes, so the decoded name can contain any character. A slash or a control character
/// becomes `_`.
pub(crate) fn folder_name(name: &str) -> String {
    let is_encoded = name.contains('&') && name.chars().all(|symbol| matches!(symbol, ' '..='~'));
    let plain = if is_encoded { decoded(name) } else { None };
    let Some(plain) = plain else {
        return name.to_owned();
    };
    let is_unsafe = |symbol: char| symbol == '/' || symbol.is_control();
    plain.replace(is_unsafe, "_")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn folder_names_are_encoded_and_decoded_as_in_the_rfc() {
        for (plain, coded) in [
            ("~peter/mail/台北/日本語", "~peter/mail/&U,BTFw-/&ZeVnLIqe-"),
            ("Entwürfe & mehr", "Entw&APw-rfe &- mehr"),
            ("\u{1f4e7}", "&2D3c5w-"),
            ("", ""),
        ] {
            assert_eq!(encoded(plain), coded);
            assert_eq!(decoded(coded).as_deref(), Some(plain));
        }
        for damaged in ["&", "&U,BTFw", "&****-", "&AA-", "&2D0-"] {
            assert_eq!(decoded(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn directory_name_is_decoded_only_if_it_is_modified_utf7() {
        for (name, expected) in [
            ("Entw&APw-rfe", "Entwürfe"),
            ("R&-D", "R&D"),
            ("&U,BTFw-", "台北"),
            ("2024&AC4-01", "2024.01"),
            ("a&AC8-b", "a_b"),
            ("a&AAoAAA-b", "a__b"),
            // Malformed names.
            ("R&D", "R&D"),
            ("Q&A-list", "Q&A-list"),
            ("&2D0-", "&2D0-"),
            // A name in UTF-8.
            ("Müll &- x", "Müll &- x"),
            ("Plain", "Plain"),
        ] {
            assert_eq!(folder_name(name), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(name in "\\PC*") {
            let coded = encoded(&name);
            prop_assert!(coded.is_ascii());
            prop_assert_eq!(decoded(&coded), Some(name));
        }

        #[test]
        fn folder_name_is_one_component_of_a_path(name in "[^/\\x00-\\x1f]*") {
            let plain = folder_name(&name);
            prop_assert!(!plain.contains(['/', '\0']));
        }
    }
}
