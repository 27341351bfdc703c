//! Counts damaged messages by the kind of damage, and lists the first messages of each kind.

use memchr::memchr;
use serde::Serialize;

use crate::mime::transfer::TransferEncoding;
use crate::mime::{MessageTree, PartId, PartKind};

/// Maximum number of places that are listed for each kind of damage.
const PLACES: usize = 10;

/// Place of a message in a mailbox.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct SourcePlace {
    pub source: String,
    /// Number of the message. `None` if the message is a separate file.
    pub index: Option<u64>,
}

#[derive(Clone, Default, Debug, Serialize)]
pub(crate) struct SourcePlaces {
    pub count: u64,
    pub first: Vec<SourcePlace>,
}

#[derive(Default, Debug, Serialize)]
pub(crate) struct UnreadableMessage {
    /// Messages with a multipart that lacks its last boundary line. The end of the message is probably missing.
    pub unclosed: SourcePlaces,
    /// Messages with a base64 body that ends inside a group of four characters, so that its end is probably missing.
    pub cut: SourcePlaces,
    /// Messages that contain NUL bytes.
    pub nul: SourcePlaces,
    /// Number of files that could not be read completely.
    pub files: u64,
}

impl SourcePlaces {
    fn count(&mut self, place: impl FnOnce() -> SourcePlace) {
        self.count += 1;
        self.first.push(place());
    }

    fn add(&mut self, other: Self) {
        self.count += other.count;
        let room = PLACES.saturating_sub(self.first.len());
        self.first.extend(other.first.into_iter().take(room));
    }
}

impl UnreadableMessage {
    pub(crate) fn of(tree: &MessageTree<'_>, place: impl Fn() -> SourcePlace) -> Self {
        let mut broken = Self::default();
        let is_own = |id: &PartId| {
            // Only the parts of the message itself are checked. A message inside a delivery report or inside another
            // message may have been truncated on purpose.
            let mut above = tree.part(*id).parent;
            while let Some(id) = above {
                if tree.part(id).content == PartKind::Message {
                    return false;
                }
                above = tree.part(id).parent;
            }
            true
        };
        let is_unclosed = |id: PartId| match &tree.part(id).content {
            PartKind::Multipart(it) => it.close.is_none() && it.overflow.is_none(),
            _ => false,
        };
        let is_cut = |id: PartId| {
            let part = tree.part(id);
            part.encoding == TransferEncoding::Base64
                && part.content == PartKind::Leaf
                && ends_within_group(part.body.of(tree.original))
        };
        if tree.ids().any(|id| is_unclosed(id) && is_own(&id)) {
            broken.unclosed.count(&place);
        }
        if tree.ids().any(|id| is_cut(id) && is_own(&id)) {
            broken.cut.count(&place);
        }
        if memchr(0, tree.original).is_some() {
            broken.nul.count(&place);
        }
        broken
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.unclosed.add(other.unclosed);
        self.cut.add(other.cut);
        self.nul.add(other.nul);
        self.files += other.files;
    }

    pub(crate) fn kinds(&self) -> [(&'static str, &'static str, &SourcePlaces); 3] {
        [
            (
                "message lacks its last boundary line, so its end is probably missing",
                "messages lack their last boundary line, so their ends are probably missing",
                &self.unclosed,
            ),
            (
                "message has an attachment that is cut off",
                "messages have attachments that are cut off",
                &self.cut,
            ),
            (
                "message contains NUL bytes, which some mail programs cannot show",
                "messages contain NUL bytes, which some mail programs cannot show",
                &self.nul,
            ),
        ]
    }

    pub(crate) fn places_mut(&mut self) -> impl Iterator<Item = &mut SourcePlace> {
        let kinds = [&mut self.unclosed, &mut self.cut, &mut self.nul];
        kinds.into_iter().flat_map(|it| &mut it.first)
    }
}

/// Returns whether a base64 body ends inside a group of four characters, so that its end is missing. The last line is
/// checked first: almost all encoders write complete groups in each line, so the whole body rarely has to be read. A
/// last line that is not base64 is text that a mailing list appended, and the body counts as complete.
fn ends_within_group(body: &[u8]) -> bool {
    let body = body.trim_ascii_end();
    let last = body
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    let is_symbol = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let count = |bytes: &[u8]| bytes.iter().filter(is_symbol).count();
    let is_plain = !last.is_empty() && count(last) == last.len();
    is_plain && !last.len().is_multiple_of(4) && !count(body).is_multiple_of(4)
}

/// One of the largest messages in the surveyed mailboxes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Large {
    pub octets: u64,
    #[serde(flatten)]
    pub place: SourcePlace,
    pub subject: Option<String>,
    pub sender: Option<String>,
    /// Date of the message, as in `2024-05-14`.
    pub date: Option<String>,
}

pub(super) const LARGEST: usize = 10;

/// Keeps only the largest messages. Among equal sizes, the first messages are kept.
pub(super) fn merge(largest: &mut Vec<Large>, others: Vec<Large>) {
    if others.is_empty() {
        return;
    }
    largest.extend(others);
    largest.sort_by_key(|it| std::cmp::Reverse(it.octets));
    largest.truncate(LARGEST);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mime::{ScanLimits, scan};

    fn of(message: &str) -> [u64; 3] {
        let tree = scan(message.as_bytes(), &ScanLimits::default());
        let place = || SourcePlace {
            source: "box".to_owned(),
            index: Some(1),
        };
        let broken = UnreadableMessage::of(&tree, place);
        [&broken.unclosed, &broken.cut, &broken.nul].map(|it| it.count)
    }

    #[test]
    fn damage_is_found_and_whole_messages_have_none() {
        let mixed = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n";
        let base64 = "Content-Type: image/gif\nContent-Transfer-Encoding: base64\n\n";
        let report = "Content-Type: message/rfc822\n\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\nx\n";
        for (message, expected) in [
            ("Subject: x\n\nhello\n".to_owned(), [0, 0, 0]),
            ("Subject: x\n\nhel\0lo\n".to_owned(), [0, 0, 1]),
            (format!("{mixed}\nx\n--b--\n"), [0, 0, 0]),
            (format!("{mixed}\nx\n"), [1, 0, 0]),
            (format!("{mixed}{report}--b--\n"), [0, 0, 0]),
            (format!("{base64}QUJD\nQUI=\n"), [0, 0, 0]),
            (format!("{base64}QUJD\nQUJ\n"), [0, 1, 0]),
            (format!("{base64}QUJD\n_____\nour list\n"), [0, 0, 0]),
            // Some encoders wrap lines inside a group of four characters. This is not damage.
            (format!("{base64}QUJDQ\nUJD\n"), [0, 0, 0]),
            (format!("{mixed}{base64}QUJDQU"), [1, 1, 0]),
        ] {
            assert_eq!(of(&message), expected, "{message:?}");
        }
    }
}
