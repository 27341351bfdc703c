//! What edits of a message are in the words of the protocol: fields that are added, changed and removed, and one new
//! body.
//!
//! The engine's edits are the result; nothing is decided here. What an edit of the header comes to is found by reading
//! the header that comes out, and holding it against the one that came: fields between two that stay are new or changed.
//! Only what embody has business with may be among them; anything else is a defect, and the message is left.
//!
//! Insertions come first, from the end to the front, so that no place moves that is still to be named; then changes and
//! removals, each name's last one first. How a removed field counts, which mail systems see differently, does not
//! matter then.

use std::collections::HashMap;
use std::io::{self, Write};

use super::codec::{CHUNK, Reply};
use super::draft::Incoming;
use crate::edit::{Edit, Edits, Spliced};
use crate::mime::header::{End, Field, Front, Header};
use crate::span::{Newline, Span};

/// What the mail system is to do to a message.
#[derive(Debug, Default)]
pub struct Changes {
    fields: Vec<FieldChange>,
    /// Where the body starts in the output, if it is another one.
    body: Option<usize>,
}

#[derive(Debug, PartialEq, Eq)]
enum FieldChange {
    /// Before the field of that number among those that came.
    Insert(u32, Text),
    /// Behind all.
    Add(Text),
    /// Another value for the one of this number of its name, from 1.
    Change(u32, Text),
    /// Remove the one of this number of that name.
    Remove(u32, Vec<u8>),
}

/// A field: its name, and its value with the blank in front.
#[derive(Debug, PartialEq, Eq)]
struct Text {
    name: Vec<u8>,
    value: Vec<u8>,
}

/// Whether values of fields have the blank behind the colon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// They have.
    WithBlank,
    /// The mail system takes it away, and puts one there.
    WithoutBlank,
}

/// The place of the first field that a mail system shows: Postfix and Sendmail count their own Received field, which
/// stands before it and is not shown. Sendmail counts further fields that it may add or not; there an insertion may
/// come to stand some fields earlier.
const FIRST_PLACE: u32 = 1;

/// The names of the fields that embody may change in a message's header, in lower case, or how they begin.
const OURS: [&[u8]; 5] = [
    b"content-",
    b"mime-version",
    b"x-embody",
    b"lines",
    b"x-mozilla-",
];

impl Changes {
    /// What `edits` come to.
    ///
    /// # Errors
    /// A sentence on what cannot be said, or is none of embody's business: the message must be left.
    pub fn of(incoming: &Incoming, edits: &Edits) -> Result<Self, String> {
        let output = edits.splice(&incoming.bytes);
        let read = |bytes: &[u8]| {
            let within = Span::new(0, bytes.len());
            Header::read(bytes, within, Front::Message, usize::MAX, |_| false)
        };
        let front = output.front(|front| read(front).body_start());
        let header = read(&front);
        if header.end != End::Regular || header.separator.is_empty() {
            return Err("the header that comes out has no end".to_owned());
        }
        let fields = Comparison::new(incoming, edits, &front, &header)?.changes()?;
        let came = &incoming.header;
        let moved: i64 = edits
            .as_slice()
            .iter()
            .take_while(|edit| edit.span.end <= came.separator.start)
            .map(Edit::growth)
            .sum();
        let expected = i64::try_from(came.body_start()).map(|start| start + moved);
        let is_moved = i64::try_from(header.body_start()) != expected;
        let touches = |edit: &Edit| edit.span.end > came.separator.start;
        let is_changed = is_moved || edits.as_slice().iter().any(touches);
        Ok(Self {
            fields,
            body: is_changed.then(|| header.body_start()),
        })
    }

    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.body.is_none()
    }

    /// Writes all of it, fields first.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write(
        &self,
        output: &Spliced<'_>,
        newline: Newline,
        values: Values,
        to: &mut impl Write,
    ) -> io::Result<()> {
        for change in &self.fields {
            change.reply(values).write(to)?;
        }
        match self.body {
            Some(start) => write_body(output, start, newline, to),
            None => Ok(()),
        }
    }
}

