//! Lists and opens the messages of a Maildir or an MH folder while other programs rename them.
//!
//! A mail client renames a message from `new` to `cur` when it shows the message for the first time, and again for each
//! change of its flags. No system call lists two directories at the same moment, and if a directory changes while it is
//! listed, a renamed file may be listed under both names or under neither. To list every message, these rules are used:
//! * `new` is listed before `cur`: a message that is moved from one to the other is in at least one list.
//! * If a directory changed during the listing or just before it, both are listed again, until no list contains a
//!   message that was missing before.
//! * If a message was listed under several names, only the names that still exist count, and each file counts once. A
//!   copy that a killed run left has its own name, and is kept.
//! * If the name of a message no longer exists when the message is opened, [`ListedMessages`] searches for the unique part of
//!   the name. A message that is not found is reported.
//!
//! Messages of MH folders have no unique names. If the number of a message no longer exists, the message is reported.
//! If the folder changed during the run, every file that was not read under any number is reported too
//! ([`ListedMessages::missed`]).

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use crate::detail::Detail;
use crate::error::unpoisoned;
use crate::mailbox::failure::unread;
use crate::mailbox::forms::mh;
use crate::mailbox::partial::is_litter;
use crate::mailbox::place::folder::{MessageFolder, base_of, flags_of};
use crate::platform::{MetadataExt as _, OsStrExt as _, absent, entries_of, is_renamed};

/// Minimum time in which a directory must be unchanged for its modification time to be trusted. Old file systems store
/// times in seconds: a second change within the same second leaves the time as it is.
const SETTLED: Duration = Duration::from_secs(3);
/// Number of consecutive listings without a new message after which listing stops, if the directories were unchanged
/// during the last one. A single listing is not enough: if a directory changed just before it, a further change can
/// have the same time stamp and stay undetected.
const QUIET: usize = 2;
/// Number of consecutive listings without a new message after which listing stops, even if the directories still
/// change. This needs more listings than [`QUIET`], because a listing during a change may miss a message.
const BUSY: usize = 8;
const MOST_LISTINGS: usize = 32;
/// Maximum number of names that are tried for a message before it is reported as gone.
const SEARCHES: usize = 16;
/// Maximum number of directory entries that all searches together list, as a multiple of the number of messages.
/// Without this limit, the time would be quadratic if another program deleted every message during the run.
const MOST_SEARCHED: u64 = 256;
/// Maximum number of times that one search lists the directories. A single listing may miss a message that is renamed
/// during it.
const LISTINGS: usize = 3;

/// The directories in the order in which a message moves through them.
const PARTS: [&str; 2] = ["new", "cur"];

const RESTLESS: &str = "other programs renamed messages each time the directory was listed, so messages may be missing; run the same command again when these programs have finished";
pub(crate) const MISSED: &str = "another program renumbered or replaced messages of the folder during the run, so this message may not have been read; run the same command again";
pub(crate) const GONE: &str =
    "another program moved or deleted the message during the run; run the same command again";

type Others = Vec<(PathBuf, Detail)>;

/// The messages of a folder, as they were listed. A message can be opened even if another program has renamed it since.
pub(crate) struct ListedMessages {
    place: MessageFolder,
    /// Paths of the messages, relative to the folder. In a Maildir, the paths are sorted.
    names: Vec<PathBuf>,
    searches: Mutex<Searches>,
    /// Modification times of the directories before they were listed. A different time later shows that the
    /// directory has changed.
    state: Vec<Option<SystemTime>>,
    /// Device and inode number of each file of an MH folder that was opened. A file that is not in this set at the end
    /// was missed.
    opened: Mutex<HashSet<(u64, u64)>>,
}

#[derive(Default)]
struct Searches {
    /// Result of the last search: for each unique part of a file name, the paths with this part.
    listed: HashMap<Vec<u8>, Vec<PathBuf>>,
    /// For each new path that a search found, the listed name of the message that has it. No other message gets the
    /// same file.
    taken: HashMap<PathBuf, PathBuf>,
    /// Modification times of the directories before the last search.
    state: Vec<Option<SystemTime>>,
    cost: u64,
}

