//! Checks the milter protocol: whatever a mail system sends, the filter replies with packets of the protocol in the
//! right order, or closes the connection. The memory for a message is limited.

use std::io::{self, Read, Write};

use embody::fetch::NoFetch;
use embody::internals::milter::codec::{self, MilterReply, MilterTerms};
use embody::internals::milter::{FilterVerdict, HandoverResult, MilterSession, SessionStep, judge};
use embody::{Expander, Mark, Policy};

/// A filter without a socket. A test writes the packets of a mail system to it, and reads the replies from it.
pub struct Conversation {
    expander: Expander,
    session: MilterSession,
    waiting: Vec<u8>,
    answers: Vec<u8>,
    read: usize,
    /// Whether the filter has closed the connection.
    pub is_closed: bool,
    /// Number of messages with a reply.
    pub messages: usize,
}

impl Conversation {
    pub fn new(expander: Expander, is_full: bool) -> Self {
        Self {
            expander,
            session: MilterSession::new(is_full),
            waiting: Vec::new(),
            answers: Vec::new(),
            read: 0,
            is_closed: false,
            messages: 0,
        }
    }

    fn take(&mut self) {
        let mut done = 0;
        while !self.is_closed {
            let Ok(packet) = packet(&self.waiting[done..]) else {
                self.is_closed = true;
                return;
            };
            let Some((packet, end)) = packet else { break };
            let step = self.session.take(&packet, &self.expander);
            let to = &mut self.answers;
            match step {
                Err(_) | Ok(SessionStep::Close) => self.is_closed = true,
                Ok(SessionStep::Wait) => {}
                Ok(SessionStep::Say(reply)) => reply.write(to).expect("a vector takes all"),
                Ok(SessionStep::Refused) => {
                    MilterReply::TryLater.write(to).expect("a vector takes all")
                }
                Ok(SessionStep::Judge(draft, if_not_held)) => {
                    self.messages += 1;
                    let keeps_blanks = self.session.keeps_blanks();
                    let said = match draft.finish() {
                        Err(_) => if_not_held.write(to),
                        Ok(incoming) => {
                            let (verdict, _) = judge(&self.expander, &incoming, keeps_blanks);
                            if let FilterVerdict::Unchanged(HandoverResult::Trouble(what)) =
                                &verdict
                            {
                                assert!(!what.contains("defect"), "{what}");
                            }
                            verdict.write(&incoming, to)
                        }
                    };
                    said.expect("a vector takes all");
                }
            }
            done += end;
        }
        self.waiting.drain(..done);
    }
}

impl Write for Conversation {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        self.take();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Conversation {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.answers[self.read..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.read += length;
        Ok(length)
    }
}

/// Checks a conversation. The first byte chooses how the rest is read: as bytes of the stream, or as packets (a
/// command, and a length of two bytes) after a successful negotiation.
pub fn check(data: &[u8]) {
    let Some((&how, rest)) = data.split_first() else {
        return;
    };
    let mut policy = Policy::default();
    policy = policy.map_limits(|limits| limits.with_message(1 << 14));
    let expander = Expander::builder(policy).fetch(NoFetch);
    let mark = if how & 2 == 0 { Mark::Off } else { Mark::Field };
    let expander = expander.mark(mark).build().expect("nothing of the system");
    let is_full = how & 4 != 0;
    let mut conversation = Conversation::new(expander, is_full);
    if how & 1 == 0 {
        for piece in rest.chunks(1 + usize::from(how >> 3)) {
            conversation.write_all(piece).expect("a vector takes all");
        }
    } else {
        let numbers = [6, 0x1ff, 0x1f_ffff].map(u32::to_be_bytes).concat();
        send(&mut conversation, b'O', &numbers);
        let mut rest = rest;
        while let [kind, high, low, behind @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
            let (packet, behind) = behind.split_at(length);
            send(&mut conversation, *kind, packet);
            rest = behind;
        }
    }
    answers(&conversation.answers);
}

/// Returns the first packet, and the position of its end.
fn packet(bytes: &[u8]) -> io::Result<Option<(Vec<u8>, usize)>> {
    let (mut rest, mut packet) = (bytes, Vec::new());
    let is_whole = codec::read_packet(&mut rest, &mut packet)?;
    Ok(is_whole.then_some((packet, bytes.len() - rest.len())))
}

fn send(conversation: &mut Conversation, kind: u8, data: &[u8]) {
    let length = u32::try_from(data.len() + 1).expect("it is short");
    let packet = [&length.to_be_bytes(), [kind].as_slice(), data].concat();
    conversation.write_all(&packet).expect("a vector takes all");
}

/// Checks that the packets are replies, and that changes come only before the reply that ends them.
fn answers(mut rest: &[u8]) {
    let mut is_changing = false;
    while !rest.is_empty() {
        let (packet, end) = packet(rest).expect("a length").expect("a whole packet");
        assert!(packet.len() <= codec::CHUNK + 1);
        match packet[0] {
            b'O' => {
                let number = |at: usize| {
                    u32::from_be_bytes(packet[at..at + 4].try_into().expect("four octets"))
                };
                let terms = MilterTerms {
                    version: number(1),
                    actions: number(5),
                    options: number(9),
                };
                assert!(terms.version <= 6 && terms.actions & !0x1ff == 0);
            }
            b'b' => is_changing = true,
            b'h' => {
                is_changing = true;
                field(&packet[1..]);
            }
            b'i' | b'm' => {
                is_changing = true;
                field(&packet[5..]);
            }
            b'c' => is_changing = false,
            b'a' | b's' | b't' => assert!(!is_changing),
            other => panic!("an answer of the kind {:?}", char::from(other)),
        }
        rest = &rest[end..];
    }
    assert!(!is_changing, "changes without an end");
}

/// Checks that this is exactly one header field, in which no line can be read as another field.
fn field(text: &[u8]) {
    let text = text.strip_suffix(b"\0").expect("a NUL at the end");
    let end = memchr::memchr(0, text).expect("a NUL behind the name");
    let (name, value) = (&text[..end], &text[end + 1..]);
    let lower = name.to_ascii_lowercase();
    let ours = [
        "content-",
        "mime-version",
        "x-embody",
        "lines",
        "x-mozilla-",
    ];
    assert!(ours.iter().any(|it| lower.starts_with(it.as_bytes())));
    // Bytes above 127 are kept, because `filter` also writes such a phantom header field.
    assert!(
        name.iter()
            .all(|octet| octet.is_ascii_graphic() && *octet != b':' || !octet.is_ascii())
    );
    assert!(!value.iter().any(|octet| matches!(octet, 0 | b'\r')));
    for at in memchr::memchr_iter(b'\n', value) {
        assert!(matches!(value.get(at + 1), Some(b' ' | b'\t')));
    }
}
