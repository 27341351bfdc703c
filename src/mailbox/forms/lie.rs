//! A mailbox format for tests that finds wrong ends of messages on purpose. The tests use it to check that a run
//! notices lost bytes (`input::accounts`).

use crate::mailbox::forms::mbox::Frame;

/// Kind of error that the test format makes on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lie {
    /// A gap between messages: a message starts too late, so its first bytes belong to no message.
    Gap,
    /// The content of a message ends too early, while the message itself does not. So the last bytes of the message are
    /// in no content.
    Tail,
    /// A message ends too early. Its remaining bytes then look like another message that has no separator.
    End,
}

impl Lie {
    pub(crate) fn of_start(bytes: &[u8]) -> Option<Self> {
        let kinds = [("gap", Self::Gap), ("tail", Self::Tail), ("end", Self::End)];
        let word = bytes.strip_prefix(b"From a-lie ")?;
        let found = kinds
            .into_iter()
            .find(|(name, _)| word.starts_with(name.as_bytes()));
        found.map(|(_, lie)| lie)
    }

    pub(crate) fn frame(self, bytes: &[u8], at: usize) -> Frame {
        let end = bytes.len();
        match self {
            Self::Gap => Frame::counted(at + 5, end, end),
            Self::Tail => Frame::counted(at, end - 5, end),
            Self::End if at == 0 => Frame::counted(at, end - 5, end - 5),
            Self::End => Frame::counted(at, end, end),
        }
    }
}
