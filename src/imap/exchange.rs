//! Sends commands, several of which may be pending at a time, and reads their responses and the unsolicited ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;

use super::command::{CommandSegment, ImapCommand};
use super::failure::ImapFailure;
use super::response::{
    Condition, ServerResponse, StatusResponse, fetch_items, response, tag, values,
};
use super::wire::Wire;

/// Maximum size, in bytes, of a literal that is sent without waiting for permission if the server supports LITERAL+. Before a
/// larger literal, the client waits, because the server may refuse it and the transfer would be wasted.
const AT_ONCE: usize = 64 << 10;
/// Maximum size of a literal that is sent without waiting if the server supports only LITERAL- (RFC 7888), in bytes.
const AT_ONCE_MINUS: usize = 4096;
/// Maximum number of capabilities that are kept, so that a server cannot fill the memory. Servers announce
/// about fifty.
const MOST_CAPABILITIES: usize = 1000;

/// Data about one message in a response of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageData {
    /// The current flags of a message.
    Flags {
        uid: Option<u32>,
        flags: Vec<String>,
    },
}

/// A command whose result is still outstanding.
#[derive(Clone, Debug)]
pub(crate) struct PendingCommand {
    tag: String,
}

/// Result of a command that succeeded.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandResult {
    /// Name of the response code in upper case. Empty if the result has no code.
    pub(crate) code: String,
    /// Text after the name of the response code, within the brackets.
    pub(crate) argument: String,
}

/// A connection with its pending commands.
pub(crate) struct Exchange {
    wire: Wire,
    last: u64,
    /// Queued commands, sent together with the next one to save a round trip.
    held: Vec<u8>,
    /// Names of the pending commands by tag.
    open: BTreeMap<String, &'static str>,
    /// Results of commands that ended while the caller was waiting for another command.
    ended: BTreeMap<String, Result<CommandResult, ImapFailure>>,
    noted: UnsolicitedData,
    /// Number of unreadable responses so far. If it grows while a command runs, one of these responses may have been
    /// its result, so the caller repeats the command or reports an error.
    odd: u64,
    pub(super) habits: Habits,
}

/// Observed quirks of the server on this connection, which later commands take into account.
#[derive(Default)]
pub(super) struct Habits {
    /// Whether the server returns a whole message when a piece of it was requested.
    pub(super) gives_all: bool,
    /// Whether the server refuses CONDSTORE, although it announces the capability.
    pub(super) refuses_condstore: bool,
    /// Number of consecutive messages that the server refused temporarily.
    pub(super) refused_in_a_row: u32,
    /// Whether temporarily refused messages are skipped at once, because waiting did not help before.
    pub(super) is_resigned: bool,
    /// Whether the content of a message may lack its UID if no other message was requested. Set only for sessions that
    /// change nothing on the server.
    pub(super) accepts_no_uid: bool,
    /// Number of messages with exactly the announced size.
    pub(super) exact_sizes: u64,
    /// Number of messages that are longer than announced, which a second request confirmed.
    pub(super) wrong_sizes: u64,
}

impl Habits {
    /// Returns whether the sizes that the server announces are usually wrong, as those of Exchange.
    pub(super) fn sizes_are_wrong(&self) -> bool {
        self.wrong_sizes >= FEW_WRONG && self.wrong_sizes > self.exact_sizes
    }
}

/// Minimum number of complete messages whose announced size is wrong. With fewer, the announced sizes are trusted.
pub(super) const FEW_WRONG: u64 = 3;

/// Pause before a temporarily refused message is requested again.
const RETRY: Duration = Duration::from_secs(1);

/// Information that the server may send at any time, independent of the pending commands.
#[derive(Default)]
struct UnsolicitedData {
    capabilities: BTreeSet<String>,
    /// Whether `capabilities` is up to date. The list becomes outdated when TLS starts and after the login.
    is_current: bool,
    bye: Option<String>,
    /// The name in the response to ID (RFC 2971).
    server_name: Option<String>,
    /// Number of commands that the server refused, and the text of the last refusal.
    refusals: (u64, String),
}

impl Exchange {
    pub(crate) fn over(wire: Wire) -> Self {
        Self {
            wire,
            last: 0,
            held: Vec::new(),
            open: BTreeMap::new(),
            ended: BTreeMap::new(),
            noted: UnsolicitedData::default(),
            odd: 0,
            habits: Habits::default(),
        }
    }

    /// Returns the number of unreadable responses so far.
    pub(super) fn odd(&self) -> u64 {
        self.odd
    }

    /// Waits for a moment ([`RETRY`]) before a message is requested again.
    pub(super) fn wait_a_moment(&self) -> Result<(), ImapFailure> {
        self.wire.wait(RETRY)
    }

