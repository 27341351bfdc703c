//! The table of the suffixes of files with mail. Suffixes are compared without case.

use std::ffi::OsStr;

/// Usual content of a file, by the suffix of its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SuffixClass {
    /// One message.
    Message,
    /// One message of Apple Mail.
    AppleMessage,
    /// A web page that was saved as a message.
    SavedPage,
    Mbox,
    /// An mbox, or a file of another program.
    Mbx,
    /// An mbox of a program that does not call it `.mbox`. The suffix belongs to the name of its folder.
    RareMbox,
    /// A message of Outlook. Text files have these suffixes too.
    OutlookMessage,
    /// A mailbox of Outlook.
    OutlookMailbox,
    /// A mailbox of Outlook Express.
    OutlookExpress,
    Archive,
    Compressed,
    /// An archive that embody does not read.
    OtherArchive,
}

use SuffixClass::{
    AppleMessage, Archive, Compressed, Mbox, Mbx, Message, OtherArchive, OutlookExpress,
    OutlookMailbox, OutlookMessage, RareMbox, SavedPage,
};

/// All suffixes, without the dot.
const TABLE: [(&str, SuffixClass); 27] = [
    ("eml", Message),
    ("emlx", AppleMessage),
    ("mht", SavedPage),
    ("mhtml", SavedPage),
    ("mbox", Mbox),
    ("mbx", Mbx),
    ("mbs", RareMbox),
    ("mmdf", RareMbox),
    ("msg", OutlookMessage),
    ("oft", OutlookMessage),
    ("pst", OutlookMailbox),
    ("ost", OutlookMailbox),
    ("dbx", OutlookExpress),
    ("zip", Archive),
    ("tar", Archive),
    ("tgz", Archive),
    ("tbz2", Archive),
    ("txz", Archive),
    ("gz", Compressed),
    ("bz2", Compressed),
    ("xz", Compressed),
    ("zst", Compressed),
    ("7z", OtherArchive),
    ("rar", OtherArchive),
    ("arj", OtherArchive),
    ("cab", OtherArchive),
    ("dmg", OtherArchive),
];

// A system without files needs only some of the methods.
#[cfg_attr(not(any(unix, windows)), allow(dead_code))]
impl SuffixClass {
    /// Returns the class of a suffix without its dot. Returns `None` for any other suffix.
    pub(crate) fn of(suffix: &OsStr) -> Option<Self> {
        let found = TABLE
            .iter()
            .find(|(name, _)| suffix.eq_ignore_ascii_case(name));
        found.map(|(_, class)| *class)
    }

    /// Whether the file is one message that is not in a format of Outlook.
    pub(crate) fn is_message(self) -> bool {
        matches!(self, Message | AppleMessage | SavedPage)
    }

    pub(crate) fn is_mbox(self) -> bool {
        matches!(self, Mbox | Mbx | RareMbox)
    }

    pub(crate) fn is_of_outlook(self) -> bool {
        matches!(self, OutlookMessage | OutlookMailbox | OutlookExpress)
    }

    /// Whether the file is a mailbox or a message that embody reads. Saved pages are not included: most of them are not mail.
    pub(crate) fn is_mail(self) -> bool {
        let is_message = matches!(self, Message | AppleMessage | OutlookMessage);
        is_message || self.is_mbox() || self == OutlookMailbox
    }
}
