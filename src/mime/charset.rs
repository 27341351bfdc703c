//! Charsets. [`decode`] converts text in any charset: names, subjects, notes and markup. [`Charset`] describes
//! whether a byte below 0x80 is always the ASCII character that it looks like, which is needed to find markup without
//! decoding.
//!
//! Labels are those of the Encoding Standard (crate encoding_rs) and other spellings that occur in mail. Charsets
//! that encoding_rs does not decode (UTF-7, ISO-2022-KR, HZ) are not supported, because a guess would put wrong
//! characters into names.

use std::borrow::Cow;

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GB18030, GBK, ISO_2022_JP, REPLACEMENT};
use encoding_rs::{SHIFT_JIS, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_874, WINDOWS_1252};
use memchr::memmem;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Charset {
    /// A byte below 0x80 is always ASCII.
    Superset,
    /// A byte below 0x80 is ASCII unless it is the second byte of a character. The first byte of such a character is
    /// above 0x7f, but 0xa0 to 0xdf are characters of one byte.
    ShiftJis,
    /// Big5, GBK, GB18030 and windows-949. Each byte above 0x80 begins a character of two bytes, whose second byte
    /// can be below 0x80.
    DoubleByte,
    /// A byte below 0x80 can have another meaning than in ASCII, always or after an escape sequence: UTF-16, UTF-7,
    /// ISO-2022, EBCDIC.
    Other,
}

/// Decodes text. Returns `None` if a byte is not part of a character, if the label is unknown, or if the charset is
/// not supported. A BOM is not part of the text.
///
/// If the label is US-ASCII and there are bytes above 127, the text is read as UTF-8 if possible, because programs
/// that do not support charsets write this label on any text.
pub fn decode<'t>(label: &[u8], octets: &'t [u8]) -> Option<Cow<'t, str>> {
    if octets.is_empty() {
        return Some(Cow::Borrowed(""));
    }
    if is_ascii_label(label)
        && let Ok(text) = std::str::from_utf8(octets)
    {
        return Some(Cow::Borrowed(text));
    }
    let Some(encoding) = encoding_of(label) else {
        return plain(label, octets);
    };
    if encoding == ISO_2022_JP {
        let octets = without_idle_escapes(octets);
        let (text, is_damaged) = encoding.decode_without_bom_handling(&octets);
        return (!is_damaged).then(|| Cow::Owned(text.into_owned()));
    }
    // A BOM of UTF-16 has precedence over the byte order of the label. A BOM of another charset does not change the
    // charset.
    let (encoding, octets) = match octets {
        [0xfe, 0xff, rest @ ..] if encoding == UTF_16LE => (UTF_16BE, rest),
        [0xff, 0xfe, rest @ ..] if encoding == UTF_16BE => (UTF_16LE, rest),
        octets => (encoding, octets),
    };
    let (text, is_damaged) = encoding.decode_with_bom_removal(octets);
    (!is_damaged).then_some(text)
}

/// Like [`decode`], but for display: bytes that are not part of a character become U+FFFD. Returns `None` if the
/// charset is not supported.
pub fn decode_lossily<'t>(label: &[u8], octets: &'t [u8]) -> Option<Cow<'t, str>> {
    decode(label, octets).or_else(|| {
        let encoding = if is_ascii_label(label) {
            UTF_8
        } else {
            encoding_of(label)?
        };
        Some(encoding.decode_with_bom_removal(octets).0)
    })
}

/// Decodes text without a declared charset, if it is UTF-8 or ISO-2022-JP. ISO-2022-JP is recognised by its escape
/// sequences. Returns `None` for other text.
pub fn decode_undeclared(octets: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(octets).ok()?;
    let shifts = [ESCAPE, b'\x0e', b'\x0f'];
    if !octets.iter().any(|byte| shifts.contains(byte)) {
        Some(Cow::Borrowed(text))
    } else {
        decode(b"iso-2022-jp", octets)
    }
}

/// Decodes text without a declared charset if it is probably windows-1252 or ISO-8859-1. In these charsets most letters
/// are ASCII, so at most two bytes above 127 follow each other. Cyrillic, Greek and East Asian text has longer runs.
/// Returns `None` for such text.
pub fn decode_western(octets: &[u8]) -> Option<Cow<'_, str>> {
    let mut runs = octets.split(|byte| byte.is_ascii());
    let is_western = |run: &[u8]| run.len() <= 2 && run.iter().all(|byte| *byte >= 0xc0);
    let is_plain = !octets.iter().any(|byte| *byte < b' ' && *byte != b'\t');
    (is_plain && runs.all(is_western)).then(|| encoding_rs::WINDOWS_1252.decode(octets).0)
}

