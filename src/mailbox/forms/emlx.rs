//! Messages as Apple's Mail keeps them, `.emlx`: a line with the number of the message's octets, the message, a property
//! list with its flags. Pure.
//!
//! A change keeps the property list octet for octet, and the length of the first line where the new number fits into it:
//! Mail pads it with blanks. A number that cannot be right (the message would be cut short, or take in what is behind
//! it) is no frame: such a file stays as it is.

use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use memchr::memchr;

use crate::mailbox::compressed::plain_suffix;

/// Digits of the number at most.
const DIGITS: usize = 12;
/// Octets of the first line at most.
const LINE: usize = 64;

/// The first line.
struct Count {
    /// What it says.
    octets: u64,
    /// The digits and the blanks behind them.
    width: usize,
    /// Where the message starts.
    start: usize,
}

fn count(bytes: &[u8]) -> Option<Count> {
    let head = bytes.get(..LINE).unwrap_or(bytes);
    let end = memchr(b'\n', head)?;
    let line = head.get(..end)?;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let digits = line
        .iter()
        .take_while(|octet| octet.is_ascii_digit())
        .count();
    let (digits, blanks) = line.split_at(digits);
    let is_one = (1..=DIGITS).contains(&digits.len()) && blanks.iter().all(|&octet| octet == b' ');
    let octets = std::str::from_utf8(digits).ok().filter(|_| is_one)?;
    Some(Count {
        octets: octets.parse().ok()?,
        width: line.len(),
        start: end + 1,
    })
}

/// What stands behind the first line, if `bytes` start as such a file.
pub(crate) fn behind_count(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(count(bytes)?.start..)
}

/// Where the message stands in a whole file; `None` if it is no such file.
///
/// # Errors
/// Why the number is not right.
pub(crate) fn message(file: &[u8]) -> Option<Result<Range<usize>, &'static str>> {
    let Count { octets, start, .. } = count(file)?;
    let end = usize::try_from(octets)
        .ok()
        .and_then(|octets| start.checked_add(octets));
    let Some((end, behind)) = end.and_then(|end| Some((end, file.get(end..)?))) else {
        return Some(Err("its first line counts more bytes than there are"));
    };
    // A number that takes in the property list, too.
    let within = file.get(start..end).unwrap_or_default().trim_ascii_end();
    if behind.trim_ascii().is_empty() && within.ends_with(b"</plist>") {
        return Some(Err("its first line counts the property list as well"));
    }
    let list = behind.trim_ascii_start();
    let is_list = [b"<?xml".as_slice(), b"<!DOCTYPE", b"<plist", b"bplist"]
        .iter()
        .any(|start| list.starts_with(start));
    if !list.is_empty() && !is_list {
        return Some(Err(
            "no property list stands where its first line says that the message ends",
        ));
    }
    Some(Ok(start..end))
}

/// `file` with another message in the place of that at `range`.
pub(crate) fn with_message(file: &[u8], range: Range<usize>, new: &[u8]) -> Vec<u8> {
    let width = count(file).map_or(0, |count| count.width);
    let line_end = file.get(width..range.start).unwrap_or_default();
    let behind = file.get(range.end..).unwrap_or_default();
    // The property list starts a line of its own.
    let was_line = file.get(range).is_some_and(|old| old.ends_with(b"\n"));
    let ending: &[u8] = match was_line && !new.ends_with(b"\n") {
        true => b"\n",
        false => b"",
    };
    let count = format!("{:<width$}", new.len() + ending.len());
    [count.as_bytes(), line_end, new, ending, behind].concat()
}

pub(crate) fn is_named(result: &Path) -> bool {
    plain_suffix(result).is_some_and(|suffix| suffix.eq_ignore_ascii_case("emlx"))
}

/// Whether a folder within a `.mbox` of Apple's Mail holds messages, and what it keeps of their attachments.
fn is_of_apple_mail(folder: &Path) -> bool {
    let is_mbox = |above: &Path| above.extension().is_some_and(|suffix| suffix == "mbox");
    // From within, `.` does not tell.
    let is_beneath = |folder: PathBuf| folder.ancestors().any(is_mbox);
    folder.join("Messages").is_dir() && folder.canonicalize().is_ok_and(is_beneath)
}

/// What a folder of this name in `folder` holds, if Apple's Mail keeps it there.
pub(crate) fn aside(folder: &Path, name: &OsStr) -> Option<&'static str> {
    let is_aside = name == "Attachments" && is_of_apple_mail(folder);
    is_aside.then_some("attachments that Apple's Mail keeps beside the messages")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "<?xml version=\"1.0\"?>\n<plist/>\n";
    const MAIL: &str = "Subject: x\n\nx\n";

    #[test]
    fn the_number_is_believed_if_a_property_list_or_nothing_follows() {
        for (file, expected) in [
            (format!("14        \n{MAIL}{LIST}"), Some(Ok(11..25))),
            (format!("14\n{MAIL}"), Some(Ok(3..17))),
            (format!("14\r\n{MAIL}\n{LIST}"), Some(Ok(4..18))),
            (format!("13\n{MAIL}{LIST}"), Some(Ok(3..16))),
            (MAIL.to_owned(), None),
            (format!("14 x\n{MAIL}"), None),
            (format!("\n{MAIL}"), None),
            (format!("1234567890123\n{MAIL}"), None),
        ] {
            assert_eq!(message(file.as_bytes()), expected, "{file:?}");
        }
        for file in [
            format!("12\n{MAIL}{LIST}"),
            format!("15\n{MAIL}{LIST}"),
            format!("15\n{MAIL}"),
            format!("999999999999\n{MAIL}"),
        ] {
            assert!(matches!(message(file.as_bytes()), Some(Err(_))), "{file:?}");
        }
    }

    #[test]
    fn a_change_keeps_the_list_and_the_width_of_the_number() {
        for (line, new, expected) in [
            ("14   ", "longer and longer\n", "18   "),
            ("14", "x\n", "2 "),
            ("14", &"x".repeat(101), "102"),
            ("14 \r", "a\nb", "4  \r"),
        ] {
            let file = format!("{line}\n{MAIL}{LIST}");
            let range = message(file.as_bytes()).unwrap().unwrap();
            let out = with_message(file.as_bytes(), range, new.as_bytes());
            let ending = if new.ends_with('\n') { "" } else { "\n" };
            let out = String::from_utf8(out).unwrap();
            assert_eq!(out, format!("{expected}\n{new}{ending}{LIST}"));
            let range = message(out.as_bytes()).unwrap().unwrap();
            assert_eq!(out[range], format!("{new}{ending}"));
        }
    }

    #[test]
    fn the_name_of_a_result_says_whether_it_is_one() {
        for (name, expected) in [
            ("1.emlx", true),
            ("1.partial.EMLX", true),
            ("1.emlx.gz", true),
            ("1.eml", false),
            ("emlx", false),
            ("1.gz", false),
        ] {
            assert_eq!(is_named(Path::new(name)), expected, "{name}");
        }
    }
}
