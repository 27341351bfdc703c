//! Whether a document may have a `<base`, or show something from a `data:` URL, as far as that shows without a look at
//! the structure of its message.
//!
//! The encoding of a part stands in the same header section as its type, and base64 hides a `<base` from a search for it.
//! A header section lies between empty lines, or between a boundary line and what is no field (RFC 2046 §5.1.1); more
//! may be taken for one here, never less.

use memchr::{memchr_iter, memrchr_iter};

use crate::mime::TransferEncoding;

use super::base64::spells_base;
use super::data::may_show_data;
use super::hidden::may_spell_base;
use super::words::{Words, word};

static BASE64: Words = Words::new(&[word("base64", 4)], b'6');
static QUOTED: Words = Words::new(&[word("quoted-printable", 6)], b'-');
static BASE: Words = Words::new(&[word("<base", 0)], b'<');

#[cfg(test)]
pub(super) static SEARCHES: [&Words; 3] = [&BASE64, &QUOTED, &BASE];

/// The documents of one message, asked about from its start to its end: each byte is looked at a few times at most.
#[derive(Default)]
pub(super) struct Documents {
    /// Whether a document matters that has a base, and one that has a `data:` URL.
    seeks_base: bool,
    seeks_data: bool,
    /// Where the last header section ends that was looked at.
    sections: usize,
    /// The same of what is literal, and of what has escapes.
    literal: usize,
    escaped: usize,
    /// The same of base64.
    letters: usize,
}

impl Documents {
    pub(super) fn seeking(base: bool, data: bool) -> Self {
        Self {
            seeks_base: base,
            seeks_data: data,
            ..Self::default()
        }
    }

    /// Whether the document may have what is sought whose media type stands at `at`. It is not asked again about what
    /// was searched before, so the first answer counts.
    pub(super) fn matters(&mut self, message: &[u8], at: usize) -> bool {
        if at < self.sections {
            // The types of one section are those of one part.
            return false;
        }
        let of = |from: usize, to: usize| message.get(from..to).unwrap_or_default();
        let before = of(self.sections, at);
        let empty = memrchr_iter(b'\n', before).find(|&end| is_empty_line(&before[..end]));
        let start = empty.map_or(self.sections, |end| self.sections + end + 1);
        let behind = of(at, message.len());
        let empty = memchr_iter(b'\n', behind).find(|&end| is_empty_line(&behind[..end]));
        let end = empty.map_or(message.len(), |end| at + end + 1);
        self.sections = end;
        let section = of(start, end);
        // A line that is no field ends a header section without an empty line: the body may start right behind the type.
        // Text that was searched for another document holds no base, and no boundary line is looked for in it again.
        let from = at.max(self.literal);
        // With a boundary line behind the type, the part that starts there may be another one, and its end.
        let delimiter = match starts_boundary(of(at, end)) {
            true => None,
            false => delimiter(of(start, at)),
        };
        let to = delimiter
            .and_then(|delimiter| next_line(of(from, message.len()), delimiter))
            .map_or(message.len(), |line| from + line);
        self.literal = to;
        if BASE64.first(section).is_some() {
            // A spelling may go on behind what was searched for another document.
            if self.seeks_data || at < self.letters || spells_base(of(at, to)) {
                return true;
            }
            self.letters = to;
        }
        let literal = of(from, to);
        if self.seeks_data && may_show_data(literal) {
            return true;
        }
        if QUOTED.first(section).is_none() {
            return self.seeks_base && BASE.first(literal).is_some();
        }
        let from = at.max(self.escaped);
        self.escaped = self.escaped.max(to);
        let escaped = of(from, to);
        let decoded = || TransferEncoding::QuotedPrintable.decode(escaped);
        self.seeks_base && may_spell_base(escaped)
            || self.seeks_data && decoded().is_none_or(|text| may_show_data(&text))
    }
}

/// Whether a line end behind these bytes ends an empty line.
fn is_empty_line(before: &[u8]) -> bool {
    matches!(before, [] | [b'\r'] | [.., b'\n'] | [.., b'\n', b'\r'])
}

/// Whether a line starts as a boundary line does, behind the one that `bytes` start in.
fn starts_boundary(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"\n--").is_some()
}

/// The boundary line in front of the fields that end `before`, if there surely is one.
fn delimiter(before: &[u8]) -> Option<&[u8]> {
    let starts = memrchr_iter(b'\n', before).map(|end| end + 1);
    let lines = starts.chain([0]).filter_map(|start| before.get(start..));
    let line = lines.into_iter().find(|rest| rest.starts_with(b"--"))?;
    let line = line.split(|&byte| byte == b'\n').next()?;
    // One with a colon in it may be a field.
    let line = line.trim_ascii_end();
    (!line.contains(&b':')).then_some(line)
}

