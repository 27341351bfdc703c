//! Objects of a store, as detach names them.

use sha2::{Digest as _, Sha256};

/// The hash of content.
pub fn digits(content: &[u8]) -> String {
    let hash = Sha256::digest(content);
    hash.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Where content lies beneath a store.
pub fn beneath(content: &[u8]) -> String {
    let digits = digits(content);
    format!("{}/{}/{digits}", &digits[..2], &digits[2..4])
}
