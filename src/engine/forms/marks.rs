//! Searches for marks: byte strings of which at least one occurs in every message with a part of some form. A message without
//! marks need not be parsed.

use aho_corasick::{AhoCorasick, MatchKind, packed};

use crate::mime::{Part, TransferEncoding};

/// A byte string of a form. Every message with a part of the form contains at least one of the form's marks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FormMark {
    /// A string that is a mark only at the start of a line, because the string is the start of an encoded body.
    Line(&'static [u8]),
    /// A string that is a mark at every position. Upper and lower case are distinguished.
    Text(&'static [u8]),
    /// A string that is a mark at every position, in upper or lower case, unless `-` follows. To be fast, the search first
    /// looks for three bytes of the string: two letters and the byte before these letters. The three bytes should be
    /// rare in other text.
    Word {
        text: &'static [u8],
        /// Position in `text` of the three bytes that are searched first. The first of them is the byte before the two
        /// letters.
        anchor: usize,
    },
}

impl FormMark {
    /// Returns the byte strings whose search finds every place where this mark may occur.
    fn patterns(self) -> Vec<Vec<u8>> {
        match self {
            Self::Line(start) => vec![[b"\n", start].concat()],
            Self::Text(text) => vec![text.to_vec()],
            Self::Word { text, anchor } => {
                let [before, first, second] = [0, 1, 2].map(|at| text.get(anchor + at).copied());
                let cases = |byte: Option<u8>| {
                    let byte = byte.unwrap_or_default();
                    [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()]
                };
                let firsts = cases(first).into_iter();
                let pairs = firsts.flat_map(|one| cases(second).map(|other| (one, other)));
                let before = before.unwrap_or_default();
                pairs.map(|(one, other)| vec![before, one, other]).collect()
            }
        }
    }

    /// Checks the whole mark at a place where the search has found one of its patterns. Returns the start of the mark, or
    /// `None` if the bytes around the pattern are not those of the mark.
    fn around(self, bytes: &[u8], at: usize) -> Option<usize> {
        let Self::Word { text, anchor } = self else {
            return Some(at);
        };
        let start = at.checked_sub(anchor)?;
        let (found, after) = bytes.get(start..)?.split_at_checked(text.len())?;
        (found.eq_ignore_ascii_case(text) && ends_word(after)).then_some(start)
    }
}

/// Returns true if a word ends before these bytes. The field X-MS-TNEF-Correlator, which Exchange adds to every mail, contains
/// `ms-tnef`, but is no media type.
pub(super) fn ends_word(after: &[u8]) -> bool {
    !after.starts_with(b"-")
}

/// A search for all marks of one or more forms in one pass.
pub(super) struct Marks {
    /// The mark to which each pattern of the search belongs. A mark can have several patterns, one for each combination
    /// of upper and lower case.
    marks: Vec<FormMark>,
    search: MarkSearch,
}

/// The implementation of the search. `Vectors` is more than twice as fast as `Automaton`, but needs SIMD instructions.
enum MarkSearch {
    Vectors(packed::Searcher),
    Automaton(AhoCorasick),
    /// The search could not be built. Every position is then reported as a mark, so that no message is skipped.
    Anywhere,
}

impl Marks {
    pub(super) fn new(marks: impl IntoIterator<Item = FormMark>) -> Self {
        let patterns = marks.into_iter().flat_map(|mark| {
            let patterns = mark.patterns().into_iter();
            patterns.map(move |pattern| (mark, pattern))
        });
        let (marks, patterns): (Vec<FormMark>, Vec<Vec<u8>>) = patterns.unzip();
        let vectors = packed::Config::new().builder().extend(&patterns).build();
        let search = vectors.map_or_else(|| MarkSearch::automaton(&patterns), MarkSearch::Vectors);
        Self { marks, search }
    }

    /// Returns the position of the first mark at or after `from`, or `None` if no mark occurs there.
    pub(super) fn first(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        while let Some(rest) = bytes.get(at..) {
            let hit = match &self.search {
                MarkSearch::Vectors(search) => search.find(rest)?,
                MarkSearch::Automaton(search) => search.find(rest)?,
                MarkSearch::Anywhere => return Some(at),
            };
            let start = at + hit.start();
            let mark = self.marks.get(hit.pattern().as_usize())?;
            let found = mark.around(bytes, start);
            if let Some(found) = found.filter(|found| *found >= from) {
                return Some(found);
            }
            at = start + 1;
        }
        None
    }
}

impl MarkSearch {
    fn automaton(patterns: &[Vec<u8>]) -> Self {
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::LeftmostFirst);
        let built = builder.build(patterns);
        built.map_or(Self::Anywhere, Self::Automaton)
    }
}

