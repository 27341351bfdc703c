//! The simulated server: its messages, its permanent properties, and its responses to commands.

use super::{Model, World};
use crate::imap::journal::Replacement;
use crate::imap::machine::{
    AppendContent, CommandRefusal, FoundCopies, LabelReport, MachineCommand, MachineEvent,
    MessageAnswer, MessageMetadata, MessageStart, ServerTerms, Sight,
};
use crate::imap::session::{FlagChange, InternalDate};

pub(super) const SEEN: u8 = 1;
pub(super) const FLAGGED: u8 = 2;
pub(super) const DELETED: u8 = 4;
pub(super) const FLAGS: [(u8, &str); 3] = [
    (SEEN, "\\Seen"),
    (FLAGGED, "\\Flagged"),
    (DELETED, "\\Deleted"),
];

/// Response codes of a NO response that the simulated server can send: those of RFC 5530, of APPEND (RFC 4315, RFC
/// 9051) and of CONDSTORE. The empty text means a NO without a code. `BAD` means a BAD response instead of a NO.
pub(super) const CODES: [&str; 24] = [
    "",
    "BAD",
    "UNAVAILABLE",
    "AUTHENTICATIONFAILED",
    "AUTHORIZATIONFAILED",
    "EXPIRED",
    "PRIVACYREQUIRED",
    "CONTACTADMIN",
    "NOPERM",
    "INUSE",
    "EXPUNGEISSUED",
    "CORRUPTION",
    "SERVERBUG",
    "CLIENTBUG",
    "CANNOT",
    "LIMIT",
    "OVERQUOTA",
    "ALREADYEXISTS",
    "NONEXISTENT",
    "TRYCREATE",
    "READ-ONLY",
    "TOOBIG",
    "MODIFIED",
    "THROTTLED",
];

/// Response codes to which the machine reacts in different ways.
pub(super) const DISTINCT_CODES: [&str; 3] = ["", "OVERQUOTA", "MODIFIED"];

pub(super) const DATE: &str = " 3-Jan-2020 10:00:00 +0100";
/// Size of every message, in bytes. Equal sizes are the worst case, because no message can be told apart by its size.
pub(super) const SIZE: u64 = 3;
pub(super) const OTHER_DATE: &str = "25-Nov-2026 10:00:00 +0100";

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Content {
    Old,
    New,
    Altered,
    Foreign,
    /// New version of the foreign message, which embody wrote because the server sent the content of the foreign message
    /// under the UID of the old one.
    NewForeign,
}

impl Content {
    pub(super) fn digest(self) -> String {
        format!("{self:?}")
    }

    pub(super) fn of_digest(digest: &str) -> Self {
        let all = [
            Self::Old,
            Self::New,
            Self::Altered,
            Self::Foreign,
            Self::NewForeign,
        ];
        all.into_iter().find(|it| it.digest() == digest).unwrap()
    }

    pub(super) fn is_version(self) -> bool {
        matches!(self, Self::Old | Self::New)
    }

