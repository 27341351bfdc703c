//! MH folders, which contain one message per file, named by its number (mh-profile(5), mh-sequence(5)). `maildir` reads
//! and changes them.
//!
//! A directory is an MH folder if it contains a file that mail programs keep next to messages. Only files named by a
//! plain number are messages: names such as `,12` and `#12` mark removed messages.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

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

pub(crate) fn number(name: &OsStr) -> Option<u32> {
    let digits = name.to_str()?;
    digits
        .parse()
        .ok()
        .filter(|_| !digits.starts_with(['0', '+']))
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
            (of("1"), of("20"), of("999999")),
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
