//! Files among the messages of a Maildir or an MH folder whose content is not a message. They are reported and not read.

use crate::mailbox::damaged::after_zeros;
use crate::mailbox::forms::recorded::refused_session;
use crate::mailbox::forms::refused::refused_message;
use crate::mailbox::not_mail::NotMail;
use crate::mailbox::start::{is_known_file, kind_of_start};
use crate::span::front;

/// Returns the reason why a file among the messages of a Maildir or an MH folder is not read: its content is not a message.
pub(crate) fn refused_among_messages(content: &[u8]) -> Option<NotMail> {
    const LOOKED_AT: usize = 64 << 10;
    let other = refused_message(content).or_else(|| after_zeros(content));
    if let Some(other) = other.or_else(|| refused_session(content)) {
        return Some(other);
    }
    let start = front(content, LOOKED_AT);
    if is_known_file(start) {
        return Some(NotMail::FILE_AMONG_MESSAGES);
    }
    match kind_of_start(start) {
        Err(NotMail::Binary | NotMail::Other(_) | NotMail::Beside(_)) => {
            Some(NotMail::FILE_AMONG_MESSAGES)
        }
        Err(other @ (NotMail::UTF32 | NotMail::EBCDIC)) => Some(other),
        _ => None,
    }
}
