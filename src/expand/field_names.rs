//! A set of the names of header fields, as small as can be: a mail may be nothing but fields of distinct names,
//! of which a map would take ten times as much as they do.

use std::cmp::Ordering;

use crate::mime::Field;

/// Names of fields, compared case-blind.
pub(super) struct FieldNames<'o> {
    original: &'o [u8],
    /// What the offsets count from: all fields of a header stand within what 32 bits can say.
    origin: usize,
    /// Offset and length of each; sorted and distinct when all are in.
    names: Vec<(u32, u32)>,
}

impl<'o> FieldNames<'o> {
    /// The names of these fields, which come in the order of the original.
    pub(super) fn of(original: &'o [u8], fields: impl Iterator<Item = Field>) -> Self {
        const FEW: usize = 1 << 16;
        let mut set = Self {
            original,
            origin: 0,
            names: Vec::new(),
        };
        let mut limit = FEW;
        for field in fields {
            if set.names.is_empty() {
                set.origin = field.name.start;
            }
            let offset = field.name.start.checked_sub(set.origin);
            let offset = offset.and_then(|offset| u32::try_from(offset).ok());
            if let (Some(offset), Ok(length)) = (offset, u32::try_from(field.name.len())) {
                set.names.push((offset, length));
            }
            // One name may stand there a million times.
            if set.names.len() >= limit {
                set.settle();
                limit = FEW.max(set.names.len() * 2);
            }
        }
        set.settle();
        set
    }

    pub(super) fn contains(&self, name: &[u8]) -> bool {
        let place = |&(offset, length): &(u32, u32)| compare(self.name(offset, length), name);
        self.names.binary_search_by(place).is_ok()
    }

    fn settle(&mut self) {
        let mut names = std::mem::take(&mut self.names);
        names.sort_unstable_by(|one, other| {
            compare(self.name(one.0, one.1), self.name(other.0, other.1))
        });
        names.dedup_by(|one, other| {
            compare(self.name(one.0, one.1), self.name(other.0, other.1)).is_eq()
        });
        self.names = names;
    }

    fn name(&self, offset: u32, length: u32) -> &'o [u8] {
        let start = self.origin + offset as usize;
        let name = self.original.get(start..start + length as usize);
        name.unwrap_or_default()
    }
}

fn compare(one: &[u8], other: &[u8]) -> Ordering {
    let one = one.iter().map(u8::to_ascii_lowercase);
    one.cmp(other.iter().map(u8::to_ascii_lowercase))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::mime::Header;
    use crate::span::Span;

    proptest! {
        #[test]
        fn names_are_found_whatever_their_case_and_only_those(
            present in proptest::collection::vec("[a-cA-C]{1,3}", 0..40),
            asked in proptest::collection::vec("[a-cA-C]{0,3}", 0..40),
        ) {
            let text: String = present.iter().map(|name| format!("{name}: x\n")).collect();
            let section = text.as_bytes();
            let within = Span::new(0, section.len());
            let header = Header::read(section, within, usize::MAX);
            let names = FieldNames::of(section, header.fields.iter(section));
            let expected: HashSet<String> =
                present.iter().map(|name| name.to_ascii_lowercase()).collect();
            for name in present.iter().chain(&asked) {
                prop_assert_eq!(
                    names.contains(name.as_bytes()),
                    expected.contains(&name.to_ascii_lowercase())
                );
            }
        }
    }
}
