//! Writes a recurrence as a rule of RFC 5545 (MS-OXCICAL 2.1.3.2).

use super::super::clock::{DAY, WEEKDAYS, date, days, length, weekday};
use super::{Pattern, Recurrence, RecurrenceEnd};

impl Recurrence {
    /// Returns true if a day matches the pattern of the rule. The interval is not checked.
    pub(super) fn is_on_rule(&self, day: i64) -> bool {
        let has = |mask: u32, day: i64| mask >> weekday(day) & 1 == 1;
        let (year, month, of_month) = date(day);
        match self.pattern {
            Pattern::Daily => true,
            Pattern::Weekly(mask) => has(mask, day),
            Pattern::Monthly(day) => of_month == day.min(length(year, month)),
            Pattern::Nth(mask, nth) => {
                let first = days(year, month, 1);
                let last = first + length(year, month) - 1;
                let count = |from: i64, to: i64| (from..=to).filter(|it| has(mask, *it)).count();
                let is_nth = match nth {
                    5 => count(day, last) == 1,
                    nth => i64::try_from(count(first, day)) == Ok(nth),
                };
                has(mask, day) && is_nth
            }
        }
    }

    /// Writes the value of RRULE. `until` formats the time of the last meeting.
    pub(in crate::engine::outlook) fn rule(&self, until: impl FnOnce(i64) -> String) -> String {
        let (_, month, _) = date(self.begins.div_euclid(DAY));
        let is_yearly = self.interval % 12 == 0;
        let (frequency, interval) = match self.pattern {
            Pattern::Daily => ("DAILY", self.interval),
            Pattern::Weekly(_) => ("WEEKLY", self.interval),
            _ if is_yearly => ("YEARLY", self.interval / 12),
            _ => ("MONTHLY", self.interval),
        };
        let mut rule = format!("FREQ={frequency}");
        if interval != 1 {
            rule.push_str(&format!(";INTERVAL={interval}"));
        }
        match self.end {
            RecurrenceEnd::Never => {}
            RecurrenceEnd::After(count) => rule.push_str(&format!(";COUNT={count}")),
            RecurrenceEnd::On(day) => {
                let time = self.begins.rem_euclid(DAY);
                rule.push_str(&format!(
                    ";UNTIL={}",
                    until(day.div_euclid(DAY) * DAY + time)
                ));
            }
        }
        match self.pattern {
            Pattern::Daily => {}
            Pattern::Weekly(mask) => {
                let begins = WEEKDAYS.get(self.week_begins).copied().unwrap_or("SU");
                rule.push_str(&format!(";BYDAY={};WKST={begins}", weekdays(mask)));
            }
            Pattern::Monthly(day) => {
                // Length of the shortest month in which the meeting can take place. Up to this day, BYMONTHDAY alone is
                // enough. A meeting on a later day moves to the last day of shorter months.
                let shortest = if is_yearly { length(1601, month) } else { 28 };
                rule.push_str(&match day {
                    _ if day <= shortest => format!(";BYMONTHDAY={day}"),
                    31 => ";BYMONTHDAY=-1".to_owned(),
                    _ => {
                        let days: Vec<String> = (28..=day).map(|day| day.to_string()).collect();
                        format!(";BYMONTHDAY={};BYSETPOS=-1", days.join(","))
                    }
                });
            }
            Pattern::Nth(mask, nth) => {
                let nth = if nth == 5 { -1 } else { nth };
                rule.push_str(&format!(";BYDAY={};BYSETPOS={nth}", weekdays(mask)));
            }
        }
        if frequency == "YEARLY" {
            rule.push_str(&format!(";BYMONTH={month}"));
        }
        rule
    }
}

fn weekdays(mask: u32) -> String {
    let names: Vec<&str> = WEEKDAYS
        .iter()
        .enumerate()
        .filter(|(index, _)| mask >> index & 1 == 1)
        .map(|(_, name)| *name)
        .collect();
    names.join(",")
}