impl MessageFolder {
    /// Lists the messages of the folder. Also returns the paths that are named like a message but are not files or
    /// cannot be read. The memory for the names is some hundred bytes for each message.
    pub(crate) fn messages(&self) -> (ListedMessages, Others) {
        self.messages_watched(&mut |_| {})
    }

    /// Does the same as [`messages`](Self::messages). For tests, calls `before` with the name of each directory just
    /// before it is listed, and with each name just before its file is looked up.
    fn messages_watched(&self, before: &mut dyn FnMut(&str)) -> (ListedMessages, Others) {
        let mut others = Others::new();
        let state = self.state(self.parts());
        let names = match (&self.part, &self.name) {
            (part, Some(name)) => {
                let part = part.as_deref().unwrap_or_default();
                vec![Path::new(part).join(name)]
            }
            _ => self.names(&mut others, before),
        };
        others.sort_by(|(one, _), (other, _)| one.cmp(other));
        others.dedup_by(|(one, _), (other, _)| one == other);
        let messages = ListedMessages {
            place: self.clone(),
            names,
            searches: Mutex::default(),
            state,
            opened: Mutex::default(),
        };
        (messages, others)
    }

    fn names(&self, others: &mut Others, before: &mut dyn FnMut(&str)) -> Vec<PathBuf> {
        let is_wanted = |part: &&str| self.part.as_ref().is_none_or(|only| only == part);
        let parts: Vec<&str> = self.parts().iter().copied().filter(is_wanted).collect();
        let mut listing = ListingNames::default();
        let (mut quiet, mut has_many) = (0, false);
        for round in 0.. {
            let (state, now) = (self.state(&parts), SystemTime::now());
            let mut has_news = false;
            for part in &parts {
                before(part);
                let mut list = Vec::new();
                if let Err(error) = self.list(Path::new(part), &mut list, others) {
                    // The directory may contain messages that were not listed, so the error is reported.
                    others.push((self.folder.join(part), unread(&error).into()));
                }
                has_news |= listing.add(self, part, list, round > 0);
            }
            let is_unchanged = self.state(&parts) == state;
            let is_old = |modified: &Option<SystemTime>| {
                let age = modified.and_then(|modified| now.duration_since(modified).ok());
                modified.is_none() || age.is_some_and(|age| age > SETTLED)
            };
            if round == 0 && is_unchanged && state.iter().all(is_old) {
                break;
            }
            has_many = true;
            quiet = if round > 0 && !has_news { quiet + 1 } else { 0 };
            if quiet >= BUSY || quiet >= QUIET && is_unchanged {
                break;
            }
            if round + 1 == MOST_LISTINGS {
                others.push((self.folder.clone(), RESTLESS.into()));
                break;
            }
        }
        let mut names = listing.names;
        if self.is_mh {
            mh::sort(&mut names)
        } else {
            names.sort();
            if has_many {
                self.remove_old_names(&mut names, before);
            }
        }
        names
    }

