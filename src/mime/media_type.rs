//! Reading and writing of Content-Type values: type, subtype and parameters (RFC 2045 §5.1, RFC 2231). Values are
//! read as slices of the field.
//!
//! The Content-Type parser of mail-parser is not used for parameters. It replaces bytes that are not UTF-8, ends an
//! unquoted value at a fold, and compares each section of a parameter with all others, so that a malicious header
//! takes quadratic time.
//!
//! Deviations from RFC 2045 and RFC 2231, because they occur in mail:
//! * An unquoted value extends to the next semicolon, or to a comment after white space, and may contain any other
//!   characters (`URL=http://x/y?a=b`). A comment without white space before it is part of the value (`name=(1).txt`).
//! * After an unclosed comment, parentheses have no meaning.
//! * An unclosed quoted value extends to the end of the field, and the result is [`Lookup::CutOff`], because mail systems
//!   cut off long fields (Postfix at 102 400 bytes).
//! * Of two parameters with the same name, the first one counts. A form with sections or a charset (RFC 2231) takes
//!   precedence over a plain one.
//! * Sections can be in any order, but none may be missing.
//! * Text in a charset of RFC 2231 is converted to UTF-8. Bytes in an unsupported charset are kept, and the result is
//!   [`Lookup::Undecodable`].

use std::borrow::Cow;

use mail_builder::headers::{Header as _, content_type::ContentType, text::Text};

use super::encoded_words::decoded_name;
use super::header;
pub use super::parameters::{Lookup, Parameters};
use super::parameters::{ParameterOccurrences, skip_blanks_and_comments};

use super::charset::{Charset, with_octets_escaped};
use crate::span::{split_while, starts_like, until};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MediaType<'a> {
    /// `type/subtype` in lower case. It is text/plain if the value lacks either of them (RFC 2045 §5.2).
    pub essence: Cow<'a, str>,
    rest: &'a [u8],
    is_open: bool,
}

pub const DEFAULT_TYPE: &str = "text/plain";

impl<'a> MediaType<'a> {
    /// Parses a Content-Type value. A malformed value is read as `text/plain` without parameters, so parsing cannot fail.
    pub fn parse(value: &'a [u8]) -> Self {
        let mut at = skip_blanks_and_comments(value, 0);
        let main = token(value, at);
        at = skip_blanks_and_comments(value, at + main.len());
        let mut sub: &[u8] = &[];
        if value.get(at) == Some(&b'/') {
            at = skip_blanks_and_comments(value, at + 1);
            sub = token(value, at);
            at += sub.len();
        }
        let behind = &value[at..];
        let rest = &behind[until(b';', behind).len()..];
        let essence = match (std::str::from_utf8(main), std::str::from_utf8(sub)) {
            (Ok(main), Ok(sub)) if !main.is_empty() && !sub.is_empty() => {
                let mut essence = [main, "/", sub].concat();
                essence.make_ascii_lowercase();
                Cow::Owned(essence)
            }
            _ => Cow::Borrowed(DEFAULT_TYPE),
        };
        Self {
            essence,
            rest,
            is_open: false,
        }
    }

