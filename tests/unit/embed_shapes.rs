//! `--embed` in mails of any shape: Python's `email` finds each picture that the HTML names, html5gum sees no other
//! difference, and all bytes outside of the intended edits are the same as in the input.

use std::io::Write as _;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embody::edit::Edit;
use embody::fetch::Canned;
use embody::mime::{self, Field, MessageTree, PartId, PartKind, ScanLimits};
use proptest::prelude::*;

use super::common::bounded::finished;
use super::common::mail::{crlf, expander};
use super::common::named::assert_each_names_a_part;
use super::embed::{data, gif, policy};
use super::embed_digests::md5;

/// Number of pictures on the server. Pictures with higher numbers are missing.
const THERE: u8 = 4;

fn world() -> Canned {
    let css = "b { background: url(1) }";
    let world = Canned::new().with("https://h.example/s.css", Some("text/css"), css);
    (0..THERE).fold(world, |world, number| {
        world.with(
            &format!("https://h.example/{number}"),
            Some("image/gif"),
            gif(9, 9, number),
        )
    })
}

/// A piece of a document, which may be embedded.
#[derive(Clone, Debug)]
enum Piece {
    Text(&'static str),
    Data(u8),
    Remote(u8),
    Style(u8),
    Broken,
    Sheet,
    Click(u8),
}

impl Piece {
    fn html(&self) -> String {
        match self {
            Self::Text(text) => (*text).to_owned(),
            Self::Data(number) => format!(
                "<img alt=\"a &amp; b\" src=\"{}\">",
                data(&gif(9, 9, *number))
            ),
            Self::Remote(number) => format!("<IMG SRC='https://h.example/{number}' width=\"20\">"),
            Self::Style(number) => {
                format!(
                    "<td style=\"color: red; background: url(https://h.example/{number})\" id=x>"
                )
            }
            Self::Broken => {
                "<img src=\"data:image/gif;base64,R0lGOD*\"><img src='data:text/html,x'>".to_owned()
            }
            Self::Sheet => "<link rel=stylesheet href=\"https://h.example/s.css\">".to_owned(),
            Self::Click(number) => format!("<a href=\"https://h.example/{number}\">click</a>"),
        }
    }
}

/// A mail: documents in containers.
#[derive(Clone, Debug)]
enum Shape {
    Html {
        pieces: Vec<Piece>,
        encoding: &'static str,
        digest: Digest,
    },
    Plain,
    Multipart {
        kind: &'static str,
        parts: Vec<Shape>,
        digest: Digest,
    },
    Message {
        inner: Box<Shape>,
        digest: Digest,
    },
}

/// The content for which a Content-MD5 is computed, if there is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Digest {
    None,
    Octets,
    Lines,
    Nothing,
}

impl Digest {
    fn field(self, octets: &[u8]) -> String {
        let digest = match self {
            Self::None => return String::new(),
            Self::Octets => md5(octets),
            Self::Lines => md5(&crlf(octets)),
            Self::Nothing => "x".to_owned(),
        };
        format!("Content-MD5: {digest}\n")
    }
}

impl Shape {
    /// Returns the part. `mark` makes each boundary different.
    fn part(&self, mark: &mut u32) -> String {
        *mark += 1;
        match self {
            Self::Plain => "Content-Type: text/plain\nX-Kept:  a \t\n\nplain \u{e4}  \n".to_owned(),
            Self::Html {
                pieces,
                encoding,
                digest,
            } => {
                let mut body: String = pieces.iter().map(|piece| piece.html() + "\n").collect();
                if *encoding == "7bit" {
                    body = body.replace('\u{e4}', "&auml;");
                }
                let digest = digest.field(body.as_bytes());
                let written = match *encoding {
                    "base64" => {
                        let coded = STANDARD.encode(&body);
                        let lines = coded.as_bytes().chunks(60).map(String::from_utf8_lossy);
                        lines.collect::<Vec<_>>().join("\n")
                    }
                    "quoted-printable" => body
                        .replace('=', "=3D")
                        .replace("> ", ">=20=\n")
                        .replace('\u{e4}', "=C3=A4"),
                    _ => body,
                };
                format!(
                    "Content-Type: text/html;\n charset=utf-8\n{digest}Content-Transfer-Encoding: {encoding}\nContent-Language: de\n\n{written}"
                )
            }
            Self::Multipart {
                kind,
                parts,
                digest,
            } => {
                let boundary = format!("b{mark}");
                let parts: String = parts
                    .iter()
                    .map(|part| format!("--{boundary}\n{}\n", part.part(mark)))
                    .collect();
                let body = format!(" pre \n{parts}--{boundary}--\nepilogue\n");
                let digest = digest.field(body.as_bytes());
                format!(
                    "Content-Type: multipart/{kind};\n boundary={boundary}\nContent-Transfer-Encoding: 8bit\n{digest}\n{body}"
                )
            }
            Self::Message { inner, digest } => {
                let body = inner.message(mark);
                let digest = digest.field(body.as_bytes());
                format!("{digest}Content-Type: message/rfc822\n\n{body}")
            }
        }
    }

