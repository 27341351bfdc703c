//! Determines the paths of the results if there are several sources.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::streams::{is_folder, is_standard};
use crate::error::Error;
use crate::mailbox::folder_names::{folded, thunderbird_top};
use crate::mailbox::{Format, Method, Options, Stop, names_a_file, result_of};

pub(super) fn of(
    sources: &[PathBuf],
    output: &Path,
    options: &Options,
    stop: &Stop,
) -> Result<Vec<PathBuf>, Error> {
    if options.output_format == Format::Thunderbird {
        return in_thunderbird(sources, output);
    }
    if let [source] = sources {
        if !is_folder(source) && output.extension().is_some_and(|suffix| suffix == "lz4") {
            let why = "embody does not write lz4, because Dovecot and the program lz4 use different formats; name a file that ends with .gz, .zst, .bz2 or .xz";
            return Err(Error::Usage(format!("{}: {why}", output.display()).into()));
        }
        return Ok(vec![output.to_owned()]);
    }
    let mut taken = HashMap::new();
    let mut targets = Vec::new();
    for source in sources {
        let (shown, folder) = (source.display(), output.display());
        let Some(name) = source.file_name() else {
            let what = format!(
                "{shown}: this source has no file name that embody could use for the result in {folder}; name a new file with --output"
            );
            return Err(Error::Usage(what.into()));
        };
        let name = renamed(source, name, options, stop);
        let target = output.join(&name);
        if let Some(other) = taken.insert(name, source) {
            let what = format!(
                "{} and {shown} would both be {}; convert them one by one, or into different folders",
                other.display(),
                target.display()
            );
            return Err(Error::Usage(what.into()));
        }
        targets.push(target);
    }
    Ok(targets)
}

/// Returns the paths of the top-level folders that Thunderbird shows, one for each source, in the output directory.
/// Equal names get a number.
fn in_thunderbird(sources: &[PathBuf], output: &Path) -> Result<Vec<PathBuf>, Error> {
    if names_a_file(output) {
        let shown = output.display();
        let what = format!(
            "{shown} is the name of a file, but the result would be a directory of mail folders; name a new directory"
        );
        return Err(Error::Usage(what.into()));
    }
    let mut taken = HashSet::new();
    let named = sources.iter().map(|source| {
        let name = match source.file_name() {
            Some(name) if !is_standard(source) => thunderbird_top(&plain(name).to_string_lossy()),
            _ => thunderbird_top("Mail"),
        };
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        let free = names.find(|name| taken.insert(folded(name)));
        output.join(free.unwrap_or(name))
    });
    Ok(named.collect())
}

/// File name extensions of Outlook. The result has another format, so it never has the name of the source.
const OF_OUTLOOK: [&str; 4] = ["pst", "ost", "msg", "oft"];

/// Returns the name of a source without the extensions of mailboxes, compressed files and archives.
fn plain(name: &OsStr) -> OsString {
    const SUFFIXES: [&str; 8] = ["mbox", "mbx", "eml", "emlx", "zip", "tgz", "tar", "txz"];
    let is_known = |suffix: &str| {
        let mut known = SUFFIXES.iter().chain(&OF_OUTLOOK);
        known.any(|it| suffix.eq_ignore_ascii_case(it))
    };
    let mut plain = Path::new(name);
    if Method::of_name(plain).is_some() {
        plain = Path::new(plain.file_stem().unwrap_or(name));
    }
    let suffix = plain.extension().and_then(OsStr::to_str);
    if suffix.is_some_and(is_known) {
        plain = Path::new(plain.file_stem().unwrap_or(name));
    }
    plain.as_os_str().to_owned()
}

/// Returns the file name of the result. If the result has another format than the source, the extension of the source
/// is replaced by that of the format.
fn renamed(source: &Path, name: &OsStr, options: &Options, stop: &Stop) -> OsString {
    let mut unpacked = Path::new(name);
    if Method::of_name(unpacked).is_some() {
        unpacked = Path::new(unpacked.file_stem().unwrap_or(name));
    }
    let suffix = unpacked.extension().and_then(OsStr::to_str);
    let is_of_outlook =
        suffix.is_some_and(|it| OF_OUTLOOK.iter().any(|of| it.eq_ignore_ascii_case(of)));
    if options.output_format == Format::Auto && options.by_label.is_none() && !is_of_outlook {
        return name.to_owned();
    }
    let mut name = plain(name);
    match result_of(source, options, stop) {
        Some(Format::Mbox) => name.push(".mbox"),
        Some(Format::Eml) => name.push(".eml"),
        _ => {}
    }
    name
}
