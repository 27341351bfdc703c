//! A connection that is logged in: the commands as methods, one after the other.
//!
//! What a server says unasked is dropped. Behind a failure for which [`ImapFailure::leaves_session`] holds
//! it can go on; behind others it cannot, and where [`ImapFailure::is_passing`] holds a new one may do better.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::account::Account;
use super::bodies;
pub(crate) use super::bodies::{BodyPiece, BodySink};
use super::command::ImapCommand;
pub(super) use super::exchange::Event;
use super::exchange::Exchange;
use super::failure::ImapFailure;
use super::fetch;
pub(crate) use super::fetch::{GmailMetadata, InternalDate, Metadata, Structure};
use super::login;
use super::response::{Condition, Response, Value, number, permanent_flags, values};
use super::search::found_uids;
use super::wire::Traffic;
use crate::mailbox::Stop;

/// Maximum number of times that a command is repeated, because a server may return only some of the messages. RFC 9738
/// recommends that it returns at least 1000, which is about the number of messages in one command.
const MOST_ROUNDS: usize = 20;

/// A folder in the response to LIST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemoteFolder {
    /// Name as the server spells it, in modified UTF-7 (RFC 3501 §5.1.3). Commands use this form.
    pub(crate) name: String,
    /// Character between the levels of the name. `None` if the name has no levels.
    pub(crate) delimiter: Option<char>,
    /// Attributes in lower case, with their backslash, such as `\noselect`, `\all` or `\trash`.
    pub(crate) attributes: Vec<String>,
    /// Whether the folder is in a namespace of other users or in a shared one (RFC 2342).
    pub(crate) is_shared: bool,
}

/// The response to SELECT or EXAMINE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selected {
    pub(crate) folder: String,
    /// Never 0, because a folder without UIDVALIDITY is refused.
    pub(crate) uidvalidity: u32,
    /// 0 if the server does not return it.
    pub(crate) uidnext: u32,
    pub(crate) exists: u32,
    /// `None` if the server lacks CONDSTORE or the folder answered NOMODSEQ.
    pub(crate) highest_modseq: Option<u64>,
    /// Flags as the server spells them. If `\*` is among them, new keywords can be created.
    pub(crate) permanent_flags: Vec<String>,
    /// Letters of MYRIGHTS (RFC 4314). Empty if the server does not return them, `None` if it lacks ACL.
    pub(crate) rights: Option<String>,
    pub(crate) is_read_only: bool,
}

/// What STORE does to the flags that a message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FlagChange {
    Add,
    Remove,
    Replace,
}

/// A connection that is logged in.
pub(crate) struct ImapSession {
    pub(super) exchange: Exchange,
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