    /// Sets the idle timeout: after this time without any data from the server, the connection is given up.
    pub(super) fn set_silence(&mut self, silence: Duration) {
        self.wire.set_silence(silence);
    }

    pub(super) fn slowest(&self) -> Duration {
        self.wire.slowest()
    }

    /// Sets the maximum size of a response, in bytes. The limit is never lower than the normal one.
    pub(super) fn allow(&mut self, octets: usize) {
        self.wire.allow(octets);
    }

    /// Reads the greeting, the first response of the server.
    pub(crate) fn greeting(&mut self) -> Result<(Condition, String), ImapFailure> {
        let octets = self.wire.response()?;
        match response(octets).map_err(ImapFailure::Protocol)? {
            ServerResponse::Status(status) => {
                self.noted.status(&status);
                Ok((status.condition, status.said()))
            }
            _ => Err(ImapFailure::Protocol("the server sent no greeting")),
        }
    }

    /// Starts TLS. All information that the server sent before is discarded, because it was not encrypted and an attacker could
    /// have changed it.
    pub(crate) fn start_tls(
        &mut self,
        host: &str,
        config: &Arc<ClientConfig>,
    ) -> Result<(), ImapFailure> {
        self.wire.start_tls(host, config)?;
        self.noted = UnsolicitedData::default();
        self.ask_capabilities()
    }

    /// Sends CAPABILITY, unless the list of capabilities is up to date.
    pub(crate) fn ask_capabilities(&mut self) -> Result<(), ImapFailure> {
        if !self.noted.is_current {
            let command = ImapCommand::new("CAPABILITY", "CAPABILITY");
            self.run(command, &mut |_| Ok(false))?;
        }
        Ok(())
    }

    pub(crate) fn doubt_capabilities(&mut self) {
        self.noted.is_current = false;
    }

    /// Returns whether the server has a capability. The name must be in upper case.
    pub(crate) fn has(&self, capability: &str) -> bool {
        self.noted.capabilities.contains(capability)
    }

    /// Returns the name of the server software, if the server sent it in its response to ID.
    pub(super) fn server_name(&self) -> Option<&str> {
        self.noted.server_name.as_deref()
    }

    /// Returns the number of commands that the server refused so far, and the text of the last refusal. Callers compare
    /// the number before and after a FETCH: if it grew, a message that was not returned may still exist.
    pub(super) fn refusals(&self) -> (u64, &str) {
        (self.noted.refusals.0, &self.noted.refusals.1)
    }

    /// Queues a command without literals. It is sent together with the next command. If `name` is empty, its result is
    /// discarded.
    pub(crate) fn hold(&mut self, name: &'static str, text: &str) -> PendingCommand {
        let pending = self.pending(name);
        let line = format!("{} {text}\r\n", pending.tag);
        self.held.extend_from_slice(line.as_bytes());
        pending
    }

    fn pending(&mut self, name: &'static str) -> PendingCommand {
        self.last += 1;
        let tag = format!("e{}", self.last);
        self.open.insert(tag.clone(), name);
        PendingCommand { tag }
    }

    /// Sends a command. Waits until the server accepts each literal, but not for the result of the command.
    pub(crate) fn send(&mut self, command: ImapCommand<'_>) -> Result<PendingCommand, ImapFailure> {
        let pending = self.pending(command.name);
        let mut line = std::mem::take(&mut self.held);
        line.extend_from_slice(format!("{} ", pending.tag).as_bytes());
        for segment in &command.segments {
            let octets = match segment {
                CommandSegment::Text(text) => {
                    line.extend_from_slice(text.as_bytes());
                    continue;
                }
                CommandSegment::Literal(octets) => octets,
            };
            let length = octets.len();
            let is_at_once = length <= AT_ONCE && self.has("LITERAL+")
                || length <= AT_ONCE_MINUS && self.has("LITERAL-");
            if is_at_once {
                line.extend_from_slice(format!("{{{length}+}}\r\n").as_bytes());
                line.extend_from_slice(octets);
                continue;
            }
            line.extend_from_slice(format!("{{{length}}}\r\n").as_bytes());
            self.wire
                .send(&line)
                .map_err(|why| self.noted.instead(why))?;
            line.clear();
            if self.next_of(&pending)?.is_some() {
                return Err(ImapFailure::Protocol(
                    "the server answered a command before the command was complete",
                ));
            }
            // A short literal is sent together with the line ending after it. A separate packet for the line ending might be
            // delayed until the server acknowledges the literal.
            if length <= AT_ONCE {
                line.extend_from_slice(octets);
                continue;
            }
            self.wire
                .send(octets)
                .map_err(|why| self.noted.instead(why))?;
        }
        line.extend_from_slice(b"\r\n");
        self.wire
            .send(&line)
            .map_err(|why| self.noted.instead(why))?;
        Ok(pending)
    }

