//! The base URL against which relative URLs are resolved (draft-fielding-url-syntax-05 §5.1, "the draft" below). Each
//! entity, from the message to the innermost part, can declare a base in its header, and an HTML document in `<base>`.
//! The innermost declared base is used.
//!
//! Two cases are not supported: RFC 822 comments in Content-Base and Content-Location, because a URL can contain `(`,
//! and values longer than [`VALUE_LIMIT`].

use std::borrow::Cow;

use super::url::{NETWORK_SCHEMES, Relation, UrlReference};
use super::url::{from_parameter, relation, resolve, resolve_as_browser};
use super::url::{scheme_and_rest, unwrapped};
use crate::mime::encoded_words::decoded_words;

/// Base URL of a message that declares none (RFC 2557 §5). Relative Content-Locations of its parts are resolved against
/// it, so that links in the message can find these parts. It is never written into a message.
pub const THIS_MESSAGE: &str = "thismessage:/";

/// Maximum length of a base URL, in bytes. Servers do not accept longer URLs. A limit is necessary because the base of
/// a message is stored again for each of its parts.
pub const VALUE_LIMIT: usize = 8_192;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Base {
    /// The URL. It has a scheme and a path, so that other URLs can be relative to it.
    pub url: String,
    /// Source of the base, for reports: `Content-Base of part 1.2`.
    pub origin: Cow<'static, str>,
}

impl Base {
    pub fn of_retrieval(url: &str) -> Option<Self> {
        Self::usable(
            url.to_owned(),
            "the URL from which the document was retrieved".into(),
        )
    }

    fn usable(url: String, origin: Cow<'static, str>) -> Option<Self> {
        is_usable(&url).then_some(Self { url, origin })
    }

    /// Returns the base URL for the links in a part. It is the Content-Base of the part, which must be absolute. If
    /// that is missing or invalid, it is the Content-Location of the part, which may be relative to `enclosing` (or to
    /// [`THIS_MESSAGE`]). If both are missing, it is `enclosing`, the base of the entity around the part.
    pub fn of_entity(
        enclosing: Option<&Self>,
        content_base: Option<&[u8]>,
        content_location: Option<&[u8]>,
        part: &str,
    ) -> Option<Self> {
        let of_field = |field: &str, url: String| {
            let entity = match part {
                "" => "the message".to_owned(),
                part => format!("part {part}"),
            };
            Self::usable(url, format!("{field} of {entity}").into())
        };
        let declared = || of_field("Content-Base", header_base_value(content_base?)?);
        let located = || of_field("Content-Location", location(enclosing, content_location?)?);
        declared().or_else(located).or_else(|| enclosing.cloned())
    }

    /// Returns the base of an HTML document. `href` is the value of its first `<base>`, which may be relative to
    /// `entity`, the base of the part. If `href` cannot be used as a base, returns `entity`.
    pub fn of_document(entity: Option<&Self>, href: &str) -> Option<Self> {
        let around = entity.map_or(THIS_MESSAGE, |entity| &entity.url);
        let meant = match relation(Some(around), href) {
            Relation::SameDocument => None,
            Relation::Relative if entity.is_none() => None,
            Relation::Relative | Relation::Absolute => resolve_as_browser(around, href).ok(),
        };
        let declared = |url| Self::usable(url, "the document's <base href>".into());
        meant.and_then(declared).or_else(|| entity.cloned())
    }

    /// Returns whether the base is [`THIS_MESSAGE`] or a URL below it. Such a base exists only inside the message, so a
    /// URL that is resolved against it must not be written.
    pub fn is_within_message(&self) -> bool {
        UrlReference::split(&self.url).has_scheme("thismessage")
    }
}

/// Returns the absolute URL in a Content-Location field. A relative value is resolved against `enclosing`, which is the
/// Content-Base of the same part, or otherwise the base of the entity around the part.
pub fn location(enclosing: Option<&Base>, value: &[u8]) -> Option<String> {
    let value = header_base_value(value)?;
    if is_drive(&value) {
        return None;
    }
    let around = enclosing.map_or(THIS_MESSAGE, |base| &base.url);
    resolve(around, &value).ok()
}

