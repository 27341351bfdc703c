//! Mail that Proton's export program (proton-mail-export) saved: a directory with `ID.eml` and `ID.metadata.json` for each
//! message, and one file `labels.json`. Both kinds of JSON files are objects with the fields `Version` and `Payload`.
//!
//! `LabelIDs` of a message names its folder, its labels, and lists of Proton such as "all mail". Numbers are the ids of
//! Proton's own folders and lists; `labels.json` contains the names of the others. Its types are 1 (label), 2 (group of
//! contacts), 3 (folder) and 4 (folder of Proton).

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::mailbox::forms::keywords::{Keywords, of_label};
use crate::mailbox::state::MailState;
use crate::prologue::BYTE_ORDER_MARK;

/// Name of the file with the labels of an export.
pub(crate) const LABELS: &str = "labels.json";
/// End of the name of a file with the state of a message.
pub(crate) const METADATA: &str = ".metadata.json";

/// Maximum size of a file, in bytes. The state of a message also contains its header and a list of its attachments.
const LONGEST: u64 = 64 << 20;
/// Maximum number of folders around a folder.
const DEEPEST: usize = 100;

/// Proton's own folders, by their ids. The most important one is first, as for a Takeout.
const FOLDERS_BEFORE: [(&str, &str); 3] = [("3", "Trash"), ("4", "Junk"), ("8", "Drafts")];
const FOLDERS_BEHIND: [(&str, &str); 2] = [("7", "Sent"), ("0", "INBOX")];
const ARCHIVE: &str = "Archive";
const STARRED: &str = "10";

const LABEL: u64 = 1;
const FOLDER: u64 = 3;

/// Returns the path of the file with the state of a message.
pub(crate) fn metadata_path(message: &Path) -> Option<PathBuf> {
    let name = message.file_name()?.to_str()?;
    let (stem, suffix) = name.split_at_checked(name.len().checked_sub(4)?)?;
    let is_message = suffix.eq_ignore_ascii_case(".eml") && !stem.is_empty();
    is_message.then(|| message.with_file_name(format!("{stem}{METADATA}")))
}