impl FieldChange {
    fn reply(&self, values: Values) -> Reply<'_> {
        let sent = |text: &'_ Text| -> usize {
            usize::from(values == Values::WithoutBlank && text.value.first() == Some(&b' '))
        };
        match self {
            Self::Insert(at, text) => Reply::Insert {
                at: at.saturating_add(FIRST_PLACE),
                name: &text.name,
                value: text.value.get(sent(text)..).unwrap_or_default(),
            },
            Self::Add(text) => Reply::Add {
                name: &text.name,
                value: text.value.get(sent(text)..).unwrap_or_default(),
            },
            Self::Change(which, text) => Reply::Change {
                which: *which,
                name: &text.name,
                value: text.value.get(sent(text)..).unwrap_or_default(),
            },
            Self::Remove(which, name) => Reply::Change {
                which: *which,
                name,
                value: b"",
            },
        }
    }
}

/// The header that came beside the one that comes out.
struct Comparison<'c> {
    incoming: &'c Incoming,
    front: &'c [u8],
    came: Vec<Field>,
    /// Where each field that came begins in the output, if no edit touches it.
    kept: Vec<Option<usize>>,
    comes: Vec<Field>,
}

/// What becomes of a field that came, or a field that is new, in the order of the output.
enum Line<'c> {
    Stays(&'c Field),
    Changes(&'c Field, Text),
    Goes(&'c Field),
    /// Before the field of this number.
    IsNew(usize, Text),
}

impl<'c> Comparison<'c> {
    fn new(
        incoming: &'c Incoming,
        edits: &Edits,
        front: &'c [u8],
        header: &Header,
    ) -> Result<Self, String> {
        let came: Vec<Field> = incoming.header.fields.iter(&incoming.bytes).collect();
        let mut kept = Vec::with_capacity(came.len());
        let mut edits = edits.as_slice().iter().peekable();
        let mut moved = 0_i64;
        for field in &came {
            let Span { start, end } = field.whole;
            let mut is_kept = true;
            while let Some(edit) = edits.next_if(|edit| edit.span.end <= start) {
                moved += edit.growth();
            }
            // One that reaches into the field, or stands in it; it may reach into the next as well.
            while let Some(edit) = edits.peek().filter(|edit| edit.span.start < end) {
                is_kept = false;
                if edit.span.end > end {
                    break;
                }
                moved += edit.growth();
                edits.next();
            }
            let start = i64::try_from(start).ok().map(|start| start + moved);
            kept.push(
                start
                    .filter(|_| is_kept)
                    .and_then(|at| usize::try_from(at).ok()),
            );
        }
        Ok(Self {
            incoming,
            front,
            came,
            kept,
            comes: header.fields.iter(front).collect(),
        })
    }

    /// The fields of both headers in one row.
    fn lines(&self) -> Result<Vec<Line<'_>>, String> {
        let mut lines = Vec::new();
        let mut comes = self.comes.iter().peekable();
        let mut gap: Vec<(usize, &Field)> = Vec::new();
        let ends = self.came.len();
        let all = self.came.iter().zip(&self.kept).enumerate();
        for (number, (field, kept)) in all {
            let Some(at) = *kept else {
                gap.push((number, field));
                continue;
            };
            let mut new = Vec::new();
            while let Some(next) = comes.next_if(|next| next.whole.start < at) {
                new.push(next);
            }
            self.close(&mut gap, &new, number, &mut lines)?;
            let same = |next: &&Field| {
                next.whole.start == at
                    && next.whole.of(self.front) == field.whole.of(&self.incoming.bytes)
            };
            if comes.next().filter(same).is_none() {
                return Err("a field that no edit touches comes out otherwise".to_owned());
            }
            lines.push(Line::Stays(field));
        }
        let new: Vec<&Field> = comes.collect();
        self.close(&mut gap, &new, ends, &mut lines)?;
        Ok(lines)
    }

    /// Between two fields that stay: those that came there, and those that are there now.
    fn close<'l>(
        &'l self,
        gap: &mut Vec<(usize, &'l Field)>,
        new: &[&Field],
        end: usize,
        lines: &mut Vec<Line<'l>>,
    ) -> Result<(), String> {
        let mut before = std::mem::take(gap).into_iter().peekable();
        for field in new {
            let text = self.text(field)?;
            // In Postfix the name becomes the new one, in Sendmail it keeps its case.
            let is_same = |(_, old): &(usize, &Field)| {
                let name = old.name.of(&self.incoming.bytes);
                name.eq_ignore_ascii_case(&text.name) && !text.value.is_empty()
            };
            match before.next_if(is_same) {
                Some((_, old)) => lines.push(Line::Changes(old, text)),
                None => {
                    let at = before.peek().map_or(end, |(number, _)| *number);
                    lines.push(Line::IsNew(at, text));
                }
            }
        }
        lines.extend(before.map(|(_, old)| Line::Goes(old)));
        Ok(())
    }

    /// A field of the output as the protocol has it: folds are LF.
    fn text(&self, field: &Field) -> Result<Text, String> {
        let name = field.name.of(self.front).to_vec();
        let mut value = field.value.of(self.front).to_vec();
        if self.incoming.newline == Newline::CrLf {
            let mut rest = value.iter().copied().peekable();
            let mut folded = Vec::with_capacity(value.len());
            while let Some(octet) = rest.next() {
                if octet != b'\r' || rest.peek() != Some(&b'\n') {
                    folded.push(octet);
                }
            }
            value = folded;
        }
        if name.is_empty() || value.contains(&0) {
            return Err("a field that the protocol cannot say".to_owned());
        }
        Ok(Text { name, value })
    }

    fn changes(&self) -> Result<Vec<FieldChange>, String> {
        let mut inserted = Vec::new();
        let mut added = Vec::new();
        let mut changed = Vec::new();
        let mut seen: HashMap<Vec<u8>, u32> = HashMap::new();
        for line in self.lines()? {
            let name = match &line {
                Line::Stays(field) | Line::Goes(field) | Line::Changes(field, _) => {
                    field.name.of(&self.incoming.bytes)
                }
                Line::IsNew(_, text) => &text.name,
            };
            let name = name.to_ascii_lowercase();
            let is_ours = OURS.iter().any(|ours| name.starts_with(ours));
            if !is_ours && !matches!(line, Line::Stays(_)) {
                let name = String::from_utf8_lossy(&name);
                return Err(format!("an edit of the field {name}"));
            }
            let count = seen.entry(name).or_default();
            *count += 1;
            match line {
                Line::Stays(_) => {}
                Line::Changes(_, text) => changed.push(FieldChange::Change(*count, text)),
                Line::Goes(field) => {
                    let name = field.name.of(&self.incoming.bytes).to_vec();
                    changed.push(FieldChange::Remove(*count, name));
                }
                Line::IsNew(at, text) if at == self.came.len() => {
                    added.push(FieldChange::Add(text))
                }
                Line::IsNew(at, text) => {
                    let at = u32::try_from(at).map_err(|_| "too many fields")?;
                    inserted.push(FieldChange::Insert(at, text));
                }
            }
        }
        inserted.reverse();
        changed.reverse();
        inserted.append(&mut added);
        inserted.append(&mut changed);
        Ok(inserted)
    }
}

/// One series of packets with the new body. Its lines end with CRLF.
fn write_body(
    output: &Spliced<'_>,
    start: usize,
    newline: Newline,
    to: &mut impl Write,
) -> io::Result<()> {
    let mut packets = Packets {
        to,
        waiting: Vec::with_capacity(CHUNK),
        any: false,
    };
    let mut skip = start;
    for chunk in output.chunks() {
        let behind = chunk.get(skip.min(chunk.len())..).unwrap_or_default();
        skip -= skip.min(chunk.len());
        match newline {
            Newline::CrLf => packets.push(behind)?,
            Newline::Lf => {
                let mut rest = behind;
                while let Some(at) = memchr::memchr(b'\n', rest) {
                    let (line, behind) = rest.split_at(at);
                    packets.push(line)?;
                    packets.push(b"\r\n")?;
                    rest = behind.get(1..).unwrap_or_default();
                }
                packets.push(rest)?;
            }
        }
    }
    packets.finish()
}

struct Packets<'w, W> {
    to: &'w mut W,
    waiting: Vec<u8>,
    any: bool,
}

impl<W: Write> Packets<'_, W> {
    fn push(&mut self, mut octets: &[u8]) -> io::Result<()> {
        while !octets.is_empty() {
            let (now, later) = octets.split_at(octets.len().min(CHUNK - self.waiting.len()));
            self.waiting.extend_from_slice(now);
            octets = later;
            if self.waiting.len() == CHUNK {
                self.send()?;
            }
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        self.any = true;
        Reply::Body(&self.waiting).write(self.to)?;
        self.waiting.clear();
        Ok(())
    }

    /// An empty body is said, too.
    fn finish(mut self) -> io::Result<()> {
        match self.waiting.is_empty() && self.any {
            true => Ok(()),
            false => self.send(),
        }
    }
}
