//! Commands and what a server answers to them, several of which may be under way, and what it says unasked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;

use super::command::{ImapCommand, Segment};
use super::failure::ImapFailure;
use super::response::{Condition, Response, Status, fetch_items, response, tag, values};
use super::wire::Wire;

/// Literals that are sent before the server says that it takes them, where it can bear that: refusing larger ones costs too
/// much.
const AT_ONCE: usize = 64 << 10;
/// The same with LITERAL- (RFC 7888).
const AT_ONCE_MINUS: usize = 4096;
/// Capabilities that are kept; servers have about fifty.
const MOST_CAPABILITIES: usize = 1000;

/// Data about one message in a response of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The flags that a message has now.
    Flags {
        uid: Option<u32>,
        flags: Vec<String>,
    },
}

/// A command that is under way.
#[derive(Clone, Debug)]
pub(crate) struct PendingCommand {
    tag: String,
}

/// How a command ended well.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// Of the response code, in upper case; empty: none.
    pub(crate) code: String,
    /// What stands behind it.
    pub(crate) argument: String,
}

/// A connection with commands on it.
pub(crate) struct Exchange {
    wire: Wire,
    last: u64,
    /// What goes out with the next command.
    held: Vec<u8>,
    /// Commands that are not at their end.
    open: BTreeMap<String, &'static str>,
    /// Commands that ended before their turn.
    ended: BTreeMap<String, Result<Done, ImapFailure>>,
    noted: Noted,
    /// Responses that could not be read, on this connection so far. Where it grows, what a command asked for may have been in
    /// one of them.
    odd: u64,
    /// Behaviour of this server on the connection so far.
    pub(super) habits: Habits,
}

/// Behaviour of a server on this connection, and the reaction to it.
#[derive(Default)]
pub(super) struct Habits {
    /// It gives whole messages where a piece was asked for.
    pub(super) gives_all: bool,
    /// It refuses CONDSTORE, which it claims to have.
    pub(super) refuses_condstore: bool,
    /// Messages one after the other that it refused to give for the moment.
    pub(super) refused_in_a_row: u32,
    /// Whether such messages are given up, however many they are: waiting did not help.
    pub(super) is_resigned: bool,
}

/// How long a message waits that the server did not give for the moment, before it is asked for once more.
const RETRY: Duration = Duration::from_secs(1);