    /// Sends a line without a tag. During a login, it answers a continuation request of the server.
    pub(crate) fn send_line(&mut self, text: &str) -> Result<(), ImapFailure> {
        self.wire.send(format!("{text}\r\n").as_bytes())
    }

    /// Reads until the end of a command. Returns `None` if the server sends a continuation request.
    pub(crate) fn next_of(
        &mut self,
        pending: &PendingCommand,
    ) -> Result<Option<CommandResult>, ImapFailure> {
        self.read(pending, &mut |_| Ok(false))
    }

    /// Reads responses until a command has ended. `each` is called for each response before the end. It returns true if
    /// the response belongs to the command. From all other responses, capabilities and similar information are kept.
    ///
    /// # Errors
    /// [`ImapFailure::Refused`] for NO and BAD. [`ImapFailure::Unreadable`] from `each` is returned after the end of
    /// the command. Any other error from `each` is returned immediately, and the session must not be used any more.
    pub(crate) fn finish(
        &mut self,
        pending: &PendingCommand,
        each: &mut dyn FnMut(&ServerResponse<'_>) -> Result<bool, ImapFailure>,
    ) -> Result<CommandResult, ImapFailure> {
        match self.read(pending, each)? {
            Some(done) => Ok(done),
            None => Err(ImapFailure::Protocol(
                "the server requested more data for a command that was already complete",
            )),
        }
    }

    /// Sends a command and reads until its end.
    pub(crate) fn run(
        &mut self,
        command: ImapCommand<'_>,
        each: &mut dyn FnMut(&ServerResponse<'_>) -> Result<bool, ImapFailure>,
    ) -> Result<CommandResult, ImapFailure> {
        let pending = self.send(command)?;
        self.finish(&pending, each)
    }

    fn read(
        &mut self,
        pending: &PendingCommand,
        each: &mut dyn FnMut(&ServerResponse<'_>) -> Result<bool, ImapFailure>,
    ) -> Result<Option<CommandResult>, ImapFailure> {
        if let Some(done) = self.ended.remove(&pending.tag) {
            return done.map(Some);
        }
        self.wire.begin();
        let mut unreadable = None;
        loop {
            let octets = match self.wire.response() {
                Ok(octets) => octets,
                Err(why) => return Err(self.noted.instead(why)),
            };
            let length = octets.len();
            let read = match response(octets) {
                Ok(read) => read,
                // If the response that ends a pending command is unreadable, the result of the command is unknown, so
                // this is an error. Other unreadable responses are skipped.
                Err(why)
                    if self
                        .open
                        .contains_key(&*String::from_utf8_lossy(tag(octets))) =>
                {
                    return Err(ImapFailure::Protocol(why));
                }
                Err(_) => {
                    self.odd += u64::from(!octets.trim_ascii().is_empty());
                    self.wire.count(length, false)?;
                    continue;
                }
            };
            let is_answer = match &read {
                ServerResponse::Continue(_) => return Ok(None),
                ServerResponse::Tagged(tag, status) => {
                    let tag = String::from_utf8_lossy(tag).into_owned();
                    let Some(name) = self.open.remove(&tag) else {
                        return Err(ImapFailure::Protocol(
                            "the server answered a command that embody did not send",
                        ));
                    };
                    self.noted.status(status);
                    let done = ended(status, name);
                    if let Err(ImapFailure::Refused { command, text, .. }) = &done {
                        let said = format!("the server refused {command}: {text}");
                        self.noted.refusals = (self.noted.refusals.0 + 1, said);
                    }
                    if tag == pending.tag {
                        return match (done, unreadable) {
                            (Ok(_), Some(why)) => Err(why),
                            (done, _) => done.map(Some),
                        };
                    }
                    if !name.is_empty() {
                        self.ended.insert(tag, done);
                    }
                    true
                }
                read => match each(read) {
                    Ok(is_answer) => {
                        if !is_answer {
                            self.odd += u64::from(is_odd(read));
                            self.noted.note(read);
                        }
                        is_answer
                    }
                    Err(why @ ImapFailure::Unreadable(_)) => {
                        self.odd += 1;
                        unreadable.get_or_insert(why);
                        true
                    }
                    Err(why) => return Err(why),
                },
            };
            self.wire.count(length, is_answer)?;
        }
    }

    /// Sends LOGOUT. Errors are ignored, because the session ends anyway.
    pub(crate) fn logout(mut self) {
        let _ = self.run(ImapCommand::new("LOGOUT", "LOGOUT"), &mut |_| Ok(true));
    }
}

/// Converts the tagged response into the result of the command.
fn ended(status: &StatusResponse<'_>, command: &'static str) -> Result<CommandResult, ImapFailure> {
    match status.condition {
        Condition::Ok => Ok(CommandResult {
            code: status.code.clone(),
            argument: String::from_utf8_lossy(status.argument).into_owned(),
        }),
        _ => Err(ImapFailure::Refused {
            command,
            code: Some(status.code.clone()).filter(|code| !code.is_empty()),
            text: status.said(),
            is_bad: status.condition == Condition::Bad,
        }),
    }
}

impl UnsolicitedData {
    /// Returns the error to report instead of `why`. If the connection broke after the server had announced the end of
    /// the session with BYE, this is [`ImapFailure::Bye`] with the server's text.
    fn instead(&mut self, why: ImapFailure) -> ImapFailure {
        match (why, self.bye.take()) {
            (ImapFailure::Cut(_), Some(said)) => ImapFailure::Bye(said),
            (why, _) => why,
        }
    }

    fn status(&mut self, status: &StatusResponse<'_>) {
        if status.condition == Condition::Bye {
            self.bye = Some(status.said());
        }
        if status.code == "CAPABILITY" {
            self.capabilities(status.argument);
        }
    }

    fn capabilities(&mut self, words: &[u8]) {
        self.capabilities = String::from_utf8_lossy(words)
            .to_ascii_uppercase()
            .split_ascii_whitespace()
            .take(MOST_CAPABILITIES)
            .map(str::to_owned)
            .collect();
        self.is_current = true;
    }

    /// Keeps the information of an unsolicited response that is needed later. Everything else is dropped, because a
    /// server can send any amount of it.
    fn note(&mut self, read: &ServerResponse<'_>) {
        match read {
            ServerResponse::Status(status) => self.status(status),
            ServerResponse::Data(name, words) if name == "CAPABILITY" => self.capabilities(words),
            ServerResponse::Data(name, pairs) if name == "ID" => {
                self.server_name = self.server_name.take().or_else(|| server_name(pairs));
            }
            _ => {}
        }
    }
}

/// Returns whether the type of a response is unknown. Such a response may be the garbled result of a command.
fn is_odd(read: &ServerResponse<'_>) -> bool {
    const WORDS: [&str; 21] = [
        "FLAGS",
        "CAPABILITY",
        "SEARCH",
        "ESEARCH",
        "SORT",
        "THREAD",
        "LIST",
        "LSUB",
        "XLIST",
        "STATUS",
        "NAMESPACE",
        "ID",
        "QUOTA",
        "QUOTAROOT",
        "ACL",
        "MYRIGHTS",
        "LISTRIGHTS",
        "VANISHED",
        "ENABLED",
        "LANGUAGE",
        "COMPARATOR",
    ];
    match read {
        ServerResponse::Numbered(_, word, _) => {
            !["EXISTS", "RECENT", "EXPUNGE", "FETCH"].contains(&word.as_str())
        }
        ServerResponse::Data(word, _) => !WORDS.contains(&word.as_str()),
        _ => false,
    }
}

/// Returns the value of the field `name` in the response to ID: the name of the server software.
fn server_name(pairs: &[u8]) -> Option<String> {
    let pairs = values(pairs).ok()?;
    let (pairs, _) = pairs.first()?.list()?.as_chunks::<2>();
    let is_name = |[key, _]: &&[super::response::ResponseValue<'_>; 2]| {
        key.octets()
            .is_some_and(|key| key.eq_ignore_ascii_case(b"name"))
    };
    let (_, name) = pairs.iter().find(is_name).map(|[key, name]| (key, name))?;
    Some(name.text()?.chars().take(200).collect())
}

/// Parses the flags in an unsolicited FETCH response. Returns `None` if the response contains no flags.
pub(super) fn told(items: &[u8]) -> Option<MessageData> {
    let items = fetch_items(items).ok()?;
    let item = |name: &str| {
        let is_meant = |[key, _]: &&[_; 2]| {
            let key: &super::response::ResponseValue<'_> = key;
            key.octets()
                .is_some_and(|key| key.eq_ignore_ascii_case(name.as_bytes()))
        };
        items.iter().find(is_meant).map(|[_, value]| value)
    };
    let flags = item("FLAGS")?.list()?.iter();
    Some(MessageData::Flags {
        uid: item("UID")
            .and_then(|uid| uid.number())
            .and_then(|uid| u32::try_from(uid).ok()),
        flags: flags
            .filter_map(|flag| Some(flag.text()?.into_owned()))
            .collect(),
    })
}
