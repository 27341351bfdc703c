//! What every note of Mailman's has: the end of a URL that it wrote, or the sentence of what it did not store.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// What stands in front of the date and the hash of an attachment.
const NAME: &[u8] = b"/attachments/";
const SENTENCE: &[u8] = b"HTML attachment scrubbed and removed";

// Made once: most messages are short.
static STORED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(NAME));
static REMOVED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(SENTENCE));

/// Where the first one stands.
pub(super) fn first(bytes: &[u8]) -> Option<usize> {
    let stored = stored(bytes, 0);
    // What stands behind is of no interest.
    let front = bytes.get(..stored.unwrap_or(bytes.len()));
    removed(front.unwrap_or(bytes), 0).or(stored)
}

/// The messages that have one, by their numbers: those that end at the places given, in order.
#[cfg(any(test, feature = "mailbox"))]
pub(super) fn messages(bytes: &[u8], ends: &[usize]) -> Vec<usize> {
    let mut found = Vec::new();
    for search in [stored, removed] {
        let mut from = 0;
        while let Some(at) = search(bytes, from) {
            let number = ends.partition_point(|&end| end <= at);
            let Some(&end) = ends.get(number) else {
                break;
            };
            found.push(number);
            from = end;
        }
    }
    found
}

/// Where the URL of a stored attachment stands, at `from` or later.
fn stored(bytes: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let at = from + STORED.find(bytes.get(from..)?)?;
        let behind = bytes.get(at + NAME.len()..).unwrap_or_default();
        // A date, a slash, and a hash, as far as they stand on this line.
        let path = behind.get(..17.min(behind.len())).unwrap_or_default();
        let is_path = path.iter().enumerate().all(|(place, byte)| match place {
            0..8 => byte.is_ascii_digit() || byte.is_ascii_whitespace(),
            8 => matches!(byte, b'/' | b'\r' | b'\n') || byte.is_ascii_digit(),
            _ => byte.is_ascii_hexdigit() || matches!(byte, b'/' | b'\r' | b'\n'),
        });
        if is_path {
            return Some(at);
        }
        from = at + NAME.len();
    }
}

/// Where it is said that HTML was not stored.
fn removed(bytes: &[u8], from: usize) -> Option<usize> {
    Some(from + REMOVED.find(bytes.get(from..)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_found_also_where_their_url_was_cut() {
        let before = b"x/attachments/no and ";
        for note in [
            "/attachments/20240514/5a579ce7/a.png",
            "/attachments/2024\n0514/5a579ce7/a.png",
            "/attachments/20240514/5a\r\n579ce7/a.png",
            "HTML attachment scrubbed and removed",
        ] {
            let text = [before, note.as_bytes()].concat();
            assert_eq!(first(&text), Some(before.len()), "{note}");
        }
        for none in [
            "/attachments/a.png",
            "/attachments/20240514-5a579ce7",
            "attachments/20240514/5a579ce7/a",
        ] {
            assert_eq!(first(none.as_bytes()), None, "{none}");
        }
        let two = b"one/attachments/20240514/5a579ce7/a|two|HTML attachment scrubbed and removed|";
        assert_eq!(messages(two, &[36, 40, two.len()]), [0, 2]);
    }
}
