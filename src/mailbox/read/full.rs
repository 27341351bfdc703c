//! Reading until a buffer is full or nothing more comes.

use std::io;

/// Fills `buffer` with what `read` gives, which gets what is not filled yet, and how many octets of it are. How many
/// octets there are: fewer than the buffer takes only at the end.
///
/// # Errors
/// The errors of `read`; an interrupted call is made again.
pub(crate) fn filled_by(
    buffer: &mut [u8],
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match read(rest, filled as u64) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The first `length` octets of what `read` gives, or all there are.
pub(crate) fn up_to(
    length: usize,
    read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<Vec<u8>> {
    let mut octets = vec![0; length];
    let filled = filled_by(&mut octets, read)?;
    octets.truncate(filled);
    Ok(octets)
}
