//! Model checker for the replacement of a message: a test that tries every combination of faults, within a budget, at
//! every step. Faults are refused commands, unreadable responses, wrong UIDs and contents, interrupted connections, actions
//! of a second client, another run of embody, a server that is restored from a snapshot, and a crash of the program.
//!
//! The machine under test is [`Machine`], the same code that embody runs. The server, the journal file and the loop around the
//! machine (`AccountRun::again` and `resume_earlier`) are simulated. States are hashed and explored breadth-first, so the trace
//! of a failure is as short as possible.
//!
//! `server` simulates the server, `rival` another run of embody, and `check` verifies the invariants. This file has the
//! states and the program, and `tests` the servers and budgets that are explored.
//!
//! The invariants:
//!
//! 1. No command of embody leaves the folder without a complete version of the message without `\Deleted`, unless another
//!    client acted after the last check or removed the message itself.
//! 2. No message is expunged or moved unless this run or the journal identified it.
//! 3. After another run without faults, exactly one version exists, with the flags and labels of the last moment before the
//!    removal. Otherwise both versions exist, and a run reported this with exit status 1.
//! 4. The exit status is 0 only if no replacement is unfinished.

mod check;
mod rival;
mod server;
mod tests;

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};

use super::journal::{Replacement, ReplacementStep};
use super::machine::{
    Conclusion, Machine, MachineCommand, MachineEvent, MessageAnswer, MessageMetadata, Rule, Sight,
};
use super::replace::ReplaceResult;
use super::session::InternalDate;
use rival::Rival;
use server::{
    Content, DATE, DELETED, FLAGGED, Mail, Nature, SEEN, SIZE, Server, bits, good, label_bits,
    names, refused,
};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Budget {
    faults: u8,
    client: u8,
    kills: u8,
    restores: u8,
}

/// State of the program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Process {
    /// The program has sent a command and waits for its result. `is_earlier` is true if the program found the
    /// replacement in the journal of an earlier run, and now finishes it.
    Running {
        machine: Box<Machine>,
        command: MachineCommand,
        is_earlier: bool,
    },
    /// The connection was interrupted, or a command failed and the session continues.
    Broken,
    /// The program starts. If the journal contains an unfinished replacement of an earlier run, the program finishes it
    /// first.
    Starting,
    /// The program was killed.
    Dead,
    Over,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World {
    server: Server,
    journal: Option<Replacement>,
    /// Journal entry that was removed, but whose removal may not be on the disk yet. A power cut restores the entry.
    unsynced_end: Option<Replacement>,
    is_kept: bool,
    process: Process,
    budget: Budget,
    /// Exit status of the run so far.
    status: u8,
    /// Whether a run reported a problem and ended with exit status 1. Only then may the message exist twice, or only in
    /// a file.
    is_told: bool,
    /// Whether a run reported flags that changed at the last moment and were not copied. The final check then ignores
    /// flags.
    is_told_of_flags: bool,
    /// Whether the message may be missing at the end, because the second client removed it on purpose or the snapshot
    /// of the server does not contain it.
    is_taken: bool,
    /// Whether the second client removed or marked a version of the message after embody's last check. embody cannot
    /// notice this in time, so the loss of the message is then allowed.
    is_raced: bool,
    /// Whether `is_raced` was ever true, in this run of the program or in an earlier one.
    was_raced: bool,
    /// Flags and labels of the old message at the moment when the server removed it, as bit sets with one bit for each
    /// flag or label. At the end, the new message must have the same ones. `None` if the final check does not compare
    /// flags and labels.
    last: Option<(u8, u8)>,
    /// Whether embody read a message that the server altered while storing it. Only then may it be removed: an unread
    /// message could belong to another program.
    has_read_altered: bool,
    /// Contents that the program read in this session, by UID.
    read: Vec<(u32, Content)>,
    /// Another run of embody, with a journal of its own, that replaces the same message.
    rival: Rival,
    /// Whether the store contains the attachments that were detached from the old message.
    has_objects: bool,
}

