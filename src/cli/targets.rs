//! Chooses the paths of the results if there are several sources.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::streams::{is_folder, is_standard};
use super::survey::further_name;
use crate::error::Error;
use crate::mailbox::find::{Finds, StartKind};
use crate::mailbox::folder_names::{folded, thunderbird_top};
use crate::mailbox::{
    Format, Options, Source, Stop, folder_of, form_and_folders, kind_of_name, names_a_file,
    plain_name, result_of,
};
use crate::platform::folds_names;

pub(super) fn of(
    sources: &[Source],
    output: &Path,
    options: &Options,
    stop: &Stop,
) -> Result<Vec<PathBuf>, Error> {
    if options.output_format.is_tree() {
        return in_tree(sources, output);
    }
    if let [source] = sources {
        if !is_folder(source.path()) && output.extension().is_some_and(|suffix| suffix == "lz4") {
            let why = "embody does not write lz4, because Dovecot and the program lz4 use different formats; name a file that ends with .gz, .zst, .bz2 or .xz";
            return Err(Error::Usage(format!("{}: {why}", output.display()).into()));
        }
        return Ok(vec![output.to_owned()]);
    }
    let mut taken: HashMap<String, (&Path, PathBuf)> = HashMap::new();
    let mut targets = Vec::new();
    for looked_at in sources {
        let source = looked_at.path();
        let (shown, folder) = (source.display(), output.display());
        let Some(name) = source.file_name() else {
            let what = format!(
                "{shown}: this source has no file name that embody could use for the result in {folder}; name a new file with --output"
            );
            return Err(Error::Usage(what.into()));
        };
        let name = renamed(looked_at, name, options, stop);
        let target = output.join(&name);
        let other = taken.insert(folded(&name.to_string_lossy()), (source, target.clone()));
        // On some file systems, names that differ only in case are the same.
        if let Some((other, path)) = other
            && (path == target || folds_names(folder_of(output)).unwrap_or(false))
        {
            let what = format!(
                "{} and {shown} would both be {}; leave {shown} out of this run, and name it alone in a second run with \
                 --output {}",
                other.display(),
                target.display(),
                further_name(&target.display().to_string())
            );
            return Err(Error::Usage(what.into()));
        }
        targets.push(target);
    }
    Ok(targets)
}

/// Returns the path of a top-level Thunderbird folder in the output directory for each source. Equal names get a
/// number.
fn in_tree(sources: &[Source], output: &Path) -> Result<Vec<PathBuf>, Error> {
    if names_a_file(output) {
        let shown = output.display();
        let what = format!(
            "{shown} is the name of a file, but the result would be a directory of mail folders; name a new directory"
        );
        return Err(Error::Usage(what.into()));
    }
    let mut taken = HashSet::new();
    let named = sources.iter().map(|source| {
        let source = source.path();
        let name = match source.file_name() {
            Some(name) if !is_standard(source) => {
                thunderbird_top(&plain_name(name).to_string_lossy())
            }
            _ => thunderbird_top("Mail"),
        };
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        let free = names.find(|name| taken.insert(folded(name)));
        output.join(free.unwrap_or(name))
    });
    Ok(named.collect())
}

/// Returns the file name of the result. If its format is not that of the source, the extension is replaced by that of
/// the result (a directory has none).
fn renamed(source: &Source, name: &OsStr, options: &Options, stop: &Stop) -> OsString {
    let kind = source.kind();
    // No result is an archive or an Outlook file, so the extension of such a source is never kept.
    let is_other =
        |kind: Option<StartKind>| kind.is_some_and(|kind| kind.facts().unwritten_name.is_some());
    let is_always_other = is_other(kind) || is_other(kind_of_name(Path::new(name)));
    if options.output_format == Format::Auto && options.by_label.is_none() && !is_always_other {
        return name.to_owned();
    }
    // The mail of an archive becomes one mbox, unless the archive contains Outlook mailboxes. The result is then a
    // directory.
    let is_directory = || {
        let has_folders = |finds: &Finds| {
            let known = form_and_folders(finds, options, stop);
            known.is_ok_and(|(_, has_folders)| has_folders)
        };
        kind == Some(StartKind::Archive) && source.finds().is_some_and(|finds| has_folders(&finds))
    };
    let mut name = plain_name(name).to_owned();
    if let Some(form) = result_of(source, options)
        && let Some(written) = form.written()
        && (!form.is_file() || !is_directory())
    {
        name.push(written.suffix);
    }
    name
}
