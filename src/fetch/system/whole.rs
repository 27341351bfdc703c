//! Reads content to its end in pieces, so that a size limit stops a body while it is being read.

use std::io::{self, Read};

use crate::engine::report::Refusal;

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
            // The spare capacity is released, because a cache in memory counts only the bytes of the body.
            body.shrink_to_fit();
            return Ok(body);
        }
        body.extend_from_slice(&piece[..read]);
        judge(body.len() as u64)?;
    }
}
