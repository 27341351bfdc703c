//! Recognises zip and tar archives by their first bytes. A build without the feature `archives` also recognises them, so
//! that they are not read as mail.

/// Result of a search for mail in an archive that other data precede in a file.
#[cfg_attr(not(feature = "archives"), allow(dead_code))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EmbeddedMail {
    Found,
    /// The archive contains no mail.
    Without,
    /// The members of the archive could not all be listed.
    Unlisted,
}

#[cfg(feature = "archives")]
impl EmbeddedMail {
    /// Returns the result for two archives in one file.
    pub(in crate::mailbox) fn more(self, other: Self) -> Self {
        match (self, other) {
            (Self::Found, _) | (_, Self::Found) => Self::Found,
            (Self::Unlisted, _) | (_, Self::Unlisted) => Self::Unlisted,
            (Self::Without, Self::Without) => Self::Without,
        }
    }
}

/// Returns whether a file starts like an archive.
pub(in crate::mailbox) fn is_archive(first: &[u8]) -> bool {
    is_zip(first) || is_tar(first)
}

pub(in crate::mailbox) const BLOCK: usize = 512;

/// Bytes that may precede the first member of a complete zip archive: none, `PK\x07\x08` if the archive was split into
/// several files, or `PK00` if it was to be split but fits into one file. Any other data before the first member is
/// reported.
pub(in crate::mailbox) const MARKS: [&[u8]; 3] = [b"", b"PK\x07\x08", b"PK00"];

pub(in crate::mailbox) fn is_zip(start: &[u8]) -> bool {
    let is_member = |start: &[u8]| start.starts_with(b"PK\x03\x04");
    let mut marks = MARKS.iter();
    start.starts_with(b"PK\x05\x06")
        || marks.any(|mark| start.strip_prefix(*mark).is_some_and(is_member))
}

/// Returns whether a file starts with the header of a tar archive. This is decided by the checksum of the header,
/// because archives in the oldest format have no magic bytes.
pub(in crate::mailbox) fn is_tar(start: &[u8]) -> bool {
    start.first().is_some_and(|&octet| octet != 0)
        && start.first_chunk::<BLOCK>().is_some_and(is_right)
}

/// Returns whether a header of a tar archive has the right checksum.
pub(in crate::mailbox) fn is_right(block: &[u8; BLOCK]) -> bool {
    let sum = |octets: &[u8]| octets.iter().map(|&octet| u32::from(octet)).sum::<u32>();
    // The checksum is the sum of all bytes of the header. Its own eight bytes are in the header too, and the format
    // defines that they count as spaces.
    let (before, field, after) = (&block[..148], &block[148..156], &block[156..]);
    octal(field) == Some(sum(before) + sum(after) + 8 * 32)
}

/// Reads an octal number, which ends with the field or with a NUL. It may be surrounded by blanks.
fn octal(field: &[u8]) -> Option<u32> {
    let digits = field.split(|&octet| octet == 0).next()?;
    u32::from_str_radix(str::from_utf8(digits).ok()?.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[cfg(feature = "archives")]
        #[test]
        fn octal_number_has_the_value_that_the_tar_crate_reads(field in r"[0-8 +\x00\u{e4}-]{6,8}") {
            let mut header = tar::Header::new_old();
            let bytes: Vec<u8> = field.bytes().chain([0; 8]).take(8).collect();
            header.as_old_mut().cksum.copy_from_slice(&bytes);
            prop_assert_eq!(octal(&bytes), header.cksum().ok(), "{}", field);
        }
    }
}