/// Where the next line starts that is this boundary line, or closes that boundary.
fn next_line(bytes: &[u8], delimiter: &[u8]) -> Option<usize> {
    let boundaries = memchr::memmem::find_iter(bytes, delimiter);
    boundaries.into_iter().find(|&at| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        let is_at_start = before.is_none_or(|&byte| byte == b'\n');
        let rest = bytes.get(at + delimiter.len()..).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let rest = rest.get(..end).unwrap_or_default();
        let rest = rest.strip_prefix(b"--").unwrap_or(rest);
        is_at_start && rest.trim_ascii().is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the first of the types may have a base, and so on.
    fn asked(message: &str) -> Vec<bool> {
        let mut documents = Documents::seeking(true, true);
        let places = message.match_indices("text/html").map(|(at, _)| at);
        places
            .map(|at| documents.matters(message.as_bytes(), at))
            .collect()
    }

    #[test]
    fn the_encoding_stands_in_the_section_of_the_type() {
        for (message, expected) in [
            (
                "A: base64\nT: text/html\n\nPGJhc2Ug\n\nT: text/html\n\nPGJhc2Ug",
                [true, false],
            ),
            (
                "A: x\r\nT: text/html\r\n\r\nbase64\r\n\r\nT: text/html\r\nE: BASE64\r\n\r\nPGJ\r\nhc2Ug",
                [false, true],
            ),
            // A line of blanks ends no section.
            (
                "T: text/html\n\t\nE: base64\n \nT: text/html\nPGJhc2Ug",
                [true, false],
            ),
        ] {
            assert_eq!(asked(message), expected, "{message}");
        }
    }

    #[test]
    fn a_base_counts_up_to_the_next_boundary_line() {
        for (message, expected) in [
            ("x\n--b\nT: text/html\n\n<BASE href=x>\n--b\n", true),
            ("x\n--b\nT: text/html\n\n<p>\n--bc\n-->\n--\n<base>", true),
            ("x\n--b\nT: text/html\n\n<p>\n--b\n<base>", false),
            ("x\n--b \nT: text/html\n\n<p>\r\n--b-- \r\n<base>", false),
            // Which of the two is the boundary line does not show.
            (
                "x\n--b\n--c: d\nT: text/html\n\n<p>\n--b\n--c: d\n<base>",
                true,
            ),
            // The line without a colon starts the body.
            ("x\n--b\nT: text/html\n<base>\n\n--b\n", true),
            ("T: text/html\n\n<p>\n--b\n<base>", true),
            ("T: text/html\n\n<p>=3Cbase>", false),
            ("E: quoted-printable\nT: text/html\n\n<p>=3Cbase>", true),
            (
                "x\n--b\nT: text/html\nE: Quoted-Printable\n\n\n--b\n=3Cbase>",
                false,
            ),
        ] {
            assert_eq!(asked(message), [expected], "{message}");
        }
    }

    #[test]
    fn base64_counts_where_it_spells_a_base() {
        for (message, expected) in [
            ("E: base64\nT: text/html\n\nPGJhc2U=", [true, true]),
            ("E: base64\nT: text/html\n\nPGI=", [false, true]),
            (
                "x\n--b\nT: text/html\nE: base64\n\nPGI=\n--b\nPGJhc2U=",
                [false, true],
            ),
            (
                "x\n--b\nT: text/html\n--c\nE: base64\n\nPGI=\n--b\nPGJhc2U=",
                [true, true],
            ),
        ] {
            for (seeks_data, expected) in [(false, expected[0]), (true, expected[1])] {
                let at = message.find("text/html").expect("it is there");
                let mut documents = Documents::seeking(true, seeks_data);
                let matters = documents.matters(message.as_bytes(), at);
                assert_eq!(matters, expected, "{message} {seeks_data}");
            }
        }
        // Text that was searched is not searched again: the document may go on behind.
        let part = "T: text/html\nE: base64\n\nPGI=\n\n";
        let (message, second) = (part.repeat(2), part.len() + 3);
        let mut documents = Documents::seeking(true, false);
        assert!(!documents.matters(message.as_bytes(), 3));
        assert!(documents.matters(message.as_bytes(), second));
    }

    #[test]
    fn a_data_url_counts_where_a_base_does() {
        for (message, expected) in [
            ("x\n--b\nT: text/html\n\n<img src=data:,x>\n--b\n", true),
            ("x\n--b\nT: text/html\n\n<p>\n--b\n<img src=data:,x>", false),
            ("T: text/html\n\n<img src=3Dda=\nta:,x>", false),
            (
                "E: quoted-printable\nT: text/html\n\n<img src=3Dda=\nta:,x>",
                true,
            ),
            (
                "E: quoted-printable\nT: text/html\n\n<img src=3D=64ata=3A,x>",
                true,
            ),
        ] {
            assert_eq!(asked(message), [expected], "{message}");
        }
    }

    #[test]
    fn millions_of_types_are_a_few_looks() {
        for unit in [
            "text/html\n",
            "text/html\n\n",
            "--b\ntext/html\n\n",
            "quoted-printable text/html\n\n=\n",
        ] {
            assert!(!asked(&unit.repeat(1 << 18)).contains(&true), "{unit:?}");
        }
        // Each has a boundary of its own, which stands nowhere else, or only at the end.
        let parts = |range: std::ops::Range<usize>| -> String {
            range
                .map(|number| format!("--{number}\ntext/html\n\n"))
                .collect()
        };
        let all = parts(0..1 << 17);
        assert!(!asked(&all).contains(&true));
        assert!(!asked(&(all.clone() + &all)).contains(&true));
    }
}
