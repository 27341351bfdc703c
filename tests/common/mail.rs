//! Functions for tests about mail: samples, variants with CRLF, comparing bytes, creating mail with one part, and other
//! programs that must read the same message.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use embody::fetch::{Fetch, NoFetch};
use embody::report::{Outcome, Report};
use embody::{Expander, Policy};

use super::bounded::finished;

/// A message before and after processing.
pub struct Sample {
    pub name: String,
    pub before: Vec<u8>,
    pub after: Vec<u8>,
}

pub fn samples_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

/// Reads all `NAME.in.eml` of a directory with their `NAME.out.eml`. A sample without the second file must stay
/// unchanged.
pub fn samples_in(folder: &Path) -> Vec<Sample> {
    read_samples(folder, |path, before| {
        let after = path.to_string_lossy().replace(".in.eml", ".out.eml");
        fs::read(after).unwrap_or_else(|_| before.to_vec())
    })
}

/// Reads all `NAME.in.eml` of `samples/` with their `NAME.out.eml`.
pub fn changed_samples() -> Vec<Sample> {
    let samples = read_samples(&samples_folder(), written_after);
    assert!(samples.len() > 20, "only {} samples", samples.len());
    samples
}

/// Reads all samples of `mhtml/`, which contain links.
pub fn mhtml_samples() -> Vec<Sample> {
    let samples = read_samples(&samples_folder().join("mhtml"), written_after);
    assert!(samples.len() > 15, "only {} samples", samples.len());
    samples
}

/// Reads all samples of `untouched/`, which must stay unchanged.
pub fn untouched_samples() -> Vec<Sample> {
    let folder = samples_folder().join("untouched");
    let samples = read_samples(&folder, |_, before| before.to_vec());
    assert!(samples.len() > 20, "only {} samples", samples.len());
    samples
}

/// Returns the content of the `.out.eml` of a sample.
fn written_after(path: &Path, _before: &[u8]) -> Vec<u8> {
    let after = path.to_string_lossy().replace(".in.eml", ".out.eml");
    fs::read(&after).unwrap_or_else(|problem| panic!("{after}: {problem}"))
}

fn read_samples(folder: &Path, after: impl Fn(&Path, &[u8]) -> Vec<u8>) -> Vec<Sample> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".in.eml"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let before = fs::read(path).unwrap();
            Sample {
                name: path.file_name().unwrap().to_string_lossy().into_owned(),
                after: after(path, &before),
                before,
            }
        })
        .collect()
}

/// Returns the message with CRLF instead of each LF.
pub fn crlf(bytes: &[u8]) -> Vec<u8> {
    let mut twin = Vec::with_capacity(bytes.len() + bytes.len() / 16);
    for &byte in bytes {
        if byte == b'\n' && twin.last() != Some(&b'\r') {
            twin.push(b'\r');
        }
        twin.push(byte);
    }
    twin
}

/// Expands a message with the default policy.
pub fn expand(message: &[u8]) -> (Vec<u8>, Report) {
    expand_with(Policy::default(), message)
}

/// Creates an expander that retrieves content with `fetch`.
pub fn expander(policy: Policy, fetch: impl Fetch + 'static) -> Expander {
    let builder = Expander::builder(policy).fetch(fetch);
    builder.build().expect("nothing of the system is used")
}

/// Expands a message without retrieving content.
pub fn expand_with(policy: Policy, message: &[u8]) -> (Vec<u8>, Report) {
    let expander = expander(policy, NoFetch);
    let expansion = expander.expand(message, "test").expect("nothing to defer");
    (
        expansion.output().into_bytes().into_owned(),
        expansion.report,
    )
}

/// Returns a multipart with one external body between two other parts.
pub fn with_external_body(parameters: &str, phantom: &str) -> Vec<u8> {
    format!(
        "From: a@example.org\nMIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=\"b0\"\n\n\
         --b0\n\nbefore\n--b0\n\
         Content-Type: message/external-body; {parameters}\n\n{phantom}\n--b0\n\nbehind\n--b0--\n"
    )
    .into_bytes()
}

/// Returns a multipart with one external body of `access-type=URL`.
pub fn with_url(url: &str, phantom: &str) -> Vec<u8> {
    with_external_body(&format!("access-type=URL;\n URL=\"{url}\""), phantom)
}

