//! Assigns a directory of the output to each folder of an account.
//!
//! Two folders never share a directory, because a message of the second folder could look as if it had been saved already.
//! Names of folders can differ where names of directories cannot: in case, in composed and decomposed characters (NFC, NFD),
//! and in characters that are not allowed in a path. So each Maildir contains a file `embody-folder` with the name of its
//! folder in the spelling of the server. A later run finds the same directory by this file, even if other folders were added.
//! On a file system that treats two names as equal, the file shows that the directory belongs to the other folder.
//!
//! The file also contains the user and the host of the account, so that a run notices if the directory contains the mail of a
//! different account, whose messages can have the same UIDs.
//!
//! Backups of version 0.3.0 have no such file. Their directories are assigned to the folders for which that version chose them.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::account::Account;
use super::names::{from_wire, is_inbox, shown, to_wire};
use super::session::RemoteFolder;
use super::unchanged::FolderState;
use crate::mailbox::folder_names::{self, composed};

/// File with the folder to which a Maildir belongs: its name in the first line, possibly [`MIXED`] in the second line, and the
/// account in the lines that begin with [`USER`] and [`HOST`].
pub(super) const OWNER: &str = "embody-folder";
/// File with the keywords of a Maildir, in the format of Dovecot.
pub(super) const KEYWORDS: &str = "dovecot-keywords";
/// Suffix of the name of a file that is not completely written yet. Afterwards the file is renamed.
pub(super) const UNFINISHED: &str = ".embody-unfinished";
/// Second line in [`OWNER`] for a directory into which version 0.3.0 may have written several folders.
const MIXED: &str = "mixed";
const USER: &str = "user ";
const HOST: &str = "host ";
/// Start of the line with the state of the folder after the last complete update.
const STATE: &str = "state ";
/// Number of bytes to read from [`OWNER`], which is more than the longest name of a folder.
const LONGEST_OWNER: u64 = 8192;
/// Maximum length of one level of a path, in bytes. Every file system allows this length, even with a suffix that makes the
/// name unique.
const LONGEST_NAME: usize = 120;
/// Maximum nesting depth of directories for a folder name. Further levels do not get directories of their own, so that
/// the path does not become too long.
const MOST_LEVELS: usize = 30;
/// Number of paths at which an existing backup of a folder is searched for, starting with the preferred path. The file
/// [`OWNER`] shows whether a directory is the backup. This is done for all folders before a folder gets a new
/// directory. Otherwise a folder could get the directory of another one.
const MARKED: usize = 3;

/// Account to which a directory belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AccountName {
    pub(super) user: String,
    /// Host and port.
    pub(super) host: String,
}

impl AccountName {
    pub(super) fn of(account: &Account) -> Self {
        Self {
            user: account.user.clone(),
            host: format!("{}:{}", account.host.to_ascii_lowercase(), account.port),
        }
    }
}

/// Directory for the mail of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FolderDirectory {
    /// Path of the directory, relative to the output.
    pub(super) path: PathBuf,
    /// Name of the folder, as the server spells it.
    pub(super) name: String,
    /// Whether the directory may also contain messages of another folder with the same UIDVALIDITY. Then the UID in a
    /// file name does not show that a message of this folder was already saved.
    pub(super) is_mixed: bool,
    /// The account in the file [`OWNER`]. `None` if the directory is new or from an older version.
    pub(super) account: Option<AccountName>,
    pub(super) state: Option<FolderState>,
}

impl FolderDirectory {
    /// Returns the content of the file [`OWNER`] in this directory.
    pub(super) fn owner(&self, account: &AccountName, state: Option<&FolderState>) -> Vec<u8> {
        let mut owner = to_wire(&self.name);
        owner.push(b'\n');
        if self.is_mixed {
            owner.extend_from_slice(MIXED.as_bytes());
            owner.push(b'\n');
        }
        let AccountName { user, host } = account;
        owner.extend_from_slice(format!("{USER}{user}\n{HOST}{host}\n").as_bytes());
        if let Some(state) = state {
            owner.extend_from_slice(format!("{STATE}{}\n", state.text()).as_bytes());
        }
        owner
    }
}

