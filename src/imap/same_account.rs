//! Checks that the directories of a backup contain the mail of the account that is downloaded into them.
//!
//! Two accounts can have folders with the same UIDVALIDITY and UIDs, for example if both were created in the same
//! second. The messages of the second account would then count as saved. So each directory names its account. If the
//! name differs, the saved messages are compared with those of the server: their dates and sizes, and the headers of a
//! few. If they fit, the account or its host was renamed.

use std::fs;
use std::io;
use std::path::Path;

use super::directories::{AccountName, FolderDirectory};
use super::failure::ImapFailure;
use super::reading::Sessions;
use super::same_mail::is_same_mail;
use super::saved_name::{FileFit, SHORT, SUBSTITUTE, fit, numbers};
use super::session::{ImapSession, RemoteFolder, Structure};
use crate::error::Error;

/// Maximum number of messages of a folder whose dates and sizes are compared.
const MOST_COMPARED: usize = 1000;
/// Maximum number of messages of a folder that are downloaded and compared, and their maximum size in bytes.
const MOST_READ: usize = 5;
const LARGEST_READ: u64 = 1 << 20;
/// Minimum number of messages that fit for each one that does not. A restored server can have a few other messages.
const FITTING: u64 = 10;

/// Result of the check.
pub(super) enum AccountEvidence {
    /// No comparison necessary: the directories are new, were written by an older version, or name this account.
    NotNeeded,
    /// The directories name another account, but contain the messages of this one: the account or its host was renamed.
    SameAccount(AccountName),
    OtherAccount(AccountName),
}

/// The check of all directories of a run.
pub(super) struct AccountCheck<'c, 's> {
    sessions: &'c Sessions<'s>,
    account: &'c AccountName,
    output: &'c Path,
    /// Account that a directory names, if it is not this one.
    other: Option<AccountName>,
    fitting: u64,
    different: u64,
    /// Whether a saved message differs from the server's, so that this is another account.
    is_other: bool,
}

impl<'c, 's> AccountCheck<'c, 's> {
    pub(super) fn new(
        sessions: &'c Sessions<'s>,
        account: &'c AccountName,
        output: &'c Path,
    ) -> Self {
        Self {
            sessions,
            account,
            output,
            other: None,
            fitting: 0,
            different: 0,
            is_other: false,
        }
    }

    /// Compares a folder with its directory, if the directory names another account.
    ///
    /// # Errors
    /// Failures of reading the directory, and of the connection. A folder that cannot be read is skipped.
    pub(super) fn add(
        &mut self,
        folder: &RemoteFolder,
        directory: &FolderDirectory,
    ) -> Result<(), ImapFailure> {
        let Some(other) = directory.account.as_ref().filter(|it| *it != self.account) else {
            return Ok(());
        };
        let cur = self.output.join(&directory.path).join("cur");
        let saved = saved(&cur).map_err(Error::cannot_read(cur.display()))?;
        if saved.is_empty() {
            return Ok(());
        }
        self.other.get_or_insert_with(|| other.clone());
        let found = self
            .sessions
            .again(|session| compared(session, &folder.name, &cur, &saved));
        match found {
            Ok(found) => {
                self.fitting += found.fitting;
                self.different += found.different;
                self.is_other |= found.is_other;
                Ok(())
            }
            Err(why) if why.costs_one_folder() => Ok(()),
            Err(why) => Err(why),
        }
    }

    pub(super) fn evidence(self) -> AccountEvidence {
        let is_same = !self.is_other
            && self.fitting > 0
            && self.fitting >= self.different.saturating_mul(FITTING);
        match self.other {
            None => AccountEvidence::NotNeeded,
            Some(other) if is_same => AccountEvidence::SameAccount(other),
            Some(other) => AccountEvidence::OtherAccount(other),
        }
    }
}

/// A complete message in a directory.
struct SavedMessage {
    uidvalidity: u32,
    uid: u32,
    name: String,
}

/// Returns the complete messages of a directory that embody saved, in the order of their UIDs.
fn saved(cur: &Path) -> io::Result<Vec<SavedMessage>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(cur)? {
        let Ok(name) = entry?.file_name().into_string() else {
            continue;
        };
        if let Some((uidvalidity, uid)) = numbers(&name)
            && !name.contains(SHORT)
            && !name.contains(SUBSTITUTE)
        {
            found.push(SavedMessage {
                uidvalidity,
                uid,
                name,
            });
        }
    }
    found.sort_unstable_by_key(|it| it.uid);
    Ok(found)
}

/// Result of comparing one folder.
#[derive(Default)]
struct ComparedFolder {
    fitting: u64,
    different: u64,
    is_other: bool,
}

fn compared(
    session: &mut ImapSession,
    folder: &str,
    cur: &Path,
    saved: &[SavedMessage],
) -> Result<ComparedFolder, ImapFailure> {
    let mut found = ComparedFolder::default();
    let selected = session.examine(folder)?;
    let mut saved: Vec<&SavedMessage> = saved
        .iter()
        .filter(|it| it.uidvalidity == selected.uidvalidity)
        .collect();
    let step = saved.len().div_ceil(MOST_COMPARED).max(1);
    saved = saved.into_iter().rev().step_by(step).rev().collect();
    let mut uids: Vec<u32> = saved.iter().map(|it| it.uid).collect();
    uids.dedup();
    let mut fitting = Vec::new();
    session.fetch_metadata(&uids, Structure::NotWanted, &mut |message| {
        let of_uid = saved.iter().filter(|it| it.uid == message.uid);
        let fits = of_uid
            .clone()
            .find(|it| fit(&it.name, &message) != FileFit::Other);
        match fits {
            Some(saved) => {
                found.fitting += 1;
                fitting.push((saved.uid, message.size, saved.name.as_str()));
            }
            None => found.different += u64::from(of_uid.count() > 0),
        }
        Ok(())
    })?;
    let step = fitting.len().div_ceil(MOST_READ).max(1);
    for (uid, size, name) in fitting.into_iter().rev().step_by(step) {
        if size > LARGEST_READ {
            continue;
        }
        let most = usize::try_from(LARGEST_READ).unwrap_or(usize::MAX);
        if let Some(content) = session.fetch_body(uid, size, most)?
            && let Ok(saved) = fs::read(cur.join(name))
        {
            found.is_other |= !is_same_mail(&saved, &content);
        }
    }
    Ok(found)
}