/// Returns the text with bytes that are not UTF-8 percent-encoded (RFC 3986 §2.5). With replacement
/// characters in their place, a URL would refer to a different resource.
pub(crate) fn with_octets_escaped(octets: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(octets) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(octets.len() + 32);
    for chunk in octets.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(percent_encode(chunk.invalid(), NON_ALPHANUMERIC));
    }
    Cow::Owned(text)
}

const ESCAPE: u8 = 0x1b;

pub fn is_ascii_label(label: &[u8]) -> bool {
    let label = label.trim_ascii();
    let is = |name: &[u8]| label.eq_ignore_ascii_case(name);
    is(b"us-ascii") || is(b"ascii")
}

/// Returns whether the label is a name of UTF-16. Text in which ASCII words were found without decoding cannot be
/// UTF-16. Callers ignore such a label then, because it is wrong.
pub fn is_utf16_label(label: &[u8]) -> bool {
    let encoding = encoding_of(label);
    encoding.is_some_and(|it| it == UTF_16BE || it == UTF_16LE)
}

/// Returns the encoding for a label. encoding_rs knows 228 labels. Mail programs also write others, which are mapped
/// here to its encodings.
pub(crate) fn encoding_of(label: &[u8]) -> Option<&'static Encoding> {
    let known = Encoding::for_label(label).or_else(|| {
        let lower = label.trim_ascii().to_ascii_lowercase();
        alias(&lower).or_else(|| {
            // Java and Python write labels with underscores instead of hyphens, such as `iso_8859_1`.
            let hyphens = lower.iter().map(|&byte| match byte {
                b'_' => b'-',
                byte => byte,
            });
            let label: Vec<u8> = hyphens.collect();
            Encoding::for_label(&label).or_else(|| alias(&label))
        })
    });
    known.filter(|&encoding| encoding != REPLACEMENT)
}

fn alias(lower: &[u8]) -> Option<&'static Encoding> {
    Some(match lower {
        b"cp932" | b"windows-932" | b"mskanji" | b"sjis-win" | b"x-windows-31j" => SHIFT_JIS,
        b"cp936" | b"ms936" | b"windows-936" | b"euc-cn" | b"euccn" | b"gb2312-80" => GBK,
        b"gb18030-2000" | b"gb18030-2005" | b"gb18030-2022" => GB18030,
        b"cp949" | b"ms949" | b"uhc" | b"ks-c-5601" | b"x-windows-949" | b"euckr" => EUC_KR,
        b"cp950" | b"ms950" | b"windows-950" | b"big5hkscs" | b"big5-eten" | b"big5-2003" => BIG5,
        b"eucjp" => EUC_JP,
        // The decoder does not support the additional escape sequences of these variants. It rejects text that contains
        // them, so accepting the label is safe.
        b"iso-2022-jp-1" | b"iso-2022-jp-2" | b"iso-2022-jp-3" | b"iso-2022-jp-ms" | b"cp50220"
        | b"cp50221" | b"cp50222" => ISO_2022_JP,
        b"cp874" => WINDOWS_874,
        b"cp1252" | b"windows1252" | b"iso-8859-1-windows-3.1-latin-1" => WINDOWS_1252,
        b"cp65001" | b"utf8mb4" => UTF_8,
        _ => return None,
    })
}

/// Returns the text if all its bytes mean the same in every charset that its label could stand for, because the label
/// is unknown or its charset is not supported. Returns `None` if a byte could switch to other characters, as `+` does
/// in UTF-7 and `~` in HZ. Also returns `None` for charsets that are not supersets of ASCII.
fn plain<'t>(label: &[u8], octets: &'t [u8]) -> Option<Cow<'t, str>> {
    const SUPERSETS: [&[u8]; 5] = [b"iso-2022", b"csiso2022", b"hz-gb", b"utf-7", b"utf7"];
    let lower = label.trim_ascii().to_ascii_lowercase();
    let is_superset = Charset::of_label(label) != Some(Charset::Other)
        || SUPERSETS.iter().any(|name| lower.starts_with(name));
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'}') && !matches!(byte, b'+' | b'&');
    let text = std::str::from_utf8(octets).ok()?;
    (is_superset && octets.iter().all(is_plain)).then_some(Cow::Borrowed(text))
}

