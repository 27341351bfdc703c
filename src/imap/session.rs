//! A connection that is logged in: the commands as methods, one after the other.
//!
//! What a server says unasked is kept: [`ImapSession::events`]. Behind a failure for which [`ImapFailure::leaves_session`] holds
//! it can go on; behind others it cannot, and where [`ImapFailure::is_passing`] holds a new one may do better.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::account::{Account, Choice};
use super::command::ImapCommand;
pub(crate) use super::exchange::Event;
use super::exchange::{Done, Exchange};
use super::failure::ImapFailure;
use super::fetch;
pub(crate) use super::fetch::{
    BodyPiece, BodySink, GmailMetadata, InternalDate, Metadata, Structure,
};
use super::login;
use super::names;
use super::response::{Condition, Response, Value, number, values};
use super::wire::Traffic;
use crate::error::Error;
use crate::mailbox::Stop;

/// Folders that a server may have; hostile ones could name folders without end.
const MOST_FOLDERS: usize = 100_000;

/// A folder as LIST gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemoteFolder {
    /// As the server spells it: in modified UTF-7 (RFC 3501 §5.1.3). Commands take this.
    pub(crate) name: String,
    /// What stands between its levels; none: it has none.
    pub(crate) delimiter: Option<char>,
    /// In lower case, with their backslash: `\noselect`, `\all`, `\trash`.
    pub(crate) attributes: Vec<String>,
    /// Whether it lies in a namespace of other users or in a shared one (RFC 2342).
    pub(crate) is_shared: bool,
}

/// What SELECT or EXAMINE says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selected {
    pub(crate) folder: String,
    /// Never 0: a folder without one is refused.
    pub(crate) uidvalidity: u32,
    /// 0 if the server does not say it.
    pub(crate) uidnext: u32,
    pub(crate) exists: u32,
    /// None: no CONDSTORE, or not for this folder (NOMODSEQ).
    pub(crate) highest_modseq: Option<u64>,
    /// As the server spells them; `\*` among them: new keywords may be made.
    pub(crate) permanent_flags: Vec<String>,
    /// The letters of MYRIGHTS (RFC 4314), empty if the server does not tell them; none without ACL.
    pub(crate) rights: Option<String>,
    pub(crate) is_read_only: bool,
}

/// What STORE does to the flags that a message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlagChange {
    Add,
    Remove,
    Replace,
}

/// What became of STORE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Done {
        modseq: Option<u64>,
    },
    /// The message changed since: MODIFIED (RFC 7162 §3.1.3). Nothing was stored.
    Modified,
    /// There is no such message any more, as far as the server says.
    Gone,
}

/// A connection that is logged in.
pub(crate) struct ImapSession {
    exchange: Exchange,
    traffic: Arc<Traffic>,
    /// Whether the selected folder has modification sequences.
    has_modseq: bool,
}

impl ImapSession {
    /// Connects, by TLS unless the account says otherwise, and logs in.
    ///
    /// # Errors
    /// [`ImapFailure::Connect`], [`ImapFailure::Tls`], [`ImapFailure::Login`], and whatever ends a connection.
    pub(crate) fn open(account: &Account, stop: &Stop) -> Result<Self, ImapFailure> {
        let traffic = Arc::default();
        Ok(Self {
            exchange: login::logged_in(account, &traffic, stop)?,
            traffic,
            has_modseq: false,
        })
    }

    /// Over a connection that is logged in.
    #[cfg(any(test, feature = "internals"))]
    pub(super) fn of(exchange: Exchange, traffic: Arc<Traffic>) -> Self {
        Self {
            exchange,
            traffic,
            has_modseq: false,
        }
    }

