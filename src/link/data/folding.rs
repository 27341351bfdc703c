//! The white space that folding puts into a URL.

/// The white space of a folded header parameter, which is no part of a URL (RFC 2017 §3.1).
pub(super) fn is_folding(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

pub(super) fn skip_folding(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_folding(*first)
    {
        bytes = rest;
    }
    bytes
}

pub(super) fn trim_folding_end(mut bytes: &[u8]) -> &[u8] {
    while let [rest @ .., last] = bytes
        && is_folding(*last)
    {
        bytes = rest;
    }
    bytes
}
