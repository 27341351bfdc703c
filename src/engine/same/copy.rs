//! A description of a mail in a few hundred bytes, with which copies are compared.
//!
//! Copies of one mail may have no bytes in common: each took a different route ([`transport`](super::transport)), and parts may
//! have been detached, replaced by a note, deleted or truncated. A [`MailCopy`] therefore describes the content: the fields
//! that the author wrote, and digests of the [items](super::item) of the body.

use std::collections::HashMap;

use super::body::MailBody;
use super::fields::Digests;
use super::item::{CutPlace, Item, Spot};
use super::list::Lists;
use super::note::Notes;
use super::plain::Digest;
use super::plain_text::Footers;
use super::spelling::{Mailbox, entries, one_mailbox, text, with_addresses_shown};
use super::transport::{Role, date_text, is_kept_by_pipermail, role};
use crate::engine::forms::references;
use crate::engine::policy::{Followed, Policy, ReferenceParse};
use crate::mime::{Header, MessageTree, PartId, scan};

/// Maximum length of a header in bytes. A longer header is not parsed but compared byte by byte. The Received fields of two
/// copies differ, so such copies are never equal, and all copies are kept.
const LONGEST_HEADER: usize = 1 << 20;

/// A description of one copy of a mail, for the comparison with other copies.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct MailCopy {
    pub(super) header: CopyHeader,
    pub(super) items: Vec<Item>,
    /// Whether Mailman has turned the mail into a single text, so that its structure is lost.
    pub(super) is_scrubbed: bool,
    /// Whether the end of the mail is missing: a multipart is not closed, or the base64 of the last part ends within a group of
    /// four.
    pub(super) is_cut: bool,
    pub(super) footers: Footers,
}

#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct CopyHeader {
    /// Digest of all From fields. `date` and `subject` below are the digests of the fields with these names.
    pub(super) from: Digest,
    /// Digest of the name and address in From, if it contains exactly one mailbox.
    pub(super) mailbox: Option<Digest>,
    pub(super) date: Digest,
    pub(super) subject: Digest,
    /// Digest of the subject without the tags of mailing lists, such as `[dev]`.
    pub(super) untagged: Digest,
    /// Digests of the entries in Cc.
    pub(super) copied_to: Digests,
    /// Digests of all other fields that the author wrote.
    pub(super) others: Digests,
    /// Digests of the identifiers in In-Reply-To and References.
    pub(super) references: Digests,
    /// Whether there is a Reply-To field that was not added by a mailing list. A copy from the monthly text of
    /// Pipermail, which keeps no Reply-To, does not equal such a mail.
    pub(super) has_reply_to: bool,
    /// Whether the copy comes from the monthly text of Pipermail: it has only the fields that Pipermail keeps, and a hidden
    /// address (`ann at example.org`).
    pub(super) is_reduced: bool,
}

impl MailCopy {
    /// Describes a mail in its [plain form](super::plain::plain). `places` are the positions at which truncated copies of the
    /// mail end ([`cut_at`](Self::cut_at)). Digests of the content up to these positions are computed now, because the content
    /// is not available later.
    pub(crate) fn of(plain: &[u8], places: &[CutPlace]) -> Self {
        let policy = Policy {
            follow: Followed::all(),
            ..Policy::default()
        };
        let tree = &scan(plain, &policy.limits.scan());
        let reading = references::with_parts_in_files(policy.reading());
        Self::described(tree, (&reading, Notes::Known), places).0
    }

    /// Returns the description of a mail, and the part that each of its items describes.
    pub(super) fn described(
        tree: &MessageTree<'_>,
        notes: (&ReferenceParse, Notes),
        places: &[CutPlace],
    ) -> (Self, Vec<Spot>) {
        let lists = Lists::of(tree.original, tree.fields(PartId::ROOT));
        let body = MailBody::of(tree, notes, &lists, places);
        let copy = Self {
            header: CopyHeader::of(tree, &lists),
            items: body.items,
            is_scrubbed: body.is_scrubbed,
            is_cut: body.is_cut,
            footers: body.footers,
        };
        (copy, body.spots)
    }

