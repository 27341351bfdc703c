//! Reads Outlook mailboxes: `.pst` files of the versions 14, 15 (ANSI) and 23 (Unicode) (MS-PST).
//!
//! [`PstMailbox::open`] reads the index of items, and [`PstMailbox::item`] reads one item at a time. Nothing is
//! written. Outlook only compares the password of a file, so it is not needed here. Damaged files are read as far as
//! possible, and the damage is reported.

mod encoding;
mod ltp;
mod ndb;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use self::ltp::{PropertyList, PropertyTable};
pub use self::ndb::{Fault, RandomAccess, SIGNATURE, TOO_LARGE, header, version};
use self::ndb::{Node, PstIndex, ReadAllowance};
use super::codepage::{WESTERN, is_of_system, of_locale};
use super::properties::{
    AttachmentContent, OutlookAttachment, OutlookItem, Properties, PropertyValue, id, integer, text,
};
use super::values::{PropertyIds, set_page};

/// Kinds of nodes: the low bits of their ids.
mod kind {
    pub(super) const FOLDER: u32 = 0x02;
    pub(super) const MESSAGE: u32 = 0x04;
    pub(super) const ATTACHMENT: u32 = 0x05;
    pub(super) const CONTENTS: u32 = 0x0e;
}

const STORE: u32 = 0x21;
const NAMES: u32 = 0x61;
const ROOT: u32 = 0x122;
const ATTACHMENTS: u32 = 0x671;
const RECIPIENTS: u32 = 0x692;

/// Maximum nesting depth of folders.
const MOST_LEVELS: usize = 50;
/// Maximum nesting depth of attached items.
const DEEPEST: usize = 20;
/// Maximum number of misfiled nodes that are examined. A wrong bit in its id can make a message look like another kind
/// of node, and a hostile file could contain millions of such nodes.
const MOST_ODD: usize = 1000;
/// Maximum number of bytes that are read from the file to list its folders.
const LISTS: u64 = 64 << 20;

/// An open `.pst` file, with a list of its folders.
pub struct PstMailbox {
    file: PstIndex,
    names: PropertyIds,
    folders: Vec<PstTreeFolder>,
    damage: Vec<String>,
}

/// A folder of the mailbox, with the items in it.
#[derive(Debug)]
pub struct PstTreeFolder {
    /// Names of the folder and of the folders above it. The names are untrusted input.
    pub path: Vec<String>,
    /// The ids of its items.
    pub items: Vec<u32>,
}

/// An item that was read, and a sentence for each piece of its content that could not be read.
#[derive(Debug)]
pub struct ItemResult {
    pub item: OutlookItem<'static>,
    pub damage: Vec<String>,
}

/// An item that could not be read, with its subject if that is known.
#[derive(Debug)]
pub struct UnreadItem {
    pub subject: Option<String>,
    pub why: Fault,
}

/// Classes of items that are not mail, each with a name for the report.
const OTHERS: [(&str, &str); 8] = [
    ("ipm.contact", "an Outlook contact"),
    ("ipm.distlist", "an Outlook contact"),
    ("ipm.appointment", "an Outlook appointment"),
    ("ipm.task", "an Outlook task"),
    ("ipm.taskrequest", "an Outlook task"),
    ("ipm.stickynote", "an Outlook note"),
    ("ipm.activity", "an Outlook journal entry"),
    (
        "ipm.microsoft.scheduledata",
        "an Outlook list of free and busy times",
    ),
];

