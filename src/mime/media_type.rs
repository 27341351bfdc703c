//! Content-Type values: type, subtype, and parameters (RFC 2045 §5.1, RFC 2231), read as slices of
//! the field and written back.
//!
//! mail-parser's own Content-Type parser is not used for the parameters: it replaces octets that
//! are not UTF-8, ends an unquoted value at a fold, and looks every continuation up in a list of
//! all the others, so that a hostile header costs quadratic time. Its charset decoders are used for
//! RFC 2231, and mail-builder writes parameters that have no original.
//!
//! Deviations from RFC 2045 and RFC 2231, because mail has them:
//! * an unquoted value runs to the next semicolon, or to a comment with a blank in front, whatever it
//!   holds (`URL=http://x/y?a=b`); a comment without one is part of it (`name=(1).txt`);
//! * behind a comment that is never closed, parentheses mean nothing;
//! * a quoted value that is never closed runs to the end of the field, and [`Found::CutOff`] tells:
//!   mail systems cut fields off that are long (Postfix at 102 400 octets);
//! * of two parameters with one name the first counts; a continued or encoded form goes before a
//!   plain one;
//! * sections may come in any order, but none may be missing;
//! * text in RFC 2231's charset becomes UTF-8; an unknown charset's octets stay as they are.

use std::borrow::Cow;

use mail_builder::headers::{Header as _, content_type::ContentType};
use mail_parser::decoders::charsets::map::charset_decoder;
use memchr::{memchr_iter, memchr2, memchr3};

use super::header;

/// A Content-Type value, borrowed from its field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MediaType<'a> {
    /// `type/subtype`, lower case. A value without both reads as RFC 2045 §5.2 says: text/plain.
    pub essence: Cow<'a, str>,
    /// Everything behind the subtype, from the first semicolon on.
    rest: &'a [u8],
    /// Whether more may have followed.
    is_open: bool,
}

/// What a part without a (usable) Content-Type is.
pub const DEFAULT_TYPE: &str = "text/plain";

impl<'a> MediaType<'a> {
    /// Reads a field value. Total: what cannot be read is `text/plain` without parameters.
    #[must_use]
    pub fn parse(value: &'a [u8]) -> Self {
        let mut at = skip_blanks_and_comments(value, 0);
        let main = token(value, at);
        at = skip_blanks_and_comments(value, at + main.len());
        let slash = value.get(at) == Some(&b'/');
        let sub = if slash {
            at = skip_blanks_and_comments(value, at + 1);
            token(value, at)
        } else {
            &[]
        };
        at += sub.len();
        let rest = memchr::memchr(b';', value.get(at..).unwrap_or_default())
            .and_then(|semicolon| value.get(at + semicolon..))
            .unwrap_or_default();
        let essence = match (std::str::from_utf8(main), std::str::from_utf8(sub)) {
            (Ok(main), Ok(sub)) if !main.is_empty() && !sub.is_empty() => {
                Cow::Owned(format!("{main}/{sub}").to_ascii_lowercase())
            }
            _ => Cow::Borrowed(DEFAULT_TYPE),
        };
        Self {
            essence,
            rest,
            is_open: false,
        }
    }

    /// The same of a field in which the input ends: there may have been more of it, and a value at
    /// its end is cut off unless a quote closes it.
    #[must_use]
    pub fn open_ended(self) -> Self {
        Self {
            is_open: true,
            ..self
        }
    }

    /// `text`, `multipart`, ... in lower case.
    #[must_use]
    pub fn main(&self) -> &str {
        self.essence.split('/').next().unwrap_or_default()
    }

