//! The buffer of a connection: packets are taken out of the octets that they are read into.

use std::io::{self, Read};

use super::codec::{self, Malformed};

/// Octets of the buffer: some chunks of a body, so that a large mail takes few calls. It is larger only while a larger packet
/// comes.
const USUAL: usize = 256 << 10;

/// Octets, of which some are understood already.
#[derive(Debug)]
pub(super) struct Inbox {
    octets: Vec<u8>,
    /// Behind what is understood.
    from: usize,
    /// Behind what came.
    to: usize,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self {
            // Pages that nothing was read into take no memory.
            octets: vec![0; USUAL],
            from: 0,
            to: 0,
        }
    }

    /// The next packet, if all of it is there.
    pub(super) fn packet(&mut self) -> Result<Option<&[u8]>, Malformed> {
        let waiting = self.octets.get(self.from..self.to).unwrap_or_default();
        let Some((packet, end)) = codec::packet(waiting)? else {
            return Ok(None);
        };
        self.from += end;
        Ok(Some(packet))
    }

    /// Reads once. How many octets came.
    pub(super) fn read(&mut self, mut stream: impl Read) -> io::Result<usize> {
        // The beginning of a packet at most.
        self.octets.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        if self.to == self.octets.len() {
            self.octets.resize(2 * self.to, 0);
        } else if self.to == 0 && self.octets.len() > USUAL {
            self.octets = vec![0; USUAL];
        }
        let count = stream.read(self.octets.get_mut(self.to..).unwrap_or_default())?;
        self.to += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives so many octets at a time.
    struct Drops<'d>(&'d [u8], std::vec::IntoIter<usize>);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.next().unwrap_or(usize::MAX);
            let (now, later) = self.0.split_at(count.min(self.0.len()).min(buffer.len()));
            buffer[..now.len()].copy_from_slice(now);
            self.0 = later;
            Ok(now.len())
        }
    }

    proptest! {
        #[test]
        fn packets_are_the_same_however_they_come(
            lengths in proptest::collection::vec(prop_oneof![1_usize..9, 1_usize..codec::LARGEST], 0..6),
            drops in proptest::collection::vec(1_usize..100_000, 0..20),
        ) {
            let mut sent = Vec::new();
            for (number, &length) in lengths.iter().enumerate() {
                sent.extend_from_slice(&u32::try_from(length).expect("it is small").to_be_bytes());
                sent.resize(sent.len() + length, number as u8);
            }
            let mut stream = Drops(&sent, drops.into_iter());
            let mut inbox = Inbox::new();
            let mut came = Vec::new();
            while inbox.read(&mut stream).expect("it reads") > 0 {
                while let Some(packet) = inbox.packet().expect("they are packets") {
                    let number = came.len() as u8;
                    prop_assert!(packet.iter().all(|&octet| octet == number));
                    came.push(packet.len());
                }
            }
            prop_assert_eq!(came, lengths);
            prop_assert!(inbox.octets.len() <= 4 * codec::LARGEST);
        }
    }
}
