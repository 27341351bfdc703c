//! Formats sizes for messages, summaries and pages. All sizes are rounded here.

/// Formats a size in powers of ten: `512 bytes`, `1.2 kB`, `45 MB`. It has at least two significant digits, so the
/// rounding error is less than 5 %.
pub(super) fn size(count: u64) -> String {
    if count < 1000 {
        return match count {
            1 => "1 byte".to_owned(),
            _ => format!("{count} bytes"),
        };
    }
    let mut unit = 1000_u64;
    let mut name = "kB";
    for larger in ["MB", "GB", "TB", "PB", "EB"] {
        // A number that would be rounded to 1000 of a unit gets the next larger unit.
        if u128::from(count) * 2 < u128::from(unit) * 1999 {
            break;
        }
        (unit, name) = (unit * 1000, larger);
    }
    let rounded = |unit: u64| {
        let unit = u128::from(unit);
        (u128::from(count) + unit / 2) / unit
    };
    match rounded(unit / 10) {
        tenths @ ..100 if tenths % 10 > 0 => format!("{}.{} {name}", tenths / 10, tenths % 10),
        tenths @ ..100 => format!("{} {name}", tenths / 10),
        _ => format!("{} {name}", rounded(unit)),
    }
}

/// Formats a size as the value of an option: `100k` means 102,400 bytes.
pub(super) fn option_size(octets: u64) -> String {
    for (unit, letter) in [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k")] {
        if octets > 0 && octets.is_multiple_of(unit) {
            return format!("{}{letter}", octets / unit);
        }
    }
    octets.to_string()
}
