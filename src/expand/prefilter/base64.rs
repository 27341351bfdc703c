//! Whether base64 spells `<base`, told without knowing where the body starts.
//!
//! Five octets are at least six whole letters of base64, whichever of the three places in a group of three octets the
//! first one has: 48 spellings in all cases. They are searched for among the letters alone, because anything else may
//! stand between two of them (RFC 2045 §6.8). What differs from `<base` only in bits of a letter that is not whole is
//! taken for it, such as `<basl`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use base64_simd::STANDARD;
use memchr::memchr3_iter;

use super::words::{Packed, for_each_case};
use crate::mime::transfer::append_letters;

const NAME: &[u8] = b"<base";

/// Letters of base64 that `<base` surely is.
const SURE: usize = 6;

/// Letters that are searched for. Of fewer there are more by chance.
const STARTS_WITH: usize = 4;

/// So many letters are searched at a time; those at the end are searched again with the next ones.
const BLOCK: usize = 32 << 10;

static SPELLINGS: LazyLock<BTreeSet<Vec<u8>>> = LazyLock::new(spellings);

static STARTS: Packed = Packed::new();

/// Whether some base64 within `bytes` may hold `<base`, in any case; of what decodes to it, always.
pub(super) fn spells_base(bytes: &[u8]) -> bool {
    let mut letters = Vec::with_capacity(bytes.len().min(BLOCK + SURE));
    for block in bytes.chunks(BLOCK) {
        append_letters(block, &mut letters);
        if is_spelled(&letters) {
            return true;
        }
        letters.drain(..letters.len().saturating_sub(SURE - 1));
    }
    false
}

fn is_spelled(letters: &[u8]) -> bool {
    let spelled = |at: usize| {
        let there = letters.get(at..at + SURE);
        there.is_some_and(|there| SPELLINGS.contains(there))
    };
    let starts = || {
        let start = |spelling: &Vec<u8>| spelling.get(..STARTS_WITH).map(<[u8]>::to_vec);
        let starts: BTreeSet<Vec<u8>> = SPELLINGS.iter().filter_map(start).collect();
        starts
    };
    STARTS
        .any_in(letters, starts, spelled)
        // The letters that the spellings start with.
        .unwrap_or_else(|| memchr3_iter(b'P', b'x', b'8', letters).any(spelled))
}

/// The letters that `<base` surely is, in every case and place.
fn spellings() -> BTreeSet<Vec<u8>> {
    let mut spellings = BTreeSet::new();
    for before in 0..3 {
        for_each_case(NAME, |name| {
            let letters = STANDARD.encode_to_string([vec![0; before], name].concat());
            // A letter is six bits: the first one that is all of the name's, and those behind it.
            let first = (before * 8).div_ceil(6);
            let sure = letters.as_bytes().get(first..first + SURE);
            spellings.extend(sure.map(<[u8]>::to_vec));
        });
    }
    spellings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::words::SHORT;
    use super::*;
    use crate::mime::TransferEncoding;

    /// By both searches, which must agree.
    fn is_seen(body: &[u8]) -> bool {
        // No letters, and some in front.
        let long = ["A".repeat(SHORT).as_bytes(), body].concat();
        let seen = spells_base(&long);
        // The tables are there now, also for few letters.
        assert_eq!(spells_base(body), seen, "{}", body.escape_ascii());
        seen
    }

    #[test]
    fn all_spellings_start_with_what_is_searched_for() {
        let starts: BTreeSet<u8> = SPELLINGS.iter().map(|spelling| spelling[0]).collect();
        assert_eq!(starts, [b'8', b'P', b'x'].into());
        assert_eq!(SPELLINGS.len(), 48);
        let starts: BTreeSet<&[u8]> = SPELLINGS.iter().map(|spelling| &spelling[..4]).collect();
        assert!(starts.len() <= 32);
        for name in ["<base", "<BASE", "<bAsE"] {
            for before in 0..7 {
                let octets = ["x".repeat(before).as_str(), name, " href"].concat();
                let body = STANDARD.encode_to_string(octets);
                assert!(is_seen(body.as_bytes()), "{body}");
                // Few letters, before there are tables.
                let letters = body.as_bytes();
                let at = |at: usize| letters.get(at..at + SURE);
                let places = memchr3_iter(b'P', b'x', b'8', letters);
                assert!(
                    places
                        .into_iter()
                        .any(|place| at(place).is_some_and(|there| SPELLINGS.contains(there)))
                );
            }
        }
    }

    #[test]
    fn what_stands_between_blocks_is_seen() {
        let letters = STANDARD.encode_to_string("<base");
        for place in (BLOCK - 8..BLOCK + 8).chain(2 * BLOCK - 16..2 * BLOCK + 8) {
            for filler in ["A", "\n", "A "] {
                let mut body = filler.repeat(2 * BLOCK);
                body.truncate(place);
                body += &letters;
                assert!(spells_base(body.as_bytes()), "{place} {filler:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_base64_decodes_to_is_seen_before(
            text in "([<>bBaAsSeE]|<[bB][aA]|[bB][aA][sS][eE]|<base|x){0,24}",
            before in prop::collection::vec(any::<u8>(), 0..4),
            columns in 1_usize..80,
            noise in prop::collection::vec((0_usize..200, prop::sample::select(vec![" ", "\r\n", "-", "\0", "\u{e4}"])), 0..4),
            start in "[A-Za-z0-9+/ :\n]{0,12}",
            end in "(={0,2}|\n--b|\n)",
        ) {
            let octets = [&before, text.as_bytes()].concat();
            let mut body: Vec<u8> = STANDARD.encode_to_string(&octets).into();
            body = body.chunks(columns).flat_map(|line| [line, b"\n"].concat()).collect();
            for (place, noise) in noise {
                let place = place.min(body.len());
                body.splice(place..place, noise.bytes());
            }
            let decoded = TransferEncoding::Base64.decode(&body).expect("noise is skipped");
            prop_assert_eq!(&*decoded, &octets[..]);
            let is_base = |there: &[u8]| there.eq_ignore_ascii_case(NAME);
            let is_there = octets.windows(NAME.len()).any(is_base);
            prop_assert!(!is_there || is_seen(&body));
            let padding = body.iter().position(|&byte| byte == b'=').unwrap_or(body.len());
            let around = [start.as_bytes(), &body[..padding], end.as_bytes()].concat();
            prop_assert!(!is_there || is_seen(&around));
        }

        #[test]
        fn only_what_whole_letters_do_not_tell_from_it_is_taken_for_one(
            octets in "([a-zA-Z<> ]{0,40}|<[bB][aA][sS][ -~]|[ -~][bB][aA][sS][eE]|<?bas|base?){0,6}",
        ) {
            let body = STANDARD.encode_to_string(&octets);
            // In each of the three places, the bits of the first and of the last octet that are in whole letters.
            let sure = [(0xff, 0xf0), (0x0f, 0xff), (0x3f, 0xfc)];
            let looks_like = |(at, there): (usize, &[u8])| {
                let (first, last) = sure[at % 3];
                (there[0] ^ b'<') & first == 0
                    && there[1..4].eq_ignore_ascii_case(b"bas")
                    && b"eE".iter().any(|byte| (there[4] ^ byte) & last == 0)
            };
            let expected = octets.as_bytes().windows(NAME.len()).enumerate().any(looks_like);
            prop_assert_eq!(is_seen(body.as_bytes()), expected, "{:?}", octets);
        }
    }
}