/// Returns a mail with one reference that every policy fills in.
pub fn expanding() -> Vec<u8> {
    with_url("data:text/plain,x", "Content-Type: text/plain\n")
}

/// Returns mailboxes of two messages, each of which contains a reference that every policy fills in. The forms are those that
/// mail programs write: with other line endings, text before the first separator, or incomplete separators.
pub fn mailboxes_of_two() -> Vec<(&'static str, Vec<u8>)> {
    let message = expanding();
    let separator = b"From a@b Sat Jan  3 01:05:34 1996\n".as_slice();
    let mbox = [separator, &message, b"\n"].concat().repeat(2);
    let close = message.trim_ascii_end();
    let mark = b"\x01\x01\x01\x01\n";
    let text = String::from_utf8_lossy(&mbox).into_owned();
    vec![
        ("mbox", mbox.clone()),
        ("mbox with CR LF", text.replace('\n', "\r\n").into_bytes()),
        ("mbox after empty lines", [b"\n\n", &*mbox].concat()),
        ("mbox with a mark", [b"\xef\xbb\xbf", &*mbox].concat()),
        (
            "mbox without empty lines",
            [separator, close, b"\n"].concat().repeat(2),
        ),
        (
            "mbox without dates",
            [b"From \n", &*message, b"\n"].concat().repeat(2),
        ),
        ("MMDF", [mark, &*message, mark].concat().repeat(2)),
    ]
}

/// Returns single messages that are not mailboxes, although lines of them start with `From `. Each contains a reference that
/// every policy fills in.
pub fn singles_with_from_lines() -> Vec<(&'static str, Vec<u8>)> {
    let message = expanding();
    let text = String::from_utf8_lossy(&message).into_owned();
    let separator = "From a@b Sat Jan  3 01:05:34 1996\n";
    let preamble = |lines: &str| text.replacen("\n\n", &format!("\n\n{lines}"), 1);
    vec![
        ("a separator alone", format!("{separator}{text}")),
        ("prose", preamble("From here on it is easy.\n\n")),
        (
            "a separator and prose",
            format!("{separator}{}", preamble("From here on it is easy.\n\n")),
        ),
        (
            "another mail in the body",
            preamble(&format!("\n{separator}From: c@d\nSubject: old\n\nold\n\n")),
        ),
        (
            "a From field that looks like a separator",
            format!(
                "From : a@b\n{}",
                preamble(&format!("\n{separator}From: c@d\n\nold\n\n"))
            ),
        ),
    ]
    .into_iter()
    .map(|(name, text)| (name, text.into_bytes()))
    .collect()
}

/// Returns the part that replaced the external body of [`with_external_body`].
pub fn second_part(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output).into_owned();
    let parts: Vec<&str> = text.split("\n--b0\n").collect();
    parts.get(2).copied().unwrap_or_default().to_owned()
}

/// Checks that the message stayed unchanged, for this reason.
pub fn assert_left(policy: Policy, message: &[u8], reason: &str) {
    let (output, report) = expand_with(policy, message);
    assert_bytes(&output, message, "what was left must be as it came");
    let rows: Vec<_> = report.rows.iter().collect();
    assert!(!rows.is_empty(), "nothing was reported");
    for row in rows {
        assert_eq!(row.outcome, Outcome::Left, "{row:?}");
        assert_eq!(
            row.reason.map(|reason| reason.as_str()),
            Some(reason),
            "{row:?}"
        );
        assert!(!row.detail.is_empty());
    }
}

/// Compares bytes. A failure shows the first lines that differ.
#[track_caller]
pub fn assert_bytes(actual: &[u8], expected: &[u8], what: &str) {
    if actual == expected {
        return;
    }
    let lines = |bytes: &[u8]| -> Vec<String> {
        bytes
            .split_inclusive(|&byte| byte == b'\n')
            .map(|line| line.escape_ascii().to_string())
            .collect()
    };
    let (actual, expected) = (lines(actual), lines(expected));
    let same = actual
        .iter()
        .zip(&expected)
        .take_while(|(one, other)| one == other)
        .count();
    let shown = |lines: &[String], sign: char| {
        let from = same.min(lines.len());
        lines[from..]
            .iter()
            .take(12)
            .map(|line| format!("{sign} {}\n", line.chars().take(160).collect::<String>()))
            .collect::<String>()
    };
    panic!(
        "{what}\nfrom line {} on, - expected, + actual:\n{}{}",
        same + 1,
        shown(&expected, '-'),
        shown(&actual, '+')
    );
}

