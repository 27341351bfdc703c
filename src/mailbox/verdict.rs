//! Verdicts on the files of a source. Every file is read, is a part of a mailbox, contains no mail, was not read, or is
//! ignored because the user asked for it (docs/mailboxes.md, "Every file is accounted for").

use std::ffi::OsStr;
use std::path::Path;

use crate::platform::OsStrExt as _;

/// Number of files below a source, by verdict. Each file has exactly one verdict, so the sum is the number of all files:
/// those in directories, and the members of archives.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Deserialize, serde::Serialize)]
#[non_exhaustive]
pub struct FileCounts {
    /// Files whose mail was read, and archives whose members were read.
    pub read: u64,
    /// Files that mail programs keep next to messages, such as indexes, locks and lists of flags, and files of embody's
    /// own stores and caches.
    pub parts: u64,
    /// Files without mail, by their content: pictures, documents, programs, texts.
    pub not_mail: u64,
    /// Files that were not read completely although they contain or may contain mail. Each was reported to
    /// [`MailboxFact`](crate::mailbox::MailboxFact).
    pub not_read: u64,
    /// Files that match [`ReadOptions::ignore`](crate::mailbox::ReadOptions::ignore). They were not opened.
    pub ignored: u64,
}

impl FileCounts {
    /// Returns the number of all files.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.read + self.parts + self.not_mail + self.not_read + self.ignored
    }

    /// Adds `other` to these counts.
    pub fn add(&mut self, other: &Self) {
        self.read += other.read;
        self.parts += other.parts;
        self.not_mail += other.not_mail;
        self.not_read += other.not_read;
        self.ignored += other.ignored;
    }

    /// Counts a file as read if it was read completely, and otherwise as not read.
    pub(crate) fn count_read(&mut self, is_complete: bool) {
        if is_complete {
            self.read += 1;
        } else {
            self.not_read += 1;
        }
    }

    /// Counts a file as not read that was already counted as read: its damage was found only while it was read.
    pub(crate) fn was_not_read(&mut self) {
        self.read = self.read.saturating_sub(1);
        self.not_read += 1;
    }
}

/// Patterns of files to ignore. `*` matches any characters, `?` matches one character. A pattern with a slash, such as `a/b` or
/// `./a`, is compared with the path relative to the source, and with the path of each directory above the file. A pattern
/// without a slash is compared with each name in this path. A slash at the end has no effect.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct IgnorePatterns(Vec<IgnorePattern>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct IgnorePattern {
    text: Vec<u8>,
    is_path: bool,
}

impl IgnorePatterns {
    /// Creates the patterns from their texts.
    pub fn new<T: AsRef<OsStr>>(patterns: impl IntoIterator<Item = T>) -> Self {
        let bytes = |pattern: T| {
            let bytes = pattern.as_ref().as_bytes();
            let relative = bytes.strip_prefix(b"./").unwrap_or(bytes);
            let text = relative.strip_suffix(b"/").unwrap_or(relative).to_vec();
            IgnorePattern {
                is_path: relative != bytes || text.contains(&b'/'),
                text,
            }
        };
        Self(patterns.into_iter().map(bytes).collect())
    }

    /// Returns whether a pattern matches the file or directory at `relative`, a path below the source.
    #[must_use]
    pub fn matches(&self, relative: &Path) -> bool {
        self.matches_bytes(relative.as_os_str().as_bytes())
    }

    pub(crate) fn matches_bytes(&self, relative: &[u8]) -> bool {
        let is_match = |pattern: &IgnorePattern| {
            let text = pattern.text.as_slice();
            if pattern.is_path {
                let ends = memchr::memchr_iter(b'/', relative).chain([relative.len()]);
                ends.into_iter()
                    .any(|end| is_wildcard_match(text, relative.get(..end).unwrap_or_default()))
            } else {
                let mut names = relative.split(|&byte| byte == b'/');
                names.any(|name| is_wildcard_match(text, name))
            }
        };
        self.0.iter().any(is_match)
    }
}

/// Matches `text` against a pattern with the wildcards `*` and `?`. The time is at most proportional to the product of
/// both lengths.
fn is_wildcard_match(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut position) = (0, 0);
    // Position after the last `*` in the pattern, and the end of the text that this `*` matches so far.
    let mut star: Option<(usize, usize)> = None;
    while position < text.len() {
        match (pattern.get(at), star) {
            (Some(b'*'), _) => {
                at += 1;
                star = Some((at, position));
            }
            (Some(&byte), _) if byte == b'?' || text.get(position) == Some(&byte) => {
                at += 1;
                position += 1;
            }
            (_, Some((after, matched))) => {
                star = Some((after, matched + 1));
                (at, position) = (after, matched + 1);
            }
            _ => return false,
        }
    }
    let rest = pattern.get(at..).unwrap_or_default();
    rest.iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_matches_names_or_with_a_slash_paths_and_all_files_below() {
        for (pattern, path, expected) in [
            ("*.7z", "a/b/old.7z", true),
            ("*.7z", "a/b/old.7z.txt", false),
            ("old", "a/old/x.eml", true),
            ("old", "a/older/x.eml", false),
            ("a/*.zip", "a/b.zip", true),
            ("a/*.zip", "b/a/b.zip", false),
            ("./photos/", "photos/2020/1.jpg", true),
            ("./photos", "photos", true),
            ("./photos", "old/photos/1.jpg", false),
            ("photos/", "old/photos/1.jpg", true),
            ("Fotos", "photos", false),
            ("mail/old", "mail/old/deep/1.eml", true),
            ("x?.eml", "x1.eml", true),
            ("x?.eml", "x.eml", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("", "x", false),
        ] {
            let patterns = IgnorePatterns::new([pattern]);
            assert_eq!(
                patterns.matches(Path::new(path)),
                expected,
                "{pattern} {path}"
            );
        }
        assert!(!IgnorePatterns::default().matches(Path::new("x")));
    }
}
