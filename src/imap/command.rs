//! Builds IMAP commands from words, strings and literals.

use std::borrow::Cow;

use super::names::to_wire;

/// A command without its tag.
#[derive(Debug)]
pub(crate) struct ImapCommand<'c> {
    /// Name of the command, for error messages. It never contains a password.
    pub(crate) name: &'static str,
    pub(crate) segments: Vec<CommandSegment<'c>>,
}

/// Part of a command: text that is sent unchanged, or a literal.
pub(crate) enum CommandSegment<'c> {
    Text(String),
    Literal(Cow<'c, [u8]>),
}

impl std::fmt::Debug for CommandSegment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The contents are not printed, because a segment may contain a password.
        f.write_str("Segment(...)")
    }
}

impl<'c> ImapCommand<'c> {
    pub(crate) fn new(name: &'static str, text: &str) -> Self {
        Self {
            name,
            segments: vec![CommandSegment::Text(text.to_owned())],
        }
    }

    /// Appends words of the IMAP syntax. They must not contain untrusted text, because they are sent without quoting.
    #[must_use]
    pub(crate) fn text(mut self, text: &str) -> Self {
        match self.segments.last_mut() {
            Some(CommandSegment::Text(last)) => last.push_str(text),
            _ => self.segments.push(CommandSegment::Text(text.to_owned())),
        }
        self
    }

    /// Appends a string: in quotation marks if IMAP allows that for this text, otherwise as a literal.
    #[must_use]
    pub(crate) fn string(self, text: &str) -> Self {
        let is_plain = text
            .bytes()
            .all(|octet| matches!(octet, b' '..=b'~') && !b"\"\\".contains(&octet));
        if is_plain && text.len() <= 1000 {
            return self.text(&format!("\"{text}\""));
        }
        self.literal(text.as_bytes().to_vec())
    }

    /// Appends the name of a folder, in the form that LIST returned.
    #[must_use]
    pub(crate) fn folder(self, name: &str) -> Self {
        let bytes = to_wire(name);
        if bytes.as_slice() == name.as_bytes() {
            self.string(name)
        } else {
            self.literal(bytes)
        }
    }

    #[must_use]
    pub(crate) fn literal(mut self, octets: impl Into<Cow<'c, [u8]>>) -> Self {
        self.segments.push(CommandSegment::Literal(octets.into()));
        self
    }
}

/// Formats UIDs in ascending order as ranges: `1:3,7`.
pub(crate) fn sequence_set(uids: &[u32]) -> String {
    let mut set = String::new();
    let mut rest = uids;
    while let Some(&first) = rest.first() {
        // `u64`, because adding 1 to the largest UID overflows `u32`.
        let run = (u64::from(first)..)
            .zip(rest)
            .take_while(|(wanted, uid)| *wanted == u64::from(**uid))
            .count();
        let (run, behind) = rest.split_at(run.max(1));
        if !set.is_empty() {
            set.push(',');
        }
        set.push_str(&first.to_string());
        if let [_, .., last] = run {
            set.push(':');
            set.push_str(&last.to_string());
        }
        rest = behind;
    }
    set
}

/// Splits UIDs into batches of at most `most` messages. The ranges of one batch are short enough for the line length that
/// servers accept.
pub(crate) fn batches(uids: &[u32], most: usize) -> Vec<&[u32]> {
    /// Maximum number of ranges in one command. RFC 2683 §3.2.1.5 recommends lines of at most 1000 bytes, but servers accept at
    /// least 8000, and longer lines need fewer commands.
    const RANGES: usize = 300;
    let mut found = Vec::new();
    let mut rest = uids;
    while !rest.is_empty() {
        let mut ranges = 1;
        let end = rest
            .windows(2)
            .position(|pair| {
                ranges += usize::from(pair[0].checked_add(1) != Some(pair[1]));
                ranges > RANGES
            })
            .map_or(rest.len(), |at| at + 1);
        let (batch, behind) = rest.split_at(end.min(most.max(1)));
        found.push(batch);
        rest = behind;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uid_sets_are_written_as_ranges_and_batches_cover_each_uid_once() {
        for (uids, set) in [
            (vec![], ""),
            (vec![7], "7"),
            (vec![1, 2, 3, 7, 9, 10], "1:3,7,9:10"),
            (vec![u32::MAX - 1, u32::MAX], "4294967294:4294967295"),
        ] {
            assert_eq!(sequence_set(&uids), set);
        }
        let sparse: Vec<u32> = (1..=5000).map(|number| number * 2).collect();
        let dense: Vec<u32> = (1..=5000).collect();
        for (uids, most) in [(&sparse, 1000), (&dense, 1000), (&dense, usize::MAX)] {
            let batches = batches(uids, most);
            assert_eq!(&batches.concat(), uids);
            assert!(batches.iter().all(|batch| sequence_set(batch).len() < 4000));
        }
        assert_eq!(batches(&dense, usize::MAX).len(), 1);
    }
}
