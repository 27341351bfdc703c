//! Commands that change the messages of a folder: APPEND, STORE, UID EXPUNGE, MOVE and REPLACE.

use super::command::ImapCommand;
use super::exchange::{CommandResult, PendingCommand, told};
use super::failure::ImapFailure;
use super::fetch;
use super::response::{ServerResponse, is_flag};
use super::session::{FlagChange, ImapSession, InternalDate, MessageData};

/// Response code that another program has removed messages (RFC 5530 §3). pymap, Dovecot and Cyrus send it if these are among the
/// messages of the command. pymap then still accepts STORE and FETCH, and reports the removal during a later command, as if
/// that command had removed the message.
const EXPUNGE_ISSUED: &str = "EXPUNGEISSUED";

/// Result of the STORE command that sets `\Deleted` on a message.
pub(super) struct MarkedMessage {
    /// Whether the server left the message unmarked because it had changed (MODIFIED, RFC 7162 §3.1.3). `Err` if the
    /// server refused the command for another reason.
    pub(super) is_modified: Result<bool, ImapFailure>,
    /// Flags of the message in the responses to STORE. If they are present, the message still exists; a server
    /// without CONDSTORE shows this in no other way. `None` if the responses contain no flags.
    pub(super) flags: Option<Vec<String>>,
}

/// Data that the server returned while a message was removed.
#[derive(Default)]
pub(super) struct Removal {
    /// Flags and Gmail labels of the message immediately before the removal. `None` if the server did not return them, for
    /// example because the message no longer existed.
    pub(super) flags: Option<Vec<String>>,
    pub(super) labels: Option<Vec<String>>,
    /// Sequence number of the message, which EXPUNGE responses contain. `None` if the server did not return the flags of the
    /// message, or if the message is gone.
    sequence: Option<u32>,
    /// Whether the server reported the removal or move of this message (EXPUNGE, VANISHED or COPYUID) after its flags.
    /// Such a report confirms that this command removed it: before the flags, it would be the work of another program.
    /// Dovecot executes both commands together, and reports the removal before the end of FETCH.
    pub(super) is_told: bool,
    /// Whether the server confirmed with COPYUID that this command moved the message.
    pub(super) is_moved: bool,
}

impl ImapSession {
    /// Sends APPEND. Returns UIDVALIDITY and UID of the new message, or `None` if the server does not report them
    /// (it lacks UIDPLUS).
    pub(crate) fn append(
        &mut self,
        folder: &str,
        flags: &[String],
        date: &InternalDate,
        content: &[u8],
    ) -> Result<Option<(u32, u32)>, ImapFailure> {
        let command = ImapCommand::new("APPEND", "APPEND ");
        self.put(command, folder, flags, date, content)
    }

    /// Sends REPLACE (RFC 8508), which replaces a message of the selected folder by a new message in `folder`.
    pub(crate) fn replace(
        &mut self,
        uid: u32,
        folder: &str,
        flags: &[String],
        date: &InternalDate,
        content: &[u8],
    ) -> Result<Option<(u32, u32)>, ImapFailure> {
        let command = ImapCommand::new("REPLACE", &format!("UID REPLACE {uid} "));
        self.put(command, folder, flags, date, content)
    }

    fn put(
        &mut self,
        command: ImapCommand<'_>,
        folder: &str,
        flags: &[String],
        date: &InternalDate,
        content: &[u8],
    ) -> Result<Option<(u32, u32)>, ImapFailure> {
        let is_plain = date.text.bytes().all(|octet| matches!(octet, b' '..=b'~'))
            && !date.text.contains(['"', '\\']);
        if !is_plain {
            return Err(ImapFailure::Protocol(
                "the server sent a malformed date of a message (INTERNALDATE)",
            ));
        }
        let command = command
            .folder(folder)
            .text(&format!(" {} \"{}\" ", flag_list(flags)?, date.text))
            .literal(content);
        let mut new = None;
        let done = self.exchange.run(command, &mut |read| {
            if let ServerResponse::Status(status) = read
                && status.code == "APPENDUID"
            {
                new = appended(&String::from_utf8_lossy(status.argument));
            }
            Ok(false)
        })?;
        if done.code == "APPENDUID" {
            new = appended(&done.argument);
        }
        Ok(new)
    }

    /// Sends UID STORE for one message.
    pub(crate) fn store_flags(
        &mut self,
        uid: u32,
        change: FlagChange,
        flags: &[String],
    ) -> Result<(), ImapFailure> {
        let text = format!(
            "UID STORE {uid} {}FLAGS.SILENT {}",
            sign(change),
            flag_list(flags)?
        );
        let command = ImapCommand::new("STORE", &text);
        self.exchange.run(command, &mut |_| Ok(false)).map(|_| ())
    }

