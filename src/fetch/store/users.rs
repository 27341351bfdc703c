//! The list of the mailboxes that use a store: `.users/`, one file for each (docs/store.md). A garbage collection removes
//! objects without a reference, so it needs the mail of every user in the list, and removes nothing if one is missing.
//!
//! * An entry is written like an object: to `.tmp/`, synced, renamed to the hash of its content, and the directory is synced.
//!   This is done before the first object of the user, so that no mail refers to an object whose user is not in the list.
//! * No entry is overwritten or removed. Another user with write access can add entries, which stops garbage collections, and
//!   remove some, but could also remove the objects themselves.
//! * After [`MOST_USERS`] entries, each uid gets a single further entry, which stops every garbage collection.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::Dir;

use super::places::StorePlaces;
use super::{MOST_USERS, Mail, StoreError, User};
use crate::key::Key;
use crate::platform::disk::layout::{STORE_TEMPORARIES, STORE_USERS};
use crate::platform::disk::{absent, names, open_file, open_folder, sync};

/// Maximum length of an entry in bytes. A path in it has at most 4096 bytes.
const LONGEST: u64 = 64 << 10;

fn written(user: &User) -> Vec<u8> {
    let mail = match &user.mail {
        Mail::At(path) => path.as_os_str().as_bytes(),
        Mail::Filtered => b"standard input",
        Mail::Unlisted => b"more mailboxes than are listed",
    };
    [format!("uid {}\n", user.uid).as_bytes(), mail, b"\n"].concat()
}

fn read(octets: &[u8]) -> Option<User> {
    let line = memchr::memchr(b'\n', octets)?;
    let (first, rest) = octets.split_at_checked(line)?;
    let uid = std::str::from_utf8(first.strip_prefix(b"uid ")?).ok()?;
    let mail = rest.strip_prefix(b"\n")?.strip_suffix(b"\n")?;
    let is_place = mail.starts_with(b"/") || memchr::memmem::find(mail, b"://").is_some();
    let user = User {
        uid: uid.parse().ok()?,
        mail: match mail {
            b"standard input" => Mail::Filtered,
            _ if is_place => Mail::At(PathBuf::from(std::ffi::OsStr::from_bytes(mail))),
            _ => Mail::Unlisted,
        },
    };
    (written(&user) == octets).then_some(user)
}

pub(super) fn list(
    places: &StorePlaces,
    temporaries: &Arc<OwnedFd>,
    user: &User,
) -> Result<(), StoreError> {
    let made = places.make_folder(&places.root, STORE_USERS);
    let folder = places.at(STORE_USERS, made)?;
    let listed = written(user);
    let name = Key::of(&listed).to_string();
    let beneath = format!("{STORE_USERS}/{name}");
    match places.at(&beneath, absent(open_file(&folder, &name)))? {
        Some(file) => {
            if places.at(&beneath, entry_of(file))? != listed {
                return Err(places.not_its_name(&beneath));
            }
        }
        None if user.mail != Mail::Unlisted
            && places.at(STORE_USERS, count(&folder))? >= MOST_USERS =>
        {
            let mail = Mail::Unlisted;
            return list(places, temporaries, &User { mail, ..*user });
        }
        None => {
            let entry = places.write(temporaries, &listed)?;
            places.at(STORE_TEMPORARIES, sync(&entry.file))?;
            // If another process has just created the entry, nothing is lost: the name is the hash of the content, so
            // both are equal.
            places.at(STORE_USERS, entry.become_new(&folder, &name))?;
        }
    }
    // An existing entry is synced, too: the process that wrote it may not have synced yet.
    let synced = sync(&folder).and_then(|()| sync(&places.root));
    places.at(STORE_USERS, synced)
}

fn count(folder: &OwnedFd) -> io::Result<usize> {
    Ok(Dir::read_from(folder)?.take(MOST_USERS + 2).count())
}

pub(super) fn all(places: &StorePlaces) -> Result<Option<Vec<(User, PathBuf)>>, StoreError> {
    let folder = absent(open_folder(&places.root, STORE_USERS));
    let Some(folder) = places.at(STORE_USERS, folder)? else {
        return Ok(None);
    };
    let mut users = Vec::new();
    for name in places.at(STORE_USERS, names(&folder))? {
        let beneath = format!("{STORE_USERS}/{name}");
        let octets = places.at(&beneath, open_file(&folder, &name).and_then(entry_of))?;
        match read(&octets).filter(|_| Key::of(&octets).to_string() == name) {
            Some(user) => users.push((user, PathBuf::from(beneath))),
            None => {
                let path = places.path.join(&beneath);
                let what = format!(
                    "{} is in the list of the users of the store, but embody did not write this file; move the file out of the store",
                    path.display()
                );
                return Err(StoreError::lasting(what));
            }
        }
    }
    Ok(Some(users))
}

fn entry_of(file: File) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    file.take(LONGEST).read_to_end(&mut octets)?;
    Ok(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_entry_of_any_path_is_read_as_it_was_written() {
        use std::ffi::OsStr;
        for mail in [
            Mail::Filtered,
            Mail::Unlisted,
            Mail::At("/home/a/Maildir".into()),
            Mail::At("imaps://me@example.org/".into()),
            Mail::At("/".into()),
            Mail::At("/a\nuid 0\nstandard input".into()),
            Mail::At("/a\n".into()),
            Mail::At(OsStr::from_bytes(b"/\xff\0x").into()),
        ] {
            let user = User { uid: 1000, mail };
            assert_eq!(read(&written(&user)), Some(user));
        }
        for octets in [
            "",
            "uid 1\n",
            "uid 1\n/a",
            "uid 01\n/a\n",
            "uid x\n/a\n",
            "uid 1\na/b\n",
            "/a\n",
        ] {
            assert_eq!(read(octets.as_bytes()), None, "{octets:?}");
        }
    }
}
