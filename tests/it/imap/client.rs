//! A simple IMAP client, independent of embody: fills accounts and inspects their content.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

pub(super) struct Client {
    reader: BufReader<TcpStream>,
    tag: u32,
}

/// A message on a server.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Held {
    /// SHA-256 of BODY[], in hexadecimal.
    pub(super) sha256: String,
    /// Flags in lower case, without `\recent`.
    pub(super) flags: BTreeSet<String>,
    pub(super) date: String,
    pub(super) size: usize,
    pub(super) uid: u32,
}

impl Held {
    /// Returns all facts except the UID.
    pub(super) fn lasting(&self) -> (String, BTreeSet<String>, String) {
        (self.sha256.clone(), self.flags.clone(), self.date.clone())
    }
}

/// Returns the facts of all messages of a folder, without their UIDs, sorted.
pub(super) fn lasting(held: &[Held]) -> Vec<(String, BTreeSet<String>, String)> {
    let mut all: Vec<_> = held.iter().map(Held::lasting).collect();
    all.sort();
    all
}

impl Client {
    /// Logs in with the password "secret".
    pub(super) fn login(port: u16, user: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        let mut client = Self {
            reader: BufReader::new(stream),
            tag: 0,
        };
        let greeting = client.line();
        assert!(greeting.starts_with(b"* OK"), "{}", greeting.escape_ascii());
        client.say(&format!("LOGIN {user} secret"));
        client
    }

    fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line).unwrap();
        assert!(
            line.ends_with(b"\r\n"),
            "the server went: {}",
            line.escape_ascii()
        );
        line
    }

    /// Reads a response with its literals.
    fn response(&mut self) -> Vec<u8> {
        let mut all = self.line();
        while let Some(size) = literal(&all) {
            let start = all.len();
            all.resize(start + size, 0);
            self.reader.read_exact(&mut all[start..]).unwrap();
            let more = self.line();
            all.extend_from_slice(&more);
        }
        all
    }

    fn write(&mut self, octets: &[u8]) {
        self.reader.get_mut().write_all(octets).unwrap();
    }

    /// Sends a command. Returns the untagged responses, and the last line without its tag.
    pub(super) fn told(&mut self, command: &str) -> (Vec<Vec<u8>>, String) {
        self.tag += 1;
        self.write(format!("t{} {command}\r\n", self.tag).as_bytes());
        self.answer()
    }

    fn answer(&mut self) -> (Vec<Vec<u8>>, String) {
        let tag = format!("t{} ", self.tag);
        let mut untagged = Vec::new();
        loop {
            let response = self.response();
            if let Some(rest) = response.strip_prefix(tag.as_bytes()) {
                return (untagged, String::from_utf8_lossy(rest).into_owned());
            }
            untagged.push(response);
        }
    }

    /// Sends a command that must succeed. Returns the untagged responses.
    #[track_caller]
    pub(super) fn say(&mut self, command: &str) -> Vec<Vec<u8>> {
        let (untagged, last) = self.told(command);
        assert!(last.starts_with("OK"), "{command}: {last}");
        untagged
    }

    #[track_caller]
    pub(super) fn append(&mut self, folder: &str, flags: &str, date: &str, message: &[u8]) {
        let answer = self.try_append(folder, flags, date, message);
        assert!(answer.starts_with("OK"), "{answer}");
    }

    pub(super) fn try_append(
        &mut self,
        folder: &str,
        flags: &str,
        date: &str,
        message: &[u8],
    ) -> String {
        self.tag += 1;
        let size = message.len();
        let command = format!(
            "t{} APPEND \"{folder}\" ({flags}) \"{date}\" {{{size}}}\r\n",
            self.tag
        );
        self.write(command.as_bytes());
        loop {
            let line = self.response();
            if line.starts_with(b"+") {
                break;
            }
            if !line.starts_with(b"*") {
                return String::from_utf8_lossy(&line).into_owned();
            }
        }
        self.write(message);
        self.write(b"\r\n");
        self.answer().1
    }

    /// Returns all messages of a folder, in the order of their UIDs.
    pub(super) fn all(&mut self, folder: &str) -> Vec<Held> {
        self.say(&format!("EXAMINE \"{folder}\""));
        let mut all = Vec::new();
        let (responses, last) = self.told("UID FETCH 1:* (UID FLAGS INTERNALDATE BODY.PEEK[])");
        // Some servers return an error for an empty folder.
        assert!(last.starts_with("OK") || responses.is_empty(), "{last}");
        for response in responses {
            let at = memchr::memmem::find(&response, b"BODY[]");
            if let Some(at) = at {
                all.push(held(&response, at));
            }
        }
        all.sort_by_key(|held| held.uid);
        all
    }

    /// Returns the number of messages in each folder of the account, without \Noselect ones.
    pub(super) fn folders(&mut self) -> Vec<String> {
        let responses = self.say("LIST \"\" \"*\"");
        let lines = responses.iter().map(|line| String::from_utf8_lossy(line));
        lines
            .filter(|line| {
                line.starts_with("* LIST") && !line.to_lowercase().contains("\\noselect")
            })
            .map(|line| {
                let line = line.trim_end();
                match line.strip_suffix('"') {
                    Some(quoted) => quoted.rsplit('"').next().unwrap().to_owned(),
                    None => line.rsplit(' ').next().unwrap().to_owned(),
                }
            })
            .collect()
    }
}

fn literal(response: &[u8]) -> Option<usize> {
    let line = response.strip_suffix(b"}\r\n")?;
    let open = memchr::memrchr(b'{', line)?;
    std::str::from_utf8(&line[open + 1..]).ok()?.parse().ok()
}

fn held(response: &[u8], body: usize) -> Held {
    // The text before and after the body is short.
    let open = body + memchr::memchr(b'\n', &response[body..]).unwrap() + 1;
    let size = literal(&response[..open]).unwrap();
    let content = &response[open..open + size];
    let other_octets = [&response[..open], &response[open + size..]].concat();
    let around = String::from_utf8_lossy(&other_octets).into_owned();
    let within = |name: &str, start: char, end: char| {
        let rest = around.split_once(name)?.1;
        Some(rest.split_once(start)?.1.split_once(end)?.0.to_owned())
    };
    let flags = within("FLAGS", '(', ')').unwrap();
    let uid = around.split_once("UID ").unwrap().1;
    let digits: String = uid.chars().take_while(char::is_ascii_digit).collect();
    let hash = Sha256::digest(content);
    Held {
        sha256: hash.iter().map(|octet| format!("{octet:02x}")).collect(),
        flags: flags
            .split_whitespace()
            .map(str::to_lowercase)
            .filter(|flag| flag != "\\recent")
            .collect(),
        date: within("INTERNALDATE", '"', '"').unwrap(),
        size,
        uid: digits.parse().unwrap(),
    }
}