/// Returns true if the body of a part begins with one of the `starts`. In base64, blanks and empty lines may precede it.
pub(super) fn begins(part: &Part, original: &[u8], starts: &[&[u8]]) -> bool {
    let body = part.body.of(original);
    let body = match part.encoding {
        TransferEncoding::Base64 => body.trim_ascii_start(),
        _ => body,
    };
    starts.iter().any(|start| body.starts_with(start))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MARKS: [FormMark; 6] = [
        FormMark::Line(b"eJ8+I"),
        FormMark::Line(b"x=9F>\""),
        FormMark::Line(b"\x78\x9f\x3e\x22"),
        FormMark::Text(b".rtf"),
        FormMark::Word {
            text: b"ms-tnef",
            anchor: 2,
        },
        FormMark::Word {
            text: b"vnd.ms-outlook",
            anchor: 6,
        },
    ];

    /// Tests with a simple loop whether a mark occurs at or after `from`, as a reference for the fast searches.
    fn plainly(bytes: &[u8], from: usize) -> bool {
        let is_at = |at: usize| {
            let rest = &bytes[at..];
            MARKS.iter().any(|mark| match mark {
                FormMark::Line(start) => rest
                    .strip_prefix(b"\n")
                    .is_some_and(|it| it.starts_with(start)),
                FormMark::Text(text) => rest.starts_with(text),
                FormMark::Word { text, .. } => {
                    let it = rest.split_at_checked(text.len());
                    it.is_some_and(|(it, after)| {
                        it.eq_ignore_ascii_case(text) && after.first() != Some(&b'-')
                    })
                }
            })
        };
        (from..bytes.len()).any(is_at)
    }

    #[test]
    fn both_searches_find_the_same_marks() {
        let vectors = Marks::new(MARKS);
        let patterns: Vec<Vec<u8>> = MARKS.iter().flat_map(|mark| mark.patterns()).collect();
        let automaton = Marks {
            marks: MARKS
                .iter()
                .flat_map(|mark| vec![*mark; mark.patterns().len()])
                .collect(),
            search: MarkSearch::automaton(&patterns),
        };
        let mut text = b"eJ8+I first\n".repeat(3);
        for at in 0..40 {
            text.extend(vec![b"\nx"[at % 2]; at * 3]);
            text.extend_from_slice(
                [&b"eJ8+I"[..], b"a.rtf", b"MS-tNef", b"Vnd.Ms-Outlook"][at % 4],
            );
            text.push(b'\n');
        }
        for end in 0..text.len() {
            let part = &text[..end];
            for from in [0, end / 2, end.saturating_sub(3), end + 1] {
                assert_eq!(vectors.first(part, from), automaton.first(part, from));
            }
        }
        assert_eq!(vectors.first(&text, 0), Some(11));
    }

    proptest! {
        #[test]
        fn marks_are_found_where_they_are(
            pieces in prop::collection::vec(
                prop::sample::select(vec!["\n", "eJ8+I", "x=9F>\"", ".rtf", ".RTF", "ms-tnef", "MS-TNEF", "MS-TNEF-", "ms-tn", "vnd.ms-OUTLOOK", "s-ou", "-tn", "x", " "]),
                0..30,
            ),
            from in 0_usize..40,
        ) {
            let text = pieces.concat();
            let found = Marks::new(MARKS).first(text.as_bytes(), from);
            prop_assert_eq!(found.is_some(), plainly(text.as_bytes(), from), "{}", text);
            if let Some(at) = found {
                prop_assert!(at >= from && plainly(text.as_bytes(), at));
            }
        }
    }
}