    /// Whether the server has `name`, which is in upper case: `UIDPLUS`, `X-GM-EXT-1`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.exchange.has(name)
    }

    /// All folders that a choice means, in the order of their names: those that can be selected, that of all mail and shared
    /// ones only if they are named.
    ///
    /// # Errors
    /// [`Error::Usage`] within [`ImapFailure::Run`] if there is none.
    pub(crate) fn folders(&mut self, choice: &Choice) -> Result<Vec<RemoteFolder>, ImapFailure> {
        let is_named = |pattern: &String, folder: &RemoteFolder| {
            names::means(pattern, &folder.name, folder.delimiter)
        };
        let mut all = self.list("*")?;
        if let Some(name) = &choice.folder
            && !all.iter().any(|folder| is_named(name, folder))
        {
            // Shared folders are often not listed before they are named.
            all.extend(self.list(&names::encoded(name))?);
        }
        let can_be_selected = |folder: &RemoteFolder| {
            let not = ["\\noselect", "\\nonexistent"];
            !folder
                .attributes
                .iter()
                .any(|attribute| not.contains(&attribute.as_str()))
        };
        all.retain(can_be_selected);
        let is_all = |folder: &RemoteFolder| folder.attributes.iter().any(|it| it == "\\all");
        let has_others = all.iter().any(|folder| !is_all(folder));
        all.retain(|folder| {
            let named = choice.folder.iter().any(|name| is_named(name, folder));
            let chosen = choice.folders.iter().any(|name| is_named(name, folder));
            // A pattern in a URL means what LIST gives for it; a name means that one.
            let exactly = named
                && choice
                    .folder
                    .as_deref()
                    .is_some_and(|name| !name.contains(['*', '%']))
                || chosen;
            (choice.folder.is_none() || named)
                && (choice.folders.is_empty() || chosen)
                && !choice.not_folders.iter().any(|name| is_named(name, folder))
                && (exactly || !folder.is_shared)
                && (exactly || !has_others || !is_all(folder))
        });
        if all.is_empty() {
            let what = match &choice.folder {
                Some(name) => format!("the server has no folder {name} that can be read"),
                None => "no folder is left to read; embody inspect names those that there are"
                    .to_owned(),
            };
            return Err(Error::Usage(what.into()).into());
        }
        Ok(all)
    }

    /// All folders that LIST gives for a pattern, which is in modified UTF-7; in the order of their names, each once.
    pub(crate) fn list(&mut self, pattern: &str) -> Result<Vec<RemoteFolder>, ImapFailure> {
        let shared = self.shared_namespaces()?;
        let mut command = ImapCommand::new("LIST", "LIST \"\" ").string(pattern);
        if self.has("SPECIAL-USE") && self.has("LIST-EXTENDED") {
            command = command.text(" RETURN (SPECIAL-USE)");
        }
        let mut found: BTreeMap<String, RemoteFolder> = BTreeMap::new();
        self.exchange.run(command, &mut |read| {
            let Response::Data(word, rest) = read else {
                return Ok(false);
            };
            if word != "LIST" {
                return Ok(false);
            }
            let values = values(rest).map_err(ImapFailure::Protocol)?;
            let [attributes, delimiter, name, ..] = values.as_slice() else {
                return Err(ImapFailure::Protocol("LIST without a name"));
            };
            let name = name.text().unwrap_or_default().into_owned();
            let is_usable =
                !name.is_empty() && name.len() <= 4096 && !name.contains(char::is_control);
            if is_usable && found.len() < MOST_FOLDERS {
                let attributes = attributes.list().unwrap_or_default().iter();
                let folder = RemoteFolder {
                    delimiter: delimiter.text().and_then(|text| text.chars().next()),
                    attributes: attributes
                        .filter_map(|it| Some(it.text()?.to_ascii_lowercase()))
                        .collect(),
                    is_shared: shared.iter().any(|prefix| name.starts_with(prefix)),
                    name: name.clone(),
                };
                found.insert(name, folder);
            }
            Ok(true)
        })?;
        Ok(found.into_values().collect())
    }

    /// What the names of folders of other users, and of shared ones, start with.
    fn shared_namespaces(&mut self) -> Result<Vec<String>, ImapFailure> {
        let mut prefixes = Vec::new();
        if !self.has("NAMESPACE") {
            return Ok(prefixes);
        }
        self.exchange
            .run(ImapCommand::new("NAMESPACE", "NAMESPACE"), &mut |read| {
                let Response::Data(word, rest) = read else {
                    return Ok(false);
                };
                if word != "NAMESPACE" {
                    return Ok(false);
                }
                let values = values(rest).map_err(ImapFailure::Protocol)?;
                for namespace in values.iter().skip(1).filter_map(Value::list).flatten() {
                    let prefix = namespace.list().and_then(|it| it.first()?.text());
                    prefixes.extend(prefix.filter(|it| !it.is_empty()).map(|it| it.into_owned()));
                }
                Ok(true)
            })?;
        Ok(prefixes)
    }

    /// EXAMINE: nothing changes, no flag either.
    pub(crate) fn examine(&mut self, folder: &str) -> Result<Selected, ImapFailure> {
        self.open_folder("EXAMINE", folder)
    }

    /// SELECT, with CONDSTORE where there is one, and MYRIGHTS where there is ACL.
    pub(crate) fn select(&mut self, folder: &str) -> Result<Selected, ImapFailure> {
        self.open_folder("SELECT", folder)
    }

    fn open_folder(&mut self, verb: &'static str, folder: &str) -> Result<Selected, ImapFailure> {
        let mut selected = Selected {
            folder: folder.to_owned(),
            ..Selected::default()
        };
        if self.has("ACL") {
            selected.rights = Some(self.rights(folder)?);
        }
        let mut command = ImapCommand::new(verb, &format!("{verb} ")).string(folder);
        if self.has("CONDSTORE") || self.has("QRESYNC") {
            command = command.text(" (CONDSTORE)");
        }
        self.has_modseq = false;
        // What was said of the folder before.
        self.exchange.events();
        let number = |argument: &[u8]| {
            let digits = argument.trim_ascii();
            number(digits).ok_or(ImapFailure::Protocol("a code without its number"))
        };
        let small = |argument: &[u8]| {
            let number = u32::try_from(number(argument)?);
            number.map_err(|_| ImapFailure::Protocol("a number that is too large"))
        };
        let done = self.exchange.run(command, &mut |read| {
            match read {
                Response::Numbered(count, word, _) if word == "EXISTS" => selected.exists = *count,
                Response::Numbered(_, word, _) => return Ok(word == "RECENT"),
                Response::Status(status) if status.condition == Condition::Ok => {
                    match status.code.as_str() {
                        "UIDVALIDITY" => selected.uidvalidity = small(status.argument)?,
                        "UIDNEXT" => selected.uidnext = small(status.argument)?,
                        "HIGHESTMODSEQ" => {
                            let highest = number(status.argument)?;
                            selected.highest_modseq = Some(highest).filter(|it| *it > 0);
                        }
                        "NOMODSEQ" => selected.highest_modseq = None,
                        "PERMANENTFLAGS" => {
                            let values = values(status.argument).map_err(ImapFailure::Protocol)?;
                            selected.permanent_flags = match values.first() {
                                Some(value) => fetch::flags(value)?,
                                None => Vec::new(),
                            };
                        }
                        _ => return Ok(false),
                    }
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        selected.is_read_only = done.code == "READ-ONLY";
        self.has_modseq = selected.highest_modseq.is_some();
        match selected.uidvalidity {
            0 => Err(ImapFailure::Protocol("a folder without UIDVALIDITY")),
            _ => Ok(selected),
        }
    }

    fn rights(&mut self, folder: &str) -> Result<String, ImapFailure> {
        let mut rights = String::new();
        let command = ImapCommand::new("MYRIGHTS", "MYRIGHTS ").string(folder);
        let done = self.exchange.run(command, &mut |read| {
            let Response::Data(word, rest) = read else {
                return Ok(false);
            };
            if word != "MYRIGHTS" {
                return Ok(false);
            }
            let values = values(rest).map_err(ImapFailure::Protocol)?;
            rights = values
                .get(1)
                .and_then(Value::text)
                .unwrap_or_default()
                .into_owned();
            Ok(true)
        });
        match done {
            Ok(_) | Err(ImapFailure::Refused { .. }) => Ok(rights),
            Err(why) => Err(why),
        }
    }

    /// UID SEARCH with criteria as they go over the wire: `LARGER 1000 UNDELETED`. In ascending order.
    pub(crate) fn search(&mut self, criteria: &str) -> Result<Vec<u32>, ImapFailure> {
        self.search_for(ImapCommand::new(
            "SEARCH",
            &format!("UID SEARCH {criteria}"),
        ))
    }

    /// UID SEARCH of messages with `text` in a header field; `more` stands before: `UNDELETED`.
    pub(crate) fn search_header(
        &mut self,
        more: &str,
        field: &str,
        text: &str,
    ) -> Result<Vec<u32>, ImapFailure> {
        let command = ImapCommand::new("SEARCH", &format!("UID SEARCH {more} HEADER "));
        self.search_for(command.string(field).text(" ").string(text))
    }

    fn search_for(&mut self, command: ImapCommand<'_>) -> Result<Vec<u32>, ImapFailure> {
        let mut found = Vec::new();
        self.exchange.run(command, &mut |read| {
            let Response::Data(word, rest) = read else {
                return Ok(false);
            };
            if word != "SEARCH" {
                return Ok(false);
            }
            for digits in rest
                .split(|octet| *octet == b' ')
                .filter(|it| !it.is_empty())
            {
                // (MODSEQ 917162500) stands behind the last one.
                if digits.starts_with(b"(") {
                    break;
                }
                let uid = number(digits).and_then(|uid| u32::try_from(uid).ok());
                let uid = uid.filter(|uid| *uid > 0);
                found.push(uid.ok_or(ImapFailure::Protocol("SEARCH that finds no numbers"))?);
            }
            match found.len() > super::wire::LONGEST {
                true => Err(ImapFailure::Protocol("SEARCH that finds too much")),
                false => Ok(true),
            }
        })?;
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// What the messages are like, pipelined; each is handed on as it comes. UIDs that are not there any more are left out.
    pub(crate) fn fetch_metadata(
        &mut self,
        uids: &[u32],
        with: Structure,
        each: &mut dyn FnMut(Metadata) -> Result<(), ImapFailure>,
    ) -> Result<(), ImapFailure> {
        fetch::metadata(&mut self.exchange, uids, with, self.has_modseq, each)
    }

    /// RFC822.SIZE of messages, whose UIDs are in ascending order; those that are not there any more are left out.
    pub(crate) fn fetch_sizes(&mut self, uids: &[u32]) -> Result<Vec<(u32, u64)>, ImapFailure> {
        fetch::sizes(&mut self.exchange, uids)
    }

    /// The whole of each message, given by UID and RFC822.SIZE, in pieces, pipelined, small ones first. The pieces of a
    /// message are not mixed with others. Each ends with [`BodyPiece::Whole`] or [`BodyPiece::Gone`].
    pub(crate) fn fetch_bodies(
        &mut self,
        messages: &[(u32, u64)],
        sink: &mut BodySink<'_>,
    ) -> Result<(), ImapFailure> {
        fetch::bodies(&mut self.exchange, messages, sink)
    }

    /// The whole of one message; none if it is gone.
    ///
    /// # Errors
    /// [`ImapFailure::TooLarge`] for more than `most` octets; the session can go on if the server had told its size.
    pub(crate) fn fetch_body(
        &mut self,
        uid: u32,
        size: u64,
        most: usize,
    ) -> Result<Option<Vec<u8>>, ImapFailure> {
        if size > most as u64 {
            return Err(ImapFailure::TooLarge(most));
        }
        let (mut content, mut is_whole, mut is_too_large) = (Vec::new(), false, false);
        self.fetch_bodies(&[(uid, size)], &mut |_, piece| {
            match piece {
                BodyPiece::Octets(octets) if content.len() + octets.len() > most => {
                    is_too_large = true
                }
                BodyPiece::Octets(octets) => content.extend_from_slice(octets),
                BodyPiece::Whole => is_whole = true,
                BodyPiece::Gone => {}
            }
            match is_too_large {
                // Whatever the server goes on to send.
                true => Err(ImapFailure::Protocol(
                    "a message that is longer than the server said",
                )),
                false => Ok(()),
            }
        })?;
        Ok(is_whole.then_some(content))
    }

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
                events.extend(super::exchange::told(*number, items));
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

    /// X-GM-MSGID and X-GM-LABELS; the UIDs are in ascending order.
    pub(crate) fn fetch_gmail(&mut self, uids: &[u32]) -> Result<Vec<GmailMetadata>, ImapFailure> {
        fetch::gmail(&mut self.exchange, uids)
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

    /// Used and allowed bytes of the quota of a folder (RFC 9208); none where there is none.
    pub(crate) fn quota(&mut self, folder: &str) -> Result<Option<(u64, u64)>, ImapFailure> {
        if !self.has("QUOTA") {
            return Ok(None);
        }
        let mut found = None;
        let command = ImapCommand::new("GETQUOTAROOT", "GETQUOTAROOT ").string(folder);
        let done = self.exchange.run(command, &mut |read| {
            let Response::Data(word, rest) = read else {
                return Ok(false);
            };
            if word != "QUOTA" {
                return Ok(word == "QUOTAROOT");
            }
            let values = values(rest).map_err(ImapFailure::Protocol)?;
            let (resources, _) = values
                .get(1)
                .and_then(Value::list)
                .unwrap_or_default()
                .as_chunks::<3>();
            for [name, used, most] in resources {
                let is_storage = name
                    .text()
                    .is_some_and(|name| name.eq_ignore_ascii_case("STORAGE"));
                if let (true, Some(used), Some(most)) = (is_storage, used.number(), most.number()) {
                    found = Some((used.saturating_mul(1024), most.saturating_mul(1024)));
                }
            }
            Ok(true)
        });
        match done {
            Ok(_) | Err(ImapFailure::Refused { .. }) => Ok(found),
            Err(why) => Err(why),
        }
    }

    /// NOOP: lets the server say what happened.
    pub(crate) fn noop(&mut self) -> Result<(), ImapFailure> {
        self.exchange
            .run(ImapCommand::new("NOOP", "NOOP"), &mut |_| Ok(false))
            .map(|_| ())
    }

    /// What came unasked since this was called last, or since the folder was selected, in its order.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        self.exchange.events()
    }

    /// Octets that were read and written so far; with TLS those of its records.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        self.traffic.so_far()
    }

    /// LOGOUT; what the server says to it does not matter.
    pub(crate) fn logout(self) {
        self.exchange.logout();
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
