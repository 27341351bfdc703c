//! A server with responses chosen by a test, correct or not, and simple responses otherwise. It has one folder, INBOX, with two
//! messages.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

pub(super) const MESSAGES: [&str; 2] = [
    "From: a@example.org\r\nSubject: one\r\n\r\nhello\r\n",
    "From: b@example.org\r\nSubject: two\r\n\r\nHello again\r\n",
];

/// Ends a connection in the middle of a response.
pub(super) const CLOSE: &str = "\0";

type Answer = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Listens on a free port of 127.0.0.1 until the program ends.
pub(super) struct Scripted {
    pub(super) port: u16,
    /// Commands that were received, without tags.
    heard: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    /// Starts a server. `answer` returns the response to a command, which is passed without its tag, or `None` for the simple
    /// response. In the response, `TAG` is the tag, `TAG-1` the one before it, and after [`CLOSE`] the connection ends. The
    /// first command is "greeting".
    pub(super) fn answering(
        answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let hears = Arc::clone(&heard);
        let answer: Arc<Answer> = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, hears) = (Arc::clone(&answer), Arc::clone(&hears));
                thread::spawn(move || serve(stream, &*answer, &hears));
            }
        });
        Self { port, heard }
    }

    /// Starts a server that sends this response to commands that begin with `first`.
    pub(super) fn instead(first: &'static str, says: impl Into<String>) -> Self {
        let says = says.into();
        Self::answering(move |command| command.starts_with(first).then(|| says.clone()))
    }

    pub(super) fn url(&self, folder: &str) -> String {
        format!("imap://me@127.0.0.1:{}/{folder}", self.port)
    }

    pub(super) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, answer: &Answer, heard: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    // Returns false if the connection must end. A client need not read the response.
    let mut say = |text: &str| {
        let (text, is_end) = match text.split_once(CLOSE) {
            Some((text, _)) => (text, true),
            None => (text, false),
        };
        stream.write_all(text.as_bytes()).is_ok() && !is_end
    };
    let greeting = answer("greeting");
    let greeting =
        greeting.unwrap_or_else(|| "* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR] hi\r\n".into());
    if !say(&greeting) {
        return;
    }
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        // Literals are read and become part of the command.
        while let Some(length) = literal(&line) {
            if !line.trim_end().ends_with("+}") && !say("+ go on\r\n") {
                return;
            }
            let mut octets = vec![0; length];
            let mut rest = String::new();
            if reader.read_exact(&mut octets).is_err() || reader.read_line(&mut rest).is_err() {
                return;
            }
            line = format!(
                "{}{}{rest}",
                line.trim_end(),
                String::from_utf8_lossy(&octets)
            );
        }
        let line = line.trim_end();
        let (tag, command) = line.split_once(' ').unwrap_or(("", line));
        heard.lock().unwrap().push(command.to_owned());
        let says = answer(command).unwrap_or_else(|| plain(command));
        let number: u32 = tag.trim_start_matches('e').parse().unwrap_or(0);
        let before = |back: u32| format!("e{}", number.saturating_sub(back));
        let says = says
            .replace("TAG-1", &before(1))
            .replace("TAG-2", &before(2));
        if !say(&says.replace("TAG", tag)) {
            return;
        }
    }
}

fn literal(line: &str) -> Option<usize> {
    let inner = line.trim_end().strip_suffix('}')?;
    let (_, digits) = inner.rsplit_once('{')?;
    digits.trim_end_matches('+').parse().ok()
}

/// Returns the simple response to a command.
pub(super) fn plain(command: &str) -> String {
    let untagged = match command.split(' ').next().unwrap_or_default() {
        "CAPABILITY" => "* CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR\r\n".to_owned(),
        "LIST" => "* LIST () \"/\" INBOX\r\n".to_owned(),
        "EXAMINE" | "SELECT" => {
            "* 2 EXISTS\r\n* OK [UIDVALIDITY 7] valid\r\n* OK [UIDNEXT 3] next\r\n".to_owned()
        }
        "LOGOUT" => "* BYE\r\n".to_owned(),
        "UID" if command.starts_with("UID SEARCH") => "* SEARCH 1 2\r\n".to_owned(),
        "UID" if command.contains("BODY.PEEK[]<0.") => bodies(&asked(command)),
        "UID" if command.contains("BODY.PEEK") => {
            let from = command
                .split_once("[]<")
                .unwrap()
                .1
                .split_once('.')
                .unwrap()
                .0;
            format!(
                "* 1 FETCH (UID {} BODY[]<{from}> \"\")\r\n",
                asked(command)[0]
            )
        }
        "UID" if command.contains("FETCH") => metadata(&asked(command)),
        // By sequence number.
        "FETCH" => {
            let numbers = asked(&format!("UID {command}")).into_iter();
            numbers
                .map(|number| format!("* {number} FETCH (UID {number})\r\n"))
                .collect()
        }
        _ => String::new(),
    };
    format!("{untagged}TAG OK done\r\n")
}

pub(super) fn metadata(uids: &[usize]) -> String {
    uids.iter()
        .map(|uid| {
            format!(
                "* {uid} FETCH (UID {uid} FLAGS (\\Seen) INTERNALDATE \" 3-Jan-2020 10:00:00 +0100\" RFC822.SIZE {} \
                 BODYSTRUCTURE (\"text\" \"plain\" NIL NIL NIL \"7bit\" 7 1))\r\n",
                MESSAGES[uid - 1].len()
            )
        })
        .collect()
}

pub(super) fn bodies(uids: &[usize]) -> String {
    uids.iter().map(|uid| body(*uid)).collect()
}

pub(super) fn body(uid: usize) -> String {
    let text = MESSAGES[uid - 1];
    format!(
        "* {uid} FETCH (UID {uid} BODY[]<0> {{{}}}\r\n{text})\r\n",
        text.len()
    )
}

/// Returns the UIDs in a command, of the two that exist.
fn asked(command: &str) -> Vec<usize> {
    let set = command.split(' ').nth(2).unwrap_or_default();
    let is_asked = |uid: &usize| {
        set.split(',').any(|range| {
            let (first, last) = range.split_once(':').unwrap_or((range, range));
            (first.parse().unwrap_or(0)..=last.parse().unwrap_or(0)).contains(uid)
        })
    };
    (1..=MESSAGES.len()).filter(is_asked).collect()
}
