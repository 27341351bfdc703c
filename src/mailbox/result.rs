//! Determines the format and the name of the result of a conversion: one mailbox or a directory of mailboxes, in the
//! format of the source or in another one. An output name that belongs to another format is refused before a file is
//! created.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::detail::{Detail, Setting};
use crate::error::Error;
use crate::mailbox::begin::look_at;
use crate::mailbox::compressed::{Method, plain_suffix};
use crate::mailbox::failure::cannot_write;
use crate::mailbox::find::{Finds, Found, Kind};
use crate::mailbox::forms::emlx;
use crate::mailbox::place::journal;
use crate::mailbox::place::replace::differs_in_case;
use crate::mailbox::read::packed::stem;
use crate::mailbox::{Format, Options, Stop};
use crate::platform::{OsStrExt as _, folded};

fn own_form(kind: Kind) -> Format {
    match kind {
        Kind::Mbox | Kind::Eudora | Kind::Archive | Kind::Pst => Format::Mbox,
        Kind::Maildir => Format::Maildir,
        Kind::Mh => Format::Mh,
        Kind::Eml | Kind::Msg => Format::Eml,
    }
}

pub(crate) fn is_moved(kind: Kind, options: &Options) -> bool {
    let wanted = options.output_format;
    let is_other = wanted != Format::Auto && wanted != own_form(kind);
    options.by_label.is_some() || matches!(kind, Kind::Eudora | Kind::Pst) || is_other
}

pub(crate) fn form(kind: Kind, options: &Options) -> Format {
    match (options.output_format, own_form(kind)) {
        // embody does not write MH folders, so the messages of an MH folder are written to a Maildir.
        (Format::Auto, Format::Mh) => Format::Maildir,
        (Format::Auto, own) => own,
        (wanted, _) => wanted,
    }
}

/// Groups the mailboxes by the output mailbox to which they are written: single messages of one directory go to one
/// mailbox. The keys are paths relative to the source.
pub(crate) fn groups<'f>(
    finds: &'f Finds,
    options: &Options,
) -> BTreeMap<&'f Path, Vec<&'f Found>> {
    let mut groups: BTreeMap<&Path, Vec<&Found>> = BTreeMap::new();
    for found in &finds.mailboxes {
        let relative = found.relative.as_path();
        let is_one_of_many =
            matches!(found.kind, Kind::Eml | Kind::Msg) && is_moved(found.kind, options);
        let key = if is_one_of_many {
            emlx::mailbox_of(&found.path, relative)
                .or(relative.parent())
                .unwrap_or(relative)
        } else {
            relative
        };
        groups.entry(key).or_default().push(found);
    }
    groups
}

/// Returns the format of the result if the result is one mailbox or one message. Returns `None` if it is a directory of
/// mailboxes or messages.
pub(crate) fn result(finds: &Finds, options: &Options) -> Option<Format> {
    let groups = groups(finds, options);
    let (key, found) = groups.first_key_value()?;
    let kind = found.first()?.kind;
    // An Outlook mailbox contains folders, so its result is a directory.
    if kind == Kind::Pst
        || groups.len() > 1
        || !key.as_os_str().is_empty()
        || options.by_label.is_some()
    {
        return None;
    }
    if is_moved(kind, options) {
        Some(form(kind, options)).filter(|it| matches!(it, Format::Mbox | Format::Maildir))
    } else {
        Some(own_form(kind))
    }
}

fn named(path: &Path) -> Option<Kind> {
    let suffix = plain_suffix(path)?.to_str()?.to_ascii_lowercase();
    match suffix.as_str() {
        "mbox" | "mbx" => Some(Kind::Mbox),
        "eml" | "emlx" => Some(Kind::Eml),
        "msg" | "oft" => Some(Kind::Msg),
        "pst" | "ost" => Some(Kind::Pst),
        "zip" | "tar" | "tgz" | "tbz2" | "txz" => Some(Kind::Archive),
        _ => None,
    }
}

/// Refuses mailboxes whose output names differ only in case if the file system ignores case, because one mailbox would
/// overwrite the other. `folds` returns whether the file system ignores case. This may need the disk, so `folds` is
/// called only if there are such names.
pub(crate) fn check_case(
    finds: &Finds,
    destination: &Path,
    options: &Options,
    folds: impl FnOnce() -> bool,
) -> Result<(), Error> {
    let mut known: HashMap<String, &Path> = HashMap::new();
    for key in groups(finds, options).keys() {
        for part in key.ancestors().filter(|it| !it.as_os_str().is_empty()) {
            let other = known.insert(folded(part.as_os_str()), part);
            if let Some(other) = other.filter(|other| *other != part) {
                let differs = differs_in_case(other.as_os_str());
                return if folds() {
                    Err(cannot_write(&destination.join(part))(differs))
                } else {
                    Ok(())
                };
            }
        }
    }
    Ok(())
}

