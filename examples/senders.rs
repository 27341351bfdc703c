//! Counts the mails of each sender in mailboxes of any kind:
//! `cargo run --example senders takeout.zip Maildir/ old.mbox.gz`
//!
//! embody finds the messages in the mailboxes, and the library mail-parser parses the messages. Any other parser can be used
//! instead.

use std::collections::BTreeMap;

use embody::mailbox::{Messages, ReadOptions};
use mail_parser::MessageParser;

fn main() {
    let mut senders: BTreeMap<String, u64> = BTreeMap::new();
    for source in std::env::args_os().skip(1) {
        for message in Messages::new(source, ReadOptions::default()) {
            let message = match message {
                Ok(message) => message,
                // If a mailbox cannot be read, the iterator continues with the next mailbox.
                Err(error) => {
                    eprintln!("{error}");
                    continue;
                }
            };
            let parsed = MessageParser::default().parse_headers(&message.content);
            let sender = parsed.as_ref().and_then(|it| it.from()?.first()?.address());
            *senders
                .entry(sender.unwrap_or_default().to_lowercase())
                .or_default() += 1;
        }
    }
    for (sender, count) in senders {
        println!("{count:8} {sender}");
    }
}
