//! What is done to a message, as `filter` and the mailboxes see it: expand it, detach from it, restore what was
//! detached, or only say what would be done.

use std::path::{Path, PathBuf};

use super::survey::Survey;
use crate::detach::Detacher;
use crate::edit::Edits;
use crate::error::Error;
use crate::expand::Expander;
use crate::lengths::Lengths;
use crate::mailbox::one_by_one;
use crate::report::Report;
use crate::store::{Mail, User};

/// What a command does to each message.
pub(super) trait Verb: Sync {
    /// Where the first byte is that [`Verb::work`] might care about, in any run of whole messages.
    fn first_touch(&self, bytes: &[u8]) -> Option<usize>;

    /// As [`Transform::touched`](crate::mailbox::Transform::touched).
    fn touched(&self, bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        one_by_one(|bytes| self.first_touch(bytes), bytes, ends)
    }

    /// What changes in one message, and what is said of it.
    ///
    /// # Errors
    /// What ends the whole run.
    fn work(&self, message: &[u8], name: &str) -> Result<(Edits, Report), Error>;

    /// The same with what is in the message, if that is counted.
    ///
    /// # Errors
    /// What ends the whole run.
    fn surveyed(
        &self,
        message: &[u8],
        name: &str,
    ) -> Result<(Edits, Report, Option<Box<Survey>>), Error> {
        let (edits, report) = self.work(message, name)?;
        Ok((edits, report, None))
    }

    /// As [`Transform::lengths`](crate::mailbox::Transform::lengths).
    fn lengths(&self) -> Lengths {
        Lengths::Corrected
    }

    /// Hears where the mail will stand that comes next; none for standard output.
    fn writes_to(&self, _place: Option<&Path>) {}
}

/// What an expander does with each message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// Expand it.
    Expand,
    /// Do all of it, for a run that writes nothing.
    Rehearse,
    /// Say what would be done.
    Forecast,
    /// The same, having asked each source whether there is an answer; `embeds` tells that pictures would be embedded,
    /// and are not only asked for.
    Probe { embeds: bool },
}

/// An expander's verb.
pub(super) struct Expanding<'e> {
    pub(super) expander: &'e Expander,
    pub(super) work: Work,
}

impl Verb for Expanding<'_> {
    fn first_touch(&self, bytes: &[u8]) -> Option<usize> {
        self.expander.first_touch(bytes)
    }

    fn touched(&self, bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        self.expander.touched_messages(bytes, ends)
    }

    fn work(&self, message: &[u8], name: &str) -> Result<(Edits, Report), Error> {
        match self.work {
            Work::Forecast => {
                let report = self.expander.forecast(message, name);
                Ok((Edits::new(), report))
            }
            Work::Expand => {
                let expansion = self.expander.expand(message, name)?;
                Ok((expansion.edits, expansion.report))
            }
            Work::Rehearse => {
                let expansion = self.expander.rehearse(message, name)?;
                Ok((expansion.edits, expansion.report.would()))
            }
            Work::Probe { embeds } => {
                let expansion = match embeds {
                    true => self.expander.rehearse(message, name)?,
                    false => self.expander.expand(message, name)?,
                };
                Ok((Edits::new(), expansion.report.would()))
            }
        }
    }
}

impl Verb for Detacher {
    fn first_touch(&self, bytes: &[u8]) -> Option<usize> {
        Detacher::first_touch(self, bytes)
    }

    fn work(&self, message: &[u8], name: &str) -> Result<(Edits, Report), Error> {
        let detachment = self.detach(message, name)?;
        let report = match self.is_rehearsal() {
            true => detachment.report.would(),
            false => detachment.report,
        };
        Ok((detachment.edits, report))
    }

    // Both directions make true what was true, and no more: so that one undoes the other.
    fn lengths(&self) -> Lengths {
        Lengths::Reversible
    }

    fn writes_to(&self, place: Option<&Path>) {
        if let Some(store) = self.store() {
            let mail = place.map_or(Mail::Filtered, |place| Mail::At(whole(place)));
            store.puts_from(User::this(mail));
        }
    }
}

/// The path of what is there, or will be, without links.
fn whole(path: &Path) -> PathBuf {
    let there = path.canonicalize().ok();
    let beside = || {
        let folder = match path.parent()? {
            folder if folder.as_os_str().is_empty() => Path::new("."),
            folder => folder,
        };
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    let absolute = || std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    there.or_else(beside).unwrap_or_else(absolute)
}
