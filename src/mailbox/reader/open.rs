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
use crate::mailbox::input::source::InputSource;
use crate::mailbox::kind::StartKind;
use crate::mailbox::read::opened::kind_of_open;

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
    let (file, before) = job.open()?;
    if kind == StartKind::Mbox && context.method.is_none() && !context.is_for_other_format {
        let source = InputSource::file(&Arc::new(file));
        return Ok(Box::new(OpenReader::new(context, source, None, kind)?));
    }
    let mut source = if kind == StartKind::Archive || context.method.is_some() {
        InputSource::named(file, &context.path, &context.options.read, &context.stop)?
    } else {
        InputSource::file(&Arc::new(file))
    };
    let kind = match kind {
        StartKind::Archive => {
            kind_of_open(&mut source, &context.path, context.options.read.format)?
                .map_err(|other| other.error(&context.path))?
        }
        kind => kind,
    };
    if kind == StartKind::Pst {
        let counts = job.spool(&mut source)?;
        let events = log.into_events();
        let facts = LetterFacts { counts, events };
        return Ok(Box::new(SpooledReader(facts)));
    }
    let reader = OpenReader::new(context, source, Some(before), kind)?;
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
