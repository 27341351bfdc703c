//! The members of an archive that are wanted, one behind the other.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use crate::mailbox::compressed::Damage;

/// Octets of a member that tell what it is.
const LOOKED_AT: usize = 64 << 10;
/// Members that are named, when they are skipped.
const NAMED: usize = 10_000;
/// Octets of a name that are told.
const NAME: usize = 200;

/// What is to become of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Judged {
    /// It is read.
    Taken,
    /// It is mail that is not read, or may be: what it is.
    Left(&'static str),
    /// It is no mail: what it is.
    Skipped(&'static str),
}

/// Members that are no mail: their names, and what each is.
pub(crate) type Skipped = Arc<Mutex<Vec<(String, &'static str)>>>;

/// A member that is a file.
pub(super) struct Member {
    /// As the archive has it, or the start of that. For people: it is no path.
    pub(super) name: String,
    /// Why it cannot be read.
    pub(super) closed: Option<&'static str>,
}

impl Member {
    pub(super) fn new(name: &[u8], closed: Option<&'static str>) -> Self {
        let name = name.get(..NAME).unwrap_or(name);
        Self {
            name: String::from_utf8_lossy(name).into_owned(),
            closed,
        }
    }
}

/// What an archive is read as. Errors are the system's, or hold a [`Damage`].
pub(super) trait Members {
    /// The next file; what was not read of the one before is passed over.
    fn next(&mut self) -> io::Result<Option<Member>>;

    /// What comes next of it; nothing at its end.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize>;
}

/// Reads them.
pub(crate) struct Joined<M> {
    members: M,
    judge: fn(&[u8]) -> Judged,
    skipped: Skipped,
    /// What is given before the member goes on.
    ready: Vec<u8>,
    /// How much of that was.
    given: usize,
    is_within: bool,
    /// How many were read, and how many left; the first of these.
    taken: u64,
    left: u64,
    first_left: Option<(String, &'static str)>,
    /// The last octets given.
    last: [u8; 3],
    end: Option<Result<(), Damage>>,
}

impl<M: Members> Joined<M> {
    pub(super) fn new(members: M, judge: fn(&[u8]) -> Judged, skipped: &Skipped) -> Self {
        Self {
            members,
            judge,
            skipped: Arc::clone(skipped),
            ready: Vec::new(),
            given: 0,
            is_within: false,
            taken: 0,
            left: 0,
            first_left: None,
            last: [0; 3],
            end: None,
        }
    }

    /// What lies between two mboxes: each starts behind an empty line.
    fn between(&self) -> &'static [u8] {
        match self.last {
            _ if self.taken == 0 => b"",
            [_, b'\n', b'\n'] | [b'\n', b'\r', b'\n'] => b"",
            [.., b'\n'] => b"\n",
            _ => b"\n\n",
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        let Some(member) = self.members.next()? else {
            self.end = Some(self.trouble().map_or(Ok(()), Err));
            return Ok(());
        };
        let judged = match member.closed {
            Some(why) => Judged::Left(why),
            None => {
                let start = self.start_of_member()?;
                if start.is_empty() {
                    return Ok(());
                }
                let judged = (self.judge)(&start);
                if judged == Judged::Taken {
                    self.ready.clear();
                    self.ready.extend_from_slice(self.between());
                    self.ready.extend_from_slice(&start);
                }
                judged
            }
        };
        match judged {
            Judged::Taken => {
                self.given = 0;
                self.is_within = true;
                self.taken += 1;
            }
            Judged::Left(what) => {
                self.left += 1;
                self.first_left.get_or_insert((member.name, what));
            }
            Judged::Skipped(what) => {
                let mut skipped = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
                if skipped.len() < NAMED {
                    skipped.push((member.name, what));
                }
            }
        }
        Ok(())
    }

    fn start_of_member(&mut self) -> io::Result<Vec<u8>> {
        let mut start = vec![0; LOOKED_AT];
        let mut filled = 0;
        while let Some(rest) = start.get_mut(filled..)
            && !rest.is_empty()
        {
            match self.members.read(rest)? {
                0 => break,
                read => filled += read,
            }
        }
        start.truncate(filled);
        Ok(start)
    }

    /// What is to be told once all is read.
    fn trouble(&mut self) -> Option<Damage> {
        let why = match (self.first_left.take(), self.left) {
            (Some((name, what)), 1) => format!("a file in it is not read: {name} ({what})"),
            (Some((name, what)), left) => {
                format!("{left} files in it are not read, the first is {name} ({what})")
            }
            (None, _) if self.taken == 0 => "an archive without an mbox in it".to_owned(),
            (None, _) => return None,
        };
        Some(Damage::of_archive(why, true))
    }

    fn remember(&mut self, given: &[u8]) {
        for &octet in given.get(given.len().saturating_sub(3)..).unwrap_or(given) {
            self.last.rotate_left(1);
            self.last[2] = octet;
        }
    }
}

impl<M: Members> Read for Joined<M> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            let ready = self.ready.get(self.given..).unwrap_or_default();
            if !ready.is_empty() {
                let length = ready.len().min(into.len());
                into[..length].copy_from_slice(&ready[..length]);
                self.given += length;
                self.remember(&into[..length]);
                return Ok(length);
            }
            if self.is_within {
                match self.members.read(into)? {
                    0 => self.is_within = false,
                    read => {
                        self.remember(&into[..read]);
                        return Ok(read);
                    }
                }
            }
            match &self.end {
                None => self.begin()?,
                Some(Ok(())) => return Ok(0),
                Some(Err(damage)) => return Err(io::Error::other(damage.clone())),
            }
        }
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
            Ok(next.map(|text| Member::new(text.as_bytes(), closed)))
        }

        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.1.len().min(into.len()).min(2);
            let (now, rest) = self.1.split_at(length);
            into[..length].copy_from_slice(now.as_bytes());
            self.1 = rest;
            Ok(length)
        }
    }

    fn judge(start: &[u8]) -> Judged {
        match start.first() {
            Some(b'F') => Judged::Taken,
            Some(b'S') => Judged::Left("a message"),
            _ => Judged::Skipped("text"),
        }
    }

    #[test]
    fn each_mbox_starts_behind_an_empty_line_and_what_is_left_is_told_at_the_end() {
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
                "3 files in it are not read, the first is S (a message)",
            ),
            (
                vec!["F", "!x"],
                "F",
                "a file in it is not read: !x (encrypted)",
            ),
            (vec!["x", ""], "", "an archive without an mbox in it"),
        ] {
            let skipped = Skipped::default();
            let mut joined = Joined::new(Texts(texts, ""), judge, &skipped);
            let mut out = Vec::new();
            let said = joined.read_to_end(&mut out).err();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            assert_eq!(
                said.map(|error| error.to_string()).unwrap_or_default(),
                left
            );
            assert!(
                skipped
                    .lock()
                    .unwrap()
                    .iter()
                    .all(|one| *one == ("x".to_owned(), "text"))
            );
        }
    }
}
