//! Position of a message on a server, as reports contain it.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde::Serialize;

use super::account::is_url;
use super::session::SelectResponse;

/// Position of a message on a server. If the message was replaced, `new_uid` is the UID of the new message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct MessagePlace {
    /// Name of the folder, decoded for display.
    pub(crate) folder: String,
    pub(crate) uidvalidity: u32,
    pub(crate) uid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) new_uid: Option<u32>,
}

impl MessagePlace {
    /// Parses the URL of a message (RFC 5092), such as `download` writes into reports. Returns `None` if `url` is not
    /// the URL of a message.
    pub(crate) fn of_url(url: &str) -> Option<Self> {
        let (_, rest) = url.split_once("://").filter(|_| is_url(url))?;
        let (_, path) = rest.split_once('/')?;
        let (path, uid) = path.rsplit_once("/;UID=")?;
        let (folder, uidvalidity) = path.rsplit_once(";UIDVALIDITY=")?;
        Some(Self {
            folder: percent_decode_str(folder).decode_utf8_lossy().into_owned(),
            uidvalidity: uidvalidity.parse().ok()?,
            uid: uid.parse().ok()?,
            new_uid: None,
        })
    }
}

/// Report for a UID in the URL that the folder does not have.
pub(super) const ABSENT: &str = "the folder has no message with this UID (the message may have been deleted, or moved to another folder, where it has a different UID)";

/// A folder and its URL for reports.
pub(super) struct ReadFolder<'p> {
    pub(super) selected: &'p SelectResponse,
    pub(super) url: &'p Path,
}

/// Returns the URL of a message (RFC 5092).
pub(super) fn message_url(folder: &Path, selected: &SelectResponse, uid: u32) -> PathBuf {
    let mut url = folder.to_owned();
    let more = format!(";UIDVALIDITY={}/;UID={uid}", selected.uidvalidity);
    url.as_mut_os_string().push(more);
    url
}
