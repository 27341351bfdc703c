//! Corrects Content-Length, Lines and Content-MD5 when the body that they describe changes.
//!
//! No mail standard defines Content-Length and Lines, but programs that store mailboxes write these fields and rely on
//! them. So each pass that changes a message, or content to be inserted, sends its edits through [`corrected`]. The
//! code that writes mailboxes has its own correction, because it also quotes lines and repeats the fields of the
//! message header ([`Measure`]).
//!
//! Some programs count the line ending before a boundary line as part of the body, others do not. A correct field keeps
//! its way of counting. A wrong field is corrected in the header of the message, and removed in the header of a part,
//! because it is unknown what it counted.

use std::collections::BTreeMap;

use crate::edit::{Edit, Edits, Group, moved};
use crate::mime::{self, Field, MessageTree, PartId, PartKind, ScanLimits};
use crate::span::Span;

/// Treatment of the fields Content-Length and Lines if the body that they describe changes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Lengths {
    /// The fields are corrected, or removed if this is not possible.
    #[default]
    Corrected,
    /// Fields with a correct value are updated. Fields with a wrong value are left unchanged, so that the change of
    /// the body can be undone exactly.
    Reversible,
}

/// Maximum number of fields that are corrected. A message can consist of millions of such fields, and the memory for
/// each is larger than the field.
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

/// Finds out how the field was counted: index 0 is without, and 1 with the line ending after the body. Returns `None`
/// if the value matches neither count.
fn told(counts: [usize; 2], digits: &[u8]) -> Option<usize> {
    let mut counts = counts.iter();
    counts.position(|count| count.to_string().as_bytes() == digits)
}

pub(crate) fn is_length(original: &[u8], field: &Field) -> bool {
    Measure::of(field.name.of(original)).is_some()
}

/// Appends the corrections of Content-Length, Lines and Content-MD5 to `edits`. The boolean is true if undoing the
/// change restores the message exactly. It does not if a wrong old value happens to be right for the new body, because
/// undoing would "correct" it.
pub(crate) fn corrected(
    tree: &MessageTree<'_>,
    edits: Edits,
    lengths: Lengths,
    limits: &ScanLimits,
) -> (Edits, bool) {
    let told = if edits.is_empty() {
        Vec::new()
    } else {
        told_fields(tree, &edits)
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
    // The edits cannot overlap, because each one is inside a different field.
    let fields = Edits::of(correction.group).unwrap_or_default();
    (edits.then(tree.original.len(), fields), is_reversible)
}

/// Returns the length fields that may need a correction: the offset of each in the output, and its part in the
/// original. Fields that another edit changes anyway are left out.
fn told_fields(tree: &MessageTree<'_>, edits: &Edits) -> Vec<(usize, PartId)> {
    let mut all = Vec::new();
    let mut place_of = moved(edits);
    for part in tree.ids() {
        // Only messages and multiparts are handled here. For a leaf, the code that changes the body also corrects
        // Content-MD5.
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
    tree: &'c MessageTree<'c>,
    line_ends: BTreeMap<usize, usize>,
}

impl<'c> BodyCounts<'c> {
    /// Counts the line endings before each start and end of a body (prefix sums), because nested bodies share bytes and
    /// each byte should be counted only once.
    fn new(tree: &'c MessageTree<'c>) -> Self {
        let has_lines = |part: &PartId| {
            let mut fields = tree.fields(*part).iter(tree.original);
            fields.any(|field| Measure::of(field.name.of(tree.original)) == Some(Measure::LineEnds))
        };
        let mut line_ends: BTreeMap<usize, usize> = tree
            .ids()
            .filter(has_lines)
            .map(|part| tree.part(part).body)
            .flat_map(|body| [(body.start, 0), (body.end, 0)])
            .collect();
        let (mut at, mut count) = (0, 0);
        for (&place, before) in &mut line_ends {
            count += line_ends_of(Span::new(at, place).of(tree.original));
            (at, *before) = (place, count);
        }
        Self { tree, line_ends }
    }

    fn count(&self, part: PartId, measure: Measure) -> [usize; 2] {
        let Span { start, end } = self.tree.part(part).body;
        let behind = match &self.tree.original[end..] {
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

/// State of a correction. It visits the parts from last to first: a corrected field can change its own length, and this changes
/// the lengths of the parts that contain it.
struct Correction<'c> {
    before: BodyCounts<'c>,
    after: BodyCounts<'c>,
    edits: &'c Edits,
    lengths: Lengths,
    /// For each corrected field, from the last one to the first: its offset, and how many bytes and line endings the
    /// corrections from this field to the end have added. The counts for a body are adjusted by these numbers.
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
            // RFC 1864 §2 does not allow Content-MD5 in messages and multiparts, so the field is removed instead of corrected.
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
            // The value was wrong for the old body but is right for the new one: the change restored the body for which
            // it was written.
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
