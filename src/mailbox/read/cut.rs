//! Reads a range of an mbox: the messages that begin between two offsets. Apart from the start of the file, the bytes
//! before the range are not read.
//!
//! A message of an mbox ends at the next separator, or, in the variant mboxcl2, where its Content-Length says. If the
//! start of the file contains a message without a correct Content-Length, only separators count after it. A few bytes
//! around an offset then show whether a message begins there. If every message there has a correct Content-Length, the
//! start of a message depends on all messages before it, so the mailbox is not divided into ranges.
//!
//! A message belongs to the range in which it begins, and the bytes before the first message belong to the range that
//! starts at 0. So ranges that cover the file without gaps contain each message exactly once.

use std::borrow::Cow;
use std::fs::{self, Metadata};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::detail::{Detail, Setting};
use crate::error::Error;
use crate::mailbox::ReadOptions;
use crate::mailbox::failure::cannot_read;
use crate::mailbox::finds::{Finds, SourceFind};
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::mbox::{self, MboxReadState};
use crate::mailbox::forms::quoting::Quoting;
use crate::mailbox::forms::separator::LOOK_AHEAD;
use crate::mailbox::forms::{Division, carriage, mmdf};
use crate::mailbox::input::source::InputSource;
use crate::mailbox::input::window::{WindowPosition, Windows};

/// Number of bytes at the start of the file that are searched for a message whose Content-Length is missing or wrong.
/// If no such message is found, the file is treated as an mboxcl2 mailbox, in which Content-Length shows where a
/// message ends. Such a file is not divided into ranges, because the start of a message depends on all messages before
/// it.
const HEAD: u64 = 1 << 20;

/// Returns the range that the options request, or `None` if no range is requested or the range covers the whole source.
/// Returns an error if the source has another length or modification time than the options require.
pub(crate) fn asked_for(
    options: &ReadOptions,
    path: &Path,
    metadata: Option<&Metadata>,
) -> Result<Option<Range<u64>>, Error> {
    let Some(range) = &options.range else {
        return Ok(None);
    };
    let length = metadata.map(Metadata::len);
    let modified = metadata.and_then(|metadata| metadata.modified().ok());
    let is_other_length = options.length.is_some() && options.length != length;
    let is_other_time = options.modified.is_some() && options.modified != modified;
    if is_other_length || is_other_time {
        return Err(Error::NotAsExpected { path: path.into() });
    }
    let is_all = range.start == 0 && range.end >= length.unwrap_or(u64::MAX);
    Ok((!is_all).then(|| range.clone()))
}

pub(crate) fn check(source: &Path, finds: &Finds) -> Result<(), Error> {
    let is_file =
        |found: &SourceFind| found.relative.as_os_str().is_empty() && !found.kind.is_folder();
    if finds.mailboxes.iter().all(is_file) {
        return Ok(());
    }
    let detail = Detail::from(format!("{}: a folder; ", source.display()));
    Err(Error::Usage(
        detail
            .naming(Setting::Range)
            .then(" works only for one mbox"),
    ))
}

pub(crate) fn windows(
    source: InputSource,
    counted: MboxReadState,
    options: &ReadOptions,
    path: &Path,
) -> Result<Windows, Error> {
    let all = |source| Windows::new(source, options.window, options.max_message).behind(counted);
    if options.range.is_none() {
        return Ok(all(source));
    }
    let file = source.as_file().cloned();
    let metadata = match &file {
        Some(file) => Some(file.metadata().map_err(cannot_read(path))?),
        None => fs::metadata(path).ok().filter(Metadata::is_file),
    };
    let Some(range) = asked_for(options, path, metadata.as_ref())? else {
        return Ok(all(source));
    };
    let Some(file) = file else {
        let why = metadata.map_or("the source is not a regular file", |_| COMPRESSED);
        return Err(cannot_cut(path, why));
    };
    let walk = || all(InputSource::file(&file));
    match settled(walk()).map_err(cannot_read(path))? {
        Ok(settled) => walk().piece(range, settled).map_err(cannot_read(path)),
        Err(why) => Err(cannot_cut(path, why)),
    }
}

pub(crate) fn cannot_cut(path: &Path, why: &str) -> Error {
    let detail = Detail::from(format!(
        "{}: cannot divide the mailbox into ranges, because {why}; ",
        path.display()
    ));
    Error::Usage(
        detail
            .naming(Setting::Range)
            .then(" 0- selects the whole mailbox"),
    )
}

const COUNTED: &str = "the Content-Length fields decide where the messages of the source end";
const COMPRESSED: &str = "the source is compressed or an archive";
const MMDF: &str = "the source is an MMDF mailbox";
pub(crate) const SINGLE: &str = "the source is a single message";

