//! Derives the names of nested folders from paths, in the layouts of several programs:
//! * Maildir++ (Courier, Dovecot): the folder `Work/2023` is the Maildir `.Work.2023` next to `cur`. Names are in
//!   modified UTF-7.
//! * Apple Mail: the messages of the folder `Work` are in the directory `Work.mbox` (`Work.imapmbox` in old versions),
//!   and its subfolders in the same directory, or next to it in the directory `Work`. In an exported mailbox, the messages
//!   are in the file `Work.mbox/mbox`.
//! * KMail: the subfolders of `Work` are in the directory `.Work.directory`.
//! * Thunderbird and Evolution: the subfolders of `Work` are in the directory `Work.sbd`.
//!
//! In any other layout, the name of a directory is the name of the folder.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::mailbox::compressed::Method;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::modified_utf7::folder_name;
use crate::mailbox::forms::outlook::is_named_tnef;
use crate::mailbox::forms::suffixes::SuffixClass;
use crate::platform::OsStrExt as _;

/// Suffixes of Apple Mail's mailbox directories.
const OF_APPLE_MAIL: [&str; 2] = [".mbox", ".imapmbox"];

/// Name of the mbox file in a mailbox that Apple Mail exported.
const EXPORTED: &str = "mbox";

/// Layout of nested folders in the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FolderLayout {
    /// Each folder level becomes a level of the result, such as a Thunderbird folder inside its parent folder.
    Folders,
    /// The result has the directories of the source. Only some names are changed: hidden directories become visible,
    /// and suffixes that are not part of a folder name are removed.
    Directories,
}

/// Path of a mailbox, relative to the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourcePath<'p> {
    pub(crate) path: &'p Path,
    pub(crate) kind: StartKind,
    /// For a Maildir inside another Maildir: number of path components up to the outer Maildir. The components after it
    /// are in modified UTF-7, because the mail server encodes the names of subfolders.
    pub(crate) maildir: Option<usize>,
}

impl SourcePath<'_> {
    /// Returns the names of the folder and its parent folders, from the outermost to the innermost. Empty for messages
    /// that are directly in the source.
    pub(crate) fn levels(self, nesting: FolderLayout) -> Vec<OsString> {
        let components: Vec<&OsStr> = self.path.iter().collect();
        let Some((last, above)) = components.split_last() else {
            // The source itself is a mailbox. In Maildir++, the top directory is the Maildir of the inbox, so its
            // messages get a folder `INBOX`.
            return match self.kind {
                StartKind::Maildir => vec!["INBOX".into()],
                _ => Vec::new(),
            };
        };
        // Names of folders inside a file are not file names, so there is nothing to decode.
        if self.kind.has_folders() {
            return components.iter().map(|&name| name.to_owned()).collect();
        }
        let is_encoded = |number: usize| self.maildir.is_some_and(|count| number >= count);
        let mut levels = Vec::new();
        for (number, &name) in above.iter().enumerate() {
            match nested_name(name) {
                Some(nested) if is_encoded(number) => levels.extend(of_maildir(nested, nesting)),
                _ if is_encoded(number) => levels.push(decoded(name)),
                _ => levels.push(of_directory(name, nesting)),
            }
        }
        match (self.kind, nested_name(last)) {
            (StartKind::Maildir, Some(nested)) => levels.extend(of_maildir(nested, nesting)),
            (StartKind::Maildir, None) if is_encoded(above.len()) => levels.push(decoded(last)),
            (StartKind::Archive, _) => levels.push(archive_stem(Path::new(last)).into()),
            (StartKind::Maildir | StartKind::Mh, _) => levels.push(of_directory(last, nesting)),
            _ => levels.push(of_file(last, nesting)),
        }
        levels
    }
}

/// Returns the name of the parent folder if this is a directory in which KMail stores subfolders (`.NAME.directory`).
pub(crate) fn kmail_parent(directory: &OsStr) -> Option<&OsStr> {
    let hidden = directory.as_bytes().strip_prefix(b".")?;
    let name = hidden.strip_suffix(b".directory")?;
    (!name.is_empty()).then(|| OsStr::from_bytes(name))
}