/// What the server said besides answers.
#[derive(Default)]
struct Noted {
    capabilities: BTreeSet<String>,
    /// Whether the capabilities are those of now.
    is_current: bool,
    bye: Option<String>,
    /// The name in the response to ID (RFC 2971).
    server_name: Option<String>,
    /// Number of commands that were refused, and what the server said to the last of them.
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
            noted: Noted::default(),
            odd: 0,
            habits: Habits::default(),
        }
    }

    /// Responses that could not be read so far.
    pub(super) fn odd(&self) -> u64 {
        self.odd
    }

    /// Waits a moment before something is asked for again.
    pub(super) fn wait_a_moment(&self) -> Result<(), ImapFailure> {
        self.wire.wait(RETRY)
    }

    /// Allows responses of so many octets, or of as many as any response may have.
    pub(super) fn allow(&mut self, octets: usize) {
        self.wire.allow(octets);
    }

    /// What a server says first.
    pub(crate) fn greeting(&mut self) -> Result<(Condition, String), ImapFailure> {
        let octets = self.wire.response()?;
        match response(octets).map_err(ImapFailure::Protocol)? {
            Response::Status(status) => {
                self.noted.status(&status);
                Ok((status.condition, status.said()))
            }
            _ => Err(ImapFailure::Protocol("no greeting")),
        }
    }

    /// TLS from here on. Nothing that was said before counts.
    pub(crate) fn start_tls(
        &mut self,
        host: &str,
        config: &Arc<ClientConfig>,
    ) -> Result<(), ImapFailure> {
        self.wire.start_tls(host, config)?;
        self.noted = Noted::default();
        self.ask_capabilities()
    }

    /// Asks for them, unless the server just said them.
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

    /// Whether the server has it; in upper case.
    pub(crate) fn has(&self, capability: &str) -> bool {
        self.noted.capabilities.contains(capability)
    }

    /// The name that the server's program gives itself, if it answered ID with one.
    pub(super) fn server_name(&self) -> Option<&str> {
        self.noted.server_name.as_deref()
    }

    /// Number of commands that were refused so far, and what the server said to the last of them. A FETCH that was refused
    /// and gave nothing does not say that there is nothing.
    pub(super) fn refusals(&self) -> (u64, &str) {
        (self.noted.refusals.0, &self.noted.refusals.1)
    }

    /// A command without literals that goes out together with the one that is sent next. Nobody waits for the end of one
    /// without a name.
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

    /// Sends a command, and waits for what takes its literals, not for its end.
    pub(crate) fn send(&mut self, command: ImapCommand<'_>) -> Result<PendingCommand, ImapFailure> {
        let pending = self.pending(command.name);
        let mut line = std::mem::take(&mut self.held);
        line.extend_from_slice(format!("{} ", pending.tag).as_bytes());
        for segment in &command.segments {
            let octets = match segment {
                Segment::Text(text) => {
                    line.extend_from_slice(text.as_bytes());
                    continue;
                }
                Segment::Literal(octets) => octets,
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
                    "the result of a command that was not completely sent yet",
                ));
            }
            // An end of line of its own may wait for the other side's acknowledgement.
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

    /// A line without a tag, which answers a continuation.
    pub(crate) fn send_line(&mut self, text: &str) -> Result<(), ImapFailure> {
        self.wire.send(format!("{text}\r\n").as_bytes())
    }

    /// Reads up to the end of a command, or none if the server wants more of it.
    pub(crate) fn next_of(
        &mut self,
        pending: &PendingCommand,
    ) -> Result<Option<Done>, ImapFailure> {
        self.read(pending, &mut |_| Ok(false))
    }

    /// Reads up to the end of a command. `each` sees what comes before it, and says whether that was an answer to it; what
    /// was none is noted.
    ///
    /// # Errors
    /// [`ImapFailure::Refused`] for NO and BAD; [`ImapFailure::Unreadable`] of `each`, once the command ended; others of `each`,
    /// behind which the session is not to be used.
    pub(crate) fn finish(
        &mut self,
        pending: &PendingCommand,
        each: &mut dyn FnMut(&Response<'_>) -> Result<bool, ImapFailure>,
    ) -> Result<Done, ImapFailure> {
        match self.read(pending, each)? {
            Some(done) => Ok(done),
            None => Err(ImapFailure::Protocol(
                "a request for more data for a command that was already complete",
            )),
        }
    }

    /// Sends a command and reads up to its end.
    pub(crate) fn run(
        &mut self,
        command: ImapCommand<'_>,
        each: &mut dyn FnMut(&Response<'_>) -> Result<bool, ImapFailure>,
    ) -> Result<Done, ImapFailure> {
        let pending = self.send(command)?;
        self.finish(&pending, each)
    }

    fn read(
        &mut self,
        pending: &PendingCommand,
        each: &mut dyn FnMut(&Response<'_>) -> Result<bool, ImapFailure>,
    ) -> Result<Option<Done>, ImapFailure> {
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
                // The end of a command must be known; what stands between the responses can be passed over.
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
                Response::Continue(_) => return Ok(None),
                Response::Tagged(tag, status) => {
                    let tag = String::from_utf8_lossy(tag).into_owned();
                    let Some(name) = self.open.remove(&tag) else {
                        return Err(ImapFailure::Protocol(
                            "the result of a command that embody did not send",
                        ));
                    };
                    self.noted.status(status);
                    let done = ended(status, name);
                    if let Err(ImapFailure::Refused { command, text, .. }) = &done {
                        let said = format!("the server refuses {command}: {text}");
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

    /// LOGOUT. Whatever comes of it does not matter any more.
    pub(crate) fn logout(mut self) {
        let _ = self.run(ImapCommand::new("LOGOUT", "LOGOUT"), &mut |_| Ok(true));
    }
}

/// How a command ended.
fn ended(status: &Status<'_>, command: &'static str) -> Result<Done, ImapFailure> {
    match status.condition {
        Condition::Ok => Ok(Done {
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

impl Noted {
    /// A connection that broke behind BYE was ended by the server.
    fn instead(&mut self, why: ImapFailure) -> ImapFailure {
        match (why, self.bye.take()) {
            (ImapFailure::Cut(_), Some(said)) => ImapFailure::Bye(said),
            (why, _) => why,
        }
    }

    fn status(&mut self, status: &Status<'_>) {
        if status.condition == Condition::Bye {
            self.bye = Some(status.said());
        }
        if status.code == "CAPABILITY" {
            self.capabilities(status.argument);
        }
    }

    fn capabilities(&mut self, words: &[u8]) {
        let words = String::from_utf8_lossy(words).to_ascii_uppercase();
        let words = words.split_ascii_whitespace().map(str::to_owned);
        self.capabilities = words.take(MOST_CAPABILITIES).collect();
        self.is_current = true;
    }

    /// A response that no command awaits is dropped: a server can send any amount of these.
    fn note(&mut self, read: &Response<'_>) {
        match read {
            Response::Status(status) => self.status(status),
            Response::Data(name, words) if name == "CAPABILITY" => self.capabilities(words),
            Response::Data(name, pairs) if name == "ID" => {
                self.server_name = self.server_name.take().or_else(|| server_name(pairs));
            }
            _ => {}
        }
    }
}

/// Whether a response is of no kind that is known: it may be a garbled answer.
fn is_odd(read: &Response<'_>) -> bool {
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
        Response::Numbered(_, word, _) => {
            !["EXISTS", "RECENT", "EXPUNGE", "FETCH"].contains(&word.as_str())
        }
        Response::Data(word, _) => !WORDS.contains(&word.as_str()),
        _ => false,
    }
}

/// The value of `name` in the response to ID.
fn server_name(pairs: &[u8]) -> Option<String> {
    let pairs = values(pairs).ok()?;
    let (pairs, _) = pairs.first()?.list()?.as_chunks::<2>();
    let is_name = |[key, _]: &&[super::response::Value<'_>; 2]| {
        key.octets()
            .is_some_and(|key| key.eq_ignore_ascii_case(b"name"))
    };
    let (_, name) = pairs.iter().find(is_name).map(|[key, name]| (key, name))?;
    Some(name.text()?.chars().take(200).collect())
}

/// What a FETCH that nobody asked for says of flags.
pub(super) fn told(items: &[u8]) -> Option<Event> {
    let items = fetch_items(items).ok()?;
    let item = |name: &str| {
        let is_meant = |[key, _]: &&[_; 2]| {
            let key: &super::response::Value<'_> = key;
            key.octets()
                .is_some_and(|key| key.eq_ignore_ascii_case(name.as_bytes()))
        };
        items.iter().find(is_meant).map(|[_, value]| value)
    };
    let flags = item("FLAGS")?.list()?.iter();
    Some(Event::Flags {
        uid: item("UID")
            .and_then(|uid| uid.number())
            .and_then(|uid| u32::try_from(uid).ok()),
        flags: flags
            .filter_map(|flag| Some(flag.text()?.into_owned()))
            .collect(),
    })
}
