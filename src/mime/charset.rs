//! Charsets, as far as the bytes below 0x80 are concerned: whether each of them is the ASCII character it
//! looks like. Labels are those of the Encoding Standard (encoding_rs), and those that mail has besides.

use std::borrow::Cow;

use encoding_rs::{BIG5, EUC_KR, Encoding, GB18030, GBK, ISO_2022_JP, REPLACEMENT, SHIFT_JIS};
use encoding_rs::{UTF_16BE, UTF_16LE};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Charset {
    /// Wherever it stands: a superset of ASCII byte by byte.
    Superset,
    /// Unless it is the second byte of a character that a byte above 0x7f begins; 0xa0 to 0xdf are characters of one byte.
    ShiftJis,
    /// Big5, GBK, GB18030, windows-949: all bytes above 0x80 begin a character of two.
    DoubleByte,
    /// Something else, or something else after an escape: UTF-16, UTF-7, ISO-2022, EBCDIC.
    Other,
}

/// No ASCII, and in no charset the end of anything.
const MASK: u8 = 0xff;

impl Charset {
    pub fn of_label(label: &[u8]) -> Option<Self> {
        if let Some(encoding) = Encoding::for_label(label) {
            return Some(match encoding {
                _ if [UTF_16BE, UTF_16LE, ISO_2022_JP, REPLACEMENT].contains(&encoding) => {
                    Self::Other
                }
                _ if [BIG5, EUC_KR, GBK, GB18030].contains(&encoding) => Self::DoubleByte,
                _ if encoding == SHIFT_JIS => Self::ShiftJis,
                _ => Self::Superset,
            });
        }
        // In johab even `<` may be a second byte.
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
        // Mail programs write these, and browsers do not know them.
        match label.trim_ascii().to_ascii_lowercase().as_slice() {
            b"cp932" | b"windows-932" | b"mskanji" | b"sjis-win" | b"shift_jisx0213"
            | b"shift_jis-2004" | b"x-windows-31j" | b"x-mac-japanese" => Some(Self::ShiftJis),
            b"cp936" | b"ms936" | b"windows-936" | b"x-mac-chinesesimp" | b"gb18030-2000"
            | b"gb18030-2005" | b"gb18030-2022" | b"cp949" | b"ms949" | b"uhc" | b"ks_c_5601"
            | b"x-windows-949" | b"x-mac-korean" | b"cp950" | b"ms950" | b"windows-950"
            | b"big5hkscs" | b"big5-eten" | b"big5-2003" | b"x-mac-chinesetrad" => {
                Some(Self::DoubleByte)
            }
            lower => {
                let is_other = OTHER.iter().any(|name| lower.starts_with(name));
                (is_other || is_ebcdic(lower)).then_some(Self::Other)
            }
        }
    }

    /// A text whose own label could be read is not in UTF-16, whatever the label says (the HTML standard, §13.2.3.3).
    pub fn of_readable_label(label: &[u8]) -> Option<Self> {
        match Encoding::for_label(label) {
            Some(encoding) if [UTF_16BE, UTF_16LE].contains(&encoding) => Some(Self::Superset),
            _ => Self::of_label(label),
        }
    }

    pub fn has_trail_bytes(self) -> bool {
        matches!(self, Self::ShiftJis | Self::DoubleByte)
    }

    /// Another byte stands for each trail byte that looks like ASCII; the length stays.
    pub fn without_trail_bytes(self, text: &[u8]) -> Cow<'_, [u8]> {
        if !self.has_trail_bytes() || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut masked = text.to_vec();
        let mut after_lead = false;
        for byte in &mut masked {
            if after_lead {
                after_lead = false;
                // The ASCII bytes that end a character; digits do in GB18030. Others are read as if nothing stood before.
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

/// IBM's code pages, under the names that RFC 1345 and Java give them.
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

/// In an unknown charset a `\` behind a byte above 0x7f may be half a character. UTF-8 is told by its form and stays.
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
    fn every_charset_that_is_a_superset_is_one_byte_by_byte() {
        // All that encoding_rs knows, and each byte below 0x80 behind each above it.
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
    fn characters_are_told_apart_from_the_left() {
        let masked = |charset: Charset, text: &[u8]| charset.without_trail_bytes(text).into_owned();
        // The second byte of the first character is the lead byte of none.
        assert_eq!(masked(Charset::ShiftJis, b"\x83\x83\\"), b"\x83\x83\\");
        assert_eq!(masked(Charset::ShiftJis, b"\x83\\\\"), b"\x83\xff\\");
        // A katakana of half width is a character of its own.
        assert_eq!(masked(Charset::ShiftJis, b"\xb1\\"), b"\xb1\\");
        assert_eq!(masked(Charset::DoubleByte, b"\xb1\\"), b"\xb1\xff");
        // What is broken ends at the quote.
        assert_eq!(masked(Charset::DoubleByte, b"\x81\"\\"), b"\x81\"\\");
    }
}