    /// Whether the message has the same Message-ID as `of`.
    pub(super) fn is_kin(self, of: Self) -> bool {
        let is_foreign = |it| matches!(it, Self::Foreign | Self::NewForeign);
        is_foreign(self) == is_foreign(of)
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Mail {
    /// Number of the message, which never changes, unlike the UID on some servers.
    pub(super) id: u32,
    pub(super) uid: u32,
    pub(super) content: Content,
    pub(super) flags: u8,
    pub(super) labels: u8,
    pub(super) modseq: u64,
    pub(super) has_date: bool,
    /// Flags that the second client set or removed on this message, as a bit set. The final check does not compare
    /// these flags with those of the old message.
    pub(super) by_client: u8,
    /// Whether another run of embody wrote the message.
    pub(super) is_rivals: bool,
}

impl Mail {
    pub(super) fn new(id: u32, content: Content, flags: u8) -> Self {
        Self {
            id,
            uid: id,
            content,
            flags,
            labels: 0,
            modseq: 1,
            has_date: true,
            by_client: 0,
            is_rivals: false,
        }
    }

    pub(super) fn is_good(&self) -> bool {
        self.content.is_version() && self.flags & DELETED == 0
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Server {
    pub(super) mails: Vec<Mail>,
    /// Number of versions without `\Deleted` that the second client moved to another folder.
    pub(super) elsewhere: usize,
    pub(super) next: u32,
    /// UID of a message that the server removed without a report. The server still lists it until the session ends.
    pub(super) ghost: Option<u32>,
}

/// How a deduplicating server treats a new message with the Message-ID of an existing one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Deduplication {
    /// The old message stays, and gets the UID of the new one.
    KeepsOld,
    /// The new message takes the place of the old one.
    KeepsNew,
}

/// Where a server that numbers messages by position inserts a new one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Place {
    First,
    BeforeOld,
    AfterOld,
    Last,
}

pub(super) fn good(server: &Server) -> usize {
    server.mails.iter().filter(|it| it.is_good()).count()
}

/// Permanent properties of a simulated server. A fault that occurs only once, such as a refused command, is part of the
/// [`Budget`] instead.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Nature {
    pub(super) is_gmail: bool,
    pub(super) has_trash: bool,
    pub(super) has_replace: bool,
    pub(super) is_full: bool,
    pub(super) alters: bool,
    /// Whether the server changes the content of the old message when embody restores the old message with APPEND. The
    /// field `alters` affects only the new message.
    pub(super) alters_original: bool,
    pub(super) changes_date: bool,
    pub(super) gives_no_uid: bool,
    pub(super) gives_no_date: bool,
    pub(super) has_condstore: bool,
    pub(super) deduplicates: Option<Deduplication>,
    /// Whether the server removes the old message without reporting it.
    pub(super) is_quiet: bool,
    /// Where the server inserts a new message, if its UIDs are only positions, which shift when a message is added or
    /// removed. `None` for a server with permanent UIDs.
    pub(super) shifts: Option<Place>,
    /// Whether the folder contains other messages, with the same size, date and flags.
    pub(super) has_neighbours: bool,
}

impl World {
    fn has_read(&self, uid: u32) -> bool {
        self.read.iter().any(|(known, _)| *known == uid)
    }

    fn remember(&mut self, uid: u32, content: Content) {
        self.read.retain(|(known, _)| *known != uid);
        self.read.push((uid, content));
        self.read.sort_unstable();
    }
}

impl Model {
    pub(super) fn terms(&self) -> ServerTerms {
        ServerTerms {
            is_gmail: self.nature.is_gmail,
            has_trash: self.nature.has_trash,
            may_replace: self.nature.has_replace,
            without: self.without,
        }
    }

    pub(super) fn snapshot(&self) -> Server {
        let contents: &[Content] = if self.nature.has_neighbours {
            &[Content::Foreign, Content::Old, Content::Foreign]
        } else {
            &[Content::Old]
        };
        let mails = (1..).zip(contents).map(|(id, content)| Mail {
            labels: u8::from(self.nature.is_gmail),
            ..Mail::new(id, *content, SEEN)
        });
        Server {
            mails: mails.collect(),
            elsewhere: 0,
            next: 1 + u32::try_from(contents.len()).unwrap(),
            ghost: None,
        }
    }

    /// Adds a message to the folder, and returns its UID.
    pub(super) fn add(&self, server: &mut Server, mail: Mail, entry: &Replacement) -> u32 {
        let is_old = |it: &Mail| it.uid == entry.uid;
        let old = server.mails.iter().position(is_old).unwrap_or(0);
        let end = server.mails.len();
        let at = match self.nature.shifts {
            None | Some(Place::Last) => end,
            Some(Place::First) => 0,
            Some(Place::BeforeOld) => old,
            Some(Place::AfterOld) => end.min(old + 1),
        };
        let id = mail.id;
        server.mails.insert(at, mail);
        self.renumber(server);
        server.mails.iter().find(|it| it.id == id).unwrap().uid
    }

    /// Gives each message its place as its UID, if the server does so.
    pub(super) fn renumber(&self, server: &mut Server) {
        if self.nature.shifts.is_some() {
            for (at, it) in server.mails.iter_mut().enumerate() {
                it.uid = u32::try_from(at).unwrap() + 1;
            }
        }
    }

