//! What the tests about mail share: samples, twins, comparing bytes, building one-part mails, and
//! the outside readers that must see the same message.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use embody::fetch::{Fetch, NoFetch};
use embody::report::{Outcome, Report};
use embody::{Expander, Policy};

use super::bounded::finished;

/// A message before and after.
pub struct Sample {
    pub name: String,
    pub before: Vec<u8>,
    pub after: Vec<u8>,
}

pub fn samples_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

/// All `NAME.in.eml` of a folder with their `NAME.out.eml`; without one, they come out as they went in.
pub fn samples_in(folder: &Path) -> Vec<Sample> {
    read_samples(folder, |path, before| {
        let after = path.to_string_lossy().replace(".in.eml", ".out.eml");
        fs::read(after).unwrap_or_else(|_| before.to_vec())
    })
}

/// All `NAME.in.eml` with their `NAME.out.eml`.
pub fn changed_samples() -> Vec<Sample> {
    let samples = read_samples(&samples_folder(), written_after);
    assert!(samples.len() > 20, "only {} samples", samples.len());
    samples
}

/// All of `mhtml/`: what becomes of links.
pub fn mhtml_samples() -> Vec<Sample> {
    let samples = read_samples(&samples_folder().join("mhtml"), written_after);
    assert!(samples.len() > 15, "only {} samples", samples.len());
    samples
}

/// All of `untouched/`, which come out as they went in.
pub fn untouched_samples() -> Vec<Sample> {
    let folder = samples_folder().join("untouched");
    let samples = read_samples(&folder, |_, before| before.to_vec());
    assert!(samples.len() > 20, "only {} samples", samples.len());
    samples
}

/// What stands in the `.out.eml` beside a sample.
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

/// The same message with CRLF wherever a line ended in LF.
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

/// Expands with the default policy.
pub fn expand(message: &[u8]) -> (Vec<u8>, Report) {
    expand_with(Policy::default(), message)
}

/// An expander that retrieves with this.
pub fn expander(policy: Policy, fetch: impl Fetch + 'static) -> Expander {
    let builder = Expander::builder(policy).fetch(fetch);
    builder.build().expect("nothing of the system is used")
}

/// Expands and retrieves nothing.
pub fn expand_with(policy: Policy, message: &[u8]) -> (Vec<u8>, Report) {
    let expander = expander(policy, NoFetch);
    let expansion = expander.expand(message, "test").expect("nothing to defer");
    (
        expansion.output().into_bytes().into_owned(),
        expansion.report,
    )
}

/// A multipart with one external body between two other parts.
pub fn with_external_body(parameters: &str, phantom: &str) -> Vec<u8> {
    format!(
        "From: a@example.org\nMIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=\"b0\"\n\n\
         --b0\n\nbefore\n--b0\n\
         Content-Type: message/external-body; {parameters}\n\n{phantom}\n--b0\n\nbehind\n--b0--\n"
    )
    .into_bytes()
}

/// The same, for `access-type=URL`.
pub fn with_url(url: &str, phantom: &str) -> Vec<u8> {
    with_external_body(&format!("access-type=URL;\n URL=\"{url}\""), phantom)
}

/// A mail with one reference that every policy fills.
pub fn expanding() -> Vec<u8> {
    with_url("data:text/plain,x", "Content-Type: text/plain\n")
}

/// The part that stands in place of the external body of [`with_external_body`].
pub fn second_part(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output).into_owned();
    let parts: Vec<&str> = text.split("\n--b0\n").collect();
    parts.get(2).copied().unwrap_or_default().to_owned()
}

/// Asserts that the message came out as it went in, and why.
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

/// Compares bytes; shows the first lines that differ.
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

/// A leaf as a reader sees it: its type, and its decoded octets with LF line ends for text.
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
            // Readers differ in what they make of line ends of text.
            let text: Vec<u8> = octets.iter().copied().filter(|&b| b != b'\r').collect();
            text.trim_ascii_end().to_vec()
        } else if essence.starts_with("message/") {
            // Readers take these apart, each in its way.
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

/// The leaves as Python's `email` package sees them, one list for each message.
///
/// None, with a printed line, where there is no Python; a failure if `EMBODY_REQUIRE_ALL` is set.
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

/// The leaves as mail-parser sees them.
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