/// Removes escape sequences of ISO-2022-JP that are directly followed by another one. They occur where encoded words
/// are joined, because each word ends in ASCII. The Encoding Standard treats them as an error, because they were used
/// for attacks on web pages.
fn without_idle_escapes(octets: &[u8]) -> Cow<'_, [u8]> {
    const LENGTH: usize = 3;
    let is_idle = |at: &usize| octets.get(at + LENGTH) == Some(&ESCAPE);
    let mut kept: Cow<'_, [u8]> = Cow::Borrowed(b"");
    let mut from = 0;
    for at in memmem::find_iter(octets, &[ESCAPE]).filter(is_idle) {
        kept.to_mut().extend_from_slice(&octets[from..at]);
        from = at + LENGTH;
    }
    match from {
        0 => Cow::Borrowed(octets),
        _ => {
            kept.to_mut().extend_from_slice(&octets[from..]);
            kept
        }
    }
}

/// Byte that replaces the second byte of a character, so that the second byte is not mistaken for ASCII. In every
/// charset, 0xff is neither ASCII nor the second byte of a character.
const MASK: u8 = 0xff;

impl Charset {
    pub fn of_label(label: &[u8]) -> Option<Self> {
        let known = Encoding::for_label(label).or_else(|| encoding_of(label));
        if let Some(encoding) = known {
            return Some(match encoding {
                _ if [UTF_16BE, UTF_16LE, ISO_2022_JP, REPLACEMENT].contains(&encoding) => {
                    Self::Other
                }
                _ if [BIG5, EUC_KR, GBK, GB18030].contains(&encoding) => Self::DoubleByte,
                _ if encoding == SHIFT_JIS => Self::ShiftJis,
                _ => Self::Superset,
            });
        }
        // Charsets in which ASCII bytes can have another meaning. `johab` is one of them, because even `<` can be the
        // second byte of a character in it.
        const OTHER: [&[u8]; 21] = [
            b"utf-16",
            b"utf16",
            b"utf-32",
            b"utf32",
            b"ucs-2",
            b"ucs2",
            b"ucs-4",
            b"ucs4",
            b"utf-7",
            b"utf7",
            b"unicode-1-1-utf-7",
            b"csunicode11utf7",
            b"iso-2022",
            b"csiso2022",
            b"hz-gb",
            b"iso-10646-ucs",
            b"ebcdic",
            b"johab",
            b"cp1361",
            b"ms1361",
            b"x-johab",
        ];
        // Labels that occur in mail, but are not in the Encoding Standard for browsers.
        match label.trim_ascii().to_ascii_lowercase().as_slice() {
            // These charsets have additional characters compared to those of encoding_rs, so they can be searched but
            // not decoded.
            b"shift_jisx0213" | b"shift_jis-2004" | b"x-mac-japanese" => Some(Self::ShiftJis),
            b"x-mac-chinesesimp" | b"x-mac-korean" | b"x-mac-chinesetrad" => Some(Self::DoubleByte),
            lower => {
                let is_other = OTHER.iter().any(|name| lower.starts_with(name));
                (is_other || is_ebcdic(lower)).then_some(Self::Other)
            }
        }
    }

    /// Returns the charset for a label that was found in the text itself, such as in HTML. The label was readable as
    /// ASCII, so the text cannot be UTF-16, even if the label says so (HTML standard §13.2.3.3).
    pub fn of_readable_label(label: &[u8]) -> Option<Self> {
        match Encoding::for_label(label) {
            Some(encoding) if [UTF_16BE, UTF_16LE].contains(&encoding) => Some(Self::Superset),
            _ => Self::of_label(label),
        }
    }

    pub fn has_trail_bytes(self) -> bool {
        matches!(self, Self::ShiftJis | Self::DoubleByte)
    }

    /// Replaces each second byte of a character that looks like ASCII with 0xff, so that a search for markup does
    /// not find it. The length does not change.
    pub fn without_trail_bytes(self, text: &[u8]) -> Cow<'_, [u8]> {
        if !self.has_trail_bytes() || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut masked = text.to_vec();
        let mut after_lead = false;
        for byte in &mut masked {
            if after_lead {
                after_lead = false;
                // These ASCII bytes can be the second byte of a character (digits only in GB18030). Any other ASCII
                // byte after a first byte is not a part of the character, which is then incomplete.
                if matches!(*byte, b'0'..=b'9' | 0x40..=0x7e) {
                    *byte = MASK;
                }
                continue;
            }
            after_lead = match self {
                Self::ShiftJis => matches!(*byte, 0x81..=0x9f | 0xe0..=0xfc),
                _ => matches!(*byte, 0x81..=0xfe),
            };
        }
        Cow::Owned(masked)
    }
}

