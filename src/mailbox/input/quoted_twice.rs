//! Detects the variant mboxrd by lines that are quoted twice.

use std::fs::File;
use std::path::Path;

use memchr::memmem;

use crate::error::Error;
use crate::mailbox::failure::unreadable;
use crate::platform::FileExt as _;

/// Returns whether the file contains a line that starts with `>>From `. Only programs that write the variant mboxrd
/// quote a line that is already quoted, so such a line shows the variant of the file.
pub(crate) fn is_quoted_twice(file: &File, name: &Path) -> Result<bool, Error> {
    const LINE: &[u8] = b">>From ";
    let finder = memmem::Finder::new(LINE);
    let starts_line = |before: Option<&u8>| matches!(before, Some(b'\n' | b'\r'));
    let mut buffer = vec![0; 1 << 20];
    let (mut at, mut kept) = (0, 0);
    loop {
        let read = file
            .read_at(&mut buffer[kept..], at)
            .map_err(unreadable(name))?;
        if read == 0 {
            return Ok(false);
        }
        at += read as u64;
        let filled = kept + read;
        let bytes = &buffer[..filled];
        let mut hits = finder.find_iter(bytes);
        if hits.any(|at| starts_line(bytes[..at].last())) {
            return Ok(true);
        }
        kept = filled.min(LINE.len());
        buffer.copy_within(filled - kept..filled, 0);
    }
}
