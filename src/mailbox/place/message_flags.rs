//! Flags and keywords of one message, as its mailbox stores them.

use std::path::Path;
use std::sync::Arc;

use crate::mailbox::forms::flags::MessageFlags;
use crate::mailbox::place::folder::noted_in_name;
use crate::mailbox::place::keyword_files::FolderKeywords;
use crate::prologue::Prologue;

/// Returns the flags of a message, from its file name or its header fields. Returns `None` if its mailbox cannot store
/// flags: the file is not in `cur` or `new`, is not an mbox, and the header has no field for flags. `is_mbox` is needed
/// because the directory of an mbox may also be named `cur`. `keywords` returns the keywords of the messages in a folder of a
/// Maildir.
pub(crate) fn flags_of_message(
    file: &Path,
    content: &[u8],
    is_mbox: bool,
    keywords: impl FnOnce(&Path) -> Arc<FolderKeywords>,
) -> Option<MessageFlags> {
    let content = Prologue::behind(content);
    let of_fields = || MessageFlags::of_fields(content);
    let part = file
        .parent()
        .and_then(Path::file_name)
        .filter(|part| !is_mbox && (*part == "cur" || *part == "new"));
    if let (Some(part), Some(name)) = (part, file.file_name()) {
        let noted = noted_in_name(&Path::new(part).join(name), content);
        let of_fields = of_fields();
        let folder = file
            .parent()
            .and_then(Path::parent)
            .unwrap_or(Path::new(""));
        let (keywords, _) = keywords(folder).of_message(file);
        return Some(MessageFlags::new(
            noted.unwrap_or(of_fields.system),
            keywords.with(&of_fields.keywords),
        ));
    }
    (is_mbox || MessageFlags::has_fields(content)).then(of_fields)
}
