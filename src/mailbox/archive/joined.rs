//! Reads the mboxes of an archive one after the other, as one stream.
//!
//! If a member is damaged, reading stops with a [`Damage`] error at this position. The message before the damage is
//! incomplete, and the next member must not be appended to it. The next read returns the members after the damaged one.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use super::spooled::Spooled;
use crate::error::unpoisoned;
use crate::mailbox::compressed::Damage;
use crate::span::front;

const LOOKED_AT: usize = 64 << 10;
/// Maximum number of skipped members that are reported by name. Further members are only counted, because an archive
/// can contain millions of them.
const NAMED: usize = 10_000;
const NAME: usize = 200;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Judged {
    Taken,
    /// An Outlook mailbox. It is copied to a temporary file and read later.
    Spooled,
    /// A member that is mail or may be mail, but that embody cannot read in an archive. The text is the reason, for the
    /// report.
    Left(&'static str),
    Skipped(&'static str),
}

pub(crate) type Judge = fn(&[u8], &[u8]) -> Judged;

#[derive(Default, Debug)]
pub(crate) struct Skipped {
    pub(crate) named: Vec<(String, &'static str)>,
    pub(crate) others: BTreeMap<&'static str, u64>,
    pub(crate) spooled: Vec<Spooled>,
}

impl Skipped {
    fn add(&mut self, name: String, what: &'static str) {
        if self.named.len() < NAMED {
            self.named.push((name, what))
        } else {
            *self.others.entry(what).or_default() += 1
        }
    }
}

pub(super) struct Member {
    pub(super) name: Vec<u8>,
    pub(super) closed: Option<&'static str>,
}

/// The members of an archive, in order. An error is an I/O error of the system, or contains a [`Damage`]. If
/// [`Damage::goes_on`] is true, only one member is damaged, and the next members can still be read.
pub(super) trait Members: Read {
    /// Skips the unread bytes of the current member, and returns the next member.
    fn next(&mut self) -> io::Result<Option<Member>>;
}

pub(crate) struct Joined<M> {
    members: M,
    judge: Judge,
    skipped: Arc<Mutex<Skipped>>,
    ready: io::Cursor<Vec<u8>>,
    within: Option<String>,
    /// Error that ended the reading of the current member early. The bytes in `ready` were read before it, so they are
    /// returned first and the error after them.
    failed: Option<io::Error>,
    has_taken: bool,
    /// Number of members that are or may be mail but were not read, and the name of the first one, for the report.
    left: Option<(u64, String)>,
    last: [u8; 3],
    end: Option<Result<(), Damage>>,
}

impl<M: Members> Joined<M> {
    pub(super) fn new(members: M, judge: Judge, skipped: &Arc<Mutex<Skipped>>) -> Self {
        Self {
            members,
            judge,
            skipped: Arc::clone(skipped),
            ready: io::Cursor::default(),
            within: None,
            failed: None,
            has_taken: false,
            left: None,
            last: *b"\n\n\n",
            end: None,
        }
    }

    fn between(&self) -> &'static [u8] {
        match self.last {
            [_, b'\n', b'\n'] | [b'\n', b'\r', b'\n'] => b"",
            [.., b'\n'] => b"\n",
            _ => b"\n\n",
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        let Some(member) = self.members.next()? else {
            let nothing = || "the archive contains no mbox".to_owned();
            let why = self.all_left().or((!self.has_taken).then(nothing));
            self.end = Some(why.map_or(Ok(()), |why| Err(Damage::of_archive(why, true))));
            return Ok(());
        };
        // The name is only shown in messages. It is never used as a path.
        let name = String::from_utf8_lossy(front(&member.name, NAME)).into_owned();
        if let Some(why) = member.closed {
            self.leave(&name, why);
            return Ok(());
        }
        let mut ready = self.between().to_vec();
        let between = ready.len();
        // If the reader fails, the bytes before the error are enough to recognise the format of the member.
        let mut failed = start_of(&mut self.members, &mut ready).err();
        let judged = match &ready[between..] {
            [] => None,
            start => Some((self.judge)(&member.name, start)),
        };
        match judged {
            Some(Judged::Taken) => {
                self.ready = io::Cursor::new(ready);
                self.within = Some(name);
                self.failed = failed;
                self.has_taken = true;
                return Ok(());
            }
            Some(Judged::Left(what)) => self.leave(&name, what),
            Some(Judged::Skipped(what)) => {
                unpoisoned(self.skipped.lock()).add(name.clone(), what);
            }
            Some(Judged::Spooled) => {
                let start = &ready[between..];
                let rest: &mut dyn Read = match failed {
                    None => &mut self.members,
                    Some(_) => &mut io::empty(),
                };
                let (spooled, error) = Spooled::copy(name.clone(), start, rest)?;
                failed = failed.or(error);
                unpoisoned(self.skipped.lock()).spooled.push(spooled);
                self.has_taken = true;
            }
            None => {}
        }
        match failed.map(io::Error::downcast::<Damage>).transpose()? {
            Some(damage) if !damage.goes_on => return Err(damage.into()),
            Some(damage) if matches!(judged, None | Some(Judged::Spooled)) => {
                self.leave(&name, damage)
            }
            _ => {}
        }
        Ok(())
    }

    fn leave(&mut self, name: &str, why: impl fmt::Display) {
        let left = &mut self.left;
        left.get_or_insert_with(|| (0, format!("{name} ({why})"))).0 += 1;
    }

    fn all_left(&mut self) -> Option<String> {
        Some(match self.left.take()? {
            (1, first) => format!("a file in the archive was not read: {first}"),
            (left, first) => {
                format!(
                    "{left} files in the archive were not read; the first of these files is {first}"
                )
            }
        })
    }

    fn failure(&mut self, error: io::Error) -> io::Error {
        let within = self.within.take();
        let mut damage = match error.downcast::<Damage>() {
            Ok(damage) => damage,
            Err(error) => return error,
        };
        if !damage.goes_on {
            if let Some(left) = self.all_left() {
                damage = damage.and(&left);
            }
            self.end = Some(Err(damage.clone()));
        } else if let Some(name) = within {
            let why = format!("{damage}; the complete messages before the damage were read");
            damage = Damage::of_member(format!("{name} ({damage})"));
            self.leave(&name, why);
            // The damage cut off a message in the middle. `last` is set as if an empty line had been read after it, so
            // that the next member starts a new message and no line endings are inserted before it.
            self.last = *b"\n\n\n";
        }
        damage.into()
    }

    fn some(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut read = self.ready.read(into)?;
        if read == 0 {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            if self.within.is_some() {
                read = self.members.read(into)?;
            }
        }
        for &octet in &into[read.saturating_sub(3)..read] {
            self.last.rotate_left(1);
            self.last[2] = octet;
        }
        Ok(read)
    }
}

/// Reads the start of a member, up to `LOOKED_AT` bytes. If a read fails because of damage, the bytes of this read are
/// lost. So a small damaged member may yield no bytes at all.
fn start_of(members: &mut impl Read, ready: &mut Vec<u8>) -> io::Result<()> {
    let mut filled = ready.len();
    ready.resize(filled + LOOKED_AT, 0);
    let done = loop {
        match members.read(ready.get_mut(filled..).unwrap_or_default()) {
            Ok(0) => break Ok(()),
            Ok(read) => filled += read,
            Err(error) => break Err(error),
        }
    };
    ready.truncate(filled);
    done
}

impl<M: Members> Read for Joined<M> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while !into.is_empty() {
            let read = self.some(into).map_err(|error| self.failure(error))?;
            if read > 0 {
                return Ok(read);
            }
            self.within = None;
            match &self.end {
                None => self.begin().map_err(|error| self.failure(error))?,
                Some(Ok(())) => break,
                // The archive cannot be read any further. Each further read returns the same error.
                Some(Err(damage)) => return Err(damage.clone().into()),
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Texts(Vec<&'static str>, &'static str);

    impl Members for Texts {
        fn next(&mut self) -> io::Result<Option<Member>> {
            let next = (!self.0.is_empty()).then(|| self.0.remove(0));
            self.1 = next.unwrap_or_default();
            let closed = self.1.starts_with('!').then_some("encrypted");
            Ok(next.map(|text| Member {
                name: text.as_bytes().to_vec(),
                closed,
            }))
        }
    }

    impl Read for Texts {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.1.starts_with('~') {
                return Err(io::Error::other(Damage::of_member("damaged".to_owned())));
            }
            if self.1.starts_with('#') {
                let damage = Damage::of_archive("the end".to_owned(), false);
                return Err(io::Error::other(damage));
            }
            let length = self.1.len().min(into.len()).min(1);
            let (now, rest) = self.1.split_at(length);
            into[..length].copy_from_slice(now.as_bytes());
            self.1 = rest;
            Ok(length)
        }
    }

    fn judge(_: &[u8], start: &[u8]) -> Judged {
        match start.first() {
            Some(b'F') => Judged::Taken,
            Some(b'S') => Judged::Left("a message"),
            _ => Judged::Skipped("text"),
        }
    }

    #[test]
    fn joined_mboxes_are_separated_by_an_empty_line_and_unread_files_are_reported() {
        for (texts, expected, left) in [
            (
                vec!["F1\n\n", "F2\n", "F3", "F4\r\n\r\n", "F5"],
                "F1\n\nF2\n\nF3\n\nF4\r\n\r\nF5",
                "",
            ),
            (vec!["F", "x", "", "F2"], "F\n\nF2", ""),
            (
                vec!["S", "F", "!", "!"],
                "F",
                "3 files in the archive were not read; the first of these files is S (a message)",
            ),
            (
                vec!["F", "!x"],
                "F",
                "a file in the archive was not read: !x (encrypted)",
            ),
            (vec!["x", ""], "", "the archive contains no mbox"),
            (
                vec!["~x", "F"],
                "F",
                "a file in the archive was not read: ~x (damaged)",
            ),
            (
                vec!["S", "F1", "F2#", "F3"],
                "F1\n\nF2",
                "the end; a file in the archive was not read: S (a message)",
            ),
        ] {
            let skipped = Arc::<Mutex<Skipped>>::default();
            let mut joined = Joined::new(Texts(texts, ""), judge, &skipped);
            let mut out = Vec::new();
            let text =
                |error: Option<io::Error>| error.map(|error| error.to_string()).unwrap_or_default();
            let said = joined.read_to_end(&mut out).err();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            assert_eq!(text(said), left);
            let again = joined.read(&mut [0; 9]).err();
            assert_eq!(text(again), left);
            let skipped = skipped.lock().unwrap();
            assert!(
                skipped
                    .named
                    .iter()
                    .all(|one| *one == ("x".to_owned(), "text"))
            );
        }
    }

    #[test]
    fn mbox_after_a_damaged_archive_member_starts_without_an_empty_line() {
        let texts = Texts(vec!["F1\n\n", "F2~", "S~", "F3", "F4"], "");
        let mut joined = Joined::new(texts, judge, &Arc::default());
        let mut said = Vec::new();
        let mut all = Vec::new();
        for _ in 0..2 {
            let mut out = Vec::new();
            let error = joined.read_to_end(&mut out).unwrap_err();
            said.push(error.downcast::<Damage>().unwrap());
            all.push(String::from_utf8(out).unwrap());
        }
        assert_eq!(all, ["F1\n\nF2", "F3\n\nF4"]);
        assert!(said[0].goes_on && !said[0].whole);
        assert!(!said[1].goes_on && said[1].whole);
        assert_eq!(
            said[1].to_string(),
            "2 files in the archive were not read; the first of these files is F2~ (damaged; the complete messages before the damage were read)"
        );
    }

    #[test]
    fn skipped_members_beyond_the_list_of_names_are_only_counted() {
        let mut skipped = Skipped::default();
        for _ in 0..NAMED + 7 {
            skipped.add("x".to_owned(), "text");
        }
        let Skipped { named, others, .. } = skipped;
        assert_eq!((named.len(), others["text"]), (NAMED, 7));
    }
}
