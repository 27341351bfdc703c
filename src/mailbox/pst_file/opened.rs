use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::engine::outlook::pst::{PstMailbox, PstTreeFolder, RandomAccess};
use crate::mailbox::ReadOptions;
use crate::mailbox::forms::names::FolderNames;
use crate::outlook::OnDisk;

/// A folder of an open Outlook mailbox.
#[derive(Clone)]
pub(crate) struct PstFolder {
    pub(crate) opened: Arc<OpenPst>,
    index: usize,
}

pub(crate) struct OpenPst {
    path: PathBuf,
    pub(crate) mailbox: PstMailbox,
    length: u64,
    /// Total size of the messages that were created from the file, in bytes.
    made: AtomicU64,
}

impl OpenPst {
    /// Returns the number of bytes that the further messages of the file may have together. Items can share content, so
    /// without this limit a small file could expand to a huge mailbox.
    pub(crate) fn room(&self, options: &ReadOptions) -> u64 {
        const ALWAYS: u64 = 64 << 20;
        const TIMES: u64 = 1000;
        // Attachments grow by a third in base64, so the mail is normally larger than the file. The option that limits
        // expanded data must not truncate such mail, so growth up to this factor is always allowed.
        const USUAL: u64 = 3;
        let usual = self.length.saturating_mul(USUAL);
        let plausible = self.length.saturating_mul(TIMES).max(ALWAYS);
        let most = plausible.min(options.max_expanded.max(usual));
        most.saturating_sub(self.made.load(Ordering::Relaxed))
    }

    /// Counts the bytes of a message that was created.
    pub(crate) fn count(&self, octets: u64) {
        self.made.fetch_add(octets, Ordering::Relaxed);
    }
}

impl PartialEq for PstFolder {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.opened, &other.opened) && self.index == other.index
    }
}

impl Eq for PstFolder {}

impl fmt::Debug for PstFolder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.opened.path.display(), self.index)
    }
}

impl PstFolder {
    /// Returns the path of the mailbox file.
    pub(crate) fn file(&self) -> &Path {
        &self.opened.path
    }

    /// Returns the ids of the items in the folder.
    pub(crate) fn items(&self) -> &[u32] {
        let folder: Option<&PstTreeFolder> = self.opened.mailbox.folders().get(self.index);
        folder
            .map(|folder| folder.items.as_slice())
            .unwrap_or_default()
    }
}

/// Opens an Outlook mailbox. Returns each folder with its path, and a sentence for the report about each damaged list.
///
/// # Errors
/// Returns the reason as a text that the caller prints after the name of the file.
#[allow(clippy::type_complexity)] // a list of folders, and a list of sentences
pub(crate) fn open(path: &Path) -> Result<(Vec<(PathBuf, PstFolder)>, Vec<String>), String> {
    let file = File::open(path).map_err(|why| format!("the file cannot be read: {why}"))?;
    opened(path, file)
}

/// Opens the Outlook mailbox in `file`. The file is at `path`, or is a temporary copy of an archive member or stream with
/// this path.
#[allow(clippy::type_complexity)] // as above
pub(crate) fn opened(
    path: &Path,
    file: File,
) -> Result<(Vec<(PathBuf, PstFolder)>, Vec<String>), String> {
    let file = OnDisk::of(file).map_err(|why| format!("the file cannot be read: {why}"))?;
    let length = file.length();
    let mailbox = PstMailbox::open(Box::new(file))?;
    let damage = mailbox.damage().to_vec();
    let paths = paths(&mailbox);
    let opened = Arc::new(OpenPst {
        path: path.to_owned(),
        mailbox,
        length,
        made: AtomicU64::new(0),
    });
    let folder = |(index, path)| {
        let opened = Arc::clone(&opened);
        (path, PstFolder { opened, index })
    };
    Ok((paths.into_iter().enumerate().map(folder).collect(), damage))
}

/// Returns a unique path for each folder, made of the names of its parent folders and its own name.
fn paths(mailbox: &PstMailbox) -> Vec<PathBuf> {
    let mut names: HashMap<PathBuf, FolderNames> = HashMap::new();
    let mut known: HashMap<Vec<String>, PathBuf> = HashMap::new();
    let mut taken = HashMap::new();
    let folders = mailbox.folders().iter();
    let paths = folders.map(|folder| {
        let mut path = PathBuf::new();
        for end in 1..=folder.path.len() {
            let Some((levels, Some(last))) = folder.path.get(..end).map(|it| (it, it.last()))
            else {
                continue;
            };
            if let Some(made) = known.get(levels) {
                path.clone_from(made);
                continue;
            }
            path = give(&mut names, &path, last);
            known.insert(levels.to_vec(), path.clone());
        }
        // Two folders may have the same name, so the second one gets another path.
        if taken.insert(path.clone(), ()).is_some()
            && let (Some(parent), Some(last)) = (path.parent(), folder.path.last())
        {
            path = give(&mut names, parent, last);
            taken.insert(path.clone(), ());
        }
        path
    });
    paths.collect()
}

fn give(names: &mut HashMap<PathBuf, FolderNames>, parent: &Path, name: &str) -> PathBuf {
    let names = names.entry(parent.to_owned()).or_default();
    let given = names.give(name, "", |_| Ok::<bool, std::convert::Infallible>(true));
    match given {
        Ok(name) => parent.join(name),
        Err(never) => match never {},
    }
}

#[test]
#[allow(clippy::unwrap_used)]
fn room_for_the_mail_of_a_file_is_never_less_than_its_attachments_need_in_base64() {
    use crate::engine::outlook::pst::sample::{Form, Message, Pst};
    let opened = |length: u64| {
        let mut pst = Pst::in_memory(Form {
            version: 23,
            encoding: 1,
        });
        pst.folder(None, "Inbox", &[Message::mail("a", "b")]);
        OpenPst {
            path: PathBuf::new(),
            mailbox: PstMailbox::open(Box::new(pst.bytes())).unwrap(),
            length,
            made: AtomicU64::new(0),
        }
    };
    let mut options = ReadOptions {
        max_expanded: 64 << 30,
        ..ReadOptions::default()
    };
    assert_eq!(opened(200_000).room(&options), 200_000_000);
    assert_eq!(opened(1000).room(&options), 64 << 20);
    assert_eq!(opened(1 << 30).room(&options), 64 << 30);
    assert_eq!(opened(50 << 30).room(&options), 150 << 30);
    options.max_expanded = 1 << 20;
    assert_eq!(opened(1000).room(&options), 1 << 20);
    let large = opened(1 << 30);
    large.count(1 << 30);
    assert_eq!(large.room(&options), 2 << 30);
}
