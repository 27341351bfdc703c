//! Finds out whether a file or an input that starts like an mbox contains more than one message. A single message may
//! start with the separator that it had in an mbox, and mail systems pass such messages to their filters.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::sync::Arc;

use crate::mailbox::compressed::{Decoder, Method};
use crate::mailbox::forms::mmdf;
use crate::mailbox::forms::separator::next_in_message;
use crate::mailbox::input::source::InputSource;
use crate::mailbox::input::window::Windows;
use crate::mailbox::start::before_first_message;

const WINDOW: usize = 1 << 20;

/// Maximum number of bytes that are searched for a second message, so that compressed data cannot delay a run.
const SEARCHED: u64 = 256 << 20;

/// Number of bytes at the start of a file that show whether it can be a mailbox.
#[cfg(feature = "cli")]
const LOOKED_AT: u64 = 1 << 10;

/// Returns whether an input for one message is a mailbox: an mbox with a second message, or MMDF. A change that is right
/// for one message would damage the messages of a mailbox, because its MIME structure would span all of them.
///
/// A message that does not start with a separator is never a mailbox, whatever lines its body contains.
#[cfg(feature = "cli")]
pub(crate) fn is_mailbox(bytes: &[u8]) -> bool {
    mmdf::starts(bytes)
        || before_first_message(bytes).is_some_and(|at| next_in_message(&bytes[at..]).is_some())
}

/// Returns for a file what [`is_mailbox`] returns for bytes.
#[cfg(feature = "cli")]
pub(crate) fn holds_mailbox(mut file: &File) -> io::Result<bool> {
    let mut start = Vec::new();
    file.take(LOOKED_AT).read_to_end(&mut start)?;
    file.rewind()?;
    if mmdf::starts(&start) {
        return Ok(true);
    }
    if before_first_message(&start).is_none() {
        return Ok(false);
    }
    let shared = Arc::new(file.try_clone()?);
    let mut windows = Windows::new(InputSource::file(&shared), WINDOW, WINDOW);
    Ok(windows.count(2)? > 1)
}

/// Returns whether a file that starts with a `From ` line contains no second message. Also returns `false` if this is
/// unknown because the compressed data are damaged or longer than 256 MiB.
pub(crate) fn is_one_message(file: &File, method: Option<Method>) -> io::Result<bool> {
    let mut file = file.try_clone()?;
    let source = match method {
        None if file.metadata()?.len() > SEARCHED => return Ok(false),
        None => InputSource::file(&Arc::new(file)),
        Some(method) => {
            file.rewind()?;
            InputSource::stream(Decoder::new(method, file, SEARCHED), None, Arc::default())
        }
    };
    let mut windows = Windows::new(source, WINDOW, WINDOW);
    let messages = windows.count(2)?;
    Ok(messages == 1 && windows.source.damage().is_none())
}
