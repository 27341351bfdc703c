//! An authenticated connection to a server, with one method for each command.
//!
//! Responses that a command did not request are discarded. After a failure, the session can continue only if
//! [`ImapFailure::leaves_session`] returns true. A new session may succeed if [`ImapFailure::is_passing`] returns true.

use std::collections::{BTreeMap, HashSet};

use super::account::Account;
use super::bodies;
pub(crate) use super::bodies::{BodyPiece, BodySink};
use super::command::ImapCommand;
use super::exchange::Exchange;
pub(super) use super::exchange::MessageData;
use super::failure::ImapFailure;
use super::fetch;
pub(crate) use super::fetch::{GmailMetadata, Metadata, Structure};
pub(crate) use super::internal_date::InternalDate;
use super::login;
use super::response::{Condition, ResponseValue, ServerResponse, number, permanent_flags, values};
use super::search::found_uids;
use crate::mailbox::Stop;

/// Maximum number of times that a command is sent again for messages that are missing in the response. A server may
/// limit the number of messages in one response. RFC 9738 recommends a limit of at least 1000, and a command requests
/// about 1000 messages, so a few repetitions are enough.
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
    /// Whether the folder is in the namespace of another user or in a shared namespace (RFC 2342).
    pub(crate) is_shared: bool,
}

/// The response to SELECT or EXAMINE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SelectResponse {
    pub(crate) folder: String,
    /// UIDVALIDITY of the folder. It is never 0, because a folder without UIDVALIDITY is rejected.
    pub(crate) uidvalidity: u32,
    /// UID that the next message will get. 0 if the server does not return it.
    pub(crate) uidnext: u32,
    pub(crate) exists: u32,
    /// HIGHESTMODSEQ of the folder. `None` if the server lacks CONDSTORE or the folder answered NOMODSEQ.
    pub(crate) highest_modseq: Option<u64>,
    /// Flags as the server spells them. If `\*` is among them, new keywords can be created.
    pub(crate) permanent_flags: Vec<String>,
    /// Rights of the user in the folder, one letter for each (MYRIGHTS, RFC 4314). `None` if the server does not
    /// support ACL, and empty if it supports ACL but did not return the rights.
    pub(crate) rights: Option<String>,
    pub(crate) is_read_only: bool,
}

/// Effect of STORE on the flags of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FlagChange {
    Add,
    Remove,
}

pub(crate) struct ImapSession {
    pub(super) exchange: Exchange,
    /// Whether the selected folder supports modification sequences (CONDSTORE).
    has_modseq: bool,
    /// Response to the last EXAMINE, if no other folder was opened since.
    examined: Option<SelectResponse>,
}

impl ImapSession {
    /// Connects and logs in. The connection uses TLS unless the account allows plain text.
    ///
    /// # Errors
    /// [`ImapFailure::Connect`], [`ImapFailure::Tls`], [`ImapFailure::Login`], and any failure of the connection.
    pub(crate) fn open(account: &Account, stop: &Stop) -> Result<Self, ImapFailure> {
        Ok(Self {
            exchange: login::logged_in(account, stop)?,
            has_modseq: false,
            examined: None,
        })
    }

    /// Makes the session skip a message as soon as the server refuses it temporarily. This is used if the server still
    /// refused messages after all pauses.
    pub(super) fn resign(&mut self) {
        self.exchange.habits.is_resigned = true;
    }

    /// Makes the session accept the content of a message without a UID, if no other message was requested. A session
    /// that changes messages must not do this.
    pub(super) fn accept_no_uid(&mut self) {
        self.exchange.habits.accepts_no_uid = true;
    }

    /// Sets the time without any data from the server after which a command fails.
    pub(super) fn set_silence(&mut self, silence: std::time::Duration) {
        self.exchange.set_silence(silence);
    }

    /// Returns the longest time after which the server sent data.
    pub(super) fn slowest(&self) -> std::time::Duration {
        self.exchange.slowest()
    }

    /// Returns a session over a connection that is already authenticated.
    #[cfg(any(test, feature = "internals"))]
    pub(super) fn of(exchange: Exchange) -> Self {
        Self {
            exchange,
            has_modseq: false,
            examined: None,
        }
    }

