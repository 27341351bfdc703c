//! Reads files that mail clients store next to a mailbox. These are the only files that are read without an option.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
#[cfg(feature = "mailbox")]
use std::sync::Arc;
use std::time::Instant;

use super::allowance::RequestAllowance;
#[cfg(feature = "mailbox")]
use super::eudora::EudoraFiles;
use super::request::{not_beside, of_file};
use super::sidecar_folder::{SidecarFolder, on_disk};
#[cfg(feature = "mailbox")]
use crate::engine::NamedFile;
use crate::engine::policy::{Follow, Policy};
use crate::engine::report::{Reason, Refusal};
use crate::engine::{Content, Neighbour, too_much};

/// The files next to the mailbox of a message.
#[derive(Debug)]
pub(crate) enum Sidecars {
    Apple(AppleAttachments),
    /// The number of the message in a Eudora mailbox, and the files of the mailbox.
    #[cfg(feature = "mailbox")]
    Eudora(u64, Arc<EudoraFiles>),
}

/// The directory `Attachments` next to the messages of Apple Mail.
#[derive(Debug)]
pub(crate) struct AppleAttachments {
    /// Directory that contains `Attachments`.
    path: PathBuf,
    /// Number in the name of the message file. The directory with the attachments of the message has the same name.
    number: String,
    own: OnceCell<Result<Option<SidecarFolder>, Refusal>>,
}

impl Sidecars {
    pub(crate) fn of_apple_mail(source: &Path) -> Option<Self> {
        let name = source.file_name()?.to_str()?;
        let digits = name.split('.').next()?;
        let messages = match source.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        Some(Self::Apple(AppleAttachments {
            path: messages.join(".."),
            number: digits.to_owned(),
            own: OnceCell::new(),
        }))
    }

    pub(crate) fn form(&self) -> Follow {
        match self {
            Self::Apple(_) => Follow::Apple,
            #[cfg(feature = "mailbox")]
            Self::Eudora(..) => Follow::Eudora,
        }
    }

    /// Returns the file of each note in the message. `None` if the mail client does not write notes.
    #[cfg(feature = "mailbox")]
    pub(crate) fn named_files(
        &self,
        message: &[u8],
        policy: &Policy,
    ) -> Option<Vec<Result<NamedFile, Refusal>>> {
        match self {
            Self::Apple(_) => None,
            Self::Eudora(number, files) => Some(files.of_message(*number, message, policy)),
        }
    }

    /// Reads a file. Returns an error if the file of a part has more than `room` bytes.
    pub(crate) fn read(
        &self,
        file: &Neighbour,
        policy: &Policy,
        room: u64,
        deadline: Instant,
    ) -> Result<Content, Refusal> {
        match (self, file) {
            (Self::Apple(attachments), Neighbour::OfMessage { folder, name }) => {
                attachments.read(folder, name.as_deref(), policy, room, deadline)
            }
            #[cfg(feature = "mailbox")]
            (Self::Eudora(_, files), Neighbour::OfMailbox { folder, name }) => {
                files.read(&(*folder, name.clone()), policy, deadline)
            }
            _ => Err(not_beside()),
        }
    }
}

impl AppleAttachments {
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
    fn read(
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
        let found = folder.path().join(name);
        let path = found.canonicalize().unwrap_or(found);
        Ok(of_file(&path, body, begun))
    }
}

fn ambiguous(folder: &SidecarFolder, names: &[OsString]) -> Refusal {
    let shown: Vec<_> = names
        .iter()
        .take(2)
        .map(|name| name.to_string_lossy())
        .collect();
    let detail = format!(
        "several files in {} match the attachment: {}",
        folder.path().display(),
        shown.join(" and ")
    );
    Refusal::lasting(Reason::AmbiguousFile, detail)
}