/// A leaf part as a mail program reads it: its type, and its decoded content, with LF line endings for text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leaf {
    pub essence: String,
    pub octets: Vec<u8>,
}

impl std::fmt::Debug for Leaf {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{}: \"{}\"",
            self.essence,
            self.octets.escape_ascii()
        )
    }
}

impl Leaf {
    pub fn new(essence: &str, octets: &[u8]) -> Self {
        let octets = if essence.starts_with("text/") {
            // Mail programs differ in the line endings of text.
            let text: Vec<u8> = octets.iter().copied().filter(|&b| b != b'\r').collect();
            text.trim_ascii_end().to_vec()
        } else if essence.starts_with("message/") {
            // Mail programs parse these parts in different ways.
            Vec::new()
        } else {
            octets.to_vec()
        };
        Self {
            essence: essence.to_ascii_lowercase(),
            octets,
        }
    }
}

const READER: &str = r#"
import sys, json, email
data = sys.stdin.buffer.read()
messages = []
while data:
    head, data = data.split(b"\n", 1)
    length = int(head)
    messages.append(data[:length])
    data = data[length:]
for message in messages:
    leaves = []
    parts = [email.message_from_bytes(message)]
    while parts:
        part = parts.pop()
        kind = part.get_content_type()
        # The package enters every message/*; only whole messages are containers for us.
        opaque = kind.startswith("message/") and kind not in ("message/rfc822", "message/global")
        if opaque or not part.is_multipart():
            payload = b"" if opaque else part.get_payload(decode=True)
            leaves.append([kind, (payload or b"").hex()])
        else:
            parts.extend(reversed(part.get_payload()))
    print(json.dumps(leaves))
"#;

/// Returns the leaf parts that Python's package `email` reads, as one list for each message.
///
/// Returns `None` and prints a line if Python is not installed. With `EMBODY_REQUIRE_ALL`, the test fails instead.
pub fn python_leaves(messages: &[Vec<u8>]) -> Option<Vec<Vec<Leaf>>> {
    let started = Command::new("python3")
        .args(["-c", READER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut python) = started else {
        assert!(
            std::env::var_os("EMBODY_REQUIRE_ALL").is_none(),
            "python3 is required"
        );
        println!("skipped: no python3 to read the messages with");
        return None;
    };
    let mut stdin = python.stdin.take().unwrap();
    let mut input = Vec::new();
    for message in messages {
        input.extend_from_slice(format!("{}\n", message.len()).as_bytes());
        input.extend_from_slice(message);
    }
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = finished(python);
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "python3 failed");
    let lists: Vec<Vec<Leaf>> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| {
            let leaves: Vec<(String, String)> = serde_json::from_str(line).unwrap();
            leaves
                .iter()
                .map(|(essence, hex)| Leaf::new(essence, &from_hex(hex)))
                .collect()
        })
        .collect();
    assert_eq!(lists.len(), messages.len());
    Some(lists)
}

fn from_hex(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Returns the leaf parts that mail-parser reads.
pub fn mail_parser_leaves(message: &[u8]) -> Vec<Leaf> {
    use mail_parser::{MessageParser, MimeHeaders as _, PartType};

    fn walk(message: &mail_parser::Message<'_>, leaves: &mut Vec<Leaf>) {
        for part in &message.parts {
            let essence = part.content_type().map_or_else(
                || "text/plain".to_owned(),
                |named| format!("{}/{}", named.ctype(), named.subtype().unwrap_or_default()),
            );
            match &part.body {
                PartType::Multipart(_) => {}
                PartType::Message(inner) => walk(inner, leaves),
                PartType::Text(text) | PartType::Html(text) => {
                    leaves.push(Leaf::new(&essence, text.as_bytes()));
                }
                PartType::Binary(octets) | PartType::InlineBinary(octets) => {
                    leaves.push(Leaf::new(&essence, octets));
                }
            }
        }
    }

    let mut leaves = Vec::new();
    if let Some(message) = MessageParser::default().parse(message) {
        walk(&message, &mut leaves);
    }
    leaves
}