/// Returns whether the label names an EBCDIC code page of IBM, with the names of RFC 1345 and Java.
fn is_ebcdic(label: &[u8]) -> bool {
    const PAGES: [&[u8]; 12] = [
        b"037", b"273", b"277", b"278", b"280", b"284", b"285", b"297", b"500", b"870", b"871",
        b"1047",
    ];
    let digits = [b"ibm-".as_slice(), b"ibm", b"cp"]
        .iter()
        .find_map(|prefix| label.strip_prefix(*prefix));
    digits.is_some_and(|digits| PAGES.contains(&digits) || digits.starts_with(b"0114"))
}

/// Replaces each `\` that follows a byte above 0x7f, for text in an unknown charset. The `\` can be the second byte of
/// a character there, and must not be read as an escape. UTF-8 is recognised by its form and not changed.
pub fn without_doubtful_bytes(text: &[u8]) -> Cow<'_, [u8]> {
    if std::str::from_utf8(text).is_ok() {
        return Cow::Borrowed(text);
    }
    let mut masked = Cow::Borrowed(text);
    for at in memchr::memchr_iter(b'\\', text) {
        if let Some(0x80..) = at.checked_sub(1).and_then(|before| text.get(before))
            && let Some(byte) = masked.to_mut().get_mut(at)
        {
            *byte = MASK;
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn western_text_without_a_charset_is_known_by_letters_that_stand_alone() {
        for (octets, expected) in [
            (&b"nicht verf\xfcgbar"[..], Some("nicht verf\u{fc}gbar")),
            (b"Gr\xf6\xdfe.pdf", Some("Gr\u{f6}\u{df}e.pdf")),
            // These texts are Cyrillic in windows-1251 and KOI8-R, and Japanese in Shift_JIS and EUC-JP. They are not
            // western, so they are not decoded.
            (b"\xce\xf2\xf7\xb8\xf2.pdf", None),
            (b"\xef\xd4\xde\xc5\xd4.pdf", None),
            (b"\x95\xf1\x8d\x90.pdf", None),
            (b"\xca\xf3\xb9\xf0.pdf", None),
            (b"\x1b$)C\x0eBy\x0f", None),
        ] {
            assert_eq!(decode_western(octets).as_deref(), expected, "{octets:?}");
        }
    }

    #[test]
    fn labels_of_mail_and_of_the_web_are_known() {
        for (label, expected) in [
            ("utf-8", Some(Charset::Superset)),
            (" US-ASCII ", Some(Charset::Superset)),
            ("EUC-JP", Some(Charset::Superset)),
            ("csShiftJIS", Some(Charset::ShiftJis)),
            ("cp932", Some(Charset::ShiftJis)),
            ("GB_2312-80", Some(Charset::DoubleByte)),
            ("Big5-HKSCS", Some(Charset::DoubleByte)),
            ("ISO-2022-CN-EXT", Some(Charset::Other)),
            ("HZ-GB-2312", Some(Charset::Other)),
            ("UTF-32LE", Some(Charset::Other)),
            ("IBM037", Some(Charset::Other)),
            ("cp1047", Some(Charset::Other)),
            ("ebcdic-cp-us", Some(Charset::Other)),
            ("x-nobody-knows-it", None),
        ] {
            assert_eq!(Charset::of_label(label.as_bytes()), expected, "{label}");
        }
    }

    #[test]
    fn only_charsets_without_ascii_trail_bytes_count_as_supersets_of_ascii() {
        // Tries each byte below 0x80 after each byte from 0x80, in all charsets of encoding_rs.
        for label in [
            "utf-8",
            "ibm866",
            "iso-8859-1",
            "iso-8859-8-i",
            "koi8-r",
            "macintosh",
            "windows-874",
            "windows-1252",
            "euc-jp",
            "x-user-defined",
            "shift_jis",
            "big5",
            "euc-kr",
            "gbk",
            "gb18030",
        ] {
            let charset = Charset::of_label(label.as_bytes()).unwrap();
            let encoding = Encoding::for_label(label.as_bytes()).unwrap();
            let mut trails = 0;
            for lead in 0x80..=0xff_u8 {
                for ascii in 0..0x80_u8 {
                    let pair = [lead, ascii];
                    let (text, _) = encoding.decode_without_bom_handling(&pair);
                    let is_itself = text.ends_with(char::from(ascii));
                    trails += usize::from(!is_itself);
                    let masked = charset.without_trail_bytes(&pair);
                    assert!(is_itself || masked[1] == MASK, "{label}: {pair:x?} {text}");
                }
            }
            assert_eq!(trails == 0, charset == Charset::Superset, "{label}");
        }
    }

    #[test]
    fn decode_with_a_label_of_mail_reads_the_text() {
        for (label, octets, text) in [
            (
                "iso-2022-jp",
                &b"\x1b$BF|K\\\x1b(B.txt"[..],
                "\u{65e5}\u{672c}.txt",
            ),
            (
                "ISO-2022-JP",
                b"\x1b$BF|\x1b(B\x1b$BK\\\x1b(B",
                "\u{65e5}\u{672c}",
            ),
            ("cp932", b"\x93\xfa\x96{", "\u{65e5}\u{672c}"),
            ("GB2312", b"\xc4\xea", "\u{5e74}"),
            ("ks_c_5601-1987", b"\xc7\xd1", "\u{d55c}"),
            ("windows-874", b"\xa1", "\u{e01}"),
            ("cp866", b"\x8e", "\u{41e}"),
            ("iso_8859_1", b"f\xfcr", "f\u{fc}r"),
            ("us-ascii", b"f\xc3\xbcr", "f\u{fc}r"),
            ("us-ascii", b"f\xfcr", "f\u{fc}r"),
            ("utf-16", b"\xfe\xff\0f\0\xfc", "f\u{fc}"),
            ("utf-16be", b"\0f\0\xfc", "f\u{fc}"),
            ("utf-8", b"\xef\xbb\xbfa", "a"),
            ("utf-7", b"report (1).pdf", "report (1).pdf"),
            ("x-nobody-knows-it", b"report.pdf", "report.pdf"),
        ] {
            assert_eq!(
                decode(label.as_bytes(), octets).as_deref(),
                Some(text),
                "{label}"
            );
        }
    }

    #[test]
    fn decode_with_octets_that_are_no_characters_returns_none() {
        for (label, octets) in [
            ("utf-8", &b"f\xfcr"[..]),
            ("utf-16le", b"f\0x"),
            ("shift_jis", b"a\x93"),
            ("gb2312", b"\xc4"),
            ("iso-2022-jp", b"\x1b$BF"),
            ("utf-7", b"f+APw-r"),
            ("iso-2022-kr", b"\x1b$)C\x0eGQ\x0f"),
            ("hz-gb-2312", b"~{Dj~}"),
            ("x-nobody-knows-it", b"f\xfcr"),
            ("ibm037", b"K"),
            ("shift_jis-2004", b"\x93\xfa"),
        ] {
            assert_eq!(decode(label.as_bytes(), octets), None, "{label}");
        }
        assert_eq!(decode_undeclared(b"f\xfcr"), None);
        assert_eq!(decode_undeclared(b"\x1b$)C\x0eGQ\x0f"), None);
        let japanese = decode_undeclared(b"\x1b$BF|\x1b(B.txt");
        assert_eq!(japanese.as_deref(), Some("\u{65e5}.txt"));
    }

    #[test]
    fn trail_bytes_are_found_by_reading_characters_from_the_left() {
        let masked = |charset: Charset, text: &[u8]| charset.without_trail_bytes(text).into_owned();
        // The first 0x83 begins a character, and the second one ends it. The backslash is therefore a character of its
        // own.
        assert_eq!(masked(Charset::ShiftJis, b"\x83\x83\\"), b"\x83\x83\\");
        assert_eq!(masked(Charset::ShiftJis, b"\x83\\\\"), b"\x83\xff\\");
        // 0xb1 is a half-width katakana, which is a character of one byte, so the backslash is not part of it.
        assert_eq!(masked(Charset::ShiftJis, b"\xb1\\"), b"\xb1\\");
        assert_eq!(masked(Charset::DoubleByte, b"\xb1\\"), b"\xb1\xff");
        // A quote cannot be a second byte. The character is malformed, and the backslash after the quote is a character
        // of its own.
        assert_eq!(masked(Charset::DoubleByte, b"\x81\"\\"), b"\x81\"\\");
    }
}
