//! What a run begins with: what there is to convert, what is said of the rest, and what killed runs left.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::mailbox::find::{self, Finds, Found, Kind};
use crate::mailbox::not_mail::NotMail;
use crate::mailbox::place::folder::MessageFolder;
use crate::mailbox::place::temporary;
use crate::mailbox::read::cut;
use crate::mailbox::{Format, Observer, Options, Stop, Summary};
use crate::platform::OsStrExt as _;

/// Looks also where only a folder or a message of a Maildir was named.
pub(crate) fn look_at(
    source: &Path,
    options: &Options,
    is_in_place: bool,
    stop: &Stop,
) -> Result<Finds, Error> {
    let may_be = matches!(options.format, Format::Auto | Format::Maildir);
    let within = may_be.then(|| MessageFolder::within(source)).flatten();
    let finds = match within {
        Some(place) if place.is_folder() || is_in_place => {
            Finds::of_source(source, Kind::Maildir, None)
        }
        Some(_) => find::find(source, Format::Eml, stop)?,
        None => find::find(source, options.format, stop)?,
    };
    if options.range.is_some() {
        cut::check(source, &finds)?;
    }
    Ok(finds)
}

/// What an earlier run kept beside a file may be the only original: it is no mailbox of its own.
pub(crate) fn pass_over_backups(finds: &mut Finds, suffix: &OsStr) {
    let paths: HashSet<PathBuf> = finds
        .mailboxes
        .iter()
        .filter(|found| !found.kind.is_folder())
        .map(|found| found.path.clone())
        .collect();
    let is_backup = |found: &Found| {
        let path = found.path.as_os_str().as_bytes();
        let original = path.strip_suffix(suffix.as_bytes());
        let is_there = |path| paths.contains(Path::new(OsStr::from_bytes(path)));
        !found.relative.as_os_str().is_empty() && original.is_some_and(is_there)
    };
    let what = NotMail::Beside("the backup of an earlier run");
    let backups = finds.mailboxes.extract_if(.., |found| is_backup(found));
    finds
        .skipped
        .extend(backups.map(|found| (found.path, what)));
    finds.skipped.sort();
}

pub(crate) fn begun<S>(finds: &Finds, observer: &dyn Observer<S>) -> Summary {
    let mut objects: BTreeMap<&Path, u64> = BTreeMap::new();
    for (path, other) in &finds.skipped {
        observer.skipped(path, other.name());
        match other {
            NotMail::Ours(what) => observer.passed_over(path, what),
            NotMail::Object => *objects.entry(store_of(path)).or_default() += 1,
            _ => {}
        }
    }
    for (store, count) in objects {
        let what = format!("{count} objects of a store of detached attachments");
        observer.passed_over(store, &what);
    }
    for (path, why) in &finds.unread {
        observer.damaged(path, &why.as_str().into());
    }
    Summary {
        damaged: finds.unread.len() as u64,
        skipped_files: finds.skipped.len() as u64,
        ..Summary::default()
    }
}

/// The run may begin below the store: then it is the folder.
fn store_of(object: &Path) -> &Path {
    let named = |path: &&Path| !path.as_os_str().is_empty();
    let mut above = object.ancestors().skip(1).filter(named);
    let folder = above.next().unwrap_or(object);
    above.nth(1).unwrap_or(folder)
}

pub(crate) fn sweep(finds: &Finds) {
    let mut folders = BTreeSet::new();
    for found in &finds.mailboxes {
        match found.kind {
            Kind::Maildir | Kind::Mh => {
                let place = MessageFolder::of(&found.path, found.kind);
                folders.extend([place.writing_in(&place.folder), place.folder]);
            }
            _ => {
                let target = found.path.canonicalize();
                let target = target.as_deref().unwrap_or(&found.path);
                folders.insert(temporary::folder_of(target).to_owned());
            }
        }
    }
    for folder in folders {
        temporary::sweep(&folder);
    }
}