    /// The parameters as they are written, in their order.
    #[must_use]
    pub fn parameters(&self) -> Parameters<'a> {
        Parameters {
            bytes: self.rest,
            at: 0,
            unclosed: None,
        }
    }

    /// The value of one parameter with quotes, RFC 2231 sections and encodings undone, folds
    /// still in it. The encoded layer is decoded exactly once.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        self.look_up(name).value()
    }

    /// Like [`MediaType::parameter`], but tells a value with a missing section from no value, and
    /// one that was cut off from a whole one.
    #[must_use]
    pub fn look_up(&self, name: &str) -> Found<'a> {
        let mut written = Written::default();
        let mut parameters = self.parameters();
        while let Some((at, parameter)) = parameters.next_at() {
            if parameter.name.eq_ignore_ascii_case(name.as_bytes()) {
                written.add(at, self.as_open_ended(parameter, &parameters), self.is_open);
            }
        }
        written.found(&parameters)
    }

    /// The values of all parameters, decoded and unfolded, under their names in lower case, in the order
    /// in which they first appear: of at most so many names. Two passes over the field, whatever is in it.
    #[must_use]
    pub fn decoded_parameters(&self, at_most: usize) -> Vec<(String, String)> {
        let mut names: Vec<(&[u8], Written<'a>)> = Vec::new();
        let place = |names: &[(&[u8], Written<'a>)], name: &[u8]| {
            let is_known = |(known, _): &(&[u8], _)| name.eq_ignore_ascii_case(known);
            names.iter().position(is_known)
        };
        for parameter in self.parameters() {
            if names.len() >= at_most {
                break;
            }
            if place(&names, parameter.name).is_none() {
                names.push((parameter.name, Written::default()));
            }
        }
        let mut parameters = self.parameters();
        while let Some((at, parameter)) = parameters.next_at() {
            let known = place(&names, parameter.name).and_then(|known| names.get_mut(known));
            if let Some((_, written)) = known {
                written.add(at, self.as_open_ended(parameter, &parameters), self.is_open);
            }
        }
        let decoded = names.into_iter().filter_map(|(name, written)| {
            let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
            let value = written.found(&parameters).value()?;
            let value = header::unfold(&value);
            Some((name, String::from_utf8_lossy(&value).into_owned()))
        });
        decoded.collect()
    }

    /// The parameter as it counts where the input ends in the field.
    fn as_open_ended(
        &self,
        mut parameter: Parameter<'a>,
        parameters: &Parameters<'a>,
    ) -> Parameter<'a> {
        let is_last = parameters.at >= parameters.bytes.len();
        if self.is_open && is_last && parameter.quoting == Quoting::Bare {
            parameter.quoting = Quoting::Unclosed;
        }
        parameter
    }
}

/// All that is written under one name. A field may consist of sections: of each only its number and
/// its place are kept.
#[derive(Default)]
struct Written<'a> {
    plain: Option<Parameter<'a>>,
    sections: Vec<(u32, u32)>,
    cut_off: bool,
}

impl<'a> Written<'a> {
    fn add(&mut self, at: usize, parameter: Parameter<'a>, is_open: bool) {
        if parameter.section.is_none() && parameter.encoding == ValueEncoding::None {
            self.plain.get_or_insert(parameter);
            return;
        }
        // Behind what is there, another section may have stood.
        self.cut_off |=
            parameter.quoting == Quoting::Unclosed || (is_open && parameter.section.is_some());
        // `name*=` without a number is a value in one section.
        let section = parameter.section.unwrap_or(0);
        match (self.sections.last(), u32::try_from(at)) {
            (Some(&(last, _)), _) if last == section => {}
            (_, Ok(at)) => self.sections.push((section, at)),
            // Nobody reads a field of 4 GiB to its end.
            (_, Err(_)) => self.cut_off = true,
        }
    }

    /// The value, read once more from where `parameters` found it.
    fn found(mut self, parameters: &Parameters<'a>) -> Found<'a> {
        let plain = self.plain.as_ref();
        if self.sections.is_empty() {
            return plain.map_or(Found::None, Found::of);
        }
        // Of two sections with one number the first counts.
        self.sections.sort_unstable();
        self.sections.dedup_by_key(|(section, _)| *section);
        match parameters.joined(&self.sections) {
            Ok(value) if self.cut_off => Found::CutOff(Cow::Owned(value)),
            Ok(value) => Found::Whole(Cow::Owned(value)),
            // The plain form is there for readers that do not know RFC 2231.
            Err(missing) => plain.map_or(Found::SectionMissing(missing), Found::of),
        }
    }
}

/// What [`MediaType::look_up`] found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found<'a> {
    /// No parameter of that name.
    None,
    /// Its whole value.
    Whole(Cow<'a, [u8]>),
    /// The beginning of its value: the quote that opens it is never closed, or the input ends.
    CutOff(Cow<'a, [u8]>),
    /// Sections, but not the one with this number (RFC 2231 §3).
    SectionMissing(u32),
}

impl<'a> Found<'a> {
    /// What there is of the value.
    fn value(self) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Whole(value) | Self::CutOff(value) => Some(value),
            Self::None | Self::SectionMissing(_) => None,
        }
    }

