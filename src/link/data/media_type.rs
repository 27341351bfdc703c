//! The media type of a `data:` URL: MIME Sniffing §4, with RFC 2397's defaults and escapes.
//!
//! Text in, text out: what a type means, whether it is allowed, and how it is written into a
//! header field is decided elsewhere.

use std::fmt;

use percent_encoding::percent_decode_str;

/// How many parameters of a media type are kept; fends off headers made of a million of them, for
/// each new name is compared with those before it.
pub const MAX_PARAMETERS: usize = 64;

/// A media type as text: what it is, and its parameters with their values bare.
///
/// Displayed, it is MIME Sniffing's serialisation: names in lower case, values quoted where they
/// are no token. That is not yet a header field: values may hold any character but controls, and
/// a name may be any HTTP token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MediaTypeText {
    essence: String,
    parameters: Vec<(String, String)>,
    /// Whether the URL names the type: not if it has parameters only, for `;charset=x` is short for
    /// `text/plain;charset=x`, or none that can be read.
    is_declared: bool,
}

impl MediaTypeText {
    /// MIME Sniffing §4.4, "parse a MIME type", to the letter but for [`MAX_PARAMETERS`].
    /// `%` has no meaning here.
    ///
    /// Nothing if type or subtype is missing or no token. Time is linear in the length.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.trim_matches(is_http_white_space).split_once('/')?;
        let (subtype, mut rest) = match rest.split_once(';') {
            Some((subtype, rest)) => (subtype, Some(rest)),
            None => (rest, None),
        };
        let subtype = subtype.trim_end_matches(is_http_white_space);
        if !is_token(kind) || !is_token(subtype) {
            return None;
        }
        let mut media_type = Self {
            essence: format!("{kind}/{subtype}").to_ascii_lowercase(),
            parameters: Vec::new(),
            is_declared: true,
        };
        while let Some(text) = rest
            && media_type.parameters.len() < MAX_PARAMETERS
        {
            rest = media_type.take_parameter(text);
        }
        Some(media_type)
    }

    /// Fetch's reading of what stands before the comma, then `%xx` decoded.
    pub(super) fn of_data_url(declared: &str) -> Self {
        let parsed = if declared.starts_with(';') {
            let parsed = Self::parse(&format!("text/plain{declared}"));
            parsed.map(|parsed| Self {
                is_declared: false,
                ..parsed
            })
        } else {
            Self::parse(declared)
        };
        parsed.map_or_else(Self::rfc2397_default, Self::unescaped)
    }

    /// What a `data:` URL without a media type has (RFC 2397 §2).
    pub fn rfc2397_default() -> Self {
        Self {
            essence: "text/plain".to_owned(),
            parameters: vec![("charset".to_owned(), "US-ASCII".to_owned())],
            is_declared: false,
        }
    }

    /// `type/subtype` in lower case, defaults filled in.
    pub fn essence(&self) -> &str {
        &self.essence
    }

    /// `type/subtype` in lower case if it was written out.
    pub fn declared_essence(&self) -> Option<&str> {
        self.is_declared.then_some(self.essence.as_str())
    }

    /// Name, in lower case, and value of each parameter, in order; no name twice.
    pub fn parameters(&self) -> &[(String, String)] {
        &self.parameters
    }

    /// The value of the parameter `name`, given in lower case.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Reads the parameter at the start of `text`; what is behind its `;` remains.
    fn take_parameter<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let text = text.trim_start_matches(is_http_white_space);
        let name_end = text.find([';', '=']).unwrap_or(text.len());
        let (name, text) = text.split_at(name_end);
        let Some(text) = text.strip_prefix('=') else {
            return text.strip_prefix(';');
        };
        let (value, rest) = if let Some(quoted) = text.strip_prefix('"') {
            let (value, behind) = unquoted(quoted);
            (Some(value), behind.split_once(';').map(|(_, rest)| rest))
        } else {
            let (value, rest) = match text.split_once(';') {
                Some((value, rest)) => (value, Some(rest)),
                None => (text, None),
            };
            let value = value.trim_end_matches(is_http_white_space);
            ((!value.is_empty()).then(|| value.to_owned()), rest)
        };
        if let Some(value) = value
            && is_token(name)
            && value.chars().all(is_quotable)
        {
            self.add(name.to_ascii_lowercase(), value);
        }
        rest
    }

    /// The first of equal names wins.
    fn add(&mut self, name: String, value: String) {
        if self.parameter(&name).is_none() {
            self.parameters.push((name, value));
        }
    }

    /// `%xx` decoded where the result may stand (deviation 2 of the module).
    fn unescaped(self) -> Self {
        let halves = self.essence.split_once('/');
        let essence = halves.and_then(|(kind, subtype)| {
            let (kind, subtype) = (unescaped_token(kind)?, unescaped_token(subtype)?);
            Some(format!("{kind}/{subtype}"))
        });
        let mut media_type = Self {
            essence: essence.unwrap_or(self.essence),
            parameters: Vec::with_capacity(self.parameters.len()),
            is_declared: self.is_declared,
        };
        for (name, value) in self.parameters {
            let harmless = |value: &String| !value.chars().any(char::is_control);
            let value = unescaped(&value).filter(harmless).unwrap_or(value);
            media_type.add(unescaped_token(&name).unwrap_or(name), value);
        }
        media_type
    }
}

impl fmt::Display for MediaTypeText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.essence)?;
        for (name, value) in &self.parameters {
            if is_token(value) {
                write!(out, ";{name}={value}")?;
            } else {
                let value = value.replace('\\', r"\\").replace('"', r#"\""#);
                write!(out, ";{name}=\"{value}\"")?;
            }
        }
        Ok(())
    }
}

/// Fetch's "collect an HTTP quoted string" behind the opening quote: the value, and what is behind
/// the closing quote. An unclosed one reaches to the end.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\\']) {
        let (plain, special) = rest.split_at(at);
        value.push_str(plain);
        let mut characters = special.chars();
        if characters.next() == Some('"') {
            return (value, characters.as_str());
        }
        value.push(characters.next().unwrap_or('\\'));
        rest = characters.as_str();
    }
    value.push_str(rest);
    (value, "")
}

/// `text` with its `%xx` decoded, bad ones left; nothing if that is not UTF-8.
fn unescaped(text: &str) -> Option<String> {
    let octets = percent_decode_str(text).decode_utf8().ok()?;
    Some(octets.into_owned())
}

fn unescaped_token(text: &str) -> Option<String> {
    let token = unescaped(text).filter(|token| is_token(token));
    token.map(|token| token.to_ascii_lowercase())
}

fn is_http_white_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

/// A non-empty string of HTTP token code points.
fn is_token(text: &str) -> bool {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_byte)
}

/// An HTTP quoted-string token code point.
fn is_quotable(character: char) -> bool {
    matches!(character, '\t' | ' '..='~' | '\u{80}'..='\u{ff}')
}
