//! Checks that no byte of a mailbox is lost when the mailbox is converted to another format.
//!
//! Each byte belongs to a separator, to a message, or to the remainder: empty lines and a byte order mark before the
//! first message, empty lines after each message, and the bytes of a message that is too large, which is counted. The
//! code of each format decides which bytes are which. This check does not use that code: it examines the bytes that
//! would be dropped, and the sums. If the code of a format makes a mistake, the run ends before the message is written.

use std::io;

use crate::mailbox::input::message_check::{imbalance, is_blank};
use crate::mailbox::input::window::{WindowChunk, Windows};
use crate::prologue::BYTE_ORDER_MARK;

#[derive(Debug)]
pub(crate) struct Accounts {
    /// Offset at which the next chunk must start, so that no byte is missing between two chunks.
    at: u64,
    is_first: bool,
    /// Whether the bytes of a message that is too large continue in the next chunk.
    is_oversized: bool,
    #[cfg(test)]
    pub(crate) sums: Sums,
}

/// Number of bytes in separators, in messages, and in neither of them (the remainder), for tests.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Sums {
    pub(crate) separators: u64,
    pub(crate) messages: u64,
    pub(crate) remainder: u64,
}

impl Accounts {
    /// Starts the check of a mailbox. No chunk of `windows` may have been read yet.
    pub(crate) fn of(windows: &Windows) -> Self {
        Self {
            at: windows.offset,
            is_first: true,
            is_oversized: false,
            #[cfg(test)]
            sums: Sums::default(),
        }
    }

