//! Reading content to its end, a piece at a time.

use std::io::{self, Read};

use crate::report::Refusal;

pub(super) fn read_whole(
    mut source: impl Read,
    expected: u64,
    mut judge: impl FnMut(u64) -> Result<(), Refusal>,
    failed: impl Fn(io::Error) -> Refusal,
) -> Result<Vec<u8>, Refusal> {
    let mut body = Vec::with_capacity(usize::try_from(expected).unwrap_or(0));
    let mut piece = vec![0; 64 << 10];
    loop {
        let read = match source.read(&mut piece) {
            Ok(read) => read,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            Err(why) => return Err(failed(why)),
        };
        if read == 0 {
            // A cache counts the octets of a body, not what was allocated to read it.
            body.shrink_to_fit();
            return Ok(body);
        }
        body.extend_from_slice(piece.get(..read).unwrap_or_default());
        judge(body.len() as u64)?;
    }
}
