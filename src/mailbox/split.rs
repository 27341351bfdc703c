//! Where an mbox is cut: pieces of about one size that start where messages do.

use std::io;
use std::ops::Range;

use super::Options;
use super::cut::{COMPRESSED, Cutter, SINGLE};
use super::find::Kind;
use super::forms;
use super::mbox;
use super::pool::Pool;
use super::quoting::Quoting;
use super::sample::{piece_of, quoting_of};
use super::stream::Opened;
use super::window::{Section, Source, Windows};

/// How much of the first message of a piece is looked at.
const HEADER: usize = 64 << 10;

/// How pieces are to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Splitting<'o> {
    /// Octets in a piece, but for the end of its last message.
    pub(crate) size: u64,
    /// Whether messages are counted.
    pub(crate) counts: bool,
    /// How the mailbox is walked.
    pub(crate) options: &'o Options,
}

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
/// octets long; what is empty, compressed, or a single message has one.
///
/// # Errors
/// What reading it, and `take`, say.
pub(crate) fn pieces(
    opened: &Opened,
    kind: Kind,
    length: u64,
    splitting: &Splitting<'_>,
    take: &mut dyn FnMut(&Piece, Option<Quoting>) -> io::Result<()>,
) -> io::Result<()> {
    let section = opened.section();
    let all = |why| -> io::Result<_> {
        Ok(Piece {
            range: 0..length,
            messages: None,
            header: header(&section, 0)?,
            whole: Some(why),
        })
    };
    if kind == Kind::Eml {
        let messages = splitting.counts.then_some(1);
        let piece = Piece {
            messages,
            ..all(SINGLE)?
        };
        return take(&piece, None);
    }
    let quoting = quoting_of(&section)?;
    let pool = Pool::default();
    let Options {
        window,
        max_message,
        ..
    } = *splitting.options;
    // For small pieces not much more is read than they hold.
    let window = window.min(usize::try_from(splitting.size).unwrap_or(window));
    let walk = || Windows::new(section, pool.clone(), window, max_message);
    let count = |windows| match splitting.counts {
        true => counted(windows, opened, &pool, window).map(Some),
        false => Ok(None),
    };
    let why = match section.growing {
        Some(_) => Err(COMPRESSED),
        None => Cutter::new(walk)?,
    };
    let cutter = match why {
        Ok(cutter) => cutter,
        Err(why) => {
            // What is compressed is read once: its start comes first.
            let mut piece = all(why)?;
            piece.messages = count(walk())?;
            let is_mbox = match section.growing {
                Some(_) => true,
                None => {
                    let start = piece_of(&section, 0, forms::LOOK_AHEAD)?;
                    forms::division_of(&start).is_none()
                }
            };
            return take(&piece, is_mbox.then_some(quoting));
        }
    };
    let mut from = 0_u64;
    loop {
        let beyond = from.saturating_add(splitting.size);
        let to = match beyond < length {
            true => cutter.piece(beyond..u64::MAX)?.start(length),
            false => length,
        };
        let piece = Piece {
            range: from..to,
            messages: count(cutter.piece(from..to)?)?,
            header: header(&section, from)?,
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
fn counted(
    mut windows: Windows<Section<'_>>,
    opened: &Opened,
    pool: &Pool,
    window: usize,
) -> io::Result<u64> {
    let mut messages = 0;
    while let Some(chunk) = windows.next_chunk()? {
        messages += chunk.messages();
        opened.pass(windows.offset());
        pool.give_back(chunk.buffer, window);
    }
    Ok(messages)
}

/// The message at `from`, or the start of it, without its `From ` line.
fn header(source: &impl Source, from: u64) -> io::Result<Vec<u8>> {
    let mut start = piece_of(source, from, HEADER)?;
    // Empty lines may stand before the first message of a file.
    let blanks = start.iter().take_while(|byte| byte.is_ascii_whitespace());
    start.drain(..blanks.count());
    let content = mbox::content_start(&start);
    start.drain(..content);
    Ok(start)
}
