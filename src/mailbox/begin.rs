//! What a run begins with: what there is to convert, what is said of the rest, and what killed runs left.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::cut;
use super::find::{self, Finds, Found, Kind};
use super::place::{Destination, Place};
use super::replace;
use super::temporary;
use super::{Format, Options, Progress, Stop, Summary};
use crate::error::Error;

/// What there is to convert: what [`find::find`] sees, and a Maildir also where only a folder or a
/// message of one was named.
pub(super) fn look_at(
    source: &Path,
    options: &Options,
    destination: Destination<'_>,
    stop: &Stop,
) -> Result<Finds, Error> {
    let finds = find_in(source, options.format, destination, stop)?;
    if options.range.is_some() {
        cut::check(source, &finds)?;
    }
    Ok(finds)
}

fn find_in(
    source: &Path,
    format: Format,
    destination: Destination<'_>,
    stop: &Stop,
) -> Result<Finds, Error> {
    let may_be = matches!(format, Format::Auto | Format::Maildir);
    if may_be && let Some(place) = Place::within(source) {
        // One message beside another is a file like any other.
        if place.is_folder() || matches!(destination, Destination::InPlace) {
            return Ok(Finds {
                mailboxes: vec![Found {
                    path: source.into(),
                    relative: PathBuf::new(),
                    kind: Kind::Maildir,
                    method: None,
                }],
                ..Finds::default()
            });
        }
        return find::find(source, Format::Eml, stop);
    }
    find::find(source, format, stop)
}

/// Whether two names are those of one file.
pub(super) fn is_same_file(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => replace::is_same(&one, &other),
        _ => false,
    }
}

/// Tells what was found and is no mail, and what could not be looked at.
pub(super) fn begun(finds: &Finds, progress: &dyn Progress) -> Summary {
    for (path, other) in &finds.skipped {
        progress.skipped(path, other.name());
    }
    for (path, why) in &finds.unread {
        progress.damaged(path, &why.as_str().into());
    }
    Summary {
        damaged: finds.unread.len() as u64,
        skipped_files: finds.skipped.len() as u64,
        ..Summary::default()
    }
}

/// Takes away what killed runs left where we are to work.
pub(super) fn sweep(finds: &Finds) {
    let mut folders = BTreeSet::new();
    for found in &finds.mailboxes {
        match found.kind {
            Kind::Maildir | Kind::Folder(_) => {
                folders.extend(Place::of(&found.path, found.kind).folders_of_ours());
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
