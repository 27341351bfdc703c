//! The media type of a `data:` URL: parsing according to MIME Sniffing §4, with the default values and escapes of RFC 2397.

use percent_encoding::percent_decode_str;

use crate::link::url::cut;

/// Maximum number of parameters. Each new name is compared with all previous ones, so a URL with a million parameters
/// would take too long.
pub const MAX_PARAMETERS: usize = 64;

/// A media type as text. A name may be any token of HTTP, and a value may contain any character except control characters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MediaTypeText {
    /// `type/subtype` in lower case. It is `text/plain` if the URL has no type.
    pub essence: String,
    /// Name in lower case and unquoted value of each parameter, in order. Each name occurs only once.
    pub parameters: Vec<(String, String)>,
    /// Whether the URL has a valid type. It is `false` if there are only parameters: `;charset=x` is short for
    /// `text/plain;charset=x`.
    is_declared: bool,
}

impl MediaTypeText {
    /// Parses a media type exactly as in MIME Sniffing §4.4 ("parse a MIME type"), except for [`MAX_PARAMETERS`]. `%xx`
    /// is not decoded.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.trim_matches(HTTP_WHITE_SPACE).split_once('/')?;
        let (subtype, mut rest) = cut(rest, b';');
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

    /// Parses the media type of a `data:` URL as the Fetch standard does, and then decodes `%xx` in it.
    pub(super) fn of_data_url(declared: &str) -> Self {
        let is_declared = !declared.starts_with(';');
        let parsed = if is_declared {
            Self::parse(declared)
        } else {
            Self::parse(&format!("text/plain{declared}"))
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
            Some((value, behind)) => (value, cut(behind, b';').1),
            None => {
                let (value, rest) = cut(text, b';');
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

    /// Decodes `%xx` in the type and in the parameters (deviation 2 in the documentation of `data`). If the result of
    /// an escape would be invalid, the escape is kept.
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

/// Reads a quoted string after its opening quote ("collect an HTTP quoted string" in Fetch). A string without a
/// closing quote ends at the end of the text.
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

/// Decodes `%xx` in a text. Invalid escapes are kept. Returns `None` if the decoded bytes are not UTF-8.
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
