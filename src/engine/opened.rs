//! Opens content that is in the message in a form that mail programs cannot read, such as winmail.dat. This happens before
//! references are followed, because the new parts may contain references.

use bytes::Bytes;

use super::pass::Pass;
use super::session::Session;
use crate::engine::forms::OpenResult;

impl Session<'_> {
    /// Opens parts such as winmail.dat in `made`, the message after earlier edits, or in `message` if there are none. Returns
    /// the message after all edits, or `None` if it is unchanged.
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
        let opened = OpenResult {
            made,
            edits: std::mem::take(&mut outcomes.edits),
            rows: Vec::new(),
        }
        .further(message, policy, &mut self.ledger, name);
        outcomes.edits = opened.edits;
        outcomes.report.rows.extend(opened.rows);
        opened.made
    }
}
