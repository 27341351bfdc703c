//! Reads files in the directories of `--file-root`, and no others (RFC 8089).
//!
//! cap-std opens files relative to a root: on Linux with openat2 (RESOLVE_BENEATH), on other systems one path component after
//! the other. An opened file is therefore always inside the root, even if another process renames directories at the same time.
//! Symbolic links are followed only as long as they stay inside the root.

use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use super::whole::read_whole;
use crate::engine::policy::Policy;
use crate::engine::report::{Detail, Reason, Refusal, Setting};
use crate::error::Error;
use crate::fetch::allowance::RequestAllowance;

#[derive(Debug)]
pub(in crate::fetch) struct Roots(Vec<(PathBuf, Dir)>);

impl Roots {
    pub(in crate::fetch) fn open(folders: &[PathBuf]) -> Result<Self, Error> {
        let mut roots = Vec::new();
        for root in folders {
            let folder = format!("the folder {}", root.display());
            let handle = Dir::open_ambient_dir(root, ambient_authority());
            roots.push((root.clone(), handle.map_err(Error::cannot_read(folder))?));
        }
        Ok(Self(roots))
    }

    pub(in crate::fetch) fn holds_file(&self, path: &Path) -> bool {
        self.beneath(path).is_some_and(|(root, beneath)| {
            root.metadata(beneath).is_ok_and(|found| found.is_file())
        })
    }

    fn beneath<'p>(&self, path: &'p Path) -> Option<(&Dir, &'p Path)> {
        self.0
            .iter()
            .filter_map(|(root, handle)| Some((handle, path.strip_prefix(root).ok()?)))
            .min_by_key(|(_, beneath)| beneath.as_os_str().len())
    }

    pub(in crate::fetch) fn read(
        &self,
        policy: &Policy,
        path: &Path,
        allowance: RequestAllowance,
    ) -> Result<Vec<u8>, Refusal> {
        let (root, beneath) = self
            .beneath(path)
            .ok_or_else(|| outside(format!("{} is not in a directory of ", path.display())))?;
        if beneath.as_os_str().is_empty() {
            return Err(not_regular(path));
        }
        // The type is checked before the file is opened, because opening some devices has side effects.
        let metadata = root.metadata(beneath);
        regular(path, &metadata.map_err(|why| unreadable(path, &why))?)?;
        read_regular(root, beneath, path, policy, allowance)
    }
}

pub(in crate::fetch) fn read_regular(
    folder: &Dir,
    beneath: &Path,
    path: &Path,
    policy: &Policy,
    allowance: RequestAllowance,
) -> Result<Vec<u8>, Refusal> {
    let file = open(folder, beneath).map_err(|why| unreadable(path, &why))?;
    let metadata = file.metadata().map_err(|why| unreadable(path, &why))?;
    regular(path, &metadata)?;
    let size = metadata.len();
    policy.judge_size(size)?;
    let changed = || {
        let detail = format!("{} changed while it was read", path.display());
        Refusal::lasting(Reason::IncompleteBody, detail)
    };
    // The file may be on a slow network file system, so the time limit is checked after each piece.
    let judge = |octets| {
        if octets > size {
            Err(changed())
        } else {
            allowance.remaining().map(|_| ())
        }
    };
    let body = read_whole(file, 0, judge, |why| unreadable(path, &why))?;
    if body.len() as u64 == size {
        Ok(body)
    } else {
        Err(changed())
    }
}

/// Opens a file without blocking. Otherwise, if a named pipe replaced the file after the check, opening it would block until
/// another process opens the other end.
fn open(root: &Dir, beneath: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt as _;
        let nonblock = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(nonblock.bits().cast_signed());
    }
    root.open_with(beneath, options.read(true))
}

pub(in crate::fetch) fn regular(path: &Path, metadata: &Metadata) -> Result<(), Refusal> {
    if metadata.is_file() {
        Ok(())
    } else {
        Err(not_regular(path))
    }
}

pub(in crate::fetch) fn not_regular(path: &Path) -> Refusal {
    let detail = format!("{} is not a regular file", path.display());
    Refusal::lasting(Reason::NotARegularFile, detail)
}

fn outside(what: String) -> Refusal {
    let detail = Detail::from(what).naming(Setting::FileRoot);
    Refusal::lasting(Reason::OutsideFileRoot, detail)
}

pub(in crate::fetch) fn unreadable(path: &Path, why: &std::io::Error) -> Refusal {
    // On Linux (RESOLVE_BENEATH), a symbolic link that leads out of the root causes EXDEV. On other systems, cap-std creates
    // the error itself, without an error number.
    #[cfg(unix)]
    let crosses = why.raw_os_error() == Some(rustix::io::Errno::XDEV.raw_os_error());
    #[cfg(not(unix))]
    let crosses = false;
    let is_of_system = why.raw_os_error().is_some();
    if crosses || !is_of_system && why.kind() == std::io::ErrorKind::PermissionDenied {
        return outside(format!(
            "{} leads out of the directories of ",
            path.display()
        ));
    }
    let detail = format!("{}: {why}", path.display());
    Refusal::lasting(Reason::FileNotReadable, detail)
}
