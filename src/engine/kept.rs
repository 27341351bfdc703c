use super::pass::Stopped;
use crate::mime::Tree;

/// State that a round over a message passes on to the next round over the same message. Each round begins with the same steps,
/// and a large message can need many rounds, so these steps are not repeated.
pub(crate) struct Kept<'t> {
    /// The parts of the message as it arrived. `None` if the message was not parsed: the prefilter found no sign of a
    /// reference, and the caller had no parsed message.
    pub(super) parts: Option<&'t Tree<'t>>,
    /// The unfinished pass over the references in `parts`. `None` if the last round finished its pass.
    pub(super) stopped: Option<Stopped<'t>>,
    /// True if a round was run.
    pub(super) was_read: bool,
}

impl<'t> Kept<'t> {
    /// Creates the state for the first round over a message. `parts` is the result of
    /// [`Engine::parts`](super::Engine::parts).
    pub(crate) fn of(parts: Option<&'t Tree<'t>>) -> Self {
        Self {
            parts,
            stopped: None,
            was_read: false,
        }
    }
}
