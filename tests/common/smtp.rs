//! A client that hands letters to an SMTP server, each accepted or the test fails.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::mta::Letter;

/// One session.
pub struct Smtp {
    stream: BufReader<TcpStream>,
}

impl Smtp {
    pub fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut session = Self {
            stream: BufReader::new(stream),
        };
        session.expect("220");
        session.say("EHLO client.example.test", "250");
        session
    }

    /// From alice to bob, as the letter's header says.
    pub fn send(&mut self, letter: &Letter) {
        self.send_from("alice@example.org", letter);
    }

    /// From that address, or from nobody, as bounces are.
    pub fn send_from(&mut self, sender: &str, letter: &Letter) {
        self.say(&format!("MAIL FROM:<{sender}> BODY=8BITMIME"), "250");
        self.say("RCPT TO:<bob@example.org>", "250");
        self.say("DATA", "354");
        let mut data = String::new();
        for line in letter.sent.split_inclusive('\n') {
            let dot = if line.starts_with('.') { "." } else { "" };
            write!(data, "{dot}{}\r\n", line.trim_end_matches('\n')).unwrap();
        }
        self.stream.get_mut().write_all(data.as_bytes()).unwrap();
        self.say(".", "250");
    }

    fn say(&mut self, command: &str, expected: &str) {
        let line = format!("{command}\r\n");
        self.stream.get_mut().write_all(line.as_bytes()).unwrap();
        self.expect(expected);
    }

    /// Reads one reply; its last line has a blank after the number.
    fn expect(&mut self, expected: &str) {
        let mut line = String::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            assert!(line.starts_with(expected), "the server says {line:?}");
            if line.as_bytes().get(3) != Some(&b'-') {
                return;
            }
        }
    }
}
