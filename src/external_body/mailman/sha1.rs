//! SHA-1 (RFC 3174): Mailman names the folder of a mail's attachments by it. It proves nothing against who wants two
//! messages with one hash, and nothing here relies on that.

/// The digest of some octets.
pub(super) fn sha1(octets: &[u8]) -> [u8; 20] {
    let mut state = [
        0x6745_2301,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    let blocks = octets.chunks_exact(64);
    let rest = blocks.remainder();
    blocks.for_each(|block| compress(&mut state, block));
    let mut last = rest.to_vec();
    last.push(0x80);
    while last.len() % 64 != 56 {
        last.push(0);
    }
    last.extend_from_slice(&(octets.len() as u64 * 8).to_be_bytes());
    last.chunks_exact(64)
        .for_each(|block| compress(&mut state, block));
    let mut digest = [0; 20];
    for (place, word) in digest.chunks_exact_mut(4).zip(state) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn compress(state: &mut [u32; 5], block: &[u8]) {
    let mut words = [0_u32; 80];
    for (word, octets) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = octets
            .iter()
            .fold(0, |word, &octet| word << 8 | u32::from(octet));
    }
    for at in 16..80 {
        words[at] =
            (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (at, word) in words.into_iter().enumerate() {
        let (mixed, constant) = match at {
            0..20 => ((b & c) | (!b & d), 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = [mixed, e, constant, word];
        let next = next.into_iter().fold(a.rotate_left(5), u32::wrapping_add);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    for (word, more) in state.iter_mut().zip([a, b, c, d, e]) {
        *word = word.wrapping_add(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 3174 §7.3 and FIPS 180, and every length about the end of a block.
    #[test]
    fn digests_are_those_of_the_standard() {
        let hex = |octets: &[u8]| {
            let digest = sha1(octets);
            digest
                .iter()
                .map(|octet| format!("{octet:02x}"))
                .collect::<String>()
        };
        assert_eq!(hex(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let text = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(text), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        assert_eq!(
            hex(&b"a".repeat(1_000_000)),
            "34aa973cd4c4daa4f61eeb2bdbad27316534016f"
        );
        // Of all lengths from 0 to 130, their digests put together (Python's hashlib).
        let all: Vec<u8> = (0..=130)
            .flat_map(|length| sha1(&vec![b'x'; length]))
            .collect();
        assert_eq!(hex(&all), "c8aae94427ef2bc2653160a5197170068f5fc9fd");
    }
}
