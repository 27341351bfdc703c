//! Dates, and the time zones of meetings (MS-OXOCAL 2.2.1.39 and 2.2.1.41).
//!
//! A time is a number of minutes since 1601-01-01, as in the rules of recurring meetings. Local times have no zone.

use super::codepage::wide;
use super::cursor::Cursor;
use super::properties::{APPOINTMENT, OutlookItem, PropertyValue, text};

pub(super) const DAY: i64 = 24 * 60;

/// Returns the number of days from 1601-01-01 to a date.
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here. The leap day is then the last day of a year, so it does not change the number of days before
    // any month.
    let (year, month) = if month > 2 {
        (year - 1600, month - 3)
    } else {
        (year - 1601, month + 9)
    };
    let leap = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 1601-01-01 is 306 days after 1600-03-01.
    year * 365 + leap + (month * 153 + 2) / 5 - 306 + day - 1
}

/// Converts days since 1601-01-01 to year, month and day.
pub(super) fn date(days: i64) -> (i64, i64, i64) {
    const CENTURIES: i64 = 146_097;
    let since_march = days + 306;
    let in_era = since_march.rem_euclid(CENTURIES);
    let year_of_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / (CENTURIES - 1)) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month + 2) / 5 + 1;
    let year = 1600 + since_march.div_euclid(CENTURIES) * 400 + year_of_era;
    if month < 10 {
        (year, month + 3, day)
    } else {
        (year + 1, month - 9, day)
    }
}

/// Returns the number of days in a month.
pub(super) fn length(year: i64, month: i64) -> i64 {
    let (next, first) = match month {
        12 => (year + 1, 1),
        _ => (year, month + 1),
    };
    days(next, first, 1) - days(year, month, 1)
}

/// Returns the day of the week. 0 is Sunday.
pub(super) fn weekday(days: i64) -> i64 {
    (days + 1).rem_euclid(7)
}

/// Names of the days of the week in RFC 5545.
pub(super) const WEEKDAYS: [&str; 7] = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"];

/// Writes a date in the form of RFC 5545.
pub(super) fn date_text(minutes: i64) -> String {
    let (year, month, day) = date(minutes.div_euclid(DAY));
    format!("{year:04}{month:02}{day:02}")
}

/// Writes a local time in the form of RFC 5545.
pub(super) fn time_text(minutes: i64) -> String {
    let of_day = minutes.rem_euclid(DAY);
    let (hour, minute) = (of_day / 60, of_day % 60);
    format!("{}T{hour:02}{minute:02}00", date_text(minutes))
}

/// A time zone whose clocks change by the same rule in every year.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Zone {
    pub(super) name: String,
    /// Number of minutes that must be added to a local time in standard time to get UTC.
    standard: i64,
    summer: Option<Summer>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Summer {
    /// Number of minutes that must be added to a local time in summer time to get UTC.
    bias: i64,
    begins: ClockChange,
    ends: ClockChange,
}

/// The moment in each year at which the clocks change, in the local time before the change.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ClockChange {
    month: i64,
    weekday: i64,
    /// Number of the weekday within the month. 5 means the last one.
    nth: i64,
    /// Time of day in seconds.
    seconds: i64,
}

impl Zone {
    /// Returns the time zone of a recurring meeting. Returns `None` if the item contains no time zone, or if the clocks do not
    /// change by the same rule in every year.
    pub(super) fn of(item: &OutlookItem<'_>) -> Option<Self> {
        let bytes = |number| match item.properties.named(&APPOINTMENT, number)? {
            PropertyValue::Bytes(bytes) => Some(bytes.as_ref()),
            _ => None,
        };
        let definitions = [0x8260, 0x825e, 0x825f].into_iter();
        let defined = definitions.filter_map(bytes).find_map(definition);
        let (name, rule) = defined.unzip();
        let description = || {
            let value = item.properties.named(&APPOINTMENT, 0x8234)?;
            text(value, item.page)
        };
        let name = name.or_else(description);
        // An item can contain its time zone twice. If the two rules differ, the one in property 0x8233
        // (PidLidTimeZoneStruct) is used (MS-OXOCAL 2.2.1.41).
        let own = bytes(0x8233).and_then(|bytes| biases(&mut Cursor { rest: bytes }, 2));
        let zone = own.or(rule.flatten())?;
        let is_plain = |it: &char| it.is_alphanumeric() || " .-_/+()".contains(*it);
        let plain: String = name.unwrap_or_default().chars().filter(is_plain).collect();
        let name = match plain.trim() {
            "" => "Local time",
            name => name,
        };
        Some(Self {
            name: name.to_owned(),
            ..zone
        })
    }

