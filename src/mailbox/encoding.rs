//! Text encodings in which no program finds a header: UTF-16, UTF-32 and EBCDIC. Editors on Windows save a mail as
//! "Unicode" (UTF-16), and mainframes send mail in EBCDIC.
//!
//! A file counts only if its decoded start is the start of a mail. Other text in these encodings is no mail, and other
//! binary data are no text.

use crate::prologue;

/// Number of bytes at the start of a file that show whether it is mail.
pub(crate) const LOOKED_AT: usize = 16 << 10;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UnicodeEncoding {
    Utf16(ByteOrder),
    Utf32,
    Ebcdic,
}

impl UnicodeEncoding {
    /// Returns the encoding of a mail, by the first [`LOOKED_AT`] bytes of its file. Returns `None` for mail in ASCII or
    /// one of its supersets, and for all other files.
    pub(crate) fn of_mail(start: &[u8]) -> Option<Self> {
        use ByteOrder::{Big, Little};
        let start = crate::span::front(start, LOOKED_AT);
        let (encoding, text) = match start {
            // The mark of UTF-32 in little-endian order begins with that of UTF-16.
            [0xff, 0xfe, 0, 0, rest @ ..] => (Self::Utf32, ascii::<4>(rest, 0)),
            [0, 0, 0xfe, 0xff, rest @ ..] => (Self::Utf32, ascii::<4>(rest, 3)),
            [0xff, 0xfe, rest @ ..] => (Self::Utf16(Little), ascii::<2>(rest, 0)),
            [0xfe, 0xff, rest @ ..] => (Self::Utf16(Big), ascii::<2>(rest, 1)),
            [first, 0, 0, 0, ..] if *first != 0 => (Self::Utf32, ascii::<4>(start, 0)),
            [0, 0, 0, last, ..] if *last != 0 => (Self::Utf32, ascii::<4>(start, 3)),
            [first, 0, second, 0, ..] if *first != 0 && *second != 0 => {
                (Self::Utf16(Little), ascii::<2>(start, 0))
            }
            [0, first, 0, second, ..] if *first != 0 && *second != 0 => {
                (Self::Utf16(Big), ascii::<2>(start, 1))
            }
            [first, ..] if ebcdic(*first).is_some() && !first.is_ascii() => (
                Self::Ebcdic,
                start
                    .iter()
                    .map(|byte| ebcdic(*byte).unwrap_or(OTHER))
                    .collect(),
            ),
            _ => return None,
        };
        prologue::starts_mail(&text).then_some(encoding)
    }
}

/// Character in place of all characters that are not ASCII. It occurs in no name of a field.
const OTHER: u8 = 0x80;

/// Returns the text of the code units of `N` bytes. The byte at `low` is the low one.
fn ascii<const N: usize>(bytes: &[u8], low: usize) -> Vec<u8> {
    let unit = |unit: &[u8; N]| {
        let is_ascii = unit
            .iter()
            .enumerate()
            .all(|(at, byte)| at == low || *byte == 0);
        let byte = unit.get(low).copied().unwrap_or(OTHER);
        if is_ascii && byte.is_ascii() {
            byte
        } else {
            OTHER
        }
    };
    bytes.as_chunks::<N>().0.iter().map(unit).collect()
}

