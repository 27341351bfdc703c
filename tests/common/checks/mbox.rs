//! Checks mbox files: the messages together are the file, for every window size; a change in a body does not split or
//! join messages; and quoting can be undone.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use embody::mailbox::{Conversion, Format, Message, Options, Quoting, ReadOptions, Transform};
use embody::{Edit, Edits, Error, Span};

/// Checks a mailbox. The first byte chooses the window size, the second one the text that is inserted into the bodies.
/// The rest is the mailbox, after a `From `.
pub fn check(data: &[u8]) {
    let [window, new, rest @ ..] = data else {
        return;
    };
    let mailbox = [b"From ", rest].concat();
    let window = 1 + usize::from(*window) * 8;
    let (out, messages) = converted(&mailbox, LARGE, None);
    assert!(out == mailbox, "nothing to do, yet other bytes came out");
    divided(&mailbox, &messages);
    let (out, in_windows) = converted(&mailbox, window, None);
    assert!(out == mailbox, "a window of {window} changed the file");
    assert!(
        in_windows == messages,
        "a window of {window} divides it otherwise"
    );

    let insertion = NEW[usize::from(*new) % NEW.len()];
    let (changed, before) = converted(&mailbox, window, Some(insertion));
    assert!(before == messages);
    let (_, after) = converted(&changed, LARGE, None);
    // A wrong length in an earlier message can become right by chance when a later message grows.
    if !messages.iter().any(|content| counts_wrong(content)) {
        assert_eq!(
            after.len(),
            messages.len(),
            "{insertion:?} divided or joined\n\"{}\"\n\"{}\"",
            mailbox.escape_ascii(),
            changed.escape_ascii()
        );
    }

    let undone = Quoting::Rd.quote(rest);
    assert!(*Quoting::Rd.unquote(&undone) == *rest);
    assert!(*Quoting::None.quote(rest) == *rest);
}

/// A window that contains the complete input of libFuzzer with its default maximum size.
const LARGE: usize = 1 << 14;

/// Texts that are inserted at the start and at the end of each body.
const NEW: [&str; 6] = [
    "x",
    "\n\nFrom a@b Thu Jan  1 00:00:00 1970\nA: b\n\n",
    "\r\n\r\nFrom a 10:00\r\n",
    "From x\nA: b\n",
    ">From y 10:00\n",
    "\n",
];

/// Checks that the contents in order, with line endings and `From ` lines between them, are the file.
fn divided(mailbox: &[u8], messages: &[Vec<u8>]) {
    let mut rest = mailbox;
    for content in messages {
        rest = behind_line_ends(rest);
        assert!(rest.starts_with(b"From "), "\"{}\"", rest.escape_ascii());
        let line = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        rest = rest[line..]
            .strip_prefix(content.as_slice())
            .unwrap_or_else(|| {
                panic!(
                    "\"{}\" does not follow in \"{}\"",
                    content.escape_ascii(),
                    mailbox.escape_ascii()
                )
            });
    }
    assert!(
        behind_line_ends(rest).is_empty(),
        "\"{}\"",
        rest.escape_ascii()
    );
}

/// Returns whether a message has a Content-Length that is not the length of its body.
fn counts_wrong(content: &[u8]) -> bool {
    // The empty line after a header without a body belongs to the next separator.
    let body = body_of(content).unwrap_or(content.len());
    let length = content.len() - body;
    content[..body]
        .split(|&byte| byte == b'\n')
        .filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let (name, value) = line.split_at(colon);
            name.trim_ascii()
                .eq_ignore_ascii_case(b"content-length")
                .then(|| value[1..].trim_ascii().to_vec())
        })
        .any(|value| value != length.to_string().into_bytes())
}

fn behind_line_ends(mut bytes: &[u8]) -> &[u8] {
    while let Some(rest) = bytes
        .strip_prefix(b"\n")
        .or_else(|| bytes.strip_prefix(b"\r\n"))
    {
        bytes = rest;
    }
    bytes
}

/// Returns the mailbox after a run, and the contents of its messages.
fn converted(mailbox: &[u8], window: usize, insertion: Option<&str>) -> (Vec<u8>, Vec<Vec<u8>>) {
    thread_local! {
        static FOLDER: tempfile::TempDir = in_memory();
    }
    FOLDER.with(|folder| {
        let source = folder.path().join("in");
        let destination = folder.path().join("out");
        fs::write(&source, mailbox).expect("room for a file");
        let with = Insert {
            insertion,
            seen: Mutex::default(),
        };
        let options = Options {
            read: ReadOptions {
                format: Format::Mbox,
                jobs: 1,
                max_in_flight: 1,
                window,
                ..ReadOptions::default()
            },
            ..Options::default()
        };
        Conversion::of(&source)
            .to(&destination)
            .options(&options)
            .run(&with, &())
            .expect("a file that starts with From is an mbox");
        let out = fs::read(&destination).expect("an output");
        fs::remove_file(&destination).expect("which goes");
        let mut seen = with.seen.into_inner().expect("no thread panicked");
        seen.sort();
        let numbers = seen.iter().map(|(number, _)| *number);
        assert!(numbers.eq(1..=seen.len() as u64));
        (out, seen.into_iter().map(|(_, content)| content).collect())
    })
}

/// Returns a directory in memory, if there is one, because the check writes thousands of files in a second.
fn in_memory() -> tempfile::TempDir {
    let shared = Path::new("/dev/shm");
    if shared.is_dir()
        && let Ok(folder) = tempfile::tempdir_in(shared)
    {
        return folder;
    }
    tempfile::tempdir().expect("a folder")
}

/// Inserts a text at the start and at the end of each body.
struct Insert<'a> {
    insertion: Option<&'a str>,
    seen: Mutex<Vec<(u64, Vec<u8>)>>,
}

impl Transform for Insert<'_> {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        (!bytes.is_empty()).then_some(0)
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, ()), Error> {
        let content = message.content;
        self.seen
            .lock()
            .expect("no thread panicked")
            .push((message.number, content.to_vec()));
        let body = body_of(content);
        let edits = match (self.insertion, body) {
            (Some(new), Some(body)) => {
                let mut places = vec![body, content.len()];
                places.dedup();
                let insert = |at| Edit::insert(at, new);
                Edits::of(places.into_iter().map(insert)).expect("they are two places")
            }
            _ if message.number.is_multiple_of(2) => Edits::new(),
            _ => {
                let all = Edit::replace(Span::new(0, content.len()), content);
                Edits::of([all]).expect("it is one")
            }
        };
        Ok((edits, ()))
    }
}

/// Returns the start of the body, after the first empty line.
fn body_of(content: &[u8]) -> Option<usize> {
    let mut at = 0;
    for line in content.split_inclusive(|&byte| byte == b'\n') {
        at += line.len();
        if line == b"\n" || line == b"\r\n" {
            return Some(at);
        }
    }
    None
}