/// Kind of an item: mail, or something else, such as a contact, with the name that reports use.
pub enum ItemKind {
    Mail,
    Other(&'static str),
}

impl PstMailbox {
    /// Opens a file and lists its folders.
    ///
    /// # Errors
    /// Returns a clause that follows the name of the file.
    pub fn open(bytes: Box<dyn RandomAccess>) -> Result<Self, Fault> {
        let file = PstIndex::open(bytes)?;
        let mut allowance = ReadAllowance::new(LISTS);
        let mut folders: BTreeMap<u32, u32> = BTreeMap::new();
        let mut messages: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut odd = Vec::new();
        file.nodes(&mut allowance, |node| match node.id & 0x1f {
            kind::FOLDER => _ = folders.insert(node.id, node.parent),
            kind::MESSAGE => messages.entry(node.parent).or_default().push(node.id),
            // In an intact file, nodes with these types are never in a folder. Here, such a node may be a message whose
            // id has a wrong bit.
            0x05..=0x07 | 0x09 | 0x13..=0x1e if odd.len() < MOST_ODD => odd.push(node),
            _ => {}
        });
        // A node of another type is kept if it may be a message whose id has a wrong bit: the index is damaged, and the
        // parent of the node is a folder.
        odd.retain(|node| folders.contains_key(&node.parent) && !allowance.damage.is_empty());
        if folders.is_empty() && messages.is_empty() {
            // The text after the semicolon is advice for the user, which the error below repeats, so it is cut off.
            let why = allowance
                .damage
                .first()
                .map(|why| why.split(';').next().unwrap_or_default())
                .map_or_else(String::new, |why| format!(" ({why})"));
            return Err(format!(
                "the file has no index of items that can be read{why}; get another copy of the file, or repair a copy with scanpst, which comes with Outlook"
            ));
        }
        let mut mailbox = Self {
            file,
            names: PropertyIds::default(),
            folders: Vec::new(),
            damage: Vec::new(),
        };
        odd.retain(|node| mailbox.class(node.id).is_some());
        for node in odd {
            messages.entry(node.parent).or_default().push(node.id);
        }
        match mailbox.names(&mut allowance) {
            Ok(names) => mailbox.names = names,
            Err(why) => allowance.tell(format!(
                "the names of properties cannot be read: {why}; categories and details of meetings may be missing"
            )),
        }
        mailbox.list(&folders, messages, &mut allowance);
        mailbox.damage = allowance.damage;
        Ok(mailbox)
    }

    /// Returns the folders that contain items, in the order of their ids. Items whose folder is missing from the file are in
    /// an additional folder, which is the last one.
    pub fn folders(&self) -> &[PstTreeFolder] {
        &self.folders
    }

    /// Returns one sentence for each fault in the index and in the lists of folders and items.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    fn names(&self, allowance: &mut ReadAllowance) -> Result<PropertyIds, Fault> {
        let node = self.file.node(NAMES, allowance)?;
        let list = PropertyList::open(&self.file, node, allowance)?;
        let mut stream = |id| match list.value(id, allowance) {
            Some(PropertyValue::Bytes(bytes)) => bytes.into_owned(),
            _ => Vec::new(),
        };
        let [guids, entries, strings] = [2, 3, 4].map(&mut stream);
        Ok(PropertyIds::read(&guids, &entries, &strings))
    }

    fn list(
        &mut self,
        parents: &BTreeMap<u32, u32>,
        mut messages: BTreeMap<u32, Vec<u32>>,
        allowance: &mut ReadAllowance,
    ) {
        let top = self.top(allowance);
        let mut names: HashMap<u32, String> = HashMap::new();
        let mut page = None;
        for folder in parents.keys() {
            let name = self.name_of(*folder, allowance).and_then(|name| {
                let page = match &name {
                    PropertyValue::Narrow(bytes) if !bytes.is_ascii() => {
                        *page.get_or_insert_with(|| self.page(&messages))
                    }
                    _ => WESTERN,
                };
                text(&name, page).filter(|name| !name.trim().is_empty())
            });
            names.insert(*folder, name.unwrap_or_else(|| without_name(*folder)));
        }
        for folder in parents.keys() {
            let mut items = messages.remove(folder).unwrap_or_default();
            let known: HashSet<u32> = items.iter().copied().collect();
            let name = names.get(folder).map(String::as_str).unwrap_or_default();
            let listed = self.listed(*folder, name, allowance);
            // Items that the folder lists but the index lacks are added, so that the attempt to read them reports the
            // loss.
            items.extend(listed.into_iter().filter(|id| !known.contains(id)));
            if items.is_empty() {
                continue;
            }
            let mut path = Vec::new();
            let mut at = *folder;
            while at != ROOT && Some(at) != top && path.len() < MOST_LEVELS {
                path.extend(names.get(&at).cloned());
                match parents.get(&at) {
                    Some(parent) if *parent != at => at = *parent,
                    _ => break,
                }
            }
            path.reverse();
            if path.is_empty() {
                // The topmost folder is left out of the paths of all others. Its own path must not be empty, so it
                // consists of its name, which is the name of the mailbox.
                path.extend(names.get(folder).cloned());
            }
            self.folders.push(PstTreeFolder { path, items });
        }
        // Items that are left here belong to folders that are missing from the file.
        let items: Vec<u32> = messages.into_values().flatten().collect();
        if !items.is_empty() {
            let path = vec![ORPHANS.to_owned()];
            self.folders.push(PstTreeFolder { path, items });
        }
    }

    /// Returns the root of the visible folder tree. Its name is the name of the mailbox.
    fn top(&self, allowance: &mut ReadAllowance) -> Option<u32> {
        let node = self.file.node(STORE, allowance).ok()?;
        let list = PropertyList::open(&self.file, node, allowance).ok()?;
        let Some(PropertyValue::Bytes(entry)) = list.value(0x35e0, allowance) else {
            return None;
        };
        ndb::u32_at(&entry, 20)
    }

