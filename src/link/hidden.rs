//! Detects whether the tag of a picture hides it, as tracking pictures in mail do, with `width`, `height`, `hidden`
//! or `style`. Style sheets and other elements are not considered, so a picture that is not detected can still be
//! hidden.
//!
//! CSS is read as in the quirks mode of browsers, in which mail is displayed: a number without a unit is a number of
//! pixels. Not supported are `calc()`, variables, `max-width`, and positions outside of the page.

use std::borrow::Cow;

use memchr::memmem;

use super::names::Name;
use super::tags::{Attribute, text_of};
use super::wrapping::unescape;
use crate::span::split_once;

const TINY: f64 = 3.0;

/// CSS properties that can hide a picture. Each of the first four hides the picture if its value means "invisible". The
/// last two hide it only if both are tiny.
const PROPERTIES: [&[u8]; 6] = [
    b"display",
    b"visibility",
    b"opacity",
    b"mso-hide",
    b"width",
    b"height",
];

/// Returns whether the attributes hide the picture or make both its width and its height tiny.
pub(super) fn is_declared(document: &[u8], attributes: &[Attribute]) -> bool {
    let value = |name| text_of(document, attributes, name);
    if value(Name::Hidden).is_some() {
        return true;
    }
    let text = value(Name::Style);
    let [hiding @ .., width, height] = style(text.as_deref().unwrap_or_default());
    let is_tiny = |declared: Option<f64>, attribute| match declared {
        Some(pixels) => pixels <= TINY,
        None => value(attribute).is_some_and(|text| dimension(&text) <= TINY),
    };
    hiding.into_iter().flatten().any(|shown| shown <= 0.0)
        || (is_tiny(width, Name::Width) && is_tiny(height, Name::Height))
}

fn style(text: &[u8]) -> [Option<f64>; PROPERTIES.len()] {
    let mut declared = [(None, false); PROPERTIES.len()];
    let mut rest = text;
    while !rest.is_empty() {
        let (declaration, behind) = first_declaration(rest);
        rest = behind;
        let declaration = without_comments(declaration);
        let Some((name, value)) = split_once(b':', &declaration) else {
            continue;
        };
        let name = unescape(name.trim_ascii());
        // Most declarations have other names, so the value is decoded only for these properties.
        let mut places = PROPERTIES.iter().zip(&mut declared);
        if let Some((name, place)) = places.find(|(known, _)| known.eq_ignore_ascii_case(&name)) {
            let value = unescape(value.trim_ascii()).to_ascii_lowercase();
            let (value, important) = without_importance(&value);
            let meaning = meaning(name, value).filter(|_| important || !place.1);
            if meaning.is_some() {
                *place = (meaning, important);
            }
        }
    }
    declared.map(|(meaning, _)| meaning)
}

/// Returns the value of a property as a number: a length in pixels for `width` and `height`, otherwise the visibility,
/// which is 0 if the picture is hidden. Returns `None` if the declaration is invalid.
fn meaning(name: &[u8], value: &[u8]) -> Option<f64> {
    let unless = |hiding: &[u8]| is_word(value).then(|| f64::from(u8::from(value != hiding)));
    match name {
        b"display" => unless(b"none"),
        b"visibility" => unless(b"hidden"),
        b"mso-hide" => unless(b"all"),
        b"opacity" => match number_in_front(value.strip_suffix(b"%").unwrap_or(value))? {
            (opacity, b"") => Some(opacity),
            _ => None,
        },
        _ => length(value),
    }
}

/// Splits the text at the first `;`, which ends a declaration. A `;` in a comment, a string or parentheses, or after a
/// backslash, does not count.
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
                return (&text[..at], &text[at + 1..]);
            }
            _ => {}
        }
        at += 1;
    }
    (text, &[])
}

/// Returns the offset after the comment that begins at `at` with `/*`.
fn behind_comment(text: &[u8], at: usize) -> usize {
    let content = at + b"/*".len();
    let end = memmem::find(&text[content..], b"*/");
    end.map_or(text.len(), |length| content + length + b"*/".len())
}

fn without_comments(text: &[u8]) -> Cow<'_, [u8]> {
    if memmem::find(text, b"/*").is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = memmem::find(rest, b"/*") {
        out.extend_from_slice(&rest[..start]);
        out.push(b' ');
        rest = &rest[behind_comment(rest, start)..];
    }
    out.extend_from_slice(rest);
    Cow::Owned(out)
}

fn without_importance(value: &[u8]) -> (&[u8], bool) {
    let important = value.trim_ascii_end().strip_suffix(b"important");
    match important.and_then(|front| front.trim_ascii_end().strip_suffix(b"!")) {
        Some(front) => (front.trim_ascii_end(), true),
        None => (value, false),
    }
}

/// Returns whether the value consists of words, such as the keywords `none` or `inline flex`.
fn is_word(value: &[u8]) -> bool {
    !value.is_empty()
        && value
            .iter()
            .all(|&byte| byte.is_ascii_alphabetic() || byte == b'-' || byte.is_ascii_whitespace())
}

/// Returns a length in pixels. A length that depends on other things, such as a percentage, counts as infinite, so it
/// does not hide the picture. Returns `None` if the value is not a length, because browsers ignore such a declaration.
fn length(value: &[u8]) -> Option<f64> {
    let Some((number, unit)) = number_in_front(value) else {
        return is_word(value).then_some(f64::INFINITY);
    };
    let pixels = match unit {
        b"" | b"px" => 1.0,
        b"pt" => 4.0 / 3.0,
        b"pc" => 16.0,
        b"in" => 96.0,
        b"cm" => 96.0 / 2.54,
        b"mm" => 96.0 / 25.4,
        // Zero is zero in any unit.
        _ if number == 0.0 => 1.0,
        _ if unit == b"%" || unit.iter().all(u8::is_ascii_alphabetic) => {
            return Some(f64::INFINITY);
        }
        _ => return None,
    };
    (number >= 0.0).then_some(number * pixels)
}

/// Returns the value of a `width` or `height` attribute in pixels (HTML §2.3.4.4). Text after the number is ignored,
/// except for a `%`. A percentage or an invalid value counts as infinite, so it does not hide the picture.
fn dimension(value: &[u8]) -> f64 {
    match number_in_front(value.trim_ascii_start()) {
        Some((number, rest)) if number >= 0.0 && rest.first() != Some(&b'%') => number,
        _ => f64::INFINITY,
    }
}

fn number_in_front(text: &[u8]) -> Option<(f64, &[u8])> {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let is_of_number = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let length = text.iter().skip(sign).take_while(is_of_number).count();
    let (number, rest) = text.split_at(sign + length);
    let number = std::str::from_utf8(number).ok()?.parse().ok()?;
    Some((number, rest))
}
