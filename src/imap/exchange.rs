//! Commands and what a server answers to them, several of which may be under way, and what it says unasked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use rustls::ClientConfig;

use super::command::{ImapCommand, Segment};
use super::failure::ImapFailure;
use super::response::{Condition, Response, Status, response, values};
use super::wire::Wire;

/// Literals that are sent before the server says that it takes them, where it can bear that: refusing larger ones costs too
/// much.
const AT_ONCE: usize = 64 << 10;
/// The same with LITERAL- (RFC 7888).
const AT_ONCE_MINUS: usize = 4096;
/// What is kept of what a server says unasked; older things go.
const MOST_EVENTS: usize = 10_000;

/// What a server said unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// So many messages are in the folder now.
    Exists(u32),
    /// The message with this number, no UID, is gone.
    Expunged(u32),
    /// Messages with these UIDs are gone: a sequence set.
    Vanished(String),
    /// A message has other flags now.
    Flags {
        number: u32,
        uid: Option<u32>,
        flags: Vec<String>,
        modseq: Option<u64>,
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
}

/// What the server said besides answers.
#[derive(Default)]
struct Noted {
    capabilities: BTreeSet<String>,
    /// Whether the capabilities are those of now.
    is_current: bool,
    events: VecDeque<Event>,
    bye: Option<String>,
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
        }
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

    /// What came unasked since this was called last.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        self.noted.events.drain(..).collect()
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
                    "an end of a command that was not sent yet",
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
    /// [`ImapFailure::Refused`] for NO and BAD; those of `each`, behind which the session is not to be used.
    pub(crate) fn finish(
        &mut self,
        pending: &PendingCommand,
        each: &mut dyn FnMut(&Response<'_>) -> Result<bool, ImapFailure>,
    ) -> Result<Done, ImapFailure> {
        match self.read(pending, each)? {
            Some(done) => Ok(done),
            None => Err(ImapFailure::Protocol(
                "a wish for more of a command that was sent",
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
        loop {
            let octets = match self.wire.response() {
                Ok(octets) => octets,
                Err(why) => return Err(self.noted.instead(why)),
            };
            let read = response(octets).map_err(ImapFailure::Protocol)?;
            match &read {
                Response::Continue(_) => return Ok(None),
                Response::Tagged(tag, status) => {
                    let tag = String::from_utf8_lossy(tag).into_owned();
                    let Some(name) = self.open.remove(&tag) else {
                        return Err(ImapFailure::Protocol(
                            "the end of a command that is not under way",
                        ));
                    };
                    self.noted.status(status);
                    let done = ended(status, name);
                    if tag == pending.tag {
                        return done.map(Some);
                    }
                    if !name.is_empty() {
                        self.ended.insert(tag, done);
                    }
                }
                read => {
                    if !each(read)? {
                        self.noted.note(read);
                    }
                }
            }
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
        self.capabilities = words.split_ascii_whitespace().map(str::to_owned).collect();
        self.is_current = true;
    }

    fn note(&mut self, read: &Response<'_>) {
        let event = match read {
            Response::Status(status) => {
                self.status(status);
                None
            }
            Response::Data(name, words) if name == "CAPABILITY" => {
                self.capabilities(words);
                None
            }
            Response::Data(name, set) if name == "VANISHED" => {
                Some(Event::Vanished(String::from_utf8_lossy(set).into_owned()))
            }
            Response::Numbered(count, name, _) if name == "EXISTS" => Some(Event::Exists(*count)),
            Response::Numbered(number, name, _) if name == "EXPUNGE" => {
                Some(Event::Expunged(*number))
            }
            Response::Numbered(number, name, items) if name == "FETCH" => told(*number, items),
            _ => None,
        };
        if let Some(event) = event {
            if self.events.len() >= MOST_EVENTS {
                self.events.pop_front();
            }
            self.events.push_back(event);
        }
    }
}

/// What a FETCH that nobody asked for says of flags.
pub(super) fn told(number: u32, items: &[u8]) -> Option<Event> {
    let items = values(items).ok()?;
    let (pairs, _) = items.first()?.list()?.as_chunks::<2>();
    let item = |name: &str| {
        let is_meant = |[key, _]: &&[_; 2]| {
            let key: &super::response::Value<'_> = key;
            key.octets()
                .is_some_and(|key| key.eq_ignore_ascii_case(name.as_bytes()))
        };
        pairs.iter().find(is_meant).map(|[_, value]| value)
    };
    let flags = item("FLAGS")?.list()?.iter();
    Some(Event::Flags {
        number,
        uid: item("UID")
            .and_then(|uid| uid.number())
            .and_then(|uid| u32::try_from(uid).ok()),
        flags: flags
            .filter_map(|flag| Some(flag.text()?.into_owned()))
            .collect(),
        modseq: item("MODSEQ").and_then(|modseq| modseq.list()?.first()?.number()),
    })
}
