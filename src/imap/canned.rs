//! Runs a whole session with a scripted server, for fuzzing.
//!
//! Each command is answered with the next of the given answers, followed by an OK. `TAG` in an answer is replaced by the tag of
//! the command.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};

use super::exchange::Exchange;
use super::failure::ImapFailure;
use super::session::{BodyPiece, FlagChange, ImapSession, InternalDate, Structure};
use super::wire::Wire;
use crate::mailbox::Stop;

/// Result of a conversation.
#[derive(Debug, Default)]
pub struct Told {
    /// Numbers of folders, UIDs and messages that the client read from the scripted answers.
    pub folders: usize,
    pub uids: usize,
    pub messages: usize,
    /// Total size of the complete messages, in bytes.
    pub octets: usize,
}

/// Connection to a scripted server: a byte stream that returns the scripted answers.
struct Canned {
    answers: VecDeque<Vec<u8>>,
    waiting: Vec<u8>,
    at: usize,
    line: Vec<u8>,
}

impl Read for Canned {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let rest = &self.waiting[self.at..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        self.at += length;
        Ok(length)
    }
}

impl Write for Canned {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        for octet in from {
            self.line.push(*octet);
            if *octet != b'\n' {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let tag = line
                .split(|octet| *octet == b' ')
                .next()
                .unwrap_or_default();
            // Lines without a tag belong to a literal, so they are not commands.
            if tag.first() != Some(&b'e') || !tag[1..].iter().all(u8::is_ascii_digit) {
                continue;
            }
            let Some(answer) = self.answers.pop_front() else {
                continue;
            };
            let mut rest = answer.as_slice();
            while let Some(at) = memchr::memmem::find(rest, b"TAG") {
                self.waiting.extend_from_slice(&rest[..at]);
                self.waiting.extend_from_slice(tag);
                rest = &rest[at + 3..];
            }
            self.waiting.extend_from_slice(rest);
            self.waiting.extend_from_slice(tag);
            self.waiting.extend_from_slice(b" OK done\r\n");
        }
        Ok(from.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends each kind of command to a server with these answers. The first answer is the greeting.
///
/// # Panics
/// If the client passes on a message twice, or without its end. Fuzzing looks for such bugs.
pub fn conversation(answers: &[&[u8]]) -> Told {
    let mut told = Told::default();
    let mut answers = answers.iter().map(|answer| answer.to_vec());
    let channel = Canned {
        waiting: answers.next().unwrap_or_default(),
        answers: answers.collect(),
        at: 0,
        line: Vec::new(),
    };
    let exchange = Exchange::over(Wire::over(channel, &Stop::default()));
    // An error is a normal result: most scripted servers break the protocol.
    let _ = talk(exchange, &mut told);
    told
}

fn talk(mut exchange: Exchange, told: &mut Told) -> Result<(), ImapFailure> {
    exchange.greeting()?;
    exchange.ask_capabilities()?;
    let mut session = ImapSession::of(exchange);
    let folders = session.list("*")?.folders;
    told.folders = folders.len();
    for folder in &folders {
        let place = super::directories::place(folder);
        let is_within = |part| matches!(part, std::path::Component::Normal(_));
        assert!(place.components().all(is_within), "{place:?}");
    }
    let selected = session.select("INBOX")?;
    assert!(selected.uidvalidity > 0);
    let mut uids = session.search("ALL")?;
    assert!(uids.is_sorted());
    told.uids = uids.len();
    uids.truncate(2000);
    let mut messages = BTreeMap::new();
    session.fetch_metadata(&uids, Structure::Wanted, &mut |message| {
        assert!(uids.binary_search(&message.uid).is_ok());
        assert!(messages.insert(message.uid, message.size).is_none());
        Ok(())
    })?;
    let wanted: Vec<(u32, u64)> = messages.into_iter().take(100).collect();
    let mut ended = BTreeMap::new();
    let (mut count, mut octets) = (0, 0);
    session.fetch_bodies(&wanted, &mut |uid, piece| {
        assert!(
            !ended.contains_key(&uid),
            "the session must return no bytes of a message after the end of the message"
        );
        match piece {
            BodyPiece::Octets(piece) => count += piece.len(),
            BodyPiece::Whole => {
                ended.insert(uid, true);
                octets += std::mem::take(&mut count);
            }
            BodyPiece::Gone => {
                ended.insert(uid, false);
                count = 0;
            }
        }
        Ok(())
    })?;
    assert_eq!(ended.len(), wanted.len(), "each message has an end");
    told.messages = ended.values().filter(|is_whole| **is_whole).count();
    told.octets = octets;
    session.fetch_sizes(&uids)?;
    session.fetch_gmail(&uids)?;
    let date = InternalDate::of(" 1-Jan-2020 10:00:00 +0000");
    session.store_flags(1, FlagChange::Add, &["\\Seen".to_owned()])?;
    let two = &uids[..uids.len().min(2)];
    session.look(two, two)?.1?;
    session.message_ids(two)?;
    session.remove(1, Some("Trash"), true)?.1?;
    session.append("INBOX", &[], &date, b"Subject: x\r\n\r\n")?;
    session.remove(2, Some("Trash"), false)?.1?;
    session.quota("INBOX")?;
    session.noop()?;
    session.logout();
    Ok(())
}
