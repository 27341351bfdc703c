//! Counters that all commands use: rows of reports by class, and counts by name. The names are from mail and untrusted,
//! so memory is limited.
//!
//! The summary, the forecast, the page about a run and the survey each have an enum of classes. They read a row as
//! [`CountedRow`], decide on its class, and count it in a [`RowTally`].

use std::collections::{BTreeMap, HashSet};
use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use serde::{Serialize, Serializer};

use crate::engine::policy::countable;
use crate::engine::report::{Kind, Row};
use crate::link::url::{UrlReference, browser_key, without_fragment};

/// Maximum number of distinct names. Together they take about a megabyte.
pub(crate) const NAMES: usize = 10_000;
/// Maximum length of a name that is counted separately, in bytes. Hosts and media types cannot be longer (RFC 1035
/// §2.3.4, RFC 6838 §4.2).
pub(crate) const LONGEST_NAME: usize = 255;

pub(crate) trait TallyCounts: Default {
    const NAMES: &'static [&'static str];

    fn add(&mut self, other: &Self);

    fn columns(&self) -> Vec<u64>;
}

impl TallyCounts for u64 {
    const NAMES: &'static [&'static str] = &["count"];

    fn add(&mut self, other: &Self) {
        *self += other;
    }

    fn columns(&self) -> Vec<u64> {
        vec![*self]
    }
}

macro_rules! counts {
    ($($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $field:ident,)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
        pub(crate) struct $name { $($(#[$of])* pub(crate) $field: u64,)* }

        impl TallyCounts for $name {
            const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }

            fn columns(&self) -> Vec<u64> {
                vec![$(self.$field),*]
            }
        }
    )*};
}

pub(crate) use counts;

counts! {
    Amount { count, octets, }
}

impl Amount {
    pub(crate) fn count(&mut self, octets: u64) {
        self.count += 1;
        self.octets += octets;
    }
}

/// Returns the rows of one message without rows about a picture that an earlier row with the same outcome is about. The report
/// has a row for each document that displays a picture, but the picture is retrieved and stored once.
pub(crate) fn distinct_rows(rows: &[Row]) -> impl Iterator<Item = &Row> {
    let mut known = HashSet::new();
    rows.iter().filter(move |row| match &row.url {
        Some(url) if row.kind == Kind::Embed => {
            let key = browser_key(without_fragment(url));
            known.insert(FixedState::default().hash_one((key, row.outcome_and_reason())))
        }
        _ => true,
    })
}

/// A row of a report, with its URL split into components.
pub(crate) struct CountedRow<'r> {
    pub(crate) row: &'r Row,
    /// The URL of the row. All components are empty if the row has no URL.
    pub(crate) reference: UrlReference<'r>,
    /// Host of the URL: a name or an IP address. `None` if it is not counted.
    pub(crate) host: Option<String>,
}

impl<'r> CountedRow<'r> {
    pub(crate) fn of(row: &'r Row) -> Self {
        let reference = UrlReference::split(row.url.as_deref().unwrap_or_default());
        Self {
            row,
            host: reference.site().and_then(|it| countable(it.host)),
            reference,
        }
    }

    /// Returns the host of an absolute URL. A relative URL cannot be requested from a server.
    pub(crate) fn host_of_absolute(&self) -> Option<&str> {
        self.reference.scheme?;
        self.host.as_deref()
    }

    pub(crate) fn octets(&self) -> u64 {
        self.row.bytes.unwrap_or(0)
    }
}

/// Number of rows in each class, and the total size of their content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RowTally<C>(BTreeMap<C, Amount>);

/// A derived `Default` would require `C: Default`.
impl<C> Default for RowTally<C> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<C: Ord> RowTally<C> {
    pub(crate) fn count(&mut self, class: C, octets: u64) {
        self.0.entry(class).or_default().count(octets);
    }

    /// Counts `count` items of a single row, such as links. Does nothing if `count` is 0.
    pub(crate) fn count_several(&mut self, class: C, count: u64) {
        if count > 0 {
            self.0.entry(class).or_default().count += count;
        }
    }

    pub(crate) fn amount(&self, class: &C) -> Amount {
        self.0.get(class).copied().unwrap_or_default()
    }

    pub(crate) fn of(&self, class: &C) -> u64 {
        self.amount(class).count
    }

    pub(crate) fn has(&self, class: &C) -> bool {
        self.0.contains_key(class)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the classes that occur, in order, with their numbers of rows.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (&C, u64)> {
        self.0.iter().map(|(class, amount)| (class, amount.count))
    }

    /// Moves the counts of the class `from` to the class `to`.
    pub(crate) fn reclassify(&mut self, from: &C, to: C) {
        if let Some(amount) = self.0.remove(from) {
            self.0.entry(to).or_default().add(&amount);
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        for (class, amount) in other.0 {
            self.0.entry(class).or_default().add(&amount);
        }
    }
}

impl<C: Serialize + Ord> Serialize for RowTally<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(class, amount)| (class, amount.count)))
    }
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct TallyNames<C> {
    names: BTreeMap<String, C>,
    others: Option<C>,
}

