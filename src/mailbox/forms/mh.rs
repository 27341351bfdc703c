//! MH folders, which contain one message per file, named by its number (mh-profile(5), mh-sequence(5)). `maildir` reads
//! and changes them.
//!
//! A directory is an MH folder if it contains a file that mail programs keep next to messages. Only files named by a
//! plain number are messages: names such as `,12` and `#12` mark removed messages.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::mailbox::compressed::Method;

/// The file in which nmh and Python store flags, by message number.
pub(crate) const SEQUENCES: &str = ".mh_sequences";

/// Files of nmh, exmh, Mew, Sylpheed, Claws Mail and Gnus. A directory that contains one of these files is an MH
/// folder.
const MARKS: [&str; 7] = [
    SEQUENCES,
    ".xmhcache",
    ".mew_cache",
    ".mew-cache",
    ".sylpheed_cache",
    ".claws_cache",
    ".overview",
];

pub(crate) fn is_marked(folder: &Path) -> bool {
    MARKS.iter().any(|name| folder.join(name).is_file())
}

/// Returns the number of a message. The file of an old message may be compressed, with a name such as `12.gz`.
pub(crate) fn number(name: &OsStr) -> Option<u32> {
    let path = Path::new(name);
    let plain = match Method::of_name(path) {
        Some(_) => path.file_stem()?,
        None => name,
    };
    let digits = plain.to_str()?;
    digits
        .parse()
        .ok()
        .filter(|_| !digits.starts_with(['0', '+']))
}

/// Returns a description if the name is that of a file which mail programs keep in an MH folder, or of a message that was
/// removed from the folder.
pub(crate) fn own_file(name: &OsStr) -> Option<&'static str> {
    let is_mark = MARKS.iter().any(|mark| name == *mark);
    let is_removed = name
        .to_str()
        .and_then(|name| name.strip_prefix([',', '#']))
        .is_some_and(|rest| number(OsStr::new(rest)).is_some());
    if is_removed {
        return Some("a message that was removed from an MH folder");
    }
    is_mark.then_some("a file in which a mail program keeps the state of an MH folder")
}

pub(crate) fn sort(names: &mut [PathBuf]) {
    names.sort_by_key(|name| name.file_name().and_then(number));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_a_number_for_a_name() {
        let of = |name: &str| number(OsStr::new(name));
        assert_eq!(
            (of("1"), of("20.gz"), of("999999")),
            (Some(1), Some(20), Some(999_999))
        );
        for name in [
            "",
            "0",
            "007",
            ",1",
            "#1",
            "1.eml",
            "+1",
            "-1",
            "1 ",
            "99999999999",
            "١",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
        let mut names = ["10", "9", "100", "1"].map(PathBuf::from);
        sort(&mut names);
        assert_eq!(names, ["1", "9", "10", "100"].map(PathBuf::from));
    }
}
