//! Content that is in the message in a form that mail programs cannot read becomes parts, before references are
//! followed: the new parts may contain references.

use bytes::Bytes;

use super::pass::Pass;
use super::session::Session;
use crate::engine::forms::Opened;

impl Session<'_> {
    /// Opens such parts in `made`, or else in `message`, and returns the message with all edits made, if there are any.
    pub(super) fn open(
        &mut self,
        message: &[u8],
        made: Option<Bytes>,
        outcomes: &mut Pass,
    ) -> Option<Bytes> {
        if self.settings.detached_only {
            return made;
        }
        let (policy, name) = (self.policy(), self.context.name());
        let opened = Opened {
            made,
            edits: std::mem::take(&mut outcomes.edits),
            rows: Vec::new(),
        };
        let opened = opened.further(message, policy, &mut self.ledger, name);
        outcomes.edits = opened.edits;
        outcomes.report.rows.extend(opened.rows);
        opened.made
    }
}
