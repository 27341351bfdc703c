//! Processes a message, checks the result, and converts its edits to replies of the protocol.
//!
//! If the processing of a message fails, the message is accepted unchanged, and a line in the log contains the reason.
//! Only with `--on-failure defer` does the mail system try again later. No mail is refused.
//!
//! The header of the result is compared with the original header. Fields between two unchanged fields are new or
//! changed. If one of them is a field that embody never writes, embody has a defect, and the message is left unchanged.
//!
//! The replies first insert fields, from the end of the header to its start, so that an insertion does not move a later
//! position. Then they change and remove fields, for each name the last field first, because mail systems disagree on
//! whether a removed field still counts.

use std::collections::HashMap;
use std::io::{self, Write};
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::codec::{CHUNK, MilterReply};
use super::draft::{HandoverResult, IncomingMail};
use crate::edit::{Edit, Edits, Spliced, moved};
use crate::engine::report::{Detail, Report, Setting};
use crate::error::Error;
use crate::expand::Expander;
use crate::mime::header::{Field, Header, SectionEnd};
use crate::mime::transfer::with_newlines;
use crate::span::{Newline, Span, SpanLines, split_once};

#[derive(Debug)]
pub enum FilterVerdict {
    Unchanged(HandoverResult),
    Changed(Edits, HeaderChanges),
    Later(Detail),
}

impl FilterVerdict {
    pub fn write(&self, incoming: &IncomingMail, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Later(_) => return MilterReply::TryLater.write(to),
            Self::Changed(edits, changes) => {
                changes.write(&edits.splice(&incoming.bytes), incoming.newline, to)?;
            }
            Self::Unchanged(_) => {}
        }
        MilterReply::Continue.write(to)
    }
}

pub(super) fn most(expander: &Expander) -> usize {
    let most = expander.policy().limits.message;
    most.map_or(usize::MAX, |most| {
        usize::try_from(most).unwrap_or(usize::MAX)
    })
}

pub fn judge(
    expander: &Expander,
    incoming: &IncomingMail,
    keeps_blanks: bool,
) -> (FilterVerdict, Report) {
    let judged = catch_unwind(AssertUnwindSafe(|| {
        let (bytes, searched) = (&incoming.bytes, incoming.searched);
        let prefilter = expander.prefilter();
        let kinds = prefilter.kinds_in_all(bytes, searched, incoming.kinds);
        match expander.expand_searched(bytes, kinds, &incoming.queue_id) {
            Ok(expansion) => {
                let verdict = verdict(expander, incoming, expansion.edits, keeps_blanks)?;
                Ok((verdict, expansion.report))
            }
            Err(Error::Deferred(why)) => Ok((FilterVerdict::Later(why), Report::default())),
            Err(error) => Err(HandoverResult::Trouble(error.to_string())),
        }
    }));
    let defect = || HandoverResult::Trouble("a defect of embody; please report it".to_owned());
    // After an error, the message is accepted unchanged, so the report is emptied. It would list changes that were not
    // made.
    judged
        .unwrap_or_else(|_| Err(defect()))
        .unwrap_or_else(|left| (FilterVerdict::Unchanged(left), Report::default()))
}

fn verdict(
    expander: &Expander,
    incoming: &IncomingMail,
    edits: Edits,
    keeps_blanks: bool,
) -> Result<FilterVerdict, HandoverResult> {
    if edits.is_empty() {
        return Ok(FilterVerdict::Unchanged(HandoverResult::AsItIs));
    }
    // The engine limits the growth, but does not count the field of `--mark`, so the length is checked again.
    let length = edits.splice(&incoming.bytes).len();
    let most = most(expander);
    if length > most && length > incoming.bytes.len() {
        return Err(HandoverResult::TooLarge(
            Detail::from(format!(
                "after the changes, the message would have {length} bytes; "
            ))
            .naming(Setting::Message)
            .measuring(most as u64, length as u64)
            .then(format!(" is {}", most)),
        ));
    }
    let changes = HeaderChanges::of(incoming, &edits, keeps_blanks)?;
    Ok(if changes.is_empty() {
        FilterVerdict::Unchanged(HandoverResult::AsItIs)
    } else {
        FilterVerdict::Changed(edits, changes)
    })
}

#[derive(Debug)]
pub struct HeaderChanges {
    /// Packets that change header fields, in sending order.
    fields: Vec<u8>,
    body: Option<usize>,
}

/// Offset for the position of an inserted field: Postfix and Sendmail count their own Received field, which a filter
/// does not see. If Sendmail counts further fields of its own, an inserted field appears a few lines too early.
const FIRST_PLACE: u32 = 1;

/// Names, or starts of names, of the fields that embody may change, in lower case.
const OURS: [&[u8]; 5] = [
    b"content-",
    b"mime-version",
    b"x-embody",
    b"lines",
    b"x-mozilla-",
];

/// Maximum length of a header field, in bytes. Sendmail rejects larger packets, and would then try to deliver the
/// message again without end.
const LONGEST_FIELD: usize = CHUNK - 6;

