//! Opens the reader of a mailbox.

use std::sync::Arc;

use super::context::ReadContext;
use super::folder::FolderReader;
use super::letters::{LetterFacts, Letters, MailboxReader, ReadEvent};
use super::opened::OpenReader;
#[cfg(feature = "outlook")]
use super::pst::PstReader;
use crate::error::Error;
use crate::mailbox::Summary;
use crate::mailbox::event::EventLog;
use crate::mailbox::forms::kind::StartKind;

/// Opens a mailbox of a known kind.
///
/// # Errors
/// Returns the reason why the mailbox cannot be read.
pub(crate) fn open_reader(
    context: &Arc<ReadContext>,
    kind: StartKind,
) -> Result<Box<dyn MailboxReader>, Error> {
    if kind.is_folder() {
        return Ok(Box::new(FolderReader::new(context, kind)));
    }
    #[cfg(feature = "outlook")]
    if let Some(folder) = &context.pst {
        return Ok(Box::new(PstReader::new(context, folder)));
    }
    let log = EventLog::new();
    let job = context.job(&log);
    // Mail can be appended to an mbox while it is read.
    let may_grow =
        kind == StartKind::Mbox && context.method.is_none() && !context.is_for_other_format;
    let (mut source, before, kind) = job.open_source(kind)?;
    if kind.has_folders() {
        let counts = job.spool(&mut source)?;
        let events = log.into_events();
        let facts = LetterFacts { counts, events };
        return Ok(Box::new(SpooledReader(facts)));
    }
    let before = (!may_grow).then_some(before);
    let reader = OpenReader::new(context, source, before, kind)?;
    Ok(Box::new(reader))
}

/// An Outlook mailbox that was copied to a temporary file. It has no messages here: its folders are read after the other
/// mailboxes of the source.
struct SpooledReader(LetterFacts);

impl MailboxReader for SpooledReader {
    fn begin(&mut self) -> LetterFacts {
        std::mem::take(&mut self.0)
    }

    fn next(&mut self) -> Result<Option<Box<dyn Letters>>, Error> {
        Ok(None)
    }

    fn end(&mut self, _summary: &mut Summary) -> Result<Vec<ReadEvent>, Error> {
        Ok(Vec::new())
    }
}
