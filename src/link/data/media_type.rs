//! The media type of a `data:` URL: MIME Sniffing §4, with RFC 2397's defaults and escapes.

use percent_encoding::percent_decode_str;

use crate::link::url::cut;

/// Fends off headers made of a million parameters: each new name is compared with those before it.
pub const MAX_PARAMETERS: usize = 64;

/// Values of parameters may hold any character but controls, and a name may be any HTTP token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MediaTypeText {
    /// `type/subtype` in lower case, defaults filled in.
    pub essence: String,
    /// Name, in lower case, and bare value of each, in order; no name twice.
    pub parameters: Vec<(String, String)>,
    /// False if no type can be read, or there are parameters only: `;charset=x` is short for `text/plain;charset=x`.
    is_declared: bool,
}

impl MediaTypeText {
    /// MIME Sniffing §4.4, "parse a MIME type", to the letter but for [`MAX_PARAMETERS`]. `%` has no meaning here.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.trim_matches(HTTP_WHITE_SPACE).split_once('/')?;
        let (subtype, mut rest) = cut(rest, ';');
        let subtype = subtype.trim_end_matches(HTTP_WHITE_SPACE);
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

    /// Fetch's reading, then `%xx` decoded.
    pub(super) fn of_data_url(declared: &str) -> Self {
        let is_declared = !declared.starts_with(';');
        let parsed = match is_declared {
            true => Self::parse(declared),
            false => Self::parse(&format!("text/plain{declared}")),
        };
        let Some(parsed) = parsed else {
            return Self {
                essence: "text/plain".to_owned(),
                parameters: vec![("charset".to_owned(), "US-ASCII".to_owned())],
                is_declared: false,
            };
        };
        Self {
            is_declared,
            ..parsed.unescaped()
        }
    }

    pub fn declared_essence(&self) -> Option<&str> {
        self.is_declared.then_some(self.essence.as_str())
    }

    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    fn take_parameter<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let text = text.trim_start_matches(HTTP_WHITE_SPACE);
        let name_end = text.find([';', '=']).unwrap_or(text.len());
        let (name, text) = text.split_at(name_end);
        let Some(text) = text.strip_prefix('=') else {
            return text.strip_prefix(';');
        };
        let (value, rest) = match text.strip_prefix('"').map(unquoted) {
            Some((value, behind)) => (value, cut(behind, ';').1),
            None => {
                let (value, rest) = cut(text, ';');
                let value = value.trim_end_matches(HTTP_WHITE_SPACE);
                if value.is_empty() {
                    return rest;
                }
                (value.to_owned(), rest)
            }
        };
        let is_quotable = |symbol| matches!(symbol, '\t' | ' '..='~' | '\u{80}'..='\u{ff}');
        if is_token(name) && value.chars().all(is_quotable) {
            self.add(name.to_ascii_lowercase(), value);
        }
        rest
    }

    fn add(&mut self, name: String, value: String) {
        if self.parameter(&name).is_none() {
            self.parameters.push((name, value));
        }
    }

    /// Where the result may stand (deviation 2 of the module).
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

/// Fetch's "collect an HTTP quoted string" behind the opening quote. An unclosed one reaches to the end.
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

/// Bad escapes stay; None: it is not UTF-8.
fn unescaped(text: &str) -> Option<String> {
    let octets = percent_decode_str(text).decode_utf8().ok()?;
    Some(octets.into_owned())
}

fn unescaped_token(text: &str) -> Option<String> {
    let token = unescaped(text).filter(|token| is_token(token));
    token.map(|token| token.to_ascii_lowercase())
}

const HTTP_WHITE_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

fn is_token(text: &str) -> bool {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_byte)
}
