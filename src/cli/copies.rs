//! `--copies`: reads mailboxes with other copies of the mail before the run begins.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::args::ProgressOption;
use super::progress::Display;
#[cfg(all(unix, feature = "imap"))]
use super::remote;
use super::streams::is_standard;
use super::totals::Totals;
use super::{say, wording};
use crate::copies::{CopyIndex, CopySearch, IndexBuilder};
use crate::engine::policy::Policy;
use crate::engine::report::Detail;
use crate::error::Error;
use crate::fetch::Fetch;
use crate::mailbox::{ReadOptions, Stop};

/// The mailboxes of `--copies`, read at the start of the run.
#[derive(Default)]
pub(super) struct CopyMailboxes {
    index: Option<Arc<CopyIndex>>,
    /// Whether a part of these mailboxes could not be read. The part was already reported.
    pub(super) is_damaged: bool,
}

impl CopyMailboxes {
    /// Reads all mailboxes that the policy names.
    ///
    /// # Errors
    /// A path cannot be read, or is not a mailbox.
    pub(super) fn read(
        policy: &Policy,
        options: &ReadOptions,
        progress: ProgressOption,
        stop: &Stop,
    ) -> Result<Self, Error> {
        if policy.copies.is_empty() {
            return Ok(Self::default());
        }
        for path in &policy.copies {
            check(path)?;
        }
        let is_damaged = AtomicBool::new(false);
        let display = Display::new(progress, 0);
        #[cfg(all(unix, feature = "imap"))]
        display.within("--copies");
        let damaged = |path: &Path, why: &Detail| {
            is_damaged.store(true, Ordering::Relaxed);
            display.say(&say::damaged(path, &wording::detail(why)));
        };
        let none = Totals::default();
        let advanced = |bytes, messages, expected| {
            display.expect(expected);
            display.advance(bytes, messages, [&none, &none]);
        };
        let options = &options.for_other_source();
        let mut building = IndexBuilder::new(policy, &damaged, &advanced)?;
        for path in &policy.copies {
            let is_whole = building.add(path, options, stop)?;
            is_damaged.fetch_or(!is_whole, Ordering::Relaxed);
        }
        let index = building.finish()?;
        Ok(Self {
            index: Some(Arc::new(index)),
            is_damaged: is_damaged.load(Ordering::Relaxed),
        })
    }

    /// Returns a source of content that searches these mailboxes first, and then `others` (for example servers).
    /// Without `--copies`, returns `others` alone.
    pub(super) fn before(
        &self,
        policy: &Arc<Policy>,
        others: impl Fetch + 'static,
    ) -> Arc<dyn Fetch> {
        match &self.index {
            Some(index) => {
                let others = Arc::new(others);
                Arc::new(CopySearch::new(Arc::clone(index), policy, others))
            }
            None => Arc::new(others),
        }
    }
}

fn check(path: &Path) -> Result<(), Error> {
    let refused = |why: &str| {
        let what = format!("--copies {}: {why}", path.display());
        Err(Error::Usage(what.into()))
    };
    if is_standard(path) {
        return refused(
            "embody reads copies several times, so it cannot read standard input; name a file or a directory",
        );
    }
    #[cfg(all(unix, feature = "imap"))]
    if remote::is_remote(path) {
        return refused(
            "this source is an account on a server; download the mail with embody convert, and name the downloaded directory",
        );
    }
    Ok(())
}
