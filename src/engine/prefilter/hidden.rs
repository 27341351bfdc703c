//! Decides whether a quoted-printable body contains `<base`, with or without escapes and soft line breaks inside it.
//!
//! A vector search finds positions where it may begin: an escaped `<`, a `<` followed by `=` and a `b` or a line ending, or
//! the first letters followed by the other letters or by `=`. From such a position the bytes are decoded and compared.

use memchr::memchr2_iter;

use crate::engine::search_words::{VectorTables, for_each_case};
use crate::mime::quoted_printable::Sign;

const NAME: &[u8] = b"<base";

static STARTS: VectorTables = VectorTables::new();

/// Returns true if the body contains `<base`, even if it is encoded as quoted-printable. The time is linear: a spelling of
/// `<base` cannot contain the start of another one, so each byte is read only a few times.
pub(super) fn may_spell_base(bytes: &[u8]) -> bool {
    let spelled = |at: usize| spells_base(&bytes[at..]);
    STARTS
        .any_in(bytes, starts, spelled)
        .unwrap_or_else(|| memchr2_iter(b'<', b'=', bytes).any(spelled))
}

/// Returns the patterns for the vector search, in an order that avoids false matches. The search of the crate
/// `aho-corasick` puts the patterns into eight buckets, in the order in which it gets them. A bucket also matches mixtures of
/// its patterns: `=3c` and `<=4` in one bucket would also match `=3d`, which is frequent. Patterns that differ only in the
/// upper four bits of their bytes always share a bucket, so such patterns form a group. There are nine groups. The order
/// gives the first eight groups a bucket each, and puts the ninth one, `<=` with a tab, into the bucket of `<= `.
fn starts() -> Vec<Vec<u8>> {
    let apart = ["=3cb", "<=4", "<=6", "<=\n", "<=\r", "<= ", "<b=", "<ba="];
    let known = ["=3cB", "=3Cb", "=3CB", "=3c=", "=3C="];
    let mut starts: Vec<Vec<u8>> = [apart.as_slice(), &known, &["<=\t"]]
        .concat()
        .into_iter()
        .map(Into::into)
        .collect();
    for text in ["<b=", "<ba=", "<bas"] {
        for_each_case(text.as_bytes(), |start| {
            if !starts.contains(&start) {
                starts.push(start);
            }
        });
    }
    starts
}

fn spells_base(mut bytes: &[u8]) -> bool {
    for wanted in NAME {
        let octet = loop {
            let Some((&first, behind)) = bytes.split_first() else {
                return false;
            };
            if first != b'=' {
                bytes = behind;
                break first;
            }
            let (sign, behind) = Sign::read(behind);
            bytes = behind;
            match sign {
                Sign::Escape(octet) => break octet,
                Sign::Bare => break b'=',
                // A match must start with the `<` itself, not with a soft line break before it.
                Sign::SoftBreak if *wanted == b'<' => return false,
                Sign::SoftBreak => {}
            }
        };
        if !octet.eq_ignore_ascii_case(wanted) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::search_words::SHORT;
    use crate::mime::TransferEncoding;

    fn is_seen(body: &[u8]) -> bool {
        let seen = memchr2_iter(b'<', b'=', body).any(|at| spells_base(&body[at..]));
        let long = [vec![b'x'; SHORT].as_slice(), body].concat();
        assert_eq!(may_spell_base(&long), seen, "{}", body.escape_ascii());
        // Tests the short body alone: the search in `long` has built the vector tables, which all later searches use.
        assert_eq!(may_spell_base(body), seen, "{}", body.escape_ascii());
        seen
    }

    proptest! {
        #[test]
        fn prefilter_sees_a_base_tag_hidden_by_quoted_printable(
            escapes in prop::collection::vec((any::<bool>(), 0_u8..6, any::<bool>()), 5),
            around in "[<bB=3C \n]{0,12}",
        ) {
            let mut body = around.clone().into_bytes();
            for (&byte, (upper, form, lower_digits)) in b"<base".iter().zip(escapes) {
                let byte = if upper { byte.to_ascii_uppercase() } else { byte };
                match form {
                    0 if lower_digits => body.extend(format!("={byte:02x}").bytes()),
                    0 => body.extend(format!("={byte:02X}").bytes()),
                    1 => body.extend([b'=', b' ', b'\n', byte]),
                    2 => body.extend([b'=', b'\r', b'\n', byte]),
                    _ => body.push(byte),
                }
            }
            body.extend(around.bytes());
            let octets = TransferEncoding::QuotedPrintable.decode(&body).expect("any body");
            let spelled = octets.windows(5).any(|there| there.eq_ignore_ascii_case(b"<base"));
            prop_assert!(is_seen(&body) || !spelled, "{}", body.escape_ascii());
        }

        #[test]
        fn escapes_are_read_as_the_decoder_reads_them(
            body in "(=|=3[cC]|=62|=\r?\n|= \t\n|=[4-6][1-5]|[<bBaAsSeE]|<b|as|e|\n| |x{1,12}){0,16}",
        ) {
            let octets = TransferEncoding::QuotedPrintable.decode(body.as_bytes()).expect("any body");
            let is_base = |there: &[u8]| there.eq_ignore_ascii_case(b"<base");
            let spelled = octets.windows(5).any(is_base);
            prop_assert_eq!(is_seen(body.as_bytes()), spelled, "{:?}", body);
        }
    }
}