/// Returns the offset after which only separators show where a message begins. The inner `Err` is the reason why the
/// mailbox cannot be divided into ranges.
fn settled(mut head: Windows) -> io::Result<Result<u64, &'static str>> {
    // Only messages that start in the first `HEAD` bytes are examined. Without this limit, the result would depend
    // on the window size.
    head.until = HEAD;
    while !head.counted.is_settled {
        let is_end = head.next_chunk()?.is_none();
        // In MMDF, a line that divides messages may also be text inside a message. A range could then start inside a
        // message, so MMDF mailboxes are not divided.
        if head.division == Division::Mmdf {
            return Ok(Err(MMDF));
        }
        if is_end {
            return Ok(Err(COUNTED));
        }
    }
    Ok(Ok(head.offset))
}

/// Number of bytes before a range that are also read. A `From ` line at the start of the range may be an older separator,
/// which belongs to the message of another separator up to [`LOOK_AHEAD`] bytes before it. Whether an empty line precedes
/// that other separator depends on 3 more bytes: a line ending, and an empty line that ends in CR LF.
const BEFORE: u64 = LOOK_AHEAD as u64 + 3;

impl Windows {
    /// Restricts the windows to the messages that begin in `range`. The windows end before the first message after
    /// the range.
    fn piece(mut self, range: Range<u64>, settled: u64) -> io::Result<Self> {
        if range.start <= settled {
            return self.walked_to(range);
        }
        self.offset = range.start.saturating_sub(BEFORE);
        self.read = self.offset;
        if let InputSource::File { at, .. } = &mut self.source {
            *at = self.offset;
        }
        self.at = WindowPosition::Passing(None);
        self.until = range.end;
        self.counted.count(false);
        while self.at != WindowPosition::Message
            && self.offset < range.end
            && self.next_chunk()?.is_some()
        {}
        if self.at != WindowPosition::Message {
            // No message begins in the range. The bytes that were skipped belong to an earlier message, so the range is
            // empty.
            self.at = WindowPosition::Message;
            self.until = 0;
            return Ok(self);
        }
        self.walked_to(range)
    }

    /// Skips the messages that begin before `range`, and numbers the messages of the range from 1.
    fn walked_to(mut self, range: Range<u64>) -> io::Result<Self> {
        self.until = range.start;
        while self.next_chunk()?.is_some() {}
        self.until = range.end;
        self.next_number = 1;
        Ok(self)
    }
}

const HEADER: usize = 64 << 10;

pub(crate) struct MboxPiece {
    /// Offsets of the piece: from the start of its first message to the start of the first message of the next piece.
    pub(crate) range: Range<u64>,
    pub(crate) messages: Option<u64>,
    pub(crate) header: Vec<u8>,
    pub(crate) whole: Option<&'static str>,
}

/// Divides a file of `length` bytes into pieces of `size` bytes each, extended to the end of their last message. Passes
/// the pieces to `take` in order, with the quoting of the mbox. The pieces cover the file without gaps. A file that is
/// empty, compressed or a single message is one piece.
pub(crate) fn pieces(
    source: &mut InputSource,
    kind: StartKind,
    length: u64,
    (size, counts): (u64, bool),
    options: &ReadOptions,
    take: &mut dyn FnMut(&MboxPiece, Option<Quoting>) -> io::Result<()>,
) -> io::Result<()> {
    let mut all = MboxPiece {
        range: 0..length,
        messages: counts.then_some(1),
        header: header(source)?,
        whole: Some(SINGLE),
    };
    if kind.is_message() {
        return take(&all, None);
    }
    let quoting = source.quoting()?;
    // A smaller window avoids reading much more than a small piece contains.
    let window = usize::try_from(size)
        .unwrap_or(usize::MAX)
        .min(options.window);
    let walk = |source| Windows::new(source, window, options.max_message);
    let count = |windows: &mut Windows| counts.then(|| windows.count(u64::MAX)).transpose();
    let mut is_mbox = true;
    all.whole = Some(COMPRESSED);
    if let Some(file) = source.as_file().map(Arc::clone) {
        let from_start = || walk(InputSource::file(&file));
        match settled(from_start())? {
            Err(why) => all.whole = Some(why),
            Ok(settled) => {
                let mut from = 0_u64;
                loop {
                    let beyond = from.saturating_add(size);
                    let mut to = length;
                    if beyond < length {
                        let behind = from_start().piece(beyond..u64::MAX, settled)?;
                        if behind.offset < behind.until {
                            to = behind.offset;
                        }
                    }
                    let piece = MboxPiece {
                        range: from..to,
                        messages: count(&mut from_start().piece(from..to, settled)?)?,
                        header: header(&mut InputSource::section(&file, from, u64::MAX))?,
                        whole: None,
                    };
                    take(&piece, Some(quoting))?;
                    from = to;
                    if from >= length {
                        return Ok(());
                    }
                }
            }
        }
        is_mbox = !mmdf::starts(&source.start(mmdf::LOOK_AHEAD)?);
    }
    let nothing = InputSource::stream(io::empty(), None, Arc::default());
    let mut windows = walk(std::mem::replace(source, nothing));
    all.messages = count(&mut windows)?;
    *source = windows.source;
    take(&all, is_mbox.then_some(quoting))
}

