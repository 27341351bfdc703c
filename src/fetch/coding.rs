//! Content codings of HTTP responses (RFC 9110 §8.4), both from servers and from captures in WARC files.
//!
//! * `gzip` and `deflate` are decoded. `deflate` means the zlib format, but many servers send the bare deflate stream, which is
//!   also accepted.
//! * Registered codings that were not requested (`br`, `zstd`, `compress` ...) are refused, because they cannot be decoded.
//! * Other values (`utf-8`, `none`, `aws-chunked`) are usually mistakes in the configuration of a server. The bytes are used
//!   unchanged (Fetch §2.2.4, "handle content codings"), but only if they are recognizable, because such a value may also name
//!   an unknown coding. A picture is recognized by its first bytes, text by being valid text of its media type.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};

use crate::detail::{QUOTED, excerpt};
use crate::mime::charset;
use crate::mime::media_type::MediaType;
use crate::mime::picture::is_recognised;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum CodingMethod {
    Identity,
    Gzip,
    Deflate,
    /// The value contains a word that is not a known content coding. The bytes are not decoded.
    Unknown(String),
}

/// Registered content codings (IANA) that this program does not decode. Content with one of them is refused.
const NOT_DECODED: [&str; 9] = [
    "aes128gcm",
    "br",
    "compress",
    "dcb",
    "dcz",
    "exi",
    "pack200-gzip",
    "x-compress",
    "zstd",
];

impl CodingMethod {
    /// Parses the values of all Content-Encoding fields as one list. Empty members and `identity` are ignored.
    ///
    /// # Errors
    /// The reason why the content cannot be decoded.
    pub(crate) fn of<'v>(values: impl Iterator<Item = &'v [u8]>) -> Result<Self, String> {
        let values: Vec<_> = values.map(String::from_utf8_lossy).collect();
        let list = values.join(", ").to_ascii_lowercase();
        let is_meant = |name: &&str| !matches!(*name, "" | "identity");
        let names: Vec<&str> = list.split(',').map(str::trim).filter(is_meant).collect();
        if let Some(name) = names.iter().find(|name| NOT_DECODED.contains(name)) {
            return Err(format!(
                "the server used the content coding {name}, which embody did not request"
            ));
        }
        match names.as_slice() {
            [] => Ok(Self::Identity),
            ["gzip" | "x-gzip"] => Ok(Self::Gzip),
            ["deflate"] => Ok(Self::Deflate),
            several if several.iter().all(is_decoded) => {
                Err("more than one content coding".to_owned())
            }
            _ => Ok(Self::Unknown(list)),
        }
    }

    pub(crate) fn is_compressed(&self) -> bool {
        matches!(self, Self::Gzip | Self::Deflate)
    }

    pub(crate) fn decoder<'r>(&self, source: impl Read + 'r) -> Box<dyn Read + 'r> {
        match self {
            Self::Identity | Self::Unknown(_) => Box::new(source),
            Self::Gzip => Box::new(MultiGzDecoder::new(source)),
            Self::Deflate => Box::new(Inflater::new(source)),
        }
    }

    /// If the coding is unknown, checks whether the bytes look like a picture, or like text of the declared type. Content with
    /// a known coding is not checked. `media_type` is the value of the Content-Type field.
    ///
    /// # Errors
    /// The reason why the content may still be encoded.
    pub(crate) fn check(&self, content: &[u8], media_type: Option<&[u8]>) -> Result<(), String> {
        let Self::Unknown(value) = self else {
            return Ok(());
        };
        let is_text = || {
            let mut names = value.split(',').map(str::trim);
            // Without a slash, the value is not a media type. It is ignored, because the parser would treat it as text/plain,
            // which the server did not declare.
            let media_type = media_type
                .filter(|value| value.contains(&b'/'))
                .map(MediaType::parse);
            !names.any(is_written_as_text)
                && media_type.is_some_and(|media_type| is_text_of_type(content, &media_type))
        };
        if is_recognised(content) || is_text() {
            Ok(())
        } else {
            let shown = excerpt(value, QUOTED);
            Err(format!(
                "the Content-Encoding field has the value {shown}, which is not a content coding, and the bytes are not recognizable as a picture or as text of the declared type"
            ))
        }
    }
}

