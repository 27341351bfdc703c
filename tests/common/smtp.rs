//! A client that sends letters to an SMTP server. The test fails if the server rejects one.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::mta::Letter;

/// One SMTP session.
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

    /// Sends a letter from alice to bob, as its header says.
    pub fn send(&mut self, letter: &Letter) {
        self.send_from("alice@example.org", letter);
    }

    /// Sends a letter from this address. Bounces have an empty address.
    pub fn send_from(&mut self, sender: &str, letter: &Letter) {
        self.say(&format!("MAIL FROM:<{sender}> BODY=8BITMIME"), "250");
        self.say("RCPT TO:<bob@example.org>", "250");
        self.say("DATA", "354");
        assert!(self.data(letter), "it is to be tried again later");
    }

    /// Sends a letter, and returns whether the server accepted it. If not, it can be sent again.
    pub fn offer(&mut self, letter: &Letter) -> bool {
        let taken = self.begins("MAIL FROM:<alice@example.org> BODY=8BITMIME")
            && self.begins("RCPT TO:<bob@example.org>")
            && self.begins_with("DATA", "354")
            && self.data(letter);
        if !taken {
            self.say("RSET", "250");
        }
        taken
    }

    fn begins(&mut self, command: &str) -> bool {
        self.begins_with(command, "250")
    }

    /// Sends a command, and returns whether the reply is the expected one. Only a temporary error is allowed instead.
    fn begins_with(&mut self, command: &str, expected: &str) -> bool {
        let line = format!("{command}\r\n");
        self.stream.get_mut().write_all(line.as_bytes()).unwrap();
        let reply = self.reply();
        assert!(
            reply.starts_with(expected) || reply.starts_with('4'),
            "{reply}"
        );
        reply.starts_with(expected)
    }

    fn data(&mut self, letter: &Letter) -> bool {
        let mut data = String::new();
        for line in letter.sent.split_inclusive('\n') {
            let dot = if line.starts_with('.') { "." } else { "" };
            write!(data, "{dot}{}\r\n", line.trim_end_matches('\n')).unwrap();
        }
        self.stream.get_mut().write_all(data.as_bytes()).unwrap();
        self.begins(".")
    }

    fn say(&mut self, command: &str, expected: &str) {
        let line = format!("{command}\r\n");
        self.stream.get_mut().write_all(line.as_bytes()).unwrap();
        self.expect(expected);
    }

    fn expect(&mut self, expected: &str) {
        let reply = self.reply();
        assert!(reply.starts_with(expected), "the server says {reply:?}");
    }

    /// Reads one reply. Its last line has a blank after the number.
    fn reply(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            if line.as_bytes().get(3) != Some(&b'-') {
                return line;
            }
        }
    }
}