    fn of(parameter: &Parameter<'a>) -> Self {
        match parameter.quoting {
            Quoting::Unclosed => Self::CutOff(parameter.unquoted()),
            Quoting::Bare | Quoting::Quoted => Self::Whole(parameter.unquoted()),
        }
    }
}

/// How a parameter's value is encoded (RFC 2231 §4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueEncoding {
    /// As it stands.
    None,
    /// `name*=charset'language'%xx`.
    Percent,
}

/// One parameter as written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter<'a> {
    /// The name without RFC 2231's asterisks, in the case it was written.
    pub name: &'a [u8],
    /// RFC 2231 section number (`name*2=`).
    pub section: Option<u32>,
    /// Whether the name ends in an asterisk.
    pub encoding: ValueEncoding,
    /// The value as written, without enclosing quotes; quoted pairs and folds still in it.
    pub raw: &'a [u8],
    /// Whether it was written as a quoted-string.
    pub quoting: Quoting,
}

/// How a value was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quoting {
    /// A token, or something that should have been quoted.
    Bare,
    /// A quoted-string.
    Quoted,
    /// What has no end: a quoted-string, mostly.
    Unclosed,
}

impl<'a> Parameter<'a> {
    /// The value with quoted pairs undone; borrowed where there are none.
    #[must_use]
    pub fn unquoted(&self) -> Cow<'a, [u8]> {
        if self.quoting == Quoting::Bare || memchr::memchr(b'\\', self.raw).is_none() {
            return Cow::Borrowed(self.raw);
        }
        let mut value = Vec::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some(at) = memchr::memchr(b'\\', rest) {
            let (before, behind) = rest.split_at(at);
            value.extend_from_slice(before);
            match behind.get(1) {
                Some(&escaped) => value.push(escaped),
                None => value.push(b'\\'),
            }
            rest = behind.get(2..).unwrap_or_default();
        }
        value.extend_from_slice(rest);
        Cow::Owned(value)
    }
}

/// Walks parameters as they are written.
#[derive(Clone, Debug)]
pub struct Parameters<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where a comment begins that is never closed: what follows is read as if there were none, instead
    /// of looking for the end of each.
    unclosed: Option<usize>,
}

impl<'a> Iterator for Parameters<'a> {
    type Item = Parameter<'a>;

    fn next(&mut self) -> Option<Parameter<'a>> {
        self.next_at().map(|(_, parameter)| parameter)
    }
}

impl<'a> Parameters<'a> {
    /// The next parameter, and where it can be read again from.
    fn next_at(&mut self) -> Option<(usize, Parameter<'a>)> {
        loop {
            let mut at = skip_blanks_and_comments(self.bytes, self.at);
            while self.bytes.get(at) == Some(&b';') {
                at = skip_blanks_and_comments(self.bytes, at + 1);
            }
            if at >= self.bytes.len() {
                self.at = at;
                return None;
            }
            let start = at;
            let (name, behind) = self.name(start);
            if self.bytes.get(behind) != Some(&b'=') {
                // A word without a value: `;base64`, a stray quote, a truncated field.
                self.at = behind;
                continue;
            }
            let (raw, quoting) = self.value(behind + 1);
            let (name, section, encoding) = split_name(name);
            let parameter = Parameter {
                name,
                section,
                encoding,
                raw,
                quoting,
            };
            return Some((start, parameter));
        }
    }

