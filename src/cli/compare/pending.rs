//! Messages of NEW that have too many candidates, and are compared after all of NEW was read
//! (`crowded`). A temporary file has a record of each message.

use std::io;
use std::sync::Mutex;

use super::reading::MessageResult;
use super::stored::{CandidateRecord, MessageKeys, stored, temporary};
use crate::error::{Error, unpoisoned};
use crate::spool::{Spool, SpoolWriter};

/// A message of NEW that is compared later.
#[derive(Clone, Copy)]
pub(super) struct PendingMessage {
    pub(super) keys: MessageKeys,
    /// Offset of the message's record in the temporary file.
    pub(super) at: u64,
    /// Position of the message in NEW.
    pub(super) number: u64,
}

impl PendingMessage {
    pub(super) fn numbered(self, number: u64) -> Self {
        Self { number, ..self }
    }
}

/// The messages of NEW that are compared later, with the temporary file of their records.
pub(super) struct PendingMessages {
    file: Mutex<SpoolWriter>,
    messages: Mutex<Vec<PendingMessage>>,
}

impl PendingMessages {
    pub(super) fn new() -> Result<Self, Error> {
        Ok(Self {
            file: Mutex::new(SpoolWriter::temporary().map_err(temporary)?),
            messages: Mutex::default(),
        })
    }

    /// Stores a message, and returns its entry for [`add`](Self::add).
    pub(super) fn store(
        &self,
        keys: MessageKeys,
        message: &MessageResult<'_>,
    ) -> io::Result<PendingMessage> {
        let place = stored(message, &self.file)?;
        let record = CandidateRecord::of(message, place, None);
        let at = unpoisoned(self.file.lock()).push_value(&record)?;
        Ok(PendingMessage {
            keys,
            at,
            number: 0,
        })
    }

    /// Adds a stored message. Messages must be added in the order of NEW.
    pub(super) fn add(&self, message: PendingMessage) {
        unpoisoned(self.messages.lock()).push(message);
    }

    /// Returns the length of the temporary file, in bytes.
    pub(super) fn length(&self) -> u64 {
        unpoisoned(self.file.lock()).end()
    }

    /// Ends the writing. Returns the messages in the order of NEW, and the temporary file.
    pub(super) fn finish(self) -> Result<(Vec<PendingMessage>, Spool), Error> {
        let writer = unpoisoned(self.file.into_inner());
        let file = writer.finish().map_err(temporary)?;
        Ok((unpoisoned(self.messages.into_inner()), file))
    }
}