    fn message(&self, mark: &mut u32) -> String {
        format!(
            "From: a@b\nX-Odd:  kept\t\nMIME-Version: 1.0\nSubject: s\n{}",
            self.part(mark)
        )
    }
}

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        prop::sample::select(vec![
            "<p>text \u{e4}  </p>",
            "<!-- c -->",
            "<br>",
            "a &lt; b",
            "<b class=x>bold</b> "
        ])
        .prop_map(Piece::Text),
        (0..6_u8).prop_map(Piece::Data),
        (0..6_u8).prop_map(Piece::Remote),
        (0..6_u8).prop_map(Piece::Style),
        Just(Piece::Broken),
        Just(Piece::Sheet),
        (0..3_u8).prop_map(Piece::Click),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    let encodings = vec!["7bit", "8bit", "binary", "base64", "quoted-printable"];
    let digest = || {
        let others = vec![Digest::Octets, Digest::Lines, Digest::Nothing];
        prop_oneof![2 => Just(Digest::None), 1 => prop::sample::select(others)]
    };
    let pieces = prop::collection::vec(piece(), 0..7);
    let leaf = prop_oneof![
        4 => (pieces, prop::sample::select(encodings), digest())
            .prop_map(|(pieces, encoding, digest)| Shape::Html { pieces, encoding, digest }),
        1 => Just(Shape::Plain),
    ];
    leaf.prop_recursive(3, 8, 3, move |inner| {
        let kinds = vec!["related", "alternative", "mixed"];
        prop_oneof![
            4 => (prop::sample::select(kinds), prop::collection::vec(inner.clone(), 1..4), digest())
                .prop_map(|(kind, parts, digest)| Shape::Multipart { kind, parts, digest }),
            1 => (inner, digest())
                .prop_map(|(inner, digest)| Shape::Message { inner: Box::new(inner), digest }),
        ]
    })
}

const READER: &str = r#"
import email, html, json, re, sys, urllib.parse
data = sys.stdin.buffer.read()
while data:
    head, data = data.split(b"\n", 1)
    message, data = data[:int(head)], data[int(head):]
    def entities(part, around):
        """Each leaf with what it stands in, outermost first."""
        around = around + [part]
        if part.is_multipart():
            for child in part.get_payload():
                yield from entities(child, around)
        else:
            yield part, around
    def is_found(document, leaf):
        """An id means a part of the same message, where readers look for it: in a related around the document, and
        in the same branch of an alternative."""
        kinds = lambda parts: [part.get_content_type() for part in parts]
        inside = leaf[len(leaf) - kinds(leaf)[::-1].index("multipart/related") - 1] if "multipart/related" in kinds(leaf) else None
        if not any(part is inside for part in document):
            return False
        common = [one for one, other in zip(document, leaf) if one is other]
        behind = document[[part is inside for part in document].index(True):]
        return common[-1].get_content_type() != "multipart/alternative" and "message/rfc822" not in kinds(behind)
    leaves = list(entities(email.message_from_bytes(message), []))
    shown = []
    for part, place in leaves:
        if part.get_content_type() not in ("text/html", "text/css"):
            continue
        text = part.get_payload(decode=True).decode()
        for url in re.findall(r"cid:([^\s\"')>]+)", text):
            url = urllib.parse.unquote(html.unescape(url))
            bears = lambda leaf: leaf["Content-ID"] == f"<{url}>"
            named = [leaf for leaf, there in leaves if bears(leaf) and is_found(place, there)]
            kind = [leaf.get_content_type() for leaf in named]
            shown.append([part.get_content_type(), kind, [leaf.get_payload(decode=True).hex() for leaf in named]])
    print(json.dumps(shown))
"#;

type Shown = Vec<(String, Vec<String>, Vec<String>)>;