pub(crate) fn result_of(source: &Path, options: &Options, stop: &Stop) -> Option<Format> {
    result(&look_at(source, options, false, stop).ok()?, options)
}

/// Checks the output name before the conversion starts. The source is read for this only if the name or the options
/// could conflict with the format of the result. Other errors are left for the conversion to report.
pub(crate) fn check_early(
    source: &Path,
    destination: Option<&Path>,
    options: &Options,
    stop: &Stop,
) -> Result<(), Error> {
    let says_nothing = destination.is_none_or(|destination| {
        named(destination).is_none()
            && Method::of_name(destination).is_none()
            && !is_folder(destination)
    });
    let is_plain = options.output_format == Format::Auto && options.by_label.is_none();
    if is_plain && says_nothing {
        return Ok(());
    }
    let Ok(finds) = look_at(source, options, false, stop) else {
        return Ok(());
    };
    match destination {
        Some(destination) => check(source, &finds, destination, options),
        None => check_open(source, result(&finds, options)),
    }
}

fn is_folder(destination: &Path) -> bool {
    destination.is_dir() || destination.as_os_str().as_bytes().ends_with(b"/")
}

/// Returns an error if the output name belongs to another format than the result, or if embody cannot write the result.
/// The error contains both ways out: another name, or another format.
pub(crate) fn check(
    source: &Path,
    finds: &Finds,
    destination: &Path,
    options: &Options,
) -> Result<(), Error> {
    let mut found = finds.mailboxes.iter();
    if options.range.is_some() && found.any(|found| is_moved(found.kind, options)) {
        let detail = Detail::default().naming(Setting::Range);
        let why = " works only if the source is one mailbox and the result has the same format";
        return Err(Error::Usage(detail.then(why)));
    }
    let is_archive = finds.mailboxes.iter().any(|it| it.kind == Kind::Archive);
    // If an archive contains mailboxes of Outlook, its result is a directory, which an interrupted run can have created.
    let is_of_stopped_run = is_archive && journal::is_beside(destination);
    let is_folder = is_folder(destination) && !is_of_stopped_run;
    let result = result(finds, options);
    let what = match result {
        Some(Format::Mbox) => "an mbox",
        Some(Format::Eml) => "one message",
        Some(Format::Maildir) => "a Maildir",
        Some(Format::Mh) => "an MH folder",
        _ if options.by_label.is_some() => "a folder with a mailbox for each label",
        _ => "a folder",
    };
    let is_file = matches!(result, Some(Format::Mbox | Format::Eml));
    let said = named(destination);
    let (says, way_out) = match (said, is_file) {
        (_, true) if is_folder && is_archive => (
            "a folder",
            "name a new file, or name a new directory if the archive contains .pst files",
        ),
        (_, true) if is_folder => ("a folder", "name a file"),
        (Some(Kind::Archive), _) => (
            "the name of an archive",
            "name an mbox, because embody does not write archives",
        ),
        (Some(Kind::Msg | Kind::Pst), _) => (
            "the name of a file of Outlook",
            "choose another name, because embody does not write files of Outlook",
        ),
        (Some(Kind::Eml), _) if result == Some(Format::Mbox) => {
            ("the name of a message", "choose another name")
        }
        (Some(Kind::Mbox), _) if result == Some(Format::Eml) => {
            ("the name of an mbox", "choose another name")
        }
        // Apple Mail has directories whose names end in `.mbox`, so this name is allowed for a directory if the source
        // has it too.
        (Some(said), false) if !source.is_dir() || named(source) != Some(said) => match said {
            Kind::Mbox => ("the name of an mbox", "name a folder"),
            _ => ("the name of a message", "name a folder"),
        },
        (None, false) if Method::of_name(destination).is_some() => {
            ("the name of a file", "name a folder")
        }
        _ => return Ok(()),
    };
    let shown = destination.display();
    let what = format!("{shown} is {says}, but the result would be {what}; {way_out}");
    let detail = Detail::from(what);
    let wanted = match (is_folder && is_file, said) {
        (true, _) => (", or make a folder with ", " maildir"),
        (_, Some(Kind::Mbox) | None)
            if options.by_label.is_none() && options.output_format != Format::Mbox =>
        {
            (", or make an mbox with ", " mbox")
        }
        _ => return Err(Error::Usage(detail)),
    };
    let detail = detail.then(wanted.0).naming(Setting::OutputFormat);
    Err(Error::Usage(detail.then(wanted.1)))
}

pub(crate) fn check_open(source: &Path, result: Option<Format>) -> Result<(), Error> {
    if matches!(result, Some(Format::Mbox | Format::Eml)) {
        return Ok(());
    }
    let what = format!(
        "{}: the result is a directory of mail; name a directory with ",
        source.display()
    );
    Err(Error::Usage(Detail::from(what).naming(Setting::Output)))
}

