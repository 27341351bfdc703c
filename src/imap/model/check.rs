//! The invariants that the model checks after each command and at the end of a run.

use super::server::{Content, DELETED, Mail, good};
use super::{Budget, Model, Process, World};
use crate::imap::journal::{Replacement, ReplacementStep};
use crate::imap::machine::MachineCommand;

impl Model {
    /// Checks that no command removes a message of another program, or the last intact version of the message.
    pub(super) fn check_command(
        &self,
        before: &World,
        after: &World,
        entry: &Replacement,
        command: &MachineCommand,
    ) {
        let gone = |it: &&Mail| !after.server.mails.iter().any(|there| there.id == it.id);
        for gone in before.server.mails.iter().filter(gone) {
            let is_ours = match gone.content {
                Content::Old => gone.uid == entry.uid,
                Content::New | Content::NewForeign => !gone.is_rivals,
                Content::Altered => {
                    after.has_read_altered
                        || matches!(&entry.step, ReplacementStep::TakingBack(_, digest) if *digest == Content::Altered.digest())
                }
                Content::Foreign => false,
            };
            assert!(is_ours, "{command:?} removes {gone:?}");
            assert!(
                gone.content != Content::Old || after.has_objects,
                "{command:?} removes the old message, but the store does not contain its attachments"
            );
        }
        // REPLACE removes the old message before embody can compare the new one. This is allowed only because embody
        // keeps the old message in a file (`is_kept`).
        let (now, then) = (good(&before.server), good(&after.server));
        let is_kept = after.is_kept;
        assert!(
            now == 0 || then > 0 || before.is_raced || is_kept || after.is_taken,
            "{command:?} must not remove the last intact version of the message"
        );
    }

    /// Checks the end of a run. Exit status 0 requires that the journal is empty, and that the message exists exactly
    /// once, in the folder and not only in a file.
    pub(super) fn check_end(&self, world: &World) {
        if world.status == 0 && !world.is_rival_at_work() {
            assert!(
                world.journal.is_none(),
                "the run ended with status 0, but the journal still lists an unfinished change"
            );
            assert!(
                !world.is_kept || world.is_told,
                "the run ended with status 0, but the original is only in a file"
            );
            assert!(
                good(&world.server) + world.server.elsewhere < 2 || world.is_told,
                "the run ended with status 0, but the message exists twice"
            );
        }
    }

    pub(super) fn check_quiet(&self, world: &World) {
        if world.is_rival_at_work() {
            return;
        }
        let mut quiet = world.clone();
        quiet.budget = Budget {
            faults: 0,
            client: 0,
            kills: 0,
            restores: 0,
        };
        quiet.status = 0;
        quiet.process = Process::Starting;
        let mut quiet = self.settle(quiet);
        let mut count = 0;
        while let Process::Running {
            machine,
            command,
            is_earlier,
        } = quiet.process.clone()
        {
            let before = quiet.clone();
            let entry = machine.entry().clone();
            let event = self.mode(&mut quiet, &entry, &command);
            self.check_command(&before, &quiet, &entry, &command);
            quiet = self.advance(quiet, *machine, event, is_earlier);
            count += 1;
            assert!(
                count < 500,
                "a run without faults must end after fewer than 500 commands"
            );
        }
        self.check_end(&quiet);
        let good: Vec<&Mail> = quiet
            .server
            .mails
            .iter()
            .filter(|it| it.is_good())
            .collect();
        assert!(
            good.is_empty() || quiet.server.elsewhere == 0 || quiet.is_told,
            "after a second run without faults, the message also exists in another folder, but no run reported it: {quiet:?}"
        );
        match good.as_slice() {
            [] => assert!(
                quiet.is_taken || quiet.was_raced || quiet.is_kept && quiet.is_told,
                "after a second run without faults, the message must still exist, but it does not: {quiet:?}"
            ),
            [one] => {
                if let Some((flags, labels)) = quiet.last
                    && one.content == Content::New
                    && !quiet.is_told_of_flags
                {
                    let wanted = flags & !one.by_client & !DELETED;
                    let has = one.flags & !one.by_client & !DELETED;
                    assert_eq!(
                        has, wanted,
                        "after a second run without faults, the flags must be those of the original: {quiet:?}"
                    );
                    assert_eq!(
                        one.labels & labels,
                        labels,
                        "after a second run without faults, the labels must be those of the original: {quiet:?}"
                    );
                }
            }
            _ => assert!(
                quiet.is_told,
                "after a second run without faults, the message exists several times, but no run reported it: {quiet:?}"
            ),
        }
    }
}
