//! The `.emlx` format of Apple Mail: a line with the size of the message in bytes, the message, and a property list
//! with its flags.
//!
//! A change keeps the property list, and the length of the first line if the new number fits, because Apple Mail pads
//! the line with blanks. If the number is wrong (the message would be truncated, or would include data after it), the
//! file was changed after the number was written. The message then ends before the last line that starts with `<?xml`,
//! if all bytes from there on are a property list as Apple Mail writes it.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use memchr::{memchr, memmem};

use crate::mailbox::compressed::plain_suffix;
use crate::mailbox::forms::flags::{Flags, MessageFlags};
use crate::mailbox::forms::mbox;
use crate::mailbox::forms::suffixes::SuffixClass;
use crate::span::front;

const DIGITS: usize = 12;
const LINE: usize = 64;

/// Last characters of a property list.
pub(crate) const LIST_END: &[u8] = b"</plist>";

struct Count {
    octets: u64,
    width: usize,
    start: usize,
}

fn count(bytes: &[u8]) -> Option<Count> {
    let head = front(bytes, LINE);
    let end = memchr(b'\n', head)?;
    let with_cr = head.get(..end)?;
    let line = with_cr.strip_suffix(b"\r").unwrap_or(with_cr);
    let is_digit = |octet: &&u8| octet.is_ascii_digit();
    let (digits, blanks) = line.split_at(line.iter().take_while(is_digit).count());
    let is_one = (1..=DIGITS).contains(&digits.len()) && blanks.iter().all(|&octet| octet == b' ');
    Some(Count {
        octets: mbox::number(digits).filter(|_| is_one)?,
        width: line.len(),
        start: end + 1,
    })
}

pub(crate) fn behind_count(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(count(bytes)?.start..)
}

/// Returns the range of the message in an `.emlx` file. Returns `None` if the file has another format. The error says
/// why the size in the first line is wrong.
pub(crate) fn message(file: &[u8]) -> Option<Result<Range<usize>, &'static str>> {
    let Count { octets, start, .. } = count(file)?;
    Some(counted(file, start, octets).or_else(|why| {
        let list = list(&file[start..]).ok_or(why)?;
        Ok(start..start + list)
    }))
}

fn list(text: &[u8]) -> Option<usize> {
    let at = memmem::rfind(text, b"\n<?xml")? + 1;
    let list = text.get(at..)?;
    let mut ends = memmem::find_iter(list, b"</plist>");
    let end = ends.next()? + b"</plist>".len();
    let is_all = ends.next().is_none() && list.get(end..)?.trim_ascii().is_empty();
    // Apple Mail always stores flags in its property list. A list without flags may be a part of the mail, such as an
    // attached file.
    let is_of_mail = value(list, b"flags").is_some();
    (is_all && is_of_mail).then_some(at)
}

fn value<'l>(list: &'l [u8], key: &[u8]) -> Option<&'l str> {
    let key = [b"<key>", key, b"</key>"].concat();
    let behind = list
        .get(memmem::find(list, &key)? + key.len()..)?
        .trim_ascii_start();
    let number = [&b"<integer>"[..], b"<real>"]
        .iter()
        .find_map(|tag| behind.strip_prefix(*tag))?;
    let end = memchr(b'<', number)?;
    std::str::from_utf8(number.get(..end)?.trim_ascii()).ok()
}

/// Returns the flags of the message and the time when it arrived. Reads only property lists in XML.
pub(crate) fn noted(file: &[u8]) -> (Option<MessageFlags>, Option<SystemTime>) {
    let Some(Ok(range)) = message(file) else {
        return (None, None);
    };
    let list = &file[range.end..];
    let flags = value(list, b"flags").and_then(|flags| flags.parse().ok());
    let seconds = value(list, b"date-received").and_then(|seconds| seconds.parse().ok());
    let since = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let came = since.and_then(|since| UNIX_EPOCH.checked_add(since));
    (flags.map(|flags| Flags::of_apple_mail(flags).into()), came)
}

/// Returns whether bytes begin with an `.emlx` file that has a property list with flags, as Apple Mail writes it.
pub(crate) fn has_list(bytes: &[u8]) -> bool {
    let Some(Ok(range)) = message(bytes) else {
        return false;
    };
    let behind = bytes.get(range.end..).unwrap_or_default();
    let list = front(behind, list_length(behind));
    value(list, b"flags").is_some()
}

/// Returns the length of the property list at the start of `bytes`. Returns 0 if there is none.
pub(crate) fn list_length(bytes: &[u8]) -> usize {
    let blanks = bytes.len() - bytes.trim_ascii_start().len();
    let list = bytes.get(blanks..).unwrap_or_default();
    let end = memmem::find(list, LIST_END).filter(|_| starts_list(list));
    end.map_or(0, |end| blanks + end + LIST_END.len())
}

fn starts_list(list: &[u8]) -> bool {
    [b"<?xml".as_slice(), b"<!DOCTYPE", b"<plist", b"bplist"]
        .iter()
        .any(|start| list.starts_with(start))
}

fn counted(file: &[u8], start: usize, octets: u64) -> Result<Range<usize>, &'static str> {
    let end = usize::try_from(octets)
        .ok()
        .and_then(|octets| start.checked_add(octets));
    let Some((end, (before, behind))) =
        end.and_then(|end| Some((end, file.split_at_checked(end)?)))
    else {
        return Err("the first line of the file gives a larger size than the file has");
    };
    let list = behind.trim_ascii_start();
    let within = before[start..].trim_ascii_end();
    if list.is_empty() && within.ends_with(b"</plist>") {
        return Err("the size in the first line of the file includes the property list");
    }
    if list.is_empty() || starts_list(list) {
        Ok(start..end)
    } else {
        Err(
            "no property list follows the message at the position that the first line of the file gives",
        )
    }
}

pub(crate) fn with_message(file: &[u8], range: Range<usize>, new: &[u8]) -> Vec<u8> {
    let width = count(file).map_or(0, |count| count.width);
    let line_end = &file[width..range.start];
    let behind = &file[range.end..];
    // The property list must start on a new line. If the new message has no line ending at its end, one is added.
    let was_line = file[range].ends_with(b"\n");
    let ending: &[u8] = if was_line && !new.ends_with(b"\n") {
        b"\n"
    } else {
        b""
    };
    let count = format!("{:<width$}", new.len() + ending.len());
    [count.as_bytes(), line_end, new, ending, behind].concat()
}

pub(crate) fn is_partial(message: &[u8]) -> bool {
    const FIELD: &[u8] = b"x-apple-content-length";
    let behind = |at: usize| message.get(at + 1..at + 1 + FIELD.len());
    let is_field = |at| behind(at).is_some_and(|start| start.eq_ignore_ascii_case(FIELD));
    memchr::memchr_iter(b'\n', message).any(is_field)
}

pub(crate) fn is_named(result: &Path) -> bool {
    plain_suffix(result).and_then(SuffixClass::of) == Some(SuffixClass::AppleMessage)
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
    fn emlx_format_is_recognized_by_the_suffix_of_the_result() {
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
