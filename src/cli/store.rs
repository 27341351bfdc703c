//! `embody store check` and `embody store gc`: verify a store, and remove objects that no mail refers to
//! (docs/store.md).

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::args::{StoreAction, StoreArgs};
use super::detach::{is_missing, missing};
use super::exit::{ProgramStatus, Signals};
use super::say::{self, harmless, harmless_sentence, shown};
use super::sources::{CliSources, holds_mail};
use super::streams::{self, is_reader_gone, write_error};
use super::wording::counted;
use crate::error::Error;
use crate::fetch::store::layers::Layers;
use crate::fetch::store::uses::{keys, references};
use crate::fetch::store::{Folder, Key, Mail, StoreObject};
use crate::mailbox::Stop;
use crate::platform::disk::layout::may_be_store;

/// Grace period after the creation of an object. Younger objects are never removed, because the mail that refers to
/// them may not be delivered yet.
const YOUNG: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn run(args: &StoreArgs) -> ProgramStatus {
    if args.folder.to_string_lossy().contains("://") {
        say::tell(
            "check and gc work only with a store in a folder of this computer, not with a store on a server",
        );
        return ProgramStatus::Usage;
    }
    if is_missing(&args.folder) {
        return ProgramStatus::told(&missing(args.folder.display()));
    }
    if let Err(why) = check_arguments(args) {
        return ProgramStatus::told(&why);
    }
    let signals = Signals::watch();
    let done = match args.action {
        StoreAction::Check => check(args, &signals.stop),
        StoreAction::Gc => collect(args, &signals.stop),
    };
    done.unwrap_or_else(|error| match error.downcast_ref() {
        Some(Error::Interrupted) => signals.status(),
        Some(error) if is_reader_gone(error) => ProgramStatus::READER_GONE,
        _ => ProgramStatus::told(&*error),
    })
}

type Failure = Box<dyn std::error::Error>;

/// Checks that the directory is a store and that no source is inside it. Without this check, a wrong directory would be
/// searched completely and each of its files reported.
fn check_arguments(args: &StoreArgs) -> Result<(), Error> {
    let store = &args.folder;
    let failed = Error::cannot_read(shown(store));
    if !may_be_store(store).map_err(failed)? {
        let what = "is not a store: a store contains .lock and .tmp, or objects such as ab/cd/SHA256; name the directory that you gave to detach with --store";
        return Err(Error::Usage(format!("{} {what}", shown(store)).into()));
    }
    let whole = store
        .canonicalize()
        .map_err(Error::cannot_read(shown(store)))?;
    for source in &args.sources {
        if source
            .canonicalize()
            .is_ok_and(|source| source.starts_with(&whole))
        {
            let what = "belongs to the store itself; name the mailboxes that refer to the store";
            return Err(Error::Usage(format!("{} {what}", shown(source)).into()));
        }
    }
    Ok(())
}

/// Maximum number of lines about one kind of error.
const MOST_LINES: usize = 20;

/// Prints the first lines and the number of the others. A wrong source can contain thousands of files without mail.
fn tell_first<T>(lines: impl ExactSizeIterator<Item = T>, line: impl Fn(T) -> String, what: &str) {
    let count = lines.len();
    for each in lines.take(MOST_LINES) {
        say::tell(&line(each));
    }
    if count > MOST_LINES {
        say::tell(&format!("and {} more {what}", count - MOST_LINES));
    }
}

fn listed(store: &Folder) -> Result<Vec<StoreObject>, Failure> {
    let (objects, strangers) = store.objects()?;
    let line = |stranger| {
        let path = shown(&store.path().join(stranger));
        format!("{path}: this file is not an object of the store; embody does not change the file")
    };
    tell_first(
        strangers.into_iter(),
        line,
        "files that are not objects of the store",
    );
    Ok(objects)
}

fn told(sources: &CliSources) -> bool {
    let line = |trouble: &String| harmless_sentence(trouble).into_owned();
    tell_first(
        sources.trouble.iter(),
        line,
        "problems with files that could not be read",
    );
    !sources.trouble.is_empty()
}

fn check(args: &StoreArgs, stop: &Stop) -> Result<ProgramStatus, Failure> {
    if args.delete || args.all_mail_is_here {
        let what =
            "--delete and --all-mail-is-here work only with gc, because check removes nothing";
        return Err(Error::Usage(what.into()).into());
    }
    let mut stdout = streams::report_output()?;
    let store = Folder::open_to_read(&args.folder)?;
    let mut wanted: BTreeMap<Key, (PathBuf, u64)> = BTreeMap::new();
    let sources = CliSources::read(
        &args.sources,
        store.path(),
        stop,
        &mut |path, at, window| {
            references(window, &mut |key, _| {
                wanted.entry(key).or_insert_with(|| (path.into(), at));
            });
        },
    )?;
    let objects = listed(&store)?;
    let mut lines = String::new();
    let mut wrong = 0;
    for object in &objects {
        stop.check()?;
        if let Err(why) = store.verify(&object.key) {
            wrong += 1;
            let _ = writeln!(lines, "damaged {} {}", object.key, say::error(&why));
        }
    }
    let mut missing = 0;
    for (key, (path, at)) in &wanted {
        let found = objects.binary_search_by_key(key, |object| object.key);
        if found.is_err() {
            missing += 1;
            let _ = writeln!(lines, "missing {key} {} near byte {at}", shown(path));
        }
    }
    let incomplete = told(&sources);
    let is_well = wrong + missing == 0 && !incomplete;
    if !args.quiet || !is_well {
        let octets: u64 = objects.iter().map(|object| object.size).sum();
        let _ = write!(
            lines,
            "{}, {}, {wrong} damaged",
            counted(objects.len() as u64, "object"),
            counted(octets, "byte")
        );
        if !args.sources.is_empty() {
            let read = counted(sources.files, "file");
            let referred = counted(wanted.len() as u64, "object");
            let _ = write!(
                lines,
                "; {read} with {} bytes read; references to {referred} found, {missing} of these missing in the store",
                sources.octets
            );
        }
        lines.push('\n');
    }
    stdout.write_all(lines.as_bytes()).map_err(write_error)?;
    Ok(if is_well {
        ProgramStatus::Success
    } else {
        ProgramStatus::Trouble
    })
}