    fn parts(&self) -> &'static [&'static str] {
        if self.is_mh { &[""] } else { &PARTS }
    }

    /// Returns the modification time of each directory. `None` if the directory does not exist or its time is unknown.
    fn state(&self, parts: &[&str]) -> Vec<Option<SystemTime>> {
        let modified = |part: &&str| fs::metadata(self.folder.join(part))?.modified();
        parts.iter().map(|part| modified(part).ok()).collect()
    }

    fn list(&self, part: &Path, names: &mut Vec<PathBuf>, others: &mut Others) -> io::Result<()> {
        const OTHER: &str = "the file was not read, because it is a symbolic link or not a regular file; to read the target of a link, name the target as a source";
        // A file `cur` or `new` is a mailbox next to the Maildir, and not a part of it.
        let entries = entries_of(&self.folder.join(part))?;
        for entry in entries.into_iter().flatten() {
            let entry = entry?;
            let name = entry.file_name();
            let is_message = if self.is_mh {
                mh::number(&name).is_some()
            } else {
                !name.as_bytes().starts_with(b".") && !is_litter(&name)
            };
            if !is_message {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_file() => names.push(part.join(name)),
                Ok(kind) if kind.is_dir() => {}
                Ok(_) => others.push((entry.path(), OTHER.into())),
                // The file system did not list the type of this file, and the file was renamed before its type could be
                // read. It may be a message, so its name is kept. If it is opened later, its new name is searched for.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    names.push(part.join(name));
                }
                Err(error) => others.push((entry.path(), unread(&error).into())),
            }
        }
        Ok(())
    }

    /// If several listed names have the same unique part, removes the names that no longer exist, because they are old
    /// names of a renamed message. At least one name is kept for each unique part.
    fn remove_old_names(&self, names: &mut Vec<PathBuf>, before: &mut dyn FnMut(&str)) {
        let mut by_base: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
        for (index, name) in names.iter().enumerate() {
            by_base.entry(base(name)).or_default().push(index);
        }
        let mut old: HashSet<usize> = HashSet::new();
        for group in by_base.values().filter(|group| group.len() > 1) {
            // A message may be renamed between the checks of its old and its new name, and both may seem to exist. The
            // names that exist are therefore checked a second time.
            let mut there = group.clone();
            for _ in 0..2 {
                there = self.files_of(&there, names, before);
            }
            if there.is_empty() {
                // No listed name exists, because the message was renamed again or deleted. One name is kept, and the
                // message is searched for when it is opened.
                there.extend(group.first());
            }
            old.extend(group.iter().filter(|index| !there.contains(index)));
        }
        let mut index = 0..;
        names.retain(|_| index.next().is_none_or(|index| !old.contains(&index)));
    }

    /// Returns the names of `group` that exist. If several names lead to one file, which has only one name on the disk,
    /// the file was renamed between the checks, and only the first of these names is returned.
    fn files_of(
        &self,
        group: &[usize],
        names: &[PathBuf],
        before: &mut dyn FnMut(&str),
    ) -> Vec<usize> {
        let mut files: Vec<Metadata> = Vec::new();
        let mut there = Vec::new();
        for (index, name) in group.iter().filter_map(|&at| Some((at, names.get(at)?))) {
            before(&name.to_string_lossy());
            match absent(fs::symlink_metadata(self.folder.join(name))) {
                Ok(None) => continue,
                Ok(Some(file)) if files.iter().any(|other| is_renamed(other, &file)) => continue,
                Ok(Some(file)) => files.push(file),
                // The file may exist. An error is reported when the message is opened.
                Err(_) => {}
            }
            there.push(index);
        }
        there
    }
}

/// All names that the listings of one folder contained. A folder is listed several times while other programs change
/// it.
#[derive(Default)]
struct ListingNames {
    names: Vec<PathBuf>,
    known: HashSet<PathBuf>,
    bases: HashSet<Vec<u8>>,
    greatest: Option<u32>,
}

impl ListingNames {
    /// Adds a list, and returns whether it contains a message that an earlier listing missed. A message that was
    /// delivered since does not count: it has a new name in `new`, or in an MH folder a number greater than all
    /// other numbers.
    fn add(&mut self, place: &MessageFolder, part: &str, list: Vec<PathBuf>, again: bool) -> bool {
        if !again {
            self.names.extend(list);
            return false;
        }
        if self.known.is_empty() {
            self.known = self.names.iter().cloned().collect();
            self.bases = self.names.iter().map(|name| base(name)).collect();
            self.greatest = self.names.iter().filter_map(|name| number(name)).max();
        }
        let mut has_news = false;
        for name in list {
            if self.known.contains(&name) {
                continue;
            }
            let is_new = self.bases.insert(base(&name));
            has_news |= is_new
                && if place.is_mh {
                    number(&name) < self.greatest
                } else {
                    part == "cur"
                };
            self.known.insert(name.clone());
            self.names.push(name);
        }
        has_news
    }
}

