//! Reads the state of folders with STATUS (RFC 3501 §6.3.10), without opening them.

use std::collections::VecDeque;

use super::command::ImapCommand;
use super::exchange::PendingCommand;
use super::failure::ImapFailure;
use super::response::{ResponseValue, ServerResponse, values};
use super::session::ImapSession;

/// Maximum number of pending commands.
const AHEAD: usize = 20;

/// The numbers in a STATUS response. A number that the server did not return is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FolderStatus {
    pub(super) messages: u32,
    pub(super) uidnext: u32,
    pub(super) uidvalidity: u32,
}

impl FolderStatus {
    /// Parses a response. Returns `None` if it is not a STATUS response.
    fn of(read: &ServerResponse<'_>) -> Result<Option<Self>, ImapFailure> {
        let ServerResponse::Data(word, rest) = read else {
            return Ok(None);
        };
        if word != "STATUS" {
            return Ok(None);
        }
        let mut status = Self::default();
        let values = values(rest).map_err(ImapFailure::Unreadable)?;
        let pairs = values
            .last()
            .and_then(ResponseValue::list)
            .unwrap_or_default();
        let (pairs, _) = pairs.as_chunks::<2>();
        for [name, value] in pairs {
            let number = value.number().and_then(|it| u32::try_from(it).ok());
            let (Some(name), Some(number)) = (name.text(), number) else {
                continue;
            };
            match name.to_ascii_uppercase().as_str() {
                "MESSAGES" => status.messages = number,
                "UIDNEXT" => status.uidnext = number,
                "UIDVALIDITY" => status.uidvalidity = number,
                _ => {}
            }
        }
        Ok(Some(status))
    }
}

impl ImapSession {
    /// Requests UIDVALIDITY, for servers that do not return it when a folder is opened. Returns 0 if STATUS does not return it
    /// either.
    pub(super) fn uidvalidity(&mut self, folder: &str) -> Result<u32, ImapFailure> {
        let pending = self.send_status(folder, "(UIDVALIDITY)")?;
        let status = self.finish_status(&pending)?;
        Ok(status.map_or(0, |status| status.uidvalidity))
    }

    /// Requests the state of several folders, in this order. The state of a folder is `None` if the server refuses it.
    pub(super) fn statuses(
        &mut self,
        folders: &[&str],
    ) -> Result<Vec<Option<FolderStatus>>, ImapFailure> {
        let mut found = Vec::with_capacity(folders.len());
        let mut under_way = VecDeque::new();
        let mut rest = folders.iter();
        loop {
            while under_way.len() < AHEAD
                && let Some(folder) = rest.next()
            {
                under_way.push_back(self.send_status(folder, "(MESSAGES UIDNEXT UIDVALIDITY)")?);
            }
            let Some(pending) = under_way.pop_front() else {
                return Ok(found);
            };
            found.push(self.finish_status(&pending)?);
        }
    }

    fn send_status(&mut self, folder: &str, items: &str) -> Result<PendingCommand, ImapFailure> {
        let command = ImapCommand::new("STATUS", "STATUS ").folder(folder);
        self.exchange.send(command.text(&format!(" {items}")))
    }

    fn finish_status(
        &mut self,
        pending: &PendingCommand,
    ) -> Result<Option<FolderStatus>, ImapFailure> {
        let mut found = None;
        let done = self.exchange.finish(pending, &mut |read| {
            let status = FolderStatus::of(read)?;
            found = status.or(found);
            Ok(status.is_some())
        });
        match done {
            Ok(_) | Err(ImapFailure::Unreadable(_)) => Ok(found),
            Err(ImapFailure::Refused { .. }) => Ok(None),
            Err(why) => Err(why),
        }
    }
}
