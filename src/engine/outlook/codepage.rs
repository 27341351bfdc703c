//! Windows code pages: the numbers by which Outlook files identify charsets.

use std::borrow::Cow;

use crate::mime::charset;

pub const UTF_8: u32 = 65001;
pub const WESTERN: u32 = 1252;

/// Returns the label that [`charset::decode`] uses for a code page, or `None` if the code page is not supported.
pub fn label(page: u32) -> Option<Cow<'static, str>> {
    let label = match page {
        1250..=1258 => return Some(format!("windows-{page}").into()),
        // 28600 (ISO-8859-10) and 28601 (ISO-8859-11) are not official code pages, but follow the same rule.
        28591..=28606 => return Some(format!("iso-8859-{}", page - 28590).into()),
        866 => "ibm866",
        874 => "windows-874",
        932 => "shift_jis",
        936 | 51936 => "gbk",
        949 | 51949 => "euc-kr",
        950 => "big5",
        1200 => "utf-16le",
        1201 => "utf-16be",
        10000 => "macintosh",
        10007 => "x-mac-cyrillic",
        20127 => "us-ascii",
        20866 => "koi8-r",
        21866 => "koi8-u",
        20932 | 51932 => "euc-jp",
        50220..=50222 => "iso-2022-jp",
        54936 => "gb18030",
        UTF_8 => "utf-8",
        _ => return None,
    };
    Some(label.into())
}

/// Returns the code page for a charset label, or `None` if no supported code page has this label.
#[cfg_attr(not(feature = "outlook"), allow(dead_code))]
pub fn of_label(wanted: &[u8]) -> Option<u32> {
    let wanted = charset::encoding_of(wanted)?;
    let others = [
        UTF_8, 866, 874, 932, 936, 949, 950, 20866, 21866, 51932, 50220, 54936,
    ];
    let mut pages = (1250..=1258).chain(28591..=28606).chain(others);
    pages.find(|page| {
        label(*page).and_then(|it| charset::encoding_of(it.as_bytes())) == Some(wanted)
    })
}

/// Returns the system code page that Windows uses for the languages of the charset `sent`. Outlook can store texts in
/// this code page even if the mail was sent in `sent`. Returns `None` if the two code pages are the same, or if `sent`
/// is unknown.
#[cfg_attr(not(feature = "outlook"), allow(dead_code))]
pub fn of_system(sent: u32) -> Option<u32> {
    Some(match sent {
        20932 | 50220..=50222 | 51932 => 932,
        51936 | 54936 => 936,
        51949 => 949,
        _ => return None,
    })
}

/// Returns true if this code page can be the system code page of Windows.
#[cfg_attr(not(feature = "outlook"), allow(dead_code))]
pub fn is_of_system(page: u32) -> bool {
    matches!(page, 874 | 932 | 936 | 949 | 950 | 1250..=1258)
}

/// Returns the system code page of Windows for a language and a country (MS-LCID). Returns `None` for languages that use
/// Windows-1252, because callers use this code page by default, and for languages without a code page.
#[cfg_attr(not(feature = "outlook"), allow(dead_code))]
pub fn of_locale(locale: u32) -> Option<u32> {
    let is_cyrillic = matches!(
        locale,
        0x0c1a | 0x1c1a | 0x201a | 0x281a | 0x301a | 0x082c | 0x0843
    );
    // The low ten bits of the identifier are the language.
    Some(match locale & 0x3ff {
        _ if locale > 0xffff => return None,
        _ if is_cyrillic => 1251,
        0x04 if matches!(locale, 0x0404 | 0x0c04 | 0x1404) => 950,
        0x04 => 936,
        0x11 => 932,
        0x12 => 949,
        0x1e => 874,
        0x05 | 0x0e | 0x15 | 0x18 | 0x1a | 0x1b | 0x1c | 0x24 => 1250,
        0x02 | 0x19 | 0x22 | 0x23 | 0x2f | 0x3f | 0x40 | 0x44 | 0x50 => 1251,
        0x08 => 1253,
        0x1f | 0x2c | 0x43 => 1254,
        0x0d => 1255,
        0x01 | 0x20 | 0x29 => 1256,
        0x25..=0x27 => 1257,
        0x2a => 1258,
        _ => return None,
    })
}

/// Decodes text, and returns true if every byte was valid in the code page. All code pages except UTF-16 and ISO-2022 contain
/// ASCII, so ASCII text is decoded even if the code page is not supported.
pub fn decode(page: u32, bytes: &[u8]) -> (Cow<'_, str>, bool) {
    if bytes.is_ascii()
        && !matches!(page, 1200 | 1201 | 50220..=50222)
        && let Ok(text) = str::from_utf8(bytes)
    {
        return (Cow::Borrowed(text), true);
    }
    let Some(label) = label(page) else {
        return (String::from_utf8_lossy(bytes), false);
    };
    match charset::decode(label.as_bytes(), bytes) {
        Some(text) => (text, true),
        None => {
            let text = charset::decode_lossily(label.as_bytes(), bytes)
                .unwrap_or_else(|| String::from_utf8_lossy(bytes));
            (text, false)
        }
    }
}

/// Decodes UTF-16LE. Half of a surrogate pair is replaced by U+FFFD.
pub fn wide(bytes: &[u8]) -> String {
    let units = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let symbols = char::decode_utf16(units);
    let mut text: String = symbols
        .map(|symbol| symbol.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    text.truncate(text.trim_end_matches('\0').len());
    text
}

/// Returns the code page for a Windows (GDI) charset number, which RTF fonts contain. Returns `None` if the font uses the code
/// page of the document.
pub fn of_font(charset: i32) -> Option<u32> {
    Some(match charset {
        77 => 10000,
        128 => 932,
        129 => 949,
        134 => 936,
        136 => 950,
        161 => 1253,
        162 => 1254,
        163 => 1258,
        177 => 1255,
        178 => 1256,
        186 => 1257,
        204 => 1251,
        222 => 874,
        238 => 1250,
        254 => 437,
        255 => 850,
        // This charset number does not identify a code page: 0 means western, but programs write it into documents of
        // any code page; 1 is the default; 2 means symbols. So the code page of the document applies.
        _ => return None,
    })
}
