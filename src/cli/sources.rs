//! Reads complete mailboxes for `store gc`, which deletes the objects that no mail refers to. No mail must be missed,
//! so a file that is encrypted, compressed twice or unreadable prevents the deletion. Mail programs move messages
//! between directories, so the directories are listed repeatedly until no new files appear.
//!
//! This search looks at bytes and knows no mailboxes. So the mail is also read as `inspect` and `compare` read it, and each
//! file that they name as not read prevents the deletion, too.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::say;
use super::streams::is_standard;
use super::wording;
use crate::error::Error;
use crate::fetch::store::layers::Layers;
use crate::mailbox::find::{LOOKED_AT, NotMail, StartKind, find, kind_of_start};
use crate::mailbox::{
    LetterWork, MailboxEvent, MailboxFact, MemberVerdict, Method, ReadOptions, Stop, WholeFile,
    read_source, starts_mmdf,
};
use crate::platform::disk::layout::is_name_of_store;
use crate::platform::{MetadataExt as _, OsStrExt as _};

const ROUNDS: usize = 10;

/// Magic numbers of files that may contain mail but cannot be read here, each with a description.
const CLOSED: &[(&[u8], &str)] = &[
    (b"CRYPTED\x03\x07", "encrypted by Dovecot"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x1f\x9d", "compressed (compress)"),
    (b"LZIP", "compressed (lzip)"),
    (b"\x5d\0\0", "compressed (lzma)"),
    (b"\x89LZO", "compressed (lzop)"),
    (
        b"2 M",
        "a Dovecot dbox file, which may contain compressed mail",
    ),
    (b"-----BEGIN PGP MESSAGE-----", "encrypted by PGP"),
    (b"age-encryption.org/", "encrypted by age"),
];

/// Magic numbers of files that contain no mail but are often next to saved mail: pictures, PDF documents, and text in
/// UTF-16. Such files are no error. UTF-16 is in the list because its NUL bytes would otherwise make it unknown binary
/// data.
const OPEN: &[&[u8]] = &[
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"%PDF-",
    b"\xff\xfe",
    b"\xfe\xff",
];

const INDEXES: &[(&str, &str)] = &[
    ("dovecot.index", ""),
    ("dovecot.list.index", ""),
    ("dovecot.map.index", ""),
    ("dovecot.mailbox.log", ""),
    ("dovecot-", ""),
    ("courierimap", ""),
    ("cyrus.", ""),
    // State files of MH, Claws Mail and Sylpheed, which contain no mail.
    (".mh_", ""),
    (".xmhcache", ""),
    (".claws_", ""),
    (".sylpheed_", ""),
    // Xapian database in which notmuch indexes mail.
    ("", ".glass"),
    ("iamglass", ""),
    ("flintlock", ""),
    // Indexes of Evolution, KMail, mbsync and macOS.
    ("", ".cmeta"),
    ("", ".ibex.index"),
    ("", ".ibex.index.data"),
    (".", ".index"),
    (".", ".index.ids"),
    (".", ".index.sorted"),
    (".isync", ""),
    (".DS_Store", ""),
];

#[derive(Default)]
pub(super) struct CliSources {
    /// Files that were already read: a hash of path, size and time of each file. A file that was changed since has
    /// another hash, so it is read again.
    seen: HashSet<u64>,
    pub(super) files: u64,
    pub(super) octets: u64,
    been: HashSet<(u64, u64)>,
    /// Symbolic links in the sources whose target exists.
    links: BTreeSet<PathBuf>,
    /// Files that `trouble` names.
    named: HashSet<PathBuf>,
    pub(super) trouble: BTreeSet<String>,
}

impl CliSources {
    /// Reads all files. `visit` gets the path of a file, a piece of its content, and the offset at which the piece
    /// ends. Pieces overlap, so that each reference is complete in one of them. Decoded content of the file is also
    /// passed to `visit`.
    ///
    /// Files that embody itself wrote into `store` are skipped. Objects can refer to each other, and an unreferenced
    /// object must not keep another object alive.
    pub(super) fn read(
        sources: &[PathBuf],
        store: &Path,
        stop: &Stop,
        visit: &mut dyn FnMut(&Path, u64, &[u8]),
    ) -> Result<Self, Error> {
        let mut read = Self::default();
        if sources.iter().any(|source| is_standard(source)) {
            let what = "this command reads each source several times, so it cannot read standard input; name a file";
            return Err(Error::Usage(what.into()));
        }
        for round in 0.. {
            let mut found = Vec::new();
            for source in sources {
                read.list(source, store, &mut found);
            }
            let before = read.seen.len();
            for path in found {
                stop.check()?;
                match read.file(&path, stop, visit) {
                    Ok(()) => {}
                    Err(why @ Error::Interrupted) => return Err(why),
                    // The file was moved after the directory was listed. The next listing finds it in its new place.
                    Err(Error::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                        read.seen.insert(hash(&(round, &path)));
                    }
                    Err(why) => {
                        read.trouble.insert(say::error(&why));
                        read.named.insert(path);
                    }
                }
            }
            if read.seen.len() == before {
                break;
            }
            if round == ROUNDS {
                let what = "other programs keep changing the directory; run the same command again when they are idle";
                read.trouble.insert(what.to_owned());
                break;
            }
        }
        read.judge(sources, stop)?;
        Ok(read)
    }

    /// Adds the files that other commands name as not read, such as an empty `.msg` file. A file that is named already is not
    /// named again.
    fn judge(&mut self, sources: &[PathBuf], stop: &Stop) -> Result<(), Error> {
        let options = ReadOptions {
            may_lack_mail: sources.len() > 1,
            ..ReadOptions::default()
        };
        for source in sources {
            // A pipe is not opened here, because opening it would block until a program writes to it. `list` reports it.
            let is_stream = fs::metadata(source).is_ok_and(|it| !it.is_file() && !it.is_dir());
            if is_stream || self.named.contains(source) {
                continue;
            }
            match self.add_unread(source, &options, stop) {
                Err(why @ Error::Interrupted) => return Err(why),
                Err(Error::NotAMailbox { .. }) if is_text(source) => {}
                Err(why) => {
                    self.trouble.insert(say::error(&why));
                }
                Ok(()) => {}
            }
        }
        // Other commands do not follow symbolic links, but this search does.
        let canonical = |path: &PathBuf| path.canonicalize().ok();
        let mut read: Vec<PathBuf> = sources.iter().filter_map(canonical).collect();
        for link in std::mem::take(&mut self.links) {
            let target =
                canonical(&link).filter(|it| !read.iter().any(|place| it.starts_with(place)));
            let Some(target) = target else {
                continue;
            };
            match self.add_unread(&link, &options, stop) {
                Err(why @ Error::Interrupted) => return Err(why),
                // A link to a directory or file without mail is no problem, unlike a source without mail.
                Err(Error::NotAMailbox { .. }) | Ok(()) => {}
                Err(why) => {
                    self.trouble.insert(say::error(&why));
                }
            }
            read.push(target);
        }
        Ok(())
    }

    /// Reads the mail of a source as other commands do, and adds the files that are not read.
    fn add_unread(
        &mut self,
        source: &Path,
        options: &ReadOptions,
        stop: &Stop,
    ) -> Result<(), Error> {
        let work = LetterWork {
            work: &|_| Ok(()),
            weight: &|()| 0,
        };
        let mut mailbox = source.to_owned();
        let mut unread = Vec::new();
        read_source(source, (options, stop), &work, &mut |event| {
            match event {
                MailboxEvent::Begin(path) => mailbox = path,
                MailboxEvent::Fact(
                    MailboxFact::Damaged(path, why) | MailboxFact::Lost(path, why),
                ) => {
                    unread.push((path, wording::detail(&why)));
                }
                MailboxEvent::Done(summary) if summary.oversized > 0 => {
                    let why = format!("{} messages are too large", summary.oversized);
                    unread.push((mailbox.clone(), why));
                }
                _ => {}
            }
            Ok(())
        })?;
        // A link is named because other commands do not follow it. A message that is gone was moved, and the search found it
        // in its new place.
        let is_followed = |path: &Path| path.is_symlink() && path.exists();
        let is_gone = |path: &Path| {
            let was_listed = path.parent().is_some_and(Path::is_dir);
            was_listed
                && fs::symlink_metadata(path).is_err_and(|it| it.kind() == io::ErrorKind::NotFound)
        };
        for (path, why) in unread {
            if !self.named.contains(&path) && !is_followed(&path) && !is_gone(&path) {
                self.cannot_read(&path, &why);
            }
        }
        Ok(())
    }

    pub(super) fn include(&self, path: &Path, sources: &[PathBuf]) -> io::Result<bool> {
        let whole = path.canonicalize()?;
        let metadata = fs::metadata(&whole)?;
        let is_within = |source: &PathBuf| {
            let source = source.canonicalize();
            source.is_ok_and(|source| whole.starts_with(source))
        };
        Ok(self.been.contains(&(metadata.dev(), metadata.ino())) || sources.iter().any(is_within))
    }

    fn list(&mut self, source: &Path, store: &Path, found: &mut Vec<PathBuf>) {
        let store = fs::metadata(store).map(|it| (it.dev(), it.ino())).ok();
        let mut folders = vec![source.to_owned()];
        // Symbolic links can form a loop, so each directory is read only once.
        let mut been = HashSet::new();
        while let Some(path) = folders.pop() {
            let metadata = match fs::metadata(&path) {
                Ok(metadata) => metadata,
                Err(why) if path != source && why.kind() == io::ErrorKind::NotFound => {
                    // A regular file that is gone was moved, and the next listing finds it. A dangling symbolic link is
                    // an error, because the mail to which it leads cannot be read.
                    if fs::symlink_metadata(&path).is_ok_and(|it| it.is_symlink()) {
                        self.cannot_read(&path, "a symbolic link whose target does not exist");
                    }
                    continue;
                }
                Err(why) => {
                    self.failed(&path, why);
                    continue;
                }
            };
            self.been.insert((metadata.dev(), metadata.ino()));
            if path != source && path.is_symlink() {
                self.links.insert(path.clone());
            }
            if metadata.is_file() {
                found.push(path);
            } else if !metadata.is_dir() {
                self.cannot_read(&path, "neither a file nor a folder");
            } else if been.insert((metadata.dev(), metadata.ino())) {
                let entries = fs::read_dir(&path).and_then(|entries| {
                    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
                    paths.collect::<io::Result<Vec<_>>>()
                });
                let is_store = store == Some((metadata.dev(), metadata.ino()));
                let is_of_store = |path: &PathBuf| {
                    is_store
                        && path
                            .file_name()
                            .is_some_and(|name| is_name_of_store(name.as_bytes()))
                };
                match entries.map(|paths| paths.into_iter().filter(|path| !is_of_store(path))) {
                    Ok(paths) => folders.extend(paths),
                    Err(why) => self.failed(&path, why),
                }
            }
        }
        found.sort_unstable();
    }

    fn failed(&mut self, path: &Path, source: io::Error) {
        let error = Error::cannot_read(path.display())(source);
        self.trouble.insert(say::error(&error));
        self.named.insert(path.to_owned());
    }

    fn cannot_read(&mut self, path: &Path, why: &str) {
        self.trouble.insert(format!("{}: {why}", path.display()));
        self.named.insert(path.to_owned());
    }

    fn file(
        &mut self,
        path: &Path,
        stop: &Stop,
        visit: &mut dyn FnMut(&Path, u64, &[u8]),
    ) -> Result<(), Error> {
        let failed = Error::cannot_read(path.display());
        let file = File::open(path).map_err(&failed)?;
        let metadata = file.metadata().map_err(&failed)?;
        let changed = (metadata.len(), metadata.mtime(), metadata.mtime_nsec());
        let state = (path, metadata.dev(), metadata.ino(), changed);
        if !self.seen.insert(hash(&state)) {
            return Ok(());
        }
        self.files += 1;
        let options = ReadOptions::default();
        let whole = WholeFile::open(file, judged, &options, stop).map_err(&failed)?;
        if let Some((_, what)) = hidden(path, whole.start()) {
            self.cannot_read(path, &what);
            return Ok(());
        }
        let mut layers = Layers::default();
        let mut end = 0;
        let octets = &mut self.octets;
        let mut named = Vec::new();
        let read = whole.read(
            &options,
            stop,
            &mut |at, piece| {
                layers.push(piece, &mut |window| visit(path, at, window));
                end = at + piece.len() as u64;
                *octets += piece.len() as u64;
            },
            &mut |sentence| named.push(sentence),
        );
        stop.check()?;
        for sentence in named {
            self.cannot_read(path, &sentence);
        }
        read.map_err(&failed)?;
        layers.finish(&mut |window| visit(path, end, window));
        Ok(())
    }
}

fn judged(name: &[u8], start: &[u8]) -> MemberVerdict {
    if Method::of_start(start).is_some() {
        return MemberVerdict::Left("compressed within the archive");
    }
    let name = String::from_utf8_lossy(name);
    match hidden(Path::new(name.as_ref()), start) {
        Some((what, _)) => MemberVerdict::Left(what),
        // Unknown binary data with a name that `hidden` accepts is an index, for example of Dovecot. It must be skipped
        // here: `hidden` would later check its content without the name, and stop the command.
        None => match kind_of_start(start) {
            Ok(StartKind::Mbox) if !starts_mmdf(start) => MemberVerdict::Taken,
            Ok(kind) => MemberVerdict::Message(kind),
            Err(_) if is_binary(start) && !is_open(start) => MemberVerdict::Skipped("an index"),
            Err(_) => MemberVerdict::Message(StartKind::Eml),
        },
    }
}

const UNKNOWN: &str = "binary data that cannot be read; the file may be encrypted or compressed mail; if the file is not mail, move it to another directory";

fn hidden(path: &Path, start: &[u8]) -> Option<(&'static str, String)> {
    let format = |what, advice| Some((what, format!("{what}; {advice}")));
    let unknown = || Some((UNKNOWN, UNKNOWN.to_owned()));
    if let Some((_, what)) = CLOSED.iter().find(|(magic, _)| start.starts_with(magic)) {
        return format(*what, "its content was not read");
    }
    let folder = path.parent().and_then(Path::file_name);
    let in_folder_of_mails = folder.is_some_and(|it| it == "cur" || it == "new");
    match kind_of_start(start) {
        Err(NotMail::Format(what, advice)) => format(what, advice),
        Ok(StartKind::Pst) => format("an Outlook mailbox", "its content was not read"),
        // Archives are unpacked before. An archive that still occurs here was compressed again, so it cannot be read.
        Ok(StartKind::Archive) => {
            let why = "a zip archive that was compressed again; decompress the file first";
            Some(("an archive within an archive", why.to_owned()))
        }
        Ok(_) => None,
        Err(_) if !is_binary(start) => None,
        // Mail programs write only messages into `cur` and `new`. A binary file there may be encrypted mail, even if
        // its name or first bytes are those of an index or a picture.
        Err(_) if in_folder_of_mails => unknown(),
        Err(_) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_of =
                |(start, end): &(&str, &str)| name.starts_with(start) && name.ends_with(end);
            unknown().filter(|_| !is_open(start) && !INDEXES.iter().any(is_of))
        }
    }
}

