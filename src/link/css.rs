//! Finds URLs in CSS: `url()`, `src()`, `@import`, and the strings in `image-set()`.
//!
//! The scanner works on bytes and follows CSS Syntax Level 3 §4.3 for comments, strings, names and URLs. The crate
//! `cssparser`, with which the tests compare it, reads only `&str`. Style sheets in mail can have any charset, and
//! converting them to UTF-8 would change the offsets of the URLs.
//!
//! The scanner does not parse rules and does not check whether a declaration is valid. It ignores names in
//! `@namespace`, other strings, `url()` in comments and strings, and URLs that the CSS tokenizer rejects.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memmem};

use super::value::{Grammar, ImageSet, LinkList, LinkRole, LinkValue, Markup};
use super::wrapping::{escaped_code_point, line_end, unescape};
use crate::span::{Span, rest_or_empty};

pub fn locate(css: &[u8]) -> LinkList {
    let mut links = LinkList::default();
    scan(css, Markup::StyleSheet, |link| links.push(link));
    links
}

pub(super) fn scan(css: &[u8], markup: Markup, found: impl FnMut(LinkValue)) {
    if may_hold_links(css) {
        CssScanner {
            css,
            markup,
            at: 0,
            depth: 0,
            image_set: None,
            option: ImageSet::First,
            awaits: CssExpectation::Nothing,
            is_namespace: false,
            font_face: None,
            found,
        }
        .run();
    }
}

