//! Recurrence rules of meetings (MS-OXOCAL 2.2.1.44), converted to RFC 5545 (MS-OXCICAL 2.1.3.2).

mod binary;
mod rule;

pub(super) use self::binary::read;

/// A recurrence rule. Times are local, in minutes since 1601-01-01.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Recurrence {
    pattern: Pattern,
    /// Interval between two dates of the series, in days, weeks or months.
    interval: i64,
    end: RecurrenceEnd,
    /// First day of the week. 0 is Sunday.
    week_begins: usize,
    /// Start of the first meeting.
    pub(super) begins: i64,
    pub(super) ends: i64,
    /// Starts of the meetings that were cancelled.
    pub(super) deleted: Vec<i64>,
    pub(super) exceptions: Vec<Exception>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pattern {
    Daily,
    /// Every week, on these weekdays: one bit for each day of the week.
    Weekly(u32),
    /// Every month, on this day. In a month without this day, the meeting is on the last day.
    Monthly(i64),
    /// Every month, on the nth weekday: a bit for each day of the week, and its number in the month (5 is the last
    /// one).
    Nth(u32, i64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RecurrenceEnd {
    Never,
    After(u32),
    /// The series ends with the meeting on this day.
    On(i64),
}

/// A meeting of the series with a changed time, subject, location or status.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Exception {
    /// Start of the meeting according to the rule.
    pub(super) original: i64,
    pub(super) begins: i64,
    pub(super) ends: i64,
    pub(super) subject: Option<String>,
    pub(super) location: Option<String>,
    pub(super) busy: Option<i64>,
}

/// Reason why a rule cannot be converted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RecurrenceError {
    Damaged,
    /// The rule uses a calendar that RFC 5545 does not support, such as the Hebrew one.
    Calendar,
    /// The first meeting is not on a day of the rule.
    First,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
