//! The commands that change what is in a folder: APPEND, STORE, UID EXPUNGE and MOVE, and REPLACE.

use super::command::ImapCommand;
use super::exchange::{Done, PendingCommand, told};
use super::failure::ImapFailure;
use super::response::{Response, is_flag};
use super::session::{Event, FlagChange, ImapSession, InternalDate, Stored};

/// What became of a message that was to go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Removal {
    /// What became of the mark; [`Stored::Done`] of a message that is moved.
    pub(super) stored: Stored,
    /// The flags that it had a moment before it went. None: it was not there any more.
    pub(super) flags: Option<Vec<String>>,
    /// Whether a message went behind that moment.
    pub(super) is_told: bool,
}

impl ImapSession {
    /// APPEND: UIDVALIDITY and UID of the new message where the server says them (UIDPLUS).
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

    /// REPLACE (RFC 8508) of a message of the selected folder by a new one in `folder`.
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
            return Err(ImapFailure::Protocol("an INTERNALDATE that is none"));
        }
        let command = command
            .folder(folder)
            .text(&format!(" {} \"{}\" ", flag_list(flags)?, date.text))
            .literal(content);
        let mut new = None;
        let done = self.exchange.run(command, &mut |read| {
            if let Response::Status(status) = read
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

    /// UID STORE of one message.
    pub(crate) fn store_flags(
        &mut self,
        uid: u32,
        change: FlagChange,
        flags: &[String],
        unchanged_since: Option<u64>,
    ) -> Result<Stored, ImapFailure> {
        let since = unchanged_since.map(|modseq| format!(" (UNCHANGEDSINCE {modseq})"));
        let text = format!(
            "UID STORE {uid}{} {}FLAGS.SILENT {}",
            since.unwrap_or_default(),
            sign(change),
            flag_list(flags)?
        );
        let done = self
            .exchange
            .run(ImapCommand::new("STORE", &text), &mut |_| Ok(false));
        match done {
            Ok(done) if done.code == "MODIFIED" => Ok(Stored::Modified),
            Ok(_) => Ok(Stored::Done),
            Err(ImapFailure::Refused {
                code: Some(code), ..
            }) if code == "MODIFIED" => Ok(Stored::Modified),
            Err(ImapFailure::Refused {
                code: Some(code), ..
            }) if matches!(code.as_str(), "EXPUNGEISSUED" | "NONEXISTENT") => Ok(Stored::Gone),
            Err(why) => Err(why),
        }
    }

    /// UID EXPUNGE of this one message alone (UIDPLUS).
    ///
    /// # Errors
    /// [`ImapFailure::Refused`] without UIDPLUS: EXPUNGE would take other people's mail.
    pub(crate) fn uid_expunge(&mut self, uid: u32) -> Result<(), ImapFailure> {
        self.check_expunge()?;
        let command = ImapCommand::new("UID EXPUNGE", &format!("UID EXPUNGE {uid}"));
        self.exchange.run(command, &mut |_| Ok(false)).map(|_| ())
    }

    fn check_expunge(&self) -> Result<(), ImapFailure> {
        match self.has("UIDPLUS") || self.has("IMAP4REV2") {
            true => Ok(()),
            false => Err(ImapFailure::Refused {
                command: "UID EXPUNGE",
                code: None,
                text: "it has no UIDPLUS".to_owned(),
                is_bad: false,
            }),
        }
    }

    /// UID MOVE (RFC 6851).
    pub(crate) fn uid_move(&mut self, uid: u32, folder: &str) -> Result<(), ImapFailure> {
        let command = ImapCommand::new("MOVE", &format!("UID MOVE {uid} ")).folder(folder);
        self.exchange.run(command, &mut |_| Ok(false)).map(|_| ())
    }

    /// Marks a message as deleted, if it did not change since; then asks for its flags, and expunges it, or moves it to `trash`
    /// instead of both. The last two are sent at once: a server does both in a moment, whatever way the answers have to go.
    /// The mark is waited for: where it is sent with them, Dovecot does not expunge one of a hundred messages while another
    /// connection changes the folder, and one that changed since would be expunged for the mark of another program.
    ///
    /// # Errors
    /// [`ImapFailure::Refused`] if the message is not gone by that.
    pub(super) fn remove(
        &mut self,
        uid: u32,
        unchanged_since: Option<u64>,
        trash: Option<&str>,
    ) -> Result<Removal, ImapFailure> {
        if trash.is_none() {
            self.check_expunge()?;
        }
        let mut removal = Removal {
            stored: Stored::Done,
            flags: None,
            is_told: false,
        };
        let look = format!("UID FETCH {uid} (UID FLAGS)");
        if trash.is_none() {
            // Not silently: servers without CONDSTORE say by the answer that the message is there.
            let since = unchanged_since.map(|modseq| format!(" (UNCHANGEDSINCE {modseq})"));
            let since = since.unwrap_or_default();
            let text = format!("UID STORE {uid}{since} +FLAGS (\\Deleted)");
            let store = self.exchange.send(ImapCommand::new("STORE", &text))?;
            removal.stored = match self.heard(&store, uid, &mut removal)? {
                Ok(done) if done.code == "MODIFIED" => Stored::Modified,
                Ok(_) => Stored::Done,
                Err(ImapFailure::Refused { code, .. }) if code.as_deref() == Some("MODIFIED") => {
                    Stored::Modified
                }
                Err(why) => {
                    // Servers say it in many words that there is none.
                    let fetch = self.exchange.send(ImapCommand::new("FETCH", &look))?;
                    let _ = self.heard(&fetch, uid, &mut removal)?;
                    if removal.flags.is_some() {
                        return Err(why);
                    }
                    Stored::Gone
                }
            };
            if removal.stored != Stored::Done {
                // What goes now goes by another program.
                removal.flags = None;
                return Ok(removal);
            }
        }
        let fetch = self.exchange.hold("FETCH", &look);
        let leave = match trash {
            None => ImapCommand::new("UID EXPUNGE", &format!("UID EXPUNGE {uid}")),
            Some(trash) => ImapCommand::new("MOVE", &format!("UID MOVE {uid} ")).folder(trash),
        };
        let leave = self.exchange.send(leave)?;
        // Flags that it does not give are those that STORE gave.
        let _ = self.heard(&fetch, uid, &mut removal)?;
        removal.is_told = false;
        let left = self.heard(&leave, uid, &mut removal)?;
        removal.is_told |= left.as_ref().is_ok_and(|done| done.code == "COPYUID");
        match removal.flags.is_none() && !removal.is_told {
            true => removal.stored = Stored::Gone,
            false => drop(left?),
        }
        Ok(removal)
    }

    /// Reads up to the end of a command, and notes what is said of a message meanwhile; the inner error is a refusal.
    fn heard(
        &mut self,
        pending: &PendingCommand,
        uid: u32,
        removal: &mut Removal,
    ) -> Result<Result<Done, ImapFailure>, ImapFailure> {
        let done = self.exchange.finish(pending, &mut |read| {
            match read {
                Response::Numbered(_, word, items) if word == "FETCH" => {
                    if let Some(Event::Flags {
                        uid: Some(found),
                        flags: now,
                        ..
                    }) = told(items)
                        && found == uid
                    {
                        // This one is the server's.
                        let lasting = |flag: &String| !flag.eq_ignore_ascii_case("\\Recent");
                        removal.flags = Some(now.into_iter().filter(lasting).collect());
                    }
                }
                Response::Numbered(_, word, _) if word == "EXPUNGE" => removal.is_told = true,
                Response::Data(word, _) if word == "VANISHED" => removal.is_told = true,
                Response::Status(status) if status.code == "COPYUID" => removal.is_told = true,
                _ => {}
            }
            Ok(false)
        });
        match done {
            Err(why @ ImapFailure::Refused { .. }) => Ok(Err(why)),
            done => done.map(Ok),
        }
    }

    /// STORE of X-GM-LABELS.
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
            // Those of the system are words: \Inbox.
            let is_word = label.strip_prefix('\\').is_some_and(|word| {
                !word.is_empty() && word.bytes().all(|octet| octet.is_ascii_alphanumeric())
            });
            command = match is_word {
                true => command.text(label),
                false => command.string(label),
            };
        }
        self.exchange.run(command.text(")"), &mut |_| Ok(false))?;
        Ok(())
    }
}

fn sign(change: FlagChange) -> &'static str {
    match change {
        FlagChange::Add => "+",
        FlagChange::Remove => "-",
        FlagChange::Replace => "",
    }
}

/// Flags in parentheses, if they are words.
fn flag_list(flags: &[String]) -> Result<String, ImapFailure> {
    match flags.iter().all(|flag| is_flag(flag)) {
        true => Ok(format!("({})", flags.join(" "))),
        false => Err(ImapFailure::Protocol("flags that are no words")),
    }
}

/// `UIDVALIDITY UID`.
fn appended(argument: &str) -> Option<(u32, u32)> {
    let (uidvalidity, uid) = argument.trim().split_once(' ')?;
    Some((uidvalidity.parse().ok()?, uid.parse().ok()?))
}