/// Returns the name of the mailbox if this is a mailbox directory of Apple Mail.
pub(crate) fn apple_mailbox(directory: &OsStr) -> Option<&OsStr> {
    let mut suffixes = OF_APPLE_MAIL.iter();
    suffixes.find_map(|suffix| without_suffix(directory, suffix))
}

/// Returns whether a file has the name of the mbox in a mailbox that Apple Mail exported, compressed or not.
pub(crate) fn is_exported(file: &OsStr) -> bool {
    uncompressed(file) == EXPORTED
}

/// Strips the suffixes of mailbox formats, archives and compression from a file name.
pub(crate) fn plain(file: &OsStr) -> &OsStr {
    let name = uncompressed(file);
    match named(Path::new(name)) {
        Some(_) => Path::new(name).file_stem().unwrap_or(name),
        None => name,
    }
}

/// Returns the name of an archive without the suffixes of its format and compression. For an archive from standard
/// input, returns `mail`.
pub(crate) fn archive_stem(path: &Path) -> String {
    let mut name = Path::new(path.file_name().unwrap_or_default());
    while let (Some(stem), Some(suffix)) = (name.file_stem(), name.extension()) {
        let is_archive = matches!(
            SuffixClass::of(suffix),
            Some(SuffixClass::Archive | SuffixClass::OutlookMailbox)
        );
        if !is_archive && Method::of_name(name).is_none() {
            break;
        }
        name = Path::new(stem);
    }
    match name.to_string_lossy().into_owned() {
        name if name.is_empty() || name == "-" => "mail".to_owned(),
        name => name,
    }
}

/// Returns the kind of mail according to the suffix of a file name, compressed or not.
pub(crate) fn named(path: &Path) -> Option<StartKind> {
    if is_named_tnef(path) {
        return Some(StartKind::Msg);
    }
    let name = uncompressed(path.file_name()?);
    match SuffixClass::of(Path::new(name).extension()?)? {
        SuffixClass::Mbox | SuffixClass::Mbx => Some(StartKind::Mbox),
        SuffixClass::Message | SuffixClass::AppleMessage => Some(StartKind::Eml),
        SuffixClass::OutlookMessage => Some(StartKind::Msg),
        SuffixClass::OutlookMailbox => Some(StartKind::Pst),
        SuffixClass::Archive => Some(StartKind::Archive),
        SuffixClass::RareMbox
        | SuffixClass::SavedPage
        | SuffixClass::OutlookExpress
        | SuffixClass::Compressed
        | SuffixClass::OtherArchive => None,
    }
}

fn uncompressed(file: &OsStr) -> &OsStr {
    let path = Path::new(file);
    match Method::of_name(path) {
        Some(_) => path.file_stem().unwrap_or(file),
        None => file,
    }
}

/// Strips the leading dot of a Maildir++ folder or a hidden directory.
fn nested_name(name: &OsStr) -> Option<&OsStr> {
    let nested = name.as_bytes().strip_prefix(b".")?;
    (!nested.is_empty()).then(|| OsStr::from_bytes(nested))
}

fn of_maildir(nested: &OsStr, nesting: FolderLayout) -> Vec<OsString> {
    let Some(text) = nested.to_str() else {
        return vec![nested.to_owned()];
    };
    // In Maildir++, dots separate the levels, so the name is split before its levels are decoded. A dot inside a level
    // is encoded by Courier.
    let names = text.split('.').filter(|level| !level.is_empty());
    let levels: Vec<String> = names.map(folder_name).collect();
    match nesting {
        FolderLayout::Folders if !levels.is_empty() => {
            levels.into_iter().map(OsString::from).collect()
        }
        _ => vec![levels.join(".").into()],
    }
}

fn decoded(name: &OsStr) -> OsString {
    name.to_str()
        .map_or_else(|| name.to_owned(), |name| folder_name(name).into())
}