/// Returns the ASCII character of a byte in EBCDIC, if it is one that a header contains and that all code pages share.
fn ebcdic(byte: u8) -> Option<u8> {
    Some(match byte {
        0x15 | 0x25 => b'\n',
        0x0d => b'\r',
        0x05 => b'\t',
        0x40 => b' ',
        0x4b => b'.',
        0x60 => b'-',
        0x6d => b'_',
        0x6e => b'>',
        0x7a => b':',
        0x81..=0x89 => byte - 0x81 + b'a',
        0x91..=0x99 => byte - 0x91 + b'j',
        0xa2..=0xa9 => byte - 0xa2 + b's',
        0xc1..=0xc9 => byte - 0xc1 + b'A',
        0xd1..=0xd9 => byte - 0xd1 + b'J',
        0xe2..=0xe9 => byte - 0xe2 + b'S',
        0xf0..=0xf9 => byte - 0xf0 + b'0',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAILS: [&str; 6] = [
        "From: Ann <a@example.org>\r\nSubject: s\r\n\r\nx\r\n",
        "From a@example.org Thu Jan  1 00:00:00 1970\nSubject: s\n\nx\n",
        ">From - Thu Jan  1 00:00:00 1970\nSubject: s\n\nx\n",
        "Microsoft Mail Internet Headers Version 2.0\nReceived: x\nSubject: s\n\nx\n",
        "\nReceived: x\nSubject: s\n\nx\n",
        "Received: from a\n\tby b\nX: y",
    ];

    const OTHERS: [&str; 4] = ["title: x\n\n", "Dear all,\n", "", "F"];

    fn wide(text: &str, unit: usize, is_big: bool) -> Vec<u8> {
        let unit = |byte: u8| {
            let mut bytes = vec![0; unit];
            bytes[if is_big { unit - 1 } else { 0 }] = byte;
            bytes
        };
        text.bytes().flat_map(unit).collect()
    }

    fn in_ebcdic(text: &str) -> Vec<u8> {
        let byte = |byte: u8| {
            (0..=255)
                .find(|it| ebcdic(*it) == Some(byte))
                .unwrap_or(0x6f)
        };
        text.bytes().map(byte).collect()
    }

    #[test]
    fn encoding_of_a_mail_is_found_with_and_without_a_mark() {
        use ByteOrder::{Big, Little};
        let forms: [(UnicodeEncoding, usize, bool, &[u8]); 4] = [
            (UnicodeEncoding::Utf16(Little), 2, false, b"\xff\xfe"),
            (UnicodeEncoding::Utf16(Big), 2, true, b"\xfe\xff"),
            (UnicodeEncoding::Utf32, 4, false, b"\xff\xfe\0\0"),
            (UnicodeEncoding::Utf32, 4, true, b"\0\0\xfe\xff"),
        ];
        for (encoding, unit, is_big, mark) in forms {
            for mail in MAILS {
                let bytes = wide(mail, unit, is_big);
                let marked = [mark, &bytes].concat();
                assert_eq!(UnicodeEncoding::of_mail(&marked), Some(encoding), "{mail}");
                if !mail.starts_with('\n') {
                    assert_eq!(UnicodeEncoding::of_mail(&bytes), Some(encoding), "{mail}");
                }
                assert_eq!(UnicodeEncoding::of_mail(mail.as_bytes()), None);
            }
            for other in OTHERS {
                let bytes = wide(other, unit, is_big);
                assert_eq!(UnicodeEncoding::of_mail(&bytes), None, "{other}");
                assert_eq!(
                    UnicodeEncoding::of_mail(&[mark, &bytes].concat()),
                    None,
                    "{other}"
                );
            }
            for end in 0..mark.len() {
                assert_eq!(UnicodeEncoding::of_mail(&mark[..end]), None);
            }
        }
        for mail in &MAILS[..2] {
            assert_eq!(
                UnicodeEncoding::of_mail(&in_ebcdic(mail)),
                Some(UnicodeEncoding::Ebcdic),
                "{mail}"
            );
        }
        for other in OTHERS {
            assert_eq!(UnicodeEncoding::of_mail(&in_ebcdic(other)), None, "{other}");
        }
    }

    #[test]
    fn binary_data_that_look_like_wide_text_are_no_mail() {
        for bytes in [
            b"M\0Z\0\x01\0\x02\0".as_slice(),
            b"\xff\xfe\x12\x34\x56\x78",
            b"\0a\0b\0\0\0\0",
            b"\xc3\xa9t\xc3\xa9: x\n",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        ] {
            assert_eq!(
                UnicodeEncoding::of_mail(bytes),
                None,
                "{}",
                bytes.escape_ascii()
            );
        }
    }
}