/// Returns the header of the first message, without its `From ` line. A long header may be truncated.
fn header(source: &mut InputSource) -> io::Result<Vec<u8>> {
    let start = source.start(HEADER)?;
    // Empty lines may precede the `From ` line of the first message.
    let raw = start.trim_ascii_start();
    let message = if carriage::ends_lines_with_cr(raw) {
        Cow::Owned(carriage::in_line_feeds(raw))
    } else {
        Cow::Borrowed(raw)
    };
    Ok(message[mbox::content_start(&message)..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::input::window::tests::pieces;
    use proptest::prelude::*;

    /// Result of reading a mailbox or a piece of it: its bytes, its messages, and the number of its first message.
    #[derive(Default)]
    struct ReadPiece {
        joined: Vec<u8>,
        messages: Vec<(Vec<u8>, String)>,
        first_number: Option<u64>,
    }

    fn read(mut windows: Windows) -> ReadPiece {
        let mut piece = ReadPiece::default();
        while let Some(chunk) = windows.next_chunk().unwrap() {
            for frame in &chunk.frames {
                let seen = frame.looked_at(chunk.bytes());
                let content = seen.content_end.map(|end| end - frame.start);
                let said = format!("{content:?} {}", seen.is_mboxcl2);
                let message = chunk.bytes()[frame.start..frame.end].to_vec();
                piece.messages.push((message, said));
            }
            piece.first_number.get_or_insert(chunk.first_number);
            piece.joined.extend_from_slice(chunk.bytes());
        }
        piece
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 160, ..ProptestConfig::default() })]
        #[test]
        fn reading_in_pieces_gives_the_same_messages_wherever_the_cuts_are(
            bytes in pieces(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
            window in 1_usize..6000, other in 1_usize..6000, most in prop_oneof![Just(1_usize << 20), 1100_usize..4000],
        ) {
            // A low limit on the size of messages may count a message as too large with one window size and not with
            // another. In this case, both readers get the same window size.
            let is_bounded = most < 1 << 20;
            let other = if is_bounded { window } else { other };
            let bytes = [b"From a\n".as_slice(), &bytes].concat();
            let file = in_file(&bytes);
            let walk = |window| Windows::new(InputSource::file(&file), window, most);
            let at_once = read(walk(window));
            prop_assert_eq!(&at_once.joined, &bytes);
            let mut cuts: Vec<u64> = cuts.iter().map(|at| at.index(bytes.len() + 1) as u64).collect();
            cuts.extend([0, bytes.len() as u64 + 1]);
            cuts.sort_unstable();
            if let Ok(settled) = settled(walk(other)).unwrap() {
                let (mut all, mut each) = (Vec::new(), Vec::new());
                for cut in cuts.windows(2) {
                    let windows = walk(other).piece(cut[0]..cut[1], settled).unwrap();
                    let start = windows.offset;
                    let piece = read(windows);
                    if let Some(number) = piece.first_number {
                        prop_assert!(start >= cut[0] && start < cut[1]);
                        prop_assert_eq!(number, 1);
                    }
                    all.extend(piece.joined);
                    each.extend(piece.messages);
                }
                prop_assert_eq!(all, bytes);
                if !is_bounded {
                    prop_assert_eq!(each, at_once.messages);
                }
            }
        }
    }

    fn in_file(bytes: &[u8]) -> Arc<fs::File> {
        use crate::platform::FileExt as _;
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        Arc::new(file)
    }

    fn walk(bytes: &[u8]) -> impl Fn() -> Windows + use<> {
        let file = in_file(bytes);
        move || Windows::new(InputSource::file(&file), 2048, 1 << 20)
    }

    #[test]
    fn a_mailbox_whose_messages_are_all_counted_is_one_piece() {
        let counted = b"From a 10:00\nContent-Length: 2\n\nx\n\n".repeat(3);
        assert_eq!(settled(walk(&counted)()).unwrap().err(), Some(COUNTED));
        let other = [counted.as_slice(), b"From a 10:00\nSubject: x\n\nx\n"].concat();
        assert!(settled(walk(&other)()).unwrap().is_ok());
        assert_eq!(settled(walk(b"")()).unwrap().err(), Some(COUNTED));
        // No line closes the last message, so this message ends at the end of the file.
        let mmdf = b"\x01\x01\x01\x01\nSubject: x\n\nx\n";
        assert_eq!(settled(walk(mmdf)()).unwrap().err(), Some(MMDF));
    }

    #[test]
    fn a_piece_without_a_start_is_empty_and_does_not_read_on() {
        let long = [
            b"From a 10:00\nTo: b\n\n".as_slice(),
            &b"x\n".repeat(50_000),
            b"\nFrom a 10:00\nTo: b\n\n",
        ]
        .concat();
        let walk = walk(&long);
        let settled = settled(walk()).unwrap().expect("it can be cut");
        let second = long.len() as u64 - 20;
        for (range, start) in [
            (5..900, None),
            (1..second, None),
            (second..second + 1, Some(second)),
        ] {
            let mut windows = walk().piece(range.clone(), settled).unwrap();
            let at = windows.offset;
            let found = windows.next_chunk().unwrap().is_some();
            assert_eq!(found.then_some(at), start, "{range:?}");
        }
    }
}
