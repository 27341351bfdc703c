//! One line in a list of mails.

use super::source::{declared_charset, field_text};
use crate::detail::words;
use crate::mime::{Header, date};
use crate::span::front;

words! {
    /// The format of a file with mail.
    #[derive(serde::Serialize)]
    #[serde(rename_all = "kebab-case")]
    #[non_exhaustive]
    pub enum FileFormat {
        Eml "eml" "One mail: `.eml`, `.emlx`, `.mht`.";
        Mbox "mbox" "A mailbox: mbox, MMDF, or a mailbox of Eudora.";
        Msg "msg" "One message of Outlook: `.msg`, `.oft`.";
        Tnef "tnef" "The content of one message of Outlook: `winmail.dat`.";
        Pst "pst" "A mailbox of Outlook: `.pst`, `.ost`.";
    }
}

/// Header fields of a mail, for a list of mails.
#[derive(Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct MailSummary {
    /// The From field, decoded.
    pub from: String,
    /// The To field, decoded.
    pub to: String,
    /// The subject, decoded.
    pub subject: String,
    /// The time in the Date field, in seconds since 1970.
    pub date: Option<i64>,
    /// Size of the mail as it is in the file, in bytes.
    pub size: u64,
    /// Name of the folder, preceded by the names of its parent folders. Empty if the file has no folders.
    pub folder: Vec<String>,
    /// The reason why the item cannot be shown: it is a contact, for example, or damaged.
    pub problem: Option<String>,
}

/// Number of bytes of a mail that are read for its summary.
const HEADER: usize = 256 << 10;

/// Returns the fields of a mail for a list of mails.
pub(super) fn summary_of(mail: &[u8], size: usize) -> MailSummary {
    let start = front(mail, HEADER);
    let header = Header::of_message(start, HEADER);
    let value = |name| header.fields.value(start, name);
    let label = value("Content-Type").and_then(declared_charset);
    let text = |name| field_text(value(name).unwrap_or_default(), label.as_deref());
    MailSummary {
        from: text("From"),
        to: text("To"),
        subject: text("Subject"),
        date: value("Date").and_then(date::seconds),
        size: size as u64,
        ..MailSummary::default()
    }
}
