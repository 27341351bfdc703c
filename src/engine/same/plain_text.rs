//! The text of a part in the form in which it is compared: with line feeds, and without the footers of mailing lists.

use super::fields::Digests;
use super::list::Lists;
use super::plain::Digest;

/// Maximum number of footers in a text: a mail may pass through several lists.
const MOST_FOOTERS: usize = 4;

/// The text of a part in the form in which it is compared.
pub(super) struct PlainText {
    /// The text with line feeds, without white space at its end.
    pub(super) whole: Vec<u8>,
    /// Length of the text without the footers of lists, in bytes. The footers are at the end of `whole`.
    pub(super) length: usize,
    pub(super) footers: Footers,
}

/// Digests of the footers in a copy.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Footers {
    /// Digests of footers whose links all lead to the host of the list.
    pub(super) proved: Vec<Digest>,
    /// Digests of footers with links to other hosts. The List fields of the copy contain these links, but the sender may have
    /// forged both.
    pub(super) claimed: Vec<Digest>,
}

impl Footers {
    pub(super) fn count(&self) -> usize {
        self.proved.len() + self.claimed.len()
    }

    pub(super) fn extend(&mut self, others: &Self) {
        self.proved.extend(&others.proved);
        self.claimed.extend(&others.claimed);
    }

    /// Returns whether two mails with these footers can be copies of one mail. If their footers link to different hosts that
    /// are not the host of the list, one footer may be forged, and it is unknown which one.
    pub(super) fn agree_with(&self, others: &Self) -> bool {
        let set = |digests: &[Digest]| digests.iter().copied().collect::<Digests>();
        self.count() == 0 || others.count() == 0 || set(&self.claimed) == set(&others.claimed)
    }
}

/// Converts the line endings of a text to line feeds. The plain form of a mail has only line feeds, but an encoded part in it
/// can contain others.
fn with_line_feeds(content: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(content.len());
    for line in content.split(|byte| *byte == b'\n') {
        text.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
        text.push(b'\n');
    }
    text
}

impl PlainText {
    /// Returns the text of an HTML page or an attached file. Only its line endings are normalized.
    pub(super) fn of_file(content: &[u8]) -> Self {
        let mut whole = with_line_feeds(content);
        let end = whole.iter().rposition(|byte| *byte != b'\n');
        whole.truncate(end.map_or(0, |end| end + 1));
        Self {
            length: whole.len(),
            whole,
            footers: Footers::default(),
        }
    }

    pub(super) fn of(content: &[u8], lists: &Lists) -> Self {
        let mut whole = with_line_feeds(content);
        whole.truncate(whole.trim_ascii_end().len());
        let mut length = whole.len();
        let mut footers = Footers::default();
        while footers.count() < MOST_FOOTERS
            && let Some(text) = whole.get(..length)
            && let Some((start, is_proved)) = lists.footer(text)
        {
            let (own, footer) = text.split_at(start);
            let digest = Digest::of(footer);
            if is_proved {
                footers.proved.push(digest)
            } else {
                footers.claimed.push(digest)
            }
            length = own.trim_ascii_end().len();
        }
        Self {
            whole,
            length,
            footers,
        }
    }

    /// Returns the text without the footers of mailing lists.
    pub(super) fn own(&self) -> &[u8] {
        &self.whole[..self.length]
    }
}