fn of_directory(name: &OsStr, nesting: FolderLayout) -> OsString {
    if let Some(parent) = kmail_parent(name) {
        return parent.to_owned();
    }
    let subfolders: &[&str] = match nesting {
        FolderLayout::Folders => &[".sbd"],
        FolderLayout::Directories => &[],
    };
    let mut suffixes = OF_APPLE_MAIL.iter().chain(subfolders);
    let plain = suffixes.find_map(|suffix| without_suffix(name, suffix));
    plain.unwrap_or(name).to_owned()
}

fn of_file(name: &OsStr, nesting: FolderLayout) -> OsString {
    let stem = plain(name);
    if stem == name {
        of_directory(name, nesting)
    } else {
        stem.to_owned()
    }
}

fn without_suffix<'n>(name: &'n OsStr, suffix: &str) -> Option<&'n OsStr> {
    let bytes = name.as_bytes();
    let (stem, end) = bytes.split_at_checked(bytes.len().checked_sub(suffix.len())?)?;
    let is_it = !stem.is_empty() && end.eq_ignore_ascii_case(suffix.as_bytes());
    is_it.then(|| OsStr::from_bytes(stem))
}

/// Returns whether the name has the suffix of a file with mail: an mbox, a message, an archive or a compressed file.
pub(crate) fn names_a_file(path: &Path) -> bool {
    named(path).is_some() || Method::of_name(path).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_of_each_program_become_levels() {
        for (path, kind, folders, directories) in [
            ("", StartKind::Maildir, "INBOX", "INBOX"),
            ("", StartKind::Eml, "", ""),
            (".Work.2023", StartKind::Maildir, "Work|2023", "Work.2023"),
            (
                ".R&-D.Entw&APw-rfe",
                StartKind::Maildir,
                "R&D|Entwürfe",
                "R&D.Entwürfe",
            ),
            (".a&AC4-b", StartKind::Maildir, "a.b", "a.b"),
            (".R&D", StartKind::Maildir, "R&D", "R&D"),
            ("...", StartKind::Maildir, "", ""),
            ("..Work", StartKind::Maildir, "Work", "Work"),
            ("Work/2023", StartKind::Maildir, "Work|2023", "Work|2023"),
            (
                "Inbox.sbd/Work.sbd/2023",
                StartKind::Mbox,
                "Inbox|Work|2023",
                "Inbox.sbd|Work.sbd|2023",
            ),
            (
                "lists/rust.mbox",
                StartKind::Mbox,
                "lists|rust",
                "lists|rust",
            ),
            ("rust.mbox.gz", StartKind::Mbox, "rust", "rust"),
            ("Sent.mbx", StartKind::Eudora, "Sent", "Sent"),
            ("Work.mbox/Sub.mbox", StartKind::Eml, "Work|Sub", "Work|Sub"),
            ("INBOX.imapmbox", StartKind::Eml, "INBOX", "INBOX"),
            ("drafts", StartKind::Mh, "drafts", "drafts"),
            (
                ".inbox.directory/.Work.directory/Deep",
                StartKind::Maildir,
                "inbox|Work|Deep",
                "inbox|Work|Deep",
            ),
            (
                ".directory/x",
                StartKind::Mbox,
                ".directory|x",
                ".directory|x",
            ),
            ("a/x.mbox", StartKind::Pst, "a|x.mbox", "a|x.mbox"),
        ] {
            let source = SourcePath {
                path: Path::new(path),
                kind,
                maildir: None,
            };
            let levels = |nesting| source.levels(nesting).join(OsStr::new("|"));
            assert_eq!(levels(FolderLayout::Folders), folders, "{path}");
            assert_eq!(levels(FolderLayout::Directories), directories, "{path}");
        }
    }

    #[test]
    fn names_below_a_maildir_are_decoded() {
        for (path, maildir, expected) in [
            ("m/Entw&APw-rfe/R&-D", Some(1), "m|Entwürfe|R&D"),
            ("m/Entw&APw-rfe", None, "m|Entw&APw-rfe"),
            ("m/.a.b/R&-D", Some(1), "m|a|b|R&D"),
        ] {
            let source = SourcePath {
                path: Path::new(path),
                kind: StartKind::Maildir,
                maildir,
            };
            let levels = source.levels(FolderLayout::Folders).join(OsStr::new("|"));
            assert_eq!(levels, expected, "{path}");
        }
    }
}
