//! The commands that change what is in a folder: APPEND, STORE, UID EXPUNGE and MOVE, and REPLACE.

use super::command::ImapCommand;
use super::exchange::{Done, told};
use super::failure::ImapFailure;
use super::fetch;
use super::response::Response;
use super::session::{Event, FlagChange, ImapSession, InternalDate, Stored};

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
        let mut events = Vec::new();
        let done = self.run_noting(ImapCommand::new("STORE", &text), &mut events);
        match done {
            Ok(done) if done.code == "MODIFIED" => Ok(Stored::Modified),
            Ok(_) => {
                let of_it = |event: &Event| match event {
                    Event::Flags {
                        uid: Some(found),
                        modseq,
                        ..
                    } if *found == uid => *modseq,
                    _ => None,
                };
                Ok(Stored::Done {
                    modseq: events.iter().rev().find_map(of_it),
                })
            }
            Err(ImapFailure::Refused {
                code: Some(code), ..
            }) if code == "MODIFIED" => Ok(Stored::Modified),
            Err(ImapFailure::Refused {
                code: Some(code), ..
            }) if matches!(code.as_str(), "EXPUNGEISSUED" | "NONEXISTENT") => Ok(Stored::Gone),
            Err(why) => Err(why),
        }
    }

    /// Runs a command; what comes of modification sequences while it runs.
    fn run_noting(
        &mut self,
        command: ImapCommand<'_>,
        events: &mut Vec<Event>,
    ) -> Result<Done, ImapFailure> {
        self.exchange.run(command, &mut |read| {
            if let Response::Numbered(number, word, items) = read
                && word == "FETCH"
                && events.len() < 100
            {
                events.extend(told(*number, items));
            }
            Ok(false)
        })
    }

    /// UID EXPUNGE of this one message alone (UIDPLUS).
    ///
    /// # Errors
    /// [`ImapFailure::Refused`] without UIDPLUS: EXPUNGE would take other people's mail.
    pub(crate) fn uid_expunge(&mut self, uid: u32) -> Result<(), ImapFailure> {
        if !self.has("UIDPLUS") {
            return Err(ImapFailure::Refused {
                command: "UID EXPUNGE",
                code: None,
                text: "it has no UIDPLUS".to_owned(),
            });
        }
        let command = ImapCommand::new("UID EXPUNGE", &format!("UID EXPUNGE {uid}"));
        self.exchange.run(command, &mut |_| Ok(false)).map(|_| ())
    }

    /// UID MOVE (RFC 6851); UIDVALIDITY and UID in the other folder where the server says them.
    pub(crate) fn uid_move(
        &mut self,
        uid: u32,
        folder: &str,
    ) -> Result<Option<(u32, u32)>, ImapFailure> {
        let command = ImapCommand::new("MOVE", &format!("UID MOVE {uid} ")).string(folder);
        let mut new = None;
        let done = self.exchange.run(command, &mut |read| {
            if let Response::Status(status) = read
                && status.code == "COPYUID"
            {
                new = copied(&String::from_utf8_lossy(status.argument));
            }
            Ok(false)
        })?;
        if done.code == "COPYUID" {
            new = copied(&done.argument);
        }
        Ok(new)
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

/// `UIDVALIDITY UID-THERE UID-HERE`.
fn copied(argument: &str) -> Option<(u32, u32)> {
    let mut words = argument.split_ascii_whitespace();
    let uidvalidity = words.next()?.parse().ok()?;
    let [uid] = fetch::uids_of(words.nth(1)?, 2)?[..] else {
        return None;
    };
    Some((uidvalidity, uid))
}
