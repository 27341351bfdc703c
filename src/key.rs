//! The name of an object in a store: the SHA-256 of its content.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Seek as _, SeekFrom};
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// The SHA-256 of the content of an object (FIPS 180-4), which is its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// Returns the key of this content.
    pub fn of(octets: &[u8]) -> Self {
        Self(Sha256::digest(octets).into())
    }

    /// Parses 64 lower-case hexadecimal digits. Returns `None` for any other text: upper-case digits would be a second
    /// name for the same object.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        let lower = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 64 && text.iter().all(lower)).then(|| Self::from_digits(text))?
    }

    pub(crate) fn from_digits(digits: &[u8]) -> Option<Self> {
        let digit = |octet: u8| u8::try_from(char::from(octet).to_digit(16)?).ok();
        let (pairs, []) = digits.as_chunks() else {
            return None;
        };
        let octets: Vec<u8> = pairs
            .iter()
            .map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?))
            .collect::<Option<_>>()?;
        Some(Self(octets.try_into().ok()?))
    }

    pub(crate) fn of_words(words: [u64; 4]) -> Self {
        let mut octets = [0; 32];
        for (octets, word) in octets.chunks_exact_mut(8).zip(words) {
            octets.copy_from_slice(&word.to_be_bytes());
        }
        Self(octets)
    }

    /// Returns the key of the complete content of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_file(mut file: &File) -> io::Result<Self> {
        file.seek(SeekFrom::Start(0))?;
        let mut hash = Sha256::new();
        io::copy(&mut BufReader::with_capacity(64 << 10, file), &mut hash)?;
        Ok(Self(hash.finalize().into()))
    }

    /// Returns the 32 bytes of the hash.
    pub(crate) fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// Returns the path of the object inside the store directory: `ab/cd/` (its first four digits) and then all 64
    /// digits.
    pub fn path(&self) -> String {
        let [outer, inner] = self.folders();
        format!("{outer}/{inner}/{self}")
    }

    pub(crate) fn folders(&self) -> [String; 2] {
        let [outer, inner, ..] = self.0;
        [format!("{outer:02x}"), format!("{inner:02x}")]
    }
}

impl FromStr for Key {
    type Err = Error;

    /// Parses 64 hexadecimal digits in lower case.
    ///
    /// # Errors
    /// [`Error::Usage`] for any other text.
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text).ok_or_else(|| {
            Error::Usage(
                "the key of an object must consist of 64 hexadecimal digits in lower case".into(),
            )
        })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut octets = self.0.iter();
        octets.try_for_each(|octet| write!(formatter, "{octet:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Key({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_key_is_the_sha256_of_the_octets() {
        assert_eq!(Key::of(b"abc").to_string(), ABC);
        assert_eq!(Key::of(b"abc").path(), format!("ba/78/{ABC}"));
        assert_eq!(Key::parse(ABC), Some(Key::of(b"abc")));
    }

    #[test]
    fn text_that_is_no_sha256_is_rejected_as_a_key() {
        for wrong in [
            "",
            &ABC[1..],
            &format!("{ABC}0"),
            &ABC.to_uppercase(),
            &ABC.replace('b', "g"),
            &ABC.replacen("ba", "+a", 1),
            &ABC.replacen("ba", "é", 1),
            &ABC.replacen("ba78", "../.", 1),
        ] {
            assert_eq!(Key::parse(wrong), None, "{wrong}");
        }
        assert_eq!(
            Key::from_digits(ABC.to_uppercase().as_bytes()),
            Key::parse(ABC)
        );
    }
}