    /// Returns the code page of folder names. The file does not declare it, so the most frequent code page of the
    /// messages is used.
    fn page(&self, messages: &BTreeMap<u32, Vec<u32>>) -> u32 {
        const ENOUGH: usize = 200;
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for message in messages.values().flatten().take(ENOUGH) {
            let mut allowance = ReadAllowance::new(LISTS);
            let node = self.file.node(*message, &mut allowance);
            let list = node.and_then(|node| PropertyList::open(&self.file, node, &mut allowance));
            let Ok(list) = list else { continue };
            let mut number = |id| {
                let number = integer(&list.value(id, &mut allowance)?)?;
                u32::try_from(number).ok()
            };
            let page = number(id::MESSAGE_CODEPAGE)
                .filter(|page| is_of_system(*page))
                .or_else(|| of_locale(number(id::LOCALE)?))
                .unwrap_or(WESTERN);
            *counts.entry(page).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map_or(WESTERN, |(page, _)| page)
    }

    fn name_of(
        &self,
        folder: u32,
        allowance: &mut ReadAllowance,
    ) -> Option<PropertyValue<'static>> {
        let node = self.file.node(folder, allowance).ok()?;
        let list = PropertyList::open(&self.file, node, allowance).map_err(|why| {
            let name = without_name(folder);
            allowance.tell(format!(
                "the name of a folder cannot be read: {why}; the folder is called {name:?}"
            ));
        });
        list.ok()?.value(id::DISPLAY_NAME, allowance)
    }

    /// Returns the ids of the items that a folder lists.
    fn listed(&self, folder: u32, name: &str, allowance: &mut ReadAllowance) -> Vec<u32> {
        let id = folder & !0x1f | kind::CONTENTS;
        let Ok(node) = self.file.node(id, allowance) else {
            return Vec::new();
        };
        match PropertyTable::open(&self.file, node, allowance) {
            Ok(table) => {
                let ids = table.rows.iter().map(|row| row.0);
                ids.filter(|id| id & 0x1f == kind::MESSAGE).collect()
            }
            Err(why) => {
                allowance.tell(format!(
                    "the list of the items in the folder {name:?} cannot be read: {why}; items that only this list names are missing"
                ));
                Vec::new()
            }
        }
    }

    fn class(&self, item: u32) -> Option<String> {
        let mut allowance = ReadAllowance::new(LISTS);
        let node = self.file.node(item, &mut allowance).ok()?;
        let list = PropertyList::open(&self.file, node, &mut allowance).ok()?;
        text(&list.value(id::MESSAGE_CLASS, &mut allowance)?, WESTERN)
    }

