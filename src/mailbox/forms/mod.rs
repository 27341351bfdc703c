//! The forms of mailboxes. mbox: `mbox`, `separator` and `quoting` say where a message ends and what is hidden in it, `rewrite`
//! puts a changed one back. Each other format besides Maildir and plain messages is a file here (`mmdf`, `emlx`, `mh`), and a
//! variant of one of the three enums in `shapes`, whose matches name all that is asked of it. What is known but not read has a row in [`OTHERS`].

mod emlx;
pub(super) mod mbox;
mod mh;
mod mmdf;
pub(super) mod quoting;
pub(super) mod rewrite;
pub(super) mod separator;
mod shapes;

use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;

use crate::mailbox::not_mail::NotMail;
pub(crate) use shapes::FolderForm;
pub(super) use shapes::{Division, Ending, LOOK_AHEAD, Wrapping};

/// Those that people may say a source is.
static NAMED: &[Named] = &[
    Named {
        format: Format::Mmdf,
        form: Form::Divided(Division::Mmdf),
        is_another: "not MMDF: it does not start with a line of four Control-A",
        is_missing: "a folder without an MMDF mailbox in it",
    },
    Named {
        format: Format::Mh,
        form: Form::Folder(FolderForm::Mh),
        is_another: "not an MH folder: a file, and an MH folder is a folder",
        is_missing: "not an MH folder: no file in it has a number for a name",
    },
];

/// What the sources are said to be.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Format {
    /// What each is, is seen in it.
    #[default]
    Auto,
    /// mbox files.
    Mbox,
    /// Files of messages between lines of four Control-A.
    Mmdf,
    /// Folders with cur and new.
    Maildir,
    /// Folders of messages with numbers for names.
    Mh,
    /// Files that are a message each.
    Eml,
}

/// What is said of a folder in which there is none of all these.
pub(super) const NO_MAIL: &str =
    "a folder without mail: no Maildir, MH folder, mbox file or message in it";

/// The folders with a message a file.
pub(super) const FOLDERS_OF_MESSAGES: &str = "a Maildir or an MH folder";

/// Formats that are recognised by their first octets and not read, and what to do with them.
pub(super) const OTHERS: &[(&[u8], NotMail)] = {
    const UNPACK: &str = "decompress it first";
    // What is compressed once is looked into before anybody asks here.
    &[
        (
            b"BABYL OPTIONS",
            NotMail::Format(
                "a Babyl mailbox",
                "embody does not convert those; save it as mbox first, with Emacs's unrmail",
            ),
        ),
        (
            b"*mbx*",
            NotMail::Format(
                "an MBX mailbox",
                "embody does not convert those; make an mbox of it first, with mailutil",
            ),
        ),
        (
            b"!BDN",
            NotMail::Format(
                "an Outlook PST file",
                "embody does not convert those; make an mbox of it first, with readpst",
            ),
        ),
        (
            b"\xcf\xad\x12\xfe",
            NotMail::Format(
                "an Outlook Express file",
                "embody does not convert those; make an mbox of it first, with readdbx",
            ),
        ),
        (b"\x1f\x8b", NotMail::Format("compressed (gzip)", UNPACK)),
        (
            b"\x28\xb5\x2f\xfd",
            NotMail::Format("compressed (zstd)", UNPACK),
        ),
        (b"BZh", NotMail::Format("compressed (bzip2)", UNPACK)),
        (b"\xfd7zXZ\0", NotMail::Format("compressed (xz)", UNPACK)),
        (
            b"\x04\x22\x4d\x18",
            NotMail::Format("compressed (lz4)", UNPACK),
        ),
        (
            b"Dovecot-LZ4\x0d",
            NotMail::Format("compressed by Dovecot (lz4)", UNPACK),
        ),
        (b"SQLite format 3\0", NotMail::DATABASE),
    ]
};

/// A form that people may say a source is.
#[derive(Debug)]
pub(super) struct Named {
    format: Format,
    pub(super) form: Form,
    /// What is said of a file that is none.
    pub(super) is_another: &'static str,
    /// What is said of a folder in which there is none.
    pub(super) is_missing: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Divided(Division),
    Folder(FolderForm),
}

/// The form of which a source is said to be; of mbox, Maildir and messages there is none.
pub(super) fn named(format: Format) -> Option<&'static Named> {
    NAMED.iter().find(|named| named.format == format)
}

/// What divides the file, or what is appended to one, that starts so; `None` for an mbox.
pub(super) fn division_of(start: &[u8]) -> Option<Division> {
    if start.starts_with(b"From ") {
        return None;
    }
    let mut all = Division::ALL.iter().copied();
    all.find(|division| division.starts(start))
}

/// Where the content of a message of a divided file starts; `None` for one of an mbox.
pub(super) fn content_start(message: &[u8]) -> Option<usize> {
    let mut all = Division::ALL.iter();
    all.find_map(|division| division.content_start(message))
}

/// The folder form that `folder` shows to be of.
pub(super) fn folder_form(folder: &Path) -> Option<FolderForm> {
    let mut all = FolderForm::ALL.into_iter();
    all.find(|form| form.is_marked(folder))
}

