//! The side of the mail system in the milter protocol. It is written from the sources of libmilter, and shares no code
//! with embody. It sends a message and applies the changes that the filter requests.
// Each test program uses only some of these functions.
#![allow(dead_code)]

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub trait Both: Read + Write + Send {}
impl<T: Read + Write + Send> Both for T {}

/// The offers of Sendmail 8.17 and Postfix: all actions, and all options except the sizes of body parts.
pub const ACTIONS: u32 = 0x1ff;
pub const OPTIONS: u32 = 0x1f_ffff;
const SKIP: u32 = 0x400;
const LEADING_SPACE: u32 = 0x10_0000;
const NO_ANSWER_TO_FIELDS: u32 = 0x80;
const NO_ANSWER_TO_END_OF_HEADER: u32 = 0x4_0000;
const NO_ANSWER_TO_BODY: u32 = 0x8_0000;

/// One connection to a filter.
pub struct MailSystem {
    stream: Box<dyn Both>,
    pub options: u32,
    pub actions: u32,
    /// Whether a removed field still counts among the fields with its name, as in Sendmail.
    pub removed_count: bool,
    /// Number of times the filter reported that it takes longer.
    pub waited: usize,
    /// Whether the filter stopped the transfer of the body.
    pub skipped: bool,
    /// Whether the filter accepted the message after its header, without the body.
    pub accepted: bool,
}

/// The result for a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Became {
    /// The message, with LF line endings.
    Message(Vec<u8>),
    Later,
}

impl Became {
    #[track_caller]
    pub fn message(self) -> Vec<u8> {
        match self {
            Self::Message(message) => message,
            Self::Later => panic!("the message is to be tried again later"),
        }
    }
}

pub fn packet(kind: u8, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len() + 1).unwrap();
    [&length.to_be_bytes(), [kind].as_slice(), data].concat()
}

pub fn offer(actions: u32, options: u32) -> Vec<u8> {
    let numbers = [6_u32, actions, options].map(u32::to_be_bytes);
    packet(b'O', &numbers.concat())
}

/// Name and value of a header field.
pub type Field = (Vec<u8>, Vec<u8>);

/// Returns the header fields (each value with its leading blank) and the body. Returns `None` if a line of the header
/// is not a field.
pub fn divided(message: &[u8]) -> Option<(Vec<Field>, Vec<u8>)> {
    let mut fields: Vec<Field> = Vec::new();
    let mut at = 0;
    for line in message.split_inclusive(|&octet| octet == b'\n') {
        at += line.len();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if line.is_empty() {
            return Some((fields, message[at..].to_vec()));
        }
        if matches!(line[0], b' ' | b'\t') {
            let (_, value) = fields.last_mut()?;
            value.push(b'\n');
            value.extend_from_slice(line);
            continue;
        }
        let colon = line.iter().position(|&octet| octet == b':')?;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if name.is_empty() || name.iter().any(|&octet| octet <= b' ') {
            return None;
        }
        fields.push((name.to_vec(), value.to_vec()));
    }
    Some((fields, Vec::new()))
}

pub fn crlf(body: &[u8]) -> Vec<u8> {
    let lines = body.split_inclusive(|&octet| octet == b'\n');
    let ended = |line: &[u8]| match line.strip_suffix(b"\n") {
        Some(line) => [line, b"\r\n"].concat(),
        None => line.to_vec(),
    };
    lines.flat_map(ended).collect()
}

fn lf(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    for (at, &octet) in body.iter().enumerate() {
        if octet != b'\r' || body.get(at + 1) != Some(&b'\n') {
            out.push(octet);
        }
    }
    out
}