    /// Executes a command on the simulated server, and returns the response that a server without faults sends.
    pub(super) fn mode(
        &self,
        world: &mut World,
        entry: &Replacement,
        command: &MachineCommand,
    ) -> MachineEvent {
        let nature = self.nature;
        let server = &mut world.server;
        match command {
            MachineCommand::Note => {
                world.journal = Some(entry.clone());
                world.unsynced_end = None;
                MachineEvent::Done
            }
            MachineCommand::End => {
                world.unsynced_end = world.journal.take();
                MachineEvent::Done
            }
            // The report is synced to the disk, and each later run names the message until one has ended.
            MachineCommand::Name(_) => {
                world.journal = None;
                world.unsynced_end = None;
                MachineEvent::Done
            }
            MachineCommand::Keep => {
                world.is_kept = true;
                MachineEvent::Done
            }
            MachineCommand::Drop => {
                world.is_kept = false;
                MachineEvent::Done
            }
            MachineCommand::Rest(_) => MachineEvent::Done,
            MachineCommand::CheckObjects { .. } => {
                let missing = || "the store does not contain the attachments".to_owned();
                MachineEvent::Checked(world.has_objects.then_some(()).ok_or_else(missing))
            }
            MachineCommand::Append(_) | MachineCommand::Replace => {
                // The attachments are stored before the new message is appended.
                world.has_objects |= *command != MachineCommand::Append(AppendContent::Original);
                let is_original = *command == MachineCommand::Append(AppendContent::Original);
                let is_replace = *command == MachineCommand::Replace;
                if nature.is_full
                    && !is_replace
                    && server
                        .mails
                        .iter()
                        .filter(|it| it.content != Content::Foreign)
                        .count()
                        > 0
                    && !is_original
                {
                    return MachineEvent::Appended(Err(refusal("OVERQUOTA")));
                }
                if is_replace {
                    let at = server.mails.iter().position(|it| it.uid == entry.uid);
                    let Some(at) = at else {
                        return MachineEvent::Appended(Err(refusal("NONEXISTENT")));
                    };
                    server.mails.remove(at);
                    // REPLACE gives the new message the flags that embody last read. A flag that the second client set
                    // later is lost, which is allowed here. `None` switches off the comparison of flags at the end.
                    world.last = None;
                }
                let id = server.next;
                server.next += 1;
                let new = Content::of_digest(&entry.sha256);
                let mut content = match (is_original, nature.alters) {
                    (true, _) if nature.alters_original => Content::Altered,
                    (true, _) => Content::Old,
                    (false, true) => Content::Altered,
                    (false, false) => new,
                };
                let twin = server
                    .mails
                    .iter()
                    .position(|it| nature.deduplicates.is_some() && it.content.is_kin(new));
                if let Some(twin) = twin {
                    let twin = server.mails.remove(twin);
                    if nature.is_quiet {
                        server.ghost = Some(twin.uid);
                    }
                    if nature.deduplicates == Some(Deduplication::KeepsOld) {
                        content = twin.content;
                    }
                    // Which flags survive is up to the server, so they are not compared.
                    world.last = None;
                }
                let mail = Mail::new(id, content, bits(&entry.flags));
                let uid = self.add(server, mail, entry);
                MachineEvent::Appended(Ok((!nature.gives_no_uid).then_some((7, uid))))
            }
            MachineCommand::Search(body) => {
                let wanted = match body {
                    AppendContent::New => Content::of_digest(&entry.sha256),
                    AppendContent::Original => Content::Old,
                };
                let is_new = |it: &&Mail| it.uid >= entry.least && it.flags & DELETED == 0;
                let new: Vec<&Mail> = server.mails.iter().filter(is_new).collect();
                let uids = |is: &dyn Fn(&Mail) -> bool| {
                    let found = new.iter().filter(|it| is(it));
                    found.map(|it| it.uid).collect::<Vec<_>>()
                };
                let same = uids(&|it| it.content == wanted);
                let kin = match (body, same.as_slice()) {
                    (AppendContent::New, []) => uids(&|it| it.content.is_kin(wanted)),
                    _ => Vec::new(),
                };
                for uid in &same {
                    world.remember(*uid, wanted);
                }
                MachineEvent::Found(Ok(FoundCopies { same, kin }))
            }
            MachineCommand::FindTwins { copy, with_kin } => {
                let new = Content::of_digest(&entry.sha256);
                let is_other =
                    |it: &&Mail| it.uid != *copy && it.uid != entry.uid && it.flags & DELETED == 0;
                let others: Vec<&Mail> = server.mails.iter().filter(is_other).collect();
                let is_same = |it: &Mail| it.content == new;
                let is_kin = |it: &Mail| {
                    *with_kin && it.uid >= entry.least && !is_same(it) && it.content.is_kin(new)
                };
                let uids = |is: &dyn Fn(&Mail) -> bool| {
                    let found = others.iter().filter(|it| is(it));
                    found.map(|it| it.uid).collect::<Vec<_>>()
                };
                MachineEvent::Found(Ok(FoundCopies {
                    same: uids(&is_same),
                    kin: uids(&is_kin),
                }))
            }
            MachineCommand::Read(uid) => {
                let found = server.mails.iter().find(|it| it.uid == *uid);
                world.has_read_altered |= found.is_some_and(|it| it.content == Content::Altered);
                let Some(content) = found.map(|it| it.content) else {
                    return MachineEvent::Read(MessageAnswer::Nothing);
                };
                self.reading(world, *uid, content, entry)
            }
            MachineCommand::Look { copy, .. } => {
                world.is_raced = false;
                MachineEvent::Seen(self.sight(world, entry.uid), self.sight(world, *copy))
            }
            MachineCommand::Store(uid, change, flags) => {
                let bits = bits(flags);
                let is_ours = |it: &&mut Mail| it.uid == *uid;
                if let Some(it) = server.mails.iter_mut().find(is_ours) {
                    match change {
                        FlagChange::Add => it.flags |= bits,
                        _ => it.flags &= !bits,
                    }
                    it.modseq += 1;
                }
                MachineEvent::Answered(Ok(()))
            }
            MachineCommand::Mark(since) => {
                let Some(it) = server.mails.iter_mut().find(|it| it.uid == entry.uid) else {
                    return MachineEvent::Marked {
                        answer: Ok(false),
                        flags: None,
                    };
                };
                if since.is_some_and(|since| it.modseq > since) {
                    return MachineEvent::Marked {
                        answer: Ok(true),
                        flags: None,
                    };
                }
                it.flags |= DELETED;
                it.modseq += 1;
                MachineEvent::Marked {
                    answer: Ok(false),
                    flags: Some(names(it.flags)),
                }
            }
            MachineCommand::Remove => {
                let found = server.mails.iter().position(|it| it.uid == entry.uid);
                let seen = found.map(|at| &server.mails[at]);
                let flags = seen.map(|it| names(it.flags));
                let labels = seen
                    .filter(|_| nature.is_gmail)
                    .map(|it| label_names(it.labels));
                let mut is_told = false;
                if let Some(at) = found {
                    let it = &server.mails[at];
                    if nature.has_trash || it.flags & DELETED != 0 {
                        world.last = Some((it.flags & !DELETED, it.labels));
                        server.mails.remove(at);
                        self.renumber(server);
                        is_told = true;
                    }
                }
                MachineEvent::Removed {
                    answer: Ok(()),
                    flags,
                    labels,
                    is_told,
                    is_proven: is_told && nature.has_trash,
                }
            }
            MachineCommand::TakeAway(uid) => {
                let is_taken =
                    |it: &Mail| it.uid == *uid && (nature.is_gmail || it.flags & DELETED != 0);
                let found = server.mails.iter().position(is_taken);
                if let Some(at) = found {
                    server.mails.remove(at);
                    self.renumber(server);
                }
                MachineEvent::TakenAway {
                    answer: Ok(()),
                    is_told: found.is_some(),
                }
            }
            MachineCommand::Labels(copy) => {
                let of = |uid: u32| {
                    let it = server.mails.iter().find(|it| it.uid == uid)?;
                    Some(LabelReport {
                        message_id: u64::from(it.uid),
                        labels: label_names(it.labels),
                    })
                };
                MachineEvent::Labels(of(entry.uid), of(*copy))
            }
            MachineCommand::StoreLabels(uid, change, labels) => {
                let bits = label_bits(labels);
                if let Some(it) = server.mails.iter_mut().find(|it| it.uid == *uid) {
                    match change {
                        FlagChange::Add => it.labels |= bits,
                        _ => it.labels &= !bits,
                    }
                }
                MachineEvent::Answered(Ok(()))
            }
            MachineCommand::Give(_) => unreachable!(),
        }
    }

