//! Folders of ours that may lie among mail: stores and caches ([`layout`]). What is in them may look like mail, and
//! changed it would not be what its name says any more. What only looks like one is walked through, and in it each
//! file that is mail and bears the name of an object is hashed: if the name is right, it is one.

use std::path::Path;

use crate::disk::layout;
use crate::mailbox::not_mail::NotMail;

pub(crate) use crate::disk::layout::is_object;

/// What a folder is, if it is one of ours: no walk goes into it.
pub(crate) fn folder(path: &Path) -> Option<NotMail> {
    match path {
        _ if layout::is_store(path) => Some(NotMail::Ours("a store of detached attachments")),
        _ if layout::is_cache(path) => Some(NotMail::Ours("a cache of embody")),
        _ => None,
    }
}

/// What a file is, if it is of a store in which other things lie as well, and no object.
pub(crate) fn file(path: &Path) -> Option<NotMail> {
    let what = "the lock of a store, its list of users, or what is being written there";
    layout::is_of_store(path).then_some(NotMail::Beside(what))
}
