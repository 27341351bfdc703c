//! Determines the format of the result of a conversion: one mailbox or a directory of mailboxes, in the format of the
//! source or in another one. `result_folders` names the mailboxes in a directory. An output name that belongs to another
//! format is refused before a file is created.

use std::path::Path;

use crate::detail::{Detail, Setting};
use crate::error::Error;
use crate::mailbox::compressed::Method;
use crate::mailbox::finds::Finds;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::layout::named;
use crate::mailbox::place::journal;
use crate::mailbox::result_folders::groups::groups;
use crate::mailbox::result_form::{form, is_moved};
use crate::mailbox::source::Source;
use crate::mailbox::{Format, Options};
use crate::platform::OsStrExt as _;

/// Returns the format of the result if the result is one mailbox or one message. Returns `None` if it is a directory of
/// mailboxes or messages.
pub(crate) fn result(finds: &Finds, options: &Options) -> Option<Format> {
    let groups = groups(finds, options);
    let [group] = groups.as_slice() else {
        return None;
    };
    let kind = group.kind;
    // Each folder in a file becomes a mailbox, so the result is a directory.
    if kind.has_folders() || !group.key.as_os_str().is_empty() || options.by_label.is_some() {
        return None;
    }
    if is_moved(kind, options) {
        Some(form(kind, options)).filter(|it| it.is_one_mailbox())
    } else {
        Some(kind.own_form())
    }
}

pub(crate) fn result_of(source: &Source, options: &Options) -> Option<Format> {
    let finds = source.finds()?;
    result(&finds, options)
}

/// Checks the output name before the conversion starts. The source is searched for this only if the name or the options
/// could conflict with the format of the result. Other errors are reported by the conversion.
pub(crate) fn check_early(
    source: &Source,
    destination: Option<&Path>,
    options: &Options,
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
    let Some(finds) = source.finds() else {
        return Ok(());
    };
    match destination {
        Some(destination) => check(source.path(), &finds, destination, options),
        None => check_open(source.path(), result(&finds, options)),
    }
}

fn is_folder(destination: &Path) -> bool {
    destination.is_dir() || destination.as_os_str().as_bytes().ends_with(b"/")
}

/// Returns an error if the output name belongs to a format other than that of the result, or if embody cannot write the
/// result. The error text contains both solutions: another name, or another format.
pub(crate) fn check(
    source: &Path,
    finds: &Finds,
    destination: &Path,
    options: &Options,
) -> Result<(), Error> {
    let wanted = options.output_format;
    if wanted != Format::Auto && wanted.written().is_none() {
        let word = wanted.facts().word;
        let detail = Detail::default().naming(Setting::OutputFormat);
        let why = format!(
            " cannot be {word}, because embody reads {} mailboxes, but does not write them; choose another format, such as mbox",
            word.to_uppercase()
        );
        return Err(Error::Usage(detail.then(why)));
    }
    let mut found = finds.mailboxes.iter();
    if options.read.range.is_some() && found.any(|found| is_moved(found.kind, options)) {
        let detail = Detail::default().naming(Setting::Range);
        let why = " works only if the source is one mailbox and the result has the same format";
        return Err(Error::Usage(detail.then(why)));
    }
    let is_archive = finds
        .mailboxes
        .iter()
        .any(|it| it.kind == StartKind::Archive);
    // An interrupted run may have created the directory, because the result of an archive with Outlook mailboxes is a
    // directory.
    let is_of_stopped_run = is_archive && journal::is_beside(destination);
    let is_folder = is_folder(destination) && !is_of_stopped_run;
    let result = result(finds, options);
    let what = match result.and_then(Format::written) {
        Some(written) => written.called,
        None if options.by_label.is_some() => "a folder with a mailbox for each label",
        None => "a folder",
    };
    let is_file = result.is_some_and(|it| !it.is_directory());
    let said = named(destination);
    let unwritten = said.and_then(|said| said.facts().unwritten_name);
    let (says, way_out) = match (said, unwritten, is_file) {
        (_, _, true) if is_folder && is_archive => (
            "a folder",
            "name a new file, or name a new directory if the archive contains .pst files",
        ),
        (_, _, true) if is_folder => ("a folder", "name a file"),
        (_, Some(unwritten), _) => unwritten,
        (Some(said), _, true) if result != Some(said.own_form()) => {
            (name_of(said), "choose another name")
        }
        // Apple Mail has directories named `NAME.mbox`, so a directory may have such a name if the source has it too.
        (Some(said), _, false) if !source.is_dir() || named(source) != Some(said) => {
            (name_of(said), "name a folder")
        }
        (None, _, false) if Method::of_name(destination).is_some() => {
            ("the name of a file", "name a folder")
        }
        _ => return Ok(()),
    };
    let shown = destination.display();
    let what = format!("{shown} is {says}, but the result would be {what}; {way_out}");
    let detail = Detail::from(what);
    let makes_mbox = || {
        let output_format = Format::Mbox;
        let options = Options {
            output_format,
            ..options.clone()
        };
        self::result(finds, &options) == Some(Format::Mbox)
    };
    let wanted = match (is_folder && is_file, said) {
        (true, _) => (", or make a folder with ", " maildir"),
        (_, Some(StartKind::Mbox) | None)
            if options.output_format != Format::Mbox && makes_mbox() =>
        {
            (", or make an mbox with ", " mbox")
        }
        _ => return Err(Error::Usage(detail)),
    };
    let detail = detail.then(wanted.0).naming(Setting::OutputFormat);
    Err(Error::Usage(detail.then(wanted.1)))
}

fn name_of(kind: StartKind) -> &'static str {
    match kind {
        StartKind::Mbox => "the name of an mbox",
        _ => "the name of a message",
    }
}

pub(crate) fn check_open(source: &Path, result: Option<Format>) -> Result<(), Error> {
    if result.is_some_and(|it| !it.is_directory()) {
        return Ok(());
    }
    let what = format!(
        "{}: the result is a directory of mail; name a directory with ",
        source.display()
    );
    Err(Error::Usage(Detail::from(what).naming(Setting::Output)))
}

/// Returns whether the name is that of an mbox, which may be compressed.
#[cfg(feature = "cli")]
pub(crate) fn names_an_mbox(path: &Path) -> bool {
    match named(path) {
        Some(kind) => kind == StartKind::Mbox,
        None => Method::of_name(path).is_some(),
    }
}