    /// Checks that the chunk follows the previous one directly, and that each of its bytes belongs to a message or to
    /// the remainder, such as empty lines before the first message.
    pub(crate) fn chunk(&mut self, chunk: &WindowChunk) -> io::Result<()> {
        let bytes = chunk.bytes();
        if chunk.offset != self.at {
            return Err(imbalance(
                self.at,
                "a part of the mailbox was read twice or skipped",
            ));
        }
        if chunk.frames.is_empty() {
            let is_oversized = chunk.oversized > 0 || self.is_oversized;
            let unmarked = if self.is_first {
                bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
            } else {
                bytes
            };
            if !is_oversized && !chunk.is_torn && !is_blank(unmarked) {
                return Err(imbalance(
                    self.at,
                    "the mailbox contains text before the first message",
                ));
            }
            self.is_oversized = is_oversized;
            #[cfg(test)]
            {
                self.sums.remainder += bytes.len() as u64;
            }
        } else {
            let mut end = 0;
            for frame in &chunk.frames {
                if frame.start != end || frame.end <= end {
                    let at = self.at + end as u64;
                    return Err(imbalance(
                        at,
                        "bytes between two messages were read twice or skipped",
                    ));
                }
                end = frame.end;
            }
            if end != bytes.len() {
                let at = self.at + end as u64;
                return Err(imbalance(
                    at,
                    "text after a message is not part of any message",
                ));
            }
            self.is_oversized = false;
        }
        self.is_first = false;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Checks that all bytes that were read were also checked. Called at the end of the mailbox.
    pub(crate) fn end(&self, windows: &Windows) -> io::Result<()> {
        if windows.is_read_up_to(self.at) {
            Ok(())
        } else {
            Err(imbalance(self.at, "the end of the mailbox was not read"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::edit::Edits;
    use crate::error::Error;
    use crate::mailbox::forms::carriage::in_line_feeds;
    use crate::mailbox::forms::mbox::Frame;
    use crate::mailbox::forms::{Division, eudora};
    use crate::mailbox::input::message_check::check_message;
    use crate::mailbox::input::source::InputSource;
    use crate::mailbox::{Conversion, Format, Message, Options, Stop, Transform};
    use crate::platform::FileExt as _;

    const DATE: &str = "Thu Jan  1 00:00:00 1970";

    /// Generates separators of all formats with all line endings, header fields, text that looks like a separator, and
    /// random bytes.
    fn parts() -> impl Strategy<Value = Vec<u8>> {
        let lines = [
            format!("From a@b {DATE}"),
            format!("From ???@??? {DATE}"),
            "From - ".to_owned(),
            "From here on".to_owned(),
            format!(">From a@b {DATE}"),
            "\x01\x01\x01\x01".to_owned(),
            "Subject: s".to_owned(),
            "Content-Length: 7".to_owned(),
            "X-Mozilla-Status: 0001".to_owned(),
            "text".to_owned(),
            String::new(),
        ];
        let ending = prop::sample::select(vec!["\n", "\r\n", "\r", "\r\r\n", ""]);
        let line = (prop::sample::select(lines.to_vec()), ending);
        let part = prop_oneof![
            8 => line.prop_map(|(line, ending)| (line + ending).into_bytes()),
            1 => any::<[u8; 3]>().prop_map(|bytes| bytes.to_vec()),
            1 => (1_usize..900).prop_map(|length| vec![b'x'; length]),
        ];
        proptest::collection::vec(part, 0..50).prop_map(|parts| parts.concat())
    }

    fn sources(bytes: &[u8]) -> [InputSource; 2] {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        let stream = io::Cursor::new(bytes.to_vec());
        [
            InputSource::file(&Arc::new(file)),
            InputSource::stream(stream, None, Arc::default()),
        ]
    }

    /// Reads all chunks and checks them. Returns the bytes of all parts in order, and the number of bytes of each kind.
    /// Returns `None` if the check fails.
    fn walked(mut windows: Windows) -> Option<(Vec<u8>, Sums)> {
        let mut accounts = Accounts::of(&windows);
        let mut joined = Vec::new();
        while let Some(chunk) = windows.next_chunk().unwrap() {
            accounts.chunk(&chunk).ok()?;
            if chunk.frames.is_empty() {
                joined.extend(in_line_feeds(chunk.bytes()));
            }
            for index in 0..chunk.frames.len() {
                let text = chunk.text(index).ok()?;
                let (from_line, content, behind) = text.parts();
                accounts.sums.separators += from_line.len() as u64;
                accounts.sums.messages += content.len() as u64;
                accounts.sums.remainder += behind.len() as u64;
                for part in [from_line, content, behind] {
                    joined.extend_from_slice(part);
                }
            }
        }
        accounts.end(&windows).unwrap();
        Some((joined, accounts.sums))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]
        #[test]
        fn every_byte_of_a_mailbox_belongs_to_a_separator_message_or_remainder(
            bytes in parts(), start in 0_usize..6, window in 1_usize..4000,
            most in prop_oneof![Just(1_usize << 20), 1100_usize..4000],
        ) {
            let start = match start {
                0 => format!("From a@b {DATE}\n"),
                1 => format!("From a@b {DATE}\r"),
                2 => format!("From a@b {DATE}\r\n"),
                3 => format!("From ???@??? {DATE}\r"),
                4 => "\x01\x01\x01\x01\n".to_owned(),
                _ => format!("\u{feff}\r\nFrom a@b {DATE}\r"),
            };
            let bytes = [start.as_bytes(), &bytes].concat();
            for source in sources(&bytes) {
                let mut windows = Windows::new(source, window, most);
                if eudora::starts(&bytes) {
                    windows.division = Division::Eudora { has_cr: true };
                }
                let (joined, sums) = walked(windows).expect("the check agrees");
                prop_assert_eq!(sums.separators + sums.messages + sums.remainder, bytes.len() as u64);
                // Line endings may be converted while they are read, so they are compared as equal. All other bytes
                // must be the same.
                let plain = |bytes: &[u8]| -> Vec<u8> {
                    let read = bytes.iter().map(|&byte| if byte == b'\r' { b'\n' } else { byte });
                    read.collect()
                };
                prop_assert_eq!(plain(&joined), plain(&bytes));
            }
        }
    }

    /// Regression test: in a mailbox of Entourage, two messages were once read as one separator.
    #[test]
    fn check_detects_a_separator_that_contains_a_message() {
        let line = format!("From a@b {DATE}\r");
        let all = format!("{line}Subject: x\r\rtext\r\r");
        let frame = |text: &str| Frame {
            end: text.len(),
            ..Frame::default()
        };
        let (all, line) = (all.as_str(), line.as_str());
        let content = &all[line.len()..];
        assert!(check_message(&frame(all), (all.as_bytes(), b"", b""), 0).is_err());
        assert!(check_message(&frame(all), (line.as_bytes(), content.as_bytes(), b""), 0).is_ok());
        assert!(check_message(&frame(all), (line.as_bytes(), b"", content.as_bytes()), 0).is_err());
        let missing = (line.as_bytes(), &content.as_bytes()[1..], &b""[..]);
        assert!(check_message(&frame(all), missing, 0).is_err());
        assert!(check_message(&frame(content), (b"", content.as_bytes(), b""), 0).is_err());
    }

    struct Nothing;

    impl Transform for Nothing {
        fn next_touch(&self, _bytes: &[u8]) -> Option<usize> {
            None
        }

        fn transform(&self, _message: &Message<'_>) -> Result<(Edits, ()), Error> {
            Ok((Edits::new(), ()))
        }
    }

    #[test]
    fn format_that_lies_ends_the_run_without_a_result() {
        let folder = tempfile::tempdir().unwrap();
        let convert = |name: &str, text: &str, form: Format| {
            let source = folder.path().join(name);
            std::fs::write(&source, text).unwrap();
            let options = Options {
                output_format: form,
                ..Options::default()
            };
            let target = folder.path().join("out");
            let stop = Stop::default();
            let done = Conversion::of(&source)
                .to(&target)
                .options(&options)
                .stop(&stop)
                .run(&Nothing, &());
            let is_there = target.exists();
            if let Ok(found) = std::fs::symlink_metadata(&target) {
                if found.is_dir() {
                    std::fs::remove_dir_all(&target).unwrap()
                } else {
                    std::fs::remove_file(&target).unwrap()
                }
            }
            (done, is_there)
        };
        let text = "Subject: x\n\nsome text\n\n";
        let names = |folder: &Path| std::fs::read_dir(folder).unwrap().count();
        for form in [Format::Maildir, Format::Eml] {
            let (done, is_there) = convert("honest", &format!("From b {DATE}\n{text}"), form);
            assert!(done.is_ok() && is_there);
            for lie in ["gap", "tail", "end"] {
                let (done, is_there) = convert(lie, &format!("From a-lie {lie}\n{text}"), form);
                match done {
                    Err(Error::Unreadable { source, .. }) => {
                        assert!(source.to_string().contains("no result"), "{source}");
                    }
                    other => panic!("{lie}: {other:?}"),
                }
                assert!(!is_there, "{lie}");
            }
        }
        assert_eq!(names(folder.path()), 4, "no temporary file is left");
        // The source `gap` is divided into messages that leave out some bytes. A result in the format of the source is a
        // copy of all bytes, so nothing would be lost. The run must fail all the same, because the check of the division
        // finds bytes that belong to no message.
        let (done, is_there) = convert("gap", &format!("From a-lie gap\n{text}"), Format::Auto);
        assert!(done.is_err() && !is_there);
    }
}