impl<C: TallyCounts> TallyNames<C> {
    pub(crate) fn of(&mut self, name: &str) -> &mut C {
        // Most names are already known and in lower case. For these, no memory is allocated.
        if !self.names.contains_key(name) {
            return self.exactly(name.to_ascii_lowercase());
        }
        let known = self.names.get_mut(name);
        known.unwrap_or_else(|| unreachable!("it is among them"))
    }

    pub(crate) fn exactly(&mut self, name: String) -> &mut C {
        let is_known = self.names.contains_key(&name);
        if !is_known && (self.names.len() >= NAMES || name.len() > LONGEST_NAME) {
            return self.others.get_or_insert_default();
        }
        self.names.entry(name).or_default()
    }

    /// Adds the counts of `other` in alphabetical order, so that each run gives the same result if the limit on names
    /// is reached.
    pub(crate) fn add(&mut self, other: Self) {
        if self.names.is_empty() && self.others.is_none() {
            *self = other;
            return;
        }
        for (name, counts) in other.names {
            self.exactly(name).add(&counts);
        }
        if let Some(counts) = other.others {
            self.others.get_or_insert_default().add(&counts);
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &C)> {
        self.names.iter().map(|(name, counts)| (&**name, counts))
    }

    /// Calls `change` for the counts of each name, and for the common count of the names above the limit.
    pub(crate) fn each_mut(&mut self, change: impl FnMut(&mut C)) {
        self.names
            .values_mut()
            .chain(&mut self.others)
            .for_each(change);
    }

    pub(crate) fn others(&self) -> Option<&C> {
        self.others.as_ref()
    }

    pub(crate) fn heaviest(&self, weight: impl Fn(&C) -> u64) -> Vec<(&str, &C)> {
        let mut names: Vec<(&str, &C)> = self.names().filter(|(_, it)| weight(it) > 0).collect();
        names.sort_by_key(|(name, counts)| (std::cmp::Reverse(weight(counts)), *name));
        names
    }
}

impl<C: Serialize> Serialize for TallyNames<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(&self.names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_bound_are_one_sum_and_nothing_is_lost() {
        let mut named: TallyNames<u64> = TallyNames::default();
        for number in 0..NAMES as u64 + 500 {
            *named.of(&format!("host{number:06}.example")) += 2;
        }
        assert_eq!(named.names().count(), NAMES);
        assert_eq!(named.others(), Some(&1000));
        *named.of("HOST000001.example") += 1;
        let known = named.names().nth(1);
        assert_eq!(known, Some(("host000001.example", &3)));

        let mut sum: TallyNames<u64> = TallyNames::default();
        *sum.of("another.example") += 1;
        sum.add(named);
        assert_eq!(sum.names().count(), NAMES);
        let all: u64 = sum.names().map(|(_, count)| count).sum();
        assert_eq!(all + sum.others().unwrap_or(&0), NAMES as u64 * 2 + 1002);
    }

    #[test]
    fn classes_are_added_and_moved_with_their_sizes() {
        let [mut one, mut other] = [(); 2].map(|()| RowTally::default());
        one.count("gone", 10);
        other.count("gone", 5);
        other.count("kept", 1);
        other.count_several("links", 0);
        one.add(other);
        let (count, octets) = (2, 15);
        assert_eq!(one.amount(&"gone"), Amount { count, octets });
        assert!(!one.has(&"links"));
        one.reclassify(&"gone", "kept");
        assert_eq!(one.classes().collect::<Vec<_>>(), [(&"kept", 3)]);
        assert_eq!(one.amount(&"kept").octets, 16);
        assert!(RowTally::<&str>::default().is_empty());
    }

    #[test]
    fn overlong_name_is_counted_under_others() {
        let mut named: TallyNames<u64> = TallyNames::default();
        *named.of(&"x".repeat(LONGEST_NAME)) += 1;
        *named.of(&"x".repeat(LONGEST_NAME + 1)) += 1;
        assert_eq!(named.names().count(), 1);
        assert_eq!(named.others(), Some(&1));
    }

    #[test]
    fn the_heaviest_stand_first() {
        let mut named: TallyNames<u64> = TallyNames::default();
        for name in ["b", "a", "c", "c", "none"] {
            *named.of(name) += 1;
        }
        *named.of("none") = 0;
        let names: Vec<&str> = named.heaviest(|it| *it).iter().map(|it| it.0).collect();
        assert_eq!(names, ["c", "a", "b"]);
    }
}
