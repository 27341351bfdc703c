//! Names of objects in a store, as detach writes them.

use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of the content, in hexadecimal digits.
pub fn digits(content: &[u8]) -> String {
    let hash = Sha256::digest(content);
    hash.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Returns the path of the content below the directory of a store.
pub fn beneath(content: &[u8]) -> String {
    let digits = digits(content);
    format!("{}/{}/{digits}", &digits[..2], &digits[2..4])
}