/// Returns the parts that the `cid:` URLs of the documents name, as Python reads them.
fn python_shows(message: &[u8]) -> Option<Shown> {
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
    let input = [format!("{}\n", message.len()).as_bytes(), message].concat();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = finished(python);
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Returns the decoded documents of a type, in order.
fn documents(tree: &MessageTree<'_>, message: &[u8], essence: &str) -> Vec<(PartId, Vec<u8>)> {
    let found = tree
        .ids()
        .filter(|part| tree.part(*part).essence == essence);
    let decoded = |part: PartId| {
        let entity = tree.part(part);
        let octets = entity.encoding.decode(entity.body.of(message));
        (part, octets.expect("it can be decoded").into_owned())
    };
    found.map(decoded).collect()
}

/// Returns the tokens of a document. URLs that were embedded are replaced by the same value.
fn tokens(document: &[u8]) -> Vec<String> {
    let mut emitter = html5gum::DefaultEmitter::<()>::default();
    emitter.naively_switch_states(true);
    html5gum::Tokenizer::new_with_emitter(document, emitter)
        .map(|token| match token {
            Ok(html5gum::Token::StartTag(tag)) => {
                let attributes: Vec<String> = tag
                    .attributes
                    .iter()
                    .map(|(name, value)| format!("{name:?}={value:?}"))
                    .collect();
                format!("{:?} {attributes:?} {}", tag.name, tag.self_closing)
            }
            Ok(token) => format!("{token:?}"),
        })
        .collect()
}

/// Returns whether an edit is intended: an insertion, a value in a document, or a field that moves into the part that
/// is created from a message with only HTML.
fn is_meant(edit: &Edit, tree: &MessageTree<'_>, message: &[u8]) -> bool {
    let span = edit.span;
    let within = |part: PartId, body: bool| {
        let entity = tree.part(part);
        let around = if body { entity.body } else { entity.header };
        around.start <= span.start && span.end <= around.end && entity.essence == "text/html"
    };
    let is_content_field = || {
        let text = String::from_utf8_lossy(span.of(message)).to_ascii_lowercase();
        text.starts_with("content-")
            && tree
                .ids()
                .any(|part| tree.is_message(part) && within(part, false))
    };
    let is_digest = |field: Field| field.is(message, "Content-MD5") && field.whole.contains(span);
    let mut fields = tree.ids().flat_map(|part| tree.fields(part).iter(message));
    span.is_empty()
        || fields.any(is_digest)
        || tree
            .ids()
            .any(|part| tree.part(part).content == PartKind::Leaf && within(part, true))
        || is_content_field()
}

fn check(mail: &[u8]) -> Result<(), TestCaseError> {
    let mut policy = policy();
    policy.embed.styles = true;
    policy.limits.fetches = 100;
    let expander = expander(policy, world());
    let expansion = expander.expand(mail, "test").unwrap();
    let output = expansion.output().into_bytes().into_owned();
    let (before, after) = (
        mime::scan(mail, &ScanLimits::default()),
        mime::scan(&output, &ScanLimits::default()),
    );
    assert_each_names_a_part(mail, &output);
    for edit in expansion.edits.iter() {
        prop_assert!(
            is_meant(edit, &before, mail),
            "{:?} \"{}\" becomes \"{}\"",
            edit.span,
            edit.span.of(mail).escape_ascii(),
            edit.replacement.escape_ascii()
        );
    }
    // All documents are in the output in the same order, and only URLs in them changed.
    let (had, has) = (
        documents(&before, mail, "text/html"),
        documents(&after, &output, "text/html"),
    );
    prop_assert_eq!(had.len(), has.len());
    for ((_, had), (_, has)) in had.iter().zip(&has) {
        let (had, has) = (tokens(had), tokens(has));
        prop_assert_eq!(had.len(), has.len());
        for (had, has) in had.iter().zip(&has) {
            let Some((front, behind)) = has.split_once("cid:") else {
                prop_assert_eq!(had, has);
                continue;
            };
            let end = behind.find(['"', ')']).unwrap();
            let rest = had.strip_prefix(front).unwrap_or_default();
            let from = rest.find(&behind[end..]).unwrap();
            let url = &rest[..from];
            prop_assert!(
                url.starts_with("data:image/gif") || url.starts_with("https://h.example/"),
                "{}",
                had
            );
            prop_assert_eq!(&rest[from..], &behind[end..]);
        }
    }
    // An embedded picture is named in the HTML, and Python reads its content.
    let has_octets: Vec<u8> = has.iter().flat_map(|(_, octets)| octets.clone()).collect();
    let text = String::from_utf8_lossy(&has_octets).into_owned();
    let had_octets: Vec<u8> = had.iter().flat_map(|(_, octets)| octets.clone()).collect();
    let pictures = String::from_utf8_lossy(&had_octets).into_owned();
    for number in 0..6 {
        let was_there = pictures.contains(&data(&gif(9, 9, number)));
        prop_assert!(!was_there || !text.contains(&data(&gif(9, 9, number))));
        let url = format!("https://h.example/{number}");
        let of_click = format!("<a href=\"{url}\">");
        let rest = text.replace(&of_click, "");
        prop_assert_eq!(
            rest.contains(&url),
            number >= THERE && pictures.replace(&of_click, "").contains(&url)
        );
    }
    if let Some(shown) = python_shows(&output) {
        prop_assert_eq!(
            shown.iter().filter(|(of, ..)| of == "text/html").count(),
            text.matches("cid:").count()
        );
        for (of, kinds, octets) in shown {
            prop_assert_eq!(
                octets.len(),
                1,
                "a picture of {} in {}",
                of,
                output.escape_ascii().to_string()
            );
            match kinds[0].as_str() {
                "text/css" => prop_assert!(of == "text/html"),
                kind => {
                    let known = (0..6).any(|number| hex(&gif(9, 9, number)) == octets[0]);
                    prop_assert!(kind == "image/gif" && known);
                }
            }
        }
    }
    check_digests((mail, &before), (&output, &after))?;
    let again = expander.expand(&output, "test").unwrap();
    prop_assert!(
        again.edits.is_empty(),
        "twice is once: {}",
        output.escape_ascii().to_string()
    );
    Ok(())
}

/// Checks that each digest is right, or belongs to a part that did not change.
fn check_digests(
    (mail, before): (&[u8], &MessageTree<'_>),
    (output, after): (&[u8], &MessageTree<'_>),
) -> Result<(), TestCaseError> {
    let had: Vec<Vec<u8>> = documents(before, mail, "text/html")
        .into_iter()
        .map(|(_, octets)| octets)
        .collect();
    for part in after.ids() {
        let entity = after.part(part);
        let Some(value) = after.value(part, "Content-MD5") else {
            continue;
        };
        if entity.content != PartKind::Leaf {
            let body = entity.body.of(output);
            prop_assert!(
                memchr::memmem::find(mail, body).is_some(),
                "{}",
                body.escape_ascii()
            );
            continue;
        }
        let octets = entity.encoding.decode(entity.body.of(output)).unwrap();
        let value = String::from_utf8_lossy(value).trim().to_owned();
        let is_true = [md5(&octets), md5(&crlf(&octets))].contains(&value);
        prop_assert!(
            is_true || had.iter().any(|had| *had == *octets),
            "{}",
            output.escape_ascii()
        );
    }
    Ok(())
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The insertions for the inner message and for the outer one are at the same position.
#[test]
fn message_at_the_end_of_a_related_gets_its_own_pictures() {
    let digest = Digest::Lines;
    let document = |piece: Piece| Shape::Html {
        pieces: vec![piece],
        encoding: "8bit",
        digest,
    };
    for inner in [
        document(Piece::Style(0)),
        Shape::Multipart {
            kind: "related",
            parts: vec![document(Piece::Remote(1))],
            digest,
        },
        Shape::Multipart {
            kind: "alternative",
            parts: vec![Shape::Plain, document(Piece::Sheet)],
            digest,
        },
    ] {
        let inner = Shape::Message {
            inner: Box::new(inner),
            digest,
        };
        let mail = Shape::Multipart {
            kind: "related",
            parts: vec![document(Piece::Data(0)), inner],
            digest,
        }
        .message(&mut 0)
        .into_bytes();
        check(&mail).unwrap();
        check(&crlf(&mail)).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_mime_structure_gets_its_pictures_and_keeps_the_rest(shape in shape(), with_crlf: bool) {
        let mail = shape.message(&mut 0).into_bytes();
        check(&if with_crlf { crlf(&mail) } else { mail })?;
    }

    /// A mail that is cut at any position loses nothing.
    #[test]
    fn a_mail_that_is_cut_off_loses_nothing(shape in shape(), at in any::<prop::sample::Index>()) {
        let mut mail = shape.message(&mut 0).into_bytes();
        mail.truncate(at.index(mail.len()));
        let mut policy = policy();
        policy.embed.styles = true;
        let expander = expander(policy, world());
        let expansion = expander.expand(&mail, "test").unwrap();
        let tree = mime::scan(&mail, &ScanLimits::default());
        for edit in expansion.edits.iter() {
            prop_assert!(is_meant(edit, &tree, &mail), "{:?}", edit);
        }
        let output = expansion.output().into_bytes().into_owned();
        let again = expander.expand(&output, "test").unwrap();
        prop_assert!(again.edits.is_empty(), "twice is once: {}", mail.escape_ascii().to_string());
    }
}