    /// Returns the minutes to add to a local time to get UTC.
    fn bias(&self, local: i64) -> i64 {
        let Some(summer) = &self.summer else {
            return self.standard;
        };
        let (year, _, _) = date(local.div_euclid(DAY));
        let (begins, ends) = (summer.begins.at(year), summer.ends.at(year));
        let is_summer = if begins < ends {
            (begins..ends).contains(&local)
        } else {
            // In the southern hemisphere, summer time begins late in a year and ends early in the next. So summer time
            // is the part of the calendar year that is not between its end and its start.
            !(ends..begins).contains(&local)
        };
        if is_summer {
            summer.bias
        } else {
            self.standard
        }
    }

    /// Converts a local time to UTC. When the clocks are set back, one hour occurs twice. A time in this hour is taken as the
    /// first of the two.
    pub(super) fn utc(&self, local: i64) -> i64 {
        local + self.bias(local)
    }

    /// Returns the lines of the VTIMEZONE component.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec!["BEGIN:VTIMEZONE".to_owned(), format!("TZID:{}", self.name)];
        let mut season = |kind: &str, change: Option<&ClockChange>, from: i64, to: i64| {
            lines.push(format!("BEGIN:{kind}"));
            let seconds = change.map_or(0, |change| change.seconds);
            let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            lines.push(format!("DTSTART:16010101T{hour:02}{minute:02}{second:02}"));
            if let Some(change) = change {
                lines.push(change.rule());
            }
            lines.push(format!("TZOFFSETFROM:{}", offset(from)));
            lines.push(format!("TZOFFSETTO:{}", offset(to)));
            lines.push(format!("END:{kind}"));
        };
        match &self.summer {
            None => season("STANDARD", None, self.standard, self.standard),
            Some(summer) => {
                season("STANDARD", Some(&summer.ends), summer.bias, self.standard);
                season("DAYLIGHT", Some(&summer.begins), self.standard, summer.bias);
            }
        }
        lines.push("END:VTIMEZONE".to_owned());
        lines
    }
}

impl ClockChange {
    /// Returns the moment of the change in one year, in the local time before the change.
    fn at(&self, year: i64) -> i64 {
        let first = days(year, self.month, 1);
        let mut day = (self.weekday - weekday(first)).rem_euclid(7) + 7 * (self.nth - 1);
        if day >= length(year, self.month) {
            day -= 7;
        }
        (first + day) * DAY + self.seconds / 60
    }

    fn rule(&self) -> String {
        let nth = if self.nth == 5 { -1 } else { self.nth };
        let index = usize::try_from(self.weekday).unwrap_or(0);
        let weekday = WEEKDAYS.get(index).copied().unwrap_or("SU");
        format!(
            "RRULE:FREQ=YEARLY;BYDAY={nth}{weekday};BYMONTH={}",
            self.month
        )
    }
}

/// Writes the offset from UTC. It is positive east of Greenwich, where `bias` is negative.
fn offset(bias: i64) -> String {
    let sign = if bias > 0 { '-' } else { '+' };
    let minutes = bias.abs();
    format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
}

/// Reads a time zone definition. Returns the name of the zone and the rule that is currently in effect. The rule is `None` if
/// it cannot be converted.
fn definition(bytes: &[u8]) -> Option<(String, Option<Zone>)> {
    const EFFECTIVE: u16 = 2;
    let mut cursor = Cursor { rest: bytes };
    cursor.take(2)?;
    let header = usize::from(cursor.u16()?);
    let mut rest = Cursor {
        rest: cursor.take(header)?,
    };
    rest.take(2)?;
    let letters = usize::from(rest.u16()?);
    let name = wide(rest.take(letters.checked_mul(2)?)?);
    let count = rest.u16()?;
    let mut rule = None;
    for _ in 0..count {
        let mut one = Cursor {
            rest: cursor.take(66)?,
        };
        one.take(4)?;
        let is_effective = one.u16()? & EFFECTIVE != 0;
        one.take(2 + 14)?;
        if is_effective || count == 1 {
            rule = biases(&mut one, 0);
        }
    }
    Some((name, rule))
}

