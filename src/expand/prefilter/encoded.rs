//! Whether a document is under base64, which hides a `<base` from every search.
//!
//! The encoding of a part stands in the same header section as its type. Header sections lie between empty lines;
//! what else lies there (the end of the body before a boundary line) makes no harm but to be looked at.

use memchr::{memchr_iter, memrchr_iter};

use super::words::{Words, word};

static ENCODED: Words = Words::new(&[word("base64", 4).fragment_at(2)], *b"666");

/// The header sections of one message, asked about from its start to its end: each byte is looked at once.
#[derive(Default)]
pub(super) struct Sections {
    /// What was looked at.
    to: usize,
}

impl Sections {
    /// Whether base64 is named in the header section of `message` in which the octet at `at` stands; not again
    /// in a section that was asked about.
    pub(super) fn name_base64(&mut self, message: &[u8], at: usize) -> bool {
        if at < self.to {
            return false;
        }
        let before = message.get(self.to..at).unwrap_or_default();
        let start = memrchr_iter(b'\n', before)
            .find(|&end| is_empty_line(before.get(..end).unwrap_or_default()))
            .map_or(self.to, |end| self.to + end + 1);
        let behind = message.get(at..).unwrap_or_default();
        let end = memchr_iter(b'\n', behind)
            .find(|&end| is_empty_line(behind.get(..end).unwrap_or_default()))
            .map_or(message.len(), |end| at + end + 1);
        self.to = end;
        let section = message.get(start..end).unwrap_or_default();
        ENCODED.first(section).is_some()
    }
}

/// Whether a line end behind these bytes ends an empty line.
fn is_empty_line(before: &[u8]) -> bool {
    matches!(before, [.., b'\n'] | [.., b'\n', b'\r'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_ends_at_empty_lines_of_either_kind() {
        let message = b"A: base64\nT: 1\n\nbase64\r\n\r\nT: 2\r\n\r\nbase64\n\nT: 3\nE: BASE64";
        let mut sections = Sections::default();
        let at = |what: &str| memchr::memmem::find(message, what.as_bytes()).expect("it is there");
        let places = [at("T: 1"), at("T: 2"), at("T: 3")];
        let found = places.map(|place| sections.name_base64(message, place));
        assert_eq!(found, [true, false, true]);
    }

    #[test]
    fn a_line_of_blanks_ends_no_section() {
        let message = b"A: base64\n \nT: 1\n\t\nE: x";
        let at = memchr::memmem::find(message, b"T: 1").expect("it is there");
        assert!(Sections::default().name_base64(message, at));
    }

    #[test]
    fn millions_of_types_in_one_section_are_one_look() {
        let field = b"content-type: text/html\n";
        let message = field.repeat(1 << 18);
        let mut sections = Sections::default();
        let named = (0..1 << 18).any(|index| sections.name_base64(&message, index * field.len()));
        assert!(!named);
    }
}