    /// Returns the kind of an item. An item whose class cannot be read counts as mail, so that reading it reports the damage.
    pub fn kind(&self, item: u32) -> ItemKind {
        let class = self.class(item).unwrap_or_default().to_ascii_lowercase();
        let is = |known: &str| {
            let rest = class.strip_prefix(known);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let other = OTHERS.iter().find(|row| is(row.0));
        other.map_or(ItemKind::Mail, |(_, name)| ItemKind::Other(name))
    }

    /// Reads an item of at most `room` bytes.
    ///
    /// # Errors
    /// Returns the reason why the item cannot be read.
    pub fn item(&self, id: u32, room: u64) -> Result<ItemResult, UnreadItem> {
        // An item cannot be much larger than the file that contains it, so the length of the file also limits it.
        let most = self.file.length().saturating_mul(2);
        let mut allowance = ReadAllowance::new(room.min(most));
        let read = self.file.node(id, &mut allowance);
        match read.and_then(|node| self.read(node, DEEPEST, &mut allowance)) {
            Ok(item) => Ok(ItemResult {
                item,
                damage: allowance.damage,
            }),
            Err(why) => Err(UnreadItem {
                subject: self.subject(id),
                why: if why == TOO_LARGE && most < room {
                    "the parts of the item are together larger than the file".to_owned()
                } else {
                    why
                },
            }),
        }
    }

    fn subject(&self, item: u32) -> Option<String> {
        let mut allowance = ReadAllowance::new(LISTS);
        let node = self.file.node(item, &mut allowance).ok()?;
        let list = PropertyList::open(&self.file, node, &mut allowance).ok()?;
        text(&list.value(id::SUBJECT, &mut allowance)?, WESTERN)
    }

    fn read(
        &self,
        node: Node,
        depth: usize,
        allowance: &mut ReadAllowance,
    ) -> Result<OutlookItem<'static>, Fault> {
        let list = PropertyList::open(&self.file, node, allowance)?;
        let mut item = OutlookItem {
            properties: list.all(&self.names, &[], allowance)?,
            ..OutlookItem::default()
        };
        let parts = &list.heap.subnodes;
        if let Some(node) = parts.get(&RECIPIENTS) {
            let table = PropertyTable::open(&self.file, *node, allowance);
            match table.and_then(|table| table.all(&self.names, allowance)) {
                Ok(recipients) => item.recipients = recipients,
                Err(why) if why == TOO_LARGE => return Err(why),
                Err(why) => allowance.tell(format!("the recipients cannot be read: {why}")),
            }
        }
        let is_attachment = |id: &u32| id & 0x1f == kind::ATTACHMENT;
        let mut ids: Vec<u32> = parts.keys().copied().filter(is_attachment).collect();
        ids.sort_unstable();
        if let Some(node) = parts.get(&ATTACHMENTS)
            && let Ok(table) = PropertyTable::open(&self.file, *node, allowance)
        {
            // Keeps the order of the table, in which Outlook shows the attachments.
            let known: HashSet<u32> = ids.iter().copied().collect();
            let mut listed: Vec<u32> = table.rows.iter().map(|row| row.0).collect();
            let missing = listed.iter().filter(|id| !known.contains(id)).count();
            if missing > 0 {
                allowance.tell(match missing {
                    1 => "an attachment is not in the file".to_owned(),
                    _ => format!("{missing} attachments are not in the file"),
                });
            }
            let mut seen = HashSet::new();
            listed.retain(|id| known.contains(id) && seen.insert(*id));
            listed.extend(ids.iter().copied().filter(|id| !seen.contains(id)));
            ids = listed;
        }
        for id in ids {
            let Some(node) = parts.get(&id) else { continue };
            match self.attachment(*node, depth, allowance) {
                Ok(attachment) => item.attachments.push(attachment),
                Err(why) if why == TOO_LARGE => return Err(why),
                Err(why) => allowance.tell(format!("an attachment cannot be read: {why}")),
            }
        }
        set_page(&mut item);
        Ok(item)
    }

    fn attachment(
        &self,
        node: Node,
        depth: usize,
        allowance: &mut ReadAllowance,
    ) -> Result<OutlookAttachment<'static>, Fault> {
        let list = PropertyList::open(&self.file, node, allowance)?;
        let properties = list.all(&self.names, &[id::DATA], allowance)?;
        let method = properties.integer(id::METHOD);
        let embedded = list.object(id::DATA).filter(|_| method == Some(5));
        let content = match embedded.map(|id| list.heap.subnodes.get(&id)) {
            Some(Some(_)) if depth == 0 => {
                allowance.tell(format!(
                    "the item has messages within messages to more than {DEEPEST} levels; the innermost messages are missing"
                ));
                AttachmentContent::None
            }
            Some(Some(node)) => {
                AttachmentContent::Item(Box::new(self.read(*node, depth - 1, allowance)?))
            }
            Some(None) => {
                allowance.tell("an attached message is not in the file".to_owned());
                AttachmentContent::None
            }
            None => self.file_of(&list, &properties, allowance)?,
        };
        Ok(OutlookAttachment {
            properties,
            content,
        })
    }

    fn file_of(
        &self,
        list: &PropertyList<'_>,
        properties: &Properties<'_>,
        allowance: &mut ReadAllowance,
    ) -> Result<AttachmentContent<'static>, Fault> {
        let bytes = match list.object(id::DATA) {
            Some(id) => {
                let node = list
                    .heap
                    .subnodes
                    .get(&id)
                    .ok_or("the content is not in the file")?;
                Some(Cow::Owned(self.file.data(node.data, allowance)?))
            }
            None => match list.read(id::DATA, allowance)? {
                Some(PropertyValue::Bytes(bytes)) => Some(bytes),
                _ => None,
            },
        };
        const COMPOUND_FILE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
        Ok(match bytes {
            None => AttachmentContent::None,
            Some(bytes) => {
                let is_object = properties.integer(id::METHOD) == Some(6);
                if is_object && bytes.starts_with(COMPOUND_FILE) {
                    AttachmentContent::Storage(bytes)
                } else {
                    AttachmentContent::File(bytes)
                }
            }
        })
    }
}

/// Returns a name for a folder whose own name cannot be read.
fn without_name(folder: u32) -> String {
    format!("Folder {folder:x}")
}

/// Name of the folder for items whose own folder is missing from the file.
const ORPHANS: &str = "Orphan messages";

#[cfg(test)]
// The integration tests include the same file as a module of their own.
#[allow(clippy::duplicate_mod, clippy::unwrap_used, unreachable_pub)]
#[path = "../../../../tests/common/pst.rs"]
pub mod sample;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