impl ListedMessages {
    /// Returns the names under which the messages were listed.
    pub(crate) fn names(&self) -> &[PathBuf] {
        &self.names
    }

    /// Opens the message that was listed as `listed`, even if another program has renamed it. Returns its current name
    /// and the open file, or `None` if the message is gone.
    pub(crate) fn open(&self, listed: &Path) -> io::Result<Option<(PathBuf, File)>> {
        let mut name = listed.to_owned();
        for search in 0..SEARCHES {
            if let Some(file) = absent(File::open(self.place.folder.join(&name)))? {
                if self.place.is_mh {
                    let found = file.metadata()?;
                    unpoisoned(self.opened.lock()).insert((found.dev(), found.ino()));
                }
                return Ok(Some((name, file)));
            }
            match self.find(listed, search > 0)? {
                Some(found) => name = found,
                None => break,
            }
        }
        Ok(None)
    }

    /// Returns the messages of an MH folder that may not have been read, because another program renumbered or
    /// replaced messages since they were listed. A number greater than all listed numbers is mail that was
    /// delivered since, and does not count.
    pub(crate) fn missed(&self) -> io::Result<Vec<PathBuf>> {
        if !self.place.is_mh || self.place.state(self.place.parts()) == self.state {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        self.place
            .list(Path::new(""), &mut names, &mut Vec::new())?;
        let greatest = self.names.iter().filter_map(|name| number(name)).max();
        let opened = unpoisoned(self.opened.lock());
        let is_missed = |name: &PathBuf| {
            let found = fs::metadata(self.place.folder.join(name));
            number(name) <= greatest
                && found.is_ok_and(|found| !opened.contains(&(found.dev(), found.ino())))
        };
        names.retain(is_missed);
        mh::sort(&mut names);
        Ok(names)
    }

    /// Returns the current name of the message that was listed as `listed`, or `None` if it is gone. If the last search
    /// did not find the message, and the directories have changed since, they are listed again.
    ///
    /// If `lists_again` is true, the directories are listed again in any case. The caller sets it if the name that an earlier
    /// call returned no longer exists.
    pub(crate) fn find(&self, listed: &Path, lists_again: bool) -> io::Result<Option<PathBuf>> {
        if self.place.is_mh {
            return Ok(None);
        }
        let mut searches = unpoisoned(self.searches.lock());
        let mut found = self.listed(&searches, listed).filter(|_| !lists_again);
        for number in 0..LISTINGS {
            let state = self.place.state(&PARTS);
            let is_known = state == searches.state && !(lists_again && number == 0);
            let most = MOST_SEARCHED * (self.names.len() as u64 + 1000);
            if found.is_some() || is_known || searches.cost > most {
                break;
            }
            searches.listed.clear();
            searches.state = state;
            for part in PARTS {
                let mut names = Vec::new();
                let others = &mut Vec::new();
                self.place.list(Path::new(part), &mut names, others)?;
                searches.cost += names.len() as u64 + 1;
                for name in names {
                    searches.listed.entry(base(&name)).or_default().push(name);
                }
            }
            found = self.listed(&searches, listed);
        }
        if let Some(name) = &found {
            searches.taken.insert(name.clone(), listed.to_owned());
        }
        Ok(found)
    }

    /// Returns the name that the message `listed` has in the last search, by the unique part of the name. Names that
    /// belong to other messages are excluded. Several messages can have the same unique part, for example after a
    /// killed run. A name that is equal up to the flags is therefore preferred.
    fn listed(&self, searches: &Searches, listed: &Path) -> Option<PathBuf> {
        let is_free = |name: &&PathBuf| {
            let is_other = self.names.binary_search(name).is_ok();
            let is_taken = searches.taken.get(*name).is_some_and(|of| of != listed);
            name.as_path() == listed || !is_other && !is_taken
        };
        let same_base = searches.listed.get(&base(listed))?;
        let free = || same_base.iter().rev().filter(is_free);
        let mut alike = free().filter(|name| before_flags(name) == before_flags(listed));
        alike.next().or_else(|| free().next()).cloned()
    }
}

fn base(name: &Path) -> Vec<u8> {
    let name = name.file_name().unwrap_or_default().as_bytes();
    base_of(name).to_owned()
}

fn before_flags(name: &Path) -> Option<&[u8]> {
    Some(flags_of(name)?.0)
}

fn number(name: &Path) -> Option<u32> {
    name.file_name().and_then(mh::number)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::mailbox::Format;
    use crate::mailbox::forms::kind::StartKind;

    fn maildir(names: &[&str]) -> (tempfile::TempDir, MessageFolder) {
        let folder = tempfile::tempdir().unwrap();
        for part in ["cur", "new", "tmp"] {
            fs::create_dir(folder.path().join(part)).unwrap();
        }
        for name in names {
            fs::write(folder.path().join(name), format!("Subject: {name}\n\n")).unwrap();
        }
        let place = MessageFolder::of(folder.path(), StartKind::Maildir, Format::Auto);
        (folder, place)
    }

    fn listed(place: &MessageFolder, before: &mut dyn FnMut(&str)) -> Vec<String> {
        let (messages, others) = place.messages_watched(before);
        assert!(others.is_empty(), "{others:?}");
        let names = messages.names().iter();
        names.map(|name| name.display().to_string()).collect()
    }

    #[test]
    fn message_renamed_between_two_listings_is_listed_once_under_its_new_name() {
        for (at, from, to) in [
            (2, "new/1.h", "cur/1.h:2,S"),
            (2, "cur/1.h:2,S", "new/1.h"),
            (3, "new/1.h", "cur/1.h:2,S"),
            (4, "new/1.h", "cur/1.h:2,S"),
            (4, "cur/1.h:2,S", "new/1.h"),
            (1, "cur/1.h:2,S", "cur/1.h:2,RS"),
            (2, "cur/1.h:2,S", "cur/1.h:2,RS"),
            (3, "cur/1.h:2,S", "cur/1.h:2,RS"),
            (4, "cur/1.h,S=9:2,S", "cur/1.h,S=9:2,RS"),
        ] {
            let (folder, place) = maildir(&[from, "cur/2.h:2,"]);
            let mut calls = 0;
            let names = listed(&place, &mut |_| {
                calls += 1;
                if calls == at {
                    fs::rename(folder.path().join(from), folder.path().join(to)).unwrap();
                }
            });
            let mut expected = [to, "cur/2.h:2,"];
            expected.sort_unstable();
            assert_eq!(names, expected, "{from} renamed before listing {at}");
        }
    }

    #[test]
    fn two_files_with_one_unique_name_are_both_listed_while_others_are_renamed() {
        let twins = ["cur/1.h,S=10:2,S", "cur/1.h,S=26:2,", "new/1.h,S=10"];
        let (folder, place) = maildir(&[&twins[..], &["new/2.h"]].concat());
        let mut calls = 0;
        let names = listed(&place, &mut |_| {
            calls += 1;
            if calls == 2 {
                fs::rename(
                    folder.path().join("new/2.h"),
                    folder.path().join("cur/2.h:2,S"),
                )
                .unwrap();
            }
        });
        assert_eq!(names, [twins[0], twins[1], "cur/2.h:2,S", twins[2]]);
    }

    #[test]
    fn message_renamed_back_and_forth_between_all_checks_is_listed_once() {
        let names = ["cur/1.h:2,", "cur/1.h:2,S"];
        let (folder, place) = maildir(&[names[0], "cur/2.h:2,"]);
        let (mut calls, mut checks) = (0, 0);
        let mut has = 0;
        let listed = listed(&place, &mut |name| {
            calls += 1;
            // The name that is checked next always exists, so both names seem to exist in each check.
            let wanted = names.iter().position(|it| *it == name);
            checks += usize::from(wanted.is_some());
            let wanted = wanted.unwrap_or(if calls == 4 { 1 } else { has });
            if wanted != has {
                let [from, to] = [has, wanted].map(|at| folder.path().join(names[at]));
                fs::rename(from, to).unwrap();
                has = wanted;
            }
        });
        assert!(checks >= 3, "{checks}");
        assert_eq!(listed, [names[0], "cur/2.h:2,"]);
    }

    #[test]
    fn two_names_of_one_file_are_both_listed_while_others_are_renamed() {
        let (folder, place) = maildir(&["cur/1.h:2,S", "new/2.h"]);
        let path = |name: &str| folder.path().join(name);
        fs::hard_link(path("cur/1.h:2,S"), path("cur/1.h:2,")).unwrap();
        let mut calls = 0;
        let names = listed(&place, &mut |_| {
            calls += 1;
            if calls == 2 {
                fs::rename(path("new/2.h"), path("cur/2.h:2,S")).unwrap();
            }
        });
        assert_eq!(names, ["cur/1.h:2,", "cur/1.h:2,S", "cur/2.h:2,S"]);
    }

    #[test]
    fn mail_delivered_during_each_listing_does_not_prolong_the_listing() {
        let (folder, place) = maildir(&["cur/1.h:2,S"]);
        let mut calls = 0;
        let names = listed(&place, &mut |_| {
            calls += 1;
            fs::write(folder.path().join(format!("new/9{calls}.h")), "").unwrap();
        });
        assert!(names.len() > 2 && calls <= 2 * (BUSY + 1), "{calls}");
    }

    #[test]
    fn directory_with_a_missed_message_in_each_listing_is_reported() {
        let (folder, place) = maildir(&["cur/1.h:2,S"]);
        let mut calls = 0;
        let (_, others) = place.messages_watched(&mut |part| {
            calls += 1;
            if part == "cur" {
                fs::write(folder.path().join(format!("cur/9{calls}.h:2,")), "").unwrap();
            }
        });
        assert_eq!(calls, 2 * MOST_LISTINGS);
        let why: Vec<String> = others.iter().map(|(_, why)| why.to_string()).collect();
        assert_eq!(why, [RESTLESS]);
    }

    #[test]
    fn directory_that_did_not_change_lately_is_listed_once() {
        let (folder, place) = maildir(&["cur/1.h:2,S"]);
        let old = SystemTime::now() - Duration::from_secs(60);
        for part in ["cur", "new"] {
            File::open(folder.path().join(part))
                .unwrap()
                .set_modified(old)
                .unwrap();
        }
        let mut calls = 0;
        assert_eq!(listed(&place, &mut |_| calls += 1), ["cur/1.h:2,S"]);
        assert_eq!(calls, 2);
    }

    #[test]
    fn message_renamed_after_the_listing_is_opened_under_its_new_name_and_a_deleted_one_is_gone() {
        let names = [
            "cur/1.h,S=10:2,S",
            "cur/1.h,S=26:2,",
            "cur/3.h:2,",
            "cur/4.h:2,",
            "new/2.h",
        ];
        let (folder, place) = maildir(&names);
        let rename = |from: &str, to: &str| {
            fs::rename(folder.path().join(from), folder.path().join(to)).unwrap();
        };
        let (messages, _) = place.messages();
        rename("new/2.h", "cur/2.h:2,S");
        rename(names[0], "cur/1.h,S=10:2,RS");
        rename(names[1], "cur/1.h,S=26:2,F");
        fs::remove_file(folder.path().join("cur/3.h:2,")).unwrap();
        for (listed, now) in [
            (names[0], Some("cur/1.h,S=10:2,RS")),
            (names[1], Some("cur/1.h,S=26:2,F")),
            (names[2], None),
            (names[3], Some(names[3])),
            (names[4], Some("cur/2.h:2,S")),
        ] {
            let opened = messages.open(Path::new(listed)).unwrap();
            let found = opened.as_ref().map(|(name, _)| name.as_path());
            assert_eq!(found, now.map(Path::new), "{listed}");
            if let Some((_, file)) = opened {
                let text = io::read_to_string(file).unwrap();
                assert_eq!(text, format!("Subject: {listed}\n\n"));
            }
        }
        rename("cur/2.h:2,S", "new/2.h");
        rename("cur/1.h,S=10:2,RS", "cur/1.h,S=10:2,T");
        let name = |listed: &str| messages.open(Path::new(listed)).unwrap().unwrap().0;
        assert_eq!(name("new/2.h"), Path::new("new/2.h"));
        assert_eq!(name(names[0]), Path::new("cur/1.h,S=10:2,T"));
    }

    #[test]
    fn messages_of_an_mh_folder_that_are_renumbered_during_the_run_are_read_or_reported() {
        type Renames = &'static [(&'static str, &'static str)];
        let cases: [(Renames, [bool; 2], &[&str]); 3] = [
            (&[], [true, true], &[]),
            // After message 1 was read, another program renumbers the messages: 1 becomes 3, 2 becomes 1, 3 becomes 2.
            (
                &[("3", "x"), ("1", "3"), ("2", "1"), ("x", "2")],
                [true, true],
                &["1"],
            ),
            (&[("3", "4")], [true, false], &[]),
        ];
        for (renames, are_there, missed) in cases {
            let folder = tempfile::tempdir().unwrap();
            for name in ["1", "2", "3"] {
                fs::write(folder.path().join(name), format!("Subject: {name}\n\n")).unwrap();
            }
            let place = MessageFolder::of(folder.path(), StartKind::Mh, Format::Mh);
            let (messages, others) = place.messages();
            assert!(others.is_empty());
            let open = |name: &str| messages.open(Path::new(name)).unwrap().is_some();
            assert!(open("1"));
            // The clock of a file system may have a resolution of 10 ms. After a longer pause, the change of the
            // directory is certain to change its time.
            std::thread::sleep(Duration::from_millis(20));
            for (from, to) in renames {
                fs::rename(folder.path().join(from), folder.path().join(to)).unwrap();
            }
            fs::write(
                folder.path().join("9"),
                "Subject: delivered during the run\n\n",
            )
            .unwrap();
            assert_eq!([open("2"), open("3")], are_there);
            let expected: Vec<PathBuf> = missed.iter().map(PathBuf::from).collect();
            assert_eq!(messages.missed().unwrap(), expected);
        }
    }

    #[test]
    fn messages_that_another_thread_keeps_renaming_are_all_listed_and_opened_once() {
        const COUNT: usize = 2000;
        let names: Vec<String> = (0..COUNT).map(|number| format!("new/{number}.h")).collect();
        let (folder, place) = maildir(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let of = |number: usize, round: usize| match round % 4 {
                    0 => format!("new/{number}.h"),
                    1 => format!("cur/{number}.h:2,"),
                    2 => format!("cur/{number}.h:2,S"),
                    _ => format!("cur/{number}.h:2,RS"),
                };
                let mut round = 0;
                while !is_over.load(Ordering::SeqCst) {
                    for number in 0..COUNT {
                        let [from, to] = [round, round + 1].map(|round| of(number, round));
                        fs::rename(folder.path().join(from), folder.path().join(to)).unwrap();
                    }
                    round += 1;
                }
            });
            let checked = std::panic::catch_unwind(|| {
                for _ in 0..10 {
                    let (messages, others) = place.messages();
                    let bases: HashSet<_> = messages.names().iter().map(|it| base(it)).collect();
                    let is_whole = bases.len() == COUNT && messages.names().len() == COUNT;
                    assert!(is_whole || !others.is_empty(), "{} listed", bases.len());
                    let mut opened = HashSet::new();
                    for name in messages.names() {
                        if let Some((_, file)) = messages.open(name).unwrap() {
                            assert!(opened.insert(io::read_to_string(file).unwrap()));
                        }
                    }
                    assert!(opened.len() * 10 > COUNT * 9, "{} opened", opened.len());
                }
            });
            is_over.store(true, Ordering::SeqCst);
            checked.unwrap();
        });
    }
}
