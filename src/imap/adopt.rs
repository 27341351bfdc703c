//! Finishes replacements that an earlier run began under another name of the same account.
//!
//! A journal is named after the user and the host as they were typed, but `mail.example.org` and `imap.example.org` can
//! be the same server. So each unfinished replacement in the other journals of the directory is checked against this
//! account. It is adopted only if the server has both the old and the new message, with the UIDVALIDITY, the UIDs and
//! the SHA-256 that the journal lists. All other replacements stay in their journals.

use super::failure::ImapFailure;
use super::in_place::{AccountRun, SETTLING};
use super::journal::{OpenReplacement, ReplaceJournal};
use super::replace::ReplaceResult;
use super::session::SelectResponse;

impl<S: Send> AccountRun<'_, S> {
    /// Finishes or undoes the unfinished replacements of this account in other journals.
    pub(super) fn adopt_others(&mut self) -> Result<(), ImapFailure> {
        let others = self.journal.map(ReplaceJournal::others).unwrap_or_default();
        if !others.is_empty() {
            self.connecting.rest(SETTLING)?;
        }
        // The lock of each journal is released before the work in the folders begins, because the journal may belong to
        // another account.
        for journal in others {
            for open in journal.open_ones() {
                self.adopt(&journal, &open)?;
            }
            journal.close()?;
        }
        self.selected = SelectResponse::default();
        Ok(())
    }

    fn adopt(
        &mut self,
        journal: &ReplaceJournal,
        open: &OpenReplacement,
    ) -> Result<(), ImapFailure> {
        let folder = open.replacement.folder.clone();
        let mut is_of_account = false;
        let mut fate = None;
        let done = self.again(|run| {
            // Reads the journal again, because an attempt before the connection broke may have recorded a later step
            // than `open`.
            let Some(open) = journal.open_ones().into_iter().find(|it| it.id == open.id) else {
                return Ok(());
            };
            journal.set_server(run.session()?.server_name());
            run.select_to_resume(&folder)?;
            if open.doubt.is_some() || open.replacement.uidvalidity != run.selected.uidvalidity {
                return Ok(());
            }
            let mut replacing = run.replacing_in(journal)?;
            if !is_of_account && !replacing.has_both(&open)? {
                return Ok(());
            }
            is_of_account = true;
            fate = replacing.resume(open)?;
            Ok(())
        });
        let (url, uid) = (self.url_of(&folder), open.replacement.uid);
        if let Some(fate) = &fate {
            self.summary.damaged += u64::from(ReplaceResult::may_be_doubled(fate));
            self.job.observer.resumed(&url, uid, fate);
        }
        // The replacement is still unfinished, so this run must not replace the message again.
        let uidvalidity = open.replacement.uidvalidity;
        if fate.is_some() && journal.is_open(&folder, uidvalidity, uid) {
            self.avoided.push((folder.clone(), uidvalidity, uid));
        }
        match done {
            Err(ImapFailure::Unknown(why) | ImapFailure::Refused { text: why, .. }) => {
                if is_of_account {
                    self.summary.damaged += 1;
                    self.job.observer.unsettled(&url, &why);
                    self.avoided.push((folder, uidvalidity, uid));
                }
                Ok(())
            }
            done => done,
        }
    }
}
