//! Finds the line endings that a text had on a server. A run writes the text with those of the mail.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use md5::{Digest as _, Md5};

use crate::mime::transfer::with_newlines;
use crate::span::{Newline, Span, SpanLines};

/// Number of bytes that the search may hash for all references of a mail.
const MOST_HASHED: u64 = 8 << 20;

/// Search for texts with both LF and CRLF line endings, by their MD5. Several runs use it, so texts that were found are kept.
#[derive(Debug)]
pub(super) struct LineEndingSearch(Mutex<SearchState>);

#[derive(Debug)]
struct SearchState {
    /// Number of bytes that may still be hashed.
    left: u64,
    /// The texts that were found, by their MD5.
    known: HashMap<Vec<u8>, Vec<u8>>,
}

impl Default for LineEndingSearch {
    fn default() -> Self {
        Self(Mutex::new(SearchState {
            left: MOST_HASHED,
            known: HashMap::new(),
        }))
    }
}

impl LineEndingSearch {
    /// Returns `text` with the line endings with which its MD5 is `wanted`.
    pub(super) fn find(&self, text: &[u8], wanted: &[u8]) -> Option<Vec<u8>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let SearchState { left, known } = &mut *state;
        let bare = |text: &[u8]| with_newlines(text.to_vec(), Newline::Lf);
        if let Some(found) = known.get(wanted)
            && bare(found) == bare(text)
        {
            return Some(found.clone());
        }
        let found = mixed(text, wanted, left)?;
        known.insert(wanted.to_vec(), found.clone());
        Some(found)
    }
}

/// Returns the text with the MD5 `wanted` if its line endings change once between LF and CRLF, or if one line has the other
/// kind. All other texts would need too many attempts. The number of bytes to be hashed is taken from `left`.
fn mixed(text: &[u8], wanted: &[u8], left: &mut u64) -> Option<Vec<u8>> {
    let whole = Span::new(0, text.len());
    let ends = SpanLines::new(text, whole).filter(|line| line.whole.end > line.content.end);
    let lines: Vec<&[u8]> = ends.map(|line| line.content.of(text)).collect();
    let forms = [Newline::Lf, Newline::CrLf].map(|kind| (kind, with_newlines(text.to_vec(), kind)));
    let longest = forms.iter().map(|(_, form)| form.len()).max()?;
    *left = left.checked_sub(2 * (lines.len() as u64).checked_mul(longest as u64)?)?;
    let [lf, crlf] = &forms;
    for ((kind, own), (other_kind, other)) in [(lf, crlf), (crlf, lf)] {
        // Ends of the lines before, in both forms.
        let (mut start, mut other_start) = (0, 0);
        let mut before = Md5::new();
        for line in &lines {
            let end = start + line.len() + kind.bytes().len();
            let other_end = other_start + line.len() + other_kind.bytes().len();
            let front = own.get(..start)?;
            let changed = other.get(other_start..)?;
            let single = [other.get(other_start..other_end)?, own.get(end..)?];
            let with = |rest: &[&[u8]]| {
                let mut hasher = before.clone();
                rest.iter().for_each(|bytes| hasher.update(bytes));
                let is_found = hasher.finalize().as_slice() == wanted;
                is_found.then(|| [front, &rest.concat()].concat())
            };
            let found = with(&[changed]).or_else(|| with(&single));
            if found.is_some() {
                return found;
            }
            before.update(own.get(start..end)?);
            (start, other_start) = (end, other_end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, left: u64) -> Option<Vec<u8>> {
        let wanted = Md5::digest(text);
        let mut left = left;
        let in_mail = with_newlines(text.as_bytes().to_vec(), Newline::Lf);
        mixed(&in_mail, &wanted, &mut left)
    }

    #[test]
    fn text_is_found_if_its_line_endings_change_once_or_if_one_line_is_different() {
        for text in [
            "a\r\nb\nc\n",
            "a\nb\r\nc\r\n",
            "a\r\nb\r\n\nc",
            "a\nb\r\nc\n\n",
            "\r\n\n",
            "a\r\nb\nc\r\nd\r\n",
        ] {
            assert_eq!(
                found(text, MOST_HASHED).as_deref(),
                Some(text.as_bytes()),
                "{text:?}"
            );
        }
        assert_eq!(found("a\r\nb\nc\r\nd\ne\r\n", MOST_HASHED), None);
        assert_eq!(found("a\r\nb\nc\n", 10), None);
        let other = Md5::digest("a\nc\n");
        assert_eq!(mixed(b"a\nb\n", &other, &mut MOST_HASHED.clone()), None);
    }
}
