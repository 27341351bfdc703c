//! Reading until a buffer is full or nothing more comes.

use std::io;

/// Fills `buffer` with what `read` gives, which gets what is not filled yet, and how many octets of it are. How many
/// octets there are: fewer than the buffer takes only at the end.
///
/// # Errors
/// Those of `read`; interrupted, it is called again.
pub(super) fn filled_by(
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
pub(super) fn up_to(
    length: usize,
    read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<Vec<u8>> {
    let mut octets = vec![0; length];
    let filled = filled_by(&mut octets, read)?;
    octets.truncate(filled);
    Ok(octets)
}

#[cfg(test)]
mod tests {
    use super::super::mbox::Frame;
    use super::super::pool::Pool;
    use super::super::window::tests::divided;
    use super::super::window::{Source, Windows};
    use super::*;

    /// Gives a few bytes at a time, is interrupted before each read, and fails at `bad`.
    struct Faulty<'a> {
        bytes: &'a [u8],
        step: usize,
        bad: u64,
        reads: std::cell::Cell<u64>,
    }

    impl Source for Faulty<'_> {
        fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
            self.reads.set(self.reads.get() + 1);
            if self.reads.get() % 2 == 1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if offset >= self.bad {
                return Err(io::Error::other("the disk is gone"));
            }
            let most = (self.bad - offset).min(self.step as u64) as usize;
            let most = most.min(into.len());
            self.bytes.read_at(&mut into[..most], offset)
        }
    }

    #[test]
    fn interrupted_and_short_reads_divide_alike_and_a_failed_one_is_no_end() {
        let message = |number: usize| {
            let body = "line\n".repeat(number * 37 % 400);
            format!(
                "From a 10:00\nSubject: {number}\nContent-Length: {}\n\n{body}\n",
                body.len()
            )
        };
        let bytes: Vec<u8> = (0..20)
            .flat_map(|number| message(number).into_bytes())
            .collect();
        let (_, expected, _) = divided(&bytes, 1 << 20, 1 << 20);
        assert_eq!(expected.len(), 20);
        for step in [1, 7, 4096] {
            let walk = |bad: u64| {
                let source = Faulty {
                    bytes: &bytes,
                    step,
                    bad,
                    reads: std::cell::Cell::new(0),
                };
                let mut windows = Windows::new(source, Pool::default(), 1500, 1 << 20);
                let mut messages = Vec::new();
                while let Some(chunk) = windows.next_chunk()? {
                    let of = |frame: &Frame| chunk.bytes()[frame.start..frame.end].to_vec();
                    messages.extend(chunk.frames.iter().map(of));
                }
                Ok::<_, io::Error>(messages)
            };
            assert_eq!(walk(u64::MAX).unwrap(), expected);
            for bad in [0, 1, bytes.len() / 2, bytes.len() - 1, bytes.len()] {
                assert!(
                    walk(bad as u64).is_err(),
                    "an error at {bad} passed for the end"
                );
            }
        }
    }
}