    /// Returns an error if the server lacks UIDPLUS. A plain EXPUNGE would also remove messages that other programs marked as
    /// deleted.
    fn check_expunge(&self) -> Result<(), ImapFailure> {
        if self.has("UIDPLUS") || self.has("IMAP4REV2") {
            Ok(())
        } else {
            Err(ImapFailure::Refused {
                command: "UID EXPUNGE",
                code: None,
                text: "the server does not support UIDPLUS".to_owned(),
                is_bad: false,
            })
        }
    }

    /// Marks a message as deleted, unless it changed since the modification sequence `unchanged_since`. Waits for the
    /// response before UID EXPUNGE is sent, for two reasons. If both are sent together while another connection changes
    /// the folder, Dovecot fails to expunge about one message in a hundred. And UID EXPUNGE would also remove a message
    /// that has changed, if another program had marked it.
    pub(super) fn mark_deleted(
        &mut self,
        uid: u32,
        unchanged_since: Option<u64>,
    ) -> Result<MarkedMessage, ImapFailure> {
        self.check_expunge()?;
        // The command is FLAGS and not FLAGS.SILENT, so that the server returns the new flags. On a server without
        // CONDSTORE, returned flags are the only sign that the message still exists.
        let since = unchanged_since
            .map(|modseq| format!(" (UNCHANGEDSINCE {modseq})"))
            .unwrap_or_default();
        let text = format!("UID STORE {uid}{since} +FLAGS (\\Deleted)");
        let store = self.exchange.send(ImapCommand::new("STORE", &text))?;
        let mut removal = Removal::default();
        let is_modified = match self.heard(&store, uid, &mut removal)? {
            Ok(done) => {
                if done.code == EXPUNGE_ISSUED {
                    removal.flags = None;
                }
                Ok(done.code == "MODIFIED")
            }
            Err(ImapFailure::Refused { code, .. }) if code.as_deref() == Some("MODIFIED") => {
                Ok(true)
            }
            Err(why) => Err(why),
        };
        Ok(MarkedMessage {
            is_modified,
            flags: removal.flags,
        })
    }

    /// Removes a message: requests its flags (and its labels if the server supports them), and then expunges the
    /// message or moves it to `trash`. Both commands are sent together. With a network delay between them, another
    /// program could change the flags unnoticed. The inner `Err` means that the server refused to remove the
    /// message.
    pub(super) fn remove(
        &mut self,
        uid: u32,
        trash: Option<&str>,
        has_labels: bool,
    ) -> Result<(Removal, Result<(), ImapFailure>), ImapFailure> {
        let mut removal = Removal::default();
        if trash.is_none()
            && let Err(refusal) = self.check_expunge()
        {
            return Ok((removal, Err(refusal)));
        }
        let labels = if has_labels { " X-GM-LABELS" } else { "" };
        let look = format!("UID FETCH {uid} (UID FLAGS{labels})");
        let fetch = self.exchange.hold("FETCH", &look);
        let command = match trash {
            None => ImapCommand::new("UID EXPUNGE", &format!("UID EXPUNGE {uid}")),
            Some(trash) => ImapCommand::new("MOVE", &format!("UID MOVE {uid} ")).folder(trash),
        };
        let leave = self.exchange.send(command)?;
        // Refused flags are not an error here: the caller then uses those of its last check.
        let fetched = self.heard(&fetch, uid, &mut removal)?;
        let is_removed_by_other = fetched.is_ok_and(|done| done.code == EXPUNGE_ISSUED);
        let left = self.heard(&leave, uid, &mut removal)?;
        if let Ok(done) = &left {
            removal.hear_copyuid(&done.code, &done.argument, uid);
        }
        if is_removed_by_other && !removal.is_moved {
            (removal.flags, removal.is_told) = (None, false);
        }
        Ok((removal, left.map(|_| ())))
    }