/// What stands behind the front of what is around a message, if `start` is that of such a file.
pub(super) fn behind_front(start: &[u8]) -> Option<&[u8]> {
    let mut all = Wrapping::ALL.into_iter();
    all.find_map(|wrapping| wrapping.behind_front(start))
}

/// What is around the message of a file, and where that stands or why nobody knows; `None` for a plain message.
#[allow(clippy::type_complexity)] // found, and what came of it
pub(super) fn wrapping_of(file: &[u8]) -> Option<(Wrapping, Result<Range<usize>, &'static str>)> {
    let mut all = Wrapping::ALL.into_iter();
    all.find_map(|wrapping| Some((wrapping, wrapping.message(file)?)))
}

/// What is written of a file to a result of this name, if it has one: the message alone, unless it is named as a file of
/// the same form. One of which nobody knows where the message stands is passed on whole.
pub(super) fn as_named<'f>(file: &'f [u8], result: Option<&Path>) -> &'f [u8] {
    match wrapping_of(file) {
        Some((wrapping, Ok(range))) if !result.is_some_and(|name| wrapping.is_named(name)) => {
            file.get(range).unwrap_or(file)
        }
        _ => file,
    }
}

/// The message of a file, or all of it if it is a plain one: to look at. And why nobody knows where it stands.
#[cfg(feature = "cli")]
pub(crate) fn shown(file: &[u8]) -> (&[u8], Option<&'static str>) {
    match wrapping_of(file) {
        None => (file, None),
        Some((_, Ok(range))) => (file.get(range).unwrap_or_default(), None),
        Some((_, Err(why))) => (behind_front(file).unwrap_or_default(), Some(why)),
    }
}

/// What a folder of this name in `folder` holds, if programs keep it there beside messages.
pub(super) fn aside(folder: &Path, name: &OsStr) -> Option<&'static str> {
    let mut all = Wrapping::ALL.into_iter();
    all.find_map(|wrapping| wrapping.aside(folder, name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edit::{Edit, Edits};
    use crate::lengths::Lengths;
    use crate::mailbox::forms::mbox::Frame;
    use crate::mailbox::forms::quoting::Quoting;
    use crate::mailbox::forms::rewrite::{Rewritten, rewritten};
    use crate::mailbox::read::window::tests::divided;
    use crate::span::Span;

    fn counted_mailbox(contents: &[&[u8]]) -> Vec<u8> {
        let message =
            |content: &&[u8]| [format!("#{:03}\n", content.len()).as_bytes(), content].concat();
        let messages: Vec<Vec<u8>> = contents.iter().map(message).collect();
        [shapes::MAGIC, &messages.concat()].concat()
    }

    proptest! {
        #[test]
        fn what_counts_is_divided_alike_whatever_the_window(
            contents in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..1000), 0..20),
            window in 1_usize..6000,
        ) {
            let contents: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
            let bytes = counted_mailbox(&contents);
            let (joined, messages, oversized) = divided(&bytes, window, 1 << 20);
            prop_assert_eq!(&joined, &bytes);
            prop_assert_eq!(oversized, 0);
            let found: Vec<&[u8]> = messages.iter().map(|message| &message[5..]).collect();
            prop_assert_eq!(found, contents);
        }
    }

    #[test]
    fn a_number_in_front_follows_what_is_put_in_or_nothing_is() {
        let bytes = counted_mailbox(&[b"a\nFrom b 10:00\n", b"c\n"]);
        let frame = Frame::counted(9, 29, 29);
        for (new, expected) in [
            ("xyz".to_owned(), Some("#017\nxyz\nFrom b 10:00\n")),
            ("x".repeat(990), None),
        ] {
            let edits = Edits::of([Edit::replace(Span::new(0, 1), new)]).unwrap();
            let got = rewritten(&bytes, &frame, &edits, Quoting::Rd, Lengths::Corrected).unwrap();
            let expected = expected.map(|text| Rewritten::Changed(text.into()));
            assert_eq!(got, expected.unwrap_or(Rewritten::Refused));
        }
    }

    #[test]
    fn no_division_takes_an_mbox_or_an_empty_file_for_its_own() {
        for start in ["", "\n", "From a\n", "From: a@b\n\n"].map(str::as_bytes) {
            for &division in Division::ALL {
                assert!(!division.starts(start), "{}", division.name());
                assert_eq!(division.content_start(start), None, "{}", division.name());
            }
        }
        assert!(division_of(b"\x01\x01\x01\x01\n").is_some());
    }

    #[test]
    fn a_division_ends_what_nothing_follows() {
        for &division in Division::ALL {
            for bytes in ["", "x", "\n\n", "\x01\x01\x01\x01\nx"].map(str::as_bytes) {
                let ending = division.end_of_message(bytes, 0, true);
                let Ending::At { content, end } = ending else {
                    panic!("{}: {ending:?}", division.name());
                };
                assert!(content <= end && end <= bytes.len(), "{}", division.name());
                assert!(division.passed(bytes, true).0 <= bytes.len());
            }
        }
    }
}
