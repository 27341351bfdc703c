//! uuencoded files in text: `begin 644 name`, lines of data, and `end` become an attachment where they were.
//!
//! Only a block that is complete and decodes without an error is taken. Quoted text and signed parts are not changed.

use super::handled::Handled;
use crate::edit::{Edit, Edits, Group};
use crate::engine::outlook::compose::{self, Leaf, Part, delimiter, guessed};
use crate::external_body::Follow;
use crate::ledger::Ledger;
use crate::mime::header::unfold;
use crate::mime::media_type;
use crate::mime::transfer::{encode_base64, encode_like, with_newlines};
use crate::mime::{Content, PartId, TransferEncoding, Tree, entity};
use crate::plan::protection;
use crate::policy::Policy;
use crate::report::{Detail, Kind, Outcome, Provenance, Reason, Refusal, Row, Setting};
use crate::span::{Lines, Newline, Span};

/// The start of the line that begins a block.
pub const BEGIN: &[u8] = b"begin ";

/// Octets of a name, at most.
const LONGEST_NAME: usize = 255;

struct Block {
    /// The lines of the block, with their line ends.
    span: Span,
    name: String,
    octets: Vec<u8>,
}

/// Finds the blocks of a text, in time that is linear in the text.
fn blocks(text: &[u8]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = Lines::new(text, Span::new(0, text.len())).peekable();
    while let Some(line) = lines.next() {
        let Some(name) = begins(line.content.of(text)) else {
            continue;
        };
        let start = line.whole.start;
        let mut octets = Vec::new();
        let mut is_ended = false;
        let (mut is_short, mut has_grave) = (false, false);
        // Lines that are not data belong to the text again, and may begin a block.
        while let Some(next) = lines.peek() {
            let content = next.content.of(text);
            if is_ended {
                // An encoder that writes no blanks loses none at the ends of lines: such a line is cut.
                let is_cut = is_short && has_grave;
                if content.trim_ascii_end() == b"end" && !is_cut {
                    let span = Span::new(start, next.whole.end);
                    blocks.push(Block { span, name, octets });
                    lines.next();
                }
                break;
            }
            match data(content, &mut octets) {
                Some((0, _)) => is_ended = true,
                Some((_, short)) => {
                    is_short |= short;
                    has_grave |= content.contains(&b'`');
                }
                None => break,
            }
            lines.next();
        }
    }
    blocks
}

/// `begin`, three or four octal digits, and a name.
fn begins(line: &[u8]) -> Option<String> {
    let rest = line.strip_prefix(BEGIN)?;
    let digits = rest
        .iter()
        .take_while(|byte| (b'0'..=b'7').contains(byte))
        .count();
    let name = rest.get(digits..)?.strip_prefix(b" ")?;
    let name = String::from_utf8_lossy(name).trim().to_owned();
    let name = name
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or_default()
        .to_owned();
    let is_fit = (3..=4).contains(&digits)
        && !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name != ".."
        && !name.chars().any(char::is_control);
    is_fit.then_some(name)
}

/// Appends what a line encodes, and returns its length, and whether symbols are missing at its end. `None`: it is not a
/// line of data.
fn data(line: &[u8], octets: &mut Vec<u8>) -> Option<(usize, bool)> {
    let value = |byte: u8| match byte {
        b' '..=b'`' => Some((byte - b' ') & 63),
        _ => None,
    };
    // A blank, which is nothing encoded, may have been removed.
    let Some((first, symbols)) = line.split_first() else {
        return Some((0, false));
    };
    let length = usize::from(value(*first)?);
    let wanted = length.div_ceil(3) * 4;
    // Mail programs remove blanks at the ends of lines, and some encoders append a checksum.
    if symbols.len() > wanted + 1 || symbols.iter().any(|byte| value(*byte).is_none()) {
        return None;
    }
    let is_short = symbols.len() < wanted;
    let start = octets.len();
    let mut symbols = symbols.iter().copied().chain(std::iter::repeat(b' '));
    for _ in 0..length.div_ceil(3) {
        let mut group = [0; 4];
        for symbol in &mut group {
            *symbol = value(symbols.next()?)?;
        }
        let [a, b, c, d] = group;
        octets.extend([a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d]);
    }
    octets.truncate(start + length);
    Some((length, is_short))
}

