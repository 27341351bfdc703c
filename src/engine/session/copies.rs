//! Looks for copies of parts that are missing in the mail (`--copies`).
//!
//! This module decides which references may be filled from a copy of the mail, and handles the content. The driver searches the
//! mailboxes. A file next to the mailbox has priority over a copy, and a copy has priority over a retrieval. If there is no
//! copy, the reference is processed as without `--copies`.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Session;
use crate::engine::external_body::{Claim, ExternalBody, ReferenceShape};
use crate::engine::plan::{PlanItem, PlanStep};
use crate::engine::report::{Detail, Reason, Refusal, Retry};
use crate::engine::{Content, MissingPart, Need, Neighbour};
use crate::mime::{MessageTree, PartId};

impl Session<'_> {
    /// Plans the search for copies: marks each planned reference whose content may be taken from another copy of the
    /// mail. `is_mail` is true if `tree` is the mail itself, before any reference was replaced. Only then can its
    /// structure be compared with that of a copy.
    pub(in crate::engine) fn plan_copies(
        &mut self,
        tree: &MessageTree<'_>,
        items: &mut [PlanItem<'_>],
        is_mail: bool,
    ) {
        if self.policy().copies.is_empty() {
            return;
        }
        let mut notes: HashMap<PartId, usize> = HashMap::new();
        // The mail is looked up once, because a look-up compares all of its bytes.
        let mut whole = None;
        for item in items {
            let note = notes.entry(item.body.part).or_default();
            let number = *note;
            if item.body.text_note.is_some() {
                *note += 1;
            }
            if !may_be_copied(item) {
                continue;
            }
            let part = |mail| MissingPart {
                mail,
                part: item.number.clone(),
                note: number,
                sha256: item.body.note().map(|note| note.sha256.clone()),
                md5: item.body.content_md5.and_then(md5_of),
                size: item.body.size,
            };
            let has_digest = item.body.claim != Claim::None || item.body.content_md5.is_some();
            let is_of_mail = is_mail && may_be_of_mail(&item.body);
            if is_of_mail || has_digest {
                let mail = is_of_mail.then(|| {
                    let mail = whole.get_or_insert_with(|| self.answers.mail(tree.original));
                    mail.clone()
                });
                item.copy = Some(Need::Copy(part(mail)));
            }
        }
    }

    /// Looks up copies of the missing parts of these items. If a result is not known yet, the round stops, the driver
    /// searches the copies, and the next round finds the result.
    pub(in crate::engine) fn find_copies(&mut self, items: &[&PlanItem<'_>]) {
        let mut batch = Vec::new();
        for item in items {
            if let Some(need) = &item.copy
                && !self.retrieved.contains_key(need)
                && !self.has_file(item)
            {
                batch.push(need.clone());
                self.retrieved.insert(need.clone(), Ok(None));
            }
        }
        self.look_up(batch);
    }

    /// Returns true if a copy contains the missing part to which the item refers.
    pub(in crate::engine) fn has_copy(&self, item: &PlanItem<'_>) -> bool {
        matches!(self.copy_of(item), Some(Ok(_)))
    }

    /// Returns the content of a copy, or the refusal if no copy can be used. Returns `None` if no copy was looked for, or if
    /// there is no answer.
    pub(in crate::engine) fn copy_of(
        &self,
        item: &PlanItem<'_>,
    ) -> Option<Result<Content, Refusal>> {
        match self.retrieved.get(item.copy.as_ref()?)? {
            Ok(content) => content.clone().map(Ok),
            Err(refusal) => Some(Err(refusal.clone())),
        }
    }

    /// Returns true if a file next to the mailbox contains the content.
    fn has_file(&self, item: &PlanItem<'_>) -> bool {
        let PlanStep::Read { folder, name } = &item.step else {
            return false;
        };
        let file = Need::Neighbour(Neighbour::OfMessage {
            folder: folder.clone(),
            name: name.clone(),
        });
        matches!(self.answers.get(&file), Some(Ok(Some(_))))
    }

    /// Remembers for each reference why no copy was used, because the report of a later pass needs the reason. A later
    /// pass cannot repeat the search: it reads the changed mail, in which parts have other numbers.
    pub(in crate::engine) fn remember_copies(
        &mut self,
        tree: &MessageTree<'_>,
        items: &[PlanItem<'_>],
        is_mail: bool,
    ) {
        if !is_mail {
            return;
        }
        for item in items {
            if let Some(Err(refusal)) = self.copy_of(item) {
                let note = hash_of_note(tree, &item.body);
                self.not_copied.entry(note).or_insert(refusal);
            }
        }
    }

    /// Combines both reasons why a reference has no content: the failed retrieval, and the lack of a usable copy.
    pub(in crate::engine) fn refused_twice(
        &self,
        tree: &MessageTree<'_>,
        item: &PlanItem<'_>,
        refusal: Refusal,
    ) -> Refusal {
        let found = self.copy_of(item);
        let known = || {
            let policy = self.policy();
            (!policy.copies.is_empty() && item.copy.is_none())
                .then(|| self.not_copied.get(&hash_of_note(tree, &item.body)))?
        };
        match (found, known()) {
            (Some(Err(of_copies)), _) => both(item, refusal, of_copies),
            (None, Some(of_copies)) => both(item, refusal, of_copies.clone()),
            _ => refusal,
        }
    }
}

/// Whether a copy may supply the content: nothing but the missing content keeps the reference from being replaced.
fn may_be_copied(item: &PlanItem<'_>) -> bool {
    // A mailing list digest is one mail with the texts of many mails. A note in a digest stands for an attachment of one
    // of those mails. Another copy of the digest does not contain the attachment either, so copies are not searched.
    let note = item.body.text_note.as_ref();
    let is_in_digest = note.is_some_and(|note| note.is_in_digest);
    item.body.facts.may_be_in_copies
        && !is_in_digest
        && match &item.step {
            PlanStep::Retrieve(_) | PlanStep::Read { .. } => true,
            PlanStep::Leave(refusal) => lacks_only_content(&item.body, refusal.reason),
            PlanStep::Decode | PlanStep::Copy(_) => false,
        }
}

fn lacks_only_content(body: &ExternalBody<'_>, reason: Reason) -> bool {
    match reason {
        Reason::SchemeNotAllowed
        | Reason::HostNotAllowed
        | Reason::PrivateAddress
        | Reason::PortNotAllowed
        | Reason::UserinfoNotAllowed
        | Reason::OutsideFileRoot
        | Reason::UnsupportedScheme
        | Reason::BadUrl
        | Reason::NoBase
        | Reason::MissingUrl
        | Reason::MissingParameter
        | Reason::Deleted => true,
        // For a message/external-body, the access type is merely unusable, so a copy may replace the part. In other
        // forms, the part has content of its own, which a copy would remove.
        Reason::UnsupportedAccessType | Reason::UnknownAccessType | Reason::NoAccessType => {
            body.facts.shape == ReferenceShape::ExternalBody
        }
        _ => false,
    }
}

/// Whether a copy of the same mail is trusted for this content although the reference contains no digest.
fn may_be_of_mail(body: &ExternalBody<'_>) -> bool {
    match body.facts.shape {
        ReferenceShape::ExternalBody => {
            body.size.is_some() || body.access_type.eq_ignore_ascii_case("x-mutt-deleted")
        }
        _ => true,
    }
}

fn md5_of(value: &[u8]) -> Option<[u8; 16]> {
    let mut value = value.to_vec();
    value.retain(|byte| !byte.is_ascii_whitespace());
    STANDARD.decode(value).ok()?.try_into().ok()
}

/// Returns a hash of a note (the text in place of a missing part) that is the same in every pass, unlike the part
/// number. For a note in a text, it is the hash of the stored file's name. Otherwise the whole part is the note, and
/// its bytes are hashed.
fn hash_of_note(tree: &MessageTree<'_>, body: &ExternalBody<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match &body.text_note {
        Some(note) => note.stored_name.hash(&mut hasher),
        None => tree
            .part(body.part)
            .span
            .of(tree.original)
            .trim_ascii()
            .hash(&mut hasher),
    }
    hasher.finish()
}

/// Combines the refusal of a reference with the refusal of its copies. The reason is the more specific one of the two, and the
/// detail contains both sentences.
fn both(item: &PlanItem<'_>, refusal: Refusal, of_copies: Refusal) -> Refusal {
    let is_final = matches!(item.step, PlanStep::Leave(_)) && refusal.reason.remedy().is_none();
    let reason = match of_copies.reason {
        Reason::CopiesDiffer => Reason::CopiesDiffer,
        reason if is_final => reason,
        _ => refusal.reason,
    };
    let detail: Detail = if refusal.detail.is_empty() {
        of_copies.detail
    } else {
        refusal.detail.then("; ").then(of_copies.detail)
    };
    let retry = if [refusal.retry, of_copies.retry].contains(&Retry::Later) {
        Retry::Later
    } else {
        Retry::Never
    };
    Refusal {
        reason,
        detail,
        retry,
        ..refusal
    }
}