/// Maximum number of changes of header fields in one message. For each change, the mail system searches the header from
/// its start, so a larger number could block it in a header with many fields.
const MOST_CHANGES: usize = 250;

fn defect(what: &str) -> HandoverResult {
    HandoverResult::Trouble(format!("a defect of embody (please report it): {what}"))
}

impl HeaderChanges {
    /// Compares the header before and after the edits. `keeps_blanks` is false for a mail system that adds the blank
    /// after the colon of a field itself.
    pub fn of(
        incoming: &IncomingMail,
        edits: &Edits,
        keeps_blanks: bool,
    ) -> Result<Self, HandoverResult> {
        let output = edits.splice(&incoming.bytes);
        let read = |bytes: &[u8]| Header::of_message(bytes, usize::MAX);
        let front = output.front(|front| read(front).body_start());
        let (section, body_start) = {
            let header = read(&front);
            if header.end != SectionEnd::Regular || header.separator.is_empty() {
                return Err(defect(
                    "the changed message has no empty line after its header",
                ));
            }
            (header.span, header.body_start())
        };
        let comparison = HeaderComparison {
            incoming,
            edits,
            front: &front,
            comes: section,
            keeps_blanks,
        };
        let fields = comparison.packets()?;
        let came = incoming.separator;
        let before = edits.iter().take_while(|it| it.span.end <= came.start);
        let moved: i64 = before.map(Edit::growth).sum();
        let expected = i64::try_from(came.end).map(|start| start + moved);
        let is_moved = i64::try_from(body_start) != expected;
        let touches = |edit: &Edit| edit.span.end > came.start;
        let is_changed = is_moved || edits.iter().any(touches);
        Ok(Self {
            fields,
            body: is_changed.then_some(body_start),
        })
    }

    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.body.is_none()
    }

    pub fn write(
        &self,
        output: &Spliced<'_>,
        newline: Newline,
        to: &mut impl Write,
    ) -> io::Result<()> {
        to.write_all(&self.fields)?;
        self.body
            .map_or(Ok(()), |start| write_body(output, start, newline, to))
    }
}

/// State of the comparison of two headers. Unchanged fields are not stored, because a header can have millions of them.
struct HeaderComparison<'c> {
    incoming: &'c IncomingMail,
    edits: &'c Edits,
    front: &'c [u8],
    comes: Span,
    keeps_blanks: bool,
}

fn fields(bytes: &[u8], section: Span) -> impl Iterator<Item = Field> {
    let continues = |line: &Span| matches!(line.of(bytes).first(), Some(b' ' | b'\t'));
    let mut lines = SpanLines::new(bytes, section)
        .map(|line| line.whole)
        .peekable();
    iter::from_fn(move || {
        let mut whole = lines.next()?;
        while let Some(line) = lines.next_if(continues) {
            whole.end = line.end;
        }
        Some(Field::of(bytes, whole))
    })
}

type Change = (usize, Option<Field>, Option<Field>);