/// Opens the texts of a message.
pub fn open(
    tree: &Tree<'_>,
    policy: &Policy,
    ledger: &mut Ledger,
    name: &str,
    _handled: &mut Handled,
) -> (Edits, Vec<Row>) {
    let mut edits = Edits::new();
    let mut rows = Vec::new();
    for part in tree.ids().filter(|id| is_text(tree, *id)) {
        let mut row = Row::new(name, tree.number(part), Kind::Uuencode, Outcome::Left);
        match run(tree, part, (policy, ledger), &mut edits, &mut row) {
            Ok(true) => rows.push(row),
            Ok(false) => {}
            Err(refusal) => {
                row.tell_refusal(refusal);
                rows.push(row);
            }
        }
    }
    (edits, rows)
}

fn is_text(tree: &Tree<'_>, id: PartId) -> bool {
    let part = tree.part(id);
    part.content == Content::Leaf
        && part.essence == "text/plain"
        && !tree.has_disposition(id, "attachment")
}

/// `Ok(false)`: the text has no blocks.
fn run(
    tree: &Tree<'_>,
    id: PartId,
    (policy, ledger): (&Policy, &mut Ledger),
    edits: &mut Edits,
    row: &mut Row,
) -> Result<bool, Refusal> {
    let part = tree.part(id);
    let body = part.body.of(tree.original);
    // In base64 the line that begins a block is not to be seen.
    let is_plain = !part.encoding.is_encoded();
    if is_plain && memchr::memmem::find(body, BEGIN).is_none() {
        return Ok(false);
    }
    ledger.work(body.len())?;
    let Some(text) = part.encoding.decode(body) else {
        return Ok(false);
    };
    if memchr::memmem::find(&text, BEGIN).is_none() {
        return Ok(false);
    }
    ledger.work(text.len().saturating_mul(2))?;
    let mut blocks = blocks(&text);
    blocks.retain(|block| !block.octets.is_empty());
    if blocks.is_empty() {
        return Ok(false);
    }
    row.media_type = Some("text/plain".to_owned());
    row.bytes = Some(blocks.iter().map(|block| block.octets.len() as u64).sum());
    if let Some(refusal) = protection(tree, id, policy) {
        return Err(refusal);
    }
    policy.judge_form(Follow::Uuencode)?;
    if tree.ids().count() + blocks.len() * 2 > policy.limits.parts {
        let detail = Detail::from("the files and texts are more than ").naming(Setting::Parts);
        return Err(Refusal::lasting(Reason::TooManyParts, detail));
    }
    for block in &blocks {
        let essence = guessed(Some(&block.name), &block.octets);
        policy.judge_type(essence)?;
    }
    let names: Vec<String> = blocks.iter().map(|block| block.name.clone()).collect();
    let group = divided(tree, id, &text, blocks);
    let growth: i64 = group.iter().map(Edit::growth).sum();
    ledger.grow(growth)?;
    if edits.add(group).is_err() {
        ledger.lose(growth);
        let detail = "it overlaps with another change of the message";
        return Err(Refusal::lasting(Reason::BoundaryCollision, detail));
    }
    row.outcome = Outcome::Expanded;
    row.from = Provenance::Message;
    const MOST: usize = 10;
    let more = names.len().saturating_sub(MOST);
    let mut detail = names
        .iter()
        .take(MOST)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if more > 0 {
        detail.push_str(&format!(" and {more} more"));
    }
    row.detail = format!("the text contained {detail}").into();
    Ok(true)
}

