//! Cleans URLs from mail, and removes secrets from URLs before they are reported: passwords, parameters with names
//! such as `token`, and long random words that may be keys.

use std::borrow::Cow;
use std::ops::Range;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode_byte};

/// Returns the URL in the value of a MIME parameter. *All* white space (SPACE, TAB, CR, LF, VT and FF) is removed,
/// because senders fold a long URL into words of at most 40 characters (RFC 2017 §3.1). Surrounding `<>` and `URL:` are
/// removed as in [`unwrapped`]. Percent-escapes are kept.
pub fn from_parameter(value: &str) -> Cow<'_, str> {
    if !value.contains(is_blank) {
        return Cow::Borrowed(unwrapped(value));
    }
    let joined: String = value.split(is_blank).collect();
    match unwrapped(&joined) {
        kept if kept.len() == joined.len() => Cow::Owned(joined),
        kept => Cow::Owned(kept.to_owned()),
    }
}

/// Removes `<>` around a URL and `URL:` before it (in any case), in either order: `<URL:x>`, `URL:<x>`
/// (draft-fielding-url-syntax-05, appendix E). Each is removed at most once. A bracket without its counterpart is kept.
pub fn unwrapped(url: &str) -> &str {
    let outside = without_brackets(url);
    match outside.split_at_checked(4) {
        Some((prefix, _)) if !prefix.eq_ignore_ascii_case("URL:") => outside,
        Some((_, inside)) if outside.len() == url.len() => without_brackets(inside),
        Some((_, inside)) => inside,
        None => outside,
    }
}

fn without_brackets(text: &str) -> &str {
    text.strip_prefix('<')
        .and_then(|text| text.strip_suffix('>'))
        .unwrap_or(text)
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

pub(crate) const fn all_but(kept: &[u8]) -> AsciiSet {
    let mut set = NON_ALPHANUMERIC.add(b' ');
    let mut at = 0;
    while at < kept.len() {
        set = set.remove(kept[at]);
        at += 1;
    }
    set
}

/// Percent-encodes spaces and control characters, as browsers do in requests.
pub(crate) fn with_blanks_escaped(url: &str) -> Cow<'_, str> {
    let is_escaped = |symbol: char| symbol <= ' ' || symbol == '\x7f';
    if !url.contains(is_escaped) {
        return Cow::Borrowed(url);
    }
    let mut text = String::with_capacity(url.len() + 32);
    for symbol in url.chars() {
        match u8::try_from(symbol) {
            Ok(byte) if is_escaped(symbol) => text.push_str(percent_encode_byte(byte)),
            _ => text.push(symbol),
        }
    }
    Cow::Owned(text)
}

pub fn without_fragment(url: &str) -> &str {
    url.find('#').map_or(url, |at| &url[..at])
}

/// Replaces each password in a URL with `***`. If it is not clear where a password ends, more text is replaced.
///
/// A password can be after each host-like text, also inside a path or a query (`view-source:http://u:p@h`), and after
/// backslashes or missing slashes (`http:u:p@h`). It extends to an `@`, even if it contains an unescaped `/`, `?` or
/// `#`. An empty password and a user name without a password are kept. A text without `//` that does not begin with
/// `http:`, `https:`, `ftp:` or a similar scheme has no host, so `mailto:a:b@c` is not changed.
pub fn masked(url: &str) -> Cow<'_, str> {
    let Some(last_at) = url.rfind('@') else {
        return Cow::Borrowed(url);
    };
    let mut shown = String::new();
    let (mut from, mut copied) = (0, 0);
    while let Some(authority) = next_authority(url, from).filter(|start| *start < last_at) {
        let rest = &url[authority..];
        let end = authority + rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let password = password_in(url, authority..end, last_at).unwrap_or(end..end);
        from = password.end;
        if !password.is_empty() {
            shown.push_str(&url[copied..password.start]);
            shown.push_str("***");
            copied = password.end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(url);
    }
    shown.push_str(&url[copied..]);
    Cow::Owned(shown)
}

fn password_in(url: &str, authority: Range<usize>, last_at: usize) -> Option<Range<usize>> {
    let text = &url[authority.clone()];
    let first_colon = text.find(':')?;
    if let Some(at) = text.rfind('@').filter(|at| *at > first_colon) {
        return Some(authority.start + first_colon + 1..authority.start + at);
    }
    // No `@` follows the colon before the next `/`, `?` or `#`. The text after the colon is either a port, or the start
    // of a password that contains one of these characters.
    let start = authority.start + first_colon + 1;
    let port = &url[start..authority.end];
    let is_host = text.contains('[') || port.bytes().all(|byte| byte.is_ascii_digit());
    (!is_host && start <= last_at).then_some(start..last_at)
}

fn next_authority(url: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += url.get(at..)?.find(['/', '\\', ':'])?;
        let colon = usize::from(url[at..].starts_with(':'));
        // URL parsers ignore TAB, CR and LF between slashes, so they must not hide a host.
        let rest = url[at + colon..].trim_start_matches(['/', '\\', '\t', '\n', '\r']);
        let behind = url.len() - rest.len();
        let slashes = url[at..behind]
            .bytes()
            .filter(|byte| matches!(byte, b'/' | b'\\'));
        if slashes.count() >= 2 || (colon == 1 && ends_in_network_scheme(&url[..at])) {
            return Some(behind);
        }
        at = behind;
    }
}

fn ends_in_network_scheme(text: &str) -> bool {
    let letters = text
        .bytes()
        .rev()
        .map(|byte| byte.to_ascii_lowercase())
        .filter(|byte| !matches!(byte, b'\t' | b'\n' | b'\r'));
    ["http", "https", "ftp", "ftps", "sftp", "ws", "wss"]
        .iter()
        .any(|name| letters.clone().take(name.len()).eq(name.bytes().rev()))
}