    /// Messages that the server does not give for the moment are given up from here on: waiting did not help.
    pub(super) fn resign(&mut self) {
        self.exchange.habits.is_resigned = true;
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

    /// EXAMINE: nothing changes, no flag either.
    pub(crate) fn examine(&mut self, folder: &str) -> Result<Selected, ImapFailure> {
        self.open_folder("EXAMINE", folder)
    }

    /// SELECT, with CONDSTORE where there is one, and MYRIGHTS where there is ACL.
    pub(crate) fn select(&mut self, folder: &str) -> Result<Selected, ImapFailure> {
        self.open_folder("SELECT", folder)
    }

    fn open_folder(&mut self, verb: &'static str, folder: &str) -> Result<Selected, ImapFailure> {
        let rights = match self.has("ACL") {
            true => Some(self.rights(folder)?),
            false => None,
        };
        let has_condstore = self.has("CONDSTORE") || self.has("QRESYNC");
        let opened = match has_condstore && !self.exchange.habits.refuses_condstore {
            true => self.try_open(verb, folder, true),
            false => self.try_open(verb, folder, false),
        };
        let mut selected = match opened {
            // Some servers have it in their list of capabilities alone.
            Err(ImapFailure::Refused { is_bad: true, .. })
                if has_condstore && !self.exchange.habits.refuses_condstore =>
            {
                self.exchange.habits.refuses_condstore = true;
                self.try_open(verb, folder, false)?
            }
            opened => opened?,
        };
        selected.rights = rights;
        self.has_modseq = selected.highest_modseq.is_some();
        if selected.uidvalidity == 0 {
            selected.uidvalidity = self.uidvalidity(folder)?;
        }
        match selected.uidvalidity {
            0 => Err(ImapFailure::Unreadable("a folder without UIDVALIDITY")),
            _ => Ok(selected),
        }
    }

    /// SELECT or EXAMINE. UIDVALIDITY may be missing.
    fn try_open(
        &mut self,
        verb: &'static str,
        folder: &str,
        with_condstore: bool,
    ) -> Result<Selected, ImapFailure> {
        let mut selected = Selected {
            folder: folder.to_owned(),
            ..Selected::default()
        };
        let mut command = ImapCommand::new(verb, &format!("{verb} ")).folder(folder);
        if with_condstore {
            command = command.text(" (CONDSTORE)");
        }
        self.has_modseq = false;
        // A code without its number is none.
        let number = |argument: &[u8]| number(argument.trim_ascii()).unwrap_or(0);
        let small = |argument: &[u8]| u32::try_from(number(argument)).unwrap_or(0);
        let mut is_counted = false;
        let done = self.exchange.run(command, &mut |read| {
            match read {
                Response::Numbered(count, word, _) if word == "EXISTS" => {
                    selected.exists = *count;
                    is_counted = true;
                }
                Response::Numbered(_, word, _) => return Ok(word == "RECENT"),
                Response::Status(status) if status.condition == Condition::Ok => {
                    match status.code.as_str() {
                        "UIDVALIDITY" => selected.uidvalidity = small(status.argument),
                        "UIDNEXT" => selected.uidnext = small(status.argument),
                        "HIGHESTMODSEQ" => {
                            let highest = number(status.argument);
                            selected.highest_modseq = Some(highest).filter(|it| *it > 0);
                        }
                        "NOMODSEQ" => selected.highest_modseq = None,
                        "PERMANENTFLAGS" => {
                            let list = permanent_flags(status.argument);
                            let flags = list.as_ref().and_then(fetch::Flags::of);
                            selected.permanent_flags = flags.unwrap_or_default().words;
                        }
                        _ => return Ok(false),
                    }
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        selected.is_read_only = done.code == "READ-ONLY";
        match is_counted {
            true => Ok(selected),
            // An empty folder is not to be told from it.
            false => Err(ImapFailure::Unreadable(
                "the number of messages in the folder (EXISTS) is missing",
            )),
        }
    }

    /// UIDVALIDITY by STATUS, for servers that do not say it when a folder is opened; 0 if they do not say it then, either.
    fn uidvalidity(&mut self, folder: &str) -> Result<u32, ImapFailure> {
        let mut found = 0;
        let command = ImapCommand::new("STATUS", "STATUS ")
            .folder(folder)
            .text(" (UIDVALIDITY)");
        let done = self.exchange.run(command, &mut |read| {
            let Response::Data(word, rest) = read else {
                return Ok(false);
            };
            if word != "STATUS" {
                return Ok(false);
            }
            let values = values(rest).map_err(ImapFailure::Unreadable)?;
            let pairs = values.last().and_then(Value::list).unwrap_or_default();
            let (pairs, _) = pairs.as_chunks::<2>();
            for [name, value] in pairs {
                let is_meant = name
                    .text()
                    .is_some_and(|name| name.eq_ignore_ascii_case("UIDVALIDITY"));
                let number = value.number().and_then(|it| u32::try_from(it).ok());
                if let (true, Some(number)) = (is_meant, number) {
                    found = number;
                }
            }
            Ok(true)
        });
        match done {
            Ok(_) | Err(ImapFailure::Refused { .. } | ImapFailure::Unreadable(_)) => Ok(found),
            Err(why) => Err(why),
        }
    }

    fn rights(&mut self, folder: &str) -> Result<String, ImapFailure> {
        let mut rights = String::new();
        let command = ImapCommand::new("MYRIGHTS", "MYRIGHTS ").folder(folder);
        let done = self.exchange.run(command, &mut |read| {
            let Response::Data(word, rest) = read else {
                return Ok(false);
            };
            if word != "MYRIGHTS" {
                return Ok(false);
            }
            let values = values(rest).map_err(ImapFailure::Unreadable)?;
            rights = values
                .get(1)
                .and_then(Value::text)
                .unwrap_or_default()
                .into_owned();
            Ok(true)
        });
        match done {
            Ok(_) | Err(ImapFailure::Refused { .. } | ImapFailure::Unreadable(_)) => Ok(rights),
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
        let odd = self.exchange.odd();
        let mut is_answered = false;
        self.exchange.run(command, &mut |read| {
            let is_found = found_uids(read, &mut found).map_err(ImapFailure::Unreadable)?;
            is_answered |= is_found;
            Ok(is_found)
        })?;
        // An empty result cannot be told apart from a garbled one.
        if !is_answered && self.exchange.odd() > odd {
            return Err(ImapFailure::Unreadable("no answer to SEARCH"));
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Passes the metadata of each message to `each` as the responses arrive. The commands are pipelined. Messages that no
    /// longer exist are skipped. A server may return only some of the messages for one command (RFC 9738), so the command is
    /// repeated for the others as long as the server returns more.
    pub(crate) fn fetch_metadata(
        &mut self,
        uids: &[u32],
        with: Structure,
        each: &mut dyn FnMut(Metadata) -> Result<(), ImapFailure>,
    ) -> Result<(), ImapFailure> {
        let mut rest = uids.to_vec();
        for _ in 0..MOST_ROUNDS {
            let mut told = HashSet::new();
            let (exchange, has_modseq) = (&mut self.exchange, self.has_modseq);
            fetch::metadata(exchange, &rest, with, has_modseq, &mut |message| {
                told.insert(message.uid);
                each(message)
            })?;
            rest.retain(|uid| !told.contains(uid));
            if told.is_empty() || rest.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the flags and dates of a few messages, and whether the server refused the command ([`fetch::look`]).
    pub(super) fn look(&mut self, uids: &[u32]) -> Result<fetch::Glimpses, ImapFailure> {
        fetch::look(&mut self.exchange, uids, self.has_modseq)
    }

    /// Returns the number of commands that the server has refused, and the text of the last refusal.
    pub(super) fn refusals(&self) -> (u64, &str) {
        self.exchange.refusals()
    }

    /// Returns the name of the server software (RFC 2971).
    pub(super) fn server_name(&self) -> Option<&str> {
        self.exchange.server_name()
    }

    /// Returns the RFC822.SIZE of messages, in ascending order of the UIDs. Messages that no longer exist are left out. A
    /// server may return only some of the messages for one command, so the command is repeated for the others.
    pub(crate) fn fetch_sizes(&mut self, uids: &[u32]) -> Result<Vec<(u32, u64)>, ImapFailure> {
        let mut rest = uids.to_vec();
        let mut sizes = BTreeMap::new();
        for _ in 0..MOST_ROUNDS {
            let before = sizes.len();
            sizes.extend(fetch::sizes(&mut self.exchange, &rest)?);
            rest.retain(|uid| !sizes.contains_key(uid));
            if sizes.len() == before || rest.is_empty() {
                break;
            }
        }
        Ok(sizes.into_iter().collect())
    }

    /// The whole of each message, given by UID and RFC822.SIZE, in pieces, pipelined, small ones first. The pieces of a
    /// message are not mixed with others. Each ends with [`BodyPiece::Whole`] or [`BodyPiece::Gone`].
    pub(crate) fn fetch_bodies(
        &mut self,
        messages: &[(u32, u64)],
        sink: &mut BodySink<'_>,
    ) -> Result<(), ImapFailure> {
        bodies::bodies(&mut self.exchange, messages, sink)
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
                    "a message that is longer than the server announced",
                )),
                false => Ok(()),
            }
        })?;
        Ok(is_whole.then_some(content))
    }

    /// X-GM-MSGID and X-GM-LABELS; the UIDs are in ascending order.
    pub(crate) fn fetch_gmail(&mut self, uids: &[u32]) -> Result<Vec<GmailMetadata>, ImapFailure> {
        fetch::gmail(&mut self.exchange, uids)
    }

    /// Used and allowed bytes of the quota of a folder (RFC 9208); none where there is none.
    pub(crate) fn quota(&mut self, folder: &str) -> Result<Option<(u64, u64)>, ImapFailure> {
        if !self.has("QUOTA") {
            return Ok(None);
        }
        let mut found = None;
        let command = ImapCommand::new("GETQUOTAROOT", "GETQUOTAROOT ").folder(folder);
        let done = self.exchange.run(command, &mut |read| {
            let Response::Data(word, rest) = read else {
                return Ok(false);
            };
            if word != "QUOTA" {
                return Ok(word == "QUOTAROOT");
            }
            let values = values(rest).map_err(ImapFailure::Unreadable)?;
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
            Ok(_) | Err(ImapFailure::Refused { .. } | ImapFailure::Unreadable(_)) => Ok(found),
            Err(why) => Err(why),
        }
    }

    /// NOOP: lets the server say what happened.
    pub(crate) fn noop(&mut self) -> Result<(), ImapFailure> {
        self.exchange
            .run(ImapCommand::new("NOOP", "NOOP"), &mut |_| Ok(false))
            .map(|_| ())
    }

    /// NOOP together with the command that is sent next.
    pub(super) fn noop_with_next(&mut self) {
        self.exchange.hold("", "NOOP");
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