    /// The text from `start` up to the `=` or `;` behind it, without comments at its end, and where that
    /// stands.
    fn name(&mut self, start: usize) -> (&'a [u8], usize) {
        let mut at = start;
        let mut end = None;
        loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let hit = memchr3(b'=', b';', b'(', rest).map_or(self.bytes.len(), |hit| at + hit);
            let is_comment = self.bytes.get(hit) == Some(&b'(');
            if end.is_some_and(|_| hit > at) {
                // A comment between two words: no parameter is called so.
                end = None;
            } else if is_comment {
                end = end.or(Some(hit));
            }
            match self.behind_comments(hit) {
                _ if !is_comment => {
                    let name = self.bytes.get(start..end.unwrap_or(hit));
                    return (name.unwrap_or_default().trim_ascii(), hit);
                }
                Some(behind) => at = behind,
                None => {
                    end = None;
                    at = hit + 1;
                }
            }
        }
    }

    /// Joins RFC 2231 sections, given by number and place; the error is the number of the missing one.
    fn joined(&self, sections: &[(u32, u32)]) -> Result<Vec<u8>, u32> {
        let numbers = (0u32..).zip(sections);
        for (expected, &(section, _)) in numbers {
            if section != expected {
                return Err(expected);
            }
        }
        let mut joined = Vec::new();
        let mut charset = Vec::new();
        for &(section, at) in sections {
            let mut again = Parameters {
                bytes: self.bytes,
                at: at as usize,
                unclosed: self.unclosed,
            };
            let Some(parameter) = again.next() else {
                continue;
            };
            let value = parameter.unquoted();
            if parameter.encoding == ValueEncoding::None {
                joined.extend_from_slice(&value);
                continue;
            }
            let mut text = value.as_ref();
            if section == 0 {
                let mut quotes = memchr_iter(b'\'', text);
                if let (Some(first), Some(second)) = (quotes.next(), quotes.next()) {
                    charset = text.get(..first).unwrap_or_default().to_ascii_lowercase();
                    text = text.get(second + 1..).unwrap_or_default();
                }
            }
            let octets = percent_decode(text);
            match charset_decoder(&charset) {
                Some(decode) if !matches!(charset.as_slice(), b"utf-8" | b"us-ascii") => {
                    joined.extend_from_slice(decode(&octets).as_bytes());
                }
                _ => joined.extend_from_slice(&octets),
            }
        }
        Ok(joined)
    }

    /// Where the blanks and comments that begin with the `(` at `at` end; none if one of them has no end.
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

    /// Reads a value, how it was written, and goes on behind it.
    fn value(&mut self, from: usize) -> (&'a [u8], Quoting) {
        let start = self.value_start(from);
        if self.bytes.get(start) == Some(&b'"') {
            return self.quoted(start + 1);
        }
        let mut at = start;
        let end = loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let hit = memchr2(b';', b'(', rest).map_or(self.bytes.len(), |hit| at + hit);
            if self.bytes.get(hit) != Some(&b'(') {
                self.at = hit;
                break hit;
            }
            // A comment behind a bare value: `charset=us-ascii (Plain text)`, RFC 2045 §5.1's own
            // example. Other parentheses may be part of a URL.
            let before = hit.checked_sub(1).filter(|_| hit > start);
            if before.is_some_and(|before| self.bytes.get(before).copied().is_some_and(is_blank)) {
                let behind = self.behind_comments(hit).unwrap_or(hit);
                let rest = self.bytes.get(behind..).unwrap_or_default();
                self.at = memchr::memchr(b';', rest).map_or(self.bytes.len(), |semi| behind + semi);
                break hit;
            }
            at = hit + 1;
        };
        let raw = self.bytes.get(start..end).unwrap_or_default();
        (raw.trim_ascii(), Quoting::Bare)
    }

    /// Where a value begins: behind blanks, and behind comments that have a blank in front or a quote
    /// behind. `name=(1).txt` is a name.
    fn value_start(&mut self, from: usize) -> usize {
        let start = skip_blanks(self.bytes, from);
        if self.bytes.get(start) != Some(&b'(') {
            return start;
        }
        if start > from {
            return self.behind_comments(start).unwrap_or(start);
        }
        let rest = self.bytes.get(start..).unwrap_or_default();
        let end = memchr::memchr(b';', rest).unwrap_or(rest.len());
        let within = rest.get(..end).unwrap_or_default();
        match closed_comments(within, 0) {
            Some(behind) if within.get(behind) == Some(&b'"') => start + behind,
            _ => start,
        }
    }

    /// A quoted-string, from behind its quote on.
    fn quoted(&mut self, open: usize) -> (&'a [u8], Quoting) {
        let mut at = open;
        loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            match memchr2(b'"', b'\\', rest) {
                None => {
                    self.at = self.bytes.len();
                    let raw = self.bytes.get(open..).unwrap_or_default();
                    return (raw, Quoting::Unclosed);
                }
                Some(hit) if rest[hit] == b'"' => {
                    self.at = at + hit + 1;
                    let raw = self.bytes.get(open..at + hit).unwrap_or_default();
                    return (raw, Quoting::Quoted);
                }
                Some(hit) => at += hit + 2,
            }
        }
    }
}