    /// Reads until the end of a command and records the responses about the message. The inner `Err` means that the
    /// server refused the command, or that a response cannot be read.
    fn heard(
        &mut self,
        pending: &PendingCommand,
        uid: u32,
        removal: &mut Removal,
    ) -> Result<Result<CommandResult, ImapFailure>, ImapFailure> {
        let done = self.exchange.finish(pending, &mut |read| {
            match read {
                ServerResponse::Numbered(number, word, items) if word == "FETCH" => {
                    if let Some(MessageData::Flags {
                        uid: Some(found),
                        flags: now,
                        ..
                    }) = told(items)
                        && found == uid
                    {
                        // Only the server sets `\Recent`. The flags are copied to the new message later, and a command with
                        // `\Recent` would be rejected.
                        let lasting = |flag: &String| !flag.eq_ignore_ascii_case("\\Recent");
                        removal.sequence = Some(*number);
                        removal.flags = Some(now.into_iter().filter(lasting).collect());
                    }
                    if let Some(items) = fetch::items(read)?
                        && fetch::uid(&items) == Some(uid)
                    {
                        removal.labels = fetch::labels(&items).or(removal.labels.take());
                    }
                }
                ServerResponse::Numbered(number, word, _) if word == "EXPUNGE" => {
                    removal.hear_expunge(*number);
                }
                // `VANISHED (EARLIER)` is about removals before this session.
                ServerResponse::Data(word, uids)
                    if word == "VANISHED" && !uids.starts_with(b"(") =>
                {
                    let uids = String::from_utf8_lossy(uids);
                    removal.is_told |= removal.sequence.is_some() && is_in(&uids, uid);
                }
                ServerResponse::Status(status) => {
                    let argument = String::from_utf8_lossy(status.argument);
                    removal.hear_copyuid(&status.code, &argument, uid);
                }
                _ => {}
            }
            Ok(false)
        });
        match done {
            Err(why @ (ImapFailure::Refused { .. } | ImapFailure::Unreadable(_))) => Ok(Err(why)),
            done => done.map(Ok),
        }
    }

    /// Changes the Gmail labels (X-GM-LABELS) of a message.
    pub(crate) fn store_gmail_labels(
        &mut self,
        uid: u32,
        change: FlagChange,
        labels: &[String],
    ) -> Result<(), ImapFailure> {
        let text = format!("UID STORE {uid} {}X-GM-LABELS.SILENT (", sign(change));
        let mut command = ImapCommand::new("STORE", &text);
        for (at, label) in labels.iter().enumerate() {
            command = command.text(if at == 0 { "" } else { " " });
            // System labels such as `\Inbox` are sent as words. Other labels are sent as strings.
            let is_word = label.strip_prefix('\\').is_some_and(|word| {
                !word.is_empty() && word.bytes().all(|octet| octet.is_ascii_alphanumeric())
            });
            command = if is_word {
                command.text(label)
            } else {
                command.string(label)
            };
        }
        self.exchange.run(command.text(")"), &mut |_| Ok(false))?;
        Ok(())
    }
}

impl Removal {
    /// Handles EXPUNGE for a sequence number. The server also reports messages that other programs removed, and each
    /// removal of an earlier message shifts the number of this one.
    fn hear_expunge(&mut self, number: u32) {
        match self.sequence {
            Some(sequence) if number == sequence => {
                self.is_told = true;
                self.sequence = None;
            }
            Some(sequence) if number < sequence => self.sequence = Some(sequence - 1),
            _ => {}
        }
    }

    /// Processes the response code COPYUID, whose argument is `UIDVALIDITY UIDS UIDS`.
    fn hear_copyuid(&mut self, code: &str, argument: &str, uid: u32) {
        let set = argument.split_whitespace().nth(1).unwrap_or_default();
        if code == "COPYUID" && is_in(set, uid) {
            (self.is_told, self.is_moved) = (true, true);
        }
    }
}

/// Returns whether a set of UIDs, such as `3:5,9`, contains the UID.
fn is_in(set: &str, uid: u32) -> bool {
    set.split(',').any(|range| {
        let (first, last) = range.split_once(':').unwrap_or((range, range));
        match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            (Ok(first), Ok(last)) => (first.min(last)..=first.max(last)).contains(&uid),
            _ => false,
        }
    })
}

fn sign(change: FlagChange) -> &'static str {
    match change {
        FlagChange::Add => "+",
        FlagChange::Remove => "-",
    }
}

/// Formats flags as a list in parentheses. Returns an error if a flag is not a valid word.
fn flag_list(flags: &[String]) -> Result<String, ImapFailure> {
    if flags.iter().all(|flag| is_flag(flag)) {
        Ok(format!("({})", flags.join(" ")))
    } else {
        Err(ImapFailure::Protocol("the server sent malformed flags"))
    }
}

/// Parses the arguments of APPENDUID: `UIDVALIDITY UID`.
fn appended(argument: &str) -> Option<(u32, u32)> {
    let (uidvalidity, uid) = argument.trim().split_once(' ')?;
    Some((uidvalidity.parse().ok()?, uid.parse().ok()?))
}
