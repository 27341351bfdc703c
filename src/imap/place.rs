//! Where a message is on a server, as rows have it.

use percent_encoding::percent_decode_str;
use serde::Serialize;

use super::account::is_url;

/// Where a message is, and where the one is that took its place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct MessagePlace {
    /// As people read it.
    pub(crate) folder: String,
    pub(crate) uidvalidity: u32,
    pub(crate) uid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) new_uid: Option<u32>,
}

impl MessagePlace {
    /// What a URL of a message says (RFC 5092), which `download` made; none of other names.
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
