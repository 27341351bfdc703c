//! What the files of a cache are about, and in which folders they lie.

use crate::store::Key;

/// What a file is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Area {
    /// What is known of a URL.
    Keys,
    /// What is known of a host.
    Hosts,
    /// Content, under its hash.
    Bodies,
}

impl Area {
    pub(super) const ALL: [Self; 3] = [Self::Keys, Self::Hosts, Self::Bodies];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Hosts => "hosts",
            Self::Bodies => "bodies",
        }
    }

    /// The folders in which a file lies beneath the cache.
    pub(super) fn folders(self, key: &Key) -> Vec<String> {
        let [outer, inner] = key.folders();
        match self {
            Self::Keys | Self::Hosts => vec![self.name().to_owned(), outer],
            Self::Bodies => vec![self.name().to_owned(), outer, inner],
        }
    }
}