/// Returns whether a URL can be a base: it has a scheme followed by a `/`, and it is neither a script nor a `data:` URL.
///
/// Deviation: the draft requires only a scheme. `cid:x`, `mailto:x` and `C:\x` have a scheme, but no URL can be
/// relative to them. If they were used as a base, they would hide a usable base of an outer entity.
pub fn is_usable(url: &str) -> bool {
    let reference = UrlReference::split(url);
    let has_any = |names: &[&str]| names.iter().any(|name| reference.has_scheme(name));
    let is_located = match reference.authority {
        Some(host) => !host.is_empty() || !has_any(&NETWORK_SCHEMES),
        None => reference.path.starts_with('/') && !has_any(&NETWORK_SCHEMES),
    };
    let is_inert = has_any(&["javascript", "vbscript", "data"]);
    scheme_and_rest(url).is_some() && !is_drive(url) && is_located && !is_inert
}

/// Returns whether the text is a Windows path such as `C:\x` or `c:/x`, whose drive letter looks like a scheme.
fn is_drive(url: &str) -> bool {
    matches!(url.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

/// Returns the URL in the value of a Content-Base or Content-Location field.
///
/// Encoded words are decoded (RFC 2557 §4.4.1 allows them in these fields, although RFC 2047 does not). White space,
/// including folds, is removed. So are enclosing `""` and `<>` and a leading `URL:`, in any order. Returns `None` if
/// nothing remains, if the value is not UTF-8, or if it contains a control character.
pub fn header_base_value(raw: &[u8]) -> Option<String> {
    if raw.len() > VALUE_LIMIT {
        return None;
    }
    // A value that is not UTF-8 is rejected, because replacing its invalid bytes would change the URL.
    std::str::from_utf8(raw).ok()?;
    let decoded = decoded_words(raw);
    let parameter = from_parameter(&decoded);
    let mut value = parameter.as_ref();
    loop {
        let unquoted = value.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        let inner = unwrapped(unquoted.unwrap_or(value));
        if inner.len() == value.len() {
            break;
        }
        value = inner;
    }
    let sound = !value.is_empty() && !value.contains(char::is_control);
    sound.then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(raw: &str) -> Option<String> {
        header_base_value(raw.as_bytes())
    }

    fn entity(
        enclosing: Option<&Base>,
        content_base: Option<&str>,
        content_location: Option<&str>,
    ) -> Option<Base> {
        Base::of_entity(
            enclosing,
            content_base.map(str::as_bytes),
            content_location.map(str::as_bytes),
            "1.2",
        )
    }

    fn retrieved(url: &str) -> Base {
        Base::of_retrieval(url).unwrap()
    }

    proptest! {
        #[test]
        fn any_value_is_read_without_panic(raw in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Some(value) = header_base_value(&raw) {
                prop_assert!(!value.is_empty());
                prop_assert!(!value.contains([' ', '\t', '\r', '\n', '\0']));
            }
        }

        #[test]
        fn half_made_encoded_words_are_read_without_panic(
            raw in "(=\\?|\\?=|us-ascii|utf-8|\\?q\\?|\\?B\\?|YS9i|=4|\r\n |é|x){0,20}",
        ) {
            if let Some(value) = header_base_value(raw.as_bytes()) {
                prop_assert!(!value.contains([' ', '\r', '\n']));
            }
        }
    }

    #[test]
    fn folds_quotes_brackets_and_encoded_words_are_removed_from_a_base() {
        for raw in [
            "http://h/a/b",
            " http://h/\r\n\ta/b",
            " \"http://h/a/b\" ",
            "<http://h/a/b>",
            "\"<http://h/ a/b>\"",
            "<URL:http://h/a/b>",
            "URL:\"http://h/a/b\"",
            "=?us-ascii?Q?http=3A//h/?=\r\n =?UTF-8?B?YS9i?=",
            "\"=?us-ascii?q?http://h/a/b?=\"",
        ] {
            assert_eq!(value(raw).as_deref(), Some("http://h/a/b"), "{raw:?}");
        }
        assert_eq!(
            value("=?iso-8859-1?Q?http://h/=E4?=").as_deref(),
            Some("http://h/ä")
        );
    }

    #[test]
    fn malformed_encoded_word_is_left_unchanged() {
        for raw in ["http://h/=?x", "http://h/?a=?b?c?=", "=?utf-8?x?abc?="] {
            assert_eq!(value(raw).as_deref(), Some(raw));
        }
    }

    #[test]
    fn unusable_base_values_are_ignored() {
        for raw in ["", " \r\n ", "<>", "\"\"", "URL:", "=?us-ascii?Q?=01?="] {
            assert_eq!(value(raw), None, "{raw:?}");
        }
        assert_eq!(header_base_value(b"http://h/\xe4"), None);
        assert_eq!(value(&"a".repeat(VALUE_LIMIT + 1)), None);
    }

    #[test]
    fn content_base_comes_before_content_location_before_the_enclosing_base() {
        let outer = retrieved("http://o/x/y");
        let both = entity(Some(&outer), Some("http://b/"), Some("http://l/")).unwrap();
        assert_eq!(both.url, "http://b/");
        assert_eq!(both.origin.to_string(), "Content-Base of part 1.2");
        let located = entity(Some(&outer), None, Some("http://l/")).unwrap();
        assert_eq!(located.url, "http://l/");
        assert_eq!(located.origin.to_string(), "Content-Location of part 1.2");
        assert_eq!(entity(Some(&outer), None, None), Some(outer));
        assert_eq!(entity(None, None, None), None);
    }

    #[test]
    fn relative_content_location_is_resolved_against_the_enclosing_base() {
        let outer = retrieved("http://o/x/y");
        assert_eq!(
            entity(Some(&outer), None, Some("../z/a.html")).unwrap().url,
            "http://o/z/a.html"
        );
        let alone = entity(None, None, Some("a/b.html")).unwrap();
        assert_eq!(alone.url, "thismessage:/a/b.html");
        assert!(alone.is_within_message());
        assert!(!outer.is_within_message());
    }

    #[test]
    fn what_can_be_no_base_is_skipped() {
        let outer = retrieved("http://o/x/y");
        for bad in [
            "x/y",
            "/x",
            "//h/x",
            "C:\\x\\y",
            "c:/x",
            "javascript:alert(1)",
            "javascript://h/%0aalert(1)",
            "data:text/html,x",
            "cid:a@b",
            "mailto:a@b",
            "http:x",
            "http:///x",
            "",
        ] {
            let base = entity(Some(&outer), Some(bad), None);
            assert_eq!(base.as_ref(), Some(&outer), "{bad}");
            let fallen_back = entity(Some(&outer), Some(bad), Some("http://l/"));
            assert_eq!(fallen_back.unwrap().url, "http://l/", "{bad}");
        }
        for bad in ["C:\\x\\y", "cid:a@b", "javascript:x", ""] {
            let base = entity(Some(&outer), None, Some(bad));
            assert_eq!(base.as_ref(), Some(&outer), "{bad}");
        }
    }

    #[test]
    fn a_base_element_is_resolved_as_browsers_do() {
        let outer = retrieved("http://o/x/y");
        for (href, url) in [
            ("http://d/a", "http://d/a"),
            ("/", "http://o/"),
            (" z\\\n", "http://o/x/z/"),
            ("https:d/a", "https://d/a"),
        ] {
            let base = Base::of_document(Some(&outer), href).unwrap();
            assert_eq!(
                (base.url.as_str(), &*base.origin),
                (url, "the document's <base href>")
            );
        }
        for href in [
            "",
            "#x",
            "javascript:x",
            "data:,x",
            "mailto:x",
            "c:/x",
            "http://",
        ] {
            assert_eq!(Base::of_document(Some(&outer), href), Some(outer.clone()));
            assert_eq!(Base::of_document(None, href), None);
        }
        assert_eq!(Base::of_document(None, "/"), None);
        assert_eq!(
            Base::of_document(None, "http:\\\\d").unwrap().url,
            "http://d"
        );
    }

    #[test]
    fn base_value_full_of_encoded_word_openings_is_read_in_linear_time() {
        let hostile = "=?a?q?".repeat(VALUE_LIMIT / 6);
        assert_eq!(value(&hostile).as_deref(), Some(hostile.as_str()));
        // The value contains many starts of encoded words (`=?`), but only one end (`?=`) as its last bytes. A search
        // for this end from each start would take quadratic time.
        let closing = format!("{}?=", "=?a?x?".repeat(VALUE_LIMIT / 6 - 1));
        assert!(value(&closing).is_some());
        let wrapped = format!("{}x{}", "<".repeat(4_000), ">".repeat(4_000));
        assert_eq!(value(&wrapped).as_deref(), Some("x"));
    }
}