fn is_open(start: &[u8]) -> bool {
    OPEN.iter().any(|magic| start.starts_with(magic))
}

/// Returns whether the data look binary: they contain a NUL byte, or control characters and many bytes above 127. Even
/// a short piece of compressed or encrypted data does.
fn is_binary(start: &[u8]) -> bool {
    let is_control = |octet: &u8| {
        octet.is_ascii_control() && !matches!(octet, b'\t'..=b'\r' | b'\x1a' | b'\x1b')
    };
    let high = start.iter().filter(|octet| !octet.is_ascii()).count();
    matches!(kind_of_start(start), Err(NotMail::Binary))
        || start.contains(&0)
        || high * 10 > start.len() * 3 && start.iter().any(is_control)
}

/// Returns an error for a source without mail, because it is probably misspelled or not mounted.
pub(super) fn holds_mail(source: &Path, stop: &Stop) -> Result<(), Error> {
    // A pipe is not opened here, because opening it would block until a program writes to it. `list` reports it later
    // as an error.
    if fs::metadata(source).is_ok_and(|it| !it.is_file() && !it.is_dir()) {
        return Ok(());
    }
    match find(source, &ReadOptions::default(), stop) {
        Err(why) if !matches!(&why, Error::NotAMailbox { .. } if is_text(source)) => Err(why),
        _ => Ok(()),
    }
}

/// Returns whether the file can be read as mail. Any text is accepted, even without a header, because it may be the
/// body of a message with references to the store.
fn is_text(source: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(source).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut start));
    read.is_ok() && matches!(kind_of_start(&start), Ok(_) | Err(NotMail::Text))
}

fn hash(of: &impl std::hash::Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(of)
}
