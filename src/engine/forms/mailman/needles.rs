//! The search for texts that may contain notes of Mailman. Every note contains the end of a URL, or the sentence for HTML that
//! was not stored.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

const NAME: &[u8] = b"/attachments/";
/// Context around one half of `/attachments/`, in bytes before and after. In a note, it contains the other half, a date
/// and a hash.
const AROUND: (usize, usize) = (16, 40);

/// The words in Mailman's notes. A line break can cut `/attachments/` only once, so one half of the name is always complete.
/// The base64 of both halves follows, for each of the three positions of a byte in a base64 group. The last word is the
/// sentence for HTML that was not stored.
const WORDS: [&str; 9] = [
    "/attac",
    "hments/",
    "L2F0dGFj",
    "aG1lbnRz",
    "9hdHRhY2",
    "htZW50cy",
    "vYXR0YWN",
    "obWVudHM",
    "HTML attachment scrubbed and removed",
];
const PLAIN: usize = 2;

// Built once, because most messages are short, and building takes longer than searching. Building cannot fail for these
// words.
static SEARCH: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    // aho-corasick has a vectorised search only for the leftmost match kinds.
    let mut builder = AhoCorasick::builder();
    builder
        .match_kind(MatchKind::LeftmostFirst)
        .build(WORDS)
        .ok()
});

/// Returns the position of the first match. A match does not prove that the text has a note, because the words also
/// occur elsewhere.
pub(super) fn search(bytes: &[u8], from: usize) -> Option<usize> {
    let Some(searcher) = &*SEARCH else {
        return (from < bytes.len()).then_some(from);
    };
    let mut hits = searcher.find_iter(bytes.get(from..)?);
    let hit =
        hits.find(|hit| hit.pattern().as_usize() >= PLAIN || is_path(bytes, from + hit.start()));
    hit.map(|hit| from + hit.start())
}

fn is_path(bytes: &[u8], at: usize) -> bool {
    let end = bytes.len().min(at + AROUND.1);
    let around = bytes.get(at.saturating_sub(AROUND.0)..end);
    // The URL can contain hard and soft line breaks (RFC 2045 §6.7), which are skipped.
    let is_text = |byte: &&u8| !matches!(byte, b'\r' | b'\n' | b'=');
    let text = around.unwrap_or_default().iter().filter(is_text);
    let near: Vec<u8> = text.copied().collect();
    (0..near.len()).any(|at| {
        let path = near.get(at..).and_then(|near| near.strip_prefix(NAME));
        // In the URLs of Mailman, a date of 8 digits, a slash and a hash follow the name.
        path.is_some_and(|path| {
            let mut path = path.iter().take(17).enumerate();
            path.all(|(place, byte)| match place {
                0..8 => byte.is_ascii_digit(),
                8 => *byte == b'/',
                _ => byte.is_ascii_hexdigit(),
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Newline;

    const URL: &str = "http://lists.example.org/pipermail/x/attachments/20240514/5a579ce7/a.png";

    fn first(bytes: &[u8]) -> Option<usize> {
        search(bytes, 0)
    }

    #[test]
    fn notes_are_found_wherever_their_url_was_cut() {
        let before = "x/attachments/no and ";
        for at in 0..URL.len() {
            for end in ["", "\n", "\r\n", "=\n", "=\r\n"] {
                let (front, behind) = URL.split_at(at);
                let text = format!("{before}{front}{end}{behind}>\n");
                assert!(
                    first(text.as_bytes()).is_some_and(|at| at >= before.len()),
                    "{text}"
                );
            }
        }
        assert_eq!(first(b"> HTML attachment scrubbed and removed"), Some(2));
        for none in [
            "/attachments/a.png",
            "/attachments/20240514-5a579ce7",
            "attachments/20240514/5a579ce7/a",
        ] {
            assert_eq!(first(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn notes_are_found_in_base64_wherever_its_lines_end() {
        for start in 0..57 {
            let text = format!("{}\nURL: <{URL}>\n", "y".repeat(start));
            let body = crate::mime::transfer::encode_base64(text.as_bytes(), Newline::CrLf).body;
            assert!(first(&body).is_some(), "{start}");
        }
    }
}
