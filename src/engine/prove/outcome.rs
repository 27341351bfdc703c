//! The results of a proof.

use std::fmt;

/// The changes that embody made to a mail.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct Changes {
    /// Number of links that refer to content outside the mail in the old mail, and to a part of the mail in the new one.
    pub embedded: usize,
    /// Number of attachments that were moved to a store.
    pub detached: usize,
    /// Number of attachments that were put back from a store.
    pub restored: usize,
    /// Number of references whose content is now in the mail.
    pub filled: usize,
    /// Number of documents whose relative links are now absolute.
    pub resolved: usize,
    /// Number of wrapped links that are now their originals (docs/unwrap.md).
    pub unwrapped: usize,
    /// 1 if `winmail.dat` or a similar part was unpacked.
    pub opened: usize,
    /// 1 if a Eudora message was converted back to MIME.
    pub unmarked: usize,
    /// Number of messages that were removed because another copy of the mail is at least as complete.
    pub merged: usize,
}

impl Changes {
    /// Adds the changes of another mail, or of a further run.
    pub(crate) fn add(&mut self, other: Self) {
        self.embedded += other.embedded;
        self.detached += other.detached;
        self.restored += other.restored;
        self.filled += other.filled;
        self.resolved += other.resolved;
        self.unwrapped += other.unwrapped;
        self.opened += other.opened;
        self.unmarked += other.unmarked;
        self.merged += other.merged;
    }
}

/// A proof that embody turned one mail into another one.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Proof {
    /// The changes that embody made.
    pub changes: Changes,
    /// Number of inserted contents that the old mail does not prove, because only a server, a file or another copy of the mail
    /// had them.
    pub unchecked: usize,
}

/// The reason why a mail was not proved to be the work of embody.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Unproven {
    /// The first difference between the new mail and the nearest result of embody, such as `the field Subject is different`.
    pub detail: String,
    /// Whether the proof ended because it had used up its [`Budget`].
    pub is_spent: bool,
    /// Whether another version of embody may have written the new mail: it contains traces of embody that the old mail does
    /// not contain.
    pub may_be_of_other_version: bool,
}

impl fmt::Display for Unproven {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.detail)?;
        if self.is_spent {
            formatter.write_str("; the comparison reached its limit of work")?;
        }
        if self.may_be_of_other_version {
            formatter.write_str("; perhaps written by another version of embody")?;
        }
        Ok(())
    }
}

impl std::error::Error for Unproven {}

/// Work that a proof may do, in bytes. A mail can make the proof run the engine many times, so a limit is necessary. It is
/// counted and not measured, so the result does not depend on the machine.
#[derive(Clone, Debug)]
pub struct Budget {
    left: u64,
    is_spent: bool,
}

/// Work that is allowed for a mail of any size, in bytes.
const FREE: u64 = 24 << 20;

/// Number of runs that are allowed for a mail of any size.
const RUNS: u64 = 4;

/// Bytes that one run reads for each byte of the two mails.
const READ: u64 = 8;

/// Bytes that one run reads at least. It limits the number of runs over a small mail.
const LEAST: u64 = 64 << 10;

impl Budget {
    /// Returns the budget for two mails with these lengths, in bytes.
    pub fn of(old: usize, new: usize) -> Self {
        let both = (old as u64).saturating_add(new as u64);
        Self {
            left: both.saturating_mul(READ * RUNS).saturating_add(FREE),
            is_spent: false,
        }
    }

    pub(super) fn take(&mut self, octets: usize) -> Option<()> {
        let work = (octets as u64).saturating_mul(READ).max(LEAST);
        match self.left.checked_sub(work) {
            Some(left) => {
                self.left = left;
                Some(())
            }
            None => {
                self.is_spent = true;
                None
            }
        }
    }

    /// Takes the work for content of this length that is created in memory.
    pub(super) fn hold(&mut self, octets: usize) -> Option<()> {
        let left = self.left.checked_sub(octets as u64);
        self.is_spent |= left.is_none();
        self.left = left?;
        Some(())
    }

    pub(super) fn is_spent(&self) -> bool {
        self.is_spent
    }
}