pub(crate) fn named_in_folder(key: &Path, kind: Kind, options: &Options) -> PathBuf {
    if !is_moved(kind, options) && kind != Kind::Archive {
        return match kind {
            Kind::Msg => key.with_extension("eml"),
            _ => key.to_owned(),
        };
    }
    let name = key.file_name().unwrap_or(OsStr::new("INBOX"));
    let stem = OsString::from(stem(key));
    let plain = match named(Path::new(name)) {
        _ if kind == Kind::Archive => &stem,
        Some(_) if !kind.is_folder() && kind != Kind::Pst => {
            Path::new(name).file_stem().unwrap_or(name)
        }
        _ => name,
    };
    // In Maildir++ the name of a folder begins with a dot. A file with this name would be hidden, so the dot is
    // removed.
    let bytes = plain.as_bytes();
    let visible = bytes
        .strip_prefix(b".")
        .filter(|rest| !rest.is_empty())
        .unwrap_or(bytes);
    let mut name = OsStr::from_bytes(visible).to_owned();
    if form(kind, options) == Format::Mbox && options.by_label.is_none() {
        name.push(".mbox");
    }
    key.with_file_name(name)
}

/// Returns the names of the nested folders that lead to a mailbox. Programs nest folders as directories, with dots
/// (Maildir++), or in directories whose names end in `.sbd` (Thunderbird).
pub(crate) fn levels(key: &Path, kind: Kind) -> Vec<String> {
    let components: Vec<_> = key.iter().map(OsStr::to_string_lossy).collect();
    let Some((last, above)) = components.split_last() else {
        // In Maildir++ the directory that contains the other folders is itself the Maildir of the inbox, so its
        // messages get a folder `INBOX`.
        return match kind {
            Kind::Maildir => vec!["INBOX".to_owned()],
            _ => Vec::new(),
        };
    };
    let plain = |name: &str| {
        let mut ends = [".sbd", ".mbox"].into_iter();
        let end = ends.find_map(|end| name.strip_suffix(end));
        end.filter(|rest| !rest.is_empty())
            .unwrap_or(name)
            .to_owned()
    };
    let mut levels: Vec<String> = above.iter().map(|name| plain(name)).collect();
    match last
        .strip_prefix('.')
        .filter(|rest| kind == Kind::Maildir && !rest.is_empty())
    {
        Some(nested) => levels.extend(nested.split('.').map(str::to_owned)),
        None => {
            let path = Path::new(last.as_ref());
            let is_named = !kind.is_folder() && kind != Kind::Pst && named(path).is_some();
            let stem = path.file_stem().filter(|_| is_named);
            levels
                .push(stem.map_or_else(|| plain(last), |stem| stem.to_string_lossy().into_owned()));
        }
    }
    levels
}

/// Returns whether the name is that of a file with mail: an mbox, a message, an archive or a compressed file.
pub(crate) fn names_a_file(path: &Path) -> bool {
    named(path).is_some() || Method::of_name(path).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_of_each_program_become_levels() {
        for (key, kind, expected) in [
            ("", Kind::Maildir, "INBOX"),
            ("", Kind::Eml, ""),
            (".Work.2023", Kind::Maildir, "Work|2023"),
            ("Work/2023", Kind::Maildir, "Work|2023"),
            ("Inbox.sbd/Work.sbd/2023", Kind::Mbox, "Inbox|Work|2023"),
            ("lists/rust.mbox", Kind::Mbox, "lists|rust"),
            ("Sent.mbx", Kind::Eudora, "Sent"),
            ("Work.mbox/Sub.mbox", Kind::Eml, "Work|Sub"),
            ("drafts", Kind::Mh, "drafts"),
        ] {
            assert_eq!(levels(Path::new(key), kind).join("|"), expected, "{key}");
        }
    }

    #[test]
    fn mailboxes_that_would_be_one_where_case_is_not_told_apart_are_refused() {
        let refused = |names: &[&str], folds: bool| {
            let found = names.iter().map(|name| Found {
                path: Path::new("/in").join(name),
                relative: name.into(),
                kind: Kind::Mbox,
                method: None,
                pst: None,
            });
            let finds = Finds {
                mailboxes: found.collect(),
                ..Finds::default()
            };
            let done = check_case(&finds, Path::new("/out"), &Options::default(), || folds);
            done.err().map(|error| {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                format!("{error}: {}", cause.unwrap_or_default())
            })
        };
        assert_eq!(
            refused(&["Work", "Work.old", "Über/a", "Über/b"], true),
            None
        );
        assert_eq!(refused(&["Work", "work"], false), None);
        for names in [["Work", "work"], ["Über/a", "über/b"]] {
            let why = refused(&names, true).expect(names[0]);
            assert!(
                why.contains("/out/") && why.contains("as the same name"),
                "{why}"
            );
        }
    }
}