/// Returns the directories of all folders of an account, by the name of the folder. Reads `output` but does not change it.
///
/// # Errors
/// Errors of reading the files with the names of the folders.
pub(super) fn directories(
    output: &Path,
    folders: &[RemoteFolder],
) -> io::Result<HashMap<String, FolderDirectory>> {
    let mut chosen = Assignment {
        output,
        before: before(folders),
        found: HashMap::new(),
        exact: HashSet::new(),
        folded: HashSet::new(),
    };
    for folder in folders {
        for path in paths(folder).take(MARKED) {
            if let Some(owner) = chosen.owner(&path)?
                && owner.name == folder.name
            {
                chosen.take(folder, path, owner.is_mixed, owner.account);
                break;
            }
        }
    }
    for folder in folders {
        if !chosen.found.contains_key(&folder.name) {
            chosen.find_other_spelling(folder)?;
        }
    }
    for folder in folders {
        if !chosen.found.contains_key(&folder.name) {
            chosen.choose(folder)?;
        }
    }
    Ok(chosen.found)
}

/// The assignment of folders to directories. The folders are added one after the other, so that each gets a directory
/// that no other folder has.
struct Assignment<'o> {
    output: &'o Path,
    /// Directories that version 0.3.0 would have used, with their folders. That version wrote no file [`OWNER`], so
    /// this is the only evidence for the owner of such a directory.
    before: HashMap<PathBuf, Vec<String>>,
    found: HashMap<String, FolderDirectory>,
    /// Paths that are already assigned, in exact spelling. `folded` has them in the form of [`folded`], for file
    /// systems that ignore case.
    exact: HashSet<PathBuf>,
    folded: HashSet<String>,
}