    /// Returns the position at which this copy is truncated. Returns `None` if the copy is complete, or does not end inside a
    /// part.
    pub(crate) fn cut_at(&self) -> Option<CutPlace> {
        match self.items.last()? {
            Item::Content(leaf) => {
                let length = leaf.cut_at?;
                Some(CutPlace {
                    item: self.items.len() - 1,
                    length,
                })
            }
            _ => None,
        }
    }

    /// Returns whether the end of the mail is missing.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the number of missing parts: parts in whose place a program left a note.
    pub(crate) fn missing(&self) -> usize {
        let is_missing = |item: &&Item| matches!(item, Item::Missing(_));
        self.items.iter().filter(is_missing).count()
    }

    /// Returns a key that sorts copies with the same content. The smallest key is the best copy: one that is not truncated, and
    /// then one with few footers of mailing lists. The sender cannot choose these values, so a forged copy cannot come first.
    pub(crate) fn rank(&self) -> impl Ord + use<> {
        (self.is_cut, self.footers.count())
    }
}

/// Returns a key that a mail shares with everything that embody makes of it: the digest of the Message-ID, or of From, To,
/// Date and Subject if there is no Message-ID.
pub(crate) fn change_key(plain: &[u8]) -> Digest {
    let header = Header::of_message(plain, LONGEST_HEADER);
    let field = |name| header.fields.value(plain, name);
    let id = field("Message-ID").map(identifier);
    if let Some(id) = id.filter(|id| !id.is_empty()) {
        return Digest::of(&[b"id ", id.as_slice()].concat());
    }
    let fields = ["From", "To", "Date", "Subject"].map(|name| field(name).unwrap_or_default());
    Digest::of(&fields.join(&b'\n'))
}

/// Returns a key that is equal for all copies of a mail: the digest of the Message-ID. A mail without a Message-ID has the
/// digest of From, Date, Subject and the first text instead.
pub(crate) fn copy_key(plain: &[u8]) -> Digest {
    copy_key_with(&Header::of_message(plain, LONGEST_HEADER), plain)
}

/// Does the same as [`copy_key`] for a message whose header was already parsed.
pub(crate) fn copy_key_with(header: &Header, plain: &[u8]) -> Digest {
    let id = header.fields.value(plain, "Message-ID").map(identifier);
    if let Some(id) = id.filter(|id| !id.is_empty()) {
        return Digest::of(&[b"id ", id.as_slice()].concat());
    }
    let copy = MailCopy::of(plain, &[]);
    let mut words = b"no id ".to_vec();
    let CopyHeader {
        from,
        date,
        untagged,
        ..
    } = copy.header;
    for digest in [from, date, untagged] {
        // A collision only has the consequence that the mails are compared.
        words.extend(digest.half().to_be_bytes());
    }
    let text = copy.items.iter().find_map(|item| match item {
        Item::Content(leaf) => leaf.text,
        _ => None,
    });
    words.extend(format!("{text:?}").bytes());
    Digest::of(&words)
}

/// Returns an identifier without `<>` and white space. `a at b.example`, as archives of lists write it, becomes `a@b.example`.
fn identifier(value: &[u8]) -> Vec<u8> {
    let value = crate::mime::header::unfold(value);
    let shown = with_addresses_shown(value.trim_ascii());
    let is_kept = |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b'<' | b'>');
    shown.iter().copied().filter(is_kept).collect()
}

/// The values of all fields with one name. All of them count, so a mail that repeats a field differs from a mail that does not.
#[derive(Default)]
struct FieldValues(Vec<u8>);

impl FieldValues {
    fn add(&mut self, text: &[u8]) {
        self.0.extend((text.len() as u64).to_be_bytes());
        self.0.extend_from_slice(text);
    }

    fn digest(&self) -> Digest {
        Digest::of(&self.0)
    }
}

/// Returns the normalized entries of an address field.
fn addresses(value: &[u8]) -> Vec<u8> {
    let written: Vec<Vec<u8>> = entries(value).iter().map(|entry| entry.bytes()).collect();
    written.join(&b"\x01,"[..])
}

