//! Unfinished replacements in a folder that was deleted and created again, or renamed, so that the UIDs in the journal
//! denote no messages. The old message may still have the `\Deleted` that embody set. If it is the only copy, the next
//! EXPUNGE of any mail program would remove it.

use super::copies::FoundMessages;
use super::failure::ImapFailure;
use super::in_place::AccountRun;
use super::journal::{OpenReplacement, ReplaceJournal, Replacement, ReplacementStep};
use super::replace::{DELETED, MessageReplacer, has};
use super::session::FlagChange;

const RECREATED: &str = "the folder was deleted, renamed or created again after the earlier run";

impl<S: Send> AccountRun<'_, S> {
    /// Removes embody's `\Deleted` from the old message, if the folder has the message under another UID. Otherwise the
    /// journal keeps the entry, so that each run names the message. Returns the report.
    pub(super) fn renumbered(
        &mut self,
        journal: &ReplaceJournal,
        open: &OpenReplacement,
    ) -> Result<String, ImapFailure> {
        let entry = &open.replacement;
        let mut why = match &entry.step {
            ReplacementStep::Deleting(_) | ReplacementStep::Removing(_) => {
                let has_folder = !self.selected.folder.is_empty();
                let found = if has_folder && entry.original.is_some() {
                    self.replacing_in(journal)?.unmark_by_content(entry)?
                } else {
                    None
                };
                match found {
                    Some(found) => format!("{RECREATED}; {found}"),
                    None => return Ok(may_be_marked(entry)),
                }
            }
            _ => format!("{RECREATED}; the message may now exist twice"),
        };
        let kept = journal.kept(entry);
        if kept.is_file() {
            why.push_str(&format!("; the message is in {}", kept.display()));
        }
        journal.name(open.id, why.clone())?;
        Ok(why)
    }
}

impl MessageReplacer<'_> {
    /// Finds the old message by its size and SHA-256, and removes `\Deleted` from it. Returns `None` if the message was
    /// not found, or if the server did not remove the flag.
    fn unmark_by_content(&mut self, entry: &Replacement) -> Result<Option<String>, ImapFailure> {
        let Ok(FoundMessages { old, new }) = self.both_by_content(entry)? else {
            return Ok(None);
        };
        if old.is_empty() {
            return Ok(None);
        }
        for uid in &old {
            let flags = [DELETED.to_owned()];
            match self.session.store_flags(*uid, FlagChange::Remove, &flags) {
                Err(ImapFailure::Refused { .. }) => return Ok(None),
                done => done?,
            }
        }
        let (glimpses, looked) = self.session.look(&old, &[])?;
        let is_unmarked = |uid: &u32| {
            let flags = glimpses.get(uid).and_then(|it| it.flags.as_ref());
            flags.is_some_and(|flags| !has(flags, DELETED))
        };
        if looked.is_err() || !old.iter().all(is_unmarked) {
            return Ok(None);
        }
        let old_uids = numbers(&old);
        let about_new = match new.as_slice() {
            [] => "the new message is not in the folder; if another folder contains the new message, the message exists twice".to_owned(),
            uids => format!("the new message has the UID {}; compare the messages, and delete all but one", numbers(uids)),
        };
        Ok(Some(format!(
            "the original now has the UID {old_uids}, and is not marked as deleted any more; {about_new}"
        )))
    }
}

/// Returns the report about an original that was not found.
fn may_be_marked(entry: &Replacement) -> String {
    let (date, _) = &entry.date;
    format!(
        "the original may still be marked as \\Deleted by embody, because the folder was created again or renamed: look for the message of {} ({} bytes) in all folders, and remove the mark; embody repeats this until you delete the journal (docs/imap.md)",
        date.trim(),
        entry.original_size
    )
}

fn numbers(uids: &[u32]) -> String {
    let texts: Vec<String> = uids.iter().map(u32::to_string).collect();
    texts.join(", ")
}
