//! Finds the attachment files of a Eudora mailbox. Eudora stores them next to the mailbox, in certain subdirectories of
//! its directory or of a parent directory, up to Eudora's own directory. The directories of `--attachments` are
//! searched too.
//!
//! A message contains a note, a line such as `Attachment Converted: "C:\EUDORA\ATTACH\a.doc"`, with the path on another
//! machine. Only the last component of the path is used. It is compared with the names in the directories, ignoring
//! case. If two files match, both are refused as ambiguous. All messages share the directories, and a sender can write
//! a note with the name of another message's attachment, so each file is used only for the first note in the mailbox
//! that names it.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::allowance::RequestAllowance;
use super::attachments::ambiguous;
use super::request::of_file;
use super::sidecar_folder::{SidecarFolder, on_disk};
use crate::engine::forms::eudora::FlattenedMessage;
use crate::engine::forms::eudora::notes::{EudoraNote, decoded_name, is_file_name};
use crate::engine::policy::Policy;
use crate::engine::report::{Detail, Reason, Refusal, Setting};
use crate::engine::{Content, NamedFile};
use crate::error::unpoisoned;

/// Maximum number of parent directories of a mailbox in which attachment files are searched for.
const MOST_AROUND: usize = 16;

/// The position of a note (a line that names an attachment file): the number of the message in the mailbox, and the number of
/// the note in the message.
type Place = (u64, usize);

/// A file that was found: the index of its directory in the list of directories, and the name of the file.
type EudoraName = (usize, OsString);

pub(crate) type EudoraMailbox = Arc<Mutex<Option<(PathBuf, Arc<EudoraFiles>)>>>;

#[derive(Debug)]
pub(crate) struct EudoraFiles {
    folders: Vec<DirectoryNames>,
    /// For each file, the first note that names it. The file belongs to this note; other notes that name the same file are
    /// refused.
    claims: Mutex<HashMap<EudoraName, Place>>,
}

#[derive(Debug)]
struct DirectoryNames {
    folder: SidecarFolder,
    /// True if Eudora puts parts of a multipart/related into this directory, false if it puts attachments there. `None` for a
    /// directory of `--attachments`, which may contain both.
    holds_parts: Option<bool>,
    /// Names of the files in the directory, by the normalized form ([`key`]) in which names are compared.
    names: HashMap<String, Vec<OsString>>,
    /// Length of each file in bytes at the start of the run, so that the engine needs no access to the file system. A symbolic
    /// link has a refusal instead of a length.
    lengths: HashMap<OsString, Result<u64, Refusal>>,
}

/// Directories that Eudora creates: the name in lower case, whether it contains parts of a multipart/related, and whether
/// Eudora for the Mac uses it.
const FOLDERS: [(&str, bool, bool); 4] = [
    ("attach", false, false),
    ("embedded", true, false),
    ("attachments folder", false, true),
    ("parts folder", true, true),
];