impl CopyHeader {
    fn of(tree: &MessageTree<'_>, lists: &Lists) -> Self {
        let original = tree.original;
        let [mut from, mut date, mut subject, mut untagged] =
            [(); 4].map(|()| FieldValues::default());
        let (mut copied_to, mut others, mut references) = (Vec::new(), Vec::new(), Vec::new());
        let (mut ids, mut is_reduced, mut has_reply_to) = (0, true, false);
        let mut sender = None;
        let mut counts: HashMap<Vec<u8>, u64> = HashMap::new();
        for field in tree.fields(PartId::ROOT).iter(original) {
            let lower = field.name.of(original).trim_ascii().to_ascii_lowercase();
            let name = lower.as_slice();
            let value = field.value.of(original);
            let role = role(name);
            is_reduced &= is_kept_by_pipermail(name);
            if role != Role::Author && name != b"message-id" {
                continue;
            }
            // A mailing list may have added the field (Reply-To or Sender): this tests whether its only entry is an address of
            // the list.
            let is_of_list = |is_its: &dyn Fn(&Mailbox) -> bool| match entries(value).as_slice() {
                [entry] => entry.mailbox().is_some_and(|mailbox| is_its(&mailbox)),
                _ => false,
            };
            // The order of fields with the same name matters. So each digest includes the position of the field among the
            // fields with its name.
            let number = counts.entry(name.to_vec()).or_insert(0_u64);
            *number += 1;
            let start = [name, b":", &number.to_be_bytes()].concat();
            let digest = |text: &[u8]| Digest::of(&[start.as_slice(), text].concat());
            match name {
                b"from" => {
                    from.add(&addresses(value));
                    sender = match sender {
                        None => Some(one_mailbox(value)),
                        Some(_) => Some(None),
                    };
                }
                b"date" => date.add(&date_text(value)),
                b"subject" => {
                    subject.add(&text(value));
                    untagged.add(&lists.untagged(value));
                }
                b"cc" => {
                    copied_to.extend(
                        entries(value)
                            .iter()
                            .map(|entry| Digest::of(&entry.bytes())),
                    );
                }
                b"message-id" => {
                    // Copies with different first Message-IDs are never compared (`copy_key`), so only further Message-IDs are
                    // compared here.
                    ids += 1;
                    if ids > 1 {
                        others.push(digest(&identifier(value)));
                    }
                }
                b"reply-to" if is_of_list(&|mailbox| lists.have_reply_to(mailbox)) => {}
                b"sender" if is_of_list(&|mailbox| lists.have_sender(mailbox)) => {}
                b"to" | b"bcc" | b"reply-to" | b"sender" => {
                    has_reply_to |= name == b"reply-to";
                    others.push(digest(&addresses(value)));
                }
                _ => {
                    if matches!(name, b"in-reply-to" | b"references") {
                        let words = value.split(|byte| byte.is_ascii_whitespace() || *byte == b'>');
                        let ids = words.map(identifier).filter(|id| id.contains(&b'@'));
                        references.extend(ids.map(|id| Digest::of(&id)));
                    }
                    others.push(digest(&text(value)));
                }
            }
        }
        // Programs interpret malformed lines and bare CRs in a header differently. Such a header is compared byte by byte.
        let header = tree.root().header.of(original);
        if tree.root().has_stray_lines() || header.contains(&b'\r') {
            others.push(Digest::of(header));
        }
        let mailbox_of_sender = sender.flatten();
        let is_hidden = mailbox_of_sender
            .as_ref()
            .is_some_and(|(_, is_hidden)| *is_hidden);
        let mailbox = mailbox_of_sender.map(|(mailbox, _)| {
            let parts = [mailbox.name, mailbox.local, mailbox.host];
            Digest::of(&parts.join(&0))
        });
        Self {
            from: from.digest(),
            mailbox,
            date: date.digest(),
            subject: subject.digest(),
            untagged: untagged.digest(),
            copied_to: copied_to.into_iter().collect(),
            others: others.into_iter().collect(),
            references: references.into_iter().collect(),
            has_reply_to,
            is_reduced: is_reduced && is_hidden,
        }
    }
}
