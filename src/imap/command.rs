//! Commands as they go over the wire: words, strings and literals.

use std::borrow::Cow;

use super::names::to_wire;

/// A command without its tag.
#[derive(Debug)]
pub(crate) struct ImapCommand<'c> {
    /// For people, and for nothing else: it holds no password.
    pub(crate) name: &'static str,
    pub(crate) segments: Vec<Segment<'c>>,
}

/// What goes over the wire as it stands, or as a literal.
pub(crate) enum Segment<'c> {
    Text(String),
    Literal(Cow<'c, [u8]>),
}

impl std::fmt::Debug for Segment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // One of them may be a password.
        f.write_str("Segment(...)")
    }
}

impl<'c> ImapCommand<'c> {
    pub(crate) fn new(name: &'static str, text: &str) -> Self {
        Self {
            name,
            segments: vec![Segment::Text(text.to_owned())],
        }
    }

    /// Words that are IMAP, and hold nobody else's text.
    #[must_use]
    pub(crate) fn text(mut self, text: &str) -> Self {
        match self.segments.last_mut() {
            Some(Segment::Text(last)) => last.push_str(text),
            _ => self.segments.push(Segment::Text(text.to_owned())),
        }
        self
    }

    /// A string: in quotation marks if it can stand there, else a literal.
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

    /// The name of a folder, as LIST gave it.
    #[must_use]
    pub(crate) fn folder(self, name: &str) -> Self {
        let bytes = to_wire(name);
        match bytes.as_slice() == name.as_bytes() {
            true => self.string(name),
            false => self.literal(bytes),
        }
    }

    #[must_use]
    pub(crate) fn literal(mut self, octets: impl Into<Cow<'c, [u8]>>) -> Self {
        self.segments.push(Segment::Literal(octets.into()));
        self
    }
}

/// UIDs in ascending order, as ranges: `1:3,7`.
pub(crate) fn sequence_set(uids: &[u32]) -> String {
    let mut set = String::new();
    let mut rest = uids;
    while let Some(&first) = rest.first() {
        // The last UID that there can be has no next one.
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

/// Batches of UIDs whose sets stay within a line that servers take, with so many messages at most.
pub(crate) fn batches(uids: &[u32], most: usize) -> Vec<&[u32]> {
    /// RFC 2683 §3.2.1.5 has a client keep to 1,000 octets; servers take at least 8,000.
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
    fn sets_are_ranges_and_batches_tile() {
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
