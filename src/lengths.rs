//! Content-Length and Lines of what changes become true, or go; so does the Content-MD5 of what is around a change.
//!
//! No document of mail defines the two fields, but programs that keep mailboxes write and believe them. Each pass that
//! changes a message, or content that is put into one, has its edits [`corrected`]. A mailbox quotes lines besides, and
//! carries the fields of the message's own header once more ([`Measure`]).
//!
//! A true field stays true in its way of counting: the line end in front of a boundary line is part of the body for some
//! writers. A false one is made true in the message's own header, and goes from a part, because nobody knows what it counted.

use std::collections::BTreeMap;

use crate::edit::{Edit, Edits, Group, moved};
use crate::mime::{self, Field, PartId, PartKind, ScanLimits, Tree};
use crate::span::Span;

/// What becomes of Content-Length and Lines where the body changes that they tell of.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Lengths {
    /// The fields become true, or go.
    #[default]
    Corrected,
    /// Fields that were true become true. Others keep their value, so that a change can be undone.
    Reversible,
}

/// A message may be nothing but such fields, and what is kept of each is longer than the field.
const MOST: usize = 10_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Measure {
    Octets,
    LineEnds,
}

impl Measure {
    pub(crate) fn of(name: &[u8]) -> Option<Self> {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        match name.len() {
            14 if is("Content-Length") => Some(Self::Octets),
            5 if is("Lines") => Some(Self::LineEnds),
            _ => None,
        }
    }
}

/// A count without the line end behind a body, or with it; None: the field is false.
fn told(counts: [usize; 2], digits: &[u8]) -> Option<usize> {
    let mut counts = counts.iter();
    counts.position(|count| count.to_string().as_bytes() == digits)
}

pub(crate) fn is_length(original: &[u8], field: &Field) -> bool {
    Measure::of(field.name.of(original)).is_some()
}

/// True if `lengths` can be reversible: a false value must not have become true by chance, or the way back would change it.
pub(crate) fn corrected(
    tree: &Tree<'_>,
    edits: Edits,
    lengths: Lengths,
    limits: &ScanLimits,
) -> (Edits, bool) {
    let told = match edits.is_empty() {
        true => Vec::new(),
        false => told_fields(tree, &edits),
    };
    if told.is_empty() {
        return (edits, true);
    }
    let (made, edits) = edits.put_together(tree.original);
    let output = made.as_deref().unwrap_or(tree.original);
    let after = mime::scan(output, limits);
    let mut correction = Correction {
        before: BodyCounts::new(tree),
        after: BodyCounts::new(&after),
        edits: &edits,
        lengths,
        gained: Vec::new(),
        group: Group::new(),
        is_reversible: true,
    };
    for part in after.ids().rev() {
        for field in after.fields(part).iter(output) {
            let place = told.binary_search_by_key(&field.whole.start, |&(now, _)| now);
            if let Some(&(_, before)) = place.ok().and_then(|place| told.get(place)) {
                correction.field(before, part, &field);
            }
        }
    }
    let is_reversible = correction.is_reversible;
    // Different fields do not overlap.
    let fields = Edits::of(correction.group).unwrap_or_default();
    (edits.then(tree.original.len(), fields), is_reversible)
}

/// No edit touches these fields. Places are those in the output, parts those of the original.
fn told_fields(tree: &Tree<'_>, edits: &Edits) -> Vec<(usize, PartId)> {
    let mut all = Vec::new();
    let mut place_of = moved(edits);
    for part in tree.ids() {
        // What changes a document corrects its digest.
        let is_around = tree.part(part).content != PartKind::Leaf;
        let fields = tree.fields(part).iter(tree.original).filter(|field| {
            is_length(tree.original, field) || (is_around && field.is(tree.original, "Content-MD5"))
        });
        let places = fields.filter_map(|field| place_of(field.whole));
        let room = MOST - all.len();
        all.extend(places.map(|now| (now, part)).take(room));
    }
    all
}

struct BodyCounts<'c> {
    tree: &'c Tree<'c>,
    line_ends: BTreeMap<usize, usize>,
}

