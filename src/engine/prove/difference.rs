//! The first difference between two mails, in words.

use crate::engine::external_body::ESSENCE;
use crate::mime::{self, MessageTree, PartId, PartKind, ScanLimits};
use crate::span::{Span, SpanLines, until};

/// The first difference between the mail that embody would have written and the new mail.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    /// Number of bytes before the difference.
    pub(super) at: usize,
    words: String,
}

impl Difference {
    /// Returns the first difference between two plain mails, which must be different.
    pub(super) fn between(made: &[u8], new: &[u8]) -> Self {
        let same = made.iter().zip(new).take_while(|(one, other)| one == other);
        let at = same.count();
        Self {
            at,
            words: words(made, new, at),
        }
    }

    /// Returns the difference for a part of the old mail that the new one does not contain.
    pub(super) fn of_part(tree: &MessageTree<'_>, part: PartId) -> Self {
        let entity = tree.part(part);
        let body = entity.body.of(tree.original);
        let size = entity
            .encoding
            .decode(body)
            .map_or(body.len(), |it| it.len());
        Self {
            at: usize::MAX,
            words: format!(
                "part {} ({}, {size} bytes) of the old message is missing or different",
                number(tree, part),
                entity.essence
            ),
        }
    }

    /// Returns the difference for a reference in the new mail whose URL no run writes.
    pub(super) fn of_url(tree: &MessageTree<'_>, part: PartId) -> Self {
        Self {
            at: usize::MAX,
            words: format!(
                "the URL of the detached attachment in part {} is not one that embody detach writes",
                number(tree, part)
            ),
        }
    }

    pub(super) fn words(&self) -> String {
        self.words.clone()
    }
}

fn words(made: &[u8], new: &[u8], at: usize) -> String {
    let limits = ScanLimits::default();
    let (expected, found) = (mime::scan(made, &limits), mime::scan(new, &limits));
    if at >= new.len() {
        let (part, _) = place(&expected, at);
        return format!("the end of the message is missing, from part {part} on");
    }
    let (part, id) = place(&expected, at);
    let (part_of_new, id_of_new) = place(&found, at);
    let is_in_header = |tree: &MessageTree<'_>, id: PartId| {
        let entity = tree.part(id);
        at < entity.body.start && at >= entity.header.start
    };
    let of = |part: &str| match part {
        "" => "the header".to_owned(),
        part => format!("part {part}"),
    };
    if is_in_header(&expected, id) || is_in_header(&found, id_of_new) {
        let wanted = field_at(made, at).filter(|_| is_in_header(&expected, id));
        let other = field_at(new, at).filter(|_| is_in_header(&found, id_of_new));
        let header = if id == PartId::ROOT {
            "the message".to_owned()
        } else {
            of(&part)
        };
        return match (wanted, other) {
            (Some(wanted), Some(other)) if wanted.eq_ignore_ascii_case(&other) => {
                format!("the field {wanted} of {header} is different")
            }
            (Some(wanted), _) if !has_field(&found, id_of_new, &wanted) => {
                format!("the field {wanted} of {header} is missing")
            }
            (_, Some(other)) if !has_field(&expected, id, &other) => {
                format!("{header} has the field {other}, which embody does not write there")
            }
            (Some(name), _) | (None, Some(name)) => {
                format!("the field {name} of {header} is different or in another place")
            }
            (None, None) => format!("the header of {} is different", of(&part_of_new)),
        };
    }
    let entity = expected.part(id);
    match entity.content {
        PartKind::Leaf | PartKind::Opaque(_) => {
            let before = Span::new(entity.body.start.min(at), at).of(made);
            let line = memchr::memchr_iter(b'\n', before).count() + 1;
            let number = number(&expected, id);
            // The body of a reference is the header of its content.
            if entity.essence == ESSENCE
                && let Some(field) = field_at(made, at).or_else(|| field_at(new, at))
            {
                return format!("the field {field} in part {number} ({ESSENCE}) is different");
            }
            if entity.encoding.is_encoded() && !entity.essence.starts_with("text/") {
                format!(
                    "the content of part {number} ({}) is different",
                    entity.essence
                )
            } else {
                format!(
                    "line {line} of part {number} ({}) is different",
                    entity.essence
                )
            }
        }
        _ if expected.ids().count() < found.ids().count() => {
            format!(
                "the new message has a part that is not from the old message: {}",
                number(&found, id_of_new)
            )
        }
        _ => "the text between the parts, or a boundary line, is different".to_owned(),
    }
}

/// Returns the innermost part that contains a position.
fn place(tree: &MessageTree<'_>, at: usize) -> (String, PartId) {
    let mut found = PartId::ROOT;
    for part in tree.ids() {
        let entity = tree.part(part);
        let span = Span::new(entity.header.start, entity.body.end.max(entity.span.end));
        if (span.start..span.end).contains(&at) && entity.depth >= tree.part(found).depth {
            found = part;
        }
    }
    (number(tree, found), found)
}

fn number(tree: &MessageTree<'_>, part: PartId) -> String {
    let number = tree.number(part);
    if number.is_empty() {
        "1".to_owned()
    } else {
        number
    }
}

/// Returns the name of the field in whose lines the position is.
fn field_at(mail: &[u8], at: usize) -> Option<String> {
    let front = mail.get(..at.min(mail.len()))?;
    let mut start = memchr::memrchr(b'\n', front).map_or(0, |end| end + 1);
    while matches!(mail.get(start), Some(b' ' | b'\t')) && start > 0 {
        start = memchr::memrchr(b'\n', mail.get(..start - 1)?).map_or(0, |end| end + 1);
    }
    let line = SpanLines::new(mail, Span::new(start, mail.len())).next()?;
    let name = until(b':', line.content.of(mail));
    let is_name = !name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic());
    is_name.then(|| String::from_utf8_lossy(name).into_owned())
}

fn has_field(tree: &MessageTree<'_>, part: PartId, name: &str) -> bool {
    tree.value(part, name).is_some()
}
