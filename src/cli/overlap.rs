//! Refuses to compare a mailbox with itself or with a part of itself: nothing would be missing, and a user who then deletes
//! OLD would delete NEW, too. Likewise, `inspect --duplicates` must not read a mailbox twice.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::say::shown;
use super::survey::quoted;
use crate::error::Error;
#[cfg(all(unix, feature = "imap"))]
use crate::imap::account::{UrlLocation, is_url};
use crate::mailbox::ReadOptions;
use crate::platform::MetadataExt as _;

const ADVICE: &str = "so every message would be found; name a copy of the mail as NEW";

/// Checks that OLD and NEW are different files or directories, and that neither is inside the other. With `--ignore`, a part of
/// a directory is not read, so it may be the other mailbox.
///
/// # Errors
/// Returns [`Error::Usage`] otherwise.
pub(super) fn check_apart(old: &Path, new: &Path, options: &ReadOptions) -> Result<(), Error> {
    if is_same(old, new) {
        let kind = if new.is_dir() { "directory" } else { "file" };
        let what = format!("{}: OLD and NEW are the same {kind}, {ADVICE}", shown(new));
        return Err(Error::Usage(what.into()));
    }
    for ((inner, name), (outer, name_of_outer)) in
        [((new, "NEW"), (old, "OLD")), ((old, "OLD"), (new, "NEW"))]
    {
        let Some(relative) = place_within(inner, outer) else {
            continue;
        };
        if !options.ignore.matches(&relative) {
            let what = format!(
                "{}: {name} is a part of {name_of_outer} ({}); move it to another directory, or leave it out of \
                 {name_of_outer} with --ignore {}",
                shown(inner),
                shown(outer),
                anchored(&relative)
            );
            return Err(Error::Usage(what.into()));
        }
    }
    Ok(())
}

/// Checks that the Maildirs of one side do not contain symbolic links `cur` or `new` to a Maildir of the other side. `links`
/// contains these links of OLD and of NEW.
///
/// # Errors
/// Returns [`Error::Usage`] otherwise.
pub(super) fn check_links(sides: [&Path; 2], links: [&[PathBuf]; 2]) -> Result<(), Error> {
    let [of_old, of_new] = links;
    let targets: Vec<PathBuf> = of_old
        .iter()
        .filter_map(|link| link.canonicalize().ok())
        .collect();
    let leads_into = |link: &PathBuf, other: &Path| place_within(link, other).is_some();
    let is_shared = |link: &&PathBuf| {
        link.canonicalize()
            .is_ok_and(|target| targets.contains(&target))
    };
    let [old, new] = sides;
    let wrong = of_new
        .iter()
        .find(|link| leads_into(link, old) || is_shared(link));
    match wrong.or_else(|| of_old.iter().find(|link| leads_into(link, new))) {
        Some(link) => {
            let what = format!(
                "{}: this link makes OLD and NEW the same mailbox, {ADVICE}",
                shown(link)
            );
            Err(Error::Usage(what.into()))
        }
        None => Ok(()),
    }
}

/// Checks that OLD and NEW are not the same folder of a server.
///
/// # Errors
/// Returns [`Error::Usage`] if they are, or if one of them is the account that contains the other one.
#[cfg(all(unix, feature = "imap"))]
pub(super) fn check_accounts(old: &Path, new: &Path, allow_plaintext: bool) -> Result<(), Error> {
    let location = |side: &Path| {
        let url = side.to_str().filter(|url| is_url(url))?;
        Some(UrlLocation::of(url, allow_plaintext))
    };
    let (Some(old), Some(new)) = (location(old).transpose()?, location(new).transpose()?) else {
        return Ok(());
    };
    let account = |it: &UrlLocation| (it.host.to_ascii_lowercase(), it.user.clone());
    let is_inbox = |name: &str| name.eq_ignore_ascii_case("inbox");
    let is_same_folder = match (&old.choice.folder, &new.choice.folder) {
        (Some(one), Some(other)) => one == other || is_inbox(one) && is_inbox(other),
        _ => true,
    };
    if account(&old) == account(&new) && is_same_folder {
        let what = format!(
            "OLD and NEW are mail of the same folder of {} at {}, {ADVICE}",
            new.user, new.host
        );
        return Err(Error::Usage(what.into()));
    }
    Ok(())
}

/// Checks that no source of `inspect --duplicates` is read twice, because each of its mails would then count as a duplicate.
///
/// # Errors
/// Returns [`Error::Usage`] otherwise.
pub(super) fn check_sources(sources: &[PathBuf], options: &ReadOptions) -> Result<(), Error> {
    for (number, source) in sources.iter().enumerate() {
        for other in sources.iter().take(number) {
            let (one, two) = (shown(other), shown(source));
            let is_within = |inner: &Path, outer: &Path| {
                place_within(inner, outer)
                    .is_some_and(|relative| !options.ignore.matches(&relative))
            };
            let what = if is_same(other, source) {
                format!("{two} is the same file or directory as {one}")
            } else if is_within(source, other) {
                format!("{two} is a part of {one}")
            } else if is_within(other, source) {
                format!("{one} is a part of {two}")
            } else {
                continue;
            };
            let why = "so each mail in it would count as a duplicate; name each mailbox once";
            return Err(Error::Usage(format!("{what}, {why}").into()));
        }
    }
    Ok(())
}

/// Returns the arguments of the `compare` command for a source and its result. `ignored` contains the patterns of `--ignore` of
/// the run. If the result is inside the source, the command leaves it out of the source.
pub(super) fn compare_arguments(old: &str, new: &str, ignored: &[OsString]) -> String {
    let patterns = ignored.iter().map(|it| quoted(&it.to_string_lossy()));
    let inside = place_within(Path::new(new), Path::new(old));
    let options = patterns.chain(inside.iter().map(|place| anchored(place)));
    let arguments = format!("{} {}", quoted(old), quoted(new));
    options.fold(arguments, |all, pattern| {
        format!("{all} --ignore {pattern}")
    })
}

/// Returns a pattern of `--ignore` for one place in a source, quoted for a shell.
fn anchored(place: &Path) -> String {
    quoted(&format!("./{}", place.display()))
}

fn is_same(one: &Path, other: &Path) -> bool {
    let number = |path| fs::metadata(path).map(|it| (it.dev(), it.ino()));
    matches!((number(one), number(other)), (Ok(one), Ok(other)) if one == other)
}

/// Returns the path of `inner` relative to the directory `outer`. Returns `None` if it is not inside.
fn place_within(inner: &Path, outer: &Path) -> Option<PathBuf> {
    let directory = fs::metadata(outer).ok().filter(fs::Metadata::is_dir)?;
    let whole = inner.canonicalize().ok()?;
    // Directories are compared by their numbers, because a file system can have several spellings of one name.
    let is_outer = |path: &&Path| {
        fs::metadata(path)
            .is_ok_and(|it| (it.dev(), it.ino()) == (directory.dev(), directory.ino()))
    };
    let found = whole.ancestors().skip(1).find(is_outer)?;
    whole.strip_prefix(found).ok().map(Path::to_owned)
}
