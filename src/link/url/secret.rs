//! What in a URL may be a key: long words that nobody can guess, and parameters with such names.

use std::borrow::Cow;

use super::masked;

/// A run of so many octets with both letters and digits is a token.
const MIXED: usize = 16;
/// Digits alone: more than a time has with its fractions.
const DIGITS: usize = 20;
const LETTERS: usize = 40;
/// With hyphens, where most of it is not words, names or numbers.
const HYPHENED: usize = 32;

const IN_NAMES: [&str; 8] = [
    "apikey",
    "api_key",
    "credential",
    "passw",
    "secret",
    "session",
    "signature",
    "token",
];

pub fn without_secrets(url: &str) -> Cow<'_, str> {
    let url = masked(url);
    let Some((front, rest)) = url.split_once('?') else {
        return url;
    };
    let end = rest.find('#').filter(|_| !front.contains('#'));
    let (query, behind) = rest.split_at(end.unwrap_or(rest.len()));
    let mut shown = format!("{front}?");
    for parameter in query.split_inclusive(['&', ';']) {
        let value_end = parameter.trim_end_matches(['&', ';']).len();
        let (parameter, divider) = parameter.split_at(value_end);
        let (name, value) = match parameter.split_once('=') {
            Some((name, value)) => (Some(name), value),
            None => (None, parameter),
        };
        let is_secret =
            !value.is_empty() && (name.is_some_and(is_called_secret) || holds_token(value));
        match (is_secret, name) {
            (true, Some(name)) => shown.extend([name, "=***"]),
            (true, None) => shown.push_str("***"),
            (false, _) => shown.push_str(parameter),
        }
        shown.push_str(divider);
    }
    shown.push_str(behind);
    shown.into()
}

fn is_called_secret(name: &str) -> bool {
    match &*name.to_ascii_lowercase().replace('-', "_") {
        "auth" | "authorization" | "code" | "key" | "pass" | "pwd" | "sid" | "sig" => true,
        name => IN_NAMES.iter().any(|word| name.contains(word)),
    }
}

pub fn holds_token(url: &str) -> bool {
    let is_word = |octet: &u8| octet.is_ascii_alphanumeric();
    // An escape in base64 is a hyphen in base64url.
    let is_piece = |octet: &u8| is_word(octet) || b"-_%".contains(octet);
    let is_token = |word: &[u8]| {
        let digits = word.iter().filter(|octet| octet.is_ascii_digit()).count();
        let is_mixed = (1..word.len()).contains(&digits);
        word.len() >= LETTERS || digits >= DIGITS || (is_mixed && word.len() >= MIXED)
    };
    let octets = url.as_bytes();
    octets.split(|octet| !is_word(octet)).any(is_token)
        || octets
            .split(|octet| !is_piece(octet))
            .filter(|piece| piece.len() >= HYPHENED)
            .any(|piece| {
                let words = || piece.split(|octet| !is_word(octet));
                let is_uuid = words().map(<[u8]>::len).eq([8, 4, 4, 4, 12]);
                let odd: usize = words().filter(|word| is_odd(word)).map(<[u8]>::len).sum();
                is_uuid || odd * 2 > piece.len()
            })
}

/// Neither a number nor a word that people write: `a1`, `kL`.
fn is_odd(word: &[u8]) -> bool {
    let digits = word.iter().filter(|octet| octet.is_ascii_digit()).count();
    let rises =
        |pair: &[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
    (1..word.len()).contains(&digits) || word.windows(2).any(rises)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_nothing_else() {
        let rows = [
            (
                "http://a.example/b?c=d&e=f;g",
                "http://a.example/b?c=d&e=f;g",
            ),
            (
                "http://u:p@a.example/?key=1&author=me",
                "http://u:***@a.example/?key=***&author=me",
            ),
            (
                "http://a.example/?X-Amz-Signature=ab&x=&Token=",
                "http://a.example/?X-Amz-Signature=***&x=&Token=",
            ),
            (
                "http://a.example/?9e107d9d372bb6826bd81d3542a419d6#f",
                "http://a.example/?***#f",
            ),
            (
                "http://a.example/?id=f47ac10b-58cc-4372-a567-0e02b2c3d479&",
                "http://a.example/?id=***&",
            ),
            ("http://a.example/#?key=1", "http://a.example/#?key=***"),
            ("http://a.example/?", "http://a.example/?"),
        ];
        for (url, shown) in rows {
            assert_eq!(without_secrets(url), shown);
        }
    }
}