/// Reads the offsets of standard time and summer time, and the moments at which they begin. In one of the formats, a
/// year precedes each moment; `years` is the length of this year in bytes, and it is skipped.
fn biases(cursor: &mut Cursor<'_>, years: usize) -> Option<Zone> {
    let mut bias = || Some(i64::from(cursor.u32()? as i32)).filter(|it| it.abs() < DAY);
    let (all, standard, summer) = (bias()?, bias()?, bias()?);
    cursor.take(years)?;
    let ends = change(cursor)?;
    cursor.take(years)?;
    let begins = change(cursor)?;
    let (standard, bias) = (all + standard, all + summer);
    if standard.abs() >= DAY || bias.abs() >= DAY {
        return None;
    }
    let summer = match (begins, ends) {
        (None, None) => None,
        (Some(begins), Some(ends)) => Some(Summer { bias, begins, ends }),
        _ => return None,
    };
    Some(Zone {
        name: String::new(),
        standard,
        summer,
    })
}

/// Reads a SYSTEMTIME structure. Returns `Some(None)` if the clocks do not change, and `None` if the moment is not the same in
/// every year.
fn change(cursor: &mut Cursor<'_>) -> Option<Option<ClockChange>> {
    let mut fields = [0_i64; 8];
    for field in &mut fields {
        *field = cursor.u16()?.into();
    }
    let [year, month, weekday, nth, hour, minute, second, _] = fields;
    if month == 0 {
        return Some(None);
    }
    let is_right = year == 0
        && month <= 12
        && weekday < 7
        && (1..=5).contains(&nth)
        && hour < 24
        && minute < 60
        && second < 60;
    is_right.then_some(Some(ClockChange {
        month,
        weekday,
        nth,
        seconds: hour * 3600 + minute * 60 + second,
    }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_day_number_converts_to_its_date_and_back() {
        let mut expected = (1601, 1, 1);
        for day in 0..days(4501, 1, 1) {
            assert_eq!(date(day), expected, "{day}");
            let (year, month, of_month) = expected;
            assert_eq!(days(year, month, of_month), day);
            expected = match (of_month < length(year, month), month < 12) {
                (true, _) => (year, month, of_month + 1),
                (false, true) => (year, month + 1, 1),
                (false, false) => (year + 1, 1, 1),
            };
        }
        // 2026-11-26 is a Thursday.
        assert_eq!(weekday(days(2026, 11, 26)), 4);
    }

    fn change(month: i64, nth: i64, hour: i64) -> ClockChange {
        let seconds = hour * 3600;
        let weekday = 0;
        ClockChange {
            month,
            weekday,
            nth,
            seconds,
        }
    }

    #[test]
    fn zones_of_both_hemispheres_have_summer_time() {
        let at = |year, month, day, hour: i64| days(year, month, day) * DAY + hour * 60;
        let berlin = Zone {
            name: String::new(),
            standard: -60,
            summer: Some(Summer {
                bias: -120,
                begins: change(3, 5, 2),
                ends: change(10, 5, 3),
            }),
        };
        let sydney = Zone {
            name: String::new(),
            standard: -600,
            summer: Some(Summer {
                bias: -660,
                begins: change(10, 1, 2),
                ends: change(4, 1, 3),
            }),
        };
        for (zone, local, hours) in [
            (&berlin, at(2026, 1, 1, 0), 1),
            (&berlin, at(2026, 3, 29, 1), 1),
            (&berlin, at(2026, 3, 29, 3), 2),
            (&berlin, at(2026, 10, 25, 1), 2),
            (&berlin, at(2026, 10, 25, 3), 1),
            (&sydney, at(2026, 1, 1, 0), 11),
            (&sydney, at(2026, 4, 5, 1), 11),
            (&sydney, at(2026, 4, 5, 3), 10),
            (&sydney, at(2026, 10, 4, 1), 10),
            (&sydney, at(2026, 10, 4, 3), 11),
        ] {
            assert_eq!(local - zone.utc(local), hours * 60, "{}", time_text(local));
        }
    }
}
