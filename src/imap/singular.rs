//! What few servers have: Gmail's labels, and REPLACE (RFC 8508).

use super::failure::ImapFailure;
use super::journal::Replacement;
use super::replace::{Fate, Replacing, without};
use super::session::{FlagChange, GmailMetadata};
use crate::report::Reason;

impl Replacing<'_> {
    /// Gmail keeps one message of equal ones, and may give back one that is there.
    pub(super) fn is_new_at_gmail(
        &mut self,
        replacement: &Replacement,
        uid: u32,
    ) -> Result<bool, ImapFailure> {
        let both = self.session.fetch_gmail(&[replacement.uid, uid])?;
        let id = |uid| both.iter().find(|it| it.uid == uid).map(|it| it.message_id);
        Ok(match (id(replacement.uid), id(uid)) {
            (Some(old), Some(new)) => old != new,
            // Without the old one there is nothing that could be it.
            (None, Some(_)) => true,
            (_, None) => false,
        })
    }

    /// Whether the copy has all labels of the old message now.
    pub(super) fn carry_labels(&mut self, old: u32, copy: u32) -> Result<bool, ImapFailure> {
        let labels = |found: &[GmailMetadata], uid| {
            let found = found.iter().find(|it| it.uid == uid);
            found.map(|it| it.labels.clone()).unwrap_or_default()
        };
        let found = self.session.fetch_gmail(&[old, copy])?;
        let wanted = labels(&found, old);
        let missing = without(&wanted, &labels(&found, copy));
        if missing.is_empty() {
            return Ok(true);
        }
        self.session
            .store_gmail_labels(copy, FlagChange::Add, &missing)?;
        let found = self.session.fetch_gmail(&[copy])?;
        Ok(without(&wanted, &labels(&found, copy)).is_empty())
    }

    /// REPLACE (RFC 8508), where there is no room for both: the old message goes before anything can be compared. If the new
    /// one is not what it should be, the old octets are appended again.
    pub(super) fn by_replace(
        &mut self,
        replacement: Replacement,
        original: &[u8],
        new: &[u8],
    ) -> Result<Fate, ImapFailure> {
        let Some(old) = self.metadata(replacement.uid)? else {
            return Fate::left(
                Reason::ChangedMeanwhile,
                "another program moved or deleted it",
            );
        };
        let date = replacement.internal_date();
        let folder = self.selected.folder.clone();
        let id = self.journal.begin(replacement.clone())?;
        let replaced = self
            .session
            .replace(replacement.uid, &folder, &old.flags, &date, new);
        let uid = match replaced {
            Err(ImapFailure::Refused { text, .. }) => {
                self.journal.end(id)?;
                return Fate::left(Reason::QuotaFull, text);
            }
            Ok(Some((uidvalidity, uid))) if uidvalidity == replacement.uidvalidity => uid,
            Ok(_) => {
                self.journal.end(id)?;
                let detail = "the server does not say which message is the new one";
                return Fate::left(Reason::AmbiguousCopy, detail);
            }
            Err(failure) => return Err(failure),
        };
        self.session.noop()?;
        if self.holds(&replacement, uid)? == Some(true) {
            self.journal.end(id)?;
            return Ok(Fate::Replaced(uid, Some("by REPLACE, for want of room")));
        }
        let detail = match self.session.append(&folder, &old.flags, &date, original) {
            Ok(_) => {
                "the server stored other bytes than it was given; the message was appended again as it was, and the altered one stays beside it"
            }
            Err(ImapFailure::Refused { .. }) => {
                "the server stored other bytes than it was given, by REPLACE, and does not take the message as it was"
            }
            Err(failure) => return Err(failure),
        };
        self.journal.end(id)?;
        Fate::left(Reason::AlteredByServer, detail)
    }
}
