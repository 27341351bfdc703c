//! A message as Eudora stores it. Eudora took the multipart apart but kept its header, so some header fields no longer describe
//! the body.

use crate::engine::forms::eudora::notes::{EudoraNote, EudoraPiece, EudoraText, eudora_pieces};
use crate::engine::policy::Policy;
use crate::mime::MediaType;
use crate::mime::header::{Header, SectionEnd, unfold};
use crate::span::{Newline, Span, SpanLines};

pub(crate) struct FlattenedMessage<'m> {
    pub(in crate::engine) message: &'m [u8],
    pub(in crate::engine) header: Header,
    pub(in crate::engine) body: Span,
    pub(in crate::engine) newline: Newline,
    pub(in crate::engine) media_type: Option<&'m [u8]>,
    pub(in crate::engine) pieces: Vec<EudoraPiece>,
    pub(in crate::engine) is_cut: bool,
    pub(in crate::engine) named: Vec<EudoraNote>,
    pub(in crate::engine) boundary: String,
    pub(in crate::engine) inner: String,
}

impl<'m> FlattenedMessage<'m> {
    pub(crate) fn read(message: &'m [u8], policy: &Policy) -> Option<Self> {
        let header = Header::of_message(message, policy.limits.header);
        let body = Span::new(header.body_start(), message.len());
        let media_type = header.fields.value(message, "Content-Type");
        if header.end == SectionEnd::TooLarge || holds_boundary(message, body, media_type) {
            return None;
        }
        // Up to one text precedes each file, so the multipart can have twice as many parts as there are files.
        let most = policy.limits.parts / 2;
        let (pieces, is_cut) = eudora_pieces(message, body, most);
        let named = EudoraNote::of_header(message, &header.fields, most);
        Some(Self {
            message,
            pieces,
            is_cut,
            newline: Newline::of_first_line(message),
            header,
            body,
            media_type,
            named,
            boundary: String::new(),
            inner: String::new(),
        })
    }

    pub(crate) fn notes(&self) -> impl Iterator<Item = &EudoraNote> {
        let of_body = self.pieces.iter().filter_map(|piece| match piece {
            EudoraPiece::Note(note) => Some(note),
            EudoraPiece::Text(_) => None,
        });
        of_body.chain(&self.named)
    }

    pub(in crate::engine) fn texts(&self) -> impl Iterator<Item = (usize, &EudoraText)> {
        let numbered = self.pieces.iter().enumerate();
        numbered.filter_map(|(number, piece)| match piece {
            EudoraPiece::Text(text) => Some((number, text)),
            EudoraPiece::Note(_) => None,
        })
    }
}

/// Returns true if the header declares a multipart and the body contains its boundary lines. Eudora did not take such a
/// message apart.
fn holds_boundary(message: &[u8], body: Span, media_type: Option<&[u8]>) -> bool {
    let multipart = media_type
        .map(MediaType::parse)
        .filter(|it| it.main() == "multipart");
    let boundary = multipart.as_ref().and_then(|it| it.parameter("boundary"));
    let Some(boundary) = boundary.filter(|it| !it.is_empty()) else {
        return false;
    };
    SpanLines::new(message, body).any(|line| {
        let line = line.content.of(message).strip_prefix(b"--");
        line.is_some_and(|line| line.starts_with(&boundary))
    })
}

impl FlattenedMessage<'_> {
    pub(in crate::engine) fn is_marked(&self) -> bool {
        self.texts().any(|(_, text)| text.wrapper.is_some())
    }

    /// Returns the charset of a text. For ASCII text, this is the charset in the header, or `None`. For other text, the first
    /// of these charsets that exists is used: the charset to which Eudora for the Mac converted the text, the charset in the
    /// header, UTF-8 if the bytes are valid, the charset that Eudora noted, `unknown-8bit`. A declared charset that contradicts
    /// the bytes is ignored.
    pub(in crate::engine) fn charset(&self, text: &EudoraText) -> Option<String> {
        let octets = text.span.of(self.message);
        let is_utf8 = std::str::from_utf8(octets).is_ok();
        let is_false = |charset: &str| match &*charset.to_ascii_lowercase() {
            "us-ascii" => !octets.is_ascii(),
            "utf-8" | "utf8" => !is_utf8,
            _ => false,
        };
        let header = self
            .media_type
            .map(MediaType::parse)
            .and_then(|it| token(&it.parameter("charset")?, b"()<>@,;:\\\"/[]?="))
            .filter(|charset| !is_false(charset));
        if octets.is_ascii() {
            return header;
        }
        // Eudora notes the charset in a comment. `X/Y` in it means that the text arrived in the charset X and that Eudora
        // converted it to Y, such as `macintosh`.
        let comment = text
            .charset
            .map(|span| span.of(self.message))
            .and_then(|octets| token(octets, b"()<>@,;:\\\"[]?="));
        let (is_made, written) = match comment.as_deref().map(|it| it.rsplit_once('/')) {
            Some(Some((_, made))) => (true, Some(made.to_owned())),
            _ => (false, comment),
        };
        let noted = written
            .map(|charset| match &*charset.to_ascii_lowercase() {
                "x-mac-roman" => "macintosh".to_owned(),
                _ => charset,
            })
            .filter(|charset| !is_false(charset));
        match (noted, header) {
            (Some(made), _) if is_made && !is_utf8 => Some(made),
            (_, Some(header)) => Some(header),
            _ if is_utf8 => Some("utf-8".to_owned()),
            (Some(named), None) => Some(named),
            (None, None) => Some("unknown-8bit".to_owned()),
        }
    }

    /// Returns true if the body is already decoded, although the header still names an encoding.
    pub(in crate::engine) fn is_decoded(&self) -> bool {
        let octets = self.body.of(self.message);
        let encoding = self
            .header
            .fields
            .value(self.message, "Content-Transfer-Encoding")
            .map(|value| unfold(value).trim_ascii().to_ascii_lowercase());
        match encoding.as_deref() {
            // In quoted-printable, every `=` begins an escape sequence or ends a line. If the body contains an `=` in another
            // place, it is already decoded.
            Some(b"quoted-printable") => !memchr::memchr_iter(b'=', octets).all(|at| {
                let hexadecimal = |octet: Option<&u8>| octet.is_some_and(u8::is_ascii_hexdigit);
                let behind = &octets[at + 1..];
                matches!(behind, [] | [b'\n', ..] | [b'\r', b'\n', ..])
                    || hexadecimal(behind.first()) && hexadecimal(behind.get(1))
            }),
            Some(b"base64") => !octets.iter().all(|octet| {
                let is_symbol = matches!(octet, b'+' | b'/' | b'=');
                octet.is_ascii_alphanumeric() || octet.is_ascii_whitespace() || is_symbol
            }),
            Some(b"7bit") => !octets.is_ascii(),
            _ => false,
        }
    }
}

pub(in crate::engine) fn token(text: &[u8], without: &[u8]) -> Option<String> {
    const LONGEST: usize = 900;
    let is_fit = |octet: &u8| octet.is_ascii_graphic() && !without.contains(octet);
    let is_one = !text.is_empty() && text.len() <= LONGEST && text.iter().all(is_fit);
    String::from_utf8(text.to_vec()).ok().filter(|_| is_one)
}
