//! Where the results of several sources go.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::input::is_folder;
use crate::error::Error;

/// Where each source goes: one source becomes DEST itself, several become DEST/name.
///
/// # Errors
/// [`Error::Usage`] for a source without a name, for two that would have the same, and for what is not written.
pub(super) fn of(sources: &[PathBuf], output: &Path) -> Result<Vec<PathBuf>, Error> {
    check_suffix(sources, output)?;
    if let [_] = sources {
        return Ok(vec![output.to_owned()]);
    }
    let mut taken = HashMap::new();
    let mut targets = Vec::new();
    for source in sources {
        let (shown, folder) = (source.display(), output.display());
        let Some(name) = source.file_name() else {
            let what = format!("{shown}: has no name that it could have in {folder}");
            return Err(Error::Usage(what.into()));
        };
        let target = output.join(name);
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

/// What a name ends with says how the file is compressed.
fn check_suffix(sources: &[PathBuf], output: &Path) -> Result<(), Error> {
    let is_file = sources.len() == 1 && !sources.iter().any(|source| is_folder(source));
    if is_file && output.extension().is_some_and(|suffix| suffix == "lz4") {
        let why = "lz4 is not written, as Dovecot's is not lz4(1)'s; name a file that ends with .gz, .zst, .bz2 or .xz";
        return Err(Error::Usage(format!("{}: {why}", output.display()).into()));
    }
    Ok(())
}
