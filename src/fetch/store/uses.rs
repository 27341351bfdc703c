//! Finds the objects that a mailbox may refer to, by searching its bytes without parsing it as mail.
//!
//! A garbage collection must not miss a reference, because the object would be lost. A false match only keeps an object. So
//! every run of 64 hexadecimal digits counts, however it is written:
//!
//! * interrupted by white space (RFC 2017 §3.1), by quotation marks of a reply, by NUL bytes (UTF-16), or by the pieces of an
//!   RFC 2231 parameter (`URL*1=`);
//! * in quoted-printable, also interrupted by a soft line break;
//! * in base64, and in base64 inside base64, because a forwarded message is often attached like this.
//!
//! Compressed and encrypted content is not searched. All digits of a reference must be within [`LONGEST`] bytes.

use memchr::{memchr, memmem};

use super::Key;
use crate::span::{front, starts_like};

pub(crate) const LONGEST: usize = 2 << 10;

fn is_between(octet: u8) -> bool {
    matches!(
        octet,
        b' ' | b'\t' | b'\r' | b'\n' | 0 | b'"' | b'>' | b'<' | b';' | b'|'
    )
}

pub(crate) fn keys(octets: &[u8], each: &mut dyn FnMut(Key, usize, usize)) {
    // Distance in bytes from one tested byte to the next. A reference occupies at least 64 consecutive bytes, so at
    // least one of them is tested, and no reference is missed.
    const STRIDE: usize = 16;
    let is_of_use = |&octet: &u8| {
        octet.is_ascii_hexdigit() || is_between(octet) || b"*=urlURL".contains(&octet)
    };
    let may_be = |at: &usize| octets.get(*at).is_some_and(is_of_use);
    let (mut at, mut done) = (STRIDE, 0);
    while at < octets.len() {
        if !may_be(&at) {
            at += STRIDE;
            continue;
        }
        let start = (done..at).rev().take_while(may_be).last().unwrap_or(at);
        let end = (at..octets.len())
            .find(|at| !may_be(at))
            .unwrap_or(octets.len());
        if end - start >= 64 {
            keys_within(octets, start, end, each);
        }
        done = end;
        at = end + STRIDE;
    }
}

fn keys_within(octets: &[u8], start: usize, end: usize, each: &mut dyn FnMut(Key, usize, usize)) {
    // The last 64 hexadecimal digits that were read, with four bits each, and their positions.
    let (mut digits, mut places) = ([0_u64; 4], [0_usize; 64]);
    let (mut count, mut at) = (0_usize, start);
    while at < end {
        let Some(&octet) = octets.get(at) else { break };
        if let Some(value) = char::from(octet).to_digit(16) {
            let [a, b, c, d] = digits;
            digits = [
                a << 4 | b >> 60,
                b << 4 | c >> 60,
                c << 4 | d >> 60,
                d << 4 | u64::from(value),
            ];
            if let Some(place) = places.get_mut(count % 64) {
                *place = at;
            }
            count += 1;
            if count >= 64 {
                let first = places.get(count % 64).copied().unwrap_or(at);
                each(Key::of_words(digits), first, at);
            }
        } else if count > 0 && !is_between(octet) {
            match next_piece(&octets[at..]) {
                Some(length) => {
                    at += length;
                    continue;
                }
                None => count = 0,
            }
        }
        at += 1;
    }
}

fn next_piece(octets: &[u8]) -> Option<usize> {
    let number = octets.get(4..).filter(|_| starts_like(octets, b"url*"))?;
    let digits = number
        .iter()
        .take(4)
        .take_while(|b| b.is_ascii_digit())
        .count();
    let behind = number.get(digits..)?;
    let star = usize::from(behind.first() == Some(&b'*'));
    (digits > 0 && behind.get(star) == Some(&b'=')).then_some(4 + digits + star + 1)
}

const NOTE: [&[u8]; 2] = [b"X-Embody-Detached:", b"x-embody-detached:"];

/// Finds references that are certain, without the guesses of the search for all runs of digits: the values of the header field
/// that detach writes, and URLs that end with the path of an object.
pub(crate) fn references(octets: &[u8], each: &mut dyn FnMut(Key, usize)) {
    for name in NOTE {
        for at in memmem::find_iter(octets, name) {
            let value = &octets[at + name.len()..];
            if let Some(key) = noted(front(value, LONGEST / 2)) {
                each(key, at);
            }
        }
    }
    keys(octets, &mut |key, first, last| {
        let goes_on = octets.get(last + 1).is_some_and(u8::is_ascii_hexdigit);
        let path = key.path();
        let before = path.bytes().take(6).rev();
        let mut found = (0..first)
            .rev()
            .filter_map(|at| octets.get(at).copied())
            .take(100)
            .filter(|octet| !is_between(*octet));
        let mut wanted = before.chain(*b"/");
        if !goes_on && wanted.all(|wanted| found.next() == Some(wanted)) {
            each(key, first);
        }
    });
}

fn noted(value: &[u8]) -> Option<Key> {
    let at = memmem::find(value, b"sha256=")?;
    let line = memchr(b':', value.get(..at)?).is_none();
    let digits = value.get(at + 7..at + 71)?;
    line.then(|| Key::from_digits(digits))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_is_a_note_or_a_url_ending_in_an_object_path() {
        let key = Key::of(b"abc");
        let path = key.path();
        let all = |text: &str| {
            let mut found = Vec::new();
            references(text.as_bytes(), &mut |key, _| found.push(key));
            found
        };
        for text in [
            format!("URL=\"https://www.example.org/{path}\""),
            format!("https://www.example.org/{}\r\n {}", &path[..4], &path[4..]),
            format!(
                "https://www.example.org/{}\r\n {}",
                &path[..30],
                &path[30..]
            ),
            format!("X-Embody-Detached: sha256={key}; encoding=base64\n"),
            format!("X-Embody-Detached: encoding=base64;\n sha256={key}\n"),
        ] {
            assert_eq!(all(&text), [key], "{text}");
        }
        for text in [
            key.to_string(),
            format!("ab/cd/{key}"),
            format!("{path}0"),
            format!("sha256={key}"),
            format!("X-Embody-Detached: none\nX-Other: sha256={key}"),
        ] {
            assert_eq!(all(&text), [], "{text}");
        }
    }
}