impl EudoraFiles {
    pub(crate) fn beside(mailbox: &Path, policy: &Policy) -> Self {
        let mut folders = Vec::new();
        let whole = mailbox
            .canonicalize()
            .unwrap_or_else(|_| mailbox.to_owned());
        for path in whole.ancestors().skip(1).take(MOST_AROUND) {
            folders.extend(listings(path));
            let is_within_mail = path.ancestors().any(|it| it.ends_with("Mail Folder"));
            let suffix = path.extension();
            let is_folder = suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case("fol"));
            if !folders.is_empty() || !(is_folder || is_within_mail) {
                break;
            }
        }
        for path in &policy.attachments {
            let folder = SidecarFolder::open(path.clone());
            folders.extend(
                folder
                    .ok()
                    .and_then(|it| DirectoryNames::of(it, None, false)),
            );
        }
        Self {
            folders,
            claims: Mutex::default(),
        }
    }

    /// Returns the file that each note of a message names. The first note that names a file becomes its owner, so the messages
    /// of a mailbox must be passed in order, before the engine processes them.
    ///
    /// `number` is the number of the message in the mailbox. Passing a message again returns the same result.
    pub(crate) fn of_message(
        &self,
        number: u64,
        message: &[u8],
        policy: &Policy,
    ) -> Vec<Result<NamedFile, Refusal>> {
        let flattened = FlattenedMessage::read(message, policy);
        let notes = flattened
            .iter()
            .flat_map(FlattenedMessage::notes)
            .enumerate();
        notes
            .map(|(index, note)| {
                let named = self.claim(note, (number, index))?;
                let length = self.length(&named);
                let (folder, name) = named;
                Ok(NamedFile {
                    folder,
                    name,
                    length,
                })
            })
            .collect()
    }

    fn find(&self, note: &EudoraNote) -> Result<EudoraName, Refusal> {
        if !is_file_name(&note.name) {
            let what = format!("'{}' is not a valid file name", note.name);
            return Err(Refusal::lasting(Reason::FileNotReadable, what));
        }
        let key = key(&note.name);
        for holds_parts in [Some(note.is_embedded), None] {
            let numbered = self.folders.iter().enumerate();
            let of_kind = numbered.filter(|(_, listing)| listing.holds_parts == holds_parts);
            let meant = of_kind.flat_map(|(at, listing)| {
                let names = listing.names.get(&key).into_iter().flatten();
                names.map(move |name| (at, name))
            });
            let found: Vec<(usize, &OsString)> = meant.collect();
            let wanted = on_disk(&note.name);
            let is_exact = |(_, name): &&(usize, &OsString)| {
                name.to_str().is_some_and(|name| on_disk(name) == wanted)
            };
            let mut exact = found.iter().filter(is_exact);
            let chosen = match (found.as_slice(), exact.next(), exact.next()) {
                ([], ..) => continue,
                ([only], ..) => only,
                (_, Some(exact), None) => exact,
                ([first, second, ..], ..) => {
                    let [first, second] = [first, second].map(|it| self.path(it.0, it.1));
                    return Err(ambiguous(&first, &second));
                }
            };
            return Ok((chosen.0, chosen.1.clone()));
        }
        Err(self.missing(&note.name, Some(note.is_embedded)))
    }

    fn missing(&self, name: &str, parts: Option<bool>) -> Refusal {
        let holds = |it: &&DirectoryNames| it.holds_parts == parts || it.holds_parts.is_none();
        let folders: Vec<String> = self
            .folders
            .iter()
            .filter(holds)
            .map(|it| it.folder.path().display().to_string())
            .collect();
        let what = match folders.as_slice() {
            [] => format!("the directories of Eudora next to the mailbox do not contain '{name}'"),
            folders => format!("'{name}' is not in {}", folders.join(", ")),
        };
        let detail =
            Detail::from(what).then("; if the files are in another directory, name it with ");
        let detail = detail.naming(Setting::Attachments);
        Refusal::lasting(Reason::FileNotReadable, detail)
    }

    fn path(&self, folder: usize, name: &OsStr) -> PathBuf {
        let listing = self.folders.get(folder);
        let folder = listing.map_or(Path::new(""), |listing| listing.folder.path());
        folder.join(name)
    }

    pub(crate) fn read(
        &self,
        named: &EudoraName,
        policy: &Policy,
        deadline: Instant,
    ) -> Result<Content, Refusal> {
        let begun = Instant::now();
        let allowance = RequestAllowance::starting_now(policy.limits.timeout, deadline);
        let body = self.folder(named)?.read(&named.1, policy, allowance)?;
        let path = self.path(named.0, &named.1);
        Ok(of_file(&path, body, begun))
    }

    fn folder(&self, named: &EudoraName) -> Result<&SidecarFolder, Refusal> {
        match self.folders.get(named.0) {
            Some(listing) => Ok(&listing.folder),
            None => Err(self.missing(&named.1.to_string_lossy(), None)),
        }
    }

    fn claim(&self, note: &EudoraNote, by: Place) -> Result<EudoraName, Refusal> {
        let named = self.find(note)?;
        let mut claims = unpoisoned(self.claims.lock());
        let owner = *claims.entry(named.clone()).or_insert(by);
        drop(claims);
        if owner == by {
            return Ok(named);
        }
        let (message, _) = owner;
        let path = self.path(named.0, &named.1);
        let file = path.display();
        let what = if message == by.0 {
            format!("an earlier line of the same message already names {file}")
        } else {
            format!("message {message}, an earlier message in the mailbox, already names {file}")
        };
        Err(Refusal::lasting(Reason::FileTaken, what))
    }

    /// Returns the length that a file had at the start of the run, in bytes.
    fn length(&self, named: &EudoraName) -> Result<u64, Refusal> {
        let listing = self.folders.get(named.0);
        let length = listing.and_then(|listing| listing.lengths.get(&named.1));
        let missing = || Err(self.missing(&named.1.to_string_lossy(), None));
        length.cloned().unwrap_or_else(missing)
    }
}

impl DirectoryNames {
    fn of(folder: SidecarFolder, holds_parts: Option<bool>, is_of_mac: bool) -> Option<Self> {
        let mut names: HashMap<String, Vec<OsString>> = HashMap::new();
        let mut lengths = HashMap::new();
        for name in folder.names().ok()? {
            let text = decoded_name(name.as_encoded_bytes(), is_of_mac);
            lengths.insert(name.clone(), folder.length(&name));
            names.entry(key(&text)).or_default().push(name);
        }
        Some(Self {
            folder,
            holds_parts,
            names,
            lengths,
        })
    }
}

fn listings(path: &Path) -> Vec<DirectoryNames> {
    let (Ok(entries), Ok(around)) = (fs::read_dir(path), SidecarFolder::open(path.to_owned()))
    else {
        return Vec::new();
    };
    let mut names: Vec<OsString> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort_unstable();
    let listing = |name: &OsString| {
        let lower = name.to_str()?.to_ascii_lowercase();
        let (_, holds_parts, is_of_mac) =
            FOLDERS.into_iter().find(|(known, ..)| *known == lower)?;
        DirectoryNames::of(around.folder(name).ok()??, Some(holds_parts), is_of_mac)
    };
    names.iter().filter_map(listing).collect()
}

fn key(name: &str) -> String {
    on_disk(&name.to_lowercase())
}
