//! Where an mbox is cut: pieces of about one size that start where messages do.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::mailbox::Options;
use crate::mailbox::find::Kind;
use crate::mailbox::forms::quoting::Quoting;
use crate::mailbox::forms::{mbox, mmdf};
use crate::mailbox::read::cut::{COMPRESSED, SINGLE, settled};
use crate::mailbox::read::source::Source;
use crate::mailbox::read::window::Windows;

/// How much of the first message of a piece is looked at.
const HEADER: usize = 64 << 10;

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
    let mut all = Piece {
        range: 0..length,
        messages: counts.then_some(1),
        header: header(source)?,
        whole: Some(SINGLE),
    };
    if kind == Kind::Eml {
        return take(&all, None);
    }
    let quoting = source.quoting()?;
    // For small pieces not much more is read than they hold.
    let window = usize::try_from(size).unwrap_or(usize::MAX);
    let window = window.min(options.window);
    let walk = |source| Windows::new(source, window, options.max_message);
    let count = |windows: &mut Windows| counts.then(|| counted(windows)).transpose();
    let mut is_mbox = true;
    all.whole = Some(COMPRESSED);
    if let Some(file) = source.as_file().map(Arc::clone) {
        let from_start = || walk(Source::file(&file));
        match settled(from_start())? {
            Err(why) => all.whole = Some(why),
            Ok(settled) => {
                let mut from = 0_u64;
                loop {
                    let beyond = from.saturating_add(size);
                    let to = match beyond < length {
                        true => from_start().piece(beyond..u64::MAX, settled)?.start(length),
                        false => length,
                    };
                    let piece = Piece {
                        range: from..to,
                        messages: count(&mut from_start().piece(from..to, settled)?)?,
                        header: header(&mut Source::section(&file, from, u64::MAX))?,
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
    let nothing = Source::stream(io::empty(), None, Arc::default());
    let mut windows = walk(std::mem::replace(source, nothing));
    all.messages = count(&mut windows)?;
    *source = windows.source;
    take(&all, is_mbox.then_some(quoting))
}

fn counted(windows: &mut Windows) -> io::Result<u64> {
    let mut messages = 0;
    while let Some(chunk) = windows.next_chunk()? {
        messages += chunk.messages();
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