/// `name*2*` → name, section 2, percent-encoded. An asterisk form that RFC 2231 does not know is
/// part of the name.
fn split_name(written: &[u8]) -> (&[u8], Option<u32>, ValueEncoding) {
    let (stem, encoding) = match written.strip_suffix(b"*") {
        Some(stem) => (stem, ValueEncoding::Percent),
        None => (written, ValueEncoding::None),
    };
    let Some(star) = memchr::memrchr(b'*', stem) else {
        return (stem, None, encoding);
    };
    let section = stem
        .get(star + 1..)
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|digits| digits.parse().ok());
    match section {
        Some(section) => (
            stem.get(..star).unwrap_or_default(),
            Some(section),
            encoding,
        ),
        None => (written, None, ValueEncoding::None),
    }
}

/// Undoes `%xx` once; a percent sign without two hexadecimal digits stays.
fn percent_decode(text: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|&byte| char::from(byte).to_digit(16));
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'%', rest) {
        let (before, behind) = rest.split_at(at);
        octets.extend_from_slice(before);
        match (digit(behind.get(1)), digit(behind.get(2))) {
            (Some(high), Some(low)) => {
                octets.push((high << 4 | low) as u8);
                rest = behind.get(3..).unwrap_or_default();
            }
            _ => {
                octets.push(b'%');
                rest = behind.get(1..).unwrap_or_default();
            }
        }
    }
    octets.extend_from_slice(rest);
    octets
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn skip_blanks(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|&&byte| is_blank(byte)).count()
}

/// Comments may nest (RFC 5322 §3.2.2); one that is never closed runs to the end.
fn skip_blanks_and_comments(bytes: &[u8], from: usize) -> usize {
    let at = skip_blanks(bytes, from);
    closed_comments(bytes, at).unwrap_or(bytes.len())
}

/// Where the comments that begin at `from`, and the blanks behind each, end; none if one of them is never
/// closed.
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

/// What stands in a field value that holds one word, between the comments in front of it and the first
/// one behind it (RFC 822 §3.1.4): of Content-MD5 and the like.
#[must_use]
pub fn without_comments(value: &[u8]) -> &[u8] {
    let start = skip_blanks_and_comments(value, 0);
    let rest = value.get(start..).unwrap_or_default();
    let end = memchr::memchr(b'(', rest).unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default().trim_ascii()
}

/// The token (RFC 2045 §5.1) at `from`; empty if there is none.
fn token(bytes: &[u8], from: usize) -> &[u8] {
    let rest = bytes.get(from..).unwrap_or_default();
    let length = rest
        .iter()
        .take_while(|&&byte| byte > b' ' && byte != 0x7f && !b"()<>@,;:\\\"/[]?=".contains(&byte))
        .count();
    rest.get(..length).unwrap_or_default()
}

/// A whole Content-Type value for a part that has no original, its parameters quoted or RFC
/// 2231-encoded as needed; line ends are CRLF, the last one included.
#[must_use]
pub fn write(essence: &str, parameters: &[(String, String)]) -> Vec<u8> {
    let mut value = ContentType::new(essence);
    for (name, text) in parameters {
        value = value.attribute(name.as_str(), text.as_str());
    }
    let mut written = Vec::new();
    value.write_header(&mut written, "Content-Type: ".len());
    written
}