impl HeaderComparison<'_> {
    fn changes(&self) -> Result<Vec<Change>, HandoverResult> {
        let mut place_of = moved(self.edits);
        let mut comes = fields(self.front, self.comes).peekable();
        let (mut changes, mut gap, mut new) = (Vec::new(), Vec::new(), Vec::new());
        for (number, field) in fields(&self.incoming.bytes, self.incoming.fields).enumerate() {
            let Some(at) = place_of(field.whole) else {
                gap.push((number, field));
                few(gap.len())?;
                continue;
            };
            while let Some(next) = comes.next_if(|next| next.whole.start < at) {
                new.push(next);
                few(new.len())?;
            }
            self.close(&mut gap, &mut new, number, &mut changes)?;
            let same = |next: &Field| {
                next.whole.start == at
                    && next.whole.of(self.front) == field.whole.of(&self.incoming.bytes)
            };
            if comes.next().filter(same).is_none() {
                return Err(defect(
                    "a header field that should be unchanged is different in the changed message",
                ));
            }
        }
        for next in comes {
            new.push(next);
            few(new.len())?;
        }
        self.close(&mut gap, &mut new, self.incoming.count, &mut changes)?;
        Ok(changes)
    }

    fn close(
        &self,
        gap: &mut Vec<(usize, Field)>,
        new: &mut Vec<Field>,
        end: usize,
        changes: &mut Vec<Change>,
    ) -> Result<(), HandoverResult> {
        let mut before = gap.drain(..).peekable();
        for field in new.drain(..) {
            // A field is changed in place if the new field has the same name. The case may differ: Postfix writes the
            // new name, and Sendmail keeps the old one. A new field without a value cannot be written in place, because
            // an empty value would remove the field.
            let is_same = |(_, old): &(usize, Field)| {
                let name = old.name.of(&self.incoming.bytes);
                name.eq_ignore_ascii_case(field.name.of(self.front)) && !field.value.is_empty()
            };
            changes.push(match before.next_if(is_same) {
                Some((number, old)) => (number, Some(old), Some(field)),
                None => {
                    let at = before.peek().map_or(end, |(number, _)| *number);
                    (at, None, Some(field))
                }
            });
        }
        changes.extend(before.map(|(number, old)| (number, Some(old), None)));
        few(changes.len())
    }

    fn text(&self, field: Field) -> Result<(&[u8], Vec<u8>), HandoverResult> {
        let name = field.name.of(self.front);
        let mut value = with_newlines(field.value.of(self.front).to_vec(), Newline::Lf);
        // A CR or NUL is an error, because some programs read a CR as the end of a line, and the text after it as
        // another field.
        if name.is_empty() || value.iter().any(|octet| matches!(octet, 0 | b'\r')) {
            let why =
                "a header field of the changed message would contain a NUL byte or a CR without LF";
            return Err(HandoverResult::Trouble(why.to_owned()));
        }
        let length = name.len() + value.len();
        if length > LONGEST_FIELD {
            let why = format!(
                "the message would get a header field of {length} bytes, and a milter can send at most {LONGEST_FIELD}"
            );
            return Err(HandoverResult::TooLarge(why.into()));
        }
        if !self.keeps_blanks && value.first() == Some(&b' ') {
            value.remove(0);
        }
        Ok((name, value))
    }

    fn packets(&self) -> Result<Vec<u8>, HandoverResult> {
        let (mut inserted, mut added, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        let changes = self.changes()?;
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let came = |field: &Field| field.name.of(&self.incoming.bytes).to_ascii_lowercase();
        let comes = |field: &Field| field.name.of(self.front).to_ascii_lowercase();
        let mut counts = HashMap::new();
        for (_, old, new) in &changes {
            let name = old
                .as_ref()
                .map(came)
                .or(new.as_ref().map(comes))
                .unwrap_or_default();
            if !OURS.iter().any(|ours| name.starts_with(ours)) {
                let name = String::from_utf8_lossy(&name);
                return Err(defect(&format!(
                    "the change affects the header field {name}, which embody must not change"
                )));
            }
            counts.insert(name, 0);
        }
        let mut count = |name: &[u8]| {
            let count: &mut u32 = counts.get_mut(name)?;
            *count += 1;
            Some(*count)
        };
        let mut changes = changes.into_iter().peekable();
        let fields = fields(&self.incoming.bytes, self.incoming.fields);
        for (number, field) in fields.map(Some).chain([None]).enumerate() {
            let is_new = |(at, old, _): &Change| *at == number && old.is_none();
            while let Some((_, _, Some(new))) = changes.next_if(is_new) {
                count(&comes(&new));
                let (name, value) = self.text(new)?;
                let value = &value;
                match field {
                    None => added.push(MilterReply::Add { name, value }.packet()),
                    Some(_) => {
                        let index = u32::try_from(number)
                            .map_err(|_| defect("the message has too many header fields"))?;
                        let at = index.saturating_add(FIRST_PLACE);
                        inserted.push(MilterReply::Insert { at, name, value }.packet());
                    }
                }
            }
            let Some(field) = field else { break };
            let which = count(&came(&field));
            if let Some((_, _, new)) = changes.next_if(|(at, ..)| *at == number) {
                let (name, value) = match new {
                    Some(new) => self.text(new)?,
                    None => (field.name.of(&self.incoming.bytes), Vec::new()),
                };
                let (which, value) = (which.unwrap_or_default(), &value);
                changed.push(MilterReply::Change { which, name, value }.packet());
            }
        }
        if changes.next().is_some() {
            return Err(defect(
                "the change affects a header field that the mail system did not send",
            ));
        }
        inserted.reverse();
        changed.reverse();
        Ok([inserted, added, changed].concat().concat())
    }
}

fn few(changes: usize) -> Result<(), HandoverResult> {
    if changes <= MOST_CHANGES {
        return Ok(());
    }
    let why = format!(
        "more than {MOST_CHANGES} header fields would have to change, which is too many for a milter"
    );
    Err(HandoverResult::TooLarge(why.into()))
}

fn write_body(
    output: &Spliced<'_>,
    start: usize,
    newline: Newline,
    to: &mut impl Write,
) -> io::Result<()> {
    let mut waiting = Vec::with_capacity(CHUNK);
    let mut is_begun = false;
    let mut push = |mut octets: &[u8]| -> io::Result<()> {
        while !octets.is_empty() {
            let (now, later) = octets.split_at(octets.len().min(CHUNK - waiting.len()));
            waiting.extend_from_slice(now);
            octets = later;
            if waiting.len() == CHUNK {
                MilterReply::Body(&waiting).write(to)?;
                waiting.clear();
                is_begun = true;
            }
        }
        Ok(())
    };
    let mut skip = start;
    for chunk in output.chunks() {
        let (skipped, mut rest) = chunk.split_at(skip.min(chunk.len()));
        skip -= skipped.len();
        while newline == Newline::Lf
            && let Some((line, behind)) = split_once(b'\n', rest)
        {
            push(line)?;
            push(b"\r\n")?;
            rest = behind;
        }
        push(rest)?;
    }
    if waiting.is_empty() && is_begun {
        Ok(())
    } else {
        MilterReply::Body(&waiting).write(to)
    }
}