    pub fn bare(self) -> MediaType<'static> {
        MediaType {
            essence: Cow::Owned(self.essence.into_owned()),
            rest: &[],
            is_open: false,
        }
    }

    /// Marks the value as cut off: the input ends within the field, so the last parameter may be incomplete.
    pub fn open_ended(self) -> Self {
        Self {
            is_open: true,
            ..self
        }
    }

    pub fn main(&self) -> &str {
        self.essence.split('/').next().unwrap_or_default()
    }

    pub fn parameters(&self) -> Parameters<'a> {
        Parameters::of(self.rest, self.is_open)
    }

    /// Returns the value of a parameter. Quotes, sections and encodings of RFC 2231 are removed, but folds are kept.
    pub fn parameter(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        self.look_up(name).value()
    }

    pub fn look_up(&self, name: &str) -> Lookup<'a> {
        let mut written = ParameterOccurrences::default();
        let mut parameters = self.parameters();
        for (at, parameter) in parameters.by_ref() {
            if parameter.name.eq_ignore_ascii_case(name.as_bytes()) {
                written.add(at, parameter, self.is_open);
            }
        }
        written.found(&parameters)
    }

    /// Returns the value of a parameter that contains a name for display. Encoded words in it are decoded as well:
    /// RFC 2047 §5 forbids them in parameters, but most programs write them.
    pub fn name(&self, parameter: &str) -> NamedType {
        let value = match self.look_up(parameter) {
            Lookup::None | Lookup::SectionMissing(_) => return NamedType::None,
            Lookup::Undecodable(octets) => {
                let shown = with_octets_escaped(&octets).into_owned();
                return NamedType::Undecodable(shown);
            }
            Lookup::Whole(value) | Lookup::CutOff(value) => header::unfold(&value),
        };
        match decoded_name(&value) {
            Some(name) => NamedType::Text(name),
            None => NamedType::Undecodable(with_octets_escaped(&value).into_owned()),
        }
    }

    /// Returns all sections of a parameter as they are written, each after a `;`.
    pub fn written(&self, name: &str) -> Vec<u8> {
        let mut written = Vec::new();
        let mut parameters = self.parameters();
        while let Some((start, parameter)) = parameters.next() {
            let text = self.rest.get(start..parameters.position());
            if parameter.name.eq_ignore_ascii_case(name.as_bytes()) {
                written.push(b';');
                written.extend_from_slice(b"\r\n ");
                written.extend_from_slice(text.unwrap_or_default().trim_ascii());
            }
        }
        written
    }

    /// Returns the first `at_most` parameters, decoded and unfolded, with names in lower case, in the order of their
    /// first occurrence. The field is read only once.
    pub fn decoded_parameters(&self, at_most: usize) -> Vec<(String, String)> {
        let mut names: Vec<(&[u8], ParameterOccurrences<'a>)> = Vec::new();
        let mut parameters = self.parameters();
        for (at, parameter) in parameters.by_ref() {
            let is_its = |name: &[u8]| name.eq_ignore_ascii_case(parameter.name);
            if names.len() < at_most && !names.iter().any(|(name, _)| is_its(name)) {
                names.push((parameter.name, ParameterOccurrences::default()));
            }
            if let Some((_, written)) = names.iter_mut().find(|(name, _)| is_its(name)) {
                written.add(at, parameter, self.is_open);
            }
        }
        let decoded = names.into_iter().filter_map(|(name, written)| {
            let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
            let decoded = match written.found(&parameters) {
                // The result is written into mail, so a parameter that cannot be decoded is left out, because a guess
                // could be wrong. If it is the name of the file, another field may contain the name as well.
                Lookup::Undecodable(_) => return None,
                found => found.value()?,
            };
            let value = String::from_utf8(header::unfold(&decoded)).ok()?;
            Some((name, value))
        });
        decoded.collect()
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NamedType {
    None,
    Text(String),
    /// The value in its undecoded form: its charset is unknown, or some of its bytes are not characters in the charset.
    /// It may be displayed, but must not be written into mail as a name.
    Undecodable(String),
}

impl NamedType {
    pub fn text(self) -> Option<String> {
        match self {
            Self::Text(name) => Some(name),
            Self::None | Self::Undecodable(_) => None,
        }
    }
}

/// Returns the token that begins at `from` (RFC 2045 §5.1), which is empty if another character is at `from`.
fn token(bytes: &[u8], from: usize) -> &[u8] {
    let ends = |byte: &u8| *byte <= b' ' || *byte == 0x7f || b"()<>@,;:\\\"/[]?=".contains(byte);
    let (token, _) = split_while(&bytes[from..], |byte| !ends(byte));
    token
}

/// Returns a Content-Type field for a new part. Line endings are CRLF, and the field ends with one.
pub fn write(essence: &str, parameters: &[(String, String)]) -> Vec<u8> {
    let mut value = ContentType::new(essence);
    for (name, text) in parameters {
        value = value.attribute(name.as_str(), text.as_str());
    }
    let mut written = b"Content-Type: ".to_vec();
    let length = written.len();
    value.write_header(&mut written, length);
    written
}

/// Returns parameters that can be appended to a value. Each begins with `;`, CRLF and a space. There is no line
/// ending at the end.
pub fn write_more(parameters: &[(String, String)]) -> Vec<u8> {
    let mut written = Vec::new();
    for (name, text) in parameters {
        let whole = write("x/x", &[(name.clone(), text.clone())]);
        let parameter = whole.splitn(2, |&byte| byte == b';').nth(1);
        written.extend_from_slice(b";\r\n ");
        written.extend_from_slice(parameter.unwrap_or_default().trim_ascii());
    }
    written
}

/// Returns a field with text. Text outside of ASCII is written in encoded words (RFC 2047), and control characters
/// are removed. Line endings are CRLF.
pub fn write_text(name: &str, text: &str) -> Vec<u8> {
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    let mut written = format!("{name}: ").into_bytes();
    // The field name takes part of the first line, so fewer characters of the text fit on it.
    let length = written.len();
    Text::new(text).write_header(&mut written, length);
    written
}

pub fn is_composite(essence: &str) -> bool {
    essence.starts_with("multipart/") || essence.starts_with("message/")
}

/// Returns whether ASCII bytes are ASCII characters in the charset, except for second bytes of characters. Unknown
/// charsets count as compatible, because almost all charsets are.
pub fn is_ascii_compatible(charset: &str) -> bool {
    Charset::of_label(charset.as_bytes()) != Some(Charset::Other)
}

/// Returns whether the content begins like a web page.
pub(crate) fn is_markup(start: &[u8]) -> bool {
    let without_mark = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let text = without_mark.trim_ascii_start();
    starts_like(text, b"<!doctype html") || starts_like(text, b"<html")
}

/// Returns whether a media type without parameters is HTML or XHTML.
pub fn is_page(essence: &str) -> bool {
    matches!(essence, "text/html" | "application/xhtml+xml")
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
    fn listing_all_parameters_agrees_with_looking_up_each() {
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
        // An earlier version took quadratic time here: for each parameter without a section 0, it searched all other
        // parameters.
        let mut field = String::from("a/b");
        for n in 0..1 << 16 {
            field.push_str(&format!(";a{n}*1=x"));
        }
        assert_eq!(
            MediaType::parse(field.as_bytes()).decoded_parameters(32),
            []
        );
        // In an earlier version, unclosed comments took quadratic time as well.
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
    fn a_missing_section_is_told_from_a_missing_parameter() {
        let typed = MediaType::parse(b"a/b; u*0=x; u*2=y");
        assert_eq!(typed.look_up("u"), Lookup::SectionMissing(1));
        assert_eq!(typed.look_up("v"), Lookup::None);
    }

    #[test]
    fn what_is_written_reads_back() {
        let parameters = [
            ("charset".to_owned(), "utf-8".to_owned()),
            ("name".to_owned(), "Jahresabschluß; \"2024\".pdf".to_owned()),
        ];
        let field = write("text/plain", &parameters);
        let typed = MediaType::parse(&field["Content-Type: ".len()..]);
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
    fn parsing_a_broken_parameter_value_terminates() {
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