/// Minimum length, in bytes, of a word with letters and digits that counts as a token. A token is a random key, which
/// may be secret and is not shown in reports.
const MIXED: usize = 16;
/// Minimum number of digits of a word that counts as a token. A time with fractions of a second has fewer digits and is
/// not secret.
const DIGITS: usize = 20;
const LETTERS: usize = 40;
/// Minimum length, in bytes, of a text with hyphens that counts as a token if more than half of it looks random.
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
    // A piece can contain `-`, `_` and `%`, and all other special characters separate pieces. `%` belongs to a piece
    // because a percent-encoded base64 key contains escapes such as `%2B`.
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

/// Returns whether the word looks random. It does if it mixes letters and digits (`a1`), or if an upper-case letter
/// follows a lower-case one (`kL`).
fn is_odd(word: &[u8]) -> bool {
    let digits = word.iter().filter(|octet| octet.is_ascii_digit()).count();
    let rises =
        |pair: &[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
    (1..word.len()).contains(&digits) || word.windows(2).any(rises)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mime::charset::with_octets_escaped;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_spelling_lets_a_password_through(
            scheme in "(http|https|ftp|HTTP|ht\ttp):",
            slashes in "[/\\\\\t]{0,4}",
            user in "[a-z@]{0,3}",
            // Text in the middle of the password. The `@` before the host ends the password only if the text does not
            // contain both an `@` and one of `/`, `?` and `#`. Otherwise, every URL parser would end it inside the text.
            filler in "[a-z@:\\\\é]{0,3}|[a-z:/?#é]{0,3}",
        ) {
            // The end of the password is in upper case, so that no other part of the URL contains it.
            let url = format!("{scheme}{slashes}{user}:sec{filler}RET@host/p");
            prop_assert!(!masked(&url).contains("RET"), "{} from {}", masked(&url), url);
            prop_assert!(masked(&url).ends_with("@host/p"));
        }

        #[test]
        fn cleaning_never_panics_and_never_grows(text in "[<>URLurl:/ \\\\@#?\ta]{0,20}") {
            prop_assert!(from_parameter(&text).len() <= text.len());
            prop_assert!(masked(&text).len() <= 4 * text.len() + 4);
        }
    }

    #[test]
    fn url_in_a_parameter_loses_blanks_brackets_and_the_url_prefix() {
        for value in [
            "http://a/b c",
            " <http://a/\r\n b\tc> ",
            "<URL:http://a/bc>",
            "url: http://a/bc",
            "URL:<http://a/bc>",
            "< URL : http://a/bc >",
        ] {
            assert_eq!(from_parameter(value), "http://a/bc", "{value:?}");
        }
        assert_eq!(from_parameter("<http://a"), "<http://a");
        assert_eq!(from_parameter("http://a/%20b"), "http://a/%20b");
        assert!(matches!(from_parameter("<x>"), Cow::Borrowed("x")));
    }

    #[test]
    fn an_octet_that_is_no_utf8_is_escaped_as_it_is() {
        let text = with_octets_escaped("h\u{e4}\u{f7e9}".as_bytes());
        assert!(matches!(text, Cow::Borrowed("h\u{e4}\u{f7e9}")));
        let octets = b"http://h/\xe9\xc3\xa4%e9\xf0\x9f/\xff";
        assert_eq!(
            with_octets_escaped(octets),
            "http://h/%E9\u{e4}%e9%F0%9F/%FF"
        );
    }

    #[test]
    fn blanks_are_escaped_as_they_are_asked_for() {
        let text = with_blanks_escaped("http://h/\u{e4} b\x01%20\x7f");
        assert_eq!(text, "http://h/\u{e4}%20b%01%20%7F");
        assert!(matches!(
            with_blanks_escaped("http://h/\u{a0}"),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn passwords_are_masked_and_nothing_else() {
        for (url, shown) in [
            ("http://u:p@h/x", "http://u:***@h/x"),
            ("//u:p@h", "//u:***@h"),
            ("\\\\u:p@h", "\\\\u:***@h"),
            ("http:u:p@h", "http:u:***@h"),
            ("http:///u:p@h", "http:///u:***@h"),
            ("http://u:p@q@h/", "http://u:***@h/"),
            ("http://:p@h/", "http://:***@h/"),
            ("http://u:p/q@h/", "http://u:***@h/"),
            ("http://u:p#q@h/", "http://u:***@h/"),
            ("ftp://u:a:b@h/", "ftp://u:***@h/"),
            ("view-source:http://u:p@h/", "view-source:http://u:***@h/"),
            ("http://h/?u=ftp://u:p@h", "http://h/?u=ftp://u:***@h"),
            (
                "http://a:b@h/http://c:d@h/",
                "http://a:***@h/http://c:***@h/",
            ),
        ] {
            assert_eq!(masked(url), shown);
        }
        for url in [
            "http://u@h/",
            "http://u:@h/",
            "http://h:80/x@y",
            "http://[::1]:80/x@y",
            "mailto:a:b@c",
            "http://h/a:b@c",
            "http://h/?a:b@c",
            "cid:a@b",
            "",
        ] {
            assert!(
                matches!(masked(url), Cow::Borrowed(same) if same == url),
                "{url}"
            );
        }
    }

    #[test]
    fn a_fragment_begins_at_the_first_number_sign() {
        assert_eq!(without_fragment("http://h/a?b#c#d"), "http://h/a?b");
        assert_eq!(without_fragment("http://h"), "http://h");
    }

    #[test]
    fn a_megabyte_of_slashes_and_colons_is_no_trouble() {
        let url = "//a:b".repeat(200_000) + "@";
        assert!(masked(&url).contains("***"));
    }

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