    /// Reads a content, and remembers its first bytes.
    pub(super) fn reading(
        &self,
        world: &mut World,
        uid: u32,
        content: Content,
        entry: &Replacement,
    ) -> MachineEvent {
        // The remembered content of the old message stays the one from which the new message was made.
        if uid != entry.uid || !world.has_read(uid) {
            world.remember(uid, content);
        }
        MachineEvent::Read(MessageAnswer::Content {
            digest: content.digest(),
            is_kin: content.is_kin(Content::of_digest(&entry.sha256)),
        })
    }

    pub(super) fn sight(&self, world: &World, uid: u32) -> Sight {
        let server = &world.server;
        let Some(it) = server.mails.iter().find(|it| it.uid == uid) else {
            return match server.ghost {
                // The server still lists the message, but has no content for it.
                Some(ghost) if ghost == uid => Sight::Unknown("no content".into()),
                _ => Sight::Absent,
            };
        };
        let start = match world.read.iter().find(|(known, _)| *known == uid) {
            None => MessageStart::NotCompared,
            Some((_, content)) if *content == it.content => MessageStart::Same,
            Some(_) => MessageStart::Different,
        };
        let is_copy = it.content != Content::Old;
        let date = if self.nature.changes_date && is_copy {
            OTHER_DATE
        } else {
            DATE
        };
        let has_date = it.has_date && !(self.nature.gives_no_date && is_copy);
        Sight::Present(MessageMetadata {
            flags: names(it.flags),
            date: has_date.then(|| InternalDate::of(date)),
            size: has_date.then_some(SIZE),
            start,
            modseq: self.nature.has_condstore.then_some(it.modseq),
        })
    }
}

pub(super) fn names(bits: u8) -> Vec<String> {
    let named = FLAGS.iter().filter(|(bit, _)| bits & bit != 0);
    named.map(|(_, name)| (*name).to_owned()).collect()
}

pub(super) fn bits(names: &[String]) -> u8 {
    names.iter().fold(0, |all, name| {
        let found = FLAGS.iter().find(|(_, it)| it.eq_ignore_ascii_case(name));
        all | found.unwrap().0
    })
}

pub(super) fn label_names(bits: u8) -> Vec<String> {
    (0..3)
        .filter(|bit| bits & (1 << bit) != 0)
        .map(|bit| format!("label{bit}"))
        .collect()
}

pub(super) fn label_bits(names: &[String]) -> u8 {
    names.iter().fold(0, |all, name| {
        all | 1 << name.trim_start_matches("label").parse::<u8>().unwrap()
    })
}

/// Returns the results that embody may get if the server refuses a command with NO and this code. A server can also
/// refuse only a part of the command, such as one of two messages. `event` is the result without the refusal.
pub(super) fn refused(event: &MachineEvent, code: &str) -> Vec<MachineEvent> {
    let why = || "no".to_owned();
    match event {
        MachineEvent::Answered(_) => vec![MachineEvent::Answered(Err(refusal(code)))],
        MachineEvent::Appended(_) => vec![MachineEvent::Appended(Err(refusal(code)))],
        MachineEvent::Marked { .. } => {
            let answer = match code {
                "MODIFIED" => Ok(true),
                code => Err(refusal(code)),
            };
            vec![MachineEvent::Marked {
                answer,
                flags: None,
            }]
        }
        MachineEvent::Removed {
            answer,
            flags,
            labels,
            is_proven,
            ..
        } => vec![
            MachineEvent::Removed {
                answer: Err(refusal(code)),
                flags: flags.clone(),
                labels: labels.clone(),
                is_told: false,
                is_proven: false,
            },
            MachineEvent::Removed {
                answer: answer.clone(),
                flags: None,
                labels: None,
                // The report contains only a sequence number. Without the FETCH response, embody cannot relate it to
                // the message.
                is_told: *is_proven,
                is_proven: *is_proven,
            },
        ],
        MachineEvent::TakenAway { .. } => vec![MachineEvent::TakenAway {
            answer: Err(refusal(code)),
            is_told: false,
        }],
        MachineEvent::Found(_) => vec![MachineEvent::Found(Err(why()))],
        MachineEvent::Read(_) => vec![MachineEvent::Read(MessageAnswer::Unknown(why()))],
        MachineEvent::Seen(old, copy) => {
            let unknown = || Sight::Unknown(why());
            vec![
                MachineEvent::Seen(unknown(), unknown()),
                MachineEvent::Seen(old.clone(), unknown()),
                MachineEvent::Seen(unknown(), copy.clone()),
            ]
        }
        MachineEvent::Labels(old, copy) => vec![
            MachineEvent::Labels(None, None),
            MachineEvent::Labels(old.clone(), None),
            MachineEvent::Labels(None, copy.clone()),
        ],
        MachineEvent::Begin | MachineEvent::Done | MachineEvent::Checked(_) => Vec::new(),
    }
}

fn refusal(code: &str) -> CommandRefusal {
    CommandRefusal {
        command: "COMMAND",
        code: Some(code.to_owned()).filter(|code| !code.is_empty()),
        text: "no".into(),
    }
}
