//! Content-Type values: type, subtype, and parameters (RFC 2045 §5.1, RFC 2231), read as slices of
//! the field and written back.
//!
//! mail-parser's own Content-Type parser is not used for the parameters: it replaces octets that
//! are not UTF-8, ends an unquoted value at a fold, and looks every continuation up in a list of
//! all the others, so that a hostile header costs quadratic time. Its charset decoders are used for
//! RFC 2231, and mail-builder writes parameters that have no original.
//!
//! Deviations from RFC 2045 and RFC 2231, because mail has them:
//! * an unquoted value runs to the next semicolon, whatever it holds (`URL=http://x/y?a=b`);
//! * a quoted value that is never closed runs to the end of the field, and [`Found::CutOff`] tells:
//!   mail systems cut fields off that are long (Postfix at 102 400 octets);
//! * of two parameters with one name the first counts; a continued or encoded form goes before a
//!   plain one;
//! * sections may come in any order, but none may be missing;
//! * text in RFC 2231's charset becomes UTF-8; an unknown charset's octets stay as they are.

use std::borrow::Cow;

use mail_builder::headers::{Header as _, content_type::ContentType};
use mail_parser::decoders::charsets::map::charset_decoder;
use memchr::{memchr_iter, memchr2};

use super::charset::Charset;

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
        }
    }

    /// The value of one parameter with quotes, RFC 2231 sections and encodings undone, folds
    /// still in it. The encoded layer is decoded exactly once.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        match self.look_up(name) {
            Found::Whole(value) | Found::CutOff(value) => Some(value),
            Found::None | Found::SectionMissing(_) => None,
        }
    }

    /// Like [`MediaType::parameter`], but tells a value with a missing section from no value, and
    /// one that was cut off from a whole one.
    #[must_use]
    pub fn look_up(&self, name: &str) -> Found<'a> {
        let mut plain = None;
        let mut sections: Vec<Parameter<'a>> = Vec::new();
        let mut cut_off = false;
        let mut parameters = self.parameters();
        while let Some(mut parameter) = parameters.next() {
            if !parameter.name.eq_ignore_ascii_case(name.as_bytes()) {
                continue;
            }
            let is_last = parameters.at >= parameters.bytes.len();
            if self.is_open && is_last && parameter.quoting == Quoting::Bare {
                parameter.quoting = Quoting::Unclosed;
            }
            if parameter.section.is_some() || parameter.encoding == ValueEncoding::Percent {
                // Behind what is there, another section may have stood.
                cut_off |= parameter.quoting == Quoting::Unclosed
                    || (self.is_open && parameter.section.is_some());
                sections.push(parameter);
            } else if plain.is_none() {
                plain = Some(parameter);
            }
        }
        if sections.is_empty() {
            return plain.map_or(Found::None, |parameter| Found::of(&parameter));
        }
        match join_sections(sections) {
            Ok(value) if cut_off => Found::CutOff(Cow::Owned(value)),
            Ok(value) => Found::Whole(Cow::Owned(value)),
            // The plain form is there for readers that do not know RFC 2231.
            Err(missing) => plain.map_or(Found::SectionMissing(missing), |parameter| {
                Found::of(&parameter)
            }),
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
}

impl<'a> Iterator for Parameters<'a> {
    type Item = Parameter<'a>;

    fn next(&mut self) -> Option<Parameter<'a>> {
        loop {
            let mut at = skip_blanks_and_comments(self.bytes, self.at);
            while self.bytes.get(at) == Some(&b';') {
                at = skip_blanks_and_comments(self.bytes, at + 1);
            }
            if at >= self.bytes.len() {
                self.at = at;
                return None;
            }
            let rest = self.bytes.get(at..).unwrap_or_default();
            let end = memchr2(b'=', b';', rest).unwrap_or(rest.len());
            let (written, behind) = rest.split_at(end);
            at += end;
            if behind.first() != Some(&b'=') {
                // A word without a value: `;base64`, a stray quote, a truncated field.
                self.at = at;
                continue;
            }
            let (raw, quoting, next) = read_value(self.bytes, at + 1);
            self.at = next;
            let (name, section, encoding) = split_name(written.trim_ascii());
            return Some(Parameter {
                name,
                section,
                encoding,
                raw,
                quoting,
            });
        }
    }
}

/// Reads a value; gives it, how it was written, and where to go on.
fn read_value(bytes: &[u8], from: usize) -> (&[u8], Quoting, usize) {
    let start = skip_blanks(bytes, from);
    if bytes.get(start) == Some(&b'"') {
        let open = start + 1;
        let mut at = open;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            match memchr2(b'"', b'\\', rest) {
                None => {
                    let raw = bytes.get(open..).unwrap_or_default();
                    return (raw, Quoting::Unclosed, bytes.len());
                }
                Some(hit) if rest[hit] == b'"' => {
                    let raw = bytes.get(open..at + hit).unwrap_or_default();
                    return (raw, Quoting::Quoted, at + hit + 1);
                }
                Some(hit) => at += hit + 2,
            }
        }
    }
    let rest = bytes.get(start..).unwrap_or_default();
    let end = memchr::memchr(b';', rest).unwrap_or(rest.len());
    let mut raw = rest.get(..end).unwrap_or_default();
    // A comment behind a bare value: `charset=us-ascii (Plain text)`, RFC 2045 §5.1's own example.
    if let Some(comment) = memchr_iter(b'(', raw).find(|&at| {
        at.checked_sub(1)
            .and_then(|before| raw.get(before))
            .is_some_and(|byte| is_blank(*byte))
    }) {
        raw = raw.get(..comment).unwrap_or_default();
    }
    (raw.trim_ascii(), Quoting::Bare, start + end)
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

/// Joins RFC 2231 sections; the error is the number of the missing one.
fn join_sections(mut sections: Vec<Parameter<'_>>) -> Result<Vec<u8>, u32> {
    // `name*=` without a number is a value in one section.
    sections.sort_by_key(|parameter| parameter.section.unwrap_or(0));
    sections.dedup_by_key(|parameter| parameter.section.unwrap_or(0));
    let mut joined = Vec::new();
    let mut charset = Vec::new();
    for (expected, parameter) in (0u32..).zip(&sections) {
        if parameter.section.unwrap_or(0) != expected {
            return Err(expected);
        }
        let value = parameter.unquoted();
        if parameter.encoding == ValueEncoding::None {
            joined.extend_from_slice(&value);
            continue;
        }
        let mut text = value.as_ref();
        if expected == 0 {
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
    let mut at = skip_blanks(bytes, from);
    while bytes.get(at) == Some(&b'(') {
        let mut depth = 0usize;
        loop {
            match bytes.get(at) {
                None => return bytes.len(),
                Some(b'\\') => at += 1,
                Some(b'(') => depth += 1,
                Some(b')') => depth -= 1,
                Some(_) => {}
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
        at = skip_blanks(bytes, at);
    }
    at.min(bytes.len())
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

/// Whether what looks like ASCII in a text of this charset (any case) is, but for the second bytes of
/// characters. Unknown charsets count as compatible: nearly all are.
#[must_use]
pub fn is_ascii_compatible(charset: &str) -> bool {
    Charset::of_label(charset.as_bytes()) != Some(Charset::Other)
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