fn payload(path: &Path) -> Option<Value> {
    // A link or a pipe is not read, because it could lead to a file outside the source or never end.
    let metadata = fs::symlink_metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > LONGEST {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    // Editors on Windows write a byte order mark, which JSON does not allow.
    let json = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    let mut value: Value = serde_json::from_slice(json).ok()?;
    value.get_mut("Payload").map(Value::take)
}

/// The state of a message.
#[derive(Clone, Debug)]
pub(crate) struct ProtonState {
    pub(crate) states: Vec<MailState>,
    /// Ids of the folder and the labels of the message.
    ids: Vec<String>,
    pub(crate) received: Option<SystemTime>,
}

impl ProtonState {
    /// Reads the file with the state of a message. Returns `None` if there is no such file. If the file cannot be read,
    /// returns its path as an error.
    pub(crate) fn beside(message: &Path) -> Result<Option<Self>, PathBuf> {
        let path = metadata_path(message).filter(|path| path.symlink_metadata().is_ok());
        path.map(|path| payload(&path).and_then(|it| Self::of(&it)).ok_or(path))
            .transpose()
    }

    fn of(payload: &Value) -> Option<Self> {
        let listed = payload.get("LabelIDs")?.as_array()?;
        let ids: Vec<String> = listed
            .iter()
            .filter_map(|id| Some(id.as_str()?.to_owned()))
            .collect();
        // Proton writes 0 and 1.
        let is_set = |name: &str| match payload.get(name)? {
            Value::Bool(is_set) => Some(*is_set),
            number => Some(number.as_i64()? != 0),
        };
        let has = |id: &str| ids.iter().any(|own| own == id);
        let states = [
            (MailState::Read, is_set("Unread") == Some(false)),
            (MailState::Flagged, has(STARRED)),
            (MailState::Draft, has("8")),
            (
                MailState::Replied,
                is_set("IsReplied") == Some(true) || is_set("IsRepliedAll") == Some(true),
            ),
            (MailState::Forwarded, is_set("IsForwarded") == Some(true)),
            (MailState::Trashed, has("3")),
        ];
        let set = states.into_iter().filter(|(_, is_set)| *is_set);
        let states = set.map(|(state, _)| state).collect();
        let time = payload
            .get("Time")
            .and_then(Value::as_u64)
            .filter(|time| *time > 0);
        let received = time.and_then(|time| UNIX_EPOCH.checked_add(Duration::from_secs(time)));
        Some(Self {
            states,
            ids,
            received,
        })
    }
}

/// The folders and labels of an export.
#[derive(Default, Debug)]
pub(crate) struct ProtonLabels(HashMap<String, ProtonLabel>);

#[derive(Debug)]
struct ProtonLabel {
    name: String,
    kind: u64,
    parent: Option<String>,
}

impl ProtonLabels {
    /// Reads the file `labels.json` of a directory. If the file does not exist or cannot be read, only Proton's own
    /// folders are known.
    pub(crate) fn of_folder(folder: &Path) -> Self {
        let payload = payload(&folder.join(LABELS));
        let labels = payload.as_ref().and_then(Value::as_array);
        let text = |label: &Value, name: &str| {
            let text = label.get(name)?.as_str()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        let label = |label: &Value| {
            let path = text(label, "Path");
            let own = ProtonLabel {
                // A path contains the names of all folders around the folder, so no parent is needed.
                parent: text(label, "ParentID").filter(|_| path.is_none()),
                name: path.or_else(|| text(label, "Name"))?,
                kind: label.get("Type")?.as_u64()?,
            };
            Some((text(label, "ID")?, own))
        };
        Self(labels.into_iter().flatten().filter_map(label).collect())
    }

    /// Returns the folders of a message, the most important one first, and its labels.
    pub(crate) fn sorted(&self, state: &ProtonState) -> (Vec<String>, Vec<String>) {
        let standard = |folders: &[(&str, &str)]| -> Vec<String> {
            let has = |id: &&str| state.ids.iter().any(|own| own == id);
            let own = folders.iter().filter(|(id, _)| has(id));
            own.map(|(_, name)| (*name).to_owned()).collect()
        };
        // Proton's own folders have numbers as ids. Some exports list them as folders of the user.
        let is_own = |id: &&String| id.parse::<u64>().is_err();
        let named = |kind: u64| -> Vec<String> {
            let ids = state.ids.iter().filter(is_own);
            ids.filter_map(|id| self.path(id, kind)).collect()
        };
        let labels = named(LABEL);
        let mut folders = standard(&FOLDERS_BEFORE);
        folders.extend(named(FOLDER));
        folders.extend(labels.iter().cloned());
        folders.extend(standard(&FOLDERS_BEHIND));
        if folders.is_empty() {
            folders.push(ARCHIVE.to_owned());
        }
        (folders, labels)
    }

    fn path(&self, id: &str, kind: u64) -> Option<String> {
        let label = self.0.get(id).filter(|label| label.kind == kind)?;
        let mut path = label.name.clone();
        let mut parent = label.parent.as_deref();
        // In a damaged file, the parents can form a cycle, so the number of levels is limited.
        for _ in 0..DEEPEST {
            let Some(above) = parent.and_then(|id| self.0.get(id)) else {
                break;
            };
            path = format!("{}/{path}", above.name);
            parent = above.parent.as_deref();
        }
        Some(path)
    }
}

/// Returns the keywords for the labels of a message, for a mailbox that has no folder for each label.
pub(crate) fn keywords(labels: &[String]) -> Keywords {
    let names: Vec<String> = labels.iter().map(|label| of_label(label)).collect();
    Keywords::of_names(names.iter().map(String::as_str))
}

/// Returns whether the folder must be named if the result is one mailbox.
pub(crate) fn is_named_if_lost(folder: &str, labels: &[String]) -> bool {
    folder != "INBOX" && folder != ARCHIVE && !labels.iter().any(|label| label == folder)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sorted(labels: &Value, message: &Value) -> (Vec<String>, Vec<String>, Vec<MailState>) {
        let folder = tempfile::tempdir().unwrap();
        let labels = json!({"Version": 1, "Payload": labels});
        fs::write(folder.path().join(LABELS), labels.to_string()).unwrap();
        let state = ProtonState::of(message).unwrap();
        let (folders, labels) = ProtonLabels::of_folder(folder.path()).sorted(&state);
        (folders, labels, state.states)
    }

    #[test]
    fn folders_and_labels_come_from_ids_and_their_types() {
        use MailState::{Draft, Flagged, Forwarded, Read, Replied, Trashed};
        let labels = json!([
            {"ID": "0", "Name": "Inbox", "Type": 3},
            {"ID": "a==", "Name": "Work", "Type": 3, "Path": "Work"},
            {"ID": "b==", "Name": "2023", "Type": 3, "Path": "Work/2023"},
            {"ID": "c==", "Name": "Sub", "Type": 3, "ParentID": "a=="},
            {"ID": "d==", "Name": "To do", "Type": 1},
            {"ID": "e==", "Name": "Friends", "Type": 2},
            {"ID": "f==", "Name": "circle", "Type": 3, "ParentID": "f=="},
            {"ID": 7, "Name": "wrong"},
        ]);
        for (ids, more, folders, own, states) in [
            (
                json!(["0", "5", "15"]),
                json!({"Unread": 0}),
                "INBOX",
                "",
                &[Read][..],
            ),
            (
                json!(["6", "a==", "5"]),
                json!({"Unread": 1}),
                "Work",
                "",
                &[],
            ),
            (json!(["b=="]), json!({}), "Work/2023", "", &[]),
            (
                json!(["c==", "d=="]),
                json!({"Unread": false}),
                "Work/Sub|To do",
                "To do",
                &[Read],
            ),
            (
                json!(["0", "d==", "10", "e=="]),
                json!({"Unread": true}),
                "To do|INBOX",
                "To do",
                &[Flagged],
            ),
            (
                json!(["1", "8"]),
                json!({"IsForwarded": 1}),
                "Drafts",
                "",
                &[Draft, Forwarded],
            ),
            (
                json!(["2", "7"]),
                json!({"IsRepliedAll": 1}),
                "Sent",
                "",
                &[Replied],
            ),
            (
                json!(["3", "unknown=="]),
                json!({}),
                "Trash",
                "",
                &[Trashed],
            ),
            (
                json!(["5", "6", "9", "12", "16", "24"]),
                json!({}),
                "Archive",
                "",
                &[],
            ),
        ] {
            let mut message = json!({"LabelIDs": ids});
            for (name, value) in more.as_object().unwrap() {
                message[name] = value.clone();
            }
            let (found, labels, noted) = sorted(&labels, &message);
            assert_eq!(
                (found.join("|"), labels.join("|")),
                (folders.to_owned(), own.to_owned()),
                "{ids}"
            );
            assert_eq!(noted, states, "{ids}");
        }
        let (found, ..) = sorted(&labels, &json!({"LabelIDs": ["f=="]}));
        assert!(found[0].len() < 1000);
    }

    #[test]
    fn message_without_a_valid_state_has_no_state() {
        let folder = tempfile::tempdir().unwrap();
        let message = folder.path().join("a==.eml");
        assert!(ProtonState::beside(&message).unwrap().is_none());
        for content in [
            "",
            "{",
            "[]",
            "{\"Payload\": 1}",
            "{\"Payload\": {\"LabelIDs\": 1}}",
        ] {
            fs::write(folder.path().join("a==.metadata.json"), content).unwrap();
            let path = ProtonState::beside(&message).unwrap_err();
            assert!(path.ends_with("a==.metadata.json"), "{content}");
        }
    }
}