impl MailSystem {
    pub fn unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        Self::over(Box::new(stream))
    }

    pub fn inet(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        Self::over(Box::new(stream))
    }

    pub fn over(stream: Box<dyn Both>) -> Self {
        Self {
            stream,
            options: 0,
            actions: 0,
            removed_count: false,
            waited: 0,
            skipped: false,
            accepted: false,
        }
    }

    /// Negotiates with all actions and options that mail systems offer today.
    pub fn negotiate(&mut self) {
        self.offer(ACTIONS, OPTIONS);
    }

    pub fn offer(&mut self, actions: u32, options: u32) {
        self.send(&offer(actions, options));
        let (kind, data) = self.receive().unwrap();
        assert_eq!(kind, b'O');
        let number = |at: usize| u32::from_be_bytes(data[at..at + 4].try_into().unwrap());
        (self.actions, self.options) = (number(4), number(8));
        assert_eq!(self.actions & !actions, 0, "what was not offered");
        assert_eq!(self.options & !options, 0, "what was not offered");
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn receive(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        assert!((1..=65_536).contains(&length), "a packet of {length} bytes");
        let mut packet = vec![0; length];
        self.stream.read_exact(&mut packet)?;
        let data = packet.split_off(1);
        Ok((packet[0], data))
    }

    /// Returns whether the filter has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        self.stream.read(&mut [0]).is_ok_and(|length| length == 0)
    }

    fn agreed(&self, option: u32) -> bool {
        self.options & option != 0
    }

    fn answered(&mut self) -> u8 {
        self.receive().unwrap().0
    }

    /// Sends the header, and as much of the body as the filter accepts. Returns the reply that ended the transfer
    /// early: ACCEPT or TEMPFAIL.
    fn hand_over(&mut self, id: &str, fields: &[Field], body: &[u8]) -> Option<u8> {
        self.skipped = false;
        self.send(&packet(
            b'D',
            format!("Nj\0mail.example.org\0i\0{id}\0").as_bytes(),
        ));
        if !self.agreed(0x20) {
            for (name, value) in fields {
                let value = match value.strip_prefix(b" ") {
                    Some(rest) if !self.agreed(LEADING_SPACE) => rest,
                    _ => value,
                };
                self.send(&packet(
                    b'L',
                    &[name, b"\0".as_slice(), value, b"\0"].concat(),
                ));
                if !self.agreed(NO_ANSWER_TO_FIELDS) {
                    assert_eq!(self.answered(), b'c');
                }
            }
        }
        self.send(&packet(b'N', b""));
        if !self.agreed(NO_ANSWER_TO_END_OF_HEADER) {
            match self.answered() {
                b'c' => {}
                word => return Some(word),
            }
        }
        for chunk in crlf(body).chunks(65_535) {
            self.send(&packet(b'B', chunk));
            if self.agreed(NO_ANSWER_TO_BODY) {
                continue;
            }
            match self.answered() {
                b's' if self.agreed(SKIP) => {
                    self.skipped = true;
                    break;
                }
                answer => assert_eq!(answer, b'c'),
            }
        }
        None
    }

    /// Sends a message with LF line endings to the filter, and returns the result.
    pub fn filter(&mut self, id: &str, message: &[u8]) -> Became {
        let (fields, body) = divided(message).expect("a header of fields");
        let word = self.hand_over(id, &fields, &body);
        self.accepted = word == Some(b'a');
        match word {
            None => {
                self.send(&packet(b'E', b""));
                self.result(fields, body)
            }
            Some(b'a') => Became::Message(message.to_vec()),
            Some(word) => {
                assert_eq!(word, b't');
                Became::Later
            }
        }
    }

    fn result(&mut self, fields: Vec<(Vec<u8>, Vec<u8>)>, body: Vec<u8>) -> Became {
        // A removed field has no value here.
        let mut fields: Vec<(Vec<u8>, Option<Vec<u8>>)> = fields
            .into_iter()
            .map(|(name, value)| (name, Some(value)))
            .collect();
        let mut new_body: Option<Vec<u8>> = None;
        self.waited = 0;
        let mut has_changes = false;
        loop {
            let (kind, data) = self.receive().unwrap();
            let number = || u32::from_be_bytes(data[..4].try_into().unwrap()) as usize;
            let named = |from: usize| {
                let text = data[from..].strip_suffix(b"\0").unwrap();
                let mut words = text.splitn(2, |&octet| octet == 0);
                let (name, value) = (words.next().unwrap(), words.next().unwrap());
                assert!(!value.contains(&0) && !value.windows(2).any(|it| it == b"\r\n"));
                let blank = if self.options & LEADING_SPACE != 0 {
                    ""
                } else {
                    " "
                };
                let value = match value {
                    b"" => Vec::new(),
                    value => [blank.as_bytes(), value].concat(),
                };
                (name.to_vec(), value)
            };
            match kind {
                b'c' => break,
                b't' => return Became::Later,
                b'p' => {
                    assert!(!has_changes, "Postfix takes PROGRESS before changes only");
                    self.waited += 1;
                    continue;
                }
                b'b' => new_body.get_or_insert_default().extend_from_slice(&data),
                b'h' => {
                    assert!(new_body.is_none());
                    let (name, value) = named(0);
                    fields.push((name, Some(value)));
                }
                b'i' => {
                    let (name, value) = named(4);
                    // Positions include the Received field of the mail system itself.
                    fields.insert(number() - 1, (name, Some(value)));
                }
                b'm' => {
                    let (name, value) = named(4);
                    let counts = |(_, value): &(Vec<u8>, Option<Vec<u8>>)| {
                        value.is_some() || self.removed_count
                    };
                    let mut same = fields
                        .iter_mut()
                        .filter(|field| counts(field) && field.0.eq_ignore_ascii_case(&name));
                    let field = same.nth(number() - 1).expect("there are so many");
                    field.0 = name;
                    field.1 = (!value.is_empty()).then_some(value);
                }
                other => panic!("a reply of the kind {:?}", char::from(other)),
            }
            has_changes = true;
        }
        let mut message = Vec::new();
        for (name, value) in fields {
            if let Some(value) = value {
                message.extend([&name, b":".as_slice(), &value, b"\n"].concat());
            }
        }
        message.push(b'\n');
        message.extend(new_body.map_or(body, |body| lf(&body)));
        Became::Message(message)
    }
}
