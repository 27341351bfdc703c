//! Where an mbox is cut: pieces of about one size that start where messages do.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::mailbox::Options;
use crate::mailbox::find::Kind;
use crate::mailbox::forms::quoting::Quoting;
use crate::mailbox::forms::{Division, mbox, mmdf};
use crate::mailbox::read::cut::{COMPRESSED, Cutter, SINGLE};
use crate::mailbox::read::source::Source;
use crate::mailbox::read::window::Windows;

/// How much of the first message of a piece is looked at.
const HEADER: usize = 64 << 10;

/// A piece of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// From the start of its first message to that of the next piece's.
    pub(crate) range: Range<u64>,
    /// How many messages begin in it, if they were counted.
    pub(crate) messages: Option<u64>,
    /// The first message, or its start.
    pub(crate) header: Vec<u8>,
    /// Why there is no other.
    pub(crate) whole: Option<&'static str>,
}

/// Gives `take` the pieces of a file, in order, and how it quotes if it is an mbox. They tile the file, which is `length`
/// octets long; what is empty, compressed, or a single message has one. A piece has `size` octets, but for the end of its last
/// message, and its messages are counted if that is asked for.
pub(crate) fn pieces(
    source: &mut Source,
    kind: Kind,
    length: u64,
    (size, counts): (u64, bool),
    options: &Options,
    take: &mut dyn FnMut(&Piece, Option<Quoting>) -> io::Result<()>,
) -> io::Result<()> {
    let first = header(source)?;
    let all = |why| Piece {
        range: 0..length,
        messages: None,
        header: first,
        whole: Some(why),
    };
    if kind == Kind::Eml {
        let messages = counts.then_some(1);
        let piece = Piece {
            messages,
            ..all(SINGLE)
        };
        return take(&piece, None);
    }
    let quoting = source.quoting()?;
    let Options {
        window,
        max_message,
        ..
    } = *options;
    // For small pieces not much more is read than they hold.
    let window = window.min(usize::try_from(size).unwrap_or(window));
    let count = |windows: &mut Windows| match counts {
        true => counted(windows).map(Some),
        false => Ok(None),
    };
    let file = source.as_file().map(Arc::clone);
    let walk = file.as_ref().map(|file| {
        let walk = || Windows::new(Source::file(file), window, max_message);
        Cutter::new(walk)
    });
    let (cutter, file) = match (walk.transpose()?, &file) {
        (Some(Ok(cutter)), Some(file)) => (cutter, file),
        (uncut, _) => {
            let why = uncut.and_then(Result::err).unwrap_or(COMPRESSED);
            let start = source.start(mmdf::LOOK_AHEAD)?;
            let is_mbox = file.is_none() || Division::of(&start) == Division::Mbox;
            let mut piece = all(why);
            if counts {
                let all = std::mem::replace(source, Source::stream(io::empty()));
                let mut windows = Windows::new(all, window, max_message);
                piece.messages = count(&mut windows)?;
                *source = windows.into_source();
            }
            return take(&piece, is_mbox.then_some(quoting));
        }
    };
    let mut from = 0_u64;
    loop {
        let beyond = from.saturating_add(size);
        let to = match beyond < length {
            true => cutter.piece(beyond..u64::MAX)?.start(length),
            false => length,
        };
        let piece = Piece {
            range: from..to,
            messages: count(&mut cutter.piece(from..to)?)?,
            header: header(&mut Source::section(file, from, u64::MAX))?,
            whole: None,
        };
        take(&piece, Some(quoting))?;
        from = to;
        if from >= length {
            return Ok(());
        }
    }
}

/// The messages of a walk.
fn counted(windows: &mut Windows) -> io::Result<u64> {
    let mut messages = 0;
    while let Some(chunk) = windows.next_chunk()? {
        messages += chunk.messages();
        windows.buffers.give_back(chunk.buffer, windows.window);
    }
    Ok(messages)
}

/// The message that comes next, or the start of it, without its `From ` line.
fn header(source: &mut Source) -> io::Result<Vec<u8>> {
    let mut start = source.start(HEADER)?;
    // Empty lines may stand before the first message of a file.
    let blanks = start.iter().take_while(|byte| byte.is_ascii_whitespace());
    start.drain(..blanks.count());
    let content = mbox::content_start(&start);
    start.drain(..content);
    Ok(start)
}