impl<'c> BodyCounts<'c> {
    /// Each octet is looked at once, however many bodies it is in.
    fn new(tree: &'c Tree<'c>) -> Self {
        let has_lines = |part: &PartId| {
            let mut fields = tree.fields(*part).iter(tree.original);
            fields.any(|field| Measure::of(field.name.of(tree.original)) == Some(Measure::LineEnds))
        };
        let bodies = tree.ids().filter(has_lines);
        let bodies = bodies.map(|part| tree.part(part).body);
        let places = bodies.flat_map(|body| [(body.start, 0), (body.end, 0)]);
        let mut line_ends: BTreeMap<usize, usize> = places.collect();
        let (mut at, mut count) = (0, 0);
        for (&place, before) in &mut line_ends {
            count += line_ends_of(Span::new(at, place).of(tree.original));
            (at, *before) = (place, count);
        }
        Self { tree, line_ends }
    }

    fn count(&self, part: PartId, measure: Measure) -> [usize; 2] {
        let Span { start, end } = self.tree.part(part).body;
        let behind = match self.tree.original.get(end..).unwrap_or_default() {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => 0,
        };
        match measure {
            Measure::Octets => [end - start, end - start + behind],
            Measure::LineEnds => {
                let before = |place| self.line_ends.get(&place).copied().unwrap_or_default();
                let body = before(end) - before(start);
                [body, body + behind.min(1)]
            }
        }
    }
}

/// From the last part to the first: what becomes of a field changes the lengths of what is around.
struct Correction<'c> {
    before: BodyCounts<'c>,
    after: BodyCounts<'c>,
    edits: &'c Edits,
    lengths: Lengths,
    /// Octets and line ends that the fields gained, summed up from the last place to this one.
    gained: Vec<(usize, [isize; 2])>,
    group: Group,
    is_reversible: bool,
}

impl Correction<'_> {
    fn field(&mut self, before: PartId, part: PartId, field: &Field) {
        let was = self.before.tree.part(before).body;
        if was.len() == self.after.tree.part(part).body.len() && !self.edits.meets(was) {
            return;
        }
        let bytes = self.after.tree.original;
        let Some(measure) = Measure::of(field.name.of(bytes)) else {
            // RFC 1864 §2 knows no digest of a message or a multipart.
            if self.lengths == Lengths::Corrected {
                self.replace(field.whole, String::new());
            }
            return;
        };
        let value = field.value.trimmed(bytes);
        let says = value.of(bytes);
        let now = self.now(part, measure);
        match told(self.before.count(before, measure), says) {
            Some(which) => {
                let written = now[which].to_string();
                self.is_reversible &= told(now, written.as_bytes()) == Some(which);
                self.replace(value, written);
            }
            None if self.lengths == Lengths::Reversible => {
                self.is_reversible &= told(now, says).is_none();
            }
            // It was the count of the content that is back.
            None if told(now, says).is_some() => {}
            None if part == PartId::ROOT => self.replace(value, now[0].to_string()),
            None => self.replace(field.whole, String::new()),
        }
    }

    fn now(&self, part: PartId, measure: Measure) -> [usize; 2] {
        let body = self.after.tree.part(part).body;
        let gained_from = |place: usize| {
            let behind = self.gained.partition_point(|(at, _)| *at >= place);
            let last = behind.checked_sub(1).and_then(|last| self.gained.get(last));
            last.map_or(0, |(_, gained)| gained[measure as usize])
        };
        let growth = gained_from(body.start) - gained_from(body.end);
        let counts = self.after.count(part, measure);
        counts.map(|count| count.saturating_add_signed(growth))
    }

    fn replace(&mut self, span: Span, new: String) {
        let old = span.of(self.after.tree.original);
        if old == new.as_bytes() {
            return;
        }
        let signed = |count: usize| isize::try_from(count).unwrap_or(isize::MAX);
        let gained = |of: fn(&[u8]) -> usize| signed(of(new.as_bytes())) - signed(of(old));
        let [octets, line_ends] = self.gained.last().map_or([0; 2], |(_, gained)| *gained);
        let gained = [
            octets + gained(<[u8]>::len),
            line_ends + gained(line_ends_of),
        ];
        self.gained.push((span.start, gained));
        self.group.push(Edit::replace(span, new));
    }
}

fn line_ends_of(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}
