//! Whether a picture's own tag says that nobody is meant to see it: what trackers in mail look like.
//!
//! Read are `width`, `height`, `hidden` and `style` of that tag. No style sheet, no other element and no
//! octet of the picture is asked, so no answer "no" proves anything.
//!
//! CSS is read as browsers do in quirks mode, in which mail is shown: numbers without a unit are pixels, the
//! last valid declaration wins unless an earlier one is `!important`, comments separate. Not read: `calc()`
//! and variables, `max-width`, positions outside of the page.

use std::borrow::Cow;

use memchr::memmem;

use super::css_escape;
use super::entity;
use super::names::Name;
use super::srcset::is_blank;
use super::tags::Attribute;

/// The largest side of a picture that counts as none, in pixels.
const TINY: f64 = 3.0;

/// The properties that matter.
const PROPERTIES: [&[u8]; 6] = [
    b"display",
    b"height",
    b"mso-hide",
    b"opacity",
    b"visibility",
    b"width",
];

/// Whether these attributes of one tag declare its picture hidden, or tiny in both directions.
pub(super) fn is_declared(document: &[u8], attributes: &[Attribute]) -> bool {
    let value = |name| {
        let attribute = attributes.iter().find(|attribute| attribute.name == name)?;
        Some(entity::text(
            attribute.value.of(document),
            entity::Within::Attribute,
        ))
    };
    if value(Name::Hidden).is_some() {
        return true;
    }
    let mut style = Style::default();
    if let Some(text) = value(Name::Style) {
        style.read(&text);
    }
    let is_tiny = |declared: Option<Length>, attribute| match declared {
        Some(length) => length.is_tiny(),
        None => value(attribute).is_some_and(|text| dimension(&text).is_tiny()),
    };
    style.hides()
        || (is_tiny(style.width.value, Name::Width) && is_tiny(style.height.value, Name::Height))
}

/// What a style attribute says of the properties that matter.
#[derive(Default)]
struct Style {
    display: Declared<bool>,
    visibility: Declared<bool>,
    opacity: Declared<bool>,
    mso_hide: Declared<bool>,
    width: Declared<Length>,
    height: Declared<Length>,
}

/// The declaration of a property that has won so far.
struct Declared<T> {
    value: Option<T>,
    important: bool,
}

impl<T> Default for Declared<T> {
    fn default() -> Self {
        Self {
            value: None,
            important: false,
        }
    }
}

impl<T> Declared<T> {
    fn set(&mut self, value: T, important: bool) {
        if important || !self.important {
            *self = Self {
                value: Some(value),
                important,
            };
        }
    }
}

/// A length as far as it matters.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Length {
    Pixels(f64),
    /// Of a unit that depends on something else, or automatic.
    Unknown,
}

impl Length {
    fn is_tiny(self) -> bool {
        matches!(self, Self::Pixels(pixels) if pixels <= TINY)
    }
}

impl Style {
    fn hides(&self) -> bool {
        [
            &self.display,
            &self.visibility,
            &self.opacity,
            &self.mso_hide,
        ]
        .iter()
        .any(|declared| declared.value == Some(true))
    }

    fn read(&mut self, text: &[u8]) {
        let mut rest = text;
        while !rest.is_empty() {
            let (declaration, behind) = first_declaration(rest);
            rest = behind;
            let declaration = without_comments(declaration);
            let Some(colon) = memchr::memchr(b':', &declaration) else {
                continue;
            };
            let (name, value) = declaration.split_at(colon);
            let name = css_escape::unescape(name.trim_ascii());
            // Most declarations are about something else, and nothing is copied for them.
            let known = PROPERTIES
                .iter()
                .find(|known| known.eq_ignore_ascii_case(&name));
            if let Some(name) = known {
                let value = value.get(1..).unwrap_or_default().trim_ascii();
                let value = css_escape::unescape(value).to_ascii_lowercase();
                let (value, important) = without_importance(&value);
                self.declare(name, value, important);
            }
        }
    }

    fn declare(&mut self, name: &[u8], value: &[u8], important: bool) {
        match name {
            b"display" if is_word(value) => self.display.set(value == b"none", important),
            b"visibility" if is_word(value) => {
                self.visibility.set(value == b"hidden", important);
            }
            b"mso-hide" if is_word(value) => self.mso_hide.set(value == b"all", important),
            b"opacity" => {
                let number = value.strip_suffix(b"%").unwrap_or(value);
                if let Some((opacity, b"")) = number_in_front(number) {
                    self.opacity.set(opacity <= 0.0, important);
                }
            }
            b"width" => {
                if let Some(length) = length(value) {
                    self.width.set(length, important);
                }
            }
            b"height" => {
                if let Some(length) = length(value) {
                    self.height.set(length, important);
                }
            }
            _ => {}
        }
    }
}

