//! Syntax of parameters in header fields (RFC 2045 §5.1, RFC 2231). The deviations are listed in
//! [`media_type`](super::media_type).
//!
//! Each byte is read a fixed number of times, even if names, sections or open parentheses are repeated many times.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr2, memchr3, memrchr};
use percent_encoding::percent_decode;

use super::charset;
use crate::span::{rest_or_empty, split_once, split_while, until};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lookup<'a> {
    None,
    Whole(Cow<'a, [u8]>),
    /// The beginning of a value that is incomplete: its closing quote is missing, or the input ends.
    CutOff(Cow<'a, [u8]>),
    /// The value is divided into sections, and the section with this number is missing (RFC 2231 §3).
    SectionMissing(u32),
    /// Bytes that cannot be decoded, because their charset is not supported or because they are not characters in it.
    Undecodable(Cow<'a, [u8]>),
}

impl<'a> Lookup<'a> {
    pub(super) fn value(self) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Whole(value) | Self::CutOff(value) | Self::Undecodable(value) => Some(value),
            Self::None | Self::SectionMissing(_) => None,
        }
    }

    fn of(value: Cow<'a, [u8]>, is_cut_off: bool) -> Self {
        if is_cut_off {
            Self::CutOff(value)
        } else {
            Self::Whole(value)
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter<'a> {
    /// Name without the asterisks of RFC 2231, in its original case.
    pub name: &'a [u8],
    pub section: Option<u32>,
    /// Whether the value is percent-encoded, as in `name*=charset'language'%xx` (RFC 2231 §4).
    pub is_encoded: bool,
    /// Value without its quotes. Backslash escapes and folds are not decoded.
    pub raw: &'a [u8],
    pub quoting: ParameterQuoting,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterQuoting {
    Bare,
    Quoted,
    /// The value is probably a quoted string whose closing quote is missing.
    Unclosed,
}

impl<'a> Parameter<'a> {
    pub fn unquoted(&self) -> Cow<'a, [u8]> {
        if self.quoting == ParameterQuoting::Bare || memchr(b'\\', self.raw).is_none() {
            return Cow::Borrowed(self.raw);
        }
        // In ISO-2022-JP (text with an ESC character), a backslash can be half of a character. Programs do not escape
        // such a backslash, so it is kept unless it escapes a quote or a backslash.
        let has_shifts = memchr(0x1b, self.raw).is_some();
        let mut value = Vec::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some((before, behind)) = split_once(b'\\', rest) {
            value.extend_from_slice(before);
            // A backslash at the end is kept.
            let (&next, behind) = behind.split_first().unwrap_or((&b'\\', &[]));
            if has_shifts && !matches!(next, b'"' | b'\\') {
                value.push(b'\\');
            }
            value.push(next);
            rest = behind;
        }
        value.extend_from_slice(rest);
        Cow::Owned(value)
    }
}

pub struct Parameters<'a> {
    bytes: &'a [u8],
    /// Whether more input may follow. A value at the end is then incomplete, unless it has a closing quote.
    pub(super) is_open: bool,
    at: usize,
    /// Start of a comment that is never closed. Text after it is not searched for comments again, because this could
    /// take quadratic time.
    unclosed: Option<usize>,
}

impl<'a> Iterator for Parameters<'a> {
    /// A parameter, and the offset at which it begins, so that it can be read again later.
    type Item = (usize, Parameter<'a>);

    fn next(&mut self) -> Option<(usize, Parameter<'a>)> {
        loop {
            let mut start = skip_blanks_and_comments(self.bytes, self.at);
            while self.bytes.get(start) == Some(&b';') {
                start = skip_blanks_and_comments(self.bytes, start + 1);
            }
            if start >= self.bytes.len() {
                self.at = start;
                return None;
            }
            let (name, behind) = self.name(start);
            if self.bytes.get(behind) != Some(&b'=') {
                // A word without a value, such as `;base64`, a stray quote or a truncated field. It is skipped.
                self.at = behind;
                continue;
            }
            let (raw, quoting) = match self.value(behind + 1) {
                (raw, ParameterQuoting::Bare) if self.is_open && self.at >= self.bytes.len() => {
                    (raw, ParameterQuoting::Unclosed)
                }
                value => value,
            };
            let (name, section, is_encoded) = split_name(name);
            let parameter = Parameter {
                name,
                section,
                is_encoded,
                raw,
                quoting,
            };
            return Some((start, parameter));
        }
    }
}

impl<'a> Parameters<'a> {
    pub(super) fn of(bytes: &'a [u8], is_open: bool) -> Self {
        Self {
            bytes,
            is_open,
            at: 0,
            unclosed: None,
        }
    }

    /// Returns the end of the last parameter that was read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Returns the name up to the next `=` or `;`, without comments at its end, and the offset of that character.
    fn name(&mut self, start: usize) -> (&'a [u8], usize) {
        let mut at = start;
        let mut end = None;
        loop {
            let hit = memchr3(b'=', b';', b'(', &self.bytes[at..])
                .map_or(self.bytes.len(), |hit| at + hit);
            let is_comment = self.bytes.get(hit) == Some(&b'(');
            if end.is_some_and(|_| hit > at) {
                // Text follows the comment, so the comment is inside the name. It is kept: two words are not a valid
                // name anyway.
                end = None;
            } else if is_comment {
                end = end.or(Some(hit));
            }
            match self.behind_comments(hit) {
                _ if !is_comment => {
                    let name = &self.bytes[start..end.unwrap_or(hit)];
                    return (name.trim_ascii(), hit);
                }
                Some(behind) => at = behind,
                None => {
                    end = None;
                    at = hit + 1;
                }
            }
        }
    }

    /// Joins the sections of one parameter. Each section is given by its number and by its offset in the field. The
    /// sections must be sorted by number. If a section is missing, returns its number as the error. The charset is in
    /// the first section and applies to the joined bytes, because a section can end in the middle of a character.
    fn joined(&self, sections: &[(u32, u32)]) -> Result<ParameterValue, u32> {
        let mut numbers = (0u32..).zip(sections);
        if let Some((missing, _)) = numbers.find(|(expected, (section, _))| section != expected) {
            return Err(missing);
        }
        let mut joined = Vec::new();
        let mut charset = Vec::new();
        for &(section, at) in sections {
            let mut again = Parameters {
                is_open: false,
                at: at as usize,
                ..*self
            };
            let Some((_, parameter)) = again.next() else {
                continue;
            };
            let value = parameter.unquoted();
            if !parameter.is_encoded {
                joined.extend_from_slice(&value);
                continue;
            }
            let mut text = value.as_ref();
            if section == 0 {
                let mut quotes = memchr_iter(b'\'', text);
                if let (Some(first), Some(second)) = (quotes.next(), quotes.next()) {
                    charset = text[..first].to_vec();
                    text = &text[second + 1..];
                }
            }
            joined.extend(percent_decode(text));
        }
        let is_utf8 = || charset.trim_ascii().eq_ignore_ascii_case(b"utf-8");
        if charset.is_empty() || is_utf8() {
            // Non-UTF-8 bytes are kept, because they can be a file name, and the caller decides how to show it.
            return Ok(ParameterValue::Text(joined));
        }
        Ok(match charset::decode(&charset, &joined) {
            Some(text) => ParameterValue::Text(text.into_owned().into_bytes()),
            None => ParameterValue::Octets(joined),
        })
    }

    /// Returns the offset after the comments that begin at `at`. Returns `None` if there is no `(`, or if a comment
    /// is not closed.
    fn behind_comments(&mut self, at: usize) -> Option<usize> {
        let is_behind = self.unclosed.is_some_and(|unclosed| unclosed < at);
        if is_behind || self.bytes.get(at) != Some(&b'(') {
            return None;
        }
        let behind = closed_comments(self.bytes, at);
        if behind.is_none() {
            self.unclosed = Some(at);
        }
        behind
    }

    fn value(&mut self, from: usize) -> (&'a [u8], ParameterQuoting) {
        let start = self.value_start(from);
        if self.bytes.get(start) == Some(&b'"') {
            return self.quoted(start + 1);
        }
        let mut at = start;
        let end = loop {
            let hit =
                memchr2(b';', b'(', &self.bytes[at..]).map_or(self.bytes.len(), |hit| at + hit);
            if self.bytes.get(hit) != Some(&b'(') {
                self.at = hit;
                break hit;
            }
            // A comment after an unquoted value has white space before it (RFC 2045 §5.1: `us-ascii (Plain text)`).
            // Other parentheses can be part of a URL.
            let before = hit.checked_sub(1).filter(|_| hit > start);
            if before.is_some_and(|before| self.bytes.get(before).copied().is_some_and(is_blank)) {
                let behind = self.behind_comments(hit).unwrap_or(hit);
                self.at = behind + until(b';', &self.bytes[behind..]).len();
                break hit;
            }
            at = hit + 1;
        };
        (self.bytes[start..end].trim_ascii(), ParameterQuoting::Bare)
    }

    /// Returns the start of a value, after white space and comments. Text in parentheses is a comment only if white
    /// space is before it or a quote is directly after it, because `name=(1).txt` contains no comment.
    fn value_start(&mut self, from: usize) -> usize {
        let start = skip_blanks(self.bytes, from);
        if self.bytes.get(start) != Some(&b'(') {
            return start;
        }
        if start > from {
            return self.behind_comments(start).unwrap_or(start);
        }
        let within = until(b';', &self.bytes[start..]);
        match closed_comments(within, 0) {
            Some(behind) if within.get(behind) == Some(&b'"') => start + behind,
            _ => start,
        }
    }

    fn quoted(&mut self, open: usize) -> (&'a [u8], ParameterQuoting) {
        let text = &self.bytes[open..];
        let mut at = 0;
        loop {
            // A backslash can be the last byte. The byte that it escapes is then missing.
            let rest = rest_or_empty(text, at);
            match memchr2(b'"', b'\\', rest) {
                None => {
                    self.at = self.bytes.len();
                    return (text, ParameterQuoting::Unclosed);
                }
                Some(hit) if rest[hit] == b'"' => {
                    let end = at + hit;
                    self.at = open + end + 1;
                    return (&text[..end], ParameterQuoting::Quoted);
                }
                Some(hit) => at += hit + 2,
            }
        }
    }
}

enum ParameterValue {
    Text(Vec<u8>),
    /// Bytes that could not be decoded, because their charset is not supported or they are not characters in it.
    Octets(Vec<u8>),
}

/// Splits a name with asterisks: `name*2*` has the name `name`, the section 2, and is percent-encoded. Asterisks in
/// other places are part of the name.
fn split_name(written: &[u8]) -> (&[u8], Option<u32>, bool) {
    let stem = written.strip_suffix(b"*").unwrap_or(written);
    let is_encoded = stem.len() < written.len();
    let Some(star) = memrchr(b'*', stem) else {
        return (stem, None, is_encoded);
    };
    let (name, digits) = stem.split_at(star);
    let digits = digits
        .get(1..)
        .filter(|digits| digits.iter().all(u8::is_ascii_digit))
        .and_then(|digits| str::from_utf8(digits).ok());
    match digits.map(str::parse) {
        Some(Ok(section)) => (name, Some(section), is_encoded),
        _ => (written, None, false),
    }
}

/// Collects all occurrences of one parameter in a field: the plain form and the sections of RFC 2231. A field can
/// consist of many sections, so only the number and the offset of each section are stored.
#[derive(Default)]
pub(super) struct ParameterOccurrences<'a> {
    plain: Option<Parameter<'a>>,
    sections: Vec<(u32, u32)>,
    is_cut_off: bool,
}

impl<'a> ParameterOccurrences<'a> {
    pub(super) fn add(&mut self, at: usize, parameter: Parameter<'a>, is_open: bool) {
        if parameter.section.is_none() && !parameter.is_encoded {
            self.plain.get_or_insert(parameter);
            return;
        }
        // If the input ends within the field, more sections of the value may be missing, so the value counts as incomplete.
        self.is_cut_off |= parameter.quoting == ParameterQuoting::Unclosed
            || (is_open && parameter.section.is_some());
        // A value `name*=` without a number is treated like section 0 of a value with one section.
        let section = parameter.section.unwrap_or(0);
        match (self.sections.last(), u32::try_from(at)) {
            (Some(&(last, _)), _) if last == section => {}
            (_, Ok(at)) => self.sections.push((section, at)),
            // The offset of a section has 32 bits, so a field longer than 4 GiB is not read to its end.
            (_, Err(_)) => self.is_cut_off = true,
        }
    }

    pub(super) fn found(mut self, parameters: &Parameters<'a>) -> Lookup<'a> {
        let plain = self.plain.map(|plain| {
            let is_cut_off = plain.quoting == ParameterQuoting::Unclosed;
            Lookup::of(plain.unquoted(), is_cut_off)
        });
        if self.sections.is_empty() {
            return plain.unwrap_or(Lookup::None);
        }
        // If two sections have the same number, the first one in the field is used.
        self.sections.sort_unstable();
        self.sections.dedup_by_key(|(section, _)| *section);
        match parameters.joined(&self.sections) {
            Ok(ParameterValue::Text(value)) => Lookup::of(Cow::Owned(value), self.is_cut_off),
            Ok(ParameterValue::Octets(value)) => Lookup::Undecodable(Cow::Owned(value)),
            // If a section is missing, the plain form is used. Writers add it for programs that do not support RFC 2231.
            Err(missing) => plain.unwrap_or(Lookup::SectionMissing(missing)),
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn skip_blanks(bytes: &[u8], from: usize) -> usize {
    let (blanks, _) = split_while(&bytes[from..], |&byte| is_blank(byte));
    from + blanks.len()
}

/// Returns the offset after white space and comments. Comments can be nested (RFC 5322 §3.2.2). An unclosed comment
/// extends to the end.
pub(super) fn skip_blanks_and_comments(bytes: &[u8], from: usize) -> usize {
    let at = skip_blanks(bytes, from);
    closed_comments(bytes, at).unwrap_or(bytes.len())
}

fn closed_comments(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while bytes.get(at) == Some(&b'(') {
        let mut depth = 0usize;
        loop {
            match bytes.get(at)? {
                b'\\' => at += 1,
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
        at = skip_blanks(bytes, at);
    }
    Some(at.min(bytes.len()))
}

/// Returns the only word of a value such as Content-MD5, without the comments around it (RFC 822 §3.1.4).
pub fn without_comments(value: &[u8]) -> &[u8] {
    let start = skip_blanks_and_comments(value, 0);
    until(b'(', &value[start..]).trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_word_of_a_header_value_is_read_without_the_comments_around_it() {
        for text in [
            "Q2hlY2s=",
            " (a) Q2hlY2s= (b (c)) d",
            "\r\n\tQ2hlY2s=(x",
            "(a)(b)Q2hlY2s=\r\n",
        ] {
            assert_eq!(without_comments(text.as_bytes()), b"Q2hlY2s=", "{text:?}");
        }
        assert_eq!(without_comments(b"(never closed"), b"");
    }
}
