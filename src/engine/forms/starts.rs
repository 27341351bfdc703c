//! Recognizes the parts of a form by their first bytes, for parts whose media type does not identify them.

use aho_corasick::{AhoCorasick, MatchKind, packed};

use crate::mime::{Part, TransferEncoding};

/// The first bytes of an encoded body, each for one encoding or spelling.
pub struct Starts {
    starts: &'static [&'static [u8]],
    lines: Lines,
}

/// A search for lines that begin with one of the starts. `Vectors` is more than twice as fast
/// as `Automaton`, but needs SIMD instructions.
enum Lines {
    Vectors(packed::Searcher),
    Automaton(AhoCorasick),
    /// The search could not be built, so every position is a candidate.
    Anywhere,
}

impl Starts {
    pub fn new(starts: &'static [&'static [u8]]) -> Self {
        let lines: Vec<Vec<u8>> = starts.iter().map(|it| [b"\n", *it].concat()).collect();
        let vectors = packed::Config::new().builder().extend(&lines).build();
        let lines = vectors.map_or_else(|| Lines::automaton(&lines), Lines::Vectors);
        Self { starts, lines }
    }

    /// The first place, at or after `from`, of a line that begins like such a body.
    pub fn first(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let rest = bytes.get(from..)?;
        let hit = match &self.lines {
            Lines::Vectors(searcher) => searcher.find(rest)?.start(),
            Lines::Automaton(automaton) => automaton.find(rest)?.start(),
            Lines::Anywhere => 0,
        };
        Some(from + hit)
    }

    /// Whether the body of a part begins like this. base64 may begin behind blanks and empty lines.
    pub fn begin(&self, part: &Part, original: &[u8]) -> bool {
        let body = part.body.of(original);
        let body = match part.encoding {
            TransferEncoding::Base64 => body.trim_ascii_start(),
            _ => body,
        };
        self.starts.iter().any(|start| body.starts_with(start))
    }
}

impl Lines {
    fn automaton(lines: &[Vec<u8>]) -> Self {
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::LeftmostFirst);
        builder.build(lines).map_or(Self::Anywhere, Self::Automaton)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_searches_find_the_same_lines() {
        let starts: &[&[u8]] = &[b"eJ8+I", b"x=9F>\"", b"\x78\x9f\x3e\x22"];
        let vectors = Starts::new(starts);
        let lines: Vec<Vec<u8>> = starts.iter().map(|it| [b"\n", *it].concat()).collect();
        let automaton = Starts {
            starts,
            lines: Lines::automaton(&lines),
        };
        let mut text = b"eJ8+I first\n".repeat(3);
        for (at, start) in starts.iter().cycle().take(40).enumerate() {
            text.extend(vec![b"\nx"[at % 2]; at * 3]);
            text.extend_from_slice(start);
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
}