/// The first declaration of a style attribute, and what is behind its `;`: none of those in comments,
/// strings, parentheses or behind a backslash.
fn first_declaration(text: &[u8]) -> (&[u8], &[u8]) {
    let mut quote = None;
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match (quote, byte) {
            (_, b'\\') => at += 1,
            (Some(open), _) if byte == open || byte == b'\n' => quote = None,
            (Some(_), _) => {}
            (None, b'/') if text.get(at + 1) == Some(&b'*') => {
                at = behind_comment(text, at) - 1;
            }
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'(') => depth += 1,
            (None, b')') => depth = depth.saturating_sub(1),
            (None, b';') if depth == 0 => {
                let (declaration, behind) = text.split_at(at);
                return (declaration, behind.get(1..).unwrap_or_default());
            }
            _ => {}
        }
        at += 1;
    }
    (text, &[])
}

/// Where the comment ends that begins there.
fn behind_comment(text: &[u8], at: usize) -> usize {
    let content = text.get(at + 2..).unwrap_or_default();
    memmem::find(content, b"*/").map_or(text.len(), |length| at + 2 + length + 2)
}

/// A declaration with its comments as blanks.
fn without_comments(text: &[u8]) -> Cow<'_, [u8]> {
    if memmem::find(text, b"/*").is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(length) = memmem::find(text.get(at..).unwrap_or_default(), b"/*") {
        out.extend_from_slice(text.get(at..at + length).unwrap_or_default());
        out.push(b' ');
        at = behind_comment(text, at + length);
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    Cow::Owned(out)
}

/// The value without `!important`, and whether it had that.
fn without_importance(value: &[u8]) -> (&[u8], bool) {
    let Some(mark) = memchr::memrchr(b'!', value) else {
        return (value, false);
    };
    let (front, word) = value.split_at(mark);
    let word = word.get(1..).unwrap_or_default().trim_ascii();
    if word.eq_ignore_ascii_case(b"important") {
        (front.trim_ascii_end(), true)
    } else {
        (value, false)
    }
}

/// One word, or one and another (`display: inline flex`).
fn is_word(value: &[u8]) -> bool {
    !value.is_empty()
        && value
            .iter()
            .all(|&byte| byte.is_ascii_alphabetic() || byte == b'-' || is_blank(byte))
}

/// A length of CSS; `None` if it is none, and so is ignored.
fn length(value: &[u8]) -> Option<Length> {
    let Some((number, unit)) = number_in_front(value) else {
        return is_word(value).then_some(Length::Unknown);
    };
    let pixels = match unit {
        b"" | b"px" => 1.0,
        b"pt" => 4.0 / 3.0,
        b"pc" => 16.0,
        b"in" => 96.0,
        b"cm" => 96.0 / 2.54,
        b"mm" => 96.0 / 25.4,
        // Nothing of anything is nothing.
        _ if number == 0.0 => 1.0,
        _ if unit == b"%" || unit.iter().all(u8::is_ascii_alphabetic) => {
            return Some(Length::Unknown);
        }
        _ => return None,
    };
    (number >= 0.0).then_some(Length::Pixels(number * pixels))
}

/// A dimension of HTML (§2.3.4.4): a number, and nothing matters behind it but a `%`.
fn dimension(value: &[u8]) -> Length {
    match number_in_front(value.trim_ascii_start()) {
        Some((number, rest)) if number >= 0.0 && rest.first() != Some(&b'%') => {
            Length::Pixels(number)
        }
        _ => Length::Unknown,
    }
}

/// The number that a text begins with, and what follows.
fn number_in_front(text: &[u8]) -> Option<(f64, &[u8])> {
    let length = text
        .iter()
        .enumerate()
        .take_while(|&(at, byte)| {
            byte.is_ascii_digit() || *byte == b'.' || (at == 0 && matches!(byte, b'+' | b'-'))
        })
        .count();
    let (number, rest) = text.split_at(length);
    let number = std::str::from_utf8(number).ok()?.parse().ok()?;
    Some((number, rest))
}