/// Parameters to append to a value that is already there: `;` CRLF blank name=value ..., without a
/// last line end.
#[must_use]
pub fn write_more(parameters: &[(String, String)]) -> Vec<u8> {
    let mut written = Vec::new();
    for (name, text) in parameters {
        let whole = write("x/x", &[(name.clone(), text.clone())]);
        let parameter = memchr::memchr(b';', &whole)
            .and_then(|semicolon| whole.get(semicolon + 1..))
            .unwrap_or_default()
            .trim_ascii();
        written.extend_from_slice(b";\r\n ");
        written.extend_from_slice(parameter);
    }
    written
}

/// Whether ASCII bytes mean ASCII characters in this charset (any case), wherever they stand.
/// Unknown charsets count as compatible: nearly all are.
#[must_use]
pub fn is_ascii_compatible(charset: &str) -> bool {
    let lower = charset.trim().to_ascii_lowercase();
    let wide = [
        "utf-16", "utf16", "utf-32", "utf32", "ucs-2", "ucs-4", "utf-7", "utf7",
    ];
    let escaped = [
        "iso-2022",
        "hz-gb",
        "iso-10646-ucs",
        "csiso2022",
        "unicode-1-1-utf-7",
    ];
    let ebcdic = [
        "ebcdic", "ibm037", "ibm500", "ibm1047", "cp037", "cp500", "cp1047",
    ];
    ![wide.as_slice(), &escaped, &ebcdic]
        .concat()
        .iter()
        .any(|prefix| lower.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(field: &str, name: &str) -> Option<String> {
        MediaType::parse(field.as_bytes())
            .parameter(name)
            .map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    #[test]
    fn the_essence_is_lower_case_and_comments_do_not_matter() {
        let typed = MediaType::parse(b" (x(y)) Message / (z) External-Body ; A=b");
        assert_eq!(typed.essence, "message/external-body");
        assert_eq!(MediaType::parse(b"text").essence, "text/plain");
        assert_eq!(MediaType::parse(b"").essence, "text/plain");
        assert_eq!(MediaType::parse(b"a/b/c; x=y").essence, "a/b");
    }

    #[test]
    fn parameters_come_quoted_bare_and_in_any_order() {
        let field = "m/x; URL=http://x/y?a=b; name=\"a;\\\"b\"; charset=us-ascii (Plain text)";
        assert_eq!(value(field, "url").as_deref(), Some("http://x/y?a=b"));
        assert_eq!(value(field, "NAME").as_deref(), Some("a;\"b"));
        assert_eq!(value(field, "charset").as_deref(), Some("us-ascii"));
        assert_eq!(value(field, "size"), None);
    }

    #[test]
    fn comments_between_tokens_are_no_part_of_them() {
        let field = "message (c1) / (c2) external-body (c3) ; (c4) access-type (c5) = (c6) URL (c7) ; \
                     (c;8) URL (c=9) = (c\"10(x)) \"data:,hi\" (c11); size(c12)=(c13)\"3\";x=y (a;b=c) ;z=1";
        assert_eq!(value(field, "access-type").as_deref(), Some("URL"));
        assert_eq!(value(field, "url").as_deref(), Some("data:,hi"));
        assert_eq!(value(field, "size").as_deref(), Some("3"));
        assert_eq!(value(field, "x").as_deref(), Some("y"));
        assert_eq!(value(field, "z").as_deref(), Some("1"));
        assert_eq!(value(field, "b"), None);
    }

    #[test]
    fn parentheses_that_are_no_comments_stay() {
        let field = "a/b; name=(1).txt; url=http://h/a(b)c; u*0(c)=one; u*1 (c) =two";
        assert_eq!(value(field, "name").as_deref(), Some("(1).txt"));
        assert_eq!(value(field, "url").as_deref(), Some("http://h/a(b)c"));
        assert_eq!(value(field, "u").as_deref(), Some("onetwo"));
        assert_eq!(value("a/b; x (c) y=z", "x"), None);
        assert_eq!(value("a/b; x=y (c; z=1", "z").as_deref(), Some("1"));
        assert_eq!(value("a/b; x (c=1; z=1", "z").as_deref(), Some("1"));
        assert_eq!(value("a/b; x= (c; z=1", "z").as_deref(), Some("1"));
    }

    #[test]
    fn one_word_is_read_between_comments() {
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

    #[test]
    fn all_parameters_are_what_each_looked_up_alone_is() {
        let field =
            b"a/b; B*1=two; b*0=one; c*1=x; D=\"p;q\"; d=no; e*=utf-8''%c3%a9; f;\r\n g=1\r\n 2";
        let typed = MediaType::parse(field);
        let all = typed.decoded_parameters(32);
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b", "d", "e", "g"]);
        for (name, text) in &all {
            let alone = header::unfold(&typed.parameter(name).expect("it was found"));
            assert_eq!(text.as_bytes(), alone, "{name}");
        }
        assert_eq!(typed.decoded_parameters(1).len(), 1);
    }

    #[test]
    fn parameters_by_the_million_are_looked_at_a_few_times_each() {
        // Names without a section 0 made each parameter a search for all others.
        let mut field = String::from("a/b");
        for n in 0..1 << 16 {
            field.push_str(&format!(";a{n}*1=x"));
        }
        assert_eq!(
            MediaType::parse(field.as_bytes()).decoded_parameters(32),
            []
        );
        // As did comments without an end.
        for unit in [
            ";a=b (", ";a (", ";a= (", ";a=(", ";u*1=(", ";u*1=b (", ";(", "(;a=()",
        ] {
            let field = format!("a/b{}", unit.repeat(1 << 16));
            let _ = MediaType::parse(field.as_bytes()).decoded_parameters(32);
        }
    }

    #[test]
    fn of_two_parameters_with_one_name_the_first_counts() {
        assert_eq!(value("a/b; x=1; x=2", "x").as_deref(), Some("1"));
    }

    #[test]
    fn continued_sections_are_put_in_order() {
        let field = "a/b; URL*1=\"two\"; URL*0=\"one\"; URL*2=three";
        assert_eq!(value(field, "url").as_deref(), Some("onetwothree"));
        let many = (0..12)
            .rev()
            .map(|n| format!(";u*{n}={n}."))
            .collect::<String>();
        assert_eq!(
            value(&format!("a/b{many}"), "u").as_deref(),
            Some("0.1.2.3.4.5.6.7.8.9.10.11.")
        );
    }

    #[test]
    fn a_missing_section_is_told_from_a_missing_parameter() {
        let typed = MediaType::parse(b"a/b; u*0=x; u*2=y");
        assert_eq!(typed.look_up("u"), Found::SectionMissing(1));
        assert_eq!(typed.look_up("v"), Found::None);
    }

    #[test]
    fn the_encoded_layer_is_decoded_exactly_once() {
        let field = "a/b; URL*=us-ascii''http%3a%2f%2fx%2f%2541";
        assert_eq!(value(field, "url").as_deref(), Some("http://x/%41"));
        let mixed = "a/b; t*0*=iso-8859-1'en'%e9; t*1=%e9; t*2*=%zz%E8";
        assert_eq!(value(mixed, "t").as_deref(), Some("é%e9%zzè"));
    }

    #[test]
    fn what_is_written_reads_back() {
        let parameters = [
            ("charset".to_owned(), "utf-8".to_owned()),
            ("name".to_owned(), "Jahresabschluß; \"2024\".pdf".to_owned()),
        ];
        let written = write("text/plain", &parameters);
        let typed = MediaType::parse(&written);
        assert_eq!(typed.essence, "text/plain");
        for (name, text) in &parameters {
            assert_eq!(typed.parameter(name).as_deref(), Some(text.as_bytes()));
        }
        let more = [b"text/plain".as_slice(), &write_more(&parameters)].concat();
        assert_eq!(
            MediaType::parse(&more).parameter("name").as_deref(),
            Some("Jahresabschluß; \"2024\".pdf".as_bytes())
        );
    }

    #[test]
    fn broken_values_end_somewhere() {
        for field in [
            "a/b; x=\"",
            "a/b; x=\"\\",
            "a/b; (((",
            "a/b;;;=;=",
            "(",
            "a/(",
            "a/b; *=x; **=y",
        ] {
            let _ = MediaType::parse(field.as_bytes()).parameters().count();
        }
        assert_eq!(value("a/b; x=\"abc", "x").as_deref(), Some("abc"));
    }
}
