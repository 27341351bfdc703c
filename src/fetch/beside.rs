//! Reads files that mail clients store next to a mailbox. These are the only files that are read without an option.
//!
//! The sender of a mail decides which file names it contains, so these names are untrusted. A name from a mail is never opened:
//! it is compared with the names in a directory listing, and the matching entry is opened relative to its directory. Symbolic
//! links are refused, both as files and as directories.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::allowance::RequestAllowance;
use super::request::of_file;
use super::system::file::{not_regular, read_regular, regular, unreadable};
use crate::engine::policy::{Follow, Policy};
use crate::engine::report::{Reason, Refusal};
use crate::engine::{Content, too_much};

#[derive(Clone, Debug)]
pub(crate) struct SidecarFolder {
    path: PathBuf,
    handle: Arc<Dir>,
}

impl SidecarFolder {
    pub(crate) fn open(path: PathBuf) -> Result<Self, Refusal> {
        let handle = Dir::open_ambient_dir(&path, ambient_authority())
            .map_err(|why| unreadable(&path, &why))?
            .into();
        Ok(Self { path, handle })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a subdirectory. Returns `None` if it does not exist, and an error if it is a symbolic link or not a directory.
    pub(crate) fn folder(&self, name: &OsStr) -> Result<Option<Self>, Refusal> {
        let path = self.path.join(name);
        match self.handle.symlink_metadata(name) {
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(unreadable(&path, &why)),
            Ok(metadata) if !metadata.is_dir() => return Err(not_regular(&path)),
            Ok(_) => {}
        }
        // A symbolic link may replace the directory between the check and this call. It can lead only to another directory
        // inside this one, because `open_dir` does not leave it.
        let handle = self
            .handle
            .open_dir(name)
            .map_err(|why| unreadable(&path, &why))?
            .into();
        Ok(Some(Self { path, handle }))
    }

    /// Returns the names of the files, sorted. Files that macOS creates itself (`.DS_Store`, `._*`) are left out.
    pub(crate) fn names(&self) -> Result<Vec<OsString>, Refusal> {
        let failed = |why| unreadable(&self.path, &why);
        let is_note = |name: &[u8]| name == b".DS_Store" || name.starts_with(b"._");
        let mut names = Vec::new();
        for entry in self.handle.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_folder = entry.file_type().map_err(failed)?.is_dir();
            let name = entry.file_name();
            if !is_folder && !is_note(name.as_encoded_bytes()) {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the length of a file in bytes. A symbolic link is refused.
    pub(crate) fn length(&self, name: &OsStr) -> Result<u64, Refusal> {
        let path = self.path.join(name);
        let metadata = self
            .handle
            .symlink_metadata(name)
            .map_err(|why| unreadable(&path, &why))?;
        regular(&path, &metadata)?;
        Ok(metadata.len())
    }

    pub(crate) fn read(
        &self,
        name: &OsStr,
        policy: &Policy,
        allowance: RequestAllowance,
    ) -> Result<Vec<u8>, Refusal> {
        policy.judge_size(self.length(name)?)?;
        let path = self.path.join(name);
        read_regular(&self.handle, Path::new(name), &path, policy, allowance)
    }
}

#[derive(Debug)]
pub(crate) struct Sidecars {
    form: Follow,
    path: PathBuf,
    /// Number by which the attachments of the message are found. In Apple Mail it is in the name of the message file and in the
    /// path of the attachments. In Eudora it is the number of the message in the mailbox.
    number: String,
    own: OnceCell<Result<Option<SidecarFolder>, Refusal>>,
}

impl Sidecars {
    pub(crate) fn of_eudora(source: &Path, number: u64) -> Self {
        Self {
            form: Follow::Eudora,
            path: source.to_owned(),
            number: number.to_string(),
            own: OnceCell::new(),
        }
    }

    pub(crate) fn number(&self) -> Option<u64> {
        let is_of_eudora = self.form == Follow::Eudora;
        is_of_eudora.then(|| self.number.parse().ok()).flatten()
    }

    pub(crate) fn of_apple_mail(source: &Path) -> Option<Self> {
        let name = source.file_name()?.to_str()?;
        let digits = name.split('.').next()?;
        let messages = match source.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        Some(Self {
            form: Follow::Apple,
            path: messages.join(".."),
            number: digits.to_owned(),
            own: OnceCell::new(),
        })
    }

    pub(crate) fn form(&self) -> Follow {
        self.form
    }

    fn own(&self) -> Result<Option<&SidecarFolder>, Refusal> {
        let open = || {
            let attachments =
                SidecarFolder::open(self.path.clone())?.folder(OsStr::new("Attachments"))?;
            attachments.map_or(Ok(None), |it| it.folder(OsStr::new(&self.number)))
        };
        let own = self.own.get_or_init(open).as_ref();
        own.map(Option::as_ref).map_err(Clone::clone)
    }

    fn find(&self, part: &str, name: Option<&str>) -> Result<(SidecarFolder, OsString), Refusal> {
        let missing = || {
            let path = Path::new("Attachments").join(&self.number).join(part);
            let what = format!("the directory {} does not contain the file", path.display());
            Refusal::lasting(Reason::FileNotReadable, what)
        };
        let own = self.own()?.ok_or_else(missing)?;
        let folder = own.folder(OsStr::new(part))?.ok_or_else(missing)?;
        let mut names = folder.names()?;
        if let [_, _, ..] = names.as_slice() {
            let wanted = name.map(on_disk);
            let is_meant = |found: &OsString| Some(on_disk(&found.to_string_lossy())) == wanted;
            let is_exact = |found: &&OsString| name.is_some() && found.to_str() == name;
            let mut matches = names.iter().filter(|found| is_meant(found));
            let only = matches.next().filter(|_| matches.next().is_none());
            let meant = names
                .iter()
                .find(is_exact)
                .or(only)
                .ok_or_else(|| ambiguous(&folder, &names))?;
            names = vec![meant.clone()];
        }
        let name = names.into_iter().next().ok_or_else(missing)?;
        Ok((folder, name))
    }

    /// Reads the file of a part. Returns an error if the file has more than `room` bytes.
    pub(crate) fn read(
        &self,
        part: &str,
        name: Option<&str>,
        policy: &Policy,
        room: u64,
        deadline: Instant,
    ) -> Result<Content, Refusal> {
        let begun = Instant::now();
        let (folder, name) = self.find(part, name)?;
        let length = folder.length(&name)?;
        policy.judge_size(length)?;
        if length > room {
            return Err(too_much(room));
        }
        let allowance = RequestAllowance::starting_now(policy.limits.timeout, deadline);
        let body = folder.read(&name, policy, allowance)?;
        let found = folder.path.join(name);
        let path = found.canonicalize().unwrap_or(found);
        Ok(of_file(&path, body, begun))
    }
}

/// Converts a name to the form in which macOS stores it: `/` becomes `:`, and accented letters are decomposed (NFD).
pub(super) fn on_disk(name: &str) -> String {
    let decomposed = icu_normalizer::DecomposingNormalizer::new_nfd().normalize(name);
    decomposed.replace('/', ":")
}

fn ambiguous(folder: &SidecarFolder, names: &[OsString]) -> Refusal {
    let shown: Vec<_> = names
        .iter()
        .take(2)
        .map(|name| name.to_string_lossy())
        .collect();
    let detail = format!(
        "several files in {} match the attachment: {}",
        folder.path.display(),
        shown.join(" and ")
    );
    Refusal::lasting(Reason::AmbiguousFile, detail)
}