fn unread_users(
    args: &StoreArgs,
    store: &Folder,
    sources: &CliSources,
    stop: &Stop,
) -> Result<Vec<String>, Failure> {
    let users = if args.all_mail_is_here {
        None
    } else {
        store.users()?
    };
    let mut unread = Vec::new();
    for (user, entry) in users.into_iter().flatten() {
        let Mail::At(path) = &user.mail else {
            unread.push(format!(
                "{user} put objects into the store, but the location of the mail is not recorded; if the named sources contain all of this mail, add --all-mail-is-here"
            ));
            continue;
        };
        let why = match sources.include(path, &args.sources) {
            Ok(true) => match holds_mail(path, stop) {
                Ok(()) => continue,
                Err(why @ Error::Interrupted) => return Err(why.into()),
                Err(why) => say::error(&why),
            },
            Ok(false) => "this mailbox was not named; name this mailbox, too".to_owned(),
            Err(_) if path.to_str().is_some_and(|path| path.contains("://")) => {
                "this mail is on a server, which gc cannot read; copy the mail to files (embody convert), name the copy, and add --all-mail-is-here".to_owned()
            }
            Err(why) if why.kind() == io::ErrorKind::NotFound => format!(
                "this mailbox no longer exists; if the mailbox was renamed, name its new path; then remove {}",
                store.path().join(entry).display()
            ),
            Err(why) => format!("this mailbox cannot be read: {why}"),
        };
        unread.push(format!("{user} put objects into the store: {why}"));
    }
    Ok(unread)
}

fn collect(args: &StoreArgs, stop: &Stop) -> Result<ProgramStatus, Failure> {
    if args.sources.is_empty() {
        let what = "name all mailboxes that may refer to the store, because gc removes objects without references";
        return Err(Error::Usage(what.into()).into());
    }
    let begun = SystemTime::now();
    let mut stdout = streams::report_output()?;
    let store = Folder::open_to_read(&args.folder)?;
    let objects = listed(&store)?.into_iter();
    let mut unused: HashMap<Key, StoreObject> =
        objects.map(|object| (object.key, object)).collect();
    let all = unused.len();
    if all > 0 && !args.all_mail_is_here && store.users()?.is_none() {
        say::tell(&format!(
            "{}: the store has no list of its mailboxes, because an earlier version of embody wrote to it: name all mail that refers to the store",
            shown(store.path())
        ));
    }
    let mut used = Vec::new();
    let mut use_of = |window: &[u8], used: &mut Vec<Key>| {
        keys(window, &mut |key, _, _| {
            if unused.remove(&key).is_some() {
                used.push(key);
            }
        });
    };
    let mut sources = CliSources::read(&args.sources, store.path(), stop, &mut |_, _, window| {
        use_of(window, &mut used);
    })?;
    // An object can itself be a mail that refers to further objects. The content of each used object is therefore
    // searched for references as well.
    while let Some(key) = used.pop() {
        stop.check()?;
        let mut layers = Layers::default();
        let mut visit = |window: &[u8]| use_of(window, &mut used);
        let read = store.pieces(&key, &mut |piece| layers.push(piece, &mut visit));
        layers.finish(&mut visit);
        if let Err(why) = read {
            sources.trouble.insert(say::error(&why));
        }
    }
    let users = unread_users(args, &store, &sources, stop)?;
    if args.delete {
        sources.trouble.extend(users);
    } else {
        // Without `--delete` nothing is removed, so a mailbox that was not named is only reported.
        users.iter().for_each(|user| say::tell(&harmless(user)));
    }
    let incomplete = told(&sources);
    let old = begun - YOUNG;
    let mut garbage: Vec<StoreObject> = unused.into_values().collect();
    garbage.sort_unstable_by_key(|object| object.key);
    let young = garbage.len();
    garbage.retain(|object| object.modified < old);
    let young = young - garbage.len();
    let delete = args.delete && !incomplete && !garbage.is_empty();
    let store = if delete {
        // Locks the store, so that other processes cannot add objects. An object that was added again since this
        // command started has a new modification time, so it is kept.
        Folder::open_alone(store.path())?
    } else {
        store
    };
    let (mut count, mut octets) = (0_u64, 0_u64);
    let mut failed = false;
    for object in &garbage {
        stop.check()?;
        if delete {
            match store.remove(&object.key, old) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(why) => {
                    say::tell(&say::error(&why));
                    failed = true;
                    continue;
                }
            }
        }
        count += 1;
        octets += object.size;
        let line = format!("{} {}\n", object.key.path(), object.size);
        stdout.write_all(line.as_bytes()).map_err(write_error)?;
    }
    let done = match (delete, args.delete) {
        (true, _) => "removed",
        (false, true) if incomplete => {
            "unused by the mail that could be read; nothing was removed, because some mail could not be read"
        }
        (false, _) => "unused",
    };
    if !args.quiet {
        say::tell(&format!(
            "{}, {}, {} bytes read; {}, {octets} bytes {done}; unused but younger than a day: {young}",
            counted(all as u64, "object"),
            counted(sources.files, "file"),
            sources.octets,
            counted(count, "object"),
        ));
    }
    Ok(if incomplete || failed {
        ProgramStatus::Trouble
    } else {
        ProgramStatus::Success
    })
}