#[derive(Clone, Copy)]
struct Model {
    nature: Nature,
    without: Option<Rule>,
    budget: Budget,
    /// Response codes with which the server refuses commands.
    codes: &'static [&'static str],
    /// Whether the snapshot from which the server is restored contains no message. If false, the snapshot contains the
    /// old message.
    has_empty_snapshot: bool,
    /// Whether the journal was written by version 0.3.0, which did not record the digest of the old message.
    is_old_journal: bool,
    /// Whether another run of embody replaces the same message.
    has_rival: bool,
    /// Whether the store can be lost after a crash.
    loses_store: bool,
    download: Download,
}

/// Content that the program downloaded as the old message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Download {
    Right,
    /// The server sent the content of another message under the UID of the old message.
    OtherContent,
    /// The server sent the content of the old message under the UID of another message, or the UIDs changed since then.
    OtherUid,
}

type Step = (String, World);

impl Model {
    fn initial(&self) -> World {
        let world = World {
            server: self.snapshot(),
            journal: None,
            unsynced_end: None,
            is_kept: false,
            process: Process::Starting,
            budget: self.budget,
            status: 0,
            is_told: false,
            is_told_of_flags: false,
            is_taken: false,
            is_raced: false,
            was_raced: false,
            last: None,
            has_read_altered: false,
            read: Vec::new(),
            rival: Rival::Downloaded,
            has_objects: true,
        };
        self.settle(world)
    }

    fn entry(&self, old: &Mail, next: u32) -> Replacement {
        let (uid, original, new) = match self.download {
            Download::Right => (old.uid, Content::Old, Content::New),
            Download::OtherContent => (old.uid, Content::Foreign, Content::NewForeign),
            Download::OtherUid => (old.uid + 1, Content::Old, Content::New),
        };
        Replacement {
            folder: "INBOX".into(),
            uidvalidity: 7,
            uid,
            least: next.max(uid + 1),
            sha256: new.digest(),
            size: SIZE,
            original: Some(original.digest()),
            original_size: SIZE,
            flags: names(old.flags),
            labels: Vec::new(),
            date: (DATE.into(), InternalDate::of(DATE).seconds),
            step: ReplacementStep::Begun,
        }
    }

    /// Runs the program from its start, or from a broken connection, to its first command or to its end. Nothing can
    /// happen in between, so there is only one next state.
    fn settle(&self, mut world: World) -> World {
        match &world.process {
            Process::Starting | Process::Broken => {
                world.has_read_altered = false;
                world.read.clear();
                world.server.ghost = None;
                let is_earlier = world.process == Process::Starting;
                match world.journal.clone() {
                    Some(mut entry) => {
                        if self.is_old_journal {
                            entry.original = None;
                        }
                        let machine = Machine::resumed(self.terms(), entry, None);
                        self.advance(world, machine, MachineEvent::Begin, is_earlier)
                    }
                    None => self.afresh(world),
                }
            }
            _ => world,
        }
    }

    /// Starts a new replacement if the folder contains the old message without the flag `\Deleted`. Otherwise the run
    /// ends.
    fn afresh(&self, mut world: World) -> World {
        let old = world
            .server
            .mails
            .iter()
            .filter(|it| it.content == Content::Old && it.is_good())
            .max_by_key(|it| it.uid);
        match old {
            Some(old) if world.journal.is_none() || self.without == Some(Rule::Resume) => {
                let entry = self.entry(old, self.next_uid(&world.server));
                let downloaded = Content::of_digest(entry.original.as_ref().unwrap());
                world.read = vec![(entry.uid, downloaded)];
                let machine = Machine::new(self.terms(), entry);
                self.advance(world, machine, MachineEvent::Begin, false)
            }
            _ => {
                world.process = Process::Over;
                world
            }
        }
    }

    fn next_uid(&self, server: &Server) -> u32 {
        match self.nature.shifts {
            None => server.next,
            Some(_) => u32::try_from(server.mails.len()).unwrap() + 1,
        }
    }

