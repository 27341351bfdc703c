//! A sorted list of field names. A message can consist of millions of different field names, for which a map would need ten
//! times as much memory.

use std::cmp::Ordering;

use crate::mime::Field;

/// Returns the names of the fields, sorted and without duplicates. Upper and lower case are equal.
pub(crate) fn field_names(original: &[u8], fields: impl Iterator<Item = Field>) -> Vec<&[u8]> {
    const FEW: usize = 1 << 16;
    let mut names = Vec::new();
    let mut limit = FEW;
    for field in fields {
        names.push(field.name.of(original));
        // A message can repeat one name a million times, so the list is deduplicated whenever it has doubled.
        if names.len() >= limit {
            settle(&mut names);
            limit = FEW.max(names.len() * 2);
        }
    }
    settle(&mut names);
    names
}

pub(crate) fn is_among(names: &[&[u8]], name: &[u8]) -> bool {
    names.binary_search_by(|known| compare(known, name)).is_ok()
}

fn settle(names: &mut Vec<&[u8]>) {
    names.sort_unstable_by(|one, other| compare(one, other));
    names.dedup_by(|one, other| compare(one, other).is_eq());
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
            let names = field_names(section, header.fields.iter(section));
            let expected: HashSet<String> =
                present.iter().map(|name| name.to_ascii_lowercase()).collect();
            for name in present.iter().chain(&asked) {
                prop_assert_eq!(
                    is_among(&names, name.as_bytes()),
                    expected.contains(&name.to_ascii_lowercase())
                );
            }
        }
    }
}
