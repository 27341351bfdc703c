//! A mailbox format for tests that finds wrong ends of messages on purpose. With it, the tests check that a run notices
//! lost bytes (`input::accounts`).

use crate::mailbox::forms::mbox::Frame;

/// The kind of error that the format makes on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lie {
    /// The format leaves out the first bytes of a message, so they belong to no message.
    Gap,
    /// The format counts the last bytes of a message as part of the message, but not of its content.
    Tail,
    /// The format ends a message too early: its last bytes become another message, without a separator.
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
