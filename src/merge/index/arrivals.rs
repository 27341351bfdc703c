//! Prepares the messages of a folder for the index.

use std::borrow::Cow;
use std::time::UNIX_EPOCH;

use super::super::record::{MessageRecord, SpoolEntry};
use super::super::spool::MailFacts;
use super::super::words::MailWords;
use crate::engine::same::{copy_key_with, identity, plain};
use crate::mailbox::{MessageFlags, PreparedMail};
use crate::mime::Header;
use crate::mime::date::seconds;

const LONGEST_HEADER: usize = 1 << 20;

/// Maximum length of a separator line and of a sender, in bytes. A longer one is dropped, and the result gets a new
/// separator line. So the metadata stays far below 4 GiB, and its length fits into 32 bits.
const LONGEST_SEPARATOR: usize = 1 << 20;

/// Messages from one folder of a source, prepared for the index by the reading threads.
/// [`MergeIndex::add`](super::MergeIndex::add), which only one thread calls at a time, then does little more than write.
pub(crate) struct ArrivalBatch {
    /// Records of the messages. The fields that depend on other messages are 0: the number, the place in the spool, the
    /// source and the folder.
    pub(super) records: Vec<MessageRecord>,
    /// Encoded metadata and content of each message. Their lengths are in `records`.
    pub(super) bytes: Vec<u8>,
}

impl ArrivalBatch {
    /// Reserves memory for messages of about this length together, in bytes.
    pub(crate) fn of_length(length: usize) -> Self {
        Self {
            records: Vec::new(),
            bytes: Vec::with_capacity(length),
        }
    }

    /// Adds a message with its flags.
    pub(crate) fn add(&mut self, letter: &PreparedMail<'_>, flags: &MessageFlags) {
        let plain = plain(letter.content);
        let since = letter
            .envelope
            .date
            .and_then(|date| date.duration_since(UNIX_EPOCH).ok());
        let arrival = since.map(|since| since.as_secs());
        let header = Header::of_message(&plain, LONGEST_HEADER);
        let date = header
            .fields
            .value(&plain, "Date")
            .and_then(seconds)
            .or(arrival.and_then(|it| i64::try_from(it).ok()));
        let is_short = |length: usize| length <= LONGEST_SEPARATOR;
        let sender = Some(letter.envelope.sender.as_str()).filter(|sender| is_short(sender.len()));
        let separator = letter.separator.filter(|line| is_short(line.len()));
        let about = MailFacts {
            sender: sender.unwrap_or_default().into(),
            arrived: arrival,
            separator: separator.map(Cow::Borrowed),
            words: MailWords::of(letter.content).with_keywords(&flags.keywords),
        };
        let start = self.bytes.len();
        about.encode_into(&mut self.bytes);
        let entry = SpoolEntry {
            place: 0,
            about: (self.bytes.len() - start) as u32,
            length: letter.content.len() as u64,
        };
        self.bytes.extend_from_slice(letter.content);
        self.records.push(MessageRecord {
            key: copy_key_with(&header, &plain).to_bytes(),
            identity: identity(&plain).to_bytes(),
            number: 0,
            entry,
            date: date.unwrap_or(i64::MAX),
            source: 0,
            folder: 0,
            flags: flags.system,
            has_words: !about.words.is_empty(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::{Envelope, Keywords};

    #[test]
    fn separator_line_of_two_megabytes_is_left_out_of_the_index() {
        let mut arrivals = ArrivalBatch::of_length(0);
        let long = "x".repeat(2 << 20);
        let separator = format!("From {long} Tue May 14 12:00:00 2024");
        let content = b"Subject: x\n\nbody\n";
        let letter = PreparedMail {
            content,
            flags: None,
            keywords: Keywords::default(),
            envelope: Envelope {
                sender: long,
                ..Envelope::default()
            },
            separator: Some(separator.as_bytes()),
            member: None,
        };
        arrivals.add(&letter, &MessageFlags::default());
        let about = arrivals.records[0].entry.about as usize;
        assert!(about < 100, "{about}");
        assert_eq!(&arrivals.bytes[about..], content);
    }
}