    /// Returns whether the server has a capability, such as `UIDPLUS` or `X-GM-EXT-1`. `name` must be in upper case.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.exchange.has(name)
    }

    /// Opens a folder with EXAMINE. Unlike SELECT, this changes no flags, not even `\Seen` or `\Recent`.
    pub(crate) fn examine(&mut self, folder: &str) -> Result<SelectResponse, ImapFailure> {
        let opened = self.open_folder("EXAMINE", folder)?;
        self.examined = Some(opened.clone());
        Ok(opened)
    }

    /// Whether the folder is still open in exactly this state: UIDNEXT and HIGHESTMODSEQ show that no message was
    /// added, removed or changed. It then need not be opened again, which would cost Dovecot a tenth of a second for
    /// 100,000 messages.
    pub(super) fn has_open(&self, folder: &SelectResponse) -> bool {
        let is_exact = folder.uidnext > 0 && folder.highest_modseq.is_some();
        is_exact && self.examined.as_ref() == Some(folder)
    }

    /// Makes the session open its folder again before the next use, because a command failed.
    pub(super) fn forget_folder(&mut self) {
        self.examined = None;
    }

    /// Opens a folder with SELECT. Uses CONDSTORE and reads the rights (MYRIGHTS) if the server supports these extensions.
    pub(crate) fn select(&mut self, folder: &str) -> Result<SelectResponse, ImapFailure> {
        self.open_folder("SELECT", folder)
    }

    fn open_folder(
        &mut self,
        verb: &'static str,
        folder: &str,
    ) -> Result<SelectResponse, ImapFailure> {
        let rights = if self.has("ACL") {
            Some(self.rights(folder)?)
        } else {
            None
        };
        let has_condstore = self.has("CONDSTORE") || self.has("QRESYNC");
        let opened = if has_condstore && !self.exchange.habits.refuses_condstore {
            self.try_open(verb, folder, true)
        } else {
            self.try_open(verb, folder, false)
        };
        let mut selected = match opened {
            // Some servers announce CONDSTORE but reject it, so the command is repeated without it.
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
            0 => Err(ImapFailure::Unreadable(
                "the server opened a folder without UIDVALIDITY",
            )),
            _ => Ok(selected),
        }
    }

    /// Sends SELECT or EXAMINE. UIDVALIDITY in the result is 0 if the server does not return it.
    fn try_open(
        &mut self,
        verb: &'static str,
        folder: &str,
        with_condstore: bool,
    ) -> Result<SelectResponse, ImapFailure> {
        let mut selected = SelectResponse {
            folder: folder.to_owned(),
            ..SelectResponse::default()
        };
        let mut command = ImapCommand::new(verb, &format!("{verb} ")).folder(folder);
        if with_condstore {
            command = command.text(" (CONDSTORE)");
        }
        self.has_modseq = false;
        self.examined = None;
        // A response code whose number is missing or malformed is ignored. The number 0 means that the server did not
        // send it.
        let number = |argument: &[u8]| number(argument.trim_ascii()).unwrap_or(0);
        let small = |argument: &[u8]| u32::try_from(number(argument)).unwrap_or(0);
        let mut is_counted = false;
        let done = self.exchange.run(command, &mut |read| {
            match read {
                ServerResponse::Numbered(count, word, _) if word == "EXISTS" => {
                    // A number can only fall with EXPUNGE, so the largest one counts. If the folder lists fewer messages, they are
                    // requested by number, and reported if they are missing.
                    selected.exists = selected.exists.max(*count);
                    is_counted = true;
                }
                ServerResponse::Numbered(_, word, _) => return Ok(word == "RECENT"),
                ServerResponse::Status(status) if status.condition == Condition::Ok => {
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
                            let flags = list.as_ref().and_then(fetch::ImapFlags::of);
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
        if !is_counted {
            // Without EXISTS, the folder could not be distinguished from an empty one, and its messages would be skipped
            // silently.
            return Err(ImapFailure::Unreadable(
                "the server did not send the number of messages in the folder (EXISTS)",
            ));
        }
        Ok(selected)
    }

    fn rights(&mut self, folder: &str) -> Result<String, ImapFailure> {
        let mut rights = String::new();
        let command = ImapCommand::new("MYRIGHTS", "MYRIGHTS ").folder(folder);
        let done = self.exchange.run(command, &mut |read| {
            let ServerResponse::Data(word, rest) = read else {
                return Ok(false);
            };
            if word != "MYRIGHTS" {
                return Ok(false);
            }
            let values = values(rest).map_err(ImapFailure::Unreadable)?;
            rights = values
                .get(1)
                .and_then(ResponseValue::text)
                .unwrap_or_default()
                .into_owned();
            Ok(true)
        });
        match done {
            Ok(_) | Err(ImapFailure::Refused { .. } | ImapFailure::Unreadable(_)) => Ok(rights),
            Err(why) => Err(why),
        }
    }

    /// Sends UID SEARCH with criteria in IMAP syntax, such as `LARGER 1000 UNDELETED`. Returns the UIDs in ascending order.
    pub(crate) fn search(&mut self, criteria: &str) -> Result<Vec<u32>, ImapFailure> {
        self.search_for(ImapCommand::new(
            "SEARCH",
            &format!("UID SEARCH {criteria}"),
        ))
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
        // A server may send no SEARCH response if no message matches. But if a response was unreadable, it may have
        // been the result, so the search fails.
        if !is_answered && self.exchange.odd() > odd {
            return Err(ImapFailure::Unreadable(
                "the server did not answer the command SEARCH",
            ));
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Passes the metadata of each message to `each` as soon as it arrives. Messages that no longer exist are skipped.
    /// A server may return only some of the requested messages (RFC 9738), so the command is sent again for the others,
    /// as long as the server returns any of them.
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

    /// Returns the flags, dates and sizes of a few messages, the first bytes of those in `starts`, and whether the server
    /// refused the command ([`fetch::look`]). If the server ignores the requested range and sends whole messages, no first
    /// bytes are requested, because they would be a second download.
    pub(super) fn look(
        &mut self,
        uids: &[u32],
        starts: &[u32],
    ) -> Result<fetch::Glimpses, ImapFailure> {
        let starts = if self.exchange.habits.gives_all {
            &[]
        } else {
            starts
        };
        fetch::look(&mut self.exchange, uids, starts, self.has_modseq)
    }

    /// Returns whether the server sends a whole message when a piece of it was requested.
    pub(super) fn gives_all(&self) -> bool {
        self.exchange.habits.gives_all
    }

    /// Returns the number of unreadable responses so far.
    pub(super) fn odd(&self) -> u64 {
        self.exchange.odd()
    }

    /// Returns the Message-ID of messages. It is empty if a message has none, and missing if the server does not send it.
    pub(super) fn message_ids(
        &mut self,
        uids: &[u32],
    ) -> Result<BTreeMap<u32, Vec<u8>>, ImapFailure> {
        fetch::message_ids(&mut self.exchange, uids)
    }

    /// Returns the number of commands that the server has refused, and the text of the last refusal.
    pub(super) fn refusals(&self) -> (u64, &str) {
        self.exchange.refusals()
    }

    /// Returns the name of the server software (RFC 2971).
    pub(super) fn server_name(&self) -> Option<&str> {
        self.exchange.server_name()
    }

    /// Returns the size of each message (RFC822.SIZE), in ascending order of the UIDs. Messages that no longer exist
    /// are left out. A server may return only some of the requested messages, so the command is sent again for the
    /// others.
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

    /// Downloads messages, given as a UID and its RFC822.SIZE. `sink` receives the content in pieces, small messages
    /// first. It receives all pieces of a message before those of the next one. The last piece of a message is
    /// [`BodyPiece::Whole`] or [`BodyPiece::Gone`].
    pub(crate) fn fetch_bodies(
        &mut self,
        messages: &[(u32, u64)],
        sink: &mut BodySink<'_>,
    ) -> Result<(), ImapFailure> {
        bodies::bodies(&mut self.exchange, messages, sink)
    }

    /// Returns the complete content of one message, or `None` if the message no longer exists.
    ///
    /// # Errors
    /// [`ImapFailure::TooLarge`] if `size` is larger than `most` bytes; the session can continue. [`ImapFailure::Protocol`] if
    /// the server sends more than `most` bytes nevertheless; the session cannot continue.
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
            if is_too_large {
                // The server sends more than it announced and might never stop, so the session ends here.
                return Err(ImapFailure::Protocol(
                    "the server sent a message that is longer than announced",
                ));
            }
            Ok(())
        })?;
        Ok(is_whole.then_some(content))
    }

    /// Requests X-GM-MSGID and X-GM-LABELS. `uids` must be in ascending order.
    pub(crate) fn fetch_gmail(&mut self, uids: &[u32]) -> Result<Vec<GmailMetadata>, ImapFailure> {
        fetch::gmail(&mut self.exchange, uids)
    }

    /// Returns the used and the allowed bytes in the quota of a folder (RFC 9208), or `None` if the folder has no quota.
    pub(crate) fn quota(&mut self, folder: &str) -> Result<Option<(u64, u64)>, ImapFailure> {
        if !self.has("QUOTA") {
            return Ok(None);
        }
        let mut found = None;
        let command = ImapCommand::new("GETQUOTAROOT", "GETQUOTAROOT ").folder(folder);
        let done = self.exchange.run(command, &mut |read| {
            let ServerResponse::Data(word, rest) = read else {
                return Ok(false);
            };
            if word != "QUOTA" {
                return Ok(word == "QUOTAROOT");
            }
            let values = values(rest).map_err(ImapFailure::Unreadable)?;
            let (resources, _) = values
                .get(1)
                .and_then(ResponseValue::list)
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

    /// Sends NOOP. The server can then report changes to the folder, such as new messages.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn noop(&mut self) -> Result<(), ImapFailure> {
        self.exchange
            .run(ImapCommand::new("NOOP", "NOOP"), &mut |_| Ok(false))
            .map(|_| ())
    }

    /// Sends NOOP together with the next command, which saves a round trip.
    pub(super) fn noop_with_next(&mut self) {
        self.exchange.hold("", "NOOP");
    }

    /// Sends LOGOUT. The response is ignored, because the session ends anyway.
    pub(crate) fn logout(self) {
        self.exchange.logout();
    }
}
