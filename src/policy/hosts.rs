//! Many host patterns, asked as one: lists of hosts never to ask have a hundred thousand lines, and a mail may name
//! as many hosts.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Host, HostPattern};

/// A set of [`HostPattern`]s. To ask it costs the same, however many there are; copies share it.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct HostPatterns {
    patterns: Arc<HashSet<HostPattern>>,
    longest: usize,
}

impl HostPatterns {
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    #[must_use]
    pub(crate) fn matches(&self, host: &Host) -> bool {
        if self.patterns.contains(&HostPattern::exactly(host)) {
            return true;
        }
        let Host::Name(name) = host else {
            return false;
        };
        let name = name.trim_end_matches('.');
        // A stranger's name may have any number of labels; a name longer than all patterns is none of them.
        let from = name.len().saturating_sub(self.longest + 1);
        let dots = name.bytes().enumerate().skip(from.max(1));
        dots.filter(|(_, byte)| *byte == b'.').any(|(dot, _)| {
            let above = name.get(dot + 1..).unwrap_or_default();
            self.patterns.contains(&HostPattern::beneath(above))
        })
    }
}

impl Extend<HostPattern> for HostPatterns {
    fn extend<P: IntoIterator<Item = HostPattern>>(&mut self, patterns: P) {
        let known = Arc::make_mut(&mut self.patterns);
        for pattern in patterns {
            self.longest = self.longest.max(pattern.name_len());
            known.insert(pattern.settled());
        }
    }
}

impl FromIterator<HostPattern> for HostPatterns {
    fn from_iter<P: IntoIterator<Item = HostPattern>>(patterns: P) -> Self {
        let mut all = Self::default();
        all.extend(patterns);
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::host::reached;

    /// Whether the host falls under one pattern, as plainly as can be.
    fn matches(pattern: &HostPattern, host: &Host) -> bool {
        match (&pattern.host, host) {
            (Host::Address(own), Host::Address(other)) => reached(*own) == reached(*other),
            (Host::Name(own), Host::Name(other)) => {
                let other = other.trim_end_matches('.');
                let front = other.strip_suffix(own.as_str());
                match pattern.is_beneath {
                    false => own == other,
                    true => front
                        .and_then(|front| front.strip_suffix('.'))
                        .is_some_and(|label| !label.is_empty()),
                }
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn a_set_matches_what_one_of_its_patterns_matches(
            patterns in proptest::collection::vec(r"(\*\.)?[ab](\.[ab]){0,3}\.?|127\.0\.0\.[12]|::ffff:127\.0\.0\.1", 0..6),
            hosts in proptest::collection::vec(r"[ab](\.[ab]){0,4}\.{0,2}|127\.0\.0\.[12]|\[::ffff:127\.0\.0\.1\]|\[64:ff9b::7f00:1\]", 1..12),
        ) {
            let patterns: Vec<HostPattern> =
                patterns.iter().map(|pattern| pattern.parse().expect("a pattern")).collect();
            let set = HostPatterns::from_iter(patterns.clone());
            for host in hosts.iter().filter_map(|host| Host::parse(host)) {
                let expected = patterns.iter().any(|pattern| matches(pattern, &host));
                prop_assert_eq!(set.matches(&host), expected, "{}", host);
            }
        }
    }
}