impl Assignment<'_> {
    fn take(
        &mut self,
        folder: &RemoteFolder,
        path: PathBuf,
        is_mixed: bool,
        account: Option<AccountName>,
    ) {
        self.folded.insert(folded(&path));
        self.exact.insert(path.clone());
        let directory = FolderDirectory {
            path,
            name: folder.name.clone(),
            is_mixed,
            account,
            state: None,
        };
        self.found.insert(folder.name.clone(), directory);
    }

    /// Returns the folder to which a directory belongs, as its file [`OWNER`] states. Returns `None` if the directory
    /// has no such file.
    fn owner(&self, path: &Path) -> io::Result<Option<FolderDirectory>> {
        owner(&self.output.join(path))
    }

    /// Assigns the directory of an earlier run that spelt INBOX differently: of an older version, or with another
    /// server software.
    fn find_other_spelling(&mut self, folder: &RemoteFolder) -> io::Result<()> {
        if !is_inbox(&folder.name) || self.output.join(place(folder)).join("cur").is_dir() {
            return Ok(());
        }
        let entries = match fs::read_dir(self.output) {
            Ok(entries) => entries,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(why) => return Err(why),
        };
        for entry in entries {
            let path = PathBuf::from(entry?.file_name());
            let is_other = path.to_str().is_some_and(is_inbox) && !self.exact.contains(&path);
            if !is_other || !self.output.join(&path).join("cur").is_dir() {
                continue;
            }
            let owner = self.owner(&path)?;
            if owner.as_ref().is_none_or(|owner| is_inbox(&owner.name)) {
                let is_mixed = owner.as_ref().is_some_and(|owner| owner.is_mixed);
                let account = owner.and_then(|owner| owner.account);
                self.take(folder, path, is_mixed, account);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Assigns the first path that belongs to no other folder. The number of possible paths is unlimited, so a free
    /// path always exists.
    fn choose(&mut self, folder: &RemoteFolder) -> io::Result<()> {
        for path in paths(folder) {
            if self.exact.contains(&path) {
                continue;
            }
            if self.output.join(&path).join("cur").is_dir() {
                let owner = self.owner(&path)?;
                if let Some(owner) = owner {
                    if owner.name != folder.name {
                        continue;
                    }
                    self.take(folder, path, owner.is_mixed, owner.account);
                    return Ok(());
                }
                let before = self
                    .before
                    .get(&path)
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                let is_own = match before.first() {
                    Some(name) => *name == folder.name,
                    None => path == place(folder),
                };
                if is_own && is_spelt(self.output, &path)? {
                    let is_mixed = before.len() > 1;
                    self.take(folder, path, is_mixed, None);
                    return Ok(());
                }
            } else if !self.folded.contains(&folded(&path)) {
                self.take(folder, path, false, None);
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Returns the folder to which a Maildir belongs, as its file [`OWNER`] states. Returns `None` if the Maildir has no
/// such file.
pub(super) fn owner(maildir: &Path) -> io::Result<Option<FolderDirectory>> {
    let file = match File::open(maildir.join(OWNER)) {
        Ok(file) => file,
        Err(why)
            if matches!(
                why.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(why) => return Err(why),
    };
    let mut content = Vec::new();
    file.take(LONGEST_OWNER).read_to_end(&mut content)?;
    let mut lines = content.split(|byte| *byte == b'\n');
    let name = lines.next().unwrap_or_default();
    let mut found = FolderDirectory {
        path: maildir.to_owned(),
        name: from_wire(name),
        is_mixed: false,
        account: None,
        state: None,
    };
    let (mut user, mut host) = (None, None);
    for line in lines {
        let text = |key: &str| {
            let value = line.strip_prefix(key.as_bytes())?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        found.is_mixed |= line == MIXED.as_bytes();
        user = user.or_else(|| text(USER));
        host = host.or_else(|| text(HOST));
        found.state = found
            .state
            .or_else(|| text(STATE).and_then(|text| FolderState::read(&text)));
    }
    found.account = user
        .zip(host)
        .map(|(user, host)| AccountName { user, host });
    Ok(Some(found))
}

/// Returns the possible paths for a folder, in order of preference.
fn paths(folder: &RemoteFolder) -> impl Iterator<Item = PathBuf> {
    let name = folder.name.as_str();
    let preferred = place(folder);
    let ends = [String::new(), format!("-{}", short(name))];
    let more = (2_u64..).map(move |number| format!("-{}", short(&format!("{name}\n{number}"))));
    ends.into_iter().chain(more).map(move |end| {
        let mut path = preferred.clone();
        path.as_mut_os_string().push(end);
        path
    })
}

/// Returns a path in lower case and with composed characters (NFC). If a file system might treat two paths as
/// equal, both have the same result.
fn folded(path: &Path) -> String {
    folder_names::folded(&path.to_string_lossy())
}

/// Returns whether a path exists in exactly this spelling. Many file systems ignore case when a file is opened,
/// so the parent directories are listed and their entries compared. Composed and decomposed characters count as
/// the same, because macOS converts between them.
fn is_spelt(output: &Path, path: &Path) -> io::Result<bool> {
    let mut parent = output.to_owned();
    for part in path.iter() {
        let wanted = composed(&part.to_string_lossy());
        let mut is_found = false;
        for entry in fs::read_dir(&parent)? {
            is_found |= composed(&entry?.file_name().to_string_lossy()) == wanted;
        }
        if !is_found {
            return Ok(false);
        }
        parent.push(part);
    }
    Ok(true)
}

/// Returns, for each directory, the folders that version 0.3.0 would have saved in it if it had saved all of
/// these folders. That version compared paths without regard to case, and used a second path if the first one
/// was taken. It did not check whether the second path was taken too, so two folders could get the same
/// directory.
fn before(folders: &[RemoteFolder]) -> HashMap<PathBuf, Vec<String>> {
    let mut taken = HashSet::new();
    let mut before: HashMap<PathBuf, Vec<String>> = HashMap::new();
    for folder in folders {
        let mut paths = paths(folder);
        let first = paths.next().unwrap_or_default();
        let path = if taken.insert(first.to_string_lossy().to_lowercase()) {
            first
        } else {
            paths.next().unwrap_or_default()
        };
        before.entry(path).or_default().push(folder.name.clone());
    }
    before
}

/// Returns the preferred path of a Maildir, relative to the output, with one directory for each level of the folder name. If a
/// level is not a valid or unambiguous file name, it is changed, and a part of the SHA-256 of the name is appended to the path.
/// Without these changes, a server could choose any path on the disk.
pub(super) fn place(folder: &RemoteFolder) -> PathBuf {
    let name = shown(&folder.name);
    let levels: Vec<&str> = match folder.delimiter {
        Some(delimiter) => name.split(delimiter).collect(),
        None => vec![name.as_str()],
    };
    let mut is_exact = levels.len() <= MOST_LEVELS;
    let mut path = PathBuf::new();
    for level in levels.iter().take(MOST_LEVELS) {
        let mut safe: String = level
            .chars()
            .map(|symbol| match symbol {
                '/' | '\\' | ':' => '_',
                symbol if symbol.is_control() => '_',
                symbol => symbol,
            })
            .collect();
        let is_taken = matches!(
            safe.to_ascii_lowercase().as_str(),
            "" | "." | ".." | "cur" | "new" | "tmp" | KEYWORDS | OWNER
        );
        if is_taken || safe.starts_with('.') || safe.ends_with(UNFINISHED) {
            safe.insert(0, '_');
        }
        while safe.len() > LONGEST_NAME {
            safe.pop();
        }
        is_exact &= safe == *level;
        path.push(safe);
    }
    if !is_exact {
        path.as_mut_os_string()
            .push(format!("-{}", short(&folder.name)));
    }
    path
}

fn short(name: &str) -> String {
    let hash = Sha256::digest(name.as_bytes());
    hash.iter()
        .take(4)
        .map(|octet| format!("{octet:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str, delimiter: char) -> RemoteFolder {
        RemoteFolder {
            name: name.to_owned(),
            delimiter: Some(delimiter),
            attributes: Vec::new(),
            is_shared: false,
        }
    }

    #[test]
    fn no_name_of_a_folder_leads_out_or_into_a_maildir() {
        for (name, delimiter, exactly) in [
            ("INBOX", '/', Some("INBOX")),
            ("Archive/2020", '/', Some("Archive/2020")),
            ("Archive.2020", '.', Some("Archive/2020")),
            ("Entw&APw-rfe", '/', Some("Entwürfe")),
            ("../../etc/passwd", '/', None),
            ("/etc", '/', None),
            ("a/cur", '/', None),
            ("a/CUR", '/', None),
            ("a/b", '.', None),
            (".hidden", '/', None),
            ("", '/', None),
            ("a//b", '/', None),
            ("a\u{1}b", '/', None),
        ] {
            let path = place(&folder(name, delimiter));
            assert!(
                path.components()
                    .all(|part| matches!(part, std::path::Component::Normal(_))),
                "{path:?}"
            );
            let ends = |end: &str| path.iter().any(|part| part.eq_ignore_ascii_case(end));
            assert!(!ends("cur") && !ends("new") && !ends("tmp"), "{path:?}");
            match exactly {
                Some(exactly) => assert_eq!(path, Path::new(exactly)),
                None => assert!(path.to_string_lossy().contains('-'), "{path:?}"),
            }
        }
        let long = place(&folder(&"ü".repeat(3000), '/'));
        assert!(long.as_os_str().len() < 200);
        assert_ne!(place(&folder("a/cur", '/')), place(&folder("a/_cur", '/')));
    }

    fn account() -> AccountName {
        AccountName {
            user: "me".to_owned(),
            host: "mail.example.org:993".to_owned(),
        }
    }

    fn maildir(output: &Path, path: &Path, owner: Option<&FolderDirectory>) {
        fs::create_dir_all(output.join(path).join("cur")).unwrap();
        if let Some(owner) = owner {
            fs::write(output.join(path).join(OWNER), owner.owner(&account(), None)).unwrap();
        }
    }

    /// Returns the directories for folders with these names, which the server lists in this order.
    fn of(output: &Path, names: &[&str]) -> HashMap<String, FolderDirectory> {
        let folders: Vec<RemoteFolder> = names.iter().map(|name| folder(name, '/')).collect();
        directories(output, &folders).unwrap()
    }

    fn twins() -> Vec<String> {
        let mut names: Vec<String> = [
            "A",
            "a",
            "\u{e9}",
            "e\u{301}",
            "\u{c9}",
            "INBOX",
            "a/b",
            "A/B",
            "Entw&APw-rfe",
            "Entw\u{fc}rfe",
            "Entw\u{f7fc}rfe",
            "SS",
            "\u{df}",
        ]
        .map(str::to_owned)
        .to_vec();
        names.push(format!("a-{}", short("a")));
        names.push(format!("a-{}", short("a\n2")));
        names.push(format!(
            "a-{}-{}",
            short("a"),
            short(&format!("a-{}", short("a")))
        ));
        names.sort();
        names
    }

    #[test]
    fn folders_get_directories_that_no_file_system_takes_for_the_same() {
        let output = tempfile::tempdir().unwrap();
        let twins = twins();
        let names: Vec<&str> = twins.iter().map(String::as_str).collect();
        let mut first = of(output.path(), &names);
        assert_eq!(first.len(), names.len());
        let different: HashSet<String> = first.values().map(|it| folded(&it.path)).collect();
        assert_eq!(different.len(), names.len(), "{first:?}");
        assert_eq!(first["A"].path, Path::new("A"));
        for directory in first.values_mut() {
            maildir(output.path(), &directory.path, Some(directory));
            directory.account = Some(account());
        }
        // A later run finds the same directories, even if it sees only some of the folders.
        assert_eq!(of(output.path(), &names), first);
        for name in &names {
            assert_eq!(of(output.path(), &[*name])[*name], first[*name]);
        }
        // A new folder does not get any of these directories.
        let with_new = of(output.path(), &["\u{c5}", "a", "a\u{30a}", "\u{e5}"]);
        assert_eq!(with_new["a"], first["a"]);
        let new = ["\u{c5}", "a\u{30a}", "\u{e5}"].map(|name| with_new[name].path.clone());
        assert!(
            new.iter()
                .all(|new| first.values().all(|it| it.path != *new))
        );
    }

    #[test]
    fn directory_with_another_spelling_of_inbox_is_found_again() {
        for has_owner in [true, false] {
            let output = tempfile::tempdir().unwrap();
            let mut directory = FolderDirectory {
                path: "Inbox".into(),
                name: "Inbox".into(),
                is_mixed: false,
                account: Some(account()),
                state: None,
            };
            maildir(
                output.path(),
                &directory.path,
                has_owner.then_some(&directory),
            );
            directory.name = "INBOX".into();
            directory.account = directory.account.filter(|_| has_owner);
            let found = of(output.path(), &["Archive", "INBOX"]);
            assert_eq!(found["INBOX"], directory, "{has_owner}");
            // The directory that spells the name as the folder does is preferred.
            maildir(output.path(), Path::new("INBOX"), None);
            let found = of(output.path(), &["Archive", "INBOX"]);
            assert_eq!(found["INBOX"].path, Path::new("INBOX"));
        }
    }

    #[test]
    fn directories_of_an_older_version_are_found_again() {
        let output = tempfile::tempdir().unwrap();
        let third = format!("a-{}", short("a"));
        for path in ["A", &third, "INBOX", "Entw\u{fc}rfe"] {
            maildir(output.path(), Path::new(path), None);
        }
        let found = of(output.path(), &["A", "Entw&APw-rfe", "INBOX", "a", &third]);
        assert_eq!(found["A"].path, Path::new("A"));
        assert_eq!(found["INBOX"].path, Path::new("INBOX"));
        assert_eq!(found["Entw&APw-rfe"].path, Path::new("Entw\u{fc}rfe"));
        assert!(!found["INBOX"].is_mixed);
        // Version 0.3.0 wrote two folders into this directory. It is assigned to the first one and marked as mixed.
        assert_eq!(found["a"].path, Path::new(&third));
        assert!(found["a"].is_mixed);
        assert_ne!(found[&third].path, Path::new(&third));
        // Without the folder `A`, version 0.3.0 gave the folder `a` the directory `a`. The directory `third` then contains
        // only the messages of the folder that is also named `third`, so it is not mixed.
        let found = of(output.path(), &["a", &third]);
        assert_eq!(found[&third].path, Path::new(&third));
        assert!(!found[&third].is_mixed);
        assert_eq!(found["a"].path, Path::new("a"));
    }
}
