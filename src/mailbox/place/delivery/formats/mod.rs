//! The table of the formats in which new mailboxes are written, with a file for each of them. `forms::format` has their
//! words and properties.

mod eml;
mod maildir;
mod mbox;
mod mh;
mod thunderbird;

use super::written_format::WrittenFormat;
use crate::mailbox::Format;

pub(crate) use maildir::NO_LETTER;
pub(super) use mbox::MboxStream;

/// Returns the writer of a format. MMDF is refused before mail is read, because embody does not write it.
pub(super) fn written_format(format: Format) -> &'static dyn WrittenFormat {
    match format {
        Format::Auto | Format::Mbox | Format::Mmdf => &mbox::MboxFormat,
        Format::Maildir => &maildir::MaildirFormat,
        Format::Mh => &mh::MhFormat,
        Format::Eml => &eml::EmlFormat,
        Format::Thunderbird => &thunderbird::ThunderbirdFormat,
    }
}
