//! Finds out whether a file that starts like an mbox contains more than one message. A file with a single message may
//! start with the separator that the message had in an mbox.

use std::fs::File;
use std::io::{self, Seek as _};
use std::sync::Arc;

use crate::mailbox::compressed::{Decoder, Method};
use crate::mailbox::forms::separator::next_in_message;
use crate::mailbox::input::source::InputSource;
use crate::mailbox::input::window::Windows;

const WINDOW: usize = 1 << 20;

/// Maximum number of bytes that are searched for a second message, so that compressed data cannot delay a run.
const SEARCHED: u64 = 256 << 20;

pub(crate) fn has_second_message(bytes: &[u8]) -> bool {
    let line_ends = bytes.iter().take_while(|b| matches!(b, b'\n' | b'\r'));
    let first = &bytes[line_ends.count()..];
    first.starts_with(b"From ") && next_in_message(first).is_some()
}

pub(crate) fn holds_second_message(file: &File) -> io::Result<bool> {
    let file = Arc::new(file.try_clone()?);
    let mut windows = Windows::new(InputSource::file(&file), WINDOW, WINDOW);
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