/// Returns whether this encoding produces text, as base64 does. Text in such an encoding looks like plain text, so a
/// check of the bytes cannot show whether it is still encoded. Such content is not accepted.
fn is_written_as_text(name: &str) -> bool {
    let name = name.strip_prefix("x-").unwrap_or(name);
    matches!(
        name,
        "base64" | "quoted-printable" | "uuencode" | "uue" | "hex"
    )
}

/// Returns whether the content is plain text of its media type. All bytes must be valid in the charset (UTF-8 if none is
/// declared), and control characters must be absent, because compressed data contains them after a few bytes. HTML and XML must
/// begin with `<`, and a style sheet must contain `{` or `@`.
fn is_text_of_type(content: &[u8], media_type: &MediaType<'_>) -> bool {
    const MAGIC: [&[u8]; 8] = [
        b"\x1f\x8b",
        b"\x1f\x9d",
        b"BZh",
        b"\x28\xb5\x2f\xfd",
        b"\x04\x22\x4d\x18",
        b"\xfd7zXZ\0",
        b"\x5d\0\0",
        b"\xff\x06\0\0sNaPpY",
    ];
    let is_compressed = |content: &[u8]| {
        has_zlib_header(content) || MAGIC.iter().any(|magic| content.starts_with(magic))
    };
    let essence = &*media_type.essence;
    let is_markup = matches!(essence, "text/html" | "text/xml" | "application/xml")
        || essence.ends_with("+xml");
    if is_compressed(content) || !(is_markup || essence.starts_with("text/")) {
        return false;
    }
    let label = media_type.parameter("charset");
    let Some(text) = charset::decode(label.as_deref().unwrap_or(b"utf-8"), content) else {
        return false;
    };
    let is_written =
        |symbol: char| !symbol.is_control() || matches!(symbol, '\t' | '\n' | '\r' | '\x0c');
    text.chars().all(is_written)
        && match essence {
            _ if is_markup => text.trim_start().starts_with('<'),
            "text/css" => text.contains(['{', '@']),
            // Text in base64 or a similar encoding has no spaces, so text without a space is not accepted.
            _ => text.trim().contains(' '),
        }
}

fn is_decoded(name: &&str) -> bool {
    matches!(*name, "gzip" | "x-gzip" | "deflate")
}

/// Decodes zlib (RFC 1950) or a bare deflate stream (RFC 1951). The decoders of flate2 accept truncated input without an error;
/// this one returns [`io::ErrorKind::UnexpectedEof`].
struct Inflater<R> {
    source: R,
    state: Option<Decompress>,
    input: Box<[u8]>,
    /// Start of the bytes in `input` that are not decoded yet.
    start: usize,
    end: usize,
    is_over: bool,
}

impl<R: Read> Inflater<R> {
    fn new(source: R) -> Self {
        Self {
            source,
            state: None,
            input: vec![0; 16 << 10].into(),
            start: 0,
            end: 0,
            is_over: false,
        }
    }

    /// Reads more input. Returns false at the end of the source.
    fn fill(&mut self) -> io::Result<bool> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        let room = self.input.get_mut(self.end..).unwrap_or_default();
        let read = self.source.read(room)?;
        self.end += read;
        Ok(read > 0)
    }
}

impl<R: Read> Read for Inflater<R> {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        while !self.is_over && !output.is_empty() {
            let has_more = match self.end - self.start {
                // The format is detected from the first two bytes (a zlib header or not), so a single byte is not
                // decoded until another byte arrives.
                0 => self.fill()?,
                1 if self.state.is_none() => self.fill()?,
                _ => true,
            };
            let input = &self.input[self.start..self.end];
            if self.state.is_none() && input.len() < 2 && has_more {
                continue;
            }
            let state = self
                .state
                .get_or_insert_with(|| Decompress::new(has_zlib_header(input)));
            let (taken, given) = (state.total_in(), state.total_out());
            let status = state
                .decompress(input, output, FlushDecompress::None)
                .map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
            let step = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(0);
            self.start += step(state.total_in(), taken);
            let written = step(state.total_out(), given);
            self.is_over = status == Status::StreamEnd;
            if written > 0 {
                return Ok(written);
            }
            if !self.is_over && !has_more {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}

/// Returns whether the input begins with a zlib header (RFC 1950 §2.2).
fn has_zlib_header(input: &[u8]) -> bool {
    matches!(input, [method, flags, ..]
        if method & 0x0f == 8 && method >> 4 <= 7 && u16::from_be_bytes([*method, *flags]) % 31 == 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, ZlibEncoder};

    use super::*;

    const TEXT: &[u8] = b"of the month of May, of the month of May, of the month of May";

    /// A source that returns one byte per read, to test every split of the input.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
            let most = output.len().min(1);
            self.0.read(output.get_mut(..most).unwrap_or_default())
        }
    }

