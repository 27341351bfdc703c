//! The table of the formats in which new mailboxes are written.

use super::eml::EmlFormat;
use super::maildir::MaildirFormat;
use super::mbox::MboxFormat;
use super::mh::MhFormat;
use super::thunderbird::ThunderbirdFormat;
use super::written_format::WrittenFormat;
use crate::mailbox::Format;

/// Returns the writer of a format. MMDF is refused before mail is read, because embody does not write it.
pub(super) fn written_format(format: Format) -> &'static dyn WrittenFormat {
    match format {
        Format::Auto | Format::Mbox | Format::Mmdf => &MboxFormat,
        Format::Maildir => &MaildirFormat,
        Format::Mh => &MhFormat,
        Format::Eml => &EmlFormat,
        Format::Thunderbird => &ThunderbirdFormat,
    }
}