/// Quick check, which rules out most style sheets: returns false if there are certainly no links. Function names can be
/// disguised only with a backslash, so a backslash counts as a possible link.
fn may_hold_links(css: &[u8]) -> bool {
    let is_written = |start: Option<usize>, word: &[u8]| {
        let written = start.and_then(|start| css.get(start..start + word.len()));
        written.is_some_and(|written| written.eq_ignore_ascii_case(word))
    };
    let ends_at = |at: usize, name: &[u8]| is_written(at.checked_sub(name.len()), name);
    let functions = [&b"url"[..], b"src", b"image-set"];
    memchr_iter(b'(', css).any(|at| functions.iter().any(|name| ends_at(at, name)))
        || memchr_iter(b'@', css).any(|at| is_written(Some(at + 1), b"import"))
        || memchr(b'\\', css).is_some()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CssExpectation {
    Nothing,
    Argument(&'static str),
    Import,
}

struct CssScanner<'a, F> {
    css: &'a [u8],
    markup: Markup,
    at: usize,
    depth: usize,
    /// Depth of parentheses inside the current `image-set()`. A string at this depth is one of its pictures, and a
    /// deeper string is not. `None` outside of an `image-set()`.
    image_set: Option<usize>,
    option: ImageSet,
    awaits: CssExpectation,
    is_namespace: bool,
    font_face: Option<usize>,
    found: F,
}

impl<F: FnMut(LinkValue)> CssScanner<'_, F> {
    fn run(mut self) {
        while let Some(byte) = self.peek(0) {
            match byte {
                _ if byte.is_ascii_whitespace() => self.at += 1,
                b'/' if self.peek(1) == Some(b'*') => {
                    let from = self.at + 2;
                    self.at = memmem::find(self.rest(from), b"*/")
                        .map_or(self.css.len(), |length| from + length + 2);
                }
                b'"' | b'\'' => self.string(byte),
                // `-->` and `<!--` are separate tokens of CSS. They are checked before names, because `--` can also be
                // the start of a name.
                b'-' if self.rest(self.at).starts_with(b"-->") => self.skip_token(3),
                b'<' if self.rest(self.at).starts_with(b"<!--") => self.skip_token(4),
                _ if self.starts_number() => self.number(),
                _ if self.starts_name(0) => self.name_or_function(),
                b'@' if self.starts_name(1) => self.at_keyword(),
                b'#' => {
                    self.skip_token(1);
                    self.skip_name();
                }
                _ => self.delimiter(byte),
            }
        }
    }

    fn skip_token(&mut self, length: usize) {
        self.at += length;
        self.awaits = CssExpectation::Nothing;
    }

    fn delimiter(&mut self, byte: u8) {
        self.skip_token(1);
        match byte {
            b'(' => self.depth += 1,
            b')' => {
                if self.image_set == Some(self.depth) {
                    self.image_set = None;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            // `;`, `{` and `}` end a declaration. A CSS parser then closes all parentheses that are still open.
            b';' | b'{' | b'}' => {
                self.depth = 0;
                self.image_set = None;
                self.is_namespace = false;
                self.font_face = match (self.font_face, byte) {
                    (Some(braces), b'{') => Some(braces + 1),
                    (Some(braces @ 2..), b'}') => Some(braces - 1),
                    (Some(braces @ 1..), b';') => Some(braces),
                    _ => None,
                };
            }
            _ => {}
        }
    }

    fn at_keyword(&mut self) {
        self.skip_token(1);
        let name = self.skip_name();
        if self.name_is(name, b"import") {
            self.awaits = CssExpectation::Import;
        } else if self.name_is(name, b"namespace") {
            self.is_namespace = true;
        } else if self.name_is(name, b"font-face") {
            self.font_face.get_or_insert(0);
        }
    }

    fn name_or_function(&mut self) {
        let name = self.skip_name();
        let is_import =
            std::mem::replace(&mut self.awaits, CssExpectation::Nothing) == CssExpectation::Import;
        if self.peek(0) != Some(b'(') {
            return;
        }
        self.at += 1;
        if self.name_is(name, b"url") {
            return self.url(if is_import { "@import" } else { "url()" });
        }
        self.depth += 1;
        if self.name_is(name, b"src") {
            self.awaits = CssExpectation::Argument(if is_import { "@import" } else { "src()" });
        } else if self.image_set.is_none()
            && (self.name_is(name, b"image-set") || self.name_is(name, b"-webkit-image-set"))
        {
            self.image_set = Some(self.depth);
            self.option = ImageSet::First;
        }
    }

    /// Reads the content of `url(` (CSS Syntax §4.3.6).
    fn url(&mut self, place: &'static str) {
        self.skip_while(u8::is_ascii_whitespace);
        if matches!(self.peek(0), Some(b'"' | b'\'')) {
            self.depth += 1;
            self.awaits = CssExpectation::Argument(place);
            return;
        }
        let start = self.at;
        loop {
            match self.peek(0) {
                None | Some(b')') => break,
                Some(byte) if byte.is_ascii_whitespace() => break,
                Some(b'\\') if self.is_escape(0) => self.skip_escape(),
                Some(b'"' | b'\'' | b'(' | b'\\' | 0x01..=0x08 | 0x0B | 0x0E..=0x1F | 0x7F) => {
                    return self.bad_url();
                }
                Some(_) => self.at += 1,
            }
        }
        let end = self.at;
        self.skip_while(u8::is_ascii_whitespace);
        match self.peek(0) {
            None => {}
            Some(b')') => self.at += 1,
            Some(_) => return self.bad_url(),
        }
        self.report(start..end, Grammar::CssUrl, place);
    }

    fn bad_url(&mut self) {
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\\' if self.is_escape(0) => self.skip_escape(),
                _ => self.at += 1,
            }
            if byte == b')' {
                return;
            }
        }
    }

    fn string(&mut self, quote: u8) {
        let awaits = std::mem::replace(&mut self.awaits, CssExpectation::Nothing);
        self.at += 1;
        let start = self.at;
        while let Some(byte) = self.peek(0) {
            match byte {
                // A backslash as the last byte of the file ends the string and is not part of it. (In an unquoted URL,
                // it would stand for U+FFFD.)
                b'\\' if self.peek(1).is_none() => break,
                _ if byte == quote => break,
                // A string that contains a line ending is invalid, so no link is reported for it. The scanner continues
                // at the line ending.
                b'\n' | b'\r' | 0x0C => return,
                b'\\' if self.is_escape(0) => self.skip_escape(),
                b'\\' => self.at += 1 + line_end(self.rest(self.at + 1), u8::is_ascii_whitespace),
                _ => self.at += 1,
            }
        }
        let end = self.at;
        self.at = end + 1;
        let place = match awaits {
            CssExpectation::Argument(place) => place,
            CssExpectation::Import => "@import",
            CssExpectation::Nothing if self.image_set == Some(self.depth) => "image-set()",
            CssExpectation::Nothing => return,
        };
        self.report(start..end, Grammar::CssString(quote), place);
    }

    fn report(&mut self, range: Range<usize>, grammar: Grammar, place: &'static str) {
        if self.is_namespace {
            return;
        }
        let role = match self.font_face {
            _ if place == "@import" => LinkRole::StyleSheet,
            Some(1..) => LinkRole::Font,
            _ => LinkRole::Picture,
        };
        // A link is an option of an `image-set()` if it is directly inside the parentheses of this function. A string
        // in `url()` or `src()` is also inside the parentheses of `url()`, so one level is subtracted from its depth.
        let around = match grammar {
            Grammar::CssString(_) if place != "image-set()" => self.depth.checked_sub(1),
            _ => Some(self.depth),
        };
        let image_set = if self.image_set.is_some() && self.image_set == around {
            std::mem::replace(&mut self.option, ImageSet::Further)
        } else {
            ImageSet::Outside
        };
        (self.found)(LinkValue {
            span: Span::new(range.start, range.end),
            markup: self.markup,
            grammar,
            place,
            role,
            hidden: false,
            image_set,
            opens_tag: true,
        });
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.css.get(self.at + ahead).copied()
    }

    /// Returns the bytes from an offset. The offset can be one byte after the end: the parser skips the byte after a backslash,
    /// even if the backslash is the last byte.
    fn rest(&self, from: usize) -> &[u8] {
        rest_or_empty(self.css, from)
    }

    fn skip_while(&mut self, holds: impl Fn(&u8) -> bool) {
        while self.css.get(self.at).is_some_and(&holds) {
            self.at += 1;
        }
    }

    /// Returns whether a valid escape begins `ahead` bytes after the current position (CSS Syntax §4.3.8). A backslash
    /// at the end of the file counts as a valid escape.
    fn is_escape(&self, ahead: usize) -> bool {
        self.peek(ahead) == Some(b'\\')
            && !matches!(self.peek(ahead + 1), Some(b'\n' | b'\r' | 0x0C))
    }

    fn skip_escape(&mut self) {
        let behind = self.rest(self.at + 1);
        let one = behind.len().min(1);
        self.at += 1 + escaped_code_point(behind).map_or(one, |(_, length)| length);
    }

    /// Returns whether a name begins `ahead` bytes after the current position (CSS Syntax §4.3.9).
    fn starts_name(&self, ahead: usize) -> bool {
        let at_start = |at| self.peek(at).is_some_and(is_name_start) || self.is_escape(at);
        match self.peek(ahead) {
            Some(b'-') => self.peek(ahead + 1) == Some(b'-') || at_start(ahead + 1),
            _ => at_start(ahead),
        }
    }

    /// Returns whether a number begins at the current position (CSS Syntax §4.3.10).
    fn starts_number(&self) -> bool {
        let digit = |ahead| self.peek(ahead).is_some_and(|byte| byte.is_ascii_digit());
        let fraction = |ahead| self.peek(ahead) == Some(b'.') && digit(ahead + 1);
        match self.peek(0) {
            Some(b'+' | b'-') => digit(1) || fraction(1),
            Some(b'.') => digit(1),
            _ => digit(0),
        }
    }

    /// Skips a number with its unit. In `1url(x)`, `url` is a unit and therefore not a function.
    fn number(&mut self) {
        let is_digit = |byte: u8| byte.is_ascii_digit();
        self.skip_token(1);
        self.skip_while(u8::is_ascii_digit);
        if self.peek(0) == Some(b'.') && self.peek(1).is_some_and(is_digit) {
            self.at += 1;
            self.skip_while(u8::is_ascii_digit);
        }
        if matches!(self.peek(0), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.peek(1), Some(b'+' | b'-')));
            if self.peek(1 + sign).is_some_and(is_digit) {
                self.at += 1 + sign;
                self.skip_while(u8::is_ascii_digit);
            }
        }
        if self.starts_name(0) {
            self.skip_name();
        }
    }

    /// Skips a name (CSS Syntax §4.3.11) and returns its span.
    fn skip_name(&mut self) -> Span {
        let start = self.at;
        while let Some(byte) = self.peek(0) {
            if is_name_start(byte) || byte.is_ascii_digit() || byte == b'-' {
                self.at += 1;
            } else if self.is_escape(0) {
                self.skip_escape();
            } else {
                break;
            }
        }
        Span::new(start, self.at)
    }

    fn name_is(&self, written: Span, name: &[u8]) -> bool {
        let written = written.of(self.css);
        // An escape of one character has at most eight bytes. A text of more than eight times the length of the name
        // cannot be this name, so it is not decoded.
        written.len() <= 8 * name.len() && unescape(written).eq_ignore_ascii_case(name)
    }
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80 || byte == 0
}