    fn advance(
        &self,
        mut world: World,
        machine: Machine,
        event: MachineEvent,
        is_earlier: bool,
    ) -> World {
        let (machine, command) = machine.next(event);
        let MachineCommand::Give(conclusion) = command else {
            world.process = Process::Running {
                machine: Box::new(machine),
                command,
                is_earlier,
            };
            return world;
        };
        match conclusion {
            Conclusion::Settled(fate) => {
                match &fate {
                    ReplaceResult::Both(_, why) | ReplaceResult::Doubled(_, why) => {
                        world.status = 1;
                        world.is_told = true;
                        world.is_told_of_flags |= why.contains("last moment");
                    }
                    ReplaceResult::Replaced(_, Some(remark)) if remark.contains("last moment") => {
                        world.is_told_of_flags = true;
                    }
                    _ => {}
                }
                world.process = Process::Over;
                if is_earlier {
                    self.afresh(world)
                } else {
                    world
                }
            }
            Conclusion::Nothing => self.afresh(world),
            Conclusion::Unknown(_) => {
                // embody does not know whether the command was executed, so the run ends with exit status 1. Further
                // connections without faults would end in the same state, so the model does not simulate them.
                world.status = 1;
                world.is_told = true;
                world.process = Process::Over;
                world
            }
            Conclusion::Stuck(_) => {
                world.status = 1;
                world.is_told = true;
                world.process = Process::Over;
                world
            }
        }
    }

    /// Models a crash of the program or a broken connection: [`Machine`] loses the flags that it has only in memory.
    /// embody sends the command that reads the flags together with the command that expunges the message. Flags that
    /// changed just before the expunge can therefore be missing from the journal. After a crash, flags that differ from
    /// the journal are not compared at the end.
    fn forget(&self, world: &mut World) {
        let noted = world
            .journal
            .as_ref()
            .map(|it| (bits(&it.flags), label_bits(&it.labels)));
        if world.last != noted {
            world.last = None;
        }
    }