    fn deflated() -> [Vec<u8>; 4] {
        let stored = Compression::none();
        let of = |level| {
            let mut zlib = ZlibEncoder::new(Vec::new(), level);
            zlib.write_all(TEXT).unwrap();
            let mut bare = DeflateEncoder::new(Vec::new(), level);
            bare.write_all(TEXT).unwrap();
            [zlib.finish().unwrap(), bare.finish().unwrap()]
        };
        let [[one, two], [three, four]] = [of(Compression::best()), of(stored)];
        [one, two, three, four]
    }

    fn decoded(coding: &CodingMethod, source: impl Read) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        coding.decoder(source).read_to_end(&mut content)?;
        Ok(content)
    }

    #[test]
    fn content_encoding_values_are_classified_as_in_the_registry() {
        let rows: [(&[&str], Result<CodingMethod, ()>); 26] = [
            (&[], Ok(CodingMethod::Identity)),
            (&[""], Ok(CodingMethod::Identity)),
            (&[" Identity "], Ok(CodingMethod::Identity)),
            (&["gzip"], Ok(CodingMethod::Gzip)),
            (&["X-GZIP"], Ok(CodingMethod::Gzip)),
            (&["gzip,"], Ok(CodingMethod::Gzip)),
            (&["", "gzip"], Ok(CodingMethod::Gzip)),
            (&["identity, gzip"], Ok(CodingMethod::Gzip)),
            (&["deflate"], Ok(CodingMethod::Deflate)),
            (&["br"], Err(())),
            (&["zstd"], Err(())),
            (&["Compress"], Err(())),
            (&["utf-8, br"], Err(())),
            (&["br", "utf-8"], Err(())),
            (&["gzip, gzip"], Err(())),
            (&["gzip", "deflate"], Err(())),
            (&["UTF-8"], Ok(CodingMethod::Unknown("utf-8".into()))),
            (&["none"], Ok(CodingMethod::Unknown("none".into()))),
            (&["binary"], Ok(CodingMethod::Unknown("binary".into()))),
            (&["8bit"], Ok(CodingMethod::Unknown("8bit".into()))),
            (&["base64"], Ok(CodingMethod::Unknown("base64".into()))),
            (
                &["aws-chunked"],
                Ok(CodingMethod::Unknown("aws-chunked".into())),
            ),
            (
                &["image/png"],
                Ok(CodingMethod::Unknown("image/png".into())),
            ),
            (
                &["aws-chunked,gzip"],
                Ok(CodingMethod::Unknown("aws-chunked,gzip".into())),
            ),
            (
                &["utf-8", "gzip"],
                Ok(CodingMethod::Unknown("utf-8, gzip".into())),
            ),
            (&["\u{e9}"], Ok(CodingMethod::Unknown("\u{e9}".into()))),
        ];
        for (values, expected) in rows {
            let found = CodingMethod::of(values.iter().map(|value| value.as_bytes()));
            assert_eq!(found.map_err(|_| ()), expected, "{values:?}");
        }
    }

    #[test]
    fn deflate_with_and_without_a_zlib_header_is_decoded() {
        for packed in deflated() {
            assert_eq!(decoded(&CodingMethod::Deflate, &*packed).unwrap(), TEXT);
            assert_eq!(
                decoded(&CodingMethod::Deflate, Slow(&packed)).unwrap(),
                TEXT
            );
            let more = [&packed[..], b"more"].concat();
            assert_eq!(decoded(&CodingMethod::Deflate, &*more).unwrap(), TEXT);
        }
    }

    #[test]
    fn deflate_that_is_cut_off_anywhere_is_an_error() {
        for packed in deflated() {
            for end in 0..packed.len() {
                let cut = packed.get(..end).unwrap();
                assert!(decoded(&CodingMethod::Deflate, cut).is_err(), "{end}");
                assert!(decoded(&CodingMethod::Deflate, Slow(cut)).is_err(), "{end}");
            }
        }
        assert!(decoded(&CodingMethod::Deflate, &b"of the month of May"[..]).is_err());
    }

    #[test]
    fn unknown_coding_needs_bytes_that_show_their_type() {
        let coding = CodingMethod::Unknown("utf-8".into());
        assert_eq!(coding.check(b"GIF89a\x01\0\x01\0\0\0\0;", None), Ok(()));
        for text in [&b"hello"[..], b"", b"\x1b\x03\x00", b"body { color: red }"] {
            assert!(coding.check(text, None).is_err());
        }
    }

    #[test]
    fn unknown_coding_with_text_is_accepted_if_the_text_is_of_its_type() {
        const CSS: &[u8] = b"body { color: red }\n";
        const HTML: &[u8] = b"\n<!doctype html><p>Hello</p>";
        let rows: [(&str, &str, &[u8], bool); 28] = [
            ("utf-8", "text/css", CSS, true),
            ("none", "Text/CSS; charset=utf-8", CSS, true),
            ("utf-8", "text/css", b"@import 'a.css';", true),
            (
                "utf-8",
                "text/css",
                "a::before { content: '\u{e4}' }".as_bytes(),
                true,
            ),
            ("utf-8", "text/css", b"a { content: '\xe4' }", false),
            (
                "utf-8",
                "text/css; charset=iso-8859-1",
                b"a { content: '\xe4' }",
                true,
            ),
            ("utf-8", "text/css; charset=unheard-of", CSS, false),
            ("utf-8", "text/css", b"", false),
            ("utf-8", "text/css", b"Ym9keSB7IGNvbG9yOiByZWQgfQo=", false),
            ("utf-8", "text/css", b"body { color: red }\0", false),
            ("utf-8", "text/css", b"x^{ body { color: red }", false),
            ("utf-8", "text/css", b"BZh { color: red }", false),
            (
                "utf-8",
                "text/css; charset=windows-1252",
                b"\x1b\x2e\x00{\xf8\x8d\x94",
                false,
            ),
            ("base64", "text/css", CSS, false),
            ("utf-8, x-uuencode", "text/css", CSS, false),
            ("quoted-printable", "text/html", b"<a href=3D\"/\">", false),
            ("utf-8", "text/html", HTML, true),
            ("utf-8", "text/html", b"\xef\xbb\xbf<p>Hello", true),
            ("utf-8", "text/html; charset=utf-16le", b"<\0p\0>\0", true),
            ("utf-8", "text/html; charset=utf-16le", b"<\0p\0>", false),
            ("utf-8", "text/html", b"Hello", false),
            ("utf-8", "application/xhtml+xml", HTML, true),
            ("utf-8", "image/svg+xml", b"<p:svg xmlns:p='x'/>", true),
            ("utf-8", "text/plain", b"of the month of May", true),
            (
                "utf-8",
                "text/plain",
                b"b2YgdGhlIG1vbnRo\nb2YgTWF5\n",
                false,
            ),
            ("utf-8", "image/gif", HTML, false),
            ("utf-8", "application/octet-stream", HTML, false),
            ("utf-8", "", HTML, false),
        ];
        for (value, media_type, content, is_accepted) in rows {
            let coding = CodingMethod::Unknown(value.into());
            let checked = coding.check(content, Some(media_type.as_bytes()));
            assert_eq!(
                checked.is_ok(),
                is_accepted,
                "{value} {media_type} {content:?}"
            );
        }
    }

    #[test]
    fn compressed_text_is_never_text_of_its_type() {
        let css = b"body { color: red }\n".repeat(9);
        for level in 0..10 {
            let level = Compression::new(level);
            let mut zlib = ZlibEncoder::new(Vec::new(), level);
            zlib.write_all(&css).unwrap();
            let mut bare = DeflateEncoder::new(Vec::new(), level);
            bare.write_all(&css).unwrap();
            for packed in [zlib.finish().unwrap(), bare.finish().unwrap()] {
                for charset in ["utf-8", "windows-1252", "iso-8859-1", "utf-16le"] {
                    let media_type = format!("text/css; charset={charset}");
                    let coding = CodingMethod::Unknown("utf-8".into());
                    let checked = coding.check(&packed, Some(media_type.as_bytes()));
                    assert!(checked.is_err(), "{level:?} {charset} {packed:?}");
                }
            }
        }
    }
}
