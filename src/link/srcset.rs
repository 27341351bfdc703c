//! Parsers for attribute values that are not a single URL: `srcset` (HTML standard §4.8.4.2.3), `<meta
//! http-equiv=refresh>` (§4.2.5.3), and lists of URLs. Character references in the texts must already be decoded. The
//! results are ranges in these texts.

use std::ops::Range;

pub(super) fn candidates(text: &[u8], mut found: impl FnMut(Range<usize>)) {
    let mut at = 0;
    loop {
        at += length_while(text.iter().skip(at), |byte| {
            byte.is_ascii_whitespace() || *byte == b','
        });
        let start = at;
        at += length_while(text.iter().skip(at), |byte| !byte.is_ascii_whitespace());
        if start == at {
            return;
        }
        let url = &text[start..at];
        let commas = length_while(url.iter().rev(), |byte| *byte == b',');
        // The text does not begin with a comma, so something remains after the trailing commas are removed.
        found(start..at - commas);
        let mut is_open = false;
        while commas == 0
            && let Some(&byte) = text.get(at)
        {
            at += 1;
            match byte {
                b',' if !is_open => break,
                b'(' => is_open = true,
                b')' => is_open = false,
                _ => {}
            }
        }
    }
}

pub(super) fn refresh(text: &[u8]) -> Option<(Range<usize>, Option<u8>)> {
    let skip_blanks = |at: usize| at + length_while(text.iter().skip(at), u8::is_ascii_whitespace);
    let time = skip_blanks(0);
    let is_of_time = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let behind_time = time + length_while(text.iter().skip(time), is_of_time);
    match text.get(behind_time) {
        _ if behind_time == time => return None,
        Some(byte) if byte.is_ascii_whitespace() || matches!(byte, b';' | b',') => {}
        _ => return None,
    }
    let mut at = skip_blanks(behind_time);
    if let Some(b';' | b',') = text.get(at) {
        at = skip_blanks(at + 1);
    }
    text.get(at)?;
    if text
        .get(at..at + 3)
        .is_some_and(|word| word.eq_ignore_ascii_case(b"url"))
    {
        // `url=` before the URL is optional. Without the `=`, the word `url` is the beginning of the URL itself.
        let equals = skip_blanks(at + 3);
        if text.get(equals) == Some(&b'=') {
            at = skip_blanks(equals + 1);
        }
    }
    let Some(&quote @ (b'"' | b'\'')) = text.get(at) else {
        let url = text.get(at..)?.trim_ascii_end();
        return Some((at..at + url.len(), None));
    };
    let start = at + 1;
    let end = memchr::memchr(quote, text.get(start..)?).map_or(text.len(), |length| start + length);
    Some((start..end, Some(quote)))
}

pub(super) fn members(text: &[u8], commas: bool, mut found: impl FnMut(Range<usize>)) {
    let separates = |byte: &u8| byte.is_ascii_whitespace() || (commas && *byte == b',');
    let mut at = 0;
    while at < text.len() {
        at += length_while(text.iter().skip(at), separates);
        let length = length_while(text.iter().skip(at), |byte| !separates(byte));
        if length > 0 {
            found(at..at + length);
        }
        at += length;
    }
}

fn length_while<'t>(bytes: impl Iterator<Item = &'t u8>, holds: impl Fn(&u8) -> bool) -> usize {
    bytes.take_while(|byte| holds(byte)).count()
}