/// The text around the blocks keeps its type and its encoding.
fn divided(tree: &Tree<'_>, id: PartId, text: &[u8], blocks: Vec<Block>) -> Group {
    let part = tree.part(id);
    let newline = tree.newline;
    let around = tree.boundaries();
    let mut parts: Vec<Part<'_>> = Vec::new();
    let fields = texts_fields(tree, id);
    let push_text = |parts: &mut Vec<Part<'_>>, piece: &[u8]| {
        if piece.trim_ascii().is_empty() {
            return;
        }
        let body = encoded(part.encoding, piece, newline);
        parts.push(Part::Raw([&fields, newline.bytes(), &body].concat()));
    };
    let mut at = 0;
    for block in blocks {
        push_text(
            &mut parts,
            text.get(at..block.span.start).unwrap_or_default(),
        );
        at = block.span.end;
        let leaf = Leaf::file(&block.name, block.octets);
        parts.push(Part::Leaf(leaf));
    }
    push_text(&mut parts, text.get(at..).unwrap_or_default());
    let above = part.parent.map(|above| tree.part(above));
    let boundary = above.and_then(|above| match above.essence.as_str() {
        "multipart/mixed" => above.content.boundary(),
        _ => None,
    });
    let end = newline.bytes();
    if let Some(boundary) = boundary {
        let line = [end, b"--", boundary, end].concat();
        let written: Vec<Vec<u8>> = parts.iter().map(|it| it.write(newline, &around)).collect();
        let mut new = written.join(line.as_slice());
        if tree.abuts_boundary(id) {
            new.extend_from_slice(end);
        }
        return vec![Edit::replace(part.span, new)];
    }
    let written: Vec<Vec<u8>> = parts.iter().map(|it| it.write(newline, &around)).collect();
    let content = written.concat();
    let boundary = compose::boundary(&content, newline, &around);
    drop(content);
    let parameters = [("boundary".to_owned(), boundary.clone())];
    let mut header = media_type::write("multipart/mixed", &parameters);
    if !part.encoding.is_encoded() && !text.is_ascii() {
        entity::push_field(
            &mut header,
            "Content-Transfer-Encoding",
            "8bit",
            Newline::CrLf,
        );
    }
    let mut header = with_newlines(header, newline);
    let mut body = Vec::new();
    for piece in written {
        body.extend_from_slice(&delimiter(&boundary, "", newline));
        body.extend_from_slice(&piece);
        body.extend_from_slice(end);
    }
    body.extend_from_slice(&delimiter(&boundary, "--", newline));
    if !part.body.of(tree.original).ends_with(b"\n") && !tree.abuts_boundary(id) {
        body.truncate(body.len() - end.len());
    }
    let mut group = Group::new();
    let mut place = None;
    let fields = tree.fields(id);
    for field in fields
        .iter(tree.original)
        .filter(|it| describes(it, tree.original))
    {
        match place {
            None => place = Some(field.whole),
            Some(_) => group.push(Edit::remove(field.whole)),
        }
    }
    if tree.is_message(id) && fields.first(tree.original, "MIME-Version").is_none() {
        let version = [b"MIME-Version: 1.0", end].concat();
        header.splice(..0, version);
    }
    group.push(Edit::replace(
        place.unwrap_or(Span::empty_at(part.agreed_end)),
        header,
    ));
    if part.separator.is_empty() {
        group.push(Edit::insert(part.agreed_end, end));
    }
    group.push(Edit::replace(part.body, body));
    group
}

fn describes(field: &crate::mime::Field, original: &[u8]) -> bool {
    let names = [
        "Content-Type",
        "Content-Transfer-Encoding",
        "Content-Disposition",
    ];
    names.iter().any(|name| field.is(original, name))
}

/// Without the name of a file, because the pieces are not that file.
fn texts_fields(tree: &Tree<'_>, id: PartId) -> Vec<u8> {
    let mut fields = Vec::new();
    for field in tree.fields(id).iter(tree.original) {
        let is_type = field.is(tree.original, "Content-Type");
        let is_encoding = field.is(tree.original, "Content-Transfer-Encoding");
        if (is_type || is_encoding)
            && !unfold(field.value.of(tree.original))
                .trim_ascii()
                .is_empty()
        {
            fields.extend_from_slice(field.whole.of(tree.original));
            if !fields.ends_with(b"\n") {
                fields.extend_from_slice(tree.newline.bytes());
            }
        }
    }
    fields
}

/// Without the line end before a block.
fn encoded(encoding: TransferEncoding, piece: &[u8], newline: Newline) -> Vec<u8> {
    let piece = piece.strip_suffix(b"\n").unwrap_or(piece);
    let piece = piece.strip_suffix(b"\r").unwrap_or(piece);
    match encoding {
        TransferEncoding::Base64 => encode_base64(piece, newline).body,
        TransferEncoding::QuotedPrintable => {
            let encoded = encode_like(encoding, piece, true, newline, &[]);
            encoded.map_or_else(Vec::new, |encoded| encoded.body)
        }
        _ => piece.to_vec(),
    }
}