    /// Returns all states that can follow `world`: after a response, a fault, a crash, a restart, or an action of the
    /// second client.
    fn steps(&self, world: &World) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Process::Running {
            machine,
            command,
            is_earlier,
        } = &world.process
        {
            self.run(world, machine, command, *is_earlier, &mut steps);
            if world.budget.kills > 0 {
                let mut next = world.clone();
                next.budget.kills -= 1;
                next.process = Process::Dead;
                self.forget(&mut next);
                steps.push(("kill".into(), next));
            }
        }
        if matches!(world.process, Process::Dead | Process::Over) {
            if world.budget.kills > 0 || world.process == Process::Dead {
                let mut next = world.clone();
                if world.process == Process::Over {
                    next.budget.kills -= 1;
                }
                next.status = 0;
                next.process = Process::Starting;
                steps.push(("rerun".into(), self.settle(next)));
            }
            if world.process == Process::Dead
                && world.journal.is_none()
                && world.unsynced_end.is_some()
            {
                let mut next = world.clone();
                next.journal = next.unsynced_end.take();
                steps.push(("power cut".into(), next));
            }
            if self.loses_store && world.has_objects && world.process == Process::Dead {
                let mut next = world.clone();
                next.has_objects = false;
                steps.push(("the store is lost".into(), next));
            }
            if world.budget.restores > 0 {
                let mut next = world.clone();
                next.budget.restores -= 1;
                next.server = self.snapshot();
                next.last = None;
                // The snapshot contains the old message again, so it must exist at the end, even if the second client
                // had removed it.
                next.is_taken = false;
                if self.has_empty_snapshot {
                    next.server.mails.clear();
                    next.server.next = 1;
                    next.is_taken = true;
                }
                steps.push(("restore the server".into(), next));
            }
        }
        if world.budget.client > 0 {
            self.client(world, &mut steps);
        }
        steps
    }

    fn run(
        &self,
        world: &World,
        machine: &Machine,
        command: &MachineCommand,
        is_earlier: bool,
        steps: &mut Vec<Step>,
    ) {
        let entry = machine.entry().clone();
        let mut done = world.clone();
        let event = self.mode(&mut done, &entry, command);
        self.check_command(world, &done, &entry, command);
        let go = |world: &World, event: MachineEvent| {
            self.advance(world.clone(), machine.clone(), event, is_earlier)
        };
        steps.push((format!("{command:?}"), go(&done, event.clone())));
        let is_local = matches!(
            command,
            MachineCommand::Note
                | MachineCommand::End
                | MachineCommand::Name(_)
                | MachineCommand::Keep
                | MachineCommand::Drop
                | MachineCommand::Rest(_)
                | MachineCommand::CheckObjects { .. }
        );
        if world.budget.faults == 0 || is_local {
            return;
        }
        let faulty = |world: &World| {
            let mut world = world.clone();
            world.budget.faults -= 1;
            world
        };
        // Fault: the connection breaks, or the server closes it with BYE, before or after the command has its effect.
        for (when, world) in [("before", world), ("after", &done)] {
            let mut next = faulty(world);
            next.process = Process::Broken;
            self.forget(&mut next);
            steps.push((format!("{command:?}: break {when}"), self.settle(next)));
            // Fault: a response cannot be read, but the session continues. The program must resume the replacement.
            if self.without == Some(Rule::Resume) {
                steps.push((
                    format!("{command:?}: unreadable"),
                    self.afresh(faulty(world)),
                ));
            }
        }
        self.wrong_answers(
            &done,
            &entry,
            command,
            &event,
            &mut |label, world, event| {
                let next = go(&faulty(world), event);
                steps.push((format!("{command:?}: {label}"), next));
            },
        );
        for code in self.codes.iter().copied() {
            for (when, world) in [("before", world), ("after", &done)] {
                // MODIFIED after storing the flags is not simulated: a server sends MODIFIED only if it stored nothing.
                // The effect would be that of a second client that sets the flag, which `client` simulates.
                if code == "MODIFIED" && when == "after" {
                    continue;
                }
                // A server that changes UIDs and also refuses an APPEND that it executes is not simulated.
                let is_append = matches!(command, MachineCommand::Append(_));
                if self.nature.shifts.is_some() && is_append && when == "after" {
                    continue;
                }
                for event in refused(&event, code) {
                    let label = format!("{command:?}: NO [{code}] {when}: {event:?}");
                    let mut world = faulty(world);
                    // The server removed the message without returning its flags, so embody cannot copy them. `None`
                    // switches off the comparison of flags at the end.
                    if matches!(event, MachineEvent::Removed { flags: None, .. }) {
                        world.last = None;
                    }
                    steps.push((label, go(&world, event)));
                }
            }
        }
        // Fault: the server returns OK but does not execute the command.
        if matches!(
            command,
            MachineCommand::Store(..)
                | MachineCommand::TakeAway(_)
                | MachineCommand::Remove
                | MachineCommand::StoreLabels(..)
        ) {
            let event = match event.clone() {
                MachineEvent::Removed { flags, labels, .. } => MachineEvent::Removed {
                    answer: Ok(()),
                    flags,
                    labels,
                    is_told: false,
                    is_proven: false,
                },
                MachineEvent::TakenAway { .. } => MachineEvent::TakenAway {
                    answer: Ok(()),
                    is_told: false,
                },
                event => event,
            };
            steps.push((
                format!("{command:?}: nothing done"),
                go(&faulty(world), event),
            ));
        }
        // Fault: the response lacks the dates (INTERNALDATE) that embody requested.
        if let MachineEvent::Seen(old, copy) = &event {
            let no_date = |sight: &Sight| match sight {
                Sight::Present(seen) => Sight::Present(MessageMetadata {
                    date: None,
                    ..seen.clone()
                }),
                sight => sight.clone(),
            };
            let event = MachineEvent::Seen(no_date(old), no_date(copy));
            steps.push((format!("{command:?}: no dates"), go(&faulty(&done), event)));
        }
    }

    /// Faults: the server reports a wrong UID for the new message, or sends the content of another message.
    fn wrong_answers(
        &self,
        done: &World,
        entry: &Replacement,
        command: &MachineCommand,
        event: &MachineEvent,
        say: &mut dyn FnMut(String, &World, MachineEvent),
    ) {
        // With another run, a message of the same content exists, so a wrong UID that denotes it cannot be detected.
        if self.has_rival {
            return;
        }
        match event {
            MachineEvent::Appended(Ok(Some((_, uid)))) if self.nature.shifts.is_none() => {
                let is_other = |it: &&Mail| it.uid != *uid;
                let others = done.server.mails.iter().filter(is_other);
                let wrong = others.map(|it| (7, it.uid));
                for answer in wrong.chain([(9, *uid), (7, 99)]) {
                    let event = MachineEvent::Appended(Ok(Some(answer)));
                    say(format!("APPENDUID {answer:?}"), done, event);
                }
            }
            MachineEvent::Read(MessageAnswer::Content { .. }) if self.nature.shifts.is_none() => {
                let MachineCommand::Read(uid) = command else {
                    return;
                };
                // If the server stored an altered message but sends the expected content, the alteration cannot be
                // detected.
                let is_expected = |it: &Content| {
                    let is_old = *uid == entry.uid;
                    match it {
                        Content::Old => is_old || self.nature.has_replace,
                        Content::New => !is_old,
                        _ => false,
                    }
                };
                let contents = [Content::Old, Content::New, Content::Foreign].into_iter();
                for content in contents.filter(|it| !is_expected(it)) {
                    let mut world = done.clone();
                    let event = self.reading(&mut world, *uid, content, entry);
                    say(format!("content {content:?}"), &world, event);
                }
            }
            _ => {}
        }
    }

    fn client(&self, world: &World, steps: &mut Vec<Step>) {
        if self.has_rival {
            return self.rival(world, steps);
        }
        let is_running = matches!(world.process, Process::Running { .. });
        let mut act = |what: String, is_original: bool, change: &dyn Fn(&mut Server)| {
            let mut next = world.clone();
            next.budget.client -= 1;
            let before = good(&next.server);
            change(&mut next.server);
            let after = good(&next.server);
            if after < before {
                next.is_raced = is_running;
                // After a report about several versions, the user may remove one. The remaining one need not have its
                // flags.
                next.is_told_of_flags |= next.is_told;
                // If no version is left, or if the second client removed the old message during the run, it did so on
                // purpose, and embody must not restore the message.
                next.is_taken |= after == 0 || is_running && is_original;
            }
            steps.push((format!("the other client: {what}"), next));
        };
        for (at, it) in world.server.mails.iter().enumerate() {
            let is_original = it.content == Content::Old;
            for flag in [FLAGGED, SEEN] {
                act(format!("toggles {flag} of {}", it.uid), false, &|server| {
                    let it = &mut server.mails[at];
                    it.flags ^= flag;
                    it.by_client |= flag;
                    it.modseq += 1;
                });
            }
            if self.nature.is_gmail && it.labels & 2 == 0 && is_original {
                act(format!("labels {}", it.uid), false, &|server| {
                    server.mails[at].labels |= 2;
                });
            }
            if it.flags & DELETED == 0 {
                act(format!("marks {}", it.uid), is_original, &|server| {
                    server.mails[at].flags |= DELETED;
                    server.mails[at].modseq += 1;
                });
            }
            act(format!("removes {}", it.uid), is_original, &|server| {
                server.mails.remove(at);
                self.renumber(server);
            });
            // The second client moves a message only if embody can notice the move. While embody removes a message, only
            // the run that removes the message can notice the move, because the server then reports no removal to that
            // run. A later run cannot: if the journal says that the removal command may have been sent, the later run
            // assumes that the message was removed. Before the journal has the UID of the new message, no run can know
            // that the new message existed.
            let is_certain = match world.journal.as_ref().map(|it| &it.step) {
                Some(ReplacementStep::Begun) => false,
                Some(ReplacementStep::Removing(_)) => !is_original || is_running,
                Some(ReplacementStep::TakingBack(..)) => is_original || is_running,
                _ => true,
            };
            let is_undisturbed = self.budget.faults == 0 && self.budget.kills == 0;
            let is_noticeable = is_certain && (!is_running || is_undisturbed);
            if it.is_good() && is_noticeable {
                act(format!("moves {}", it.uid), is_original, &|server| {
                    server.mails.remove(at);
                    server.elsewhere += 1;
                    self.renumber(server);
                });
            }
        }
        if world.server.mails.iter().any(|it| it.flags & DELETED != 0) {
            act("EXPUNGE".into(), false, &|server| {
                server.mails.retain(|it| it.flags & DELETED == 0);
                self.renumber(server);
            });
        }
        act("appends".into(), false, &|server| {
            let id = server.next;
            server.next += 1;
            server.mails.push(Mail::new(id, Content::Foreign, 0));
            self.renumber(server);
        });
    }

    /// Explores all states and returns their number. The error names the rule that was violated, and the steps that led
    /// to this state.
    fn explore(&self) -> Result<usize, String> {
        let mut seen: HashSet<u64> = HashSet::new();
        // State before each state, and the position of the step among its steps. The descriptions of the steps would need
        // gigabytes, so they are made again for a failure.
        let mut ways: Vec<(u32, u16)> = Vec::new();
        let mut queue: VecDeque<(usize, World)> = VecDeque::new();
        let hash = |world: &World| {
            let mut hasher = DefaultHasher::new();
            world.hash(&mut hasher);
            hasher.finish()
        };
        let first = self.initial();
        seen.insert(hash(&first));
        ways.push((0, 0));
        queue.push_back((0, first));
        while let Some((at, world)) = queue.pop_front() {
            let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                if world.process == Process::Over {
                    self.check_end(&world);
                }
                if matches!(world.process, Process::Dead | Process::Over) {
                    self.check_quiet(&world);
                }
                self.steps(&world)
            }));
            let steps = looked.map_err(|panic| {
                let formatted = panic.downcast_ref::<String>().cloned();
                let why = formatted.or(panic.downcast_ref::<&str>().map(|why| (*why).to_owned()));
                let way = self.way(&ways, at);
                format!(
                    "{}\nfound after {} states, by these steps\n  {}\nin the state {world:?}",
                    why.unwrap_or_default(),
                    seen.len(),
                    way.join("\n  ")
                )
            })?;
            for (number, (_, next)) in steps.into_iter().enumerate() {
                let next = self.canonical(next);
                if seen.insert(hash(&next)) {
                    let [from, number] = [at, number].map(|it| u32::try_from(it).unwrap());
                    ways.push((from, u16::try_from(number).unwrap()));
                    queue.push_back((ways.len() - 1, next));
                }
            }
        }
        Ok(seen.len())
    }

    /// Replaces facts on which nothing depends, so that states which differ only in these facts count as one state.
    fn canonical(&self, mut world: World) -> World {
        world.was_raced |= world.is_raced;
        let server = &mut world.server;
        // Without CONDSTORE, no response contains modification sequences, and the other run does not compare them.
        if !self.nature.has_condstore {
            for it in &mut server.mails {
                it.modseq = 1;
            }
        }
        world
    }

    /// Returns the descriptions of the steps to a state, by making these steps again.
    fn way(&self, ways: &[(u32, u16)], mut at: usize) -> Vec<String> {
        let mut numbers = Vec::new();
        while at > 0 {
            let (from, number) = ways[at];
            numbers.push(usize::from(number));
            at = usize::try_from(from).unwrap();
        }
        let mut world = self.initial();
        let mut way = Vec::new();
        for number in numbers.into_iter().rev() {
            let (label, next) = self.steps(&world).swap_remove(number);
            way.push(label);
            world = self.canonical(next);
        }
        way
    }
}
