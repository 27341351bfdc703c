//! The mail that is to be proved, in the form in which results are compared with it.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use super::difference::Difference;
use crate::edit::{Edit, Edits};
use crate::engine::external_body::ESSENCE;
use crate::engine::forms::references;
use crate::engine::policy::Policy;
use crate::engine::same::plain;
use crate::mime::{self, PartKind, TransferEncoding};
use crate::span::Span;

/// Start of the boundaries that embody writes. 24 hexadecimal digits follow.
const BOUNDARY: &[u8] = b"=_embody_";
const DIGITS: usize = 24;

/// Maximum difference in length between two spellings of one mail, in bytes.
const MOST_RESPELLED: usize = 16 << 10;

pub(super) struct ProofTarget<'t> {
    pub(super) mail: &'t [u8],
    plain: Vec<u8>,
    /// Whether each part of the mail is new, in its order.
    new: Vec<bool>,
    respelled: OnceLock<Vec<u8>>,
}

impl<'t> ProofTarget<'t> {
    pub(super) fn of(mail: &'t [u8]) -> Self {
        Self {
            mail,
            plain: numbered(plain(mail)),
            new: Vec::new(),
            respelled: OnceLock::new(),
        }
    }

    /// Sets which parts of the mail the old mail does not contain.
    pub(super) fn set_new(&mut self, new: impl Iterator<Item = bool>) {
        self.new = new.collect();
        self.respelled = OnceLock::new();
    }

    /// Returns true if the two mails are identical in their plain form.
    pub(super) fn is_identical(&self, mail: &[u8]) -> bool {
        mail == self.mail || numbered(plain(mail)) == self.plain
    }

    pub(super) fn is(&self, mail: &[u8]) -> bool {
        self.difference(mail).is_none()
    }

    /// Returns true if the mail is the same after [`respelled`].
    fn is_respelled(&self, plain: &[u8]) -> bool {
        // These differences change the length only a little.
        if plain.len().abs_diff(self.plain.len()) > MOST_RESPELLED {
            return false;
        }
        let respell = || respelled(&self.plain, &self.new);
        respelled(plain, &self.new) == *self.respelled.get_or_init(respell)
    }

    /// Returns the first difference from `mail`, or `None` if there is none.
    pub(super) fn difference(&self, mail: &[u8]) -> Option<Difference> {
        if mail == self.mail {
            return None;
        }
        let made = numbered(plain(mail));
        (made != self.plain && !self.is_respelled(&made))
            .then(|| Difference::between(&made, &self.plain))
    }
}

/// Returns a mail without two differences of spelling, which change no content: where the URL of a reference to a detached
/// attachment is folded, and empty lines after the base64 of an inserted part. `mail` has only line feeds.
fn respelled(mail: &[u8], new: &[bool]) -> Vec<u8> {
    let policy = Policy::default();
    let (tree, reading) = (mime::scan(mail, &policy.limits.scan()), policy.reading());
    let mut edits = Vec::new();
    for (at, part) in tree.ids().enumerate() {
        let entity = tree.part(part);
        let is_new = new.get(at).copied().unwrap_or_default();
        let is_base64 = entity.encoding == TransferEncoding::Base64;
        // The encoding of other parts was chosen by the sender, and is kept exactly.
        let is_retrieved = is_new && tree.value(part, "Content-Location").is_some();
        if is_retrieved && is_base64 && entity.content == PartKind::Leaf {
            let body = entity.body.of(mail);
            let last = body.iter().rposition(|byte| *byte != b'\n');
            let end = entity.body.start + last.map_or(0, |last| last + 1);
            if end < entity.body.end {
                edits.push(Edit::remove(Span::new(end, entity.body.end)));
            }
        }
        if entity.essence == ESSENCE
            && references::read(&tree, part, &reading).is_some_and(|it| it.note().is_some())
            && let Some(field) = tree.fields(part).first(mail, "Content-Type")
        {
            let value = field.value.of(mail);
            let mut words = Vec::with_capacity(value.len());
            let mut is_url = false;
            for (at, &byte) in value.iter().enumerate() {
                if byte == b'"' {
                    is_url = !is_url && value.get(..at).is_some_and(|it| it.ends_with(b"URL="));
                }
                if !(is_url && byte.is_ascii_whitespace()) {
                    words.push(byte);
                }
            }
            edits.push(Edit::replace(field.value, words));
        }
    }
    match Edits::of(edits) {
        Ok(edits) => edits.splice(mail).into_bytes().into_owned(),
        Err(_) => mail.to_vec(),
    }
}

/// Replaces the digits of each boundary of embody with its number, in the order in which the boundaries first occur. A run
/// computes a boundary from the content of its multipart, and a later run changes this content and keeps the boundary.
///
/// Only boundary parameters and boundary lines are changed: the same digits in a text are content.
fn numbered(mut mail: Vec<u8>) -> Vec<u8> {
    let found: Vec<usize> = match memchr::memmem::find(&mail, BOUNDARY) {
        None => return mail,
        Some(_) => memchr::memmem::find_iter(&mail, BOUNDARY).collect(),
    };
    let tree = mime::scan(&mail, &Policy::default().limits.scan());
    let boundaries: HashSet<Vec<u8>> = tree
        .boundaries()
        .into_iter()
        .filter_map(|boundary| boundary.strip_prefix(BOUNDARY))
        .map(<[u8]>::to_vec)
        .collect();
    drop(tree);
    let mut numbers: HashMap<Vec<u8>, usize> = HashMap::new();
    for at in found {
        let from = at + BOUNDARY.len();
        let before = mail.get(..at).unwrap_or_default();
        let is_line = before
            .strip_suffix(b"--")
            .is_some_and(|it| it.ends_with(b"\n"));
        let is_parameter = || before.ends_with(b"boundary=\"") || before.ends_with(b"boundary=");
        if !is_line && !is_parameter() {
            continue;
        }
        let Some(digits) = mail.get_mut(from..from + DIGITS) else {
            continue;
        };
        if boundaries.contains(&*digits) {
            let next = numbers.len();
            let number = *numbers.entry(digits.to_vec()).or_insert(next);
            let name = format!("{number:0width$}", width = DIGITS);
            digits.copy_from_slice(name.as_bytes());
        }
    }
    mail
}
