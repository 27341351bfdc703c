//! Another run of embody, on another computer, that replaces the same message at the same time. Its journal is unknown to
//! the program under test.

use super::server::{Content, DELETED, Mail, SEEN};
use super::{Model, Step, World};
use crate::imap::machine::Rule;

/// Progress of the other run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Rival {
    /// The other run downloaded the old message.
    Downloaded,
    /// The other run appended its new message, which has this number.
    Appended(u32),
    /// The other run saw that the old message has this modification sequence and is not `\Deleted`.
    Looked(u32, u64),
    /// The other run marked the old message as `\Deleted`.
    Marked(u32),
    Over,
}

impl World {
    /// Whether the other run has appended its new message and is not finished.
    pub(super) fn is_rival_at_work(&self) -> bool {
        !matches!(self.rival, Rival::Downloaded | Rival::Over)
    }
}

impl Model {
    /// Adds the next step of the other run. It follows the same rules as the program under test.
    pub(super) fn rival(&self, world: &World, steps: &mut Vec<Step>) {
        let mut next = world.clone();
        let server = &mut next.server;
        let old = server
            .mails
            .iter()
            .position(|it| it.content == Content::Old);
        next.rival = match world.rival {
            Rival::Downloaded => {
                let id = server.next;
                server.next += 1;
                server.mails.push(Mail {
                    is_rivals: true,
                    ..Mail::new(id, Content::New, SEEN)
                });
                Rival::Appended(id)
            }
            Rival::Appended(id) => match old.map(|at| &server.mails[at]) {
                Some(old) if old.flags & DELETED == 0 => Rival::Looked(id, old.modseq),
                // The old message was marked or removed by another program, so the other run ends and keeps its new
                // message.
                _ => {
                    next.is_told = true;
                    Rival::Over
                }
            },
            Rival::Looked(id, modseq) => {
                let has_changed = |it: &Mail| self.nature.has_condstore && it.modseq > modseq;
                match old.map(|at| &mut server.mails[at]) {
                    Some(old) if has_changed(old) => Rival::Appended(id),
                    Some(old) => {
                        old.flags |= DELETED;
                        old.modseq += 1;
                        Rival::Marked(id)
                    }
                    None => Rival::Appended(id),
                }
            }
            Rival::Marked(_) => {
                match old.filter(|at| server.mails[*at].flags & DELETED != 0) {
                    Some(at) => {
                        server.mails.remove(at);
                        // The other run removed the old message, so the program under test could not copy its last
                        // flags, and they are not compared.
                        next.last = None;
                        let is_copy = |it: &&Mail| it.content == Content::New;
                        let copies = server.mails.iter().filter(is_copy).count();
                        next.is_told |= copies > 1 && self.without != Some(Rule::Twins);
                    }
                    None => next.is_told = true,
                }
                Rival::Over
            }
            Rival::Over => return,
        };
        steps.push((format!("the other run: {:?}", next.rival), next));
    }
}
