//! `--record`: where it is, and what it lacks.

use std::path::{Path, PathBuf};

use super::cache::Cache;
use super::{report_file, say};
use crate::error::Error;

/// Opens the record, so that a mistake shows before anything is done. A mail that passes through does not wait for that.
pub(super) fn open(
    cache: &Cache,
    sources: &[impl AsRef<Path>],
    outputs: &[PathBuf],
) -> Result<(), Error> {
    let Some(recorder) = &cache.recorder else {
        return Ok(());
    };
    report_file::check_apart("--record", recorder.path(), sources, outputs)?;
    recorder.open()
}

/// Says what the record lacks; whether it lacks anything.
pub(super) fn tell_trouble(cache: &Cache) -> bool {
    let recorder = cache.recorder.as_ref();
    let trouble = recorder.and_then(|recorder| recorder.finish());
    if let Some(trouble) = &trouble {
        say::tell(&say::harmless_within(trouble));
    }
    trouble.is_some()
}
