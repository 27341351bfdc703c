//! The commands that change what is in a folder: APPEND, STORE, UID EXPUNGE and MOVE, and REPLACE.

use super::command::ImapCommand;
use super::exchange::{Done, PendingCommand, told};
use super::failure::ImapFailure;
use super::response::Response;
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
            .string(folder)
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
            }),
        }
    }

    /// UID MOVE (RFC 6851).
    pub(crate) fn uid_move(&mut self, uid: u32, folder: &str) -> Result<(), ImapFailure> {
        let command = ImapCommand::new("MOVE", &format!("UID MOVE {uid} ")).string(folder);
        self.exchange.run(command, &mut |_| Ok(false)).map(|_| ())
    }

    /// Marks a message as deleted, if it did not change since, asks for its flags, and expunges it, or moves it to `trash`
    /// instead of both. All of it is sent at once: a server does it in a moment, whatever way the answers have to go.
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
        let store = trash.is_none().then(|| {
            // Not silently: servers without CONDSTORE say by the answer that the message is there.
            let since = unchanged_since.map(|modseq| format!(" (UNCHANGEDSINCE {modseq})"));
            let since = since.unwrap_or_default();
            let text = format!("UID STORE {uid}{since} +FLAGS (\\Deleted)");
            self.exchange.hold("STORE", &text)
        });
        let text = format!("UID FETCH {uid} (UID FLAGS)");
        let fetch = self.exchange.hold("FETCH", &text);
        let leave = match trash {
            None => ImapCommand::new("UID EXPUNGE", &format!("UID EXPUNGE {uid}")),
            Some(trash) => ImapCommand::new("MOVE", &format!("UID MOVE {uid} ")).string(trash),
        };
        let leave = self.exchange.send(leave)?;
        let (mut flags, mut is_told) = (None, false);
        let mut answered = |session: &mut Self, pending: &PendingCommand, is_leaving: bool| {
            session.exchange.finish(pending, &mut |read| {
                match read {
                    Response::Numbered(number, word, items) if word == "FETCH" => {
                        if let Some(Event::Flags {
                            uid: Some(found),
                            flags: now,
                            ..
                        }) = told(*number, items)
                            && found == uid
                        {
                            // This one is the server's.
                            let lasting = |flag: &String| !flag.eq_ignore_ascii_case("\\Recent");
                            flags = Some(now.into_iter().filter(lasting).collect());
                        }
                    }
                    Response::Numbered(_, word, _) if word == "EXPUNGE" => is_told |= is_leaving,
                    Response::Data(word, _) if word == "VANISHED" => is_told |= is_leaving,
                    Response::Status(status) if status.code == "COPYUID" => is_told = true,
                    _ => {}
                }
                Ok(false)
            })
        };
        let refused = |done: Result<Done, ImapFailure>| match done {
            Err(why @ ImapFailure::Refused { .. }) => Ok(Err(why)),
            Err(why) => Err(why),
            Ok(done) => Ok(Ok(done)),
        };
        let marked = match store {
            Some(store) => refused(answered(self, &store, false))?,
            None => Ok(Done::default()),
        };
        // Flags that it does not give are those that STORE gave.
        let _ = refused(answered(self, &fetch, false))?;
        let left = refused(answered(self, &leave, true))?;
        is_told |= left.as_ref().is_ok_and(|done| done.code == "COPYUID");
        let is_gone = flags.is_none() && !is_told;
        let stored = match marked {
            Ok(done) if done.code == "MODIFIED" => Stored::Modified,
            Err(ImapFailure::Refused { code, .. }) if code.as_deref() == Some("MODIFIED") => {
                Stored::Modified
            }
            // Servers say it in many words.
            Ok(_) | Err(ImapFailure::Refused { .. }) if is_gone => Stored::Gone,
            Err(why) => return Err(why),
            Ok(_) => {
                left?;
                Stored::Done
            }
        };
        Ok(Removal {
            stored,
            flags,
            is_told,
        })
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
    let is_word = |flag: &String| {
        let word = flag.strip_prefix('\\').unwrap_or(flag);
        let is_plain = |octet: u8| {
            !octet.is_ascii_control() && octet != b' ' && !b"(){%*\"\\".contains(&octet)
        };
        !word.is_empty() && word.bytes().all(is_plain)
    };
    match flags.iter().all(is_word) {
        true => Ok(format!("({})", flags.join(" "))),
        false => Err(ImapFailure::Protocol("flags that are no words")),
    }
}

/// `UIDVALIDITY UID`.
fn appended(argument: &str) -> Option<(u32, u32)> {
    let (uidvalidity, uid) = argument.trim().split_once(' ')?;
    Some((uidvalidity.parse().ok()?, uid.parse().ok()?))
}
